"""The protocol of a solver method.

A method is a generator ``run(problem, weights, target, max_iter)``. It improves the weights in place and
yields a :class:`Step` after one or more iterations. It returns when the gap is at most ``target``, after
``max_iter`` iterations, or when it makes no more progress. At every yield the weights are feasible and keep
the rank.

Time limits, interrupts, the history and the final certificate belong to the loop around all methods
(:mod:`optdesign.solvers.loop`). A method calls ``raise_if_stopped`` between two pieces of a long iteration;
the weights of the last yield are then the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.reduced import Reduced, reduce
from optdesign.problem.problem import DesignProblem


class Step(NamedTuple):
    """The work of a method since the last step."""

    gaps: np.ndarray
    """Gaps of the iterations that were completed, one or more."""
    stage: str
    """Name of the stage, as shown in ``DesignResult.method``."""


PATIENCE = 6
"""Number of iterations without sufficient progress after which a method ends or restarts."""

MAX_ITER = 100_000
"""Default limit of the number of iterations."""

Method = Callable[[DesignProblem, np.ndarray, float, int], Iterator[Step]]
"""A method for the weights of a problem."""

ReducedMethod = Callable[[Reduced, np.ndarray, float, int], Iterator[Step]]
"""A method for the shares of a reduced problem (:mod:`optdesign.algebra.reduced`)."""


def on_problem(method: ReducedMethod) -> Method:
    """Return the method for whole problems that runs a method for reduced problems."""

    def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
        reduced = reduce(problem)
        u = reduced.restrict(weights)
        for step in method(reduced, u, target, max_iter):
            reduced.extend(u, weights)
            yield step

    return run
