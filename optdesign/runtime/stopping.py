"""Stop long work between two steps: at a limit, or at Ctrl-C.

A step of a solver may take several passes over the data, and a pass may take long. The caller of the work
states when it stops (:class:`stop_when`), and the work checks between two pieces (:func:`raise_if_stopped`).
:class:`DeferredInterrupt` turns Ctrl-C into a flag that such a condition reads, so that no step is cut off in
its middle.
"""

from __future__ import annotations

import _signal  # signal.signal converts every handler to an enum member, by exceptions: 5 times slower
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_current = threading.local()


class Stopped(Exception):
    """Raised in work that is stopped before it is complete."""


class stop_when:
    """Raise :class:`Stopped` at the checks of this block, in this thread, once a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self.condition = condition

    def __enter__(self) -> None:
        self.outer = getattr(_current, "condition", None)
        _current.condition = self.condition

    def __exit__(self, *_: object) -> None:
        _current.condition = self.outer


def never_stop() -> stop_when:
    """Return a block whose work runs to its end, also inside a :class:`stop_when`."""
    return stop_when(lambda: False)


def raise_if_stopped() -> None:
    """Raise :class:`Stopped` if the condition of the innermost block holds."""
    condition = getattr(_current, "condition", None)
    if condition is not None and condition():
        raise Stopped


class DeferredInterrupt:
    """Hold back the first KeyboardInterrupt of a with block; ``bool()`` of it is True if there was one.

    The handler in force still runs; only its KeyboardInterrupt is held back. A second Ctrl-C is raised at
    once. Nothing changes outside the main thread, nor if interrupts are ignored or handled outside Python.
    """

    def __init__(self) -> None:
        self.held = False
        self.previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
        if threading.current_thread() is threading.main_thread():
            previous = _signal.getsignal(signal.SIGINT)
            if callable(previous):
                self.previous = previous
                _signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(self, *_: object) -> None:
        if self.previous is not None:
            _signal.signal(signal.SIGINT, self.previous)

    def __bool__(self) -> bool:
        return self.held

    def _hold(self, number: int, frame: FrameType | None) -> None:
        try:
            self.previous(number, frame)
        except KeyboardInterrupt:
            if self.held:
                raise
            self.held = True
