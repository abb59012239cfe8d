"""The design of a phase: the share of its budget that each client spends on each of its active arms.

A design rule turns a :class:`optdesign.DesignProblem` into weights. ``ascent`` is the paper's Algorithm 3,
and ``ascent_then_auto`` uses the method "auto" of ``optdesign.solve`` where Algorithm 3 takes long. The other
methods of ``optdesign.solve`` are rules as well, and so is any function with the same arguments: the server
certifies the weights of any rule.

*Cases in which Algorithm 3 takes long.* Sweeps become many if clients have many arms. Seconds and iterations
of one design to the gap 0.1, on the authors' instance, kernels compiled, one thread::

    (M, K, d)            Algorithm 3           "auto"
    (100, 10, 3)         0.001 s      7        0.004 s     7
    (100, 30, 3)         0.011 s     24        0.006 s    24
    (300, 300, 5)        0.95 s     149        0.08 s     13
    (100, 1000, 3)       10.4 s     659        0.14 s     17
    (1000, 1000, 10)     51.9 s     120        2.7 s      14

The designs of the paper's experiments have at most 3,000 candidates, and took at most 53 sweeps in the trials
that were examined. With 100,000 clients and 10 arms 2 sweeps are enough. ``ascent_then_auto`` allows more
than these, and is Algorithm 3 as long as they suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign import (
    METHODS,
    Certificate,
    DesignProblem,
    DesignResult,
    Status,
    certify,
    coordinate_ascent,
    solve,
    sparsify,
)

ASCENT, AUTO = "bca", "auto"
"""Names in ``optdesign`` of the method of the paper, and of the choice between methods."""

FEWEST, MOST, VISITED = 10, 200, 10_000_000
"""Sweeps of Algorithm 3 in ``ascent_then_auto``: 200, fewer if they would visit more than 10 million
candidates in all, which takes some seconds, and at least 10."""


MAX_SWEEPS = 100_000
"""Most sweeps of ``ascent``."""


LEVERAGE, SHARE = 1e-12, 1e-6
"""A weight is round-off if w_n g_n and its share of the budget are at most these; see ``certified``."""


class Design(NamedTuple):
    """Weights of a design, and the number of iterations that computed them.

    Attributes
    ----------
    weights : ndarray of shape (N,)
        One weight per candidate.
    iterations : int
        Number of iterations.

    See Also
    --------
    bandits.ascent : Compute a design.

    Examples
    --------
    >>> import numpy as np
    >>> Design(np.array([0.5, 0.5]), 3).iterations
    3
    """

    weights: np.ndarray
    iterations: int


DesignRule = Callable[[DesignProblem, float, "np.ndarray | None"], Design]
"""From a problem, the largest gap G - D, and the weights of the phase before (or None) to a design.

The information of the design must have the rank of the problem."""


def ascent(
    problem: DesignProblem, gap: float, start: np.ndarray | None = None, max_sweeps: int = MAX_SWEEPS
) -> Design:
    """Return the design of Algorithm 3: block coordinate ascent from the uniform design while G > D + gap.

    Parameters
    ----------
    problem : DesignProblem
        Problem of one phase.
    gap : float
        Gap at which it stops.
    start : ndarray of shape (N,), optional
        Initial weights of :func:`optdesign.solve`, whose number of sweeps is counted. Default: the uniform
        design.
    max_sweeps : int
        Largest number of sweeps. The gap is larger if they do not suffice.

    Returns
    -------
    Design
        Weights, and the smallest sufficient number of sweeps, 0 if the uniform design suffices.

    See Also
    --------
    optdesign.coordinate_ascent : Return the design with its certificate.

    Examples
    --------
    >>> import numpy as np, optdesign
    >>> ascent(optdesign.DesignProblem(np.eye(2)), 0.1).iterations
    0
    """
    if start is not None:
        return solved(ASCENT)(problem, gap, start)
    result = coordinate_ascent(problem, gap=gap, max_sweeps=max_sweeps)
    return Design(result.weights, result.iterations)


def ascent_then_auto(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
    """Return the design of Algorithm 3 within ``FEWEST`` to ``MOST`` sweeps, or that of "auto" from there.

    With a ``start``, "auto" begins at once. ``iterations`` is the paper's number if Algorithm 3 reached the
    gap, and else includes the iterations of "auto".
    """
    sweeps = 0
    if start is None:
        limit = max(FEWEST, min(MOST, VISITED // problem.n_candidates))
        design = ascent(problem, gap, None, limit)
        if design.iterations < limit or certify(problem, design.weights).gap <= gap:
            return design
        start, sweeps = design.weights, design.iterations
    design = solved(AUTO)(problem, gap, start)
    return Design(design.weights, sweeps + design.iterations)


def solved(method: str) -> DesignRule:
    """Return the rule of a method of ``optdesign.solve``, from its own start unless one is given."""

    def rule(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
        result = solve(problem, tol=gap / problem.rank, method=method, start=start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return Design(result.weights, result.iterations)

    return rule


def certified(problem: DesignProblem, weights: np.ndarray) -> tuple[np.ndarray, Certificate]:
    """Return the weights of a rule with zeros in place of round-off, and their certificate.

    A weight of 1e-16 would cost a client a pull. Water-filling makes one where the exact share is zero: the
    share is mu - 1 / g_n, so its error is a multiple of 1 / g_n, and w_n g_n is a multiple of the machine
    precision. The information without such a weight is at least 1 - w_n g_n times that with it. No rank is
    lost therefore: w_n g_n = 1 for a candidate that alone carries a direction. The share is bounded as well,
    so that a client whose whole budget is tiny keeps its design.
    """
    weights, certificate = np.asarray(weights), certify(problem, weights)
    if certificate.gap < np.inf:
        small = (weights > 0) & (weights <= SHARE * problem.budgets[problem.groups])
        small[small] = (weights * certificate.variances)[small] <= LEVERAGE
        if small.any():
            weights = np.where(small, 0.0, weights)
            certificate = certify(problem, weights)
    return weights, certificate


def sparse(rule: DesignRule) -> DesignRule:
    """Return the rule whose weights are moved to few arms with the same information.

    See :func:`optdesign.sparsify`.

    Every positive weight costs a client at least one pull and one estimate to send. At most M + Q of the M K
    weights have to be positive, Q = sum of d_a (d_a + 1) / 2.
    """

    def thin(problem: DesignProblem, gap: float, start: np.ndarray | None = None) -> Design:
        design = rule(problem, gap, start)
        weights = sparsify(DesignResult.given(problem, design.weights)).weights
        return Design(weights, design.iterations)

    return thin


def rule_named(method: str) -> DesignRule:
    """Return the paper's rule, or that of another method of ``optdesign.solve``."""
    if method not in METHODS:
        raise ValueError(
            f"design_method must be one of {', '.join(METHODS)}; got {method!r}. The paper's is {ASCENT!r}."
        )
    return ascent if method == ASCENT else solved(method)


def phase_rule(method: str) -> DesignRule:
    """Return the rule of Fed-PE and its variants: as ``rule_named``, and "auto" begins with Algorithm 3."""
    return ascent_then_auto if method == AUTO else rule_named(method)
