"""A bar with the time left, for runs that take longer than a second."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

DELAY = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Shows how many trials are done and how long the rest will take. Silent when not enabled."""

    def __init__(self, enabled: bool, total: int) -> None:
        self.enabled, self.total = enabled, total
        self.began = time.perf_counter()
        self.done = 0
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Progress:
        return self

    def step(self) -> None:
        """Tell the display that a trial has finished."""
        self.done += 1
        if not self.enabled or time.perf_counter() - self.began < DELAY:
            return
        if self.bar is None:
            self._open()
        self.bar.update(self.task, completed=self.done)

    def _open(self) -> None:
        from rich import progress
        from rich.console import Console

        self.bar = progress.Progress(
            progress.TextColumn("trials"), progress.MofNCompleteColumn(), progress.BarColumn(),
            progress.TimeElapsedColumn(), progress.TextColumn("about"),
            progress.TimeRemainingColumn(), progress.TextColumn("left"),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self.bar.start()
        self.task = self.bar.add_task("", total=self.total)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
