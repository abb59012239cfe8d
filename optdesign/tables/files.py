"""Columns in files: CSV and Parquet tables and NPZ archives, read and written.

A table is a dict of columns of equal length: integers, floats or text. Columns of a CSV file are separated by
commas, semicolons or tabs, whichever its header has; where they are not commas, numbers may have decimal
commas. Whole numbers that double precision cannot hold stay text. Defects of a file raise a ValueError or an
OSError. Files that are written appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import zipfile
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import IO, Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime.optional import optional
from optdesign.tables.columns import listed
from optdesign.tables.marks import DECIMAL_COMMA, DECIMALS, Marks
from optdesign.tables.values import check_local_times
from optdesign.tables.values import column as plain_column
from optdesign.tables.workbooks import read_workbook, row_in_sheet

SEPARATORS = ",;\t"
"""Possible separators of the columns of a CSV file. The most frequent one in its header is used."""

FOREIGN = re.compile(
    r"\s*[-+\u2212($\u20ac\u00a3\u00a5]*\s*\d[\d.,'\u2019_\s]*([eEdD][-+]?\d+)?[-%)$\u20ac\u00a3\u00a5]*\s*"
)
"""Text that may be meant as a number: 1,5 in a file that has commas between columns, or 1.000,5 or 10 %."""

CSV_ROWS = 4096
"""Rows of a CSV file that are converted at a time."""

ROW_NAMES = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?")
"""Names of columns that only name rows: the empty name of a CSV file, and its forms in pandas and pyarrow."""

COUNTERS = re.compile(r"index|level_0|row_?names?", re.IGNORECASE)
"""Names of columns that only name rows if they count them; ``reset_index`` of pandas makes such columns."""

SHORTEST_COUNT = 3
"""Rows from which on a column can count them."""

UNNAMED = "\0"
"""Begins the stand-in for the name of a column that has none and is not the first."""

Table = dict[str, np.ndarray]


def read_table(path: Path, *, text: set[str], numbers: set[str] | None = None) -> Table:
    """Return the columns of a CSV or Parquet file.

    Columns of a CSV file that are named in ``text`` stay text unless all are integers, so that a label
    comes out as it went in; if ``numbers`` is given, no other columns are converted to numbers.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _read_csv(path, text, numbers)
    return read_workbook(path) if suffix == ".xlsx" else _read_parquet(path)


def refuse_saved_design(columns: Collection[str], argument: str) -> None:
    """Raise InputError if a table, whose features are not named, has the columns of a saved design."""
    if "weight" in columns and "variance" in columns:
        value = "the columns 'weight' and 'variance' are those of a saved design"
        remedy = "Drop them, or rename them if they are features."
        raise InputError(argument, "must have features", value, remedy)


def row_names(columns: Mapping[str, np.ndarray]) -> list[str]:
    """Return the columns that only name rows, by their names, or by their names and because they count.

    >>> row_names({"": np.array([5, 7, 8]), "Unnamed: 0": np.array([5, 7, 8]), "Unnamed": np.zeros(3)})
    ['', 'Unnamed: 0']
    >>> row_names({"index": np.arange(3)}), row_names({"index": np.array([1.3, 1.5, 1.4])})
    (['index'], [])
    """
    return [
        name
        for name, values in columns.items()
        if ROW_NAMES.fullmatch(name) or (COUNTERS.fullmatch(name) and counts(values))
    ]


def counts(values: np.ndarray) -> bool:
    """Return True if the values are 0, 1, 2, ... or 1, 2, 3, ..."""
    if values.dtype.kind not in "iuf" or len(values) < SHORTEST_COUNT or values[0] not in (0, 1):
        return False
    return np.array_equal(values - values[0], np.arange(len(values)))


def stored_index(path: Path) -> set[str]:
    """Return the columns of a Parquet file that pandas wrote as the index of a frame."""
    if path.suffix.lower() != ".parquet":
        return set()
    metadata = pyarrow().parquet.read_schema(path).pandas_metadata or {}
    return {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}


