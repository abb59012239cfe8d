"""Values of a column as a plain array, from lists, arrays, and columns of pandas, polars and pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from optdesign.errors import InputError

NUMERIC = ("int", "uint", "float", "double", "halffloat")
"""How the names of numeric types of pyarrow begin."""


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return values of any type, sequences included, as an array of objects with one dimension."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


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
        raise InputError(name, rule, f"got {list(levels)[:10]}", "Rename the categories.")
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
    values = [None if is_missing(v) else v for v in array.reshape(-1).tolist()]
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


def is_missing(value: Any) -> bool:
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
