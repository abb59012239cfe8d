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
1 + delta (a - b) - delta^2 (a b - c^2), so delta = (a - b) / (2 (a b - c^2)), cut to [-u_k, u_m].
The candidates with the largest variances are paired with every candidate of positive share.

F never decreases. The inverses V follow by rank-one updates (Lemma "low_rank_update") and are computed
afresh from the shares at the start of every sweep.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign._kernel import kernel
from optdesign.information import accumulate, factorise, invert, variances
from optdesign.reduced import Reduced

DEFAULT_MAX_ITER = 100_000

WORK_PER_CALL = 2e7
"""Multiplications between two returns to Python, where limits and interrupts are looked at."""

STALL_STEP = 1e-15
"""A sweep in which no share moves by more than this cannot make progress."""


def ascend(
    reduced: Reduced, u: np.ndarray, target: float, max_iter: int | None = None
) -> Iterator[np.ndarray]:
    """Sweep until the gap is at most ``target``. Overwrites u; yields the gaps of the sweeps done."""
    z, blocks, starts, ranks, _ = reduced
    limit = DEFAULT_MAX_ITER if max_iter is None else max_iter
    width = z.shape[1]
    batch = int(np.clip(WORK_PER_CALL / (3.0 * z.size * width), 1, 1000))
    separable = _separable(blocks, starts, len(ranks))
    inverse = np.zeros((len(ranks), width, width))
    done = 0
    while done < limit:
        gaps = np.empty(min(batch, limit - done))
        n, largest_step = _sweeps(z, blocks, starts, separable, ranks, target, u, inverse, gaps)
        done += n
        yield gaps[:n]
        if gaps[n - 1] <= target or largest_step <= STALL_STEP:
            return


@kernel
def _separable(blocks, starts, n_blocks):
    """Tell for every group whether its candidates lie in different blocks."""
    seen = np.full(n_blocks, -1)
    out = np.ones(len(starts) - 1, np.bool_)
    for i in range(len(starts) - 1):
        for n in range(starts[i], starts[i + 1]):
            if seen[blocks[n]] == i:
                out[i] = False
            seen[blocks[n]] = i
    return out


@kernel
def _sweeps(z, blocks, starts, separable, ranks, target, u, inverse, gaps):
    """Sweep len(gaps) times, or until the gap is at most target. Overwrites u, inverse and gaps.

    Returns the number of sweeps and the largest change of a share in the last one. The gap of a sweep is
    summed up from each group's largest variance as it is visited; where that says the target is reached it
    is computed again from the shares alone.
    """
    largest = 0
    for i in range(len(starts) - 1):
        largest = max(largest, starts[i + 1] - starts[i])
    width = z.shape[1]
    g = np.empty(largest)
    s = np.empty(largest)
    y = np.empty((largest, width))
    rank = ranks.sum()
    information = np.empty((len(ranks), width, width))
    factor = np.zeros((len(ranks), width, width))
    step = 0.0
    for sweep in range(len(gaps)):
        _refresh(z, blocks, ranks, u, information, factor)
        invert(factor, ranks, inverse)
        total = 0.0
        step = 0.0
        for i in range(len(starts) - 1):
            lo, hi = starts[i], starts[i + 1]
            if separable[i]:
                top, moved = _water_fill(z, blocks, ranks, lo, hi, u, inverse, g, s, y)
            else:
                top, moved = _exchange(z, blocks, ranks, lo, hi, u, inverse, g, y)
            total += top
            step = max(step, moved)
        gaps[sweep] = total - rank
        if gaps[sweep] <= target:
            _refresh(z, blocks, ranks, u, information, factor)
            gaps[sweep] = _gap(z, blocks, starts, ranks, factor)
            if gaps[sweep] <= target:
                return sweep + 1, step
    return len(gaps), step


@kernel
def _refresh(z, blocks, ranks, u, information, factor):
    """Factorise the information of the shares u. Overwrites information and factor."""
    information[:] = 0.0
    accumulate(z, blocks, ranks, u, information)
    factorise(information, ranks, factor)


@kernel
def _gap(z, blocks, starts, ranks, factor):
    """G - D from factors of the information."""
    total = 0.0
    for i in range(len(starts) - 1):
        lo, hi = starts[i], starts[i + 1]
        g = np.empty(hi - lo)
        variances(z[lo:hi], blocks[lo:hi], ranks, factor, g)
        total += g.max()
    return total - ranks.sum()


@kernel
def _apply(inverse, row, rank, out):
    """Overwrite out with V z; returns z' V z."""
    g = 0.0
    for i in range(rank):
        t = 0.0
        for j in range(rank):
            t += inverse[i, j] * row[j]
        out[i] = t
        g += t * row[i]
    return g


