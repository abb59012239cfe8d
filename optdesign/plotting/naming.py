"""What things are called in a picture: rows as the table numbers them, groups and blocks by their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdesign.dependence import in_words
from optdesign.plotting.text import all_readable, readable
from optdesign.problem import DesignProblem

Labels = Sequence[Any] | np.ndarray | None

MOST_TICKS = 15
"""Labels along an axis that are written out; of more, every so-manieth is."""

LETTERS = 9
"""Letters to an inch of an axis, with some room for what beside it takes of its width."""


@dataclass(frozen=True, eq=False)
class Names:
    """Labels of a problem's groups, blocks and columns, and what groups and blocks are called."""

    problem: DesignProblem
    groups: Labels = None
    blocks: Labels = None
    words: tuple[str, str] = ("group", "block")
    columns: Labels = None

    def group(self, i: int) -> str:
        """The label of a group, its number by default."""
        return str(i if self.groups is None else self.groups[i])

    def block(self, b: int) -> str:
        """The label of a block, its number by default."""
        return str(b if self.blocks is None else self.blocks[b])

    def place(self, i: int | None, b: int | None) -> str:
        """A group, a block or both in words."""
        parts = [] if i is None else [f"{self.words[0]} {self.group(i)}"]
        parts += [] if b is None else [f"{self.words[1]} {self.block(b)}"]
        return ", ".join(parts)

    def candidate(self, n: int) -> str:
        """The row of a candidate, from 1 as in tables, and its settings if they are known."""
        settings = self.problem.settings
        if not settings:
            return f"row {n + 1}"
        return f"{n + 1}: " + ", ".join(f"{name} {number(column[n])}" for name, column in settings.items())

    def notes(self) -> list[str]:
        """Sentences on a rank that is deficient or a close decision."""
        p = self.problem
        deficient = np.flatnonzero(p.ranks < p.dim)
        out = []
        if len(deficient):
            where = "" if p.n_blocks == 1 else f" in {self.place(None, int(deficient[0]))}"
            where += f" (and in {len(deficient) - 1} more)" if len(deficient) > 1 else ""
            columns = None if self.columns is None else [str(name) for name in self.columns]
            out.append(f"Rank {p.rank} of {p.n_parameters}{where}: {in_words(p, columns)}.")
        return out + ([p.rank_note] if p.rank_note else [])


def names_of(
    problem: DesignProblem,
    *,
    groups: Labels = None,
    blocks: Labels = None,
    words: tuple[str, str] = ("group", "block"),
    columns: Labels = None,
) -> Names:
    """The names that a problem has, unless others are given."""
    return Names(
        problem,
        problem.group_names if groups is None else groups,
        problem.block_names if blocks is None else blocks,
        words,
        problem.names if columns is None else columns,
    )


def number(value: Any) -> str:
    """A setting as it is written: numbers without needless digits.

    >>> number(np.float64(20.0)), number(1 / 3), number("a")
    ('20', '0.3333', 'a')
    """
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def label_axis(axis: Any, labels: Labels, n: int, word: str) -> None:
    """Name an axis of n things 0, 1, ... and write their labels, or numbers; slanted if they are too wide."""
    axis.set_label_text(readable(word, 80))
    if n > MOST_TICKS and labels is None:
        whole_ticks(axis)
        return
    ticks = range(0, n, -(-n // MOST_TICKS))
    texts = all_readable([i if labels is None else labels[i] for i in ticks], 18)
    room = LETTERS * axis.axes.get_window_extent().width / axis.axes.figure.dpi
    if axis.axis_name == "x" and len(texts) * (max(map(len, texts)) + 2) > room:
        axis.set_ticks(ticks, texts, rotation=35, ha="right", rotation_mode="anchor")
    else:
        axis.set_ticks(ticks, texts)


def whole_ticks(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
