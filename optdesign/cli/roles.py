"""Roles of the columns of a file: labels of groups and parameter blocks, names of rows, and everything else.

Columns called "group" and "parameter_block" are labels unless the model or the features name them, or the
caller switches this default off. A column called "block" is no label: a note explains how to use it.
Columns that only name rows are never features: the unnamed first column that ``write.csv`` of R and
``to_csv`` of pandas write, the index that pandas stores in a Parquet file, and a column called "index" or
"rownames" that counts the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from optdesign.design.display import BLOCK, GROUP, VARIANCE, WEIGHT
from optdesign.errors import InputError
from optdesign.tables.columns import Labels, listed, lookup, missing_label, times_as_text
from optdesign.tables.columns import number as number_labels
from optdesign.tables.files import Table, place

OPTIONS = {GROUP: "--group", BLOCK: "--parameter-block"}
"""Options that name the columns of labels, by the default names of these columns."""

Label = str | Literal[False] | None
"""A column of labels: its name, False for none, or None for the column with the default name, if any."""


MISSING = {"na", "n/a", "#n/a", "nan", "null", "none", "nat", "<na>", "-", "."}
"""Text that other programs write for missing entries, in lower case."""


def check_model(model: str | None, features: Sequence[str] | None, where: str | None) -> None:
    """Raise InputError for a condition without a model, and for features beside a model."""
    if model is None and where is not None:
        raise InputError("--where", "must come with --model", remedy="Delete the rows, or add --model.")
    if model is not None and features is not None:
        raise InputError("--features", "must be left out with --model, which names the columns it uses")


def check_features(features: Sequence[str], path: Path, columns: Iterable[str]) -> None:
    """Raise InputError if a file has no features."""
    if not features:
        rule = "must be a feature, that is a column of numbers that is neither group, parameter block, "
        value = f"the columns of {path} are {listed(columns)}"
        remedy = "Choose with --features, or say with --model how columns of text enter."
        raise InputError("there", f"{rule}weight nor variance", value, remedy)


class LabelColumns(NamedTuple):
    """The columns of labels, None if there are none."""

    group: str | None
    block: str | None


def chosen(group: Label, block: Label, named: Collection[str]) -> LabelColumns:
    """Return the columns of labels that are given, or else the default names that ``named`` does not have.

    >>> chosen("site", None, ["x"]), chosen(None, False, ["group"])
    (LabelColumns(group='site', block='parameter_block'), LabelColumns(group=None, block=None))
    """

    def one(given: Label, default: str) -> str | None:
        return given or (None if given is False or default in named else default)

    return LabelColumns(one(group, GROUP), one(block, BLOCK))


def check_labels(
    columns: Table,
    path: Path,
    labels: LabelColumns,
    given: tuple[Label, Label],
    features: Sequence[str],
    fresh: bool,
) -> LabelColumns:
    """Return the columns of labels that the file has. Columns that are ``given`` must exist."""
    if not len(next(iter(columns.values()), ())):
        raise InputError(str(path), "must have one candidate a row", "it has no rows")
    taken = [name for name in (WEIGHT, VARIANCE) if name in columns]
    if fresh and taken:
        rule = f"must not have a column {taken[0]!r}: that is what a saved design adds"
        remedy = f"If it is your data, rename it, say to 'body_{taken[0]}'; "
        raise InputError(str(path), rule, remedy=f"{remedy}if {path} is a saved design, add --again.")
    group, block = (
        name if wanted or name in columns else None for name, wanted in zip(labels, given, strict=True)
    )
    used = [(OPTIONS[GROUP], group), (OPTIONS[BLOCK], block), *(("--features", name) for name in features)]
    for argument, name in used:
        if name is None:
            continue
        lookup(columns, name, argument, str(path))
        if name in (WEIGHT, VARIANCE):
            rule = f"must not be {name!r}, which is an output column"
            raise InputError(argument, rule, remedy=f"Rename yours in {path}, say to 'body_{name}'.")
    return LabelColumns(group, block)


def notes(
    columns: Table,
    labels: LabelColumns,
    given: tuple[Label, Label],
    rows: Sequence[str],
    named: Collection[str],
) -> tuple[str, ...]:
    """Return sentences about columns whose names suggest another role than they have.

    ``rows`` are columns that only name rows, and ``named`` those that the model or the features name.
    """
    found = [
        f"column {default!r} is named by the model or the features, so it does not label {_words(default)}; "
        f"if it does both, add {OPTIONS[default]} {default}."
        for default, label, asked in zip((GROUP, BLOCK), labels, given, strict=True)
        if default in columns and label is None and asked is None
    ]
    found += [
        f"{f'column {name!r}' if name else 'the first column, which has no name,'} names the rows and is not "
        f"used; if it is data, {'rename it' if name else 'give it a name'}."
        for name in rows
    ]
    found += [
        f"column {name!r} is not a label by its name. If it is a blocking factor, make it a term of the "
        f"model, C({name}), and add --group {name} if the number of runs in each block is fixed. If every "
        f"label has parameters of its own, add --parameter-block {name}."
        for name in columns
        if name.lower() in ("block", "blocks") and name not in {*labels, *rows, *named}
    ]
    return tuple(found)


def _words(default: str) -> str:
    """Return the plural of what a default column labels."""
    return f"{default.replace('_', ' ')}s"


def doubtful(columns: LabelColumns, *labels: Labels) -> tuple[str, ...]:
    """Return sentences about labels that other programs write for missing entries."""
    return tuple(
        f"{str(label)!r} in column {column!r} is a label like others; if it stands for a missing label, fill "
        "it in or drop the row."
        for column, (names, _) in zip(columns, labels, strict=True)
        for label in names.tolist()
        if column is not None and str(label).strip().lower() in MISSING
    )


def assumed(labels: LabelColumns, given: tuple[Label, Label]) -> str:
    """Return a sentence about columns that are labels because of their names, or an empty string."""
    found = [
        f" Column {label!r} was taken as the label of {_words(label)} because of its name; "
        f"--no-{OPTIONS[label].removeprefix('--')} ignores it."
        for label, asked in zip(labels, given, strict=True)
        if label is not None and asked is None
    ]
    return "".join(found)


def numbered(columns: Table, name: str | None, n: int, path: Path) -> Labels:
    """Assign numbers to the labels of a column. Without a column, all rows have the label 0."""
    if name is None:
        return Labels(np.zeros(1, np.int64), np.zeros(n, np.int64))
    column = columns[name]
    empty = missing_label(column)
    if empty is not None:
        value = f"{place(path, empty)}, column {name!r} of {path} is empty"
        raise InputError("every row", "must have a label", value, "Fill it in or drop the row.")
    column = times_as_text(column)
    return number_labels(column if column.dtype != object else np.array(list(map(str, column)), dtype=object))
