"""Coordinates in which every block has full rank and is well scaled.

The problem is unchanged when the candidates of a block go through an invertible linear map, and it
only sees the span of each block. So each block gets, once, a basis of that span made of its own
candidates ("pivots"), and every later computation uses the coordinates

    t_n = x_n @ T_b        (rank_b numbers; the pivots of the block become unit vectors, nearly)

in which information matrices are non-singular and pseudo-inverses are inverses. Any T that is one-to-one on
the span gives the same problem, so T need not be exact; what has to be is the product x_n @ T_b, see
:mod:`optdesign.rows`. Pivots are chosen for large volume after multiplication by the root of their budget. So
z_n = sqrt(f_i) t_n stays modest for all candidates, and the information of an optimal design, in which no f_i
g_n exceeds D, has no eigenvalue below 1 / (D r): it is well conditioned whatever the data are.

*The rank decision.* Neither units of columns nor sizes of rows matter. Rows and columns are scaled by the
powers of two that fit log |x_nj| = r_n + c_j best, in the least-squares sense; scaling the data by anything
changes nothing but r and c. Then a candidate counts as outside the span of the pivots chosen so far when its
residual exceeds ``rtol`` times its own norm, and what rounding in the pivots' directions may have made of it.
``Span.margin`` says how close a decision was; :mod:`optdesign.modular` compares it with the exact rank.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optdesign import threads
from optdesign._kernel import kernel
from optdesign.compensated import UNIT
from optdesign.source import Source, read_only

RANK_RTOL = 1e-12
"""A candidate adds a dimension when its residual exceeds this fraction of its own norm."""

CLOSE = 1000.0
"""A rank decision is close when an accepted residual is within this factor of the tolerance."""

FIT_ROUNDS = 8
"""Rounds of the alternating least-squares fit of the scales; one is enough where no entry is zero."""

DIRECTION_ERRORS = 32.0
"""Residuals below this many roundings of the pivots' directions are not believed."""

SMALLEST = -900
"""Rows below this power of two are left out of the basis: their coordinates would overflow."""

LIGHTEST = -400
"""Sizes of rows are told apart down to this power of two below the largest."""

LOG_2 = math.log(2.0)

POOL = 8
"""Candidates per dimension and block in the sample that is tried first."""

MODEST = 256.0
"""Pivots of a sample are taken if no candidate's coordinates, with signs drawn at random, add up to more."""


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
    rtol: float
    """Tolerance of the rank decision."""

    @property
    def close_blocks(self) -> np.ndarray:
        """Blocks whose rank would be lower under a slightly larger tolerance."""
        return np.flatnonzero(_are_close(self.margin, self.rtol))


