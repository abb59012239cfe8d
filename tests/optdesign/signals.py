"""A real SIGINT at a given time."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_after(seconds: float) -> Iterator[list[str]]:
    """Send this process SIGINT; the list tells when Python has raised KeyboardInterrupt for it."""
    raised: list[str] = []

    def handler(number: int, frame: FrameType | None) -> None:
        raised.append("raised")
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    try:
        timer.start()
        yield raised
    finally:
        try:
            timer.cancel()
            timer.join()
        except KeyboardInterrupt:  # the run ended first
            timer.join()
        signal.signal(signal.SIGINT, before)
