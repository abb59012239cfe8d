"""Any dimension: classical designs up to d = 384, and every hard family up to d = 100, disjoint and shared.

python benchmarks/wide.py [--dims 30 60 100] [--clients 500 2000 5000] [--limit 60]

Single-threaded. Classical rows are in passes: our time, problem built anew, over that of one NumPy pass that
computes all variances. Wolfe-Atwood, compiled, gets as many steps as fit into PATIENCE times our time.
Families are stopped at the limit; their bar is a relative gap of 1e-6 while Q <= 10,000, and 1e-5 beyond.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import itertools
import statistics
import sys
import time

import numpy as np
from harness import bar, duration, gap_of, show, variance_pass
from instances import features
from peers import wolfe_atwood

import optdesign as od

CLASSICAL = [
    (20_000, 50, 1e-6, 80.0),
    (20_000, 100, 1e-6, 200.0),
    (50_000, 200, 1e-4, 600.0),
    (100_000, 384, 1e-3, np.inf),
]
"""Candidates, dimension, tolerance, and the bar in passes."""

PATIENCE = 1.5
HARD = ("cond", "cone", "same", "clust")
EASY = ("gauss",)
LARGE = 10_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dims", type=int, nargs="*", default=[30, 60, 100])
    parser.add_argument("--clients", type=int, nargs="*", default=[500, 2000, 5000])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--largest", type=int, default=100_000)
    args = parser.parse_args()
    warm()
    began = time.perf_counter()
    bars = classical(args.largest) + groups() + families(args.clients, args.dims, args.limit)
    for name, value, limit, at_least in bars:
        bar(name, value, limit, at_least=at_least)
    print(f"({time.perf_counter() - began:.0f} s)")


def warm() -> None:
    """Compile whatever is used."""
    rng = np.random.default_rng(0)
    for dim in (3, 40):
        x = rng.normal(size=(40 * dim, dim))
        od.d_optimal(x)
        wolfe_atwood(x, 1e-2, 100)
        for structure in ("disjoint", "shared"):
            for family in (*HARD, *EASY):
                build(family, structure, 3 * dim, 10, dim)
                od.solve(build(family, structure, 3 * dim, 10, dim))


def build(family: str, structure: str, clients: int, arms: int, dim: int) -> od.DesignProblem:
    return getattr(od.DesignProblem, structure)(features(family, clients, arms, dim))


def classical(largest: int) -> list[tuple[str, float, float, bool]]:
    rows, bars = [], []
    for n, d, tol, limit in CLASSICAL:
        if n > largest:
            continue
        name, x = f"{n:,} x {d}", np.random.default_rng(0).normal(size=(n, d))
        one = variance_pass(x)
        repeats = 3 if n * d < 5_000_000 else 1
        times, result = [], None
        for _ in range(repeats):
            before = time.perf_counter()
            result = od.d_optimal(x, tol=tol)
            times.append(time.perf_counter() - before)
        assert result is not None
        seconds = statistics.median(times)
        # Of many steps, since the start before them takes long, and no less than reading all rows once does.
        step = max((timed(x, tol, 310)[0] - timed(x, tol, 10)[0]) / 300, reading(x))
        peer, weights = timed(x, tol, PATIENCE * seconds / step)
        peer_gap = gap_of(result.problem, weights)
        rows.append([
            name, f"{tol:g}", duration(one), duration(seconds), f"{seconds / one:.0f}",
            f"{result.relative_gap:.1e}", len(result.support), duration(peer), f"{peer_gap:.1e}",
        ])  # fmt: skip
        print(*rows[-1], file=sys.stderr)
        bars.append((f"{name}: relative gap over tol", result.relative_gap / tol, 1, False))
        bars.append((f"{name}: passes", seconds / one, limit, False))
        # Behind us if it took longer for the gap, or as long without it.
        behind = peer / seconds if peer_gap <= tol else np.inf if peer > seconds else 0.0
        bars.append((f"{name}: Wolfe-Atwood's time for the gap over ours", behind, 1, True))
    show(
        "Classical designs of high dimension (problem built anew)",
        ["candidates", "tol", "one pass", "ours", "passes", "gap", "support", "Wolfe-Atwood", "its gap"],
        rows,
    )
    return bars


def reading(x: np.ndarray) -> float:
    """Seconds in which all numbers are read and multiplied once."""
    before = time.perf_counter()
    x @ x[0]
    return time.perf_counter() - before


def timed(x: np.ndarray, tol: float, most: float) -> tuple[float, np.ndarray]:
    """Seconds of so many steps of Wolfe-Atwood, and the weights."""
    before = time.perf_counter()
    weights = wolfe_atwood(x, tol, most)
    return time.perf_counter() - before, weights


def groups() -> list[tuple[str, float, float, bool]]:
    """200,000 x 21 in four groups, one block, against one group."""
    x = np.random.default_rng(0).normal(size=(200_000, 21))
    times = {}
    for count in (1, 4):
        problem = od.DesignProblem(x, np.arange(len(x)) % count)
        runs = [od.solve(problem, tol=1e-6) for _ in range(3)]
        times[count] = statistics.median(r.seconds for r in runs)
        assert all(r.converged for r in runs)
    print(f"200,000 x 21, tol 1e-6: one group {duration(times[1])}, four groups {duration(times[4])}")
    return [("200,000 x 21: four groups over one", times[4] / times[1], 3, False)]


def families(clients: list[int], dims: list[int], limit: float) -> list[tuple[str, float, float, bool]]:
    instances = [
        (family, structure, m, 10, d)
        for d, m in itertools.product(dims, clients)
        for family, structure in itertools.product(HARD, ("disjoint", "shared"))
    ]
    if 100 in dims and 500 in clients:
        instances += [("gauss", "shared", 500, 20, 100), ("clust", "shared", 500, 20, 100)]
    rows, bars = [], []
    for family, structure, m, k, d in instances:
        problem = build(family, structure, m, k, d)
        q = int(np.sum(problem.ranks * (problem.ranks + 1) // 2))
        before = time.perf_counter()
        result = od.solve(problem, tol=1e-6, time_limit=limit)
        seconds = time.perf_counter() - before
        name, goal = f"{family} {structure} M={m} K={k} d={d}", 1e-6 if q <= LARGE else 1e-5
        rows.append([
            name, q, duration(seconds), f"{result.relative_gap:.1e}", len(result.support), result.status.name,
            result.method,
        ])  # fmt: skip
        print(*rows[-1], file=sys.stderr)
        bars.append((f"{name}: relative gap", result.relative_gap, goal, False))
        bars.append((f"{name}: seconds beyond the limit", max(0.0, seconds - limit), 0.05 * limit, False))
    show(
        f"Families, tol 1e-6, stopped after {limit:g} s",
        ["instance", "Q", "time", "gap", "support", "status", "method"],
        rows,
    )
    return bars


if __name__ == "__main__":
    main()
