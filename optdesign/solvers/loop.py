"""The loop around every method: record its progress, enforce the limits, certify the weights.

The algorithm is::

    weights = start,  target = goal
    repeat at most RETRIES times:
        run the method until its own gap is at most the target, or a limit or an interrupt is pending
        certify the weights
        if the certified gap is at most the goal: tidy the design, return
        lower the target by the excess of the certified gap over the goal
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from optdesign.design.certificate import Certificate, settled
from optdesign.design.result import History, Status
from optdesign.problem.problem import DesignProblem
from optdesign.runtime import clock
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import DeferredInterrupt, Stopped, stop_when
from optdesign.solvers.method import Method, Step
from optdesign.solvers.tidy import tidied

T = TypeVar("T")

RETRIES = 4
"""Number of times that a method runs if its own gap meets the target and the certified gap does not."""


class Stop:
    """A time limit and interrupts: the reasons to end a method early."""

    def __init__(self, interrupted: DeferredInterrupt, deadline: float) -> None:
        self.interrupted, self.deadline = interrupted, deadline

    def is_pending(self) -> bool:
        """Return True if the time limit has passed or an interrupt is pending."""
        return bool(self.interrupted) or (self.deadline < np.inf and clock.now() > self.deadline)

    def status(self) -> Status:
        """Return the status of the pending stop."""
        return Status.INTERRUPTED if self.interrupted else Status.TIME_LIMIT

    def run(self, work: Callable[[], T], fallback: Callable[[], T]) -> T:
        """Return the result of the work, or the fallback if the stop ends the work."""
        try:
            with stop_when(self.is_pending):
                return work()
        except Stopped:
            return fallback()

    def reserve_certificate(self, problem: DesignProblem, weights: np.ndarray) -> None:
        """Move the deadline forward by the time of a certificate, so that the final one is in time."""
        if self.deadline < np.inf and not self.is_pending():
            before = clock.now()
            settled(problem, weights)
            self.deadline -= clock.now() - before


class Recorder:
    """The history of a run: gaps and times of its iterations, and the names of its stages."""

    def __init__(self, began: float, display: Progress) -> None:
        self.began, self.display = began, display
        self.iterations = 0
        self.stages: list[str] = []
        self._gaps: list[np.ndarray] = []
        self._times: list[tuple[float, float, int]] = []

    def record(self, steps: Iterator[Step], stop: Stop) -> tuple[float, Status | None]:
        """Run a method. Returns its smallest gap, and the status of the stop that ended it or None."""
        smallest, before = np.inf, clock.now()
        for gaps, stage in steps:
            if stage not in self.stages[-1:]:
                self.stages.append(stage)
            if len(gaps):
                now = clock.now()
                self._times.append((before - self.began, now - self.began, len(gaps)))
                self._gaps.append(gaps)
                self.iterations += len(gaps)
                smallest, before = min(smallest, float(gaps.min())), now
                self.display.update(self.iterations, float(gaps[-1]))
            else:
                self.display.doing(stage)
            if stop.is_pending():
                return smallest, stop.status()
        return smallest, None

    def history(self) -> History:
        """Return gap and time of every iteration. Iterations of one step are spread evenly over its time."""
        return History(
            np.arange(1, self.iterations + 1),
            np.array([a + (b - a) * k / n for a, b, n in self._times for k in range(1, n + 1)]),
            np.concatenate(self._gaps) if self._gaps else np.empty(0),
        )


def run(
    problem: DesignProblem,
    method: Method,
    weights: np.ndarray,
    goal: float,
    max_iter: int,
    recorder: Recorder,
    stop: Stop,
) -> tuple[np.ndarray, Certificate, Status]:
    """Run a method from the given weights until the certified gap is at most ``goal``.

    Returns the weights, their certificate and the status.
    """
    target = goal
    for _ in range(RETRIES):
        steps = method(problem, weights, target, max_iter - recorder.iterations)
        reached, stopped = _record(recorder, steps, stop)
        weights, certificate = settled(problem, weights)
        excess = certificate.gap - goal
        if stopped is Status.INTERRUPTED:
            return weights, certificate, stopped
        if excess <= 0:
            if stopped is None:
                weights, certificate = _tidied(problem, weights, certificate, goal, stop)
            return weights, certificate, Status.CONVERGED
        if stopped is not None:
            return weights, certificate, stopped
        if recorder.iterations >= max_iter:
            return weights, certificate, Status.MAX_ITER
        # The certified gap exceeds the goal by round-off or by dropped weights: go further by the excess.
        lower = min(target, max(reached, certificate.gap - certificate.rounding)) - excess
        if reached > target or lower <= 0:
            break
        target = lower
    limited_by_roundoff = certificate.gap - certificate.rounding <= max(goal, certificate.rounding)
    return weights, certificate, Status.PRECISION if limited_by_roundoff else Status.STALLED


def _record(recorder: Recorder, steps: Iterator[Step], stop: Stop) -> tuple[float, Status | None]:
    """Run a method and turn the exceptions of a stop into its status."""
    try:
        with stop_when(stop.is_pending):
            return recorder.record(steps, stop)
    except Stopped:
        return np.inf, stop.status()
    except KeyboardInterrupt:  # raised by other code: Ctrl-C is deferred to the end of a step
        return np.inf, Status.INTERRUPTED


def _tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, goal: float, stop: Stop
) -> tuple[np.ndarray, Certificate]:
    """Return the tidied weights and their certificate, or the given ones if the stop ends the work."""
    return stop.run(lambda: tidied(problem, weights, certificate, goal), lambda: (weights, certificate))
