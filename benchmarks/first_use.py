"""The first solve in a fresh environment, where nothing is compiled yet, and the first in the next process.

The package is copied into an empty directory, so that there is no machine code beside it. There a new process
solves README's 60 x 3 problem twice, and then another does; then, in a copy of its own, one of 2,000 x 10,
which is large enough to be worth compiling for.

python benchmarks/first_use.py    (half a minute)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from harness import bar, show

import optdesign as od

BAR = 8.0
"""Seconds from the import to the first answer."""

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


class Process(NamedTuple):
    """Seconds of the import and of two solves; what was compiled, with its seconds."""

    processor: list[float]
    wall: list[float]
    kernels: list[tuple[float, str]]


def in_turn(n: int, d: int, count: int) -> list[Process]:
    """So many processes, one after the other, in an environment that is fresh for the first."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(od.__file__).parent
        shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        settings = os.environ | {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": ""}
        command = [sys.executable, "-c", SCRIPT, str(n), str(d)]
        out = []
        for _ in range(count):
            run = subprocess.run(command, cwd=folder, env=settings, stdout=subprocess.PIPE, check=True)
            (processor, wall), kernels = json.loads(run.stdout)
            out.append(Process(processor, wall, kernels))
        return out


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
    for (n, d), seconds in first.items():
        name = f"processor seconds from the import to the first answer, {n:,} x {d}"
        bar(name, seconds, BAR, at_least=False)


if __name__ == "__main__":
    main()
