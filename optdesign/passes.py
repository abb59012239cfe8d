"""Passes over the data: the information of some candidates, the variances of all.

Both read :class:`optdesign.rows.Rows`, in tiles that fit the caches.
"""

from __future__ import annotations

import numpy as np

from optdesign._kernel import kernel
from optdesign.compensated import two_sum
from optdesign.problem import DesignProblem
from optdesign.rows import Rows, write_coordinates

TILE = 64
VARIANCE_CHUNK = 4096
"""Candidates worked on side by side, and candidates sorted by block at a time: they fit the caches."""


def information_matrices(
    problem: DesignProblem, weights: np.ndarray, support: np.ndarray, rows: Rows | None = None
) -> np.ndarray:
    """Information of every block in the coordinates of its rows, lower triangles, (n_blocks, r, r).

    ``weights`` belong to the candidates ``support``.
    """
    x, maps = (problem.rows if rows is None else rows)[:2]
    information = np.zeros((problem.n_blocks, maps.shape[2], maps.shape[2]))
    add_information(x, problem.blocks, maps, problem.ranks, support, weights, information)
    return information


def variances_of(problem: DesignProblem, rows: Rows, white: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g_n = |x_n @ white[b]|^2 of every candidate, the largest in every group, in one pass over the data."""
    g, largest = np.empty(problem.n_candidates), np.zeros(problem.n_groups)
    _variances(rows.x, problem.blocks, problem.groups, white, problem.ranks, g, largest)
    return g, largest


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
def _variances(x, blocks, groups, white, ranks, out, largest):
    """Overwrite out with g_n = |x_n @ white[b]|^2, and raise largest[i] to the maximum of group i.

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
        for i in range(start, stop):
            largest[groups[i]] = max(largest[groups[i]], out[i])


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
