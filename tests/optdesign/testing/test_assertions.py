"""Assertions and check_solver reject false claims and wrong solvers, with a message that names the fault."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from problems import KNOWN, random_problem

import optdesign as od
from optdesign import testing
from optdesign.testing import (
    assert_certified,
    assert_feasible,
    assert_same_design,
    assert_solves,
    check_solver,
    problems,
)

LINE = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]])


def refused(message: str, call, *arguments: object, **options: object) -> None:
    with pytest.raises(AssertionError, match=message):
        call(*arguments, **options)


def test_feasibility() -> None:
    p = od.DesignProblem([[1.0], [2.0], [3.0]], groups=[0, 0, 1], budgets=[1.0, 2.0])
    assert_feasible(p, [0.25, 0.75, 2.0])
    assert_feasible(p, [0.25, 0.75 + 5e-7, 2.0], rtol=1e-6)
    assert_feasible(p, [-5e-7, 1.0, 2.0], rtol=1e-6)
    refused(r"one weight per candidate, shape \(3,\); got \(2,\)", assert_feasible, p, [1.0, 2.0])
    refused(r"finite; weights\[1\] = nan", assert_feasible, p, [1.0, np.nan, 2.0])
    refused(r"negative; weights\[1\] = -1e-12", assert_feasible, p, [1.0, -1e-12, 2.0])
    refused(r"negative; weights\[0\] = -2e-06", assert_feasible, p, [-2e-6, 1.0, 2.0], rtol=1e-6)
    refused(
        "group 1 sum to 2.00001, and its budget is 2: off by 5e-06 of it, allowed 1e-06",
        assert_feasible, p, [0.5, 0.5, 2.00001], rtol=1e-6,
    )  # fmt: skip
    refused("off by 5e-13 of it", assert_feasible, p, [0.5, 0.5, 2.000000000001])


@pytest.mark.parametrize("known", KNOWN, ids=lambda k: k.name)
def test_known_optima_are_certified_and_the_same(known) -> None:
    optimum = od.DesignResult.given(known.problem, known.weights)
    assert optimum.status is od.Status.GIVEN
    assert_certified(optimum, tol=1e-9)
    solved = od.solve(known.problem, tol=1e-9)
    assert_certified(solved, tol=1e-9)
    assert_same_design(solved, optimum)
    assert_same_design(optimum, solved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": 0.1}, r"gap: off by 1.9, allowed .*; G - D of the weights is larger than claimed"),
        ({"efficiency": 0.9}, r"efficiency: off by 0.4, allowed 1e-14; more is claimed than D / G"),
        ({"log_det": 0.0}, "log Det: off by 1.1, .* not that of the weights"),
        ({"rank": 1}, "rank of the candidates: off by 1, allowed 0; the claimed rank is not the exact one"),
        ({"variances": np.ones(3)}, "variances: off by"),
    ],
)
def test_a_false_claim_is_named_with_its_size(changes: dict[str, object], message: str) -> None:
    """On a line, weights 1/6, 2/3, 1/6 give variances 4, 1, 4: G = 4, so the gap is 2, the efficiency 0.5."""
    honest = od.DesignResult.given(LINE, np.array([1.0, 4.0, 1.0]) / 6)
    assert_certified(honest)
    forged = dataclasses.replace(honest, certificate=dataclasses.replace(honest.certificate, **changes))
    refused(message, assert_certified, forged)
    refused(r"problem  DesignProblem\(\[\[1\.0, -1\.0\], .*\n  weights  \[0\.16", assert_certified, forged)
    refused(message, assert_same_design, forged, honest)
    refused(message, assert_same_design, honest, forged)


def test_a_tolerance_that_is_not_met_says_where_weight_belongs() -> None:
    uniform = od.DesignResult.given(LINE, LINE.uniform())
    assert_certified(uniform, tol=0.3)
    refused(
        "not optimal to 0.1: its gap is 0.5, and tol \\* rank is 0.2\n  candidate [02] deserves more weight: "
        "its variance is 2.5, above the mean 2 over the weights of its group 0",
        assert_certified, uniform, tol=0.1,
    )  # fmt: skip
    lost = od.DesignResult.given(LINE, np.array([0.0, 1.0, 0.0]))
    refused("rank of the design: off by 1, allowed 0; candidates with weight span", assert_certified, lost)


def test_a_status_that_is_too_modest_is_no_convergence() -> None:
    r = od.solve(LINE)
    stopped = dataclasses.replace(r, status=od.Status.MAX_ITER)
    assert_certified(stopped)
    refused("yet the status is MAX_ITER, not CONVERGED", assert_certified, stopped, tol=1e-6)


def test_weights_that_were_solved_for_meet_their_budgets_to_rounding() -> None:
    w = np.array([0.5, 0.0, 0.5 + 1e-9])
    given_result = od.DesignResult.given(LINE, w)
    assert_certified(given_result, tol=1e-6)
    refused("off by 1e-09", assert_certified, dataclasses.replace(given_result, status=od.Status.CONVERGED))


@pytest.mark.parametrize("seed", range(5))
def test_designs_differ_by_what_their_gaps_allow(seed: int) -> None:
    """A poor design with an honest gap is allowed its distance; one that claims the optimum's gap is not."""
    problem = random_problem(seed, "shared")
    best, poor = od.solve(problem, tol=1e-9), od.DesignResult.given(problem, problem.uniform())
    assert_same_design(best, poor)
    assert_same_design(poor, best)


