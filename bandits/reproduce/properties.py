"""Statements that construction decides: properties of instances, schedules and data, identities, theorems.

No experiment is needed for them beyond a verification that the code does as stated, so a statement that holds
confirms nothing about the algorithms. Checks have the form of :mod:`bandits.reproduce.checks`; their evidence
is True or False.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandits.environments.linear import LinearEnvironment
from bandits.environments.ratings import factors
from bandits.policies.phased import Phased
from bandits.reproduce.catalogue import (
    CONTEXTUAL,
    DISJOINT,
    ENHANCED,
    LOCAL,
    MIDDLE,
    MODELS,
    POLICIES,
    lower_bound_pair,
    main_case,
    minimax,
)
from bandits.reproduce.checks import Check, all_swept
from bandits.reproduce.decisions import Finding
from bandits.reproduce.description import MOVIELENS, SHARED, TEXT, Case
from bandits.reproduce.formatting import plain, span
from bandits.reproduce.growth import TOLERANCE, broadcast, protocols, sharing_saves
from bandits.reproduce.running import Results
from bandits.reproduce.summary import bound_of, points

MODELLED = (TEXT, SHARED)
"""Kinds of instances on which both protocols are played: disjoint and shared parameters."""

ROUNDING = 1e-9
"""Distance from a range that round-off explains."""


def phases(policy: str, horizon: int, arms: int, expected: int) -> Check:
    """Count the phases of a schedule."""

    def check(_results: Results, _kind: str) -> Finding:
        phased = POLICIES[policy]
        assert isinstance(phased, Phased)
        count = len(phased.lengths(horizon, arms))
        return Finding(f"{count} phases for T = {span([horizon])}", count == expected)

    return check


def canonical_parameters(results: Results, kind: str) -> Finding:
    """Compare the parameter vectors of the arms with the basis vectors."""
    env = _environments(results, kind)[0]
    found = np.unique(env.parameters, axis=0)
    words = f"{len(found)} different parameter vector{'s' * (len(found) != 1)} in dimension {env.dim}"
    return Finding(words, np.array_equal(found, np.eye(env.dim)[::-1]))


def range_of(read: Callable[[Results, str], np.ndarray], least: float, most: float) -> Check:
    """Count the values of all trials' instances that lie in a range."""

    def check(results: Results, kind: str) -> Finding:
        values = read(results, kind)
        inside = int(np.sum((values >= least - ROUNDING) & (values <= most + ROUNDING)))
        words = f"{plain(values.min())} to {plain(values.max())}, {inside:,} of {values.size:,} inside"
        return Finding(words, inside == values.size)

    return check


def gaps(results: Results, kind: str) -> np.ndarray:
    """Return the gaps of the arms that are not best, of all trials' instances."""
    return np.concatenate([env.gaps[~env.optimal] for env in _environments(results, kind)])


def norms(results: Results, kind: str) -> np.ndarray:
    """Return the norms of the features, of all trials' instances."""
    return np.concatenate(
        [np.linalg.norm(env.features, axis=2).ravel() for env in _environments(results, kind)]
    )


def squared_norms(results: Results, kind: str) -> np.ndarray:
    """Return the squared norms of the features, of all trials' instances."""
    return norms(results, kind) ** 2


def rating_matrix(results: Results, _kind: str) -> Finding:
    """Count the users and films of the ratings."""
    assert results.ratings is not None
    users, films = factors(results.ratings, main_case(MOVIELENS, ENHANCED).instance.dim)
    return Finding(f"{len(users)} by {len(films)}", (len(users), len(films)) == (943, 1682))


def never_below_one(results: Results, kind: str) -> Finding:
    """Compare the smallest sparsity level of all phases with 1."""
    levels = np.concatenate([results.all_trials(case).phases["sparsity"] for case in all_swept(kind)])
    if not len(levels):
        return Finding("no phase was played", None)
    return Finding(f"smallest level {plain(levels.min())}", bool(levels.min() >= 1.0))


def below_the_bound(policy: str) -> Check:
    """Compare regret with the theorem's bound for the same trial's instance, at every recorded time."""

    def check(results: Results, kind: str) -> Finding:
        case = main_case(kind, policy)
        run = results.all_trials(case)
        largest = 0.0
        for n, regret in enumerate(run.regret):
            env = results.environment(case, n)
            above = np.array([bound_of(case, env, run.horizon, int(t)) for t in run.times])
            largest = max(largest, float((regret / above).max()))
        words = f"at most {largest:.3g} times the bound in {len(run.trials)} trials"
        return Finding(words, largest <= 1.0)

    return check


def same_decisions(results: Results, kind: str) -> Finding:
    """Compare the regret of both protocols bit by bit."""
    model = MODELS[DISJOINT] if kind == TEXT else MODELS[CONTEXTUAL]
    vectors, scalars = (results[Case(model, label, MIDDLE)].regret for label in protocols(kind))
    different = int(np.sum(vectors != scalars))
    return Finding(f"{different} of {vectors.size} recorded regrets differ", different == 0)


def broadcast_falls(results: Results, kind: str) -> Finding:
    """Compare K with the factor by which shared parameters cut the broadcast: the arms active anywhere."""
    sizes, quotients = sharing_saves(broadcast)(results, kind)
    means = quotients.mean(axis=1)
    words = ", ".join(map(plain, means)) + " at K = " + ", ".join(map(plain, sizes))
    return Finding(f"factor {words}", bool(np.all(np.abs(means / sizes - 1.0) <= TOLERANCE)))


def above_the_lower_bound(results: Results, _kind: str) -> Finding:
    """Compare the larger mean regret of the two instances with the lower bound, at every horizon played."""
    least = {}
    for policy in (ENHANCED, LOCAL):
        first, second = (points(list(cases.values()), results) for cases in lower_bound_pair(policy).values())
        least[policy] = min(
            max(results[one].mean[-1], results[two].mean[-1]) / minimax(results.effort.applied(one))
            for one, two in zip(first, second, strict=True)
        )
    played = span(results.effort.applied(case).horizon for case in first)
    words = "; ".join(f"{policy}: at least {value:.3g} times" for policy, value in least.items())
    return Finding(f"{words}, T = {played}", bool(min(least.values()) >= 1.0))


def _environments(results: Results, kind: str) -> list[LinearEnvironment]:
    case = main_case(kind, ENHANCED)
    return [results.environment(case, n) for n in range(results.trials(case))]
