"""Primal-dual interior point method on the structured Newton system.

    maximise   F(u) = sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

With g = grad F, a bound lambda_i for every group and slacks s, optimality is

    s_n = lambda_i - g_n >= 0,   u_n s_n = 0,   sum_{n in i} u_n = 1.

Each iteration takes one Newton step towards u_n s_n = mu (Mehrotra's predictor, then corrector); the linear
system behind it, and the ways to solve it, are in :mod:`optdesign.solvers.systems`. Groups with a single
candidate, or with zero vectors only, have nothing to choose and are left out.

Rounding errors of the system grow with the ratios in u / s, fastest at degenerate optima, and slacks may
drift from lambda_i - g_n. Where the gap falls no more, the iteration starts again from the best shares, with
slacks that fit. If it has started from them before, they may be too near the boundary, where products u_n s_n
of very different sizes allow small steps only: once it starts again from the uniform design.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from optdesign.algebra.blocks import WIDE, add_information, factorise, whiten
from optdesign.algebra.reduced import Reduced
from optdesign.numbers.roundoff import UNIT
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers import NOTHING, PATIENCE, Step
from optdesign.solvers.newton_kernels import (
    centring,
    evaluate,
    gap_of,
    move,
    reached,
    residual,
    step_at_once,
    whiten_rows,
)
from optdesign.solvers.systems import AtOnce, System, cheapest_system, steadier, without_strain
from optdesign.solvers.systems.by_iteration import ByIteration
from optdesign.solvers.systems.layout import Layout

TO_BOUNDARY = (0.99, 0.9999)
"""Fractions of the way to the boundary, at least and at most: the more of it the better the predictor is, so
that gaps fall ever faster in the end. Always at 0.999, steps may not come away from it again, and some
polynomials on fine grids are not solved. After a new start it is always the first."""

START = 1e-3
"""Share of the uniform design in the starting point, at least; it is one less the efficiency."""

DUST = 1e-4
"""A share below this fraction of the largest in its group is dust, which is swept away at the end; where that
is too much, a tenth of it, and so on."""
OVERSHOOT = 0.1
"""Steps go on to this fraction of the target, so that there is room for that, and on from there as long as
there is none: mostly it takes one more. Not those by iteration, whose gaps fall by a factor of two."""


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int = sys.maxsize) -> Iterator[Step]:
    """Newton steps until the gap is at most ``target``. Overwrites u, with better shares only."""
    return Iteration(reduced, u).to(target, max_iter)


class Iteration:
    """Newton steps on a problem, which can go on where they have ended."""

    def __init__(self, reduced: Reduced, u: np.ndarray) -> None:
        raise_if_stopped()
        self.u, self.free, self.floor = u, _free(reduced, u), 2 * UNIT * reduced.rank
        self.best = self.free.gap(u[self.free.rows])
        self.cold, self.bounds = self.best == np.inf, TO_BOUNDARY
        self.system: System | AtOnce | None = None
        self.x: _State

    def to(self, target: float, max_iter: int = sys.maxsize) -> Iterator[Step]:
        """Steps until the gap is at most ``target``. Overwrites the shares, with better ones only.

        An iteration is a Newton step; long ones come in parts. Gaps have to be halved every few steps, and so
        has the best one by every new start: it does not go on for ever. Gaps that are rounding in any
        certificate are no aim: going on would only let slacks underflow.
        """
        free, u, rows = self.free, self.u, self.free.rows
        if self.best <= target or not len(rows):
            yield Step(np.array([self.best]), "newton")
            return
        if self.system is None:
            self.system = cheapest_system(free.layout)
            self.x = _start(free, u[rows], self.best)
        # The start may be better than the first steps from an interior point near it: they have to get better
        # than those before them, not than it.
        at_start, lowest, since_lowest = self.best, np.inf, 0
        for step in range(1, max_iter + 1):
            gap = yield from _newton_step(free, self.system, self.x, self.bounds)
            since_lowest += 1
            if gap < lowest / 2:
                lowest, since_lowest = gap, 0
            if gap < self.best:
                self.best = gap
                u[rows] = self.x.u
            dense = not isinstance(self.system, ByIteration)
            enough = max(OVERSHOOT * target if dense else target, self.floor)
            done = gap <= enough or (self.best <= target and since_lowest > 0)
            if self.best <= target and (done or step == max_iter):
                u[rows], self.best, dusty = _without_dust(free, u[rows], self.best, target)
                # What is dust but matters for the target shrinks with the gap.
                done = done and not (dusty and dense and since_lowest == 0 and gap > self.floor)
            yield Step(np.array([gap]), "newton")
            if done:
                return
            self.system = without_strain(self.system)
            if not np.isfinite(gap) or since_lowest > PATIENCE:
                gained = self.best < at_start / 2
                if not gained and self.cold:
                    return
                self.cold, self.bounds = self.cold or not gained, (TO_BOUNDARY[0],) * 2
                self.system = steadier(self.system, free.layout)
                at_start, lowest, since_lowest = self.best, np.inf, 0
                self.x = _start(free, u[rows], self.best if gained else np.inf)


class _Free(NamedTuple):
    """The rows of groups that have a choice, group by group."""

    rows: np.ndarray
    z: np.ndarray
    layout: Layout
    fixed: np.ndarray
    """Information of the groups without a choice."""

    def evaluate(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """Overwrite a with the rows whitened at u, g with their variances; the gap, inf without rank."""
        raise_if_stopped()
        layout, width = self.layout, self.z.shape[1]
        if width < WIDE and threads.undivided(len(u), threads.PIECE // width):
            return evaluate(self.z, layout.block, layout.starts, layout.ranks, self.fixed, u, a, g)
        if width < WIDE:
            return self._evaluate_in_pieces(u, a, g)
        for b, rows, rank in layout.blocks():
            if rank and not whiten(self.z[rows, :rank], u[rows], self.fixed[b, :rank, :rank], a, rows):
                return np.inf
        np.einsum("ij,ij->i", a, a, out=g)
        return gap_of(layout.starts, u, g)

    def _evaluate_in_pieces(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """The same by loops, on several threads."""
        layout = self.layout
        information, factor = self.fixed.copy(), np.zeros_like(self.fixed)
        add_information(self.z, layout.block, layout.ranks, u, information)
        if factorise(information, layout.ranks, factor).min() == -np.inf:
            return np.inf

        def write(first: int, last: int) -> None:
            part = slice(first, last)
            whiten_rows(self.z[part], layout.block[part], layout.ranks, factor, a[part], g[part])

        threads.each(write, len(u), threads.PIECE // self.z.shape[1])
        return gap_of(layout.starts, u, g)

    def gap(self, u: np.ndarray) -> float:
        """Gap of shares, infinite if they lose rank."""
        return self.evaluate(u, np.zeros_like(self.z), np.empty(len(u)))


def _free(reduced: Reduced, u: np.ndarray) -> _Free:
    """Split off the groups without a choice."""
    z, blocks, starts, ranks, _ = reduced
    rows, own, rest = np.empty(len(u), np.int64), np.zeros_like(starts), u.copy()
    count, groups = _split(z, starts, rows, own, rest)
    rows = rows[:count]
    fixed = np.zeros((len(ranks), z.shape[1], z.shape[1]))
    add_information(z, blocks, ranks, rest, fixed)
    return _Free(rows, z[rows], Layout(blocks[rows], own[: groups + 1], ranks), fixed)


class _State(NamedTuple):
    """Where the iteration is; the steps overwrite it."""

    u: np.ndarray
    """Shares."""
    s: np.ndarray
    """Slacks."""
    bound: np.ndarray
    """lambda of every group."""
    a: np.ndarray
    """Whitened rows at u."""
    g: np.ndarray
    """Variances at u."""


def _start(free: _Free, u: np.ndarray, gap: float) -> _State:
    """An interior point near the given shares, the nearer the smaller their gap is.

    Mixing in theta of the uniform design and adding theta to the bounds makes all products u_n s_n of
    the order of theta: supported candidates have small slacks, the others small shares.
    """
    starts = free.layout.starts
    theta = max(START, gap / (gap + float(free.layout.ranks.sum()))) if gap < np.inf else 1.0
    x = _State(u.copy(), np.empty(len(u)), np.empty(len(starts) - 1), np.zeros_like(free.z), np.empty(len(u)))
    _mix(starts, theta, x.u)
    free.evaluate(x.u, x.a, x.g)
    _set_apart(starts, theta, x.g, x.s, x.bound)
    return x


def _without_dust(free: _Free, u: np.ndarray, gap: float, target: float) -> tuple[np.ndarray, float, bool]:
    """Shares without negligible ones, as many as the target allows, their gap, and whether some are left."""
    least, clean = DUST, u.copy()
    while _sweep(free.layout.starts, least, clean):
        without = free.gap(clean)
        if without <= target:
            return clean, without, least < DUST
        least, clean = least / 10, u.copy()
    return u, gap, least < DUST


def _newton_step(
    free: _Free, system: System | AtOnce, x: _State, bounds: tuple[float, float]
) -> Generator[Step, None, float]:
    """Predictor, corrector, move. Overwrites x; returns its gap, infinite if there is no step."""
    layout = free.layout
    if isinstance(system, AtOnce):
        raise_if_stopped()
        places = layout.block, layout.starts, layout.ranks, free.fixed, system.offsets
        return step_at_once(free.z, *places, *bounds, *x)
    if not (yield from _in_pieces(system, system.factorise(x.a, x.u / x.s))):
        return np.inf
    r = residual(layout.starts, x.bound, x.g)
    du, _ = yield from _in_pieces(system, system.solve(r))
    centre = np.empty_like(du)
    left = centring(x.u, x.s, du, centre)
    r += centre
    du, dbound = yield from _in_pieces(system, system.solve(r))
    move(layout.starts, x.u, x.s, x.bound, du, dbound, centre, reached(left, *bounds))
    return free.evaluate(x.u, x.a, x.g)


def _in_pieces(system: System, work: Generator[None, None, Any]) -> Generator[Step, None, Any]:
    """What the work of a system returns; as many threads as its order deserves. What is less than a piece of
    work takes no time worth interrupting.
    """
    short = threads.undivided(system.order * system.layout.n_rows, threads.PIECE)
    while True:
        try:
            if short:
                next(work)
                continue
            with threads.blas(system.order):
                next(work)
        except StopIteration as end:
            return end.value
        yield Step(NOTHING, "newton")


@kernel
def _split(z, starts, rows, own, rest):
    """Overwrite rows with those of groups with two candidates or more, not all zero, own, given as zeros,
    with where those of each begin, and what they have of rest with zeros. Returns how many rows and groups.
    """
    count, groups = 0, 0
    for i in range(len(starts) - 1):
        lo, hi = starts[i], starts[i + 1]
        choice = False
        for n in range(lo, hi if hi - lo > 1 else lo):
            for k in range(z.shape[1]):
                choice |= z[n, k] != 0.0
        if choice:
            for n in range(lo, hi):
                rows[count] = n
                rest[n] = 0.0
                count += 1
            groups += 1
            own[groups] = count
    return count, groups


@kernel
def _mix(starts, theta, u):
    """Mix theta of the uniform design into the shares. Overwrites u."""
    for i in range(len(starts) - 1):
        equal = theta / (starts[i + 1] - starts[i])
        for n in range(starts[i], starts[i + 1]):
            u[n] = (1.0 - theta) * u[n] + equal


@kernel
def _set_apart(starts, theta, g, s, bound):
    """Overwrite bounds with the largest variances and theta of their mean, s with the distances to them."""
    mean = 0.0
    for i in range(len(bound)):
        bound[i] = 0.0
        for n in range(starts[i], starts[i + 1]):
            bound[i] = max(bound[i], g[n])
        mean += bound[i] / len(bound)
    for i in range(len(bound)):
        bound[i] += theta * mean
        for n in range(starts[i], starts[i + 1]):
            s[n] = bound[i] - g[n]


@kernel
def _sweep(starts, least, u):
    """Set shares below this fraction of the largest in their group to zero, and let the others sum to one.

    Overwrites u; returns how many there were that were not zero before.
    """
    count = 0
    for i in range(len(starts) - 1):
        top, total = 0.0, 0.0
        for n in range(starts[i], starts[i + 1]):
            top = max(top, u[n])
        for n in range(starts[i], starts[i + 1]):
            if 0.0 < u[n] < least * top:
                u[n] = 0.0
                count += 1
            total += u[n]
        for n in range(starts[i], starts[i + 1]):
            u[n] /= total
    return count
