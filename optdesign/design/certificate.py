"""The certificate of a design: bounds on its gap and its efficiency.

The candidates of a parameter block b inform the same parameter vector. Let w >= 0 be weights, and let
U_b = sum_{n in b} w_n x_n x_n' be the information matrix of b. Assume that the rank of every U_b is that of
the candidates of b, and let D be the sum of these ranks. Det is the product of the non-zero eigenvalues,
g_n = x_n' U_b^+ x_n the variance of candidate n, and f_i the budget of group i. The trace identity
sum_n w_n g_n = D and the concavity of F(w) = sum_b log Det U_b give, for the optimum w*,

    F(w*) - F(w) <= sum_n g_n (w*_n - w_n) <= sum_i f_i max_{n in i} g_n - D = G(w) - D =: gap.

The gap is zero exactly at the optimum: see the lemma "Generalized version" in the appendix of Huang et al.
(NeurIPS 2021). Only the weights are needed, so a certificate can be given for a design of any origin.

*Efficiency.* F is concave, so exp(F / D) is log-concave. It is homogeneous of degree one, and a log-concave
function with this property is concave. The gradient of exp(F / D) has the entries exp(F / D) g_n / D. So
exp(F(w*) / D) <= exp(F(w) / D) (1 + sum_n g_n (w*_n - w_n) / D) <= exp(F(w) / D) G / D, and the D-efficiency
exp((F(w) - F(w*)) / D) is at least D / G = 1 / (1 + gap / D), which is at least exp(-gap / D).

*Round-off.* The returned G is an upper bound on the exact G of the given floating-point candidates, budgets
and weights. It includes an allowance for round-off (:mod:`optdesign.design.roundoff_allowance`).

*Coordinates.* Variances are computed from coordinates x_n' A_b, with a matrix A_b for each parameter block.
Refined coordinates (``problem.refined``) are computed in twice the precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from optdesign.algebra.passes import coordinates, tile
from optdesign.algebra.whitening import Measured, measured
from optdesign.design.feasible import feasible, scale
from optdesign.design.near_singular import attempts, log_det_change, nearly_white, rounding_of, spans
from optdesign.design.roundoff_allowance import bound_on_g, error_length
from optdesign.problem.coordinates import Rows, refined_rows
from optdesign.problem.exact_rank import is_outside, rank_of
from optdesign.problem.large import LargeProblem
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import read_only


class Shares(NamedTuple):
    """Thresholds for the allowance for round-off, as fractions of G or of the gap G - D.

    Let R be the allowance. The certificate is computed again from refined coordinates if R exceeds both
    ``g`` * G and ``gap`` * (G - D), or if R exceeds ``log_det`` * G. If R exceeds ``log_det`` * G even in
    refined coordinates, the computed log det is inaccurate, and the coordinates of
    :mod:`optdesign.design.near_singular` are tried.
    """

    g: float = 1e-11
    gap: float = 0.01
    log_det: float = 1e-9
    costly: float = 1e-7
    """Threshold in place of ``log_det`` if the determinants in :mod:`optdesign.design.near_singular` would
    take more than about 1 s. The allowance grows with the third power of the dimension. In dimension 300 it
    is about 1e-9 G even if the weights are well-conditioned."""


SHARES = Shares()


@dataclass(frozen=True, eq=False)
class Certificate:
    """Certificate of weights: proved bounds on the gap and on the efficiency.

    Attributes
    ----------
    gap : float
        Proved bound on G - D, which bounds the distance of log Det from its maximum. Infinite if the weights
        lose rank, or if round-off prevents the proof that they keep it.
    relative_gap : float
        Gap divided by the rank.
    efficiency : float
        Lower bound on the D-efficiency against all designs on these candidates, between 0 and 1: D / G, or a
        larger bound from the comparison with a solved design, if one was given.
    g_value : float
        Proved bound on G, the sum over groups of budget times largest variance.
    log_det : float
        F, the sum over parameter blocks of the log pseudo-determinant of the information.
    rank : int
        D, the sum over parameter blocks of the rank of their candidates.
    variances : ndarray of shape (N,)
        Variance g_n of every candidate.
    rounding : float
        Part of the gap that is the allowance for round-off; 0 if the gap is infinite.

    See Also
    --------
    optdesign.certify : Compute a certificate.
    optdesign.verify : Check a certificate with independent code.

    Examples
    --------
    >>> import optdesign as od
    >>> c = od.certify(od.DesignProblem([[1.0], [2.0]]), [0.0, 1.0])
    >>> c.rank, round(c.g_value, 9), round(c.efficiency, 9)
    (1, 1.0, 1.0)
    """

    gap: float
    relative_gap: float
    efficiency: float
    g_value: float
    log_det: float
    rank: int
    variances: np.ndarray = field(repr=False)
    rounding: float

    @property
    def g_efficiency(self) -> float:
        """D / G, the G-efficiency: the lower bound on the D-efficiency that the weights alone prove."""
        return min(1.0, math.nextafter(self.rank / self.g_value, 0.0))


def certify(problem: DesignProblem, weights: ArrayLike) -> Certificate:
    """Return the certificate of weights, from the weights alone; see :func:`optdesign.certify`."""
    check_problem(problem)
    if isinstance(problem, LargeProblem):
        from optdesign.design.large import certify_large  # imported here, because it imports this module

        return certify_large(problem, weights)
    w, missed = feasible(problem, weights)
    support = (w != 0).nonzero()[0]
    return certificate_of(problem, support, w[support], missed)


def rescale_and_certify(problem: DesignProblem, weights: np.ndarray) -> tuple[np.ndarray, Certificate]:
    """Return weights scaled so that the sum of every group is its budget, and their certificate."""
    support = (weights != 0).nonzero()[0]
    w_support, w = weights[support], np.zeros(len(weights))
    missed = scale(problem.groups[support], problem.budgets, w_support)
    w[support] = w_support
    return w, certificate_of(problem, support, w_support, missed)


Measure = Callable[[DesignProblem, Rows, np.ndarray, np.ndarray], Measured]
"""Function that computes the variances of all candidates from the weights of the support."""


def certificate_of(
    problem: DesignProblem, support: np.ndarray, w: np.ndarray, missed: float, measure: Measure = measured
) -> Certificate:
    """Return the certificate of the weights ``w`` of the candidates ``support``.

    ``missed`` bounds the difference between the sum of a group and its budget, as a fraction of the budget.

    The certificate holds for the candidates whose variances ``measure`` returns.
    """
    rank, proof = problem.rank, _prove_directly(problem, support, w, missed, measure)
    if not proof.rounding <= _largest_rounding(problem):
        proof = _prove_nearly_singular(problem, support, w, missed, measure, proof)
    if proof.g_value < rank * (1 - 1e-6):  # no weights have a G below D, so the variances are wrong
        proof = proof._replace(g_value=math.inf, log_det=-math.inf)
    if not proof.g_value < math.inf:
        for b in np.flatnonzero(problem.ranks):
            _singular_variances(problem, int(b), support, w, proof.variances)
    gap = max(0.0, math.nextafter(proof.g_value - rank, math.inf))
    return Certificate(
        gap=gap,
        relative_gap=gap / rank,
        efficiency=min(1.0, math.nextafter(rank / proof.g_value, 0.0)),
        g_value=proof.g_value,
        log_det=proof.log_det,
        rank=rank,
        variances=read_only(proof.variances),
        rounding=proof.g_value * proof.rounding if gap < math.inf else 0.0,
    )


def _largest_rounding(problem: DesignProblem) -> float:
    """Return the largest accepted allowance for round-off, as a fraction of G."""
    return SHARES.log_det if attempts(problem) > 1 else SHARES.costly


class _Proof(NamedTuple):
    """Bound on G, the allowance for round-off as a fraction of G, log det and the variances."""

    g_value: float
    rounding: float
    log_det: float
    variances: np.ndarray


def direct_rounding(problem: DesignProblem, weights: np.ndarray) -> float:
    """Return the allowance for round-off of the direct proof, as a fraction of G."""
    support = (weights != 0).nonzero()[0]
    return _prove_directly(problem, support, weights[support], 0.0, measured).rounding


def _prove_directly(
    problem: DesignProblem, support: np.ndarray, w: np.ndarray, missed: float, measure: Measure
) -> _Proof:
    """Bound G in the coordinates of the solvers, and in refined ones if the allowance for round-off is large.

    Returns the proof with the smaller allowance. In high dimensions, the allowance in refined coordinates can
    be larger than in those of the solvers.
    """
    proof = _prove(problem, problem.rows, support, w, missed, measure)
    share_of_gap = SHARES.gap * (1.0 - problem.rank / proof.g_value)
    largest = max(SHARES.g, min(_largest_rounding(problem), share_of_gap))
    if proof.rounding <= largest or problem.rows is problem.refined:
        return proof
    refined = _prove(problem, problem.refined, support, w, missed, measure)
    return refined if refined.rounding < proof.rounding else proof


def _prove(
    problem: DesignProblem,
    rows: Rows,
    support: np.ndarray,
    w: np.ndarray,
    missed: float,
    measure: Measure,
    own: np.ndarray | None = None,
) -> _Proof:
    """Bound G for the weights ``w`` of the support.

    The sum of the weights of a group differs from its budget by the fraction ``missed`` at most.
    ``rows.rounding`` bounds the errors of the coordinates of all candidates; ``own``, in the same format,
    those of the support only.
    """
    white, off, log_det, g, largest = measure(problem, rows, support, w)
    if np.isneginf(log_det).any():
        return _Proof(np.inf, np.inf, -np.inf, g)
    total = float(np.add.reduce(log_det)) + problem.log_volume
    eta = error_length(white, rows.rounding)
    terms = min(len(support), tile(rows))
    spread = math.sqrt(problem.n_groups) * eta if own is None else error_length(white, own)
    g_value, share = bound_on_g(problem.budgets, largest, problem.ranks, off, eta, spread, terms, missed)
    return _Proof(g_value, share, total, g)


def _prove_nearly_singular(
    problem: DesignProblem, support: np.ndarray, w: np.ndarray, missed: float, measure: Measure, best: _Proof
) -> _Proof:
    """Try proofs in coordinates for nearly singular weights. Return the best of these and the given one.

    No new proof is tried if the support does not have full rank, or if ``measure`` is not the default. In the
    second case the problem is a part of a larger one, whose coordinates must not change. If no proof shows
    full rank, the returned log det is -inf.
    """
    maps = problem.span.maps
    for _ in range(attempts(problem) if measure is measured and spans(problem, support) else 0):
        with np.errstate(over="ignore", invalid="ignore"):  # overflow leaves a bound that is not finite
            maps = nearly_white(problem, maps, support, w)
            own, rows = rounding_of(problem, maps, support, w), refined_rows(problem, maps)
        proof = _prove(problem, rows, support, w, missed, measure, own)
        if proof.rounding < best.rounding:
            best = proof._replace(log_det=proof.log_det + log_det_change(problem, maps))
        if best.rounding <= SHARES.log_det:
            break
    return best if best.g_value < np.inf else best._replace(log_det=-np.inf)


def _singular_variances(
    problem: DesignProblem, b: int, support: np.ndarray, w: np.ndarray, g: np.ndarray
) -> None:
    """Compute the variances of a block whose rank is not proved. Overwrites the entries of g of the block.

    Entries are infinite for candidates outside the range of the information of the block, and NaN for the
    others if round-off leaves no digits.
    """
    members = np.flatnonzero(problem.parameter_blocks == b)
    t = coordinates(problem, members, problem.refined)[:, : problem.ranks[b]]
    t /= np.maximum(np.abs(t).max(axis=0), np.finfo(float).tiny)  # variances do not depend on these scales
    own = problem.parameter_blocks[support] == b
    used = t[np.searchsorted(members, support[own])]
    if not used.any():
        g[members] = np.where(t.any(axis=1), np.inf, 0.0)
        return
    largest = float(w[own].max())
    root = np.sqrt(w[own] / largest)
    # The range is that of the rows of the support, whatever their lengths and weights.
    singular, vectors = np.linalg.svd(np.linalg.qr(rows_of_size_one(used), mode="r"))[1:]
    x = problem.source.take(support[own])
    r = min(rank_of(x), int(np.count_nonzero(singular > RANGE_RTOL * singular[0])))
    distance = np.linalg.norm(rows_of_size_one(t) @ vectors[r:].T, axis=1)
    outside = distance * singular[r - 1] > RANGE_RTOL * r * singular[0]
    doubtful = np.flatnonzero((distance > RANGE_RTOL * r) & ~outside)
    outside[doubtful] = is_outside(x, problem.source.take(members[doubtful]))
    # With the longest rows first, the factor is accurate also for rows of very different lengths.
    inside = t @ vectors[:r].T
    weighted = root[:, None] * (used @ vectors[:r].T)
    order = np.argsort(-np.abs(weighted).max(axis=1), kind="stable")
    factor: np.ndarray = np.asarray(np.linalg.qr(weighted[order], mode="r"))
    factor[np.diag_indices(r)] = np.where(np.diag(factor), np.diag(factor), np.nan)  # after underflow
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        y = solve_triangular(factor, inside.T, trans="T", check_finite=False)
        squares = np.sum(y**2, axis=0)
        trace = float(root**2 @ squares[np.searchsorted(members, support[own])])
        # If sum_n w_n g_n is not the rank, round-off leaves no digits.
        variances = squares / largest if abs(trace - r) <= 1e-6 * r else np.full(len(t), np.nan)
    g[members] = np.where(outside, np.inf, variances)


RANGE_RTOL = 1e-14
"""Singular values of the range of singular information, relative to the largest, that count as round-off, and
parts of rows outside of the range. The round-off of these parts is larger by the condition of the range, and
exact arithmetic decides on rows with parts between the two limits."""


def rows_of_size_one(rows: np.ndarray) -> np.ndarray:
    """Return rows divided by their largest entries, so that their lengths neither overflow nor become 0."""
    peak = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    return rows / np.where(peak > 0.0, peak, 1.0)
