"""Local UCB: the index, the kernel against a plain twin, and its regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bandits
from bandits.policies.local_ucb import exploration


class Silent:
    """Rewards without noise, with the widths of noise."""

    sigma = 1.0

    def sums(self, _, means, counts):
        return means * counts


def twin(means, horizon, level):
    """Ten lines of plain Python: one client, rewards without noise."""
    count, total, pulls = [0] * len(means), [0.0] * len(means), []
    for t in range(1, horizon + 1):
        if t <= len(means):
            a = t - 1
        else:
            a = max(range(len(means)), key=lambda b: total[b] / count[b] + math.sqrt(level(t) / count[b]))
        count[a] += 1
        total[a] += means[a]
        pulls.append(a)
    return pulls


LEVELS = {
    "authors": lambda t: 2 * math.log(1 + t * math.log(t) ** 2),
    "ucb1": lambda t: 8 * math.log(t),
}


@pytest.mark.kernels
@pytest.mark.parametrize("index", LEVELS)
@pytest.mark.parametrize("compiled", [True, False])
def test_pulls_are_those_of_a_plain_twin(index, compiled):
    x = np.random.default_rng(0).uniform(0.1, 1.0, (3, 4, 1))
    noise = bandits.noise.Gaussian(0.0) if compiled else Silent()
    env = bandits.LinearEnvironment(x, np.ones((4, 1)), noise)
    horizon = 300
    run = bandits.simulate(
        bandits.LocalUCB(index, sigma=1.0), env, horizon, trials=1, times=range(1, horizon + 1)
    )
    expected = np.zeros(horizon)
    for i in range(3):
        expected += np.cumsum(env.gaps[i][twin(env.means[i], horizon, LEVELS[index])]) / 3
    np.testing.assert_allclose(run.regret[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("index", LEVELS)
def test_the_table_is_the_formula(index):
    table = exploration(index, 1000)
    expected = [math.sqrt(LEVELS[index](t)) for t in range(1, 1001)]
    np.testing.assert_allclose(table[1:], expected, rtol=1e-12)


@pytest.mark.kernels
@pytest.mark.parametrize("noise", ["gaussian", "bernoulli", "two-point", "bounded"])
def test_every_noise_runs_and_learns(noise):
    options = {} if noise == "bernoulli" else {"scale": 0.3}
    env = bandits.LinearEnvironment(np.ones((2, 3, 1)), [[0.1], [0.9], [0.2]], noise, **options)
    run = bandits.simulate(bandits.LocalUCB(), env, 400, trials=2)
    worst = 400 * 0.8
    assert np.all(run.regret[:, -1] < worst / 3)
    assert run.uploaded.sum() == run.downloaded.sum() == len(run.phases) == 0


@pytest.mark.slow
def test_kernel_and_round_by_round_play_have_the_same_mean_regret():
    """Two-sample z-test at z = 5: a false alarm has odds of 6e-7."""

    class Plain:
        """Gaussian noise that the kernel does not know."""

        sigma = 1.0

        def sums(self, rng, means, counts):
            return bandits.noise.Gaussian(1.0).sums(rng, means, counts)

    x, theta = np.ones((40, 3, 1)), [[0.1], [0.9], [0.2]]
    a = bandits.simulate(bandits.LocalUCB(), bandits.LinearEnvironment(x, theta), 300, trials=30)
    b = bandits.simulate(bandits.LocalUCB(), bandits.LinearEnvironment(x, theta, Plain()), 300, trials=30)
    error = np.sqrt((a.std[-1] ** 2 + b.std[-1] ** 2) / 30)
    assert abs(a.mean[-1] - b.mean[-1]) <= 5 * error


def test_short_horizons_and_names():
    env = bandits.environments.authors(2, 5, 2)
    run = bandits.simulate(bandits.LocalUCB(), env, 3, trials=1)
    np.testing.assert_allclose(run.regret[0], np.cumsum(env.gaps.mean(axis=0))[:3])
    assert bandits.LocalUCB("ucb1").name == "LocalUCB (ucb1)"
    with pytest.raises(ValueError, match="index"):
        bandits.LocalUCB("best")
    with pytest.raises(ValueError, match="sigma"):
        bandits.LocalUCB(sigma=0.0)
