"""Models: from settings to features, by a formula.

Formulas are those of R's lm, as the library formulaic reads and evaluates them: ``~ temp * cat + I(temp**2)``
has an intercept, main effects, an interaction and a quadratic term; ``~ 0 + a + b + c + a:b`` has no
intercept. Powers may be written as in R, ``I(temp^2)``; see :mod:`optdesign.factors.notation`. Text is coded
by contrasts. The state of a transformation (the mean of ``center``, the basis of ``poly``, the levels of a
factor) is computed from the candidates, kept, and applied to later settings.

A formula is code: formulaic evaluates the Python expressions in it. Take formulas from people you trust.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.factors import notation
from optdesign.numbers.checks import check_type
from optdesign.runtime.optional import optional
from optdesign.tables.columns import Settings, check_exact, listed, missing, number, suggestion

FUNCTIONS = {"sqrt": np.sqrt, "abs": np.abs}
"""Functions of formulas besides those of formulaic."""


@dataclass(frozen=True, eq=False)
class Model:
    """A formula, and what it learned from the candidates."""

    formula: str
    spec: Any
    """The model spec of formulaic."""
    factors: tuple[str, ...]
    """Columns of the settings that the formula uses, in their order."""
    levels: Mapping[str, tuple[Any, ...]]
    """Levels of the categorical ones."""
    coding: Mapping[str, tuple[float, float]]
    """Lowest and highest value of the factors that are coded to [-1, 1]."""
    sample: tuple[Settings, np.ndarray]
    """Two candidates that are far from each other, and their features."""
    scale: Callable[[np.ndarray], np.ndarray] | None = None
    """The transformation of the features by :func:`optdesign.local`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features. Levels of a category that are whole numbers have no decimal point."""
        numeric = [re.escape(name) for name in self.factors if name not in self.levels]
        level = re.compile(rf"(C\(`?(?:{'|'.join(numeric)})`?(?:,[^\[]*)?\)\[(?:[A-Z]\.)?-?\d+)\.0\]")
        names = map(str, self.spec.column_names)
        return tuple(level.sub(r"\1]", name) for name in names) if numeric else tuple(names)

    @property
    def categories(self) -> set[str]:
        """Factors that the formula codes by contrasts, those of numbers included."""
        variables = self.spec.factor_variables
        return {str(name) for factor in self.spec.factor_contrasts for name in variables[factor]}

    def features(self, settings: Settings) -> np.ndarray:
        """Return the features of settings, (N, d)."""
        for name in self.factors:
            if name not in settings:
                rule = "must have every factor of the model"
                remedy = f"The factors are {listed(self.factors)}."
                raise InputError("settings", rule, f"there is no {name!r}", remedy)
            unknown = set(settings[name].tolist()) - set(self.levels[name]) if name in self.levels else ()
            if unknown:
                value = f"{name!r} has no level {listed(sorted(unknown, key=str))}"
                remedy = f"Its levels are {listed(self.levels[name])}."
                raise InputError("settings", "must have known levels", value, remedy)
            if name not in self.levels and settings[name].dtype.kind not in "biuf":
                rule = "must be numbers where those of the candidates are"
                value = f"{name!r} is not, or is missing in all rows"
                raise InputError("settings", rule, value, "Convert the column first.")
        _check_present(settings, self.factors)
        if self.dependent:
            value = f"{self.dependent!r} of {self.formula!r} depends on other rows"
            remedy = "Write it with numbers, or with center or scale, which keep those of the candidates."
            raise InputError("model", "must work row by row for settings besides its own", value, remedy)
        x = _checked(self._matrix(settings), settings, self.factors, self.formula)
        return x if self.scale is None else self.scale(x)

    def _matrix(self, settings: Settings) -> Any:
        frame = _frame(settings, self.factors, self.levels, self.coding)
        return _called(self.formula, settings, lambda: self.spec.get_model_matrix(frame, context=FUNCTIONS))

    @cached_property
    def dependent(self) -> str:
        """Name of a feature that a candidate alone does not have as among all candidates, or empty."""
        settings, x = self.sample
        for k in range(settings.n_rows):
            try:
                alone = np.array(self._matrix(settings.take(np.array([k]))), dtype=np.float64)[0]
            except InputError:
                return self.formula
            other = ~(np.abs(alone - x[k]) <= 1e-9 * np.abs(x).max(axis=0))
            if other.any():
                return self.names[int(np.argmax(other))]
        return ""


def fit(
    formula: str, settings: Settings, *, coded: bool | Iterable[str] = False, whole: Settings | None = None
) -> tuple[Model, np.ndarray]:
    """Return a model for settings, and their features (N, d). ``whole`` has the range for coded factors."""
    library = formulaic()
    check_type(formula, str, "model must be a formula", "Pass text such as '~ temp'.")
    coding = _coding(whole or settings, coded)
    levels = {
        name: tuple(number(settings[name], settings.levels.get(name)).names.tolist())
        for name in settings
        if (settings[name].dtype == object or name in settings.levels) and missing(settings[name]) is None
    }
    for name in settings:
        is_number = name.replace(".", "", 1).isdecimal() and f"`{name}`" in formula
        if is_number or (name in ("True", "False", "None") and re.search(rf"\b{name}\b", formula)):
            value = f"{formula!r} has `{name}`, which formulaic takes for the constant"
            raise InputError("model", "must not name factors by constants", value, "Rename the column.")
    bare = re.sub("`[^`]*`", "", formula).replace(" ", "")
    for name in settings:
        if f"`{name}`" in formula and "(" in name and name.replace(" ", "") in bare:
            value, remedy = f"two terms of {formula!r} are called {name!r}", "Rename the factor of this name."
            raise InputError("model", "must have terms of different names", value, remedy)
    context = {"__formulaic_variables_available__": list(settings)}
    parsed = _called(formula, settings, lambda: library.Formula(notation.formula(formula), _context=context))
    if not isinstance(parsed, library.SimpleFormula):
        remedy = "Leave out the response before the ~, and parts after a |."
        raise InputError("model", "must be the right side of a formula alone", f"got {formula!r}", remedy)
    frame = _frame(settings, settings, levels, coding)
    matrix = _called(
        formula, settings, lambda: library.model_matrix(parsed, frame, context=FUNCTIONS, na_action="ignore")
    )
    # formulaic knows no source of a name with a dot that a function takes, as in log(`temp.in`).
    sources = matrix.model_spec.variables_by_source
    used = {str(name) for source in ("data", None) for name in sources.get(source, ())}
    used |= {name.partition(".")[0] for name in used.difference(settings)}  # a method, as in temp.mean()
    factors = tuple(name for name in settings if name in used)
    _check_present(settings, factors)
    if not matrix.shape[1]:
        remedy = "Add a factor, or 1 for an intercept."
        raise InputError("model", "must have a term", f"{formula!r} has none", remedy)
    used_levels = {name: levels[name] for name in factors if name in levels}
    names = list(map(str, matrix.model_spec.column_names))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        value, remedy = f"two terms of {formula!r} are called {twice!r}", "Rename the factor of this name."
        raise InputError("model", "must have terms of different names", value, remedy)
    x = _checked(matrix, settings, factors, formula)
    sample = _far_apart(x)
    rows = settings.take(sample), x[sample]
    model = Model(formula, matrix.model_spec, factors, used_levels, coding, rows)
    if coded is True and model.categories & coding.keys():
        numeric = [name for name in coding if name not in model.categories]
        return fit(formula, settings, coded=numeric, whole=whole)
    return model, x


def _far_apart(x: np.ndarray) -> np.ndarray:
    """Return a row far from the mean, and one far from it, among 1000 rows at most.

    Distances are relative to the range of the columns.
    """
    rows = np.unique(np.linspace(0, len(x) - 1, 1000).astype(np.int64))
    width = np.ptp(x[rows], axis=0)
    scaled = x[rows] / np.where(width > 0, width, 1.0)
    first = int(np.argmax(np.abs(scaled - scaled.mean(axis=0)).sum(axis=1)))
    return rows[[first, int(np.argmax(np.abs(scaled - scaled[first]).sum(axis=1)))]]


def named(formula: str) -> set[str]:
    """Return the columns that a formula names, as far as it can be read without the columns.

    >>> sorted(named("~ block + log(temp) + poly(`a b`, 2)"))
    ['a b', 'block', 'temp']
    """
    quoted = set(re.findall("`([^`]*)`", formula))
    library = formulaic()
    try:
        required = library.Formula(notation.formula(formula)).required_variables
        return quoted | set(map(str, required)) - set(FUNCTIONS)
    except Exception:  # the formula is wrong, which is reported when it is evaluated, or has a "."
        return quoted


def formulaic() -> Any:
    """Return the module formulaic."""
    return optional("formulaic", "models need", "formula")


def pandas() -> Any:
    """Return the module pandas."""
    return optional("pandas", "data frames need", "frames")


def coded(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values of a factor on the scale where its lowest is -1 and its highest 1.

    >>> coded(np.array([20.0, 30.0, 60.0]), 20.0, 60.0).tolist()
    [-1.0, -0.5, 1.0]
    """
    if low == high:
        return np.zeros(len(values))
    return ((values - low) + (values - high)) / (high - low)


