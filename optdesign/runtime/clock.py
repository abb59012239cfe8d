"""Seconds of work, without those of the compiler.

Kernels are compiled when they are first used, and kept on disk. That takes seconds, once, and says nothing
about a problem: neither ``result.seconds`` nor ``time_limit`` counts it, nor what a kernel takes as plain
Python instead (:mod:`optdesign.runtime.jit`). Numba announces the beginning and the end of every compilation;
the outermost ones of a thread are summed up and taken off its clock. Meanwhile no garbage is collected, which
saves a tenth of the time: compilers make many objects and keep most. One thread at a time compiles.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_still = threading.local()
_said = threading.Event()


class _Compilations(event.Listener):
    """Stops the clock of a thread that compiles."""

    def on_start(self, _: Any) -> None:
        """A kernel, or one that it calls, begins to compile."""
        _still.compiling = getattr(_still, "compiling", 0) + 1
        if _still.compiling == 1:
            _still.collects = gc.isenabled()
            gc.disable()
            _say()
        _stop()

    def on_end(self, _: Any) -> None:
        """It is done."""
        _go()
        _still.compiling -= 1
        if _still.compiling == 0 and _still.collects:
            gc.enable()


event.register("numba:compile", _Compilations())


def now() -> float:
    """Seconds on a clock that stands still while this thread compiles, or does without."""
    return time.perf_counter() - getattr(_still, "seconds", 0.0)


def first_use_seconds() -> float:
    """Seconds that the clock of this thread has stood still."""
    return getattr(_still, "seconds", 0.0)


def add_first_use(seconds: float) -> None:
    """Take seconds off the clock of this thread, in which it waited for another one that compiled."""
    _still.seconds = first_use_seconds() + seconds


@contextmanager
def stopped() -> Iterator[None]:
    """Let the clock of this thread stand still in the block below."""
    _stop()
    try:
        yield
    finally:
        _go()


def _stop() -> None:
    """Stop the clock, if it goes."""
    _still.depth = getattr(_still, "depth", 0) + 1
    if _still.depth == 1:
        _still.since = time.perf_counter()


def _go() -> None:
    """Let the clock go, once for every time that it was stopped."""
    _still.depth -= 1
    if _still.depth == 0:
        add_first_use(time.perf_counter() - _still.since)


def _say() -> None:
    """Say once, to somebody who waits, that this is the compiler."""
    if not _said.is_set() and _somebody_waits():
        print("optdesign: compiling, on first use only", file=sys.stderr, flush=True)
    _said.set()


def _somebody_waits() -> bool:
    """Whether a person sees what is printed: at a terminal, at a prompt, or in a notebook."""
    # A notebook has no terminal and no prompt of Python's, but IPython makes itself known.
    notebook = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return sys.stderr.isatty() or hasattr(sys, "ps1") or (notebook is not None and notebook() is not None)
