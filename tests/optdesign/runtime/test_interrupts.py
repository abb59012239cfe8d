"""Ctrl-C, as a real signal at many moments: nothing is lost, and nothing is swallowed."""

import ast
import inspect
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
from optdesign.runtime.interrupts import Deferred
from optdesign.testing import assert_feasible

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
    seconds, start = od.solve(problem, tol=tol, method=method).seconds, problem.uniform()
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
    with Deferred() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_interrupts_that_are_not_pythons_are_left_alone(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with Deferred() as interrupted:
            assert signal.getsignal(signal.SIGINT) is handler
            assert not interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_defer_nothing() -> None:
    seen = []

    def look() -> None:
        with Deferred() as interrupted:
            seen.append((signal.getsignal(signal.SIGINT), bool(interrupted)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(signal.getsignal(signal.SIGINT), False)]
