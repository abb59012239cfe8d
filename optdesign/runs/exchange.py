"""Exchange of whole runs within groups: local search for exact designs, compiled.

A design is a whole number of runs c_n of every candidate, with the runs of each group fixed. Moving one run
of a group from candidate m to candidate k multiplies the product of the determinants by

    (1 + g_k) (1 - g_m) + c_km^2,    g_n = x_n' V x_n,    c_km = x_k' V x_m,

with V the inverse information of the block and c_km = 0 if k and m are in different blocks. So one pass over
the candidates of a group finds the best k for a given m (Fedorov's exchange), and two rank-one updates follow
it. Local search ends when no exchange gains. A perturbation, a few random exchanges, starts it again, and the
best runs are kept.

*Termination.* Rank-one updates lose digits where the information is nearly singular, and a gain computed from
them can be round-off. So log det is recomputed from the counts after at most REFRESH exchanges. If it has not
risen, the exchanges since the last such refresh are undone, and from then on every exchange is checked. The
refreshed log det is a function of the counts and rises strictly, so no counts occur twice.

*Limits.* Kernels return after a given number of passes over the candidates of a group, so that the time
between two checks of the clock is bounded.

Of very many candidates the search sees some, those of largest variance; then all are priced, by their
variances under what was found, and the search goes on with the best of them while that gains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import accumulate, add_outer, factorise, invert, multiply, variance
from optdesign.algebra.passes import coordinates
from optdesign.algebra.whitening import measured
from optdesign.problem.problem import DesignProblem
from optdesign.runs.search import GAIN
from optdesign.runtime.jit import kernel

REFRESH = 50
"""Exchanges after which inverses and variances are recomputed from the counts."""

SAFE = 1e-7
"""A perturbation may not lower the determinant by more than this factor: the rank would be in doubt."""

LARGEST_BOARD = 1 << 19
"""Coordinates that the search keeps at hand, 4 MiB of them: beyond, it sees some candidates only."""

SLICE = 5e7
"""Multiplications between two checks of the clock."""


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
    """What the search changes: runs, inverses and variances that belong to them, and scratch space."""

    counts: np.ndarray
    inverse: np.ndarray
    g: np.ndarray
    work: np.ndarray
    checked: np.ndarray
    """Counts at the last refresh."""


class Kept(NamedTuple):
    """The best runs of a search, with their inverses and variances."""

    counts: np.ndarray
    inverse: np.ndarray
    g: np.ndarray


def coordinates_of(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Return coordinates of some candidates: by compensated products, or as solvers read them if very many.

    Compensated products take about 20 times as long, and are of use where information is nearly singular.
    """
    if len(rows) * problem.dim * problem.largest_rank <= SLICE:
        return problem.coordinates(rows)
    return coordinates(problem, rows, problem.rows)


def lay_out(problem: DesignProblem, rows: np.ndarray) -> tuple[Board, np.ndarray]:
    """The board of some candidates, at least one a group, and the candidate of each of its rows."""
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
    """A state to search from; the first climb fills it in."""
    width = board.z.shape[1]
    n = len(board.z)
    inverse = np.zeros((len(board.ranks), width, width))
    return State(counts, inverse, np.zeros(n), np.zeros(n), counts.copy())


def kept_of(state: State) -> Kept:
    """Return a copy of the runs of a state, with their inverses and variances."""
    return Kept(state.counts.copy(), state.inverse.copy(), state.g.copy())


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


def variances_under(problem: DesignProblem, counts: np.ndarray) -> np.ndarray:
    """Variance of every candidate under some runs, whatever the budgets are."""
    support = np.flatnonzero(counts)
    return measured(problem, problem.rows, support, counts[support].astype(np.float64)).g


def climbed(
    problem: DesignProblem, counts: np.ndarray, g: np.ndarray, stopped: Callable[[], bool] = lambda: False
) -> np.ndarray:
    """Runs from which no exchange gains, reached from some of full rank; g ranks the candidates to try."""
    best = -np.inf
    rounds = 20  # most times that all candidates are priced
    for _ in range(rounds):
        board, order = lay_out(problem, promising(problem, g, counts))
        state = state_of(board, counts[order])
        value = climb_on(board, state, stopped)
        counts = np.zeros_like(counts)
        counts[order] = state.counts
        if len(order) == problem.n_candidates or value <= best + GAIN or stopped():
            break
        best, g = value, variances_under(problem, counts)
    return counts


def passes_of(board: Board) -> int:
    """Return the passes between two checks of the clock.

    They cost about SLICE multiplications, and no less than the refreshes at both ends of a climb.
    """
    rows, width = board.z.shape
    # Multiplications that take as long as the fixed part of a pass over the candidates of a group.
    fixed_part = 500
    return max(1, int(SLICE / (rows * width + fixed_part)), 2 * width)


