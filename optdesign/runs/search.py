"""Several tries of a random search, one after the other or side by side, and when to stop.

Tries are numbered, and each draws from a stream of its own number. So the best of them does not depend on how
many run at a time, unless time runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from numbers import Integral
from typing import NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.problem.problem import check_number
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt

TRIES = 10
"""Starts, unless tries or time_limit say otherwise."""

GAIN = 1e-9
"""log det must gain this much, so that rounding makes no circles and no difference."""


SPEED = 1e9
"""Multiplications a second, roughly."""


class Try(NamedTuple):
    """Result of a try: log det, the runs or settings, and True if they are proved optimal."""

    value: float
    found: np.ndarray
    optimal: bool = False


class Best(NamedTuple):
    """The best of several tries, how many there were, and whether it is optimal: it meets the bound."""

    found: np.ndarray
    value: float
    tries: int
    met: bool


class Clock(NamedTuple):
    """When to stop: at a deadline, which may be infinite, or at an interrupt."""

    deadline: float
    interrupted: DeferredInterrupt

    def stopped(self) -> bool:
        """Return True if there is no more time."""
        return bool(self.interrupted) or clock.now() > self.deadline

    def work_left(self) -> float:
        """Return the multiplications that may be done before the deadline, at SPEED a second."""
        return 0.0 if self.interrupted else SPEED * max(0.0, self.deadline - clock.now())


def check_search(seed: int, tries: int | None, time_limit: float | None, n_jobs: int) -> None:
    """Refuse what does not say how to search."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError("seed", "must be a whole number of at least 0", f"got {seed!r}", "The default is 0.")
    if tries is not None and (isinstance(tries, bool) or not isinstance(tries, Integral) or tries < 1):
        raise InputError(
            "tries", "must be a whole number of at least 1", f"got {tries!r}", f"Leave it out for {TRIES}."
        )
    if time_limit is not None:
        check_number(time_limit, "time_limit", "Leave it out for none.")
        if not time_limit > 0:
            raise InputError(
                "time_limit", "must be positive seconds", f"got {time_limit}", "Leave it out for none."
            )
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(
            "n_jobs", "must be a whole number, not 0", f"got {n_jobs!r}", "Use -1 for one per core."
        )


def best_of(
    run: Callable[[int], Try], tries: int | None, n_jobs: int, watch: Clock, bound: float = np.inf
) -> Best:
    """Return the best of several tries, the first of equal ones.

    The search ends at a try that is proved optimal, or whose log det meets a bound on all designs.
    """
    if tries is None and watch.deadline == np.inf:
        tries = TRIES
    numbers: Iterator[int] = iter(range(tries)) if tries is not None else count()
    best, done, met = Try(-np.inf, np.empty(0)), 0, False
    for found in _in_turn(run, numbers, n_jobs, watch):
        done += 1
        if done == 1 or found.optimal or found.value > best.value + GAIN:
            best = found
        met = best.optimal or best.value >= bound - GAIN
        if met:
            break
    return Best(best.found, best.value, done, met)


def _in_turn(run: Callable[[int], Try], numbers: Iterator[int], n_jobs: int, watch: Clock) -> Iterator[Try]:
    """What the tries find, in their order, until there is no more time."""
    if n_jobs == 1:
        for number in numbers:
            yield run(number)
            if watch.stopped():
                return
        return
    from joblib import Parallel, cpu_count, delayed

    workers = n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
    stood_still = clock.first_use_seconds()

    def timed(number: int) -> Try:
        # The deadline is a time on the clock of the calling thread, and every thread has a clock of its own.
        clock.add_first_use(max(0.0, stood_still - clock.first_use_seconds()))
        return run(number)

    with Parallel(n_jobs=workers, prefer="threads") as parallel:
        while batch := list(islice(numbers, workers)):
            yield from parallel(delayed(timed)(number) for number in batch)
            if watch.stopped():
                return
