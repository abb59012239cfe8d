"""Collaborative Fed-PE: ordinary least squares on the features, phase by phase or pooled."""

from __future__ import annotations

import numpy as np
import pytest
from play import Rewards, converse, final_regrets

import bandits
from bandits.policies.enhanced import EnhancedClient
from bandits.protocol import GlobalEstimates

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
    parameters = "shared" if shared else "disjoint"
    policy = bandits.CollaborativeFedPE(parameters, pooling=pooling, protocol="scalars")
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


def test_the_default_intervals_are_those_of_fedpe():
    """The paper calls the algorithm a modified Fed-PE; Enhanced Fed-PE's intervals are an option."""
    features = np.ones((1, 1, 1))
    assert not isinstance(bandits.CollaborativeFedPE().client(features, SETTING), EnhancedClient)
    enhanced = bandits.CollaborativeFedPE(intervals="enhanced")
    assert isinstance(enhanced.client(features, SETTING), EnhancedClient)


@pytest.mark.parametrize("intervals", ["fedpe", "enhanced"])
def test_widths_are_those_of_the_named_algorithm(intervals):
    """Rewards of one phase, estimates and widths given: u = alpha width, or u-bar of the first phase."""
    policy = bandits.CollaborativeFedPE(intervals=intervals, delta=0.2)
    setting = policy.setting(4, 3, 2, 200, 0.5, 1.0)
    client = policy.client(np.ones((4, 3, 2)), setting)
    client.phase = 1
    r, width = np.full((4, 3), 0.3), np.full((4, 3), 0.7)
    estimate, u = client.intervals(r, width)
    prior, v = 2 * 3 / 4, 2 * 3 / 4 + 0.7**2
    expected = setting.alpha * 0.7
    if intervals == "enhanced":
        expected = np.sqrt(v * np.log(v * (4 * 3) ** 2 / (prior * 0.2**2)))
    np.testing.assert_allclose(estimate, 0.3, rtol=1e-15)
    np.testing.assert_allclose(u, expected, rtol=1e-12)


def test_options_are_named_and_checked():
    assert bandits.CollaborativeFedPE().name == "CollaborativeFedPE"
    assert bandits.CollaborativeFedPE(intervals="enhanced").name == "CollaborativeFedPE (enhanced intervals)"
    assert bandits.CollaborativeFedPE("shared", pooling=True).name == "CollaborativeFedPE (shared) (pooling)"
    with pytest.raises(ValueError, match=r"intervals must be one of fedpe, enhanced; got 'wide'"):
        bandits.CollaborativeFedPE(intervals="wide")
    with pytest.raises(ValueError, match=r"intervals must be 'fedpe' with pooling=True"):
        bandits.CollaborativeFedPE(intervals="enhanced", pooling=True)


def costs(messages):
    """Scalars of the messages of every kind."""
    cost = {}
    for kind, message in messages:
        cost.setdefault(kind, []).append(message.scalars)
    return cost


@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
@pytest.mark.parametrize("intervals", ["fedpe", "enhanced"])
def test_the_ledger_is_that_of_fedpe_under_the_same_protocol(protocol, intervals):
    """d per pulled arm up and d + d^2 per arm down, or 1 and 2; the first message is longer by a scalar."""
    env = bandits.environments.authors(6, 4, 2, seed=0)
    policy = bandits.CollaborativeFedPE(protocol=protocol, intervals=intervals)
    messages, _, _ = converse(policy, env, 800, Rewards(env))
    m, k, d = env.features.shape
    cost = costs(messages)
    plans = [x for kind, x in messages if kind == "plan"]
    active = [np.ones((m, k), dtype=bool), *(plan.active for plan in plans[:-1])]
    up, down = (d, d + d * d) if protocol == "vectors" else (1, 2)
    heard = [m * a.any(axis=0).sum() if protocol == "vectors" else a.sum() for a in active]
    assert cost["first"] == [m * k * (d + 1)]
    assert cost["local"] == [up * int((plan.pulls > 0).sum()) for plan in plans[:-1]]
    assert cost["plan"] == cost["active"] == [int(plan.active.sum()) for plan in plans]
    assert cost["global"] == [down * int(n) for n in heard]


@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
def test_a_phase_without_elimination_costs_what_it_costs_fedpe(protocol):
    """With the same active sets and plans the messages of all three variants have the same size."""
    env = bandits.environments.random(5, 3, 2, seed=0)

    def everything(weights, f):
        return np.maximum(bandits.ceiling(weights, f) - 1, 0) + 1

    options = {"protocol": protocol, "sigma": 1e6, "rounding": everything}
    found = [
        costs(converse(kind(**options), env, 500, Rewards(env))[0])
        for kind in (bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE)
    ]
    m, k, _ = env.features.shape
    assert found[0] == found[1]
    assert found[2].pop("first") == [found[0].pop("first")[0] + m * k]
    assert found[2] == found[0]


@pytest.mark.slow
@pytest.mark.parametrize("intervals", ["fedpe", "enhanced"])
@pytest.mark.parametrize("shared", [False, True])
def test_protocols_decide_alike_to_the_last_bit(shared, intervals):
    env = bandits.environments.random(9, 5, 3, seed=7, shared=shared)
    options = {"parameters": "shared" if shared else "disjoint", "intervals": intervals}
    vectors, scalars = (
        converse(bandits.CollaborativeFedPE(**options, protocol=p), env, 5000, Rewards(env))[0]
        for p in ("vectors", "scalars")
    )
    assert isinstance(next(m for kind, m in vectors if kind == "global"), GlobalEstimates)
    for (kind, a), (_, b) in zip(vectors, scalars, strict=True):
        if kind in ("first", "active", "plan"):
            for name, value in vars(a).items():
                np.testing.assert_array_equal(value, getattr(b, name))


@pytest.mark.slow
def test_full_information_beats_fedpe_on_the_authors_instance():
    """Per-client regret: Enhanced Fed-PE lies between Fed-PE and either variant, far from the second one."""
    collaborative = bandits.CollaborativeFedPE(), bandits.CollaborativeFedPE(intervals="enhanced")
    text, published, enhanced, fedpe = final_regrets(
        (*collaborative, bandits.EnhancedFedPE(), bandits.FedPE()), 2**14, trials=3
    )
    assert published < 0.5 * enhanced
    assert text < 0.9 * enhanced
    assert enhanced < 0.8 * fedpe
