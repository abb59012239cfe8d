"""Fed-PE against a literal transcription, and the promises its state machines make."""

from __future__ import annotations

import literal
import numpy as np
import pytest
from play import Rewards, converse

import bandits
from bandits.policies.design import ascent
from bandits.policies.fedpe import along, directions
from bandits.protocol import FirstEstimates, GlobalEstimates, Projections
from bandits.trials.regret import RegretClock
from optdesign import DesignProblem

GAP = 0.1
ENV = bandits.environments.authors(8, 4, 2, seed=1)


def same_design(shared, gap=GAP):
    """The package's design solver, asked by the transcription."""

    def design(direction, active):
        m, k = 1 + max(i for i, _ in direction), 1 + max(a for _, a in direction)
        e = np.array([[direction[i, a] for a in range(k)] for i in range(m)])
        mask = np.array([[a in active[i] for a in range(k)] for i in range(m)])
        problem = (DesignProblem.shared if shared else DesignProblem.disjoint)(e, mask)
        weights = problem.to_grid(ascent(problem, gap).weights)
        return {(i, a): weights[i, a] for i in range(m) for a in active[i]}

    return design


def transcription(policy, env, horizon, rewards):
    setting = policy.setting(env.clients, env.arms, env.dim, horizon, env.ell, env.sigma)
    pooling = getattr(policy, "pooling", False)
    collaborative = isinstance(policy, bandits.CollaborativeFedPE)
    if isinstance(policy, bandits.EnhancedFedPE) or getattr(policy, "intervals", "") == "enhanced":
        m, k, d = env.features.shape
        intervals = literal.enhanced_intervals(
            m, k, d, 0.1, setting.lengths, sigma=env.sigma, shared=policy.shared
        )
    else:
        intervals = literal.fedpe_intervals(setting.alpha)
    return literal.run(
        env.features,
        setting.lengths,
        horizon,
        ell=env.ell,
        sigma=env.sigma,
        draw=rewards.draw,
        design=same_design(policy.shared),
        intervals=intervals,
        shared=policy.shared,
        collaborative=collaborative,
        pooling=pooling,
    )


