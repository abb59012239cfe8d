"""Every instance family, disjoint and shared: our time and gap beside cvxpy's.

python benchmarks/suite.py [--seeds 1] [--clients 30 100 1000] [--peers 2000]

``--peers`` is the number of candidates up to which cvxpy is run on every family; above it cvxpy is run only
where it finishes in reasonable time (up to ten times that, once).
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import time

import numpy as np
from harness import Measured, bar, measure, measure_once, race, show
from instances import FAMILIES, features

import optdesign as od

TOL = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--clients", type=int, nargs="+", default=[30, 100, 1000])
    parser.add_argument("--peers", type=int, default=3000)
    args = parser.parse_args()
    began = time.perf_counter()
    rows: list[list[object]] = []
    gaps: list[float] = []
    ratios: list[float] = []
    versus_best: list[float] = []
    for clients in args.clients:
        for arms in (10, 30):
            for dim in (3, 10):
                for family in FAMILIES:
                    for structure in ("disjoint", "shared"):
                        measured = [
                            one(family, structure, clients, arms, dim, seed, args.peers if seed == 0 else 0)
                            for seed in range(args.seeds)
                        ]
                        auto, single, peer = measured[0]
                        gaps += [m[0].gap for m in measured]
                        row = [f"{family} {structure} M={clients} K={arms} d={dim}", auto]
                        row += [f"{name} {m}" for name, m in single.items()]
                        ratio = ""
                        if peer is not None and not np.isnan(peer.gap):
                            ratio = f"{peer.seconds / auto.seconds:.0f}"
                            if clients >= 100:
                                ratios.append(peer.seconds / auto.seconds)
                        versus_best.append(
                            auto.seconds / min([auto.seconds, *(m.seconds for m in single.values())])
                        )
                        rows.append([*row, peer or "-", ratio])
    show(
        f"Relative gap {TOL:g}, single thread: time (certified relative gap)",
        ["instance", "auto", "bca", "newton", "cvxpy", "times ours"],
        rows,
    )
    bar("largest relative gap over all instances", float(np.max(gaps)), TOL, at_least=False)
    if ratios:
        bar("smallest ratio to cvxpy + Clarabel, M >= 100", min(ratios), 10, at_least=True)
        bar("median ratio to cvxpy + Clarabel, M >= 100", float(np.median(ratios)), 30, at_least=True)
    bar("auto over the best single method, worst row", max(versus_best), 2, at_least=False)
    print(f"({len(gaps)} instances, {time.perf_counter() - began:.0f} s)")


def one(
    family: str, structure: str, clients: int, arms: int, dim: int, seed: int, peers: int
) -> tuple[Measured, dict[str, Measured], Measured | None]:
    make = getattr(od.DesignProblem, structure)
    problem = make(features(family, clients, arms, dim, seed))
    if not peers:
        return measure(problem, lambda: od.solve(problem, tol=TOL).weights, repeats=1), {}, None
    limit = 3 * od.solve(problem, tol=TOL).seconds + 0.01
    single = race(
        problem,
        {
            m: lambda m=m: od.solve(problem, tol=TOL, method=m, time_limit=limit).weights
            for m in ("auto", "bca", "newton")
        },
    )
    auto = single.pop("auto")
    for name, m in single.items():
        if m.gap > TOL:
            single[name] = Measured(np.inf, m.gap)
    peer = None
    if problem.n_candidates <= peers:
        peer = measure(problem, lambda: od.reference.solve(problem).weights, repeats=1)
    elif problem.n_candidates * dim <= 10 * peers:
        peer = measure_once(problem, lambda: od.reference.solve(problem).weights)
    return auto, single, peer


if __name__ == "__main__":
    main()
