"""The measured pictures of the docs: certified gap against time, for every method and peer.

python benchmarks/figures.py [--out docs/figures]

Each point is a run of its own to one tolerance: its median time and the certified relative gap it reached.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from harness import Measured, measure, measure_once
from instances import features
from peers import literal_bca, rex, wolfe_atwood

import optdesign as od
from optdesign.examples import authors_features

TOLERANCES = 10.0 ** -np.arange(1, 10)
FLOOR = 1e-13
"""Smaller gaps are drawn here: they are rounding."""
SLOWEST = 2.0
"""Seconds after which a method is not asked for a smaller gap."""
LIMIT = 20.0
"""Seconds after which a run is stopped."""

# Okabe and Ito's palette: distinguishable without colour vision.
STYLE = {
    "auto": ("#000000", "o"),
    "newton": ("#0072B2", "s"),
    "bca": ("#E69F00", "^"),
    "REX": ("#009E73", "v"),
    "Wolfe-Atwood": ("#CC79A7", "D"),
    "the paper's algorithm, literal": ("#D55E00", "x"),
    "cvxpy + Clarabel": ("#56B4E9", "P"),
    "cvxpy + SCS": ("#999999", "X"),
}


def ladder(problem: od.DesignProblem, job: Callable[[float], np.ndarray]) -> list[Measured]:
    """One point per tolerance."""
    job(0.1)
    points: list[Measured] = []
    for tol in TOLERANCES:
        points.append(measure(problem, lambda tol=tol: job(tol), repeats=3))
        if points[-1].seconds > SLOWEST:
            break
    return points


def draw(ax: plt.Axes, title: str, problem: od.DesignProblem, jobs: dict[str, Callable], once: dict) -> None:
    for name, job in jobs.items():
        points = ladder(problem, job)
        _plot(ax, name, points)
    for name, job in once.items():
        _plot(ax, name, [measure_once(problem, job)])
    ax.set(title=title, xscale="log", yscale="log", xlabel="seconds", ylabel="certified relative gap")
    ax.grid(True, which="major", alpha=0.3)


def _plot(ax: plt.Axes, name: str, points: list[Measured]) -> None:
    good = [p for p in points if np.isfinite(p.gap)]
    colour, marker = STYLE[name]
    ax.plot([p.seconds for p in good], [max(p.gap, FLOOR) for p in good], color=colour, marker=marker,
            markersize=5, linewidth=1.2, label=name)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    args = parser.parse_args()
    od.reference.solve(od.DesignProblem(np.eye(2)))  # so that loading cvxpy is not timed
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")

    def ours(problem: od.DesignProblem, *methods: str) -> dict[str, Callable]:
        return {
            m: lambda tol, m=m: od.solve(problem, tol=tol, method=m, time_limit=LIMIT).weights
            for m in methods
        }

    def convex(problem: od.DesignProblem) -> dict[str, Callable]:
        return {
            "cvxpy + Clarabel": lambda: od.reference.solve(problem).weights,
            "cvxpy + SCS": lambda: od.reference.solve(problem, "SCS").weights,
        }

    x = authors_features(100, 10, 3)
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    problem = od.DesignProblem.disjoint(x)
    literal = {"the paper's algorithm, literal": lambda: literal_bca(x, 0.1)}
    title = "authors' instance, disjoint, M=100 K=10 d=3"
    draw(axes[0, 0], title, problem, ours(problem, "bca", "newton", "auto"), convex(problem) | literal)

    problem = od.DesignProblem.disjoint(features("same", 100, 30, 3))
    title = "same features for all arms, disjoint, M=100 K=30 d=3"
    draw(axes[0, 1], title, problem, ours(problem, "bca", "newton", "auto"), convex(problem))

    problem = od.DesignProblem.shared(features("clust", 100, 10, 10))
    title = "clustered features, shared, M=100 K=10 d=10"
    draw(axes[1, 0], title, problem, ours(problem, "bca", "newton", "auto"), convex(problem))

    x = np.random.default_rng(0).normal(size=(100_000, 10))
    problem = od.DesignProblem(x)
    jobs = {"REX": lambda tol: rex(x, tol), "Wolfe-Atwood": lambda tol: wolfe_atwood(x, tol)}
    draw(axes[1, 1], "classical, 100,000 x 10", problem, jobs | ours(problem, "bca", "auto"), {})

    handles: dict[str, object] = {}
    for ax in axes.flat:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    args.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out / "gap-against-time.png", dpi=110)
    print(f"written to {args.out / 'gap-against-time.png'}")


if __name__ == "__main__":
    main()
