"""The best whole runs that a search finds, with a bound on what any runs can be.

    maximise   sum_b log Det( sum_{n in b} c_n x_n x_n' )
    subject to sum_{n in i} c_n = f_i  for every group i,   c_n = 0, 1, 2, ...

The weights of the relaxed problem are solved for first: they bound the optimum, and starts are drawn from
them. A try is one start and local search from it (:mod:`optdesign.exchange`), with a kick whenever no
exchange gains, until a number of kicks in a row has not helped. The best of all tries is returned. Every try
has a random stream of its own, so the outcome depends on the seed and on the number of tries, but not on
n_jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from numbers import Integral
from typing import NamedTuple

import numpy as np

from optdesign import clock
from optdesign.bases import basis
from optdesign.exchange import (
    GAIN,
    Board,
    climb,
    climbed,
    lay_out,
    promising,
    search,
    state_of,
)
from optdesign.interrupts import Deferred
from optdesign.problem import DesignProblem, check_number, check_problem
from optdesign.runs import Runs, RunStatus, judged, whole_runs
from optdesign.solve import solve

TRIES = 10
"""Starts, unless tries or time_limit say otherwise."""

KICK = 6
"""Runs that a kick moves, at most."""

PATIENCE = 200
"""Kicks in a row without a gain that end a try, where they are cheap."""

WORK = 2e9
"""Multiplications that those kicks may cost: fewer kicks where they are dear."""

SLICE = 5e7
"""Multiplications between two looks at the clock."""

RELAXED = 1e-6
"""Relative gap to which weights are solved for."""


class Try(NamedTuple):
    """What a try found: runs of the rows of the board, and their log det."""

    value: float
    counts: np.ndarray


def exact(
    problem: DesignProblem,
    *,
    seed: int = 0,
    tries: int | None = None,
    time_limit: float | None = None,
    n_jobs: int = 1,
) -> Runs:
    """Search for the best whole runs of a problem whose budgets are numbers of runs.

    Parameters
    ----------
    problem : DesignProblem
        Its budgets must be whole numbers: the runs of every group.
    seed : int
        The same seed and number of tries give the same runs, whatever n_jobs is.
    tries : int, optional
        Number of starts. Default: 10, or as many as time_limit allows.
    time_limit : float, optional
        Most seconds, not counting those of compilation on first use. What was found is then returned.
    n_jobs : int
        Tries that run side by side, in threads; -1 for one per core.

    Returns
    -------
    Runs
        Of full rank; ValueError, with the number of runs needed, if there are too few for that. Ctrl-C stops
        the search, not the program.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    >>> runs = od.exact(od.DesignProblem(np.column_stack([np.ones(8), corners]), budgets=4))
    >>> runs.counts.sum(), round(runs.efficiency, 5)
    (4, 1.0)
    """
    began = clock.now()
    check_problem(problem)
    check_search(seed, tries, time_limit, n_jobs)
    runs = whole_runs(problem)
    deadline = np.inf if time_limit is None else began + float(time_limit)
    with Deferred() as interrupted:
        best = solve(problem, tol=RELAXED)
        kept = basis(problem, runs, best.weights)
        counts = np.zeros(problem.n_candidates, np.int64)
        counts[kept] = 1
        board, order = lay_out(problem, promising(problem, best.variances, counts + (best.weights > 0)))
        searcher = _Search(board, best.weights[order], counts[order], runs, seed, deadline, interrupted)
        found, done = best_of(searcher.run, tries, time_limit, n_jobs, searcher.stopped)
        counts[:] = 0
        counts[order] = found.counts
        if len(order) < problem.n_candidates and not searcher.stopped():
            counts = climbed(problem, counts, best.variances)
        status = RunStatus.TRIES
        if interrupted:
            status = RunStatus.INTERRUPTED
        elif clock.now() > deadline:
            status = RunStatus.TIME_LIMIT
        return judged(
            problem, counts, best, status=status, method="exchange", tries=done, seconds=clock.now() - began
        )


def check_search(seed: int, tries: int | None, time_limit: float | None, n_jobs: int) -> None:
    """Refuse what does not say how to search."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0; got {seed!r}. The default is 0.")
    if tries is not None and (isinstance(tries, bool) or not isinstance(tries, Integral) or tries < 1):
        raise ValueError(
            f"tries must be a whole number of at least 1; got {tries!r}. Leave it out for {TRIES}."
        )
    if time_limit is not None:
        check_number(time_limit, "time_limit", "Leave it out for none.")
        if not time_limit > 0:
            raise ValueError(f"time_limit must be positive seconds; got {time_limit}. Leave it out for none.")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number, not 0; got {n_jobs!r}. Use -1 for one per core.")


def best_of(run, tries, time_limit, n_jobs, stopped) -> tuple[Try, int]:
    """The best of several tries, the first of equal ones, and how many there were."""
    if tries is None and time_limit is None:
        tries = TRIES
    numbers: Iterator[int] = iter(range(tries)) if tries is not None else count()
    best, done = Try(-np.inf, np.empty(0)), 0
    for found in _in_turn(run, numbers, n_jobs, stopped):
        done += 1
        if found.value > best.value + GAIN:
            best = found
    return best, done


def _in_turn(run, numbers, n_jobs, stopped) -> Iterator[Try]:
    """What the tries find, in their order, until one is stopped."""
    if n_jobs == 1:
        for number in numbers:
            yield run(number)
            if stopped():
                return
        return
    from joblib import Parallel, cpu_count, delayed

    workers = n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
    with Parallel(n_jobs=workers, prefer="threads") as parallel:
        while True:
            batch = list(islice(numbers, workers))
            if not batch:
                return
            yield from parallel(delayed(run)(number) for number in batch)
            if stopped():
                return


class _Search:
    """The tries of one problem."""

    def __init__(
        self,
        board: Board,
        weights: np.ndarray,
        kept: np.ndarray,
        runs: np.ndarray,
        seed: int,
        deadline: float,
        interrupted: Deferred,
    ) -> None:
        self.board, self.weights, self.kept, self.runs, self.seed = board, weights, kept, runs, seed
        self.deadline, self.interrupted = deadline, interrupted
        support = min(int(runs.sum()), len(weights))
        cost = max(1.0, float(support) * board.z.size / len(runs))
        self.patience = int(np.clip(WORK / cost, 1, PATIENCE))
        self.batch = int(np.clip(SLICE / cost, 1, 20))
        self.exchanges = int(np.clip(SLICE / board.z.size, 1, 1 << 30))

    def stopped(self) -> bool:
        """Whether there is no more time."""
        return bool(self.interrupted) or clock.now() > self.deadline

    def run(self, number: int) -> Try:
        """Start, climb, and kick until that does not help any more."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number,)))
        state = state_of(self.board, self._start(rng))
        value, moved = climb(*self.board, *state, self.exchanges)
        while moved == self.exchanges and not self.stopped():
            value, moved = climb(*self.board, *state, self.exchanges)
        idle = 0
        while idle < self.patience and not self.stopped():
            draws = rng.random((self.batch, 2 * KICK))
            new = search(*self.board, *state, value, draws)
            idle = 0 if new > value + GAIN else idle + self.batch
            value = new
        return Try(value, state.counts)

    def _start(self, rng: np.random.Generator) -> np.ndarray:
        """Runs drawn from the weights: what must be kept, whole parts, and the rest by chance."""
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
