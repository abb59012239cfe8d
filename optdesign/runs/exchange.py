"""Exchange of whole runs within groups, for any list of candidates.

A design is a whole number of runs c_n of every candidate, with the runs of each group fixed. Moving one run
of a group from candidate m to candidate k multiplies the product of the determinants by

    (1 + g_k) (1 - g_m) + c_km^2 <= 1 + g_k - g_m,    g_n = x_n' V x_n,    c_km = x_k' V x_m,

with V the inverse information of the block and c_km = 0 if k and m are in different blocks. So one pass over
the candidates of a group finds the best k for a given m (Fedorov's exchange), c_km is computed only where the
bound exceeds the best gain, and two rank-one updates follow it.

*Termination.* Rank-one updates lose digits where the information is nearly singular, and a gain computed from
them can be round-off. So log det is recomputed from the counts after at most REFRESH exchanges, and at the
end if sum_n c_n g_n differs from the rank. If log det has not risen, the exchanges since the last such
refresh are undone, and from then on every exchange is checked. The refreshed log det is a function of the
counts and rises strictly, so no counts occur twice.

*Limits.* Kernels return after a given number of passes over the candidates of a group, so that the time
between two checks of the clock is bounded.

If there are very many candidates, the search is among those of largest variance. At its end all candidates
are priced by their variances under the runs found, and exchanges continue with the best of them. Then no
exchange gains if the other candidates have smaller variances than all runs of their group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import accumulate, add_outer, factorise, invert, multiply, variance
from optdesign.algebra.whitening import measured
from optdesign.problem.problem import DesignProblem
from optdesign.runs.rank_basis import coordinates_of
from optdesign.runs.rank_two import CHANGES, IDLE, REFRESH, ROW, SAFE
from optdesign.runs.search import GAIN, SLICE
from optdesign.runtime.jit import kernel

LARGEST_BOARD = 1 << 19
"""Coordinates that the search keeps at hand, 4 MiB of them: beyond, it sees some candidates only."""


PASS = 500
"""Multiplications that take as long as the fixed part of a pass over the candidates of a group."""

DRIFT = 1e-6
"""Difference of tracked and recomputed log det above which every exchange is checked."""


class Board(NamedTuple):
    """Candidates as kernels read them: sorted by group, and by block within a group."""

    z: np.ndarray
    """Coordinates of the rows, (A, largest rank)."""
    columns: np.ndarray
    """The same, transposed."""
    groups: np.ndarray
    blocks: np.ndarray
    at: np.ndarray
    """Group i and block b have the rows at[i, b] .. at[i, b + 1] - 1; (n_groups, n_blocks + 1)."""
    ranks: np.ndarray


class State(NamedTuple):
    """Runs, the inverses and variances that belong to them, scratch space, and the position of the search."""

    counts: np.ndarray
    inverse: np.ndarray
    g: np.ndarray
    work: np.ndarray
    checked: np.ndarray
    """Counts at the last check of log det."""
    place: np.ndarray
    """Next row, rows visited since the last gain, exchanges since the last refresh and between two checks."""
    log_det: np.ndarray


OFTEN = CHANGES + 1
"""Entry of ``place`` after those that all searches have: exchanges between two checks of log det."""


def lay_out(problem: DesignProblem, rows: np.ndarray) -> tuple[Board, np.ndarray]:
    """Return the board of some candidates, at least one a group, and the candidate of each of its rows."""
    order = rows[np.lexsort((rows, problem.parameter_blocks[rows], problem.groups[rows]))]
    groups, blocks = problem.groups[order], problem.parameter_blocks[order]
    z = coordinates_of(problem, order)
    cell = groups * problem.n_parameter_blocks + blocks
    edges = np.searchsorted(cell, np.arange(problem.n_groups * problem.n_parameter_blocks + 1))
    at = edges[
        np.arange(problem.n_groups)[:, None] * problem.n_parameter_blocks
        + np.arange(problem.n_parameter_blocks + 1)
    ]
    return Board(z, np.ascontiguousarray(z.T), groups, blocks, at, problem.ranks), order


def state_of(board: Board, counts: np.ndarray) -> State:
    """Return the state of some runs."""
    width, n = board.z.shape[1], len(board.z)
    inverse = np.zeros((len(board.ranks), width, width))
    place = np.array([0, 0, 0, REFRESH])
    state = State(counts, inverse, np.zeros(n), np.zeros(n), counts.copy(), place, np.zeros(1))
    refreshed(board, state)
    return state


def refreshed(board: Board, state: State) -> float:
    """Recompute a state from its counts. Returns log det, -inf if the counts lose rank."""
    tracked = state.log_det[0]
    state.log_det[0] = refresh(board.z, board.blocks, board.ranks, state.counts, state.inverse, state.g)
    if state.place[CHANGES] and not abs(state.log_det[0] - tracked) <= DRIFT:
        state.place[OFTEN] = 1
    state.place[CHANGES] = 0
    return float(state.log_det[0])


def promising(
    problem: DesignProblem, g: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Candidates to search among: all, or those of largest variance, and those that have runs or weight.

    If very many have weight it is that of their variances.
    """
    room = LARGEST_BOARD // max(1, problem.span.maps.shape[2])
    if problem.n_candidates <= room:
        return np.arange(problem.n_candidates)
    top = np.zeros(problem.n_groups)
    np.maximum.at(top, problem.groups, g)
    # Candidates that tie are many on grids, and neighbours are much the same: so ties are broken at random.
    noise = np.random.default_rng(0).random(len(g))
    # Candidates whose variances differ by less than this fraction are picked at random.
    spread = 1e-3
    score = g / np.where(top > 0, top, 1.0)[problem.groups] * (1.0 + spread * noise)
    best = np.argpartition(score, len(score) - room)[-room:]
    heavy = np.empty(0, np.int64) if weights is None else np.flatnonzero(weights)
    ordered = np.lexsort((-score, problem.groups))
    first = ordered[np.flatnonzero(np.diff(problem.groups[ordered], prepend=-1))]  # one a group at least
    return np.unique(
        np.concatenate([best, first, np.flatnonzero(counts), heavy[: room * (len(heavy) <= room)]])
    )


