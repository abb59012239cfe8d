"""A clock that stands still while kernels are compiled."""

import gc
import os
import pty
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator

import numpy as np
import pytest
from numba.core import event
from problems import same_family

import optdesign as od
from optdesign.runtime import clock
from optdesign.runtime.jit import uncached
from optdesign.solvers.method import Step


def compile_something() -> float:
    """Compile a function that calls another; returns the seconds it took."""

    @uncached
    def inner(x):
        return np.sqrt(x) + 1.0

    @uncached
    def outer(x):
        return inner(x) + np.sum(np.zeros(3))

    began = time.perf_counter()
    outer(2.0)
    return time.perf_counter() - began


def test_the_clock_stands_still() -> None:
    """At least from the beginning of the outermost compilation to its end, as Numba reports them."""
    wall, ours = time.perf_counter(), clock.now()
    with event.install_recorder("numba:compile") as told:
        took = compile_something()
    ours, wall = clock.now() - ours, time.perf_counter() - wall
    times = [at for at, _ in told.buffer]
    assert 0 < times[-1] - times[0] <= wall - ours <= took


def test_only_in_the_thread_that_compiles() -> None:
    before = time.perf_counter() - clock.now()
    thread = threading.Thread(target=compile_something)
    thread.start()
    thread.join()
    assert time.perf_counter() - clock.now() == pytest.approx(before, abs=1e-3)


def test_neither_seconds_nor_limits_count_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that compiles in every step, under a limit that its compilations alone would exceed."""
    run, spent = od.METHODS["bca"], []

    def compiling(*arguments: object) -> Iterator[Step]:
        for step in run(*arguments):  # type: ignore[arg-type]
            if len(spent) < 2:
                spent.append(compile_something())
            yield step

    problem = same_family(20, 4, 3)
    monkeypatch.setitem(od.METHODS, "bca", compiling)
    limit = 0.5 * compile_something()
    r = od.solve(problem, tol=1e-3, method="bca", time_limit=limit)
    assert r.status is od.Status.CONVERGED
    assert r.seconds - r.compile_seconds < sum(spent)
    assert r.compile_seconds > limit


def test_it_is_said_once_to_somebody_who_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "_announced", threading.Event())
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    compile_something()
    compile_something()
    assert capsys.readouterr().err == "optdesign: compiling, on first use only\n"


@pytest.mark.parametrize("running", [True, False])
def test_it_is_said_in_notebooks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    """There stderr is no terminal and Python has no prompt; that IPython is installed is not enough."""
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: object() if running else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(clock, "_announced", threading.Event())
    compile_something()
    assert ("compiling" in capsys.readouterr().err) == running


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_it_is_said_to_a_script_at_a_terminal(terminal: bool) -> None:
    code = "from optdesign.runtime.jit import uncached as f; f(lambda x: x + 1)(1); f(lambda x: x + 2)(1)"
    assert _said(code, terminal).count(b"optdesign: compiling, on first use only") == terminal


@pytest.mark.slow
def test_nothing_is_announced_or_excluded_for_functions_of_a_user() -> None:
    """A user's own function, defined and compiled after the import, in a session at a terminal."""
    code = """
import sys, gc, numba, optdesign
from optdesign.runtime import clock
sys.ps1 = ">>> "
before = clock.first_use_seconds()

@numba.njit
def own(x):
    return x + 1

collecting = []
from numba.core import event

class Listener(event.Listener):
    def on_start(self, _):
        collecting.append(gc.isenabled())

    def on_end(self, _):
        pass

event.register("numba:compile", Listener())
own(1)
assert collecting == [True], collecting
assert clock.first_use_seconds() == before
"""
    assert _said(code, terminal=True) == b""


def _said(code: str, terminal: bool) -> bytes:
    """Return the standard error of a new process, which is a terminal or a pipe."""
    reader, writer = pty.openpty() if terminal else os.pipe()
    settings = os.environ | {"NUMBA_DISABLE_JIT": "0"}
    subprocess.run([sys.executable, "-c", code], stderr=writer, env=settings, check=True)
    os.close(writer)
    said = b""
    try:
        while chunk := os.read(reader, 4096):
            said += chunk
    except OSError:  # how a terminal ends
        assert terminal
    os.close(reader)
    return said


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_afterwards_as_before(collects: bool) -> None:
    assert gc.isenabled()
    try:
        if not collects:
            gc.disable()
        compile_something()
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_a_stopwatch_measures_wall_time_and_its_part_for_first_use() -> None:
    watch, began = clock.Stopwatch(), time.perf_counter()
    took = compile_something()
    with clock.first_use(), clock.first_use():
        time.sleep(0.01)
    times, wall = watch.times(), time.perf_counter() - began
    assert 0.01 < times["compile_seconds"] <= took + 0.5 * wall
    assert times["compile_seconds"] <= times["seconds"]
    assert times["seconds"] == pytest.approx(wall, rel=0.1)


def test_results_have_wall_time_and_its_part_for_first_use() -> None:
    """Of solve, sparsify, round and exact."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(12, 2)), budgets=6)
    began = time.perf_counter()
    r = od.solve(problem)
    results = [r, od.round(r), od.exact(problem, tries=1)]
    wall = time.perf_counter() - began
    assert sum(x.seconds for x in results) <= wall
    assert all(0 <= x.compile_seconds <= x.seconds for x in results)
    thin = od.sparsify(r)
    assert thin.seconds > r.seconds
    assert thin.compile_seconds >= r.compile_seconds
