"""Column generation for candidates that are larger than memory.

Each round solves the problem on a pool of candidates in memory, by the methods for such problems. One pass
over all candidates then certifies the weights and returns violators, which join the pool. A pass may take
minutes and a solve on the pool a fraction of a second, so the pool is solved to a small fraction of the gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.design.large import Certified, certify_part
from optdesign.design.result import Status
from optdesign.problem.large import LargeProblem, Part
from optdesign.problem.selection import Pool, united
from optdesign.runtime import clock
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import Stopped, never_stop, stop_when
from optdesign.solvers import working_set
from optdesign.solvers.loop import Recorder, Stop, run_method
from optdesign.solvers.method import MAX_ITER, PATIENCE, Method, Step
from optdesign.solvers.start import default_start
from optdesign.sources.engine import LostEngineError


class Parameters(NamedTuple):
    """Size of the pool, and its best accuracy."""

    violators: int = 8
    """A pass returns up to this many violators per candidate that an optimum needs."""
    passes: int = 8
    """Candidates without weight leave a pool that is larger than the violators of this many passes."""
    overshoot: float = 0.1
    """At best a round solves its pool to this fraction of the goal. Otherwise its accuracy is that of a round
    on a working set."""


PARAMETERS = Parameters()

STAGE = "rounds on a pool"


def solve_large(
    problem: LargeProblem, method: Method, goal: float, max_iter: int, recorder: Recorder, stop: Stop
) -> tuple[Certified, Status]:
    """Alternate between solving on a pool and pricing all candidates until the certified gap meets the goal.

    Returns the certified weights of smallest gap and the status. Raises LostEngineError, which carries
    the certified weights so far, if the data are lost.
    """
    most = -(-PARAMETERS.violators * problem.support_bound // problem.n_groups)
    pool, start = problem.sample, None
    best: Certified | None = None
    gap, rounds_since_best = np.inf, 0
    for _ in range(max_iter):
        part = problem.part(pool)
        best_accuracy = PARAMETERS.overshoot * goal
        # The first gap is infinite.
        accuracy = max(best_accuracy, working_set.PARAMETERS.accuracy * min(gap, problem.rank))
        weights = _solved(part, method, start, accuracy, stop)
        began = clock.now()
        try:
            # The first weights are certified in any case: a result has a certificate.
            with never_stop() if best is None else stop_when(stop.is_pending):
                certified, found = certify_part(part, weights, most)
        except (Stopped, KeyboardInterrupt):
            if best is None:
                raise
            return best, stop.status()
        except LostEngineError as error:
            error.certified = best
            raise
        gap = certified.certificate.gap
        rounds_since_best += 1
        if best is None or gap < best.certificate.gap:
            best, rounds_since_best = certified, 0
        _, stopped = recorder.consume(iter([Step(np.array([gap]), STAGE)]), stop)
        if stopped is Status.INTERRUPTED:
            return best, stopped
        if gap <= goal:
            return best, Status.CONVERGED
        # A pass that would not end in time is not begun.
        if stopped is not None or clock.now() + (clock.now() - began) > stop.deadline:
            return best, stopped or Status.TIME_LIMIT
        new = np.setdiff1d(found.rows, pool.rows, assume_unique=True)
        if rounds_since_best > PATIENCE or (not len(new) and accuracy <= best_accuracy):
            rounding = best.certificate.rounding
            is_exact = best.certificate.gap - rounding <= max(goal, rounding)
            return best, Status.PRECISION if is_exact else Status.STALLED
        if not len(new):
            gap = 0.0  # the pool has to be solved to its best accuracy
        pool, start = _next_pool(problem, pool, weights, found, PARAMETERS.passes * most * problem.n_groups)
    assert best is not None
    return best, Status.MAX_ITER


def _solved(part: Part, method: Method, start: np.ndarray | None, goal: float, stop: Stop) -> np.ndarray:
    """Return the weights of the optimal design on a pool, or of the best one when the stop ends the work."""
    if start is None:
        start = stop.run_or_else(lambda: default_start(part), part.uniform)
    silent = Recorder(clock.now(), Progress(False, goal))
    weights, *_ = run_method(part, method, start, goal, MAX_ITER, silent, stop)
    return weights


def _next_pool(
    problem: LargeProblem, pool: Pool, weights: np.ndarray, found: Pool, most: int
) -> tuple[Pool, np.ndarray]:
    """Return the pool with the candidates that were found, and the weights of all its candidates.

    Candidates without weight leave a pool of more than ``most``, except those of the basis.
    """
    if len(pool.rows) > most:
        keep = (weights > 0) | np.isin(pool.rows, problem.basis)
        pool, weights = pool.take(np.flatnonzero(keep)), weights[keep]
    larger = united(pool, found)
    start = np.zeros(len(larger.rows))
    start[np.searchsorted(larger.rows, pool.rows)] = weights
    return larger, start
