"""The proof that comes with every answer.

For weights w >= 0 whose blocks have full rank, with variances g_n = x_n' U_b^+ x_n, the trace identity
sum_n w_n g_n = D and the concavity of F(w) = sum_b log Det U_b give, for the optimum w*,

    F(w*) - F(w) <= sum_n g_n (w*_n - w_n) <= sum_i f_i max_{n in i} g_n - D = G(w) - D =: gap.

The gap is zero exactly at the optimum (Lemma "Generalized version" of the paper's appendix). Only the weights
are needed, so a certificate can be given for a design of any origin.

*Efficiency.* exp(F / D) is concave, because F is and because it is homogeneous of degree one, with gradient
exp(F / D) g_n / D. So exp(F(w*) / D) <= exp(F(w) / D) (1 + sum_n g_n (w*_n - w_n) / D) <= exp(F(w) / D) G /
D, and the D-efficiency exp((F(w) - F(w*)) / D) is at least D / G = 1 / (1 + gap / D), which is more than
exp(-gap / D).

*Rounding.* What is returned is a bound on the exact G of the very numbers given. Take any matrices A_b, here
computed so that the vectors y_n = A_b x_n are nearly white: S_b = sum_n w_n y_n y_n' = I + E_b. Then
U_b^+ = A_b' S_b^-1 A_b on the span of the block, so that, with Euclidean norms ``|.|``,
``g_n = y_n' S_b^-1 y_n <= |y_n|^2 / (1 - |E_b|)``.

No inverse has to be exact: A is what it is. If eta bounds sqrt(f_i) times the rounding error of y_n (see
:class:`optdesign.problem.coordinates.Rows`) and M is the number of groups, then by the Cauchy-Schwarz
inequality G grows by at most 2 eta sqrt(M G) + M eta^2 and ``|E_b|`` by 2 eta sqrt(M tr S_b) + M eta^2. The
rounding of sums is added, and so is the fraction by which weights miss their budgets. If ``|E_b| < 1/2`` is
proved then so is the rank of the design; if not, the gap is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.blocks import SINGULAR_RTOL
from optdesign.algebra.passes import coordinates, tile
from optdesign.algebra.whitening import measured
from optdesign.errors import InputError
from optdesign.numbers.roundoff import UNIT, gamma, sum_groups, two_sum
from optdesign.problem.coordinates import Rows
from optdesign.problem.inputs import floats
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import read_only
from optdesign.runtime.jit import kernel

FEASIBILITY_RTOL = 1e-6
"""Weights may miss the budget of their group, or be negative, by this fraction of the budget."""

ROUNDING_SHARE, GAP_SHARE = 1e-11, 0.01
"""The certificate is made again from refined rows if the allowance for round-off exceeds the first fraction
of G and the second fraction of the gap."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the weights prove; see the module's docstring."""

    gap: float
    """A proved bound on G - D, and so on how far log Det is from its maximum. Infinite if rank is lost."""
    relative_gap: float
    """gap / rank."""
    efficiency: float
    """Lower bound D / G on the D-efficiency, between 0 and 1."""
    g_value: float
    """A proved bound on G, the sum over groups of budget times largest variance."""
    log_det: float
    """F, the sum over parameter blocks of the log pseudo-determinant of the information."""
    rank: int
    """D, the sum over parameter blocks of the rank of their candidates."""
    variances: np.ndarray = field(repr=False)
    """g_n for every candidate."""
    rounding: float
    """How much of the gap is not seen, only possible: the allowance for rounding."""


def certify(problem: DesignProblem, weights: ArrayLike) -> Certificate:
    """Certify any weights of a problem, wherever they come from.

    Weights must be finite, non-negative and sum to each group's budget; where they miss that by a millionth
    or less, as those of convex solvers do, the certificate is that of the weights clipped and rescaled.
    If their support does not span every parameter block the gap is infinite and the efficiency zero.

    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    >>> od.certify(p, [0.5, 0.5, 0.0]).gap < 1e-13
    True
    """
    check_problem(problem)
    w, missed = feasible(problem, weights)
    support = (w != 0).nonzero()[0]
    return _certificate(problem, support, w[support], missed)


