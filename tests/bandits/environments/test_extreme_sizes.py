"""Features and parameters whose squares overflow or vanish."""

import numpy as np
import pytest

import bandits


@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e155, 1e200])
def test_features_whose_norms_overflow_or_vanish_are_refused(factor):
    x = np.array([[[1.0, 0.5], [0.5, 1.0]]])
    with pytest.raises(ValueError, match="Change the units"):
        bandits.LinearEnvironment(factor * x, np.ones((2, 2)) / factor)


def test_parameters_whose_norms_overflow_are_refused():
    with pytest.raises(ValueError, match="Change the units"):
        bandits.LinearEnvironment([[[1.0, 0.5]]], [1e200, 0.0])


@pytest.mark.parametrize("factor", [1e-50, 1e50])
def test_fedpe_does_not_depend_on_the_unit_of_features(factor):
    x, theta = (
        np.random.default_rng(0).uniform(0.2, 1.0, (4, 3, 2)),
        np.array([[1.0, 0], [0, 1.0], [0.5, 0.6]]),
    )
    runs = [
        bandits.simulate(bandits.FedPE(), bandits.LinearEnvironment(f * x, theta / f), 2000, trials=2)
        for f in (1.0, factor)
    ]
    np.testing.assert_allclose(runs[0].regret, runs[1].regret, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-30, 1e-7, 1.0, 1e7])
def test_best_arms_do_not_depend_on_the_unit_of_rewards(factor):
    rng = np.random.default_rng(1)
    x, theta = rng.standard_normal((5, 4, 2)), rng.standard_normal((4, 2))
    env = bandits.LinearEnvironment(factor * x, theta)
    np.testing.assert_array_equal(env.optimal, bandits.LinearEnvironment(x, theta).optimal)
    np.testing.assert_array_equal(env.optimal.sum(axis=1), 1)


def test_best_arms_of_a_client_do_not_depend_on_the_others():
    env = bandits.LinearEnvironment([[[1e9], [2e9]], [[1e-9], [2e-9]]], [1.0])
    assert env.optimal.tolist() == [[False, True], [False, True]]


def test_arms_that_differ_by_round_off_are_tied():
    """The means 0.1 + 0.2 - 0.3 and 0 differ by 6e-17, round-off of the terms, not of the means."""
    env = bandits.LinearEnvironment([[[0.1, 0.2, -0.3], [0.1, -0.1, 1e-40]]], [1.0, 1.0, 1.0])
    assert env.optimal.all()


@pytest.mark.parametrize("noise", ["bernoulli", bandits.noise.Gaussian(2.0)])
def test_a_scale_that_would_be_ignored_is_refused(noise):
    with pytest.raises(ValueError, match="scale must be left out with the noise"):
        bandits.LinearEnvironment([[[0.5]]], [0.5], noise, scale=0.1)
