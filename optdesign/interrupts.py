"""Ctrl-C as a question that is answered between two steps, not as an exception in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Hold back the first KeyboardInterrupt of the block below; yields whether there has been one.

    The handler in force still runs: only what it raises waits. A second Ctrl-C is raised at once. Outside the
    main thread, and where interrupts are ignored or not Python's, nothing changes.
    """
    held: list[int] = []
    previous: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield lambda: False
        return

    def hold(number: int, frame: FrameType | None) -> None:
        try:
            previous(number, frame)
        except KeyboardInterrupt:
            if held:
                raise
            held.append(number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield lambda: bool(held)
    finally:
        signal.signal(signal.SIGINT, previous)
