"""Passes over the data: coordinates and information of some candidates, variances of all.

All read :class:`optdesign.problem.coordinates.Rows`, piece by piece or some rows at a time, and give pieces
to threads. Sums over pieces are taken in the order of the pieces, so that results do not depend on the number
of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dtrtri

from optdesign.algebra.blocks import WIDE, cholesky, factorise
from optdesign.numbers.roundoff import two_sum
from optdesign.problem.coordinates import Rows, sort_by_block, write_coordinates
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.tiers import SMALL

TILE, WIDE_TILE = 64, 256
"""Numbers of candidates whose information is summed without compensation, in loops and in BLAS."""
CHUNK = 4096
"""Candidates sorted by block at a time."""


def tile(rows: Rows) -> int:
    """Return the number of candidates whose information is summed without compensation."""
    return TILE if rows.maps.shape[2] < WIDE else WIDE_TILE


def information_matrices(
    problem: DesignProblem, weights: np.ndarray, support: np.ndarray, rows: Rows | None = None
) -> np.ndarray:
    """Return the information of every block in coordinates: lower triangles, (n_blocks, r, r).

    ``weights`` belong to the candidates ``support``. Sums of tiles are compensated, so the error does not
    grow with the number of rows.
    """
    rows = problem.rows if rows is None else rows
    # Enough rows that their sums take no more memory than the rows.
    size = problem.n_parameter_blocks * rows.maps.shape[2] ** 2
    piece = max(rows.source.rows_a_piece, size // rows.source.dim)
    if threads.fits_one_piece(len(support), piece):
        total, rest = _summed(problem, rows, support, weights)
    else:
        parts = threads.in_order(
            lambda first, last: _summed(problem, rows, support[first:last], weights[first:last]),
            len(support), piece, 2 * size,
        )  # fmt: skip
        total, rest = next(parts)
        for more, more_rest in parts:
            _add_exactly(total, rest, more)
            rest += more_rest
    total += rest
    return total


def _summed(
    problem: DesignProblem, rows: Rows, some: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the information of some candidates, and its round-off."""
    width = rows.maps.shape[2]
    total, rest = np.zeros((2, problem.n_parameter_blocks, width, width))
    if width < WIDE:
        x, at = rows.source.find(some)
        add_tiles(x, at, problem.parameter_blocks, some, rows.maps, problem.ranks, weights, total, rest)
    else:
        _add_wide_information(problem, rows, some, weights, total, rest)
    return total, rest


def _add_wide_information(
    problem: DesignProblem,
    rows: Rows,
    some: np.ndarray,
    weights: np.ndarray,
    total: np.ndarray,
    rest: np.ndarray,
) -> None:
    """Add w t t' of some candidates to their blocks by BLAS.

    Overwrites total, and rest with the round-off.
    """
    for b, at in by_block(problem, some):
        rank = problem.ranks[b]
        for k in range(0, len(at), WIDE_TILE):
            part = at[k : k + WIDE_TILE]
            t = rows.source.take(some[part]) @ rows.maps[b, :, :rank]
            _add_exactly(total[b, :rank, :rank], rest[b, :rank, :rank], (t.T * weights[part]) @ t)


def _add_exactly(total: np.ndarray, rest: np.ndarray, more: np.ndarray) -> None:
    """Add matrices to total, and the round-off of the sum to rest: two_sum for matrices."""
    new = total + more
    seen = new - total
    rest += (total - (new - seen)) + (more - seen)
    total[:] = new


def coordinates(problem: DesignProblem, some: np.ndarray, rows: Rows) -> np.ndarray:
    """Return the coordinates of some candidates."""
    out = np.zeros((len(some), rows.maps.shape[2]))

    def write(first: int, last: int) -> None:
        part = some[first:last]
        if out.shape[1] < WIDE:
            x, places = rows.source.find(part)
            write_coordinates(x, places, problem.parameter_blocks, part, rows.maps, out[first:last])
            return
        for b, at in by_block(problem, part):
            out[first + at] = rows.source.take(part[at]) @ rows.maps[b]

    threads.results(write, len(some), rows.source.rows_a_piece)
    return out


