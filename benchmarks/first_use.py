"""First use in a fresh environment: the first solve, and the hand-over from plain Python to machine code.

The package is copied into an empty directory, so that there is no machine code beside it. There a new process
solves README's 60 x 3 problem twice, and then another does; then, in a copy of its own, one of 2,000 x 10,
which is large enough to be worth compiling for.

The hand-over is measured by small problems, which a process builds and solves again and again: in one process
for 10 s, and in 10 processes for 1 s each, both in a fresh environment. The seconds per solve afterwards are
compared with those of a process without tiers that reads the same machine code.

python benchmarks/first_use.py    (3 minutes)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from harness import bar, show

import optdesign as od

BAR = 8.0
"""Seconds from the import to the first answer."""

RATIO_BAR = 1.2
"""Seconds of small solves after the hand-over, relative to compiled ones."""

SPENT, PROCESSES = 10.0, 10
"""Seconds of small solves in a fresh environment, and processes that they are divided among."""

ROUNDS = 5
"""Measurements with and without tiers, in turn; the least of each is compared."""

SIZES = (60, 3), (2000, 10)

COSTLIEST = 10

SCRIPT = """
import json, sys, time

clock = time.process_time

def now():
    return clock(), time.perf_counter()

moments = [now()]
import numpy as np
import optdesign as od
from numba.core import event
moments.append(now())

class Costs(event.Listener):
    stack, kernels = [], []
    def on_start(self, _):
        self.stack.append([clock(), 0.0])
    def on_end(self, event):
        began, nested = self.stack.pop()
        spent = clock() - began
        if self.stack:
            self.stack[-1][1] += spent
        function = event.data["dispatcher"].py_func
        self.kernels.append([spent - nested, f"{function.__module__}.{function.__qualname__}"])

