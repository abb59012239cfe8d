"""Certificates of weights, results and whole runs alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design import certificate as own
from optdesign.design.certificate import Certificate
from optdesign.design.efficiency import efficiency
from optdesign.design.result import DesignResult
from optdesign.design.run_list import Runs
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.solvers.solve import solve


def certify(
    problem: DesignProblem, weights: ArrayLike | DesignResult | Runs, *, best: DesignResult | None = None
) -> Certificate:
    """Certify any design of a problem, wherever it comes from.

    Parameters
    ----------
    problem : DesignProblem
        The candidates, groups and budgets.
    weights : array_like of shape (N,), DesignResult or Runs
        Weights must be finite, non-negative and sum to each group's budget. If they miss that by a millionth
        or less, as those of convex solvers do, the certificate is that of the weights clipped and rescaled.
        An array of integers is a list of whole runs, as Runs are.
    best : DesignResult, optional
        A solved design of the problem, which gives a sharp bound on the efficiency. Default for whole runs:
        the design that came with them, or else ``solve(problem)``. Default for weights: none.

    Returns
    -------
    Certificate
        Of weights without ``best``, ``efficiency`` is D / G, which needs only the weights. Otherwise
        ``efficiency`` is the better bound, and ``g_efficiency`` is D / G. If the support does not span every
        parameter block, the gap is infinite and the efficiency is zero.

    Raises
    ------
    InputError
        If the weights are not feasible.

    See Also
    --------
    optdesign.efficiency : Return the efficiency alone.
    optdesign.verify : Check a result with independent code.
    optdesign.Runs.given : Whole runs of any origin with their efficiency, to print, save or draw.

    Examples
    --------
    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    >>> od.certify(p, [0.5, 0.5, 0.0]).gap < 1e-13
    True
    >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=3)
    >>> found = od.certify(p, [1, 1, 1])
    >>> round(found.efficiency, 4), round(found.g_efficiency, 4)
    (0.8165, 0.8)
    """
    check_problem(problem)
    w: ArrayLike
    if isinstance(weights, Runs):
        w, best = weights.counts, weights.best if best is None else best
    else:
        w = weights.weights if isinstance(weights, DesignResult) else weights
    found = own.certify(problem, w)
    nearly_optimal = 1e-6  # relative gap below which no solved design improves the bound noticeably
    if best is None and np.asarray(w).dtype.kind in "iu" and nearly_optimal < found.relative_gap < np.inf:
        best = solve(problem)
    return found if best is None else replace(found, efficiency=efficiency(problem, w, best=best))
