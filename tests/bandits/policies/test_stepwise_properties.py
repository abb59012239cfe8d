"""Properties of step-wise policies on arbitrary environments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.policies import stepwise
from bandits.testing import assert_played, random_environments

stable = settings(deadline=None, derandomize=True, max_examples=60)

KINDS = st.sampled_from(
    [
        bandits.LinUCB,
        bandits.LinTS,
        lambda parameters: bandits.LinTS(parameters, "worst-case"),
        lambda parameters: bandits.LinTS(parameters, "sigma"),
        bandits.DisLinUCB,
        bandits.FedUCB,
        lambda parameters: bandits.FedUCB(parameters, epsilon=0.5, period=11),
        lambda _: bandits.LocalUCB(),
        lambda _: bandits.LocalUCB("ucb1"),
    ]
)
GAUSSIAN = random_environments(parameters="disjoint", noise="gaussian")
SEEDS = st.integers(0, 2**32 - 1)


@stable
@given(KINDS, random_environments(), st.integers(1, 300), SEEDS)
def test_every_run_is_well_formed(kind, env, horizon, seed):
    policy = kind("shared" if env.shared else "disjoint")
    run = bandits.simulate(policy, env, horizon, trials=1, seed=seed)
    assert_played(run, env)
    steps = np.diff(np.append(0.0, run.regret[0])) / np.diff(np.append(0, run.times))
    # A pull costs between nothing and the largest gap, up to the rounding of sums of 300.
    assert np.all((steps >= -1e-12) & (steps <= env.gaps.max() + 1e-12))
    assert run.uploaded[0] >= 0
    assert len(run.phases) == 0
    if env.arms == 1:
        assert np.all(run.regret == 0)


@pytest.mark.slow
@stable
@given(KINDS, GAUSSIAN, st.integers(2, 60), SEEDS)
def test_how_many_rounds_a_call_plays_does_not_matter(kind, env, steps, seed):
    whole = bandits.simulate(kind("disjoint"), env, 100, trials=1, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepwise, "STEPS_PER_CALL", steps)
        parts = bandits.simulate(kind("disjoint"), env, 100, trials=1, seed=seed)
    np.testing.assert_array_equal(whole.regret, parts.regret)
    np.testing.assert_array_equal(whole.uploaded, parts.uploaded)


@pytest.mark.slow
@stable
@given(st.sampled_from([bandits.LinUCB, bandits.DisLinUCB]), GAUSSIAN, SEEDS)
def test_rotations_of_the_features_do_not_matter(kind, env, seed):
    """x -> Q x and theta -> Q theta for an orthogonal Q: ridge regression does not see it, but for rounding.

    A tie that is broken by rounding may change what is played, so rewards have no noise and arms are random.
    """
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((env.dim, env.dim)))[0]
    plain = bandits.LinearEnvironment(env.features, env.parameters, scale=0.0, s=2.0)
    turned = bandits.LinearEnvironment(env.features @ q.T, env.parameters @ q.T, scale=0.0, s=2.0)
    a, b = (bandits.simulate(kind(sigma=1.0), e, 80, trials=1) for e in (plain, turned))
    np.testing.assert_allclose(a.regret, b.regret, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [bandits.LinUCB, bandits.LinTS, bandits.DisLinUCB])
def test_shared_and_disjoint_are_the_same_for_one_arm_each(kind):
    """With K = 1 there is one parameter either way."""
    env = bandits.environments.random(5, 1, 3, shared=True)
    a, b = (bandits.simulate(kind(p), env, 50, trials=1) for p in ("shared", "disjoint"))
    np.testing.assert_array_equal(a.regret, b.regret)
    np.testing.assert_array_equal(a.uploaded, b.uploaded)
