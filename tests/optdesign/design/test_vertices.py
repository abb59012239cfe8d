"""Steps to a vertex: columns of the equations, weights that move within groups, correction of round-off."""

import numpy as np
import pytest

import optdesign as od
from optdesign.algebra.passes import coordinates
from optdesign.design.vertices import Columns, columns_of, corrected, heaviest_first


def test_columns_have_the_inner_products_of_the_matrices():
    x, blocks = np.random.default_rng(0).normal(size=(9, 3)), np.array([0, 1, 0, 1, 1, 0, 1, 0, 0])
    x[blocks == 1, 2] = x[blocks == 1, 0]
    problem = od.DesignProblem(x, parameter_blocks=blocks)
    some = np.array([0, 1, 2, 3, 4])
    y, ranks = coordinates(problem, some, problem.rows), problem.ranks
    phi = columns_of(problem, problem.rows, some).phi
    assert phi.shape == (5, 9)
    for n in range(5):
        for k in range(5):
            r = ranks[blocks[n]]
            expected = (y[n, :r] @ y[k, :r]) ** 2 if blocks[n] == blocks[k] else 0.0
            assert phi[n] @ phi[k] == pytest.approx(expected, rel=1e-13)


def test_the_heaviest_candidate_of_every_group_is_found():
    groups, w = np.array([2, 0, 2, 0, 2, 5]), np.array([1.0, 3.0, 7.0, 4.0, 2.0, 1.0])
    heaviest, others, at = heaviest_first(groups, w)
    assert heaviest.tolist() == [3, 2, 5]
    assert others.tolist() == [0, 1, 4]
    assert at.tolist() == [2, 3, 2]


def test_a_correction_restores_information_and_budgets_or_returns_none():
    rng = np.random.default_rng(1)
    columns = Columns(rng.random(size=(8, 3)), np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    w = rng.random(8) * 10.0 ** rng.integers(-6, 1, size=8)
    target, budgets = w @ columns.phi, np.bincount(columns.groups, w)
    moved = w * (1 + 1e-8 * rng.normal(size=8))
    back = corrected(columns, moved, target, budgets)
    np.testing.assert_allclose(back @ columns.phi, target, rtol=1e-14)
    np.testing.assert_allclose(np.bincount(columns.groups, back), budgets, rtol=1e-14)
    assert corrected(columns, np.where(w == w.max(), 0.0, w), target, budgets) is None
