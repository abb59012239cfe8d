"""Kernels as plain Python, then as machine code: the same numbers, and a hand-over that is certain."""

import gc
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from test_jit import Copy

import optdesign as od
from optdesign.runtime import clock, jit, tiers

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


def test_the_allowance_is_that_of_all_kernels(fresh: Callable) -> None:
    """A kernel of 50 calls is then compiled at its next call; one that is new is not yet."""
    f, often, new = fresh(scaled), fresh(lambda x: x[0] + 1.0), fresh(lambda x: x[0] + 2.0)
    x = np.ones(10)
    for _ in range(60):
        often(x)
    began = time.perf_counter()
    while tiers.account.total < TOTAL:
        f(x, 1.0)
        assert time.perf_counter() - began < 60
    assert not compiled(often)
    often(x)
    new(x)
    assert compiled(often)
    assert not compiled(new)


def test_after_the_allowance_a_kernel_has_one_of_its_own(
    fresh: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "ALLOWANCE", 0.0)
    f = fresh(scaled)
    calls = round(tiers.OWN / tiers.SHORTEST)
    for _ in range(calls + 1):
        assert not compiled(f)
        f(np.ones(1), 1.0)
    assert compiled(f)


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
    assert pickle.loads(pickle.dumps(od.design.certificate.scale)) is od.design.certificate.scale


SOLVE = """
import numpy as np, optdesign as od
x = np.random.default_rng(0).normal(size=(60, 3))
r = od.solve(od.DesignProblem(x, np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)), tol=1e-8)
kernels = [od.solvers.bca._sweeps, od.problem.elimination.eliminate, od.algebra.whitening._measure]
print(r.gap.hex(), *(len(k.signatures) + 10 * sum(k.stats.cache_hits.values()) for k in kernels))
"""


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


COUNT = """
import sys, numpy as np
from optdesign.runtime import jit, tiers
tiers.ALLOWANCE = 0.03
@jit.kernel
def slow(x):
    for n in range(200_000):
        x[0] += n
    return x[0]
slow(np.zeros(1))
print(len(slow.signatures), tiers.account.total)
"""


def test_seconds_are_summed_over_processes(tmp_path: Path) -> None:
    """A kernel whose single call is below the allowance is compiled in the process that exceeds it."""
    script = tmp_path / "script.py"
    script.write_text(COUNT.replace("0.03", "0.15"))
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    said = []
    while not said or said[-1][0] == "0":
        run = subprocess.run(
            [sys.executable, script], env=settings, capture_output=True, text=True, check=True
        )
        said.append(run.stdout.split())
        assert len(said) < 50
    assert len(said) > 1
    totals = [float(total) for _, total in said]
    assert totals == sorted(totals)


def test_a_file_is_saved_whenever_the_seconds_double(tmp_path: Path) -> None:
    """A second process reads what a first one has saved, and adds to it."""
    path = tmp_path / "folder" / "account.json"
    one, two = tiers.Account(path), tiers.Account(path)
    one.add("f", 0.004)
    assert not path.exists()
    one.add("f", 0.008)
    two.add("g", 0.5)
    assert json.loads(path.read_text()) == {"f": 0.012, "g": 0.5}
    assert two.total == 0.512
    assert tiers.Account(path).total == 0.512
    assert [p.name for p in path.parent.iterdir()] == ["account.json"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"f": "much"}', '{"f": null}', "3"])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(content)
    account = tiers.Account(path)
    assert account.total == 0.0
    account.add("f", 1.0)
    assert tiers.Account(path).total == 1.0


def test_a_file_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file" / "account.json"
    path.parent.write_text("no directory")
    account = tiers.Account(path)
    for _ in range(10):
        account.add("f", 1.0)
    assert account.total == 10.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_does_not_save_the_seconds_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it wait for a lock that another thread of the parent holds."""
    account = tiers.Account(tmp_path / "account.json")
    monkeypatch.setattr(tiers, "account", account)
    account.add("f", 0.005)
    with account.lock:
        child = os.fork()
        if child == 0:
            account.add("g", 1.0)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert tiers.Account(account.path).seconds == {"g": 1.0}


def test_tiers_can_be_switched_off(fresh: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "enabled", False)
    f = fresh(scaled)
    f(np.ones(1), 1.0)
    assert compiled(f)


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
