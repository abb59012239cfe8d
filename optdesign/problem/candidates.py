"""Candidates from factors and a model: the possible runs, and their information on the parameters.

The settings s of a run are the values of its factors. A model turns them into features x = f(s), and the
candidate of :mod:`optdesign.problem.problem` is that vector; the settings stay with it, in the factors' own
units.

>>> import optdesign as od
>>> c = od.candidates({"temp": [20, 40, 60], "cat": ["a", "b"]}, model="~ temp * cat")
>>> c.names, len(c)
(('Intercept', 'temp', 'cat[T.b]', 'temp:cat[T.b]'), 6)
>>> od.DesignProblem(c, groups="cat", budgets={"a": 2, "b": 1})
DesignProblem(6 candidates x 4, 2 groups, 1 parameter block, rank 4)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.conditions import kept
from optdesign.factors.formula import Model, fit
from optdesign.factors.grids import factorial
from optdesign.problem.source import Frozen
from optdesign.sources.clusters import DaskFrame
from optdesign.sources.layout import Place, settings_of
from optdesign.sources.modelled import modelled
from optdesign.sources.opening import is_larger_than_memory
from optdesign.sources.parquet import ParquetFiles
from optdesign.tables.columns import Settings, check_index, is_frame, is_single, listed, row_codes
from optdesign.tables.files import (
    Table,
    check_suffix,
    looks_numeric,
    number,
    place,
    read_table,
    row_names,
    stored_levels,
)

TABLES = (".csv", ".parquet", ".xlsx")
"""Files of settings, one candidate a row."""

MISSING_MARKS = {"NA", "N/A", "#N/A", "NAN", "NULL", "NONE"}
"""Text that R, Excel, pandas and databases write for missing cells, in upper case."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Frozen):
    """Candidates with their settings and names, made by :func:`optdesign.candidates`. Frozen.

    Attributes
    ----------
    features : ndarray of shape (N, d)
        One candidate a row. The array is read-only.
    names : tuple of str
        Names of the d columns.
    settings : Settings
        Columns of the factors, N entries each, in their own units.
    model : Model
        Model that turns settings into features.
    row_names : tuple of str
        Columns of the frame or file that only name rows, and are not among the settings.

    See Also
    --------
    optdesign.candidates : Make candidates from factors and a model.
    optdesign.DesignProblem : State a problem on candidates.

    Examples
    --------
    >>> c = candidates({"t": [0, 5, 10]}, model="~ t")
    >>> c.names, c.features.tolist()
    (('Intercept', 't'), [[1.0, 0.0], [1.0, 5.0], [1.0, 10.0]])
    """

    features: np.ndarray
    names: tuple[str, ...]
    settings: Settings
    model: Model
    row_names: tuple[str, ...] = ()

    @property
    def is_single(self) -> bool:
        """True if a numeric factor of the model is in single precision."""
        numeric = (name for name in self.model.factors if name not in self.model.levels)
        return any(is_single(self.settings[name]) for name in numeric)

    def rows(self, settings: Any) -> np.ndarray:
        """Return the features of other settings under the same model: same coding, contrasts and bases.

        Parameters
        ----------
        settings : mapping or data frame
            A column or one value for every factor of the model.

        Returns
        -------
        ndarray of shape (M, d)
            Features of the M settings.

        Examples
        --------
        >>> c = candidates({"t": [0, 10]}, model="~ t + I(t**2)", coded=True)
        >>> c.rows({"t": [5, 10]}).tolist()
        [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
        """
        if isinstance(settings, Mapping):
            settings = {name: [v] if np.ndim(v) == 0 else v for name, v in settings.items()}
        return self.model.features(Settings(settings))

    @property
    def doubtful_levels(self) -> list[str]:
        """Sentences about levels that may be meant as missing cells, or as numbers."""
        read_as_text = [
            f"factor {name!r} is text, such as {levels[0]!r}, and so a category with a level for each; if it "
            "is meant as a number, convert it, with a decimal point and no thousands separators"
            for name, levels in self.model.levels.items()
            if name not in self.settings.levels and all(map(_may_be_a_number, levels))
        ]
        return read_as_text + [
            f"{name!r} has the level {level!r}, which may stand for missing cells; if so, drop these rows"
            for name, levels in self.model.levels.items()
            for level in levels
            if isinstance(level, str) and level.strip().upper() in MISSING_MARKS
        ]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the candidates, in sentences."""
        from optdesign.problem.dependence import in_words  # both need the class Candidates
        from optdesign.problem.problem import DesignProblem

        found = []
        if self.row_names:
            found.append(f"not used, because they only name rows: columns {listed(self.row_names)}")
        unused = [name for name in self.settings if name not in self.model.factors]
        if unused:
            found.append(
                f"not in the model: {listed(unused)}; such factors may still be groups or parameter blocks"
            )
        single = [name for name, levels in self.model.levels.items() if len(levels) == 1]
        constant = [k for k in self.model.factors if np.all(self.settings[k] == self.settings[k][0])]
        single += [name for name in constant if name not in single]
        if single:
            found.append(f"only one level, so no effect to estimate: {listed(single)}")
        found += self.doubtful_levels
        for name, levels in self.settings.levels.items():
            if gone := [level for level in levels if level not in set(self.settings[name].tolist())]:
                found.append(f"levels of {name!r} without candidates, left out of the model: {listed(gone)}")
        if repeated := _repeated(self.settings):
            found.append(repeated)
        if self.features.any():
            words = in_words(DesignProblem(self))
            if words:
                found.append(f"not all parameters are estimable: {words}")
        return tuple(found)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        of = f"Candidates({len(self)} x {len(self.names)}: {', '.join(self.names)})"
        return "\n  note: ".join((of, *self.notes))


def candidates(factors: Any, model: str, *, where: Any = None, coded: bool | Iterable[str] = False) -> Any:
    """Return candidates made from factors by a model.

    Parameters
    ----------
    factors : dict, Settings, data frame, or path
        A dict maps factors to their levels, and all combinations are candidates (see
        :func:`optdesign.factorial`). Every other form has one candidate a row: the settings that
        :func:`optdesign.factorial` or :func:`optdesign.simplex_lattice` return, a data frame of pandas,
        polars or pyarrow, or the path of a CSV or Parquet file. Columns of a frame or file that only name
        rows are not used. A directory of Parquet files, a Parquet file larger than memory, and a Dask frame
        stay where they are: the model is applied chunk by chunk, and must work row by row.
    model : str
        Formula in the language of the library formulaic, such as ``"~ temp * cat + I(temp**2)"``. It has an
        intercept unless it contains ``0 +``. Text is coded by contrasts with the first level as reference.
    where : array_like of bool, callable or str, optional
        Condition on the settings. Settings that do not meet it are removed before the model is evaluated. An
        expression has factors, numbers, text, comparisons and arithmetic:
        ``"temp <= 40 or cat == 'a'"``. Whole numbers are exact. Comparisons of other numbers allow for
        round-off: 0.1 + 0.2 equals 0.3. Default: all settings.
    coded : bool or iterable of str, default False
        True to scale all numeric factors in the model to the range from -1 to 1, or the names of the factors
        to scale. The range is that of all settings before ``where``. Settings keep their own units. The
        D-optimal design does not change under models that such a change of units maps to themselves.

    Returns
    -------
    Candidates or LargeCandidates
        Features, names and settings. The features of rows that stay where they are are made in every pass.

    Raises
    ------
    InputError
        If a factor, the formula or the condition breaks a rule.
    ImportError
        If formulaic is missing. The message names the extra to install.

    See Also
    --------
    optdesign.factorial : Return every combination of levels.
    optdesign.simplex_lattice : Return mixtures of components.
    optdesign.DesignProblem : State a problem on candidates.

    Examples
    --------
    >>> levels = {"temp": [20, 40, 60], "cat": ["a", "b"]}
    >>> c = candidates(levels, model="~ temp + cat", where="temp < 60 or cat == 'a'")
    >>> c
    Candidates(5 x 3: Intercept, temp, cat[T.b])
    >>> c.settings["temp"].tolist()
    [20, 20, 40, 40, 60]
    """
    if hasattr(factors, "__dask_graph__"):
        if not hasattr(factors, "columns"):
            remedy = "Pass a Dask frame; an array of features goes to DesignProblem as it is."
            given = f"got {type(factors).__name__}"
            raise InputError("factors", "must have columns with names", given, remedy)
        return modelled(DaskFrame(factors), model, where, coded)
    if isinstance(factors, str | Path):
        path = Path(factors)
        if is_larger_than_memory(path):
            return modelled(ParquetFiles(path), model, where, coded)
        check_suffix(path, "factors", TABLES)
        return from_table(read_table(path, text=set()), path, model, where=where, coded=coded)[0]
    settings, dropped = _without_row_names(_settings(factors), model, where, is_frame(factors))
    check_index(factors, where, "where")

    def aligned(settings: Settings) -> Any:
        mask = where(settings)
        check_index(factors, mask, "where")
        return mask

    return _made(settings, model, aligned if callable(where) else where, coded, dropped)[0]


def _made(
    settings: Settings,
    model: str,
    where: Any,
    coded: bool | Iterable[str],
    dropped: tuple[str, ...],
    place: Place | None = None,
) -> tuple[Candidates, np.ndarray]:
    """Return the candidates among settings, one row a candidate, and their rows. Errors name the place."""
    if not settings.n_rows or not len(settings):
        remedy = "Give one candidate a row."
        raise InputError("factors", "must have a factor and a row", "there is none", remedy)
    rows = np.arange(settings.n_rows) if where is None else kept(settings, where)
    chosen = settings if where is None else settings.take(rows)
    try:
        fitted, features = fit(model, chosen, coded=coded, whole=settings)
    except InputError as error:
        if error.row is None or place is None:
            raise
        raise error.replace(place=place(int(rows[error.row]))) from None
    return Candidates(features, fitted.names, chosen, fitted, dropped), rows


def _without_row_names(
    settings: Settings, model: Any, where: Any, is_table: bool = True
) -> tuple[Settings, tuple[str, ...]]:
    """Return settings without the columns of a table that only name rows, and the names of these."""
    formulas = f"{model} {where}" if isinstance(where, str) else str(model)
    names = tuple(k for k in row_names(settings) if is_table and not (k and k in formulas))
    if not names:
        return settings, ()
    levels = {k: v for k, v in settings.levels.items() if k not in names}
    return Settings({k: v for k, v in settings.items() if k not in names}, levels), names


def from_table(
    columns: Table, path: Path, model: str, *, where: Any = None, coded: bool | Iterable[str] = False
) -> tuple[Candidates, np.ndarray]:
    """Candidates from the columns of a file, and which of its rows they are.

    Errors say where in the file, and numbers among the text of a factor are refused: a misspelled number
    would turn a factor into a categorical one.
    """

    def words(row: int) -> str:
        return f"{place(path, row)} of {path}"

    levels = {name: own for name, own in stored_levels(path).items() if name in columns}
    whole = Settings(settings_of(columns, columns, words), levels)
    settings, dropped = _without_row_names(whole, model, where)
    made, rows = _made(settings, model, where, coded, dropped, words)
    for name in made.model.factors:
        if columns[name].dtype == object:
            _check_text(columns[name][rows], name, rows, path)
    return made, rows


def _check_text(values: np.ndarray, name: str, rows: np.ndarray, path: Path) -> None:
    """Refuse text with numbers in it: either is a mistake, or whole numbers that are too large."""
    numeric = [number(str(v)) is not None for v in values]
    if not any(numeric):
        return
    at = 0 if all(numeric) else numeric.index(False)
    why = "too large for double precision" if all(numeric) else "among numbers"
    value = f"{place(path, int(rows[at]))}, column {name!r} of {path} holds {values[at]!r}, {why}"
    remedy = "Correct it, or spell all levels as text."
    raise InputError("factors", "must be all numbers or all text", value, remedy)


def _may_be_a_number(level: Any) -> bool:
    return isinstance(level, str) and (number(level) is not None or looks_numeric(level))


def _settings(factors: Any) -> Settings:
    """One row a candidate, whatever the factors are given as."""
    if isinstance(factors, Settings):
        return factors
    if isinstance(factors, Mapping):
        return factorial(factors)
    if is_frame(factors):
        return Settings(factors)
    raise TypeError(
        f"factors must be a dict of levels, settings, a data frame or the path of a file; got "
        f"{type(factors).__name__}. A matrix of features goes to DesignProblem as it is."
    )


def _repeated(settings: Settings) -> str:
    """Return a sentence about rows that have the same settings, or an empty string."""
    codes = row_codes(settings.values(), settings.n_rows)
    distinct = int(codes.max()) + 1
    if distinct == len(codes):
        return ""
    first = np.unique(codes, return_index=True)[1]
    again = int(np.setdiff1d(np.arange(len(codes)), first)[0])
    original = int(first[codes[again]])
    rows = f"rows {original + 1} and {again + 1}"
    return f"settings that occur before: {len(codes) - distinct}, the first in {rows}"
