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

from optdesign.problem import DesignProblem
from optdesign.solvers import Step, active, bca
from optdesign.solvers.start import thinned, worth_thinning

SWEEPS = 10
"""Sweeps before Newton steps."""


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
    if worth_thinning(problem, weights):
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
