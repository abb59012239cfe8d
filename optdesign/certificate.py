"""The proof that comes with every answer.

For weights w >= 0 whose blocks have full rank, with variances g_n = x_n' U_b^+ x_n, the trace identity
sum_n w_n g_n = D and the concavity of F(w) = sum_b log Det U_b give, for the optimum w*,

    F(w*) - F(w) <= sum_n g_n (w*_n - w_n) <= sum_i f_i max_{n in i} g_n - D = G(w) - D =: gap,

so the D-efficiency exp((F(w) - F(w*)) / D) is at least exp(-gap / D). The gap is zero exactly at the
optimum (Lemma "Generalized version" of the paper's appendix). Only the weights are needed, so a
certificate can be given for a design of any origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from optdesign._kernel import kernel
from optdesign.information import SINGULAR_RTOL, factorise
from optdesign.problem import DesignProblem, floats, read_only
from optdesign.span import write_coordinates

TILE = 64
VARIANCE_CHUNK = 4096
"""Candidates worked on side by side, and candidates sorted by block at a time: they fit the caches."""

FEASIBILITY_RTOL = 1e-6
ROUNDING_RTOL = 1e-12
"""Weights may miss a group's budget, or be negative, by the first fraction of the budget and no more; above
the second they are rescaled before they are certified."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the weights prove; see the module's docstring."""

    gap: float
    """G - D: bounds how far log Det is from its maximum. Infinite if the weights lose rank."""
    relative_gap: float
    """gap / rank."""
    efficiency: float
    """Lower bound exp(-gap / rank) on the D-efficiency, between 0 and 1."""
    g_value: float
    """G, the sum over groups of budget times largest variance."""
    log_det: float
    """F, the sum over blocks of the log pseudo-determinant of the information."""
    rank: int
    """D, the sum over blocks of the rank of their candidates."""
    variances: np.ndarray = field(repr=False)
    """g_n for every candidate."""


def certify(problem: DesignProblem, weights: ArrayLike) -> Certificate:
    """Certify any weights of a problem, wherever they come from.

    Weights must be finite, non-negative and sum to each group's budget; where they miss that by a millionth
    or less, as those of convex solvers do, the certificate is that of the weights clipped and rescaled.
    If their support does not span every block the gap is infinite and the efficiency zero.

    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    >>> od.certify(p, [0.5, 0.5, 0.0]).gap
    0.0
    """
    w = _feasible(problem, weights)
    information = information_matrices(problem, w)
    factor = np.zeros_like(information)
    log_det = factorise(information, problem.ranks, factor)
    g, largest = all_variances(problem, factor)
    for b in np.flatnonzero(np.isneginf(log_det)):
        _singular_variances(problem, int(b), information[b], g, largest)
    g_value = float(problem.budgets @ largest)
    rank = problem.rank
    gap = max(0.0, g_value - rank)
    return Certificate(
        gap=gap,
        relative_gap=gap / rank,
        efficiency=float(np.exp(-gap / rank)),
        g_value=g_value,
        log_det=float(log_det.sum()) + problem.log_volume,
        rank=rank,
        variances=read_only(g),
    )


