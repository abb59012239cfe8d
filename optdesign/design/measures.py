"""Efficiencies of a design by their usual definitions, computed from its weights alone.

With U the information, D its rank, n the sum of the budgets f_i, and variances g_n = x_n' U^-1 x_n,

    D   |U|^(1/D) / n                                  A   D / (n trace U^-1)
    G   D / sum_i f_i (largest g_n of group i)         I   D / sum_i f_i (average g_n of group i)

With one group the denominators of G and I are n times the largest and the average variance of the
candidates. D and A depend on the units of the features, so that 1 is the value of an orthogonal design in
coded units. G and I do not: G is 1 at the optimum, and a lower bound on the D-efficiency; I is 1 for equal
weights. Sums over parameter blocks replace log det and trace if there are several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.problem.problem import DesignProblem


class Measures(NamedTuple):
    """The D-, A-, G- and I-efficiency of a design by the usual definitions.

    U is the information, r its rank, and n the sum of the budgets. With several groups, n times a variance is
    the sum over groups of budget times the variance in the group.

    Attributes
    ----------
    D : float
        Determinant to the power 1 / r over n: det(U)^(1/r) / n, per run.
    A : float
        Ratio r / (n trace U^-1).
    G : float
        Ratio r / (n times the largest variance of a candidate).
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
    """Return the usual efficiencies of weights, or counts, whose log Det and variances are known."""
    rank, n = problem.rank, float(problem.budgets.sum())
    if not np.isfinite(log_det):
        return Measures(0.0, 0.0, 0.0, 0.0)
    sizes = np.bincount(problem.groups, minlength=problem.n_groups)
    largest = np.zeros(problem.n_groups)
    np.maximum.at(largest, problem.groups, variances)
    average = np.bincount(problem.groups, variances, problem.n_groups) / sizes
    return Measures(
        float(np.exp(log_det / rank) / n),
        rank / (n * _trace_of_inverse(problem, weights)),
        rank / float(problem.budgets @ largest),
        rank / float(problem.budgets @ average),
    )


def _trace_of_inverse(problem: DesignProblem, weights: np.ndarray) -> float:
    """Return the sum over parameter blocks of the trace of the pseudo-inverse of their information."""
    support, total = np.flatnonzero(weights), 0.0
    for b in np.flatnonzero(problem.ranks):
        rows = support[problem.parameter_blocks[support] == b]
        scaled = np.sqrt(weights[rows].astype(np.float64))[:, None] * problem.source.take(rows)
        values = np.linalg.svd(scaled, compute_uv=False)[: problem.ranks[b]]
        with np.errstate(divide="ignore", over="ignore"):
            total += float(np.sum(values**-2.0))
    return total
