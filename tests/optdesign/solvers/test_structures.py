"""Nine digits whatever the groups and blocks: every structure with every method, and rough random data."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import METHODS, assert_certified, plain
from structures import STRUCTURES

import optdesign as od
from optdesign.testing import random_problems

TOL = 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_nine_digits(name: str, method: str) -> None:
    assert_certified(od.solve(STRUCTURES[name], tol=TOL, method=method), TOL)


@pytest.mark.parametrize("name", STRUCTURES)
def test_methods_agree_to_their_gaps(name: str) -> None:
    """F of each is at most its own gap below the maximum, so the difference of two is at most the larger."""
    problem = STRUCTURES[name]
    results = [od.solve(problem, tol=TOL, method=method) for method in METHODS]
    rounding = 2 * plain(problem, results[0].weights).error
    f = [r.log_det for r in results]
    assert max(f) - min(f) <= max(r.gap for r in results) + rounding


@pytest.mark.slow
@settings(max_examples=1000)
@given(problem=random_problems())
def test_nine_digits_on_a_thousand_random_problems(problem: od.DesignProblem) -> None:
    """No failure and no warning, with a rank that plain NumPy finds too and a gap that it confirms."""
    assert_certified(od.solve(problem, tol=TOL), TOL)


@pytest.mark.slow
@settings(max_examples=100)
@given(problem=random_problems())
def test_nine_digits_by_newton_steps_alone(problem: od.DesignProblem) -> None:
    """Random rough data again, for the method that has a linear system to lose digits in."""
    assert_certified(od.solve(problem, tol=TOL, method="newton"), TOL)


@pytest.mark.parametrize("method", METHODS)
def test_a_duplicate_shares_the_weight_of_its_original(method: str) -> None:
    """The optimum does not change when candidates are there twice: F is the same to the larger gap."""
    for name in ("disjoint", "shared", "classical"):
        once, twice = (
            od.solve(STRUCTURES[key], tol=TOL, method=method) for key in (name, f"{name}, duplicates")
        )
        rounding = 2 * plain(twice.problem, twice.weights).error
        assert abs(once.log_det - twice.log_det) <= max(once.gap, twice.gap) + rounding


@pytest.mark.parametrize("method", METHODS)
def test_candidates_without_a_choice_keep_their_budget(method: str) -> None:
    problem = STRUCTURES["some groups of one candidate"]
    r = od.solve(problem, tol=TOL, method=method)
    alone = np.bincount(problem.groups)[problem.groups] == 1
    np.testing.assert_array_equal(r.weights[alone], 1.0)
