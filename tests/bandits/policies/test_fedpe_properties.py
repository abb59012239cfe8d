"""Properties of Fed-PE on arbitrary environments: what must not matter, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits import schedules, theory
from bandits.testing import assert_played, random_environments

stable = settings(deadline=None, derandomize=True, max_examples=40)

KINDS = st.sampled_from([bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])
SCHEDULES = st.sampled_from(
    [schedules.Exponential(), schedules.Exponential(2, 3), schedules.Uniform(20), schedules.Greedy()]
)
SEEDS = st.integers(0, 2**32 - 1)
GAUSSIAN = random_environments(noise="gaussian")


@stable
@given(KINDS, SCHEDULES, random_environments(), st.sampled_from(["vectors", "scalars"]), SEEDS)
def test_every_run_is_well_formed(kind, schedule, env, protocol, seed):
    m, k, d = env.features.shape
    parameters = "shared" if env.shared else "disjoint"
    policy = kind(parameters=parameters, schedule=schedule, protocol=protocol)
    horizon = 20 + seed % 500
    run = bandits.simulate(policy, env, horizon, trials=1, seed=seed)
    assert_played(run, env)
    steps = np.diff(np.append(0.0, run.regret[0])) / np.diff(np.append(0, run.times))
    # A pull costs between nothing and the largest gap, up to the rounding of sums of 500.
    assert np.all((steps >= -1e-12) & (steps <= env.gaps.max() + 1e-12))
    phases = run.phases
    assert np.all((phases["active"] >= 1) & (phases["active"] <= k))
    assert np.all(phases["gap"] <= policy.design_gap)
    assert np.all(phases["sparsity"] >= 1)
    assert phases["length"].sum() == max(horizon - k, 0)
    bound = theory.communication_bound(m, k, d, len(phases), protocol=protocol, shared=env.shared)
    assert run.uploaded[0] <= bound.uploaded
    assert run.downloaded[0] <= bound.downloaded


@stable
@given(KINDS, GAUSSIAN, st.integers(-3, 3), st.sampled_from([1.0, -1.0]), SEEDS)
def test_units_of_the_features_do_not_matter(kind, env, power, sign, seed):
    """x -> c x and theta -> theta / c, for c a power of two or its negative: the same run, bit for bit."""
    c = sign * 2.0**power
    scaled = bandits.LinearEnvironment(c * env.features, env.parameters / c)
    policy = kind(parameters="shared" if env.shared else "disjoint")
    a = bandits.simulate(policy, env, 600, trials=1, seed=seed)
    b = bandits.simulate(policy, scaled, 600, trials=1, seed=seed)
    np.testing.assert_array_equal(a.regret, b.regret)
    np.testing.assert_array_equal(a.phases, b.phases)


@pytest.mark.slow
@stable
@given(KINDS, random_environments(parameters="disjoint", noise="gaussian"), st.integers(-3, 3), SEEDS)
def test_units_of_the_rewards_do_not_matter(kind, env, power, seed):
    """y -> c y for c a power of two: the same decisions, and the regret in the new unit, bit for bit."""
    c = 2.0**power
    scaled = bandits.LinearEnvironment(env.features, c * env.parameters, scale=c)
    a = bandits.simulate(kind(), env, 600, trials=1, seed=seed)
    b = bandits.simulate(kind(), scaled, 600, trials=1, seed=seed)
    np.testing.assert_array_equal(c * a.regret, b.regret)
    for name in ("active", "sparsity", "uploaded", "downloaded"):
        np.testing.assert_array_equal(a.phases[name], b.phases[name])


@stable
@given(random_environments(parameters="disjoint", max_clients=5).filter(lambda env: env.arms > 1), SEEDS)
def test_regret_is_never_negative_and_a_wider_interval_keeps_more_arms(env, seed):
    k = env.arms
    env = bandits.LinearEnvironment(env.features, env.parameters, scale=0.1)
    narrow = bandits.simulate(bandits.FedPE(delta=0.5), env, 400, trials=1, seed=seed)
    wide = bandits.simulate(bandits.FedPE(delta=1e-9), env, 400, trials=1, seed=seed)
    assert narrow.regret.min() >= 0
    # Until the first elimination both runs are the same, so the wide one cannot eliminate earlier.
    first = [np.argmax(np.append(run.phases["active"] < k, True)) for run in (narrow, wide)]
    assert first[0] <= first[1]
