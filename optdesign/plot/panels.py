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
    p = names.problem
    pair = p.groups * p.n_parameter_blocks + p.parameter_blocks
    pairs = np.unique(pair)
    if len(pairs) <= most:
        places = [divmod(int(k), p.n_parameter_blocks) for k in pairs]
        titles = [
            names.place(i if p.n_groups > 1 else None, b if p.n_parameter_blocks > 1 else None)
            for i, b in places
        ]
        return [
            Panel(title, np.flatnonzero(pair == k), i)
            for title, k, (i, _) in zip(titles, pairs, places, strict=True)
        ]
    together = "" if p.n_parameter_blocks == 1 else f", all {p.n_parameter_blocks} {names.words[1]}s"
    if p.n_groups <= most:
        titles = [names.place(i, None) if p.n_groups > 1 else "" for i in range(p.n_groups)]
        return [
            Panel((title + together).strip(", "), np.flatnonzero(p.groups == i), i)
            for i, title in enumerate(titles)
        ]
    return [Panel(f"all {p.n_groups} {names.words[0]}s{together}", np.arange(p.n_candidates), None)]


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
