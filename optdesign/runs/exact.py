"""The best whole runs that a search finds, with a bound on what any runs can be.

    maximise   sum_b log Det( sum_{n in b} c_n x_n x_n' )
    subject to sum_{n in i} c_n = f_i  for every group i,   c_n = 0, 1, 2, ...

The weights of the relaxed problem are computed first. Their certificate bounds the optimum, and starts are
drawn from them. A try is an iterated local search from one start (:mod:`optdesign.runs.exchange`): if no
exchange gains, some runs move at random and the search continues. A try ends after a number of such
perturbations in a row without a gain. The first try starts from the
rounded weights if they are optimal (:mod:`optdesign.runs.rounding`). The best of all tries is returned. Every
try has a random stream of its own, so the outcome depends on the seed and on the number of tries, but not on
n_jobs.

The search ends early if the certificate of the runs themselves, taken as weights, proves them optimal. The
log det of the relaxed weights is no bound: they are optimal up to their own gap only, and a time limit can
leave that gap large.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from optdesign.design.certificate import certify
from optdesign.design.result import DesignResult, Status
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import read_only
from optdesign.runs.exchange import (
    SLICE,
    Board,
    Kept,
    State,
    climb_on,
    climbed,
    kept_of,
    lay_out,
    passes_of,
    promising,
    state_of,
)
from optdesign.runs.exchange import search as perturb_and_climb
from optdesign.runs.main_effects import MainEffects, search_levels
from optdesign.runs.rank_basis import basis
from optdesign.runs.rounding import apportioned, rounded
from optdesign.runs.runs import Runs, RunStatus, judged, whole_runs
from optdesign.runs.search import GAIN, Best, Clock, Try, best_of, check_search
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt
from optdesign.solvers.solve import solve


def exact(
    problem: DesignProblem | MainEffects,
    *,
    seed: int = 0,
    tries: int | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
) -> Runs:
    """Search for the best whole runs of a problem whose budgets are numbers of runs.

    Parameters
    ----------
    problem : DesignProblem or MainEffects
        The budgets of a problem are whole numbers: the runs of every group. An additive model over factors
        (:class:`optdesign.MainEffects`) has all combinations of levels as candidates, without a list of them.
    seed : int, default 0
        The same seed and number of tries give the same runs, for every n_jobs.
    tries : int, optional
        Number of starts. Default: 10, or as many as time_limit allows.
    time_limit : float, optional
        Largest number of seconds of the search, without compilation on first use. Half of them are for the
        relaxed problem. The certificate of the runs takes additional time. The search ends earlier, with
        ``RunStatus.BOUND``, if the runs are proved optimal among all designs, fractions of runs included.
    n_jobs : int, default 1
        Number of tries that run side by side, in threads; -1 for one per core.

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
    deadline = np.inf if time_limit is None else stopwatch.began + float(time_limit)
    if isinstance(problem, MainEffects):
        with DeferredInterrupt() as interrupted:
            return _levels(problem, seed, tries, n_jobs, Clock(deadline, interrupted), stopwatch)
    check_problem(problem)
    runs = whole_runs(problem)
    relaxed = 1e-6  # relative gap to which weights are solved for
    # Outside the block below, which would hold the interrupt back from the solver.
    best = solve(problem, tol=relaxed, time_limit=None if time_limit is None else time_limit / 2)
    with DeferredInterrupt() as interrupted:
        interrupted.held = best.status is Status.INTERRUPTED
        watch = Clock(deadline, interrupted)
        counts = np.zeros(problem.n_candidates, np.int64)
        counts[basis(problem, runs, best.weights, proved=not best.gap < np.inf)] = 1
        first = rounded(best, runs) if best.converged else None
        used = counts if first is None else counts + first
        board, order = lay_out(problem, promising(problem, best.variances, used, best.weights))
        search = _Search(problem, best, board, order, counts, first, runs, seed, watch)
        found = best_of(search.run, tries, n_jobs, watch)
        counts = search.spread(found.found)
        if len(order) < problem.n_candidates and not found.met and not watch.stopped():
            counts = climbed(problem, counts, best.variances, watch.stopped)
        return judged(
            problem,
            counts,
            best,
            spanning=partial(apportioned, problem, best.weights, runs, proved=True),
            status=_status(watch, found),
            method="exchange",
            tries=found.tries,
            **stopwatch.times(),
        )


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
    problem, counts = model.problem(best.found)
    return Runs(
        problem=problem,
        counts=read_only(counts.astype(np.int64)),
        asked=problem.budgets,
        efficiency=efficiency,
        log_det=log_det,
        rank=model.n_parameters,
        status=_status(watch, best),
        method="exchange of levels",
        tries=best.tries,
        **stopwatch.times(),
        unlisted=True,
        best=None,
    )