def _coding(settings: Settings, wanted: bool | Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the range of the factors to be coded: all numeric ones, or those that are named.

    Categories of numbers are found later, when the formula is evaluated.
    """
    numeric = [k for k, v in settings.items() if v.dtype.kind in "iuf" and k not in settings.levels]
    if wanted is True or wanted is False:
        names = numeric if wanted else []
    else:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        for name in names:
            if name not in numeric:
                value = f"{name!r} is none{suggestion(name, numeric)}"
                raise InputError("coded", "must name numeric factors", value, f"These are {listed(numeric)}.")
    ranges = {}
    for name in names:
        values = settings[name][np.isfinite(settings[name])]
        if len(values):
            ranges[name] = (float(values.min()), float(values.max()))
    return ranges


def _frame(
    settings: Settings, names: Iterable[str], levels: Mapping[str, Any], coding: Mapping[str, Any]
) -> Any:
    """Return the factors as a data frame: numbers in double precision, and coded; text with its levels."""
    library = pandas()
    columns = {}
    for name in names:
        values = settings[name]
        if name in levels:
            columns[name] = library.Categorical(values, categories=list(levels[name]))
        elif values.dtype.kind in "biuf":  # booleans as 0 and 1, whose sum is 2
            exact = values.astype(np.float64)
            columns[name] = coded(exact, *coding[name]) if name in coding else exact
        else:
            columns[name] = values
    return library.DataFrame(columns, index=library.RangeIndex(settings.n_rows))


def _check_present(settings: Settings, factors: Iterable[str]) -> None:
    """Refuse missing values."""
    for name in factors:
        at = missing(settings[name])
        if at is not None:
            value = f"{name!r} is missing"
            remedy = "Fill it in or drop the row: none is dropped for you."
            raise InputError("factors of the model", "must not be missing", value, remedy, at)


def _called(formula: str, settings: Settings, work: Any) -> Any:
    """Return the model matrix of formulaic. Raise InputError with the formula and the factors if it fails."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = work()
    except Exception as error:
        value = f"{formula!r} is not: {_said(error, formula, settings)}"
        remedy = f"The factors are {listed(settings)}; names that are not Python's stand in backticks."
        raise InputError("model", "must be a formula that formulaic can evaluate", value, remedy) from None
    for warning in caught:
        # Unknown levels would become the first one.
        if issubclass(warning.category, formulaic().errors.DataMismatchWarning):
            value = f"{formula!r} has a category without one: {_unknown(str(warning.message))}"
            raise InputError("settings", "must have known levels", value, "Leave such settings out.")
    return found


def _unknown(warning: str) -> str:
    """Return the levels that a warning of formulaic lists in braces, or all of its text.

    >>> _unknown("outside of the levels: {np.float64(9.0)}"), _unknown("{'c'}")
    ('9.0', "'c'")
    """
    found = re.search(r"\{(.*)\}", warning)
    return re.sub(r"np\.\w+\(([^)]*)\)|np\.(\w+)_", r"\1\2", found[1]) if found else warning


def _said(error: Exception, formula: str, settings: Settings) -> str:
    """Return the cause of an error of formulaic in the words of the factors, or its first line."""
    text = str(error).partition("\n")[0].rstrip(".")
    if said := notation.hint(formula):
        return said
    if isinstance(error.__cause__, NameError):
        unknown = sorted(named(formula).difference(settings))
        name = error.__cause__.name
        if unknown and name not in unknown:  # formulaic renames a quoted name, or leaves it out of the error
            name = unknown[0]
        if name:
            return f"there is no factor {name!r}{suggestion(name, settings)}"
    for name in settings:
        if re.search(rf"(?<![\w.`]){re.escape(name)}\(", formula):
            return f"the factor {name!r} hides the function {name}(); rename the factor ({text})"
        if iskeyword(name) and re.search(rf"\b{name}\b", formula):
            return f"functions of {name!r}, a word of Python, are not evaluated; rename the factor ({text})"
        if settings[name].dtype.kind in "mM" and name in formula:
            return f"the factor {name!r} holds dates; turn it into days since a first one, or into text"
    return text


def _checked(matrix: Any, settings: Settings, factors: Iterable[str], formula: str) -> np.ndarray:
    """Features as an array of finite numbers, a row for every row of the settings."""
    for name in factors:
        if settings[name].dtype.kind in "iuf":
            check_exact(settings[name], settings[name].astype(np.float64), name)
        if settings[name].dtype.kind == "m":
            value = f"the factor {name!r} holds durations"
            remedy = f"Turn it into a number of hours, say: {name} / numpy.timedelta64(1, 'h')."
            raise InputError("model", "must have numbers, text or booleans", value, remedy)
    x = np.array(matrix, dtype=np.float64, order="C")
    if x.ndim != 2 or len(x) != settings.n_rows:
        rule = f"must give a row of features for each of {settings.n_rows} settings"
        value = f"{formula!r} gives shape {x.shape}"
        raise InputError("model", rule, value, "Use terms that work row by row.")
    for row, j in np.argwhere(~np.isfinite(x))[:1].tolist():
        at = ", ".join(f"{name} = {settings[name][row]}" for name in factors)
        value = f"with {at}, {matrix.columns[j]!r} is {x[row, j]}"
        remedy = "Leave such settings out with where, or change the model."
        raise InputError("model", "must give finite features", value, remedy, row)
    x.flags.writeable = False
    return x
