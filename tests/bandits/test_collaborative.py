"""Collaborative Fed-PE: ordinary least squares on the features, phase by phase or pooled."""

from __future__ import annotations

import numpy as np
import pytest
from play import Rewards, converse

import bandits
from bandits.policies.enhanced import EnhancedClient

SETTING = bandits.CollaborativeFedPE().setting(1, 1, 1, 100, 1.0, 1.0)


class Remembered(Rewards):
    """Keeps the pulls and sums of every exploration."""

    def __init__(self, env):
        super().__init__(env)
        self.seen = []

    def sums(self, pulls, clients=None):
        out = super().sums(pulls, clients)
        self.seen.append((pulls, out))
        return out


@pytest.mark.parametrize("pooling", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_estimates_are_least_squares_on_the_explorations(shared, pooling):
    env = bandits.environments.random(6, 3, 2, seed=2, shared=shared)
    env = bandits.LinearEnvironment(env.features, env.parameters, scale=0.2)
    policy = bandits.CollaborativeFedPE("shared" if shared else "disjoint", pooling=pooling)
    rewards = Remembered(env)
    messages, clients, _ = converse(policy, env, 1500, rewards)
    assert not clients[0].active.all()
    x = env.features
    heard = [m for kind, m in messages if kind == "global"]
    for p, message in enumerate(heard):
        seen = rewards.seen[0 if pooling else p : p + 1]
        pulls = sum(n for n, _ in seen)
        sums = sum(s for _, s in seen)
        information = np.einsum("ia,iaj,iak->ajk", pulls, x, x)
        moment = np.einsum("ia,iaj->aj", sums, x)
        if shared:
            information = np.broadcast_to(information.sum(axis=0), information.shape)
            moment = np.broadcast_to(moment.sum(axis=0), moment.shape)
        v = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
        r = np.einsum("iaj,ajk,ak->ia", x, v, moment)
        width = np.sqrt(np.einsum("iaj,ajk,iak->ia", x, v, x))
        # Condition numbers are below 1e4.
        np.testing.assert_allclose(message.estimate[message.active], r[message.active], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(message.deviation[message.active], width[message.active], rtol=1e-9)


def test_the_default_has_the_intervals_of_all_phases_and_pooling_says_what_it_is():
    assert isinstance(bandits.CollaborativeFedPE().client(np.ones((1, 1, 1)), SETTING), EnhancedClient)
    assert bandits.CollaborativeFedPE().name == "CollaborativeFedPE"
    assert bandits.CollaborativeFedPE("shared", pooling=True).name == "CollaborativeFedPE (shared) (pooling)"


def test_the_ledger_counts_features_once_and_means_after_each_phase():
    env = bandits.environments.authors(6, 4, 2, seed=0)
    messages, _, _ = converse(bandits.CollaborativeFedPE(), env, 800, Rewards(env))
    m, k, d = env.features.shape
    cost = {}
    for kind, message in messages:
        cost.setdefault(kind, []).append(message.scalars)
    plans = [x for kind, x in messages if kind == "plan"]
    assert cost["first"] == [m * k * (d + 1)]
    assert cost["local"] == [int((plan.pulls > 0).sum()) for plan in plans[:-1]]
    assert cost["plan"] == cost["active"] == [int(plan.active.sum()) for plan in plans]
    assert cost["global"] == [2 * m * k, *(2 * int(plan.active.sum()) for plan in plans[:-1])]


def test_full_information_beats_fedpe_on_the_authors_instance():
    """Per-client regret as in figure 1(a): collaborative < enhanced < Fed-PE, far apart."""
    env = bandits.environments.authors(100, 10, 3, seed=0)
    regret = [
        bandits.simulate(policy, env, 2**14, trials=3).mean[-1]
        for policy in (bandits.CollaborativeFedPE(), bandits.EnhancedFedPE(), bandits.FedPE())
    ]
    assert regret[0] < 0.5 * regret[1]
    assert regret[1] < 0.8 * regret[2]
