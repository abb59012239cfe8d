"""Checks of what the paper proves or remarks, rather than of what it saw in its experiments.

They have the form of :mod:`bandits.reproduce.checks`: from results and a kind of instance to a finding.
"""

from __future__ import annotations

import numpy as np

from bandits.reproduce.catalogue import (
    CONTEXTUAL,
    DISJOINT,
    ENHANCED,
    FEDPE,
    FEDPE_SCALARS,
    FEDPE_SHARED,
    FEDPE_SHARED_SCALARS,
    LOCAL,
    MIDDLE,
    MODELS,
    lower_bound_pair,
    main_case,
    minimax,
)
from bandits.reproduce.checks import SLOPES, Check, Finding
from bandits.reproduce.description import SHARED, TEXT, Case, Instance
from bandits.reproduce.running import Results
from bandits.reproduce.summary import bound
from bandits.run import Run

MODELLED = (TEXT, SHARED)
"""Kinds of instances on which both protocols are played: disjoint and shared parameters."""


def below_the_bound(policy: str) -> Check:
    """Regret is below the theorem's bound at every recorded time of every trial."""

    def check(results: Results, kind: str) -> Finding:
        case = main_case(kind, policy)
        run = results[case]
        above = np.array([bound(case, results, int(t)) for t in run.times])
        largest = float((run.regret / above).max())
        return Finding(f"at most {largest:.1%} of the bound", largest <= 1.0)

    return check


def same_decisions(results: Results, kind: str) -> Finding:
    """Both protocols have the same regret, to the last bit."""
    vectors, scalars = _protocols(results, kind)
    different = int(np.sum(vectors.regret != scalars.regret))
    return Finding(f"{different} of {vectors.regret.size} recorded regrets differ", different == 0)


def cheaper(direction: str, power: int) -> Check:
    """Scalars divide the cost of a direction by a power of d."""

    def check(results: Results, kind: str) -> Finding:
        vectors, scalars = _protocols(results, kind)
        factor = getattr(vectors, direction).mean() / getattr(scalars, direction).mean()
        return _near(float(factor), float(MODELS[CONTEXTUAL].dim ** power))

    return check


def shared_regret(results: Results, _kind: str) -> Finding:
    """Regret of Fed-PE with a parameter per arm over that with a shared one."""
    apart, together = (results[_shared_case(label)] for label in (FEDPE, FEDPE_SHARED))
    return _near(float(apart.mean[-1] / together.mean[-1]), float(np.sqrt(MODELS[CONTEXTUAL].arms)))


def shared_cost(direction: str, power: int) -> Check:
    """The same for scalars sent, against a power of K."""

    def check(results: Results, _kind: str) -> Finding:
        apart, together = (results[_shared_case(label)] for label in (FEDPE, FEDPE_SHARED))
        factor = getattr(apart, direction).mean() / getattr(together, direction).mean()
        return _near(float(factor), float(MODELS[CONTEXTUAL].arms ** power))

    return check


def above_the_lower_bound(results: Results, _kind: str) -> Finding:
    """The larger mean regret of the two instances, over the lower bound, at its smallest."""
    least = {}
    for policy in (ENHANCED, LOCAL):
        first, second = lower_bound_pair(policy).values()
        least[policy] = min(
            max(results[one].mean[-1], results[two].mean[-1]) / minimax(results.effort.applied(one))
            for one, two in zip(first.values(), second.values(), strict=True)
        )
    words = "; ".join(f"{policy}: at least {value:.2f} times" for policy, value in least.items())
    return Finding(words, min(least.values()) >= 1.0)


def _near(factor: float, expected: float) -> Finding:
    low, high = (limit * expected for limit in SLOPES)
    return Finding(f"factor {factor:.2f}, expected {expected:.2f}", low <= factor <= high)


def _shared_case(policy: str) -> Case:
    return Case(Instance(SHARED), policy, MIDDLE)


def _protocols(results: Results, kind: str) -> tuple[Run, Run]:
    labels = (FEDPE, FEDPE_SCALARS) if kind == TEXT else (FEDPE_SHARED, FEDPE_SHARED_SCALARS)
    model = MODELS[DISJOINT] if kind == TEXT else MODELS[CONTEXTUAL]
    vectors, scalars = (results[Case(model, label, MIDDLE)] for label in labels)
    return vectors, scalars
