"""Primal-dual interior point method on the structured Newton system.

    maximise   F(u) = sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

With g = grad F, a bound lambda_i for every group and slacks s, optimality is

    s_n = lambda_i - g_n >= 0,   u_n s_n = 0,   sum_{n in i} u_n = 1.

Each iteration takes one Newton step towards u_n s_n = mu (Mehrotra's predictor, then corrector). In
whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums the step solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

Two ways lead to it, and the cheaper one is taken (:class:`_ByGroup`, :class:`_ByInformation`).

*By group.* H + W^-1 is block diagonal over blocks: factorise each, then the n_groups x n_groups Schur
complement A (H + W^-1)^-1 A'.

*By information.* H = Phi Phi' with phi_n = svec(a_n a_n'), Q = sum_b r_b (r_b + 1) / 2 columns. In each group
the candidate p of largest W is eliminated through du_p = -sum of the others. With psi_n = phi_n - phi_p, the
unknown y = Phi' du solves (I + M) y = rhs, where

    M = sum_i ( sum_{n != p} w_n psi_n psi_n' - (1 / sum w) (sum w_n psi_n)(sum w_n psi_n)' )

is a sum of squares whose subtraction never cancels, because no w_n exceeds w_p. So I + M stays positive
definite in floating point, however large the ratios in W become.

Groups with a single candidate, or with zero vectors only, have nothing to choose and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf

from optdesign._kernel import kernel
from optdesign.information import accumulate, factorise, invert
from optdesign.problem import DesignProblem
from optdesign.reduced import Reduced, reduce
from optdesign.solvers import Step

STEP_TO_BOUNDARY = 0.995
CAUTIOUS_STEP = 0.9
"""Fraction of the way to the boundary; the cautious one in the first steps, where curvature is high."""
CAUTIOUS_STEPS = 3

START_UNIFORM = (1e-4, 0.5)
"""Share of the uniform design in the starting point: the relative gap of the given shares, cut to this."""

DUST = (1e-5, 1e-7, 1e-9, 1e-11)
"""Shares below these fractions of the largest in their group are tried as zero at the end, in turn."""
DUST_SLACK = 0.9
OVERSHOOT = 0.1
"""Steps go on to this fraction of the target, so that there is room for the removal of dust."""

RIDGE = 1e-15
"""Relative ridge on matrices positive definite up to rounding; raised, up to 1, where it is not enough."""

BATCH_ENTRIES = 1_000_000
"""Numbers held at a time while the information system is summed up over groups."""

STALL_STEPS = 6
"""Stop after this many steps without a smaller gap."""
GAP_FLOOR = 2.0**-52
"""Gaps below this fraction of the rank are rounding in any certificate. Going on would only let slacks
underflow."""

SYSTEM_LIMIT = 4000
"""Largest dense system that is worth factorising; above it the method says so and gives up."""


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """The interior point method on a whole problem, in the form of :mod:`optdesign.solvers`."""
    reduced = reduce(problem)
    u = reduced.restrict(weights, problem)
    for gaps in iterate(reduced, u, target, max_iter):
        reduced.extend(u, problem, weights)
        yield Step(gaps, "newton")


def iterate(reduced: Reduced, u: np.ndarray, target: float, max_iter: int) -> Iterator[np.ndarray]:
    """Newton steps until the gap is at most ``target``. Overwrites u; yields the gap of every step."""
    free = _free(reduced, u)
    if len(free.rows) == 0:
        yield np.zeros(1)
        return
    x = _start(free, u[free.rows])
    system = _cheaper_system(free)
    enough = max(OVERSHOOT * target, GAP_FLOOR * reduced.rank)
    gap = best = np.inf
    since_best = 0
    for step in range(max_iter):
        gap = system.step(x, gap, CAUTIOUS_STEP if step < CAUTIOUS_STEPS else STEP_TO_BOUNDARY)
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            u[free.rows] = x.u if gap > target else _without_dust(free, x.u, target)
        yield np.array([gap])
        if gap <= enough or since_best > (0 if best <= target else STALL_STEPS):
            return


class _Free(NamedTuple):
    """The rows of groups that have a choice, group by group."""

    rows: np.ndarray
    z: np.ndarray
    blocks: np.ndarray
    starts: np.ndarray
    ranks: np.ndarray
    fixed: np.ndarray
    """Information of the groups without a choice."""

    def gap(self, u: np.ndarray) -> float:
        """Gap of shares, infinite if they lose rank."""
        a, g = np.empty_like(self.z), np.empty(len(u))
        return _evaluate(self.z, self.blocks, self.starts, self.ranks, self.fixed, u, a, g)


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
    return _Free(rows, z[rows], blocks[rows], np.cumsum(sizes), ranks, fixed)


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


def _start(free: _Free, u: np.ndarray) -> _State:
    """An interior point near the given shares, the nearer the better they are.

    Mixing in theta of the uniform design and adding theta to the bounds makes all products u_n s_n of
    the order of theta: supported candidates have small slacks, the others small shares.
    """
    theta = float(np.clip(free.gap(u) / float(free.ranks.sum()), *START_UNIFORM))
    sizes = np.diff(free.starts)
    mixed = (1 - theta) * u + theta * np.repeat(1.0 / sizes, sizes)
    a, g = np.empty_like(free.z), np.empty(len(u))
    _evaluate(free.z, free.blocks, free.starts, free.ranks, free.fixed, mixed, a, g)
    top = np.maximum.reduceat(g, free.starts[:-1])
    bound = top + theta * top.mean()
    return _State(mixed, np.repeat(bound, sizes) - g, bound, a, g)


def _without_dust(free: _Free, u: np.ndarray, target: float) -> np.ndarray:
    """Shares with negligible ones set to zero: as many as the target allows."""
    sizes = np.diff(free.starts)
    top = np.repeat(np.maximum.reduceat(u, free.starts[:-1]), sizes)
    for dust in DUST:
        clean = np.where(u < dust * top, 0.0, u)
        clean /= np.repeat(np.add.reduceat(clean, free.starts[:-1]), sizes)
        if free.gap(clean) <= DUST_SLACK * target:
            return clean
    return u


class _ByGroup:
    """Newton steps through one matrix a block and one Schur complement over groups."""

    def __init__(self, free: _Free) -> None:
        self.free = free
        self.by_block = np.argsort(free.blocks, kind="stable")
        self.block_starts = np.searchsorted(free.blocks[self.by_block], np.arange(len(free.ranks) + 1))
        self.group = np.repeat(np.arange(len(free.starts) - 1), np.diff(free.starts))
        self.size = int(np.diff(self.block_starts).max())
        self.groups = len(free.starts) - 1

    @property
    def cost(self) -> float:
        """Multiplications a step."""
        return _cost_by_group(len(self.free.ranks), self.size, self.groups)

    @property
    def order(self) -> int:
        """Size of the largest dense matrix."""
        return max(self.size, self.groups)

    def step(self, x: _State, gap: float, damping: float) -> float:
        """Overwrite x with the next state; returns its gap."""
        factor = np.empty((len(self.free.ranks), self.size, self.size))
        schur = np.empty((self.groups, self.groups))
        ridge, failed = RIDGE, 1
        while failed and ridge < 1:
            _group_system(
                x.a, x.u / x.s, self.group, self.by_block, self.block_starts, self.free.ranks, ridge,
                factor, schur,
            )  # fmt: skip
            failed = _cholesky(schur, ridge)
            ridge *= 100
        return _step_by_group(
            self.free.z, self.free.blocks, self.free.starts, self.free.ranks, self.free.fixed,
            self.by_block, self.block_starts, factor, schur, damping, gap, *x,
        )  # fmt: skip


class _ByInformation:
    """Newton steps through one matrix of order Q."""

    def __init__(self, free: _Free) -> None:
        self.free = free
        entries = free.ranks * (free.ranks + 1) // 2
        self.offsets = np.concatenate([[0], np.cumsum(entries)])

    @property
    def cost(self) -> float:
        """Multiplications a step."""
        return _cost_by_information(self.free.ranks, len(self.free.rows), len(self.free.starts) - 1)

    @property
    def order(self) -> int:
        """Q, the size of the dense matrix."""
        return int(self.offsets[-1])

    def step(self, x: _State, gap: float, damping: float) -> float:
        """Overwrite x with the next state; returns its gap."""
        free = self.free
        matrix = np.empty((self.order, self.order))
        w = x.u / x.s
        ridge, failed = RIDGE, 1
        while failed and ridge < 1:
            total, pivot = _information_system(
                x.a, w, free.starts, free.blocks, free.ranks, self.offsets, matrix
            )
            failed = _cholesky(matrix, ridge)
            ridge *= 100
        return _step_by_information(
            free.z, free.blocks, free.starts, free.ranks, free.fixed,
            self.offsets, w, total, pivot, matrix, damping, gap, *x,
        )  # fmt: skip


def _cost_by_group(blocks: int, largest: int, groups: int) -> float:
    """Multiplications of a step by group; those in BLAS count a third."""
    return blocks * float(largest) ** 3 + groups**3 / 9


def _cost_by_information(ranks: np.ndarray, rows: int, groups: int) -> float:
    """Multiplications of a step by information; those in BLAS count a third."""
    entries = ranks * (ranks + 1) / 2
    q = float(entries.sum())
    return 1.5 * rows * float(entries.max()) ** 2 + groups * q**2 / 6 + q**3 / 9


def step_cost(problem: DesignProblem) -> float:
    """Multiplications of a Newton step on all candidates, if every block has equally many."""
    n, groups = problem.n_candidates, problem.n_groups
    in_block = -(-n // problem.n_blocks)
    return min(
        _cost_by_group(problem.n_blocks, in_block, groups), _cost_by_information(problem.ranks, n, groups)
    )


def _cheaper_system(free: _Free) -> _ByGroup | _ByInformation:
    """The way to solve (1) that needs fewer multiplications and fits in memory."""
    systems = [s for s in (_ByInformation(free), _ByGroup(free)) if s.order <= SYSTEM_LIMIT]
    if not systems:
        raise ValueError(
            f"method 'newton' needs a dense system of at most {SYSTEM_LIMIT} rows; this problem needs "
            f"{min(_ByInformation(free).order, _ByGroup(free).order)}. Use method='bca' or 'auto'."
        )
    return min(systems, key=lambda system: system.cost)


def _cholesky(matrix: np.ndarray, ridge: float) -> int:
    """Overwrite the lower triangle of a matrix, plus a ridge, with its factor. Returns 0 on success."""
    diagonal = np.einsum("ii->i", matrix)
    diagonal *= 1.0 + ridge
    # A row-major lower triangle is a column-major upper one, so nothing is copied.
    _, info = dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    return int(info)


# ---------------------------------------------------------------------------- kernels


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
    """Overwrite a with the rows whitened at u, g with their variances. Returns the gap, inf without rank.

    The gap is summed up as sum_i sum_n u_n (max g - g_n), in which D does not cancel.
    """
    information = fixed.copy()
    accumulate(z, blocks, ranks, u, information)
    factor = np.empty_like(information)
    _, full = factorise(information, ranks, factor)
    if not full.all():
        return np.inf
    gap = 0.0
    for i in range(len(starts) - 1):
        top = 0.0
        for n in range(starts[i], starts[i + 1]):
            b = blocks[n]
            g[n] = 0.0
            a[n] = 0.0
            for k in range(ranks[b]):
                t = 0.0
                for j in range(k + 1):
                    t += factor[b, k, j] * z[n, j]
                a[n, k] = t
                g[n] += t * t
            top = max(top, g[n])
        for n in range(starts[i], starts[i + 1]):
            gap += u[n] * (top - g[n])
    return gap


@kernel
def _reach(x, dx):
    """Largest step up to 1 that keeps x + step dx >= 0."""
    worst = 1.0
    for n in range(len(x)):
        worst = max(worst, -dx[n] / x[n])
    return 1.0 / worst


@kernel
def _target(u, s, du, ds):
    """Mehrotra's choice after the predictor du, ds: (sigma mu - du ds) / u."""
    n = len(u)
    primal, dual = _reach(u, du), _reach(s, ds)
    mu, affine = 0.0, 0.0
    for i in range(n):
        mu += u[i] * s[i] / n
        affine += (u[i] + primal * du[i]) * (s[i] + dual * ds[i]) / n
    return (mu * (affine / mu) ** 3 - du * ds) / u


