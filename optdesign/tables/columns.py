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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError

NUMERIC = ("int", "uint", "float", "double", "halffloat")
"""How the names of numeric types of pyarrow begin."""


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


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return values of any type, sequences included, as an array of objects with one dimension."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


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
        return next((k for k, v in labels if _is_missing(v) or (isinstance(v, str) and not v.strip())), None)
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


def refuse_mask(array: Any, name: str) -> None:
    """Raise ValueError if an array is masked."""
    if isinstance(array, np.ma.MaskedArray):
        remedy = "Drop the masked rows, or fill them in."
        raise InputError(name, "must not be masked", "NumPy would drop the mask", remedy)


def column(values: Any, name: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """Return a column as a read-only array of its own, and the levels of a categorical one in their order."""
    values, levels = _decoded(values, name)
    refuse_mask(values, name)
    try:
        array = np.array(values)
    except ValueError:
        remedy = "Unpack nested values first."
        raise InputError(name, "must have one plain value a row", remedy=remedy) from None
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        array = np.array(values, dtype=object)  # lest numbers among text become text
    has_integers = isinstance(values, list | tuple) or _type_name(values).startswith(("int", "uint"))
    if array.dtype == np.float64 and has_integers and np.any(np.abs(array) >= 2.0**53):
        # Integers beside missing entries or fractions, which float64 may have rounded.
        array = np.array(values.to_pylist() if hasattr(values, "to_pylist") else list(values), dtype=object)
    if array.dtype.kind == "S":
        array = _utf8(array, name)
    if array.dtype.kind == "U":
        array = array.astype(object)
    elif array.dtype.kind == "O":
        array = _plain(array, name)
    elif array.dtype.kind not in "biufmM":
        rule = "must hold numbers, text, booleans or dates"
        raise InputError(name, rule, f"got dtype {array.dtype}", "Convert it first.")
    elif array.dtype.kind in "iu" and int(array.max(initial=0)) < 2**63:
        array = array.astype(np.int64)
    if levels is not None and array.dtype == object:
        levels = tuple(v if isinstance(v, bool) else str(v) for v in levels)
    array.flags.writeable = False
    return array, levels


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


def check_local_times(name: str, differ: bool) -> None:
    """Raise ValueError unless different times of a column with a time zone differ as local times."""
    if not differ:
        rule = "must have different local times for different times"
        value = "two of them coincide where the clocks are set back"
        raise InputError(name, rule, value, "Convert the column to UTC first.")


def plain_levels(levels: list[Any], name: str) -> tuple[Any, ...]:
    """Return the levels of a categorical type as text or numbers."""
    plain = tuple(
        v if isinstance(v, str | Real) else _date_text(v) if isinstance(v, datetime) else str(v)
        for v in levels
    )
    if len(set(plain)) < len(plain):
        rule = "must have categories that differ as text"
        raise InputError(name, rule, f"got {listed(levels)}", "Rename the categories.")
    return plain


def is_categorical(values: Any) -> bool:
    """Return True for a categorical column of pandas."""
    categorical = getattr(values, "cat", values)
    return hasattr(categorical, "categories") and hasattr(categorical, "codes")


def category_codes(values: Any, name: str) -> tuple[np.ndarray, tuple[Any, ...]] | None:
    """Return the codes of a categorical column of pandas, -1 if missing, and its levels; None for others."""
    if not is_categorical(values):
        return None
    categorical = getattr(values, "cat", values)
    return np.asarray(categorical.codes), plain_levels(list(categorical.categories), name)


def _date_text(value: Any) -> str:
    return str(np.datetime_as_string(_instant(value), unit="auto"))


def _decoded(values: Any, name: str) -> tuple[Any, tuple[Any, ...] | None]:
    """Values without their categorical type, and its levels. Other values as they are."""
    if (categorical := category_codes(values, name)) is not None:
        return _by_code(*categorical), categorical[1]
    if hasattr(values, "get_chunks") and _type_name(values).endswith("int128"):  # which NumPy does not have
        return values.to_list(), None
    if hasattr(values, "get_chunks") and _type_name(values).startswith(("int", "uint")):
        return values, None
    if hasattr(values, "get_chunks"):  # polars, of whose categorical types only Enum has an order of its own
        if getattr(values.dtype, "time_zone", None) is not None:
            local = values.dt.replace_time_zone(None)
            check_local_times(name, local.n_unique() == values.n_unique())
            values = local
        ordered = getattr(values.dtype, "categories", None) if str(values.dtype).startswith("Enum") else None
        return values.to_numpy(), None if ordered is None else tuple(ordered.to_list())
    if hasattr(values, "dictionary") or str(getattr(values, "type", "")).startswith("dictionary"):  # pyarrow
        one = values.unify_dictionaries().combine_chunks() if hasattr(values, "chunks") else values
        levels = plain_levels(one.dictionary.to_pylist(), name)
        return _by_code(np.array(one.indices.fill_null(-1)), levels), levels
    if hasattr(values, "to_pylist") and not _type_name(values).startswith(NUMERIC):
        return values.to_pylist(), None
    return values, None


def _type_name(values: Any) -> str:
    """Return the name of the type of the entries: of a Series or an array of pandas, polars or pyarrow."""
    return str(getattr(values, "dtype", getattr(values, "type", ""))).lower()


def _by_code(codes: np.ndarray, levels: tuple[Any, ...]) -> np.ndarray:
    """Return the level of every code, None where the code is -1."""
    return objects((*levels, None))[codes]


def _utf8(array: np.ndarray, name: str) -> np.ndarray:
    """Return bytes as text."""
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        remedy = "Decode the column first."
        raise InputError(name, "must be text, or bytes in UTF-8", f"got {error.object!r}", remedy) from None


def _plain(array: np.ndarray, name: str) -> np.ndarray:
    """Return an object array as booleans, numbers or text, with None or NaN where entries are missing."""
    values = [None if _is_missing(v) else v for v in array.reshape(-1).tolist()]
    present = [v for v in values if v is not None]
    if any(isinstance(v, datetime) for v in present) and all(isinstance(v, date) for v in present):
        local = np.array([_instant(v) for v in values])
        zones = [v.utcoffset() if isinstance(v, datetime) else None for v in values]
        differ = {
            (t, zone) for t, zone, v in zip(local.tolist(), zones, values, strict=True) if v is not None
        }
        check_local_times(name, len(differ) == len({t for t, _ in differ}))
        return local.reshape(array.shape)
    if present and all(isinstance(v, timedelta) for v in present):
        return np.array([_duration(v) for v in values]).reshape(array.shape)
    kinds = [None if v is None else _kind(v, name, k) for k, v in enumerate(values)]
    kind, *others = dict.fromkeys(one for one in kinds if one is not None) or ["text"]
    if others:
        at = kinds.index(others[0])
        rule = "must be all numbers, all text or all booleans"
        value = f"it holds {present[0]!r}, and {values[at]!r}"
        raise InputError(name, rule, value, "Convert the column first.", at)
    if kind == "number":
        return _numbers(values, name).reshape(array.shape)
    if kind == "boolean" and None not in values:
        return np.array(values, dtype=bool).reshape(array.shape)
    out = [None if v is None else v if kind == "boolean" else str(v) for v in values]
    return objects(out).reshape(array.shape)


def _numbers(values: list[Any], name: str) -> np.ndarray:
    """Return numbers of any type as whole numbers if all are, or as float64 with NaN for None."""
    whole = [int(v) for v in values if isinstance(v, Integral)]
    size = max(map(abs, whole), default=0)
    if len(whole) == len(values) and size < 2**63:
        return np.array(values, dtype=np.int64)
    if len(whole) == len(values) and size < 2**64 and min(whole) >= 0:
        return np.array(values, dtype=np.uint64)
    for row, value in enumerate(values if size > 2**53 else ()):
        if isinstance(value, Integral) and (abs(int(value)) >= 2**1023 or int(float(value)) != value):
            rule = "must fit double precision beside fractions and missing entries"
            raise InputError(name, rule, f"it holds {value}", "Subtract an offset.", row)
    return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)


def _instant(value: Any) -> np.datetime64:
    """Return a date, or a time of a day in its own time zone, or None, as NumPy has it."""
    value = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    return value.to_datetime64() if hasattr(value, "to_datetime64") else np.datetime64(value or "NaT")


def _duration(value: Any) -> np.timedelta64:
    """Return a duration, or None, as NumPy has it."""
    if hasattr(value, "to_timedelta64"):  # pandas, whose durations have nanoseconds
        return value.to_timedelta64()
    return np.timedelta64("NaT" if value is None else value)


def _is_missing(value: Any) -> bool:
    """Return True if a value is None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real | Decimal) and value != value


def _kind(value: Any, name: str, row: int) -> str:
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Real | Decimal):
        return "number"
    if isinstance(value, str | date | datetime | time | timedelta | np.datetime64):
        return "text"
    rule = "must hold numbers, text, booleans or dates"
    raise InputError(name, rule, f"row {row + 1} holds a {type(value).__name__}", "Convert the column first.")
