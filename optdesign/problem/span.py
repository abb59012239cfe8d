"""Coordinates in which every block has full rank and is well scaled.

The problem does not change under an invertible linear map of the candidates of a block, and it depends only
on the span of each block. So each block gets, once, a basis of that span made of its own candidates (pivots).
All later computations use the coordinates

    t_n = x_n @ T_b        (rank_b numbers)

in which information matrices are non-singular and pseudo-inverses are inverses. Any T that is one-to-one on
the span gives the same problem, so T need not be exact. The product x_n @ T_b must be accurate; see
:mod:`optdesign.problem.coordinates`. Pivots are chosen for large volume after multiplication by the root of
their budget, and T is scaled so that z_p = sqrt(f_i) t_p is nearly a unit vector for every pivot p. So
z_n = sqrt(f_i) t_n stays modest for all candidates. No f_i g_n exceeds D under an optimal design, so its
information has no eigenvalue below 1 / (D r): it is well conditioned for any data.

The rank decision is in :mod:`optdesign.problem.elimination`. ``Span.margin`` states how close a decision was;
:mod:`optdesign.problem.exact_rank` compares it with the exact rank.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from optdesign.problem.elimination import eliminate as eliminate_rows
from optdesign.problem.source import Source, read_only
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel


class RankDecision(NamedTuple):
    """Parameters of the decision whether a candidate adds a dimension."""

    rtol: float = 1e-12
    """A candidate adds a dimension if its residual exceeds this fraction of its own norm."""
    single_rtol: float = 2.0**-19
    """The same for candidates given in single precision: 16 roundings."""
    close: float = 1000.0
    """A decision is close if an accepted residual is within this factor of the tolerance."""
    modest: float = 256.0
    """Pivots of a sample are used if no candidate's coordinates, with signs drawn at random, add up to
    more."""

    def tolerance(self, is_single: bool) -> float:
        """Return the tolerance for candidates in single or in double precision."""
        return self.single_rtol if is_single else self.rtol


DECISION = RankDecision()


class Peaks(NamedTuple):
    """Largest absolute entry of every column in every block, and the row that has it (-1: none)."""

    value: np.ndarray
    row: np.ndarray


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
        return np.flatnonzero(self.margin[:, 1] < self.rtol * DECISION.close)

    @property
    def is_single(self) -> bool:
        """True if the candidates were given in single precision."""
        return self.rtol >= DECISION.single_rtol

    def narrowed(self) -> Span:
        """Return the same basis with maps that are no wider than the largest rank."""
        width = max(1, int(np.maximum.reduce(self.ranks)))
        if width == self.maps.shape[2]:
            return self
        return self._replace(maps=np.ascontiguousarray(self.maps[:, :, :width]))


def find_span(
    source: Source,
    blocks: np.ndarray,
    row_scale: np.ndarray,
    groups: np.ndarray,
    peak: Peaks,
    rtol: float = DECISION.rtol,
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
        return eliminated(x, rows, blocks, groups, row_scale, rtol, n_blocks)

    def chosen(rows: np.ndarray) -> Span:
        return eliminate(rows, read_only(source.take(rows)))

    span: Span | None = None
    pool = 8  # candidates per dimension and block in the sample that is tried first
    if n > 2 * pool * d * n_blocks:
        every = np.arange(0, n, n // (pool * d * n_blocks))
        span = chosen(np.concatenate([every, peak.row[peak.row >= 0]]))
        occupied = peak.row[:, 0] >= 0
        if (
            np.any(span.ranks[occupied] < d)
            or np.any(occupied[span.close_blocks])
            or not _is_modest(source, blocks, groups, row_scale, span.maps)
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
    return span.narrowed()


def eliminated(
    x: np.ndarray,
    rows: np.ndarray,
    blocks: np.ndarray,
    groups: np.ndarray,
    row_scale: np.ndarray,
    rtol: float,
    n_blocks: int,
) -> Span:
    """Return the basis of every block among some candidates, whose features are x."""
    d = x.shape[1]
    span = Span(
        maps=np.zeros((n_blocks, d, d)),
        ranks=np.zeros(n_blocks, np.int64),
        pivots=np.full((n_blocks, d), -1),
        margin=np.zeros((n_blocks, 2)),
        rtol=rtol,
    )
    eliminate_rows(x, rows, blocks, groups, row_scale, rtol, *span[:4])
    return span


def scan(source: Source, blocks: np.ndarray, n_blocks: int) -> tuple[Peaks, int]:
    """One pass over the candidates: their peaks, and the first row that is not finite (or -1)."""
    peaks = Peaks(np.zeros((n_blocks, source.dim)), np.full((n_blocks, source.dim), -1))
    for first, x in source.pieces():
        bad = scan_rows(x, blocks, first, peaks.value, peaks.row)
        if bad >= 0:
            return peaks, bad
    return peaks, -1


def _is_modest(
    source: Source, blocks: np.ndarray, groups: np.ndarray, row_scale: np.ndarray, maps: np.ndarray
) -> bool:
    """Return True if no candidate seems to have large coordinates z_n = row_scale x_n @ maps[b].

    At least half of all choices of signs make |sum_k s_k z_k| as large as the largest |z_k|, because
    changing the sign of that one moves the sum by twice as much. Four choices are looked at, so a large
    coordinate is missed with probability 1/16 at most.
    """
    directions = signed_sums(maps)

    def largest(first: int, last: int) -> float:
        return largest_sum(source.piece(first, last), blocks, groups, row_scale, first, directions)

    return all(top <= DECISION.modest for top in threads.results(largest, source.n_rows, source.rows_a_piece))


def signed_sums(maps: np.ndarray) -> np.ndarray:
    """Return four directions for every block that add coordinates up with drawn signs, (n_blocks, d, 4)."""
    return maps @ _signs(maps.shape[2])


@cache
def _signs(width: int) -> np.ndarray:
    """Return four choices of signs, (width, 4)."""
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(width, 4))


@kernel
def largest_sum(x, blocks, groups, row_scale, first, directions):
    """Return the largest |row_scale x_n @ v| in a piece, v one of the four directions of its block."""
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
def scan_rows(x, blocks, first, peak, row):
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
