"""Functions of a user that overwrite their arguments do not change what client, server or trial keep."""

from __future__ import annotations

import numpy as np
import pytest

import bandits
from bandits.policies.phased import ceiling, confident

BASE = bandits.environments.authors(8, 5, 3, seed=0)
QUIET = {"features": BASE.features, "parameters": BASE.parameters, "scale": 0.1}
ENV = bandits.LinearEnvironment(**QUIET)
HORIZON = 5000
PHASED = pytest.mark.parametrize("policy", [bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])


def assert_same_run(one, other):
    np.testing.assert_array_equal(one.regret, other.regret)
    np.testing.assert_array_equal(one.phases, other.phases)
    assert (one.uploaded, one.downloaded) == (other.uploaded, other.downloaded)


def keep_in_place(r, u, active):
    active &= confident(r, u, active)
    r[:], u[:] = np.nan, np.nan
    return active


def round_in_place(weights, f):
    pulls = ceiling(weights, f)
    weights[:] = 0.0
    return pulls


class CountsDown(bandits.LinearEnvironment):
    """A pull that uses the array of counts as its own variable."""

    def pull(self, rng, counts):
        sums = super().pull(rng, counts)
        while counts.any():
            counts //= 2
        return sums


@PHASED
@pytest.mark.parametrize(
    "option", [{"keep": keep_in_place}, {"rounding": round_in_place}], ids=["keep", "rounding"]
)
def test_rules_may_overwrite_their_arguments(policy, option):
    plain, own = (bandits.simulate(policy(**one), ENV, HORIZON, trials=1) for one in ({}, option))
    assert_same_run(plain, own)


@PHASED
def test_an_environment_may_overwrite_the_counts(policy):
    plain, own = (bandits.simulate(policy(), env, HORIZON, trials=1) for env in (ENV, CountsDown(**QUIET)))
    assert_same_run(plain, own)


def test_a_rounding_that_overwrites_weights_cannot_hide_a_lost_direction():
    def drop_small(weights, f):
        weights[weights < 0.2] = 0.0
        return ceiling(weights, f)

    with pytest.raises(ValueError, match="rounding must keep the rank of the design"):
        bandits.simulate(bandits.FedPE(rounding=drop_small), ENV, HORIZON, trials=2)
