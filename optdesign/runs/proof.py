"""Branch and bound: a proof that whole runs are optimal, or how far they can be from it.

A node is a box lower <= c <= upper. For any invertible matrix A, with g_n = |A x_n|^2,

    log det U(c) <= -2 log |det A| + D log( sum_n c_n g_n / D ),

because log det is concave and homogeneous. The largest sum over the box with the budgets of the groups is
that of a fractional knapsack. A is the inverse of the Cholesky factor of the information of weights in the
box, which exchanges between two candidates improve until the bound is at most the log det of the best runs
known, or no longer falls.

*Round-off.* A is triangular as it is stored, so its determinant is accurate, whatever the condition of the
information is. The errors of x_n and of A x_n are added to g_n, and those of the information of the best runs
are taken off their log det. A box for which A has no correct digits keeps the bound of the box that it is a
part of, unless exact arithmetic shows that no runs in it have full rank.

*Tightening.* If one more run of candidate n lowers the sum so far that the bound is at most the best log det,
no better runs have it. So upper and lower shrink before a node is divided, at a weight that is not whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optdesign.algebra.blocks import accumulate, add_outer, factorise, invert, multiply, variance
from optdesign.numbers.roundoff import UNIT, gamma
from optdesign.problem.problem import DesignProblem
from optdesign.runs.rank_basis import exact_rank
from optdesign.runs.search import SLICE
from optdesign.runtime.jit import kernel

UNPROVED_GAIN = 1e-8
"""Gain of log det that a proof does not exclude."""

MOST_NODES = 200_000
"""Nodes of a proof without a time limit."""

NODE_SWEEPS = 30
"""Most sweeps of exchanges at a node."""


def prove(
    problem: DesignProblem, counts: np.ndarray, stopped: Callable[[], bool]
) -> tuple[np.ndarray, float]:
    """Return the best whole runs found from given ones, and how much larger log det of any runs can be."""
    by_group = np.argsort(problem.groups, kind="stable")
    z, error = (rows[by_group] for rows in _rows(problem))
    groups, runs = problem.groups[by_group], problem.budgets
    d, starts = z.shape[1], np.searchsorted(groups, np.arange(len(runs) + 1))
    most = np.minimum(runs[groups], runs.sum() - d + 1)  # d different candidates have runs
    best = counts[by_group]
    value = _least_log_det(z, error, best)
    if value == -math.inf:
        return counts, math.inf
    nodes, done = [(math.inf, np.zeros(len(z)), most)], 0
    g, weights = np.empty(len(z)), np.empty(len(z))
    left = 0.0
    while nodes:
        bound, lower, upper = nodes.pop()
        if bound <= value + UNPROVED_GAIN:
            continue
        if done >= MOST_NODES or stopped():
            left = max(left, bound - value)
            continue
        done += 1
        if not _fill(groups, runs, lower, upper, weights):
            continue
        box, target, sweeps = (z, error, groups, starts, runs, lower, upper), value + UNPROVED_GAIN, 0
        first, is_bounded = np.flatnonzero(weights), False
        while sweeps < NODE_SWEEPS:
            out = _relax(*box, weights, g, target, NODE_SWEEPS - sweeps, SLICE)
            bound, sweeps = min(bound, out[0]), sweeps + out[3]
            is_bounded = is_bounded or out[0] < math.inf
            if stopped() or not is_bounded:
                break
        if not is_bounded:
            if exact_rank(problem, by_group[first]) == d:
                left = max(left, bound - value)
            continue
        if bound <= value + UNPROVED_GAIN:
            continue
        nearest = np.round(weights)
        if np.array_equal(np.bincount(groups, nearest), runs):
            new = _least_log_det(z, error, nearest)
            if new > value:
                best, value = nearest.astype(np.int64), new
        if out[1] > -math.inf:  # the last weights kept the rank, so g and the sum belong to them
            spare = out[2] - d * math.exp((value + UNPROVED_GAIN - out[1]) / d)
            _tighten(starts, runs, lower, upper, g, spare)
        part = np.where(
            lower < upper, np.minimum(weights - np.floor(weights), np.ceil(weights) - weights), -1
        )
        n = int(np.argmax(part))
        if part[n] < 0:
            if bound > value + UNPROVED_GAIN:  # round-off
                left = max(left, bound - value)
            continue
        cut = min(max(math.floor(weights[n]), lower[n]), upper[n] - 1)
        below, above = upper.copy(), lower.copy()
        below[n], above[n] = cut, cut + 1
        halves = [(bound, lower, below), (bound, above, upper)]
        nodes.extend(halves if weights[n] - cut > 0.5 else halves[::-1])
    counts = np.empty_like(best)
    counts[by_group] = best
    return counts, left


def _rows(problem: DesignProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in which the information of all blocks is one matrix, and bounds on their errors."""
    z, first = problem.coordinates(slice(None)), np.cumsum(problem.ranks) - problem.ranks
    out = np.zeros((2, problem.n_candidates, int(problem.ranks.sum())))
    x = np.abs(problem.source.whole().astype(np.float64))
    for b, rank in enumerate(problem.ranks):
        rows, own = problem.parameter_blocks == b, slice(first[b], first[b] + rank)
        out[0, rows, own] = z[rows, :rank]
        terms = x[rows] @ np.abs(problem.span.maps[b][:, :rank])
        out[1, rows, own] = 2 * UNIT * np.abs(z[rows, :rank]) + gamma(problem.dim + 1) ** 2 * terms
    return out[0], out[1]


