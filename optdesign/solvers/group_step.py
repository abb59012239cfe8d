"""The best shares of one group while those of the others stay: what block coordinate ascent does, again and
again (:mod:`optdesign.solvers.bca`). There are two cases.

*All candidates of the group lie in different blocks.* The subproblem is separable and its solution is
water-filling: with g_n = z_n' V_b z_n, the new shares are u_n = max(0, mu - s_n), where
s_n = 1 / g_n - u_n and mu makes them sum to one. A candidate that alone carries a direction of its block
has s_n = 0 and keeps a positive share, so the rank is preserved (Lemma "linIndpdnt").

*Some candidates share a block* (the shared-parameter case, which the paper leaves open). Two candidates
k, m exchange the share that is best for the pair. With a = g_k, b = g_m and c = z_k' V z_m (zero if their
blocks differ), moving delta from m to k multiplies the determinant by
1 + delta (a - b) - delta^2 (a b - c^2), so delta = (a - b) / (2 (a b - c^2)), cut to [0, u_m]. Candidates
that are parallel but for rounding are exchanged in full.
The pair is the candidate of largest variance and, among those with a share, the one of smallest; the
variances follow each exchange, and a visit ends when they are thirty times closer than at its start.

The inverses V follow by rank-one updates (Lemma "low_rank_update").
"""

from __future__ import annotations

import numpy as np

from optdesign.runtime.jit import kernel
from optdesign.solvers import ROUNDING

VISIT = 2e8
"""Multiplications after which a visit ends at the latest; a tenth is too few where rounds let many in."""

PLAY = 0.2
"""Candidates without a share take part in exchanges above this fraction of the group's largest excess."""
EXCHANGES, CLOSER = 4, 0.03
"""A visit of a group ends after so many exchanges per candidate, or when the largest and the smallest
variance are this much closer than at its start."""


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
def _write_variances(z, blocks, ranks, lo, hi, inverse, g):
    """Overwrite g with z_n' V_b z_n of the candidates lo .. hi - 1.

    Four that follow one another in a block are worked on side by side, which the processor does at once.
    """
    n = lo
    while n < hi:
        b = blocks[n]
        if n + 4 > hi or blocks[n + 1] != b or blocks[n + 2] != b or blocks[n + 3] != b:
            g[n - lo] = _variance(inverse, b, z, n, ranks[b])
            n += 1
            continue
        g0, g1, g2, g3 = 0.0, 0.0, 0.0, 0.0
        for i in range(ranks[b]):
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(i):
                v = inverse[b, i, j]
                t0 += v * z[n, j]
                t1 += v * z[n + 1, j]
                t2 += v * z[n + 2, j]
                t3 += v * z[n + 3, j]
            v = inverse[b, i, i]
            g0 += (2.0 * t0 + v * z[n, i]) * z[n, i]
            g1 += (2.0 * t1 + v * z[n + 1, i]) * z[n + 1, i]
            g2 += (2.0 * t2 + v * z[n + 2, i]) * z[n + 2, i]
            g3 += (2.0 * t3 + v * z[n + 3, i]) * z[n + 3, i]
        k = n - lo
        g[k], g[k + 1], g[k + 2], g[k + 3] = g0, g1, g2, g3
        n += 4


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
def water_fill(z, blocks, ranks, lo, hi, u, inverse, g, s, y):
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
            s[k] = 1.0 / g[k] - u[n]
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
def exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, play):
    """Pairwise exchanges in a group whose candidates share blocks. Overwrites u, inverse, buffers.

    Returns the group's largest variance before the step, its largest change of a share, and how many
    multiplications exchanges took. In play are the candidates that have a share, and those in the upper part
    of the excess over the mean variance.
    """
    _write_variances(z, blocks, ranks, lo, hi, inverse, g)
    top, mean = 0.0, 0.0
    for n in range(lo, hi):
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
    work, each = 0.0, rank * (count + 6.0 * rank)
    for _ in range(min(EXCHANGES * count, 1 + int(VISIT / each))):
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
        work += each
    return top, step, work


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
    more = -delta / (1.0 + delta * a)
    if bk == bm:
        shrink = delta * c / (1.0 + delta * a)
        b -= shrink * c
        for j in range(ranks[bm]):
            y[1, j] -= shrink * y[0, j]
    less = delta / (1.0 - delta * b)
    _add_outer(inverse, bk, y[0], ranks[bk], more)
    _add_outer(inverse, bm, y[1], ranks[bm], less)
    for i in range(len(play)):
        block = blocks[play[i]]
        if block != bk and block != bm:
            continue
        s, t = 0.0, 0.0
        for j in range(ranks[block]):
            s += z[play[i], j] * y[0, j]
            t += z[play[i], j] * y[1, j]
        if block == bk:
            g[i] += more * s * s
        if block == bm:
            g[i] += less * t * t
    u[gain] += delta
    u[lose] -= delta
    return delta
