"""The rank decision: elimination with row pivoting, after scaling that removes units.

Neither units of columns nor sizes of rows matter. Rows and columns are scaled by the
powers of two that fit log |x_nj| = r_n + c_j best, in the least-squares sense; scaling the data by anything
changes nothing but r and c. Then a candidate counts as outside the span of the pivots chosen so far when its
residual exceeds ``rtol`` times its own norm, and the bound on the round-off of the pivots' directions.

The fit gives every non-zero entry the same weight. Round-off in place of a zero, such as 3 * 0.1 - 0.3, and
its powers in a polynomial model can therefore spoil the scales by many orders of magnitude, and with them the
rank, the choice of the pivots or the digits of their coordinates. Scales from row and column peaks do not
depend on small entries, but are worse where rows and columns are few and of very different sizes. So a block
for which the two scalings differ is eliminated with both.
"""

from __future__ import annotations

import math

import numpy as np

from optdesign.numbers.roundoff import UNIT
from optdesign.problem.coordinates import sort_by_block
from optdesign.runtime.jit import kernel

FIT_ROUNDS = 8
"""Rounds of the alternating least-squares fit of the scales; one is enough where no entry is zero."""

LOG_2 = math.log(2.0)


@kernel
def eliminate(x, candidates, blocks, groups, row_scale, rtol, maps, ranks, pivots, margin):
    """Eliminate among some candidates, whose rows are x, block by block.

    Overwrites maps T, ranks, pivots (candidates) and margins, given as zeros, and pivots as -1. A block whose
    columns have other scales by their peaks than by the fit is eliminated with both. The elimination with
    the larger rank is kept, and of equal ranks the one with the smaller ratio of the largest coordinate to
    the smallest accepted residual.
    """
    n, d, n_blocks = len(candidates), x.shape[1], len(ranks)
    block, order, start = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n_blocks + 1, np.int64)
    for k in range(n):
        block[k] = blocks[candidates[k]]
    sort_by_block(block, 0, n, start, order)
    y, size, column, fitted = np.empty((n, d)), np.empty(n), np.empty(d), np.empty(d)
    again_map, again_pivots, again_margin = np.empty((d, d)), np.empty(d, np.int64), np.empty(2)
    # Scalings whose ratios differ by no more than this factor are similar: one of them is tried.
    similar = 2.0**10
    for b in range(n_blocks):
        lo, hi = start[b], start[b + 1]
        for i in range(lo, hi):
            for j in range(d):
                y[i, j] = x[order[i], j]
        fit_columns(y, lo, hi, column)
        scale(y, lo, hi, size, column)
        ranks[b] = _eliminate_block(
            y, lo, hi, size, column, candidates, order, groups, row_scale, rtol, maps[b], pivots[b], margin[b]
        )
        for i in range(lo, hi):
            for j in range(d):
                y[i, j] = x[order[i], j]
                fitted[j] = column[j]
        peak_columns(y, lo, hi, size, column)
        if _spread(column, fitted) <= similar:
            continue
        scale(y, lo, hi, size, column)
        for i in range(d):
            again_pivots[i] = -1
            for j in range(d):
                again_map[i, j] = 0.0
        again_margin[0] = again_margin[1] = 0.0
        rank = _eliminate_block(
            y, lo, hi, size, column, candidates, order, groups, row_scale, rtol,
            again_map, again_pivots, again_margin,
        )  # fmt: skip
        better = rank > ranks[b]
        if rank == ranks[b]:
            for i in range(lo, hi):
                for j in range(d):
                    y[i, j] = x[order[i], j] * row_scale[groups[candidates[order[i]]]]
            again = _largest_coordinate(y, lo, hi, again_map, rank) / again_margin[1]
            better = again < _largest_coordinate(y, lo, hi, maps[b], rank) / margin[b, 1]
        if better:
            ranks[b] = rank
            # Entry by entry: assignments of whole arrays take 2 s to compile.
            margin[b, 0], margin[b, 1] = again_margin[0], again_margin[1]
            for i in range(d):
                pivots[b, i] = again_pivots[i]
                for j in range(d):
                    maps[b, i, j] = again_map[i, j]


