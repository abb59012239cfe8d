"""The one loop around all solvers: what it asks of them and when it stops them, seen by methods made here."""

from collections.abc import Iterator

import numpy as np
import pytest
from problems import EPS, KINDS, assert_certified, assert_feasible, random_problem

import optdesign as od
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.method import Step

MANY = 1_000_000
"""Steps that no run makes: a loop that does not look at its limits ends all the same, and otherwise."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_solver_that_is_too_sure_of_itself_is_asked_for_more(
    kind: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It creeps towards the optimum, and its own gap is too small by a fixed amount, as rounding might have
    it. The certificate's must hold.
    """
    tol, problem = 1e-3, random_problem(0, kind)
    error, best = share * tol * problem.rank, od.solve(problem, tol=1e-9).weights
    asked: list[float] = []

    def optimist(
        problem: od.DesignProblem, weights: np.ndarray, target: float, max_iter: int
    ) -> Iterator[Step]:
        asked.append(target)
        for _ in range(max_iter):
            weights += 0.05 * (best - weights)
            own = max(0.0, od.certify(problem, weights).gap - error)
            yield Step(np.array([own]), "optimist")
            if own <= target:
                return

    monkeypatch.setitem(od.METHODS, "optimist", optimist)
    r = od.solve(problem, tol=tol, method="optimist", start=problem.uniform())
    assert_certified(r, tol)
    assert asked[0] == tol * problem.rank
    assert len(asked) > 1
    assert np.all(np.diff(asked) < 0)


def idle(*_: object) -> Iterator[Step]:
    """Works in pieces, without an iteration."""
    for _ in range(MANY):
        raise_if_stopped()
    yield Step(np.array([0.0]), "idle")


def test_the_time_limit_holds_for_steps_without_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(od.METHODS, "idle", idle)
    problem = random_problem(3, "shared")
    r = od.solve(problem, tol=1e-12, method="idle", time_limit=1e-2)
    assert r.status is od.Status.TIME_LIMIT
    assert r.iterations == len(r.history.gaps) == 0
    assert_feasible(problem, r.weights)


def test_what_is_left_of_max_iter_is_what_a_solver_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Iterations of all calls count together."""
    left: list[int] = []

    def short(_: od.DesignProblem, __: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
        left.append(max_iter)
        yield Step(np.array([1.0, target]), "short")

    monkeypatch.setitem(od.METHODS, "short", short)
    problem = random_problem(0, "disjoint")
    gap = od.certify(problem, problem.uniform()).gap
    # A little more than half the gap: what is missing can be asked for once, and no further.
    r = od.solve(problem, tol=0.6 * gap / problem.rank, method="short", max_iter=4, start=problem.uniform())
    assert left == [4, 2]
    assert r.status is od.Status.MAX_ITER
    assert r.iterations == 4


@pytest.mark.parametrize("seed", [26, 33, 95])
def test_more_rounds_of_pricing_never_cost_what_was_found_before(seed: int) -> None:
    """The gap over all candidates may rise in a round, when others come into play; the best weights stay.

    A design that meets the goal may be tidied at the expense of its gap, within the goal.
    """
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(200, 3000)), int(rng.integers(2, 7)), int(rng.integers(1, 6))
    x = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1, size=(n, 1))
    problem = od.DesignProblem(x, np.arange(n) % m, budgets=10.0 ** rng.uniform(-2, 2, size=m))
    start = np.zeros(n)
    start[np.union1d(np.arange(m), problem.span.pivots[0])] = 1.0
    for limit in range(1, 8):
        r = od.solve(problem, tol=1e-9, method="auto", start=start, max_iter=limit)
        rounding = (
            r.certificate.rounding + 1000 * EPS * r.g_value
        )  # of the certificate, and of the running gap
        goal = r.tol * r.rank if r.converged else 0.0
        assert r.gap <= max(goal, r.history.gaps.min() + rounding)
