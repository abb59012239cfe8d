"""Block coordinate ascent (Algorithm 3 of the paper), its subproblems solved in closed form.

    maximise   sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

One sweep visits every group and solves its subproblem with the other groups fixed
(:mod:`optdesign.solvers.group_step`).

F never decreases. The inverses of the information, V, follow each visit and are computed afresh from the
shares after every few sweeps, and before a gap is believed.

*Lanes.* Where there are very many groups, L of them are visited at a time, each by a lane of its own. A lane
takes the L-th part of the information for all there is, U / L, and changes it by D_l as it visits its groups,
so that log det(U / L + D_l) rises. Together they arrive at U + sum_l D_l, which is the sum of the lanes'
matrices, and since log det is concave and L log det of their mean is no less than the sum of theirs, F rises
again: a lane that moves as if all lanes moved alike overshoots nothing. No kernel knows of it, since
(U / L)^-1 = L V, and U + sum_l D_l is the sum of the inverses of what the lanes leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import accumulate, add_information, factorise, invert, variance
from optdesign.algebra.reduced import Reduced
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.solvers import NOTHING, ROUNDING, Step
from optdesign.solvers.costs import SWEEPS
from optdesign.solvers.group_step import EXCHANGES, VISIT, exchange, water_fill

WORK = 2e7
"""Multiplications between two returns to Python, where limits and interrupts are looked at."""

LAG = 5.0
"""The gap summed up during a sweep may be so many times what it is at its end."""

LANES, CROWD = 2, 500
"""Groups are visited so many at a time where at least so many matter for every parameter: a sweep is then
worth as much as one group after the other. The same for any number of threads: results do not depend on it.
What it earns shows on two."""


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int, batch: int = 1000) -> Iterator[Step]:
    """Sweep until the gap is at most ``target``. Overwrites u; an iteration is a sweep.

    A step is up to ``batch`` sweeps, or a part of a long one.
    """
    z, blocks, starts, ranks, _ = reduced
    width = z.shape[1]
    sweeps = WORK / (3.0 * z.size * width)
    separable = _separable(blocks, starts, len(ranks))
    largest, filled, most = _sizes(starts, separable, width)
    exchanges = VISIT / max(VISIT, most)
    groups = max(1, int(min(sweeps, exchanges) * reduced.n_groups))
    crowded = not threads.undivided(z.size, threads.PIECE) and reduced.n_groups >= CROWD * reduced.rank
    inverse = np.zeros((len(ranks), width, width))
    state = _State(
        z, blocks, starts, separable, ranks, u, inverse, *_buffers(largest, filled, reduced.n_groups)
    )
    lanes = LANES if crowded and state.groups_that_matter() >= CROWD * reduced.rank else 1
    done, fresh, last = 0, crowded, np.inf  # what tells which groups matter is the inverse afresh
    before: np.ndarray | None = u.copy()
    while done < max_iter:
        if groups == reduced.n_groups and lanes == 1:
            gaps = np.empty(min(max(1, int(sweeps)), batch, max_iter - done))
            gaps = gaps[: _sweeps(*state, target, done, gaps)]
        else:
            if done % SWEEPS == 0 and not fresh:
                state.invert_afresh()
            total = 0.0
            for first in range(0, reduced.n_groups, groups):
                total += state.visit(first, min(first + groups, reduced.n_groups), lanes)
                yield Step(NOTHING, "bca")
            gaps = np.array([total - reduced.rank])
            fresh = bool(gaps[0] <= LAG * target)
            if fresh:
                gaps[0] = state.gap()
        done += len(gaps)
        yield Step(gaps, "bca")
        if gaps[-1] <= target or (before is not None and _distance(u, before) <= ROUNDING):
            return
        # Nothing stands still while the gap falls.
        before, last = None if gaps[-1] < last else u.copy(), gaps[-1]


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

    def visit(self, first: int, last: int, lanes: int) -> float:
        """Visit the groups first .. last - 1. Returns the sum of their largest variances."""
        if lanes == 1:
            return _visit(*self, first, last)[0]
        own = [self._lane(lanes) for _ in range(lanes)]
        ends = [first + (last - first) * k // lanes for k in range(lanes + 1)]
        tops = threads.each(lambda k, _: _visit(*own[k], ends[k], ends[k + 1])[0], lanes, 1)
        if not self._join([lane.inverse for lane in own]):
            self.invert_afresh()
        return sum(tops) / lanes

    def _join(self, inverses: list[np.ndarray]) -> bool:
        """Overwrite the inverse with that of the sum of the lanes' matrices. Returns whether it has rank."""
        information, factor = np.zeros_like(self.inverse), np.zeros_like(self.inverse)
        for own in inverses:
            full = factorise(own, self.ranks, factor).min() > -np.inf
            invert(factor, self.ranks, own)
            information += own
            if not full:
                return False
        full = factorise(information, self.ranks, factor).min() > -np.inf
        invert(factor, self.ranks, self.inverse)
        return full

    def _lane(self, lanes: int) -> _State:
        """The state of one of so many lanes: shares are common, inverses and buffers its own."""
        fill, play = (None if old is None else np.empty_like(old) for old in (self.fill, self.play))
        return self._replace(inverse=lanes * self.inverse, g=np.empty_like(self.g), fill=fill, play=play)

    def groups_that_matter(self) -> float:
        """How many groups there are, those counted less whose largest variance is less than that of others.

        With t_i these variances it is (sum t_i)^2 / sum t_i^2: all groups if they are equal, and h if the
        others are nothing beside h of them.
        """
        tops = self._tops(self.invert_afresh())
        return float(tops.sum() ** 2 / (tops @ tops))

    def gap(self) -> float:
        """The gap of the shares alone, whose inverse is then afresh."""
        return _total(self._tops(self.invert_afresh())) - int(self.ranks.sum())

    def invert_afresh(self) -> np.ndarray:
        """Overwrite the inverse with that of the shares alone, in pieces. Returns the factors behind it."""
        information, factor = np.zeros_like(self.inverse), np.zeros_like(self.inverse)
        add_information(self.z, self.blocks, self.ranks, self.u, information)
        factorise(information, self.ranks, factor)
        invert(factor, self.ranks, self.inverse)
        return factor

    def _tops(self, factor: np.ndarray) -> np.ndarray:
        """The largest variance of every group, in pieces."""
        groups = len(self.starts) - 1
        out, rows = np.empty(groups), (self.z, self.blocks, self.starts, self.ranks, factor)
        piece = max(1, threads.PIECE * groups // self.z.size)
        threads.each(lambda first, last: _write_tops(*rows, first, last, out), groups, piece)
        return out


def _buffers(
    largest: int, filled: int, groups: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """For variances, water-filling and exchanges; None, and nothing compiled, for what does not occur."""
    fill = np.empty(largest) if filled else None
    return np.empty(largest), fill, None if filled == groups else np.empty(largest, np.int64)


@kernel
def _distance(u, before):
    """The largest change of a share."""
    most = 0.0
    for n in range(len(u)):
        most = max(most, abs(u[n] - before[n]))
    return most


@kernel
def _sizes(starts, separable, width):
    """Candidates of the largest group, the number of separable groups, and how many multiplications the
    exchanges of a sweep may take at most.
    """
    largest, count, most = 0, 0, 0.0
    for i in range(len(separable)):
        size = starts[i + 1] - starts[i]
        largest = max(largest, size)
        count += separable[i]
        if not separable[i]:
            most += min(VISIT, EXCHANGES * size * width * (size + 6.0 * width))
    return largest, count, most


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
def _sweeps(z, blocks, starts, separable, ranks, u, inverse, g, fill, play, target, done, gaps):
    """Sweep len(gaps) times, until the gap is at most target, or until exchanges have taken as much work as a
    visit may. Overwrites u, inverse, gaps, buffers.

    ``done`` were done before. Returns the number of sweeps. The gap of a sweep is summed up from each group's
    largest variance as it is visited, so it lags behind; where it comes near the target it is computed again
    from the shares alone.
    """
    rank = 0
    for b in range(len(ranks)):
        rank += ranks[b]
    fresh, work = False, 0.0
    for sweep in range(len(gaps)):
        if (done + sweep) % SWEEPS == 0 and not fresh:
            _invert_afresh(z, blocks, starts, ranks, u, inverse, 0.0)
        total, more = _visit(
            z, blocks, starts, separable, ranks, u, inverse, g, fill, play, 0, len(starts) - 1
        )
        work += more
        gaps[sweep] = total - rank
        fresh = gaps[sweep] <= LAG * target
        if fresh:
            gaps[sweep] = _invert_afresh(z, blocks, starts, ranks, u, inverse, 1.0)
            if gaps[sweep] <= target:
                return sweep + 1
        if work > VISIT:
            return sweep + 1
    return len(gaps)


@kernel
def _visit(z, blocks, starts, separable, ranks, u, inverse, g, fill, play, first, last):
    """Solve the subproblems of the groups first .. last - 1. Overwrites u, inverse, buffers.

    Returns the sum of the groups' largest variances, and how many multiplications exchanges took.
    """
    y = np.empty((2, z.shape[1]))
    total, work = 0.0, 0.0
    for i in range(first, last):
        lo, hi = starts[i], starts[i + 1]
        if fill is not None and separable[i]:
            total += water_fill(z, blocks, ranks, lo, hi, u, inverse, g, fill, y)[0]
        elif play is not None:
            top, _, more = exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, play)
            total += top
            work += more
    return total, work


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
    if not measure > 0.0:
        return np.nan
    tops = np.empty(len(starts) - 1)
    _write_tops(z, blocks, starts, ranks, factor, 0, len(tops), tops)
    total = _total(tops)
    for b in range(len(ranks)):
        total -= ranks[b]
    return total


@kernel
def _total(values):
    """Their sum, one after the other."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@kernel
def _write_tops(z, blocks, starts, ranks, factor, first, last, out):
    """Overwrite out with the largest variances of the groups first .. last - 1, from factors."""
    for i in range(first, last):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            g = variance(factor, blocks[n], z, n, ranks[blocks[n]])
            if g > top or np.isnan(g):  # what is not a number stays one
                top = g
        out[i] = top
