"""A hundred thousand clients: M=100,000 K=10 d=5 disjoint, family `same`, relative gap 1e-6.

python benchmarks/large.py [--clients 100000]
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import bar, duration, show, variance_pass
from instances import features

import optdesign as od


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--family", default="same")
    args = parser.parse_args()
    od.solve(od.DesignProblem.disjoint(features(args.family, 200, 10, 5)), tol=1e-6)  # compiled kernels
    # The features come from a file, so that making them leaves no trace in the peak of memory.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        make = (
            "import sys, numpy; from instances import features;"
            "numpy.save(sys.argv[1], features({!r}, {}, 10, 5))"
        )
        subprocess.run(
            [sys.executable, "-c", make.format(args.family, args.clients), file],
            check=True, cwd=Path(__file__).parent,
        )  # fmt: skip
        x = np.load(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    problem = od.DesignProblem.disjoint(x)
    profile = cProfile.Profile()
    began = time.perf_counter()
    profile.enable()
    result = od.solve(problem, tol=1e-6, progress=True)
    profile.disable()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    passes = variance_pass(x.reshape(-1, 5))
    show(
        f"{args.family}, M={args.clients:,} K=10 d=5 disjoint",
        ["time", "relative gap", "one pass", "passes", "features", "memory above them", "method"],
        [[duration(seconds), f"{result.relative_gap:.1e}", duration(passes), f"{seconds / passes:.0f}",
          f"{x.nbytes / 1e6:.0f} MB", f"{(peak - before) / 1e6:.0f} MB", result.method]],
    )  # fmt: skip
    stats = pstats.Stats(profile).stats
    spent = sorted(((v[2], k[2]) for k, v in stats.items()), reverse=True)[:8]
    show("Where the time goes", ["kernel or function", "share"],
         [[name, f"{100 * own / seconds:.0f} %"] for own, name in spent])  # fmt: skip
    bar("passes", seconds / passes, 200, at_least=False)
    bar("peak memory above the features, over the features", (peak - before) / x.nbytes, 4, at_least=False)


if __name__ == "__main__":
    main()
