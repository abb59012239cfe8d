"""FedUCB: DisLinUCB without privacy; with it, the law of its noise and what still holds under it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import model_of
from scipy.special import ndtr

import bandits
from bandits.policies.feducb import grow, node_deviation, noise_norm

PARAMETERS = ["disjoint", "shared"]


def environment(parameters, m=4, k=3, d=2, seed=0, noise="bounded", scale=0.5):
    env = bandits.environments.random(m, k, d, seed, shared=parameters == "shared")
    return bandits.LinearEnvironment(env.features, env.parameters, noise, scale)


class Watched(bandits.FedUCB):
    """Keeps the state of its trials."""

    states: list = []  # noqa: RUF012

    def start(self, trial):
        Watched.states.append(super().start(trial))
        return Watched.states[-1]


def watched(env, horizon, trials, **options):
    Watched.states.clear()
    run = bandits.simulate(Watched(**options), env, horizon, trials=trials)
    return run, list(Watched.states)


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_without_privacy_it_is_dislinucb(parameters):
    env = environment(parameters, noise="gaussian")
    horizon = 100
    a = bandits.simulate(bandits.FedUCB(parameters), env, horizon, trials=2)
    b = bandits.simulate(bandits.DisLinUCB(parameters), env, horizon, trials=2)
    np.testing.assert_allclose(a.regret, b.regret, rtol=1e-9)
    np.testing.assert_array_equal(a.uploaded, b.uploaded)
    np.testing.assert_array_equal(a.downloaded, b.downloaded)


@pytest.mark.kernels
@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(1, 200))
def test_the_tree_has_a_node_per_binary_digit(n):
    """After release n exactly the digits of n have noise, a digit's drawn when its interval was complete."""
    nodes = np.zeros((8, 1, 3, 3))
    rng = np.random.default_rng(0)
    for k in range(1, n + 1):
        before = nodes.copy()
        grow(nodes, k, 1.0, rng)
        digits = [bool((k >> level) & 1) for level in range(8)]
        assert [bool(np.any(node != 0)) for node in nodes] == digits
        changed = [level for level in range(8) if digits[level] and np.any(nodes[level] != before[level])]
        assert changed == [digits.index(True)], "one new node a release"
    np.testing.assert_array_equal(nodes, np.swapaxes(nodes, 2, 3))


def test_the_gaussian_mechanism_is_calibrated():
    """Deviation = sensitivity sqrt(2 log(1.25 / delta)) / epsilon, for the worst pair of observations."""
    rng = np.random.default_rng(0)
    height, size = 5, 2.0
    v, w = rng.standard_normal((2, 1000, 4))
    for x in (v, w):
        x *= (math.sqrt(size) / np.linalg.norm(x, axis=1))[:, None]
    moved = np.einsum("ni,nj->nij", v, v) - np.einsum("ni,nj->nij", w, w)
    worst = math.sqrt(height) * np.linalg.norm(moved, axis=(1, 2)).max()
    scale = node_deviation(height, size, 0.5, 1e-3) * 0.5 / math.sqrt(2 * math.log(1250))
    assert worst <= scale
    assert scale == pytest.approx(math.sqrt(2 * height) * size)


