"""Time and gap of one job, measured the same way for everyone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import optdesign as od
from optdesign.runtime import tiers

tiers.enabled = False  # machine code is measured, also if none is on disk yet


WIDEST = 400
"""Characters in a line of a table: no column is ever cut."""


class Measured(NamedTuple):
    """Median seconds, and the certified relative gap of what came out (NaN: failed)."""

    seconds: float
    gap: float

    def __str__(self) -> str:
        return "failed" if np.isnan(self.gap) else f"{duration(self.seconds)} ({self.gap:.0e})"


def measure(problem: od.DesignProblem, job: Callable[[], np.ndarray], repeats: int = 3) -> Measured:
    """Run a job that returns weights: once to warm up, then for the median; quick jobs run more often."""
    try:
        began = time.perf_counter()
        weights = job()
        quick = min(15, int(0.2 / (time.perf_counter() - began)))
        seconds = []
        for _ in range(max(repeats, quick)):
            began = time.perf_counter()
            weights = job()
            seconds.append(time.perf_counter() - began)
        return Measured(statistics.median(seconds), gap_of(problem, weights))
    except Exception as error:
        Console(stderr=True).print(f"[yellow]a job failed: {type(error).__name__}: {error}")
        return Measured(np.nan, np.nan)


def race(problem: od.DesignProblem, jobs: dict[str, Callable[[], np.ndarray]]) -> dict[str, Measured]:
    """Fastest of several runs of each job, taken in turn, so that all meet the same disturbances."""
    weights = {name: job() for name, job in jobs.items()}
    best = dict.fromkeys(jobs, np.inf)
    began = time.perf_counter()
    rounds = 0
    while rounds < 3 or (rounds < 25 and time.perf_counter() - began < 1.0):
        for name, job in jobs.items():
            start = time.perf_counter()
            weights[name] = job()
            best[name] = min(best[name], time.perf_counter() - start)
        rounds += 1
    return {name: Measured(best[name], gap_of(problem, weights[name])) for name in jobs}


def measure_once(problem: od.DesignProblem, job: Callable[[], np.ndarray]) -> Measured:
    """Run a slow job a single time, without warming up."""
    began = time.perf_counter()
    try:
        weights = job()
    except Exception as error:
        Console(stderr=True).print(f"[yellow]a job failed: {type(error).__name__}: {error}")
        return Measured(np.nan, np.nan)
    return Measured(time.perf_counter() - began, gap_of(problem, weights))


def gap_of(problem: od.DesignProblem, weights: np.ndarray) -> float:
    """Relative gap by our certificate, after the weights have been rescaled to the budgets."""
    w = np.maximum(np.asarray(weights, dtype=float).ravel(), 0)
    total = np.bincount(problem.groups, weights=w, minlength=problem.n_groups)
    return od.certify(problem, w * (problem.budgets / total)[problem.groups]).relative_gap


def variance_pass(x: np.ndarray, repeats: int = 5) -> float:
    """Seconds of the fastest of several NumPy passes that compute all variances: X @ L, then row norms."""
    factor = np.linalg.inv(np.linalg.cholesky(x.T @ x))

    def once() -> float:
        began = time.perf_counter()
        y = x @ factor.T
        np.einsum("ij,ij->i", y, y)
        return time.perf_counter() - began

    once()
    return min(once() for _ in range(repeats))


def duration(seconds: float) -> str:
    """Seconds in a readable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def show(title: str, columns: list[str], rows: list[list[object]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    Console(width=WIDEST).print(table)


def bar(name: str, value: float, limit: float, *, at_least: bool) -> bool:
    """Print whether a bar is met."""
    met = value >= limit if at_least else value <= limit
    relation = "at least" if at_least else "at most"
    print(f"{'met    ' if met else 'NOT MET'}  {name}: {value:.4g}, bar {relation} {limit:g}")
    return met
