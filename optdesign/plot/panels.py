"""One panel a group and block, as long as there are a few; otherwise groups, or all candidates, together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.plot.naming import Names


class Panel(NamedTuple):
    """Some candidates, and the group that they belong to if it is a single one."""

    title: str
    rows: np.ndarray
    group: int | None


def panels(names: Names, most: int = 6) -> list[Panel]:
    """The candidates by group and block, by group, or all of them: the first that makes few enough panels."""
    p = names.problem
    pairs = np.unique(p.groups * p.n_parameter_blocks + p.parameter_blocks)
    if len(pairs) <= most:
        out = []
        for i, b in zip(*np.divmod(pairs, p.n_parameter_blocks), strict=True):
            title = names.place(
                int(i) if p.n_groups > 1 else None, int(b) if p.n_parameter_blocks > 1 else None
            )
            out.append(Panel(title, np.flatnonzero((p.groups == i) & (p.parameter_blocks == b)), int(i)))
        return out
    together = "" if p.n_parameter_blocks == 1 else f", all {p.n_parameter_blocks} {names.words[1]}s"
    if p.n_groups <= most:
        titles = [names.place(i, None) if p.n_groups > 1 else "" for i in range(p.n_groups)]
        return [
            Panel((title + together).strip(", "), np.flatnonzero(p.groups == i), i)
            for i, title in enumerate(titles)
        ]
    return [Panel(f"all {p.n_groups} {names.words[0]}s{together}", np.arange(p.n_candidates), None)]


def arrangement(count: int) -> tuple[int, int]:
    """Rows and columns of so many panels.

    >>> [arrangement(n) for n in (1, 2, 3, 4, 6)]
    [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]
    """
    columns = 2 if count == 4 else min(count, 3)
    return -(-count // columns), columns
