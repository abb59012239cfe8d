"""Progress displays for calls that take longer than 1 s, on standard error, only if that is a terminal.

Public for packages that build on this one: :class:`Counter`, a display of a known number of tasks.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

__all__ = ["Counter"]

DELAY = 1.0
"""Seconds before anything is shown."""


_current = threading.local()


def rows_read(total: int) -> Callable[[int], None]:
    """Begin a pass over rows. Return a function that adds to the rows read, which any thread may call.

    The display of this thread, if there is one, shows the sum.
    """
    show = getattr(_current, "show", None)
    if show is None:
        return lambda _: None
    lock, done = threading.Lock(), [0]

    def add(rows: int) -> None:
        with lock:
            done[0] += rows
            show(f"{done[0]:,} of {total:,} rows")

    return add


@contextmanager
def _showing(show: Callable[[str], None]) -> Iterator[None]:
    """Show the rows that are read in this thread during the block."""
    outer = getattr(_current, "show", None)
    _current.show = show
    try:
        yield
    finally:
        _current.show = outer


def terminal() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text and the time elapsed while the block below runs, once it has run for a second."""
    with Display(True, text, None):
        yield


class Display:
    """A bar with a description, the time elapsed and the time left, as a context manager.

    Silent if not enabled, or if standard error is not a terminal. A timer opens the bar after ``DELAY``
    seconds, and a thread of the bar updates the time, since a step may take long.
    """

    def __init__(self, enabled: bool, description: str, total: float | None) -> None:
        self.began = time.monotonic()
        self.shown: dict[str, Any] = {"description": description, "completed": 0.0, "total": total}
        self.lock = threading.Lock()
        self.bar: Any = None
        self.task: Any = None
        self.timer = threading.Timer(DELAY, self._open) if enabled and terminal() else None
        self.text = description
        self.rows = ExitStack()

    def __enter__(self) -> Self:
        if self.timer is not None:
            self.timer.daemon = True
            self.timer.start()
            self.rows.enter_context(_showing(lambda rows: self._show(description=f"{self.text}, {rows}")))
        return self

    def _show(self, **changes: Any) -> None:
        """Change the fields of the bar, open or not yet."""
        with self.lock:
            self.shown.update(changes)
            if self.bar is not None:
                self.bar.update(self.task, **changes)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        bar = Bar(
            TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
            TextColumn("about"), TimeRemainingColumn(), TextColumn("left"),
            console=Console(stderr=True), transient=True, get_time=time.monotonic,
        )  # fmt: skip
        with self.lock:
            self.task = bar.add_task(**self.shown)
            bar.tasks[0].start_time = self.began
            bar.start()
            self.bar = bar

    def __exit__(self, *error: object) -> None:
        self.rows.close()
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
        if self.bar is not None:
            self.bar.stop()


class Progress(Display):
    """Display of a solver: its iteration, its gap, and the distance to the target on a logarithmic scale."""

    def __init__(self, enabled: bool, target: float) -> None:
        super().__init__(enabled, "starting", None)
        self.target = target
        self.first_gap = math.nan

    def update(self, iterations: int, gap: float) -> None:
        """Show the iteration and the gap of the solver."""
        if self.timer is None:
            return
        text = self.text = f"iteration {iterations}, gap {gap:.2e}"
        if not math.isfinite(gap):
            self._show(description=text)
            return
        if math.isnan(self.first_gap):
            self.first_gap = max(gap, 2 * self.target)
        done = math.log(self.first_gap / max(gap, self.target))
        total = math.log(self.first_gap / self.target)
        self._show(completed=max(done, 0.0), total=total, description=text)


class Counter(Display):
    """Display the progress of a known number of tasks, as a context manager.

    Parameters
    ----------
    enabled : bool
        False for no display.
    name : str
        Name of the tasks.
    total : int
        Number of tasks.

    See Also
    --------
    optdesign.solve : Show the progress of a solver.

    Examples
    --------
    >>> with Counter(False, "trials", total=2) as display:
    ...     for _ in range(2):
    ...         display.step()
    >>> display.done
    2
    """

    def __init__(self, enabled: bool, name: str, total: int) -> None:
        super().__init__(enabled, f"{name} 0/{total}", total)
        self.name, self.total, self.done = name, total, 0

    def step(self) -> None:
        """Count a finished task."""
        self.done += 1
        if self.timer is not None:
            self._show(completed=self.done, description=f"{self.name} {self.done}/{self.total}")
