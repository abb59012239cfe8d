"""Solvers, one file a method, each with its compiled kernels at the bottom.

A solver is a generator ``run(problem, weights, target, max_iter)``: it improves the weights in place,
yields a :class:`Step` now and then, and returns when the gap is at most ``target``, when ``max_iter``
iterations are done, or when it can make no more progress. At every yield the weights are feasible and
keep the rank. Limits of time, interrupts, history and the final certificate belong to the one loop in
:mod:`optdesign.solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from optdesign.problem import DesignProblem


class Step(NamedTuple):
    """What a solver has done since the last step."""

    gaps: np.ndarray
    """Running gaps of the iterations completed since; may be empty."""
    stage: str
    """What is being done, in the words of ``DesignResult.method``."""


NOTHING = np.empty(0)
"""The gaps of a step that is still under way."""

Method = Callable[["DesignProblem", np.ndarray, float, int], Iterator[Step]]
