"""The linear systems of Newton steps: which one is taken, sums in batches, and factors in pieces."""

import numpy as np
import pytest
from problems import EPS, assert_certified
from work import checks_of_a_stop, free_of

import optdesign as od
from optdesign.algebra.blocks import entries
from optdesign.algebra.reduced import reduce
from optdesign.runtime import threads
from optdesign.solvers import costs
from optdesign.solvers.costs import UNITS
from optdesign.solvers.systems import (
    ByGroup,
    ByInformation,
    ByIteration,
    by_iteration,
    cheapest_system,
    dense,
    dense_system,
)
from optdesign.solvers.systems.layout import Layout

TOL = 1e-9


def layout_of(problem: od.DesignProblem) -> Layout:
    reduced = reduce(problem)
    return Layout(reduced.blocks, reduced.starts, reduced.ranks)


def test_the_cheapest_system_is_taken() -> None:
    """Few columns of information and many candidates, and the other way round."""
    rng = np.random.default_rng(0)
    few = layout_of(od.DesignProblem.disjoint(rng.normal(size=(200, 20, 2))))
    many = layout_of(od.DesignProblem(rng.normal(size=(60, 20))))
    for layout, kind in ((few, ByInformation), (many, ByGroup)):
        assert isinstance(cheapest_system(layout), kind)
        assert isinstance(dense_system(layout), kind)


@pytest.mark.parametrize(
    ("groups", "rows", "dim"), [(78, 5000, 12), (3, 40_000, 12), (20_000, 2, 5), (1, 10, 3)]
)
def test_pieces_of_information_systems_are_bounded_by_rows(groups: int, rows: int, dim: int) -> None:
    """Or are one group: there is a look at limits between two, whatever the sizes of groups."""
    starts = rows * np.arange(groups + 1)
    system = ByInformation(Layout(np.zeros(groups * rows, np.int64), starts, np.array([dim])))
    q = entries(dim)
    assert system.groups_to_square == 1 or (
        system.groups_to_square * rows * q**2 <= 4 * max(threads.PIECE, q**3)
    )
    assert system.groups_to_multiply == 1 or system.groups_to_multiply * rows * q <= threads.PIECE


def test_estimates_are_those_of_the_systems() -> None:
    """What is estimated from sizes alone is what the cheapest system of such a layout is expected to take."""
    rng = np.random.default_rng(0)
    seen = set()
    for problem in (
        od.DesignProblem(rng.normal(size=(200, 12))),
        od.DesignProblem.shared(rng.normal(size=(40, 4, 5))),
        od.DesignProblem.disjoint(rng.normal(size=(40, 4, 5))),
        od.DesignProblem.disjoint(rng.normal(size=(200, 20, 2))),
        od.DesignProblem.disjoint(rng.normal(size=(4, 4, 5))),
    ):
        layout, n = layout_of(problem), problem.n_candidates
        size = problem.n_parameter_blocks, problem.largest_rank
        dense = costs.by_information(*size, n, layout.n_groups), costs.by_group(*size, n, layout.n_groups)
        expected = 15 * UNITS.call + min(dense)
        if cheapest_system(layout) is None:
            every_row = min(5 * UNITS.row * n, UNITS.in_parts)
            expected = 3 * UNITS.call + every_row + costs.one_call(*size, layout.largest, layout.n_groups)
        seen.add(type(cheapest_system(layout)))
        assert costs.step_time(problem, n) == pytest.approx(expected)
    assert type(None) in seen
    assert len(seen) > 1


