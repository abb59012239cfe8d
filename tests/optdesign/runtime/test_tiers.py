"""Kernels as plain Python, then as machine code: the same numbers, and a hand-over that is certain."""

import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from test_jit import Copy

import optdesign as od
from optdesign.runtime import clock, jit, tiers
from optdesign.runtime.stopping import Stopped, stop_when

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="there is one tier only")  # type: ignore[attr-defined]

TOTAL = 0.02
"""Seconds of plain Python allowed to all kernels in these tests."""


class Nowhere:
    """As a cache if no directory can be written to."""

    def __init__(self, _: object) -> None:
        raise RuntimeError("no directory")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable], Any]:
    """Make kernels that are not on disk, in a process without any earlier call."""
    monkeypatch.setattr(jit, "_Cache", Nowhere)
    monkeypatch.setattr(tiers, "enabled", True)
    monkeypatch.setattr(tiers, "ALLOWANCE", TOTAL)
    monkeypatch.setattr(tiers, "account", tiers.Account(None))
    return jit.kernel


def compiled(function: Any) -> bool:
    return bool(function.signatures)


def scaled(x, factor):
    """Overwrites x; returns its sum."""
    total = 0.0
    for n in range(len(x)):
        x[n] *= factor
        total += x[n]
    return total


def test_a_small_call_is_plain_python(fresh: Callable) -> None:
    """And returns what compiled code would: a number of Python's."""
    f = fresh(scaled)
    x = np.arange(5.0)
    total = f(x, 2)
    assert not compiled(f)
    assert total == 20.0
    assert type(total) is float
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_a_large_one_is_compiled_and_that_is_said(
    fresh: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "_announced", threading.Event())
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    f = fresh(scaled)
    x = np.ones(tiers.SMALL + 1)
    wall, ours = time.perf_counter(), clock.now()
    assert f(x, 2.0) == 2.0 * len(x)
    ours, wall = clock.now() - ours, time.perf_counter() - wall
    assert compiled(f)
    assert 0 <= ours < 0.5 * wall
    assert gc.isenabled()
    assert capsys.readouterr().err == "optdesign: compiling, on first use only\n"


@pytest.mark.parametrize("argument", ["generator", "tuple"])
def test_what_may_hold_anything_is_compiled(fresh: Callable, argument: str) -> None:
    """Kernels of bandits: their states are named tuples of arrays, and they advance generators."""
    pair = namedtuple("pair", "a b")
    f = fresh(lambda thing: thing is None)
    f(np.random.default_rng(0) if argument == "generator" else pair(np.zeros(3), 1))
    assert compiled(f)


def use_up_allowance() -> None:
    tiers.account.add("another kernel", tiers.ALLOWANCE)


def test_after_the_allowance_of_all_a_kernel_is_compiled_after_some_calls(fresh: Callable) -> None:
    f = fresh(scaled)
    x = np.ones(1)
    for _ in range(10):
        f(x, 1.0)
    use_up_allowance()
    for _ in range(tiers.OWN_CALLS - 10):
        assert not compiled(f)
        f(x, 1.0)
    assert not compiled(f)
    f(x, 1.0)
    assert compiled(f)


def test_or_after_its_own_seconds(fresh: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "OWN", 0.01)
    f = fresh(scaled)
    use_up_allowance()
    calls, x = 0, np.ones(5000)
    while not compiled(f):
        f(x, 1.0)
        calls += 1
    assert calls < tiers.OWN_CALLS


def test_kernels_that_are_due_are_compiled_together(fresh: Callable) -> None:
    """Those of enough calls, for all types of arguments; one that is new is not."""
    f, g, new = fresh(scaled), fresh(lambda x: x[0] + 1.0), fresh(lambda x: x[0] + 2.0)
    x, y = np.ones(1), np.ones(1, np.float32)
    for _ in range(tiers.OWN_CALLS):
        f(x, 1.0)
        g(x)
    g(y)
    new(x)
    assert not compiled(f)
    assert not compiled(g)
    use_up_allowance()
    f(x, 1.0)
    assert compiled(f)
    assert len(g.signatures) == 2
    assert not compiled(new)
    assert g(x) == 2.0


