"""A design one can read: weight on as few candidates as the certificate allows.

At a gap of tol * rank, candidates near those that matter may keep a share, by the hundred on a fine grid,
which the optimum has not: it needs no more than ``problem.enough``. So equal candidates are merged, those of
little weight left out, and the others solved for once more. What comes out is taken if its certificate, over
all candidates, holds as well. Dust, however few have weight, is reason enough to try. Where neither is the
case, equal candidates are merged all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import coordinates
from optdesign.algebra.reduced import reduce
from optdesign.design.certificate import Certificate, scale, settled
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.solvers import newton
from optdesign.solvers.costs import step_time

STEP = 2e6
"""Most nanoseconds of a Newton step for it: beyond, weights are scaled up only."""

LITTLE = (1e-2, 1e-4, 0.0)
"""Candidates with at most this fraction of the largest weight in their group are left out; tried in turn."""

WORTH = 0.01
"""Fraction of the candidates with weight that must be in question: fewer are not worth a certificate."""


def tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, allowed: float
) -> tuple[np.ndarray, Certificate]:
    """Weights on fewer candidates whose gap is at most ``allowed``, or those given, and the certificate."""
    if np.count_nonzero(weights) == problem.n_groups:  # one of every group: there are no fewer
        return weights, certificate
    support, dust = _support(problem, weights)
    least = WORTH * len(support.rows)
    few = max(len(support.rows) - problem.enough, dust) <= least
    if few:
        # Equal candidates have one variance; but so may all others with weight in a group, in other blocks.
        place = (
            problem.groups[support.rows] * problem.n_parameter_blocks + problem.parameter_blocks[support.rows]
        )
        if not _repeated(certificate.variances[support.rows] * (1.0 + place)):
            return weights, certificate
    support, count = _merged(problem, support), len(support.rows)
    if few:
        if len(support.rows) == count:
            return weights, certificate
        new, proof = _certified(problem, support, allowed, solved=False)
        return (new, proof) if proof.gap <= allowed else (weights, certificate)
    tried = -1
    for little in LITTLE:
        kept = support.only(support.share > little)
        # What is solved anew has other shares, of which some may be little now.
        while len(kept.rows) != tried:
            solved = step_time(problem, len(kept.rows)) <= STEP
            if not solved and count - len(kept.rows) <= least:
                break
            tried = len(kept.rows)
            new, proof = _certified(problem, kept, allowed, solved=solved)
            left = int(np.count_nonzero(new))
            if proof.gap > allowed or left >= count:
                break
            weights, certificate, count = new, proof, left
            support, _ = _support(problem, weights)
            kept = support.only(support.share > little)
            tried = left
        if count == tried:
            break
    return weights, certificate


def _certified(
    problem: DesignProblem, kept: _Support, allowed: float, *, solved: bool
) -> tuple[np.ndarray, Certificate]:
    """Weights of some candidates, scaled up and solved for, and their certificate over all."""
    new = np.zeros(problem.n_candidates)
    scale(problem.groups[kept.rows], problem.budgets, kept.weights)
    new[kept.rows] = kept.weights
    if solved:
        reduced = reduce(problem, kept.rows)
        u = reduced.restrict(new, problem)
        for _ in newton.run(reduced, u, newton.OVERSHOOT * allowed):
            raise_if_stopped()
        reduced.extend(u, problem, new)
    return settled(problem, new)


class _Support(NamedTuple):
    """Candidates with weight."""

    rows: np.ndarray
    weights: np.ndarray
    share: np.ndarray
    """Weights as fractions of their group's largest."""

    def only(self, which: np.ndarray) -> _Support:
        """Some of them."""
        return _Support(*(part[which] for part in self))


def _support(problem: DesignProblem, weights: np.ndarray) -> tuple[_Support, int]:
    """The candidates with weight, and how many of them are dust."""
    rows = np.flatnonzero(weights != 0)
    share = np.empty(len(rows))
    dust = _shares(problem.groups, rows, weights, np.zeros(problem.n_groups), share)
    return _Support(rows, weights[rows], share), dust


def _repeated(values: np.ndarray) -> bool:
    """Whether some of them are the same, as variances of equal candidates are."""
    return len(set(values.tolist())) < len(values)  # which takes less time than sorting few of them


def _merged(problem: DesignProblem, support: _Support) -> _Support:
    """Of equal candidates in a group and block the first, with the weight and the share of all.

    Equal is what one combination cannot tell apart. Its coefficients are sines of whole numbers, which no
    rational combination takes to zero (Lindemann and Weierstrass), but rounding may: then the certificate is
    that of other candidates, and tells.
    """
    groups = problem.groups[support.rows]
    some = np.flatnonzero(np.bincount(groups, minlength=problem.n_groups)[groups] > 1)
    rows = support.rows[some]
    used = problem.n_groups + 1
    place = np.sin(1.0 + groups[some]) + np.sin(used + problem.parameter_blocks[rows])
    apart = np.sin(used + problem.n_parameter_blocks + np.arange(problem.rows.maps.shape[2]))
    key = place * (2.0 + coordinates(problem, rows, problem.rows) @ apart)
    if not _repeated(key):
        return support
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    keep = np.ones(len(support.rows), np.bool_)
    keep[some] = False
    keep[some[first]] = True
    weights, share = support.weights.copy(), support.share.copy()
    for part in (weights, share):
        part[some[first]] = np.bincount(same, weights=part[some])
    return _Support(support.rows, weights, share).only(keep)


@kernel
def _shares(groups, rows, weights, top, share):
    """Overwrite share with the weights of rows as fractions of their group's largest; top is given as zeros.

    Returns how many of them are dust. Overwrites top with the largest weights.
    """
    for n in rows:
        top[groups[n]] = max(top[groups[n]], weights[n])
    dust = 0
    for k in range(len(rows)):
        share[k] = weights[rows[k]] / top[groups[rows[k]]]
        dust += share[k] <= newton.DUST
    return dust