def test_designs_of_two_problems_cannot_be_compared() -> None:
    other = od.DesignProblem(LINE.candidates, budgets=2.0)
    with pytest.raises(ValueError, match="a and b must be designs of the same problem; got DesignProblem"):
        assert_same_design(od.solve(LINE), od.solve(other))
    same = od.DesignProblem(LINE.candidates)
    assert_same_design(od.solve(LINE), od.solve(same))
    for wrong in (LINE, np.ones(3)):
        with pytest.raises(TypeError, match=r"result must be a DesignResult; got .* Wrap weights"):
            assert_certified(wrong)


# ------------------------------------------------------------------------------------------- solvers


class Tried:
    """A wrong routine that remembers the last problem it was given: the smallest that fails."""

    def __init__(self, solve) -> None:
        self.solve, self.__name__ = solve, solve.__name__

    def __call__(self, problem: od.DesignProblem):
        self.last = problem
        return self.solve(problem)


def scaled(problem: od.DesignProblem, w: np.ndarray) -> np.ndarray:
    w = w + (np.bincount(problem.groups, weights=w) == 0)[problem.groups]
    return w * (problem.budgets / np.bincount(problem.groups, weights=w))[problem.groups]


def uniform(problem):
    return problem.uniform()


def forgets_budgets(problem):
    return od.solve(od.DesignProblem(problem.candidates, problem.groups, problem.parameter_blocks)).weights


def forgets_groups(problem):
    return (
        problem.budgets.sum()
        * od.solve(od.DesignProblem(problem.candidates, parameter_blocks=problem.parameter_blocks)).weights
    )


def drops_a_block(problem):
    return scaled(problem, np.where(problem.parameter_blocks == 0, od.solve(problem).weights, 0.0))


def too_optimistic(problem):
    r, tiny = od.DesignResult.given(problem, problem.uniform()), 1e-9
    claims = {"gap": tiny, "relative_gap": tiny / r.rank, "g_value": r.rank + tiny, "efficiency": 1 - tiny}
    return dataclasses.replace(r, certificate=dataclasses.replace(r.certificate, **claims))


def answers_another(problem):
    return od.solve(od.DesignProblem(2 * problem.candidates))


def breaks_down(problem):
    return np.linalg.inv(problem.candidates.T @ problem.candidates)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solve", "message", "candidates"),
    [
        (uniform, "not optimal to 1e-06: its gap is 1,", 2),
        (forgets_budgets, "group 0 sum to 1, and its budget is 2", 1),
        (forgets_groups, "the weights of group", 2),
        (drops_a_block, "not optimal to|rank of the design: off by 1", 2),
        (too_optimistic, "uniform|gap: off by 1, allowed 2e-14", 2),
        (answers_another, r"answers_another was given DesignProblem\(\[\[1.0\]\]\), and answers", 1),
    ],
)
def test_a_wrong_solver_is_caught_with_a_small_example(solve, message: str, candidates: int) -> None:
    tried = Tried(solve)
    with pytest.raises(AssertionError, match=message) as caught:
        check_solver(tried, reference=None)
    assert tried.last.n_candidates <= candidates, tried.last.candidates
    assert tried.last.dim <= 2
    assert "Failing test case" in "\n".join(caught.value.__notes__)


def test_what_a_solver_raises_is_shown_with_the_problem() -> None:
    tried = Tried(breaks_down)
    with pytest.raises(np.linalg.LinAlgError):
        check_solver(tried, problems(deficient=True), reference=None)
    assert tried.last.candidates.tolist() == [[1.0, 0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(od.METHODS))
def test_our_methods_solve_all_structures(method: str) -> None:
    check_solver(
        lambda p: od.solve(p, method=method),
        problems(scales=3.0, budgets=3.0),
        reference=None,
        max_examples=50,
    )


@pytest.mark.slow
def test_our_solver_against_cvxpy() -> None:
    check_solver(od.solve, problems(deficient=False, duplicates=True), max_examples=15)
    check_solver(od.reference.solve, max_examples=15, tol=1e-2)


def test_cvxpy_that_differs_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other solver's answer contradicts a gap, something is wrong, if only with that answer."""
    wrong = dataclasses.replace(od.DesignResult.given(LINE, LINE.uniform()), method="cvxpy/CLARABEL (primal)")
    lie = dataclasses.replace(wrong.certificate, gap=1e-9, relative_gap=5e-10)
    monkeypatch.setattr(od.reference, "solve", lambda *_, **__: dataclasses.replace(wrong, certificate=lie))
    with pytest.raises(AssertionError, match="solve differs: objective against cvxpy"):
        assert_solves(od.solve, LINE)
    assert_solves(od.solve, LINE, reference=None)


def test_a_heuristic_is_held_to_its_efficiency() -> None:
    """Uniform weights on a line: det 2/3 of 1, so an efficiency of 0.8165, where the gap alone proves 0.8."""
    assert_solves(uniform, LINE, tol=None, efficiency=0.816, reference=None)
    refused(
        "D-efficiency of the design of uniform is 0.81649.* and 0.82 was asked for",
        assert_solves, uniform, LINE, tol=None, efficiency=0.82, reference=None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- the extra


@pytest.mark.slow
@pytest.mark.parametrize("package", ["optdesign", "bandits"])
def test_without_hypothesis_the_error_names_the_extra(package: str) -> None:
    code = (
        "import sys\nsys.modules['hypothesis'] = None\n"
        f"import {package}\n"
        f"try:\n    import {package}.testing\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{package}.testing needs hypothesis, which is not installed. Install the extra testing of "
        "optdesign-bandits; from a clone: python -m pip install '.[testing]'\n"
    )


def test_everything_public_exists() -> None:
    assert sorted(set(testing.__all__)) == sorted(testing.__all__)
    for name in testing.__all__:
        assert getattr(testing, name) is not None
