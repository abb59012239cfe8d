"""Block coordinate ascent (Algorithm 3 of the paper), its subproblems solved in closed form.

    maximise   sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

One sweep visits every group. With the other groups fixed there are two cases.

*All candidates of the group lie in different blocks.* The subproblem is separable and its solution is
water-filling: with g_n = z_n' V_b z_n, the new shares are u_n = max(0, mu - s_n), where
s_n = 1 / g_n - u_n >= 0 and mu makes them sum to one. A candidate that alone carries a direction of its
block has s_n = 0 and keeps a positive share, so the rank is preserved (Lemma "linIndpdnt").

*Some candidates share a block* (the shared-parameter case, which the paper leaves open). Two candidates
k, m exchange the share that is best for the pair. With a = g_k, b = g_m and c = z_k' V z_m (zero if their
blocks differ), moving delta from m to k multiplies the determinant by
1 + delta (a - b) - delta^2 (a b - c^2), so delta = (a - b) / (2 (a b - c^2)), cut to [0, u_m].
The pair is the candidate of largest variance and, among those with a share, the one of smallest; the
variances follow each exchange, and a visit ends when they are thirty times closer than at its start.

F never decreases. The inverses V follow by rank-one updates (Lemma "low_rank_update") and are computed
afresh from the shares after every few sweeps, and before a gap is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optdesign._kernel import kernel
from optdesign.compensated import UNIT
from optdesign.information import accumulate, factorise, invert, variance
from optdesign.reduced import Reduced
from optdesign.solvers import NOTHING, Step
from optdesign.solvers.costs import SWEEPS

WORK_PER_CALL = 2e7
"""Multiplications between two returns to Python, where limits and interrupts are looked at; of one visit to a
group, ten times that."""

PLAY = 0.2
"""Candidates without a share take part in exchanges above this fraction of the group's largest excess."""
EXCHANGES, CLOSER = 4, 0.03
"""A visit of a group ends after so many exchanges per candidate, or when the largest and the smallest
variance are this much closer than at its start."""

ROUNDING = 64 * UNIT
"""Variances that differ by this fraction differ by rounding, and candidates whose squared sine is below are
parallel: they are exchanged in full."""

LAG = 5.0
"""The gap summed up during a sweep may be so many times what it is at its end."""

STALL = 8 * UNIT
"""Sweeps after which no share is further than this from where it was make no progress."""


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int, batch: int = 1000) -> Iterator[Step]:
    """Sweep until the gap is at most ``target``. Overwrites u; an iteration is a sweep.

    A step is up to ``batch`` sweeps, or a part of a long one.
    """
    z, blocks, starts, ranks, _ = reduced
    width = z.shape[1]
    sweeps = WORK_PER_CALL / (3.0 * z.size * width)
    groups = max(1, int(min(sweeps, 1.0) * reduced.n_groups))
    separable = _separable(blocks, starts, len(ranks))
    inverse = np.zeros((len(ranks), width, width))
    state = _State(z, blocks, starts, separable, ranks, u, inverse, *_buffers(starts, separable))
    done, fresh = 0, False
    while done < max_iter:
        before = u.copy()
        if groups == reduced.n_groups:
            gaps = np.empty(min(max(1, int(sweeps)), batch, max_iter - done))
            gaps = gaps[: _sweeps(*state, target, gaps)]
        else:
            if done % SWEEPS == 0 and not fresh:
                _invert_afresh(z, blocks, starts, ranks, u, inverse, 0.0)
            total = 0.0
            for first in range(0, reduced.n_groups, groups):
                total += _visit(*state, first, min(first + groups, reduced.n_groups))
                yield Step(NOTHING, "bca")
            gaps = np.array([total - reduced.rank])
            fresh = bool(gaps[0] <= LAG * target)
            if fresh:
                gaps[0] = _invert_afresh(z, blocks, starts, ranks, u, inverse, 1.0)
        done += len(gaps)
        yield Step(gaps, "bca")
        if gaps[-1] <= target or _distance(u, before) <= STALL:
            return


class _State(NamedTuple):
    """What the kernels read and overwrite."""

    z: np.ndarray
    blocks: np.ndarray
    starts: np.ndarray
    separable: np.ndarray
    ranks: np.ndarray
    u: np.ndarray
    inverse: np.ndarray
    g: np.ndarray
    fill: np.ndarray | None
    play: np.ndarray | None


