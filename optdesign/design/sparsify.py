"""The same information on few candidates.

Information and budgets are linear in the weights. So the designs that have the information matrices of a
given one, and its budgets, are the polytope

    { w >= 0 :  sum_{n in b} w_n y_n y_n' = U_b  for every block,   sum_{n in i} w_n = f_i  for every group },

with M + Q equations, Q = sum of r_b (r_b + 1) / 2. A vertex of it has at most M + Q candidates with weight;
all its points have the same log Det, variances and gap. Coordinates are those in which U_b is the identity.
:mod:`optdesign.design.vertices` finds a vertex, :mod:`optdesign.design.cheapest` the one of the least cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.whitening import whitened
from optdesign.design.certificate import rescale_and_certify
from optdesign.design.cheapest import TOLERANCES, Given, cheapest
from optdesign.design.large import in_whole
from optdesign.design.near_singular import MAPS, nearly_white, spans
from optdesign.design.result import DesignResult, Status, rounded_up
from optdesign.design.roundoff_allowance import error_length, sum_error
from optdesign.design.vertices import SAME_RTOL, thin_out
from optdesign.errors import InputError
from optdesign.numbers.checks import check_type
from optdesign.problem.coordinates import Rows, refined_rows
from optdesign.problem.inputs import one_per_candidate
from optdesign.problem.large import Part
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runtime import clock


def sparsify(result: DesignResult, cost: ArrayLike | None = None) -> DesignResult:
    """Return a design with the same information and budgets on at most n_groups + Q candidates.

    Parameters
    ----------
    result : DesignResult
        Design to reduce.
    cost : array_like of shape (N,), optional
        Cost of a unit of weight of every candidate. The result is then the cheapest design with the same
        information, among all candidates.

    Returns
    -------
    DesignResult
        Design with a certificate of its own. Information matrices are equal to 1e-9 of their size. With
        ``cost``, the design costs no more than the given one, up to round-off, and at most 1e-9 times the sum
        of ``abs(cost) * weights`` more than the minimum. If round-off prevents n_groups + Q candidates or
        this distance, ``method`` of the result contains a note.

    See Also
    --------
    optdesign.solve : Find the optimal weights.
    optdesign.round : Turn a design into whole runs.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> angle = 2 * np.pi * np.arange(12) / 12
    >>> p = od.DesignProblem(np.column_stack([np.cos(angle), np.sin(angle)]))
    >>> r = od.solve(p, tol=1e-12)
    >>> s = od.sparsify(r)
    >>> len(s.support) <= p.support_bound, abs(s.log_det - r.log_det) < 1e-9
    (True, True)
    """
    watch = clock.Stopwatch()
    check_type(result, DesignResult, "result must be a DesignResult", "Pass solve(problem).")
    problem, method = result.problem, f"{result.method}, sparsified"
    support, thin = np.flatnonzero(result.weights), np.zeros_like(result.weights)
    w = result.weights[support]
    white, round_off = _whitened(problem, support, w)
    if cost is None:
        thin[support] = thin_out(problem, white, support, w)
    else:
        found = cheapest(Given(problem, white, round_off, support, w), _checked(problem, cost))
        thin[found.rows] = found.weights
        if not (round_off <= SAME_RTOL and found.gap < 1.0):
            # The program was solved for information that differs by too much.
            method += " (round-off prevents a proof that the cost is within 1e-9 of the least)"
        elif found.gap > TOLERANCES.gap:
            method += f" (cost proved to be within {rounded_up(found.gap)} of the least)"
    thin, certificate = rescale_and_certify(problem, thin)
    if isinstance(problem, Part):
        certificate = in_whole(problem, thin, certificate)
    count = np.count_nonzero(thin)
    if count > problem.support_bound:
        method += f" ({count} candidates, because round-off prevents {problem.support_bound})"
    times = watch.times()
    return replace(
        result,
        weights=read_only(thin),
        certificate=certificate,
        status=result.status if certificate.gap <= result.gap else Status.GIVEN,
        method=method,
        seconds=result.seconds + times["seconds"],
        compile_seconds=result.compile_seconds + times["compile_seconds"],
    )


def _whitened(problem: DesignProblem, support: np.ndarray, weights: np.ndarray) -> tuple[Rows, float]:
    """Return rows whose maps make the information of the weights of a support the identity.

    The second value bounds the change of the information by the round-off of the coordinates. They are
    refined if that change could exceed SAME_RTOL.
    """
    for attempt, rows in enumerate(_coordinates(problem, support, weights)):
        maps, _, log_det = whitened(problem, rows, support, weights)
        eta = error_length(maps, rows.rounding)
        change = float(sum_error(problem.n_groups, eta, float(problem.rank), 1))
        if log_det.sum() > -np.inf and (attempt > 0 or change <= SAME_RTOL):
            return rows._replace(maps=maps), change
    remedy = "Solve the problem first."
    raise InputError("result", "must have full rank", "that of its weights is not proved", remedy)


def _coordinates(problem: DesignProblem, support: np.ndarray, weights: np.ndarray) -> Iterator[Rows]:
    """Yield the rows in the coordinates to try: those of solvers, refined ones, and nearly white ones."""
    yield problem.rows
    yield problem.refined
    maps = problem.span.maps
    for _ in range(MAPS.most if spans(problem, support) else 0):
        maps = nearly_white(problem, maps, support, weights)
        yield refined_rows(problem, maps)


def _checked(problem: DesignProblem, cost: ArrayLike) -> np.ndarray:
    """Return the costs as an array. Raise InputError unless there is one finite number per candidate."""
    out = one_per_candidate(cost, "cost", problem.n_candidates)
    bad = np.flatnonzero(~np.isfinite(out))
    if len(bad):
        remedy = "Drop candidates that cannot be run."
        raise InputError("cost", "must be finite", f"cost[{bad[0]}] = {out[bad[0]]}", remedy)
    return out