def information_matrices(
    problem: DesignProblem, weights: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Information of every block in the coordinates of its span, lower triangles, (n_blocks, r, r).

    ``weights`` belong to the candidates ``rows``, by default to all.
    """
    width = problem.span.maps.shape[2]
    information = np.zeros((problem.n_blocks, width, width))
    if rows is None:
        rows = np.flatnonzero(weights)
        weights = weights[rows]
    _add_information(
        problem.candidates, problem.blocks, problem.span.maps, problem.ranks, rows, weights, information
    )
    return information


def all_variances(
    problem: DesignProblem, factor: np.ndarray, *, quick: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Variance of every candidate and the largest in every group, in one pass over the data.

    ``factor`` holds L^-1 of the information of every block. ``quick`` multiplies it with the map to
    coordinates first, which saves a third of the work, and digits where the candidates are badly scaled.
    """
    g = np.empty(problem.n_candidates)
    largest = np.zeros(problem.n_groups)
    maps = problem.span.maps
    if quick:
        maps = _composed(maps, problem.ranks, factor)
    _variances(
        problem.candidates, problem.blocks, problem.groups, maps, problem.ranks, factor, quick, g, largest
    )
    return g, largest


def _feasible(problem: DesignProblem, weights: ArrayLike) -> np.ndarray:
    """Check weights; return a copy without negligible negatives, rescaled where a budget is missed."""
    w = floats(weights, "weights")
    if w.shape != (problem.n_candidates,):
        raise ValueError(
            f"weights must have one entry per candidate, shape ({problem.n_candidates},); got {w.shape}. "
            "Pass them in the order of the candidates."
        )
    w = np.array(w, order="C")
    total = np.zeros(problem.n_groups)
    bad, low, i, excess = _clean(w, problem.groups, problem.budgets, total)
    if bad >= 0:
        raise ValueError(f"weights must be finite; weights[{bad}] = {w[bad]}. Replace it by 0.")
    if low >= 0:
        raise ValueError(
            f"weights must not be negative; weights[{low}] = {w[low]:g}. Clip it and rescale its group."
        )
    if excess > FEASIBILITY_RTOL:
        raise ValueError(
            f"weights must sum to the budget of each group; group {i} sums to {total[i]:g}, its budget is "
            f"{problem.budgets[i]:g}. Rescale its weights, or build the problem with that budget."
        )
    if excess > ROUNDING_RTOL:
        w *= (problem.budgets / total)[problem.groups]
    return w


def _singular_variances(
    problem: DesignProblem, b: int, information: np.ndarray, g: np.ndarray, largest: np.ndarray
) -> None:
    """Variances of a block whose weights lose rank: infinite outside their range. Overwrites g, largest."""
    rank = problem.ranks[b]
    rows = np.flatnonzero(problem.blocks == b)
    t = problem.coordinates(rows)[:, :rank]
    values, vectors = np.linalg.eigh(information[:rank, :rank], UPLO="L")
    keep = values > SINGULAR_RTOL * rank * max(values[-1], 0.0)
    inside = t @ vectors[:, keep]
    outside = np.linalg.norm(t @ vectors[:, ~keep], axis=1)
    lost = outside > np.sqrt(SINGULAR_RTOL) * np.linalg.norm(t, axis=1)
    g[rows] = np.where(lost, np.inf, np.sum(inside**2 / values[keep], axis=1))
    largest[:] = 0.0
    np.maximum.at(largest, problem.groups, g)


@kernel
def _add_information(x, blocks, maps, ranks, rows, weights, information):
    """Add w t t' of some candidates to the lower triangles of their blocks. Overwrites information."""
    t = np.empty((min(len(rows), TILE), maps.shape[2]))
    for start in range(0, len(rows), TILE):
        part = rows[start : start + TILE]
        write_coordinates(x, blocks, part, maps, t)
        for n in range(len(part)):
            b = blocks[part[n]]
            for i in range(ranks[b]):
                c = weights[start + n] * t[n, i]
                for j in range(i + 1):
                    information[b, i, j] += c * t[n, j]


@kernel
def _composed(maps, ranks, factor):
    """T L^-T of every block."""
    out = np.zeros_like(maps)
    for b in range(len(ranks)):
        for i in range(maps.shape[1]):
            for k in range(ranks[b]):
                for j in range(k + 1):
                    out[b, i, k] += maps[b, i, j] * factor[b, k, j]
    return out


@kernel
def _variances(x, blocks, groups, maps, ranks, factor, quick, out, largest):
    """Overwrite out with g_n = |L^-1 T' x_n|^2, and raise largest[i] to the maximum of group i.

    With quick, maps hold T L^-T already. TILE candidates of a block are worked on at a time. They lie side
    by side in memory, so the inner loops run over them.
    """
    n, d = x.shape
    end = np.zeros(len(ranks) + 1, np.int64)
    rows = np.empty(VARIANCE_CHUNK, np.int64)
    tile = np.empty((d, TILE))
    t = np.empty((maps.shape[2], TILE))
    y, g = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, VARIANCE_CHUNK):
        stop = min(start + VARIANCE_CHUNK, n)
        _sort_by_block(blocks, start, stop, end, rows)
        for b in range(len(ranks)):
            for lo in range(end[b], end[b + 1], TILE):
                m = min(TILE, end[b + 1] - lo)
                for i in range(m):
                    for j in range(d):
                        tile[j, i] = x[rows[lo + i], j]
                g[:m] = 0.0
                for k in range(ranks[b]):
                    t[k, :m] = 0.0
                    for j in range(d):
                        c = maps[b, j, k]
                        for i in range(m):
                            t[k, i] += c * tile[j, i]
                    y[:m] = t[k, :m]
                    if not quick:
                        y[:m] = 0.0
                        for j in range(k + 1):
                            c = factor[b, k, j]
                            for i in range(m):
                                y[i] += c * t[j, i]
                    for i in range(m):
                        g[i] += y[i] * y[i]
                for i in range(m):
                    out[rows[lo + i]] = g[i]
        for i in range(start, stop):
            largest[groups[i]] = max(largest[groups[i]], out[i])


@kernel
def _sort_by_block(blocks, start, stop, end, rows):
    """Write the rows start .. stop - 1 block by block; block b gets end[b] .. end[b + 1] - 1.

    Overwrites end and rows.
    """
    end[:] = 0
    for i in range(start, stop):
        if blocks[i] + 2 < len(end):
            end[blocks[i] + 2] += 1
    for b in range(2, len(end)):
        end[b] += end[b - 1]
    for i in range(start, stop):
        rows[end[blocks[i] + 1]] = i
        end[blocks[i] + 1] += 1


@kernel
def _clean(w, groups, budgets, total):
    """Set negligible negatives to zero and sum up each group. Overwrites w and total.

    Returns the first entry that is not finite and the first that is too negative, or -1; and the group whose
    sum is farthest from its budget, with that distance as a fraction of the budget.
    """
    for n in range(len(w)):
        if not abs(w[n]) < np.inf:
            return n, -1, 0, 0.0
        if w[n] < -FEASIBILITY_RTOL * budgets[groups[n]]:
            return -1, n, 0, 0.0
        w[n] = max(w[n], 0.0)
        total[groups[n]] += w[n]
    farthest, excess = 0, 0.0
    for i in range(len(total)):
        distance = abs(total[i] - budgets[i]) / budgets[i]
        if not distance <= excess:
            farthest, excess = i, distance
    return -1, -1, farthest, excess
