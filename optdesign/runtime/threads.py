"""Threads of a solve.

Two kinds of work use several cores: Newton systems of large order, by the threads of BLAS, and passes over
the data, whose pieces are given to a pool of threads. Kernels release the interpreter lock. Otherwise BLAS
has one thread: its threads wait in busy loops, so matrices of small order take a hundred times as long on a
machine with other work. Pieces do not depend on the number of threads, and sums over pieces are taken in the
order of the pieces. So results do not depend on the number of threads, except for round-off in large systems.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optdesign.runtime import clock
from optdesign.runtime.stopping import raise_if_stopped, stop_when

PIECE = 1 << 19
"""Numbers read at a time: between two checks of limits and interrupts, or by a thread."""

Result = TypeVar("Result")

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit threads; joblib sets them in the processes that it starts."""


class Parameters(NamedTuple):
    """When work is divided between threads, and how."""

    order: int = 2000
    """Order of a matrix from which on several threads work on it."""
    pieces: int = 4
    """The number of pieces is a multiple of this, so that threads end together. Work of less than half a
    piece is not divided, because dividing it takes about as long as it saves."""
    between_checks: float = 0.2
    """Seconds between two checks of limits and interrupts of a thread that waits for others."""


PARAMETERS = Parameters()

_current = threading.local()
_lock = threading.Lock()
_inside = 0
_outside: list[int] = []
"""Number of solves in progress in all threads, and the threads of BLAS before the first of them."""


def available() -> int:
    """Return the number of cores that this process may use; 1 outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    said = [os.environ.get(name, "") for name in VARIABLES]
    return max(1, min([cores, *(int(text) for text in said if text.isdigit())]))


class using:
    """Use so many threads in the block below, and one in BLAS except in :func:`blas`.

    The threads of BLAS belong to the process: the first block to be entered sets them, the last to be left
    restores them.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        global _inside, _outside
        self.before = getattr(_current, "count", 0)
        _current.count = self.count
        with _lock:
            if _inside == 0:
                _outside = [library.num_threads for library in _blas()]
                if max(_outside, default=1) > 1:
                    _set([1] * len(_outside))
            _inside += 1

    def __exit__(self, *_: object) -> None:
        global _inside
        with _lock:
            _inside -= 1
            if _inside == 0 and max(_outside, default=1) > 1:
                _set(_outside)
        if self.before:
            _current.count = self.before
        else:
            del _current.count


@contextmanager
def blas(order: int) -> Iterator[None]:
    """Give all threads to BLAS in the block below if the order of the matrices is large."""
    count = getattr(_current, "count", 1)
    if count == 1 or order < PARAMETERS.order:
        yield
        return
    _set([count] * len(_blas()))
    try:
        yield
    finally:
        _set([1] * len(_blas()))


def results(work: Callable[[int, int], Result], n: int, piece: int) -> list[Result]:
    """Return the results of work(first, last) for pieces of 0 .. n - 1 in order, computed in threads.

    They are equal, and no larger than ``piece``. Between two of them the work may be stopped
    (:func:`optdesign.runtime.stopping.raise_if_stopped`). No piece is under way any more when Stopped, or
    another error, is raised.
    """
    return [work(0, n)] if fits_one_piece(n, piece) else list(in_order(work, n, piece))


def fits_one_piece(n: int, piece: int) -> bool:
    """Return True if 0 .. n - 1 is one piece of work."""
    return 2 * n <= piece


def in_order(work: Callable[[int, int], Result], n: int, piece: int, size: int = 1) -> Iterator[Result]:
    """Yield the results of work(first, last) for pieces of 0 .. n - 1 in order.

    Results that wait take no more memory than a piece of the data; ``size`` is the number of values that work
    returns.
    """
    bounds = _bounds(n, piece)
    count = min(getattr(_current, "count", 1), len(bounds))
    ahead = count * max(1, PIECE // size)
    for first in range(0, len(bounds), ahead):
        some = bounds[first : first + ahead]
        yield from _at_once(work, some, count) if count > 1 else _one_by_one(work, some)


def summed(work: Callable[[int, int], np.ndarray], n: int, piece: int, size: int) -> np.ndarray:
    """Return the sum of the arrays that work(first, last) returns, in the order of the pieces."""
    parts = in_order(work, n, piece, size)
    total = next(parts)
    for part in parts:
        total += part
    return total


def _one_by_one(work: Callable[[int, int], Result], bounds: list[tuple[int, int]]) -> Iterator[Result]:
    """Return the results of all pieces, computed without threads."""
    for first, last in bounds:
        raise_if_stopped()
        yield work(first, last)


def _at_once(
    work: Callable[[int, int], Result], bounds: list[tuple[int, int]], count: int
) -> Iterator[Result]:
    """Return the results of work for every piece, computed in threads and in the calling thread.

    The clock of the waiting thread does not count compilation in other threads.
    """
    results: dict[int, Result] = {}
    left = deque(range(len(bounds)))
    is_over = threading.Event()

    def work_on_pieces() -> float:
        before = clock.first_use_seconds()
        try:
            while True:
                raise_if_stopped()
                try:
                    k = left.popleft()
                except IndexError:
                    return clock.first_use_seconds() - before
                results[k] = work(*bounds[k])
        finally:
            left.clear()

    def until_over() -> float:
        with stop_when(is_over.is_set):
            return work_on_pieces()

    others = [_pool(_current.count).submit(until_over) for _ in range(count - 1)]
    try:
        work_on_pieces()
        asked = perf_counter()
        while wait(others, timeout=PARAMETERS.between_checks).not_done:
            raise_if_stopped()
        waited = perf_counter() - asked
    finally:
        is_over.set()  # which stops the work of the others, if this thread was stopped
        _wait(others)
    clock.add_first_use(min(waited, max(other.result() for other in others)))
    return (results[k] for k in range(len(bounds)))


def _wait(others: list[Future[float]]) -> None:
    """Wait until all are done, also after an interrupt."""
    try:
        wait(others)
    except BaseException:
        wait(others)
        raise


def _bounds(n: int, piece: int) -> list[tuple[int, int]]:
    """Return the first and the last index of the pieces of 0 .. n - 1."""
    if fits_one_piece(n, piece):
        return [(0, n)]
    multiple = PARAMETERS.pieces
    size = -(-n // (multiple * -(-n // (multiple * piece))))
    return [(first, min(first + size, n)) for first in range(0, n, size)]


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="optdesign")


def _begin_anew() -> None:
    """Reset the pool in a child process, which has its memory but not its threads."""
    global _lock, _inside
    _pool.cache_clear()
    _lock = threading.Lock()
    if _inside and not hasattr(_current, "count"):
        _inside = 0
        _set(_outside)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@cache
def _blas() -> list[Any]:
    """Return the BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set(counts: list[int]) -> None:
    """Set the threads of every library."""
    for library, count in zip(_blas(), counts, strict=True):
        library.set_num_threads(count)
