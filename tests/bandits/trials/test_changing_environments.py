"""Environments that change, or give rewards of a wrong kind, are refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import bandits
from bandits.environments.linear import frozen
from bandits.testing import check_policy
from bandits.trials.trial import Trial

BASE = bandits.environments.authors(3, 4, 2, seed=0)
ALL = pytest.mark.parametrize(
    "policy", [bandits.FedPE(), bandits.LocalUCB(), bandits.LinUCB()], ids=lambda policy: policy.name
)
REFUSED = "of an environment must stay the same"


class Replaced(bandits.LinearEnvironment):
    """New features after every pull, as in a contextual bandit."""

    def pull(self, rng, counts):
        object.__setattr__(self, "features", rng.uniform(0.5, 1.0, self.features.shape))
        return super().pull(rng, counts)


class Written(bandits.LinearEnvironment):
    """The same array, with other values; after two pulls the first ones again."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        object.__setattr__(self, "features", np.array(self.features))

    def fresh(self):
        return Written(self.features, self.parameters)

    def pull(self, rng, counts):
        self.features[...] = self.features[::-1].copy()
        return super().pull(rng, counts)


class Computed(bandits.LinearEnvironment):
    """Features that are computed whenever they are read."""

    reads = 0

    @property
    def features(self):
        Computed.reads += 1
        return np.roll(BASE.features, Computed.reads, axis=1)

    @features.setter
    def features(self, _):
        pass


class Moving(bandits.LinearEnvironment):
    """The parameters move, and with them means and gaps."""

    def pull(self, rng, counts):
        sums = super().pull(rng, counts)
        for name in ("parameters", "means"):
            object.__setattr__(self, name, -getattr(self, name))
        return sums


class Redrawn(bandits.LinearEnvironment):
    """Another instance for every trial."""

    seeds = iter(range(10**6))

    def fresh(self):
        return bandits.environments.authors(3, 4, 2, seed=next(Redrawn.seeds) + 1)


CHANGING = pytest.mark.parametrize("kind", [Replaced, Written, Computed, Moving, Redrawn])


@ALL
@CHANGING
def test_an_environment_that_changes_is_refused(policy, kind):
    with pytest.raises(ValueError, match=f"(features|parameters|means) {REFUSED}; in .*not supported"):
        bandits.simulate(policy, kind(BASE.features, BASE.parameters), 50, trials=2)


def test_every_pull_is_looked_at():
    """After an even number of pulls the features of this one are as they were."""
    trial = Trial(Written(BASE.features, BASE.parameters), 2, [2], np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"features {REFUSED}; in Written they changed before pull 2"):
        trial.step(np.zeros(3, dtype=np.int64))


def test_a_policy_that_changes_the_environment_is_refused():
    class Rewrites(bandits.LinearEnvironment):
        """Can be written to."""

    class Cheats:
        name = "Cheats"

        def play(self, trial):
            while not trial.done:
                trial.step(np.zeros(3, dtype=np.int64))
            object.__setattr__(trial.env, "means", np.zeros((3, 4)))

    with pytest.raises(ValueError, match=f"means {REFUSED}"):
        bandits.simulate(Cheats(), Rewrites(BASE.features, BASE.parameters), 5, trials=1)


def test_arrays_of_an_environment_cannot_be_made_writable():
    """Neither those of the environment nor those of copies of it."""
    own = Replaced(BASE.features, BASE.parameters)
    for env in (BASE, own, copy.deepcopy(own), pickle.loads(pickle.dumps(own)), own.fresh()):
        for name in ("features", "parameters", "means", "gaps", "optimal"):
            array = getattr(env, name)
            assert frozen(array) is array
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    x = np.array(BASE.features)
    env = bandits.LinearEnvironment(x, BASE.parameters)
    x[...] = 7.0
    np.testing.assert_array_equal(env.features, BASE.features)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((5, 3, 4, 2)), "features must have shape .*from round to round are not supported"),
        ((np.ones((4, 2)) for _ in range(3)), "features must be an array of real numbers; got generator"),
        (lambda _t: np.ones((3, 4, 2)), "features must be an array of real numbers; got function"),
        ([[[1.0, 2.0]], [[1.0]]], "features must be an array of real numbers; got list"),
        (1j * np.ones((3, 4, 2)), "features must be an array of real numbers; got ndarray"),
        (np.ma.masked_greater(BASE.features, 0.7), "features must be given; some entries are masked"),
    ],
)
def test_features_that_are_no_array_of_numbers_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        bandits.LinearEnvironment(features, BASE.parameters)


