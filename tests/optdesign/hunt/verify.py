"""Hunt for false verdicts of :func:`optdesign.verify`.

Claims: a design whose claims are all true is not said to differ, and a design with a false claim is not said
to agree. Every case is a solved design or any other one. In half of the cases a claim is made false, by much
more than round-off. The truth about the claims of the others is that of :mod:`hunt.efficiency`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

import optdesign as od
from hunt.claims import Found, Stopwatch
from hunt.efficiency import wrong_certificate
from hunt.instances import FAMILIES
from hunt.truth import Truth

WARM_UP = "small_integers"

LIMIT = 2.0
"""Seconds of the convex solver."""

Lie = Callable[[od.DesignResult, np.random.Generator], od.DesignResult]


def _claims(result: od.DesignResult, **parts: object) -> od.DesignResult:
    return dataclasses.replace(result, certificate=dataclasses.replace(result.certificate, **parts))


def gap(result: od.DesignResult, _: np.random.Generator) -> od.DesignResult:
    """Claim a gap of a hundredth, and all that follows from it."""
    g, r = result.gap / 100, result.rank
    return _claims(result, gap=g, relative_gap=g / r, g_value=r + g, efficiency=r / (r + g))


def efficiency(result: od.DesignResult, _: np.random.Generator) -> od.DesignResult:
    """Claim an efficiency that is too high."""
    return _claims(result, efficiency=min(1.0, result.efficiency + 1e-5))


def log_det(result: od.DesignResult, rng: np.random.Generator) -> od.DesignResult:
    """Claim another log det."""
    return _claims(
        result, log_det=result.log_det + rng.choice([-1, 1]) * 1e-5 * max(1.0, abs(result.log_det))
    )


def variances(result: od.DesignResult, _: np.random.Generator) -> od.DesignResult:
    """Claim that the variance that contributes most to G is smaller."""
    g = result.variances.copy()
    g[np.argmax(g * result.problem.budgets[result.problem.groups])] *= 0.99
    return _claims(result, variances=g)


def excused(result: od.DesignResult, rng: np.random.Generator) -> od.DesignResult:
    """Claim smaller variances, with an allowance for round-off that covers everything."""
    return _claims(variances(result, rng), rounding=1e9)


def rank(result: od.DesignResult, _: np.random.Generator) -> od.DesignResult:
    """Claim another rank."""
    return _claims(result, rank=result.rank + 1)


def weights(result: od.DesignResult, rng: np.random.Generator) -> od.DesignResult:
    """Keep the certificate and change the weights."""
    p = result.problem
    w = result.weights + p.uniform() * rng.uniform(0.3, 1.0)
    return dataclasses.replace(result, weights=w * (p.budgets / np.bincount(p.groups, w))[p.groups])


LIES: tuple[Lie, ...] = (log_det, variances, excused, rank, weights, gap, efficiency)
OF_ANY = 4
"""So many lies, the first ones, are false by much whatever the gap is."""


def case(family: str, seed: int) -> Found:
    """Draw a problem and a design, make a claim false or not, and examine the verdict."""
    rng = np.random.default_rng([seed, 8, list(FAMILIES).index(family)])
    problem = FAMILIES[family](rng)
    truth, made = Truth(problem), od.DesignProblem(*problem)
    if rng.random() < 0.5:
        result = od.solve(made, tol=float(rng.choice([1e-3, 1e-6, 1e-9])), time_limit=5)
    else:
        w = made.uniform() * rng.uniform(0.2, 1.0, size=made.n_candidates)
        w *= (made.budgets / np.bincount(made.groups, w))[made.groups]
        result = od.DesignResult.given(made, w)
    if rng.random() < 0.5 or not np.isfinite(result.gap):
        return examine(truth, result)
    large = result.gap > 1e-3 * made.rank
    lie = LIES[int(rng.integers(0, len(LIES) if large else OF_ANY))]
    return examine(truth, lie(result, rng), lie.__name__)


def examine(truth: Truth, result: od.DesignResult, lie: str = "") -> Found:
    """Compare the verdict on a design with the truth about its claims; ``lie`` names the false one."""
    if result.problem.rank != truth.rank or result.problem.rank_note or not np.isfinite(result.gap):
        return Found("unproved", noted=True)
    with Stopwatch(processes=True) as watch:
        verdict = od.verify(result, time_limit=LIMIT)
    return _examined(truth, result, lie, verdict)._replace(overrun=watch.seconds - LIMIT)


def _examined(truth: Truth, result: od.DesignResult, lie: str, verdict: od.Verification) -> Found:
    if verdict.agrees and lie:
        return Found("agrees", f"agrees with a false claim: {lie}")
    if verdict.verdict == "differs" and not lie:
        measured = truth.measure(result.weights)
        if measured is not None and not wrong_certificate(truth, result.certificate, measured):
            return Found("differs", f"differs though every claim is true: {verdict.message}")
    return Found(verdict.verdict)
