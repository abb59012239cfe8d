"""A design one can read: weight on as few candidates as the certificate allows.

At a gap of tol * rank, candidates near those that matter may keep a share, by the hundred on a fine grid,
which the optimum has not: it needs no more than ``problem.enough``. So the candidates of little weight are
left out, and the others solved for once more, a hundred times closer. What comes out is taken if its
certificate, over all candidates, holds as well.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from optdesign.certificate import Certificate, scale, settled
from optdesign.problem import DesignProblem
from optdesign.reduced import reduce
from optdesign.solvers import newton
from optdesign.solvers.systems import SystemTooLarge, step_time

CLOSER = 0.01
"""Fraction of the allowed gap to which the candidates that stay are solved for."""

STEPS, STEP = 40, 5e6
"""Most Newton steps for it, and most nanoseconds of one: beyond, weights are scaled up only."""

LITTLE = (1e-2, 1e-4, 0.0)
"""Candidates with at most this fraction of the largest weight in their group are left out; tried in turn."""


def tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, allowed: float
) -> tuple[np.ndarray, Certificate]:
    """Weights on fewer candidates whose gap is at most ``allowed``, or those given, and the certificate."""
    support = np.flatnonzero(weights)
    groups = problem.groups[support]
    top = np.zeros(problem.n_groups)
    np.maximum.at(top, groups, weights[support])
    share = weights[support] / top[groups]
    if len(support) <= problem.enough and share.min() > LITTLE[1]:
        return weights, certificate
    for little in LITTLE:
        rows = support[share > little]
        new = np.zeros_like(weights)
        new[rows] = weights[rows]
        scale(problem.groups, problem.budgets, new)
        if step_time(problem, len(rows), problem.n_groups) <= STEP:
            reduced = reduce(problem, rows)
            u = reduced.restrict(new, problem)
            with suppress(SystemTooLarge):
                for _ in newton.iterate(reduced, u, CLOSER * allowed, STEPS):
                    pass
            reduced.extend(u, problem, new)
        new, proof = settled(problem, new)
        if proof.gap <= allowed and np.count_nonzero(new) < len(support):
            return new, proof
    return weights, certificate
