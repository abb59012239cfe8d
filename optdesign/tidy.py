"""A design one can read: weight on as few candidates as the certificate allows.

At a gap of tol * rank, candidates near those that matter may keep a share, by the hundred on a fine grid,
which the optimum has not: it needs no more than ``problem.enough``. So equal candidates are merged, those of
little weight left out, and the others solved for once more. What comes out is taken if its certificate, over
all candidates, holds as well. Dust, however few have weight, is reason enough to try.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign._kernel import kernel
from optdesign.certificate import Certificate, scale, settled
from optdesign.limits import look
from optdesign.problem import DesignProblem
from optdesign.reduced import reduce
from optdesign.solvers import newton
from optdesign.solvers.costs import step_time

STEP = 5e6
"""Most nanoseconds of a Newton step for it: beyond, weights are scaled up only."""

LITTLE = (1e-2, 1e-4, 0.0)
"""Candidates with at most this fraction of the largest weight in their group are left out; tried in turn."""


def tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, allowed: float
) -> tuple[np.ndarray, Certificate]:
    """Weights on fewer candidates whose gap is at most ``allowed``, or those given, and the certificate."""
    share = np.zeros_like(weights)
    count, least = _shares(problem.groups, weights, np.zeros(problem.n_groups), share)
    if count <= problem.enough and least > newton.DUST:
        return weights, certificate
    support = _merged(problem, np.flatnonzero(weights != 0), weights)
    for little in LITTLE:
        rows = support.rows[share[support.rows] > little]
        new = np.zeros_like(weights)
        new[rows] = support.weights[share[support.rows] > little]
        scale(problem.groups, problem.budgets, new)
        if step_time(problem, len(rows), problem.n_groups) <= STEP:
            reduced = reduce(problem, rows)
            u = reduced.restrict(new, problem)
            for _ in newton.run(reduced, u, allowed, newton.MOST):
                look()
            reduced.extend(u, problem, new)
        new, proof = settled(problem, new)
        if proof.gap <= allowed and np.count_nonzero(new) < count:
            return new, proof
    return weights, certificate


class _Support(NamedTuple):
    rows: np.ndarray
    weights: np.ndarray


def _merged(problem: DesignProblem, support: np.ndarray, weights: np.ndarray) -> _Support:
    """Candidates with weight; of equal ones in a group and block the first, with the weight of all.

    Equal is what one random combination cannot tell apart: should that ever be wrong, so is the certificate.
    """
    rng = np.random.default_rng(0)
    group, block = rng.random(problem.n_groups), rng.random(problem.n_blocks)
    place = 1.0 + group[problem.groups[support]] + block[problem.blocks[support]]
    key = place * (1.0 + problem.coordinates(support) @ rng.random(problem.rows.maps.shape[2]))
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return _Support(support[first[order]], np.bincount(same, weights=weights[support])[order])


@kernel
def _shares(groups, weights, top, share):
    """Overwrite share with weights as fractions of their group's largest, and top with that, given as zeros.

    Returns how many weights are positive, and the smallest of their shares.
    """
    for n in range(len(weights)):
        if weights[n] > 0.0:
            top[groups[n]] = max(top[groups[n]], weights[n])
    count, least = 0, 1.0
    for n in range(len(weights)):
        if weights[n] > 0.0:
            share[n] = weights[n] / top[groups[n]]
            count += 1
            least = min(least, share[n])
    return count, least