@kernel
def _add_outer(inverse, vector, rank, scale):
    """Add scale v v' to the inverse. Overwrites inverse."""
    for i in range(rank):
        t = scale * vector[i]
        for j in range(rank):
            inverse[i, j] += t * vector[j]


@kernel
def _water_fill(z, blocks, ranks, lo, hi, u, inverse, g, s, y):
    """Solve the subproblem of a group whose blocks differ. Overwrites u, inverse and the buffers.

    Returns the group's largest variance before the step and its largest change of a share. The level mu
    is found without sorting: candidates above the water are dropped until none is (Michelot's method).
    """
    top, low = 0.0, np.inf
    for n in range(lo, hi):
        k = n - lo
        b = blocks[n]
        g[k] = _apply(inverse[b], z[n], ranks[b], y[k])
        top = max(top, g[k])
        s[k] = np.inf
        if g[k] > 0.0:
            s[k] = max(0.0, 1.0 / g[k] - u[n])
            low = min(low, s[k])
    if low == np.inf:
        return top, 0.0
    # Offsets may differ by more than the digits of a running sum, so they are measured from the lowest
    # and summed afresh in every round.
    mu, count, before = np.inf, 0, -1
    while count != before:
        before = count
        count, total = 0, 1.0
        for k in range(hi - lo):
            if s[k] - low < mu:
                total += s[k] - low
                count += 1
        mu = total / count
    total = 0.0
    for k in range(hi - lo):
        s[k] = max(0.0, mu - (s[k] - low))
        total += s[k]
    step = 0.0
    for n in range(lo, hi):
        k = n - lo
        new = s[k] / total
        change = new - u[n]
        step = max(step, abs(change))
        if change != 0.0 and g[k] > 0.0:
            b = blocks[n]
            _add_outer(inverse[b], y[k], ranks[b], -change / (1.0 + change * g[k]))
        u[n] = new
    return top, step


@kernel
def _exchange(z, blocks, ranks, lo, hi, u, inverse, g, y):
    """Pairwise exchanges in a group whose candidates share blocks. Overwrites u, inverse, buffers.

    Returns the group's largest variance before the step and its largest change of a share.
    """
    top = 0.0
    for n in range(lo, hi):
        b = blocks[n]
        g[n - lo] = _apply(inverse[b], z[n], ranks[b], y[0])
        top = max(top, g[n - lo])
    step = 0.0
    for _ in range(min(hi - lo, z.shape[1])):
        leader = lo + np.argmax(g[: hi - lo])
        g[leader - lo] = -1.0
        for n in range(lo, hi):
            if u[n] > 0.0 and n != leader:
                step = max(step, _exchange_pair(z, blocks, ranks, leader, n, u, inverse, y))
    return top, step


@kernel
def _exchange_pair(z, blocks, ranks, k, m, u, inverse, y):
    """Move the best share from m to k (or back). Overwrites u, inverse and y[:2]; returns its size."""
    bk, bm = blocks[k], blocks[m]
    a = _apply(inverse[bk], z[k], ranks[bk], y[0])
    b = _apply(inverse[bm], z[m], ranks[bm], y[1])
    c = 0.0
    if bk == bm:
        for j in range(ranks[bk]):
            c += y[0, j] * z[m, j]
    curvature = a * b - c * c
    if curvature > 1e-14 * a * b:
        delta = 0.5 * (a - b) / curvature
    else:
        delta = np.inf if a > b else -np.inf
    delta = min(max(delta, -u[k]), u[m])
    if delta == 0.0 or a == b:
        return 0.0
    # The gainer is added first, so that no matrix on the way is singular.
    if delta > 0.0:
        gain, lose, first, second, g_lose = k, m, 0, 1, b
        _add_outer(inverse[bk], y[0], ranks[bk], -delta / (1.0 + delta * a))
        shrink = delta * c / (1.0 + delta * a)
    else:
        delta = -delta
        gain, lose, first, second, g_lose = m, k, 1, 0, a
        _add_outer(inverse[bm], y[1], ranks[bm], -delta / (1.0 + delta * b))
        shrink = delta * c / (1.0 + delta * b)
    if bk == bm:
        for j in range(ranks[bk]):
            y[second, j] -= shrink * y[first, j]
        g_lose -= shrink * c
    lose_block = blocks[lose]
    _add_outer(inverse[lose_block], y[second], ranks[lose_block], delta / (1.0 - delta * g_lose))
    u[gain] += delta
    u[lose] -= delta
    return delta