def test_information_system_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """More groups than fit into one batch: the matrix is that of all groups at once."""
    rng = np.random.default_rng(0)
    d, q = 10, 55
    monkeypatch.setattr(dense, "PIECE_COLUMNS", 100)
    groups = 210
    a, w = rng.normal(size=(2 * groups, d)), rng.exponential(size=2 * groups)
    layout = Layout(np.zeros(2 * groups, np.int64), 2 * np.arange(groups + 1), np.array([d]))
    system = ByInformation(layout)
    assert system.factorise(a, w)
    i, j = np.tril_indices(d)
    phi = np.where(i == j, 1.0, np.sqrt(2)) * a[:, i] * a[:, j]
    # With two candidates a group, W~ is w1 w2 / (w1 + w2) times the square of their difference.
    difference = (phi[0::2] - phi[1::2]) * np.sqrt(w[0::2] * w[1::2] / (w[0::2] + w[1::2]))[:, None]
    expected = np.eye(q) + difference.T @ difference
    lower = np.tril(system.matrix)
    # Sums of 2 groups terms, of which half at most cancel.
    rounding = 2 * len(w) * EPS * np.abs(expected).max()
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("d", [3, 15])
def test_information_system_of_one_large_group_comes_in_pieces(
    d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pending stop is checked after so many rows at most."""
    n, rows = 1000, 50
    monkeypatch.setattr(threads, "PIECE", rows * entries(d))
    monkeypatch.setattr(dense, "PIECE_COLUMNS", rows)
    rng = np.random.default_rng(0)
    layout = Layout(np.zeros(n, np.int64), np.array([0, n]), np.array([d]))
    system = ByInformation(layout)
    a, w = rng.normal(size=(n, d)), rng.exponential(size=n)
    assert checks_of_a_stop(lambda: system.factorise(a, w)) >= n // rows


# ------------------------------------------------------------------------------------- factors in pieces


@pytest.mark.parametrize("n", [1, 7, 16, 17, 40])
def test_cholesky_in_pieces(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The factor is the same, panel by panel, and what lies above the diagonal is never read."""
    monkeypatch.setattr(dense, "PIECE_COLUMNS", 8)
    root = np.random.default_rng(n).normal(size=(n, n + 3))
    expected = root @ root.T
    matrix = np.tril(expected) + np.triu(np.full((n, n), np.nan), 1)
    assert dense.cholesky(matrix)
    lower = np.tril(matrix)
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=0, atol=4 * n * EPS * np.abs(expected).max())
    b = np.arange(1.0, n + 1)
    x = dense.solve(matrix, b)
    np.testing.assert_allclose(expected @ x, b, rtol=0, atol=1e4 * n * EPS * np.linalg.cond(expected))
    inverse = matrix.copy()
    dense.inverse(inverse)
    full = np.tril(inverse) + np.tril(inverse, -1).T
    np.testing.assert_allclose(full @ expected, np.eye(n), atol=1e2 * n * EPS * np.linalg.cond(expected))


@pytest.mark.parametrize("at", [0, 9, 23])
def test_cholesky_in_pieces_tells_where_there_is_none(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "PIECE_COLUMNS", 8)
    matrix = np.eye(24)
    matrix[at, at] = -1.0
    assert not dense.cholesky(matrix)


