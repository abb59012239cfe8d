"""A hundred thousand clients: M=100,000 K=10 d=5 disjoint, family `same`, relative gap 1e-6.

python benchmarks/large.py [--clients 100000]

Single-threaded first. Then the same problem, and 1,000,000 x 10, by one thread and by two, in turn; problems
are built once, since only the solve has threads. Beside them a NumPy pass over 1,000,000 x 10, half of the
rows a thread: what two threads are worth on this machine where all of the work is shared out.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import cProfile
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from harness import bar, duration, show, variance_pass
from instances import features

import optdesign as od

REPEATS = 15


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=100_000)
    parser.add_argument("--family", default="same")
    args = parser.parse_args()
    for clients in (200, 30_000):  # whatever is used is compiled
        od.solve(od.DesignProblem.disjoint(features(args.family, clients, 10, 5)), tol=1e-6)
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
    result = od.solve(problem, tol=1e-6, progress=True, threads=1)
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
    wide = od.DesignProblem(ROWS)
    threads({f"{args.family}, M={args.clients:,}": problem, "1,000,000 x 10": wide})


def threads(problems: dict[str, od.DesignProblem]) -> None:
    """One thread against two, taken in turn: medians, also of the ratios of runs that follow one another, so
    that a neighbour who comes and goes meets both.
    """
    jobs = {name: partial(solved, problem) for name, problem in problems.items()}
    rows, ratios = [], {}
    for name, job in {**jobs, "NumPy pass": passed}.items():
        times: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(REPEATS):
            for count, seconds in times.items():
                began = time.perf_counter()
                job(count)
                seconds.append(time.perf_counter() - began)
        one, two = (statistics.median(seconds) for seconds in times.values())
        ratios[name] = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
        rows.append([name, duration(one), duration(two), f"{ratios[name]:.2f}"])
    show("One thread and two, problem built once", ["problem", "one", "two", "one / two"], rows)
    for name in jobs:
        bar(f"{name}: one thread over two", ratios[name], 1.6, at_least=True)


def solved(problem: od.DesignProblem, count: int) -> None:
    assert od.solve(problem, tol=1e-6, threads=count).relative_gap <= 1e-6


ROWS, FACTOR = np.random.default_rng(0).normal(size=(1_000_000, 10)), np.eye(10)


def passed(count: int) -> None:
    """A pass over the data by so many threads."""

    def part(rows: np.ndarray) -> np.ndarray:
        y = rows @ FACTOR
        return np.einsum("ij,ij->i", y, y)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(part, np.array_split(ROWS, count)))


if __name__ == "__main__":
    main()
