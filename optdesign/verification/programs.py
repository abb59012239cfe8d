"""The two convex programs of a design problem in cvxpy, which is loaded on first use.

In the coordinates of :mod:`optdesign.algebra.reduced` (unit budgets, full rank) the primal is

    maximise  sum_b log det( sum_{n in b} u_n z_n z_n' )   s.t.  sum_{n in i} u_n = 1,  u >= 0.

For any H_b > 0 and lambda with z_n' H_b z_n <= lambda_i(n), log det(U H) <= tr(U H) - rank gives

    sum_b log det U_b <= sum_i lambda_i - D - sum_b log det H_b,

with equality at the optimum for H = U^-1 and lambda_i the largest variance of group i. The right side is
smallest, along multiples of (H, lambda), where sum_i lambda_i = D; which multiple is taken does not matter to
the weights, and numbers near one suit solvers. So the dual is

    maximise  sum_b log det H_b   s.t.  z_n' H_b z_n <= lambda_i(n),  mean of lambda_i = 1,

one scalar a group, one linear inequality a candidate; the multipliers of the inequalities are the weights, up
to a factor. It has no variable per candidate, so it is the form to take when there are many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optdesign.algebra.reduced import Reduced


def primal(reduced: Reduced, solver: str, options: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Return the shares u as the solver leaves them, zero if it has none, and its iterations."""
    import cvxpy as cp

    u = cp.Variable(len(reduced.z), nonneg=True)
    objective = 0
    for b in np.flatnonzero(reduced.ranks):
        rows, outer = _outer(reduced, int(b))
        r = int(reduced.ranks[b])
        information = cp.reshape(outer.T @ u[rows], (r, r), order="C")
        objective = objective + cp.log_det(information)
    constraints = [_group_sums(reduced) @ u == 1]
    iterations = _run(cp.Problem(cp.Maximize(objective), constraints), solver, options)
    return np.zeros(len(reduced.z)) if u.value is None else u.value, iterations


def dual(reduced: Reduced, solver: str, options: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Return the multipliers, which are multiples of u, zero if the solver has none, and its iterations."""
    import cvxpy as cp

    group = np.repeat(np.arange(reduced.n_groups), np.diff(reduced.starts))
    bound = cp.Variable(reduced.n_groups, nonneg=True)
    objective = 0
    parts = []
    constraints = [cp.sum(bound) == reduced.n_groups]
    for b in np.flatnonzero(reduced.ranks):
        rows, outer = _outer(reduced, int(b))
        r = int(reduced.ranks[b])
        h = cp.Variable((r, r), PSD=True)
        objective = objective + cp.log_det(h)
        inequality = outer @ cp.vec(h, order="C") <= bound[group[rows]]
        parts.append((rows, inequality))
        constraints.append(inequality)
    iterations = _run(cp.Problem(cp.Maximize(objective), constraints), solver, options)
    u = np.zeros(len(reduced.z))
    for rows, inequality in parts:
        if inequality.dual_value is not None:
            u[rows] = np.abs(inequality.dual_value)
    return u, iterations


PROGRAMS = {"primal": primal, "dual": dual}


def repaired(raw: np.ndarray, reduced: Reduced) -> np.ndarray:
    """Clip to non-negative and rescale every group to one; groups left with nothing become uniform."""
    u = np.maximum(np.nan_to_num(raw), 0.0)
    sizes = np.diff(reduced.starts)
    totals = np.add.reduceat(u, reduced.starts[:-1])
    scale = np.repeat(np.where(totals > 0, totals, 1.0), sizes)
    return np.where(np.repeat(totals > 0, sizes), u / scale, np.repeat(1.0 / sizes, sizes))


def _outer(reduced: Reduced, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of block b and their flattened outer products."""
    rows = np.flatnonzero(reduced.blocks == b)
    z = reduced.z[rows, : reduced.ranks[b]]
    return rows, (z[:, :, None] * z[:, None, :]).reshape(len(rows), -1)


def _group_sums(reduced: Reduced) -> Any:
    from scipy.sparse import csr_array

    n = len(reduced.z)
    return csr_array((np.ones(n), np.arange(n), reduced.starts), shape=(reduced.n_groups, n))


def _run(problem: Any, solver: str, options: dict[str, Any]) -> int:
    """Solve a program with cvxpy; return its iterations. The status is ignored: weights are certified."""
    problem.solve(solver=solver, **options)
    stats = problem.solver_stats
    return int(stats.num_iters or 0) if stats is not None else 0
