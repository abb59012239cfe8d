"""Primal-dual interior point method on the structured Newton system.

    maximise   F(u) = sum_b log det( sum_{n in b} u_n z_n z_n' )
    subject to sum_{n in i} u_n = 1  for every group i,  u >= 0

With g = grad F, a bound lambda_i for every group and slacks s, optimality is

    s_n = lambda_i - g_n >= 0,   u_n s_n = 0,   sum_{n in i} u_n = 1.

Each iteration takes one Newton step towards u_n s_n = mu (Mehrotra's predictor, then corrector). In
whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums the step solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

Two ways lead to it, and the cheaper one is taken (:func:`_choose`).

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

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from optdesign._kernel import kernel
from optdesign.information import accumulate, factorise, invert
from optdesign.problem import DesignProblem
from optdesign.reduced import Reduced, reduce
from optdesign.solvers import Step

DEFAULT_MAX_ITER = 100

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
"""Relative ridge on matrices that are positive definite up to rounding."""

STALL_STEPS = 6
"""Stop after this many steps without a smaller gap."""

SYSTEM_LIMIT = 4000
"""Largest dense system that is worth factorising; above it the method says so and gives up."""

Solve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Free(NamedTuple):
    """The rows of groups that have a choice, group by group."""

    rows: np.ndarray
    z: np.ndarray
    blocks: np.ndarray
    starts: np.ndarray
    group: np.ndarray
    ranks: np.ndarray
    fixed_information: np.ndarray
    by_block: np.ndarray
    """Rows sorted by block; those of block b are by_block[block_starts[b] : block_starts[b + 1]]."""
    block_starts: np.ndarray


def run(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int | None = None
) -> Iterator[Step]:
    """The interior point method on a whole problem, in the form of :mod:`optdesign.solvers`."""
    reduced = reduce(problem)
    u = reduced.restrict(weights, problem)
    for gaps in iterate(reduced, u, target, max_iter):
        reduced.extend(u, problem, weights)
        yield Step(gaps, "newton")


def iterate(
    reduced: Reduced, u: np.ndarray, target: float, max_iter: int | None = None
) -> Iterator[np.ndarray]:
    """Newton steps until the gap is at most ``target``. Overwrites u; yields the gap of every step."""
    free = _free(reduced, u)
    if len(free.rows) == 0:
        yield np.zeros(1)
        return
    build = _choose(free)
    x = _State.start(free, u[free.rows])
    best, since_best = np.inf, 0
    for step in range(DEFAULT_MAX_ITER if max_iter is None else max_iter):
        x = _newton_step(free, build, x, CAUTIOUS_STEP if step < CAUTIOUS_STEPS else STEP_TO_BOUNDARY)
        since_best += 1
        if x.gap < best:
            best, since_best = x.gap, 0
            u[free.rows] = x.u if x.gap > target else _without_dust(free, x, target)
        yield np.array([x.gap])
        if x.gap <= OVERSHOOT * target or since_best > (0 if best <= target else STALL_STEPS):
            return


def _free(reduced: Reduced, u: np.ndarray) -> Free:
    """Split off the groups without a choice; their information is constant."""
    z, blocks, starts, ranks, _ = reduced
    sizes = np.diff(starts)
    informative = np.maximum.reduceat(np.abs(z).max(axis=1), starts[:-1]) > 0
    open_ = (sizes > 1) & informative
    row_open = np.repeat(open_, sizes)
    rows = np.flatnonzero(row_open)
    width = z.shape[1]
    fixed = np.zeros((len(ranks), width, width))
    accumulate(z, blocks, ranks, np.where(row_open, 0.0, u), fixed)
    block = np.ascontiguousarray(blocks[rows])
    by_block = np.argsort(block, kind="stable")
    return Free(
        rows=rows,
        z=z[rows],
        blocks=block,
        starts=np.concatenate([[0], np.cumsum(sizes[open_])]),
        group=np.repeat(np.arange(int(open_.sum())), sizes[open_]),
        ranks=ranks,
        fixed_information=fixed,
        by_block=by_block,
        block_starts=np.searchsorted(block[by_block], np.arange(len(ranks) + 1)),
    )


class _State(NamedTuple):
    """Where the iteration is: shares, slacks, bounds; whitened rows, variances and gap of the shares."""

    u: np.ndarray
    s: np.ndarray
    bound: np.ndarray
    a: np.ndarray
    g: np.ndarray
    gap: float

    @classmethod
    def at(cls, free: Free, u: np.ndarray, s: np.ndarray, bound: np.ndarray) -> _State:
        a, g = np.empty_like(free.z), np.empty(len(u))
        full = _whiten(free.z, free.blocks, free.ranks, u, free.fixed_information, a, g)
        gap = _gap(free, u, g) if full else np.inf
        return cls(u, s, bound, a, g, gap)

    @classmethod
    def start(cls, free: Free, u: np.ndarray) -> _State:
        """An interior point near the given shares, the nearer the better they are.

        Mixing in theta of the uniform design and adding theta to the bounds makes all products u_n s_n of
        the order of theta: supported candidates have small slacks, the others small shares.
        """
        given = cls.at(free, u, u, u).gap / float(free.ranks.sum())
        theta = float(np.clip(given, *START_UNIFORM))
        sizes = np.diff(free.starts)
        mixed = (1 - theta) * u + theta * np.repeat(1.0 / sizes, sizes)
        state = cls.at(free, mixed, mixed, mixed)
        top = np.maximum.reduceat(state.g, free.starts[:-1])
        bound = top + theta * top.mean()
        return state._replace(s=bound[free.group] - state.g, bound=bound)


def _gap(free: Free, u: np.ndarray, g: np.ndarray) -> float:
    """sum_i (max g - sum u g), which is G - D, summed without cancelling D."""
    top = np.maximum.reduceat(g, free.starts[:-1])
    return float(np.sum(u * (top[free.group] - g)))


def _newton_step(free: Free, build: Callable[[Free, _State], Solve], x: _State, damping: float) -> _State:
    """Predictor and corrector, then as far as positivity and a bounded gap allow."""
    solve = build(free, x)
    mu = float(x.u @ x.s) / len(x.u)
    residual = x.g - x.bound[free.group]
    du, _ = solve(residual)
    ds = -x.s - x.s / x.u * du
    affine = float((x.u + _reach(x.u, du) * du) @ (x.s + _reach(x.s, ds) * ds)) / len(x.u)
    centre = (mu * (affine / mu) ** 3 - du * ds) / x.u
    du, dbound = solve(centre + residual)
    ds = centre - x.s - x.s / x.u * du
    primal, dual = damping * _reach(x.u, du), damping * _reach(x.s, ds)
    for _ in range(8):
        u = x.u + primal * du
        u /= np.add.reduceat(u, free.starts[:-1])[free.group]
        new = _State.at(free, u, x.s + dual * ds, x.bound + dual * dbound)
        if new.gap <= 10 * x.gap:
            break
        primal, dual = primal / 2, dual / 2
    return new


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    """Largest step up to 1 that keeps x + step dx >= 0."""
    worst = float(np.max(-dx / x))
    return 1.0 if worst <= 1.0 else 1.0 / worst


def _without_dust(free: Free, x: _State, target: float) -> np.ndarray:
    """Shares with negligible ones set to zero: as many as the target allows."""
    top = np.maximum.reduceat(x.u, free.starts[:-1])[free.group]
    for dust in DUST:
        u = np.where(x.u < dust * top, 0.0, x.u)
        u /= np.add.reduceat(u, free.starts[:-1])[free.group]
        if _State.at(free, u, x.s, x.bound).gap <= DUST_SLACK * target:
            return u
    return x.u


# ---------------------------------------------------------------------------- linear systems


def _choose(free: Free) -> Callable[[Free, _State], Solve]:
    """The cheaper way to solve (1), by counting multiplications; those in BLAS count a quarter."""
    groups, rows = len(free.starts) - 1, len(free.rows)
    entries = free.ranks * (free.ranks + 1) // 2
    q, largest = int(entries.sum()), int(entries.max())
    in_block = np.diff(free.block_starts)
    n = int(in_block.max())
    by_group = float(len(in_block)) * n**3 + 0.1 * groups**3
    by_information = 1.5 * rows * largest**2 + 0.25 * groups * q**2 + 0.1 * q**3
    if max(n, groups) > SYSTEM_LIMIT and q > SYSTEM_LIMIT:
        raise ValueError(
            f"method 'newton' needs a dense system of at most {SYSTEM_LIMIT} rows; this problem has "
            f"{min(max(n, groups), q)}. Use method='bca', or 'auto', which does."
        )
    if q > SYSTEM_LIMIT or (max(n, groups) <= SYSTEM_LIMIT and by_group < by_information):
        return _by_group
    return _by_information


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky factor of a matrix that is positive definite up to rounding."""
    ridge = RIDGE
    while True:
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            matrix[np.diag_indices_from(matrix)] *= 1 + ridge
            ridge *= 100


