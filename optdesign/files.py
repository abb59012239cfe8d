"""Problems and designs in files: CSV, Parquet and NPZ.

A table has one candidate a row. Some columns are its features, one may name its group and one its block
(labels of any kind, numbered here in sorted order), and a saved design has its ``weight`` and ``variance``
as well. An NPZ file holds the same as arrays: ``candidates`` (N, d) and, all optional, ``groups`` and
``blocks`` (N,), ``budgets`` (in the sorted order of the group labels), ``weights`` (N,), and ``features``,
the names of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optdesign.problem import DesignProblem
from optdesign.tables import (
    Table,
    atomic,
    check_suffix,
    csv_rows,
    place,
    read_archive,
    read_table,
    write_table,
)

SUFFIXES = (".csv", ".parquet", ".npz")

WEIGHT, VARIANCE = "weight", "variance"
"""Columns of a saved design; never features."""

GROUP, BLOCK = "group", "block"
"""Columns that hold the labels unless others are named."""

SAMPLE = 1000
"""A column that is not all numbers is taken for a mistaken feature if one of so many fields is one."""


class Labels(NamedTuple):
    """A column of labels: the distinct ones, sorted, and the number of the one that every row has."""

    names: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class CandidateFile:
    """What a file says about a problem, and everything else in it, to be written back with the design."""

    candidates: np.ndarray
    features: tuple[str, ...]
    ignored: tuple[str, ...]
    """Columns that are not features because they are not numeric; none if the features were chosen."""
    group: str | None
    """The column of group labels, if there is one."""
    block: str | None
    groups: Labels
    blocks: Labels
    budgets: np.ndarray | None
    weights: np.ndarray | None
    columns: Table

    def problem(self) -> DesignProblem:
        """The problem of these candidates; budgets that are not given are 1."""
        return DesignProblem(self.candidates, self.groups.numbers, self.blocks.numbers, self.budgets)

    def with_budgets(self, given: str) -> CandidateFile:
        """The same candidates with budgets: the path of a file of them, or one number for every group."""
        number = _number(given)
        if number is not None:
            if not (number > 0 and isfinite(number)):
                raise ValueError(
                    f"--budget must be positive and finite, or a file; got {given}. Leave it out for 1."
                )
            return replace(self, budgets=np.full(len(self.groups.names), number))
        if self.group is None:
            raise ValueError(
                f"--budget {given} needs groups: name their column with --group; the columns are "
                f"{_listed(list(self.columns))}. Without groups, give one number, as in --budget 100."
            )
        return replace(self, budgets=read_budgets(Path(given), self.groups.names))


def read(
    path: Path,
    *,
    group: str | None = None,
    block: str | None = None,
    features: Sequence[str] | None = None,
    fresh: bool = False,
) -> CandidateFile:
    """Read candidates from a CSV, Parquet or NPZ file.

    ``group`` and ``block`` name the columns of labels; left out, columns called "group" and "block" are
    taken if there are any, and otherwise everything is one group, or one block. ``features`` names the
    feature columns; left out, they are all numeric columns that are neither labels nor weight nor variance.
    With ``fresh``, a file that has a weight or a variance is refused: a design saved from it would lose them.
    """
    if check_suffix(path, "the file of candidates", SUFFIXES) == ".npz":
        return _from_arrays(read_archive(path), path, group, block, features, fresh)
    numbers = None if features is None else {*features, WEIGHT}
    columns = read_table(path, text={group or GROUP, block or BLOCK}, numbers=numbers)
    return _from_columns(columns, path, group, block, features, fresh)


def read_budgets(path: Path, groups: np.ndarray) -> np.ndarray:
    """The budget of every group, from a file of two columns: group label and budget.

    A CSV file may start with a header or not.
    """
    header = False
    if path.suffix.lower() not in SUFFIXES[:2]:
        raise ValueError(
            f"--budget must be a number, or a file with two columns, group label and budget, that ends in "
            f"{' or '.join(SUFFIXES[:2])}; got {str(path)!r}."
        )
    if path.suffix.lower() == ".csv":
        rows = list(csv_rows(path))
        header = bool(rows) and len(rows[0]) == 2 and _number(rows[0][1]) is None
        rows = rows[header:]
    else:
        columns = read_table(path, text=set())
        rows = [list(map(_text, row)) for row in zip(*columns.values(), strict=True)]
    found: dict[str, float] = {}
    for at, row in enumerate(rows):
        if len(row) != 2:
            raise ValueError(
                f"--budget must have two columns, group and budget; {place(path, at, header)} of {path} has "
                f"{len(row)}. Drop the other columns."
            )
        label, value = row[0], _number(row[1])
        if value is None or not (value > 0 and isfinite(value)):
            raise ValueError(
                f"--budget must be positive numbers; {place(path, at, header)} of {path} gives group "
                f"{label!r} {row[1]!r}. "
                "Drop the group's candidates or give it a budget."
            )
        if label in found:
            raise ValueError(
                f"--budget must name each group once; {path} names {label!r} twice. Drop one of the rows."
            )
        found[label] = value
    known = list(map(_text, groups))
    missing = [label for label in known if label not in found]
    unknown = sorted(set(found).difference(known))
    if missing:
        also = f", but one for {_listed(unknown)}, which no candidate has" if unknown else ""
        raise ValueError(
            f"--budget must cover every group; {path} has no budget for {_listed(missing)}{also}. "
            f"{'Spell the labels alike' if unknown else 'Add a row'}."
        )
    if unknown:
        raise ValueError(
            f"--budget must name groups that have candidates; {path} names {_listed(unknown)}. "
            f"The groups are {_listed(known)}."
        )
    return np.array([found[label] for label in known])


def write(
    path: Path, source: CandidateFile, budgets: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> None:
    """Write the rows of a file with their weights and variances, in the format the suffix asks for.

    NPZ files hold the arrays named in the module's docstring and ``variances``; columns of a table that
    are neither features nor labels are not carried over to them.
    """
    suffix = check_suffix(path, "--out", SUFFIXES)
    with atomic(path) as temporary:
        if suffix == ".npz":
            np.savez(
                temporary,
                candidates=source.candidates,
                groups=_storable(source.groups),
                blocks=_storable(source.blocks),
                budgets=budgets,
                weights=weights,
                variances=variances,
                features=np.array(source.features),
            )
        else:
            rest = {k: v for k, v in source.columns.items() if k not in (WEIGHT, VARIANCE)}
            write_table(temporary, {**rest, WEIGHT: weights, VARIANCE: variances})


def _from_columns(
    columns: Table,
    path: Path,
    group: str | None,
    block: str | None,
    features: Sequence[str] | None,
    fresh: bool,
) -> CandidateFile:
    n = len(next(iter(columns.values()), ()))
    if n == 0:
        raise ValueError(f"{path} must have one candidate a row; it has no rows.")
    taken = [name for name in (WEIGHT, VARIANCE) if name in columns]
    if fresh and taken:
        raise ValueError(
            f"{path} must not have a column {taken[0]!r}: that is what a saved design adds. If it is your "
            f"data, rename it, say to 'body_{taken[0]}'; if {path} is a saved design, add --again."
        )
    group = GROUP if group is None and GROUP in columns else group
    block = BLOCK if block is None and BLOCK in columns else block
    for argument, wanted in (("--group", [group]), ("--block", [block]), ("--features", features or [])):
        for name in wanted:
            _require(columns, name, argument, path)
    for argument, wanted in (("--group", [group]), ("--block", [block]), ("--features", features or [])):
        for name in {WEIGHT, VARIANCE}.intersection(wanted):
            raise ValueError(
                f"{argument} must not be {name!r}, which is an output column. Rename yours in {path}, say to "
                f"'body_{name}'."
            )
    labels = (group, block, WEIGHT, VARIANCE)
    names = _infer(columns, path, labels) if features is None else features
    ignored = [] if features is not None else [k for k in columns if k not in (*labels, *names)]
    if not names:
        raise ValueError(
            f"there must be a feature, that is a column of numbers that is neither group, block, weight nor "
            f"variance; the columns of {path} are {_listed(list(columns))}. Choose with --features."
        )
    candidates = np.empty((n, len(names)))
    for j, name in enumerate(names):
        candidates[:, j] = _finite(columns, name, path)
    return CandidateFile(
        candidates=candidates,
        features=tuple(names),
        ignored=tuple(ignored),
        group=group,
        block=block,
        groups=_numbered(columns, group, n, path),
        blocks=_numbered(columns, block, n, path),
        budgets=None,
        weights=_finite(columns, WEIGHT, path) if WEIGHT in columns else None,
        columns=columns,
    )


def _from_arrays(
    arrays: Table,
    path: Path,
    group: str | None,
    block: str | None,
    features: Sequence[str] | None,
    fresh: bool,
) -> CandidateFile:
    if "candidates" not in arrays:
        raise ValueError(
            f"{path} must hold an array 'candidates'; it holds {_listed(list(arrays))}. "
            "Save it as numpy.savez(path, candidates=...)."
        )
    x = arrays["candidates"]
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            f"candidates in {path} must have shape (N, d), neither of them 0; got {x.shape}. "
            "Put one candidate a row."
        )
    names = list(map(str, arrays.get("features", [f"x{j}" for j in range(x.shape[1])])))
    if len(set(names)) != x.shape[1]:
        raise ValueError(
            f"features in {path} must name the {x.shape[1]} columns of candidates; got {_listed(names)}. "
            "Leave the array out for x0, x1, ..."
        )
    others = {}
    for default, given, key in ((GROUP, group, "groups"), (BLOCK, block, "blocks")):
        if (given or key) in arrays:
            others[given or default] = arrays[given or key]
    if "weights" in arrays:
        others[WEIGHT] = arrays["weights"]
    for name in others.keys() & set(names):
        raise ValueError(
            f"features in {path} must not be called {name!r}, as labels or weights are. Rename the feature."
        )
    columns = {**dict(zip(names, x.T, strict=True)), **others}
    for name, column in columns.items():
        if column.shape != x.shape[:1]:
            raise ValueError(
                f"{name} in {path} must have one entry per candidate, shape ({len(x)},); got {column.shape}. "
                "Give one for every row of candidates."
            )
    file = _from_columns(columns, path, group, block, names if features is None else features, fresh)
    budgets = arrays.get("budgets")
    if budgets is not None and budgets.shape != file.groups.names.shape:
        raise ValueError(
            f"budgets in {path} must have one entry per group, shape ({len(file.groups.names)},), in the "
            f"sorted order of the labels; got {budgets.shape}. Leave them out for budgets of 1."
        )
    return replace(file, budgets=budgets)


def _infer(columns: Table, path: Path, others: Sequence[str | None]) -> list[str]:
    """All numeric columns but the others. Numbers mixed with text are refused, lest a feature be lost."""
    names = []
    for name, column in columns.items():
        if name in others:
            continue
        if column.dtype.kind in "biuf":
            names.append(name)
        elif any(_number(_text(v)) is not None for v in column[:SAMPLE]):
            raise ValueError(
                f"features must be numbers; {_first_text(column, name, path)}. "
                "Correct it, or choose the feature columns with --features."
            )
    return names


def _require(columns: Iterable[str], name: str | None, argument: str, path: Path) -> None:
    if name is not None and name not in columns:
        raise ValueError(
            f"{argument} must name a column of {path}; there is no {name!r}{_meant(name, columns)}. "
            f"The columns are {_listed(list(columns))}."
        )


def _meant(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _finite(columns: Table, name: str, path: Path) -> np.ndarray:
    """A column as finite floats."""
    column = columns[name]
    if column.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers; {_first_text(column, name, path)}. Correct it or drop the row."
        )
    values = column.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"{name} must be finite; {place(path, bad[0])}, column {name!r} of {path} holds "
            f"{values[bad[0]]}. Drop the row or fill in the entry."
        )
    return values


def _first_text(column: np.ndarray, name: str, path: Path) -> str:
    at = next((k for k, v in enumerate(column) if _number(_text(v)) is None), 0)
    held = _text(column[at])
    return f"{place(path, at)}, column {name!r} of {path} {f'holds {held!r}' if held.strip() else 'is empty'}"


def _numbered(columns: Table, name: str | None, n: int, path: Path) -> Labels:
    """Number the labels of a column; without one, all rows have the label 0."""
    if name is None:
        return Labels(np.zeros(1, np.int64), np.zeros(n, np.int64))
    column = columns[name]
    empty = next((k for k, v in enumerate(column.tolist()) if v is None or v == "" or v != v), None)
    if empty is not None:
        raise ValueError(
            f"every row must have a label; {place(path, empty)}, column {name!r} of {path} is empty. "
            "Fill it in or drop the row."
        )
    if column.dtype != object:
        return Labels(*np.unique(column, return_inverse=True))
    texts = list(map(str, column))
    names = sorted(set(texts))
    number = {label: k for k, label in enumerate(names)}
    return Labels(np.array(names, dtype=object), np.fromiter(map(number.__getitem__, texts), np.int64, n))


def _storable(labels: Labels) -> np.ndarray:
    """The label of every row, as an array that needs no pickling."""
    names = labels.names.astype(str) if labels.names.dtype == object else labels.names
    return names[labels.numbers]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(value: Any) -> str:
    """A value as a CSV file would show it; whole numbers without a decimal point."""
    if isinstance(value, float | np.floating) and isfinite(value) and value == int(value):
        return str(int(value))
    return str(value)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(str(name)) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
