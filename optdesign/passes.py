"""Passes over the data: coordinates and information of some candidates, variances of all.

All read :class:`optdesign.rows.Rows`. Where ranks are small they are compiled loops, in tiles that fit the
caches; where they are not, products of matrices by BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from optdesign import threads
from optdesign._kernel import kernel
from optdesign.compensated import two_sum
from optdesign.information import SINGULAR_RTOL, WIDE, factorise
from optdesign.problem import DesignProblem
from optdesign.rows import Rows, write_coordinates

TILE, WIDE_TILE = 64, 256
"""Candidates whose information is summed up without regard to rounding, in loops and in BLAS."""
VARIANCE_CHUNK = 4096
"""Candidates sorted by block at a time."""

PIECE = 1 << 14
"""Candidates between two looks at limits and interrupts, or given to a thread at a time."""

PLAIN = 8
"""Columns from which on the variances of a single block go through BLAS."""


def tile(rows: Rows) -> int:
    """How many candidates' information is summed up without regard to rounding."""
    return TILE if rows.maps.shape[2] < WIDE else WIDE_TILE


def information_matrices(
    problem: DesignProblem, weights: np.ndarray, support: np.ndarray, rows: Rows | None = None
) -> np.ndarray:
    """Information of every block in the coordinates of its rows, lower triangles, (n_blocks, r, r).

    ``weights`` belong to the candidates ``support``. Sums of a tile are added with their roundings, so the
    error does not grow with the number of rows.
    """
    rows = problem.rows if rows is None else rows
    information = np.zeros((problem.n_blocks, rows.maps.shape[2], rows.maps.shape[2]))
    if information.shape[1] < WIDE:
        add_information(rows.x, problem.blocks, rows.maps, problem.ranks, support, weights, information)
        return information
    for b, at in _by_block(problem, support):
        rank = problem.ranks[b]
        total, rest = information[b, :rank, :rank], np.zeros((rank, rank))
        for k in range(0, len(at), WIDE_TILE):
            some = at[k : k + WIDE_TILE]
            t = doubles(rows.x, support[some]) @ rows.maps[b, :, :rank]
            part = (t.T * weights[some]) @ t
            # As two_sum, which is a kernel, of matrices.
            new = total + part
            seen = new - total
            rest += (total - (new - seen)) + (part - seen)
            total[:] = new
        total += rest
    return information


def coordinates(problem: DesignProblem, some: np.ndarray, rows: Rows) -> np.ndarray:
    """Coordinates of some candidates."""
    out = np.zeros((len(some), rows.maps.shape[2]))

    def write(first: int, last: int) -> None:
        part = some[first:last]
        if out.shape[1] < WIDE:
            write_coordinates(rows.x, problem.blocks, part, rows.maps, out[first:last])
            return
        for b, at in _by_block(problem, part):
            out[first + at] = doubles(rows.x, part[at]) @ rows.maps[b]

    threads.each(write, len(some), PIECE)
    return out


