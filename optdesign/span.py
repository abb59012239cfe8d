"""Coordinates in which every block has full rank and is well scaled.

The problem is unchanged when the candidates of a block go through an invertible linear map, and it
only sees the span of each block. So each block gets, once, a basis of that span made of its own
candidates ("pivots"), and every later computation uses the coordinates

    t_n = x_n @ T_b        (rank_b numbers; the pivots of the block become unit vectors)

in which information matrices are non-singular, pseudo-inverses are inverses, and vectors whose norms
differ by many orders of magnitude cost no digits that the data do not already lack.

The rank decision is relative to each candidate: it counts as outside the span of the pivots chosen so
far when its residual exceeds ``RANK_RTOL`` times its own norm. Columns are equilibrated first, so the units
of features do not matter while their sizes are within five orders of magnitude of each other, and matter
little within ten; a column smaller than that beside others cannot be told from rounding noise.
``Span.margin`` says how close a decision was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign._kernel import kernel

RANK_RTOL = 1e-10
"""A candidate adds a dimension when its residual exceeds this fraction of its own norm."""

CLOSE_RTOL = (1e-13, 1e-7)
"""Residuals, relative to the candidate, between these bounds make a rank decision close."""

COLUMN_FLOOR = 2.0**-17
"""Columns are scaled to unit peak, but never by more than this ratio to the block's largest column,
so that a column of rounding noise stays noise."""

CHUNK = 1 << 15
"""Candidates worked on at a time."""

POOL = 8
"""Candidates per dimension and block in the sample that is tried first."""


class Span(NamedTuple):
    """A basis of the span of every block; see the module's docstring."""

    maps: np.ndarray
    """T, shape (n_blocks, d, max rank): coordinates are ``x @ maps[b]``, zero-padded."""
    ranks: np.ndarray
    """Rank of each block."""
    pivots: np.ndarray
    """Candidate indices of the basis, shape (n_blocks, d), -1 beyond the rank."""
    margin: np.ndarray
    """Shape (n_blocks, 2): largest rejected and smallest accepted relative residual."""

    @property
    def close_blocks(self) -> np.ndarray:
        """Blocks whose rank would change under a slightly different tolerance."""
        return np.flatnonzero(_are_close(self.margin))


