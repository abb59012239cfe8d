"""Hunt for false certificates of :func:`optdesign.solve`.

Claims: the rank is the exact one or a note says that it may not be; the exact gap of the weights, as floats,
is at most the gap that is claimed; a status CONVERGED means that it is at most tol * rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import optdesign as od
from hunt.claims import Found, Stopwatch
from hunt.truth import Truth, instance, number
from optdesign.testing import families
from optdesign.testing.families import gaussian, labelled

WARM_UP = "column_scales"

TOLERANCES = (1e-6, 1e-9)
LIMIT = 20.0
"""Seconds that a solve may take."""


class Prey(NamedTuple):
    """A problem, and weights to start from."""

    problem: od.DesignProblem
    start: np.ndarray | None = None


def adversarial_start(rng: np.random.Generator) -> Prey:
    """Start from weights of any size, in the worst places."""
    problem = labelled(np.vstack([np.eye(3), gaussian(rng)[:, [0, 1, 0]]]), rng)
    start = 10.0 ** rng.uniform(-40, 0, size=problem.n_candidates)
    start[rng.random(size=len(start)) < 0.5] = 0.0
    return Prey(problem, start)


FAMILIES: dict[str, Callable[[np.random.Generator], Prey]] = {
    **{name: lambda rng, make=make: Prey(make(rng)) for name, make in families.FAMILIES.items()},  # type: ignore[misc]
    "adversarial_start": adversarial_start,
}


def case(family: str, seed: int) -> Found:
    """Draw a problem, and examine its solution; methods and tolerances in turn."""
    prey = FAMILIES[family](np.random.default_rng([seed, list(FAMILIES).index(family)]))
    methods = ("auto", "auto", *od.METHODS)
    return examine(prey, TOLERANCES[seed % 2], methods[seed % len(methods)])


def examine(prey: Prey, tol: float, method: str) -> Found:
    """Solve, and compare every claim with the truth."""
    problem = prey.problem
    with Stopwatch() as watch:
        result = od.solve(problem, tol=tol, method=method, start=prey.start, time_limit=LIMIT)
    return _examined(problem, result, tol)._replace(overrun=watch.seconds - LIMIT)


def _examined(problem: od.DesignProblem, result: od.DesignResult, tol: float) -> Found:
    truth = Truth(instance(problem.candidates, problem.groups, problem.parameter_blocks, problem.budgets))
    status, noted = result.status.name, bool(problem.rank_note)
    if truth.ranks != problem.ranks.tolist():
        wrong = "" if noted else f"rank {problem.ranks.tolist()}, exactly {truth.ranks}, and no note"
        return Found(status, wrong, noted)
    if not np.isfinite(result.gap):
        return Found(status, "" if not result.converged else "converged without a gap", noted)
    measured = truth.measure(result.weights, scale=False)
    if measured is None:
        return Found(status, f"gap {result.gap:.3g} claimed, and the weights lose rank", noted)
    gap = measured.g_value - truth.rank
    slack = float((number(result.gap) - gap).mid()) / truth.rank
    wrong = ""
    if not gap <= number(result.gap):
        wrong = f"gap {result.gap:.3g} claimed, truly {gap.str(6)}"
    elif not truth.rank >= number(result.efficiency) * measured.g_value:
        wrong = f"efficiency {result.efficiency!r} is more than D / G"
    elif result.converged and not gap <= number(tol) * truth.rank:
        wrong = f"converged at a gap of {gap.str(6)}"
    return Found(status, wrong, noted, slack=slack)
