"""Names in pictures: rows as the table numbers them, groups and parameter blocks by their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.display import text
from optdesign.design.result import DesignResult
from optdesign.numbers.checks import check_type
from optdesign.plot.style import MOST
from optdesign.plot.text import all_distinct, letters, readable
from optdesign.problem.dependence import in_words
from optdesign.problem.inputs import check_length
from optdesign.problem.problem import DesignProblem
from optdesign.tables.columns import missing
from optdesign.tables.columns import number as numbered


def check_result(result: Any) -> None:
    """Raise TypeError unless the argument is a solved design."""
    remedy = "Pass solve(problem); whole runs have a picture of their own, plot.runs."
    check_type(result, DesignResult, "result must be a DesignResult", remedy)


class Role(Enum):
    """The part of a column of the settings in a picture; the value is the default word for its labels."""

    FACTOR = "factor"
    GROUP = "group"
    BLOCK = "parameter block"
    CONSTANT = "constant"


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
    labels = {Role.GROUP: problem.groups, Role.BLOCK: problem.parameter_blocks}
    for role, own in labels.items():
        if int(own.max()) + 1 == count == len(np.unique(own * count + numbers)):
            return role
    return Role.FACTOR


@dataclass(frozen=True, eq=False)
class Names:
    """Names of the groups, parameter blocks and candidates of a problem."""

    problem: DesignProblem
    words: tuple[str, str]
    factors: tuple[str, ...]
    """Columns of the settings that identify candidates of a group and block."""
    rows: np.ndarray
    """The row of every candidate, from 1 as in tables."""

    def place(self, i: int | None, b: int | None) -> str:
        """Return a group, a block or both in words, without those that are the only ones."""
        return ", ".join(f"{word} {label}" for word, label in self._places(i, b))

    def _places(self, i: int | None, b: int | None) -> list[tuple[str, Any]]:
        p = self.problem
        labels = (i, p.n_groups, p.group_names), (b, p.n_parameter_blocks, p.parameter_block_names)
        return [
            (word, at if names is None else names[at])
            for word, (at, count, names) in zip(self.words, labels, strict=True)
            if at is not None and count > 1
        ]

    def candidate(self, n: int, form: str = "{0} {1}") -> str:
        """Return group, block, row and settings of a candidate, each in a form for its name and its value.

        Groups and blocks are left out if there is only one.
        """
        p = self.problem
        settings: Any = p.settings
        places = self._places(int(p.groups[n]), int(p.parameter_blocks[n]))
        own = [(name, text(settings[name][n])) for name in self.factors]
        parts = [*places, ("row", self.rows[n])], own
        return ": ".join(", ".join(form.format(*pair) for pair in part) for part in parts if part)

    def notes(self) -> list[str]:
        """Return sentences on a rank that is deficient or a close decision."""
        p = self.problem
        deficient = np.flatnonzero(p.ranks < p.dim)
        out = []
        if len(deficient):
            where = "" if p.n_parameter_blocks == 1 else f" in {self.place(None, int(deficient[0]))}"
            where += f" (and in {len(deficient) - 1} more)" if len(deficient) > 1 else ""
            out.append(f"Rank {p.rank} of {p.n_parameters}{where}: {in_words(p, p.names)}.")
        return out + ([p.rank_note] if p.rank_note else [])


def names_in(result: DesignResult, words: tuple[str, str] | None, rows: ArrayLike | None) -> Names:
    """Return the words that name the candidates of a result; TypeError if it is none."""
    check_result(result)
    return names_of(result.problem, words, rows)


def names_of(
    problem: DesignProblem, words: tuple[str, str] | None = None, rows: ArrayLike | None = None
) -> Names:
    """Return the names of a problem; the default word for groups is the column that repeats their labels."""
    if rows is not None:
        check_length(np.asarray(rows), problem.n_candidates, "rows", "Leave it out for 1, 2, 3 and so on.")
    found = roles(problem)
    called = {role: name for name, role in found.items()}
    group, block = (called.get(role, role.value) for role in (Role.GROUP, Role.BLOCK))
    return Names(
        problem,
        words or (group, block),
        tuple(name for name, role in found.items() if role is Role.FACTOR),
        np.arange(1, problem.n_candidates + 1) if rows is None else np.asarray(rows),
    )


def label_axis(axis: Any, labels: Sequence[Any] | None, n: int, word: str) -> None:
    """Name an axis of n things 0, 1, ... and write their labels, or numbers; slanted if they are too wide."""
    axis.set_label_text(readable(word, 80))
    if n > MOST.ticks and labels is None:
        whole_ticks(axis)
        return
    ticks = range(0, n, -(-n // MOST.ticks))
    texts = all_distinct([i if labels is None else labels[i] for i in ticks], 18)
    if axis.axis_name == "x" and len(texts) * (max(map(len, texts)) + 2) > letters(axis.axes):
        axis.set_ticks(ticks, texts, rotation=35, ha="right", rotation_mode="anchor")
    else:
        axis.set_ticks(ticks, texts)


def whole_ticks(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
