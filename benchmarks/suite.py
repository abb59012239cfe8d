"""Every instance family, disjoint and shared: our methods beside each other and beside cvxpy + Clarabel.

python benchmarks/suite.py [--seeds 3] [--clients 30 100 1000] [--arms 10 30] [--dims 3 10] [--limit 100]

A row is one kind of instance with several seeds: medians of the times, the largest gap, the smallest ratio.
Our methods run in turn, so that they meet the same disturbances. cvxpy gets the form of the problem that
suits it, and the other one if that fails; it is stopped after ``--limit`` times our time (5 to 120 seconds),
and a ratio that was cut off in this way is marked by >. Its time includes modelling and certification. It
does not include the start of the process in which larger programs are solved, nor the import of cvxpy there.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import itertools
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np
from harness import Measured, bar, duration, gap_of, race, show
from instances import FAMILIES, features

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.verification import reference
from optdesign.verification.worker import Worker

TOL = 1e-9
SINGLE = ("bca", "newton")
SECONDS = (5.0, 120.0)
"""cvxpy is never stopped before the first, and always after the second."""


class Instance(NamedTuple):
    """What was measured on one instance."""

    auto: Measured
    single: dict[str, float]
    """Seconds by each single method, infinite where three times auto's were not enough."""
    peer: Measured
    stopped: bool
    """Whether cvxpy was stopped before it had finished."""

    @property
    def ratio(self) -> float:
        """cvxpy's time over ours."""
        return self.peer.seconds / self.auto.seconds

    @property
    def excess(self) -> float:
        """auto's time over that of the best method."""
        return self.auto.seconds / min(self.auto.seconds, *self.single.values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[30, 100, 1000])
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 30])
    parser.add_argument("--dims", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--limit", type=float, default=100)
    args = parser.parse_args()
    began = time.perf_counter()
    reference.Worker = lambda: WORKER
    rows: list[list[object]] = []
    measured: list[Instance] = []
    large: list[float] = []
    for size in itertools.product(args.clients, args.arms, args.dims):
        for family, structure in itertools.product(FAMILIES, ("disjoint", "shared")):
            seeds = [one(family, structure, *size, seed, args.limit) for seed in range(args.seeds)]
            measured += seeds
            name = f"{family} {structure} M={size[0]} K={size[1]} d={size[2]}"
            rows.append([name, *row(seeds)])
            if size[0] >= 100:
                large += [i.ratio for i in seeds if not np.isnan(i.ratio)]
            print(*rows[-1], file=sys.stderr)
    show(
        f"Relative gap {TOL:g}, single thread, {args.seeds} seeds",
        ["instance", "auto", "gap", *SINGLE, "auto / best", "cvxpy", "gap", "cvxpy / auto"],
        rows,
    )
    bar("largest relative gap over all instances", max(i.auto.gap for i in measured), TOL, at_least=False)
    bar(
        "auto over the best single method, worst instance", max(i.excess for i in measured), 2, at_least=False
    )
    if large:
        bar("smallest ratio to cvxpy + Clarabel, M >= 100", min(large), 10, at_least=True)
        bar("median ratio to cvxpy + Clarabel, M >= 100", statistics.median(large), 30, at_least=True)
    failed = sum(np.isnan(i.peer.gap) for i in measured)
    WORKER.end()
    print(f"({len(measured)} instances, {failed} on which cvxpy failed, {time.perf_counter() - began:.0f} s)")


def row(seeds: list[Instance]) -> list[object]:
    """The columns of a table row."""
    times = [statistics.median(i.single[m] for i in seeds) for m in SINGLE]
    finished = [i for i in seeds if not np.isnan(i.ratio)]
    peer = ["failed", "", ""]
    if finished:
        worst = min(finished, key=lambda i: i.ratio)
        peer = [
            duration(statistics.median(i.peer.seconds for i in finished)),
            f"{max(i.peer.gap for i in finished):.0e}",
            f"{'>' if worst.stopped else ''}{worst.ratio:.0f}",
        ]
    return [
        duration(statistics.median(i.auto.seconds for i in seeds)),
        f"{max(i.auto.gap for i in seeds):.0e}",
        *(duration(t) if np.isfinite(t) else "-" for t in times),
        f"{max(i.excess for i in seeds):.2f}",
        *peer,
    ]


def one(family: str, structure: str, clients: int, arms: int, dim: int, seed: int, limit: float) -> Instance:
    """Measure one instance."""
    problem = getattr(od.DesignProblem, structure)(features(family, clients, arms, dim, seed))
    patience = 3 * od.solve(problem, tol=TOL).seconds + 0.01
    ours = race(
        problem,
        {
            m: lambda m=m: od.solve(problem, tol=TOL, method=m, time_limit=patience).weights
            for m in ("auto", *SINGLE)
        },
    )
    single = {m: ours[m].seconds if ours[m].gap <= TOL else np.inf for m in SINGLE}
    peer, stopped = cvxpy(problem, float(np.clip(limit * ours["auto"].seconds, *SECONDS)))
    return Instance(ours["auto"], single, peer, stopped)


def cvxpy(problem: od.DesignProblem, limit: float) -> tuple[Measured, bool]:
    """The better of two runs of the first form that works; and whether it was stopped at the limit."""
    for form in ("auto", "primal"):  # auto is the dual, but for small problems
        try:
            runs = [_timed(problem, form, limit)]
            if runs[0][0] < 2:
                runs.append(_timed(problem, form, limit))
        except Exception as error:
            print(f"cvxpy failed ({form}): {error}", file=sys.stderr)
            continue
        seconds, result = min(runs, key=lambda run: run[0])
        return Measured(seconds, gap_of(problem, result.weights)), seconds > limit and not result.converged
    return Measured(np.nan, np.nan), False


class StartedWorker(Worker):
    """A process that has solved a small problem, and that the next problem takes over."""

    def start(self) -> None:
        """Start the process if there is none, or if the last one was ended at its time limit."""
        if self.process is None or self.process.poll() is not None:
            self.run("primal", reduce(od.DesignProblem(np.eye(2))), "CLARABEL", {})

    def __exit__(self, *_: object) -> None:
        """Keep the process."""


WORKER = StartedWorker()


def _timed(problem: od.DesignProblem, form: str, limit: float) -> tuple[float, od.DesignResult]:
    WORKER.start()
    began = time.perf_counter()
    result = od.reference.solve(problem, form=form, time_limit=limit)
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
