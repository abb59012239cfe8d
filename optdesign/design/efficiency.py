"""The efficiency of a design against a certified optimum.

A gap says little about a design far from the optimum. But with a near-optimal design v at hand,

    F(w*) <= F(v) + D log(G(v) / D),   so   exp((F(w) - F(w*)) / D) >= exp((F(w) - F(v)) / D) D / G(v):

the efficiency of w relative to v, times the certified efficiency of v. F(w) - F(v) is the log determinant of
the information of w in coordinates in which that of v is the identity. Rounding moves no eigenvalue of these
matrices by more than the bound delta of :mod:`optdesign.design.certificate`, which is taken off the ones and
added to the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.passes import information_matrices, tile
from optdesign.algebra.whitening import whitened
from optdesign.design.certificate import Certificate, certify
from optdesign.design.feasible import feasible
from optdesign.design.result import DesignResult
from optdesign.design.roundoff_allowance import error_length, sum_error
from optdesign.errors import InputError
from optdesign.numbers.checks import check_type
from optdesign.numbers.roundoff import gamma
from optdesign.problem.problem import DesignProblem


def efficiency(problem: DesignProblem, weights: ArrayLike, *, best: DesignResult | None = None) -> float:
    """Return a lower bound on the D-efficiency of any weights.

    The bound holds against all designs on the candidates of the problem.

    Parameters
    ----------
    problem : DesignProblem
        Problem of the weights.
    weights : array_like of shape (N,)
        Feasible weights, as for :func:`optdesign.certify`.
    best : DesignResult, optional
        Solved design of the problem. With it, the bound is sharp up to ``best.efficiency``.

    Returns
    -------
    float
        Bound between 0 and 1.

    See Also
    --------
    optdesign.certify : Return the bound with the other numbers of the certificate.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 5)
    >>> p = od.DesignProblem(np.column_stack([np.ones(5), x, x**2]))
    >>> best = od.solve(p, tol=1e-9)
    >>> round(od.certify(p, p.uniform()).efficiency, 3), round(od.efficiency(p, p.uniform(), best=best), 3)
    (0.677, 0.839)
    """
    own = certify(problem, weights)
    if best is None or not math.isfinite(own.gap):
        return own.efficiency
    check_type(best, DesignResult, "best must be a DesignResult", "Pass solve(problem).")
    if len(best.weights) != problem.n_candidates or best.rank != problem.rank:
        value = f"it has {len(best.weights)} candidates and rank {best.rank}, the problem "
        value += f"{problem.n_candidates} and {problem.rank}"
        raise InputError("best", "must be a design of the same problem", value, "Pass solve(problem).")
    # best may have been solved for other budgets, so its own certificate is not used.
    return compared(problem, weights, own, best, certify(problem, best.weights))


def compared(
    problem: DesignProblem,
    weights: ArrayLike,
    own: Certificate,
    best: DesignResult,
    certified: Certificate,
) -> float:
    """Return the lower bound on the D-efficiency of weights from both certificates under the same problem."""
    if not (math.isfinite(own.gap) and math.isfinite(certified.gap)):
        return own.efficiency
    pair = [feasible(problem, w) for w in (weights, best.weights)]
    support = np.flatnonzero(pair[1][0])
    white, _, _ = whitened(problem, problem.rows, support, pair[1][0][support])
    eta, logs = error_length(white, problem.rows.rounding), []
    for (w, missed), sign in zip(pair, (-1.0, 1.0), strict=True):
        used = np.flatnonzero(w)
        s = information_matrices(problem, w[used], used, problem.rows._replace(maps=white))
        total = -sign * problem.rank * math.log1p(-missed)
        for b in np.flatnonzero(problem.ranks):
            r = int(problem.ranks[b])
            values = np.linalg.eigvalsh(s[b, :r, :r])
            terms = min(len(used), tile(problem.rows))
            error = sum_error(problem.n_groups, eta, float(values.sum()), terms) + gamma(10 * r) * values[-1]
            moved = values + sign * error
            if moved[0] <= 0:
                return own.efficiency
            total += float(np.sum(np.log(moved)))
        logs.append(total)
    bound = math.exp((logs[0] - logs[1]) / problem.rank * (1 + gamma(8))) * certified.efficiency
    return max(own.efficiency, min(1.0, bound * (1 - gamma(8))))
