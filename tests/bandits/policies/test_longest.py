"""The control without learning: the longest feature, its ties, and its regret."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.policies.longest import longest
from bandits.testing import check_policy


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(
            st.lists(st.integers(-9, 9), min_size=d, max_size=d).filter(any), min_size=1, max_size=6
        )
    ),
    st.sampled_from([1.0, 0.1, 1e-3, 1e150, 1e-150]),
)
def test_the_lowest_of_the_longest_arms_is_chosen(rows, scale):
    """Against sums of squares in exact arithmetic; the scale does not matter, and round-off breaks no tie."""
    squares = [sum(Fraction(x) ** 2 for x in row) for row in rows]
    features = np.array([rows], dtype=float) * scale
    assert longest(features).tolist() == [squares.index(max(squares))]


def test_the_order_of_coordinates_breaks_no_tie():
    """0.1^2 + 0.2^2 + 0.3^2 has another last bit in another order."""
    x = np.array([0.3, 0.2, 0.1])
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]):
        assert longest(np.array([[x[order], x, x[::-1]]])).tolist() == [0]


def test_regret_is_that_of_the_longest_feature_in_every_round():
    """Against a loop over clients and rounds; nothing is sent."""
    env = bandits.environments.random(7, 4, 3, seed=0)
    run = bandits.simulate(bandits.LongestFeature(), env, 30, trials=2, times=range(1, 31))
    lost = []
    for t in range(1, 31):
        total = 0.0
        for i in range(7):
            arm = max(range(4), key=lambda a: float(np.sqrt(env.features[i, a] @ env.features[i, a])))
            total += t * (env.means[i].max() - env.means[i, arm])
        lost.append(total / 7)
    np.testing.assert_allclose(run.regret, [lost, lost], rtol=1e-12)
    assert run.uploaded.sum() == run.downloaded.sum() == len(run.phases) == 0


def test_it_obeys_the_rules_of_policies():
    check_policy(bandits.LongestFeature())


def test_it_is_best_where_norms_decide_and_not_where_they_mislead():
    x = np.array([[[1.0, 0.0], [0.0, 2.0]]])
    for parameters, regret in (([[1.0, 0.0], [0.0, 1.0]], 0.0), ([[1.0, 0.0], [0.0, 0.25]], 5.0)):
        env = bandits.LinearEnvironment(x, parameters)
        assert bandits.simulate(bandits.LongestFeature(), env, 10, trials=1).mean[-1] == pytest.approx(regret)


def test_norms_nearly_identify_the_best_arms_of_the_authors_instance():
    """A property of the instance: most best arms are the longest, so the control beats Fed-PE at 2^13."""
    right = []
    for seed in range(5):
        env = bandits.environments.authors(100, 10, 3, seed)
        right.append(env.optimal[np.arange(100), longest(env.features)].mean())
        control, fedpe = (
            bandits.simulate(policy, env, 2**13, trials=1, seed=seed).mean[-1]
            for policy in (bandits.LongestFeature(), bandits.FedPE())
        )
        assert control < 0.25 * fedpe
    assert 0.8 <= min(right) < max(right) <= 0.96
