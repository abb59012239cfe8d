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
slacks that fit, unless it has started from them before.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from optdesign import source, threads
from optdesign._kernel import kernel
from optdesign.compensated import UNIT
from optdesign.information import WIDE, accumulate, add_information, factorise, whiten
from optdesign.limits import look
from optdesign.reduced import Reduced
from optdesign.solvers import NOTHING, PATIENCE, Step
from optdesign.solvers.systems import System, cheapest_system, without_strain
from optdesign.solvers.systems.by_iteration import ByIteration
from optdesign.solvers.systems.layout import Layout

TO_BOUNDARY = 0.99
"""Fraction of the way to the boundary."""

START = 1e-3
"""Share of the uniform design in the starting point, at least; it is one less the efficiency."""

DUST = 1e-5
"""A share below this fraction of the largest in its group is dust, which is swept away at the end."""
OVERSHOOT = 0.1
"""Steps go on to this fraction of the target, so that there is room for that, and on from there as long as
there is none: mostly it takes one more. Not those by iteration, whose gaps fall by a factor of two."""


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int = sys.maxsize) -> Iterator[Step]:
    """Newton steps until the gap is at most ``target``. Overwrites u, with better shares only.

    An iteration is a Newton step; long ones come in parts. Gaps have to be halved every few steps, and so has
    the best one by every new start: it does not go on for ever. Gaps that are rounding in any certificate are
    no aim: going on would only let slacks underflow.
    """
    look()
    free = _free(reduced, u)
    best = free.gap(u[free.rows])
    if best <= target or not len(free.rows):
        yield Step(np.array([best]), "newton")
        return
    system = cheapest_system(free.layout)
    x = _start(free, u[free.rows], best)
    # The start may be better than the first steps from an interior point near it: they have to get better
    # than those before them, not than it.
    at_start, lowest, since_lowest = best, np.inf, 0
    for step in range(1, max_iter + 1):
        gap = yield from _newton_step(free, system, x)
        since_lowest += 1
        if gap < lowest / 2:
            lowest, since_lowest = gap, 0
        if gap < best:
            best = gap
            u[free.rows] = x.u
        dense, floor = not isinstance(system, ByIteration), 2 * UNIT * reduced.rank
        enough = max(OVERSHOOT * target if dense else target, floor)
        done = gap <= enough or (best <= target and since_lowest > 0)
        if best <= target and (done or step == max_iter):
            u[free.rows], dusty = _without_dust(free, u[free.rows], target)
            # What is dust but matters for the target shrinks with the gap.
            done = done and not (dusty and dense and since_lowest == 0 and gap > floor)
        yield Step(np.array([gap]), "newton")
        if done:
            return
        system = without_strain(system)
        if not np.isfinite(gap) or since_lowest > PATIENCE:
            if not best < at_start / 2:
                return
            at_start, lowest, since_lowest = best, np.inf, 0
            x = _start(free, u[free.rows], best)


