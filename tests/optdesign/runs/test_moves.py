"""Moves of whole runs: prices against determinants, known optima, and structures that are recognised."""

import itertools
import math

import numpy as np
import pytest
from problems import quadratic

import optdesign as od
from optdesign.runs.blocks import BlockMoves
from optdesign.runs.grid import find_grid
from optdesign.runs.hadamard import hadamard, orthogonal_runs
from optdesign.runs.rank_two import det_ratio, update
from optdesign.runs.structure import moves_of


def block_design(v, b, k):
    """Return v treatments in b blocks of k runs, with additive effects."""
    treatment, block = np.tile(np.arange(v), b), np.repeat(np.arange(b), v)
    dummies = [np.ones(v * b), *(block == i for i in range(1, b)), *(treatment == t for t in range(1, v))]
    return od.DesignProblem(np.column_stack(dummies).astype(float), block, budgets=np.full(b, k))


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(5))
def test_the_rank_two_formula_is_the_ratio_of_determinants_and_the_new_inverse(seed):
    rng = np.random.default_rng(seed)
    x, e, d, a = rng.normal(size=(9, 4)), rng.normal(size=4), rng.normal(size=4), float(rng.normal())
    m = x.T @ x
    v = np.linalg.inv(m)
    new = m + np.outer(e, d) + np.outer(d, e) + a * np.outer(d, d)
    ee, ed, dd = e @ v @ e, e @ v @ d, d @ v @ d
    assert det_ratio(ee, ed, dd, a) == pytest.approx(np.linalg.det(new) / np.linalg.det(m), rel=1e-9)
    update(v, v @ e, v @ d, ee, ed, dd, a)
    assert np.allclose(v @ new, np.eye(4), atol=1e-7)


@pytest.mark.kernels
def test_moves_in_blocks_keep_log_det_and_the_entries():
    problem = block_design(5, 4, 3)
    moves = BlockMoves.fit(od.solve(problem), np.full(4, 3), np.zeros(0).copy)
    rng = np.random.default_rng(0)
    state = moves.start(rng)
    moves.climb(state, 1e9)
    moves.refresh(state)
    values = []
    for _ in range(6):
        moves.perturb(state, rng)
        tracked, _, complete = moves.climb(state, 1e9)
        assert complete
        s = state.s.copy()
        assert moves.refresh(state) == pytest.approx(tracked, abs=1e-9)
        assert np.allclose(s, state.s, atol=1e-8)
        counts = moves.found(state)
        assert np.array_equal(np.bincount(problem.groups, counts), [3, 3, 3, 3])
        values.append(od.certify(problem, counts).log_det - tracked)
    assert np.ptp(values) < 1e-8


