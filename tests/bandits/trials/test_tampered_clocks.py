"""Policies that write to the clock, rewards that overflow, and designs of a wrong type."""

import numpy as np
import pytest

import bandits


class Policy:
    """Pull arm 0 in every step, and then change the trial."""

    name = "Tamper"

    def __init__(self, change, before=False):
        self.change, self.before = change, before

    def play(self, trial):
        if self.before:
            self.change(trial)
        while not trial.done:
            trial.step(np.zeros(trial.env.clients, dtype=np.int64))
        if not self.before:
            self.change(trial)


@pytest.fixture
def env():
    return bandits.environments.authors(3, 3, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda trial: trial.clock.regret.fill(-3.0),
        lambda trial: trial.clock.regret[::-1].sort(),
        lambda trial: setattr(trial.clock, "regret", np.zeros(2)),
        lambda trial: setattr(trial.clock, "regret", None),
        lambda trial: trial.clock.regret.fill(np.inf),
    ],
)
def test_a_regret_that_no_pulls_have_is_refused(env, change):
    with pytest.raises(ValueError, match=r"regret must (be finite|not fall)"):
        bandits.simulate(Policy(change), env, 20, trials=1)


def test_changed_gaps_are_refused(env):
    with pytest.raises(ValueError, match="gaps of the clock must be those of the environment"):
        bandits.simulate(Policy(lambda trial: trial.clock.gaps.fill(0.0), before=True), env, 20, trials=1)


class Overflowing(bandits.LinearEnvironment):
    """Rewards of 1e308, whose estimates overflow."""

    def pull(self, rng, counts):  # noqa: ARG002
        return 1e308 * (counts > 0)


@pytest.mark.parametrize(
    "policy", [bandits.FedPE(), bandits.LinUCB(), bandits.LocalUCB()], ids=lambda p: p.name
)
def test_rewards_whose_estimates_overflow_are_refused(env, policy):
    with pytest.raises(ValueError, match="rewards must be at most"):
        bandits.simulate(policy, Overflowing(env.features, env.parameters), 50, trials=1)


@pytest.mark.parametrize("result", [None, (np.ones(9) / 3, 0), 1.0], ids=repr)
def test_a_design_of_a_wrong_type_is_named(env, result):
    def wrong(problem, gap, start=None):  # noqa: ARG001
        return result

    policy = bandits.FedPE(design=wrong)
    with pytest.raises(ValueError, match="design must return weights and iterations"):
        bandits.simulate(policy, env, 50, trials=1)