def settled(problem: DesignProblem, weights: np.ndarray) -> tuple[np.ndarray, Certificate]:
    """A solver's weights scaled so that every group's sum is its budget, and their certificate."""
    support = (weights != 0).nonzero()[0]
    some, w = weights[support], np.zeros(len(weights))
    missed = scale(problem.groups[support], problem.budgets, some)
    w[support] = some
    return w, _certificate(problem, support, some, missed)


def _certificate(problem: DesignProblem, support: np.ndarray, w: np.ndarray, missed: float) -> Certificate:
    """The certificate of weights of some candidates, missing budgets by a fraction of at most ``missed``."""
    proof = _prove(problem, problem.rows, support, w, missed)
    rank = problem.rank
    log_det_share = 1e-9  # allowances above this fraction of G are refined for the sake of log det
    coarse = max(ROUNDING_SHARE, min(log_det_share, GAP_SHARE * (1.0 - rank / proof.g_value)))
    if proof.rounding > coarse and problem.rows is not problem.refined:
        proof = _prove(problem, problem.refined, support, w, missed)
    gap = max(0.0, math.nextafter(proof.g_value - rank, math.inf))
    return Certificate(
        gap=gap,
        relative_gap=gap / rank,
        efficiency=min(1.0, math.nextafter(rank / proof.g_value, 0.0)),
        g_value=proof.g_value,
        log_det=proof.log_det + problem.log_volume,
        rank=rank,
        variances=read_only(proof.variances),
        rounding=proof.g_value * proof.rounding if gap < math.inf else 0.0,
    )


class _Proof(NamedTuple):
    """A bound on G, the fraction of it that rounding may have made, and what was computed on the way."""

    g_value: float
    rounding: float
    log_det: float
    variances: np.ndarray


def _prove(problem: DesignProblem, rows: Rows, support: np.ndarray, w: np.ndarray, missed: float) -> _Proof:
    """Bound G for weights of some candidates that miss budgets by a fraction of at most ``missed``."""
    white, off, log_det, g, largest = measured(problem, rows, support, w)
    total = float(np.add.reduce(log_det))
    if total == -np.inf:
        for b in np.flatnonzero(np.isneginf(log_det)):
            _singular_variances(problem, rows, int(b), support, w, g)
        return _Proof(np.inf, np.inf, total, g)
    eta = error_length(white, rows.rounding)
    terms = min(len(support), tile(rows))
    g_value, share = bound_on_g(problem.budgets, largest, problem.ranks, off, eta, terms, missed)
    return _Proof(g_value, share, total, g)


def feasible(problem: DesignProblem, weights: ArrayLike) -> tuple[np.ndarray, float]:
    """Check weights. Returns a copy without negligible negatives, rescaled where a budget is missed, and
    by which fraction of its budget a group still misses it.
    """
    w = floats(weights, "weights")
    if w.shape != (problem.n_candidates,):
        raise InputError(
            "weights",
            f"must have one entry per candidate, shape ({problem.n_candidates},)",
            f"got {w.shape}",
            "Pass them in the order of the candidates.",
        )
    w = np.array(w, order="C")
    bad, low = clean(w, problem.groups, problem.budgets)
    if bad >= 0:
        raise InputError("weights", "must be finite", f"weights[{bad}] = {w[bad]}", "Replace it by 0.")
    if low >= 0:
        raise InputError(
            "weights",
            "must not be negative",
            f"weights[{low}] = {w[low]:g}",
            "Clip it and rescale its group.",
        )
    total = np.empty(problem.n_groups)
    i, missed = farthest_group(problem.groups, problem.budgets, w, total)
    if not missed <= FEASIBILITY_RTOL:
        raise InputError(
            "weights",
            "must sum to the budget of each group",
            f"group {i} sums to {total[i]:g}, its budget is {problem.budgets[i]:g}",
            "Rescale its weights, or build the problem with that budget.",
        )
    rounding_rtol = 1e-12  # weights that miss their budget by more are rescaled before they are certified
    return w, missed if missed <= rounding_rtol else scale(problem.groups, problem.budgets, w)


