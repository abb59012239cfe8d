"""Usual measures of a design, computed from its weights alone.

With U the information, D its rank, n the sum of the budgets f_i, and variances g_n = x_n' U^-1 x_n,

    D   |U|^(1/D) / n                                  A   D / (n trace U^-1)
    G   D / sum_i f_i (largest g_n of group i)         I   D / (n average g_n of all candidates)

With one group the denominator of G is n times the largest variance. D and A depend on the units of the
features, so they are stated in the standard coding of :mod:`optdesign.factors.coding` if the candidates were
made by a formula: 1 is then the value of an orthogonal design. G and I do not depend on units: G is 1 at the
optimum, and a lower bound on the D-efficiency; I is 1 for equal weights. Sums over parameter blocks replace
log det and trace if there are several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from optdesign.factors.coding import in_coding
from optdesign.problem.problem import DesignProblem


class Measures(NamedTuple):
    """Usual measures D, A, G and I of a design, per run.

    U is the information, r its rank, and n the sum of the budgets. If a formula made the candidates, U is
    that of the standard coding: numeric factors from -1 to 1, and sum contrasts. Efficiencies against the
    best design on the candidates are :attr:`optdesign.Evaluation.d_efficiency` and so on. D and A have at
    least 2 correct digits, and are NaN if the information is so near to singular that there are fewer.

    Attributes
    ----------
    D : float
        Determinant to the power 1 / r over n: det(U)^(1/r) / n, per run.
    A : float
        Ratio r / (n trace U^-1).
    G : float
        Ratio r / (n times the largest variance of a candidate). With several groups, n times the largest
        variance is the sum over groups of budget times the largest variance in the group.
    I : float
        Ratio r / (n times the average variance of the candidates).

    See Also
    --------
    optdesign.Runs.measures, optdesign.DesignResult.measures : Measures of a design.
    optdesign.evaluate : Standard errors, power and aliases of a design.

    Examples
    --------
    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4)
    >>> print(od.exact(p).measures)
    D 1, A 1, G 1, I 1.2
    """

    D: float
    A: float
    G: float
    I: float  # noqa: E741

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:.4g}" for name, value in self._asdict().items() if value == value)


def measures(problem: DesignProblem, weights: np.ndarray, log_det: float, variances: np.ndarray) -> Measures:
    """Return the usual measures of weights, or counts, whose log Det and variances are known."""
    n = float(problem.budgets.sum())
    if not np.isfinite(log_det):
        return Measures(0.0, 0.0, 0.0, 0.0)
    support = np.flatnonzero(weights)
    if problem.settings is None or problem.model is None or problem.formula is None:
        rows = problem.source.take(support)
    else:
        rows = in_coding(problem.model, problem.source.whole(), problem.settings, coded=True)[1][support]
        log_det = np.nan
    scaled = np.sqrt(weights[support].astype(np.float64))[:, None] * rows
    own = problem.parameter_blocks[support]
    spreads = [spread(scaled[own == b], int(problem.ranks[b])) for b in np.flatnonzero(problem.ranks)]
    largest = np.zeros(problem.n_groups)
    np.maximum.at(largest, problem.groups, variances)
    found = usual(spreads, problem.rank, n, float(problem.budgets @ largest), float(variances.mean()))
    return found if np.isnan(log_det) else found._replace(D=float(np.exp(log_det / problem.rank) / n))


class Spread(NamedTuple):
    """Log Det of the information of a parameter block, and the trace of its inverse."""

    log_det: float
    trace: float


def spread(rows: np.ndarray, rank: int) -> Spread:
    """Return log Det of the information of rows, whose rank is known, and the trace of its inverse.

    Singular values are those of columns of length 1, because those of columns in very different units have
    no correct digits. With rows T B', the information has the determinant |T'T| |B'B| and the inverse, or
    pseudo-inverse, of trace tr (T'T)^-1 (B'B)^-1. B has rows in these units: sorted rows and column
    pivoting keep their digits. Both numbers are NaN if the smallest singular value has no correct digits.
    If the rank is less than the number of columns, the same holds for the smallest singular value of B.
    """
    lengths = np.linalg.norm(rows, axis=0)
    lengths[lengths == 0] = 1.0
    _, values, right = np.linalg.svd(rows / lengths, full_matrices=False)
    accurate = 1e-13  # ratio of singular values above which the smallest one has 2 digits or more
    if rank and not values[rank - 1] > accurate * values[0]:
        return Spread(np.nan, np.nan)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        b = right[:rank].T * lengths[:, None]
        k, log_det = stretch(b)
        if 0 < rank < len(b) and not np.linalg.norm(b) * np.linalg.norm(k) < 1 / accurate:
            return Spread(np.nan, np.nan)
        log_det += 2 * float(np.sum(np.log(values[:rank])))
        return Spread(log_det, float(np.sum((k / values[:rank, None]) ** 2)))


def stretch(b: np.ndarray) -> tuple[np.ndarray, float]:
    """Return K with K K' = (B'B)^-1, and log det B'B, for a B whose rows have different sizes."""
    if b.shape[1] == 0:
        return np.empty((0, 0)), 0.0
    r, order = qr(b[np.argsort(-np.abs(b).max(axis=1))], mode="r", pivoting=True)
    k = np.empty((len(order), len(order)))
    k[order] = solve_triangular(r[: len(order)], np.eye(len(order)), check_finite=False)
    return k, 2 * float(np.sum(np.log(np.abs(np.diag(r)))))


def usual(spreads: list[Spread], rank: int, n: float, largest: float, average: float) -> Measures:
    """Return the measures from the parameter blocks of n runs, G, and the average variance."""
    with np.errstate(over="ignore"):
        return Measures(
            float(np.exp(sum(one.log_det for one in spreads) / rank) / n),
            rank / (n * sum(one.trace for one in spreads)),
            rank / largest,
            rank / (n * average),
        )