@pytest.mark.parametrize("dim", [2, 5])
def test_the_norm_of_the_noise_is_bounded(dim):
    """With failure 0.05 over 2000 draws: at most 100 misses expected, far fewer seen."""
    rng = np.random.default_rng(0)
    z = np.tril(rng.standard_normal((2000, dim, dim)))
    z = z + np.swapaxes(np.tril(z, -1), 1, 2)
    norms = np.abs(np.linalg.eigvalsh(z)).max(axis=1)
    assert np.mean(norms > noise_norm(1.0, dim, 0.05)) <= 0.05


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_uploads_carry_the_noise_of_all_clients_and_nothing_else(parameters):
    """What is released is the exact sums, the diagonal, and noise of the stated variance: z-test at z = 5."""
    env = environment(parameters)
    options = {"parameters": parameters, "epsilon": 1.0, "period": 10, "reward_bound": 2.0}
    _, states = watched(env, 30, 200, **options)
    entries = []
    for state in states:
        assert state.releases[0] == 3
        d = env.dim
        exact = state.total.information[0] + state.diagonal * np.eye(d)
        noise = model_of(state).ridge.information[0] - exact
        np.testing.assert_allclose(noise, state.nodes.sum(axis=0)[:, :d, :d], atol=1e-6 * state.diagonal)
        entries.extend(noise[:, *np.tril_indices(d)].ravel())
    height = 2  # three releases
    alone = node_deviation(height, env.L**2 + 4.0, 1.0, 0.1 / (env.clients * 30))
    variance = 2 * env.clients * alone**2  # 3 has two binary digits
    ratio = np.array(entries) ** 2 / variance
    assert abs(ratio.mean() - 1) <= 5 * math.sqrt(2 / len(ratio))


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("options", [{"period": 20}, {"threshold": 0.0}])
def test_matrices_stay_definite_and_intervals_hold(parameters, options):
    """With probability 1 - delta, over 100 trials, for all clients at the horizon."""
    env = environment(parameters)
    _, states = watched(env, 60, 100, parameters=parameters, epsilon=0.8, delta=0.1, **options)
    theta = np.atleast_2d(env.parameters)
    missed = 0
    for state in states:
        lowest = np.linalg.eigvalsh(model_of(state).ridge.information).min()
        error = model_of(state).ridge.theta - theta
        distance = np.sqrt(np.einsum("mbj,mbjk,mbk->mb", error, model_of(state).ridge.information, error))
        missed += bool(
            lowest < model_of(state).ridge.ridge * (1 - 1e-12) or np.any(distance > model_of(state).width)
        )
    assert missed <= 10


class LiteralFedUCB:
    """FedUCB with privacy in plain NumPy: lists of observations, one noise matrix per dyadic interval."""

    def __init__(self, env, horizon, period, *, epsilon, bound, delta, weight, shared, rng):
        m, k, d = env.features.shape
        self.env, self.bound, self.rng, self.shared = env, bound, rng, shared
        self.blocks, self.d, self.count = (1 if shared else k), d, 0
        releases = horizon // period
        height = int(math.log2(releases)) + 1
        sensitivity = math.sqrt(2 * height) * (env.L**2 + bound**2)
        privacy = delta / (m * horizon)
        self.entry = math.sqrt(m) * sensitivity * math.sqrt(2 * math.log(1.25 / privacy)) / epsilon
        failure = delta / (4 * releases * self.blocks)
        spread = self.entry * math.sqrt(height)
        u = spread * (2 * math.sqrt(d + 1) + 2 * math.sqrt(math.log(1 / failure)))
        self.low, self.diagonal = weight + u, weight + 2 * u
        self.log_term = 2 * math.log(2 * m * self.blocks / delta)
        self.bias = env.s * math.sqrt(weight + 3 * u) + u / math.sqrt(self.low)
        self.uploaded = []
        self.own = [[] for _ in range(m)]
        self.nodes = {}

    def model(self, i, b):
        """A, the estimate and the radius of client i for block b."""
        a, moment = self.low * np.eye(self.d), np.zeros(self.d)
        if self.count:
            noise = sum(self.nodes[self.count, level][b] for level in self.digits())
            a = self.diagonal * np.eye(self.d) + noise[:-1, :-1]
            moment = noise[-1, :-1].copy()
        for block, x, y in self.uploaded:
            if block == b:
                a, moment = a + np.outer(x, x), moment + x * min(max(y, -self.bound), self.bound)
        for block, x, y in self.own[i]:
            if block == b:
                a, moment = a + np.outer(x, x), moment + x * y
        growth = np.linalg.slogdet(a)[1] - self.d * math.log(self.low)
        return a, np.linalg.solve(a, moment), self.env.sigma * math.sqrt(self.log_term + growth) + self.bias

    def choose(self, i):
        index = []
        for arm, x in enumerate(self.env.features[i]):
            a, theta, radius = self.model(i, 0 if self.shared else arm)
            index.append(x @ theta + radius * math.sqrt(x @ np.linalg.solve(a, x)))
        return int(np.argmax(index))

    def digits(self):
        return [level for level in range(self.count.bit_length()) if (self.count >> level) & 1]

    def release(self):
        """Upload everything; the lowest digit of the count is a new interval, the others are old ones."""
        before, self.count = self.count, self.count + 1
        for level in self.digits()[1:]:
            self.nodes[self.count, level] = self.nodes[before, level]
        fresh = np.zeros((self.blocks, self.d + 1, self.d + 1))
        for b in range(self.blocks):
            for j in range(self.d + 1):
                for k in range(j + 1):
                    fresh[b, j, k] = fresh[b, k, j] = self.entry * self.rng.standard_normal()
        self.nodes[self.count, self.digits()[0]] = fresh
        self.uploaded += [one for own in self.own for one in own]
        self.own = [[] for _ in self.own]


