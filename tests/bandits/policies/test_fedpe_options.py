"""Options of Fed-PE and its variants: starts, gaps, bounds, budgets, rounding."""

from __future__ import annotations

import numpy as np
import pytest
from play import Rewards, converse

import bandits

ENV = bandits.environments.authors(8, 4, 2, seed=1)


def test_warm_start_reaches_the_same_gap():
    """With fewer sweeps over all, though not in every instance: a design may also have to be undone."""
    sweeps = {True: 0, False: 0}
    for seed in range(8):
        env = bandits.environments.authors(20, 5, 3, seed=seed)
        for warm in sweeps:
            run = bandits.simulate(bandits.FedPE(warm_start=warm), env, 2**13, trials=1)
            assert run.phases["gap"].max() <= 0.1
            sweeps[warm] += run.phases["iterations"].sum()
    assert sweeps[True] < sweeps[False]


@pytest.mark.parametrize("parameters", ["disjoint", "shared"])
@pytest.mark.parametrize("gap", [0.1, 0.03])
def test_the_gap_of_a_phase_is_that_of_all_classes_together(parameters, gap):
    """Clients in classes that cannot help each other: their designs share the gap that is asked for."""
    env = bandits.environments.clusters(12, 4, 6, 3, seed=0)
    env = bandits.LinearEnvironment(env.features, env.parameters[0])
    assert bandits.collinear_classes(env.features, shared=parameters == "shared").max() == 2
    run = bandits.simulate(bandits.FedPE(parameters, design_gap=gap), env, 500, trials=1)
    assert np.all(run.phases["gap"] <= gap)
    assert np.any(run.phases["gap"] > 0)


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE])
def test_bounds_told_to_the_policy_are_as_good_as_those_of_the_environment(kind):
    """ell and sigma widen the intervals, whoever says so; the rewards are the same."""
    features, theta = ENV.features, ENV.parameters
    tight = bandits.simulate(kind(), ENV, 5000, trials=1)
    loose = bandits.LinearEnvironment(features, theta, ell=ENV.ell / 4, L=ENV.L)
    told = bandits.simulate(kind(ell=ENV.ell / 4), ENV, 5000, trials=1)
    for name in ("regret", "phases"):
        knowing = getattr(bandits.simulate(kind(), loose, 5000, trials=1), name)
        np.testing.assert_array_equal(getattr(told, name), knowing)
    assert told.phases["active"].sum() > tight.phases["active"].sum()
    noisy = bandits.simulate(kind(sigma=4 * ENV.sigma), ENV, 5000, trials=1)
    assert noisy.phases["active"].sum() > tight.phases["active"].sum()


def test_unequal_budgets_are_kept_and_phases_stay_in_step():
    env = bandits.environments.authors(6, 4, 2, seed=0)
    shares = (1.0, 0.5, 0.25, 1.0, 0.125, 0.5)
    policy = bandits.FedPE(budgets=shares)
    messages, _, server = converse(policy, env, 3000, Rewards(env))
    setting = server.setting
    for p, plan in enumerate([x for kind, x in messages if kind == "plan"], start=1):
        explored = plan.pulls.sum(axis=1)
        budget = np.array(shares) * setting.f(p)
        # The ceiling adds less than one pull per active arm.
        assert np.all(explored >= budget * (1 - 1e-9))
        assert np.all(explored < budget * (1 + 1e-9) + plan.active.sum(axis=1))
    equal = bandits.simulate(bandits.FedPE(budgets=(1.0,) * 6), env, 3000, trials=1)
    np.testing.assert_array_equal(equal.regret, bandits.simulate(bandits.FedPE(), env, 3000, trials=1).regret)


def test_a_rounding_rule_of_ones_own_is_checked():
    env = bandits.environments.authors(6, 4, 2, seed=0)
    generous = bandits.FedPE(rounding=lambda w, f: np.ceil(w * f).astype(int) + (w > 0) * 100)
    with pytest.raises(ValueError, match="at most f"):
        bandits.simulate(generous, env, 500, trials=1)
    stingy = bandits.FedPE(rounding=lambda w, f: np.zeros(w.shape, dtype=int) * f)
    with pytest.raises(ValueError, match="rank of the design"):
        bandits.simulate(stingy, env, 500, trials=1)
    nearest = bandits.FedPE(rounding=lambda w, f: np.maximum(np.round(w * f), w > 0.02).astype(int))
    assert bandits.simulate(nearest, env, 500, trials=1).regret[0, -1] > 0


def test_rounding_up_does_not_take_rounding_for_a_pull():
    """Half of 128 is 64 pulls, also where the weight is half but for its last digit; any more is a pull."""
    near = np.nextafter(0.5, 1.0)
    for weight, pulls in ((0.5, 64), (near, 64), (0.5 + 1e-9, 65), (1e-300, 1), (0.0, 0), (1.0, 128)):
        assert bandits.ceiling(np.array([[weight]]), 128).tolist() == [[pulls]]


def test_arms_that_were_dropped_get_no_pulls_from_any_rounding():
    """One pull of every arm fits into every phase, but is not to be had for arms that are out."""
    env = bandits.LinearEnvironment(ENV.features, ENV.parameters, scale=1e-3)

    def all_alike(weights, _):
        return np.ones(weights.shape, dtype=np.int64)

    assert bandits.simulate(bandits.FedPE(), env, 500, trials=1).phases["active"][-1] < env.arms
    with pytest.raises(ValueError, match="rounding must give inactive arms no pulls"):
        bandits.simulate(bandits.FedPE(rounding=all_alike), env, 500, trials=1)


def test_phase_lengths_can_be_a_plain_list():
    env = bandits.environments.authors(4, 3, 2)
    run = bandits.simulate(bandits.FedPE(schedule=[5, 50, 500]), env, 300, trials=1)
    assert run.phases["length"].tolist() == [8, 53, 236]


def test_options_are_checked():
    for options, word in [
        ({"parameters": "both"}, "parameters"),
        ({"protocol": "smoke"}, "protocol"),
        ({"delta": 1.0}, "delta"),
        ({"design_gap": 0.0}, "design_gap"),
        ({"ell": 0.0}, "ell"),
        ({"sigma": -1.0}, "sigma"),
        ({"budgets": (0.5, 2.0)}, "budgets"),
    ]:
        with pytest.raises(ValueError, match=word):
            bandits.FedPE(**options)
    env = bandits.environments.authors(4, 3, 2)
    with pytest.raises(ValueError, match="one entry per client"):
        bandits.simulate(bandits.FedPE(budgets=(1.0,)), env, 100)
    different = bandits.environments.random(4, 3, 2)
    with pytest.raises(ValueError, match="shared"):
        bandits.simulate(bandits.FedPE(parameters="shared"), different, 100)
    silent = bandits.LinearEnvironment(env.features, env.parameters, scale=0.0)
    with pytest.raises(ValueError, match="sigma must be positive"):
        bandits.simulate(bandits.FedPE(), silent, 100)
    assert bandits.simulate(bandits.EnhancedFedPE(sigma=0.01), silent, 100, trials=1).regret[0, -1] > 0