def _singular_variances(
    problem: DesignProblem, rows: Rows, b: int, support: np.ndarray, w: np.ndarray, g: np.ndarray
) -> None:
    """Variances of a block whose weights lose rank: infinite outside their range. Overwrites g."""
    rank = problem.ranks[b]
    members = np.flatnonzero(problem.parameter_blocks == b)
    t = coordinates(problem, members, rows)[:, :rank]
    t /= np.maximum(np.abs(t).max(axis=0), np.finfo(float).tiny)  # variances do not depend on these scales
    own = problem.parameter_blocks[support] == b
    used = t[np.searchsorted(members, support[own])]
    values, vectors = np.linalg.eigh((used.T * w[own]) @ used)
    keep = values > SINGULAR_RTOL * rank * max(values[-1], 0.0)
    inside = t @ vectors[:, keep]
    outside = np.linalg.norm(t @ vectors[:, ~keep], axis=1)
    lost = outside > np.sqrt(SINGULAR_RTOL) * np.linalg.norm(t, axis=1)
    g[members] = np.where(lost, np.inf, np.sum(inside**2 / values[keep], axis=1))


@kernel
def farthest_group(groups, budgets, w, total):
    """The group whose sum is farthest from its budget, and that distance as a fraction, rounded up.

    Overwrites total with the sums.
    """
    error = np.empty(len(total))
    sum_groups(groups, w, total, error)
    farthest, most = 0, 0.0
    for i in range(len(total)):
        missed = abs((total[i] - budgets[i]) + error[i]) / budgets[i]
        if not missed < np.inf:  # a sum that overflows is not even a number with its error
            return i, np.inf
        if missed > most:
            farthest, most = i, missed
        total[i] += error[i]
    return farthest, most + 4.0 * UNIT


@kernel
def scale(groups, budgets, w):
    """Scale the weights of every group to its budget; returns the fraction by which one misses it still."""
    total = np.empty(len(budgets))
    farthest_group(groups, budgets, w, total)
    for n in range(len(w)):
        if w[n] != 0.0:
            w[n] *= budgets[groups[n]] / total[groups[n]]
    return farthest_group(groups, budgets, w, total)[1]


@kernel
def error_length(white, rounding):
    """eta, a bound on the length of the error of sqrt(f_i) y_n, y_n = x_n @ white[b], for all candidates."""
    eta = 0.0
    for b in range(len(white)):
        square = 0.0
        for k in range(white.shape[2]):
            error = 0.0
            for j in range(white.shape[1]):
                error += abs(white[b, j, k]) * rounding[b, j]
            square += error * error
        eta = np.maximum(eta, square)  # which keeps what is not a number
    return np.sqrt(eta) * (1.0 + gamma(white.shape[1] + white.shape[2] + 8))


@kernel
def sum_error(groups, eta, trace, terms):
    """Bound on the norm of the error of a sum sum_n w_n y_n y_n' of the given trace.

    So many terms are added up at a time without regard to rounding.
    """
    return 2.0 * eta * np.sqrt(groups * trace) + groups * (eta * eta) + gamma(terms + 8) * trace


@kernel
def bound_on_g(budgets, largest, ranks, off, eta, terms, missed):
    """The bound on G, and the fraction of it that rounding may have made; infinite where there is none."""
    m = len(budgets)
    total, error = 0.0, 0.0
    for i in range(m):
        total, e = two_sum(total, budgets[i] * largest[i])
        error += e
    total += error
    worst = 0.0
    rank = 0
    for b in range(len(ranks)):
        rank = max(rank, ranks[b])
        worst = np.maximum(worst, off[b] + sum_error(m, eta, ranks[b] * (1.0 + off[b]), terms))
    worst += missed
    if not (worst < 0.5 and total < np.inf):  # nor are they if eta or a variance is not a number
        return np.inf, np.inf
    bound = total + 2.0 * eta * np.sqrt(m * total) + m * (eta * eta)
    bound *= (1.0 + gamma(rank + 16)) / (1.0 - worst)
    return bound, 1.0 - total / bound


@kernel
def clean(w, groups, budgets):
    """Set negligible negatives to zero. Overwrites w.

    Returns the first entry that is not finite and the first that is too negative, or -1.
    """
    for n in range(len(w)):
        if not abs(w[n]) < np.inf:
            return n, -1
        if w[n] < -FEASIBILITY_RTOL * budgets[groups[n]]:
            return -1, n
        w[n] = max(w[n], 0.0)
    return -1, -1