def assert_same_message(kind, ours, theirs, features):
    # Both sides round at 1e-16 and invert matrices of condition below 1e4: 1e-9 leaves three digits spare.
    if kind == "first":
        sent = ours.vectors if isinstance(ours, FirstEstimates) else ours.rewards
        for i, a, t in literal._flat(theirs):
            np.testing.assert_allclose(sent[i, a], t, rtol=1e-12)
    elif kind == "global" and isinstance(ours, Projections):
        theta, v = theirs
        for i, a in zip(*np.nonzero(ours.active), strict=True):
            x = features[i, a]
            np.testing.assert_allclose(ours.estimate[i, a], x @ theta[a], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(ours.deviation[i, a], np.sqrt(x @ v[a] @ x), rtol=1e-9, atol=1e-9)
    elif kind == "global":
        theta, v = theirs
        assert ours.alive.sum() == (1 if ours.theta.shape[1] == 1 else len(v))
        for a in v:
            b = a if ours.theta.shape[1] > 1 else 0
            np.testing.assert_allclose(ours.theta[0, b], theta[a], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(ours.potential[0, b], v[a], rtol=1e-9, atol=1e-9)
    elif kind == "active":
        assert [list(np.flatnonzero(row)) for row in ours.active] == [theirs[i] for i in sorted(theirs)]
    elif kind == "plan":
        assert {(i, a): ours.pulls[i, a] for i, a in zip(*np.nonzero(ours.active), strict=True)} == theirs
    else:
        assert {(i, a) for i, a in zip(*np.nonzero(ours.pulled), strict=True)} == {
            (i, a) for i in theirs for a in theirs[i]
        }
        for i, a, t in literal._flat(theirs):
            # Collaborative clients send x times the mean of the rewards, or the mean alone.
            expected = t * features[i, a] if np.ndim(t) < np.ndim(ours.values[i, a]) else t
            np.testing.assert_allclose(ours.values[i, a], expected, rtol=1e-9, atol=1e-12)


def quiet(env):
    """The same means with little noise, so that short horizons see eliminations."""
    return bandits.LinearEnvironment(env.features, env.parameters, scale=0.1)


COLLABORATIVE = [
    {"intervals": "fedpe", "protocol": "vectors"},
    {"intervals": "fedpe", "protocol": "scalars"},
    {"intervals": "enhanced", "protocol": "scalars"},
    {"pooling": True, "protocol": "scalars"},
]
CASES = [
    (bandits.FedPE(), bandits.environments.authors(8, 4, 2, seed=1), 1000),
    (bandits.FedPE(), bandits.environments.synthetic(7, 5, 3, seed=2), 1000),
    (bandits.FedPE(schedule=bandits.schedules.Uniform(40)), bandits.environments.random(6, 3, 2, 3), 1000),
    (bandits.EnhancedFedPE(), bandits.environments.authors(8, 4, 2, seed=4), 1000),
    (
        bandits.EnhancedFedPE(schedule=bandits.schedules.Greedy()),
        bandits.environments.synthetic(6, 3, 2),
        2000,
    ),
    (bandits.FedPE(parameters="shared"), bandits.environments.random(5, 4, 3, 5, shared=True), 1000),
    (bandits.EnhancedFedPE(parameters="shared"), bandits.environments.random(5, 4, 3, 6, shared=True), 1000),
    *(
        (bandits.CollaborativeFedPE(**options), bandits.environments.authors(8, 4, 2, seed=7), 1000)
        for options in COLLABORATIVE
    ),
    *(
        (
            bandits.CollaborativeFedPE("shared", **options),
            bandits.environments.random(5, 4, 3, 8, shared=True),
            1000,
        )
        for options in COLLABORATIVE
    ),
]


@pytest.mark.parametrize(("policy", "env", "horizon"), CASES)
def test_messages_are_those_of_algorithms_1_and_2(policy, env, horizon):
    env = quiet(env)
    plays = []
    ours, clients, _ = converse(policy, env, horizon, Rewards(env), plays=plays)
    theirs, pulled = transcription(policy, env, horizon, Rewards(env))
    assert [kind for kind, _ in ours] == [kind for kind, _ in theirs]
    assert not clients[0].active.all(), "the instance should see eliminations"
    for (kind, a), (_, b) in zip(ours, theirs, strict=True):
        assert_same_message(kind, a, b, env.features)
    assert {len(p) for p in pulled} == {horizon}
    clock = RegretClock(env.gaps, np.arange(1, horizon + 1))
    clock.advance(np.ones((env.clients, env.arms), dtype=int), clients[0].best, env.arms)
    for pulls, best, f in plays:
        clock.advance(pulls, best, f + env.arms)
    played = np.mean([np.cumsum(env.gaps[i][np.array(p)]) for i, p in enumerate(pulled)], axis=0)
    # Sums of at most 2000 terms below 2, in two orders.
    np.testing.assert_allclose(clock.regret, played, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE])
def test_one_batch_and_single_clients_agree_to_the_last_bit(protocol, kind):
    env = bandits.environments.random(6, 4, 3, seed=0)
    policy = kind(protocol=protocol)
    together, _, _ = converse(policy, env, 4000, Rewards(env))
    apart, _, _ = converse(policy, env, 4000, Rewards(env), batches=[[i] for i in range(6)])
    in_pairs, _, _ = converse(policy, env, 4000, Rewards(env), batches=[[0, 1, 2, 3], [4, 5]])
    for (_, a), (_, b), (_, c) in zip(together, apart, in_pairs, strict=True):
        for name, value in vars(a).items():
            np.testing.assert_array_equal(value, getattr(b, name))
            np.testing.assert_array_equal(value, getattr(c, name))


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])
def test_machines_can_be_put_to_sleep_between_messages(kind):
    """A process per message, as some networks have it: everything a machine knows survives pickling."""
    env = bandits.environments.random(5, 4, 3, seed=0)
    batches = [[0, 1], [2], [3, 4]]
    awake, _, _ = converse(kind(), env, 2000, Rewards(env), batches)
    asleep, _, _ = converse(kind(), env, 2000, Rewards(env), batches, sleep=True)
    for (_, a), (_, b) in zip(awake, asleep, strict=True):
        for name, value in vars(a).items():
            np.testing.assert_array_equal(value, getattr(b, name))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE])
@pytest.mark.parametrize("noise", ["gaussian", "bernoulli"])
def test_protocols_decide_alike_to_the_last_bit(shared, kind, noise):
    env = bandits.environments.random(9, 5, 3, seed=7, shared=shared, noise=noise)
    parameters = "shared" if shared else "disjoint"
    runs = [
        converse(kind(parameters=parameters, protocol=p), env, 5000, Rewards(env))
        for p in ("vectors", "scalars")
    ]
    for which in ("active", "plan"):
        a, b = ([m for kind_, m in messages if kind_ == which] for messages, _, _ in runs)
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x.active, y.active)
            if which == "plan":
                np.testing.assert_array_equal(x.pulls, y.pulls)
    np.testing.assert_array_equal(runs[0][1][0].best, runs[1][1][0].best)


def test_no_message_holds_a_feature_or_a_reward():
    env = bandits.environments.random(5, 3, 2, seed=3)
    for protocol in ("vectors", "scalars"):
        rewards = Rewards(env)
        seen = []

        def sums(pulls, clients=None, draw=rewards.sums, seen=seen):
            out = draw(pulls, clients)
            seen.extend([out[pulls > 0], (out / np.maximum(pulls, 1))[pulls > 0]])
            return out

        rewards.sums = sums
        messages, _, _ = converse(bandits.FedPE(protocol=protocol), env, 500, rewards)
        private = np.concatenate([*seen, env.features.ravel(), np.linalg.norm(env.features, axis=2).ravel()])
        for _, message in messages:
            for value in vars(message).values():
                numbers = np.asarray(value, dtype=float).ravel()
                numbers = numbers[(numbers != 0) & (numbers != np.round(numbers))]
                assert not np.isin(numbers, private).any()
                assert not np.isin(-numbers, private).any()


