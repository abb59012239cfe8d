"""The optimal shares of one group while those of the others stay fixed.

This is the step of block coordinate ascent (:mod:`optdesign.solvers.bca`).

*Water-filling: all candidates of the group lie in different blocks.* The subproblem is separable. With
g_n = z_n' V_b z_n, the new shares are u_n = max(0, mu - s_n), where s_n = 1 / g_n - u_n and mu makes them sum
to one. A candidate that alone carries a direction of its block has s_n = 0 and keeps a positive share, so the
rank is preserved (Lemma "linIndpdnt").

*Exchange: some candidates share a block* (the shared-parameter case, which the paper leaves open). Two
candidates k, m exchange the share that is optimal for the pair. With a = g_k, b = g_m and c = z_k' V z_m
(zero if their blocks differ), moving delta from m to k multiplies the determinant by 1 + delta (a - b) -
delta^2 (a b - c^2), so delta = (a - b) / (2 (a b - c^2)), cut to [0, u_m]. Candidates that are parallel up to
round-off are exchanged in full. The pair is the candidate of largest variance and, among those with a share,
the one of smallest. The variances are updated after each exchange.

The inverses V are updated by rank-one terms (Lemma "low_rank_update").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import add_outer, multiply
from optdesign.numbers.roundoff import ROUNDOFF
from optdesign.runtime.jit import kernel


class ExchangeParameters(NamedTuple):
    """When the exchanges of a group end, and which candidates take part."""

    work: float = 2e8
    """Largest number of multiplications; a tenth is too few if a working set has many new candidates."""
    per_candidate: int = 4
    """Largest number of exchanges per candidate."""
    scan: float = 4.0
    """Multiplications that take as long as the search for the pair, for each candidate."""
    reduction: float = 0.03
    """Exchanges end when the range of the variances is this fraction of its initial size."""
    threshold: float = 0.2
    """Candidates without a share take part if their variance exceeds the mean by this fraction of the largest
    excess."""


EXCHANGE = ExchangeParameters()


@kernel
def _variance(inverse, b, z, n, rank):
    """Return z_n' V_b z_n."""
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

    Four consecutive candidates of a block are computed together, for the vector units of the processor.
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
def water_fill(z, blocks, ranks, lo, hi, u, inverse, g, s, y):
    """Solve the subproblem of a group whose blocks differ. Overwrites u, inverse and the buffers.

    Returns the group's largest variance before the step. The level mu is found without sorting: candidates
    above mu are dropped until none is (Michelot's method).
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
        return top
    # Only differences of s matter; s itself is huge for candidates with little information. The sum is formed
    # anew each time, because subtracting a huge s from a sum cancels the digits of the others. Candidates are
    # only dropped, so the loop ends; round-off could let one return, hence the comparison of counts.
    mu, n_positive = np.inf, hi - lo + 1
    while True:
        count, total = 0, 1.0
        for k in range(hi - lo):
            if s[k] - lowest < mu:
                count += 1
                total += s[k] - lowest
        mu = total / count
        if count >= n_positive:
            break
        n_positive = count
    total = 0.0
    for k in range(hi - lo):
        s[k] = max(0.0, mu - (s[k] - lowest))
        total += s[k]
    for n in range(lo, hi):
        k = n - lo
        new = s[k] / total
        change = new - u[n]
        if change != 0.0 and g[k] > 0.0:
            b = blocks[n]
            image = y[0, : ranks[b]]
            multiply(inverse[b], z[n], image)
            add_outer(inverse[b], image, -change / (1.0 + change * g[k]))
        u[n] = new
    return top


@kernel
def exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, active):
    """Exchange shares between pairs in a group whose candidates share blocks. Overwrites u, inverse, buffers.

    Returns the group's largest variance before the step and the number of multiplications of the exchanges.
    """
    _write_variances(z, blocks, ranks, lo, hi, inverse, g)
    top, mean = 0.0, 0.0
    for n in range(lo, hi):
        top = max(top, g[n - lo])
        mean += u[n] * g[n - lo]
    count = 0
    for n in range(lo, hi):
        if u[n] > 0.0 or g[n - lo] > mean + EXCHANGE.threshold * (top - mean):
            active[count] = n
            g[count] = g[n - lo]
            count += 1
    first = 0.0
    rank = z.shape[1]
    work, each = 0.0, (rank + EXCHANGE.scan) * count + 6.0 * rank**2
    for _ in range(min(EXCHANGE.per_candidate * count, 1 + int(EXCHANGE.work / each))):
        k, m = 0, -1
        for i in range(count):
            if g[i] > g[k]:
                k = i
            if u[active[i]] > 0.0 and (m < 0 or g[i] < g[m]):
                m = i
        excess = g[k] - g[m]
        first = max(first, excess)
        if not excess > max(EXCHANGE.reduction * first, ROUNDOFF * top):
            break
        _exchange_pair(z, blocks, ranks, active[:count], active[k], active[m], u, inverse, g, y)
        work += each
    return top, work


@kernel
def _exchange_pair(z, blocks, ranks, active, gain, lose, u, inverse, g, y):
    """Move the optimal share from lose to gain. Overwrites u, inverse, g, y[:2]."""
    bk, bm = blocks[gain], blocks[lose]
    a = multiply(inverse[bk], z[gain], y[0, : ranks[bk]])
    b = multiply(inverse[bm], z[lose], y[1, : ranks[bm]])
    c = 0.0
    if bk == bm:
        for j in range(ranks[bk]):
            c += y[0, j] * z[lose, j]
    curvature = a * b - c * c
    delta = u[lose]
    if curvature > ROUNDOFF * a * b:
        delta = min(delta, max(0.0, 0.5 * (a - b) / curvature))
    # The gainer is added first, so that no matrix on the way is singular.
    more = -delta / (1.0 + delta * a)
    if bk == bm:
        shrink = delta * c / (1.0 + delta * a)
        b -= shrink * c
        for j in range(ranks[bm]):
            y[1, j] -= shrink * y[0, j]
    less = delta / (1.0 - delta * b)
    add_outer(inverse[bk], y[0, : ranks[bk]], more)
    add_outer(inverse[bm], y[1, : ranks[bm]], less)
    for i in range(len(active)):
        block = blocks[active[i]]
        if block != bk and block != bm:
            continue
        s, t = 0.0, 0.0
        for j in range(ranks[block]):
            s += z[active[i], j] * y[0, j]
            t += z[active[i], j] * y[1, j]
        if block == bk:
            g[i] += more * s * s
        if block == bm:
            g[i] += less * t * t
    u[gain] += delta
    u[lose] -= delta