@pytest.mark.slow
@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_private_models_are_those_of_the_transcription(parameters):
    """Arms, estimates, matrices and radii of all clients after every round, on the same stream of noise."""
    env = environment(parameters, m=3)
    horizon, period, shared = 23, 3, parameters == "shared"
    options = {"epsilon": 0.9, "delta": 0.2, "reward_bound": 0.6, "ridge": 0.5}
    policy = bandits.FedUCB(parameters, period=period, **options)
    trial = bandits.Trial(env, horizon, [horizon], np.random.default_rng(4))
    state, sent = policy.start(trial), np.zeros(2, dtype=np.int64)
    twin = LiteralFedUCB(
        env, horizon, period, epsilon=0.9, bound=0.6, delta=0.2, weight=0.5, shared=shared,
        rng=np.random.default_rng(4),
    )  # fmt: skip
    rewards = np.random.default_rng(5)
    for t in range(1, horizon + 1):
        arms = [policy.choose(state, i, t, trial.rng) for i in range(env.clients)]
        assert arms == [twin.choose(i) for i in range(env.clients)]
        for i, arm in enumerate(arms):
            y = rewards.normal(env.means[i, arm])
            policy.observe(state, i, arm, y)
            twin.own[i].append((0 if shared else arm, env.features[i, arm], y))
        policy.synchronise(state, t, trial.rng, sent)
        if t % period == 0:
            twin.release()
        for i in range(env.clients):
            for b in range(twin.blocks):
                # Condition numbers are below 10.
                a, theta, radius = twin.model(i, b)
                np.testing.assert_allclose(model_of(state).ridge.information[i, b], a, rtol=1e-11)
                np.testing.assert_allclose(model_of(state).ridge.theta[i, b], theta, rtol=1e-9, atol=1e-12)
                assert model_of(state).width[i, b] == pytest.approx(radius, rel=1e-11)
    assert twin.count == state.releases[0] == 7
    assert tuple(sent) == (7 * 3 * twin.blocks * (3 + 2),) * 2


def test_privacy_costs_regret():
    env = environment("shared", m=10, k=5, d=3, seed=1)
    none, loose, strict = (
        bandits.simulate(bandits.FedUCB("shared", epsilon=epsilon, period=50), env, 3000, trials=4).mean[-1]
        for epsilon in (None, 1.0, 0.05)
    )
    assert none < loose < strict


def test_a_period_fixes_when_to_synchronise():
    env = environment("shared")
    run = bandits.simulate(bandits.FedUCB("shared", period=7), env, 100, trials=1)
    assert run.uploaded[0] == run.downloaded[0] == 14 * env.clients * (3 + 2)


