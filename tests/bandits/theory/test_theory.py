"""The paper's bounds as numbers: they agree with each other and with what runs show."""

from __future__ import annotations

import numpy as np
import pytest

import bandits
from bandits import theory
from bandits.theory.confidence import alpha
from bandits.theory.schedules import Exponential, Greedy, Uniform


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("c", "n"), [(1, 2), (2, 3)])
def test_the_theorem_follows_from_the_lemma_of_the_phases(c, n, shared):
    """The theorem sums the lemma over full phases, with T = sum (f^p + K)."""
    m, k, d = 100, 10, 3
    f = c * n ** np.arange(1, 12)
    horizon = int(f.sum() + k * len(f))
    lemma = theory.phase_regret(f, m, k, d, ratio=2.0, shared=shared)
    theorem = theory.fedpe_regret(m, k, d, horizon + k, ratio=2.0, c=c, n=n, shared=shared)
    assert lemma <= theorem <= 1.5 * lemma


def test_bounds_scale_as_stated():
    base = theory.fedpe_regret(100, 10, 3, 2**17)
    assert theory.fedpe_regret(100, 10, 3, 2**17, ratio=2.0) == pytest.approx(2 * base)
    assert theory.fedpe_regret(100, 10, 3, 2**17, shared=True) < base / np.sqrt(9)
    assert theory.lower_bound(100, 10, 3, 4 * 2**17) == pytest.approx(
        2 * theory.lower_bound(100, 10, 3, 2**17)
    )
    assert theory.lower_bound(100, 10, 3, 2**17) < base


def test_enhanced_bound_is_largest_for_the_greedy_schedule():
    m, k, d, horizon = 100, 10, 3, 2**16
    bound = {
        s: theory.enhanced_regret(s.lengths(horizon, k), m, k, d, horizon)
        for s in (Uniform(), Exponential(), Greedy())
    }
    assert max(bound[Uniform()], bound[Exponential()]) < bound[Greedy()]
    assert theory.enhanced_regret(np.array([]), m, k, d, 5) == 0.0
    # "if f^p >= K and S_p <= c S_{p-1}": the closed form with c = 2 for the uniform selection.
    closed = 16 * np.sqrt(6 * 2) * np.sqrt(d * k * m * horizon * np.log(k * m * horizon / 0.1))
    assert bound[Uniform()] <= closed


def test_the_lower_bound_is_that_of_the_proof():
    m, k, d, t = 12, 5, 3, 1000
    delta = np.sqrt(d * (k - 1) / (4 * m * t))
    both = m * t * delta / 4 * np.exp(-2 * m * t * delta**2 / (d * (k - 1)))
    assert theory.lower_bound(m, k, d, t) == pytest.approx(both / 2)


def test_the_lower_bound_needs_groups_of_equal_size():
    assert theory.lower_bound(14, 5, 3, 1000) == theory.lower_bound(12, 5, 3, 1000)
    assert theory.lower_bound(2, 5, 10**6, 1000) == theory.lower_bound(2, 5, 2, 1000)


@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
@pytest.mark.parametrize("shared", [False, True])
def test_communication_never_exceeds_its_bound_and_meets_it_without_elimination(protocol, shared):
    features = bandits.environments.random(6, 4, 3, seed=0).features
    options = {"parameters": "shared" if shared else "disjoint", "protocol": protocol}

    def everywhere(weights, f):
        return np.maximum(bandits.ceiling(weights, f) - 1, 0) + (weights.sum(axis=1, keepdims=True) > 0)

    slow = {"sigma": 1e6, "rounding": everywhere}
    no_rewards = bandits.LinearEnvironment(features, np.zeros(3), "bernoulli")
    for env in (no_rewards, bandits.environments.random(6, 4, 3, seed=0, shared=shared)):
        for kind in (bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE):
            for chosen in ({}, slow):
                run = bandits.simulate(kind(**options, **chosen), env, 2000, trials=1)
                phases = len(run.phases)
                bound = theory.communication_bound(6, 4, 3, phases, protocol=protocol, shared=shared)
                assert run.uploaded[0] <= bound.uploaded
                assert run.downloaded[0] <= bound.downloaded
                if chosen is slow:
                    assert run.downloaded[0] == bound.downloaded
                    # A first reward of 0 costs d scalars for the direction, and Collaborative sends 1 more.
                    extra = 1 if kind is bandits.CollaborativeFedPE else 3 * (env is no_rewards)
                    assert run.uploaded[0] == bound.uploaded - 6 * 4 * (3 - extra)
    assert theory.communication_bound(6, 4, 3, 0) == (0, 0)


def test_the_communication_bound_refuses_unknown_protocols_and_sizes():
    for sizes, options, words in [
        ((6, 4, 3, 2), {"protocol": "vector"}, "protocol must be one of vectors, scalars; got 'vector'"),
        ((6, 4, 3, -1), {}, "phases must be a whole number of at least 0; got -1"),
        ((6, 0, 3, 2), {}, "arms must be a whole number of at least 1; got 0"),
    ]:
        with pytest.raises(ValueError, match=words):
            theory.communication_bound(*sizes, **options)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"delta": 5.0}, "delta must lie strictly in"),
        ({"ratio": 0.5}, "ratio must be L / ell, finite and at least 1; got 0.5"),
        ({"sigma": -1.0}, "sigma must be positive and finite; got -1.0"),
        ({"clients": 0}, "clients must be a whole number of at least 1; got 0"),
    ],
)
def test_bounds_refuse_constants_for_which_no_theorem_holds(wrong, words):
    options = {"clients": 4, "arms": 3, "dim": 2} | wrong
    f = np.array([2, 4])
    for call in (
        lambda: theory.fedpe_regret(horizon=20, **options),
        lambda: theory.phase_regret(f, **options),
        lambda: theory.enhanced_regret(f, horizon=20, **options),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ValueError, match="phases must be a whole number of at least 2; got 1"):
        theory.phase_regret(f, 4, 3, 2, phases=1)
    with pytest.raises(ValueError, match="arms must be a whole number of at least 1; got 0"):
        theory.lower_bound(4, 0, 2, 100)


