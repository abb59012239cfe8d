"""Displays for whatever takes longer than a second, on standard error, and only if that is a terminal."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

DELAY = 1.0
"""Seconds before anything is shown."""


def terminal() -> bool:
    """Whether somebody may be looking at standard error."""
    return sys.stderr.isatty()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text with a spinner while the block below runs, once it has run for a second."""
    if not terminal():
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    status = Console(stderr=True).status(escape(text))
    timer = threading.Timer(DELAY, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class Progress:
    """Shows what is done, and how far the gap has come towards its target, on a logarithmic scale.

    Silent when not enabled and where standard error is not a terminal. It opens by itself, and threads of its
    own keep the seconds going, since a step may take long.
    """

    def __init__(self, enabled: bool, target: float) -> None:
        self.target, self.began = target, time.monotonic()
        self.first_gap = math.nan
        self.shown: dict[str, Any] = {"description": "starting", "completed": 0.0, "total": None}
        self.lock = threading.Lock()
        self.bar: Any = None
        self.task: Any = None
        self.timer = threading.Timer(DELAY, self._open) if enabled and terminal() else None

    def __enter__(self) -> Progress:
        if self.timer is not None:
            self.timer.daemon = True
            self.timer.start()
        return self

    def doing(self, stage: str) -> None:
        """Tell the display what the solver does, as long as there is no gap to show."""
        if self.timer is not None and math.isnan(self.first_gap):
            self._show(description=stage)

    def update(self, iterations: int, gap: float) -> None:
        """Tell the display where the solver is."""
        if self.timer is None:
            return
        text = f"iteration {iterations}, gap {gap:.2e}"
        if not math.isfinite(gap):
            self._show(description=text)
            return
        if math.isnan(self.first_gap):
            self.first_gap = max(gap, 2 * self.target)
        done = math.log(self.first_gap / max(gap, self.target))
        total = math.log(self.first_gap / self.target)
        self._show(completed=max(done, 0.0), total=total, description=text)

    def _show(self, **changes: Any) -> None:
        """Change what is shown, or will be."""
        with self.lock:
            self.shown.update(changes)
            if self.bar is not None:
                self.bar.update(self.task, **changes)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            TextColumn("about"), TimeRemainingColumn(), TextColumn("left"),
            console=Console(stderr=True), transient=True, get_time=time.monotonic,
        )  # fmt: skip
        with self.lock:
            self.task = bar.add_task(**self.shown)
            bar.tasks[0].start_time = self.began
            bar.start()
            self.bar = bar

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
        if self.bar is not None:
            self.bar.stop()
