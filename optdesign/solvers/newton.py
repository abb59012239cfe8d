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
slacks that fit.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from optdesign import threads
from optdesign._kernel import kernel
from optdesign.information import WIDE, accumulate, factorise, whiten
from optdesign.problem import DesignProblem
from optdesign.reduced import Reduced, reduce
from optdesign.solvers import NOTHING, Step
from optdesign.solvers.systems import System, cheapest_system
from optdesign.solvers.systems.layout import Layout

STEP_TO_BOUNDARY = 0.995
CAUTIOUS_STEP = 0.9
"""Fraction of the way to the boundary; the cautious one in the first steps, where curvature is high."""
CAUTIOUS_STEPS = 3

HALVINGS = 8
GAP_GROWTH = 10.0
"""A step is halved, so many times at most, while it would make the gap grow by more than this factor."""

START_UNIFORM = (1e-3, 0.5)
"""Share of the uniform design in the starting point: the relative gap of the given shares, cut to this."""

DUST = (1e-5, 1e-7, 1e-9, 1e-11)
"""Shares below these fractions of the largest in their group are tried as zero at the end, in turn."""
DUST_SLACK = 0.9
OVERSHOOT = 0.1
"""Steps go on to this fraction of the target, so that there is room for the removal of dust."""

STALL_STEPS, RESTARTS = 6, 2
"""After so many steps without a smaller gap the iteration starts again, so many times."""
SHORT = 200
"""Order of a system below which a step takes no time worth interrupting."""

GAP_FLOOR = 2.0**-52
"""Gaps below this fraction of the rank are rounding in any certificate. Going on would only let slacks
underflow."""


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """The interior point method on a whole problem, in the form of :mod:`optdesign.solvers`."""
    reduced = reduce(problem)
    u = reduced.restrict(weights, problem)
    for gaps in iterate(reduced, u, target, max_iter):
        if len(gaps):
            reduced.extend(u, problem, weights)
        yield Step(gaps, "newton")


def iterate(reduced: Reduced, u: np.ndarray, target: float, max_iter: int) -> Iterator[np.ndarray]:
    """Newton steps until the gap is at most ``target``. Overwrites u, with better shares only.

    Yields the gap of every step, and nothing now and then while a long one is under way.
    """
    free = _free(reduced, u)
    best = free.gap(u[free.rows])
    if best <= target or not len(free.rows):
        yield np.array([best])
        return
    system = cheapest_system(free.layout)
    x = _start(free, u[free.rows], best)
    enough = max(OVERSHOOT * target, GAP_FLOOR * reduced.rank)
    gap, since_start, since_best, restarts = np.inf, 0, 0, RESTARTS
    for _ in range(max_iter):
        damping = CAUTIOUS_STEP if since_start < CAUTIOUS_STEPS else STEP_TO_BOUNDARY
        gap = yield from _newton_step(free, system, x, gap, damping)
        since_start, since_best = since_start + 1, since_best + 1
        if gap < best:
            best, since_best = gap, 0
            u[free.rows] = x.u if gap > target else _without_dust(free, x.u, target)
        yield np.array([gap])
        if gap <= enough or (best <= target and since_best > 0):
            return
        if not np.isfinite(gap) or since_best > STALL_STEPS:
            if not restarts:
                return
            x = _start(free, u[free.rows], best)
            gap, since_start, since_best, restarts = np.inf, 0, 0, restarts - 1


