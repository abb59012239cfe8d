"""One panel a group and block, as long as there are a few; otherwise groups, or all candidates, together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optdesign.plot.naming import Names
from optdesign.plot.style import picture


class Panel(NamedTuple):
    """Some candidates, and the group that they belong to if it is a single one."""

    title: str
    rows: np.ndarray
    group: int | None


def panels(names: Names, most: int = 6) -> list[Panel]:
    """Return the candidates by group and block, by group, or all together: the first of at most ``most``."""
    p, words = names.problem, names.words
    together = f"all {p.n_parameter_blocks} {words[1]}s" if p.n_parameter_blocks > 1 else ""
    # By group and block, then by group alone.
    for blocks, count, more in ((p.parameter_blocks, p.n_parameter_blocks, ""), (0, 1, together)):
        cell = p.groups * count + blocks
        cells = np.unique(cell)
        if len(cells) <= most:
            found = [(*divmod(int(k), count), np.flatnonzero(cell == k)) for k in cells]
            return [
                Panel(_joined(names.place(i, None if more else b), more), rows, i) for i, b, rows in found
            ]
    return [Panel(_joined(f"all {p.n_groups} {words[0]}s", together), np.arange(p.n_candidates), None)]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def arrangement(count: int) -> tuple[int, int]:
    """Return the rows and columns of a number of panels.

    >>> arrangement(4), arrangement(5)
    ((2, 2), (2, 3))
    """
    columns = 2 if count == 4 else min(count, 3)
    return -(-count // columns), columns


@contextmanager
def panel_picture(
    names: Names, title: str, ax: Any, path: str | Path | None, margin: float
) -> Iterator[tuple[np.ndarray, list[Panel]]]:
    """Yield the axes and candidates of every panel; then write the title, over the panels if several."""
    cells = panels(names, 1) if ax is not None else panels(names)
    rows, columns = arrangement(len(cells))
    size = (margin + (3.9 * columns if columns > 1 else 4.6), 1.2 + 3.3 * rows)
    with picture(ax, path, size=size, shape=(rows, columns), sharex=True, sharey=True) as axes:
        for empty in axes[len(cells) :]:
            empty.set_visible(False)
        yield axes[: len(cells)], cells
        if len(cells) == 1:
            axes[0].set_title(title)
        else:
            axes[0].figure.suptitle(title.replace("\n", ": "), fontsize=12, x=0.01, ha="left")
