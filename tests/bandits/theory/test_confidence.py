"""Confidence levels: the smallest valid k, monotonicity, and the paper's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import model_of

import bandits
from bandits.theory.confidence import alpha, mixture_alpha, prior_variance, smallest_k
from bandits.trials.trial import Trial

stable = settings(deadline=None, derandomize=True, max_examples=100)


@stable
@given(st.integers(1, 500), st.integers(1, 10_000), st.integers(1, 1000), st.floats(1e-12, 0.99))
def test_k_is_the_smallest_that_is_valid(dim, blocks, phases, delta):
    k = smallest_k(dim, blocks, phases, delta)

    def slack(value):
        return value * dim - 2 * math.log(blocks * phases / delta) - dim * math.log(value * math.e)

    assert k > 1
    # k is found to a relative 1e-15; the slack is a sum of terms of size up to d k.
    assert abs(slack(k)) <= 1e-9 * (dim * k)
    lower = 1 + (k - 1) * (1 - 1e-3)
    assert slack(lower) < 0 or k - 1 < 1e-6


def test_alpha_is_the_smaller_of_the_papers_two():
    # Many clients: the bound over blocks wins; few clients: the union over clients wins.
    m, k, d, h, delta = 10**6, 10, 3, 16, 0.1
    assert alpha(m, k, d, h, delta) == math.sqrt(d * smallest_k(d, k, h, delta))
    assert alpha(2, k, 50, h, delta) == math.sqrt(2 * math.log(2 * 2 * k * h / delta))


def test_shared_parameters_need_no_union_over_arms():
    m, k, d, h = 10**6, 30, 3, 16
    assert alpha(m, k, d, h, 0.1, shared=True) < alpha(m, k, d, h, 0.1)
    assert alpha(m, k, d, h, 0.1, shared=True) == math.sqrt(d * smallest_k(d, 1, h, 0.1))


def test_every_phase_costs_confidence_and_none_costs_as_much_as_one():
    """Without a phase there is nothing to estimate, and the level is that of a single one."""
    for shared in (False, True):
        levels = [alpha(50, 10, 3, phases, 0.1, shared=shared) for phases in (1, 2, 3)]
        assert levels[0] < levels[1] < levels[2]
        assert alpha(50, 10, 3, 0, 0.1, shared=shared) == levels[0]


def test_the_prior_of_shared_parameters_is_that_of_one_arm():
    assert prior_variance(40, 10, 3, shared=True) == prior_variance(40, 1, 3) == 3 / 40


def test_enhanced_level_is_the_papers_formula():
    m, k, d, delta = 100, 10, 3, 0.1
    prior = prior_variance(m, k, d)
    assert prior == d * k / m
    variance = np.array([prior, 2.0, 500.0])
    paper = np.sqrt(np.log(m**3 * k * variance / (d * delta**2)))
    np.testing.assert_allclose(mixture_alpha(variance, prior, delta / (m * k)), paper, rtol=1e-12)


def test_delta_must_be_a_probability():
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="delta"):
            alpha(1, 1, 1, 1, delta)


@pytest.mark.parametrize("delta", [1e-150, 1e-300, 1e-309, 5e-324])
def test_levels_close_to_zero_have_finite_widths(delta):
    """1 / delta overflows for subnormal levels, and delta^2 underflows much earlier."""
    level = alpha(clients=4, arms=3, dim=2, phases=5, delta=delta)
    assert math.log(15) <= level**2 / 2.0 + math.log(delta) <= math.log(120) + 1e-9
    exact = math.sqrt(math.log(8.0) - 2.0 * math.log(delta))
    assert mixture_alpha(np.array([4.0]), 0.5, delta) == pytest.approx([exact])
    env = bandits.environments.authors(4, 3, 2)
    for policy in (bandits.LinUCB, bandits.LinTS, bandits.DisLinUCB, bandits.FedUCB):
        state = policy(delta=delta).start(Trial(env, 10, [10], np.random.default_rng(0)))
        assert np.isfinite(model_of(state).confidence.log_term)
