"""Names in pictures: rows as the table numbers them, groups and parameter blocks by
their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.plot.text import all_readable, letters, readable
from optdesign.problem.dependence import in_words
from optdesign.problem.problem import DesignProblem
from optdesign.tables.columns import missing
from optdesign.tables.columns import number as numbered

MOST_TICKS = 15
"""Labels along an axis that are written out; of more, every so-manieth is."""


def check_result(result: Any) -> None:
    """Refuse what is no solved design."""
    if not isinstance(result, DesignResult):
        raise TypeError(
            f"result must be a DesignResult; got {type(result).__name__}. Pass solve(problem); whole runs "
            "have a picture of their own, plot.runs."
        )


class Role(Enum):
    """Return the value of a column of the settings for a candidate, as text."""

    FACTOR = "how it differs from others of its group and parameter block"
    GROUP = "its group"
    BLOCK = "its parameter block"
    CONSTANT = "nothing"


def roles(problem: DesignProblem) -> dict[str, Role]:
    """Return the role of every column of the settings. One that repeats the labels of groups is no factor."""
    return {name: _role(problem, column) for name, column in (problem.settings or {}).items()}


def _role(problem: DesignProblem, column: np.ndarray) -> Role:
    if missing(column) is not None:
        return Role.FACTOR
    numbers = numbered(column)[1]
    count = int(numbers.max()) + 1
    if count == 1:
        return Role.CONSTANT
    for role, labels, n in (
        (Role.GROUP, problem.groups, problem.n_groups),
        (Role.BLOCK, problem.parameter_blocks, problem.n_parameter_blocks),
    ):
        if n == count and len(np.unique(labels * count + numbers)) == count:
            return role
    return Role.FACTOR


@dataclass(frozen=True, eq=False)
class Names:
    """Names of the groups, parameter blocks and candidates of a problem."""

    problem: DesignProblem
    words: tuple[str, str] = ("group", "parameter block")
    factors: tuple[str, ...] = ()
    """Columns of the settings that tell candidates of a group and block apart."""
    rows: np.ndarray | None = None
    """The row of every candidate, if it is another than 1, 2, 3 and so on."""

    def row(self, n: int) -> int:
        """The row of a candidate, from 1 as in tables."""
        return n + 1 if self.rows is None else int(self.rows[n])

    def group(self, i: int) -> str:
        """The label of a group, its number by default."""
        return str(i if self.problem.group_names is None else self.problem.group_names[i])

    def block(self, b: int) -> str:
        """The label of a block, its number by default."""
        return str(b if self.problem.parameter_block_names is None else self.problem.parameter_block_names[b])

    def place(self, i: int | None, b: int | None) -> str:
        """A group, a block or both in words."""
        parts = [] if i is None else [f"{self.words[0]} {self.group(i)}"]
        parts += [] if b is None else [f"{self.words[1]} {self.block(b)}"]
        return ", ".join(parts)

    def candidate(self, n: int) -> str:
        """The row of a candidate, and its settings if they are known."""
        settings = self.problem.settings
        if settings is None or not self.factors:
            return f"row {self.row(n)}"
        return f"row {self.row(n)}: " + ", ".join(
            f"{name} {number(settings[name][n])}" for name in self.factors
        )

    def notes(self) -> list[str]:
        """Sentences on a rank that is deficient or a close decision."""
        p = self.problem
        deficient = np.flatnonzero(p.ranks < p.dim)
        out = []
        if len(deficient):
            where = "" if p.n_parameter_blocks == 1 else f" in {self.place(None, int(deficient[0]))}"
            where += f" (and in {len(deficient) - 1} more)" if len(deficient) > 1 else ""
            out.append(f"Rank {p.rank} of {p.n_parameters}{where}: {in_words(p, p.names)}.")
        return out + ([p.rank_note] if p.rank_note else [])


def names_of(
    problem: DesignProblem, words: tuple[str, str] | None = None, rows: ArrayLike | None = None
) -> Names:
    """The names that a problem has; unless words are given, a column that tells groups apart names them."""
    if rows is not None and np.shape(rows) != (problem.n_candidates,):
        raise InputError(
            "rows",
            f"must have one entry per candidate, shape ({problem.n_candidates},)",
            f"got {np.shape(rows)}",
            "Leave it out for 1, 2, 3 and so on.",
        )
    found = roles(problem)
    told = {role: name for name, role in found.items()}
    return Names(
        problem,
        (told.get(Role.GROUP, "group"), told.get(Role.BLOCK, "parameter block")) if words is None else words,
        tuple(name for name, role in found.items() if role is Role.FACTOR),
        None if rows is None else np.asarray(rows),
    )


def number(value: Any) -> str:
    """A setting as it is written: numbers without needless digits.

    >>> number(np.float64(20.0)), number(1 / 3), number("a")
    ('20', '0.3333', 'a')
    """
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def label_axis(axis: Any, labels: Sequence[Any] | None, n: int, word: str) -> None:
    """Name an axis of n things 0, 1, ... and write their labels, or numbers; slanted if they are too wide."""
    axis.set_label_text(readable(word, 80))
    if n > MOST_TICKS and labels is None:
        whole_ticks(axis)
        return
    ticks = range(0, n, -(-n // MOST_TICKS))
    texts = all_readable([i if labels is None else labels[i] for i in ticks], 18)
    if axis.axis_name == "x" and len(texts) * (max(map(len, texts)) + 2) > letters(axis.axes):
        axis.set_ticks(ticks, texts, rotation=35, ha="right", rotation_mode="anchor")
    else:
        axis.set_ticks(ticks, texts)


def whole_ticks(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