@pytest.mark.parametrize(("v", "k", "b"), [(7, 3, 7), (11, 5, 11), (13, 4, 13), (9, 3, 12)])
def test_balanced_incomplete_blocks_are_found_and_proved(v, k, b):
    """Every pair of treatments meets in the same number of blocks."""
    runs = od.exact(block_design(v, b, k), seed=3, tries=20)
    assert runs.status is od.RunStatus.PROVED
    n = runs.counts.reshape(b, v)
    meet = n.T @ n
    assert np.all(meet[~np.eye(v, dtype=bool)] == b * k * (k - 1) // (v * (v - 1)))


def test_blocks_whose_effects_are_nearly_additive_have_no_proof():
    """In block s, the treatments s + {3, 6, 7, 12, 14} (mod 21) have effects that are larger by 7e-10."""
    v = 21
    treatment, block = np.tile(np.arange(v), v), np.repeat(np.arange(v), v)
    target = np.isin((treatment - block) % v, [3, 6, 7, 12, 14])
    x = block_design(v, v, 5).candidates.copy()
    x[:, v:] *= np.where(target, 1 + 3.5e-10, 1 - 3.5e-10)[:, None]
    problem = od.DesignProblem(x, block, budgets=np.full(v, 5))
    runs, better = od.exact(problem, tries=1), od.certify(problem, target.astype(int)).log_det
    assert runs.bound > better - 1e-8
    assert runs.status is not od.RunStatus.PROVED


def test_the_bound_of_blocks_holds_for_blocks_larger_than_the_treatments():
    moves = BlockMoves.fit(od.solve(block_design(3, 3, 4)), np.full(3, 4), np.zeros(0).copy)
    best = max(
        moves.refresh(moves.of(np.concatenate(parts)))
        for parts in itertools.product([(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 0), (4, 0, 0)], repeat=3)
        if np.sum(parts, axis=0).min() > 0
    )
    assert best == pytest.approx(moves.bound, abs=1e-9)


def test_groups_without_additive_effects_are_no_blocks():
    rng = np.random.default_rng(0)
    problem = od.DesignProblem(rng.normal(size=(20, 3)), np.repeat([0, 1], 10), budgets=[4, 4])
    assert BlockMoves.fit(od.solve(problem), np.array([4, 4]), np.zeros(0).copy) is None


@pytest.mark.parametrize("shift", [0.0, 2020.0])
def test_a_grid_is_found_in_any_order_and_units(shift):
    x = quadratic(np.array([-1.0, 0.0, 0.5, 1.0]) + shift, 3)
    x = np.random.default_rng(0).permutation(x)
    grid = find_grid(od.DesignProblem(x, budgets=14))
    assert grid.levels.sizes.tolist() == [4, 4, 4]
    assert grid.levels.widths.tolist() == [4, 4, 4]
    assert grid.shares == []
    assert np.array_equal(np.sort(grid.row_of), np.arange(64))


def test_contrasts_of_a_category_are_one_factor():
    contrasts = np.vstack([np.eye(3), -np.ones(3)])
    levels = np.array(list(itertools.product(range(4), range(4))))
    x = np.column_stack([np.ones(16), contrasts[levels[:, 0]], contrasts[levels[:, 1]]])
    grid = find_grid(od.DesignProblem(x, budgets=9))
    assert grid.levels.sizes.tolist() == [4, 4]
    assert np.allclose(grid.shares, 0.25)


@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_the_tables_of_a_grid_span_its_rows(shift):
    """Also if combinations are missing."""
    x = quadratic(np.array([-1.0, 0.0, 1.0]) + shift, 3)
    x = x[np.abs(x[:, 1:4] - shift).sum(axis=1) < 3]
    grid = find_grid(od.DesignProblem(x, budgets=12))
    z = grid.levels.rows(grid.settings)
    assert z.shape == (19, 10)
    assert np.allclose(z @ np.linalg.lstsq(z, x)[0], x, rtol=1e-9)


@pytest.mark.kernels
@pytest.mark.parametrize("levels", [3, 5])
def test_changes_of_levels_of_listed_runs_keep_log_det_and_the_rows(levels):
    """A factor has 4 columns: more than levels to compare, or fewer."""
    problem = od.DesignProblem(quadratic(np.linspace(-1, 1, levels), 3), budgets=12)
    moves = moves_of(
        od.solve(problem), np.array([12]), find_grid(problem), first=None, spanning=np.zeros(0).copy
    )
    rng, values = np.random.default_rng(0), []
    state = moves.start(rng)
    moves.climb(state, 1e9)
    moves.refresh(state)
    for _ in range(6):
        moves.perturb(state, rng)
        tracked, _, complete = moves.climb(state, 1e9)
        assert complete
        assert np.allclose(state.z, moves.levels.rows(state.settings), atol=1e-12)
        assert moves.refresh(state) == pytest.approx(tracked, abs=1e-9)
        values.append(od.certify(problem, moves.found(state)).log_det - tracked)
    assert np.ptp(values) < 1e-8


def test_a_grid_with_holes_is_searched_and_random_rows_are_none():
    x = quadratic([-1.0, 0.0, 1.0], 3)
    part = x[np.abs(x[:, 1:4]).sum(axis=1) < 3]
    assert np.sum(find_grid(od.DesignProblem(part, budgets=12)).row_of < 0) == 8
    runs = od.exact(od.DesignProblem(part, budgets=12), tries=3)
    assert runs.method == "exchange of levels"
    assert runs.counts.sum() == 12
    assert find_grid(od.DesignProblem(np.random.default_rng(0).normal(size=(40, 3)))) is None


def test_a_quadratic_on_a_fine_grid_has_the_known_value():
    problem = od.DesignProblem(quadratic(np.linspace(-1, 1, 21), 3), budgets=14)
    runs = od.exact(problem, seed=5, tries=4)
    assert math.exp(runs.log_det / 10) / 14 == pytest.approx(0.463045, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 4, 8, 12, 16, 20, 24, 28, 36, 44, 60, 76])
