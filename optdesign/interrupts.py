"""Ctrl-C as a question that is answered between two steps, not as an exception in the middle of one."""

from __future__ import annotations

import signal
import threading
from _signal import (
    signal as handle,
)  # the public one looks every handler up among its constants, by exceptions
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
            self.previous = handle(signal.SIGINT, self._hold)
            if not callable(self.previous):
                self.__exit__()
        return self

    def __exit__(self, *_: object) -> None:
        if self.previous is not None:
            handle(signal.SIGINT, self.previous)

    def __bool__(self) -> bool:
        return self.held

    def _hold(self, number: int, frame: FrameType | None) -> None:
        handler = self.previous or signal.default_int_handler  # a signal may come before it is known
        try:
            handler(number, frame)
        except KeyboardInterrupt:
            if self.held:
                raise
            self.held = True
