"""Settings of the candidates: one column a factor, one row a candidate, in the factors' own units.

A column is an array of booleans, whole numbers, floats, dates, or text (an object array). Whole numbers are
int64 (uint64 if one does not fit), so that sums of small ones do not wrap around. Columns of a categorical
type, or from levels that were listed, keep the order of their levels. Missing entries are None, NaN or NaT.

>>> s = Settings({"temp": [20, 40], "cat": ["b", "a"]}, levels={"cat": ("b", "a")})
>>> list(s), s.n_rows, s["cat"].tolist(), s.levels
(['temp', 'cat'], 2, ['b', 'a'], {'cat': ('b', 'a')})
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.tables.values import column, is_missing, objects


class Settings(Mapping[str, np.ndarray]):
    """Read-only columns of equal length, by name.

    ``columns`` is a mapping of columns, or a data frame: of pandas, polars or pyarrow. ``levels`` gives the
    order of the levels of some columns; categorical columns bring their own.
    """

    __slots__ = ("_columns", "_levels")

    def __init__(self, columns: Any, levels: Mapping[str, tuple[Any, ...]] | None = None) -> None:
        read: dict[str, np.ndarray] = {}
        known: dict[str, tuple[Any, ...]] = {}
        for name, values in _items(columns):
            array, own = column(values, name)
            if array.ndim != 1:
                rule = "must have one entry per candidate in each column"
                value = f"{name!r} has shape {array.shape}"
                raise InputError("settings", rule, value, "Give one column a factor.")
            if own is not None:
                known[name] = own
            read[name] = array
        known.update(levels or {})
        lengths = {name: len(array) for name, array in read.items()}
        if len(set(lengths.values())) > 1:
            first = next(iter(lengths))
            other = next(name for name, n in lengths.items() if n != lengths[first])
            rule = "must have columns of one length"
            value = f"{first!r} has {lengths[first]} entries and {other!r} {lengths[other]}"
            raise InputError("settings", rule, value, "Pad or drop the short ones.")
        self._columns, self._levels = read, known

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The order of the levels, of the columns that have one of their own."""
        return dict(self._levels)

    def take(self, rows: np.ndarray) -> Settings:
        """Return some of the rows."""
        return Settings({name: array[rows] for name, array in self.items()}, self._levels)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Settings, (self._columns, self._levels)

    def __repr__(self) -> str:
        return f"Settings({self.n_rows} rows: {', '.join(self)})"


class Labels(NamedTuple):
    """A column of labels: the distinct ones, in order, and the number of the one that every row has."""

    names: np.ndarray
    numbers: np.ndarray


def times_as_text(array: np.ndarray) -> np.ndarray:
    """Return durations, and dates with the digits that all of them need, as text. Return others as they are.

    >>> times_as_text(np.array(["2024-05-01", "2024-05-31"], dtype="M8[ns]")).tolist()
    ['2024-05-01', '2024-05-31']
    """
    if array.dtype.kind == "M":
        return np.datetime_as_string(array, unit="auto").astype(object)
    return objects(list(map(str, array))) if array.dtype.kind == "m" else array


def number(array: np.ndarray, levels: tuple[Any, ...] | None = None) -> Labels:
    """Assign numbers to the labels of a column, in the order of its levels or sorted.

    >>> number(np.array(["b", "a", "b"], dtype=object))
    Labels(names=array(['a', 'b'], dtype=object), numbers=array([1, 0, 1]))
    """
    if array.dtype != object and levels is None:
        return Labels(*np.unique(array, return_inverse=True))
    values = array.tolist()
    present = set(values)
    ordered = sorted(present) if levels is None else [level for level in levels if level in present]
    at = {label: k for k, label in enumerate(ordered)}
    return Labels(objects(ordered), np.fromiter(map(at.__getitem__, values), np.int64, len(values)))


def row_codes(columns: Iterable[np.ndarray], n: int) -> np.ndarray:
    """Return a number for each of n rows, the same for rows that have the same entry in every column.

    >>> row_codes([np.array([2, 1, 2, 2]), np.array(["a", "a", "a", "b"], dtype=object)], 4).tolist()
    [1, 0, 1, 2]
    """
    codes = np.zeros(n, np.int64)
    for values in columns:
        plain = values.astype(str) if values.dtype == object else values
        own = np.unique(plain, return_inverse=True)[1]
        codes = np.unique(codes * (int(own.max()) + 1) + own, return_inverse=True)[1]
    return codes


def missing(array: np.ndarray) -> int | None:
    """Return the first row without an entry, or None."""
    if array.dtype == object:
        return next((k for k, v in enumerate(array) if v is None), None)
    gone = array != array
    return int(np.argmax(gone)) if gone.any() else None


