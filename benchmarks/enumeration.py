"""Small problems and their best whole runs by enumeration, for benchmarks and tests."""

from __future__ import annotations

import itertools
import math

import numpy as np

import optdesign as od


def drawn(seed: int) -> od.DesignProblem:
    """Draw a problem of at most 30 candidates and 8 runs, few enough to enumerate."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    runs, size = int(rng.integers(d, 9)), int(rng.integers(d + 1, 31))
    while math.comb(size + runs - 1, runs) > 100_000:
        size -= 1
    x = rng.normal(size=(size, d)) if seed % 2 else rng.integers(-2, 3, size=(size, d)).astype(float)
    x[:d] += 3 * np.eye(d)
    return od.DesignProblem(x, budgets=runs)


def largest_log_det(problem: od.DesignProblem) -> float:
    """Return the largest log det of all whole runs of one group and parameter block, by enumeration."""
    every = itertools.combinations_with_replacement(range(problem.n_candidates), int(problem.budgets[0]))
    best = -math.inf
    while len(part := np.array(list(itertools.islice(every, 20_000)))):
        x = problem.candidates[part]
        sign, logs = np.linalg.slogdet(x.transpose(0, 2, 1) @ x)
        best = max(best, float(logs[sign > 0].max(initial=-math.inf)))
    return best
