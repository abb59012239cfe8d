"""Whole runs from counts: which budgets are numbers of runs, and how good counts are against a solved design.

The certificate of the runs proves their rank. If their information is too ill-conditioned for that, exact
arithmetic (:mod:`optdesign.verification.exact_arithmetic`) computes rank and log Det, and the efficiency
is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal

import numpy as np

from optdesign.design.certificate import Certificate, certify
from optdesign.design.efficiency import compared
from optdesign.design.feasible import MOST_RUNS
from optdesign.design.result import DesignResult
from optdesign.design.run_list import Runs, RunStatus, RunTable
from optdesign.errors import InputError
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runs.rank_basis import exact_rank
from optdesign.runtime.clock import Stopwatch
from optdesign.solvers.solve import solve
from optdesign.verification.exact_arithmetic import factorise, information

__all__ = ["RunStatus", "RunTable", "Runs", "judged", "whole_runs"]


def whole_runs(problem: DesignProblem) -> np.ndarray:
    """Return the budgets as numbers of runs, or raise an error."""
    budgets = problem.budgets
    bad = np.flatnonzero((budgets != np.floor(budgets)) | (budgets > MOST_RUNS))
    if len(bad):
        rule = "must be whole numbers of runs, at most 2^53"
        remedy = "Build the problem with the number of runs of every group: DesignProblem(..., budgets=runs)."
        raise InputError("budgets", rule, f"budgets[{bad[0]}] = {budgets[bad[0]]}", remedy)
    return budgets.astype(np.int64)


def judged(
    problem: DesignProblem,
    counts: np.ndarray,
    best: DesignResult,
    *,
    spanning: Callable[[], np.ndarray],
    status: RunStatus,
    method: str,
    tries: int,
    stopwatch: Stopwatch,
    certified: Certificate | None = None,
) -> Runs:
    """Return runs with their efficiency, against a solved design of the problem.

    ``spanning`` returns counts of full rank in exact arithmetic, which replace counts that lose rank.
    ``certified`` is the certificate of ``best`` if it is known to be that of its weights.
    """
    asked = problem.budgets
    totals = np.bincount(problem.groups, counts, problem.n_groups)
    if np.any(totals != problem.budgets):
        problem, best = _with_budgets(problem, best, totals)
        certified = best.certificate
    certificate = certify(problem, counts)
    log_det = certificate.log_det
    if not certificate.gap < np.inf:  # the rank is not proved
        if exact_rank(problem, np.flatnonzero(counts)) < problem.rank:
            counts = spanning()
            certificate = certify(problem, counts)
        log_det = _exact_log_det(problem, counts)
    certified = certify(problem, best.weights) if certified is None else certified
    reached = compared(problem, counts, certificate, best, certified)
    times = stopwatch.times()
    return Runs(
        problem=problem,
        counts=read_only(counts.astype(np.int64)),
        asked=asked,
        efficiency=reached,
        log_det=log_det,
        rank=problem.rank,
        status=status,
        method=method,
        tries=tries,
        seconds=times["seconds"],
        compile_seconds=times["compile_seconds"],
        best=best,
    )


def _exact_log_det(problem: DesignProblem, counts: np.ndarray) -> float:
    """Return log Det of runs of full rank, by exact arithmetic."""
    total = Decimal(0)
    for b in np.flatnonzero(problem.ranks):
        rows = np.flatnonzero((counts > 0) & (problem.parameter_blocks == b))
        u = information(problem.source.take(rows), counts[rows].astype(np.float64))
        factor = factorise(u, int(problem.ranks[b]))
        if factor is None:
            return -np.inf
        total += factor.log_det
    return float(total)


def _with_budgets(
    problem: DesignProblem, best: DesignResult, budgets: np.ndarray
) -> tuple[DesignProblem, DesignResult]:
    """Solve the problem of the same candidates under other budgets."""
    other = object.__new__(DesignProblem)
    for one in fields(problem):  # and nothing that was computed from the budgets
        object.__setattr__(other, one.name, getattr(problem, one.name))
    object.__setattr__(other, "budgets", read_only(budgets.astype(np.float64)))
    return other, solve(other, start=best.weights)