class Pays(bandits.LinearEnvironment):
    """Rewards by a function of what they should be."""

    def __init__(self, change):
        super().__init__(BASE.features, BASE.parameters)
        object.__setattr__(self, "change", change)

    def pull(self, rng, counts):
        return self.change(super().pull(rng, counts))


@ALL
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[:2], r"rewards must have shape \(3, 4\); pull of Pays gave shape \(2, 4\)"),
        (lambda r: r[0], r"gave shape \(4,\)"),
        (lambda r: r[..., None], r"gave shape \(3, 4, 1\)"),
        (lambda r: r.sum(), r"gave shape \(\)"),
        (lambda _: None, "rewards must be real numbers; pull of Pays gave values of type object"),
        (lambda r: r > 0, "rewards must be real numbers; pull of Pays gave values of type bool"),
        (lambda r: r + 0j, "gave values of type complex128"),
        (lambda r: r * np.nan, "rewards must be finite; pull of Pays gave nan for . pulls of arm 0"),
        (lambda r: np.where(r != 0, np.inf, 0), "rewards must be finite; pull of Pays gave inf"),
    ],
)
def test_rewards_of_a_wrong_kind_are_refused(policy, change, message):
    with pytest.raises(ValueError, match=message):
        bandits.simulate(policy, Pays(change), 50, trials=1)


def test_arms_that_are_not_pulled_pay_nothing():
    with pytest.raises(
        ValueError, match=r"rewards must be 0 for arms that are not pulled; pull of Pays gave"
    ):
        bandits.simulate(bandits.LocalUCB(), Pays(lambda r: r + 1.0), 50, trials=1)


def test_rewards_may_be_whole_numbers():
    env = Pays(lambda r: np.sign(r).astype(np.int32))
    assert np.all(np.isfinite(bandits.simulate(bandits.LinUCB(), env, 50, trials=1).regret))


class Attribute(bandits.LinearEnvironment):
    """Says something wrong about itself."""

    def __init__(self, **attributes):
        super().__init__(BASE.features, BASE.parameters)
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"means": np.ones((4, 3))}, r"means must be finite numbers of shape \(3, 4\).*shape \(4, 3\)"),
        ({"means": np.full((3, 4), np.nan)}, "means must be finite"),
        ({"gaps": np.full((3, 4), np.inf)}, "gaps must be finite"),
        ({"gaps": np.zeros((3, 4), dtype=bool)}, "gaps must be finite numbers.* has type bool"),
        ({"gaps": -np.ones((3, 4))}, "gaps must not be negative; Attribute has -1.0"),
    ],
)
def test_means_and_gaps_of_a_subclass_are_checked(attributes, message):
    with pytest.raises(ValueError, match=message):
        bandits.simulate(bandits.FedPE(), Attribute(**attributes), 50, trials=1)


def test_an_environment_must_be_one():
    with pytest.raises(TypeError, match="env must be a LinearEnvironment; got list"):
        bandits.simulate(bandits.FedPE(), [], 50)

    class Lost(bandits.LinearEnvironment):
        def fresh(self):
            return None

    with pytest.raises(TypeError, match="fresh of Lost must return a LinearEnvironment; got NoneType"):
        bandits.simulate(bandits.FedPE(), Lost(BASE.features, BASE.parameters), 50)


@pytest.mark.parametrize("sigma", [np.nan, np.inf, -1.0, "1", None])
def test_the_sigma_of_a_noise_is_checked(sigma):
    class Odd:
        def sums(self, _, means, counts):
            return means * counts

    Odd.sigma = sigma
    with pytest.raises(ValueError, match="sigma of the noise must be finite and not negative; got"):
        bandits.LinearEnvironment(BASE.features, BASE.parameters, Odd())


def test_check_policy_passes_changing_environments_to_the_user():
    """Also where environments of one's own are drawn."""
    from hypothesis import strategies as st

    drawn = st.just(Replaced(BASE.features, BASE.parameters))
    with pytest.raises(ValueError, match=REFUSED):
        check_policy(bandits.FedPE(), drawn, max_examples=2)
