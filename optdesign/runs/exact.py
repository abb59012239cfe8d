"""The best whole runs that a search finds, with a bound on what any runs can be.

    maximise   sum_b log Det( sum_{n in b} c_n x_n x_n' )
    subject to sum_{n in i} c_n = f_i  for every group i,   c_n = 0, 1, 2, ...

The weights of the relaxed problem are computed first. Their certificate bounds the optimum. An iterated local
search follows (:mod:`optdesign.runs.search`), with the moves that suit the structure of the problem: blocks
with additive effects (:mod:`optdesign.runs.blocks`), a grid of levels (:mod:`optdesign.runs.levels`), or any
list (:mod:`optdesign.runs.lists`), whose first try starts from the rounded weights if they are optimal
(:mod:`optdesign.runs.rounding`). At the end, single runs are exchanged between all candidates until no
exchange gains.

The search ends early if the certificate of the runs themselves, taken as weights, proves them optimal, or if
they attain a bound on whole runs. The log det of the relaxed weights is no bound: they are optimal up to
their own gap only, and a time limit can leave that gap large.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from optdesign.design.certificate import certify
from optdesign.design.result import DesignResult, Status
from optdesign.errors import InputError
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import read_only
from optdesign.runs.exchange import climbed
from optdesign.runs.grid import Grid, find_grid
from optdesign.runs.lists import ListMoves
from optdesign.runs.main_effects import MainEffects, search_levels
from optdesign.runs.proof import prove as proved
from optdesign.runs.rounding import apportioned, rounded
from optdesign.runs.runs import Runs, RunStatus, judged, whole_runs
from optdesign.runs.search import (
    GAIN,
    Best,
    Clock,
    Slices,
    Try,
    best_of,
    check_search,
    iterate,
    most_work,
    stream,
)
from optdesign.runs.structure import moves_of
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt
from optdesign.solvers.solve import solve

POLISH = 10
"""Slices of work of the exchanges between all candidates that follow a search without a time limit."""

RELAXED = 1e-6
"""Relative gap to which the relaxed problem is solved."""


def exact(
    problem: DesignProblem | MainEffects,
    *,
    seed: int = 0,
    tries: int | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
    prove: bool = False,
) -> Runs:
    """Search for the best whole runs of a problem whose budgets are numbers of runs.

    Parameters
    ----------
    problem : DesignProblem or MainEffects
        The budgets of a problem are whole numbers: the runs of every group. An additive model over factors
        (:class:`optdesign.MainEffects`) has all combinations of levels as candidates, without a list of them.
    seed : int, default 0
        The same seed and number of tries give the same runs, for every n_jobs. Other processors may give
        other runs, because their round-off differs.
    tries : int, optional
        Number of starts, each with the default work at most if there is no time_limit. Default: as many as
        time_limit allows. Without time_limit, or with prove, a fixed amount of work of about 1 s, or less if
        10 tries find the same log det; without time_limit, the same seed gives the same runs.
    time_limit : float, optional
        Largest number of seconds, without compilation on first use. At most half of them are for the relaxed
        problem. The time of the certificate is measured and reserved, so the limit is exceeded only if it is
        shorter than about five certificates. The search ends earlier if all tries are done, or, with
        ``RunStatus.BOUND`` or ``RunStatus.PROVED``, if the runs are proved optimal. Runs found within a time
        limit depend on the speed of the computer. Default: no limit, also of the proof.
    n_jobs : int, default 1
        Number of tries that run side by side, in threads; -1 for one per core.
    prove : bool, default False
        Continue with branch and bound until the runs are proved optimal among whole runs, which small
        problems with a list of candidates allow. The search then has the given tries or the default work,
        and it ends after a quarter of the time limit at the latest, counted from the call. The proof has the
        rest. If it is not complete, ``runs.bound`` is an upper bound on log det of whole runs.

    Returns
    -------
    Runs
        Runs of full rank. Ctrl-C ends the search, and the best runs found are returned.

    Raises
    ------
    InputError
        If there are too few runs for full rank. The message has the number needed.

    See Also
    --------
    optdesign.round : Round the weights of a solved design.
    optdesign.solve : Find the optimal weights.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    >>> runs = od.exact(od.DesignProblem(np.column_stack([np.ones(8), corners]), budgets=4))
    >>> int(runs.counts.sum()), round(runs.efficiency, 5)
    (4, 1.0)
    """
    stopwatch = clock.Stopwatch()
    check_search(seed, tries, time_limit, n_jobs)
    if prove and isinstance(problem, MainEffects):
        remedy = "List them: DesignProblem(candidates(factors, model))."
        raise InputError("prove", "must be False without a list of candidates", f"got {problem!r}", remedy)
    deadline = np.inf if time_limit is None else stopwatch.began + float(time_limit)
    if isinstance(problem, MainEffects):
        with DeferredInterrupt() as interrupted:
            return _levels(problem, seed, tries, n_jobs, Clock(deadline, interrupted), stopwatch)
    check_problem(problem)
    runs = whole_runs(problem)
    # Outside the block below, which would hold the interrupt back from the solver.
    grid = find_grid(problem)
    best = relaxed(problem, grid, None if time_limit is None else time_limit / 2)
    with DeferredInterrupt() as interrupted:
        interrupted.held = best.status is Status.INTERRUPTED
        if time_limit is not None:
            deadline -= _seconds_of_certificate(best)
        final = Clock(deadline, interrupted)
        watch = final if time_limit is None or not prove else Clock(deadline - 0.75 * time_limit, interrupted)
        first = rounded(best, runs) if best.converged else None
        spanning = partial(apportioned, problem, best.weights, runs, proved=True)

        def is_optimal(counts: np.ndarray) -> bool:
            """Return True if the certificate of the runs, taken as weights, leaves nothing to gain."""
            return certify(problem, counts).relative_gap <= GAIN

        def search(moves: Any) -> Best:
            most = most_work(watch)

            def run(number: int) -> Try:
                # Other moves need no start that depends on the time for the weights.
                from_weights = number == 0 and first is not None and isinstance(moves, ListMoves)
                start = moves.of(first) if from_weights else None
                rng = stream(seed, number)
                return iterate(moves, rng, watch, is_optimal=is_optimal, start=start, most=most)

            return best_of(run, tries, n_jobs, watch, prove=prove)

        if final.stopped():  # the certificate takes the rest of the time
            counts = apportioned(problem, best.weights, runs, proved=not best.gap < np.inf)
            found, method = Best(Try(-np.inf, counts), 0, repeated=False), "rounding"
        else:
            moves = moves_of(best, runs, grid, first=first, spanning=spanning)
            found, method = search(moves), moves.name
        counts = found.best.found
        if not found.best.is_final and not watch.stopped():
            counts, _ = climbed(problem, counts, best.variances, Slices(POLISH, watch.stopped).are_used_up)
        status, left = _status(watch, found, tries), 0.0 if found.best.proved else np.inf
        if prove and not found.best.is_final and found.best.value > -np.inf:
            if problem.n_candidates * problem.rank**2 < final.work_left():
                counts, left = proved(problem, counts, final.stopped)
                if left == 0:
                    status = RunStatus.PROVED
                elif final.stopped():
                    status = _status(final, found, tries)
            else:  # one sweep over the candidates, which cannot be stopped, would exceed the limit
                status = RunStatus.INTERRUPTED if interrupted else RunStatus.TIME_LIMIT
        runs_found = judged(
            problem,
            counts,
            best,
            spanning=spanning,
            status=status,
            method=method + " and branch and bound" * prove,
            tries=found.tries,
            stopwatch=stopwatch,
            certified=best.certificate,
        )
        if found.best.optimal:
            left = runs_found.certificate.gap
        return replace(runs_found, bound=runs_found.log_det + left)


def relaxed(problem: DesignProblem, grid: Grid | None, limit: float | None = None) -> DesignResult:
    """Return optimal weights: in closed form for an additive model on a full grid."""
    if grid is not None and grid.shares:
        weights = grid.product_weights(float(problem.budgets[0]))
        best = DesignResult.given(problem, weights, method="product of marginal designs")
        if best.relative_gap <= RELAXED:
            return best
    return solve(problem, tol=RELAXED, time_limit=limit)


def _seconds_of_certificate(best: DesignResult) -> float:
    """Return the time of the certificate and the efficiency of runs, measured on optimal weights."""
    before = clock.now()
    certify(best.problem, best.weights)
    # The comparison of runs with the optimal weights takes about as long as their certificate.
    return 2.0 * (clock.now() - before)


def _levels(
    model: MainEffects,
    seed: int,
    tries: int | None,
    n_jobs: int,
    watch: Clock,
    stopwatch: clock.Stopwatch,
) -> Runs:
    """Return runs of a model whose candidates are not listed."""
    best, efficiency, log_det = search_levels(model, seed, tries, n_jobs, watch)
    problem, counts = model.problem(best.best.found)
    return Runs(
        problem=problem,
        counts=read_only(counts.astype(np.int64)),
        asked=problem.budgets,
        efficiency=efficiency,
        log_det=log_det,
        rank=model.n_parameters,
        status=_status(watch, best, tries),
        method="exchange of levels",
        tries=best.tries,
        **stopwatch.times(),
        model=model,
        best=None,
    )


def _status(watch: Clock, found: Best, tries: int | None) -> RunStatus:
    """Return the reason why the search ended."""
    if watch.interrupted:
        return RunStatus.INTERRUPTED
    if found.best.optimal:
        return RunStatus.BOUND
    if found.best.proved:
        return RunStatus.PROVED
    if watch.stopped():
        return RunStatus.TIME_LIMIT
    if tries is None:
        return RunStatus.REPEATED if found.repeated else RunStatus.BUDGET
    return RunStatus.TRIES if watch.deadline == np.inf else RunStatus.TRIES_IN_TIME