def missing_label(array: np.ndarray) -> int | None:
    """Return the first row without a label, or None. Text without a visible character is no label."""
    if array.dtype == object:
        labels = enumerate(array)
        return next((k for k, v in labels if is_missing(v) or (isinstance(v, str) and not v.strip())), None)
    return missing(array)


def lookup(columns: Mapping[str, Any], name: str, argument: str, source: str = "the settings") -> Any:
    """Return the column of a name, or an error that lists the names."""
    if name not in columns:
        value = f"there is no {name!r}{suggestion(name, columns)}"
        remedy = f"The columns are {listed(columns)}."
        raise InputError(argument, f"must name a column of {source}", value, remedy)
    return columns[name]


def suggestion(name: str, known: Mapping[str, Any] | list[str]) -> str:
    """Return a guess at what a misspelled name should have been, or nothing."""
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(names: Any) -> str:
    """Up to ten names, quoted, and how many more there are."""
    names = list(names)
    shown = ", ".join(repr(str(name)) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def is_frame(source: Any) -> bool:
    """Return True if something is a data frame: of pandas or polars, or a table of pyarrow."""
    if hasattr(source, "collect"):
        raise TypeError(
            f"frames must be in memory; got {type(source).__name__}. Collect it first: frame.collect()."
        )
    return hasattr(source, "column_names") or (hasattr(source, "columns") and hasattr(source, "dtypes"))


def check_index(frame: Any, values: Any, name: str) -> None:
    """Refuse a pandas Series whose rows are not called as those of the pandas frame that it belongs to."""
    own: Any = getattr(frame, "index", None)
    other: Any = getattr(values, "index", None)
    if hasattr(own, "equals") and hasattr(other, "equals") and not own.equals(other):
        remedy = f"Align it, {name}.reindex(frame.index), or pass {name}.to_numpy() if the order is right."
        raise InputError(name, "must have the index of the frame, in its order", "the two differ", remedy)


def is_single(array: Any) -> bool:
    """Return True if an array is in single precision or less."""
    dtype: Any = getattr(array, "dtype", None)
    return getattr(dtype, "kind", "") == "f" and dtype.itemsize < 8


def check_exact(
    source: np.ndarray, x: np.ndarray, name: str = "candidates", place: Callable[[int], str] | None = None
) -> None:
    """Raise ValueError for integers and long doubles that double precision cannot represent.

    ``x`` is the array in double precision, and ``place`` returns words for a row.
    """
    if source.dtype.kind in "iu":  # which have no conversion from a float beyond their range
        x = np.where(x < 2.0 ** (8 * source.dtype.itemsize - (source.dtype.kind == "i")), x, 0.0)
    back = x.astype(source.dtype)
    lost = ~np.all((back == source) | (source != source), axis=tuple(range(1, source.ndim)))
    if lost.any():
        at = int(np.argmax(lost))
        rule, held = "must fit double precision", source[at].tolist()
        remedy = "Subtract an offset, or round them yourself: astype(float)."
        if place is not None:
            raise InputError(name, rule, f"{place(at)} is {held}", remedy)
        raise InputError(name, f"{rule}, which {name}[{at}] = {held} does not", remedy=remedy)


def _items(columns: Any) -> Iterator[tuple[str, Any]]:
    """Return the columns of a mapping or a frame, under names that are text and differ."""
    if isinstance(columns, Mapping):
        pairs = list(columns.items())
    elif hasattr(columns, "column_names"):
        pairs = list(zip(columns.column_names, columns.columns, strict=True))
    elif is_frame(columns):
        pick = columns.iloc if hasattr(columns, "iloc") else None
        pairs = [(k, columns[k] if pick is None else pick[:, j]) for j, k in enumerate(columns.columns)]
    else:
        raise TypeError(
            f"settings must be a mapping of columns or a data frame; got {type(columns).__name__}. "
            "Pass a dict of name to column."
        )
    seen: dict[str, str] = {}
    for key, values in pairs:
        if isinstance(key, tuple):
            remedy = "Join them: frame.columns = ['_'.join(map(str, k)) for k in frame.columns]."
            raise InputError("columns", "must have one name each", f"got the levels {key}", remedy)
        name = str(key)
        # Python reads names such as the micro sign and the Greek letter as one.
        read = unicodedata.normalize("NFKC", name) if name.isidentifier() else name
        if read in seen:
            also = "" if seen[read] == name else f", as {seen[read]!r}: Python reads both as one name"
            value = f"{name!r} occurs twice{also}"
            raise InputError("columns", "must have names that differ", value, "Rename one of them.")
        seen[read] = name
        yield name, values
