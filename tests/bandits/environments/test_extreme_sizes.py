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
