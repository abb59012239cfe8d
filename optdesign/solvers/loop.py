"""The loop around every method: record its progress, enforce the limits, certify the weights.

The algorithm is::

    weights = start,  target = goal
    repeat at most max_runs times:
        run the method until its own gap is at most the target, or a stop is pending
        certify the weights
        if an interrupt is pending: return INTERRUPTED
        if the certified gap is at most the goal: tidy the design unless a stop is pending, return CONVERGED
        if a stop is pending or max_iter is reached: return its status
        if the method did not meet its target: end
        target = min(target, gap reached) - (certified gap - goal);  if it is not positive: end
    if round-off does not explain the certified gap: return STALLED
    tidy the design without raising its gap;  return CONVERGED if that meets the goal, else PRECISION

A stop is a time limit or an interrupt. It ends a method at a yield, or inside a step by the exception
Stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from optdesign.design.certificate import Certificate, rescale_and_certify
from optdesign.design.result import History, Status
from optdesign.problem.problem import DesignProblem
from optdesign.runtime import clock
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import DeferredInterrupt, Stopped, stop_when
from optdesign.solvers.method import Method, Step
from optdesign.solvers.tidy import tidied

T = TypeVar("T")


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

    def run_or_else(self, work: Callable[[], T], fallback: Callable[[], T]) -> T:
        """Return the result of the work, or the fallback if the stop ends the work."""
        try:
            with stop_when(self.is_pending):
                return work()
        except Stopped:
            return fallback()

    def reserve_certificate(self, problem: DesignProblem, weights: np.ndarray) -> None:
        """Bring the deadline earlier by the time of one certificate.

        The final certificate then ends in time. The time is measured on the given weights.
        """
        if self.deadline < np.inf and not self.is_pending():
            before = clock.now()
            rescale_and_certify(problem, weights)
            self.deadline -= clock.now() - before


class Recorder:
    """The history of a run: gaps and times of its iterations, and the names of its stages."""

    def __init__(self, began: float, display: Progress) -> None:
        self.began, self.display = began, display
        self.iterations = 0
        self.stages: list[str] = []
        self._gaps: list[np.ndarray] = []
        self._times: list[tuple[float, float, int]] = []

    def consume(self, steps: Iterator[Step], stop: Stop) -> tuple[float, Status | None]:
        """Run the steps of a method and record them.

        Returns its smallest gap and the status of the stop that ended it, None if it ended by itself.
        """
        smallest, before = np.inf, clock.now()
        for gaps, stage in steps:
            if stage not in self.stages[-1:]:
                self.stages.append(stage)
            now = clock.now()
            self._times.append((before - self.began, now - self.began, len(gaps)))
            self._gaps.append(gaps)
            self.iterations += len(gaps)
            smallest, before = min(smallest, float(gaps.min())), now
            self.display.update(self.iterations, float(gaps[-1]))
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


def run_method(
    problem: DesignProblem,
    method: Method,
    weights: np.ndarray,
    goal: float,
    max_iter: int,
    recorder: Recorder,
    stop: Stop,
    max_runs: int = 4,
) -> tuple[np.ndarray, Certificate, Status]:
    """Run a method from the given weights until the certified gap is at most ``goal``.

    The method runs again, at most ``max_runs`` times in all, if its own gap meets the target and the
    certified gap exceeds the goal. Returns the weights, their certificate and the status.
    """
    target = goal
    for _ in range(max_runs):
        steps = method(problem, weights, target, max_iter - recorder.iterations)
        smallest_gap, stop_status = _run_until_stopped(recorder, steps, stop)  # overwrites weights
        weights, certificate = rescale_and_certify(problem, weights)
        excess = certificate.gap - goal
        # INTERRUPTED precedes CONVERGED, which precedes the other statuses. Only complete runs are tidied.
        if stop_status is Status.INTERRUPTED:
            return weights, certificate, stop_status
        if excess <= 0:
            if stop_status is None:
                weights, certificate = _tidied(problem, weights, certificate, goal, stop)
            return weights, certificate, Status.CONVERGED
        if stop_status is not None:
            return weights, certificate, stop_status
        if recorder.iterations >= max_iter:
            return weights, certificate, Status.MAX_ITER
        if smallest_gap > target:  # the method ended without meeting its target
            break
        # The method met its target, but the certified gap is larger because of round-off or dropped weights.
        # The gap reached is the larger of the method's gap and the certified gap without its allowance for
        # round-off.
        reached = max(smallest_gap, certificate.gap - certificate.rounding)
        target = min(target, reached) - excess
        if target <= 0:
            break
    # Round-off explains the gap if the gap without its allowance meets the goal or is below the allowance.
    computed_gap = certificate.gap - certificate.rounding
    if computed_gap > max(goal, certificate.rounding):
        return weights, certificate, Status.STALLED
    weights, certificate = _tidied(problem, weights, certificate, certificate.gap, stop)
    return weights, certificate, Status.CONVERGED if certificate.gap <= goal else Status.PRECISION


def _run_until_stopped(recorder: Recorder, steps: Iterator[Step], stop: Stop) -> tuple[float, Status | None]:
    """Run the steps of a method. Returns the status of the stop if it raises Stopped or KeyboardInterrupt."""
    try:
        with stop_when(stop.is_pending):
            return recorder.consume(steps, stop)
    except Stopped:
        return np.inf, stop.status()
    except KeyboardInterrupt:  # a second Ctrl-C, or one raised by other code; the first is deferred
        return np.inf, Status.INTERRUPTED


def _tidied(
    problem: DesignProblem, weights: np.ndarray, certificate: Certificate, goal: float, stop: Stop
) -> tuple[np.ndarray, Certificate]:
    """Return the tidied weights and their certificate, or the given ones if the stop ends the work."""
    return stop.run_or_else(
        lambda: tidied(problem, weights, certificate, goal), lambda: (weights, certificate)
    )
