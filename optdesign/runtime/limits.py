"""Limits that are looked at in the middle of long work, wherever that is.

A step of a solver may take several passes over the data, and a pass may take long. Whoever runs a solver says
what ends it (:func:`watching`), and whoever does long work looks between two pieces of it (:func:`look`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_current = threading.local()


class Stopped(Exception):
    """The work was to end before it was done."""


class watching:
    """Within this block, and in this thread, work ends with :class:`Stopped` once it is over."""

    def __init__(self, over: Callable[[], bool]) -> None:
        self.over = over

    def __enter__(self) -> None:
        self.before = getattr(_current, "over", None)
        _current.over = self.over

    def __exit__(self, *_: object) -> None:
        _current.over = self.before


def undisturbed() -> watching:
    """Within this block, work goes on to its end."""
    return watching(lambda: False)


def look() -> None:
    """End the work, if it is over."""
    over = getattr(_current, "over", None)
    if over is not None and over():
        raise Stopped
