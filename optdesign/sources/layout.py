"""Columns of a table as candidates: features by name or by a formula, conditions, and labels.

A table comes in batches, of pyarrow or of pandas. A formula and a condition are applied batch by batch, so
both must work row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.conditions import meeting
from optdesign.factors.formula import Model
from optdesign.sources.engine import Chunk
from optdesign.tables.columns import Labels, Settings, check_exact, lookup, missing_label, times_as_text
from optdesign.tables.columns import number as number_labels
from optdesign.tables.values import category_codes, column, objects, plain_levels

Place = Callable[[int], str]
"""Words for a row of a batch: its file and its row there."""

ARGUMENTS = ("groups", "parameter_blocks")


def check_label_columns(labels: tuple[Any, Any], types: Mapping[Any, Any], kind: str, source: str) -> None:
    """Raise InputError unless groups and parameter blocks are None or the names of columns."""
    for argument, name in zip(ARGUMENTS, labels, strict=True):
        if name is not None and not (types and isinstance(name, str)):
            rule = f"must be the name of a column of {kind}"
            remedy = "Put the labels and the features into one table."
            raise InputError(argument, rule, f"got {type(name).__name__}", remedy)
        if name is not None:
            lookup(types, name, argument, source)


class Layout(NamedTuple):
    """The roles of the columns of a table."""

    names: tuple[str, ...]
    """Names of the features."""
    columns: tuple[str, ...]
    """Columns that the features and the condition are made of."""
    labels: tuple[str | None, str | None]
    """Columns of groups and of parameter blocks."""
    kind: np.dtype[Any]
    """Precision of the features."""
    model: Model | None = None
    where: str | None = None

    def needed(self, features: bool) -> list[str]:
        """Return the columns to read, with or without those of the features."""
        read = self.columns if features or self.where is not None else ()
        return list(dict.fromkeys([*read, *filter(None, self.labels)]))

    def chunk(
        self, first: int, table: Any, n: int, place: Place, features: bool, buffer: np.ndarray | None = None
    ) -> Chunk:
        """Return a batch of n rows, whose columns are ``table[name]``, as a chunk.

        The features are written to ``buffer`` if it is given: new memory takes longer.
        """
        rows = self.kept(table, place)
        if self.model is None:
            d = len(self.names) if features else 0
            x = np.empty((d, n), self.kind) if buffer is None else buffer[: d * n].reshape(d, n)
            for row, name in zip(x, self.names, strict=False):
                row[:] = numbers(table[name], name, place)
            x = x.T if rows is None else x.T[rows]
        elif features:
            x = self._modelled(self.model, table, rows, place)
        else:
            x = np.empty((n if rows is None else len(rows), 0))
        labels = (
            None if name is None else _column_labels(table[name], argument, name, place, rows)
            for argument, name in zip(ARGUMENTS, self.labels, strict=True)
        )
        return Chunk(first, x, *labels)

    def kept(self, table: Any, place: Place) -> np.ndarray | None:
        """Return the rows of a batch that meet the condition, or None for all."""
        return None if self.where is None else meeting(settings_of(table, self.columns, place), self.where)

    def _modelled(self, model: Model, table: Any, rows: np.ndarray | None, place: Place) -> np.ndarray:
        """Return the features that the model makes of a batch."""
        settings = settings_of(table, model.factors, place)
        settings = settings if rows is None else settings.take(rows)
        try:
            return model.features(settings)
        except InputError as error:
            if error.row is None:
                raise
            at = error.row if rows is None else int(rows[error.row])
            raise error.replace(place=place(at)) from None


def layout_of(
    names: tuple[str, ...],
    labels: tuple[str | None, str | None],
    model: Model | None,
    where: str | None,
    in_where: Iterable[str],
    singles: Callable[[str], list[bool]],
) -> tuple[Layout, bool]:
    """Return the roles of columns, and True if numbers behind the features are in single precision.

    ``names`` are the features if there is no model. ``singles`` returns True for every part of a column that
    is in single precision.
    """
    columns, levels = (names, {}) if model is None else (model.factors, model.levels)
    single = [one for name in columns if name not in levels for one in singles(name)]
    kind: np.dtype[Any] = np.dtype(np.float32 if single and all(single) else np.float64)
    read = tuple(dict.fromkeys([*columns, *in_where]))
    return Layout(names if model is None else model.names, read, labels, kind, model, where), any(single)


def check_features(names: Iterable[str], types: Mapping[str, Any], source: str, is_number: Any) -> None:
    """Raise InputError unless features are columns of numbers."""
    for name in names:
        if not is_number(types[name]):
            remedy = "Name it as groups or parameter_blocks, drop it, or make the features from a model: "
            remedy += "candidates(source, model=...)."
            value = f"column {name!r} of {source} is {types[name]}"
            raise InputError("candidates", "must be numbers", value, remedy)


def settings_of(table: Any, names: Iterable[str], place: Place) -> Settings:
    """Return columns of a batch as settings; text without a visible character is missing."""
    columns: dict[str, Any] = {}
    levels: dict[str, tuple[Any, ...]] = {}
    for name in names:
        try:
            values, own = column(table[name], name)
        except InputError as error:
            raise error if error.row is None else error.replace(place=place(error.row)) from None
        if values.dtype == object:
            values = np.array([None if isinstance(v, str) and not v.strip() else v for v in values], object)
        columns[name] = values
        if own is not None:
            levels[name] = own
    return Settings(columns, levels)


def numbers(values: Any, name: str, place: Place) -> np.ndarray:
    """Return the numbers of a column, which double precision must hold; missing ones are NaN."""
    array = values.to_numpy(zero_copy_only=False) if hasattr(values, "null_count") else np.asarray(values)
    if array.dtype.kind not in "buif":
        array = column(values, name)[0]
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        floats = array.astype(np.float64)
        check_exact(array, floats, f"column {name!r}", lambda row: f"the entry in {place(row)}")
    return array


def _column_labels(values: Any, argument: str, name: str, place: Place, rows: np.ndarray | None) -> Labels:
    """Return the labels of some rows of a column of a table, or of all."""
    found, _ = labels_of(values, argument, lambda k: f"column {name!r} is empty in {place(k)}")
    return found if rows is None else Labels(found.names, found.numbers[rows])


def labels_of(values: Any, argument: str, missing: Place) -> tuple[Labels, bool]:
    """Return labels, numbered in this batch, and True if they have an order of their own.

    ``missing`` are the words for a row without a label. Labels of a categorical type are in its order, and
    include those without a row. Others are sorted.
    """
    codes, names, has_order = _coded(values, argument)
    blank = [-1, *(k for k in range(len(names)) if missing_label(names[k : k + 1]) is not None)]
    for at in np.flatnonzero(np.isin(codes, blank))[:1].tolist():
        raise InputError(argument, "must not be missing", missing(at), "Fill it in or drop the row.")
    if has_order:
        return Labels(names, codes), True
    if names.dtype.kind == "M":  # their text has as many digits as the whole column needs
        names = objects(list(names))
    names = times_as_text(names)
    found = number_labels(names)
    return Labels(found.names, found.numbers[codes]), False


def _coded(values: Any, name: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the code of every row, -1 if missing, the labels, and True if these have an order."""
    if (categorical := category_codes(values, name)) is not None:
        return categorical[0].astype(np.int64), objects(categorical[1]), True
    if hasattr(values, "chunks"):
        values = values.unify_dictionaries().combine_chunks()
    if hasattr(values, "dictionary_encode"):
        has_order = hasattr(values, "dictionary")
        coded = values if has_order else values.dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1), np.int64)
        if has_order:
            return codes, objects(plain_levels(coded.dictionary.to_pylist(), name)), True
        return codes, column(coded.dictionary, name)[0], False
    array, levels = column(values, name)
    if levels is not None:
        at = {level: k for k, level in enumerate(levels)}
        return np.array([at.get(label, -1) for label in array.tolist()]), objects(levels), True
    gone = np.array([v is None for v in array]) if array.dtype == object else array != array
    found = number_labels(array[~gone])
    codes = np.full(len(array), -1)
    codes[~gone] = found.numbers
    return codes, found.names, False
