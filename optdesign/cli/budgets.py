"""Budgets on the command line: one number, labels with numbers, or a file of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path

import numpy as np

from optdesign.errors import InputError
from optdesign.tables.columns import listed
from optdesign.tables.files import csv_rows, number, place, read_table, separator, written
from optdesign.tables.marks import DECIMALS, Marks

TABLES = (".csv", ".parquet")


def parse(
    given: str, option: str, group: str | None, groups: np.ndarray, columns: Iterable[str]
) -> np.ndarray:
    """Return the budget of every group, in the order of the groups.

    ``given`` is one number for every group, labels with numbers as in ``A=12,B=8``, or the path of a file of
    two columns. ``group`` is the column of the labels, if there is one.
    """
    value = number(given)
    if value is not None:
        if not 0 < value < inf:
            remedy = "Leave it out for weights." if option == "--runs" else "Leave it out for 1."
            raise InputError(option, "must be positive and finite, or a file", f"got {given}", remedy)
        return np.full(len(groups), value)
    if group is None:
        rule = "needs groups: name their column with --group"
        remedy = f"Without groups, give one number, as in {option} 100."
        raise InputError(f"{option} {given}", rule, f"the columns are {listed(columns)}", remedy)
    if "=" in given and Path(given).suffix.lower() not in TABLES:
        pairs = [part.rpartition("=") for part in given.split(",")]
        rows = [[label.strip(), value] for label, _, value in pairs]
        return _matched(rows, groups, option, option, lambda k: f"pair {k + 1}")
    return read(Path(given), groups, option, group)


def read(path: Path, groups: np.ndarray, option: str = "--budget", group: str | None = None) -> np.ndarray:
    """Return the budget of every group, from a file of two columns: group label and budget.

    A CSV file may start with a header or not. The second column must not have the name of the column of
    labels, ``group``.
    """
    suffix, header, mark = path.suffix.lower(), False, ","
    if suffix not in TABLES:
        rule = "must be a number, labels with numbers as in A=12,B=8, or a file with two columns, group "
        rule += f"label and budget, that ends in {' or '.join(TABLES)}"
        raise InputError(option, rule, f"got {str(path)!r}")
    if suffix == ".csv":
        rows, mark = list(csv_rows(path)), separator(path)
        header = bool(rows) and len(rows[0]) == 2 and number(rows[0][1], mark) is None
        names = rows[0] if header else []
        rows = rows[header:]
        for sign in DECIMALS if mark != "," else ():
            marks = Marks(sign, ["budget"])
            marks.add("budget", [row[-1] for row in rows])
            marks.check(path, set())
    else:
        columns = read_table(path, text=set())
        names = list(columns)
        rows = [list(map(written, row)) for row in zip(*columns.values(), strict=True)]
    if group is not None and names[1:] == [group]:
        remedy = "Exchange the columns."
        raise InputError(option, "must have labels before budgets", f"{path} has {listed(names)}", remedy)
    return _matched(rows, groups, option, str(path), lambda k: f"{place(path, k, header)} of {path}", mark)


def _matched(
    rows: list[list[str]],
    groups: np.ndarray,
    option: str,
    source: str,
    at: Callable[[int], str],
    mark: str = ",",
) -> np.ndarray:
    """Return budgets in the order of the groups from pairs of label and budget; ``at(k)`` locates pair k."""
    found: dict[str, float] = {}
    for k, row in enumerate(rows):
        if len(row) != 2:
            rule = "must have two columns, group and budget"
            raise InputError(option, rule, f"{at(k)} has {len(row)}", "Drop others.")
        label, value = row[0], number(row[1], mark)
        if value is None or not 0 < value < inf:
            rule = "must be positive numbers"
            remedy = "Drop the group's candidates or give it a budget."
            raise InputError(option, rule, f"{at(k)} gives group {label!r} {row[1]!r}", remedy)
        if label in found:
            remedy = "Drop one."
            raise InputError(option, "must name each group once", f"{source} names {label!r} twice", remedy)
        found[label] = value
    known = list(map(written, groups))
    missing = [label for label in known if label not in found]
    unknown = sorted(set(found).difference(known))
    if missing or unknown:
        lacks = [f"no budget for {listed(missing)}"] if missing else []
        lacks += [f"one for {listed(unknown)}, which no candidate has"] if unknown else []
        rule = "must cover every group, and no other"
        remedy = f"Give one for each of {listed(known)}, spelled alike."
        raise InputError(option, rule, f"{source} has {', but '.join(lacks)}", remedy)
    return np.array([found[label] for label in known])