def find_span(
    x: np.ndarray,
    blocks: np.ndarray,
    row_scale: np.ndarray,
    groups: np.ndarray,
    peak: Peaks,
    rtol: float = RANK_RTOL,
) -> Span:
    """Choose a basis for every block out of its candidates.

    ``row_scale[groups[n]]`` multiplies candidate n while pivots are compared, so that the choice suits
    budgets that differ; ``rtol`` is the tolerance of the rank decision. A small pool of rows is tried first:
    where it spans all of R^d in every block there is nothing more to learn from the others. Otherwise chunks
    of all candidates play a tournament.
    """
    n, d = x.shape
    n_blocks = len(peak.value)
    column = _column_scales(peak.value)

    def eliminate(rows: np.ndarray) -> Span:
        span = Span(
            maps=np.zeros((n_blocks, d, d)),
            ranks=np.zeros(n_blocks, np.int64),
            pivots=np.full((n_blocks, d), -1),
            margin=np.zeros((n_blocks, 2)),
        )
        _eliminate(x, rows, blocks, groups, row_scale, column, rtol, *span)
        return span

    span: Span | None = None
    if n > 2 * POOL * d * n_blocks:
        span = eliminate(_pool(n, n // (POOL * d * n_blocks), peak.row))
    if span is None or _may_miss(peak.row, d, span.ranks, span.margin):
        winners = [eliminate(np.arange(i, min(i + CHUNK, n))) for i in range(0, n, CHUNK)]
        span = winners[0]
        if len(winners) > 1:
            pool = np.unique(np.concatenate([w.pivots.ravel() for w in winners]))
            span = eliminate(pool[pool >= 0])
    width = max(1, int(span.ranks.max()))
    _mark_tiny_columns(peak.value, span.margin)
    return span._replace(maps=np.ascontiguousarray(span.maps[:, :, :width]))


class Peaks(NamedTuple):
    """Largest absolute entry of every column in every block, and the row that has it (-1: none)."""

    value: np.ndarray
    row: np.ndarray


def scan(x: np.ndarray, blocks: np.ndarray, n_blocks: int) -> tuple[Peaks, int]:
    """One pass over the candidates: their peaks, and the first row that is not finite (or -1)."""
    d = x.shape[1]
    peaks = Peaks(np.zeros((n_blocks, d)), np.full((n_blocks, d), -1))
    return peaks, _scan(x, blocks, peaks.value, peaks.row)


@kernel
def log_volume(x, groups, row_scale, pivots, ranks):
    """Sum over blocks of log det(P P'), P the pivots times their row scales, by Gram-Schmidt."""
    d = x.shape[1]
    p = np.empty((d, d))
    total = 0.0
    for b in range(len(ranks)):
        for k in range(ranks[b]):
            # Rows are scaled to unit peak, so that no square leaves the range of floating point.
            peak = 0.0
            for j in range(d):
                p[k, j] = x[pivots[b, k], j]
                peak = max(peak, abs(p[k, j]))
            for j in range(d):
                p[k, j] /= peak
            for _ in range(2):  # twice is enough
                for m in range(k):
                    dot = 0.0
                    for j in range(d):
                        dot += p[k, j] * p[m, j]
                    for j in range(d):
                        p[k, j] -= dot * p[m, j]
            norm = 0.0
            for j in range(d):
                norm += p[k, j] * p[k, j]
            norm = np.sqrt(norm)
            for j in range(d):
                p[k, j] /= norm
            total += 2.0 * (np.log(norm) + np.log(peak) + np.log(row_scale[groups[pivots[b, k]]]))
    return total


@kernel
def _scan(x, blocks, peak, row):
    """Find the peaks of every block and column. Overwrites peak and row."""
    n, d = x.shape
    for i in range(n):
        b = blocks[i]
        for j in range(d):
            a = abs(x[i, j])
            if not a < np.inf:
                return i
            if a > peak[b, j] or row[b, j] < 0:
                peak[b, j] = a
                row[b, j] = i
    return -1


@kernel
def _pool(n, stride, peak_row):
    """Every stride-th candidate, and those that have a peak."""
    sample = np.arange(0, n, stride)
    out = np.empty(len(sample) + peak_row.size, np.int64)
    out[: len(sample)] = sample
    count = len(sample)
    for b in range(len(peak_row)):
        for j in range(peak_row.shape[1]):
            if peak_row[b, j] >= 0:
                out[count] = peak_row[b, j]
                count += 1
    return out[:count]


@kernel
def _may_miss(peak_row, d, ranks, margin):
    """Tell whether more candidates could change the rank of some block that has any, or make it clearer."""
    close = _are_close(margin)
    unsure = 0
    for b in range(len(ranks)):
        unsure += peak_row[b, 0] >= 0 and (ranks[b] < d or close[b])
    return unsure > 0


@kernel
def _are_close(margin):
    """Tell for every block whether its largest rejected or smallest accepted residual is near RANK_RTOL."""
    return (margin[:, 0] > CLOSE_RTOL[0]) | (margin[:, 1] < CLOSE_RTOL[1])


@kernel
def _mark_tiny_columns(peak, margin):
    """Make a close decision of every block that has a column, not zero, too small to be told from noise.

    Overwrites margin: what was lost with such a column the residuals do not say.
    """
    for b in range(len(peak)):
        floor = COLUMN_FLOOR * RANK_RTOL * 1e5 * peak[b].max()
        for j in range(peak.shape[1]):
            if 0.0 < peak[b, j] < floor:
                margin[b, 0] = RANK_RTOL


@kernel
def _column_scales(peak):
    """Powers of two near the peak of every block and column, not below COLUMN_FLOOR times the largest."""
    out = np.ones_like(peak)
    for b in range(len(peak)):
        tallest = peak[b].max()
        for j in range(peak.shape[1]):
            if tallest > 0.0:
                out[b, j] = 2.0 ** np.ceil(np.log2(max(peak[b, j], COLUMN_FLOOR * tallest)))
    return out


@kernel
def write_coordinates(x, blocks, rows, maps, out):
    """Overwrite out with the coordinates ``x_n @ maps[block of n]`` of some candidates."""
    for i in range(len(rows)):
        n = rows[i]
        b = blocks[n]
        for k in range(maps.shape[2]):
            t = 0.0
            for j in range(x.shape[1]):
                t += x[n, j] * maps[b, j, k]
            out[i, k] = t


@kernel
def _eliminate(x, candidates, blocks, groups, row_scale, column, rtol, maps, ranks, pivots, margin):
    """Householder elimination with row pivoting among some candidates, block by block.

    Overwrites maps T, ranks, pivots (candidates) and margins, given as zeros, and pivots as -1. With Q the
    product of the reflections and R the (lower triangular) pivot rows after them, T = Q[:, :rank] R^-1, for
    rows that are multiplied by their row scale and divided by the column scales.
    """
    n, d, n_blocks = len(candidates), x.shape[1], len(column)
    start = np.zeros(n_blocks + 1, np.int64)
    for c in candidates:
        start[blocks[c] + 1] += 1
    for b in range(n_blocks):
        start[b + 1] += start[b]
    fill = start[:-1].copy()
    y = np.empty((n, d))
    norm = np.zeros(n)
    origin = np.empty(n, np.int64)
    for c in candidates:
        b = blocks[c]
        i = fill[b]
        fill[b] += 1
        origin[i] = c
        for j in range(d):
            y[i, j] = x[c, j] * row_scale[groups[c]] / column[b, j]
            norm[i] += y[i, j] * y[i, j]

    v = np.empty(d)
    at = np.empty(d, np.int64)
    for b in range(n_blocks):
        margin[b, 1] = np.inf
        q = np.eye(d)
        for k in range(d):
            best, best_value, best_relative = -1, 0.0, 0.0
            for i in range(start[b], start[b + 1]):
                value = 0.0
                for j in range(k, d):
                    value += y[i, j] * y[i, j]
                if value > 0.0:
                    relative = np.sqrt(value / norm[i])
                    best_relative = max(best_relative, relative)
                    if relative > rtol and value > best_value:
                        best, best_value = i, value
            if best < 0:
                margin[b, 0] = best_relative
                break
            margin[b, 1] = min(margin[b, 1], best_relative)
            pivots[b, k] = origin[best]
            at[k] = best
            ranks[b] += 1
            diagonal = -np.sqrt(best_value) if y[best, k] > 0.0 else np.sqrt(best_value)
            for j in range(k, d):
                v[j] = y[best, j]
            v[k] -= diagonal
            beta = 1.0 / (best_value - diagonal * y[best, k])
            for i in range(start[b], start[b + 1]):
                _reflect(y, i, v, beta, k)
            for i in range(d):
                _reflect(q, i, v, beta, k)
            y[best, k] = diagonal
            y[best, k + 1 :] = 0.0
        r = ranks[b]
        for i in range(d):
            for j in range(r - 1, -1, -1):
                t = q[i, j]
                for k in range(j + 1, r):
                    t -= maps[b, i, k] * y[at[k], j]
                maps[b, i, j] = t / y[at[j], j]
            for j in range(r):
                maps[b, i, j] /= column[b, i]


@kernel
def _reflect(a, i, v, beta, k):
    """Apply the Householder reflection I - beta v v' to a[i, k:]. Overwrites a."""
    dot = 0.0
    for j in range(k, a.shape[1]):
        dot += a[i, j] * v[j]
    dot *= beta
    for j in range(k, a.shape[1]):
        a[i, j] -= dot * v[j]
