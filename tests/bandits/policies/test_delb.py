"""DELB: how pulls are dealt, what its phases guarantee, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.policies.delb import dealt, estimate, pulls_needed
from optdesign import DesignProblem, certify


def identical(m=5, k=6, d=3, seed=0, scale=0.3):
    """All clients have the same arms."""
    env = bandits.environments.random(1, k, d, seed, shared=True)
    return bandits.LinearEnvironment(np.repeat(env.features, m, axis=0), env.parameters, scale=scale)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any), st.integers(1, 9))
def test_pulls_are_dealt_evenly_and_in_few_pieces(total, clients):
    total = np.array(total)
    shares = dealt(total, clients)
    np.testing.assert_array_equal(shares.sum(axis=0), total)
    loads = shares.sum(axis=1)
    assert loads.max() <= -(-total.sum() // clients)
    assert (shares > 0).sum() <= clients + (total > 0).sum() - 1


@pytest.mark.parametrize("phase", [1, 2, 3])
def test_estimates_of_a_phase_are_within_its_width(phase):
    """For one phase the probability of any miss is at most delta / (l (l + 1)), over 400 draws."""
    env = identical(seed=1)
    x, rng, delta = env.features[0], np.random.default_rng(0), 0.5
    problem = DesignProblem(x)
    design = bandits.ascent(problem, 0.1)
    g = certify(problem, design.weights).g_value
    n = pulls_needed(design.weights, g, phase, env.arms, env.sigma, delta)
    missed = 0
    for _ in range(400):
        sums = rng.normal(n * env.means[0], env.sigma * np.sqrt(n))
        missed += bool(np.any(np.abs(x @ estimate(x, n, sums, 1.0)[0] - env.means[0]) > 0.5**phase))
    assert missed <= 400 * delta / (phase * (phase + 1))


@pytest.mark.parametrize("arms", [2, 50])
@pytest.mark.parametrize("delta", [0.1, 0.9])
def test_failures_of_all_arms_and_phases_add_up_to_delta(arms, delta):
    """n pulls fail an arm with probability 2 exp(-n 4^-l / (2 sigma^2 g)); 1 / (l (l + 1)) sums to one."""
    g, sigma, total = 5.0, 0.7, 0.0
    for phase in range(1, 13):
        n = int(pulls_needed(np.ones(1), g, phase, arms, sigma, delta)[0])
        failure = 2 * arms * np.exp(-n / (2 * sigma**2 * g * 4.0**phase))
        assert 0.9 * delta / (phase * (phase + 1)) < failure <= delta / (phase * (phase + 1)) * (1 + 1e-9)
        total += failure
    assert total <= delta


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_best_arms_survive_and_the_regret_is_that_of_the_phases(seed):
    """Unless a best arm is lost, arms of phase l > 1 are at most 4 * 2^-(l - 1) below the best."""
    env = identical(seed=seed)
    horizon, delta, trials = 6000, 0.1, 100
    run = bandits.simulate(bandits.DELB(delta=delta), env, horizon, trials=trials)
    lost = 0
    for n in run.trials:
        rows = run.phases[run.phases["trial"] == n]
        assert rows["length"].sum() == horizon
        if rows["lost_best"].max() > 0:
            lost += 1
            continue
        width = np.minimum(env.gaps.max(), 8.0 * 0.5 ** rows["phase"])
        assert run.regret[n, -1] <= width @ rows["length"] + 1e-9
    assert lost <= delta * trials
    last = run.phases[run.phases["start"] + run.phases["length"] == horizon]
    assert last["active"].mean() < env.arms, "the instance should see eliminations"


def test_scalars_are_few_and_do_not_grow_with_time():
    env = identical(m=20)
    run = bandits.simulate(bandits.DELB(), env, 5000, trials=2)
    features = env.arms * env.dim
    for row in run.phases:
        support = row["sparsity"] * env.clients
        means = row["uploaded"] - (features if row["phase"] == 1 else 0)
        assert 0 <= means <= env.clients + support
        assert row["downloaded"] <= env.clients * env.dim
    assert run.uploaded.max() == run.phases["uploaded"][run.phases["trial"] == 0].sum()
    short = bandits.simulate(bandits.DELB(), env, 1, trials=1)
    assert short.uploaded[0] == short.downloaded[0] == 0, "no decision depends on a message"


def test_one_arm_is_played_to_the_end():
    env = identical(k=1)
    run = bandits.simulate(bandits.DELB(), env, 50, trials=1)
    assert np.all(run.regret == 0)
    assert len(run.phases) == 1


def test_what_it_needs_is_said():
    with pytest.raises(ValueError, match="same features"):
        bandits.simulate(bandits.DELB(), bandits.environments.random(3, 2, 2, shared=True), 10)
    x = np.ones((3, 2, 2))
    with pytest.raises(ValueError, match="equal parameters"):
        bandits.simulate(bandits.DELB(), bandits.LinearEnvironment(x, [[1.0, 0.0], [0.0, 1.0]]), 10)
    for options, word in [
        ({"delta": 0.0}, "delta"),
        ({"design_gap": 0.0}, "design_gap"),
        ({"sigma": 0.0}, "sigma"),
        ({"design_method": "guess"}, "design_method"),
    ]:
        with pytest.raises(ValueError, match=word):
            bandits.DELB(**options)


def test_pulls_beyond_double_precision_are_refused():
    with pytest.raises(ValueError, match=r"pulls up to 2\^53; with sigma = 1000000000000.0 phase 1 needs 7"):
        pulls_needed(np.array([1.0]), 2.0, 1, 2, 1e12, 0.1)
