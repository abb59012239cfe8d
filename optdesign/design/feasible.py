"""Feasible weights: finite, non-negative, and with the sum of each group equal to its budget.

Numbers of runs are weights whose sums are compared with the budgets exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optdesign.errors import InputError
from optdesign.numbers.roundoff import UNIT, sum_groups
from optdesign.problem.inputs import one_per_candidate
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel

FEASIBILITY_RTOL = 1e-6
"""Weights may miss the budget of their group, or be negative, by this fraction of the budget."""

MOST_RUNS = 1 << 53
"""Largest number of runs of a group: counts stay exact in double precision."""


def feasible(problem: DesignProblem, weights: ArrayLike) -> tuple[np.ndarray, float]:
    """Check weights, and return a rescaled copy and the largest fraction of a budget that it misses.

    The copy has no negligible negative weights, and is rescaled in groups that miss their budget.
    """
    w = np.array(one_per_candidate(weights, "weights", problem.n_candidates), order="C")
    bad, low = clean(w, problem.groups, problem.budgets)
    if bad >= 0:
        raise InputError("weights", "must be finite", f"weights[{bad}] = {w[bad]}", "Replace it by 0.")
    if low >= 0:
        remedy = "Clip it and rescale its group."
        raise InputError("weights", "must not be negative", f"weights[{low}] = {w[low]:g}", remedy)
    total = np.empty(problem.n_groups)
    i, missed = farthest_group(problem.groups, problem.budgets, w, total)
    if not missed <= FEASIBILITY_RTOL:
        value = f"group {i} sums to {total[i]:g}, its budget is {problem.budgets[i]:g}"
        remedy = "Rescale its weights, or build the problem with that budget."
        raise InputError("weights", "must sum to the budget of each group", value, remedy)
    rounding_rtol = 1e-12  # weights that miss their budget by more are rescaled before they are certified
    return w, missed if missed <= rounding_rtol else scale(problem.groups, problem.budgets, w)


def exact_totals(problem: DesignProblem, counts: np.ndarray) -> np.ndarray:
    """Return the runs of every group as exact integers."""
    totals = np.zeros(problem.n_groups, dtype=object)
    support = np.flatnonzero(counts)
    for i, count in zip(problem.groups[support], counts[support], strict=True):
        totals[i] += int(count)
    return totals


@kernel
def scale(groups, budgets, w):
    """Scale the weights of every group to its budget; return the largest fraction by which one misses it."""
    total = np.empty(len(budgets))
    farthest_group(groups, budgets, w, total)
    for n in range(len(w)):
        if w[n] != 0.0:
            w[n] *= budgets[groups[n]] / total[groups[n]]
    return farthest_group(groups, budgets, w, total)[1]


@kernel
def farthest_group(groups, budgets, w, total):
    """Return the group whose sum is farthest from its budget, and that distance as a fraction, rounded up.

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
