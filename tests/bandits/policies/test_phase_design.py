"""The design of a phase: Algorithm 3's own count of sweeps, and equal parameters that may be shared."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
import pytest
from play import Rewards, converse

import bandits
from bandits.policies import design
from bandits.policies.design import Design, ascent, ascent_then_auto, solved
from bandits.policies.phased import confident
from optdesign import DesignProblem, certify
from optdesign.solvers import bca
from optdesign.solvers.method import on_problem


def unit(env):
    return env.features / np.linalg.norm(env.features, axis=2, keepdims=True)


def filled(g, u):
    """max sum log(1 + (v - u) g) over v >= 0 with sum v = 1: water poured over the heights 1 / g - u."""
    height = 1 / g - u
    order = np.sort(height)
    for n in range(1, len(g) + 1):
        if (1 + order[:n].sum()) / n > order[n - 1]:
            level = (1 + order[:n].sum()) / n
    return np.maximum(0, level - height)


def plain_sweeps(x, epsilon):
    """Algorithm 3 in plain NumPy, all matrices inverted afresh: how often its loop runs."""
    m, k, _ = x.shape
    u, count = np.full((m, k), 1 / k), 0

    def variances():
        v = np.linalg.pinv(np.einsum("ia,iaj,iak->ajk", u, x, x), rcond=1e-9, hermitian=True)
        return np.einsum("iaj,ajk,iak->ia", x, v, x)

    rank = int(np.linalg.matrix_rank(np.einsum("ia,iaj,iak->ajk", u, x, x)).sum())
    while variances().max(axis=1).sum() > rank + epsilon:
        for i in range(m):
            u[i] = filled(variances()[i], u[i])
        count += 1
    return count


@pytest.mark.parametrize("epsilon", [100.0, 1.0, 0.1, 0.01])
@pytest.mark.parametrize(
    "env",
    [
        bandits.environments.authors(12, 4, 2, seed=1),
        bandits.environments.random(15, 3, 2, seed=2),
        bandits.environments.random(4, 3, 3, seed=3),
    ],
)
def test_iterations_are_the_sweeps_of_algorithm_3(env, epsilon):
    x = unit(env)
    problem = DesignProblem.disjoint(x)
    found = ascent(problem, epsilon)
    assert found.iterations == plain_sweeps(x, epsilon)
    assert certify(problem, found.weights).gap <= epsilon
    if epsilon == 100.0:
        assert found.iterations == 0
        np.testing.assert_array_equal(found.weights, problem.uniform())


def test_a_sweep_that_takes_several_steps_is_counted_once(monkeypatch):
    """A sweep over many candidates returns to Python between groups."""
    x = unit(bandits.environments.authors(12, 4, 2, seed=1))
    monkeypatch.setattr(bca, "PARAMETERS", bca.PARAMETERS._replace(work=1.0))
    assert ascent(DesignProblem.disjoint(x), 0.01).iterations == plain_sweeps(x, 0.01) > 1


@pytest.mark.slow
def test_a_design_of_many_sweeps_is_continued_by_another_method(monkeypatch):
    """Up to the limit, "auto" is Algorithm 3 with its counts; above, it reaches the gap as well."""
    problem = DesignProblem.disjoint(unit(bandits.environments.authors(12, 30, 3, seed=1)))
    paper = ascent(problem, 0.01)
    assert 20 < paper.iterations < design.MOST
    same = ascent_then_auto(problem, 0.01)
    assert same.iterations == paper.iterations
    np.testing.assert_array_equal(same.weights, paper.weights)
    monkeypatch.setattr(design, "MOST", paper.iterations)
    assert ascent_then_auto(problem, 0.01).iterations == paper.iterations, "the last sweep is enough"
    for visited, limit in ((0, 10), (12 * 30 * 15, 15)):
        monkeypatch.setattr(design, "VISITED", visited)
        short = ascent(problem, 0.01, None, limit)
        assert short.iterations == limit
        assert certify(problem, short.weights).gap > 0.01
        other = ascent_then_auto(problem, 0.01)
        assert other.iterations == limit + solved("auto")(problem, 0.01, short.weights).iterations
        assert certify(problem, other.weights).gap <= 0.01
    warm = ascent_then_auto(problem, 0.01, paper.weights)
    assert certify(problem, warm.weights).gap <= 0.01


def test_the_default_plays_the_designs_of_algorithm_3():
    env = bandits.environments.authors(20, 8, 3, seed=1)
    for kind in (bandits.FedPE, bandits.EnhancedFedPE):
        default, paper = (bandits.simulate(p, env, 2000, 2) for p in (kind(), kind(design_method="bca")))
        np.testing.assert_array_equal(default.regret, paper.regret)
        np.testing.assert_array_equal(default.phases, paper.phases)


@pytest.mark.parametrize("make", [DesignProblem.disjoint, DesignProblem.shared])
@pytest.mark.parametrize("seed", range(5))
def test_iterations_are_the_smallest_number_that_is_enough(make, seed):
    """The gaps after 0, 1, 2, ... sweeps from the uniform design: the first that is small enough counts."""
    problem = make(unit(bandits.environments.random(20, 5, 3, seed)))
    weights = problem.uniform()
    gaps = [certify(problem, weights).gap]
    for _ in islice(on_problem(partial(bca.run, batch=1))(problem, weights, 0.0, 50), 50):
        gaps.append(certify(problem, weights).gap)
    for epsilon in (10.0, 1.0, 0.1, 0.01):
        found = ascent(problem, epsilon)
        assert found.iterations == np.argmax(np.array(gaps) <= epsilon)
        assert certify(problem, found.weights).gap == gaps[found.iterations]


@pytest.mark.parametrize(("arms", "shared"), [(70, False), (5, True), (70, True)])
def test_the_start_is_uniform_for_many_arms_and_shared_parameters(arms, shared):
    """With a gap that the uniform design meets, the first plan is uniform and took no sweep."""
    env = bandits.environments.random(6, arms, 2, shared=shared)
    policy = bandits.FedPE(parameters="shared" if shared else "disjoint", design_gap=1e6)
    run = bandits.simulate(policy, env, 4 * arms, trials=1)
    assert np.all(run.phases["iterations"] == 0)
    _, _, server = converse(policy, env, 3 * arms, Rewards(env))
    equal = 1 / server.active.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(server.weights, server.active * equal, rtol=1e-12)


def test_phases_record_the_iterations_of_their_designs():
    """Without elimination, every phase has the design of all arms and its count."""
    env = bandits.environments.random(10, 4, 3, seed=0)
    run = bandits.simulate(bandits.FedPE(delta=1e-12), env, 200, trials=1)
    assert run.phases["active"].min() == 4
    assert set(run.phases["iterations"]) == {ascent(DesignProblem.disjoint(unit(env)), 0.1).iterations}


@pytest.mark.parametrize("method", ["newton", "auto"])
def test_other_methods_reach_the_gap(method):
    problem = DesignProblem.disjoint(unit(bandits.environments.authors(10, 4, 3)))
    for start in (None, problem.uniform()):
        assert certify(problem, solved(method)(problem, 0.1, start).weights).gap <= 0.1


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])
def test_equal_parameters_may_be_taken_as_shared(kind):
    """The authors' instance declares them per arm; playing it as shared is playing one vector."""
    env = bandits.environments.authors(6, 4, 2)
    once = bandits.LinearEnvironment(env.features, env.parameters[0], ell=env.ell, L=env.L)
    assert env.common
    assert not env.shared
    a, b = (bandits.simulate(kind(parameters="shared"), e, 500, trials=2) for e in (env, once))
    np.testing.assert_array_equal(a.regret, b.regret)
    assert not bandits.environments.random(3, 2, 2).common


