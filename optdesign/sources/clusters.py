"""Dask arrays and frames as an engine: tasks run where the partitions are (:mod:`.partitions`)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.formula import Model
from optdesign.sources.arrays import doubles
from optdesign.sources.engine import Chunk, Merge, Task
from optdesign.sources.layout import Layout, Place, check_features, check_label_columns, layout_of
from optdesign.sources.partitions import Moved, Partitions
from optdesign.tables.columns import is_single, listed
from optdesign.tables.files import COUNTERS, ROW_NAMES, SHORTEST_COUNT
from optdesign.tables.values import is_categorical


class DaskFrame(Partitions):
    """The partitions of a Dask frame, whose columns have different names."""

    def __init__(self, collection: Any) -> None:
        self.meta = collection._meta
        if len(set(map(str, self.meta.columns))) < len(self.meta.columns):
            rule, value = "must have columns of different names", f"got {listed(self.meta.columns)}"
            raise InputError("candidates", rule, value, "Rename one of them.")
        if not all(isinstance(name, str) for name in self.meta.columns):
            rule, value = "must have columns whose names are text", f"got {self.meta.columns.tolist()[:10]}"
            remedy = "Rename them: frame.columns = list(map(str, frame.columns))."
            raise InputError("candidates", rule, value, remedy)
        self.types = {name: self.meta[name].dtype for name in self.meta.columns}
        super().__init__(list(collection.to_delayed()))

    def layout(
        self,
        labels: tuple[str | None, str | None],
        model: Model | None,
        where: str | None,
        in_where: Sequence[str],
    ) -> tuple[Layout, bool]:
        """Return the roles of the columns, and True if a feature is in single precision."""
        names = tuple(name for name in self.types if name not in labels)
        if model is None:
            check_features(names, self.types, "the frame", lambda kind: kind.kind in "buif")
        return layout_of(names, labels, model, where, in_where, lambda name: [is_single(self.meta[name])])


class DaskEngine:
    """Rows of a Dask array or frame; groups and parameter blocks are names of columns of a frame."""

    names: tuple[str, ...] | None = None

    def __init__(
        self,
        collection: Any,
        groups: Any = None,
        parameter_blocks: Any = None,
        *,
        model: Model | None = None,
        where: str | None = None,
        in_where: Sequence[str] = (),
    ) -> None:
        if hasattr(collection, "columns"):
            collection = DaskFrame(collection)
        frame = collection if isinstance(collection, DaskFrame) else None
        self.labels = groups is not None, parameter_blocks is not None
        types = {} if frame is None else frame.types
        check_label_columns((groups, parameter_blocks), types, "a Dask frame", "the frame")
        self.layout: Layout | None = None
        self.ordered: tuple[bool, ...] = (False, False)
        known: list[Any] = []
        if frame is not None:
            self.partitions: Partitions = frame
            self.layout, self.is_single = frame.layout((groups, parameter_blocks), model, where, in_where)
            self.names = self.layout.names
            labels = (groups, parameter_blocks)
            self.ordered = tuple(name is not None and is_categorical(frame.meta[name]) for name in labels)
        else:
            if collection.ndim != 2 or collection.dtype.kind not in "buif":
                rule, remedy = "must have shape (N, d) and real numbers", "Put one candidate a row."
                value = f"got {collection.dtype} of shape {collection.shape}"
                raise InputError("candidates", rule, value, remedy)
            self.is_single = is_single(collection)
            known = list(collection.chunks[0])
            self.partitions = Partitions(list(collection.rechunk({1: -1}).to_delayed().reshape(-1)))
        self.dim = len(self.names) if self.names is not None else int(collection.shape[1])
        if not known or any(size != size for size in known):
            known = [size for _, size in sorted(self.partitions.reduce(_sizes, operator.add, (self.layout,)))]
        self.starts = np.concatenate([[0], np.cumsum(known, dtype=np.int64)]).tolist()
        self.n_rows = self.starts[-1]
        if model is None:
            self._refuse_row_names()

    @property
    def moved(self) -> list[Moved]:
        """Data that every pass on a cluster has moved."""
        return self.partitions.moved

    def _refuse_row_names(self) -> None:
        """Raise InputError if a feature only names rows, as frames in memory leave it out."""
        for name in self.names or ():
            named = ROW_NAMES.fullmatch(name) is not None
            if named or (COUNTERS.fullmatch(name) and self._counts(name)):
                value = f"column {name!r} {'names' if named else 'counts'} the rows"
                remedy = f"Drop it, frame.drop(columns=[{name!r}]), or rename it if it is a feature."
                raise InputError("candidates", "must have features", value, remedy)

    def _counts(self, name: str) -> bool:
        """Return True if a column is 0, 1, 2, ... or 1, 2, 3, ..."""
        if self.n_rows < SHORTEST_COUNT:
            return False
        return any(self.partitions.reduce(_counting, np.logical_and, (name,), self.starts))

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all partitions; ``features`` are always read of an array."""
        return self.partitions.reduce(_run, merge, (task, args, self.layout, features), self.starts)

    def place(self, row: int) -> str:
        """Return the partition of a candidate and its row there."""
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        place = place_in(k)(row - self.starts[k])
        if self.layout is None or self.layout.where is None:
            return place
        return f"{place}, counting those that meet the condition"


def place_in(number: int) -> Place:
    """Return the words for the rows of a partition."""
    return lambda k: f"row {k + 1} of partition {number + 1}"


def _sizes(part: Any, number: int, _: int, layout: Layout | None) -> list[tuple[int, int]]:
    """Return the number of rows of a partition that meet the condition."""
    kept = None if layout is None or not len(part) else layout.kept(part, place_in(number))
    return [(number, len(part if kept is None else kept))]


def _counting(part: Any, _: int, first: int, name: str) -> np.ndarray:
    """Return True for 0 and for 1 if a column of a partition counts the rows of the frame from there."""
    values = np.asarray(part[name])
    rows = np.arange(first, first + len(values))
    return np.array([np.array_equal(values, rows), np.array_equal(values, rows + 1)])


def _run(
    part: Any, number: int, first: int, task: Task, args: Any, layout: Layout | None, features: bool
) -> Any:
    """Run a task on a partition; None if it has no rows."""
    if not len(part):
        return None
    if layout is not None:
        chunk = layout.chunk(first, part, len(part), place_in(number), features)
        return task(chunk, *args) if len(chunk.x) else None
    return task(Chunk(first, doubles(np.asarray(part), place_in(number)), None, None), *args)
