"""Hunt for false claims of :func:`optdesign.round`.

Claims: "efficient" keeps the budgets. If no group has fewer runs than candidates with weight, the information
is at least t times that of the weights, with t the largest possible smallest ratio of runs to weight, so that
log det is at least theirs plus D log t. "ceiling" rounds every weight up. The counts have full rank;
``log_det`` is theirs; ``efficiency`` is a lower bound against all weights with as many runs in every group;
the status EXCHANGED means that no exchange of 1 run gains; a refusal is justified.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

import optdesign as od
from hunt.claims import Found, call
from hunt.exact import examine_runs, wrong_rank, wrong_refusal
from hunt.instances import FAMILIES
from hunt.truth import Instance, Truth, number

WARM_UP = "small_integers"

GAIN = 1e-8
"""Relative gain of a determinant that local search may leave: it asks for 1e-9, in double precision."""

NEARLY = 1e-11
"""A weight that exceeds a whole number by less than this fraction may be taken for that number."""

LARGEST = 60
"""Candidates of a problem whose exchanges are all tried, at most."""


class Options(NamedTuple):
    """Arguments of the rounding, and the tolerance of the weights; None for weights drawn at random."""

    method: str
    exchange: bool
    tol: float | None


def case(family: str, seed: int) -> Found:
    """Draw a problem, weights and options, and examine the runs."""
    rng = np.random.default_rng([seed, 1, list(FAMILIES).index(family)])
    problem = FAMILIES[family](rng)
    method = str(rng.choice(["efficient", "efficient", "ceiling"]))
    if method == "ceiling" and rng.random() < 0.5:
        problem = problem._replace(budgets=problem.budgets * rng.uniform(0.3, 3.0))
    if rng.random() < 0.05:
        scale = 10.0 ** rng.integers(6, 16) / problem.budgets.max()
        problem = problem._replace(budgets=np.floor(problem.budgets * scale) + 1)
    tol = None if rng.random() < 0.3 else float(rng.choice([1e-2, 1e-6, 1e-9]))
    return examine(problem, Options(method, bool(rng.random() < 0.4), tol), rng)


def examine(problem: Instance, options: Options, rng: np.random.Generator) -> Found:
    """Round weights, and compare every claim with the truth."""
    prepared = weighted(problem, options.tol, rng)
    if isinstance(prepared, Found):
        return prepared
    truth, made, result = prepared
    runs, refusal = call(od.round, result, options.method, exchange=options.exchange)
    if runs is None:
        if options.method == "ceiling":
            return Found("refused", f"refused: {refusal}" if truth.has_full_rank(result.weights) else "")
        return Found("refused", wrong_refusal(problem, truth, refusal))
    if wrong := _wrong_counts(truth, result, runs, options):
        return Found(runs.status.name, wrong)
    if options.method == "ceiling":
        totals = np.bincount(problem.groups, runs.counts, len(problem.budgets))
        truth = Truth(problem._replace(budgets=totals.astype(float)))
        made = od.DesignProblem(*truth.problem)
    found = examine_runs(truth, made, runs)
    if not found.wrong and runs.status is od.RunStatus.EXCHANGED and len(problem.x) <= LARGEST:
        gain = best_exchange(truth, runs.counts)
        if gain > 1 + arb(GAIN):
            return found._replace(wrong=f"exchanged, but another exchange gains {(gain - 1).str(6)}")
    return found


def weighted(
    problem: Instance, tol: float | None, rng: np.random.Generator
) -> tuple[Truth, od.DesignProblem, od.DesignResult] | Found:
    """Return the truth, the problem, and a solved design or weights of full rank drawn at random.

    Returns the outcome if the rank is not the exact one.
    """
    truth = Truth(problem)
    made = od.DesignProblem(*problem)
    if made.rank != truth.rank:
        return wrong_rank(made, truth)
    best = od.solve(made, tol=1e-6 if tol is None else tol, time_limit=5)
    if tol is not None:
        return truth, made, best
    groups, budgets = problem.groups, problem.budgets
    w = rng.dirichlet(np.full(len(groups), 0.3)) + 1e-300
    w[rng.random(size=len(w)) < 0.3] = 0.0
    w += best.weights * 10.0 ** rng.uniform(-6, 0) / budgets[groups]
    w *= (budgets / np.bincount(groups, w, len(budgets)))[groups]
    return truth, made, od.DesignResult.given(made, w)


def _wrong_counts(truth: Truth, result: od.DesignResult, runs: od.Runs, options: Options) -> str:
    """Return a description of counts that do not follow the weights by the rule, or an empty string.

    The guarantee of efficient rounding is claimed for weights whose certificate proves their rank.
    """
    problem, counts, weights = truth.problem, runs.counts, result.weights
    if options.method == "ceiling":
        bad = (
            (counts < weights * (1 - NEARLY))
            | (counts - 1 >= weights) & (counts > 0)
            | (weights > 0) & (counts == 0)
        ) & ~((counts == 0) & _is_roundoff(truth, weights))
        n = int(np.argmax(bad))
        return (
            f"weight {weights[n]!r} rounded up to {counts[n]}" if bad.any() and not options.exchange else ""
        )
    ratios = [_largest_ratio(weights[problem.groups == i], f) for i, f in enumerate(problem.budgets)]
    given, found = truth.measure(weights, scale=False), truth.measure(counts, scale=False)
    if given is None or found is None or min(ratios) == 0 or not result.gap < np.inf:
        return ""
    if found.log_det < given.log_det + truth.rank * arb(min(ratios) * (1 - NEARLY)).log():
        return f"the runs are worse than {min(ratios):.6g} times the weights, and better ones exist"
    return ""


def _is_roundoff(truth: Truth, weights: np.ndarray) -> np.ndarray:
    """Return True for weights that cost no run by the documented rule."""
    found = truth.measure(weights, scale=False)
    if found is None:
        return np.zeros(len(weights), dtype=bool)
    leverages = weights * np.array([float(g.mid()) for g in found.variances])
    shares = weights / truth.problem.budgets[truth.problem.groups]
    return (shares <= 1e-6) & (leverages <= 1e-12 * (1 + 1e-9))


def _largest_ratio(weights: np.ndarray, total: float) -> float:
    """Return the largest t with sum ceil(t w_n) <= total, to round-off; 0 if there is none."""
    exact = [Fraction(float(w)) for w in weights if w > 0]
    if len(exact) > total:
        return 0.0
    low, high = 0.0, 2.0 * total / float(sum(exact))
    for _ in range(60):
        middle = (low + high) / 2
        if sum(ceil(Fraction(middle) * w) for w in exact) <= total:
            low = middle
        else:
            high = middle
    return low


def best_exchange(truth: Truth, counts: np.ndarray) -> arb:
    """Return the largest factor by which an exchange of 1 run within a group multiplies the determinants.

    The factor is (1 + g_k) (1 - g_m) + c_km^2 for a run that moves from m to k, with c_km = x_k' V x_m.
    """
    problem = truth.problem
    covariance = covariances(truth, counts)
    best = arb(1)
    for m in np.flatnonzero(counts).tolist():
        for k in np.flatnonzero(problem.groups == problem.groups[m]).tolist():
            if k == m:
                continue
            factor = (1 + covariance(k, k)) * (1 - covariance(m, m))
            if problem.blocks[k] == problem.blocks[m]:
                factor += covariance(k, m) ** 2
            best = best.max(factor)
    return best


def covariances(truth: Truth, counts: np.ndarray) -> Callable[[int, int], arb]:
    """Return the function (k, m) -> x_k' U^+ x_m of two candidates of one parameter block."""
    truth.measure(counts, scale=False)  # sets a precision that is enough
    place: dict[int, tuple[arb_mat, int]] = {}
    for block in truth.blocks:
        weighted = arb_mat(
            [[number(counts[n]) * block.x[i, j] for j in range(block.rank)] for i, n in enumerate(block.rows)]
        )
        gram = block.x * (block.x.transpose() * weighted).solve(block.x.transpose())
        place |= {int(n): (gram, i) for i, n in enumerate(block.rows)}

    def covariance(k: int, m: int) -> arb:
        if k not in place:  # a block of zeros
            return arb(0)
        gram, i = place[k]
        return gram[i, place[m][1]]

    return covariance
