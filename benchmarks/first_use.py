"""The first solve in a fresh environment, where nothing is compiled yet.

The package is copied into an empty directory, so that there is no machine code beside it, and a new process
solves README's 60 x 3 problem twice. Everyone who installs the package waits for the first, once.

python benchmarks/first_use.py    (a minute)
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

from harness import bar, show

import optdesign as od

BAR = 8.0
"""Seconds from the import to the first answer."""

COSTLIEST = 10

SCRIPT = """
import json, time

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
candidates = np.random.default_rng(0).normal(size=(60, 3))
groups, blocks = np.repeat([0, 1, 2], 20), np.tile([0, 1], 30)
for _ in range(2):
    problem = od.DesignProblem(candidates, groups, blocks, budgets=[1.0, 2.0, 5.0])
    assert od.solve(problem, tol=1e-8).relative_gap <= 1e-8
    moments.append(now())
print(json.dumps([np.diff(moments, axis=0).T.tolist(), Costs.kernels]))
"""
"""Counts the processor's seconds as well as those on the wall: other programs may share the machine."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = Path(od.__file__).parent
        shutil.copytree(package, Path(folder) / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        settings = os.environ | {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": ""}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=folder, env=settings, stdout=subprocess.PIPE, check=True
        )
    (processor, wall), kernels = json.loads(run.stdout)
    compiling = sum(spent for spent, _ in kernels)
    show(
        "README's 60 x 3 problem in a fresh environment, seconds",
        ["", "import", "first solve", f"of it compiling {len(kernels)} functions", "second solve"],
        [
            [label, f"{load:.2f}", f"{first:.2f}", part, f"{second:.4f}"]
            for label, part, (load, first, second) in (
                ("of the processor", f"{compiling:.2f}", processor),
                ("on the wall", "", wall),
            )
        ],
    )
    costliest = sorted(kernels, reverse=True)[:COSTLIEST]
    show(
        "The costliest, without those that they call",
        ["function", "seconds"],
        [[name, f"{spent:.2f}"] for spent, name in costliest],
    )
    bar("processor seconds from the import to the first answer", sum(processor[:2]), BAR, at_least=False)


if __name__ == "__main__":
    main()
