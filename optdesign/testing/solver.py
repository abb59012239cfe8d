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
    """A routine of yours solves this problem.

    Its weights must be feasible to a millionth of each budget and, if it returns a
    :class:`optdesign.DesignResult`, its claims true. Then:

    Parameters
    ----------
    solve : function of a problem
        Returns weights (N,), or a DesignResult.
    tol : float, optional
        Its gap must be at most tol * rank; None asks for no gap.
    efficiency : float, optional
        Its D-efficiency must be proved to be at least this, measured against our optimum. For heuristics,
        with ``tol=None``: far from the optimum this proves more than a gap does.
    reference : str, optional
        A solver of cvxpy whose answer is compared too. None: do without, which is ten times as fast.

    Examples
    --------
    >>> assert_solves(lambda problem: problem.uniform(), DesignProblem([[1.0], [0.0]]), reference=None)
    Traceback (most recent call last):
        ...
    AssertionError: the design is not optimal to 1e-06: its gap is 1, and tol * rank is 1e-06
      candidate 0 deserves more weight: its variance is 2, above the mean 1 over the weights of its group 0, \
which none exceeds at the optimum
      problem  DesignProblem([[1.0], [0.0]])
      weights  [0.5, 0.5]
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
    """Look for a problem that a routine of yours does not solve; a test in one line.

    Draws problems, of ``strategy`` or of :func:`optdesign.testing.problems`, and asks :func:`assert_solves`
    of each. What fails is shrunk to the smallest problem that does, and the error says which and why.
    Whatever your routine raises counts as a failure as well.

    >>> import optdesign as od
    >>> check_solver(od.solve, problems(structure="classical"), max_examples=5)
    """

    @settings(max_examples=max_examples, deadline=None, phases=PHASES, report_multiple_bugs=False)
    @given(problem=problems() if strategy is None else strategy)
    def solved(problem: DesignProblem) -> None:
        assert_solves(solve, problem, tol=tol, efficiency=efficiency, reference=reference)

    solved()


def _as_result(problem: DesignProblem, answer: ArrayLike | DesignResult, name: str) -> DesignResult:
    """An answer as a result; weights are certified here."""
    if isinstance(answer, DesignResult):
        if not same_problem(problem, answer.problem):
            raise AssertionError(
                f"{name} was given {as_code(problem)}, and answers {as_code(answer.problem)}"
            )
        return answer
    assert_feasible(problem, answer, rtol=FEASIBILITY_RTOL)
    return DesignResult.given(problem, answer, method=name)
