"""How many cores a solve uses.

Two kinds of work go to several cores: Newton systems of large order, for which BLAS has threads of its own,
and passes over the data, whose pieces are handed to a pool; kernels release the interpreter lock, and all
the while BLAS keeps to one thread. Pieces are the same whatever the number of threads, and no sum crosses
them, so that results do not depend on it; only large systems may differ by rounding.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What others say about threads; joblib sets them in the processes that it starts."""

LARGE = 500
"""Order of a matrix from which on several threads work on it."""

_current = threading.local()


def available() -> int:
    """Cores that this process may use; one in a thread other than the first, whose siblings work as well."""
    if threading.current_thread() is not threading.main_thread():
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    said = [os.environ.get(name, "") for name in VARIABLES]
    return max(1, min([cores, *(int(text) for text in said if text.isdigit())]))


@contextmanager
def using(count: int) -> Iterator[None]:
    """Use so many threads in the block below, and one in BLAS but where :func:`blas` says otherwise."""
    before = getattr(_current, "count", 1)
    _current.count = count
    try:
        with _blas().limit(limits=1):
            yield
    finally:
        _current.count = before


def blas(order: int) -> AbstractContextManager[Any]:
    """All threads for BLAS, while it works on matrices of a large order."""
    count = getattr(_current, "count", 1)
    return _blas().limit(limits=count) if count > 1 and order >= LARGE else nullcontext()


def each(work: Callable[[int, int], None], n: int, piece: int) -> None:
    """Call work(first, last) for pieces of 0 .. n - 1, several at a time where there are threads."""
    count = getattr(_current, "count", 1)
    bounds = [(first, min(first + piece, n)) for first in range(0, n, piece)]
    if count == 1 or len(bounds) == 1:
        for first, last in bounds:
            work(first, last)
        return
    for _ in _pool(count).map(lambda bound: work(*bound), bounds):
        pass


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="optdesign")


@cache
def _blas() -> Any:
    """The BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
