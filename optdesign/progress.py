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
    """Shows iterations and how far the gap has come towards its target, on a logarithmic scale.

    Silent when not enabled and where standard error is not a terminal.
    """

    def __init__(self, enabled: bool, target: float) -> None:
        self.enabled, self.target = enabled and terminal(), target
        self.began = time.perf_counter()
        self.first_gap = math.nan
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, iterations: int, gap: float) -> None:
        """Tell the display where the solver is."""
        if not self.enabled or time.perf_counter() - self.began < DELAY:
            return
        if self.bar is None:
            self._open()
        text = f"iteration {iterations}, gap {gap:.2e}"
        if not math.isfinite(gap):
            self.bar.update(self.task, description=text)
            return
        if math.isnan(self.first_gap):
            self.first_gap = max(gap, 2 * self.target)
        done = math.log(self.first_gap / max(gap, self.target))
        total = math.log(self.first_gap / self.target)
        self.bar.update(self.task, completed=max(done, 0.0), total=total, description=text)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            TextColumn("about"), TimeRemainingColumn(), TextColumn("left"),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self.bar.start()
        self.task = self.bar.add_task("", total=None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