@kernel
def _eliminate_block(
    y, lo, hi, size, column, candidates, order, groups, row_scale, rtol, block_map, pivots, margin
):
    """Run Householder elimination with row pivoting on rows lo .. hi - 1 of y and return their rank.

    Row i is candidate ``candidates[order[i]]`` divided by 2^(column + size[i]). Adds the logarithm of the row
    scale to size. Overwrites y, and the map T, the pivots and the margin of the block. With Q the product of
    the reflections and R the (lower triangular) pivot rows after them, T = Q[:, :rank] R^-1 for the scaled
    rows and columns; T is then multiplied by the scales.
    """
    d = y.shape[1]
    norm, doubt, weight = np.zeros(hi - lo), np.zeros(hi - lo), np.empty(hi - lo)
    v, q = np.empty(d), np.zeros((d, d))
    at = np.empty(d, np.int64)
    largest = -np.inf
    for i in range(lo, hi):
        for j in range(d):
            norm[i - lo] += y[i, j] * y[i, j]
        size[i] += math.log2(row_scale[groups[candidates[order[i]]]])
        largest = max(largest, size[i])
    # Rows that are smaller than the largest by more than this power of two count as equally small.
    lightest = -400
    for i in range(lo, hi):
        weight[i - lo] = _power_of_two(2.0 * max(size[i] - largest, lightest))
    margin[1] = np.inf
    for i in range(d):
        q[i, i] = 1.0
    rank = 0
    # Residuals below this many roundings of the pivots' directions are treated as zero.
    direction_errors = 32.0
    # Rows below this power of two are left out of the basis: their coordinates would overflow.
    smallest = -900
    for k in range(d):
        best, best_volume, best_value, rejected = -1, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            value = 0.0
            for j in range(k, d):
                value += y[i, j] * y[i, j]
            if value == 0.0:
                continue
            if value > rtol * rtol * norm[i - lo] and value > doubt[i - lo] and size[i] > smallest:
                if value * weight[i - lo] > best_volume:
                    best, best_volume, best_value = i, value * weight[i - lo], value
            else:
                rejected = max(rejected, np.sqrt(value / norm[i - lo]))
        if best < 0:
            margin[0] = rejected
            break
        relative = np.sqrt(best_value / norm[best - lo])
        margin[1] = min(margin[1], relative)
        pivots[k] = candidates[order[best]]
        at[k] = best
        rank += 1
        diagonal = -np.sqrt(best_value) if y[best, k] > 0.0 else np.sqrt(best_value)
        for j in range(k, d):
            v[j] = y[best, j]
        v[k] -= diagonal
        beta = 1.0 / (best_value - diagonal * y[best, k])
        # The residual of the pivot has the round-off of the reflections and the errors of earlier directions.
        error = direction_errors * UNIT / relative + np.sqrt(doubt[best - lo] / best_value)
        for i in range(lo, hi):
            reflect(y, i, v, beta, k)
            doubt[i - lo] += (error * y[i, k]) * (error * y[i, k])
        for i in range(d):
            reflect(q, i, v, beta, k)
        y[best, k] = diagonal
        for j in range(k + 1, d):
            y[best, j] = 0.0
    for i in range(d):
        for j in range(rank - 1, -1, -1):
            t = q[i, j]
            for k in range(j + 1, rank):
                t -= block_map[i, k] * y[at[k], j]
            block_map[i, j] = t / y[at[j], j]
        for j in range(rank):
            block_map[i, j] *= _power_of_two(-(column[i] + size[at[j]]))
    return rank


@kernel
def fit_columns(y, lo, hi, column):
    """Overwrite column with the exponents c_j of the least-squares fit log2 |y_nj| = r_n + c_j.

    The fit is over the entries of rows lo .. hi - 1 that are not zero, logarithms rounded up to whole
    numbers, by alternating between r and c.
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


@kernel
def peak_columns(y, lo, hi, size, column):
    """Overwrite column with exponents such that rows and columns lo .. hi - 1 have peaks near 1.

    Row and column peaks are divided out in turn. A peak does not depend on entries that are far below it, so
    round-off in place of zeros does not change the result.
    """
    d = y.shape[1]
    for j in range(d):
        column[j] = 0.0
    for _ in range(FIT_ROUNDS):
        moved = 0.0
        for i in range(lo, hi):
            size[i] = -np.inf
            for j in range(d):
                if y[i, j] != 0.0:
                    size[i] = max(size[i], math.frexp(y[i, j])[1] - column[j])
        for j in range(d):
            peak = -np.inf
            for i in range(lo, hi):
                if y[i, j] != 0.0:
                    peak = max(peak, math.frexp(y[i, j])[1] - size[i])
            if peak > -np.inf:
                moved = max(moved, abs(peak - column[j]))
                column[j] = peak
        if moved == 0.0:
            break


@kernel
def _largest_coordinate(y, lo, hi, block_map, rank):
    """Return the largest absolute coordinate of rows lo .. hi - 1."""
    largest = 0.0
    for i in range(lo, hi):
        for k in range(rank):
            t = 0.0
            for j in range(y.shape[1]):
                t += y[i, j] * block_map[j, k]
            largest = np.maximum(largest, abs(t))  # a result that is not a number remains
    return largest


@kernel
def _spread(column, other):
    """Return the factor by which two scalings of the columns differ, apart from a common factor."""
    low, high = np.inf, -np.inf
    for j in range(len(column)):
        low = min(low, column[j] - other[j])
        high = max(high, column[j] - other[j])
    return _power_of_two(min(high - low, 1000.0))


@kernel
def scale(y, lo, hi, size, column):
    """Divide columns by 2^column_j, then rows lo .. hi - 1 by 2^size_n, so that row peaks are in [1/2, 1).

    Overwrites y and size.
    """
    d = y.shape[1]
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
    """Return 2^x, exactly if x is whole. The last digit of ``2.0**x`` depends on the compiler."""
    whole = math.floor(x)
    return math.ldexp(math.exp((x - whole) * LOG_2), whole)


@kernel
def reflect(a, i, v, beta, k):
    """Apply the Householder reflection I - beta v v' to a[i, k:]. Overwrites a."""
    dot = 0.0
    for j in range(k, a.shape[1]):
        dot += a[i, j] * v[j]
    dot *= beta
    for j in range(k, a.shape[1]):
        a[i, j] -= dot * v[j]
