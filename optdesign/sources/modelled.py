"""Candidates that a formula makes of Parquet files, chunk by chunk.

One pass surveys the columns that the formula names: their levels, and rows that have them. The model is
fitted on these rows, which are few and have every level, so it is that of all rows. A formula that learns
more than levels from the rows, or that does not work row by row, would give other features in every chunk. It
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.conditions import meeting
from optdesign.factors.formula import Model, fit
from optdesign.sources.layout import Place, objects, settings_of
from optdesign.sources.parquet import CATEGORIES, Batch, ParquetEngine, ParquetFiles, family
from optdesign.tables.columns import Settings, listed, lookup
from optdesign.tables.files import number

LEVELS = 1000
"""Columns of numbers with up to this many distinct values may be categories."""

TEXT_LEVELS = 100_000
"""Largest number of levels of a column of text."""

DRAWN = 64
"""Rows of the first batch on which the model is fitted besides those with the levels."""

CHECKED = 16
"""Rows whose features are computed one by one, to see if the formula works row by row."""


@dataclass(frozen=True, eq=False, repr=False)
class LargeCandidates:
    """Candidates in Parquet files: some of their columns, or what a model makes of them."""

    files: ParquetFiles
    model: Model | None = None
    features: tuple[str, ...] | None = None
    where: str | None = None
    in_where: tuple[str, ...] = field(default=())

    def open(self, groups: Any, parameter_blocks: Any) -> ParquetEngine:
        """Return the engine of these candidates."""
        return ParquetEngine(
            self.files, groups, parameter_blocks, features=self.features, model=self.model, where=self.where,
            in_where=self.in_where,
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.features if self.model is None else self.model.names

    def __repr__(self) -> str:
        names = "" if self.names is None else f": {', '.join(self.names)}"
        return f"LargeCandidates({len(self.files.files)} files{names})"


def modelled(
    files: ParquetFiles, formula: str, where: Any = None, coded: bool | Iterable[str] = False
) -> LargeCandidates:
    """Return the candidates that a formula makes of the rows of Parquet files that meet a condition."""
    if where is not None and not isinstance(where, str):
        raise InputError(
            "where",
            "must be an expression for candidates larger than memory",
            f"got {type(where).__name__}",
            'Write it as text: "temp <= 40".',
        )
    if not isinstance(formula, str):
        raise TypeError(f"model must be a formula; got {type(formula).__name__}. Pass text such as '~ temp'.")
    # A "." stands for all columns.
    named = files.types if re.search(r"(^|[~+\s])\.($|[+\s])", formula) else _words(formula, files.types)
    columns = tuple(named or files.types)
    in_where = () if where is None else tuple(_words(where, files.types))
    for name in columns:
        if family(files.types[name]) == CATEGORIES:
            raise InputError(
                "factors of candidates larger than memory",
                "must be numbers or text",
                f"column {name!r} has categories of numbers",
                "Write it as text, or as numbers if the model has a slope for it.",
            )
    survey = _Survey(columns, where, in_where)
    for span in files.spans:
        for batch in files.read(span, list(dict.fromkeys([*columns, *in_where]))):
            survey.add(batch, files.places(batch))
    settings = survey.settings()
    try:
        model, x = fit(formula, settings, coded=coded, whole=survey.ranges())
    except InputError as error:
        raise error if error.row is None else error.replace(place=survey.places[error.row]) from None
    survey.check(model)
    _check_learned(model, survey.many)
    _check_row_by_row(model, settings, x)
    return LargeCandidates(files, model, None, where, in_where)


def selected(files: ParquetFiles, features: Sequence[str]) -> LargeCandidates:
    """Return the candidates whose features are some of the columns."""
    for name in features:
        lookup(files.types, name, "features", str(files.files[files.first]))
    return LargeCandidates(files, features=tuple(features))


class _Survey:
    """Levels of columns, and rows that have them."""

    def __init__(self, columns: tuple[str, ...], where: str | None, in_where: tuple[str, ...]) -> None:
        self.columns, self.where, self.in_where = columns, where, in_where
        self.known: dict[str, dict[Any, str]] = {name: {} for name in columns}
        """Place of the first row with every level, by column."""
        self.order: dict[str, dict[Any, None]] = {}
        self.many: set[str] = set()
        """Columns of numbers with more than LEVELS values."""
        self.low: dict[str, float] = {}
        self.high: dict[str, float] = {}
        self.rows: list[Settings] = []
        self.places: list[str] = []
        """Places of these rows."""

    def add(self, batch: Batch, place: Place) -> None:
        """Add the rows of a batch."""
        every = settings_of(batch.table, dict.fromkeys([*self.columns, *self.in_where]), place)
        for name in self.columns:
            values = every[name]
            if values.dtype.kind in "iuf" and np.isfinite(values).any():
                finite = values[np.isfinite(values)]
                self.low[name] = min(self.low.get(name, np.inf), float(finite.min()))
                self.high[name] = max(self.high.get(name, -np.inf), float(finite.max()))
        rows = np.arange(every.n_rows)
        if self.where is not None:
            rows = meeting(every, self.where)
        if not len(rows):
            return
        chosen = set() if self.rows else set(rows[:: max(1, len(rows) // DRAWN)].tolist())
        for name in self.columns:
            values = every[name][rows]
            if name in every.levels:
                self.order.setdefault(name, {}).update(dict.fromkeys(every.levels[name]))
            elif values.dtype != object and name in self.many:
                continue
            distinct, first = _distinct(values)
            for value, at in zip(distinct, rows[first].tolist(), strict=True):
                if value not in self.known[name]:
                    self.known[name][value] = place(at)
                    chosen.add(at)
            if len(self.known[name]) > (TEXT_LEVELS if values.dtype == object else LEVELS):
                if values.dtype == object:
                    raise InputError(
                        "factors of the model",
                        f"must have at most {TEXT_LEVELS} levels",
                        f"column {name!r} has more",
                        "Leave it out of the model.",
                    )
                self.many.add(name)
                self.known[name] = {}
        if chosen:
            self.places += [place(at) for at in sorted(chosen)]
            picked = every.take(np.array(sorted(chosen)))
            self.rows.append(Settings({name: picked[name] for name in self.columns}))

    def settings(self) -> Settings:
        """Return the rows on which the model is fitted."""
        if not self.rows:
            raise InputError(
                "where" if self.where is not None else "candidates",
                "must leave a candidate",
                "no row is left",
                "Change the condition." if self.where is not None else "Put one candidate a row.",
            )
        columns: dict[str, Any] = {}
        for name in self.columns:
            parts = [part[name] for part in self.rows]
            if len({part.dtype == object for part in parts}) > 1:  # no row of a part has an entry
                parts = [objects(part.tolist()) for part in parts]
            columns[name] = np.concatenate(parts)
        return Settings(columns, {name: tuple(order) for name, order in self.order.items()})

    def ranges(self) -> Settings:
        """Return the smallest and the largest value of the columns of numbers."""
        return Settings({name: np.array([self.low[name], self.high[name]]) for name in self.low})

    def check(self, model: Model) -> None:
        """Raise InputError if a factor has numbers among text, one of which is a mistake."""
        for name, levels in model.levels.items():
            numeric = [number(str(level)) is not None for level in levels]
            if any(numeric) and name not in self.order:
                odd = levels[numeric.index(False) if not all(numeric) else 0]
                raise InputError(
                    "factors",
                    "must be all numbers or all text",
                    f"column {name!r} holds {odd!r} among numbers in {self.known[name].get(odd, 'a row')}",
                    "Correct it, or spell all levels as text.",
                )


def _distinct(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the distinct values of a column, and the first row of each."""
    if values.dtype != object:
        distinct, first = np.unique(values, return_index=True)
        return distinct.tolist(), first
    seen: dict[Any, int] = {}
    for k, value in enumerate(values.tolist()):
        seen.setdefault(value, k)
    return list(seen), np.array(list(seen.values()), np.int64)


