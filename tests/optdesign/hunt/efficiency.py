"""Hunt for false claims of :func:`optdesign.efficiency` and :func:`optdesign.certify`.

Claims: ``efficiency`` is a lower bound on the D-efficiency of any weights, for any ``best``. Of a certificate
with a finite gap, the gap is at least G - D, ``g_value`` is at least G, the efficiency is at most D / G,
``log_det`` and the variances are those of the weights, and the rank is exact. Weights that miss budgets by
1e-6 or less count as rescaled.
"""

from __future__ import annotations

import numpy as np
from flint import arb

import optdesign as od
from hunt.claims import Found, judge_efficiency, wrong_log_det
from hunt.exact import wrong_rank
from hunt.instances import FAMILIES
from hunt.truth import Instance, Measured, Truth, number

WARM_UP = "small_integers"

VARIANCE_RTOL = 1e-6
"""Largest relative error of the largest variance of a group."""


def case(family: str, seed: int) -> Found:
    """Draw a problem and weights, and examine the bounds."""
    rng = np.random.default_rng([seed, 2, list(FAMILIES).index(family)])
    problem = FAMILIES[family](rng)
    if rng.random() < 0.5:
        problem = problem._replace(budgets=10.0 ** rng.uniform(-6, 6, size=len(problem.budgets)))
    return examine(problem, *drawn_weights(problem, rng))


def drawn_weights(problem: Instance, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, float]]:
    """Return weights of any quality that meet the budgets, and options for the design to compare with."""
    groups, budgets = problem.groups, problem.budgets
    kind = rng.random()
    if kind < 0.4:
        w = rng.dirichlet(np.full(len(groups), rng.choice([0.2, 1.0, 5.0]))) + 1e-9
    elif kind < 0.7:
        w = 10.0 ** rng.uniform(-12, 0, size=len(groups))
    else:
        w = np.ones(len(groups))
    if rng.random() < 0.5:
        w[(rng.random(size=len(w)) < 0.4) & (np.arange(len(w)) > 0)] = 0.0
    for i in range(len(budgets)):
        if not w[groups == i].any():
            w[groups == i] = 1.0
    w *= (budgets / np.bincount(groups, w, len(budgets)))[groups]
    if rng.random() < 0.2:
        w *= 1 + 5e-7 * rng.uniform(-1, 1)
    best = {"tol": float(rng.choice([1e-1, 1e-6, 1e-9]))}
    if rng.random() < 0.2:
        best["max_iter"] = 1
    return w, best


def examine(problem: Instance, weights: np.ndarray, options: dict[str, float]) -> Found:
    """Certify weights, compare them with a solved design, and compare every claim with the truth."""
    truth = Truth(problem)
    made = od.DesignProblem(*problem)
    best = od.solve(made, **options, time_limit=5)
    certificate = od.certify(made, weights)
    claimed = od.efficiency(made, weights, best=best)
    if made.rank != truth.rank:
        return wrong_rank(made, truth)
    measured = truth.measure(weights)
    if measured is None:
        status = "rank lost"
        if certificate.gap < np.inf or claimed > 0:
            return Found(
                status, f"the weights lose rank; gap {certificate.gap:.3g}, efficiency {claimed:.3g}"
            )
        return Found(status)
    if certificate.gap == np.inf:
        wrong = "" if claimed == 0 else f"efficiency {claimed!r} beside an infinite gap"
        return Found("unproved", wrong, True)
    if wrong := wrong_certificate(truth, certificate, measured):
        return Found("certified", wrong)
    judged = judge_efficiency(truth, claimed, measured.log_det, [best.weights, weights])
    return Found("certified", judged.wrong, bool(made.rank_note), judged.undecided, judged.slack)


def wrong_certificate(truth: Truth, certificate: od.Certificate, measured: Measured) -> str:
    """Return a description of the first false claim of a certificate, or an empty string."""
    gap = measured.g_value - truth.rank
    if certificate.rank != truth.rank:
        return f"rank {certificate.rank}, exactly {truth.rank}"
    if not gap <= number(certificate.gap):
        return f"gap {certificate.gap:.3g} claimed, truly {gap.str(6)}"
    if not measured.g_value <= number(certificate.g_value):
        return f"G {certificate.g_value!r} claimed, truly {measured.g_value.str(18, radius=False)}"
    if not number(certificate.efficiency) * measured.g_value <= truth.rank:
        return f"efficiency {certificate.efficiency!r} is more than D / G"
    if not number(certificate.relative_gap) * truth.rank >= gap * (1 - arb(1e-15)):
        return f"relative gap {certificate.relative_gap!r}, truly {(gap / truth.rank).str(6)}"
    if wrong := wrong_log_det(certificate.log_det, measured.log_det):
        return wrong
    for i in range(truth.n_groups):
        rows = np.flatnonzero(truth.problem.groups == i)
        n = max(rows, key=lambda k: float(measured.variances[k].mid()))
        g, true = certificate.variances[n], measured.variances[n]
        if not abs(number(g) - true) <= VARIANCE_RTOL * true:
            return f"variance {g!r} of candidate {n}, truly {true.str(12, radius=False)}"
    return ""
