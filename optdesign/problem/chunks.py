"""Tasks and merges of problems that are larger than memory (:mod:`optdesign.sources.engine`).

A task gets the number of the first row of a chunk, the rows, their groups and their parameter blocks. Results
are maxima, counts and selections, so they do not depend on the order of merges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from optdesign.problem.coordinates import raise_reach, write_refined
from optdesign.problem.exact_rank import POWERS, PRIMES, mark_outside
from optdesign.problem.selection import Kept, Pool, Shape, merge_kept, pooled, samples, united
from optdesign.problem.source import read_only
from optdesign.problem.span import DECISION, Span, eliminated, largest_sum, scan_rows
from optdesign.sources.engine import Chunk, numbered

Numbers = tuple[Mapping[Any, int] | None, Mapping[Any, int] | None]
"""Number of every label of groups and of parameter blocks; None if these are numbers already."""


def with_numbers(chunk: Chunk, task: Callable[..., Any], numbers: Numbers, args: tuple[Any, ...]) -> Any:
    """Run a task on a chunk whose labels are replaced by numbers. A task itself."""
    n = len(chunk.x)
    groups, blocks = numbered(chunk.groups, numbers[0], n), numbered(chunk.parameter_blocks, numbers[1], n)
    return task(chunk.first, read_only(chunk.x), groups, blocks, *args)


class Scanned(NamedTuple):
    """Facts about all rows, and a sample of them."""

    sizes: np.ndarray
    """Rows of every group."""
    peaks: np.ndarray
    """Largest absolute entry of every parameter block and column."""
    highest: Pool
    """A row for every peak, numbered by parameter block and column; row -1 if the block has no rows."""
    bad: Pool
    """The first row that is not finite, or none."""
    by_group: Kept
    """Drawn rows of every group."""
    by_block: Kept
    """Drawn rows of every parameter block."""


def scan(
    first: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, counts: Shape, drawn: Shape
) -> Scanned:
    """Scan a chunk of so many groups and parameter blocks, and draw so many rows of each. A task."""
    peaks, at = np.zeros((counts[1], x.shape[1])), np.full((counts[1], x.shape[1]), -1)
    bad = scan_rows(x, blocks, 0, peaks, at)
    highest = pooled(first, x, groups, blocks, at.reshape(-1))
    highest.rows[at.reshape(-1) < 0] = -1
    return Scanned(
        np.bincount(groups, minlength=counts[0]),
        peaks,
        highest,
        pooled(first, x, groups, blocks, np.array([bad] if bad >= 0 else [], np.int64)),
        *samples(first, x, groups, blocks, (counts[0], drawn[0]), (counts[1], drawn[1])),
    )


def merge_scans(one: Scanned, other: Scanned) -> Scanned:
    """Return the facts about the rows of two scans. A merge."""
    mine, theirs = one.highest.rows, other.highest.rows
    top, high = one.peaks.reshape(-1), other.peaks.reshape(-1)
    better = (theirs >= 0) & ((mine < 0) | (high > top) | ((high == top) & (theirs < mine)))
    both = zip(one.highest, other.highest, strict=True)
    chosen = Pool(*(np.where(better if a.ndim == 1 else better[:, None], b, a) for a, b in both))
    bad = united(one.bad, other.bad)
    return Scanned(
        one.sizes + other.sizes,
        np.maximum(one.peaks, other.peaks),
        chosen,
        bad.take(np.arange(min(1, len(bad.rows)))),
        merge_kept(one.by_group, other.by_group),
        merge_kept(one.by_block, other.by_block),
    )


def modesty(
    _: int,
    x: np.ndarray,
    groups: np.ndarray,
    blocks: np.ndarray,
    row_scale: np.ndarray,
    directions: np.ndarray,
) -> float:
    """Return the largest sum of coordinates with drawn signs. A task; its merge is max."""
    return float(largest_sum(x, blocks, groups, row_scale, 0, directions))


def reach(
    _: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, maps: np.ndarray, root: np.ndarray
) -> np.ndarray:
    """Return the largest refined coordinate by block and column, times the root of the budget.

    This is a task whose merge is np.maximum.
    """
    out = np.zeros((len(maps), maps.shape[2]))
    raise_reach(refined(x, blocks, maps), blocks, groups, root, out)
    return out


def refined(x: np.ndarray, blocks: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """Return the coordinates of some rows by compensated products, read-only."""
    t = np.empty((len(x), maps.shape[2]))
    write_refined(x, blocks, maps, t)
    return read_only(t)


def fetch(first: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, rows: np.ndarray) -> Pool:
    """Return the rows of a chunk that have some numbers, in ascending order. A task; its merge is united."""
    low, high = np.searchsorted(rows, [first, first + len(x)])
    return pooled(first, x, groups, blocks, rows[low:high] - first)


def outside(
    first: int,  # noqa: ARG001
    x: np.ndarray,
    groups: np.ndarray,  # noqa: ARG001
    blocks: np.ndarray,
    ranks: np.ndarray,
    normals: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Return the verdicts on exact ranks after a chunk. A task; its merge is np.maximum."""
    out = np.array([verdict for _, verdict in normals])
    for verdict, (normal, _), prime, powers in zip(out, normals, PRIMES, POWERS, strict=True):
        mark_outside(np.ascontiguousarray(x), blocks, 0, ranks, normal, prime, powers, verdict)
    return out


class Winners(NamedTuple):
    """Pivots of chunks, and the largest rejected relative residual of every parameter block."""

    pool: Pool
    rejected: np.ndarray


def contest(
    first: int,
    x: np.ndarray,
    groups: np.ndarray,
    blocks: np.ndarray,
    row_scale: np.ndarray,
    rtol: float,
    n_blocks: int,
) -> Winners:
    """Return the pivots of a chunk. A task."""
    span = eliminated(np.ascontiguousarray(x), np.arange(len(x)), blocks, groups, row_scale, rtol, n_blocks)
    at = np.sort(span.pivots[span.pivots >= 0])
    return Winners(pooled(first, x, groups, blocks, at), span.margin[:, 0])


def merge_winners(
    one: Winners, other: Winners, row_scale: np.ndarray, rtol: float, most: int = 1 << 17
) -> Winners:
    """Return the pivots of two contests; of a contest among them if they are more than ``most``. A merge."""
    pool, rejected = united(one.pool, other.pool), np.maximum(one.rejected, other.rejected)
    if len(pool.rows) <= most:
        return Winners(pool, rejected)
    span = span_of(pool, row_scale, rtol, len(rejected))
    return Winners(pool.take(np.sort(span.pivots[span.pivots >= 0])), np.maximum(rejected, span.margin[:, 0]))


def span_of(pool: Pool, row_scale: np.ndarray, rtol: float = DECISION.rtol, n_blocks: int = 1) -> Span:
    """Return a basis of every parameter block out of a pool; its pivots are places in the pool."""
    blocks, groups = read_only(pool.blocks), read_only(pool.groups)
    return eliminated(read_only(pool.x), np.arange(len(pool.rows)), blocks, groups, row_scale, rtol, n_blocks)