def stored_levels(path: Path) -> dict[str, tuple[Any, ...]]:
    """Return the levels of the categorical columns of a Parquet file, in their order, by name."""
    if path.suffix.lower() != ".parquet":
        return {}
    arrow = pyarrow()
    schema = written_schema(arrow.parquet.read_metadata(path))
    names = [field.name for field in schema if arrow.types.is_dictionary(field.type)]
    levels = {}
    for name in names:
        values, own = plain_column(arrow.parquet.read_table(path, columns=[name])[name], name)
        if own is None:  # a file keeps the categories of text only
            own = tuple(sorted({v for v in values.tolist() if v is not None and v == v}))
        levels[name] = own
    return levels


def written_schema(metadata: Any) -> Any:
    """Return the schema of the table that a Parquet file was written from.

    pyarrow returns columns with categories of numbers as plain numbers. They are categorical in this schema.
    """
    arrow, schema = pyarrow(), metadata.schema.to_arrow_schema()
    stored = (metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return schema
    types = {field.name: field.type for field in arrow.ipc.read_schema(arrow.py_buffer(b64decode(stored)))}
    for k, field in enumerate(schema):
        own = types.get(field.name, field.type)
        if arrow.types.is_dictionary(own) and own.value_type == field.type and is_numeric(field.type):
            schema = schema.set(k, field.with_type(own))
    return schema


def is_numeric(kind: Any) -> bool:
    """Return True if a type of pyarrow is one of numbers or booleans."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def write_table(path: Path, columns: Table) -> None:
    """Write columns to a CSV or Parquet file."""
    if path.suffix.lower() == ".csv":
        _write_csv(path, columns)
    else:
        arrow = pyarrow()
        arrow.parquet.write_table(arrow.table({k: arrow.array(v) for k, v in columns.items()}), path)


def read_archive(path: Path) -> Table:
    """Return the arrays of an NPZ file."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        rule = f"must be an NPZ archive of plain arrays ({error})"
        raise InputError(str(path), rule, remedy="Write it with numpy.savez.") from None
    # Text may be stored as bytes.
    return {k: plain_column(v, k)[0] if v.dtype.kind == "S" else v for k, v in arrays.items()}


def csv_rows(path: Path) -> Iterator[list[str]]:
    """Return the rows of a CSV file that are not blank."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield from filter(None, _reader(file, path))
    except UnicodeDecodeError as error:
        remedy = "Save it again as UTF-8."
        raise InputError(str(path), f"must be text in UTF-8 ({error.reason})", remedy=remedy) from None
    except csv.Error as error:
        raise InputError(str(path), f"must be a CSV file ({error})", remedy="Export it again.") from None


def _reader(file: IO[str], path: Path) -> Any:
    """Return the reader of a CSV file, which raises csv.Error for quotes that are not closed."""
    return csv.reader(file, delimiter=separator(path), skipinitialspace=True, strict=True)


def separator(path: Path) -> str:
    """Return the separator of a CSV file, from its first line that is not blank."""
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        first = next((line for line in file if line.strip()), "")
    outside = re.sub(r'"[^"]*"', "", first)
    return max(SEPARATORS, key=outside.count)


def number(text: str, separator: str = ",") -> float | None:
    """Return the number in a field, or None. A decimal comma needs another separator of columns.

    >>> number("1.5"), number("1,5"), number("1,5", ";"), number("1.234,5", ";")
    (1.5, None, 1.5, None)
    """
    if "_" in text:  # which float skips: 1_2 is a label
        return None
    if separator != "," and DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


def looks_numeric(text: str) -> bool:
    """Return True if a field that holds no number may be meant as one, written in another way.

    >>> looks_numeric("1,5"), looks_numeric("$1.000,5"), looks_numeric("2x"), looks_numeric("1.5")
    (True, True, False, False)
    """
    return number(text) is None and FOREIGN.fullmatch(text) is not None


def written(value: Any) -> str:
    """Return a value as a CSV file would show it; whole numbers without a decimal point."""
    if isinstance(value, float | np.floating) and isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


def is_exact(text: str) -> bool:
    """Return True if a field that holds a number is none, or one that double precision holds, if it is whole.

    >>> is_exact("9007199254740993.0"), is_exact("9007199254740992"), is_exact("0.1")
    (False, True, True)
    """
    try:
        return int(re.sub(r"\.0*\s*$", "", text)) == int(float(text))
    except (ValueError, OverflowError):
        return True


def place(path: Path, row: int, header: bool = True) -> str:
    """Return the place of row ``row`` of a file: as an editor numbers the lines, or a sheet its rows."""
    if path.suffix.lower() == ".xlsx":
        return f"row {row_in_sheet(path, row + header)}"
    if path.suffix.lower() != ".csv":
        return f"row {row + 1}"
    left = row + header
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = _reader(file, path)
        before = 0
        for fields in reader:
            if fields and left == 0:
                break
            left -= bool(fields)
            before = reader.line_num
    return f"line {before + 1}"


def check_suffix(path: Path, argument: str, known: Sequence[str]) -> str:
    """Return the suffix of a path in lower case, if it is a known one."""
    suffix = path.suffix.lower()
    if suffix not in known:
        export = "Export the sheet as .csv." if suffix.startswith(".xls") else "Rename the file."
        raise InputError(argument, f"must end in {' or '.join(known)}", f"got {str(path)!r}", export)
    return suffix


def check_writable(path: Path, argument: str, *, force: bool) -> None:
    """Refuse a path that cannot be written, or exists without force, before any work is done for it."""
    folder = path.resolve().parent
    wrong = ""
    if path.is_dir():
        wrong = "is a directory"
    elif not folder.is_dir():
        wrong = "lies in a directory that does not exist"
    elif not os.access(folder, os.W_OK | os.X_OK):
        wrong = "lies in a directory that you may not write to"
    if wrong:
        rule = "must be a file in an existing directory"
        raise InputError(argument, rule, f"{str(path)!r} {wrong}", "Choose another path.")
    if path.exists() and not force:
        remedy = "Add --force to overwrite it."
        raise InputError(argument, "must be a new file", f"{str(path)!r} exists", remedy)


def pyarrow() -> Any:
    """Return the module pyarrow with its submodules parquet and compute."""
    names = ("pyarrow.parquet", "pyarrow.compute", "pyarrow")
    return [optional(name, "Parquet files need", "parquet") for name in names][-1]


def _read_parquet(path: Path) -> Table:
    arrow = pyarrow()
    try:
        table = arrow.parquet.read_table(path)
    except arrow.ArrowInvalid as error:
        if "Multiple matches" in str(error):
            value = "one name occurs twice"
            raise InputError(str(path), "must name each column once", value, "Rename it.") from None
        rule = "must be a Parquet file with one candidate a row"
        remedy = "Write it anew, or name it .csv if that is what it is."
        raise InputError(str(path), rule, f"it is none ({error})", remedy) from None
    return plain_table(table, path)


def plain_table(table: Any, path: Path) -> Table:
    """Return the columns of a table of pyarrow that was read from a path."""
    arrow, columns = pyarrow(), {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if arrow.types.is_binary(column.type) or arrow.types.is_large_binary(column.type):
            with contextlib.suppress(arrow.ArrowInvalid):  # bytes that are no text stay as they are
                column = column.cast(arrow.string())
        if arrow.types.is_decimal(column.type):
            columns[name] = plain_column(column, name)[0]  # correctly rounded, which cast is not
            continue
        if arrow.types.is_timestamp(column.type) and column.type.tz is not None:
            local = arrow.compute.local_timestamp(column)
            distinct = arrow.compute.count_distinct
            check_local_times(f"column {name!r} of {path}", distinct(local) == distinct(column))
            column = local
        if arrow.types.is_integer(column.type) and column.null_count:
            columns[name] = plain_column(column, name)[0]  # raises ValueError if float64 would round
            continue
        columns[name] = column.to_numpy()
    return columns


def _read_csv(path: Path, text: set[str], numbers: set[str] | None) -> Table:
    rows, mark = csv_rows(path), separator(path)
    names = _header(next(rows, []), path)
    plain = {name for name in names if name in text or (numbers is not None and name not in numbers)}
    parts: dict[str, list[Any]] = {name: [] for name in names}
    marks = [Marks(sign, [name for name in names if name not in plain]) for sign in DECIMALS if mark != ","]
    done = 0
    while chunk := list(islice(rows, CSV_ROWS)):
        if set(map(len, chunk)) != {len(names)}:
            at = next(k for k, row in enumerate(chunk) if len(row) != len(names))
            rule = f"must have {len(names)} fields in every row, as in its header"
            remedy = f"Quote fields that contain {mark!r}."
            raise InputError(str(path), rule, f"{place(path, done + at)} has {len(chunk[at])}", remedy)
        for name, fields in zip(names, zip(*chunk, strict=True), strict=True):
            for one in marks:
                one.add(name, fields)
            if name not in plain:
                values = _numbers(fields, mark)
                if values is not None:
                    parts[name].append(values)
                    continue
                if done:
                    # The rows before were numbers, and their text is gone: read again, keeping it.
                    return _read_csv(path, text | plain | {name}, numbers)
                plain.add(name)
            parts[name].extend(fields)
        done += len(chunk)
    for one in marks:
        one.check(path, plain)
    for name in [name for name in names if name.startswith(UNNAMED)]:
        if any(str(value).strip() for part in parts.pop(name) for value in np.atleast_1d(part)):
            rule = "must name every column"
            remedy = "Name it, or delete it."
            raise InputError(str(path), rule, f"column {names.index(name) + 1} has no name", remedy)
    return {
        name: _text_column(values, name in text) if name in plain else _number_column(values)
        for name, values in parts.items()
    }


def _numbers(fields: Sequence[str], mark: str) -> np.ndarray | None:
    """Fields as numbers, or None if one of them is none or would be rounded to another whole number."""
    try:
        values = np.fromiter(map(float, fields), np.float64, len(fields))
    except ValueError:
        values = None
    if values is None or any("_" in field for field in fields):
        read = [number(field, mark) for field in fields]
        if None in read:
            return None
        values = np.array(read, dtype=np.float64)
    large = np.flatnonzero(np.abs(values) >= 2.0**53)
    return values if all(is_exact(fields[k]) for k in large.tolist()) else None


def _header(row: list[str], path: Path) -> list[str]:
    names = [name.strip() for name in row]
    names[1:] = [name or f"{UNNAMED}{k}" for k, name in enumerate(names[1:], 2)]
    if not names:
        raise InputError(str(path), "must have a header and one candidate a row", "it is empty")
    named = [name for name in names if name and not name.startswith(UNNAMED)]
    # Frames without names of their own number their columns: 0, 1, 2.
    if any(not name.isdecimal() for name in named) and all(number(name, ";") is not None for name in named):
        remedy = "Name the columns."
        raise InputError(str(path), "must have a header", f"its first line holds {listed(named)}", remedy)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        remedy = "Rename one of them."
        raise InputError(str(path), "must name each column once", f"{twice!r} occurs twice", remedy)
    return names


def _text_column(values: list[str], label: bool) -> np.ndarray:
    # Labels such as 007 and 1.0 would not come out as they went in: they stay text.
    if label and all(
        v.removeprefix("-").isdecimal() and v == str(int(v)) and len(v) < 19 for v in set(values)
    ):
        return np.array(list(map(int, values)), dtype=np.int64)
    return np.array(values, dtype=object)


def _number_column(parts: list[np.ndarray]) -> np.ndarray:
    """Join the parts; whole numbers that double precision holds exactly become integers again."""
    column = np.concatenate([np.empty(0), *parts])
    with np.errstate(invalid="ignore"):
        whole = column.astype(np.int64)
    return whole if np.all((whole == column) & (np.abs(column) < 2.0**53)) else column


def _write_csv(path: Path, columns: Table) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        cells = (cell for column in columns.values() if column.dtype == object for cell in column)
        # Readers skip spaces at the beginning of text without quotes.
        has_space = any(isinstance(cell, str) and cell.startswith(" ") for cell in cells)
        quoting: Any = csv.QUOTE_NONNUMERIC if has_space else csv.QUOTE_MINIMAL
        writer = csv.writer(file, quoting=quoting, lineterminator="\n")
        writer.writerow(columns)
        values = [v if v.dtype.kind in "biufO" else v.astype(str) for v in columns.values()]
        for start in range(0, len(values[0]), CSV_ROWS):
            writer.writerows(zip(*(v[start : start + CSV_ROWS].tolist() for v in values), strict=True))