def expected_cost(messages, env, protocol, shared):
    """The paper's formulas, from the active sets and plans alone."""
    m, k, d = env.features.shape
    active = [x.active for kind, x in messages if kind == "active"]
    pulls = [x.pulls for kind, x in messages if kind == "plan"]
    before = [np.ones((m, k), dtype=bool), *active[:-1]]
    up = m * k * d + sum(a.sum() for a in active)
    down = sum(a.sum() for a in active)
    if protocol == "vectors":
        up += d * sum((f > 0).sum() for f in pulls[:-1])
        down += sum(m * (1 if shared else a.any(axis=0).sum()) * (d + d * d) for a in before)
    else:
        up += sum((f > 0).sum() for f in pulls[:-1])
        down += 2 * sum(a.sum() for a in before)
    return up, down


@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
@pytest.mark.parametrize("shared", [False, True])
def test_the_ledger_matches_the_papers_formulas(protocol, shared):
    env = bandits.environments.random(6, 4, 3, seed=0, shared=shared)
    policy = bandits.FedPE(parameters="shared" if shared else "disjoint", protocol=protocol)
    messages, _, _ = converse(policy, env, 4000, Rewards(env))
    up, down = expected_cost(messages, env, protocol, shared)
    assert up == sum(x.scalars for kind, x in messages if kind in ("first", "active", "local"))
    assert down == sum(x.scalars for kind, x in messages if kind in ("global", "plan"))


def test_the_simulators_ledger_is_that_of_the_conversation():
    env = bandits.environments.authors(6, 4, 2, seed=0)
    run = bandits.simulate(bandits.FedPE(), env, 2**10, trials=1)
    assert run.phases["uploaded"].sum() == run.uploaded[0]
    assert run.phases["downloaded"].sum() == run.downloaded[0]
    m, k, d = env.features.shape
    first = run.phases[0]
    assert first["downloaded"] == m * k * (d + d * d) + first["active"] * m
    assert first["uploaded"] >= m * k * d + first["active"] * m


def test_a_zero_reward_sends_its_direction_apart():
    x = np.array([[[3.0, 4.0], [1.0, 0.0]]])
    setting = bandits.FedPE().setting(1, 2, 2, 100, 1.0, 1.0)
    for sign in (1.0, -1.0):
        client = bandits.FedPE().client(sign * x, setting)
        first = client.initialise(np.array([[0.0, -2.0]]))
        assert first.scalars == 2 * 2 + 2
        np.testing.assert_allclose(directions(first), [[[0.6, 0.8], [-sign, 0.0]]], rtol=1e-15)
        np.testing.assert_allclose(client.norm, [[sign * 5.0, -1.0]], rtol=1e-15)


def test_directions_survive_rewards_of_any_size():
    for size in (1e-300, 1e-90, 1.0, 1e150):
        setting = bandits.FedPE().setting(1, 1, 2, 100, 1.0, 1.0)
        client = bandits.FedPE().client(np.array([[[3.0, -4.0]]]), setting)
        client.initialise(np.array([[size]]))
        sign = -1.0 if size < 1e-100 else 1.0
        np.testing.assert_allclose(client.direction[0, 0], [sign * 0.6, sign * -0.8], rtol=1e-14)


def test_along_reads_estimates_in_the_clients_directions():
    env = bandits.environments.random(4, 3, 2, seed=1)
    messages, _, server = converse(bandits.FedPE(), env, 200, Rewards(env))
    estimates = next(m for kind, m in messages if kind == "global")
    active = np.ones((4, 3), dtype=bool)
    found = along(server.direction, active, estimates)
    theta = np.einsum("iad,ad->ia", server.direction, estimates.theta[0])
    square = np.einsum("iad,ade,iae->ia", server.direction, estimates.potential[0], server.direction)
    np.testing.assert_allclose(found.estimate, theta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.deviation**2, square, rtol=1e-12, atol=1e-12)


def test_first_estimates_cost_d_per_arm():
    assert FirstEstimates(np.ones((2, 3, 4)), np.zeros((2, 3, 4))).scalars == 24


def test_a_broadcast_costs_only_the_arms_that_somebody_of_the_class_has_active():
    """d + d^2 each: two arms for the two clients of the first class, one for the client of the second."""
    alive = np.array([[True, False, True], [False, False, True]])
    message = GlobalEstimates(np.zeros((2, 3, 4)), np.zeros((2, 3, 4, 4)), alive, np.array([0, 1, 0]))
    assert message.scalars == (4 + 16) * (2 + 1 + 2)
    assert message.part(np.array([1])).scalars == 4 + 16