def find_span(
    source: Source,
    blocks: np.ndarray,
    row_scale: np.ndarray,
    groups: np.ndarray,
    peak: Peaks,
    rtol: float = RANK_RTOL,
) -> Span:
    """Choose a basis for every block out of its candidates.

    ``row_scale[groups[n]]`` multiplies candidate n while pivots are compared, so that the choice suits
    budgets that differ; ``rtol`` is the tolerance of the rank decision. A small pool of rows is tried first:
    where it spans all of R^d in every block, and all candidates have modest coordinates, there is nothing
    more to learn from the others. Otherwise pieces of all candidates play a tournament.
    """
    n, d = source.n_rows, source.dim
    n_blocks = len(peak.value)

    def eliminate(rows: np.ndarray, x: np.ndarray) -> Span:
        span = Span(
            maps=np.zeros((n_blocks, d, d)),
            ranks=np.zeros(n_blocks, np.int64),
            pivots=np.full((n_blocks, d), -1),
            margin=np.zeros((n_blocks, 2)),
            rtol=rtol,
        )
        _eliminate(x, rows, blocks, groups, row_scale, rtol, *span[:4])
        return span

    def chosen(rows: np.ndarray) -> Span:
        return eliminate(rows, read_only(source.take(rows)))

    span: Span | None = None
    if n > 2 * POOL * d * n_blocks:
        span = chosen(_pool(n, n // (POOL * d * n_blocks), peak.row))
        if _may_miss(peak.row, d, span.ranks, span.margin, rtol) or not _is_modest(
            source, blocks, groups, row_scale, span.maps
        ):
            span = None
    if span is None and n <= source.rows_a_piece:
        span = eliminate(np.arange(n), source.piece(0, n))
    elif span is None:
        winners, rejected = [], np.zeros(n_blocks)
        for first, x in source.pieces():
            one = eliminate(np.arange(first, first + len(x)), x)
            winners.append(one.pivots[one.pivots >= 0])
            np.maximum(rejected, one.margin[:, 0], out=rejected)
        span = chosen(np.sort(np.concatenate(winners)))
        np.maximum(rejected, span.margin[:, 0], out=span.margin[:, 0])
    width = max(1, int(np.maximum.reduce(span.ranks)))
    return span if width == d else span._replace(maps=np.ascontiguousarray(span.maps[:, :, :width]))


class Peaks(NamedTuple):
    """Largest absolute entry of every column in every block, and the row that has it (-1: none)."""

    value: np.ndarray
    row: np.ndarray


def scan(source: Source, blocks: np.ndarray, n_blocks: int) -> tuple[Peaks, int]:
    """One pass over the candidates: their peaks, and the first row that is not finite (or -1)."""
    peaks = Peaks(np.zeros((n_blocks, source.dim)), np.full((n_blocks, source.dim), -1))
    for first, x in source.pieces():
        bad = _scan(x, blocks, first, peaks.value, peaks.row)
        if bad >= 0:
            return peaks, bad
    return peaks, -1


def _is_modest(
    source: Source, blocks: np.ndarray, groups: np.ndarray, row_scale: np.ndarray, maps: np.ndarray
) -> bool:
    """Whether no candidate seems to have large coordinates z_n = row_scale x_n @ maps[b].

    At least half of all choices of signs make |sum_k s_k z_k| as large as the largest |z_k|, because
    changing the sign of that one moves the sum by twice as much. Four choices are looked at, so a large
    coordinate is missed with probability 1/16 at most.
    """
    directions = np.zeros((len(maps), source.dim, 4))
    _add_up_with_signs(maps, directions)

    def largest(first: int, last: int) -> float:
        return _largest_sum(source.piece(first, last), blocks, groups, row_scale, first, directions)

    return all(top <= MODEST for top in threads.each(largest, source.n_rows, source.rows_a_piece))


@kernel
def _add_up_with_signs(maps, directions):
    """Add the columns of every map, with four choices of signs, to the directions given as zeros.

    The signs come from a linear congruence.
    """
    d = maps.shape[1]
    state = 1
    for b in range(len(maps)):
        for s in range(4):
            for k in range(maps.shape[2]):
                state = 48_271 * state % 2_147_483_647
                sign = 1.0 if state > 2**30 else -1.0
                for j in range(d):
                    directions[b, j, s] += sign * maps[b, j, k]


@kernel
def _largest_sum(x, blocks, groups, row_scale, first, directions):
    """The largest |row_scale x_n @ v| of a piece, v one of the four directions of its block."""
    n, d = x.shape
    top = 0.0
    for i in range(n):
        v = directions[blocks[first + i]]
        # Four sums side by side, which the processor adds up at once.
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            s0 += x[i, j] * v[j, 0]
            s1 += x[i, j] * v[j, 1]
            s2 += x[i, j] * v[j, 2]
            s3 += x[i, j] * v[j, 3]
        largest = max(max(abs(s0), abs(s1)), max(abs(s2), abs(s3)))
        top = max(top, largest * row_scale[groups[first + i]])
    return top


@kernel
def _scan(x, blocks, first, peak, row):
    """Raise the peaks of every block and column to those of a piece. Overwrites peak and row.

    Returns the first row that is not finite, or -1.
    """
    n, d = x.shape
    for i in range(n):
        b = blocks[first + i]
        for j in range(d):
            a = abs(x[i, j])
            if not a < np.inf:
                return first + i
            if a > peak[b, j] or row[b, j] < 0:
                peak[b, j] = a
                row[b, j] = first + i
    return -1


@kernel
def _pool(n, stride, peak_row):
    """Every stride-th candidate, and those that have a peak."""
    out = np.empty((n + stride - 1) // stride + peak_row.size, np.int64)
    count = 0
    for i in range(0, n, stride):
        out[count] = i
        count += 1
    for b in range(len(peak_row)):
        for j in range(peak_row.shape[1]):
            if peak_row[b, j] >= 0:
                out[count] = peak_row[b, j]
                count += 1
    return out[:count]


@kernel
def _may_miss(peak_row, d, ranks, margin, rtol):
    """Tell whether more candidates could change the rank of some block that has any, or make it clearer."""
    close = _are_close(margin, rtol)
    unsure = 0
    for b in range(len(ranks)):
        unsure += peak_row[b, 0] >= 0 and (ranks[b] < d or close[b])
    return unsure > 0


@kernel
def _are_close(margin, rtol):
    """Tell for every block whether its smallest accepted residual is near rtol."""
    return margin[:, 1] < rtol * CLOSE


@kernel
def _eliminate(x, candidates, blocks, groups, row_scale, rtol, maps, ranks, pivots, margin):
    """Householder elimination with row pivoting among some candidates, whose rows are x, block by block.

    Overwrites maps T, ranks, pivots (candidates) and margins, given as zeros, and pivots as -1. With Q the
    product of the reflections and R the (lower triangular) pivot rows after them, T = Q[:, :rank] R^-1, for
    rows and columns that are scaled; T then takes the scales in.
    """
    n, d, n_blocks = len(candidates), x.shape[1], len(ranks)
    start = np.empty(n_blocks + 1, np.int64)
    for b in range(n_blocks + 1):
        start[b] = 0
    for c in candidates:
        start[blocks[c] + 1] += 1
    for b in range(n_blocks):
        start[b + 1] += start[b]
    fill = np.empty(n_blocks, np.int64)
    for b in range(n_blocks):
        fill[b] = start[b]
    y = np.empty((n, d))
    origin = np.empty(n, np.int64)
    for k in range(n):
        c = candidates[k]
        i = fill[blocks[c]]
        fill[blocks[c]] += 1
        origin[i] = c
        for j in range(d):
            y[i, j] = x[k, j]

    size, column = np.empty(n), np.empty(d)
    norm, doubt, weight = np.empty(n), np.empty(n), np.empty(n)
    v, q = np.empty(d), np.empty((d, d))
    at = np.empty(d, np.int64)
    for b in range(n_blocks):
        lo, hi = start[b], start[b + 1]
        _equilibrate(y, lo, hi, size, column)
        largest = -np.inf
        for i in range(lo, hi):
            norm[i], doubt[i] = 0.0, 0.0
            for j in range(d):
                norm[i] += y[i, j] * y[i, j]
            size[i] += math.log2(row_scale[groups[origin[i]]])
            largest = max(largest, size[i])
        for i in range(lo, hi):
            weight[i] = _power_of_two(2.0 * max(size[i] - largest, LIGHTEST))
        margin[b, 1] = np.inf
        for i in range(d):
            for j in range(d):
                q[i, j] = 1.0 if i == j else 0.0
        for k in range(d):
            best, best_volume, best_value, rejected = -1, 0.0, 0.0, 0.0
            for i in range(lo, hi):
                value = 0.0
                for j in range(k, d):
                    value += y[i, j] * y[i, j]
                if value == 0.0:
                    continue
                if value > rtol * rtol * norm[i] and value > doubt[i] and size[i] > SMALLEST:
                    if value * weight[i] > best_volume:
                        best, best_volume, best_value = i, value * weight[i], value
                else:
                    rejected = max(rejected, np.sqrt(value / norm[i]))
            if best < 0:
                margin[b, 0] = rejected
                break
            relative = np.sqrt(best_value / norm[best])
            margin[b, 1] = min(margin[b, 1], relative)
            pivots[b, k] = origin[best]
            at[k] = best
            ranks[b] += 1
            diagonal = -np.sqrt(best_value) if y[best, k] > 0.0 else np.sqrt(best_value)
            for j in range(k, d):
                v[j] = y[best, j]
            v[k] -= diagonal
            beta = 1.0 / (best_value - diagonal * y[best, k])
            error = DIRECTION_ERRORS * UNIT / relative
            for i in range(lo, hi):
                _reflect(y, i, v, beta, k)
                doubt[i] += (error * y[i, k]) * (error * y[i, k])
            for i in range(d):
                _reflect(q, i, v, beta, k)
            y[best, k] = diagonal
            for j in range(k + 1, d):
                y[best, j] = 0.0
        r = ranks[b]
        for i in range(d):
            for j in range(r - 1, -1, -1):
                t = q[i, j]
                for k in range(j + 1, r):
                    t -= maps[b, i, k] * y[at[k], j]
                maps[b, i, j] = t / y[at[j], j]
            for j in range(r):
                maps[b, i, j] *= _power_of_two(-(column[i] + size[at[j]]))


@kernel
def _equilibrate(y, lo, hi, size, column):
    """Divide rows lo .. hi - 1 and columns by powers of two.

    They are 2^column_j, then 2^size_n for a row peak in [1/2, 1).

    Overwrites y, size and column. The columns' exponents are those of the least-squares fit
    log2 |y_nj| = r_n + c_j over the entries that are not zero, logarithms rounded up to whole numbers, by
    alternating between r and c.
    """
    d = y.shape[1]
    for j in range(d):
        column[j] = 0.0
    if d > 1:
        sums, counts = np.empty(d), np.empty(d)
        for _ in range(FIT_ROUNDS):
            for j in range(d):
                sums[j], counts[j] = 0.0, 0.0
            for i in range(lo, hi):
                mean, count = 0.0, 0
                for j in range(d):
                    if y[i, j] != 0.0:
                        mean += math.frexp(y[i, j])[1] - column[j]
                        count += 1
                for j in range(d):
                    if y[i, j] != 0.0:
                        sums[j] += math.frexp(y[i, j])[1] - mean / count
                        counts[j] += 1.0
            moved = 0.0
            for j in range(d):
                if counts[j] > 0.0:
                    moved = max(moved, abs(sums[j] / counts[j] - column[j]))
                    column[j] = sums[j] / counts[j]
            if moved < 0.5:
                break
    for j in range(d):
        column[j] = np.rint(column[j])
    for i in range(lo, hi):
        peak = -10_000
        for j in range(d):
            if y[i, j] != 0.0:
                peak = max(peak, math.frexp(y[i, j])[1] - int(column[j]))
        size[i] = peak
        for j in range(d):
            if y[i, j] != 0.0:
                y[i, j] = math.ldexp(y[i, j], -(peak + int(column[j])))


@kernel
def _power_of_two(x):
    """2^x, exactly if x is whole. As ``2.0**x`` compilers and Python differ in the last digit."""
    whole = math.floor(x)
    return math.ldexp(math.exp((x - whole) * LOG_2), whole)


@kernel
def _reflect(a, i, v, beta, k):
    """Apply the Householder reflection I - beta v v' to a[i, k:]. Overwrites a."""
    dot = 0.0
    for j in range(k, a.shape[1]):
        dot += a[i, j] * v[j]
    dot *= beta
    for j in range(k, a.shape[1]):
        a[i, j] -= dot * v[j]