@pytest.mark.kernels
def test_private_uploads_do_not_show_which_arms_were_pulled():
    """All models are sent in every release, whatever was pulled; without privacy those that changed."""
    env = environment("disjoint", k=5)
    whole = 3 * env.clients * 5 * (3 + 2)
    private = bandits.simulate(bandits.FedUCB(epsilon=1.0, period=2), env, 6, trials=2)
    plain = bandits.simulate(bandits.FedUCB(period=2), env, 6, trials=2)
    assert set(private.uploaded) == set(private.downloaded) == {whole}
    assert plain.uploaded.max() < whole


@pytest.mark.parametrize(("m", "horizon"), [(1, 1), (3, 10), (100, 2**17)])
def test_the_default_privacy_delta_is_below_one_over_t(m, horizon):
    """The probabilities of all M T observations add up to delta."""
    level = bandits.FedUCB(delta=0.2)._privacy_delta(m, horizon)
    assert level < 1 / horizon
    assert level * m * horizon == pytest.approx(0.2, rel=1e-12)


def test_a_privacy_delta_of_one_over_t_or_more_is_refused():
    env = environment("shared")
    policy = bandits.FedUCB("shared", epsilon=1.0, privacy_delta=1e-3)
    bandits.simulate(policy, env, 999, trials=1)
    with pytest.raises(ValueError, match=r"privacy_delta must be below 1 / horizon = 0.001, .* got 0.001"):
        bandits.simulate(policy, env, 1000, trials=1)
    without = bandits.FedUCB("shared", privacy_delta=1e-3)
    bandits.simulate(without, env, 1000, trials=1)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_confidence_level_does_not_depend_on_the_horizon(parameters):
    """delta' = delta / (2 M B), half the level of DisLinUCB; only bounds on noise depend on releases."""
    env = environment(parameters)
    count = 3 if parameters == "disjoint" else 1
    for horizon in (10, 10_000):
        trial = bandits.Trial(env, horizon, [horizon], np.random.default_rng(0))
        state = bandits.FedUCB(parameters, delta=0.2, epsilon=1.0).start(trial)
        assert model_of(state).confidence.log_term == pytest.approx(
            2 * math.log(2 * env.clients * count / 0.2), rel=1e-12
        )


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("failure", [1e-12, 1e-7, 1e-3, 0.1])
def test_the_gaussian_mechanism_has_the_stated_privacy(epsilon, failure):
    """The exact delta of the mechanism (Balle, Wang 2018) at the chosen deviation is at most the stated one.

    With r = sensitivity / deviation: delta = Phi(r / 2 - epsilon / r) - e^epsilon Phi(-r / 2 - epsilon / r).
    """
    r = math.sqrt(2.0) / node_deviation(1, 1.0, epsilon, failure)
    exact = ndtr(r / 2 - epsilon / r) - math.exp(epsilon) * ndtr(-r / 2 - epsilon / r)
    assert 0 <= exact <= failure


def test_rewards_are_clipped_in_uploads_only():
    env = bandits.LinearEnvironment(np.ones((2, 1, 1)), [[5.0]], scale=0.0)
    options = {"sigma": 1.0, "epsilon": 1.0, "period": 4, "reward_bound": 2.0}
    _, states = watched(env, 6, 1, **options)
    assert states[0].total.moment[0, 0, 0] == 2 * 4 * 2.0
    # Since the release client 1 has seen two more rewards, as they are.
    assert model_of(states[0]).ridge.moment[1, 0, 0] == pytest.approx(
        16 + states[0].nodes.sum(axis=0)[0, 1, 0] + 10
    )


def test_options_are_checked():
    for options, word in [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 2.0}, "epsilon"),
        ({"privacy_delta": 1.0}, "privacy_delta"),
        ({"reward_bound": 0.0}, "reward_bound"),
        ({"period": 0}, "period"),
        ({"threshold": -1.0}, "threshold"),
    ]:
        with pytest.raises(ValueError, match=word):
            bandits.FedUCB(**options)
    assert bandits.FedUCB("shared", epsilon=0.5).name == "FedUCB (shared) (epsilon = 0.5)"
