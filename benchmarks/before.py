"""The suite's rows by ``auto``, beside an earlier commit of this repository.

python benchmarks/before.py [COMMIT] [--seeds 3] [--first 0] [--clients 30 100 1000] [--arms 10 30]
    [--dims 3 10] [--seconds 0.3]

Each of the two versions solves in a process of its own, in turn; the fastest of several runs counts, in
seconds of the processor, since other work may go on beside. A row is one kind of instance: the geometric
mean over its seeds of our time over that of the commit.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from instances import FAMILIES

HERE = Path(__file__).resolve().parent
COMMIT = "e0f5827"
"""The last commit before the solver core was rewritten for readers."""
TOL = 1e-9
MEDIAN, FAMILY, ROW = 1.10, 1.25, 1.75
"""Largest ratios of the median row, of a family, and of a row that takes less than ``SHORT`` seconds."""
SHORT = 5e-3
PASSES = 4
"""Times over all instances, so that a disturbance of some seconds meets an instance once only."""


class Version:
    """A process that solves what it is told, with the packages of one folder."""

    def __init__(self, folder: Path, seconds: float) -> None:
        paths = os.pathsep.join([str(folder), str(HERE)])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "before.py"), "--work", f"--seconds={seconds}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "__pycache__" / "numba"),
                 "OPTDESIGN_TIERS": "0"},
        )  # fmt: skip

    def solve(self, instance: tuple[Any, ...]) -> dict[str, float]:
        """Seconds of one run, or of the fastest of several short ones, and the relative gap."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(instance), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def work(seconds: float) -> None:
    """Solve what comes in, until nothing does."""
    from instances import features

    import optdesign as od
    from optdesign.runtime import jit

    jit.ALLOWANCE = 0.0  # type: ignore[attr-defined]  # for versions without OPTDESIGN_TIERS
    known: dict[str, Any] = {}
    for line in sys.stdin:
        family, structure, *rest = json.loads(line)
        if line not in known:
            known[line] = getattr(od.DesignProblem, structure)(features(family, *rest))
            od.solve(known[line], tol=TOL)
        best, began = math.inf, time.perf_counter()
        while best == math.inf or time.perf_counter() - began < seconds / 50:
            before = time.process_time()
            result = od.solve(known[line], tol=TOL)
            best = min(best, time.process_time() - before)
        print(json.dumps({"seconds": best, "gap": result.relative_gap}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("commit", nargs="?", default=COMMIT)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--clients", type=int, nargs="+", default=[30, 100, 1000])
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 30])
    parser.add_argument("--dims", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--seconds", type=float, default=0.3, help="for each version of an instance")
    parser.add_argument("--work", action="store_true")
    args = parser.parse_args()
    if args.work:
        work(args.seconds)
        return
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "before"
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(there), args.commit], check=True)
        try:
            compare(args, Version(there, args.seconds), Version(HERE.parent, args.seconds))
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
    print(f"(beside commit {args.commit}, {time.perf_counter() - began:.0f} s)")


def compare(args: argparse.Namespace, before: Version, now: Version) -> None:
    """Print the table and the bars."""
    from harness import bar, duration, show  # needs this version of the package

    sizes = itertools.product(args.clients, args.arms, args.dims)
    kinds = [(f, s, *size) for size in sizes for f, s in itertools.product(FAMILIES, ("disjoint", "shared"))]
    seeds = range(args.first, args.first + args.seeds)
    times = {(*kind, seed): [math.inf, math.inf] for kind in kinds for seed in seeds}
    worst = 0.0
    for _ in range(PASSES):
        for instance, least in times.items():
            worst = max(worst, in_turn(before, now, instance, args.seconds / PASSES, least))
    rows: list[list[object]] = []
    ratios: dict[str, float] = {}
    medians: dict[str, float] = {}
    for kind in kinds:
        pairs = [times[*kind, seed] for seed in seeds]
        name = "{} {} M={} K={} d={}".format(*kind)
        ratios[name] = statistics.geometric_mean(b / a for a, b in pairs)
        medians[name] = statistics.median(a for a, _ in pairs)
        rows.append([name, *(duration(statistics.median(t)) for t in zip(*pairs, strict=True))])
        rows[-1] += [f"{ratios[name]:.2f}", " ".join(f"{b / a:.2f}" for a, b in pairs)]
    show(
        f"Relative gap {TOL:g}, single thread, auto, medians of {args.seeds} seeds",
        ["instance", "before", "now", "now / before", "by seed"],
        rows,
    )
    families: dict[str, list[float]] = {}
    for name, ratio in ratios.items():
        families.setdefault(" ".join(name.split()[:2]), []).append(ratio)
    worst_family = max(map(statistics.geometric_mean, families.values()))
    print(f"geometric mean of now / before: {statistics.geometric_mean(ratios.values()):.3f}")
    bar("median of now / before", statistics.median(ratios.values()), MEDIAN, at_least=False)
    bar("slowest family", worst_family, FAMILY, at_least=False)
    short = [name for name in ratios if medians[name] < SHORT]
    bar("slowest row below 5 ms", max(ratios[name] for name in short), ROW, at_least=False)
    bar("largest relative gap", worst, TOL, at_least=False)
    for family, own in families.items():
        print(f"         {family}: {statistics.geometric_mean(own):.2f}")


def in_turn(
    before: Version, now: Version, instance: tuple[Any, ...], seconds: float, least: list[float]
) -> float:
    """Lower the least seconds of both, taken in turn; return our gap."""
    began, gap = time.perf_counter(), math.inf
    while gap == math.inf or time.perf_counter() - began < 2 * seconds:
        for k, version in enumerate((before, now)):
            answer = version.solve(instance)
            least[k], gap = min(least[k], answer["seconds"]), answer["gap"]
    return gap


if __name__ == "__main__":
    main()