event.register("numba:compile", Costs())
n, d = map(int, sys.argv[1:])
candidates = np.random.default_rng(0).normal(size=(n, d))
groups, blocks = np.repeat([0, 1, 2], [n // 3, n // 3, n - 2 * (n // 3)]), np.arange(n) % 2
for _ in range(2):
    problem = od.DesignProblem(candidates, groups, blocks, budgets=[1.0, 2.0, 5.0])
    assert od.solve(problem, tol=1e-8).relative_gap <= 1e-8
    moments.append(now())
print(json.dumps([np.diff(moments, axis=0).T.tolist(), Costs.kernels]))
"""
"""Counts the processor's seconds as well as those on the wall: other programs may share the machine."""


SMALL = """
import statistics, sys, time
import numpy as np
import optdesign as od
from numba.core import event

class Count(event.Listener):
    functions = 0
    def on_start(self, _):
        Count.functions += 1
    def on_end(self, _):
        pass

event.register("numba:compile", Count())
structure, spend, measure = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
x = np.random.default_rng(0).normal(size=(60, 3))
labels = (np.repeat([0, 1, 2], 20), np.arange(60) % 2, [1.0, 2.0, 5.0]) if structure == "groups" else ()

def solves(seconds):
    began, spent = time.perf_counter(), []
    while time.perf_counter() - began < seconds:
        before = time.process_time()
        assert od.solve(od.DesignProblem(x, *labels)).converged
        spent.append(time.process_time() - before)
    return spent

first = solves(spend)
compiled = Count.functions
spent = solves(measure)
late = Count.functions - compiled
print(len(first), max(first), compiled, late, statistics.median(spent) if spent else 0.0)
"""
"""Solves small problems for so many seconds, and measures the processor's seconds of others after that."""


class Process(NamedTuple):
    """Seconds of the import and of two solves; what was compiled, with its seconds."""

    processor: list[float]
    wall: list[float]
    kernels: list[tuple[float, str]]


class Small(NamedTuple):
    """Solves in the first seconds of a process, the longest of them and functions that they compiled;
    functions compiled in the seconds that follow, and the processor's seconds of a solve in these.
    """

    solves: int
    longest: float
    compiled: int
    late: int
    seconds: float


@contextmanager
def fresh() -> Iterator[Callable[..., str]]:
    """Copy the package to a new directory; yield a function that runs a script there in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(od.__file__).parent
        shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__"))

        def run(script: str, *arguments: object, tiers: bool = True) -> str:
            settings = {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": "", "OPTDESIGN_TIERS": str(int(tiers))}
            command = [sys.executable, "-c", script, *map(str, arguments)]
            return subprocess.check_output(command, cwd=folder, env=os.environ | settings, text=True)

        yield run


def in_turn(n: int, d: int, count: int) -> list[Process]:
    """So many processes, one after the other, in an environment that is fresh for the first."""
    out = []
    with fresh() as run:
        for _ in range(count):
            (processor, wall), kernels = json.loads(run(SCRIPT, n, d))
            out.append(Process(processor, wall, kernels))
    return out


def handed_over(structure: str, processes: int) -> tuple[list[str], float]:
    """A row of the table for SPENT seconds in so many processes, and the ratio to compiled code."""
    with fresh() as run:

        def small(spend: float, measure: float, tiers: bool = True) -> Small:
            printed = run(SMALL, structure, spend, measure, tiers=tiers).split()
            solves, longest, compiled, late, seconds = map(float, printed)
            return Small(int(solves), longest, int(compiled), int(late), seconds)

        each = SPENT / processes
        spent = [small(each, 1.0 if processes == 1 else 0.0) for _ in range(processes)]
        # Afterwards: in the one process itself, and in new ones.
        after = [spent[0].seconds] if processes == 1 else []
        late = spent[0].late
        compiled = []
        for _ in range(ROUNDS):
            measured = small(0.5, 1.0)
            after.append(measured.seconds)
            late += measured.compiled + measured.late
            compiled.append(small(0.5, 1.0, tiers=False).seconds)
    same = after[0] / min(compiled) if processes == 1 else math.nan
    later = min(after[processes == 1 :]) / min(compiled)
    row = [
        structure, str(processes), str(sum(s.solves for s in spent)), f"{max(s.longest for s in spent):.1f}",
        str(sum(s.compiled for s in spent)),
        str(late), f"{1e3 * min(compiled):.3f}", "" if processes > 1 else f"{same:.2f}", f"{later:.2f}",
    ]  # fmt: skip
    return row, max(later, 0.0 if processes > 1 else same)


def main() -> None:
    rows, first, costliest = [], {}, []
    for n, d in SIZES:
        runs = in_turn(n, d, 2)
        first[n, d] = sum(runs[0].processor[:2])
        for name, run in zip(("fresh", "next"), runs, strict=True):
            compiling = f"{sum(spent for spent, _ in run.kernels):.2f} ({len(run.kernels)})"
            load, solve, again = run.processor
            wall = f"{sum(run.wall[:2]):.2f}"
            rows.append(
                [f"{n:,} x {d}", name, f"{load:.2f}", f"{solve:.2f}", compiling, f"{again:.4f}", wall]
            )
        costliest = sorted(runs[0].kernels, reverse=True)[:COSTLIEST]
    show(
        "A process in a fresh environment and the next one, seconds of the processor",
        [
            "problem", "process", "import", "first solve", "of it compiling (functions)", "second solve",
            "on the wall, to the first answer",
        ],
        rows,
    )  # fmt: skip
    show(
        "The costliest of the larger problem, without those that they call",
        ["function", "seconds"],
        [[name, f"{spent:.2f}"] for spent, name in costliest],
    )
    handed = {
        (structure, count): handed_over(structure, count)
        for structure in ("one group", "groups")
        for count in (1, PROCESSES)
    }
    show(
        f"{SPENT:g} s of 60 x 3 problems in a fresh environment, in one or several processes, and afterwards",
        [
            "problem", "processes", "solves", "longest solve, s", "functions compiled", "compiled afterwards",
            "compiled solve, ms", "same process, ratio", "new process, ratio",
        ],
        [row for row, _ in handed.values()],
    )  # fmt: skip
    for (structure, count), (_, ratio) in handed.items():
        name = (
            f"solve after {SPENT:g} s in {count} process{'es' * (count > 1)} over a compiled one, {structure}"
        )
        bar(name, ratio, RATIO_BAR, at_least=False)
    for (n, d), seconds in first.items():
        name = f"processor seconds from the import to the first answer, {n:,} x {d}"
        bar(name, seconds, BAR, at_least=False)


if __name__ == "__main__":
    main()
