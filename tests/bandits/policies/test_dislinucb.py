"""DisLinUCB: against its pseudocode, its confidence, and how often it may synchronise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import environment

import bandits
from bandits.policies.dislinucb import count_scalars

PARAMETERS = ["disjoint", "shared"]


def transcription(env, horizon, threshold, shared, delta=0.1):
    """Play DisLinUCB in plain NumPy, without noise, with arms as vectors of d B coordinates.

    Return the arms of every round and, for every synchronisation, the sets of blocks each client has pulled.
    """
    m, k, d = env.features.shape
    blocks = 1 if shared else k
    z = np.zeros((m, k, blocks, d))
    for a in range(k):
        z[:, a, 0 if shared else a] = env.features[:, a]
    z = z.reshape(m, k, blocks * d)
    size = blocks * d
    w_syn, u_syn = np.zeros((size, size)), np.zeros(size)
    w, u = np.zeros((m, size, size)), np.zeros((m, size))
    last, base = 0, 0.0
    played, syncs, pulled = [], [], [set() for _ in range(m)]
    for t in range(1, horizon + 1):
        arms = []
        for i in range(m):
            v = np.eye(size) + w_syn + w[i]
            theta = np.linalg.solve(v, u_syn + u[i])
            index = []
            for a in range(k):
                b = slice(0, d) if shared else slice(a * d, (a + 1) * d)
                log_det = np.linalg.slogdet(v[b, b])[1]
                beta = math.sqrt(2 * math.log(m * blocks / delta) + log_det) + env.s
                index.append(z[i, a] @ theta + beta * math.sqrt(z[i, a] @ np.linalg.solve(v, z[i, a])))
            arms.append(int(np.argmax(index)))
        played.append(arms)
        for i, a in enumerate(arms):
            pulled[i].add(0 if shared else a)
            w[i] += np.outer(z[i, a], z[i, a])
            u[i] += env.means[i, a] * z[i, a]
        growth = [np.linalg.slogdet(np.eye(size) + w_syn + w[i])[1] - base for i in range(m)]
        if max(growth) * (t - last) > threshold:
            w_syn, u_syn = w_syn + w.sum(axis=0), u_syn + u.sum(axis=0)
            w[:], u[:] = 0.0, 0.0
            last, base = t, np.linalg.slogdet(np.eye(size) + w_syn)[1]
            syncs.append(pulled)
            pulled = [set() for _ in range(m)]
    return np.array(played), syncs


def scalars(syncs, blocks, d):
    """Return the scalars up and down: the length of the shorter list of numbers of each message."""
    up = down = 0
    half = [(j, k) for j in range(d) for k in range(j + 1)]
    for pulled in syncs:
        for i, own in enumerate(pulled):
            others = set().union(*(blocks_ for j, blocks_ in enumerate(pulled) if j != i))
            lengths = []
            for changed in (own, others):
                versions = []
                for sent in (changed, range(blocks)):
                    numbers = [("moment", b, j) for b in sent for j in range(d)]
                    numbers += [("information", b, *entry) for b in sent for entry in half]
                    numbers += [("index", b) for b in sent if sent is changed]
                    versions.append(len(numbers))
                lengths.append(min(versions))
            up += lengths[0]
            down += lengths[1]
    return up, down


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("threshold", [0.0, 3.0, 1e9])
@pytest.mark.parametrize("clients", [1, 4])
def test_decisions_and_scalars_are_those_of_the_pseudocode(parameters, threshold, clients):
    """Rewards without noise make the run a matter of arithmetic."""
    env = environment(parameters, m=clients, scale=0.0)
    horizon = 60
    policy = bandits.DisLinUCB(parameters, threshold, sigma=1.0)
    run = bandits.simulate(policy, env, horizon, trials=1, times=range(1, horizon + 1))
    arms, syncs = transcription(env, horizon, threshold, parameters == "shared")
    lost = env.gaps[np.arange(env.clients), arms].mean(axis=1).cumsum()
    np.testing.assert_allclose(run.regret[0], lost, rtol=1e-9, atol=1e-9)
    blocks = 1 if parameters == "shared" else env.arms
    assert (run.uploaded[0], run.downloaded[0]) == scalars(syncs, blocks, env.dim)
    assert len(syncs) == {0.0: horizon, 1e9: 0}.get(threshold, len(syncs))


@pytest.mark.kernels
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(1, 4).flatmap(
        lambda blocks: st.lists(
            st.sets(st.integers(0, blocks - 1)).map(lambda pulled: (blocks, pulled)), min_size=1, max_size=5
        )
    ),
    st.integers(1, 4),
)
def test_only_changed_models_are_sent(clients, d):
    """One synchronisation, with any sets of pulled blocks."""
    blocks = clients[0][0]
    changed = np.zeros((len(clients), blocks), dtype=bool)
    for i, (_, pulled) in enumerate(clients):
        changed[i, list(pulled)] = True
    sent = np.zeros(2, dtype=np.int64)
    count_scalars(changed, d, sent)
    assert tuple(sent) == scalars([[pulled for _, pulled in clients]], blocks, d)
    assert sent.max() <= len(clients) * blocks * (d * d + d), "never more than all models in full"


@pytest.mark.slow
def test_uploads_are_a_tenth_of_all_models_on_the_authors_instance():
    """Most clients pull few arms between synchronisations; the other clients together pull all of them."""
    env = bandits.environments.authors(100, 10, 3, seed=0)
    policy = WatchedFedUCB()
    WatchedFedUCB.states.clear()
    run = bandits.simulate(policy, env, 2**11, trials=1)
    whole = int(WatchedFedUCB.states[0].releases[0]) * env.clients * env.arms * (3 * 3 + 3)
    assert run.uploaded[0] < 0.2 * whole
    assert run.downloaded[0] <= 0.75 * whole


class WatchedFedUCB(bandits.FedUCB):
    """DisLinUCB that counts its synchronisations; keeps the state of its trials."""

    states: list = []  # noqa: RUF012

    def start(self, trial):
        WatchedFedUCB.states.append(super().start(trial))
        return WatchedFedUCB.states[-1]


class Watched(bandits.DisLinUCB):
    """Keeps the state of its trials."""

    states: list = []  # noqa: RUF012

    def start(self, trial):
        Watched.states.append(super().start(trial))
        return Watched.states[-1]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_all_clients_confidence_ellipsoids_hold(parameters):
    """At the horizon, over 200 trials: some client misses with probability at most delta."""
    env = environment(parameters)
    Watched.states.clear()
    bandits.simulate(Watched(parameters, delta=0.1), env, 80, trials=200)
    theta = np.atleast_2d(env.parameters)
    missed = 0
    for state in Watched.states:
        error = state.model.ridge.theta - theta
        distance = np.sqrt(np.einsum("mbj,mbjk,mbk->mb", error, state.model.ridge.information, error))
        missed += bool(np.any(distance > state.model.width))
    assert missed <= 20


@pytest.mark.slow
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("horizon", [500, 4000])
def test_synchronisations_are_as_few_as_the_proof_says(parameters, horizon):
    """An epoch is longer than a, or its log det grows by more than D / a; both can happen so often only.

    With R the largest log det at the horizon that makes at most T / a + R a / D epochs, for any a > 0.
    """
    env = environment(parameters, m=5, k=4, d=2)
    m, k, d = env.features.shape
    blocks = 1 if parameters == "shared" else k
    WatchedFedUCB.states.clear()
    bandits.simulate(WatchedFedUCB(parameters), env, horizon, trials=3)
    threshold = horizon * math.log(m * horizon) / (d * blocks * m)
    largest = d * blocks * math.log(1 + m * horizon * env.L**2 / (d * blocks))
    length = math.sqrt(threshold * horizon / largest)
    count = np.array([state.releases[0] for state in WatchedFedUCB.states])
    assert np.all(count <= horizon / length + largest * length / threshold + 1)
    assert np.all(count >= 1)


def test_synchronising_helps_and_costs():
    env = environment("shared", m=20, k=6, d=4)
    usual, never, always = (
        bandits.simulate(bandits.DisLinUCB("shared", threshold), env, 2000, trials=4)
        for threshold in (None, 1e12, 0.0)
    )
    assert always.mean[-1] <= usual.mean[-1] <= never.mean[-1]
    assert usual.mean[-1] < 0.5 * never.mean[-1]
    assert never.uploaded.max() == 0
    assert usual.uploaded.max() < 0.1 * always.uploaded.min()


def test_options_are_checked():
    with pytest.raises(ValueError, match="threshold"):
        bandits.DisLinUCB(threshold=-1.0)
    with pytest.raises(ValueError, match="ridge"):
        bandits.DisLinUCB(ridge=-1.0)
    assert bandits.DisLinUCB("shared").name == "DisLinUCB (shared)"