def inverse_factors(information: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return L^-1 of every block, information = L L', and its log det, -inf if it loses rank."""
    factor: np.ndarray = np.zeros(information.shape)
    if factor.shape[1] < WIDE:
        return factor, factorise(information, ranks, factor)
    log_det = np.zeros(len(ranks))
    for b, r in enumerate(ranks):
        if r == 0:
            continue
        upper = cholesky(information[b, :r, :r].T)
        if upper is None:
            log_det[b] = -np.inf
            continue
        log_det[b] = 2.0 * np.sum(np.log(np.diag(upper)))
        factor[b, :r, :r] = dtrtri(upper, lower=0)[0].T
    return factor, log_det


def composed(maps: np.ndarray, ranks: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return T L^-T of every block."""
    if factor.shape[1] < WIDE:
        out = maps.copy()
        compose(out, ranks, factor)
        return out
    return maps @ factor.transpose(0, 2, 1)


def variances_of(problem: DesignProblem, rows: Rows, white: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return g_n = |x_n @ white[b]|^2 of every candidate and the largest of every group, in one pass."""
    g, largest = np.empty(problem.n_candidates), np.zeros(problem.n_groups)

    def write(first: int, last: int) -> None:
        part = slice(first, last)
        _write_variances(rows.source.piece(first, last), problem.parameter_blocks[part], white, g[part])

    threads.results(write, len(g), rows.source.rows_a_piece)
    raise_to_largest(problem.groups, g, largest)
    return g, largest


def exceeding(
    problem: DesignProblem, rows: Rows, white: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates whose variance exceeds the bound of their group, and the largest of every group.

    The candidates are in order, and the largest variances are at least the bounds. One pass over the data
    keeps nothing else.
    """
    largest = bound.copy()
    one_at_a_time = threading.Lock()

    def find(first: int, last: int) -> np.ndarray:
        part = slice(first, last)
        g, found = np.empty(last - first), np.empty(last - first, np.int64)
        _write_variances(rows.source.piece(first, last), problem.parameter_blocks[part], white, g)
        found = found[: find_exceeding(problem.groups[part], g, bound, first, found)]
        with one_at_a_time:
            raise_to_largest(problem.groups[found], g[found - first], largest)
        return found.copy()

    found = threads.results(find, problem.n_candidates, rows.source.rows_a_piece)
    return np.concatenate(found), largest


def above(problem: DesignProblem, values: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Return the candidates whose value is above the bound of their group, in order."""

    def find(first: int, last: int) -> np.ndarray:
        found = np.empty(last - first, np.int64)
        count = find_exceeding(problem.groups[first:last], values[first:last], bound, first, found)
        return found[:count].copy()

    found = threads.results(find, problem.n_candidates, threads.PIECE)
    return np.concatenate(found) if len(found) > 1 else found[0]


def variances_at(problem: DesignProblem, rows: Rows, white: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return g_n of some candidates."""
    g = np.empty(len(some))

    def write(first: int, last: int) -> None:
        part = some[first:last]
        x = read_only(rows.source.take(part))
        _write_variances(x, read_only(problem.parameter_blocks[part]), white, g[first:last])

    threads.results(write, len(some), rows.source.rows_a_piece)
    return g


def _write_variances(x: np.ndarray, blocks: np.ndarray, white: np.ndarray, out: np.ndarray) -> None:
    """Overwrite out with the variances of the rows of a piece, by the kernel that suits it."""
    if x.size <= SMALL:
        variances_of_few(x, blocks, white, out)
    elif len(white) == 1 and x.dtype == np.float64:
        _variances_in_one(x, white[0], out)
    else:
        _variances(x, blocks, white, out)


def by_block(problem: DesignProblem, some: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield every block that some candidates are in, and the places of these among them."""
    if problem.n_parameter_blocks == 1:
        yield 0, np.arange(len(some))
        return
    blocks = problem.parameter_blocks[some]
    order = np.argsort(blocks, kind="stable")
    ends = np.cumsum(np.bincount(blocks, minlength=problem.n_parameter_blocks))
    for b in range(problem.n_parameter_blocks):
        at = order[ends[b - 1] if b else 0 : ends[b]]
        if len(at):
            yield b, at


@kernel
def add_tiles(x, at, blocks, rows, maps, ranks, weights, information, rest):
    """Add w t t' of some candidates to the lower triangles of their blocks. Overwrites information.

    Sums of a tile are added with their roundings, which go to rest, so the error does not grow with the
    number of rows.
    """
    t = np.empty((min(len(rows), TILE), maps.shape[2]))
    part_sum = np.zeros(information.shape)
    last = np.empty(len(ranks), np.int64)
    for start in range(0, len(rows), TILE):
        stop = min(start + TILE, len(rows))
        write_coordinates(x, at[start:stop], blocks, rows[start:stop], maps, t)
        for n in range(start, stop):
            b = blocks[rows[n]]
            last[b] = n
            for i in range(ranks[b]):
                c = weights[n] * t[n - start, i]
                for j in range(i + 1):
                    part_sum[b, i, j] += c * t[n - start, j]
        for n in range(start, stop):
            b = blocks[rows[n]]
            if last[b] > n:
                continue
            for i in range(ranks[b]):
                for j in range(i + 1):
                    information[b, i, j], e = two_sum(information[b, i, j], part_sum[b, i, j])
                    rest[b, i, j] += e
                    part_sum[b, i, j] = 0.0


@kernel
def compose(maps, ranks, factor):
    """Overwrite the maps T with T L^-T, block by block."""
    for b in range(len(ranks)):
        for i in range(maps.shape[1]):
            for k in range(maps.shape[2] - 1, -1, -1):
                t = 0.0
                if k < ranks[b]:
                    for j in range(k + 1):
                        t += maps[b, i, j] * factor[b, k, j]
                maps[b, i, k] = t


@kernel
def variances_of_few(x, blocks, white, out):
    """Overwrite out with g_n = |x_n @ white[b]|^2, for so few candidates that compiling may not be worth it.

    By loops, since BLAS has digits of its own. TILE candidates of a block lie side by side in memory, so the
    inner loops run over them.
    """
    d = x.shape[1]
    some, y, g = np.empty((d, TILE)), np.empty(TILE), np.empty(TILE)
    if len(white) == 1:
        for lo in range(0, len(x), TILE):
            m = min(TILE, len(x) - lo)
            for j in range(d):
                for i in range(m):
                    some[j, i] = x[lo + i, j]
            _variances_of_tile(some, m, white[0], y, g)
            for i in range(m):
                out[lo + i] = g[i]
        return
    end, rows = np.empty(len(white) + 1, np.int64), np.empty(len(x), np.int64)
    sort_by_block(blocks, 0, len(x), end, rows)
    for b in range(len(white)):
        for lo in range(end[b], end[b + 1], TILE):
            m = min(TILE, end[b + 1] - lo)
            for i in range(m):
                for j in range(d):
                    some[j, i] = x[rows[lo + i], j]
            _variances_of_tile(some, m, white[b], y, g)
            for i in range(m):
                out[rows[lo + i]] = g[i]


@kernel
def _variances_of_tile(some, m, white, y, g):
    """Overwrite g with |z @ white|^2 of m candidates z, the columns of some. Overwrites y as well."""
    for i in range(m):
        g[i] = 0.0
    for k in range(white.shape[1]):
        for i in range(m):
            y[i] = 0.0
        for j in range(len(white)):
            c = white[j, k]
            for i in range(m):
                y[i] += c * some[j, i]
        for i in range(m):
            g[i] += y[i] * y[i]


@kernel
def _variances_in_one(x, white, out):
    """Overwrite out with g_n = |x_n @ white|^2.

    TILE candidates are worked on at a time; what is computed for them stays in the nearest cache.
    """
    y = np.empty((TILE, white.shape[1]))
    for start in range(0, len(x), TILE):
        stop = min(start + TILE, len(x))
        np.dot(x[start:stop], white, y[: stop - start])
        for n in range(start, stop):
            g = 0.0
            for k in range(y.shape[1]):
                g += y[n - start, k] * y[n - start, k]
            out[n] = g


@kernel
def _variances(x, blocks, white, out):
    """Overwrite out with g_n = |x_n @ white[b]|^2. Candidates are brought together block by block."""
    end = np.empty(len(white) + 1, np.int64)
    rows = np.empty(min(len(x), CHUNK), np.int64)
    some, g = np.empty((TILE, x.shape[1])), np.empty(TILE)
    for start in range(0, len(x), CHUNK):
        sort_by_block(blocks, start, min(start + CHUNK, len(x)), end, rows)
        for b in range(len(white)):
            for lo in range(end[b], end[b + 1], TILE):
                m = min(TILE, end[b + 1] - lo)
                for i in range(m):
                    for j in range(x.shape[1]):
                        some[i, j] = x[rows[lo + i], j]
                _variances_in_one(some[:m], white[b], g)
                for i in range(m):
                    out[rows[lo + i]] = g[i]


@kernel
def find_exceeding(groups, values, bound, first, found):
    """Overwrite found with the candidates above the bound of their group, and return their number.

    They are numbered from first. A value that is not a number exceeds every bound.
    """
    count = 0
    for n in range(len(values)):
        if not values[n] <= bound[groups[n]]:
            found[count] = first + n
            count += 1
    return count


@kernel
def raise_to_largest(groups, values, largest):
    """Raise largest[i] to the maximum of the values of group i; NaN counts as the largest."""
    i, top = -1, 0.0
    for n in range(len(values)):
        if groups[n] != i:  # neighbours mostly share a group, whose maximum need not be stored each time
            if i >= 0:
                largest[i] = top
            i = groups[n]
            top = largest[i]
        if values[n] > top or values[n] != values[n]:
            top = values[n]
    if i >= 0:
        largest[i] = top
