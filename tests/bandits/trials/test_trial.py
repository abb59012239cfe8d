"""A trial owns its environment, stream and clock: nothing leaks, and every policy asks the environment."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import bandits
from bandits.trials.regret import RegretClock
from bandits.trials.trial import Trial

POLICIES = [
    bandits.FedPE(),
    bandits.EnhancedFedPE(),
    bandits.CollaborativeFedPE(),
    bandits.LocalUCB(),
    bandits.LinUCB(),
    bandits.LinTS(v=0.1),
    bandits.DisLinUCB(),
    bandits.FedUCB(),
]
each_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)

FEATURES = np.random.default_rng(0).uniform(0.4, 1.0, (3, 3, 2))
PARAMETERS = np.array([[0.9, 0.1], [0.1, 0.2], [0.5, 0.3]])


class Reversed(bandits.LinearEnvironment):
    """Pays the negative of what it says."""

    def pull(self, rng, counts):
        return -super().pull(rng, counts)


class Tiring(bandits.LinearEnvironment):
    """Every pull lowers all later rewards: an environment with state."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        object.__setattr__(self, "fatigue", np.zeros(1))

    def pull(self, rng, counts):
        self.fatigue += 0.01 * counts.sum()
        return super().pull(rng, counts) - counts * self.fatigue * np.arange(3)


class Moody:
    """A noise with state."""

    sigma = 1.0

    def __init__(self):
        self.calls = 0

    def sums(self, rng, means, counts):
        self.calls += 1
        drawn = np.sqrt(counts) * rng.standard_normal(means.shape)
        return counts * (means + np.sin(self.calls) * np.arange(3)) + drawn


@each_policy
def test_every_policy_learns_from_the_environments_own_pull(policy):
    """Where rewards have the opposite sign, what looks best is worst."""
    env = Reversed(FEATURES, PARAMETERS, "gaussian", 0.1)
    run = bandits.simulate(policy, env, 2000, trials=1)
    worst = env.gaps.max(axis=1).mean()
    late = run.regret[0, -1] - run.regret[0, len(run.times) // 2]
    assert late == pytest.approx(worst * 1000, rel=0.05)


@pytest.mark.slow
@each_policy
@pytest.mark.parametrize("kind", ["environment", "noise"])
def test_state_does_not_leak_from_trial_to_trial(policy, kind):
    def env():
        if kind == "environment":
            return Tiring(FEATURES, PARAMETERS)
        return bandits.LinearEnvironment(FEATURES, PARAMETERS, Moody())

    one = env()
    run = bandits.simulate(policy, one, 400, trials=3, seed=1)
    again = bandits.simulate(policy, one, 400, trials=3, seed=1)
    several = bandits.simulate(policy, env(), 400, trials=3, seed=1, n_jobs=2)
    alone = np.array([bandits.simulate(policy, env(), 400, trials=n + 1, seed=1).regret[n] for n in range(3)])
    np.testing.assert_array_equal(run.regret, alone)
    np.testing.assert_array_equal(run.regret, several.regret)
    np.testing.assert_array_equal(run.regret, again.regret)


def test_subclasses_of_a_known_noise_are_asked():
    class Doubled(bandits.noise.Gaussian):
        def sums(self, rng, means, counts):
            return -super().sums(rng, means, counts)

    env = bandits.LinearEnvironment(FEATURES, PARAMETERS, Doubled(0.1))
    assert env.law is None
    run = bandits.simulate(bandits.LocalUCB(), env, 2000, trials=1)
    assert run.regret[0, -1] > 0.8 * 2000 * env.gaps.max(axis=1).mean()


def test_steps_count_regret_as_phases_do():
    env = bandits.LinearEnvironment(FEATURES, PARAMETERS)
    rng = np.random.default_rng(3)
    arms = rng.integers(3, size=(50, 3))
    trial = Trial(env, 50, [10, 30, 50], np.random.default_rng(0))
    for row in arms:
        assert trial.step(row).shape == (3,)
    assert trial.done
    expected = np.cumsum(env.gaps[np.arange(3), arms].mean(axis=1))[[9, 29, 49]]
    # Sums of 50 terms below 1, in two orders.
    np.testing.assert_allclose(trial.record.regret, expected, rtol=1e-13)
    clock = RegretClock(env.gaps, np.array([10, 30, 50]))
    for row in arms:
        clock.advance(np.eye(3, dtype=int)[row], row, 1)
    np.testing.assert_allclose(trial.record.regret, clock.regret, rtol=1e-13)


def test_a_policy_must_play_to_the_horizon():
    class Lazy:
        name = "Lazy"

        def play(self, trial):
            trial.step(np.zeros(3, dtype=int))

    with pytest.raises(ValueError, match="play to the horizon 20; Lazy made 1 pulls"):
        bandits.simulate(Lazy(), bandits.LinearEnvironment(FEATURES, PARAMETERS), 20)


def test_an_environment_that_cannot_be_copied_says_what_to_do():
    class Guarded(Moody):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    env = bandits.LinearEnvironment(FEATURES, PARAMETERS, Guarded())
    with pytest.raises(ValueError, match=r"must be copyable.*lock.*method fresh"):
        bandits.simulate(bandits.FedPE(), env, 100)
