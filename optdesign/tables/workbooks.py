"""Tables in Excel workbooks: the first sheet, with the names of the columns in its first row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime.optional import optional
from optdesign.tables.values import column


def read_workbook(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of the first sheet of an .xlsx file; rows without any entry are left out."""
    numbered = _rows(path)
    rows = list(numbered.values())
    names = [] if not rows else ["" if v is None else str(v).strip() for v in rows[0]]
    while names and not names[-1] and all(row[len(names) - 1] is None for row in rows):
        names.pop()
    if not names or "" in names[1:] or len(set(names)) < len(names):
        rule = "must name each column once, in the first row of its first sheet"
        remedy = "Name every column, and rename one of those that occur twice."
        raise InputError(str(path), rule, f"the first row has {names}", remedy)
    cells = zip(*(row[: len(names)] for row in rows[1:]), strict=True)
    columns = list(cells) or [()] * len(names)
    try:
        return {name: column(list(values), name)[0] for name, values in zip(names, columns, strict=True)}
    except InputError as error:
        if error.row is None:
            raise
        raise error.replace(place=f"row {list(numbered)[error.row + 1]} of {path}") from None


def row_in_sheet(path: Path, row: int) -> int:
    """Return the number in the first sheet, from 1, of a row, counted from 0 without rows without entries."""
    return list(_rows(path))[row]


def _rows(path: Path) -> dict[int, tuple[Any, ...]]:
    """Return the rows of the first sheet that have an entry, by their number in the sheet, from 1."""
    library = optional("openpyxl", "Excel files need", "excel")
    try:
        book = library.load_workbook(path, read_only=True, data_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # errors of zipfile, xml and openpyxl
        remedy = "Save it as .xlsx or .csv."
        raise InputError(str(path), "must be an Excel workbook", f"it is none ({error})", remedy) from None
    rows = enumerate(book.worksheets[0].iter_rows(values_only=True), 1)
    found = {k: row for k, row in rows if any(v is not None for v in row)}
    book.close()
    return found
