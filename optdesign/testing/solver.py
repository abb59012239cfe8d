"""A ready test of any routine for design problems: against its own claims, this package, and cvxpy."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from optdesign.design.efficiency import efficiency as efficiency_of
from optdesign.design.feasible import FEASIBILITY_RTOL
from optdesign.design.result import DesignResult
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.solvers.solve import solve as solve_ours
from optdesign.testing.assertions import (
    as_code,
    assert_certified,
    assert_feasible,
    assert_same_design,
    same_problem,
)
from optdesign.testing.options import PHASES
from optdesign.testing.strategies import problems
from optdesign.verification.verify import verify

Solver = Callable[[DesignProblem], ArrayLike | DesignResult]
"""A function that can be tested: it takes a problem and returns weights, or a result with claims."""


def assert_solves(
    solve: Solver,
    problem: DesignProblem,
    *,
    tol: float | None = 1e-6,
    efficiency: float | None = None,
    reference: str | None = "CLARABEL",
) -> None:
    """Assert that a routine solves a problem.

    The weights must be feasible to 1e-6 of each budget. If the routine returns a
    :class:`optdesign.DesignResult`, its claims must be true.

    Parameters
    ----------
    solve : callable
        Function of a problem that returns weights (N,), or a DesignResult.
    problem : DesignProblem
        Problem to solve.
    tol : float or None, default 1e-6
        The gap must be at most tol * rank; None for no condition.
    efficiency : float, optional
        Smallest D-efficiency that must be proved against the optimum of :func:`optdesign.solve`. It is for
        heuristics, with ``tol=None``: far from the optimum it is sharper than the gap.
    reference : str or None, default "CLARABEL"
        Solver of cvxpy whose result is compared, too. None omits the comparison, which is 10 times as fast.

    Raises
    ------
    AssertionError
        If the routine fails. The message has the problem, the weights and the reason.

    See Also
    --------
    optdesign.testing.check_solver : Try many problems.

    Examples
    --------
    >>> try:
    ...     assert_solves(lambda problem: problem.uniform(), DesignProblem([[1.0], [0.0]]), reference=None)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    the design is not optimal to 1e-06: its gap is 1, and tol * rank is 1e-06
    """
    check_problem(problem)
    answer = solve(problem)
    name = getattr(solve, "__name__", type(solve).__name__)
    result = _as_result(problem, answer, name)
    assert_certified(result, tol)
    own_tol = 1e-9  # tolerance of our own design, with which others are compared
    ours = solve_ours(problem, tol=own_tol)
    if efficiency is not None:
        proved = efficiency_of(problem, result.weights, best=ours)
        if not proved >= efficiency:
            raise AssertionError(
                f"the D-efficiency of the design of {name} is {proved:.6g} as far as can be proved, and "
                f"{efficiency:g} was asked for\n  problem  {as_code(problem)}\n  weights  "
                f"{result.weights.tolist()}"
            )
    if result.gap == math.inf:
        return  # nothing could be proved, and nothing was asked
    assert_same_design(result, ours)
    if reference is not None:
        found = verify(result, reference)
        if found.verdict == "differs":
            raise AssertionError(f"{name} {found}\n  problem  {as_code(problem)}")


def check_solver(
    solve: Solver,
    strategy: st.SearchStrategy[DesignProblem] | None = None,
    *,
    tol: float | None = 1e-6,
    efficiency: float | None = None,
    reference: str | None = "CLARABEL",
    max_examples: int = 100,
) -> None:
    """Search for a problem that a routine does not solve.

    Each drawn problem is passed to :func:`optdesign.testing.assert_solves`. A failing problem is shrunk to
    the smallest one that fails. An exception of the routine counts as a failure.

    Parameters
    ----------
    solve : callable
        Function of a problem that returns weights (N,), or a DesignResult.
    strategy : hypothesis strategy of DesignProblem, optional
        Problems to draw. Default: :func:`optdesign.testing.problems`.
    tol : float or None, default 1e-6
        The gap must be at most tol * rank; None for no condition.
    efficiency : float, optional
        Smallest D-efficiency that must be proved.
    reference : str or None, default "CLARABEL"
        Solver of cvxpy whose result is compared, too; None for none.
    max_examples : int, default 100
        Number of problems.

    Raises
    ------
    AssertionError
        If a problem is not solved. The message has the smallest such problem and the reason.

    See Also
    --------
    optdesign.testing.assert_solves : Check one problem.

    Examples
    --------
    >>> import optdesign as od
    >>> check_solver(od.solve, problems(structure="classical"), max_examples=5)
    """

    @settings(max_examples=max_examples, deadline=None, phases=PHASES, report_multiple_bugs=False)
    @given(problem=problems() if strategy is None else strategy)
    def solved(problem: DesignProblem) -> None:
        assert_solves(solve, problem, tol=tol, efficiency=efficiency, reference=reference)

    solved()


def _as_result(problem: DesignProblem, answer: ArrayLike | DesignResult, name: str) -> DesignResult:
    """Return an answer as a result; weights are certified here."""
    if isinstance(answer, DesignResult):
        if not same_problem(problem, answer.problem):
            raise AssertionError(
                f"{name} was given {as_code(problem)}, and answers {as_code(answer.problem)}"
            )
        return answer
    assert_feasible(problem, answer, rtol=FEASIBILITY_RTOL)
    return DesignResult.given(problem, answer, method=name)
