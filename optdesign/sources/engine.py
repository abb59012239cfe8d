"""The interface of data that is larger than memory.

An engine has ``n_rows``, ``dim`` and ``reduce(task, merge, args)``. A task is a pure function of a
:class:`Chunk`, merge combines the results of two chunks. Merges have to be associative and commutative: an
engine runs tasks where the data are and merges the results in any order. An engine returns results only, so
its data never travel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from optdesign.tables.columns import Labels

ROWS = 1 << 17
"""Rows of a chunk that engines aim at."""


class Chunk(NamedTuple):
    """Consecutive rows of the data with their labels."""

    first: int
    """Number of the first row."""
    x: np.ndarray
    """Features, (rows, d), in single or double precision and in any memory order; (rows, 0) if not read."""
    groups: np.ndarray | Labels | None
    """Group of every row: integers, or labels numbered in this chunk; None if all rows are in one group."""
    parameter_blocks: np.ndarray | Labels | None
    """Parameter block of every row, likewise."""


Task = Callable[..., Any]
"""A pure function of a chunk and of further arguments."""

Merge = Callable[[Any, Any], Any]
"""A pure function that combines two results of a task: associative and commutative."""


class Engine(Protocol):
    """Rows beside which tasks run."""

    n_rows: int
    dim: int
    names: tuple[str, ...] | None
    """Names of the columns, or None."""
    is_single: bool
    """True if a column is in single precision or less."""
    labels: tuple[bool, bool]
    """Whether rows have groups and parameter blocks."""
    ordered: tuple[bool, ...]
    """Whether these labels have an order of their own, that of their categories."""

    def place(self, row: int) -> str:
        """Return words for a row: the file and the row in it, or its number."""
        ...

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of ``task(chunk, *args)``; only labels without ``features``."""
        ...


class LostEngineError(RuntimeError):
    """An engine cannot run tasks any more: its cluster or its files are gone.

    ``result`` is the certified design so far, or None if nothing was certified yet.
    """

    certified: Any = None
    result: Any = None


Found = dict[Any, tuple[tuple[int, int] | None, bool]]
"""Labels, each with a key for the order of categories (None for integers), and True if a row has it."""


def distinct(chunk: Chunk) -> tuple[Found, ...]:
    """Return the labels of groups and of parameter blocks of a chunk. A task."""
    return tuple(_distinct(labels, chunk.first) for labels in (chunk.groups, chunk.parameter_blocks))


def _distinct(labels: np.ndarray | Labels | None, first: int) -> Found:
    if labels is None:
        return {}
    if isinstance(labels, Labels):
        count = np.bincount(labels.numbers, minlength=len(labels.names)).tolist()
        return {name: ((first, k), count[k] > 0) for k, name in enumerate(labels.names.tolist())}
    return dict.fromkeys(np.unique(labels).tolist(), (None, True))


def merge_distinct(one: tuple[Found, ...], other: tuple[Found, ...]) -> tuple[Found, ...]:
    """Return the labels of two results, with the smaller key of those that are in both. A merge."""
    merged = []
    for mine, theirs in zip(one, other, strict=True):
        out = {**mine, **theirs}
        for name in mine.keys() & theirs.keys():
            (key, present), (other_key, other_present) = mine[name], theirs[name]
            smaller = None if key is None or other_key is None else min(key, other_key)
            out[name] = smaller, present or other_present
        merged.append(out)
    return tuple(merged)


def numbered(labels: np.ndarray | Labels | None, numbers: Mapping[Any, int] | None, n: int) -> np.ndarray:
    """Return the labels of a chunk as integers: 0 without labels, by ``numbers`` if they have names."""
    if labels is None:
        out = np.zeros(n, np.int64)
    elif isinstance(labels, Labels):
        known = numbers or {}
        # A category may have no row.
        out = np.array([known.get(name, -1) for name in labels.names.tolist()], np.int64)[labels.numbers]
    elif numbers is None:
        out = np.asarray(labels, np.int64)
    else:
        names, at = np.unique(labels, return_inverse=True)
        out = np.array([numbers[name] for name in names.tolist()], np.int64)[at]
    out = out.view()
    out.flags.writeable = False
    return out
