"""Seconds of work, without those of the compiler.

Kernels are compiled when they are first used, and kept on disk. That takes seconds, once, and says nothing
about a problem: neither ``result.seconds`` nor ``time_limit`` counts it. Numba announces the beginning and
the end of every compilation; the outermost ones of a thread are summed up and taken off its clock. Meanwhile
no garbage is collected, which saves a tenth of the time: compilers make many objects and keep most. One
thread at a time compiles.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import Any

from numba.core import event

_compiling = threading.local()
_said = threading.Event()


class _Compilations(event.Listener):
    """Adds up the time that a thread spends compiling."""

    def on_start(self, _: Any) -> None:
        """A kernel, or one that it calls, begins to compile."""
        depth = getattr(_compiling, "depth", 0)
        if depth == 0:
            _compiling.since = time.perf_counter()
            _compiling.collects = gc.isenabled()
            gc.disable()
            _say()
        _compiling.depth = depth + 1

    def on_end(self, _: Any) -> None:
        """It is done."""
        _compiling.depth -= 1
        if _compiling.depth == 0:
            spent = time.perf_counter() - _compiling.since
            _compiling.seconds = getattr(_compiling, "seconds", 0.0) + spent
            if _compiling.collects:
                gc.enable()


event.register("numba:compile", _Compilations())


def now() -> float:
    """Seconds on a clock that stands still while this thread compiles."""
    return time.perf_counter() - getattr(_compiling, "seconds", 0.0)


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


def be_silent() -> None:
    """Leave it to the caller to say that something is being compiled."""
    _said.set()
