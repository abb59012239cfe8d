"""Block coordinate ascent: certified on pleasant and on ugly data, feasible and ascending all the way."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from problems import (
    EPS,
    KINDS,
    assert_bounds,
    assert_certified,
    plain,
    random_problem,
    same_family,
    weights_of,
)
from work import checks_of_a_stop

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.solvers import bca
from optdesign.solvers import group_step as visits
from optdesign.testing import assert_feasible, problems
from optdesign.testing.families import ugly_problem


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_certified(seed: int, kind: str, deficient: bool) -> None:
    problem = random_problem(seed, kind, deficient=deficient)
    assert_certified(od.solve(problem, tol=1e-6, method="bca"), 1e-6)


@settings(max_examples=100)
@given(problems())
def test_certified_on_degenerate_data(problem: od.DesignProblem) -> None:
    assert_certified(od.solve(problem, tol=1e-4, method="bca"), 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_sweep_is_feasible_and_ascends(kind: str) -> None:
    problem = random_problem(3, kind)
    r = reduce(problem)
    u = r.restrict(problem.uniform())
    before = plain(problem, problem.uniform())
    sweeps = bca.run(r, u, 0.0, 1000)
    state, _ = bca._state(r, u)
    for _ in range(30):
        bca._sweeps(*state, 0.0, 0, np.empty(1))
        w = weights_of(r, u, problem)
        assert_feasible(problem, w)
        now = plain(problem, w)
        assert now.log_det >= before.log_det - 2 * now.error
        before = now
    assert next(sweeps).gaps.size >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_group_update_is_feasible_and_ascends(kind: str) -> None:
    """The proposition's own words: after each *block* update, here by calling the kernels group by group.

    The subproblem is solved exactly where blocks differ: no other distribution of the group does better.
    """
    problem = random_problem(4, kind)
    r = reduce(problem)
    u = r.restrict(problem.uniform())
    width = r.z.shape[1]
    separable = bca._separable(r.blocks, r.starts, len(r.ranks))
    shape = (len(r.ranks), width, width)
    rng = np.random.default_rng(0)
    for _ in range(4):
        for i in range(r.n_groups):
            lo, hi = r.starts[i], r.starts[i + 1]
            before = plain(problem, weights_of(r, u, problem))
            inverse = np.zeros(shape)
            bca._recompute_inverse(r.z, r.blocks, r.starts, r.ranks, u, inverse, 0.0)
            g, s, y = np.empty(hi - lo), np.empty(hi - lo), np.empty((max(2, hi - lo), width))
            if separable[i]:
                visits.water_fill(r.z, r.blocks, r.ranks, lo, hi, u, inverse, g, s, y)
            else:
                play = np.empty(hi - lo, np.int64)
                visits.exchange(r.z, r.blocks, r.ranks, lo, hi, u, inverse, g, y, play)
            w = weights_of(r, u, problem)
            assert_feasible(problem, w)
            now = plain(problem, w)
            assert now.rank == problem.rank
            assert now.log_det >= before.log_det - 2 * now.error
            if separable[i]:
                for _ in range(5):
                    v = u.copy()
                    v[lo:hi] = rng.dirichlet(np.ones(hi - lo))
                    other = plain(problem, weights_of(r, v, problem))
                    assert other.log_det <= now.log_det + 2 * (now.error + other.error)


def test_long_runs_do_not_drift() -> None:
    """Thousands of sweeps: shares still sum to the budgets, and the solver's gap is the certificate's."""
    problem = same_family(20, 4, 3)
    r = od.solve(problem, tol=1e-13, method="bca", max_iter=5000)
    total = np.bincount(problem.groups, weights=r.weights)
    # Every water-filling divides by the sum, so errors do not add up over sweeps.
    np.testing.assert_allclose(total, problem.budgets, rtol=4 * EPS * problem.n_candidates)
    p = plain(problem, r.weights)
    assert_bounds(r.certificate, p)
    long = od.solve(
        od.DesignProblem.shared(np.random.default_rng(0).normal(size=(20, 4, 3))), tol=1e-15, method="bca"
    )
    total = np.bincount(long.problem.groups, weights=long.weights)
    # An exchange adds to one share what it takes from another: one rounding each, 4 candidates, d leaders.
    np.testing.assert_allclose(total, 1, rtol=EPS * 4 * 3 * long.iterations)


@pytest.mark.parametrize("candidates", [1, 2])
def test_groups_and_blocks_with_one_candidate(candidates: int) -> None:
    x = np.random.default_rng(0).normal(size=(6 * candidates, 3))
    n = np.arange(len(x))
    for groups, blocks in [(n, n), (n // candidates, n), (n, n // candidates), (n // 2, n // 3)]:
        problem = od.DesignProblem(x, groups, blocks)
        assert_certified(od.solve(problem, tol=1e-8, method="bca"), 1e-8)


def test_stops_where_nothing_moves() -> None:
    """One candidate a group: the first sweeps move nothing, and there is no second batch."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(5, 3)), groups=np.arange(5))
    r = reduce(problem)
    u = np.ones(5)
    steps = list(bca.run(r, u, -1.0, 5000))
    assert sum(len(step.gaps) for step in steps) <= 1000
    np.testing.assert_array_equal(u, 1.0)


