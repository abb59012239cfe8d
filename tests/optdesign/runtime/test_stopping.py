"""Limits and Ctrl-C in the middle of long work: the result is complete, and no interrupt is lost."""

import ast
import inspect
import itertools
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import types
from problems import METHODS, assert_bounds, plain, same_family
from signals import interrupt_after

import optdesign as od
from optdesign.runtime import threads
from optdesign.runtime.stopping import DeferredInterrupt, Stopped, raise_if_stopped, stop_when
from optdesign.solvers.loop import Stop
from optdesign.solvers.systems import dense
from optdesign.testing import assert_certified, assert_feasible

TOL = 1e-13


@pytest.fixture(scope="module")
def slow() -> od.DesignProblem:
    """1,000 clients with nearly one vector each: a Newton step by information takes tens of milliseconds."""
    problem = same_family(1000, 10, 5)
    for method in METHODS:  # compiled before the clock starts
        od.solve(problem, tol=TOL, method=method, max_iter=30)
    return problem


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", [0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])
def test_an_interrupt_leaves_certified_weights(slow: od.DesignProblem, method: str, delay: float) -> None:
    """A run that is over before the signal comes has converged, or stopped at what rounding allows."""
    with interrupt_after(delay) as raised:
        r = od.solve(slow, tol=TOL, method=method, time_limit=20)
        seen = bool(raised)
    if seen:
        assert r.status is od.Status.INTERRUPTED
    else:
        assert r.relative_gap <= 10 * TOL
    assert_feasible(slow, r.weights)
    p = plain(slow, r.weights)
    assert_bounds(r.certificate, p)
    assert abs(p.log_det - r.log_det) <= 2 * p.error
    assert len(r.history.gaps) == r.iterations
    # Not worse than where it started: half-written weights would be.
    assert r.log_det >= od.certify(slow, slow.uniform()).log_det


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_at_any_step_leaves_the_weights_of_that_step(method: str) -> None:
    """Raised between steps rather than by a clock, after every number of steps there is."""
    problem = same_family(20, 4, 3)
    run = od.METHODS[method]
    steps = od.solve(problem, tol=1e-9, method=method).iterations
    for after in range(min(steps, 30)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(od.METHODS, method, _interrupted(run, after))
            r = od.solve(problem, tol=1e-9, method=method)
        assert r.status in (od.Status.INTERRUPTED, od.Status.CONVERGED)
        assert_feasible(problem, r.weights)
        c = od.certify(problem, r.weights)
        assert c.gap == r.gap
        assert np.isfinite(r.gap)


def test_no_kernel_that_python_calls_returns_a_tuple_with_an_array(slow: od.DesignProblem) -> None:
    """Boxing an array runs Python, where an interrupt is raised; a tuple of them is then a SystemError.

    Kernels that only other kernels call may return such tuples: nothing is boxed there.
    """
    od.certify(slow, slow.uniform())
    modules = [m for name, m in sys.modules.items() if name.split(".")[0] in ("optdesign", "bandits")]
    called = set().union(*map(_names_in_plain_python, modules))
    seen = 0
    for module in modules:
        for name, function in vars(module).items():
            for returned in [s.return_type for s in getattr(function, "nopython_signatures", [])]:
                seen += name in called
                if isinstance(returned, types.BaseTuple) and name in called:
                    assert not any(isinstance(t, types.Array) for t in returned), function
    assert seen > 10


def _names_in_plain_python(module: ModuleType) -> set[str]:
    """Return all names in a module outside of the kernels that it defines."""
    tree = ast.parse(inspect.getsource(module))
    tree.body = [
        part
        for part in tree.body
        if not any(isinstance(d, ast.Name) and d.id == "kernel" for d in getattr(part, "decorator_list", []))
    ]
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _interrupted(run: Callable[..., Iterator], after: int) -> Callable[..., Iterator]:
    def wrapped(*arguments: Any) -> Iterator:
        for step, value in enumerate(run(*arguments)):
            if step == after:
                raise KeyboardInterrupt
            yield value

    return wrapped


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_many_solves_at_once(slow: od.DesignProblem, n_jobs: int) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.3) as raised:
        od.solve_many([slow] * 20, n_jobs=n_jobs, tol=TOL, method="bca", time_limit=1.0)
    assert raised


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_not_one_of_hundreds_escapes(method: str) -> None:
    """Signals at any moment of short runs, the start and the certificate among them: 150 for each method."""
    problem = same_family(300, 10, 3)
    tol = 1e-3 if method == "bca" else 1e-9  # sweeps alone would take seconds each time
    first, start = od.solve(problem, tol=tol, method=method), problem.uniform()
    seconds = first.seconds - first.compile_seconds
    interrupted = 0
    for n in range(150):
        try:
            with interrupt_after(1.5 * seconds * n / 150) as raised:
                r = od.solve(problem, tol=tol, method=method, start=start)
                seen = bool(raised)
        except KeyboardInterrupt as error:
            frames = traceback.extract_tb(error.__traceback__)
            inside = {f.name for f in frames if "optdesign" in f.filename and "tests" not in f.filename}
            # Before the first line that works, or after the last.
            assert inside <= {"solve", "_check", "__init__", "__enter__", "__exit__"}
            continue
        assert seen == (r.status is od.Status.INTERRUPTED)
        assert np.isfinite(r.gap)
        interrupted += seen
    assert interrupted


def test_a_second_interrupt_is_raised_at_once() -> None:
    with DeferredInterrupt() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_interrupts_that_are_not_pythons_are_left_alone(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with DeferredInterrupt() as interrupted:
            assert signal.getsignal(signal.SIGINT) is handler
            assert not interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_defer_nothing() -> None:
    seen = []

    def look() -> None:
        with DeferredInterrupt() as interrupted:
            seen.append((signal.getsignal(signal.SIGINT), bool(interrupted)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(signal.getsignal(signal.SIGINT), False)]


def test_nothing_stops_without_a_condition() -> None:
    raise_if_stopped()
    with stop_when(lambda: False):
        raise_if_stopped()
    with pytest.raises(Stopped), stop_when(lambda: True):
        raise_if_stopped()
    raise_if_stopped()


def test_conditions_are_nested() -> None:
    with stop_when(lambda: True):
        with stop_when(lambda: False):
            raise_if_stopped()
        with pytest.raises(Stopped):
            raise_if_stopped()


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_pieces_end_where_they_are(count: int, after: int) -> None:
    """Whatever has begun is done when it is said that all has stopped, and nothing is begun later on."""
    begun, ended, looks = [], [], itertools.count()

    def work(first: int, _: int) -> None:
        begun.append(first)
        sum(range(20_000))
        ended.append(first)

    with threads.using(count), pytest.raises(Stopped), stop_when(lambda: next(looks) >= after):
        threads.results(work, 10**6, 10)
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
    monkeypatch.setattr(dense, "PIECE_COLUMNS", 300)
    rng = np.random.default_rng(0)
    n = 2000
    groups = rng.integers(0, 4, size=n) if structure != "one group" else None
    blocks = rng.integers(0, 3, size=n) if structure == "blocks" else None
    problem = od.DesignProblem(rng.normal(size=(n, 8)), groups, blocks)
    for allowed in itertools.count():
        looks = itertools.count()
        monkeypatch.setattr(Stop, "is_pending", lambda _, k=allowed, looks=looks: next(looks) >= k)
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
