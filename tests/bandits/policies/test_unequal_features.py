"""Features of very different norms: estimates are accurate beside the noise, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import bandits

MESSAGE = "L s / sigma is .* or rescale features of very different norms"


def unequal(scale):
    """Norms from 1e-3 to 1e3, and rewards of the same sizes."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(4, 2, 2)) * 10.0 ** rng.integers(-3, 4, (4, 2, 1))
    return bandits.LinearEnvironment(x, rng.normal(size=(2, 2)), scale=scale)


def test_estimates_that_are_off_by_round_off_are_refused():
    with pytest.raises(ValueError, match=MESSAGE):
        bandits.simulate(bandits.CollaborativeFedPE(), unequal(1e-6), 100, trials=1)


def test_unit_directions_and_larger_noise_are_not_affected():
    for policy, scale in ((bandits.FedPE(), 1e-6), (bandits.CollaborativeFedPE(), 1.0)):
        run = bandits.simulate(policy, unequal(scale), 400, trials=2)
        assert run.phases["lost_best"].max() == 0


def test_delb_refuses_them_too():
    x = np.array([[1.0, 1.0], [1.0, 1.00001], [1.0, 0.9]])
    env = bandits.LinearEnvironment(np.repeat(x[None], 2, axis=0), [1e3, 1.0], scale=1e-7)
    with pytest.raises(ValueError, match=MESSAGE):
        bandits.simulate(bandits.DELB(), env, 400, trials=1)