class _Free(NamedTuple):
    """The rows of groups that have a choice, group by group."""

    rows: np.ndarray
    z: np.ndarray
    layout: Layout
    fixed: np.ndarray
    """Information of the groups without a choice."""

    def evaluate(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """Overwrite a with the rows whitened at u, g with their variances; the gap, inf without rank."""
        look()
        layout, width = self.layout, self.z.shape[1]
        if width < WIDE and threads.undivided(len(u), source.PIECE // width):
            return _evaluate(self.z, layout.block, layout.starts, layout.ranks, self.fixed, u, a, g)
        if width < WIDE:
            return self._evaluate_in_pieces(u, a, g)
        for b, rows, rank in layout.blocks():
            if rank and not whiten(self.z[rows, :rank], u[rows], self.fixed[b, :rank, :rank], a, rows):
                return np.inf
        np.einsum("ij,ij->i", a, a, out=g)
        return _gap(layout.starts, u, g)

    def _evaluate_in_pieces(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """The same by loops, on several threads."""
        layout = self.layout
        information, factor = self.fixed.copy(), np.zeros_like(self.fixed)
        add_information(self.z, layout.block, layout.ranks, u, information)
        if factorise(information, layout.ranks, factor).min() == -np.inf:
            return np.inf

        def write(first: int, last: int) -> None:
            part = slice(first, last)
            _whiten_rows(self.z[part], layout.block[part], layout.ranks, factor, a[part], g[part])

        threads.each(write, len(u), source.PIECE // self.z.shape[1])
        return _gap(layout.starts, u, g)

    def gap(self, u: np.ndarray) -> float:
        """Gap of shares, infinite if they lose rank."""
        return self.evaluate(u, np.zeros_like(self.z), np.empty(len(u)))


def _free(reduced: Reduced, u: np.ndarray) -> _Free:
    """Split off the groups without a choice."""
    z, blocks, starts, ranks, _ = reduced
    keep = _has_choice(z, starts)
    rows = np.flatnonzero(np.repeat(keep, np.diff(starts)))
    fixed_u = u.copy()
    fixed_u[rows] = 0.0
    fixed = np.zeros((len(ranks), z.shape[1], z.shape[1]))
    add_information(z, blocks, ranks, fixed_u, fixed)
    sizes = np.zeros(int(np.count_nonzero(keep)) + 1, np.int64)
    sizes[1:] = np.diff(starts)[keep]
    return _Free(rows, z[rows], Layout(blocks[rows], np.cumsum(sizes), ranks), fixed)


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
    sizes = np.diff(starts)
    mixed = (1 - theta) * u + theta * np.repeat(1.0 / sizes, sizes)
    a, g = np.zeros_like(free.z), np.empty(len(u))
    free.evaluate(mixed, a, g)
    top = np.maximum.reduceat(g, starts[:-1])
    bound = top + theta * top.mean()
    return _State(mixed, np.repeat(bound, sizes) - g, bound, a, g)


def _without_dust(free: _Free, u: np.ndarray, target: float) -> tuple[np.ndarray, bool]:
    """Shares with negligible ones set to zero, if the target allows it, and whether some are left."""
    first, sizes = free.layout.starts[:-1], np.diff(free.layout.starts)
    top = np.repeat(np.maximum.reduceat(u, first), sizes)
    clean = np.where(u < DUST * top, 0.0, u)
    if clean.all():
        return u, False
    clean /= np.repeat(np.add.reduceat(clean, first), sizes)
    return (clean, False) if free.gap(clean) <= target else (u, True)


def _newton_step(free: _Free, system: System, x: _State) -> Generator[Step, None, float]:
    """Predictor, corrector, move. Overwrites x; returns its gap, infinite if there is no step."""
    if not (yield from _in_pieces(system, system.factorise(x.a, x.u / x.s))):
        return np.inf
    r = _residual(free.layout.starts, x.bound, x.g)
    du, _ = yield from _in_pieces(system, system.solve(r))
    centre = _target(x.u, x.s, du)
    r += centre
    du, dbound = yield from _in_pieces(system, system.solve(r))
    _move(free.layout.starts, x.u, x.s, x.bound, du, dbound, centre, TO_BOUNDARY)
    return free.evaluate(x.u, x.a, x.g)


def _in_pieces(system: System, work: Generator[None, None, Any]) -> Generator[Step, None, Any]:
    """What the work of a system returns; as many threads as its order deserves. What is less than a piece of
    work takes no time worth interrupting.
    """
    short = threads.undivided(system.order * system.layout.n_rows, source.PIECE)
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
def _has_choice(z, starts):
    """Tell for every group whether it has two candidates or more, not all zero."""
    out = np.zeros(len(starts) - 1, np.bool_)
    for i in range(len(out)):
        if starts[i + 1] - starts[i] > 1:
            for n in range(starts[i], starts[i + 1]):
                for k in range(z.shape[1]):
                    if z[n, k] != 0.0:
                        out[i] = True
    return out


@kernel
def _whiten_rows(z, blocks, ranks, factor, a, g):
    """Overwrite a with L^-1 z_n and g with its square, given L^-1 of every block."""
    for n in range(len(z)):
        b = blocks[n]
        g[n] = 0.0
        a[n] = 0.0
        for k in range(ranks[b]):
            t = 0.0
            for j in range(k + 1):
                t += factor[b, k, j] * z[n, j]
            a[n, k] = t
            g[n] += t * t


@kernel
def _evaluate(z, blocks, starts, ranks, fixed, u, a, g):
    """Overwrite a with the rows whitened at u, g with their variances; the gap, inf without rank."""
    information, factor = fixed.copy(), np.zeros(fixed.shape)
    accumulate(z, blocks, ranks, u, information)
    log_det = factorise(information, ranks, factor)
    for b in range(len(ranks)):
        if log_det[b] == -np.inf:
            return np.inf
    _whiten_rows(z, blocks, ranks, factor, a, g)
    return _gap(starts, u, g)


@kernel
def _reach(x, dx):
    """Largest step up to 1 that keeps x + step dx >= 0."""
    worst = 1.0
    for n in range(len(x)):
        worst = max(worst, -dx[n] / x[n])
    return 1.0 / worst


@kernel
def _target(u, s, du):
    """Mehrotra's choice after the predictor du: (sigma mu - du ds) / u, where ds = -s (1 + du / u)."""
    n = len(u)
    least, most = 0.0, 0.0
    centre = np.empty(n)  # du / u on the way
    for i in range(n):
        centre[i] = du[i] / u[i]
        least, most = min(least, centre[i]), max(most, centre[i])
    primal, dual = 1.0 / max(1.0, -least), 1.0 / (1.0 + most)
    mu, affine = 0.0, 0.0
    for i in range(n):
        mu += u[i] * s[i]
        affine += (u[i] + primal * du[i]) * s[i] * (1.0 - dual * (1.0 + centre[i]))
    ratio = affine / mu
    aim = mu / n * (ratio * ratio * ratio)
    for i in range(n):
        centre[i] = (aim + du[i] * s[i] * (1.0 + centre[i])) / u[i]
    return centre


@kernel
def _move(starts, u, s, bound, du, dbound, centre, fraction):
    """Move shares, and slacks with bounds, by a fraction of the way to zero; shares sum to one again.

    Slacks change by ds, with which u s comes to centre u, to first order. Overwrites u, s and bound.
    """
    ds = np.empty(len(u))
    for n in range(len(u)):
        ds[n] = centre[n] - s[n] - s[n] / u[n] * du[n]
    primal, dual = fraction * _reach(u, du), fraction * _reach(s, ds)
    for i in range(len(bound)):
        bound[i] += dual * dbound[i]
        total = 0.0
        for n in range(starts[i], starts[i + 1]):
            u[n] += primal * du[n]
            s[n] += dual * ds[n]
            total += u[n]
        for n in range(starts[i], starts[i + 1]):
            u[n] /= total


@kernel
def _gap(starts, u, g):
    """sum_i sum_n u_n (max g - g_n), in which D does not cancel."""
    gap = 0.0
    for i in range(len(starts) - 1):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            top = max(top, g[n])
        for n in range(starts[i], starts[i + 1]):
            gap += u[n] * (top - g[n])
    return gap


@kernel
def _residual(starts, bound, g):
    """g_n - lambda_i."""
    out = g.copy()
    for i in range(len(bound)):
        for n in range(starts[i], starts[i + 1]):
            out[n] -= bound[i]
    return out