@kernel
def _move(z, blocks, starts, ranks, fixed, damping, gap, du, ds, dbound, u, s, bound, a, g):
    """Go as far as positivity and a bounded gap allow. Overwrites the state; returns the new gap."""
    primal, dual = damping * _reach(u, du), damping * _reach(s, ds)
    new = np.empty_like(u)
    new_gap = np.inf
    for _ in range(8):
        for i in range(len(starts) - 1):
            total = 0.0
            for n in range(starts[i], starts[i + 1]):
                new[n] = u[n] + primal * du[n]
                total += new[n]
            for n in range(starts[i], starts[i + 1]):
                new[n] /= total
        new_gap = _evaluate(z, blocks, starts, ranks, fixed, new, a, g)
        if new_gap <= 10.0 * gap:
            break
        primal, dual = primal / 2, dual / 2
    u[:] = new
    s += dual * ds
    bound += dual * dbound
    return new_gap


@kernel
def _residual(starts, bound, g):
    """g_n - lambda_i."""
    out = g.copy()
    for i in range(len(bound)):
        for n in range(starts[i], starts[i + 1]):
            out[n] -= bound[i]
    return out


@kernel
def _cholesky_solve(factor, b):
    """Overwrite b with the solution of L L' x = b, L the lower triangle of factor."""
    n = len(b)
    for i in range(n):
        t = b[i]
        for k in range(i):
            t -= factor[i, k] * b[k]
        b[i] = t / factor[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= factor[i, i]
        for k in range(i):
            b[k] -= factor[i, k] * b[i]


@kernel
def _step_by_group(
    z, blocks, starts, ranks, fixed, by_block, block_starts, factor, schur, damping, gap, u, s, bound, a, g
):
    """Predictor, corrector and move with the factors of _group_system. Overwrites the state."""
    r = _residual(starts, bound, g)
    du, _ = _solve_by_group(starts, by_block, block_starts, factor, schur, r)
    centre = _target(u, s, du, -s - s / u * du)
    du, dbound = _solve_by_group(starts, by_block, block_starts, factor, schur, centre + r)
    ds = centre - s - s / u * du
    return _move(z, blocks, starts, ranks, fixed, damping, gap, du, ds, dbound, u, s, bound, a, g)


@kernel
def _step_by_information(
    z, blocks, starts, ranks, fixed, offsets, w, total, pivot, factor, damping, gap, u, s, bound, a, g
):
    """Predictor, corrector and move with the factor of _information_system. Overwrites the state."""
    r = _residual(starts, bound, g)
    du, _ = _solve_by_information(a, w, total, pivot, starts, blocks, ranks, offsets, factor, r)
    centre = _target(u, s, du, -s - s / u * du)
    du, dbound = _solve_by_information(a, w, total, pivot, starts, blocks, ranks, offsets, factor, centre + r)
    ds = centre - s - s / u * du
    return _move(z, blocks, starts, ranks, fixed, damping, gap, du, ds, dbound, u, s, bound, a, g)


@kernel
def _group_system(a, w, group, by_block, block_starts, ranks, ridge, factor, schur):
    """Factorise H + W^-1 in every block and sum up the Schur complement. Overwrites factor and schur."""
    sizes = np.diff(block_starts)
    matrix = np.empty_like(factor)
    for b in range(len(sizes)):
        lo = block_starts[b]
        for i in range(sizes[b]):
            n = by_block[lo + i]
            for j in range(i + 1):
                dot = 0.0
                for k in range(ranks[b]):
                    dot += a[n, k] * a[by_block[lo + j], k]
                matrix[b, i, j] = dot * dot
            matrix[b, i, i] = (1.0 + ridge) * matrix[b, i, i] + 1.0 / w[n]
    factorise(matrix, sizes, factor)
    invert(factor, sizes, matrix)
    schur[:] = 0.0
    for b in range(len(sizes)):
        lo = block_starts[b]
        for i in range(sizes[b]):
            for j in range(sizes[b]):
                schur[group[by_block[lo + i]], group[by_block[lo + j]]] += matrix[b, i, j]


@kernel
def _solve_by_group(starts, by_block, block_starts, factor, schur, r):
    """Solve (1) for du and dlambda, given factors of the blocks and of the Schur complement."""
    t = _block_solve(factor, by_block, block_starts, r)
    dbound = np.empty(len(starts) - 1)
    for i in range(len(dbound)):
        dbound[i] = t[starts[i] : starts[i + 1]].sum()
    _cholesky_solve(schur, dbound)
    t = r.copy()
    for i in range(len(dbound)):
        t[starts[i] : starts[i + 1]] -= dbound[i]
    return _block_solve(factor, by_block, block_starts, t), dbound


@kernel
def _block_solve(factor, by_block, block_starts, r):
    """Solve (H + W^-1) t = r block by block, with the factors L^-1."""
    t = np.empty(len(r))
    y = np.empty(factor.shape[1])
    for b in range(len(block_starts) - 1):
        lo = block_starts[b]
        size = block_starts[b + 1] - lo
        for i in range(size):
            y[i] = 0.0
            for k in range(i + 1):
                y[i] += factor[b, i, k] * r[by_block[lo + k]]
        for i in range(size):
            t[by_block[lo + i]] = 0.0
        for k in range(size):
            for i in range(k + 1):
                t[by_block[lo + i]] += factor[b, k, i] * y[k]
    return t


@kernel
def _svec(row, rank, out):
    """Overwrite out with svec(a a'), so that inner products of svec are squared inner products of a."""
    k = 0
    for i in range(rank):
        for j in range(i):
            out[k] = np.sqrt(2.0) * row[i] * row[j]
            k += 1
        out[k] = row[i] * row[i]
        k += 1
    return k


@kernel
def _information_system(a, w, starts, blocks, ranks, offsets, matrix):
    """Overwrite the lower triangle of matrix with I + M. Returns sum w and the pivot of every group."""
    groups, q = len(starts) - 1, offsets[-1]
    total = np.empty(groups)
    pivot = np.empty(groups, np.int64)
    for i in range(groups):
        part = w[starts[i] : starts[i + 1]]
        total[i] = part.sum()
        pivot[i] = starts[i] + np.argmax(part)
    matrix[:] = 0.0
    for k in range(q):
        matrix[k, k] = 1.0
    batch = min(groups, max(1, BATCH_ENTRIES // q))
    for first in range(0, groups, batch):
        last = min(first + batch, groups)
        sums = np.zeros((last - first, q))
        _add_groups(a, w, total, pivot, starts, blocks, ranks, offsets, first, last, matrix, sums)
        matrix -= np.dot(sums.T, sums)
    return total, pivot


@kernel
def _add_groups(a, w, total, pivot, starts, blocks, ranks, offsets, first, last, matrix, sums):
    """Add the squares of M for some groups to the lower triangle of matrix; write the rows to subtract.

    Overwrites matrix and sums; the caller subtracts sums' sums.
    """
    width = a.shape[1] * (a.shape[1] + 1) // 2
    phi, head = np.empty(width), np.empty(width)
    for i in range(first, last):
        p = pivot[i]
        bp = blocks[p]
        qp = _svec(a[p], ranks[bp], head)
        op = offsets[bp]
        row = sums[i - first]
        elsewhere = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n == p:
                continue
            b = blocks[n]
            o = offsets[b]
            q = _svec(a[n], ranks[b], phi)
            if b == bp:
                for k in range(q):
                    phi[k] -= head[k]
            elif b > bp:
                elsewhere += w[n]
                _add_product(matrix[o : o + q, op : op + qp], -w[n], phi, head)
            else:
                elsewhere += w[n]
                _add_product(matrix[op : op + qp, o : o + q], -w[n], head, phi)
            _add_square(matrix[o : o + q, o : o + q], w[n], phi)
            for k in range(q):
                row[o + k] += w[n] * phi[k]
        if elsewhere > 0.0:
            _add_square(matrix[op : op + qp, op : op + qp], elsewhere, head)
            for k in range(qp):
                row[op + k] -= elsewhere * head[k]
        row /= np.sqrt(total[i])


@kernel
def _add_square(matrix, scale, v):
    """Add scale v v' to the lower triangle of matrix. Overwrites matrix."""
    for k in range(len(matrix)):
        c = scale * v[k]
        for m in range(k + 1):
            matrix[k, m] += c * v[m]


@kernel
def _add_product(matrix, scale, v, y):
    """Add scale v y' to matrix. Overwrites matrix."""
    for k in range(matrix.shape[0]):
        c = scale * v[k]
        for m in range(matrix.shape[1]):
            matrix[k, m] += c * y[m]


@kernel
def _solve_by_information(a, w, total, pivot, starts, blocks, ranks, offsets, factor, r):
    """Solve (1) for du and dlambda, given the factor of I + M."""
    du, dbound = np.empty(len(r)), np.empty(len(total))
    y = np.zeros(offsets[-1])
    _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, False, du, dbound)
    _cholesky_solve(factor, y)
    _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, True, du, dbound)
    return du, dbound


@kernel
def _centred(a, w, total, pivot, starts, blocks, ranks, offsets, r, y, finish, du, bound):
    """One pass over the groups with W centred in each: W~ = W - W 1 1' W / sum w.

    finish = False: overwrite y with Phi' W~ r. finish = True: overwrite du with W~ (r - Phi y) and bound
    with the weighted mean of r - Phi y. All differences are taken to the group's pivot.
    """
    width = a.shape[1] * (a.shape[1] + 1) // 2
    phi, head = np.empty(width), np.empty(width)
    for i in range(len(starts) - 1):
        p = pivot[i]
        bp = blocks[p]
        op = offsets[bp]
        qp = _svec(a[p], ranks[bp], head)
        at_pivot = r[p]
        if finish:
            for k in range(qp):
                at_pivot -= head[k] * y[op + k]
        shift = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                value = r[n]
                if finish:
                    o = offsets[blocks[n]]
                    q = _svec(a[n], ranks[blocks[n]], phi)
                    for k in range(q):
                        value -= phi[k] * y[o + k]
                du[n] = value - at_pivot
                shift += w[n] * du[n]
        shift /= total[i]
        bound[i] = at_pivot + shift
        rest = 0.0
        for n in range(starts[i], starts[i + 1]):
            if n != p:
                du[n] = w[n] * (du[n] - shift)
                rest += du[n]
        du[p] = -rest
        if not finish:
            for n in range(starts[i], starts[i + 1]):
                o = offsets[blocks[n]]
                q = _svec(a[n], ranks[blocks[n]], phi)
                for k in range(q):
                    y[o + k] += du[n] * phi[k]
