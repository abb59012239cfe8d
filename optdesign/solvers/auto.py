"""The combination of methods that suits a problem; the docs page "choosing a method" gives the reasons.

1. A few sweeps of block coordinate ascent. Where the tolerance is loose or the problem easy, they solve it.
   Groups of many candidates would make the first sweeps costly: there the start is thinned out instead, to
   candidates of high leverage.
2. Newton steps on the candidates that matter, until the gap over all of them is small enough.
3. Whatever is left, by more sweeps: they need no linear system and cannot fail.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optdesign.certificate import group_maxima
from optdesign.problem import DesignProblem
from optdesign.solvers import Step, active, bca

SWEEPS = 10
"""Sweeps before Newton steps."""

MANY = 64
"""Candidates a group, on average, above which the start is thinned out."""

SAMPLE = 20_000
"""Candidates whose information ranks the leverages."""

LEVERAGE = 0.6
"""Candidates of at least this fraction of their group's largest leverage make the start."""


def run(
    problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int | None = None
) -> Iterator[Step]:
    """Run the combination. Overwrites weights."""
    done = 0

    def left(most: int | None) -> int | None:
        if max_iter is None:
            return most
        return max_iter - done if most is None else min(most, max_iter - done)

    stages: list[tuple] = []
    if problem.n_candidates > MANY * problem.n_groups:
        if np.count_nonzero(weights) == problem.n_candidates:
            weights[:] = thinned(problem, weights)
    else:
        stages.append((bca.run, SWEEPS))
    stages += [(active.run, None), (bca.run, None)]
    for method, most in stages:
        gap = np.inf
        if left(most) == 0:
            return
        try:
            for step in method(problem, weights, target, left(most)):
                done += len(step.gaps)
                gap = step.gaps[-1] if len(step.gaps) else gap
                yield step
        except ValueError:
            continue
        if gap <= target:
            return


def thinned(problem: DesignProblem, weights: np.ndarray) -> np.ndarray:
    """Uniform weights on the candidates of high leverage in their group, and on a basis of every block."""
    n = problem.n_candidates
    basis = problem.span.pivots[problem.span.pivots >= 0]
    sample = np.zeros(n)
    rows = np.concatenate([np.arange(0, n, max(1, n // SAMPLE)), basis])
    sample[rows] = weights[rows]
    g = active.priced(problem, sample)
    chosen = g >= LEVERAGE * group_maxima(problem, g)[problem.groups]
    chosen[basis] = True
    count = np.bincount(problem.groups, weights=chosen, minlength=problem.n_groups)
    return np.where(chosen, (problem.budgets / count)[problem.groups], 0.0)