@pytest.mark.parametrize("n", [5, 24])
def test_subtract_square_in_pieces(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "PIECE_COLUMNS", 8)
    rng = np.random.default_rng(n)
    matrix, rows = rng.normal(size=(n, n)), rng.normal(size=(70, n))
    expected = np.tril(matrix - rows.T @ rows)
    checks = checks_of_a_stop(lambda: dense.subtract_square(matrix, rows))
    assert checks == -(-70 // (8**3 // n**2 or 1))
    np.testing.assert_allclose(np.tril(matrix), expected, rtol=0, atol=700 * EPS * np.abs(expected).max())


def test_long_steps_check_for_a_stop_on_their_way() -> None:
    rng = np.random.default_rng(0)
    system = ByGroup(Layout(np.zeros(2500, np.int64), np.array([0, 2500]), np.array([3])))
    a = rng.normal(size=(2500, 3))
    assert checks_of_a_stop(lambda: system.factorise(a, np.ones(2500))) > 3


@pytest.mark.slow
def test_where_newton_alone_was_too_large() -> None:
    """One group of 1,500 candidates in 100 dimensions: Q = 5,050 columns."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(1500, 100)))
    for method in ("newton", "auto"):
        assert_certified(od.solve(problem, tol=1e-6, method=method), 1e-6)


def test_iteration_is_taken_only_where_it_is_ahead() -> None:
    """Estimates of single steps and the choice of the system follow the same rule."""
    rng = np.random.default_rng(0)
    wide = od.DesignProblem.disjoint(rng.normal(size=(2000, 10, 40)))
    layout, n = layout_of(wide), wide.n_candidates
    for few in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(costs, "ASSUMED", costs.ASSUMED._replace(products=few, planned_products=few))
            dense = min(costs.by_information(10, 40, n, 2000), costs.by_group(10, 40, n, 2000))
            iterated = few * costs.product_time(10, 40, n)
            system = cheapest_system(layout)
            assert isinstance(system, ByIteration) == (iterated < dense) == (few == 1)
            assert costs.step_time(wide, n) == pytest.approx(15 * UNITS.call + min(iterated, dense))
            if isinstance(system, ByIteration):  # and takes no longer than what it is ahead of
                assert 2 * system.most * costs.product_time(10, 40, n) <= dense


def replicates(seed: int) -> od.DesignProblem:
    """Rows that nearly repeat each other."""
    rng = np.random.default_rng(seed)
    x = np.repeat(rng.choice([-1.0, 1.0], (40, 16)), 10, axis=0)
    return od.DesignProblem(x + 1e-6 * rng.normal(size=x.shape))


def test_iteration_that_takes_all_it_may_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a dense system, after the time that this would take; where none fits, it has all there are."""
    used = []
    factorise = ByIteration.factorise

    def counted(system: ByIteration, *rows: np.ndarray) -> bool:
        assert not system.exceeds_budget  # what takes all it may is not taken again
        used.append(system)
        return factorise(system, *rows)

    monkeypatch.setattr(ByIteration, "factorise", counted)
    monkeypatch.setattr(costs, "ASSUMED", costs.ASSUMED._replace(products=0))
    r = od.solve(replicates(0), tol=1e-9, method="newton")
    assert_certified(r, 1e-9)
    first = used[0]
    assert 0 < first.most < by_iteration.PARAMETERS.max_products
    assert first.exceeds_budget
    assert used.count(first) < r.iterations
    monkeypatch.setattr(costs, "ASSUMED", costs.ASSUMED._replace(products=0, memory=0))
    alone = cheapest_system(first.layout)
    assert isinstance(alone, ByIteration)
    assert alone.most == by_iteration.PARAMETERS.max_products


def test_iteration_does_not_give_way_to_what_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Than all the products there are: it goes on with what it found."""
    monkeypatch.setattr(by_iteration, "PARAMETERS", by_iteration.PARAMETERS._replace(max_products=3))
    monkeypatch.setattr(costs, "ASSUMED", costs.ASSUMED._replace(products=0))
    monkeypatch.setattr(costs, "UNITS", UNITS._replace(flop=1e3, loop=1e3))
    free = free_of(replicates(1))
    system = cheapest_system(free.layout)
    assert isinstance(system, ByIteration)
    rng = np.random.default_rng(0)
    assert system.factorise(rng.normal(size=free.z.shape), rng.random(len(free.z)))
    system.solve(rng.normal(size=len(free.z)))
    assert not system.exceeds_budget


def test_products_of_low_rank_are_left_to_one_thread() -> None:
    """However many rows there are: it is no matrix of theirs that is worked on."""
    layout = Layout(np.zeros(5000, np.int64), np.array([0, 5000]), np.array([7]))
    assert ByIteration(layout).order == 7


def test_small_systems_are_solved_in_one_call() -> None:
    """Small blocks in few groups, but neither large blocks, nor many groups, nor wide candidates."""
    rng = np.random.default_rng(0)
    small = layout_of(od.DesignProblem.disjoint(rng.normal(size=(5, 4, 3))))
    large = layout_of(od.DesignProblem(rng.normal(size=(500, 3))))
    groups = layout_of(od.DesignProblem.disjoint(rng.normal(size=(200, 40, 3))))
    wide = layout_of(od.DesignProblem(rng.normal(size=(40, 32))))
    assert cheapest_system(small) is None
    assert all(cheapest_system(layout) is not None for layout in (large, groups, wide))