def test_max_iter_counts_sweeps_across_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little work a call, every sweep comes back to Python, and the result is the same.

    Up to rounding: a call begins with fresh inverses. Rank-one updates between two refreshes multiply
    eps by the condition of the information, below 1e4 here, once for each of 3 candidates, 10 clients and
    7 sweeps: 1e-8 bounds that with a margin of ten.
    """
    problem = same_family(10, 3, 2)
    once = od.solve(problem, tol=1e-15, method="bca", max_iter=7)
    monkeypatch.setattr(bca, "PARAMETERS", bca.PARAMETERS._replace(work=1.0))
    many = od.solve(problem, tol=1e-15, method="bca", max_iter=7)
    assert once.iterations == many.iterations == 7
    np.testing.assert_allclose(once.weights, many.weights, rtol=0, atol=1e-8)
    np.testing.assert_allclose(once.history.gaps, many.history.gaps, rtol=0, atol=1e-8 * once.rank)


@pytest.mark.parametrize("structure", ["disjoint", "shared"])
def test_sweeps_in_pieces_are_the_same_sweeps(structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Group by group, with a look at the clock between two: the shares and gaps are those of whole sweeps."""
    x = np.random.default_rng(0).normal(size=(9, 6, 3)) + 3.0
    problem = getattr(od.DesignProblem, structure)(x)
    reduced = reduce(problem)
    whole = reduced.restrict(problem.uniform())
    pieces = whole.copy()
    ((gaps, _),) = bca.run(reduced, whole, 1e-12, 6)
    work = 3.0 * reduced.z.size * reduced.z.shape[1]
    less = bca.PARAMETERS._replace(work=work / (2 * reduced.n_groups))
    monkeypatch.setattr(bca, "PARAMETERS", less)
    steps: list[np.ndarray] = []
    checks = checks_of_a_stop(lambda: steps.extend(s.gaps for s in bca.run(reduced, pieces, 1e-12, 6)))
    np.testing.assert_array_equal(np.concatenate(steps), gaps)
    np.testing.assert_array_equal(pieces, whole)
    assert checks >= len(gaps) * reduced.n_groups
    assert len(gaps) == 6


def test_a_sweep_that_moves_nothing_is_not_the_end_while_inverses_are_stale() -> None:
    r = od.solve(ugly_problem("plane_with_small_rows", 868508122), tol=1e-6, method="bca")
    assert_certified(r, 1e-6)


def test_shares_that_move_and_come_back_are_the_end() -> None:
    problem = ugly_problem("plane_with_small_rows", 223114623)
    copies = od.DesignProblem(np.repeat(problem.candidates, 1000, axis=0))
    r = od.solve(copies, tol=1e-6, method="bca", max_iter=20_000)
    assert r.status is not od.Status.MAX_ITER


@pytest.mark.slow
def test_long_visits_are_looked_at_one_by_one() -> None:
    """From the uniform design, exchanges between thousands take long: a step is then one sweep, and a pending
    stop is checked before every such group.
    """
    x = np.random.default_rng(0).normal(size=(40_000, 3))
    for problem in (od.DesignProblem(x), od.DesignProblem(x, np.arange(40_000) % 5)):
        reduced = reduce(problem)
        steps = bca.run(reduced, reduced.restrict(problem.uniform()), 0.0, 10, 10)
        assert checks_of_a_stop(partial(next, steps)) >= problem.n_groups - 1
        assert len(next(steps).gaps) == 1
