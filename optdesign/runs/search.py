"""Iterated local search for exact designs (whole numbers of runs): one loop for all kinds of moves.

A *climb* makes moves that increase log det until no move does.

A *try* is one local search. It climbs from a random or a given start. Then it perturbs the runs and climbs,
again and again. The loss is the decrease of log det from the current runs to the new ones. New runs without
a loss are accepted. New runs with a loss are accepted with probability exp(-loss / T), where T is HEAT
times the mean of all positive losses of this try, the present loss included. The best runs are kept. A try
ends after a number of perturbations in a row that do not improve them.

Tries are numbered. Each has its own random stream, derived from the seed and its number. The best try
therefore does not depend on the number of tries that run at a time, unless a time limit ends the search.
Without a number of tries and without a time limit, the search has a limit of work, which is counted in
multiplications and takes about 1 s. It also ends after REPEATS tries whose log det is the largest one found.
Neither rule depends on the speed of the computer. If only the number of tries is given, each try has this
limit of work.

The sequence of moves does not depend on the time limit. At equal speed of the computer, a larger limit
therefore gives runs that are at least as good, if both limits are long enough to compute optimal weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count, islice
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np

from optdesign.errors import InputError
from optdesign.numbers.checks import check_time_limit
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt

GAIN = 1e-9
"""Differences of log det up to this one are treated as round-off."""

SPEED = 1e9
"""Multiplications a second, roughly."""

BUDGET = 1.0
"""Limit of work of a search without a number of tries and without a time limit, in seconds at SPEED."""

REPEATS = 10
"""Number of tries with the largest log det after which a search with a limit of work ends."""

SLICE = 5e7
"""Multiplications between two checks of the clock."""

OVERHEAD = 2e4
"""Number of multiplications that take as long as the function calls of one perturbation."""

HEAT = 0.5
"""Temperature of the acceptance of worse runs, as a fraction of the mean loss."""


class Moves(Protocol):
    """Moves between exact designs. A state is a tuple of arrays that describes an exact design.

    All values of log det, ``bound`` and ``reach`` included, differ from the true ones by the same constant,
    which depends on the class of moves.
    """

    name: str
    patience: int
    """Number of perturbations in a row without an improvement after which a try ends."""
    bound: float
    """Upper bound on log det of exact designs, or inf."""
    reach: float
    """log det of the computed optimal weights. Runs that attain it may be optimal among all weights."""

    def start(self, rng: np.random.Generator) -> Any:
        """Return a random state. Only :meth:`refresh` shows whether it has full rank."""

    def spanning(self) -> Any:
        """Return a state of full rank."""

    def refresh(self, state: Any) -> float:
        """Recompute a state from its runs. Returns log det, -inf if they lose rank."""

    def climb(self, state: Any, most: float) -> tuple[float, float, bool]:
        """Make moves until none increases log det, or until about ``most`` multiplications are done.

        Returns log det, the multiplications, and True if no move increases log det.
        """

    def perturb(self, state: Any, rng: np.random.Generator) -> None:
        """Move at random."""

    def found(self, state: Any) -> np.ndarray:
        """Return the runs of a state."""


class Try(NamedTuple):
    """Result of a try: log det, the runs, the work, and two flags.

    ``optimal``: no weights have a larger log det. ``proved``: no exact design has a larger log det.
    """

    value: float
    found: np.ndarray
    optimal: bool = False
    proved: bool = False
    work: float = 0.0

    @property
    def is_final(self) -> bool:
        """Return True if the runs are proved optimal among exact designs."""
        return self.optimal or self.proved


class Best(NamedTuple):
    """The best try, the number of tries, and whether the search ended because of REPEATS."""

    best: Try
    tries: int
    repeated: bool


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

    def slice(self) -> float:
        """Return the work until the next check of the clock."""
        return min(SLICE, self.work_left())


def check_search(seed: int, tries: int | None, time_limit: float | None, n_jobs: int) -> None:
    """Raise InputError if an option of the search is invalid."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError("seed", "must be a whole number of at least 0", f"got {seed!r}", "The default is 0.")
    if tries is not None and (isinstance(tries, bool) or not isinstance(tries, Integral) or tries < 1):
        raise InputError(
            "tries", "must be a whole number of at least 1", f"got {tries!r}", "Leave it out for the default."
        )
    check_time_limit(time_limit, "Leave it out for the default.")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InputError(
            "n_jobs", "must be a whole number, not 0", f"got {n_jobs!r}", "Use -1 for one per core."
        )


