"""Rounds on a working set: pricing, violators, the best weights, and the end."""

import numpy as np
import pytest
from large_problems import many
from problems import assert_certified, plain
from work import checks_of_a_stop

import optdesign as od
from optdesign.runtime import threads
from optdesign.solvers import start, working_set
from optdesign.solvers.method import PATIENCE
from optdesign.testing import assert_feasible

TOL = 1e-9


@pytest.mark.parametrize(("groups", "blocks"), [(1, 1), (3, 1), (3, 2), (20, 3)])
def test_large_groups(groups: int, blocks: int) -> None:
    problem = many(groups, blocks)
    assert start._has_many_candidates(problem)
    r = od.solve(problem, tol=TOL)
    p = assert_certified(r, TOL)
    assert r.method == f"auto: {working_set.STAGE}"
    # Candidates outside all working sets were priced as well: none exceeds the bound of its group.
    bound = np.array(
        [p.variances[r.weights > 0][problem.groups[r.weights > 0] == i].max() for i in range(groups)]
    )
    excess = problem.budgets[problem.groups] * (p.variances - bound[problem.groups])
    assert excess.max() <= TOL * problem.rank + 2 * p.error


def test_violators_are_found() -> None:
    """From a basis alone, and with the best candidates last: rounds have to bring them in."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 4))
    x[-10:] *= 100
    problem = od.DesignProblem(x)
    w = np.zeros(5000)
    w[:4] = 0.25
    gaps = [float(s.gaps[-1]) for s in working_set.run(problem, w, TOL * problem.rank, 60)]
    p = plain(problem, w)
    assert gaps[-1] <= TOL * problem.rank
    assert p.gap <= TOL * problem.rank + 2 * p.error
    assert np.all(np.flatnonzero(w) >= 4990)


def test_weights_of_the_best_round_are_kept_and_every_yield_is_feasible() -> None:
    problem = many(3, 2)
    w = start.high_leverage_start(problem)
    best = np.inf
    for step in working_set.run(problem, w, TOL * problem.rank, 60):
        assert_feasible(problem, w)
        best = min(best, float(step.gaps[-1]))
        p = plain(problem, w)
        assert p.gap <= best + 2 * p.error
        assert step.stage == working_set.STAGE


def test_a_time_limit_does_not_wait_for_a_round() -> None:
    """A pending stop is checked at least once per Newton step."""
    problem = many(3, 2)
    rounds = working_set.run(problem, start.high_leverage_start(problem), TOL * problem.rank, 60)
    assert checks_of_a_stop(lambda: list(rounds)) > 3


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8])
def test_rounds_go_on_until_the_target(tol: float) -> None:
    for seed in range(5):
        problem = many(3, 2, n=1000, seed=seed)
        w = start.high_leverage_start(problem)
        gaps = [float(s.gaps[-1]) for s in working_set.run(problem, w, tol * problem.rank, 60)]
        assert all(gap > tol * problem.rank for gap in gaps[:-1])
        assert gaps[-1] <= tol * problem.rank


def test_rounds_end_where_there_is_no_progress() -> None:
    problem = many(2, 1, n=200, dim=3)
    w = problem.uniform()
    rounds = [s for s in working_set.run(problem, w, -1.0, 60)]
    gaps = np.array([s.gaps[-1] for s in rounds])
    assert len(gaps) < 60
    assert np.all(gaps[-PATIENCE - 1 :] >= gaps.min())
    assert od.certify(problem, w).relative_gap <= TOL


def test_a_start_without_rank_is_priced_as_infinite() -> None:
    problem = many(2, 1, n=200, dim=3)
    gap, found, _ = working_set.price(problem, np.array([0, 1]), np.array([1.0, 1.0]))
    assert gap == np.inf
    assert len(found) == 0


@pytest.mark.parametrize("seed", range(5))
def test_priced_is_the_certificate(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap, and whose variance exceeds those of the rows in their group; in one piece or in several."""
    problem = many(3, 2, n=300, dim=3, seed=seed)
    rows = np.flatnonzero(np.random.default_rng(seed).random(300) < 0.5)
    w = np.zeros(300)
    w[rows] = (problem.budgets / np.bincount(problem.groups[rows], minlength=3))[problem.groups[rows]]
    p = plain(problem, w)
    bound = np.array([p.variances[rows][problem.groups[rows] == i].max() for i in range(3)])
    excess = p.variances - bound[problem.groups]
    for piece in (threads.PIECE, 90):
        monkeypatch.setattr(threads, "PIECE", piece)
        gap, found, variances = working_set.price(problem, rows, w[rows])
        assert gap == pytest.approx(p.gap, abs=2 * p.error)
        # Variances that are equal up to rounding may be on either side.
        assert set(np.flatnonzero(excess > 2 * p.error)) <= set(found)
        assert set(found) <= set(np.flatnonzero(excess > -2 * p.error))
        assert np.all(np.diff(found) > 0)
        np.testing.assert_allclose(variances, p.variances[found], rtol=1e-9)


@pytest.mark.parametrize("groups", [1, 3])
def test_very_many_violators_are_added_in_part(groups: int) -> None:
    """The largest of every group and every k-th of the others are added."""
    n = 20_001
    problem = od.DesignProblem(np.vander(np.linspace(-1, 1, n), 6), np.arange(n) % groups)
    w = np.zeros(n)
    w[np.linspace(0, n - 1, 6 * groups).astype(int)] = 1 / 6
    rows = np.flatnonzero(w)
    _, violators, variances = working_set.price(problem, rows, w[rows])
    some = working_set._limit_violators(problem, violators, variances)
    most = working_set.PARAMETERS.violators * problem.support_bound
    assert len(violators) > 2 * most
    assert len(some) <= most + groups
    for i in np.unique(problem.groups[violators]):
        own = problem.groups[violators] == i
        assert violators[own][np.argmax(variances[own])] in some
    r = od.solve(problem, tol=TOL)
    assert_certified(r, TOL)
    assert len(r.support) <= problem.support_bound
