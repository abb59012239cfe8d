"""From weights to whole runs.

*Efficient rounding* (Pukelsheim and Rieder, Biometrika 79, 1992): among all whole counts that sum to the n
runs of a group, take those that maximise the smallest ratio c_n / w_n. They are c_n = ceil(nu w_n / n) for
the right multiplier nu, up to ties. With l candidates that have weight and n >= l,

    n = sum c_n <= nu + l - 1    (no c_n exceeds nu w_n / n + 1, and the smallest ratio is met with equality),

so c_n >= (1 - (l - 1) / n) w_n for all of them; the information is at least that multiple of the optimal one,
and so is the D-efficiency. With several groups the smallest of these factors counts.

If a group has fewer runs than candidates with weight, some must go without. Then a basis of every block is
kept (:mod:`optdesign.runs.rank_basis`), and the other runs follow the weights. A basis is also kept if the
certificate of the weights does not prove their rank, that is if its gap is infinite. It can contain
candidates without weight, so that the bound above does not apply.

Efficient rounding follows the given weights, but optimal weights are often not unique, as on grids, and
some of them round badly. So runs then move between candidates that have weight while that raises log Det
(:mod:`optdesign.runs.exchange`), and a short search with the moves of :mod:`optdesign.runs.exact` follows.
The bound above still holds, because log Det only rises.

*Rounding up*, the paper's way, gives every candidate ceil(w_n) runs, which are more than the budget.

*Round-off.* Water-filling leaves a weight such as 1e-16 where the exact one is zero, and either rule would
give it a run. The information without some weights is at least 1 - sum of w_n g_n times that with them. So a
weight counts as zero if w_n g_n and its share of the budget are that small; no rank is lost.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.certificate import direct_rounding
from optdesign.design.feasible import MOST_RUNS, exact_totals
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.numbers.checks import check_choice, check_type
from optdesign.problem.inputs import floats
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exchange import LARGEST_BOARD, climb_on, climbed, lay_out, state_of
from optdesign.runs.grid import find_grid
from optdesign.runs.rank_basis import basis, exact_rank
from optdesign.runs.runs import Runs, RunStatus, judged, whole_runs
from optdesign.runs.search import GAIN, Clock, Slices, iterate, stream
from optdesign.runs.structure import moves_of
from optdesign.runtime import clock
from optdesign.runtime.jit import kernel
from optdesign.runtime.stopping import DeferredInterrupt

ROUNDING = ("efficient", "ceiling")
"""Rules from weights to runs."""

SEARCH, MOST_SLICES = 1e8, 100
"""Multiplications of the search after rounding, and slices of the exchanges that follow, some seconds."""

ROUNDOFF_LEVERAGE, ROUNDOFF_SHARE = 1e-12, 1e-6
"""A weight is round-off if w_n g_n and its share of the budget are at most these."""


def round(result: DesignResult, method: str = "efficient", *, exchange: bool = True) -> Runs:
    """Return whole runs that follow the weights of a design.

    Parameters
    ----------
    result : DesignResult
        Solved design. For "efficient" its budgets are whole numbers: the runs of every group.
    method : {"efficient", "ceiling"}, default "efficient"
        "efficient" keeps the budgets and the largest fraction of every weight, then moves single runs between
        candidates that have weight while log Det increases. "ceiling" rounds every weight up, and exceeds the
        budgets by less than one run per candidate with weight. A weight w_n of at most 1e-6 of its budget
        with w_n g_n <= 1e-12 is round-off and costs no run.
    exchange : bool, default True
        Continue with the moves of :func:`optdesign.exact` for a fixed amount of work of about 0.1 s, and then
        with exchanges of single runs between all candidates of a group until none increases log Det. The
        work is limited: the status is ``RunStatus.IN_PART`` if very many runs would have to move, or if
        very many candidates remain to be compared. With
        False, the runs follow the weights.

    Returns
    -------
    Runs
        Runs of full rank.

    Raises
    ------
    InputError
        If there are too few runs for full rank. The message has the number needed.

    See Also
    --------
    optdesign.exact : Search for the best runs, which takes longer.
    optdesign.apportion : Round rows of weights without a problem.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 21)
    >>> p = od.DesignProblem(np.column_stack([np.ones(21), x, x**2]), budgets=7)
    >>> runs = od.round(od.solve(p, tol=1e-9))
    >>> x[runs.support].tolist(), sorted(runs.counts[runs.support].tolist())
    ([-1.0, 0.0, 1.0], [2, 2, 3])
    """
    stopwatch = clock.Stopwatch()
    check_type(result, DesignResult, "result must be a DesignResult", "Pass solve(problem).")
    check_choice(method, ROUNDING, "method", "Leave it out.")
    problem = result.problem
    if method == "ceiling":
        counts = _rounded_up(result)
        spanning = partial(np.copy, counts)
    else:
        runs = whole_runs(problem)
        counts = rounded(result, runs)
        spanning = partial(apportioned, problem, result.weights, runs, proved=True)
    status = RunStatus.ROUNDED
    if exchange:
        grid = find_grid(problem) if method == "efficient" else None
        with DeferredInterrupt() as interrupted:
            watch = Clock(math.inf, interrupted)
            if method == "efficient":
                moves = moves_of(result, runs, grid, first=counts, spanning=spanning)
                start = moves.of(counts)
                if moves.refresh(start) > -math.inf:
                    counts = iterate(moves, stream(0, 0), watch, start=start, most=SEARCH).found
            slices = Slices(MOST_SLICES, watch.stopped)
            counts, complete = climbed(problem, counts, result.variances, slices.are_used_up)
        status = RunStatus.EXCHANGED if complete and slices.left >= 0 else RunStatus.IN_PART
        status = RunStatus.INTERRUPTED if interrupted else status
    found = judged(
        problem,
        counts,
        result,
        spanning=spanning,
        status=status,
        method=f"{method}{' and exchange' if exchange else ''}",
        tries=1,
        stopwatch=stopwatch,
    )
    if status is RunStatus.EXCHANGED and not _gains_are_known(found):
        return replace(found, status=RunStatus.ROUNDED)
    return found


def _gains_are_known(found: Runs) -> bool:
    """Return True if round-off of the information is below the gains at which exchanges end."""
    return found.efficiency > 0 and direct_rounding(found.problem, found.counts.astype(np.float64)) <= GAIN


def rounded(result: DesignResult, runs: np.ndarray) -> np.ndarray:
    """Return the efficient rounding of weights after exchanges between candidates that have weight.

    Exchanges take one slice of work at most (:data:`optdesign.runs.search.SLICE`). If very many candidates
    have weight, they are between those that have runs.
    """
    problem, weights = result.problem, _without_roundoff(result)
    counts = apportioned(problem, weights, runs, proved=not result.gap < np.inf)
    support, used = np.flatnonzero(weights), np.flatnonzero(counts)
    few = len(support) * problem.largest_rank <= LARGEST_BOARD
    board, order = lay_out(problem, np.union1d(support, used) if few else used)
    state = state_of(board, counts[order])
    climb_on(board, state, lambda: True)
    counts[order] = state.counts
    return counts


def _without_roundoff(result: DesignResult) -> np.ndarray:
    """Return the weights with zeros in place of round-off, if their rank is proved."""
    weights, problem = result.weights, result.problem
    if not result.gap < np.inf:
        return weights
    small = (weights > 0) & (weights <= ROUNDOFF_SHARE * problem.budgets[problem.groups])
    small[small] = (weights * result.variances)[small] <= ROUNDOFF_LEVERAGE
    return np.where(small, 0.0, weights)


def _rounded_up(result: DesignResult) -> np.ndarray:
    """Return every weight rounded up, apart from round-off; the runs of a group are at least its budget."""
    problem, weights = result.problem, result.weights
    up, down = np.ceil(weights), np.floor(weights)
    # A weight that exceeds a whole number by this fraction or less is rounded down to it: that is round-off.
    nearly = 1e-12
    counts = np.where((weights - down <= nearly * down) | (_without_roundoff(result) == 0), down, up)
    # Above 1e12 every fraction of a run is that small, and several of them add up to runs.
    most = np.minimum(nearly * problem.budgets, 0.5)
    short = (problem.budgets - exact_totals(problem, counts) > most).astype(bool)
    counts = np.where(short[problem.groups], up, counts)
    totals = exact_totals(problem, counts)
    bad = (totals > MOST_RUNS) | (problem.budgets - totals > most)
    if np.any(bad):
        i = int(np.argmax(bad))
        value = f"budgets[{i}] = {problem.budgets[i]:.17g} has {totals[i]}"
        remedy = "Lower the budget: larger counts are not exact in double precision."
        raise InputError("budgets", "must be at most 2^53 runs, rounded up", value, remedy)
    if not result.gap < np.inf and exact_rank(problem, np.flatnonzero(counts)) < problem.rank:
        rule = "must have weights of full rank to be rounded up"
        remedy = f'Its status is "{result.status.value}". Use method="efficient", which adds a basis.'
        raise InputError("result", rule, "they lose some", remedy)
    return counts.astype(np.int64)


def apportioned(
    problem: DesignProblem, weights: np.ndarray, runs: np.ndarray, *, proved: bool = False
) -> np.ndarray:
    """Return the efficient rounding of every group's weights to its runs, with full rank.

    With ``proved``, the runs contain a basis that exact arithmetic has checked. Otherwise the weights must
    have full rank.
    """
    groups = problem.groups
    support = np.bincount(groups[weights > 0], minlength=problem.n_groups)
    kept = np.zeros(len(weights), np.int64)
    if proved or np.any(runs < support):
        kept[basis(problem, runs, weights, proved=proved)] = 1
    strange = groups[(kept > 0) & (weights == 0)]
    short = (runs < support) | (np.bincount(strange, minlength=problem.n_groups) > 0)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(problem.n_groups + 1))
    counts = np.zeros(len(weights), np.int64)
    out = np.empty(len(weights), np.int64)
    _apportion(weights[order], kept[order], starts, runs, short, out)
    counts[order] = out
    return counts


def apportion(weights: ArrayLike, runs: ArrayLike) -> np.ndarray:
    """Return whole numbers that follow the weights of every row and sum to the runs of the row.

    This is the efficient rounding of every row by itself.

    Parameters
    ----------
    weights : array_like of shape (M, K)
        Finite, non-negative weights.
    runs : array_like of int of shape (M,)
        Sum of every row, at least the number of positive weights in it and at most 2^53.

    Returns
    -------
    ndarray of int of shape (M, K)
        Whole numbers of runs.

    Raises
    ------
    InputError
        If the weights or the runs break one of these rules.

    See Also
    --------
    optdesign.round : Round a design, and improve the runs by exchanges.

    Examples
    --------
    >>> apportion([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]], [7, 2]).tolist()
    [[3, 2, 2], [2, 0, 0]]
    """
    w, totals = floats(weights, "weights"), np.asarray(runs)
    if w.ndim != 2 or not np.all(np.isfinite(w) & (w >= 0)):
        rule = "must be finite, not negative, and of shape (rows, columns)"
        raise InputError("weights", rule, f"got shape {w.shape}", "Give one row for every sum.")
    if totals.dtype.kind not in "iu" or totals.shape != w.shape[:1]:
        rule = f"must be integers of shape {w.shape[:1]}, one per row of weights"
        raise InputError("runs", rule, f"got {totals.dtype} of shape {totals.shape}", "Round them first.")
    support = (w > 0).sum(axis=1)
    wrong = np.flatnonzero((totals < support) | ((support == 0) & (totals > 0)) | (totals > MOST_RUNS))
    if len(wrong):
        i = int(wrong[0])
        rule = "must lie between the number of positive weights of the row and 2^53"
        value = f"runs[{i}] = {totals[i]}, and row {i} has {support[i]} positive weight(s)"
        remedy = f"Lower runs[{i}]." if totals[i] > MOST_RUNS else f"Raise runs[{i}], or drop weights."
        raise InputError("runs", rule, value, remedy)
    counts = np.zeros(w.shape, np.int64)
    some = np.flatnonzero(totals > 0)
    # Multiply by powers of 2, which is exact. Sums of weights then do not overflow, multipliers are finite,
    # and every positive weight has a run at the smallest multiplier.
    _, exponent = np.frexp(w[some].max(axis=1, keepdims=True, initial=0.0))
    scaled = np.ldexp(w[some], -exponent)
    flat = np.where(w[some] > 0, np.maximum(scaled, np.finfo(float).tiny), 0.0).ravel()
    out = np.empty(flat.size, np.int64)
    starts = np.arange(len(some) + 1) * w.shape[1]
    free = np.zeros(len(some), np.bool_)
    _apportion(flat, np.zeros(flat.size, np.int64), starts, totals[some].astype(np.int64), free, out)
    counts[some] = out.reshape(len(some), w.shape[1])
    return counts


@kernel
def _whole(weight, kept, multiplier, short):
    """Return the runs of one candidate at a multiplier: rounded up, or to nearest but at least ``kept``."""
    if short:
        return max(kept, np.int64(np.floor(multiplier * weight + 0.5)))
    return np.int64(np.ceil(multiplier * weight))


@kernel
def _sum(weights, kept, lo, hi, multiplier, short):
    """Return the runs of a group's candidates, lo .. hi - 1, at a multiplier."""
    total = 0
    for n in range(lo, hi):
        total += _whole(weights[n], kept[n], multiplier, short)
    return total


@kernel
def _apportion(weights, kept, starts, runs, short, counts):
    """Overwrite counts with whole numbers of the sums ``runs``, group by group."""
    halvings = 200  # most bisections of a multiplier; sixty or so reach the next double
    for i in range(len(runs)):
        lo, hi = starts[i], starts[i + 1]
        total = 0.0
        for n in range(lo, hi):
            total += weights[n]
        low, high = 0.0, 2.0 * (runs[i] + 1.0) / total
        while _sum(weights, kept, lo, hi, high, short[i]) <= runs[i]:
            high *= 2.0
        for _ in range(halvings):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if _sum(weights, kept, lo, hi, middle, short[i]) > runs[i]:
                high = middle
            else:
                low = middle
        left = runs[i]
        for n in range(lo, hi):
            counts[n] = _whole(weights[n], kept[n], low, short[i])
            left -= counts[n]
        # The rest are ties: candidates that get more runs at the next multiplier, several each near 2^53.
        for n in range(lo, hi):
            more = min(left, _whole(weights[n], kept[n], high, short[i]) - counts[n])
            counts[n] += more
            left -= more
