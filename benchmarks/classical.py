"""The classical D-optimal problem, one group and one block, against REX and Wolfe-Atwood.

python benchmarks/classical.py [--largest 1000000]

Everyone runs on the same arrays, single-threaded, compiled by numba, in turn; the fastest of several runs,
and medians over seeds. "passes" is our time over that of one NumPy pass that computes all variances.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import itertools
import statistics
import time

import numpy as np
from harness import Measured, bar, duration, measure_once, race, show, variance_pass
from peers import rex, wolfe_atwood

import optdesign as od

SIZES = [(1_000, 5), (10_000, 10), (100_000, 10), (100_000, 20), (1_000_000, 10)]


def quadratic(factors: int = 6) -> np.ndarray:
    """Full quadratic model on the three-level grid."""
    grid = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=factors)))
    pairs = itertools.combinations_with_replacement(range(factors), 2)
    return np.column_stack([np.ones(len(grid)), grid, *(grid[:, i] * grid[:, j] for i, j in pairs)])


def medians(measured: list[Measured]) -> Measured:
    return Measured(statistics.median(m.seconds for m in measured), max(m.gap for m in measured))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    began = time.perf_counter()
    warm = np.random.default_rng(0).normal(size=(2000, 3))
    rex(warm, 1e-3), wolfe_atwood(warm, 1e-3), od.d_optimal(warm, tol=1e-9)
    instances = [
        (f"{n:,} x {d}", [np.random.default_rng(s).normal(size=(n, d)) for s in range(args.seeds)])
        for n, d in SIZES
        if n <= args.largest
    ]
    instances.append(("quadratic, 729 x 28", [quadratic()]))
    rows: list[list[object]] = []
    bars: list[tuple[str, float, float, bool]] = []
    for name, arrays in instances:
        got: dict[str, list[Measured]] = {}
        passes = statistics.median(variance_pass(x) for x in arrays)
        for x in arrays:
            problem = od.DesignProblem(x)
            jobs = {
                "1e-6": lambda x=x: od.d_optimal(x, tol=1e-6).weights,
                "1e-9": lambda x=x: od.d_optimal(x, tol=1e-9).weights,
                "REX": lambda x=x: rex(x, 1e-6),
                "WA": lambda x=x: wolfe_atwood(x, 1e-6),
            }
            slow = {"WA": jobs.pop("WA")} if x.size > 500_000 else {}
            for label, measured in race(problem, jobs).items():
                got.setdefault(label, []).append(measured)
            for label, job in slow.items():
                got.setdefault(label, []).append(measure_once(problem, job))
        m = {label: medians(values) for label, values in got.items()}
        rows.append(
            [
                name,
                duration(passes),
                m["1e-6"],
                f"{m['1e-6'].seconds / passes:.1f}",
                m["1e-9"],
                m["REX"],
                m["WA"],
            ]
        )
        for peer in ("REX", "WA"):
            bars.append((f"{name}: {peer} over ours", m[peer].seconds / m["1e-6"].seconds, 1, True))
        if name.startswith("1,000,000"):
            bars.append((f"{name}: passes at 1e-6", m["1e-6"].seconds / passes, 10, False))
            bars.append((f"{name}: 1e-9 over ten passes", m["1e-9"].seconds / (10 * passes), 1.5, False))
        if name.startswith("quadratic"):
            bars.append((f"{name}: seconds to 1e-9", m["1e-9"].seconds, 0.1, False))
    show(
        "Classical D-optimality (problem built anew each time): time (certified relative gap)",
        ["candidates", "one pass", "ours, 1e-6", "passes", "ours, 1e-9", "REX, 1e-6", "Wolfe-Atwood, 1e-6"],
        rows,
    )
    for name, value, limit, at_least in bars:
        bar(name, value, limit, at_least=at_least)
    print(f"({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