def _least_log_det(z: np.ndarray, error: np.ndarray, counts: np.ndarray) -> float:
    """Return a lower bound on log det of the information, -inf if round-off leaves none."""
    d, used = z.shape[1], np.flatnonzero(counts)
    rows, c = z[used], counts[used]
    factor = np.zeros((1, d, d))
    information = ((rows.T * c) @ rows)[None]
    log_det = float(factorise(information, np.array([d]), factor)[0])
    if log_det == -math.inf:
        return log_det
    # The information in coordinates A x, which is the identity up to round-off.
    a = np.tril(factor[0])
    y, spread = rows @ a.T, np.linalg.norm(a, axis=0)
    lost = (gamma(d + 2) * np.abs(rows) + error[used]) @ spread
    length = np.linalg.norm(y, axis=1)
    off = np.linalg.norm((y.T * c) @ y - np.eye(d)) + gamma(len(used) + 4 * d + 16) * float(c @ length**2)
    off += float(c @ (lost * (2 * length + lost)))
    return log_det + d * math.log1p(-off) if off < 0.5 else -math.inf


def _fill(
    groups: np.ndarray, runs: np.ndarray, lower: np.ndarray, upper: np.ndarray, weights: np.ndarray
) -> bool:
    """Overwrite weights with a point inside the box, in proportion. Returns False if the box is empty."""
    low, high = np.bincount(groups, lower, len(runs)), np.bincount(groups, upper, len(runs))
    if np.any(low > runs) or np.any(high < runs):
        return False
    share = (runs - low) / np.maximum(high - low, 1.0)
    weights[:] = lower + share[groups] * (upper - lower)
    return True


def _tighten(
    starts: np.ndarray,
    runs: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    g: np.ndarray,
    spare: float,
) -> None:
    """Shrink a box, of whose largest sum ``spare`` may be lost. Updates lower and upper in place."""
    for i, f in enumerate(runs):
        rows = np.arange(starts[i], starts[i + 1])
        order = rows[np.argsort(-g[rows], kind="stable")]
        filled = np.cumsum(upper[order] - lower[order])
        last = g[order[min(int(np.searchsorted(filled, f - lower[rows].sum())), len(rows) - 1)]]
        gap = np.maximum(np.abs(last - g[rows]), 1e-300)
        steps = np.floor(np.minimum(spare / gap * (1 + 1e-9) + 1e-9, f))
        few, many = g[rows] < last, g[rows] > last
        upper[rows] = np.where(few, np.minimum(upper[rows], lower[rows] + steps), upper[rows])
        lower[rows] = np.where(many, np.maximum(lower[rows], upper[rows] - steps), lower[rows])


