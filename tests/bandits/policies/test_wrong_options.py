"""Options of a wrong type or size: the error names the option."""

import numpy as np
import pytest
from learners import LEARNERS

import bandits

WRONG = ["0.1", [0.1], np.array([0.1, 0.2]), 1j, True]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("option", ["delta", "sigma"])
def test_an_option_that_is_no_number_is_named(kind, option, wrong):
    with pytest.raises(ValueError, match=f"{option} must"):
        kind(**{option: wrong})


@pytest.mark.parametrize("wrong", ["0.1", [0.1], 1j], ids=repr)
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        (bandits.FedPE, "design_gap"),
        (bandits.DELB, "design_gap"),
        (bandits.LinUCB, "alpha"),
        (bandits.LinUCB, "ridge"),
        (bandits.DisLinUCB, "threshold"),
        (bandits.FedUCB, "epsilon"),
        (bandits.FedUCB, "reward_bound"),
    ],
)
def test_other_options_that_are_no_numbers_are_named(kind, option, wrong):
    with pytest.raises(ValueError, match=f"{option} must"):
        kind(**{option: wrong})


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e200])
@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.DELB])
def test_noise_without_widths_is_refused(kind, scale):
    """Without noise DELB plans no pulls; the square of a very small or large sigma is 0 or infinite."""
    env = bandits.LinearEnvironment([[[1.0, 0.0], [0.0, 1.0]]], [0.4, 0.2], scale=scale)
    with pytest.raises(ValueError, match="sigma must"):
        bandits.simulate(kind(), env, 50, trials=1)


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.DELB])
def test_a_small_sigma_replaces_that_of_rewards_without_noise(kind):
    env = bandits.LinearEnvironment([[[1.0, 0.0], [0.0, 1.0]]], [0.4, 0.2], scale=0.0)
    run = bandits.simulate(kind(sigma=1e-3), env, 500, trials=1)
    assert run.regret[0, -1] < 10.0
