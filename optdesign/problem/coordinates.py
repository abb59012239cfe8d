"""The numbers that solvers and certificates read: candidates, or coordinates if candidates lose digits.

A coordinate x_n' T_k computed term by term has an error of gamma(d) |x_n|' |T_k|
(:mod:`optdesign.numbers.roundoff`), which is negligible for most data. If candidates are nearly parallel, or
if large ones hide a direction that only small ones or small budgets carry, the terms cancel, and the error
would count as information. The coordinates of all candidates are then computed once by compensated products
and kept: N x r numbers with the accuracy of twice the precision.

In both cases :class:`Rows` has a bound on the error of its numbers, which a certificate uses.
"""

from __future__ import annotations

import math
from decimal import Context, localcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optdesign.numbers.roundoff import UNIT, gamma, long_minus_product, long_quotient, two_product, two_sum
from optdesign.problem.decimals import decimals, log_abs_det, log_det_of_gram
from optdesign.problem.source import Source, read_only
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel

if TYPE_CHECKING:
    from optdesign.problem.problem import DesignProblem


class Rows(NamedTuple):
    """Numbers x and maps T: coordinates are ``x[n] @ maps[b]``."""

    source: Source
    maps: np.ndarray
    rounding: np.ndarray
    """By block and column j: sqrt(f_i) times any sum_j a_j x_nj is computed to sum_j |a_j| rounding_j."""


def working_rows(problem: DesignProblem) -> Rows:
    """Return the candidates, or their coordinates where products with the maps would lose too much."""
    reach = _reach(problem)
    # Errors of coordinates above this, where pivots are unit vectors, call for compensated products.
    cancellation = 2.0**-36
    terms = np.einsum("bj,bjk->bk", reach, np.abs(problem.span.maps))
    if gamma(problem.dim) * np.fmax.reduce(terms, axis=None) > cancellation:
        return problem.refined
    return Rows(problem.source, problem.span.maps, gamma(problem.dim + 8) * reach)


def refined_rows(problem: DesignProblem, maps: np.ndarray, reach: np.ndarray | None = None) -> Rows:
    """Return the coordinates of all candidates by compensated products; their own map is the identity.

    ``reach`` bounds the coordinates times the root of the budget, if the problem is part of a larger one.
    """
    width = maps.shape[2]
    t, largest = np.empty((problem.n_candidates, width)), np.zeros((problem.n_parameter_blocks, width))
    root = np.sqrt(problem.budgets)

    def write(first: int, last: int) -> np.ndarray:
        part, own = slice(first, last), np.zeros_like(largest)
        write_refined(problem.source.piece(first, last), problem.parameter_blocks[part], maps, t[part])
        raise_reach(t[part], problem.parameter_blocks[part], problem.groups[part], root, own)
        return own

    for own in threads.in_order(write, problem.n_candidates, problem.source.rows_a_piece, largest.size):
        np.maximum(largest, own, out=largest)
    reach = largest if reach is None else reach
    terms = np.einsum("bj,bjk->bk", _reach(problem), np.abs(maps))
    lost = 2 * UNIT * reach + gamma(problem.dim + 1) ** 2 * terms
    identity = np.ascontiguousarray(
        np.broadcast_to(np.eye(width), (problem.n_parameter_blocks, width, width))
    )
    return Rows(Source(read_only(t)), identity, (1 + gamma(8)) * lost + gamma(width + 8) * reach)


def _reach(problem: DesignProblem) -> np.ndarray:
    """Bound, by block and column, on the entries of candidates times the root of their budget."""
    return math.sqrt(np.maximum.reduce(problem.budgets)) * problem.peaks


def log_volume(problem: DesignProblem, maps: np.ndarray) -> float:
    """Return the difference between log Det of the candidates and log det in coordinates, summed over blocks.

    With P the pivots of a block times the roots of their budgets, and U in the coordinates x @ T, the
    candidates' information is P' (P T)^-T U (P T)^-1 P. So log Det adds log det(P P') - 2 log |det(P T)|.
    """
    at, ranks = problem.basis, problem.ranks
    block, root = problem.parameter_blocks[at], read_only(np.sqrt(problem.budgets[problem.groups[at]]))
    p = read_only(problem.source.take(at))
    t, low = np.empty((len(at), maps.shape[2])), np.empty((len(at), maps.shape[2]))
    _write_long(p, read_only(block), maps, t, low)
    none = read_only(np.zeros_like(p))
    found = log_gram(p, none, root, ranks) - log_gram(read_only(t), read_only(low), root, ranks)
    return found if math.isfinite(found) else _decimal_log_volume(problem, maps)


def _decimal_log_volume(problem: DesignProblem, maps: np.ndarray) -> float:
    """Return the same number from decimals with the digits of all sizes of doubles."""
    total = 0.0
    with localcontext(Context(prec=800)):
        for b in np.flatnonzero(problem.ranks):
            p, own = decimals(problem.pivots_of(int(b))), decimals(maps[b, :, : problem.ranks[b]])
            total += log_det_of_gram(p.copy()) - 2.0 * log_abs_det(p @ own)
    return total