def _words(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that occur as words in a text."""
    return [name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)]


def _check_learned(model: Model, many: set[str]) -> None:
    """Raise InputError if a model learned more from the rows than the levels of columns."""
    spec = model.spec
    learned = [name for name, state in spec.transform_state.items() if state]
    if learned:
        raise InputError(
            "model",
            "must work row by row on candidates larger than memory",
            f"{listed(learned)} of {model.formula!r} depends on all rows",
            "Write the transformation with numbers: I((temp - 40) / 20).",
        )
    for expression, (kind, _) in spec.encoder_state.items():
        if "categorical" not in str(kind).lower():
            continue
        columns = _words(str(expression), model.factors)
        if len(columns) > 1 or set(columns) & many:
            why = "has several columns" if len(columns) > 1 else f"has more than {LEVELS} levels"
            raise InputError(
                "model",
                "must have categories of one column with few levels",
                f"{expression} {why}",
                "Make it a column of text.",
            )


def _check_row_by_row(model: Model, settings: Settings, x: np.ndarray) -> None:
    """Raise InputError if the features of a row depend on other rows."""
    scale = np.abs(x).max(axis=0)
    for row in np.unique(np.linspace(0, settings.n_rows - 1, CHECKED).astype(int)).tolist():
        alone = model.features(settings.take(np.array([row])))[0]
        if np.any(np.abs(alone - x[row]) > 1e-9 * scale):
            at = int(np.argmax(np.abs(alone - x[row]) - 1e-9 * scale))
            raise InputError(
                "model",
                "must work row by row on candidates larger than memory",
                f"{model.names[at]!r} of {model.formula!r} depends on other rows",
                "Write it with numbers instead of functions of all rows.",
            )
