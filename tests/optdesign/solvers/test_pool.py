"""Rounds on a pool: limits, interrupts, and data that are lost on the way."""

import importlib
import os
import signal
from typing import Any

import numpy as np
import pytest

import optdesign as od
from optdesign.problem.large import LargeProblem
from optdesign.sources import arrays
from optdesign.sources.engine import LostEngineError

X = np.random.default_rng(0).normal(size=(20_000, 6))


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> LargeProblem:
    monkeypatch.setattr(arrays, "ROWS", 1000)
    return LargeProblem(X)


def before_pass(monkeypatch: pytest.MonkeyPatch, problem: LargeProblem, number: int, act: Any) -> None:
    """Call ``act`` in the middle of the pass of a number, counted from now on."""
    reduce, passes = problem.engine.reduce, [0]

    def counted(task: Any, merge: Any, args: Any = (), **options: Any) -> Any:
        passes[0] += 1
        chunks = [0]

        def acting(chunk: Any, *rest: Any) -> Any:
            chunks[0] += 1
            if passes[0] == number and chunks[0] == 3:
                act()
            return task(chunk, *rest)

        return reduce(acting, merge, args, **options)

    monkeypatch.setattr(problem.engine, "reduce", counted)


def test_an_interrupt_in_a_pass_returns_the_last_certified_design(
    problem: LargeProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_pass(monkeypatch, problem, 2, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = od.solve(problem, tol=1e-12)
    assert result.status is od.Status.INTERRUPTED
    assert result.iterations == 1
    assert od.certify(od.DesignProblem(X), result.weights).gap <= result.gap * 1.001


def test_the_first_design_is_certified_in_any_case(
    problem: LargeProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_pass(monkeypatch, problem, 1, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = od.solve(problem)
    assert result.status is od.Status.INTERRUPTED
    assert np.isfinite(result.gap)


def test_an_interrupt_of_the_last_pass_is_reported(
    problem: LargeProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert od.solve(problem, tol=10.0).converged  # the first pass meets this tolerance
    before_pass(monkeypatch, problem, 1, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert od.solve(problem, tol=10.0).status is od.Status.INTERRUPTED


def test_an_interrupt_after_the_last_pass_is_reported(
    problem: LargeProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("optdesign.solvers.solve")
    solve_large = module.solve_large

    def then_interrupted(*arguments: Any) -> Any:
        found = solve_large(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(module, "solve_large", then_interrupted)
    assert od.solve(problem).status is od.Status.INTERRUPTED


def test_limits(problem: LargeProblem) -> None:
    assert od.solve(problem, time_limit=1e-9).status is od.Status.TIME_LIMIT
    limited = od.solve(problem, max_iter=1, tol=1e-12)
    assert (limited.status, limited.iterations) == (od.Status.MAX_ITER, 1)
    assert od.solve(problem, tol=1e-16).status is od.Status.PRECISION
    with pytest.raises(od.InputError, match="start must be left out"):
        od.solve(problem, start=np.ones(20_000))


@pytest.mark.parametrize("method", ["bca", "newton"])
def test_methods_work_on_the_pool(problem: LargeProblem, method: str) -> None:
    result = od.solve(problem, method=method)
    assert result.converged
    assert result.method == f"{method}: rounds on a pool"


def test_the_error_about_lost_data_carries_the_design_so_far(
    problem: LargeProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> None:
        raise LostEngineError("the cluster is gone")

    before_pass(monkeypatch, problem, 2, lose)
    with pytest.raises(LostEngineError) as caught:
        od.solve(problem, tol=1e-12)
    monkeypatch.undo()
    result = caught.value.result
    in_memory = od.certify(od.DesignProblem(X), result.weights)
    np.testing.assert_allclose(result.gap, in_memory.gap, rtol=1e-6)


def test_progress_is_recorded_round_by_round(problem: LargeProblem) -> None:
    result = od.solve(problem)
    assert len(result.history.gaps) == result.iterations
    assert result.history.gaps[-1] == result.gap
