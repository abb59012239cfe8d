"""Assertions about designs, with messages that name the false claim and its error.

The arithmetic of the solvers is not used: claims are recomputed by
:mod:`optdesign.verification.audit`, with exact ranks and information matrices in decimals of as many digits
as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.feasible import FEASIBILITY_RTOL
from optdesign.design.result import DesignResult, Status
from optdesign.errors import InputError
from optdesign.numbers.checks import check_type
from optdesign.numbers.roundoff import UNIT
from optdesign.problem.inputs import floats
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.verification.audit import Audit, Comparison, audit
from optdesign.verification.verify import compare

MOST_PRINTED = 40
"""Problems up to this many numbers are written out in messages."""

MEANINGS = {
    "weights": "a budget is missed, or a weight negative, by this fraction of the budget",
    "rank of the candidates": "the claimed rank is not the exact one",
    "rank of the design": "candidates with weight span so many dimensions less than all candidates do",
    "log Det": "the claimed value is not that of the weights",
    "sum of weight times variance": "with the claimed variances it is not the rank",
    "variances": "those claimed, times budgets, are not those of the weights",
    "gap": "G - D of the weights is larger than claimed",
    "efficiency": "more is claimed than D / G",
    "what the noted ranks leave out": "a rank was taken for lower than it is, and not because of rounding",
}
"""The meaning of a failed comparison of :mod:`optdesign.verification.audit`."""


def assert_feasible(problem: DesignProblem, weights: ArrayLike, *, rtol: float | None = None) -> None:
    """Assert that weights are finite, non-negative, and sum to the budget of each group.

    Parameters
    ----------
    problem : DesignProblem
        Problem of the weights.
    weights : array_like of shape (N,)
        Weights to check.
    rtol : float, optional
        Fraction of its budget that a group may miss. Default: 4 times the round-off of a sum of N numbers.

    Raises
    ------
    AssertionError
        If the weights are not feasible.

    See Also
    --------
    optdesign.testing.assert_certified : Check the claims of a result.

    Examples
    --------
    >>> assert_feasible(DesignProblem([[1.0], [2.0]], budgets=3), [1.0, 1.0])
    Traceback (most recent call last):
        ...
    AssertionError: the weights of group 0 sum to 2, and its budget is 3: off by 0.333 of it, allowed 1.78e-15
      problem  DesignProblem([[1.0], [2.0]], budgets=[3.0])
      weights  [1.0, 1.0]
    """
    check_problem(problem)
    w = floats(weights, "weights")
    about = _about(problem, w)
    if w.shape != (problem.n_candidates,):
        raise AssertionError(
            f"there must be one weight per candidate, shape ({problem.n_candidates},); got {w.shape}{about}"
        )
    for n in np.flatnonzero(~np.isfinite(w))[:1]:
        raise AssertionError(f"weights must be finite; weights[{n}] = {w[n]}{about}")
    slack = 8 * UNIT * problem.n_candidates if rtol is None else rtol
    low = w < (0.0 if rtol is None else -rtol * problem.budgets[problem.groups])
    for n in np.flatnonzero(low)[:1]:
        raise AssertionError(f"weights must not be negative; weights[{n}] = {w[n]:.3g}{about}")
    total = np.array([math.fsum(w[problem.groups == i]) for i in range(problem.n_groups)])
    off = np.abs(total - problem.budgets) / problem.budgets
    i = int(np.argmax(off))
    if off[i] > slack:
        raise AssertionError(
            f"the weights of group {i} sum to {total[i]:.6g}, and its budget is {problem.budgets[i]:.6g}: "
            f"off by {off[i]:.3g} of it, allowed {slack:.3g}{about}"
        )


def assert_certified(result: DesignResult, tol: float | None = None) -> None:
    """Assert that every claim of a result is true.

    Ranks, log Det, variances, gap and efficiency are recomputed from the weights as :func:`optdesign.verify`
    does, at its tolerances. Claimed bounds must be bounds, and other numbers must agree up to round-off. A
    design that loses rank fails. Weights meet their budgets up to round-off, or up to 1e-6 if the result was
    ``given``, as :func:`optdesign.certify` allows.

    Parameters
    ----------
    result : DesignResult
        Result to check.
    tol : float, optional
        The status must be CONVERGED or GIVEN, and the gap at most tol * rank: the D-efficiency is then at
        least 1 / (1 + tol). Default: no condition.

    Raises
    ------
    AssertionError
        If a claim is false.

    See Also
    --------
    optdesign.testing.assert_same_design : Compare two results.

    Examples
    --------
    >>> import optdesign as od
    >>> assert_certified(od.solve(DesignProblem([[1.0, 0.0], [0.0, 2.0]])), tol=1e-6)
    """
    _audited(result)
    if tol is None:
        return
    about = _about(result.problem, result.weights)
    if not result.gap <= tol * result.rank:
        raise AssertionError(
            f"the design is not optimal to {tol:.3g}: its gap is {result.gap:.3g}, and tol * rank is "
            f"{tol * result.rank:.3g}{_deserving(result)}{about}"
        )
    if result.status not in (Status.CONVERGED, Status.GIVEN):
        raise AssertionError(
            f"the gap {result.gap:.3g} is within tol * rank = {tol * result.rank:.3g}, yet the status is "
            f"{result.status.name}, not CONVERGED{about}"
        )


def assert_same_design(a: DesignResult, b: DesignResult) -> None:
    """Assert that two results are designs of one problem that differ by no more than their gaps allow.

    Weights are not compared, because several designs can be optimal. The objective and the information
    matrices of the optimum are unique. The claims of both results are checked first, because a false gap
    would allow too much or too little. A design whose gap is infinite equals no other.

    Parameters
    ----------
    a : DesignResult
        First result.
    b : DesignResult
        Second result.

    Raises
    ------
    AssertionError
        If the results differ by more.

    See Also
    --------
    optdesign.testing.assert_certified : Check the claims of one result.

    Notes
    -----
    Both F are at most their gap below the maximum, so

        abs(F_a - F_b) <= max(gap_a, gap_b).

    Let e_k be the eigenvalues, over all parameter blocks, of the information of a design relative to the
    optimal one. They satisfy sum e_k <= D and sum log e_k = F - F* >= -gap, hence sum (e_k - 1 - log e_k) <=
    gap, in which no term is negative. So each e_k lies between the two roots l(gap) <= 1 <= h(gap) of t - 1 -
    log t = gap, and the eigenvalues of U_a relative to U_b between l(gap_a) / h(gap_b) and h(gap_a) /
    l(gap_b). For small gaps the roots are 1 +- sqrt(2 gap): the information agrees to half as many digits as
    the objective. An allowance for round-off is added to both.

    Examples
    --------
    >>> import optdesign as od
    >>> p = DesignProblem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> assert_same_design(od.solve(p, method="newton"), od.solve(p, method="bca"))
    """
    for one in (a, b):
        _check_result(one)
    if not same_problem(a.problem, b.problem):
        rule = "must be designs of the same problem"
        raise InputError("a and b", rule, f"got {a.problem} and {b.problem}", "Solve one of them twice.")
    own, _ = _audited(a), _audited(b)
    for one in (a, b):
        if one.gap == math.inf:
            about = _about(one.problem, one.weights)
            raise AssertionError(f"the design of {one.method} proves nothing, its gap is infinite{about}")
    found = compare(a, b, own)
    if not found.agrees:
        raise AssertionError(
            f"the designs of {a.method} (gap {a.gap:.3g}) and {b.method} (gap {b.gap:.3g}) differ by more "
            f"than their gaps allow:{_listed(found.comparisons)}{_about(a.problem, a.weights, b.weights)}"
        )


def same_problem(a: DesignProblem, b: DesignProblem) -> bool:
    """Return True if two problems have the same numbers."""
    return a is b or all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("candidates", "groups", "parameter_blocks", "budgets")
    )


def _check_result(result: object) -> None:
    remedy = "Wrap weights: DesignResult.given(problem, weights)."
    check_type(result, DesignResult, "result must be a DesignResult", remedy)


def _audited(result: DesignResult) -> Audit:
    """Return the audit of a result, all of whose claims hold."""
    _check_result(result)
    given = result.status is Status.GIVEN
    assert_feasible(result.problem, result.weights, rtol=FEASIBILITY_RTOL if given else None)
    own = audit(result)
    if own.wrong:
        claims = f"gap {result.gap:.6g}, efficiency {result.efficiency:.9g}, rank {result.rank}, "
        claims += f"log det {result.log_det:.9g}"
        raise AssertionError(
            f"the design of {result.method} claims what is not so ({claims}):{_listed(own.comparisons)}"
            f"{_about(result.problem, result.weights)}"
        )
    return own


def _listed(comparisons: Iterable[Comparison]) -> str:
    lines = ""
    for c in comparisons:
        if not c.agrees:
            meaning = f"; {MEANINGS[c.name]}" if c.name in MEANINGS else ""
            lines += f"\n  {c.name}: off by {c.difference:.3g}, allowed {c.tolerance:.3g}{meaning}"
    return lines


def _deserving(result: DesignResult) -> str:
    """Return the candidate whose variance exceeds the mean variance of its group most."""
    p, g = result.problem, np.asarray(result.variances)
    if not np.all(np.isfinite(g)):
        n = int(np.argmax(~np.isfinite(g)))
        return (
            f"\n  candidate {n} lies outside the span of those with weight in parameter block "
            f"{p.parameter_blocks[n]}"
        )
    mean = np.bincount(p.groups, weights=result.weights * g, minlength=p.n_groups) / p.budgets
    n = int(np.argmax(p.budgets[p.groups] * (g - mean[p.groups])))
    i = p.groups[n]
    return (
        f"\n  candidate {n} deserves more weight: its variance is {g[n]:.6g}, above the mean {mean[i]:.6g} "
        f"over the weights of its group {i}, which none exceeds at the optimum"
    )


def _about(problem: DesignProblem, *designs: np.ndarray) -> str:
    """Return the problem and the weights, for the end of a message."""
    lines = f"\n  problem  {as_code(problem)}"
    for w in designs:
        lines += f"\n  weights  {w.tolist() if w.size <= MOST_PRINTED else np.array2string(w, threshold=10)}"
    return lines


def as_code(problem: DesignProblem) -> str:
    """Return the call that makes a problem, if it is small; else what it is.

    >>> as_code(DesignProblem([[1.0], [2.0]], groups=[0, 1]))
    'DesignProblem([[1.0], [2.0]], groups=[0, 1])'
    """
    if problem.candidates.size > MOST_PRINTED:
        return repr(problem)
    parts = [str(problem.candidates.tolist())]
    for name, usual in (("groups", 0), ("parameter_blocks", 0), ("budgets", 1)):
        values = getattr(problem, name)
        if np.any(values != usual):
            parts.append(f"{name}={values.tolist()}")
    return f"DesignProblem({', '.join(parts)})"