def test_hadamard_matrices_are_orthogonal(n):
    h = hadamard(n)
    assert np.array_equal(h.T @ h, n * np.eye(n))
    assert np.all(h[:, 0] == 1)


def test_other_orders_have_no_hadamard_matrix_here():
    assert [n for n in range(3, 101) if n % 4 == 0 and hadamard(n) is None] == [52, 92, 100]
    assert hadamard(6) is None


@pytest.mark.parametrize(("factors", "runs"), [(15, 24), (23, 24)])
def test_two_level_factors_in_24_runs_are_orthogonal(factors, runs):
    model = od.MainEffects({f"f{j}": [-1, 1] for j in range(factors)}, runs=runs)
    found = od.exact(model, seed=7)
    assert found.status is od.RunStatus.BOUND
    assert found.efficiency == pytest.approx(1.0, abs=1e-9)


def test_an_additive_model_on_a_listed_grid_has_a_sharp_bound():
    """Independent factors at their marginal optima are optimal."""
    contrasts = np.vstack([np.eye(4), -np.ones(4)])
    levels = np.array(list(itertools.product(range(5), repeat=4)))
    x = np.column_stack([np.ones(len(levels)), *(contrasts[levels[:, j]] for j in range(4))])
    runs = od.exact(od.DesignProblem(x, budgets=25), tries=50)
    assert runs.best.method == "product of marginal designs"
    assert runs.best.relative_gap < 1e-9
    assert runs.efficiency == pytest.approx(
        np.exp((runs.log_det - 17 * np.log(25) + 12 * np.log(5)) / 17), rel=2e-6
    )


@pytest.mark.parametrize(
    ("sizes", "runs"), [([5, 5, 5], 25), ([3] * 4, 9), ([2] + [3] * 7, 18), ([5] * 6, 25), ([4] * 5, 16)]
)
def test_orthogonal_arrays_end_the_search_with_a_proof(sizes, runs):
    """Latin squares among them."""
    factors = {f"f{j}": [str(level) for level in range(size)] for j, size in enumerate(sizes)}
    found = od.exact(od.MainEffects(factors, runs=runs), seed=11)
    assert found.status is od.RunStatus.BOUND
    assert found.efficiency == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("one_run_per_cell", [False, True])
def test_latin_squares_from_a_list_end_the_search_with_a_proof(one_run_per_cell):
    rows, columns, treatments = np.array(list(itertools.product(range(5), repeat=3))).T
    x = np.column_stack([np.ones(125), *(f == i for f in (rows, columns, treatments) for i in range(1, 5))])
    problem = (
        od.DesignProblem(x.astype(float), rows * 5 + columns, budgets=np.ones(25))
        if one_run_per_cell
        else od.DesignProblem(x.astype(float), budgets=25)
    )
    found = od.exact(problem, seed=11)
    assert found.status is od.RunStatus.BOUND
    for f in (rows, columns):
        assert np.array_equal(np.histogram2d(f, treatments, 5, weights=found.counts)[0], np.ones((5, 5)))


@pytest.mark.parametrize(
    ("runs", "factors"), [(8, 7), (12, 2), (40, 3), (2**16, 3), (2**16, 40), (4 * 8191, 2)]
)
def test_orthogonal_runs_need_memory_for_their_factors_only(runs: int, factors: int) -> None:
    found = orthogonal_runs(runs, factors)
    assert found is not None
    assert found.shape == (runs, factors)
    assert np.array_equal(found.T @ found, runs * np.eye(factors))
    assert not found.sum(axis=0).any()


def test_some_numbers_of_runs_have_no_orthogonal_start() -> None:
    assert orthogonal_runs(4 * 8191, 5) is None
    assert orthogonal_runs(6, 2) is None
