"""The combination of methods that suits a problem; the docs page "choosing a method" gives the reasons.

1. Sweeps of block coordinate ascent, as long as they promise to get there soon. Large problems whose groups
   have many candidates skip them.
2. Newton steps on the candidates that matter, until the gap over all of them is small enough.
3. Whatever is left, by more sweeps: they need no linear system and cannot fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optdesign.problem import DesignProblem
from optdesign.solvers import Step, active, bca
from optdesign.solvers.start import many_candidates
from optdesign.solvers.systems import SystemTooLarge

SWEEPS = 10
"""Sweeps between two looks at how fast the gap falls."""

PATIENCE, HOPELESS = 20, 1000
SMALL_WORK = 1.5e6
"""Sweeps go on as long as no more than PATIENCE seem to be ahead. They also go on up to PATIENCE of them and
this many multiplications, about the least that Newton steps would cost, unless HOPELESS seem to be ahead."""


SMALL_SWEEP = 1e5
"""Groups of many candidates get sweeps only if one needs no more multiplications than this."""


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Run the combination. Overwrites weights."""
    left = max_iter
    work = 3 * problem.n_candidates * problem.span.maps.shape[2] ** 2
    if work <= SMALL_SWEEP or not many_candidates(problem):
        gaps = np.empty(0)
        for step in bca.run(problem, weights, target, left, batch=SWEEPS):
            yield step
            left -= len(step.gaps)
            if step.gaps[-1] <= target:
                return
            gaps = np.concatenate([gaps, step.gaps])[-SWEEPS:]
            spent = (max_iter - left - PATIENCE) * work
            if len(gaps) == SWEEPS:
                ahead = _sweeps_ahead(gaps, target)
                if ahead > HOPELESS or (ahead > PATIENCE and spent > SMALL_WORK):
                    break
    for method in (active.run, bca.run):
        if left <= 0:
            return
        gap = np.inf
        try:
            for step in method(problem, weights, target, left):
                left -= len(step.gaps)
                gap = step.gaps[-1] if len(step.gaps) else gap
                yield step
        except SystemTooLarge:
            continue
        if gap <= target:
            return


def _sweeps_ahead(gaps: np.ndarray, target: float) -> float:
    """Sweeps until the target at the pace of the last ones."""
    pace = math.log(gaps[-1] / gaps[0]) / (len(gaps) - 1)
    return math.log(target / gaps[-1]) / pace if pace < 0 else math.inf
