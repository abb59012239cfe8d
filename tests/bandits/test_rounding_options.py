"""Sparse designs and efficient rounding: what they keep, and what they save."""

from __future__ import annotations

import numpy as np
import pytest

import bandits
from bandits.policies.design import ascent, sparse
from optdesign import DesignProblem, certify


@pytest.mark.parametrize("make", [DesignProblem.disjoint, DesignProblem.shared])
def test_sparse_designs_have_the_gap_of_the_dense_and_few_arms(make):
    env = bandits.environments.random(40, 6, 2, seed=1)
    problem = make(env.features)
    dense, thin = ascent(problem, 0.1), sparse(ascent)(problem, 0.1)
    assert np.count_nonzero(thin.weights) <= problem.enough
    assert np.count_nonzero(thin.weights) <= np.count_nonzero(dense.weights)
    gaps = [certify(problem, design.weights).gap for design in (dense, thin)]
    assert gaps[1] == pytest.approx(gaps[0], abs=1e-6)
    assert thin.iterations == dense.iterations


def test_efficient_rounding_spends_the_budget_and_no_more():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5), size=30)
    weights[rng.random(weights.shape) < 0.4] = 0.0
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    pulls = bandits.efficient(weights, 64)
    assert np.all(pulls.sum(axis=1) == 64)
    assert np.all((pulls > 0) == (weights > 0))
    support = (weights > 0).sum(axis=1, keepdims=True)
    assert np.all(pulls >= (1 - (support - 1) / 64) * 64 * weights * (1 - 1e-9))


def test_a_budget_below_the_number_of_arms_is_rounded_up_like_the_paper_does():
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    assert bandits.efficient(weights, 2).tolist() == [[1, 1, 1], [2, 0, 0]]


@pytest.mark.parametrize("options", [{"sparse": True}, {"rounding": bandits.efficient}])
def test_they_play_and_seeds_decide_everything(options):
    env = bandits.environments.authors(12, 4, 2, seed=0)
    one, two = (bandits.simulate(bandits.FedPE(**options), env, 2000, trials=2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.regret, two.regret)
    plain = bandits.simulate(bandits.FedPE(), env, 2000, trials=2, seed=3)
    assert one.identity != plain.identity
    assert np.all(one.uploaded <= plain.uploaded) or "rounding" in options
