"""Hunt for false claims of :func:`optdesign.exact`.

Claims: the runs of every group are its budget; the counts have full rank; ``log_det`` is theirs;
``efficiency`` is a lower bound against all weights; the status "nothing left to gain" holds against all
weights and, where they are few, against all count vectors; a refusal is justified; the time limit is kept;
without one, the runs do not depend on ``n_jobs``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import optdesign as od
from hunt import enumeration
from hunt.claims import Found, Stopwatch, call, judge_efficiency, wrong_log_det
from hunt.instances import FAMILIES as INSTANCES
from hunt.instances import Family, structured
from hunt.truth import Instance, Truth

WARM_UP = "small_integers"

LEAST = 1 - 2e-6
"""Efficiency of runs with nothing left to gain: the weights they are compared with have a relative gap of at
most 1e-6."""


def pool(rng: np.random.Generator) -> Instance:
    """Draw some thousand candidates, among which a search takes longer than a short time limit."""
    n, d = int(rng.integers(500, 4000)), int(rng.integers(4, 9))
    x = rng.normal(size=(n, d)) if rng.random() < 0.7 else rng.integers(-2, 3, size=(n, d)).astype(float)
    return structured(x * 10.0 ** rng.uniform(-3, 3, size=(n, 1)) if rng.random() < 0.3 else x, rng)


FAMILIES: dict[str, Family] = {**INSTANCES, "pool": pool}


REPEATED = 10
"""Every so many cases, the search is repeated with 2 jobs."""


class Options(NamedTuple):
    """Arguments of the search."""

    seed: int
    tries: int | None
    time_limit: float | None


def case(family: str, seed: int) -> Found:
    """Draw a problem and options, and examine the runs."""
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    problem = FAMILIES[family](rng)
    limit = None if rng.random() < 0.6 and family != "pool" else float(rng.choice([1e-6, 1e-3, 0.02, 0.1]))
    tries = None if limit is not None and rng.random() < 0.5 else int(rng.integers(1, 4))
    return examine(problem, Options(seed, tries, limit))


def examine(problem: Instance, options: Options) -> Found:
    """Search for runs, and compare every claim with the truth."""
    truth = Truth(problem)
    made = od.DesignProblem(*problem)
    with Stopwatch() as watch:
        runs, refusal = call(od.exact, made, **options._asdict())
    overrun = np.nan if options.time_limit is None else watch.seconds - options.time_limit
    if made.rank != truth.rank:
        return wrong_rank(made, truth)._replace(overrun=overrun)
    if runs is None:
        return Found("refused", wrong_refusal(problem, truth, refusal), overrun=overrun)
    if options.seed % REPEATED == 0 and options.time_limit is None:
        again = od.exact(made, **options._asdict(), n_jobs=2)
        if np.any(again.counts != runs.counts):
            return Found(runs.status.name, "another number of jobs finds other runs", overrun=overrun)
    return examine_runs(truth, made, runs)._replace(overrun=overrun)


def wrong_rank(made: od.DesignProblem, truth: Truth) -> Found:
    """Return the outcome for a problem whose rank is not the exact one: false unless a note says so."""
    noted = bool(made.rank_note)
    return Found("rank", "" if noted else f"rank {made.rank}, exactly {truth.rank}, and no note", noted)


def wrong_refusal(problem: Instance, truth: Truth, refusal: str) -> str:
    """Return a description of a refusal that is not justified, or an empty string."""
    largest = enumeration.largest_rank(problem)
    if "keep the rank" in refusal and largest < truth.rank:
        return ""
    return f"refused though rank {largest} of {truth.rank} is possible: {refusal}"


def examine_runs(truth: Truth, made: od.DesignProblem, runs: od.Runs) -> Found:
    """Compare the claims of runs that meet the budgets with the truth."""
    problem, status, counts = truth.problem, runs.status.name, runs.counts
    totals = np.bincount(problem.groups, counts, len(problem.budgets))
    if counts.dtype.kind != "i" or counts.min() < 0 or np.any(totals != problem.budgets):
        return Found(status, f"runs of the groups {totals.tolist()}, budgets {problem.budgets.tolist()}")
    if not truth.has_full_rank(counts):
        return Found(status, f"the runs lose rank, and the rank claimed is {runs.rank}")
    if runs.rank != truth.rank:
        return Found(status, f"rank {runs.rank}, exactly {truth.rank}")
    if runs.log_det == -np.inf and runs.efficiency == 0:
        return Found("unproved", noted=True)
    measured = truth.measure(counts, scale=False)
    assert measured is not None
    if wrong := wrong_log_det(runs.log_det, measured.log_det):
        return Found(status, wrong)
    weights = od.solve(made, tol=1e-13, time_limit=5).weights
    least = LEAST if runs.status is od.RunStatus.BOUND else 0.0
    judged = judge_efficiency(truth, runs.efficiency, measured.log_det, [weights, counts], least)
    found = Found(status, judged.wrong, bool(made.rank_note), judged.undecided, judged.slack)
    if not found.wrong and least and enumeration.n_counts(problem) <= enumeration.MOST:
        gain = enumeration.best_gain(truth, counts)
        if gain > truth.rank * (1 - LEAST):
            return found._replace(wrong=f"nothing left to gain claimed, but other counts gain {gain.str(6)}")
    return found