class _Free(NamedTuple):
    """The rows of groups that have a choice, group by group."""

    rows: np.ndarray
    z: np.ndarray
    layout: Layout
    fixed: np.ndarray
    """Information of the groups without a choice."""

    def evaluate(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """Overwrite a with the rows whitened at u, g with their variances; the gap, inf without rank."""
        layout = self.layout
        if self.z.shape[1] < WIDE:
            return _evaluate(self.z, layout.block, layout.starts, layout.ranks, self.fixed, u, a, g)
        for b, rows, rank in layout.blocks():
            if rank and not whiten(self.z[rows, :rank], u[rows], self.fixed[b, :rank, :rank], a, rows):
                return np.inf
        np.einsum("ij,ij->i", a, a, out=g)
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
    accumulate(z, blocks, ranks, fixed_u, fixed)
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
    theta = float(np.clip(gap / float(free.layout.ranks.sum()), *START_UNIFORM))
    sizes = np.diff(starts)
    mixed = (1 - theta) * u + theta * np.repeat(1.0 / sizes, sizes)
    a, g = np.zeros_like(free.z), np.empty(len(u))
    free.evaluate(mixed, a, g)
    top = np.maximum.reduceat(g, starts[:-1])
    bound = top + theta * top.mean()
    return _State(mixed, np.repeat(bound, sizes) - g, bound, a, g)


def _without_dust(free: _Free, u: np.ndarray, target: float) -> np.ndarray:
    """Shares with negligible ones set to zero: as many as the target allows."""
    first, sizes = free.layout.starts[:-1], np.diff(free.layout.starts)
    top = np.repeat(np.maximum.reduceat(u, first), sizes)
    for dust in DUST:
        clean = np.where(u < dust * top, 0.0, u)
        clean /= np.repeat(np.add.reduceat(clean, first), sizes)
        if free.gap(clean) <= DUST_SLACK * target:
            return clean
    return u


def _newton_step(
    free: _Free, system: System, x: _State, gap: float, damping: float
) -> Generator[np.ndarray, None, float]:
    """Predictor, corrector, move. Overwrites x; returns its gap, infinite if there is no step."""
    if not (yield from _in_pieces(system, system.factorise(x.a, x.u / x.s))):
        return np.inf
    r = _residual(free.layout.starts, x.bound, x.g)
    du, _ = yield from _in_pieces(system, system.solve(r))
    centre = _target(x.u, x.s, du)
    du, dbound = yield from _in_pieces(system, system.solve(centre + r))
    ds = centre - x.s - x.s / x.u * du
    return _move(free, damping, gap, x, du, ds, dbound)


def _in_pieces(system: System, work: Generator[None, None, Any]) -> Generator[np.ndarray, None, Any]:
    """What a system's work returns; as many threads for it as its order deserves."""
    while True:
        try:
            if system.order < SHORT:
                next(work)
                continue
            with threads.blas(system.order):
                next(work)
        except StopIteration as end:
            return end.value
        yield NOTHING


def _move(
    free: _Free, damping: float, gap: float, x: _State, du: np.ndarray, ds: np.ndarray, dbound: np.ndarray
) -> float:
    """Go as far as positivity and a bounded gap allow. Overwrites the state; returns the new gap."""
    primal, dual = damping * _reach(x.u, du), damping * _reach(x.s, ds)
    new, new_gap = np.empty_like(du), np.inf
    for _ in range(HALVINGS):
        _moved(free.layout.starts, x.u, du, primal, new)
        new_gap = free.evaluate(new, x.a, x.g)
        if new_gap <= GAP_GROWTH * gap:
            break
        primal, dual = primal / 2, dual / 2
    x.u[:] = new
    x.s[:] += dual * ds
    x.bound[:] += dual * dbound
    return new_gap


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
def _evaluate(z, blocks, starts, ranks, fixed, u, a, g):
    """Overwrite a with the rows whitened at u, g with their variances. Returns the gap, inf without rank."""
    information = fixed.copy()
    accumulate(z, blocks, ranks, u, information)
    factor = np.empty_like(information)
    if factorise(information, ranks, factor).min() == -np.inf:
        return np.inf
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
    """Mehrotra's choice after the predictor du: (sigma mu - du ds) / u."""
    n = len(u)
    ds = -s - s / u * du
    primal, dual = _reach(u, du), _reach(s, ds)
    mu, affine = 0.0, 0.0
    for i in range(n):
        mu += u[i] * s[i] / n
        affine += (u[i] + primal * du[i]) * (s[i] + dual * ds[i]) / n
    ratio = affine / mu
    return (mu * (ratio * ratio * ratio) - du * ds) / u


@kernel
def _moved(starts, u, du, length, new):
    """Overwrite new with u + length du, scaled to sums of one."""
    for i in range(len(starts) - 1):
        total = 0.0
        for n in range(starts[i], starts[i + 1]):
            new[n] = u[n] + length * du[n]
            total += new[n]
        for n in range(starts[i], starts[i + 1]):
            new[n] /= total


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
