"""Solvers, one file a method, each with its compiled kernels at the bottom.

All have one form: a generator ``run(problem, weights, target, max_iter)`` improves the weights in place,
yields a :class:`Step` now and then, and returns when the gap is at most ``target``, when ``max_iter``
iterations are done, or when it can make no more progress. At every yield the weights are feasible and keep
the rank. Limits of time, interrupts, history and the final certificate belong to the one loop in
:mod:`optdesign.solvers.solve`.

Two do the arithmetic, on the reduced form of a problem (:mod:`optdesign.algebra.reduced`): :mod:`.bca` by
sweeps, :mod:`.newton` by Newton steps; a visit to one group is in :mod:`.group_step`, linear systems in
:mod:`.systems`. :func:`lifted` makes a method for whole problems of either. Two combine them:
:mod:`.working_set` solves on the candidates that matter, and :mod:`.auto` decides between sweeps and that, by
the times that :mod:`.costs` estimates. :mod:`.sweeps` is Algorithm 3 of the paper, counted sweep by sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from optdesign.algebra.reduced import Reduced, reduce
from optdesign.numbers.roundoff import UNIT
from optdesign.problem.problem import DesignProblem


class Step(NamedTuple):
    """What a solver has done since the last step."""

    gaps: np.ndarray
    """Running gaps of the iterations completed since; may be empty."""
    stage: str
    """What is being done, in the words of ``DesignResult.method``."""


NOTHING = np.empty(0)
"""The gaps of a step that is still under way."""

PATIENCE = 6
"""Iterations without a smaller gap after which a method has come to its end."""

ROUNDING = 64 * UNIT
"""What differs by this fraction differs by rounding."""

Method = Callable[[DesignProblem, np.ndarray, float, int], Iterator[Step]]
"""A method for the weights of a problem,"""
ReducedMethod = Callable[[Reduced, np.ndarray, float, int], Iterator[Step]]
"""and one for the shares of its reduced form."""


def lifted(method: ReducedMethod) -> Method:
    """A method for whole problems: weights follow the shares after every iteration."""

    def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
        reduced = reduce(problem)
        u = reduced.restrict(weights, problem)
        for step in method(reduced, u, target, max_iter):
            if len(step.gaps):
                reduced.extend(u, problem, weights)
            yield step

    return run
