"""Time work on a clock that excludes first use.

A kernel is compiled at first use, which takes seconds once and does not depend on the problem.
``time_limit`` excludes these seconds, and the seconds in which a kernel runs as plain Python instead
(:mod:`optdesign.runtime.tiers`). ``result.seconds`` includes them, and ``result.compile_seconds`` is their
sum. Every thread has its own clock. Only kernels of :mod:`optdesign.runtime.jit` stop it: functions that a
user compiles with Numba are timed like any other work.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()
_announced = threading.Event()


def now() -> float:
    """Return the seconds on a clock that stands still during first use in this thread."""
    return time.perf_counter() - first_use_seconds()


def first_use_seconds() -> float:
    """Return the seconds of first use in this thread so far."""
    return getattr(_thread, "seconds", 0.0)


def add_first_use(seconds: float) -> None:
    """Add seconds of first use: those in which this thread waited for another one that compiled."""
    _thread.seconds = first_use_seconds() + seconds


class Stopwatch:
    """Measure wall time and first use from here on, in the thread that reads it."""

    def __init__(self) -> None:
        self.began, self.first_use = now(), first_use_seconds()

    def times(self) -> dict[str, float]:
        """Return ``seconds``, the wall time, and ``compile_seconds``, its part for first use."""
        first_use = first_use_seconds() - self.first_use
        return {"seconds": now() - self.began + first_use, "compile_seconds": first_use}


@contextmanager
def first_use() -> Iterator[None]:
    """Count the block below as first use. Blocks may be nested; the outermost one counts."""
    if getattr(_thread, "is_first_use", False):
        yield
        return
    _thread.is_first_use = True
    began = time.perf_counter()
    try:
        yield
    finally:
        _thread.is_first_use = False
        add_first_use(time.perf_counter() - began)


@contextmanager
def compiling() -> Iterator[None]:
    """Count the block below as first use, without garbage collection.

    Compilers make many objects and keep most of them: collections take 10 % of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        with first_use():
            yield
    finally:
        if enabled:
            gc.enable()


def announce_compilation() -> None:
    """Print once per process that kernels are compiled, if a person is likely to see it."""
    if not _announced.is_set() and _is_interactive():
        print("optdesign: compiling, on first use only", file=sys.stderr, flush=True)
    _announced.set()


def _is_interactive() -> bool:
    """Return True at a terminal, at a prompt, and in a notebook."""
    # A notebook has neither a terminal nor a prompt of Python, but it runs IPython.
    notebook = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return sys.stderr.isatty() or hasattr(sys, "ps1") or (notebook is not None and notebook() is not None)