def _buffers(
    starts: np.ndarray, separable: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """For variances, water-filling and exchanges; None, and nothing compiled, for what does not occur."""
    largest, filled = _sizes(starts, separable)
    fill = np.empty(largest) if filled else None
    return np.empty(largest), fill, None if filled == len(separable) else np.empty(largest, np.int64)


@kernel
def _distance(u, before):
    """The largest change of a share."""
    most = 0.0
    for n in range(len(u)):
        most = max(most, abs(u[n] - before[n]))
    return most


@kernel
def _sizes(starts, separable):
    """Candidates of the largest group, and the number of separable groups."""
    largest, count = 0, 0
    for i in range(len(separable)):
        largest = max(largest, starts[i + 1] - starts[i])
        count += separable[i]
    return largest, count


@kernel
def _separable(blocks, starts, n_blocks):
    """Tell for every group whether its candidates lie in different blocks."""
    seen = np.empty(n_blocks, np.int64)
    for b in range(n_blocks):
        seen[b] = -1
    out = np.empty(len(starts) - 1, np.bool_)
    for i in range(len(starts) - 1):
        out[i] = True
        for n in range(starts[i], starts[i + 1]):
            if seen[blocks[n]] == i:
                out[i] = False
            seen[blocks[n]] = i
    return out


@kernel
def _sweeps(z, blocks, starts, separable, ranks, u, inverse, g, fill, play, target, gaps):
    """Sweep len(gaps) times, or until the gap is at most target. Overwrites u, inverse, gaps, buffers.

    Returns the number of sweeps. The gap of a sweep is summed up from each group's largest variance as it is
    visited, so it lags behind; where it comes near the target it is computed again from the shares alone.
    """
    rank = 0
    for b in range(len(ranks)):
        rank += ranks[b]
    fresh = False
    for sweep in range(len(gaps)):
        if sweep % SWEEPS == 0 and not fresh:
            _invert_afresh(z, blocks, starts, ranks, u, inverse, 0.0)
        total = _visit(z, blocks, starts, separable, ranks, u, inverse, g, fill, play, 0, len(starts) - 1)
        gaps[sweep] = total - rank
        fresh = gaps[sweep] <= LAG * target
        if fresh:
            gaps[sweep] = _invert_afresh(z, blocks, starts, ranks, u, inverse, 1.0)
            if gaps[sweep] <= target:
                return sweep + 1
    return len(gaps)


@kernel
def _visit(z, blocks, starts, separable, ranks, u, inverse, g, fill, play, first, last):
    """Solve the subproblems of the groups first .. last - 1. Overwrites u, inverse and buffers.

    Returns the sum of their largest variances.
    """
    y = np.empty((2, z.shape[1]))
    total = 0.0
    for i in range(first, last):
        lo, hi = starts[i], starts[i + 1]
        if fill is not None and separable[i]:
            total += _water_fill(z, blocks, ranks, lo, hi, u, inverse, g, fill, y)[0]
        elif play is not None:
            total += _exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, play)[0]
    return total


@kernel
def _invert_afresh(z, blocks, starts, ranks, u, inverse, measure):
    """Overwrite inverse with those of the shares u alone. Returns their gap, if measure is positive.

    Not a truth value: a kernel would be compiled for either.
    """
    width = z.shape[1]
    information = np.zeros((len(ranks), width, width))
    factor = np.zeros((len(ranks), width, width))
    accumulate(z, blocks, ranks, u, information)
    factorise(information, ranks, factor)
    invert(factor, ranks, inverse)
    return _gap(z, blocks, starts, ranks, factor) if measure > 0.0 else np.nan


@kernel
def _gap(z, blocks, starts, ranks, factor):
    """G - D from factors of the information."""
    total = 0.0
    for i in range(len(starts) - 1):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            g = variance(factor, blocks[n], z, n, ranks[blocks[n]])
            if g > top or np.isnan(g):  # what is not a number stays one
                top = g
        total += top
    for b in range(len(ranks)):
        total -= ranks[b]
    return total


@kernel
def _variance(inverse, b, z, n, rank):
    """z_n' V_b z_n."""
    g = 0.0
    for i in range(rank):
        t = 0.0
        for j in range(i):
            t += inverse[b, i, j] * z[n, j]
        g += (2.0 * t + inverse[b, i, i] * z[n, i]) * z[n, i]
    return g


@kernel
def _apply(inverse, b, z, n, rank, out):
    """Overwrite out with V_b z_n."""
    for i in range(rank):
        t = 0.0
        for j in range(rank):
            t += inverse[b, i, j] * z[n, j]
        out[i] = t


@kernel
def _add_outer(inverse, b, vector, rank, scale):
    """Add scale v v' to V_b. Overwrites inverse."""
    for i in range(rank):
        t = scale * vector[i]
        for j in range(rank):
            inverse[b, i, j] += t * vector[j]