@pytest.mark.parametrize("shared", [False, True])
def test_the_lemma_of_a_phase_and_the_theorem_of_two(shared):
    """R_1 <= 4 alpha (L / ell) sqrt(d B M) (f^1 + K), and with S_0 = 1, S_1 = 1 + f^1 what phase 2 adds."""
    m, k, d = 7, 5, 3
    root = np.sqrt(d * (1 if shared else k) * m)
    options = {"delta": 0.2, "ratio": 1.5, "shared": shared, "sigma": 0.5}
    one = theory.phase_regret(np.array([8]), m, k, d, **options)
    assert one == pytest.approx(4 * 0.5 * alpha(m, k, d, 1, 0.2, shared=shared) * 1.5 * root * (8 + k))
    two = theory.enhanced_regret(np.array([8, 16]), m, k, d, 40, **options)
    level = np.sqrt(6 * np.log(1.5 * k * m * 40 / 0.2))
    assert two == pytest.approx(4 * 0.5 * 1.5 * root * level * ((8 + k) + (16 + k) / 3))


def bound_after_the_first_pulls(policy, env, horizon=1000):
    """What the theorem says; the K first pulls of every client cost all its gaps."""
    return theory.regret_bound(policy, env, horizon) - env.gaps.sum()


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE])
@pytest.mark.parametrize("parameters", ["disjoint", "shared"])
def test_the_bound_of_a_policy_is_that_of_its_theorem_and_its_options(kind, parameters):
    env = bandits.environments.authors(4, 3, 2)
    m, k, d, blocks = 4, 3, 2, 1 if parameters == "shared" else 3
    exact = kind(parameters, design_gap=1e-12)
    lengths, options = exact.lengths(1000, k), {"ratio": env.L / env.ell, "shared": blocks == 1}
    if kind is bandits.FedPE:
        theorem = theory.phase_regret(lengths, m, k, d, **options)
    else:
        theorem = theory.enhanced_regret(lengths, m, k, d, 1000, **options)
    bound = bound_after_the_first_pulls(exact, env)
    assert bound == pytest.approx(theorem, rel=1e-9)
    # Widths are proportional to sqrt(G), and G exceeds d B by the gap of the design.
    for gap in (0.1, 3.0):
        inexact = bound_after_the_first_pulls(kind(parameters, design_gap=gap), env)
        assert inexact == pytest.approx(bound * np.sqrt((d * blocks + gap) / (d * blocks)), rel=1e-9)
    noisier = bound_after_the_first_pulls(kind(parameters, design_gap=1e-12, sigma=3.0), env)
    assert noisier == pytest.approx(3.0 * bound, rel=1e-9)
    told = bound_after_the_first_pulls(kind(parameters, design_gap=1e-12, ell=env.ell / 2), env)
    knowing = bandits.LinearEnvironment(env.features, env.parameters, ell=env.ell / 2, L=env.L)
    assert told == bound_after_the_first_pulls(exact, knowing)
    assert told > 1.9 * bound


def test_the_bound_at_a_time_has_the_confidence_level_and_the_phases_of_the_horizon():
    env = bandits.environments.authors(4, 3, 2)
    greedy = bandits.FedPE(design_gap=1e-12, schedule=bandits.schedules.Greedy())
    for policy in (bandits.FedPE(design_gap=1e-12), greedy):
        lengths = policy.lengths(1000, 3)
        begun = lengths[3 + np.cumsum(lengths + 3) - (lengths + 3) < 60]
        assert 0 < len(begun) < len(lengths)
        expected = theory.phase_regret(begun, 4, 3, 2, ratio=env.L / env.ell, phases=len(lengths))
        found = theory.regret_bound(policy, env, 1000, 60) - env.gaps.sum()
        assert found == pytest.approx(expected, rel=1e-9)
        assert found > theory.phase_regret(begun, 4, 3, 2, ratio=env.L / env.ell)
        assert theory.regret_bound(policy, env, 1000, 1000) == theory.regret_bound(policy, env, 1000)
        assert theory.regret_bound(policy, env, 1000, 2) == env.gaps.sum()
    with pytest.raises(ValueError, match="time must be a whole number of at most 1000"):
        theory.regret_bound(greedy, env, 1000, 1001)


def test_regret_bound_knows_which_policies_the_paper_bounds():
    env = bandits.environments.authors(4, 3, 2)
    for policy in (
        bandits.CollaborativeFedPE(),
        bandits.FedPE(budgets=(1.0,) * 4),
        bandits.FedPE(design=bandits.ascent),
        bandits.FedPE(keep=lambda r, *_: r > 0),
    ):
        with pytest.raises(ValueError, match="no bound for other policies"):
            theory.regret_bound(policy, env, 1000)
