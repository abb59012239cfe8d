"""Reduction to unit budgets and back, and the information of a problem in its own coordinates."""

import numpy as np
import pytest
from hypothesis import given
from problems import EPS, plain, weights_of

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.testing import problems, weighted


@given(weighted())
def test_reduction_keeps_information_and_turns_variances_into_budget_times_variance(
    case: tuple[od.DesignProblem, np.ndarray],
) -> None:
    problem, w = case
    r = reduce(problem)
    assert (r.n_groups, r.rank) == (problem.n_groups, problem.rank)
    order = r.order
    groups = problem.groups[order]
    assert np.all(np.diff(groups) >= 0)
    np.testing.assert_array_equal(np.diff(r.starts), np.bincount(problem.groups))
    np.testing.assert_array_equal(r.blocks, problem.parameter_blocks[order])
    u = r.restrict(w)
    np.testing.assert_allclose(np.add.reduceat(u, r.starts[:-1]), 1, rtol=4 * EPS * len(w))
    np.testing.assert_allclose(weights_of(r, u, problem), w, rtol=4 * EPS)
    expected = plain(problem, w)
    for b in range(problem.n_parameter_blocks):
        k = problem.ranks[b]
        z = r.z[r.blocks == b, :k]
        g = np.einsum("ni,ij,nj->n", z, np.linalg.inv((z.T * u[r.blocks == b]) @ z), z)
        rows = order[r.blocks == b]
        np.testing.assert_allclose(
            g, (problem.budgets[problem.groups] * expected.variances)[rows], rtol=0, atol=2 * expected.error
        )


@given(problems())
def test_reduction_of_some_candidates(problem: od.DesignProblem) -> None:
    """One candidate a group, or every other one on top of that."""
    first = np.unique(problem.groups, return_index=True)[1]
    for rows in (np.sort(first), np.union1d(first, np.arange(0, problem.n_candidates, 2))):
        r, whole = reduce(problem, rows), reduce(problem)
        assert sorted(r.order) == rows.tolist()
        full = {int(n): z for n, z in zip(whole.order, whole.z, strict=True)}
        for n, z in zip(r.order, r.z, strict=True):
            np.testing.assert_array_equal(z, full[int(n)])
        u = np.concatenate([np.full(k, 1 / k) for k in np.diff(r.starts)])
        w = weights_of(r, u, problem)
        assert not np.delete(w, rows).any()
        np.testing.assert_allclose(np.bincount(problem.groups, weights=w), problem.budgets, rtol=1e-14)
        np.testing.assert_allclose(r.restrict(w), u, rtol=4 * EPS)


def test_rows_are_sorted_by_group_and_otherwise_in_order() -> None:
    assert reduce(od.DesignProblem(np.eye(3), groups=[0, 1, 1])).order.tolist() == [0, 1, 2]
    assert reduce(od.DesignProblem(np.eye(3), groups=[1, 0, 1])).order.tolist() == [1, 0, 2]
    assert reduce(od.DesignProblem([[2.0]])).order.tolist() == [0]


def test_weights_of_candidates_without_a_row_are_left_alone() -> None:
    problem = od.DesignProblem(np.eye(3), budgets=[2.0])
    w = np.array([0.5, 7.0, 0.25])
    reduce(problem, np.array([0, 2])).extend(np.array([0.75, 0.25]), w)
    assert w.tolist() == [1.5, 7.0, 0.5]


@pytest.mark.parametrize("exponent", [-6, 0, 6])
def test_coordinates_of_pivots_are_unit_vectors(exponent: int) -> None:
    rng = np.random.default_rng(0)
    p = od.DesignProblem(rng.normal(size=(20, 3)) * 10.0**exponent)
    t = p.coordinates(p.span.pivots[0])
    np.testing.assert_allclose(t, np.eye(3), atol=1e4 * EPS)