def test_a_design_rule_of_ones_own_is_certified():
    env = bandits.environments.random(6, 4, 2, seed=0)

    def uniform(problem, *_):
        return Design(problem.uniform(), 0)

    run = bandits.simulate(bandits.FedPE(design=uniform), env, 300, trials=1)
    assert np.all(run.phases["iterations"] == 0)
    expected = certify(DesignProblem.disjoint(unit(env)), np.full(24, 0.25)).gap
    assert run.phases["gap"][0] == pytest.approx(expected, rel=1e-9)

    def infeasible(problem, *_):
        return Design(2 * problem.uniform(), 0)

    with pytest.raises(ValueError, match="budget"):
        bandits.simulate(bandits.FedPE(design=infeasible), env, 300, trials=1)


def test_a_keep_rule_of_ones_own_decides_what_stays():
    env = bandits.environments.random(6, 4, 2, seed=0)

    def top_half(r, _, active):
        score = np.where(active, r, -np.inf)
        rank = np.argsort(np.argsort(-score, axis=1), axis=1)
        return rank < np.maximum(active.sum(axis=1, keepdims=True) // 2, 1)

    run = bandits.simulate(bandits.FedPE(keep=top_half), env, 300, trials=1)
    assert run.phases["active"].tolist()[:3] == [2, 1, 1]
    usual = bandits.simulate(bandits.FedPE(keep=confident), env, 300, trials=1)
    np.testing.assert_array_equal(usual.regret, bandits.simulate(bandits.FedPE(), env, 300, trials=1).regret)
    with pytest.raises(ValueError, match="keep must leave every client an arm; in phase 1 client 0"):
        bandits.simulate(bandits.FedPE(keep=lambda r, *_: r > 1e9), env, 300, trials=1)