def most_work(watch: Clock) -> float:
    """Return the limit of work of one try. With a time limit, it is infinite."""
    return BUDGET * SPEED if watch.deadline == np.inf else math.inf


class Slices:
    """Stop after some slices of work (:data:`SLICE`), at the time limit, or at an interrupt."""

    def __init__(self, left: int, stopped: Callable[[], bool]) -> None:
        self.left, self._stopped = left, stopped

    def are_used_up(self) -> bool:
        """Count a slice. Return True if none is left, if the time limit has passed, or if interrupted."""
        self.left -= 1
        return self.left < 0 or self._stopped()


def stream(seed: int, number: int) -> np.random.Generator:
    """Return the random numbers of a try."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))


def iterate(
    moves: Moves,
    rng: np.random.Generator,
    watch: Clock,
    *,
    is_optimal: Callable[[np.ndarray], bool] = lambda _: False,
    start: Any = None,
    most: float = math.inf,
) -> Try:
    """Return the best runs of one try, whose work is limited to about ``most`` multiplications."""
    state, work = moves.start(rng) if start is None else start, 0.0

    def climb() -> float:
        nonlocal work
        while True:
            value, used, complete = moves.climb(state, min(watch.slice(), most - work))
            work += used
            if complete or work > most or watch.stopped():
                return value

    if not watch.stopped():
        climb()
    if moves.refresh(state) == -math.inf:
        state = moves.spanning()
        moves.refresh(state)
    value = climb()
    best, current = Try(-math.inf, moves.found(state)), _copy(state)
    idle, losses, loss_sum = 0, 0, 0.0
    new = value
    while new > -math.inf:
        if new > best.value + GAIN:
            new = moves.refresh(state)
        if new > best.value + GAIN:
            idle, proved = 0, new >= moves.bound - GAIN
            best = Try(new, moves.found(state), proved=proved)
            if new >= moves.reach - NEAR and is_optimal(best.found):
                best = best._replace(optimal=True)
        else:
            idle += 1
        if best.is_final or idle >= moves.patience or work > most or watch.stopped():
            break
        loss = value - new
        has_rank = new > -math.inf
        if loss > GAIN and has_rank:
            losses, loss_sum = losses + 1, loss_sum + loss
        if loss <= GAIN or (has_rank and rng.random() < math.exp(-loss * losses / (HEAT * loss_sum))):
            value, current = new, _copy(state)
        else:
            state = _copy(current)
        moves.perturb(state, rng)
        new = climb()
        work += OVERHEAD
    return best._replace(work=work)


NEAR = 1e-4
"""Runs whose log det is at most this far below that of the weights are checked for optimality."""


def _copy(state: Any) -> Any:
    """Return a copy of the arrays of a state."""
    return type(state)(*(array.copy() for array in state))


def best_of(
    run: Callable[[int], Try], tries: int | None, n_jobs: int, watch: Clock, *, prove: bool = False
) -> Best:
    """Return the best of several tries, the first of equal ones. A try with optimal runs ends the search.

    With ``prove`` and without ``tries``, the limit of work and REPEATS apply even if there is a time limit.
    """
    limited = tries is None and (prove or watch.deadline == np.inf)
    numbers: Iterator[int] = iter(range(tries)) if tries is not None else count()
    best, done, equal, work = Try(-np.inf, np.empty(0)), 0, 0, 0.0
    for found in _in_turn(run, numbers, n_jobs, watch):
        done += 1
        work += found.work + OVERHEAD
        if done == 1 or found.value > best.value + SAME_VALUE:
            equal = 0
        equal += not found.value < best.value - SAME_VALUE
        if done == 1 or found.optimal or found.value > best.value + GAIN:
            best = found
        if best.is_final or (limited and (equal >= REPEATS or work > BUDGET * SPEED)):
            break
    return Best(best, done, limited and equal >= REPEATS)


SAME_VALUE = 1e-7
"""Tries whose log det differs by less have found the same value."""


def _in_turn(run: Callable[[int], Try], numbers: Iterator[int], n_jobs: int, watch: Clock) -> Iterator[Try]:
    """Yield the results of the tries in their order, until the time limit."""
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
        # The clock of each thread excludes the compilation time of that thread. The deadline is a time on the
        # clock of the calling thread. So the worker first raises its excluded time to that of the calling
        # thread.
        clock.add_first_use(max(0.0, stood_still - clock.first_use_seconds()))
        return run(number)

    with Parallel(n_jobs=workers, prefer="threads") as parallel:
        while batch := list(islice(numbers, workers)):
            yield from parallel(delayed(timed)(number) for number in batch)
            if watch.stopped():
                return
