"""Units of the features: coordinates of very different sizes, and features that differ by little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bandits
from bandits.policies.ridge import learn, ridge

pytestmark = pytest.mark.kernels

UNBIASED: list[Any] = [
    bandits.FedPE(),
    bandits.EnhancedFedPE(),
    bandits.CollaborativeFedPE(),
    bandits.CollaborativeFedPE(pooling=True),
    bandits.FedPE("shared"),
    bandits.FedPE("shared", protocol="scalars"),
    bandits.DELB(),
]
"""Policies whose estimates have no ridge, and so no units."""


def described(policy):
    return f"{policy.name} {getattr(policy, 'protocol', '')}"


def transformed(policy, matrix, seed=0):
    """An intercept or a size, and a second coordinate; features A x and parameters A^-T theta."""
    shared = "shared" in policy.name or policy.name == "DELB"
    rng = np.random.default_rng(seed)
    x = np.stack([rng.uniform(0.5, 1.0, (10, 3)), rng.integers(0, 2, (10, 3))], axis=2)
    if policy.name == "DELB":
        x[:] = x[0]
    theta = rng.uniform(-1.0, 1.0, 2 if shared else (3, 2))
    return bandits.LinearEnvironment(x @ matrix.T, theta @ np.linalg.inv(matrix), scale=0.1)


@pytest.mark.parametrize("policy", UNBIASED, ids=described)
def test_regret_does_not_depend_on_the_units_of_a_coordinate(policy):
    """With norms between 1e3 and 1e9 the ratio L / ell is the same, and so are all intervals."""
    small, large = (
        bandits.simulate(policy, transformed(policy, np.diag([size, 1.0])), 20_000, trials=2)
        for size in (1e3, 1e9)
    )
    assert large.phases["lost_best"].max() == 0
    np.testing.assert_allclose(large.mean[-1], small.mean[-1], rtol=0.01)


@pytest.mark.parametrize("policy", [p for p in UNBIASED if "pooling" not in p.name], ids=described)
def test_features_that_differ_by_three_millionths(policy):
    env = transformed(policy, np.array([[1.0, 0.0], [1.0, 3e-6]]))
    run = bandits.simulate(policy, env, 20_000, trials=2)
    assert run.phases["lost_best"].max() == 0


@pytest.mark.parametrize("policy", UNBIASED, ids=described)
def test_features_that_cannot_be_told_apart_are_refused_if_rewards_differ(policy):
    env = transformed(policy, np.array([[1.0, 0.0], [1.0, 1e-9]]))
    with pytest.raises(ValueError, match="features must not be parallel up to round-off"):
        bandits.simulate(policy, env, 20_000, trials=1)


def test_features_that_are_parallel_up_to_single_precision_are_taken_as_one():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(2) * rng.uniform(0.5, 1.0, (8, 3, 1))
    env = bandits.LinearEnvironment(x.astype(np.float32), rng.standard_normal((3, 2)))
    assert bandits.simulate(bandits.FedPE(), env, 2000, trials=2).phases["lost_best"].max() == 0


@pytest.mark.parametrize("policy", [bandits.DELB(), bandits.CollaborativeFedPE("shared")], ids=described)
def test_regret_does_not_depend_on_the_units_if_features_do_not_span_all_coordinates(policy):
    """Powers of two leave means and ranks as they are."""
    base = bandits.environments.identical(clients=3, arms=3, dim=4, seed=643297)
    units = 2.0 ** np.array([45, -36, 29, -32])
    env = bandits.LinearEnvironment(base.features * units, base.parameters / units, scale=0.1)
    given = bandits.LinearEnvironment(base.features, base.parameters, scale=0.1)
    runs = [bandits.simulate(policy, one, 200, trials=3) for one in (given, env)]
    np.testing.assert_allclose(runs[1].mean[-1], runs[0].mean[-1], rtol=0.01)


@pytest.mark.parametrize("kind", [bandits.LinUCB, bandits.LinTS, bandits.DisLinUCB, bandits.FedUCB])
def test_features_that_hide_the_ridge_parameter_are_refused(kind):
    """Round-off of the sum of x x' would exceed lambda; arm 0 was pulled from then on."""
    base = bandits.environments.random(3, 3, 3, seed=5)
    small = bandits.simulate(kind(), base, 500, trials=1).regret
    for size, weight in ((1e9, 1.0), (1.0, 1e-18), (1e60, 1e-300)):
        env = bandits.LinearEnvironment(base.features * size, base.parameters, scale=size)
        with pytest.raises(ValueError, match="features must have squared norms of at most 1e"):
            bandits.simulate(kind(ridge=weight), env, 500, trials=1)
    env = bandits.LinearEnvironment(base.features * 2.0**30, base.parameters / 2.0**30)
    large = bandits.simulate(kind(ridge=2.0**60), env, 500, trials=1).regret
    np.testing.assert_allclose(large, small)


def test_ridge_regression_keeps_its_digits_with_large_features():
    """The first feature changes A^-1 from 1 to 1e-20, where the formula for one update loses all digits."""
    rng = np.random.default_rng(2)
    size = np.array([1e10, 1.0])
    x = rng.uniform(0.5, 1.0, (1, 20, 2))
    model, width = ridge(1, 1, 2, 1.0), np.zeros((1, 1))
    confidence = bandits.LinUCB().model(bandits.environments.authors(1, 1, 2), 1).confidence
    for a in range(20):
        learn(model, width, confidence, 0, x * size, 0, a, 1.0)
    exact = np.linalg.inv(x[0].T @ x[0] + np.diag(size**-2.0))
    np.testing.assert_allclose(model.inverse[0, 0] * np.outer(size, size), exact, rtol=1e-9)
