"""Candidates that a formula makes of Parquet files or of a Dask frame, chunk by chunk.

One pass surveys the columns that the formula names: their levels, and rows that have them. The model is
fitted on these rows, which are few and have every level, so it is that of all rows. A formula that learns
more than levels from the rows, or that does not work row by row, would give other features in every chunk. It
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.conditions import meeting
from optdesign.factors.formula import Model, fit
from optdesign.numbers.checks import check_type
from optdesign.sources.clusters import DaskEngine, DaskFrame, place_in
from optdesign.sources.engine import Engine
from optdesign.sources.layout import Place, settings_of
from optdesign.sources.parquet import CATEGORIES, ParquetEngine, ParquetFiles, family
from optdesign.tables.columns import Settings, listed, lookup
from optdesign.tables.files import number
from optdesign.tables.values import objects

LEVELS = 1000
"""Largest number of levels of a factor: the pool of a design grows with the square of the dimension."""

DRAWN = 16
"""Rows of the first batch on which the model is fitted besides those with the levels, and rows whose features
are computed one by one, to see if the formula works row by row."""


@dataclass(frozen=True, eq=False, repr=False)
class LargeCandidates:
    """Candidates in Parquet files or a Dask frame: some of the columns, or what a model makes of them."""

    source: ParquetFiles | DaskFrame
    model: Model | None = None
    features: tuple[str, ...] | None = None
    where: str | None = None
    in_where: tuple[str, ...] = field(default=())

    def open(self, groups: Any, parameter_blocks: Any) -> Engine:
        """Return the engine of these candidates."""
        options: dict[str, Any] = {"model": self.model, "where": self.where, "in_where": self.in_where}
        if isinstance(self.source, DaskFrame):
            return DaskEngine(self.source, groups, parameter_blocks, **options)
        return ParquetEngine(self.source, groups, parameter_blocks, features=self.features, **options)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.features if self.model is None else self.model.names

    def __repr__(self) -> str:
        names = "" if self.names is None else f": {', '.join(self.names)}"
        size = (
            f"{len(self.source.parts)} partitions"
            if isinstance(self.source, DaskFrame)
            else f"{len(self.source.files)} files"
        )
        return f"LargeCandidates({size}{names})"


def modelled(
    source: ParquetFiles | DaskFrame, formula: str, where: Any = None, coded: bool | Iterable[str] = False
) -> LargeCandidates:
    """Return the candidates that a formula makes of the rows that meet a condition."""
    if where is not None and not isinstance(where, str):
        rule = "must be an expression for candidates larger than memory"
        raise InputError("where", rule, f"got {type(where).__name__}", 'Write it as text: "temp <= 40".')
    check_type(formula, str, "model must be a formula", "Pass text such as '~ temp'.")
    # A "." stands for all columns.
    types = source.types
    named = types if re.search(r"(^|[~+\s])\.($|[+\s])", formula) else _words(formula, types)
    columns = tuple(named or types)
    in_where = () if where is None else tuple(_words(where, types))
    for name in columns:
        if isinstance(source, ParquetFiles) and family(types[name]) == CATEGORIES:
            rule = "must be numbers or text"
            value = f"column {name!r} has categories of numbers"
            remedy = "Write it as text, or as numbers if the model has a slope for it."
            raise InputError("factors of candidates larger than memory", rule, value, remedy)
    survey = _surveyed(source, columns, where, in_where)
    settings = survey.settings()
    try:
        model, x = fit(formula, settings, coded=coded, whole=survey.ranges())
    except InputError as error:
        raise error if error.row is None else error.replace(place=survey.places()[error.row]) from None
    survey.check(model)
    _check_learned(model, survey.many)
    _check_row_by_row(model, settings, x)
    return LargeCandidates(source, model, None, where, in_where)


def selected(files: ParquetFiles, features: Sequence[str]) -> LargeCandidates:
    """Return the candidates whose features are some of the columns."""
    for name in features:
        lookup(files.types, name, "features", str(files.files[files.first]))
    return LargeCandidates(files, features=tuple(features))


def _surveyed(
    source: ParquetFiles | DaskFrame, columns: tuple[str, ...], where: str | None, in_where: tuple[str, ...]
) -> _Survey:
    """Return the survey of all rows, by one pass."""
    if isinstance(source, DaskFrame):
        return source.reduce(_survey_of, _Survey.merged, (columns, where, in_where))
    survey, number = _Survey(columns, where, in_where), 0
    for span in source.spans:
        for batch in source.read(span, list(dict.fromkeys([*columns, *in_where]))):
            survey.add(batch.table, number, source.places(batch))
            number += 1
    return survey


def _survey_of(
    part: Any, number: int, _: int, columns: tuple[str, ...], where: str | None, in_where: tuple[str, ...]
) -> _Survey:
    """Return the survey of a partition of a frame."""
    survey = _Survey(columns, where, in_where)
    if len(part):
        survey.add(part, number, place_in(number))
    return survey


RowKey = tuple[int, int]
"""The number of a batch, and a row in it."""


class _Survey:
    """Levels of columns, and rows that have them. Surveys are merged in any order."""

    def __init__(self, columns: tuple[str, ...], where: str | None, in_where: tuple[str, ...]) -> None:
        self.columns, self.where, self.in_where = columns, where, in_where
        self.known: dict[str, dict[Any, RowKey]] = {name: {} for name in columns}
        """First row with every level, by column."""
        self.order: dict[str, dict[Any, RowKey]] = {}
        """First batch with every level of a categorical column, and the place of the level there."""
        self.many: set[str] = set()
        """Columns of numbers with more than LEVELS values."""
        self.low: dict[str, float] = {}
        self.high: dict[str, float] = {}
        self.drawn: tuple[int, list[int]] | None = None
        """The first batch with a row, and rows that are drawn from it."""
        self.rows: dict[RowKey, tuple[str, Settings]] = {}
        """Places and entries of these rows."""

    def add(self, table: Any, number: int, place: Place) -> None:
        """Add the rows of a batch."""
        every = settings_of(table, dict.fromkeys([*self.columns, *self.in_where]), place)
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
        if self.drawn is None:
            self.drawn = number, rows[:: max(1, len(rows) // DRAWN)].tolist()
        for name in self.columns:
            values, known = every[name][rows], self.known[name]
            if name in every.levels:
                order = self.order.setdefault(name, {})
                for k, level in enumerate(every.levels[name]):
                    order.setdefault(level, (number, k))
            elif values.dtype != object and name in self.many:
                continue
            distinct, first = _distinct(values)
            for value, at in zip(distinct, rows[first].tolist(), strict=True):
                known.setdefault(value, (number, at))
            self._limit(name, values.dtype == object)
        chosen = sorted(row for batch, row in self._needed() if batch == number)
        picked = Settings({name: every[name] for name in self.columns})
        self.rows |= {(number, at): (place(at), picked.take(np.array([at]))) for at in chosen}

    def _limit(self, name: str, is_text: bool) -> None:
        """Give up a column of numbers that has many values. Raise InputError if one of text has."""
        if len(self.known[name]) <= LEVELS:
            return
        if is_text:
            rule = f"must have at most {LEVELS} levels"
            remedy = "Leave it out of the model."
            raise InputError("factors of the model", rule, f"column {name!r} has more", remedy)
        self.many.add(name)
        self.known[name] = {}

    def _needed(self) -> set[RowKey]:
        """Return the rows that are drawn, and the first ones with every level."""
        number, drawn = self.drawn or (0, [])
        needed = {(number, row) for row in drawn}
        return needed.union(*(known.values() for known in self.known.values()))

    def merged(self, other: _Survey) -> _Survey:
        """Return the survey of the rows of both. A merge."""
        out = _Survey(self.columns, self.where, self.in_where)
        out.many = self.many | other.many
        out.low, out.high = _joined(self.low, other.low), _joined(self.high, other.high, max)
        for name in self.order.keys() | other.order.keys():
            out.order[name] = _joined(self.order.get(name, {}), other.order.get(name, {}))
        for name in self.columns:
            if name not in out.many:
                out.known[name] = _joined(self.known[name], other.known[name])
                out._limit(name, any(isinstance(level, str) for level in out.known[name]))
        out.drawn = min((d for d in (self.drawn, other.drawn) if d is not None), default=None)
        rows = {**self.rows, **other.rows}
        out.rows = {key: rows[key] for key in out._needed()}
        return out

    def places(self) -> list[str]:
        """Return the places of the rows on which the model is fitted."""
        return [self.rows[key][0] for key in sorted(self.rows)]

    def settings(self) -> Settings:
        """Return the rows on which the model is fitted."""
        if not self.rows:
            rule = "must leave a candidate"
            value = "no row is left"
            remedy = "Change the condition." if self.where is not None else "Put one candidate a row."
            raise InputError("where" if self.where is not None else "candidates", rule, value, remedy)
        columns: dict[str, Any] = {}
        for name in self.columns:
            parts = [self.rows[key][1][name] for key in sorted(self.rows)]
            if len({part.dtype == object for part in parts}) > 1:  # no row of a part has an entry
                parts = [objects(part.tolist()) for part in parts]
            columns[name] = np.concatenate(parts)
        return Settings(
            columns, {name: tuple(sorted(own, key=own.__getitem__)) for name, own in self.order.items()}
        )

    def ranges(self) -> Settings:
        """Return the smallest and the largest value of the columns of numbers."""
        return Settings({name: np.array([self.low[name], self.high[name]]) for name in self.low})

    def check(self, model: Model) -> None:
        """Raise InputError if a factor has numbers among text, one of which is a mistake."""
        for name, levels in model.levels.items():
            numeric = [number(str(level)) is not None for level in levels]
            if any(numeric) and name not in self.order:
                odd = levels[numeric.index(False) if not all(numeric) else 0]
                place, _ = self.rows[self.known[name][odd]]
                value = f"column {name!r} holds {odd!r} among numbers in {place}"
                remedy = "Correct it, or spell all levels as text."
                raise InputError("factors", "must be all numbers or all text", value, remedy)


def _joined(one: dict[Any, Any], other: dict[Any, Any], choose: Any = min) -> dict[Any, Any]:
    """Return both dicts as one, with the smaller of two values, or the one that ``choose`` returns."""
    return one | other | {key: choose(one[key], other[key]) for key in one.keys() & other.keys()}


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
        value = f"{listed(learned)} of {model.formula!r} depends on all rows"
        remedy = "Write the transformation with numbers: I((temp - 40) / 20)."
        raise InputError("model", "must work row by row on candidates larger than memory", value, remedy)
    for expression, (kind, _) in spec.encoder_state.items():
        if "categorical" not in str(kind).lower():
            continue
        columns = _words(str(expression), model.factors)
        if len(columns) > 1 or set(columns) & many:
            why = "has several columns" if len(columns) > 1 else f"has more than {LEVELS} levels"
            rule = "must have categories of one column with few levels"
            raise InputError("model", rule, f"{expression} {why}", "Make it a column of text.")


def _check_row_by_row(model: Model, settings: Settings, x: np.ndarray) -> None:
    """Raise InputError if the features of a row depend on other rows."""
    rows = np.unique(np.linspace(0, settings.n_rows - 1, DRAWN).astype(int))
    dependent = replace(model, sample=(settings.take(rows), x[rows])).dependent
    if dependent:
        value = f"{dependent!r} of {model.formula!r} depends on other rows"
        remedy = "Write it with numbers instead of functions of all rows."
        raise InputError("model", "must work row by row on candidates larger than memory", value, remedy)
