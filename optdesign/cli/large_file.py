"""Candidates that stay on disk, from the shell: directories, memory maps and large Parquet files.

The options are those of other files. The report and ``--out`` have the rows with weight, which are few.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optdesign.cli import budgets, roles
from optdesign.cli.candidate_file import SUFFIXES, CandidateFile
from optdesign.cli.options import ColumnOptions
from optdesign.design.display import VARIANCE, WEIGHT
from optdesign.design.large import LargeResult
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.factors.formula import named
from optdesign.problem.large import LargeProblem
from optdesign.runtime.files import atomic
from optdesign.runtime.progress import waiting
from optdesign.sources.modelled import LargeCandidates, modelled, selected
from optdesign.sources.parquet import NUMBERS, ParquetEngine, ParquetFiles, family, parquet_files
from optdesign.tables.columns import Labels
from optdesign.tables.files import Table, write_table
from optdesign.tables.values import objects


class LargeFile:
    """The problem in files that stay on disk."""

    def __init__(self, path: Path, options: ColumnOptions, where: str | None, *, fresh: bool) -> None:
        self.path, self.options = path, options
        self.labels = roles.LabelColumns(None, None)
        self.notes: tuple[str, ...] = ()
        self.ignored: tuple[str, ...] = ()
        self.features: tuple[str, ...] = ()
        self.assumed = ""
        candidates: Any = path
        if path.suffix.lower() == ".parquet" or parquet_files(path):
            candidates = self._parquet(ParquetFiles(path), where, fresh)
        else:
            self._refuse_options(where)
        with waiting("reading all rows for the rank of every parameter block"):
            self.problem = LargeProblem(candidates, *self.labels, _budgets=self._budgets)
        if self.problem.names is not None:
            self.features = self.problem.names

    def _refuse_options(self, where: str | None) -> None:
        """Raise InputError for options that name columns, which arrays do not have."""
        given = {**vars(self.options), "where": where}
        for name in ("model", "group", "parameter_block", "features", "where"):
            if given[name] is not None:
                value = f"{self.path} has arrays"
                remedy = "Write Parquet files."
                raise InputError(f"--{name.replace('_', '-')}", "needs files with columns", value, remedy)

    def _parquet(self, files: ParquetFiles, where: str | None, fresh: bool) -> LargeCandidates:
        """Return the candidates of Parquet files; set the roles of their columns."""
        options, types = self.options, files.types
        model, features = options.model, options.feature_names
        roles.check_model(model, features, where)
        given = options.labels
        in_model = set() if model is None else named(model)
        names: Table = {name: np.empty(1) for name in types}
        labels = roles.chosen(*given, in_model | set(features or ()))
        self.labels = roles.check_labels(names, self.path, labels, given, features or [], fresh)
        self.assumed = roles.assumed(self.labels, given)
        if model is not None:
            made = modelled(files, model, where)
            assert made.model is not None
            self.ignored = tuple(
                k for k in types if k not in {*made.model.factors, *self.labels, WEIGHT, VARIANCE}
            )
            self.notes = roles.notes(names, self.labels, given, (), made.model.factors)
            return made
        rows = files.row_names({*self.labels, *(features or ())})
        others = [k for k in types if k not in {*self.labels, WEIGHT, VARIANCE, *rows}]
        if features is None:
            features = [name for name in others if family(types[name]) == NUMBERS]
            self.ignored = tuple(name for name in others if name not in features)
        roles.check_features(features, self.path, types)
        self.notes = roles.notes(names, self.labels, given, rows, features)
        return selected(files, features)

    def _budgets(self, names: tuple[Any, ...] | None) -> Any:
        """Return the budgets that are given for the groups of some names."""
        if self.options.budget is None:
            return None
        given, group = self.options.budget, self.labels.group
        columns = filter(None, (*self.features, *self.labels, *self.ignored))
        return budgets.parse(given, "--budget", group, _objects(names), columns)

    def with_weight(self, result: LargeResult) -> tuple[CandidateFile, DesignResult]:
        """Return the rows with weight, and the design on them, as a file in memory has them."""
        small = result.in_memory()
        part: Any = small.problem
        engine: Any = self.problem.engine
        if isinstance(engine, ParquetEngine):
            rows, columns = engine.table(part.pool.rows)
        else:
            rows, columns = part.pool.rows, {f"x{j}": part.pool.x[:, j] for j in range(part.dim)}
        model = engine.layout.model if isinstance(engine, ParquetEngine) else None
        features = self.features or tuple(columns)
        groups = Labels(_objects(part.group_names), part.groups)
        blocks = Labels(_objects(part.parameter_block_names), part.parameter_blocks)
        source = CandidateFile(
            candidates=part.pool.x, features=features, ignored=self.ignored, group=self.labels.group,
            block=self.labels.block, groups=groups, blocks=blocks, weights=None, columns=columns,
            model=self.options.model, factors=features if model is None else model.factors,
            notes=self.notes, rows=rows, assumed=self.assumed,
        )  # fmt: skip
        return source, small


def _objects(names: tuple[Any, ...] | None) -> np.ndarray:
    """Return names of groups, or of the only one."""
    return objects(names or (0,))


def check_options(runs: str | None, plot: Path | None, out: Path | None) -> None:
    """Raise InputError for options that need all candidates in memory."""
    remedy = "Save the rows with weight, --out rows.csv, and solve these."
    for option, value in (("--runs", runs), ("--plot", plot)):
        if value is not None:
            rule = "must be left out for candidates larger than memory"
            raise InputError(option, rule, f"got {value}", remedy)
    if out is not None and out.suffix.lower() not in SUFFIXES[:2]:
        rule = "must end in .csv or .parquet for candidates larger than memory"
        raise InputError("--out", rule, f"got {str(out)!r}", "Rename the file.")


def write(path: Path, source: CandidateFile, result: DesignResult) -> None:
    """Write the rows with weight, with their number in all files, counted from 1, weight and variance."""
    keep = result.weights > 0
    taken = {k: v[keep] for k, v in source.columns.items() if k not in (WEIGHT, VARIANCE)}
    name = "row"
    while name in taken:
        name += "_"
    ours = {WEIGHT: result.weights[keep], VARIANCE: result.variances[keep]}
    with atomic(path) as temporary:
        write_table(temporary, {name: source.numbers[keep], **taken, **ours})
