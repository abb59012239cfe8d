"""DisLinUCB: against its pseudocode, its confidence, and how often it may synchronise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bandits

PARAMETERS = ["disjoint", "shared"]


def environment(parameters, m=4, k=3, d=2, seed=0, scale=1.0):
    env = bandits.environments.random(m, k, d, seed, shared=parameters == "shared")
    return bandits.LinearEnvironment(env.features, env.parameters, scale=scale)


def transcription(env, horizon, threshold, shared, delta=0.1):
    """DisLinUCB in plain NumPy, without noise, arms as vectors of d B coordinates. Returns arms and syncs."""
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
    played, syncs = [], []
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
            w[i] += np.outer(z[i, a], z[i, a])
            u[i] += env.means[i, a] * z[i, a]
        growth = [np.linalg.slogdet(np.eye(size) + w_syn + w[i])[1] - base for i in range(m)]
        if max(growth) * (t - last) > threshold:
            w_syn, u_syn = w_syn + w.sum(axis=0), u_syn + u.sum(axis=0)
            w[:], u[:] = 0.0, 0.0
            last, base = t, np.linalg.slogdet(np.eye(size) + w_syn)[1]
            syncs.append(t)
    return np.array(played), syncs


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("threshold", [0.0, 3.0, 1e9])
def test_decisions_are_those_of_the_pseudocode(parameters, threshold):
    """Rewards without noise make the run a matter of arithmetic."""
    env = environment(parameters, scale=0.0)
    horizon = 60
    policy = bandits.DisLinUCB(parameters, threshold, sigma=1.0)
    run = bandits.simulate(policy, env, horizon, trials=1, times=range(1, horizon + 1))
    arms, syncs = transcription(env, horizon, threshold, parameters == "shared")
    lost = env.gaps[np.arange(env.clients), arms].mean(axis=1).cumsum()
    np.testing.assert_allclose(run.regret[0], lost, rtol=1e-9, atol=1e-9)
    blocks = 1 if parameters == "shared" else env.arms
    assert run.uploaded[0] == run.downloaded[0] == len(syncs) * env.clients * blocks * (4 + 2)
    assert len(syncs) == {0.0: horizon, 1e9: 0}.get(threshold, len(syncs))


class Watched(bandits.DisLinUCB):
    """Keeps the state of its trials."""

    states: list = []  # noqa: RUF012

    def start(self, trial):
        Watched.states.append(super().start(trial))
        return Watched.states[-1]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_all_clients_confidence_ellipsoids_hold(parameters):
    """At the horizon, over 200 trials: some client misses with probability at most delta."""
    env = environment(parameters)
    Watched.states.clear()
    bandits.simulate(Watched(parameters, delta=0.1), env, 80, trials=200)
    theta = np.atleast_2d(env.parameters)
    missed = 0
    for state in Watched.states:
        error = state.model.theta - theta
        distance = np.sqrt(np.einsum("mbj,mbjk,mbk->mb", error, state.model.information, error))
        missed += bool(np.any(distance > state.width))
    assert missed <= 20


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("horizon", [500, 4000])
def test_synchronisations_are_as_few_as_the_proof_says(parameters, horizon):
    """An epoch is longer than a, or its log det grows by more than D / a; both can happen so often only.

    With R the largest log det at the horizon that makes at most T / a + R a / D epochs, for any a > 0.
    """
    env = environment(parameters, m=5, k=4, d=2)
    m, k, d = env.features.shape
    blocks = 1 if parameters == "shared" else k
    run = bandits.simulate(bandits.DisLinUCB(parameters), env, horizon, trials=3)
    threshold = horizon * math.log(m * horizon) / (d * blocks * m)
    largest = d * blocks * math.log(1 + m * horizon * env.L**2 / (d * blocks))
    length = math.sqrt(threshold * horizon / largest)
    count = run.uploaded / (m * blocks * (d * d + d))
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