def climbed(
    problem: DesignProblem, counts: np.ndarray, g: np.ndarray, stopped: Callable[[], bool] = lambda: False
) -> tuple[np.ndarray, bool]:
    """Return runs after exchanges, and True if it is proved that no other exchange improves them.

    The given runs have full rank, and g orders the candidates to try.
    """
    best = -np.inf
    rounds = 20  # most times that all candidates are priced
    for _ in range(rounds):
        board, order = lay_out(problem, promising(problem, g, counts))
        state = state_of(board, counts[order])
        value = climb_on(board, state, stopped)
        counts = np.zeros_like(counts)
        counts[order] = state.counts
        if len(order) == problem.n_candidates or stopped():
            return counts, len(order) == problem.n_candidates
        if value <= best + GAIN:  # the runs are those of g
            return counts, not np.any(np.delete(_may_gain(problem, counts, g), order))
        best, support = value, np.flatnonzero(counts)
        g = measured(problem, problem.rows, support, counts[support].astype(np.float64)).g
    return counts, False


def _may_gain(problem: DesignProblem, counts: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return True for the candidates to which a run might move with a gain, given the variances of runs."""
    support = np.flatnonzero(counts)
    least = np.full(problem.n_groups, np.inf)
    np.minimum.at(least, problem.groups[support], g[support])
    return g > least[problem.groups] + GAIN


def passes_of(board: Board, work: float) -> int:
    """Return the passes over the candidates of a group that some work allows, at least 2 refreshes."""
    rows, width = board.z.shape
    return max(int(min(work / (rows * width + PASS), 1e9)), 2 * width + 2)


def climb_on(board: Board, state: State, stopped: Callable[[], bool]) -> float:
    """Climb until no exchange gains or a stop is pending. Returns log det, -inf if the counts lose rank."""
    while True:
        climb(*board, *state, passes_of(board, SLICE))
        if state.place[IDLE] >= len(board.z) or stopped():
            return refreshed(board, state)


@kernel
def refresh(z, blocks, ranks, counts, inverse, g):
    """Overwrite inverse and g with those of the counts. Returns log det, -inf if the counts lose rank."""
    information, factor = np.zeros_like(inverse), np.zeros_like(inverse)
    accumulate(z, blocks, ranks, counts, information)
    total = 0.0
    for log_det in factorise(information, ranks, factor):
        total += log_det
    if total > -np.inf:
        invert(factor, ranks, inverse)
        for n in range(len(z)):
            g[n] = variance(factor, blocks[n], z, n, ranks[blocks[n]])
    return total


@kernel
def _covariances(columns, lo, hi, y, out):
    """Overwrite out[lo:hi] with x_n' y of the rows lo .. hi - 1."""
    out[lo:hi] = 0.0
    rank = len(y)
    # Four columns at a time: the sums are read and written a quarter as often.
    for k in range(0, rank - 3, 4):
        c0, c1, c2, c3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        x0, x1, x2, x3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for n in range(lo, hi):
            out[n] += (c0 * x0[n] + c1 * x1[n]) + (c2 * x2[n] + c3 * x3[n])
    for k in range(rank - rank % 4, rank):
        column, c = columns[k], y[k]
        for n in range(lo, hi):
            out[n] += c * column[n]


@kernel
def _move(z, columns, blocks, at, ranks, row, sign, counts, inverse, g, work):
    """Add (sign 1.0) or take away (sign -1.0) a run of a row. Overwrites counts, inverse, g and work.

    Not a whole number: a kernel would be compiled for either.
    """
    b = blocks[row]
    y = np.empty(ranks[b])
    own = multiply(inverse[b], z[row], y)
    scale = sign / (1.0 + sign * own)
    for i in range(len(at)):
        lo, hi = at[i, b], at[i, b + 1]
        _covariances(columns, lo, hi, y, work)
        for n in range(lo, hi):
            g[n] -= scale * work[n] * work[n]
    add_outer(inverse[b], y, -scale)
    counts[row] += int(sign)


@kernel
def _best_move(z, columns, groups, blocks, at, ranks, row, inverse, g, work):
    """Return the best row to move a run to from a given row, and the factor of det. Overwrites work."""
    i, b = groups[row], blocks[row]
    lo, hi = at[i, b], at[i, b + 1]
    y = np.empty(ranks[b])
    multiply(inverse[b], z[row], y)
    keep = 1.0 - g[row]
    # A variance g_m of a run within this of 1, its largest value, is taken as 1: 1 - g_m is mostly round-off.
    saturated = 1e-10
    if not keep > saturated:  # the gain is then c^2, which is a lower bound
        keep = 0.0
    best, gain, above = row, 1.0, 0
    for n in range(lo, hi):
        above += g[n] > g[row]
    few = 4 * above < hi - lo
    if not few:
        _covariances(columns, lo, hi, y, work)
    for n in range(lo, hi):
        if 1.0 + g[n] - g[row] > gain:
            if few:
                c = 0.0
                for k in range(len(y)):
                    c += y[k] * z[n, k]
            else:
                c = work[n]
            value = (1.0 + g[n]) * keep + c * c
            if value > gain + GAIN:
                best, gain = n, value
    if hi - lo < at[i, -1] - at[i, 0]:
        for n in range(at[i, 0], at[i, -1]):
            value = (1.0 + g[n]) * keep
            if value > gain + GAIN and not lo <= n < hi:
                best, gain = n, value
    return best, gain


@kernel
def _drifted(ranks, counts, g):
    """Return True if updates have lost digits: the sum of the variances of the runs must be the rank."""
    total = 0.0
    for n in range(len(counts)):
        total += counts[n] * g[n]
    for b in range(len(ranks)):
        total -= ranks[b]
    return not abs(total) <= DRIFT


@kernel
def climb(z, columns, groups, blocks, at, ranks, counts, inverse, g, work, checked, place, log_det, most):
    """Exchange until no exchange gains, or for a number of passes. Overwrites the arrays of the state.

    Returns the passes used. The climb is complete if ``place[IDLE]`` is the number of rows.
    """
    rows, width = z.shape
    used, steps, before = 1, 0, 0
    if place[CHANGES] >= REFRESH or place[OFTEN] == 1:
        log_det[0] = refresh(z, blocks, ranks, counts, inverse, g)
        place[CHANGES] = 0
        used += width  # a refresh takes as long as that many passes
    total = log_det[0]
    if total == -np.inf:
        place[IDLE] = rows
    _copy_counts(counts, checked)
    while used < most and place[IDLE] < rows:
        row = place[ROW]
        place[IDLE] += 1
        if counts[row] > 0:
            used += 1
            k, gain = _best_move(z, columns, groups, blocks, at, ranks, row, inverse, g, work)
            if gain > 1.0 + GAIN:
                _move(z, columns, blocks, at, ranks, k, 1.0, counts, inverse, g, work)
                _move(z, columns, blocks, at, ranks, row, -1.0, counts, inverse, g, work)
                log_det[0] += math.log(gain)
                used += 2
                steps += 1
                place[CHANGES] += 1
                before, place[IDLE] = place[IDLE], 0
        place[ROW] = row + 1 if row + 1 < rows else 0
        ends = place[IDLE] == rows or used >= most
        if steps >= place[OFTEN] or (steps > 0 and ends and _drifted(ranks, counts, g)):
            value = refresh(z, blocks, ranks, counts, inverse, g)
            used += width
            if value > total:
                total = value
                _copy_counts(counts, checked)
            else:
                _copy_counts(checked, counts)
                total = refresh(z, blocks, ranks, counts, inverse, g)
                place[IDLE] = before if place[OFTEN] == 1 else 0  # a gain that is round-off is no gain
                place[OFTEN] = 1
            log_det[0] = total
            place[CHANGES] = steps = 0
    return used


@kernel
def perturb(z, columns, groups, blocks, at, ranks, counts, inverse, g, work, place, log_det, draws):
    """Move some runs at random, two draws from [0, 1) each. Overwrites the state."""
    runs = counts.sum()
    for j in range(0, len(draws), 2):
        left = min(np.int64(draws[j] * runs), runs - 1)  # the product is rounded
        m = 0
        while left >= counts[m]:
            left -= counts[m]
            m += 1
        first, last = at[groups[m], 0], at[groups[m], -1]
        k = first + np.int64(draws[j + 1] * (last - first))
        c, b = 0.0, blocks[m]
        if blocks[k] == b:
            y = np.empty(ranks[b])
            multiply(inverse[b], z[m], y)
            for i in range(ranks[b]):
                c += y[i] * z[k, i]
        ratio = (1.0 + g[k]) * (1.0 - g[m]) + c * c
        if ratio > SAFE:
            _move(z, columns, blocks, at, ranks, k, 1.0, counts, inverse, g, work)
            _move(z, columns, blocks, at, ranks, m, -1.0, counts, inverse, g, work)
            log_det[0] += math.log(ratio)
            place[CHANGES] += 1
    place[IDLE] = 0


@kernel
def _copy_counts(counts, to):
    """Overwrite counts with others."""
    for n in range(len(counts)):
        to[n] = counts[n]