def inverse_factors(information: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L^-1 of every block, where information = L L', and log det of every block; -inf if it loses rank."""
    factor = np.zeros_like(information)
    if factor.shape[1] < WIDE:
        return factor, factorise(information, ranks, factor)
    log_det = np.zeros(len(ranks))
    for b, r in enumerate(ranks):
        if r == 0:
            continue
        upper, info = dpotrf(information[b, :r, :r].T, lower=0)
        diagonal = np.diag(upper)
        if info or np.any(diagonal**2 <= SINGULAR_RTOL * np.diag(information[b, :r, :r])):
            log_det[b] = -np.inf
            continue
        log_det[b] = 2.0 * np.sum(np.log(diagonal))
        factor[b, :r, :r] = dtrtri(upper, lower=0)[0].T
    return factor, log_det


def composed(maps: np.ndarray, ranks: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """T L^-T of every block."""
    if factor.shape[1] < WIDE:
        out = maps.copy()
        _compose(out, ranks, factor)
        return out
    return maps @ factor.transpose(0, 2, 1)


def variances_of(problem: DesignProblem, rows: Rows, white: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g_n = |x_n @ white[b]|^2 of every candidate, the largest in every group, in one pass over the data."""
    g, largest = np.empty(problem.n_candidates), np.zeros(problem.n_groups)
    wide = white.shape[2] >= (PLAIN if problem.n_blocks == 1 else WIDE)

    def write(first: int, last: int) -> None:
        part = slice(first, last)
        if wide:
            _wide_variances(problem, rows, white, part, g[part])
        else:
            _variances(rows.x[part], problem.blocks[part], white, problem.ranks, g[part])

    threads.each(write, problem.n_candidates, PIECE)
    raise_to_largest(problem.groups, g, largest)
    return g, largest


def _wide_variances(
    problem: DesignProblem, rows: Rows, white: np.ndarray, part: slice, out: np.ndarray
) -> None:
    """Overwrite out with the variances of a slice of the candidates."""
    if problem.n_blocks == 1:
        y = doubles(rows.x, part) @ white[0]
        np.einsum("ij,ij->i", y, y, out=out)
        return
    for b, at in _by_block(problem, np.arange(part.start, part.stop)):
        y = doubles(rows.x, part.start + at) @ white[b]
        out[at] = np.einsum("ij,ij->i", y, y)


def doubles(x: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    """Some rows, in double precision."""
    return np.asarray(x[rows], np.float64)


def _by_block(problem: DesignProblem, some: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Every block that some candidates lie in, and which of them do."""
    if problem.n_blocks == 1:
        yield 0, np.arange(len(some))
        return
    blocks = problem.blocks[some]
    order = np.argsort(blocks, kind="stable")
    ends = np.cumsum(np.bincount(blocks, minlength=problem.n_blocks))
    for b in range(problem.n_blocks):
        at = order[ends[b - 1] if b else 0 : ends[b]]
        if len(at):
            yield b, at


@kernel
def add_information(x, blocks, maps, ranks, rows, weights, information):
    """Add w t t' of some candidates to the lower triangles of their blocks. Overwrites information.

    Sums of a tile are added with their roundings, so the error does not grow with the number of rows.
    """
    t = np.empty((min(len(rows), TILE), maps.shape[2]))
    part_sum, rest = np.zeros(information.shape), np.zeros(information.shape)
    last = np.empty(len(ranks), np.int64)
    for start in range(0, len(rows), TILE):
        part = rows[start : start + TILE]
        write_coordinates(x, blocks, part, maps, t)
        for n in range(len(part)):
            b = blocks[part[n]]
            for i in range(ranks[b]):
                c = weights[start + n] * t[n, i]
                for j in range(i + 1):
                    part_sum[b, i, j] += c * t[n, j]
        for n in range(len(part)):
            last[blocks[part[n]]] = start + n
        for n in range(len(part)):
            b = blocks[part[n]]
            if last[b] > start + n:
                continue
            for i in range(ranks[b]):
                for j in range(i + 1):
                    information[b, i, j], e = two_sum(information[b, i, j], part_sum[b, i, j])
                    rest[b, i, j] += e
                    part_sum[b, i, j] = 0.0
    for b in range(len(ranks)):
        for i in range(ranks[b]):
            for j in range(i + 1):
                information[b, i, j] += rest[b, i, j]


@kernel
def _compose(maps, ranks, factor):
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
def _variances(x, blocks, white, ranks, out):
    """Overwrite out with g_n = |x_n @ white[b]|^2.

    TILE candidates of a block are worked on at a time. They lie side by side in memory, so the inner loops
    run over them.
    """
    n, d = x.shape
    end = np.empty(len(ranks) + 1, np.int64)
    rows = np.empty(VARIANCE_CHUNK, np.int64)
    tile = np.empty((d, TILE))
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
                for i in range(m):
                    g[i] = 0.0
                for k in range(ranks[b]):
                    for i in range(m):
                        y[i] = 0.0
                    for j in range(d):
                        c = white[b, j, k]
                        for i in range(m):
                            y[i] += c * tile[j, i]
                    for i in range(m):
                        g[i] += y[i] * y[i]
                for i in range(m):
                    out[rows[lo + i]] = g[i]


@kernel
def raise_to_largest(groups, values, largest):
    """Raise largest[i] to the maximum of the values of group i."""
    for n in range(len(values)):
        largest[groups[n]] = max(largest[groups[n]], values[n])


@kernel
def _sort_by_block(blocks, start, stop, end, rows):
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
