"""Primal-dual interior point method on the structured Newton system.

    maximise   F(u) = sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

The shares u_n and the scaled rows z_n are those of the reduced problem (:mod:`optdesign.algebra.reduced`).
The gradient g of F has the variances of the scaled rows. With a bound lambda_i for every group and a slack
s_n for every row, the conditions of optimality are

    s_n = lambda_i - g_n >= 0,   u_n s_n = 0,   sum_{n in i} u_n = 1.

Each iteration takes one Newton step towards u_n s_n = mu (Mehrotra's predictor and corrector). The linear
system of a step, and the ways to solve it, are in :mod:`optdesign.solvers.systems`. The shares of a group are
fixed if it has a single candidate, or zero vectors only. The information of such groups is a constant.

*Restarts.* The round-off of the linear system grows with the range of the ratios u_n / s_n, fastest at
degenerate optima. The slacks also drift from lambda_i - g_n. The method restarts if more than PATIENCE steps
have not halved the gap. If the smallest gap has halved since the last start, the new start is the best
shares. Otherwise it is the uniform design, at most once. A restart computes the slacks again and mixes the
uniform design into the shares. Without the mixture the products u_n s_n would differ by orders of magnitude
near the boundary, and steps would be short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import WIDE, add_information, factorise, whiten
from optdesign.algebra.reduced import Reduced
from optdesign.numbers.roundoff import UNIT
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.method import PATIENCE, Step
from optdesign.solvers.newton_kernels import (
    centring,
    evaluate_in_one_call,
    gap_of,
    move,
    residual,
    step_fraction,
    step_in_one_call,
    whiten_rows,
)
from optdesign.solvers.systems import System, cheapest_system, dense_system
from optdesign.solvers.systems.by_iteration import ByIteration
from optdesign.solvers.systems.layout import Layout

STAGE = "newton"


class Parameters(NamedTuple):
    """Parameters of the interior point method."""

    to_boundary: tuple[float, float] = (0.99, 0.9999)
    """Smallest and largest length of a step, as a fraction of the distance to the boundary. The better the
    predictor reduces the products u_n s_n, the longer the step. After a restart all steps have the smallest
    length, because longer steps fail for polynomials on fine grids."""
    uniform_share: float = 1e-3
    """Smallest share of the uniform design in the starting point."""
    negligible: float = 1e-4
    """Shares below this fraction of the largest share of their group are set to zero at the end, if the gap
    stays within the target."""
    overshoot: float = 0.1
    """Steps continue until the gap is at most this fraction of the target, which usually takes one more step.
    Negligible shares can then be dropped within the target. If the system is solved by iteration, steps end
    at the target itself."""


PARAMETERS = Parameters()


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int = sys.maxsize) -> Iterator[Step]:
    """Take Newton steps until the gap is at most ``target``. Overwrites u with the best shares found.

    Once the target is met, negligible shares are dropped if the gap stays within the target. An iteration is
    a Newton step. The gap of a Step is that of the current point, not of the shares in u. If the given shares
    meet the target, or if no share is free, one Step is yielded with the gap of the given shares.
    """
    raise_if_stopped()
    free = _free_rows(reduced, u)
    state = _State(free, u[free.rows])
    if state.best_gap <= target or not len(free.rows):
        yield Step(np.array([state.best_gap]), STAGE)
        return
    state.start(state.best_gap)
    roundoff_gap = 2 * UNIT * reduced.rank  # a smaller gap is round-off in any certificate
    for _ in range(max_iter):
        gap = state.step()
        met = state.best_gap <= target
        u[free.rows] = _without_negligible(free, state.best, target) if met else state.best
        yield Step(np.array([gap]), STAGE)
        # Once the target is met, steps continue only while each of them halves the gap.
        if gap <= max(state.inner_target(target), roundoff_gap) or (met and state.steps_since_halved > 0):
            return
        if state.is_stalled(gap) and not state.restart():
            return


class _State:
    """State of the method: current point, best shares, and progress since the last start."""

    def __init__(self, free: _FreeRows, u: np.ndarray) -> None:
        self.free, self.best, self.best_gap = free, u, free.gap(u)
        self.to_boundary = PARAMETERS.to_boundary
        # If the given shares lose rank, the first start is the uniform design.
        self.uniform_start_used = self.best_gap == np.inf
        self.system = cheapest_system(free.layout) if len(free.rows) else None
        """Solver of the linear system; None if a step is one compiled call or no row is free."""
        self.point: _Point

    def start(self, gap: float) -> None:
        """Move to an interior point near the best shares, or to the uniform design if ``gap`` is infinite.

        A finite ``gap`` is that of the best shares. The first steps after a start may have larger gaps than
        the best shares, so the gap of the last halving is reset to infinity.
        """
        self.point = _point_near(self.free, self.best, gap)
        self.gap_at_start, self.gap_at_last_halving, self.steps_since_halved = self.best_gap, np.inf, 0

    def step(self) -> float:
        """Take a Newton step and keep its shares if their gap is the smallest so far. Returns the gap."""
        gap = _newton_step(self.free, self.system, self.point, self.to_boundary)
        self.steps_since_halved += 1
        if gap < self.gap_at_last_halving / 2:
            self.gap_at_last_halving, self.steps_since_halved = gap, 0
        if gap < self.best_gap:
            self.best, self.best_gap = self.point.u.copy(), gap
        if isinstance(self.system, ByIteration) and self.system.exceeds_budget:
            self.system = dense_system(self.free.layout)
        return gap

    def inner_target(self, target: float) -> float:
        """Return the gap to which steps continue; see ``overshoot``."""
        return target if isinstance(self.system, ByIteration) else PARAMETERS.overshoot * target

    def is_stalled(self, gap: float) -> bool:
        """Return True if the last step failed, or more than PATIENCE steps have not halved the gap."""
        return not np.isfinite(gap) or self.steps_since_halved > PATIENCE

    def restart(self) -> bool:
        """Start again, from the best shares or once from the uniform design.

        Returns False if neither is permitted. A restart from the best shares is permitted only if their gap
        has halved since the last start, so the number of restarts is bounded.
        """
        has_halved = self.best_gap < self.gap_at_start / 2
        if not has_halved and self.uniform_start_used:
            return False
        self.uniform_start_used = self.uniform_start_used or not has_halved
        self.to_boundary = (self.to_boundary[0], self.to_boundary[0])
        self.start(self.best_gap if has_halved else np.inf)
        return True


class _FreeRows(NamedTuple):
    """The rows of groups with free shares, in the order of the groups."""

    rows: np.ndarray
    z: np.ndarray
    layout: Layout
    fixed: np.ndarray
    """Information matrices of the rows that are not free, by block."""

    def evaluate(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """Overwrite a with the whitened rows at u and g with their variances.

        Returns the gap, inf if u loses rank.
        """
        raise_if_stopped()
        layout, width = self.layout, self.z.shape[1]
        if width < WIDE and threads.fits_one_piece(len(u), threads.PIECE // width):  # one kernel
            return evaluate_in_one_call(
                self.z, layout.block, layout.starts, layout.ranks, self.fixed, u, a, g
            )
        if width < WIDE:  # the same arithmetic on several threads
            return self._evaluate_in_pieces(u, a, g)
        # BLAS is faster for wide rows. Columns beyond the rank of a block stay zero.
        for b, rows, rank in layout.blocks():
            if rank and not whiten(self.z[rows, :rank], u[rows], self.fixed[b, :rank, :rank], a, rows):
                return np.inf
        np.einsum("ij,ij->i", a, a, out=g)
        return gap_of(layout.starts, u, g)

    def _evaluate_in_pieces(self, u: np.ndarray, a: np.ndarray, g: np.ndarray) -> float:
        """Do the work of ``evaluate`` for narrow rows on several threads."""
        layout = self.layout
        information, factor = self.fixed.copy(), np.zeros_like(self.fixed)
        add_information(self.z, layout.block, layout.ranks, u, information)
        if factorise(information, layout.ranks, factor).min() == -np.inf:
            return np.inf

        def write(first: int, last: int) -> None:
            part = slice(first, last)
            whiten_rows(self.z[part], layout.block[part], layout.ranks, factor, a[part], g[part])

        threads.results(write, len(u), threads.PIECE // self.z.shape[1])
        return gap_of(layout.starts, u, g)

    def gap(self, u: np.ndarray) -> float:
        """Return the gap of shares, infinite if they lose rank."""
        return self.evaluate(u, np.zeros_like(self.z), np.empty(len(u)))


def _free_rows(reduced: Reduced, u: np.ndarray) -> _FreeRows:
    """Return the rows of groups with free shares and the information of the others."""
    z, blocks, starts, ranks, *_ = reduced
    rows, free_starts, fixed_shares = np.empty(len(u), np.int64), np.zeros_like(starts), u.copy()
    count, groups = _split(z, starts, rows, free_starts, fixed_shares)
    rows = rows[:count]
    fixed = np.zeros((len(ranks), z.shape[1], z.shape[1]))
    add_information(z, blocks, ranks, fixed_shares, fixed)
    return _FreeRows(rows, z[rows], Layout(blocks[rows], free_starts[: groups + 1], ranks), fixed)


class _Point(NamedTuple):
    """An interior point. Steps overwrite it."""

    u: np.ndarray
    """Shares."""
    s: np.ndarray
    """Slacks."""
    bound: np.ndarray
    """The bounds lambda_i of the groups."""
    a: np.ndarray
    """Whitened rows at u."""
    g: np.ndarray
    """Variances at u."""


def _point_near(free: _FreeRows, u: np.ndarray, gap: float) -> _Point:
    """Return an interior point near the given shares. The distance decreases with their gap.

    The shares are mixed with a fraction theta of the uniform design, and every bound is raised by theta times
    the mean bound. All products u_n s_n are then of the order of theta, because supported candidates have
    small slacks and the others have small shares. theta is the largest possible loss of efficiency,
    gap / (gap + rank). An infinite gap gives theta = 1, the uniform design.
    """
    starts = free.layout.starts
    theta = (
        max(PARAMETERS.uniform_share, gap / (gap + float(free.layout.ranks.sum()))) if gap < np.inf else 1.0
    )
    x = _Point(u.copy(), np.empty(len(u)), np.empty(len(starts) - 1), np.zeros_like(free.z), np.empty(len(u)))
    _mix_uniform(starts, theta, x.u)
    free.evaluate(x.u, x.a, x.g)
    _set_slacks(starts, theta, x.g, x.s, x.bound)
    return x


def _without_negligible(free: _FreeRows, u: np.ndarray, target: float) -> np.ndarray:
    """Return the shares after negligible shares are set to zero.

    A share is negligible if it is below a fraction of the largest share of its group. The fraction is the
    largest of 1e-4, 1e-5, ... for which the gap stays within the target.
    """
    fraction, fewer = PARAMETERS.negligible, u.copy()
    while _drop_below(free.layout.starts, fraction, fewer):
        if free.gap(fewer) <= target:
            return fewer
        fraction, fewer = fraction / 10, u.copy()
    return u


def _newton_step(
    free: _FreeRows, system: System | None, x: _Point, to_boundary: tuple[float, float]
) -> float:
    """Take a predictor-corrector step. Overwrites x; returns its gap, infinite if the system is singular."""
    layout = free.layout
    raise_if_stopped()
    if system is None:
        return step_in_one_call(
            free.z, layout.block, layout.starts, layout.ranks, free.fixed, *to_boundary, *x
        )
    with threads.blas(system.order):
        if not system.factorise(x.a, x.u / x.s):
            return np.inf
        r = residual(layout.starts, x.bound, x.g)
        du, _ = system.solve(r)  # predictor
        centre = np.empty_like(du)
        remaining = centring(x.u, x.s, du, centre)
        r += centre
        du, dbound = system.solve(r)  # corrector
    move(layout.starts, x.u, x.s, x.bound, du, dbound, centre, step_fraction(remaining, *to_boundary))
    return free.evaluate(x.u, x.a, x.g)


@kernel
def _split(z, starts, rows, free_starts, fixed_shares):
    """List the rows of groups with free shares.

    Such a group has two candidates or more, and not all of them are zero. Overwrites rows with these rows,
    free_starts (given as zeros) with the position in rows at which each such group starts, and their entries
    of fixed_shares with zeros. Returns the numbers of rows and groups.
    """
    count, groups = 0, 0
    for i in range(len(starts) - 1):
        lo, hi = starts[i], starts[i + 1]
        is_free = False
        for n in range(lo, hi):
            for k in range(z.shape[1]):
                is_free |= z[n, k] != 0.0
        if is_free and hi - lo > 1:
            for n in range(lo, hi):
                rows[count] = n
                fixed_shares[n] = 0.0
                count += 1
            groups += 1
            free_starts[groups] = count
    return count, groups


@kernel
def _mix_uniform(starts, theta, u):
    """Overwrite u with (1 - theta) u + theta times the uniform design."""
    for i in range(len(starts) - 1):
        equal = theta / (starts[i + 1] - starts[i])
        for n in range(starts[i], starts[i + 1]):
            u[n] = (1.0 - theta) * u[n] + equal


@kernel
def _set_slacks(starts, theta, g, s, bound):
    """Overwrite bound with the largest variance of every group plus theta times their mean, and s."""
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
def _drop_below(starts, fraction, u):
    """Set shares below a fraction of the largest of their group to zero. The others are scaled to sum to 1.

    Overwrites u. Returns the number of shares that became zero.
    """
    count = 0
    for i in range(len(starts) - 1):
        top, total = 0.0, 0.0
        for n in range(starts[i], starts[i + 1]):
            top = max(top, u[n])
        for n in range(starts[i], starts[i + 1]):
            if 0.0 < u[n] < fraction * top:
                u[n] = 0.0
                count += 1
            total += u[n]
        for n in range(starts[i], starts[i + 1]):
            u[n] /= total
    return count
