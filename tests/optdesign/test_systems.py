"""The linear systems of Newton steps: which one is taken, and those that are too large."""

import numpy as np
import pytest
from problems import EPS, random_problem

import optdesign as od
from optdesign.reduced import reduce
from optdesign.solvers import systems
from optdesign.solvers.systems import ByGroup, ByInformation, SystemTooLarge, cheaper_system
from optdesign.testing import assert_feasible

TOL = 1e-9


def index_of(problem: od.DesignProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    reduced = reduce(problem)
    return reduced.blocks, reduced.starts, reduced.ranks


def test_the_cheaper_system_is_taken() -> None:
    """Few columns of information and many candidates, and the other way round."""
    few = index_of(od.DesignProblem(np.random.default_rng(0).normal(size=(300, 2))))
    many = index_of(od.DesignProblem(np.random.default_rng(0).normal(size=(24, 12))))
    assert isinstance(cheaper_system(*few), ByInformation)
    assert isinstance(cheaper_system(*many), ByGroup)
    for index in (few, many):
        costs = costs_of(*index)
        assert costs[type(cheaper_system(*index))] == min(costs.values())


def costs_of(blocks: np.ndarray, starts: np.ndarray, ranks: np.ndarray) -> dict[type, float]:
    groups, largest = len(starts) - 1, int(np.bincount(blocks).max())
    return {
        ByGroup: systems._cost_by_group(len(ranks), largest, groups),
        ByInformation: systems._cost_by_information(ranks, len(blocks), groups),
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["shared", "clusters"])
def test_too_large_is_what_the_matrices_need(seed: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the order of the information system, then that of the group system."""
    problem = random_problem(seed, kind)
    q = int(np.sum(problem.ranks * (problem.ranks + 1) // 2))
    largest = max(problem.n_groups, np.bincount(problem.blocks).max())
    monkeypatch.setattr(systems, "ORDER_LIMIT", 0)
    with pytest.raises(SystemTooLarge, match=f"needs {q} and .*, or {largest} and"):
        cheaper_system(*index_of(problem))


def test_what_is_too_large_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Order and cost each rule a system out, however cheap it is otherwise."""
    index = index_of(od.DesignProblem(np.random.default_rng(0).normal(size=(24, 12))))
    order, costs = 24, costs_of(*index)
    assert order < ByInformation(*index).order
    assert costs[ByGroup] < costs[ByInformation]
    monkeypatch.setattr(systems, "ORDER_LIMIT", order)
    assert isinstance(cheaper_system(*index), ByGroup)
    monkeypatch.setattr(systems, "ORDER_LIMIT", order - 1)
    with pytest.raises(SystemTooLarge, match=f"at most {order - 1} rows"):
        cheaper_system(*index)
    monkeypatch.undo()
    monkeypatch.setattr(systems, "COST_LIMIT", costs[ByGroup])
    assert isinstance(cheaper_system(*index), ByGroup)
    monkeypatch.setattr(systems, "COST_LIMIT", 0.99 * costs[ByGroup])
    with pytest.raises(SystemTooLarge, match=r"needs 78 and .*, or 24 and "):
        cheaper_system(*index)


def test_information_system_in_several_batches() -> None:
    """More groups than fit into one batch: the matrix is that of all groups at once."""
    rng = np.random.default_rng(0)
    d, q = 10, 55
    groups = systems.BATCH_ENTRIES // q + 10
    a, w = rng.normal(size=(2 * groups, d)), rng.exponential(size=2 * groups)
    system = ByInformation(np.zeros(2 * groups, np.int64), 2 * np.arange(groups + 1), np.array([d]))
    assert system.factorise(a, w)
    i, j = np.tril_indices(d)
    phi = np.where(i == j, 1.0, np.sqrt(2)) * a[:, i] * a[:, j]
    # With two candidates a group, W~ is w1 w2 / (w1 + w2) times the square of their difference.
    difference = (phi[0::2] - phi[1::2]) * np.sqrt(w[0::2] * w[1::2] / (w[0::2] + w[1::2]))[:, None]
    expected = np.eye(q) + difference.T @ difference
    lower = np.tril(system.matrix)
    # Sums of 2 groups terms, of which half at most cancel.
    rounding = 2 * len(w) * EPS * np.abs(expected).max()
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=0, atol=rounding)


# ------------------------------------------------------------------------------------------- too large


@pytest.fixture(scope="module")
def large() -> od.DesignProblem:
    """One group of 4,500 candidates in 100 dimensions: Q = 5,050 columns."""
    return od.DesignProblem(np.random.default_rng(0).normal(size=(4500, 100)))


def test_too_large_a_system_is_named_with_the_limit(large: od.DesignProblem) -> None:
    assert min(large.n_candidates, 100 * 101 // 2) > systems.ORDER_LIMIT
    message = (
        rf"method 'newton' needs dense matrices of at most {systems.ORDER_LIMIT} rows and 2e\+10 "
        r"multiplications a step; this problem needs 5050 and .*, or 4500 and .* Use method='bca' or 'auto'\."
    )
    with pytest.raises(ValueError, match=message):
        od.solve(large, method="newton")


def test_auto_makes_progress_where_newton_is_too_large(large: od.DesignProblem) -> None:
    r = od.solve(large, tol=TOL, max_iter=1)
    assert r.status is od.Status.MAX_ITER
    assert r.iterations == 1
    assert_feasible(large, r.weights)
    assert r.gap < od.certify(large, large.uniform()).gap
