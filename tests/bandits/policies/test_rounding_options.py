"""Sparse designs and efficient rounding: what they keep, and what they save."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.policies.design import ascent, sparse
from optdesign import DesignProblem, certify


@pytest.mark.parametrize("make", [DesignProblem.disjoint, DesignProblem.shared])
def test_sparse_designs_have_the_gap_of_the_dense_and_few_arms(make):
    env = bandits.environments.random(40, 6, 2, seed=1)
    problem = make(env.features)
    dense, thin = ascent(problem, 0.1), sparse(ascent)(problem, 0.1)
    assert np.count_nonzero(thin.weights) <= problem.support_bound
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


def exact_ceiling(weight, f):
    """ceil(w f) in rational arithmetic; a product within 1e-12 of an integer is that integer."""
    product = Fraction(weight) * f
    nearest = round(product)
    close = abs(product - nearest) <= Fraction(1, 10**12) * product
    return nearest if close else math.ceil(product)


@settings(max_examples=300)
@given(st.floats(0.0, 1.0), st.integers(1, 2**53) | st.integers(0, 53).map(lambda p: 2**p))
def test_ceiling_is_that_of_rational_arithmetic(weight, f):
    """Up to f = 2^53; the float product is off by at most half a pull."""
    pulls = int(bandits.ceiling(np.array([[weight]]), f)[0, 0])
    product = Fraction(weight) * f
    assert abs(pulls - product) <= max(1, product * Fraction(1, 2**52))
    assert (pulls > 0) == (weight > 0)
    if product < 10**11:
        assert abs(pulls - exact_ceiling(weight, f)) <= (0 if product * 2**-50 < 1e-12 else 1)


@pytest.mark.parametrize("power", [1, 20, 40, 45, 50, 53])
def test_halves_and_thirds_of_long_phases(power):
    """A tolerance of 1e-12 is 9,007 pulls of 2^53: it must not be subtracted."""
    f = 2**power
    assert bandits.ceiling(np.array([[0.5, 0.5], [1.0, 0.0]]), f).tolist() == [[f // 2, f // 2], [f, 0]]
    third = int(bandits.ceiling(np.array([[1 / 3]]), f)[0, 0])
    assert third in (f // 3, f // 3 + 1)
    weights = np.random.default_rng(power).dirichlet(np.ones(4), size=20)
    assert np.all(bandits.ceiling(weights, f).sum(axis=1) <= f + 4)
    if f >= 4:
        # The 4 weights of a client sum to 1 up to round-off, at most 4 units of 2^-53.
        assert np.all(np.abs(bandits.efficient(weights, f).sum(axis=1) - f) <= f * 2.0**-51)


@pytest.mark.parametrize("f", [0, 2**53 + 1])
def test_a_phase_that_is_too_long_for_double_precision_is_refused(f):
    with pytest.raises(ValueError, match=rf"f must lie in 1 .. 2\^53 .*; got {f}"):
        bandits.ceiling(np.array([[1.0]]), f)


@pytest.mark.parametrize("horizon", [2**40, 2**53])
def test_long_horizons_are_played(horizon):
    """Also where counts are at the limit of double precision."""
    env = bandits.environments.authors(3, 2, 2, seed=0)
    for rounding in (bandits.ceiling, bandits.efficient):
        run = bandits.simulate(bandits.FedPE(rounding=rounding), env, horizon, trials=1)
        assert run.phases["start"][-1] + run.phases["length"][-1] == horizon
    with pytest.raises(ValueError, match=f"horizon must be a whole number of at most {2**53}"):
        bandits.simulate(bandits.FedPE(), env, 2**53 + 1, trials=1)


@pytest.mark.parametrize("options", [{"sparse": True}, {"rounding": bandits.efficient}])
def test_they_play_and_seeds_decide_everything(options):
    env = bandits.environments.authors(12, 4, 2, seed=0)
    one, two = (bandits.simulate(bandits.FedPE(**options), env, 2000, trials=2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.regret, two.regret)
    plain = bandits.simulate(bandits.FedPE(), env, 2000, trials=2, seed=3)
    assert one.identity != plain.identity
    assert np.all(one.uploaded <= plain.uploaded) or "rounding" in options
