"""Starts that a user gives: of any size, rank and kind, and never made worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    EPS,
    KINDS,
    METHODS,
    assert_certified,
    plain,
    random_problem,
)

import optdesign as od
from optdesign.testing import assert_feasible, problems, weighted


@pytest.mark.parametrize("method", METHODS)
@given(case=weighted())
@settings(max_examples=25)
def test_any_positive_start_leads_to_the_optimum(
    method: str, case: tuple[od.DesignProblem, np.ndarray]
) -> None:
    problem, w = case
    r, cold = od.solve(problem, tol=1e-3, method=method, start=w), od.solve(problem, tol=1e-3, method=method)
    assert_certified(r, 1e-3)
    assert abs(r.log_det - cold.log_det) <= max(r.gap, cold.gap) + 2 * plain(problem, w).error + 1e3 * EPS


@pytest.mark.parametrize("method", METHODS)
@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_starts_that_lose_rank_or_leave_groups_empty(
    method: str, problem: od.DesignProblem, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    start = rng.exponential(size=problem.n_candidates) * rng.integers(0, 2, size=problem.n_candidates)
    assert_certified(od.solve(problem, tol=1e-3, method=method, start=start), 1e-3)
    one = np.zeros(problem.n_candidates)
    one[seed % len(one)] = 1.0
    assert_certified(od.solve(problem, tol=1e-3, method=method, start=one), 1e-3)


def test_a_solution_is_a_start_that_needs_one_sweep() -> None:
    problem = random_problem(2, "shared")
    r = od.solve(problem, tol=1e-8, method="bca")
    again = od.solve(problem, tol=1e-7, method="bca", start=r.weights)
    assert again.iterations == 1
    assert again.log_det >= r.log_det - 1e3 * EPS


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e308])
def test_starts_are_scaled_to_the_budgets(size: float) -> None:
    problem = od.DesignProblem(np.eye(3), groups=[0, 0, 1], budgets=[2.0, 3.0])
    r = od.solve(problem, tol=1e-3, method="bca", start=[size, size, size])
    assert_certified(r, 1e-3)


def test_starts_of_any_kind_and_never_modified() -> None:
    problem = od.DesignProblem(np.eye(3))
    start = np.array([1, 2, 3])
    start.flags.writeable = False
    assert od.solve(problem, start=start, method="bca").converged
    assert od.solve(problem, start=[1, 2, 3], method="bca").converged
    assert start.tolist() == [1, 2, 3]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-8])
def test_a_good_start_is_never_made_worse(method: str, kind: str, tol: float) -> None:
    """Sweeps never lower F; Newton steps, alone or in combination, are kept only where they lower the gap.

    Sweeps may raise the gap on the way, so those of "auto" are held to F as well.
    """
    for seed in range(5):
        problem = random_problem(seed, kind)
        w = od.solve(problem, tol=tol, method="newton").weights
        given_start = od.certify(problem, w)
        r = od.solve(problem, tol=1e-15, method=method, start=w, max_iter=1)
        rounding = 2 * plain(problem, w).error
        assert_feasible(problem, r.weights)
        if method == "newton":
            assert r.gap <= given_start.gap + rounding
            assert r.log_det >= given_start.log_det - given_start.gap - rounding
        else:
            assert r.log_det >= given_start.log_det - rounding


@pytest.mark.parametrize("method", METHODS)
def test_a_start_that_meets_the_target_comes_back(method: str) -> None:
    """By Newton steps unchanged, to the rounding of its scale; a sweep may still improve it."""
    for kind in KINDS:
        problem = random_problem(3, kind)
        w = od.solve(problem, tol=1e-9, method="newton").weights
        r = od.solve(problem, tol=1e-6, method=method, start=w)
        assert_certified(r, 1e-6)
        rounding = 2 * plain(problem, w).error
        assert r.log_det >= od.certify(problem, w).log_det - rounding
        if method == "newton":
            assert r.iterations == 1
            np.testing.assert_allclose(r.weights, w, rtol=4 * problem.n_candidates * EPS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tiny", [1e-3, 1e-20, 1e-200, 5e-324])
def test_a_start_that_hardly_informs_a_direction(method: str, tiny: float) -> None:
    """Three unit vectors and their sum: the third direction starts with next to nothing."""
    problem = od.DesignProblem(np.vstack([np.eye(3), np.ones((1, 3))]))
    assert_certified(od.solve(problem, tol=1e-9, method=method, start=[1, 1, tiny, 0]), 1e-9)