def _by_group(free: Free, x: _State) -> Solve:
    groups = len(free.starts) - 1
    sizes = np.diff(free.block_starts)
    matrix = np.empty((len(sizes), sizes.max(), sizes.max()))
    factor = np.empty_like(matrix)
    schur = np.zeros((groups, groups))
    _group_system(
        x.a, x.u / x.s, free.group, free.by_block, free.block_starts, free.ranks, RIDGE, matrix, factor, schur
    )
    schur_factor = _factor(schur)

    def solve(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t = _block_solve(factor, free.by_block, free.block_starts, r)
        bound = cho_solve(schur_factor, np.add.reduceat(t, free.starts[:-1]), check_finite=False)
        du = _block_solve(factor, free.by_block, free.block_starts, r - bound[free.group])
        return du, bound

    return solve


def _by_information(free: Free, x: _State) -> Solve:
    entries = free.ranks * (free.ranks + 1) // 2
    offsets = np.concatenate([[0], np.cumsum(entries)])
    q = int(offsets[-1])
    w = x.u / x.s
    total = np.add.reduceat(w, free.starts[:-1])
    pivot = _pivots(w, free.starts)
    matrix = np.eye(q)
    groups = len(free.starts) - 1
    step = max(1, 1_000_000 // q)
    for lo in range(0, groups, step):
        hi = min(lo + step, groups)
        sums = np.zeros((hi - lo, q))
        _information_system(
            x.a, w, total, pivot, free.starts, free.blocks, free.ranks, offsets, lo, hi, matrix, sums
        )
        matrix -= sums.T @ sums
    factor = _factor(matrix)

    def solve(r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rhs = np.zeros(q)
        du, bound = np.empty(len(r)), np.empty(groups)
        args = (x.a, w, total, pivot, free.starts, free.blocks, free.ranks, offsets)
        _centred(*args, r, rhs, False, du, bound)
        y = cho_solve(factor, rhs, check_finite=False)
        _centred(*args, r, y, True, du, bound)
        return du, bound

    return solve


# ---------------------------------------------------------------------------- kernels


@kernel
def _whiten(z, blocks, ranks, u, fixed, a, g):
    """Overwrite a with L^-1 z_n and g with |a_n|^2. Returns whether every block has full rank."""
    information = fixed.copy()
    accumulate(z, blocks, ranks, u, information)
    factor = np.zeros_like(information)
    _, full = factorise(information, ranks, factor)
    for n in range(len(z)):
        b = blocks[n]
        r = ranks[b]
        g[n] = 0.0
        for i in range(r):
            t = 0.0
            for k in range(i + 1):
                t += factor[b, i, k] * z[n, k]
            a[n, i] = t
            g[n] += t * t
        a[n, r:] = 0.0
    return full.all()


@kernel
def _group_system(a, w, group, by_block, block_starts, ranks, ridge, matrix, factor, schur):
    """Factorise H + W^-1 in every block and add up the Schur complement. Overwrites the last three."""
    sizes = np.diff(block_starts)
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
    for b in range(len(sizes)):
        lo = block_starts[b]
        for i in range(sizes[b]):
            for j in range(sizes[b]):
                schur[group[by_block[lo + i]], group[by_block[lo + j]]] += matrix[b, i, j]


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
def _pivots(w, starts):
    """Row of largest w in every group."""
    out = np.empty(len(starts) - 1, np.int64)
    for i in range(len(out)):
        out[i] = starts[i] + np.argmax(w[starts[i] : starts[i + 1]])
    return out


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
def _information_system(a, w, total, pivot, starts, blocks, ranks, offsets, first, last, matrix, sums):
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