def test_an_interrupt_between_kernels_that_are_due_is_raised(
    fresh: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is left is compiled later on."""
    f, g = fresh(scaled), fresh(lambda x: x[0] + 1.0)
    for _ in range(tiers.OWN_CALLS):
        f(np.ones(1), 1.0)
        g(np.ones(1))
    use_up_allowance()
    with pytest.raises(Stopped), stop_when(lambda: True):
        f(np.ones(1), 1.0)
    assert not compiled(f)
    assert not compiled(g)
    compiling = clock.compiling

    @contextmanager
    def interrupted() -> Iterator[None]:
        with compiling():
            yield
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(clock, "compiling", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(1), 1.0)
    assert compiled(f) != compiled(g)
    monkeypatch.undo()


def test_what_takes_too_long_is_put_back_and_compiled(fresh: Callable) -> None:
    """Every entry is counted up once for each round, however far plain Python came."""
    inner = fresh(scaled)

    def outer(x, count, rounds):
        for _ in range(rounds):
            count[0] += 1
            inner(x, 1.5)
            inner(x, 1.0 / 1.5)
        return len(x)

    x, count = np.ones(10), np.zeros(1, np.int64)
    f = fresh(outer)
    assert f(x, count, 1_000_000) == 10
    assert compiled(f)
    assert count[0] == 1_000_000


def test_division_by_zero_is_compiled_code_s(fresh: Callable) -> None:
    """A float of Python raises an error there; machine code divides as NumPy does."""

    def ratio(x, over):
        x[0] += 1.0
        return 1.0 / over

    f = fresh(ratio)
    x = np.zeros(1)
    assert f(x, 0.0) == math.inf
    assert x[0] == 1.0


def test_numpy_warns_of_nothing(fresh: Callable) -> None:
    def rough(x):
        return x[0] * x[0], x[1] / x[1], np.sqrt(x[2])

    f = fresh(rough)
    large, nothing, root = f(np.array([1e300, 0.0, -1.0]))
    assert not compiled(f)
    assert large == math.inf
    assert math.isnan(nothing)
    assert math.isnan(root)


def test_an_interrupt_leaves_arrays_as_they_were(fresh: Callable) -> None:
    def interrupt():
        raise KeyboardInterrupt

    def half(x, y):
        x[0] = 1.0
        interrupt()
        y[0] = 1.0

    x, y = np.zeros(2), np.zeros(1)
    y.flags.writeable = False
    with pytest.raises(KeyboardInterrupt):
        fresh(half)(x, y)
    assert x[0] == 0.0
    assert getattr(tiers._call, "deadline", None) is None


def test_the_clock_stands_still_and_nothing_is_said(
    fresh: Callable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "_announced", threading.Event())
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    monkeypatch.setattr(tiers, "ALLOWANCE", 1.0)
    f, x = fresh(scaled), np.ones(40_000)
    f(np.ones(1), 1.0)
    wall, ours = time.perf_counter(), clock.now()
    f(x, 1.0)
    ours, wall = clock.now() - ours, time.perf_counter() - wall
    assert not compiled(f)
    assert 0 <= ours < 0.5 * wall
    assert gc.isenabled()
    assert capsys.readouterr().err == ""


def test_threads_do_not_meet(fresh: Callable) -> None:
    """Each has its own allowance running, and all their results are right."""
    inner = fresh(scaled)

    def outer(x):
        return inner(x, 2.0) + inner(x, 3.0)

    f = fresh(outer)
    with ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(lambda n: f(np.ones(n)), range(1, 400)))
    assert totals == [8.0 * n for n in range(1, 400)]


def test_kernels_are_pickled(fresh: Callable) -> None:
    f = fresh(scaled)
    assert pickle.loads(pickle.dumps(f)) is f
    assert pickle.loads(pickle.dumps(od.design.feasible.scale)) is od.design.feasible.scale


SOLVE = """
import numpy as np, optdesign as od
x = np.random.default_rng(0).normal(size=(60, 3))
r = od.solve(od.DesignProblem(x, np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)), tol=1e-8)
kernels = [od.solvers.bca._sweeps, od.problem.elimination.eliminate, od.algebra.whitening._measure]
print(r.gap.hex(), *(len(k.signatures) + 10 * sum(k.stats.cache_hits.values()) for k in kernels))
"""


@pytest.mark.slow
def test_a_small_problem_is_solved_without_the_compiler(tmp_path: Path) -> None:
    """In the next process as well, until a process compiles: then its machine code is used."""
    copy = Copy(tmp_path, {"NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0"})
    gap, *signatures = copy.ask(SOLVE)
    assert signatures == ["0", "0", "0"]
    assert not list(tmp_path.rglob("*.nbi"))
    copy.settings["OPTDESIGN_TIERS"] = "0"
    assert copy.ask(SOLVE) == [gap, "1", "1", "1"]
    del copy.settings["OPTDESIGN_TIERS"]
    assert copy.ask(SOLVE) == [gap, "11", "11", "11"]


def test_tiers_can_be_switched_off(fresh: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "enabled", False)
    f = fresh(scaled)
    f(np.ones(1), 1.0)
    assert compiled(f)


@pytest.mark.slow
@pytest.mark.parametrize(("value", "expected"), [("0", "False"), ("1", "True"), ("", "True")])
def test_the_switch_is_a_variable_of_the_environment(value: str, expected: str) -> None:
    code = "from optdesign.runtime import tiers; print(tiers.enabled)"
    settings = os.environ | {"OPTDESIGN_TIERS": value}
    run = subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == expected


def test_tiers_are_one_file_of_at_most_200_lines() -> None:
    assert len(Path(tiers.__file__).read_text().splitlines()) <= 200


@pytest.mark.slow
def test_every_digit_is_the_same(tmp_path: Path) -> None:
    """Spans, certificates, weights of every structure by every method, runs: compiled and as plain Python."""
    folder = Path(__file__).parents[1]
    path = os.pathsep.join([str(Path(od.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    settings = os.environ | {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0"}

    def digests(how: str, **more: str) -> list[str]:
        command = [sys.executable, "-W", "error", "digests.py", how]
        said = subprocess.run(
            command, cwd=folder, env=settings | more, capture_output=True, text=True, check=True
        )
        return said.stdout.splitlines()

    lines = digests("compiled")
    assert len(lines) > 400
    assert digests("interpreted", NUMBA_CACHE_DIR=str(tmp_path)) == lines