def _status(watch: Clock, best: Best) -> RunStatus:
    """Why the search ended."""
    if watch.interrupted:
        return RunStatus.INTERRUPTED
    if best.met:
        return RunStatus.BOUND
    if watch.stopped():
        return RunStatus.TIME_LIMIT
    return RunStatus.TRIES if watch.deadline == np.inf else RunStatus.TRIES_IN_TIME


class _Search:
    """The tries of one problem."""

    def __init__(
        self,
        problem: DesignProblem,
        best: DesignResult,
        board: Board,
        order: np.ndarray,
        kept: np.ndarray,
        first: np.ndarray | None,
        runs: np.ndarray,
        seed: int,
        watch: Clock,
    ) -> None:
        self.problem, self.board, self.order, self.weights = problem, board, order, best.weights[order]
        self.kept, self.first = kept[order], None if first is None else first[order]
        self.runs, self.seed, self.watch = runs, seed, watch
        support = min(int(runs.sum()), len(order))
        cost = max(1.0, float(support) * board.z.size / len(runs))
        patience = 200  # perturbations in a row without a gain that end a try, where they are cheap
        # Largest number of multiplications of those perturbations: large problems have fewer of them.
        work_limit = 2e9
        self.patience = int(np.clip(work_limit / cost, 1, patience))
        self.batch = int(np.clip(SLICE / cost, 1, 20))
        self.passes = passes_of(board)

    def run(self, number: int) -> Try:
        """Return the best runs of one start: climb, then perturb and climb until nothing gains."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        start = self._drawn(rng) if number > 0 or self.first is None else self.first.copy()
        state = state_of(self.board, start)
        value = climb_on(self.board, state, self.watch.stopped)
        kept, idle = kept_of(state), 0
        optimal = self._is_optimal(kept)
        while idle < self.patience and not optimal and not self.watch.stopped():
            new, perturbations = self._perturb(state, kept, value, rng)
            if new > value + GAIN:
                idle, optimal = 0, self._is_optimal(kept)
            else:
                idle += perturbations
            value = new
        return Try(value, kept.counts, optimal)

    def _perturb(self, state: State, kept: Kept, value: float, rng: np.random.Generator) -> tuple[float, int]:
        """Perturb and climb from the kept runs of the given log det, a number of times. Overwrites both.

        Returns the log det of the kept runs and the number of perturbations.
        """
        perturbation = 6  # largest number of runs that a perturbation moves
        draws = rng.random((self.batch, 2 * perturbation))
        best, done = perturb_and_climb(*self.board, *state, *kept, value, draws, self.passes)
        if done < len(draws):
            new = climb_on(self.board, state, self.watch.stopped)
            done += 1
            if new >= best:
                best = new
                for array, to in zip(kept_of(state), kept, strict=True):
                    to[...] = array
        return best, done

    def _is_optimal(self, kept: Kept) -> bool:
        """Return True if the certificate of the runs, taken as weights, leaves nothing to gain."""
        largest = np.maximum.reduceat(kept.g, self.board.at[:, 0])
        if not self.runs @ largest <= (1.0 + GAIN) * self.problem.rank:  # an estimate, and of some candidates
            return False
        return certify(self.problem, self.spread(kept.counts)).relative_gap <= GAIN

    def spread(self, counts: np.ndarray) -> np.ndarray:
        """Return counts of all candidates from those of the board."""
        out = np.zeros(self.problem.n_candidates, np.int64)
        out[self.order] = counts
        return out

    def _drawn(self, rng: np.random.Generator) -> np.ndarray:
        """Return runs drawn from the weights: a basis, whole parts, and the rest by chance."""
        counts = self.kept.copy()
        at = self.board.at
        for i, (lo, hi) in enumerate(zip(at[:, 0], at[:, -1], strict=True)):
            counts[lo:hi] += _drawn(self.weights[lo:hi], counts[lo:hi], int(self.runs[i]), rng)
        return counts


def _drawn(weights: np.ndarray, kept: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Runs of one group beyond those kept, drawn in proportion to the weights by systematic sampling."""
    left = runs - int(kept.sum())
    wanted = np.maximum(weights - kept, 0.0)
    order = rng.permutation(len(weights))
    edges = np.cumsum(wanted[order])
    edges *= left / edges[-1] if edges[-1] > 0 else 0.0
    marks = np.floor(edges + rng.random())
    marks[-1] = left
    marks = np.minimum(marks, left)
    out = np.zeros(len(weights), np.int64)
    out[order] = np.diff(marks, prepend=0.0).astype(np.int64)
    return out
