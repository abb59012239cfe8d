"""Block coordinate ascent (Algorithm 3 of the paper) with the subproblems solved in closed form.

    maximise   F(u) = sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

A sweep visits every group and solves its subproblem with the other groups fixed
(:mod:`optdesign.solvers.group_step`). F never decreases. The inverses V of the information are updated at
each visit. They are recomputed from the shares after every few sweeps, and before a gap is compared with the
target.

*Parallel sweeps.* If there are very many groups, they are divided into L parts that are visited concurrently.
Part l uses U / L as its information and changes it by D_l, so that log det(U / L + D_l) rises. The new
information U + sum_l D_l is the sum of the L matrices of the parts. log det is concave, so L log det of their
mean is at least the sum of their log dets, and F rises. The kernels need no change, since (U / L)^-1 = L V.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import accumulate, add_information, factorise, invert, variance
from optdesign.algebra.reduced import Reduced
from optdesign.numbers.roundoff import ROUNDOFF
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers.costs import SWEEPS
from optdesign.solvers.group_step import EXCHANGE, exchange, water_fill
from optdesign.solvers.method import Step

STAGE = "bca"


class Parameters(NamedTuple):
    """Parameters of block coordinate ascent."""

    lag: float = 5.0
    """Assumed largest ratio of the gap that is summed during a sweep to the gap after it (a heuristic). The
    gap is recomputed from the shares if the sum is at most this multiple of the target."""
    work: float = 2e7
    """Multiplications between two returns to Python, which checks limits and interrupts."""
    parts: int = 2
    """Number of parts of a parallel sweep. It does not depend on the number of threads, and neither do the
    results."""
    groups_per_parameter: int = 500
    """Sweeps are parallel if the effective number of groups is at least this multiple of the rank. A parallel
    sweep then gains as much as a sequential one."""


PARAMETERS = Parameters()


def run(reduced: Reduced, u: np.ndarray, target: float, max_iter: int, batch: int = 1000) -> Iterator[Step]:
    """Sweep until the gap is at most ``target``, or neither the gap falls nor a share changes. Overwrites u.

    An iteration is a sweep. A step is up to ``batch`` sweeps.
    """
    state, exchange_work = _state(reduced, u)
    n_parts, slice_size = _plan(state, exchange_work)
    # A first batch that changes no share ends the run, whatever its gap. The plan of parallel sweeps has
    # recomputed the inverse.
    done, gap, inverse_is_fresh = 0, -np.inf, n_parts > 1
    while done < max_iter:
        before, last_gap = u.copy(), gap
        if slice_size == reduced.n_groups and n_parts == 1:
            most = int(PARAMETERS.work / state.sweep_work())
            gaps = np.empty(min(max(1, most), batch, max_iter - done))
            gaps = gaps[: _sweeps(*state, target, done, gaps)]
        else:
            if done % SWEEPS == 0 and not inverse_is_fresh:
                state.recompute_inverse()
            total = 0.0
            for first in range(0, reduced.n_groups, slice_size):
                raise_if_stopped()
                total += state.visit(first, min(first + slice_size, reduced.n_groups), n_parts)
            gaps = np.array([total - reduced.rank])
            inverse_is_fresh = bool(gaps[0] <= PARAMETERS.lag * target)
            if inverse_is_fresh:
                gaps[0] = state.gap()
        done, gap = done + len(gaps), gaps[-1]
        yield Step(gaps, STAGE)
        raise_if_stopped()
        if gap <= target or (gap >= last_gap and np.abs(u - before).max() <= ROUNDOFF):
            return


class _State(NamedTuple):
    """Arguments of the kernels. They overwrite u, inverse and the buffers g, fill and active."""

    z: np.ndarray
    blocks: np.ndarray
    starts: np.ndarray
    separable: np.ndarray
    """True if the candidates of a group lie in different blocks."""
    ranks: np.ndarray
    u: np.ndarray
    inverse: np.ndarray
    g: np.ndarray
    fill: np.ndarray | None
    """Buffer for water-filling; None if no group is separable, so that Numba does not compile
    water-filling."""
    active: np.ndarray | None
    """Buffer for exchanges; None if all groups are separable."""

    def sweep_work(self) -> float:
        """Return the multiplications of a sweep without exchanges: a variance and an update for every row."""
        return 3.0 * self.z.size * self.z.shape[1]

    def visit(self, first: int, last: int, n_parts: int) -> float:
        """Visit the groups first .. last - 1. Returns the sum of their largest variances."""
        if n_parts == 1:
            return _visit(*self, first, last)[0]
        parts = [self._part(n_parts) for _ in range(n_parts)]
        ends = [first + (last - first) * k // n_parts for k in range(n_parts + 1)]
        sums = threads.results(lambda k, _: _visit(*parts[k], ends[k], ends[k + 1])[0], n_parts, 1)
        if not self._join([part.inverse for part in parts]):
            self.recompute_inverse()
        return sum(sums) / n_parts  # variances under U / L are L times those under U

    def _part(self, n_parts: int) -> _State:
        """Return the state of a part of a parallel sweep.

        The parts share u; each has its own inverse and buffers.
        """
        fill, active = (None if old is None else np.empty_like(old) for old in (self.fill, self.active))
        return self._replace(
            inverse=n_parts * self.inverse, g=np.empty_like(self.g), fill=fill, active=active
        )

    def _join(self, inverses: list[np.ndarray]) -> bool:
        """Overwrite the inverse with that of the sum of the parts' matrices. Returns False if rank is lost.

        Overwrites the inverses of the parts.
        """
        information, factor = np.zeros_like(self.inverse), np.zeros_like(self.inverse)
        for own in inverses:
            if factorise(own, self.ranks, factor).min() == -np.inf:
                return False
            invert(factor, self.ranks, own)
            information += own
        full = factorise(information, self.ranks, factor).min() > -np.inf
        invert(factor, self.ranks, self.inverse)
        return full

    def effective_groups(self) -> float:
        """Return the number of groups of equal influence, (sum t_i)^2 / sum t_i^2.

        t_i is the largest variance of group i. The inverse is recomputed.
        """
        tops = self._largest_variances(self.recompute_inverse())
        return float(tops.sum() ** 2 / (tops @ tops))

    def gap(self) -> float:
        """Return the gap of the shares. The inverse is recomputed."""
        return _sum(self._largest_variances(self.recompute_inverse())) - int(self.ranks.sum())

    def recompute_inverse(self) -> np.ndarray:
        """Overwrite the inverse with that of the shares, on several threads. Returns the inverse factors."""
        information, factor = np.zeros_like(self.inverse), np.zeros_like(self.inverse)
        add_information(self.z, self.blocks, self.ranks, self.u, information)
        factorise(information, self.ranks, factor)
        invert(factor, self.ranks, self.inverse)
        return factor

    def _largest_variances(self, factor: np.ndarray) -> np.ndarray:
        """Return the largest variance of every group, on several threads."""
        groups = len(self.starts) - 1
        out, rows = np.empty(groups), (self.z, self.blocks, self.starts, self.ranks, factor)
        piece = max(1, threads.PIECE * groups // self.z.size)
        threads.results(lambda first, last: _write_largest(*rows, first, last, out), groups, piece)
        return out


def _state(reduced: Reduced, u: np.ndarray) -> tuple[_State, float]:
    """Return the arguments of the kernels, and a bound on the multiplications of the exchanges of a sweep."""
    z, blocks, starts, ranks, *_ = reduced
    separable = _separable(blocks, starts, len(ranks))
    largest, n_separable, exchange_work = _sizes(starts, separable, z.shape[1])
    fill = np.empty(largest) if n_separable else None
    active = None if n_separable == len(separable) else np.empty(largest, np.int64)
    inverse = np.zeros((len(ranks), z.shape[1], z.shape[1]))
    state = _State(z, blocks, starts, separable, ranks, u, inverse, np.empty(largest), fill, active)
    return state, exchange_work


def _plan(state: _State, exchange_work: float) -> tuple[int, int]:
    """Return the number of parts of a sweep, and of groups between two checks of a pending stop."""
    n_groups, needed = len(state.starts) - 1, PARAMETERS.groups_per_parameter * int(state.ranks.sum())
    large = n_groups >= needed and not threads.fits_one_piece(state.z.size, threads.PIECE)
    parallel = large and state.effective_groups() >= needed
    limits = PARAMETERS.work / state.sweep_work(), EXCHANGE.work / max(EXCHANGE.work, exchange_work), 1.0
    return PARAMETERS.parts if parallel else 1, max(1, int(min(limits) * n_groups))


@kernel
def _sizes(starts, separable, width):
    """Return the size of the largest group, the number of separable groups, and a bound on work.

    The work is the number of multiplications of the exchanges of a sweep.
    """
    largest, n_separable, work = 0, 0, 0.0
    for i in range(len(separable)):
        size = starts[i + 1] - starts[i]
        largest = max(largest, size)
        n_separable += separable[i]
        if not separable[i]:
            each = (width + EXCHANGE.scan) * size + 6.0 * width**2
            work += min(EXCHANGE.work, EXCHANGE.per_candidate * size * each)
    return largest, n_separable, work


@kernel
def _separable(blocks, starts, n_blocks):
    """Return True for every group whose candidates lie in different blocks."""
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
def _sweeps(z, blocks, starts, separable, ranks, u, inverse, g, fill, active, target, done, gaps):
    """Sweep len(gaps) times, or until the gap is at most target, or until the work limit of exchanges.

    Overwrites u, inverse, gaps and the buffers. Returns the number of sweeps; ``done`` is the number before
    this call.

    The gap of a sweep is summed from the largest variance of each group at its visit, so it is not that of
    the final shares. It is recomputed from the shares if it is near the target.
    """
    rank = 0
    for b in range(len(ranks)):
        rank += ranks[b]
    inverse_is_fresh, work = False, 0.0
    for sweep in range(len(gaps)):
        if (done + sweep) % SWEEPS == 0 and not inverse_is_fresh:
            _recompute_inverse(z, blocks, starts, ranks, u, inverse, 0.0)
        total, more = _visit(
            z, blocks, starts, separable, ranks, u, inverse, g, fill, active, 0, len(starts) - 1
        )
        work += more
        gaps[sweep] = total - rank
        inverse_is_fresh = gaps[sweep] <= PARAMETERS.lag * target
        if inverse_is_fresh:
            gaps[sweep] = _recompute_inverse(z, blocks, starts, ranks, u, inverse, 1.0)
        if gaps[sweep] <= target or work > EXCHANGE.work:
            return sweep + 1
    return len(gaps)


@kernel
def _visit(z, blocks, starts, separable, ranks, u, inverse, g, fill, active, first, last):
    """Solve the subproblems of the groups first .. last - 1. Overwrites u, inverse and the buffers.

    Returns the sum of the groups' largest variances and the number of multiplications of the exchanges.
    """
    y = np.empty((2, z.shape[1]))
    total, work = 0.0, 0.0
    for i in range(first, last):
        lo, hi = starts[i], starts[i + 1]
        if fill is not None and separable[i]:
            total += water_fill(z, blocks, ranks, lo, hi, u, inverse, g, fill, y)
        elif active is not None:  # always; the test is for Numba
            top, more = exchange(z, blocks, ranks, lo, hi, u, inverse, g, y, active)
            total += top
            work += more
    return total, work


@kernel
def _recompute_inverse(z, blocks, starts, ranks, u, inverse, measure):
    """Overwrite inverse with that of the shares u. Returns their gap if measure is positive.

    measure is a number, because a kernel is compiled separately for each truth value.
    """
    width = z.shape[1]
    information = np.zeros((len(ranks), width, width))
    factor = np.zeros((len(ranks), width, width))
    accumulate(z, blocks, ranks, u, information)
    factorise(information, ranks, factor)
    invert(factor, ranks, inverse)
    if not measure > 0.0:
        return np.nan
    largest = np.empty(len(starts) - 1)
    _write_largest(z, blocks, starts, ranks, factor, 0, len(largest), largest)
    total = _sum(largest)
    for b in range(len(ranks)):
        total -= ranks[b]
    return total


@kernel
def _sum(values):
    """Return the sum in index order, so that compiled and uncompiled code give the same bits."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@kernel
def _write_largest(z, blocks, starts, ranks, factor, first, last, out):
    """Overwrite out with the largest variances of the groups first .. last - 1, given inverse factors."""
    for i in range(first, last):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            g = variance(factor, blocks[n], z, n, ranks[blocks[n]])
            if g > top or np.isnan(g):  # NaN is kept
                top = g
        out[i] = top
