"""The same information on few candidates: counts, information, certificates, costs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from problems import assert_feasible, plain, relative_eigenvalues, weighted
from scipy.optimize import linprog

import optdesign as od
from optdesign.vertices import SAME


def as_result(problem, weights):
    """Any weights as a result, certified and no more."""
    certificate = od.certify(problem, weights)
    return replace(
        od.solve(problem, tol=1e-2),
        weights=weights,
        certificate=certificate,
        status=od.Status.GIVEN,
    )


def assert_same_information(problem, a, b):
    values = relative_eigenvalues(plain(problem, a), plain(problem, b))
    assert np.abs(values - 1).max(initial=0.0) <= 10 * SAME


@settings(max_examples=60, deadline=None)
@given(weighted(max_candidates=30))
def test_information_stays_and_candidates_are_few(case):
    problem, weights = case
    given_ = as_result(problem, weights)
    thin = od.sparsify(given_)
    assert_feasible(problem, thin.weights)
    assert len(thin.support) <= problem.enough
    assert_same_information(problem, weights, thin.weights)
    assert thin.gap == pytest.approx(given_.gap, abs=1e-7 * problem.rank)


@pytest.mark.parametrize(("groups", "blocks"), [(1, 1), (7, 2), (200, 3)])
def test_many_candidates_go_through_clusters(groups, blocks):
    rng = np.random.default_rng(groups)
    x, labels = rng.normal(size=(3000, 4)), np.arange(3000) % groups
    problem = od.DesignProblem(x, labels, rng.integers(0, blocks, 3000), rng.integers(1, 9, groups))
    weights = rng.exponential(size=3000)
    weights *= (problem.budgets / np.bincount(labels, weights))[labels]
    thin = od.sparsify(as_result(problem, weights))
    assert len(thin.support) <= problem.enough
    assert_same_information(problem, weights, thin.weights)


def test_the_cheapest_design_costs_what_the_linear_program_over_all_candidates_says():
    rng = np.random.default_rng(4)
    x, groups = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    problem = od.DesignProblem(x, groups, budgets=[2, 1])
    cost, weights = rng.random(40), problem.uniform()
    thin = od.sparsify(as_result(problem, weights), cost)
    i, j = np.tril_indices(2)
    equations = np.vstack([(x[:, i] * x[:, j]).T, groups == 0, groups == 1])
    best = linprog(cost, A_eq=equations, b_eq=equations @ weights, method="highs")
    assert cost @ thin.weights == pytest.approx(best.fun, abs=1e-7)
    assert len(thin.support) <= problem.enough
    assert_same_information(problem, weights, thin.weights)


def test_candidates_without_weight_are_used_where_they_are_cheaper():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    result = as_result(od.DesignProblem(x), np.array([0.5, 0.5, 0.0]))
    assert od.sparsify(result, [3.0, 1.0, 2.0]).weights.tolist() == pytest.approx([0.0, 0.5, 0.5])


def test_an_optimal_design_stays_one():
    grid = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3)).reshape(3, -1).T
    x = np.column_stack([np.ones(27), grid, grid**2, grid[:, [0]] * grid[:, 1:], grid[:, 1] * grid[:, 2]])
    result = od.solve(od.DesignProblem(x), tol=1e-9)
    thin = od.sparsify(result)
    assert thin.gap <= result.gap + 1e-7
    assert "sparsified" in thin.method
    assert thin.status in (result.status, od.Status.GIVEN)


@pytest.mark.parametrize("exponent", [-8, 8])
def test_units_of_columns_do_not_matter(exponent):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 3)) * 10.0 ** np.array([exponent, 0, -exponent])
    problem = od.DesignProblem(x)
    thin = od.sparsify(as_result(problem, problem.uniform()))
    assert len(thin.support) <= 7
    assert thin.log_det == pytest.approx(od.certify(problem, problem.uniform()).log_det, abs=1e-8)


def test_groups_of_one_candidate_and_zero_vectors_keep_their_budgets():
    x = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 1.0]]
    problem = od.DesignProblem(x, groups=[0, 1, 2, 2, 2], budgets=[3, 1, 2])
    thin = od.sparsify(as_result(problem, problem.uniform()))
    assert thin.weights[:2].tolist() == [3.0, 1.0]


def test_mistakes_are_named():
    problem = od.DesignProblem(np.eye(2))
    result = od.solve(problem)
    with pytest.raises(TypeError, match="result must be a DesignResult; got ndarray"):
        od.sparsify(result.weights)
    with pytest.raises(
        ValueError, match=re.escape("cost must have one entry per candidate, shape (2,); got (3,)")
    ):
        od.sparsify(result, [1, 2, 3])
    with pytest.raises(ValueError, match=re.escape("cost must be finite; cost[1] = inf")):
        od.sparsify(result, [1, np.inf])
    lost = as_result(problem, np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="result must have full rank"):
        od.sparsify(lost)
