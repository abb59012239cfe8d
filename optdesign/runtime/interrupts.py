"""Ctrl-C as a question that is answered between two steps, not as an exception in the middle of one."""

from __future__ import annotations

import _signal  # what is behind signal, which looks every handler up among its constants, by exceptions
import signal
import threading
from types import FrameType
from typing import Any


class Deferred:
    """Holds back the first KeyboardInterrupt of a with block; ``bool()`` of it says whether there was one.

    The handler in force still runs: only what it raises waits. A second Ctrl-C is raised at once. Outside the
    main thread, and where interrupts are ignored or not Python's, nothing changes.
    """

    def __init__(self) -> None:
        self.held = False
        self.previous: Any = None

    def __enter__(self) -> Deferred:
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
