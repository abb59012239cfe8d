"""Infinite options are refused: with them every index is infinite or NaN, and the first arm is played."""

from __future__ import annotations

import numpy as np
import pytest

import bandits

CASES = [
    (bandits.LocalUCB, "sigma"),
    (bandits.DELB, "sigma"),
    (bandits.LinUCB, "alpha"),
    (bandits.FedUCB, "reward_bound"),
    *((policy, key) for policy in (bandits.LinUCB, bandits.LinTS, bandits.DisLinUCB, bandits.FedUCB)
      for key in ("ridge", "sigma", "s")),
]  # fmt: skip


@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0])
@pytest.mark.parametrize(("policy", "key"), CASES)
def test_options_of_policies_are_finite(policy, key, value):
    with pytest.raises(
        ValueError, match=rf"^{key} must be (positive and finite|finite and not negative); got"
    ):
        policy(**{key: value})


@pytest.mark.parametrize("key", ["L", "s"])
def test_bounds_of_environments_are_finite(key):
    with pytest.raises(ValueError, match=f"{key} must bound the environment; got inf.* Give a finite bound"):
        bandits.LinearEnvironment(np.ones((2, 2, 1)), np.ones(1), **{key: np.inf})


@pytest.mark.parametrize("period", [2.5, 3.0, True, 0, "7", np.inf])
def test_the_period_of_feducb_is_a_whole_number(period):
    with pytest.raises(ValueError, match="period must be a whole number of at least 1; got"):
        bandits.FedUCB(period=period)


def test_an_infinite_threshold_means_no_synchronisation():
    env = bandits.environments.authors(4, 3, 2)
    run = bandits.simulate(bandits.DisLinUCB(threshold=np.inf), env, 300, trials=1)
    assert run.uploaded[0] == run.downloaded[0] == 0