@kernel
def _relax(z, error, groups, starts, runs, lower, upper, weights, g, target, sweeps, most):
    """Improve weights in a box until the bound is at most the target. Overwrites weights and g.

    Returns the smallest bound, inf if the first weights lose rank in double precision, log det and the
    largest sum of weights to which g belongs, and the number of sweeps: all if there is nothing left to
    improve, or fewer after some work. The rows of group i are starts[i] .. starts[i + 1] - 1.
    """
    n, d = z.shape
    ranks, blocks = np.array([d]), np.zeros(n, np.int64)
    information, factor, inverse = np.zeros((1, d, d)), np.zeros((1, d, d)), np.zeros((1, d, d))
    y = np.empty(d)
    bound, log_det, total = np.inf, 0.0, 0.0
    left = np.empty(len(runs))
    work = 0.0
    for sweep in range(sweeps):
        information[:] = 0.0
        accumulate(z, blocks, ranks, weights, information)
        log_det = factorise(information, ranks, factor)[0]
        if log_det == -np.inf:
            break
        invert(factor, ranks, inverse)
        now, total = 0.0, 0.0
        left[:] = runs
        for k in range(n):
            lost = 0.0
            for j in range(d):
                lost += math.sqrt(inverse[0, j, j]) * (error[k, j] + gamma(d + 8) * abs(z[k, j]))
            g[k] = (math.sqrt(variance(factor, 0, z, k, d)) + lost) ** 2
            now += weights[k] * g[k]
            total += lower[k] * g[k]
            left[groups[k]] -= lower[k]
        order = np.argsort(-g)
        for k in order:
            more = min(left[groups[k]], upper[k] - lower[k])
            total += more * g[k]
            left[groups[k]] -= more
        bound = min(bound, log_det + d * math.log(total / d))
        if bound <= target or total - now <= 1e-7 * d:
            break
        if sweep == sweeps - 1:
            break
        if work > most:
            return bound, log_det, total, sweep
        work += n * d * d
        u = g.copy()
        for _ in range(n):
            if work > most:
                break
            for i in range(len(runs)):
                up, down = -1, -1
                for k in range(starts[i], starts[i + 1]):
                    if weights[k] < upper[k] and (up < 0 or u[k] > u[up]):
                        up = k
                    if weights[k] > lower[k] and (down < 0 or u[k] < u[down]):
                        down = k
                work += starts[i + 1] - starts[i]
                if work > most:
                    break
                if up < 0 or down < 0 or u[up] <= u[down] * (1.0 + 1e-9):
                    continue
                multiply(inverse[0], z[down], y)
                cross = 0.0
                for j in range(d):
                    cross += y[j] * z[up, j]
                curve = u[up] * u[down] - cross * cross
                step = min(upper[up] - weights[up], weights[down] - lower[down])
                if curve > 0.0:
                    step = min(step, 0.5 * (u[up] - u[down]) / curve)
                for row, change in ((up, step), (down, -step)):
                    own = multiply(inverse[0], z[row], y)
                    scale = change / (1.0 + change * own)
                    if not abs(1.0 + change * own) > 1e-6:
                        break
                    weights[row] = min(max(weights[row] + change, lower[row]), upper[row])
                    for k in range(n):
                        s = 0.0
                        for j in range(d):
                            s += y[j] * z[k, j]
                        u[k] -= scale * s * s
                    add_outer(inverse[0], y, -scale)
                    work += (n + d) * d
    return bound, log_det, total, sweeps
