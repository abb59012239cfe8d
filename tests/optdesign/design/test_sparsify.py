"""The same information on few candidates: counts, information, certificates, costs."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from exact_programs import change, least_cost
from hunt import pool
from hypothesis import given, settings
from problems import assert_feasible, plain, relative_eigenvalues, weighted
from scipy.optimize import linprog

import optdesign as od
from optdesign.design import cheapest, vertices
from optdesign.design.vertices import SAME_RTOL
from optdesign.testing.families import ugly_problem


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
    assert np.abs(values - 1).max(initial=0.0) <= 10 * SAME_RTOL


@settings(max_examples=60, deadline=None)
@given(weighted(max_candidates=30))
def test_information_stays_and_candidates_are_few(case):
    problem, weights = case
    given_ = as_result(problem, weights)
    thin = od.sparsify(given_)
    assert_feasible(problem, thin.weights)
    assert len(thin.support) <= problem.support_bound
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
    assert len(thin.support) <= problem.support_bound
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
    assert len(thin.support) <= problem.support_bound
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


def spread(problem, seed, orders=9):
    """Weights over several orders of magnitude."""
    w = 10.0 ** np.random.default_rng(seed).uniform(-orders, 0, problem.n_candidates)
    return w * (problem.budgets / np.bincount(problem.groups, w, problem.n_groups))[problem.groups]


UGLY = [
    *(("clustered_pool", seed) for seed in (2, 10, 17)),
    *(("near_parallel", seed) for seed in (5, 10, 31)),
    *(("row_scales", seed) for seed in (4, 5, 7, 9, 13, 19)),
    ("vandermonde", 27),
]
"""Families and seeds; the last and two of row_scales need refined coordinates."""


@pytest.mark.parametrize(("family", "seed"), UGLY)
def test_ill_conditioned_designs_become_sparse_too(family, seed):
    problem = ugly_problem(family, seed)
    weights = spread(problem, seed)
    thin = od.sparsify(od.DesignResult.given(problem, weights))
    assert len(thin.support) <= problem.support_bound
    assert thin.method == "given, sparsified"
    assert change(problem, weights, thin.weights) <= SAME_RTOL


def some_costs(n, rng):
    """Draw costs: ordinary, one or several of 1e9 and more, several magnitudes, negative, tiny."""
    kinds = [
        rng.random(n),
        np.where(np.arange(n) == rng.integers(n), 1e9, rng.random(n)),
        10.0 ** rng.uniform(-6, 12, n),
        rng.normal(size=n),
        np.where(rng.random(n) < 0.4, 10.0 ** rng.uniform(8, 15), np.round(3 * rng.random(n))),
        1e-9 * rng.random(n),
        1e300 * rng.random(n),
    ]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.parametrize("seed", range(60))
def test_cost_is_the_least_in_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(5, 20))
    groups = np.arange(n) % int(rng.integers(1, 4))
    x = rng.normal(size=(n, d)) if seed % 2 else np.round(2 * rng.normal(size=(n, d))) + np.eye(n, d)
    blocks = rng.integers(0, int(rng.integers(1, 3)), n)
    problem = od.DesignProblem(x, groups, blocks, rng.uniform(0.5, 5, groups.max() + 1))
    weights = problem.uniform() if seed % 3 else od.solve(problem).weights
    cost = some_costs(n, rng)
    thin = od.sparsify(od.DesignResult.given(problem, weights), cost)
    assert thin.method == "given, sparsified"
    assert len(thin.support) <= problem.support_bound
    least, ours = least_cost(problem, weights, cost), math.fsum(cost * thin.weights)
    size = math.fsum(np.abs(cost) * thin.weights)
    assert abs(ours - least) <= 1e-9 * size
    assert ours <= math.fsum(cost * weights) + 1e-12 * math.fsum(np.abs(cost) * weights)
    assert change(problem, weights, thin.weights) <= SAME_RTOL


@pytest.mark.parametrize("large", [1e3, 1e9, 1e15, 1e100, 1e300])
def test_large_costs_of_some_candidate_do_not_hide_the_others(large):
    """12 points of a circle: 2 orthogonal ones have the information of all."""
    angle = 2 * np.pi * np.arange(12) / 12
    problem = od.DesignProblem(np.column_stack([np.cos(angle), np.sin(angle)]))
    cost = np.array([4.0, 3.0, 5.0, large, 3.0, 4.0, 4.0, 3.0, 5.0, 4.0, 3.0, 4.0])
    for weights in (np.full(12, 1 / 12), np.tile([1 / 6, 0.0], 6), np.tile([0.0, 1 / 4, 0.0], 4)):
        thin = od.sparsify(od.DesignResult.given(problem, weights), cost)
        assert cost @ thin.weights == pytest.approx(3.0, rel=1e-9)
        assert len(thin.support) <= problem.support_bound


@pytest.mark.parametrize(
    ("small", "large", "method"),
    [
        (1e-4, 1e7, "given, sparsified"),
        (1e-6, 1e9, "given, sparsified (cost proved to be within ...e-09 of the least)"),
    ],
)
def test_a_costly_candidate_that_is_needed_keeps_its_weight(small, large, method):
    """Only the third candidate has information off the diagonal: a large cost depends on a small entry."""
    problem = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    weights, cost = np.array([0.5 - small, 0.5, small, 0.0]), np.array([1.0, 2.0, large, 0.5])
    thin = od.sparsify(od.DesignResult.given(problem, weights), cost)
    np.testing.assert_allclose(thin.weights, [0.0, 0.5, small, 0.5 - small], rtol=1e-9)
    assert re.sub(r"\d\.\d+(?=e-09)", "...", thin.method) == method


def test_shifted_and_scaled_costs_have_the_same_design():
    rng = np.random.default_rng(3)
    problem = od.DesignProblem(rng.normal(size=(60, 3)), np.arange(60) % 2)
    result, cost = od.solve(problem, tol=1e-9), rng.random(60)
    first = od.sparsify(result, cost).weights
    for other in (1e-200 * cost, 1e200 * cost, cost + np.array([5.0, -7.0])[problem.groups]):
        np.testing.assert_allclose(od.sparsify(result, other).weights, first, atol=1e-9)


def test_equal_costs_leave_any_sparse_design():
    problem = od.DesignProblem(np.random.default_rng(5).normal(size=(40, 3)))
    thin = od.sparsify(od.DesignResult.given(problem, problem.uniform()), np.full(40, 7.0))
    assert len(thin.support) <= problem.support_bound
    assert thin.method == "given, sparsified"


def test_the_result_says_what_round_off_prevents(monkeypatch):
    problem = od.DesignProblem(np.random.default_rng(6).normal(size=(40, 3)))
    result = od.DesignResult.given(problem, problem.uniform())
    cost = np.random.default_rng(7).random(40)
    monkeypatch.setattr(vertices, "SAME_RTOL", -1.0)
    thin = od.sparsify(result)
    assert thin.method == "given, sparsified (40 candidates, because round-off prevents 7)"
    np.testing.assert_allclose(thin.weights, result.weights, rtol=1e-12)
    dear = od.sparsify(result, cost)
    assert re.search(r"within .* of the least\) \(40 candidates, because round-off prevents 7\)", dear.method)
    assert cost @ dear.weights == pytest.approx(cost @ result.weights)


def test_the_result_says_if_the_program_is_not_solved(monkeypatch):
    problem = od.DesignProblem(np.random.default_rng(6).normal(size=(40, 3)))
    result = od.DesignResult.given(problem, problem.uniform())
    cost = np.random.default_rng(7).random(40)
    monkeypatch.setattr(cheapest, "ATTEMPTS", ())
    dear = od.sparsify(result, cost)
    assert "cost proved to be within" in dear.method
    assert cost @ dear.weights <= cost @ result.weights * (1 + 1e-12)


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


def test_a_cost_that_round_off_leaves_open_is_not_called_the_least() -> None:
    """Parallel rows of size 20 hide rows of size 1e-20: in doubles they are parallel to 1e-7 only."""
    found = pool.one("hunt.sparsify", "plane_with_small_rows", 900_164)
    assert found.status == "distance stated"
    assert not found.wrong


def test_duals_that_enlarge_round_off_are_no_proof_of_the_least_cost() -> None:
    """Rows of sizes 1e-8 to 1e8: the duals are 1e9 times the cost, and exact information costs 17 % more."""
    found = pool.one("hunt.sparsify", "row_sizes", 30_006)
    assert found.status == "distance stated"
    assert not found.wrong


@pytest.mark.parametrize("size", [1e-30, 1e-200, 1.0])
def test_costs_of_candidates_without_weight_do_not_make_the_others_zero(size: float) -> None:
    x = np.array([[1.0, -1], [1, 0], [1, 1], [1, 0.5], [1, -0.5], [1, -1], [1, 1]])
    weights, cost = np.append(np.ones(6) / 6, 0), size * np.array([1.0, 2, 3, 4, 5, 2, 0])
    cost[6] = 1e300
    thin = od.sparsify(od.DesignResult.given(od.DesignProblem(x), weights), cost)
    assert cost @ thin.weights / size == pytest.approx(11 / 6, rel=1e-9)


@pytest.mark.parametrize("low", [-1e3, -1e9, -1e12, -1e20, -1e300])
def test_a_low_cost_that_no_design_attains_does_not_hide_the_others(low: float) -> None:
    """The last candidate is inside the ellipse of the optimum, so no optimal design has it."""
    angle = 2 * np.pi * np.arange(12) / 12
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    cost = np.random.default_rng(0).random(12) + 1
    least = od.sparsify(od.DesignResult.given(od.DesignProblem(circle), np.ones(12) / 12), cost)
    problem = od.DesignProblem(np.vstack([circle, [0.1, 0.2]]))
    thin = od.sparsify(od.DesignResult.given(problem, np.append(np.ones(12) / 12, 0)), np.append(cost, low))
    assert cost @ thin.weights[:12] <= (1 + 1e-9) * (cost @ least.weights) or "the least" in thin.method


@pytest.mark.parametrize(
    ("budget", "cost"),
    [(1.0, [0, 0, 0, -1e-30, 1e300]), (1e-30, [0, 0, 0, -1, 1e300]), (1e59, [3, 1, 0, -1e300, 1])],
)
def test_costs_far_from_those_of_the_given_design(budget: float, cost: list[float]) -> None:
    """Candidates 2 and 3 equal 0 and 1; the given design costs nothing, or much less than could be earned."""
    p = od.DesignProblem([[1.0, 0], [0, 1], [1, 0], [0, 1], [1, 1]], budgets=budget)
    given = od.DesignResult.given(p, [budget / 2, budget / 2, 0, 0, 0])
    assert 3 in od.sparsify(given, cost=cost).support


@pytest.mark.parametrize(
    "cost",
    [
        [1, 1, -1e260, -1e300, 1, 1],
        [1e-30, 1e-30, -1e225, -1e260, 1, 1],
        [1, 1, -1e100, -1e300, 1, -1e200],
        [1, 1, 1, -1e300, -1e200, -1e260],
    ],
)
def test_of_large_negative_costs_the_lowest_counts(cost: list[float]) -> None:
    p = od.DesignProblem(np.eye(2)[[0, 1, 0, 0, 1, 1]])
    found = od.sparsify(od.DesignResult.given(p, [0.5, 0.5, 0, 0, 0, 0]), cost=cost)
    least = min(cost[k] for k in (0, 2, 3)) + min(cost[k] for k in (1, 4, 5))
    assert np.dot(cost, found.weights) == pytest.approx(least / 2, rel=1e-9)
    assert found.method == "given, sparsified"


def test_weights_that_no_step_changes_are_refused() -> None:
    with pytest.raises(od.InputError, match="no step changes them in double precision"):
        vertices._blocking(np.ones(3), np.zeros(3))
