"""Solve on few candidates, price all.

At the optimum few candidates have weight. So the interior point method runs on an active set; one pass over
the data gives the variances of all candidates, which is the certificate of the whole problem and tells which
candidates to add: those whose variance exceeds the largest in their group's active part.

Every round starts from the weights of the last one, but for what is negligible, so log Det rises and the gap
over all candidates goes to zero; where nothing is to be added, the steps of the last one go on. Weights are
restricted, never the problem: what is returned is certified over all candidates.

A candidate has lost if its share of the largest weight in its group is less than the fraction by which its
variance is below the largest: near an optimum one of the two is nothing. Where most have, they are left out.
Should one of them matter, its price says so, or the rank that is lost.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from optdesign.algebra.passes import exceeding, find_exceeding, variances_at
from optdesign.algebra.reduced import reduce
from optdesign.algebra.whitening import few, measured, whitened
from optdesign.design.certificate import scale
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel
from optdesign.solvers import NOTHING, PATIENCE, Step, bca, newton
from optdesign.solvers.costs import SWEEPS, pass_time, spread, steps_time, sweeps_time

INNER = 0.005
"""A round solves its part to this fraction of the last gap over all candidates."""

STAGE = "newton on the candidates that matter"


def run(problem: DesignProblem, weights: np.ndarray, target: float, max_iter: int) -> Iterator[Step]:
    """Rounds of solving and pricing, starting from the support of the weights. Overwrites weights.

    An iteration is a round; its gap is the one over all candidates. What is solved in less time than it is
    priced is solved before it is priced for the first time.
    """
    rows, trial = np.flatnonzero(weights != 0), weights.copy()
    held, everyone = rows, spread(problem, len(rows))
    if not everyone and steps_time(problem, len(rows)) <= pass_time(problem):
        yield from _Round(problem, rows, trial).solved(_goal(problem, np.inf, target))
    best, since_best, leaving, brief = np.inf, 0, True, False
    last: _Round | None = None
    for _ in range(max_iter):
        gap, found, lost = priced(problem, rows, trial[rows])
        if gap == np.inf > best and not everyone:
            # What was left out carried a direction alone: back to the best weights, and all of them stay.
            rows, leaving, last = held, False, None
            trial[:] = weights
            gap, found, lost = priced(problem, rows, trial[rows])
        since_best += 1
        if gap < best:
            best, since_best = gap, 0
            _replace(weights, held, rows, trial)
            held = rows
        yield Step(np.array([gap]), STAGE)
        if gap <= target or since_best > PATIENCE or not np.isfinite(gap):
            return
        if everyone:
            rows = np.arange(problem.n_candidates)
            yield from _solved_on_all(problem, trial, target, weights, best)
        else:
            if leaving and gap <= problem.rank and 2 * np.count_nonzero(lost) > len(rows):
                some = rows[~lost]
                kept = trial[some]
                scale(problem.groups[some], problem.budgets, kept)
                trial[rows] = 0.0
                trial[some] = kept
                last = None
            if last and last.stepped and not len(found):  # then they are the candidates that matter
                yield from last.steps(target)
                last = None
                continue
            rows = _merged(rows[trial[rows] > 0], found)
            # Sweeps tell who of the new ones matters; Newton steps on a few of them need no such help.
            sweeps = not (last and last.stepped) or 2 * len(found) >= len(rows)
            last = _Round(problem, rows, trial)
            brief = yield from last.solved(_goal(problem, gap, target), sweeps, may_be_brief=not brief)


def _goal(problem: DesignProblem, gap: float, target: float) -> float:
    """The gap to which a round solves its part, after that over all candidates."""
    return max(target, INNER * min(gap, problem.rank))


class _Round:
    """Some candidates, for which alone the problem is solved. Their weights in trial are overwritten."""

    def __init__(self, problem: DesignProblem, rows: np.ndarray, trial: np.ndarray) -> None:
        self.problem, self.trial, self.part = problem, trial, reduce(problem, rows)
        self.u = self.part.restrict(trial, problem)
        self.iteration: newton.Iteration | None = None
        self.stepped = False
        """Whether Newton steps came to their target, from where they can go on."""

    def solved(
        self, target: float, sweeps: bool = True, may_be_brief: bool = True
    ) -> Generator[Step, None, bool]:
        """Solve. Returns whether the round was brief.

        If asked for, a few sweeps come first, where they cost no more than Newton steps. A brief round ends
        there, where they leave so few with weight that it takes less to price all again and go on with these.
        """
        problem, u = self.problem, self.u
        steps, gap, brief = steps_time(problem, len(u)), np.inf, False
        if sweeps and sweeps_time(problem, len(u), int(np.count_nonzero(u))) <= steps:
            for step in bca.run(self.part, u, target, SWEEPS):
                gap = step.gaps[-1] if len(step.gaps) else gap
                yield Step(NOTHING, STAGE)
            again = pass_time(problem) + steps_time(problem, int(np.count_nonzero(u)))
            brief = may_be_brief and gap > target and again < steps
        if gap > target and not brief:
            yield from self.steps(target)
        else:
            self.part.extend(u, problem, self.trial)
        return brief

    def steps(self, target: float) -> Iterator[Step]:
        """Newton steps, from where they ended last."""
        self.iteration = self.iteration or newton.Iteration(self.part, self.u)
        for _ in self.iteration.to(target):
            yield Step(NOTHING, STAGE)
        self.stepped = self.iteration.best <= target
        self.part.extend(self.u, self.problem, self.trial)


def _solved_on_all(
    problem: DesignProblem, trial: np.ndarray, target: float, weights: np.ndarray, best: float
) -> Iterator[Step]:
    """Solve on all candidates. Overwrites trial, and weights with whatever has a smaller gap than ``best``.

    The gap is that over all candidates: what is found is kept, should a limit end the round.
    """
    whole = reduce(problem)
    u = whole.restrict(trial, problem)
    for step in newton.run(whole, u, target):
        if len(step.gaps) and step.gaps[-1] < best:
            whole.extend(u, problem, weights)
        yield Step(NOTHING, STAGE)
    whole.extend(u, problem, trial)


def priced(
    problem: DesignProblem, rows: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """The gap over all candidates of the weights of some, those whose variance is above all of theirs, and
    which of the some seem not to matter; the heaviest of a group always does.

    Infinite, and none, if the weights lose rank.
    """
    bound, lost = np.zeros(problem.n_groups), np.zeros(len(rows), np.bool_)
    if few(problem.rows):
        at_all = measured(problem, problem.rows, rows, weights, attempts=1)
        if not at_all.full:
            return np.inf, rows[:0], lost
        found = np.empty(problem.n_candidates, np.int64)
        count = _write_lost_and_found(problem.groups, rows, weights, at_all.g, bound, lost, found)
        return float(problem.budgets @ at_all.largest) - problem.rank, found[:count], lost
    # Of more of them nothing is kept but what is asked for.
    white, _, log_det = whitened(problem, problem.rows, rows, weights, attempts=1)
    if np.minimum.reduce(log_det) == -np.inf:
        return np.inf, rows[:0], lost
    _write_lost(problem.groups[rows], weights, variances_at(problem, problem.rows, white, rows), bound, lost)
    found, top = exceeding(problem, problem.rows, white, bound)
    return float(problem.budgets @ top) - problem.rank, found, lost


@kernel
def _write_lost_and_found(groups, rows, weights, g, bound, lost, found):
    """The same as _write_lost, given the variances of all candidates; overwrites found with those above their
    bound as well, and returns how many they are.
    """
    some, own = np.empty(len(rows), np.int64), np.empty(len(rows))
    for k in range(len(rows)):
        some[k] = groups[rows[k]]
        own[k] = g[rows[k]]
    _write_lost(some, weights, own, bound, lost)
    return find_exceeding(groups, g, bound, 0, found)


@kernel
def _write_lost(groups, weights, g, bound, lost):
    """Overwrite lost with whether rows have; bound, given as zeros, with their largest variances."""
    most = np.zeros(len(bound))
    for k in range(len(groups)):
        i = groups[k]
        bound[i] = max(bound[i], g[k])
        most[i] = max(most[i], weights[k])
    for k in range(len(groups)):
        i = groups[k]
        lost[k] = weights[k] * bound[i] < (bound[i] - g[k]) * most[i]


@kernel
def _merged(a, b):
    """All that is in one of two rising sequences, in order."""
    out = np.empty(len(a) + len(b), np.int64)
    i, j, count = 0, 0, 0
    while i < len(a) or j < len(b):
        first = j == len(b) or (i < len(a) and a[i] <= b[j])
        out[count] = a[i] if first else b[j]
        j += j < len(b) and b[j] == out[count]
        i += first
        count += 1
    return out[:count]


@kernel
def _replace(weights, old, rows, new):
    """Overwrite weights with new ones that only some rows have, where only the old rows had any."""
    for n in old:
        weights[n] = 0.0
    for n in rows:
        weights[n] = new[n]