@kernel
def _water_fill(z, blocks, ranks, lo, hi, u, inverse, g, s, y):
    """Solve the subproblem of a group whose blocks differ. Overwrites u, inverse and the buffers.

    Returns the group's largest variance before the step and its largest change of a share. The level mu
    is found without sorting: candidates above the water are dropped until none is (Michelot's method).
    """
    top, lowest = 0.0, np.inf
    for n in range(lo, hi):
        k = n - lo
        b = blocks[n]
        g[k] = _variance(inverse, b, z, n, ranks[b])
        top = max(top, g[k])
        s[k] = np.inf
        if g[k] > 0.0:
            s[k] = max(0.0, 1.0 / g[k] - u[n])
            lowest = min(lowest, s[k])
    if lowest == np.inf:
        return top, 0.0
    # Only differences of s matter; for candidates with little information s itself is huge. The sum is
    # formed anew each time, because a huge s that is taken out of a sum takes the others' digits along.
    # Candidates are only ever dropped, so it ends; by rounding one could seem to come back, and go again.
    mu, under_water = np.inf, hi - lo + 1
    while True:
        count, total = 0, 1.0
        for k in range(hi - lo):
            if s[k] - lowest < mu:
                count += 1
                total += s[k] - lowest
        mu = total / count
        if count >= under_water:
            break
        under_water = count
    total = 0.0
    for k in range(hi - lo):
        s[k] = max(0.0, mu - (s[k] - lowest))
        total += s[k]
    step = 0.0
    for n in range(lo, hi):
        k = n - lo
        new = s[k] / total
        change = new - u[n]
        step = max(step, abs(change))
        if change != 0.0 and g[k] > 0.0:
            b = blocks[n]
            _apply(inverse, b, z, n, ranks[b], y[0])
            _add_outer(inverse, b, y[0], ranks[b], -change / (1.0 + change * g[k]))
        u[n] = new
    return top, step


@kernel
def _exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, play):
    """Pairwise exchanges in a group whose candidates share blocks. Overwrites u, inverse, buffers.

    Returns the group's largest variance before the step and its largest change of a share. In play are the
    candidates that have a share, and those in the upper part of the excess over the mean variance.
    """
    top, mean = 0.0, 0.0
    for n in range(lo, hi):
        g[n - lo] = _variance(inverse, blocks[n], z, n, ranks[blocks[n]])
        top = max(top, g[n - lo])
        mean += u[n] * g[n - lo]
    count = 0
    for n in range(lo, hi):
        if u[n] > 0.0 or g[n - lo] > mean + PLAY * (top - mean):
            play[count] = n
            g[count] = g[n - lo]
            count += 1
    first = 0.0
    step = 0.0
    rank = z.shape[1]
    most = 1 + int(10.0 * WORK_PER_CALL / (rank * (count + 6.0 * rank)))
    for _ in range(min(EXCHANGES * count, most)):
        k, m = 0, -1
        for i in range(count):
            if g[i] > g[k]:
                k = i
            if u[play[i]] > 0.0 and (m < 0 or g[i] < g[m]):
                m = i
        excess = g[k] - g[m]
        first = max(first, excess)
        if not excess > max(CLOSER * first, ROUNDING * top):
            break
        step = max(step, _exchange_pair(z, blocks, ranks, play[:count], play[k], play[m], u, inverse, g, y))
    return top, step


@kernel
def _exchange_pair(z, blocks, ranks, play, gain, lose, u, inverse, g, y):
    """Move the best share from lose to gain. Overwrites u, inverse, g, y[:2]; returns its size."""
    bk, bm = blocks[gain], blocks[lose]
    _apply(inverse, bk, z, gain, ranks[bk], y[0])
    _apply(inverse, bm, z, lose, ranks[bm], y[1])
    a, b, c = 0.0, 0.0, 0.0
    for j in range(ranks[bk]):
        a += y[0, j] * z[gain, j]
    for j in range(ranks[bm]):
        b += y[1, j] * z[lose, j]
        if bk == bm:
            c += y[0, j] * z[lose, j]
    curvature = a * b - c * c
    delta = u[lose]
    if curvature > ROUNDING * a * b:
        delta = min(delta, max(0.0, 0.5 * (a - b) / curvature))
    # The gainer is added first, so that no matrix on the way is singular.
    _change(z, blocks, ranks, play, bk, y[0], -delta / (1.0 + delta * a), inverse, g)
    if bk == bm:
        shrink = delta * c / (1.0 + delta * a)
        b -= shrink * c
        for j in range(ranks[bm]):
            y[1, j] -= shrink * y[0, j]
    _change(z, blocks, ranks, play, bm, y[1], delta / (1.0 - delta * b), inverse, g)
    u[gain] += delta
    u[lose] -= delta
    return delta


@kernel
def _change(z, blocks, ranks, play, block, vector, scale, inverse, g):
    """Add scale v v' to the inverse of a block, and follow with g. Overwrites inverse and g."""
    rank = ranks[block]
    _add_outer(inverse, block, vector, rank, scale)
    for i in range(len(play)):
        if blocks[play[i]] == block:
            t = 0.0
            for j in range(rank):
                t += z[play[i], j] * vector[j]
            g[i] += scale * t * t