@kernel
def write_coordinates(x, at, blocks, rows, maps, out):
    """Overwrite out with the coordinates ``x_n @ maps[block of n]`` of some candidates.

    Their numbers are ``rows``, and they are at the places ``at`` of x.
    """
    for i in range(len(rows)):
        row, columns, own = x[at[i]], maps[blocks[rows[i]]], out[i]
        for k in range(len(own)):
            t = 0.0
            for j in range(len(row)):
                t += row[j] * columns[j, k]
            own[k] = t


@kernel
def write_refined(x, blocks, maps, out):
    """Overwrite out with the coordinates ``x_n @ maps[block of n]``, by compensated products."""
    for n in range(len(x)):
        for k in range(maps.shape[2]):
            out[n, k] = _long_product(x, n, maps, blocks[n], k)[0]


@kernel
def _write_long(x, blocks, maps, out, low):
    """Overwrite out and low with the coordinates ``x_n @ maps[block of n]`` in twice the precision."""
    for n in range(len(x)):
        for k in range(maps.shape[2]):
            out[n, k], low[n, k] = _long_product(x, n, maps, blocks[n], k)


@kernel
def _long_product(x, n, maps, b, k):
    """Return ``x_n @ maps[b, :, k]`` by compensated products, rounded, and the part that rounding takes."""
    t, low = 0.0, 0.0
    for j in range(x.shape[1]):
        p, e = two_product(np.float64(x[n, j]), maps[b, j, k])
        t, f = two_sum(t, p)
        low += e + f
    return two_sum(t, low)


@kernel
def raise_reach(t, blocks, groups, root, reach):
    """Raise reach[b, k] to the largest root |t_nk| in block b."""
    for n in range(len(t)):
        for k in range(t.shape[1]):
            reach[blocks[n], k] = max(reach[blocks[n], k], root[groups[n]] * abs(t[n, k]))


@kernel
def log_gram(x, x_low, scale, ranks):
    """Sum over blocks of log det(P P'), P the pivots, which are the rows of x + x_low, times their scales.

    Gauss-Jordan elimination with pivots p_k on columns J gives P_J^-1 P = [I W], so that
    det(P P') = det(P_J)^2 det(I + W W'); the units of the columns cost no digits. In twice the precision,
    because nearly parallel pivots cancel. Entries that are below 1e-26 of the terms they are made of are
    round-off, and could exceed entries of columns in smaller units. They are not used. If all entries of a
    row lose that many digits, the result is NaN.
    """
    d = x.shape[1]
    p, low, gram = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    least = np.empty((d, d))
    used = np.empty(d, np.bool_)
    total, first = 0.0, 0
    for b in range(len(ranks)):
        r = ranks[b]
        for k in range(r):
            for j in range(d):
                p[k, j], low[k, j] = x[first + k, j], x_low[first + k, j]
                least[k, j] = 1e-26 * abs(p[k, j])
            total += 2.0 * math.log(scale[first + k])
        first += r
        for j in range(d):
            used[j] = False
        for k in range(r):
            c = -1
            for j in range(d):
                size = abs(p[k, j])
                if not used[j] and size > least[k, j] and (c < 0 or size > abs(p[k, c])):
                    c = j
            if c < 0 or abs(p[k, c]) < 1e6 * least[k, c]:
                return np.nan
            used[c] = True
            pivot, pivot_low = p[k, c], low[k, c]
            total += 2.0 * (math.log(abs(pivot)) + pivot_low / pivot)
            for j in range(d):
                p[k, j], low[k, j] = long_quotient(p[k, j], low[k, j], pivot, pivot_low)
                least[k, j] /= abs(pivot)
            for i in range(r):
                if i != k:
                    factor, factor_low = p[i, c], low[i, c]
                    for j in range(d):
                        p[i, j], low[i, j] = long_minus_product(
                            p[i, j], low[i, j], factor, factor_low, p[k, j], low[k, j]
                        )
                        least[i, j] = max(least[i, j], abs(factor) * max(least[k, j], 1e-26 * abs(p[k, j])))
        for i in range(r):
            for m in range(i + 1):
                gram[i, m] = 1.0 if i == m else 0.0
                for j in range(d):
                    if not used[j] and abs(p[i, j]) > least[i, j] and abs(p[m, j]) > least[m, j]:
                        gram[i, m] += p[i, j] * p[m, j]
        # Plain elimination: the matrix is the identity plus a sum of squares.
        for k in range(r):
            total += math.log(gram[k, k])
            for i in range(k + 1, r):
                factor = gram[i, k] / gram[k, k]
                for m in range(k + 1, i + 1):
                    gram[i, m] -= factor * gram[m, k]
    return total


@kernel
def sort_by_block(blocks, start, stop, end, rows):
    """Write the rows start .. stop - 1 block by block; block b gets end[b] .. end[b + 1] - 1.

    Overwrites end and rows.
    """
    for b in range(len(end)):
        end[b] = 0
    for i in range(start, stop):
        if blocks[i] + 2 < len(end):
            end[blocks[i] + 2] += 1
    for b in range(2, len(end)):
        end[b] += end[b - 1]
    for i in range(start, stop):
        rows[end[blocks[i] + 1]] = i
        end[blocks[i] + 1] += 1
