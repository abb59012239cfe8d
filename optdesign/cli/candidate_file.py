"""Problems and designs in files: CSV, Parquet and NPZ.

A table has one candidate a row. Some columns are its features, one may name its group and one its parameter
block (labels of any kind, numbered here in sorted order), and a saved design has its ``weight`` and
``variance`` as well. An NPZ file holds the same as arrays: ``candidates`` (N, d) and, all optional,
``groups`` and ``parameter_blocks`` (N,), ``budgets`` (in the sorted order of the group labels), ``weights``
(N,), and ``features``, the names of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.cli import roles
from optdesign.cli.budgets import parse
from optdesign.cli.notices import counting
from optdesign.cli.roles import Label, LabelColumns
from optdesign.design.display import BLOCK, GROUP, RUN, VARIANCE, WEIGHT, joined, without_roundoff
from optdesign.errors import InputError
from optdesign.factors.formula import Model, named
from optdesign.plot import style
from optdesign.problem.candidates import from_table
from optdesign.problem.inputs import TWO_MEANINGS
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.files import atomic
from optdesign.tables.columns import Labels, Settings, check_exact, is_single, listed
from optdesign.tables.files import (
    Table,
    check_suffix,
    check_writable,
    is_exact,
    number,
    place,
    pyarrow,
    read_archive,
    read_table,
    row_names,
    stored_index,
    stored_levels,
    write_table,
    written,
)

SUFFIXES = (".csv", ".parquet", ".npz")


@dataclass(frozen=True)
class CandidateFile:
    """The problem in a file, and all its other columns, which are written back with the design."""

    candidates: np.ndarray
    features: tuple[str, ...]
    ignored: tuple[str, ...]
    """Columns that are not features because they are not numeric; none if the features were chosen."""
    group: str | None
    """The column of group labels, if there is one."""
    block: str | None
    groups: Labels
    blocks: Labels
    weights: np.ndarray | None
    columns: Table
    budgets: np.ndarray | None = None
    model: str | None = None
    """The formula that made the features, if there is one."""
    fitted: Model | None = None
    """The model of that formula."""
    factors: tuple[str, ...] = ()
    """Columns that identify candidates besides their labels: the factors of the model, or the features."""
    levels: dict[str, tuple[Any, ...]] | None = None
    """Levels of the factors whose column is categorical."""
    notes: tuple[str, ...] = ()
    """Notes on the file, in sentences."""
    rows: np.ndarray | None = None
    """Which rows of the file the candidates are, from 0, if not all of them."""
    assumed: str = ""
    """A sentence about columns that are labels only because of their names."""

    @property
    def numbers(self) -> np.ndarray:
        """The row of the file that every candidate is, from 1."""
        return 1 + (np.arange(len(self.candidates)) if self.rows is None else self.rows)

    def problem(self) -> DesignProblem:
        """Return the problem of these candidates; budgets that are not given are 1."""
        return DesignProblem(
            self.candidates,
            self.groups.numbers,
            self.blocks.numbers,
            self.budgets,
            names=self.features,
            settings=Settings({name: self.columns[name] for name in self.factors}, self.levels)
            if self.model and self.factors
            else None,
            group_names=None if self.group is None else self.groups.names.tolist(),
            parameter_block_names=None if self.block is None else self.blocks.names.tolist(),
            _single=any(is_single(self.columns[name]) for name in self.factors),
            _model=self.fitted,
        )

    def with_budgets(self, given: str, option: str = "--budget") -> CandidateFile:
        """Return the same candidates with budgets: see :func:`optdesign.cli.budgets.parse`."""
        return replace(self, budgets=parse(given, option, self.group, self.groups.names, self.columns))


def read(
    path: Path,
    *,
    group: Label = None,
    block: Label = None,
    features: Sequence[str] | None = None,
    model: str | None = None,
    where: str | None = None,
    fresh: bool = False,
) -> CandidateFile:
    """Read candidates from a CSV, Parquet or NPZ file.

    ``group`` and ``block`` name the columns of labels. None takes columns called "group" and
    "parameter_block", if there are any that neither ``features`` nor ``model`` names; without one, and with
    False, everything is one group, or one parameter block. ``features`` names the feature columns; left out,
    they are all numeric columns that are neither labels nor weight nor variance and do not only name the
    rows.
    With ``fresh``, a file that has a weight or a variance is refused: a design saved from it would lose them.

    With a ``model``, a formula, columns are factors instead, and the features are what the model makes of
    them; ``where``, a condition, says which rows are candidates.
    """
    roles.check_model(model, features, where)
    given = (group, block)
    if check_suffix(path, "the file of candidates", (*SUFFIXES, ".xlsx")) == ".npz":
        if model is not None:
            remedy = "Leave it out."
            raise InputError("--model", "needs a table of factors, .csv or .parquet", f"got {path}", remedy)
        return _from_arrays(read_archive(path), path, given, features, fresh)
    numbers = None if features is None else {*features, WEIGHT}
    in_model = set() if model is None else named(model)
    labels = roles.chosen(group, block, in_model | set(features or ()))
    text = {name for name in labels if name is not None and name not in in_model}
    columns = read_table(path, text=text, numbers=numbers)
    labels = roles.check_labels(columns, path, labels, given, features or [], fresh)
    unused = {*row_names(columns), *stored_index(path)}.difference(labels, features or ())
    if model is None:
        file = from_columns(columns, path, labels, features, unused)
    else:
        file = _from_factors(columns, path, labels, model, where)
    in_use = {*labels, *file.factors, *file.ignored}
    rows = [name for name in columns if name in unused and name not in in_use]
    return replace(
        file,
        notes=(
            *file.notes,
            *roles.notes(columns, labels, given, rows, file.factors if features or model else ()),
            *roles.doubtful(labels, file.groups, file.blocks),
        ),
        assumed=roles.assumed(labels, given),
    )


def check_outputs(
    out: Path | None, plot: Path | None, inputs: list[Path], *, force: bool, is_run_list: bool = False
) -> None:
    """Raise InputError, before the work is done, if outputs cannot be written or would overwrite an input."""
    for option, path in (("--out", out), ("--plot", plot)):
        if path is None:
            continue
        if path.exists() and any(file.exists() and path.samefile(file) for file in inputs):
            raise InputError(option, "must not be a file that is read", f"got {path}", "Choose another path.")
        if path is plot:
            check_suffix(path, option, style.SUFFIXES)
            style.require_matplotlib()
        elif is_run_list:
            check_suffix(path, "--out of a run list", SUFFIXES[:2])
            check_writable(path.with_name(path.name + ".json"), "the recipe of --out", force=force)
        else:
            check_suffix(path, option, SUFFIXES)
        if path.suffix.lower() == ".parquet":
            pyarrow()
        check_writable(path, option, force=force)


def check_kept(path: Path, source: CandidateFile) -> None:
    """Raise InputError if a file of a design would turn categories of numbers into numbers."""
    if source.fitted is None or path.suffix.lower() == ".npz":
        return
    categories = {factor.expr for factor in source.fitted.spec.factor_contrasts}
    for name in source.factors:
        if name in categories and source.columns[name].dtype.kind in "iuf":
            value = f"{name!r} has categories of numbers, which the file would have as numbers"
            remedy = f"Write C({name}) in the model, or the column as text."
            raise InputError("--out", "must keep the factors of the model", value, remedy)


def write(
    path: Path, source: CandidateFile, budgets: np.ndarray, weights: np.ndarray, variances: np.ndarray
) -> None:
    """Write the rows of a file with their weights and variances, in the format of the suffix.

    NPZ files hold the arrays named in the module's docstring and ``variances``; columns of a table that
    are neither features nor labels are not carried over to them.
    """
    with atomic(path) as temporary:
        if path.suffix.lower() == ".npz":
            np.savez(
                temporary,
                candidates=source.candidates,
                groups=_storable(source.groups),
                parameter_blocks=_storable(source.blocks),
                budgets=budgets,
                weights=weights,
                variances=variances,
                features=np.array(source.features),
            )
        else:
            rest = {k: v for k, v in source.columns.items() if k not in (WEIGHT, VARIANCE)}
            write_table(temporary, {**rest, WEIGHT: weights, VARIANCE: variances})


def write_runs(path: Path, source: CandidateFile, rows: np.ndarray) -> None:
    """Write a run list: the number of the run, and the row of the file that is run."""
    names = names_in_list(source.columns)
    taken = {name: without_roundoff(source.columns[own][rows]) for own, name in names.items()}
    with atomic(path) as temporary:
        write_table(temporary, {RUN: np.arange(1, len(rows) + 1), **taken})


def names_in_list(columns: Iterable[str]) -> dict[str, str]:
    """Return the names that columns of a file have in a run list, by their names in the file.

    A column that is called "run" is called "run_" in the list. A first column without a name, which names the
    rows, is left out: only a first column may have no name.

    >>> names_in_list(["run", "run_", "weight"])
    {'run': 'run_', 'run_': 'run__'}
    """
    kept = {name: name for name in columns if name not in ("", WEIGHT, VARIANCE)}
    return {own: name for name, own in joined({RUN: ""}, kept).items() if own}


def from_columns(
    columns: Table,
    path: Path,
    labels: LabelColumns,
    features: Sequence[str] | None,
    unused: Set[str] = frozenset(),
) -> CandidateFile:
    """Return candidates whose features are columns as they are; by default all numeric ones."""
    others = {*labels, WEIGHT, VARIANCE, *unused}
    categories = {name for name in stored_levels(path) if columns[name].dtype.kind in "biuf"}
    names = _infer(columns, path, others.union(categories)) if features is None else features
    roles.check_features(names, path, columns)
    for name in names:
        if name in categories:
            value = f"column {name!r} of {path} has categories"
            raise InputError(name, "must be numbers", value, "Write it as numbers, or use --model.")
    candidates = np.column_stack([_finite(columns, name, path) for name in names])
    return _labelled(
        columns,
        path,
        labels,
        candidates=candidates,
        features=tuple(names),
        ignored=tuple(k for k in columns if features is None and k not in {*others, *names}),
        factors=tuple(names),
        notes=() if features is not None else counting(candidates, names),
    )


def _from_factors(
    columns: Table, path: Path, labels: LabelColumns, model: str, where: str | None
) -> CandidateFile:
    """Return candidates whose features are made by a model."""
    table = {name: column for name, column in columns.items() if name not in (WEIGHT, VARIANCE)}
    made, rows = from_table(table, path, model, where=where)
    factors = made.model.factors
    kept = {name: column[rows] for name, column in columns.items()}
    return _labelled(
        kept,
        path,
        labels,
        candidates=made.features,
        features=made.names,
        ignored=tuple(k for k in table if k not in {*factors, *labels, *made.row_names}),
        model=model,
        fitted=made.model,
        factors=factors,
        levels={name: made.settings.levels[name] for name in factors if name in made.settings.levels},
        rows=rows,
        notes=(
            *(note for note in made.notes if note.startswith("only one level")),
            *made.doubtful_levels,
        ),
    )


def _labelled(columns: Table, path: Path, labels: LabelColumns, **parts: Any) -> CandidateFile:
    """Return candidates with the labels and the weights in the columns."""
    n = len(next(iter(columns.values())))
    groups, blocks = (roles.numbered(columns, name, n, path) for name in labels)
    weights = _finite(columns, WEIGHT, path) if WEIGHT in columns else None
    group, block = labels
    return CandidateFile(
        group=group, block=block, groups=groups, blocks=blocks, weights=weights, columns=columns, **parts
    )


def _from_arrays(
    arrays: Table, path: Path, given: tuple[Label, Label], features: Sequence[str] | None, fresh: bool
) -> CandidateFile:
    """Return the candidates of an archive, whose arrays become columns."""
    x = arrays.get("candidates", np.empty(0))
    if x.ndim != 2 or 0 in x.shape:
        rule = "must hold an array 'candidates' of shape (N, d), neither of them 0"
        value = f"it holds {', '.join(f'{name!r} {array.shape}' for name, array in arrays.items())}"
        remedy = "Save it as numpy.savez(path, candidates=...), one candidate a row."
        raise InputError(str(path), rule, value, remedy)
    if "blocks" in arrays and given[1] != "blocks":
        rule, value = "must not be called 'blocks'", "the word has two meanings"
        remedy = f"{TWO_MEANINGS} Rename the array to 'parameter_blocks' if it labels parameter blocks, "
        raise InputError(f"arrays in {path}", rule, value, remedy + "and drop it otherwise.")
    names = list(map(str, arrays.get("features", [f"x{j}" for j in range(x.shape[1])])))
    others = {WEIGHT: arrays["weights"]} if "weights" in arrays else {}
    for default, asked, key in zip((GROUP, BLOCK), given, ("groups", "parameter_blocks"), strict=True):
        if asked is not False and (asked or key) in arrays:
            others[asked or default] = arrays[asked or key]
    if len(set(names)) != x.shape[1] or others.keys() & set(names):
        rule = f"must name the {x.shape[1]} columns of candidates, and not be called {listed(others)}"
        remedy = "Leave the array out for x0, x1, ..."
        raise InputError(f"features in {path}", rule, f"got {listed(names)}", remedy)
    columns = {**dict(zip(names, x.T, strict=True)), **others}
    for name, column in columns.items():
        if column.shape != x.shape[:1]:
            rule = f"must have one entry per candidate, shape ({len(x)},)"
            remedy = "Give one for every row of candidates."
            raise InputError(f"{name} in {path}", rule, f"got {column.shape}", remedy)
    taken = names if features is None else features
    labels = roles.check_labels(columns, path, roles.chosen(*given, taken), given, taken, fresh)
    file = from_columns(columns, path, labels, taken)
    budgets = arrays.get("budgets")
    if budgets is not None and budgets.shape != file.groups.names.shape:
        rule = f"must have one entry per group, shape ({len(file.groups.names)},), in their sorted order"
        remedy = "Leave them out for budgets of 1."
        raise InputError(f"budgets in {path}", rule, f"got {budgets.shape}", remedy)
    return replace(file, budgets=budgets)


def _infer(columns: Table, path: Path, others: Set[str | None]) -> list[str]:
    """Return the numeric columns except the others. Raise InputError for numbers mixed with text."""
    names = []
    # A column that is not all numbers is taken for a mistaken feature if one of so many fields is one.
    sample = 1000
    for name, column in columns.items():
        if name in others:
            continue
        if column.dtype.kind in "biuf":
            names.append(name)
        elif any(number(written(v)) is not None for v in column[:sample]):
            remedy = "Correct it, or choose the feature columns with --features."
            raise InputError("features", "must be numbers", _first_text(column, name, path), remedy)
    return names


def _finite(columns: Table, name: str, path: Path) -> np.ndarray:
    """Return a column as finite floats."""
    column = columns[name]
    if column.dtype.kind not in "biuf":
        remedy = "Correct it or drop the row."
        raise InputError(name, "must be numbers", _first_text(column, name, path), remedy)
    values = column.astype(np.float64)
    if column.dtype.kind in "iu":
        check_exact(column, values, f"column {name!r} of {path}")
    for row in np.flatnonzero(~np.isfinite(values))[:1]:
        value = f"{place(path, row)}, column {name!r} of {path} holds {values[row]}"
        raise InputError(name, "must be finite", value, "Drop the row or fill in the entry.")
    return values


def _first_text(column: np.ndarray, name: str, path: Path) -> str:
    """Return the place of the first entry that is no number, or that double precision cannot hold."""
    at = next((k for k, v in enumerate(column) if number(written(v)) is None), None)
    why = ""
    if at is None:
        at = next((k for k, v in enumerate(column) if not is_exact(str(v))), None)
        why = ", which double precision cannot hold: subtract an offset" if at is not None else " as text"
        at = at or 0
    held = written(column[at])
    what = f"holds {held!r}{why}" if held.strip() else "is empty"
    return f"{place(path, at)}, column {name!r} of {path} {what}"


def _storable(labels: Labels) -> np.ndarray:
    """Return the label of every row, as an array that needs no pickling."""
    names = labels.names.astype(str) if labels.names.dtype == object else labels.names
    return names[labels.numbers]
