"""Corners of the problem: all of them are defined."""

from __future__ import annotations

import numpy as np
import pytest
from play import Rewards, converse

import bandits
from bandits.environments import LinearEnvironment
from bandits.policies.fedpe import along

POLICIES = [bandits.FedPE(), bandits.EnhancedFedPE(), bandits.CollaborativeFedPE()]
SHARED = [type(p)(parameters="shared") for p in POLICIES]
each_policy = pytest.mark.parametrize("policy", [*POLICIES, *SHARED], ids=lambda p: p.name)


def environment(m, k, d, shared, noise="gaussian", seed=0):
    return bandits.environments.random(m, k, d, seed, shared=shared, noise=noise)


def played(policy, env, horizon, trials=2):
    run = bandits.simulate(policy, env, horizon, trials=trials)
    assert run.times[-1] == horizon
    assert np.all(np.isfinite(run.regret))
    assert np.all(np.diff(run.regret, axis=1) >= -1e-12)
    assert run.regret.max() <= horizon * env.gaps.max() + 1e-9
    return run


@each_policy
@pytest.mark.parametrize(("m", "k", "d"), [(1, 1, 1), (1, 4, 2), (5, 1, 3), (3, 4, 7), (2, 2, 1), (1, 3, 5)])
def test_small_and_lopsided_sizes(policy, m, k, d):
    run = played(policy, environment(m, k, d, policy.shared), 600)
    if k == 1:
        assert np.all(run.regret == 0)


@each_policy
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 11, 12])
def test_horizons_shorter_than_the_first_phase(policy, horizon):
    """K = 4: up to T = 4 only the initial pulls happen, and phase 1 would end at 10."""
    env = environment(3, 4, 2, policy.shared)
    run = played(policy, env, horizon)
    assert len(run.phases) == 2 * len(policy.lengths(horizon, 4))
    if horizon <= 4:
        first = np.cumsum(env.gaps.mean(axis=0))[:horizon]
        np.testing.assert_allclose(run.regret, np.tile(first, (2, 1)), rtol=1e-12)
        assert run.uploaded.max() == run.downloaded.max() == 0


@each_policy
def test_click_rewards_are_often_zero(policy):
    env = environment(6, 3, 2, policy.shared, noise="bernoulli")
    run = played(policy, env, 3000)
    assert run.phases["lost_best"].max() == 0


@each_policy
def test_rewards_that_are_always_zero(policy):
    class Nothing:
        sigma = 1.0

        def sums(self, _, means, counts):
            return 0.0 * means * counts

    x = environment(4, 3, 2, policy.shared).features
    env = LinearEnvironment(x, np.zeros(2) if policy.shared else np.zeros((3, 2)), Nothing())
    run = played(policy, env, 500)
    assert np.all(run.regret == 0)
    assert run.phases["active"].min() == 3, "equal arms are never told apart"


@each_policy
def test_ties_between_optimal_arms_keep_all_of_them(policy):
    x = np.zeros((4, 3, 2))
    x[:, 0] = [1.0, 0.0]
    x[:, 1] = [1.0, 0.0]
    x[:, 2] = [0.0, 1.0]
    theta = np.array([1.0, 0.0])
    env = LinearEnvironment(x, theta if policy.shared else np.tile(theta, (3, 1)), scale=0.3)
    run = played(policy, env, 4000)
    assert env.optimal.sum() == 8
    assert run.phases["lost_best"].max() == 0
    assert run.phases["active"].min() == 2


@each_policy
def test_identical_and_collinear_clients(policy):
    """Features of all clients are multiples of one another: every block has rank one."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((1, 4, 3))
    for scale in (np.ones(6), rng.uniform(0.5, 2.0, 6)):
        x = direction * scale[:, None, None]
        theta = rng.standard_normal(3 if policy.shared else (4, 3))
        env = LinearEnvironment(x, theta, scale=0.5)
        run = played(policy, env, 3000)
        assert run.phases["gap"].max() <= 0.1


@pytest.mark.parametrize("angle", [1e-4, 1e-6, 1e-9, 1e-12])
def test_nearly_parallel_features_do_not_break_the_widths(angle):
    """Whether two directions count as one or two, nobody becomes sure of what they do not know."""
    x = np.zeros((2, 2, 2))
    x[0] = [1.0, 0.0]
    x[1] = [np.cos(angle), np.sin(angle)]
    env = LinearEnvironment(x, [[0.5, 0.3], [0.2, 0.1]], scale=0.2)
    messages, clients, _ = converse(bandits.FedPE(), env, 2000, Rewards(env))
    assert clients[0].active[:, 0].all()
    pulls, active = np.ones((2, 2)), np.ones((2, 2), dtype=bool)
    for kind, message in messages:
        if kind == "plan":
            pulls, active = message.pulls, message.active
        if kind == "global":
            square = along(clients[0].direction, active, message).deviation ** 2
            # A variance lies between that of pooling all pulls of the arm and that of one's own alone; at
            # small angles double precision leaves three digits of it.
            pooled = 1 / np.broadcast_to(np.maximum(pulls.sum(axis=0), 1), (2, 2))
            own = np.divide(1.0, pulls, out=np.full((2, 2), np.inf), where=pulls > 0)
            assert np.all((square >= 0.99 * pooled)[active])
            assert np.all((square <= 1.01 * own)[active])


def test_opposite_features_are_collinear():
    x = np.ones((2, 2, 1))
    x[1] = -1.0
    env = LinearEnvironment(x, [[0.9], [0.1]], scale=0.1)
    run = played(bandits.FedPE(), env, 1000)
    assert run.phases["lost_best"].max() == 0
    assert run.phases["active"][-1] == 1


def test_an_optimal_arm_is_dropped_only_with_bad_luck_and_it_is_recorded():
    """Widths that are far too small must lose best arms, and the record must show it."""
    env = bandits.environments.authors(5, 4, 2, seed=0)
    run = bandits.simulate(bandits.FedPE(sigma=1e-3), env, 500, trials=5)
    assert run.phases["lost_best"].max() > 0


def test_a_client_may_stop_exploring_an_arm_that_others_explore():
    """Arms with zero weight are not estimated: nothing divides by zero, and nothing is sent for them."""
    env = bandits.environments.authors(12, 5, 2, seed=0)
    messages, _, _ = converse(bandits.FedPE(), env, 600, Rewards(env))
    plans = [m for kind, m in messages if kind == "plan"]
    local = [m for kind, m in messages if kind == "local"]
    assert any(((p.pulls == 0) & p.active).any() for p in plans)
    for plan, estimates in zip(plans, local, strict=False):
        np.testing.assert_array_equal(estimates.pulled, plan.pulls > 0)
        assert np.all(estimates.values[~estimates.pulled] == 0)
