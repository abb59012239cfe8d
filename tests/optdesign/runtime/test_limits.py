"""Limits in the middle of long work: it ends between two pieces, and what is returned is whole."""

import importlib
import itertools

import numpy as np
import pytest

import optdesign as od
from optdesign.runtime import threads
from optdesign.runtime.limits import Stopped, look, watching
from optdesign.solvers.systems import dense
from optdesign.testing import assert_certified

solving = importlib.import_module("optdesign.solvers.solve")


def test_nobody_watches_unless_asked() -> None:
    look()
    with watching(lambda: False):
        look()
    with pytest.raises(Stopped), watching(lambda: True):
        look()
    look()


def test_watches_are_nested() -> None:
    with watching(lambda: True):
        with watching(lambda: False):
            look()
        with pytest.raises(Stopped):
            look()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_pieces_end_where_they_are(count: int, after: int) -> None:
    """Whatever has begun is done when it is said that all has stopped, and nothing is begun later on."""
    begun, ended, looks = [], [], itertools.count()

    def work(first: int, _: int) -> None:
        begun.append(first)
        sum(range(20_000))
        ended.append(first)

    with threads.using(count), pytest.raises(Stopped), watching(lambda: next(looks) >= after):
        threads.each(work, 10**6, 10)
    assert sorted(begun) == sorted(ended)
    assert after <= len(ended) < 10**5
    # The one who looks has taken as many pieces as there were looks; one thread alone takes no others.
    assert count > 1 or len(ended) == after


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("method", ["auto", "newton"])
@pytest.mark.parametrize("structure", ["one group", "groups", "blocks"])
def test_whenever_a_solve_is_stopped_its_answer_is_whole(
    structure: str, method: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every look that is taken on the way, in the passes for the start among them."""
    monkeypatch.setattr(threads, "PIECE", 1000)
    monkeypatch.setattr(dense, "PIECE", 300)
    rng = np.random.default_rng(0)
    n = 2000
    groups = rng.integers(0, 4, size=n) if structure != "one group" else None
    blocks = rng.integers(0, 3, size=n) if structure == "blocks" else None
    problem = od.DesignProblem(rng.normal(size=(n, 8)), groups, blocks)
    for allowed in itertools.count():
        looks = itertools.count()
        monkeypatch.setattr(solving._Run, "_over", lambda _, k=allowed, looks=looks: next(looks) >= k)
        result = od.solve(problem, tol=1e-9, method=method, threads=count)
        if result.converged:
            break
        assert result.status is od.Status.TIME_LIMIT
        assert np.isfinite(result.gap)
        np.testing.assert_allclose(
            np.bincount(problem.groups, weights=result.weights), problem.budgets, rtol=1e-12
        )
    assert allowed > 10
    assert_certified(result)


def test_a_given_start_is_kept_however_short_the_time() -> None:
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(3000, 4)))
    best = od.solve(problem, tol=1e-9)
    again = od.solve(problem, tol=1e-9, start=best.weights, time_limit=1e-9)
    assert again.relative_gap <= 1e-9
    np.testing.assert_allclose(again.weights, best.weights, rtol=1e-12)