def climb_on(board: Board, state: State, stopped: Callable[[], bool]) -> float:
    """Climb until no exchange gains or a stop is pending. Returns log det, -inf if the counts lose rank."""
    most, rows = passes_of(board), len(board.z)
    value, _, row, idle, often = climb(*board, *state, most, 0, 0, REFRESH)
    while idle < rows and not stopped():
        value, _, row, idle, often = climb(*board, *state, most, row, idle, often)
    return value


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
    """The row that a run should move to from the given one, and the factor that it gains. Overwrites work."""
    i, b = groups[row], blocks[row]
    lo, hi = at[i, b], at[i, b + 1]
    y = np.empty(ranks[b])
    multiply(inverse[b], z[row], y)
    _covariances(columns, lo, hi, y, work)
    keep = 1.0 - g[row]
    # A variance g_m of a run within this of 1, its largest value, is taken as 1: 1 - g_m is mostly round-off.
    saturated = 1e-10
    if not keep > saturated:  # the gain is then c^2, which is a lower bound
        keep = 0.0
    best, gain = row, 1.0
    for n in range(lo, hi):
        value = (1.0 + g[n]) * keep + work[n] * work[n]
        if value > gain:
            best, gain = n, value
    if hi - lo < at[i, -1] - at[i, 0]:
        for n in range(at[i, 0], at[i, -1]):
            value = (1.0 + g[n]) * keep
            if value > gain and not lo <= n < hi:
                best, gain = n, value
    return best, gain


@kernel
def climb(z, columns, groups, blocks, at, ranks, counts, inverse, g, work, checked, most, row, idle, often):
    """Exchange until no exchange gains, or for a number of passes. Overwrites the arrays of the state.

    ``row`` is the first row to visit, ``idle`` the number of rows visited in turn without a gain, and
    ``often`` the number of exchanges between two refreshes. Returns log det of the counts (-inf if those
    given lose rank), the passes used, and these three to continue with. The climb is complete if idle is the
    number of rows.
    """
    rows, width = z.shape
    used, steps, before = width, 0, 0  # a refresh takes as long as that many passes
    total = refresh(z, blocks, ranks, counts, inverse, g)
    if total == -np.inf:
        return total, used, row, rows, often
    _copy_counts(counts, checked)
    while used < most and idle < rows:
        idle += 1
        if counts[row] > 0:
            used += 1
            k, gain = _best_move(z, columns, groups, blocks, at, ranks, row, inverse, g, work)
            if gain > 1.0 + GAIN:
                _move(z, columns, blocks, at, ranks, k, 1.0, counts, inverse, g, work)
                _move(z, columns, blocks, at, ranks, row, -1.0, counts, inverse, g, work)
                used += 2
                steps += 1
                before, idle = idle, 0
        row = row + 1 if row + 1 < rows else 0
        if steps > 0 and (steps >= often or idle == rows or used >= most):
            value = refresh(z, blocks, ranks, counts, inverse, g)
            used += width
            if value > total:
                total = value
                _copy_counts(counts, checked)
            else:
                _copy_counts(checked, counts)
                refresh(z, blocks, ranks, counts, inverse, g)
                idle = before if often == 1 else 0  # a gain that is round-off is no gain
                often = 1
            steps = 0
    return total, used, row, idle, often


@kernel
def perturb(z, columns, groups, blocks, at, ranks, counts, inverse, g, work, draws):
    """Move some runs at random, two draws from [0, 1) each. Overwrites counts, inverse, g and work."""
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
        if (1.0 + g[k]) * (1.0 - g[m]) + c * c > SAFE:
            _move(z, columns, blocks, at, ranks, k, 1.0, counts, inverse, g, work)
            _move(z, columns, blocks, at, ranks, m, -1.0, counts, inverse, g, work)


@kernel
def search(
    z, columns, groups, blocks, at, ranks, counts, inverse, g, work, checked,
    kept, kept_inverse, kept_g, best, draws, most,
):  # fmt: skip
    """Perturb and climb from the kept runs, whose log det is best, once for every row of draws.

    Overwrites the arrays of the state, and those of the kept runs if others are as good. Returns the log det
    of the kept runs and the number of climbs completed. If that is less than the number of draws, the passes
    are used up and the state is that of a climb to continue.
    """
    done, left, first = 0, most, np.int64(0)  # as variables: for constants, kernels are compiled anew
    often = np.int64(REFRESH)
    for t in range(len(draws)):
        _copy(kept, kept_inverse, kept_g, counts, inverse, g)
        perturb(z, columns, groups, blocks, at, ranks, counts, inverse, g, work, draws[t])
        value, used, _, idle, _ = climb(
            z,
            columns,
            groups,
            blocks,
            at,
            ranks,
            counts,
            inverse,
            g,
            work,
            checked,
            left,
            first,
            first,
            often,
        )
        if idle < len(z):
            break
        if value >= best:
            best = value
            _copy(counts, inverse, g, kept, kept_inverse, kept_g)
        done += 1
        left = max(left - used, 1)
    return best, done


@kernel
def _copy_counts(counts, to):
    """Overwrite counts with others."""
    for n in range(len(counts)):
        to[n] = counts[n]


@kernel
def _copy(counts, inverse, g, to_counts, to_inverse, to_g):
    """Overwrite counts, inverses and variances with others."""
    for n in range(len(counts)):
        to_counts[n], to_g[n] = counts[n], g[n]
    for b in range(inverse.shape[0]):
        for k in range(inverse.shape[1]):
            for j in range(inverse.shape[2]):
                to_inverse[b, k, j] = inverse[b, k, j]
