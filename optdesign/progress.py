"""A progress display for whatever takes longer than a second."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Any

DELAY = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Shows iterations and how far the gap has come, on standard error. Silent when not enabled."""

    def __init__(self, enabled: bool, target: float) -> None:
        self.enabled, self.target = enabled, target
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
            self._open(gap)
        done = math.log(self.first_gap / max(gap, self.target))
        self.bar.update(
            self.task,
            completed=max(done, 0.0),
            description=f"iteration {iterations}, gap {gap:.2e}",
        )

    def _open(self, gap: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.first_gap = max(gap, 2 * self.target)
        self.bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
            TextColumn("about"), TimeRemainingColumn(), TextColumn("left"),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self.bar.start()
        self.task = self.bar.add_task("", total=math.log(self.first_gap / self.target))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
