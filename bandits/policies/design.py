"""The design of a phase: how much of its budget each client spends on each of its active arms.

A design rule turns a :class:`optdesign.DesignProblem` into weights. ``ascent`` is the paper's Algorithm 3;
the other methods of ``optdesign.solve`` are rules as well, and so is any function of yours with the same
arguments: the server certifies whatever it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from optdesign import METHODS, DesignProblem, Status, certify, solve
from optdesign.certificate import scale
from optdesign.solve import DEFAULT_MAX_ITER
from optdesign.solvers import bca, lifted
from optdesign.sparsify import thinned

ASCENT = "bca"
"""The method of the paper, by the name it has in ``optdesign``."""


class Design(NamedTuple):
    """Weights, one per candidate, and how many iterations it took to find them."""

    weights: np.ndarray
    iterations: int


DesignRule = Callable[[DesignProblem, float, "np.ndarray | None"], Design]
"""From a problem, the largest gap G - D, and the weights of the phase before (or None) to a design."""


def ascent(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
    """Algorithm 3: block coordinate ascent from the uniform design while G > D + gap.

    ``iterations`` is the smallest number of sweeps that is enough, 0 if the uniform design is. With a
    ``start`` it is the number of sweeps that the solver made from there.

    >>> import numpy as np, optdesign
    >>> ascent(optdesign.DesignProblem(np.eye(2)), 0.1).iterations
    0
    """
    if start is not None:
        return solved(ASCENT)(problem, gap, start)
    weights, count = problem.uniform(), 0
    # One sweep at a time, and the certificate of the weights as the only stopping rule.
    sweeps = lifted(partial(bca.run, batch=1))(problem, weights, 0.0, DEFAULT_MAX_ITER)
    while certify(problem, weights).gap > gap and next(sweeps, None) is not None:
        count += 1
    return Design(weights, count)


def solved(method: str) -> DesignRule:
    """The rule that asks ``optdesign.solve`` for a method, from its own start unless there is another."""

    def rule(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
        result = solve(problem, tol=gap / problem.rank, method=method, start=start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return Design(result.weights, result.iterations)

    return rule


def sparse(rule: DesignRule) -> DesignRule:
    """The rule whose weights are moved to few arms with the same information; see :mod:`optdesign.sparsify`.

    Every positive weight costs a client at least one pull and one estimate to send. At most M + Q of the M K
    weights have to be positive, Q = sum of d_a (d_a + 1) / 2.
    """

    def thin(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
        design = rule(problem, gap, start)
        weights = thinned(problem, np.asarray(design.weights))
        scale(problem.groups, problem.budgets, weights)
        return Design(weights, design.iterations)

    return thin


def rule_named(method: str) -> DesignRule:
    """The paper's rule, or that of another method of ``optdesign.solve``."""
    if method not in METHODS:
        raise ValueError(
            f"design_method must be one of {', '.join(METHODS)}; got {method!r}. The paper's is {ASCENT!r}."
        )
    return ascent if method == ASCENT else solved(method)
