"""The coding in which coefficients and usual efficiencies are stated.

Standard errors, variance inflation and power depend on the coding of the factors; prediction variances do
not. For a given response, the F test of a term that no other term contains does not either, but the
anticipated coefficients are stated in a coding. The standard coding is that of most software for designs:

- a numeric factor goes from -1 at its lowest setting to 1 at its highest setting in the region;
- a categorical factor has sum contrasts: the coefficient of a level is the difference between that level and
  the mean of all levels, and the last level has the negative sum of the others.

A numeric factor inside a function that is no polynomial, such as ``log(temp)``, keeps its units: the
logarithm of a coded temperature does not exist. So do components of a mixture, and all numeric factors of a
formula that states another model in coded units, as ``I(temp**2)`` without ``temp`` does. Contrasts that the
formula names, as in ``C(cat, contr.treatment)``, remain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.formula import Model, fit
from optdesign.tables.columns import Settings, listed

SINGULAR_VALUE_RTOL = 1e-10
"""Singular values relative to the largest, of a model matrix with columns of length 1, that count as 0."""

OTHER_MODEL = (
    "numeric factors keep their units, because the formula leaves out lower powers and states another model "
    "in coded units"
)

OWN_CODING = "the coding is that of the candidates, because another coding states another model"


class Term(NamedTuple):
    """A term of a model: its name and its columns."""

    name: str
    columns: tuple[int, ...]
    is_standard: bool
    """True if its factors have the standard coding, so that half an effect is its anticipated coefficient."""


@dataclass(frozen=True, eq=False)
class CodedModel:
    """A model in the standard coding, or in that of its formula."""

    formula: str
    """The formula as it was given."""
    model: Model
    names: tuple[str, ...]
    terms: tuple[Term, ...]
    factors: dict[str, bool]
    """Factors as the formula writes them, ``temp`` or ``C(day)``; True if they are numeric."""
    scaled: frozenset[str] = frozenset()
    """Numeric factors on the scale from -1 to 1."""
    notes: tuple[str, ...] = ()

    def rows(self, settings: Any) -> np.ndarray:
        """Return the features of settings: a mapping of columns, or a data frame."""
        return self.model.features(settings if isinstance(settings, Settings) else Settings(settings))


def coded_model(
    formula: str, settings: Settings, *, coded: bool, beside: CodedModel | None = None
) -> tuple[CodedModel, np.ndarray]:
    """Return a model for settings and their features, (N, d); the range of the settings is the coding.

    Factors of a model ``beside`` it have the same coding as there.
    """
    given, features = fit(formula, settings)
    return in_coding(given, features, settings, coded=coded, beside=beside)


def in_coding(
    given: Model, features: np.ndarray, settings: Settings, *, coded: bool, beside: CodedModel | None = None
) -> tuple[CodedModel, np.ndarray]:
    """Return a model and the features of its settings in the standard coding, or in that of its formula.

    They stay as they are if another coding states another model.
    """
    compared = min(len(features), 5000)  # rows on which the spans of two model matrices are compared
    some = np.unique(np.linspace(0, len(features) - 1, compared).astype(np.int64))

    def is_same(x: np.ndarray) -> bool:
        return x.shape == features.shape and not len(outside_span(x[some], features[some]))

    kept = replace(_as_given(given), notes=(OWN_CODING,))
    if not coded:
        if not given.coding:
            return _as_given(given), features
        plain, x = fit(given.formula, settings)
        return (_as_given(plain), x) if is_same(x) else (kept, features)
    numeric = {name for name in given.factors if settings[name].dtype.kind in "iuf"} - given.categories
    unscaled = {name for expr in _expressions(given) for name in _outside_polynomials(expr)}
    if beside is not None:
        scaled = sorted(numeric - unscaled - set(beside.model.factors) | numeric & beside.scaled)
        return _standard(given, settings, scaled)
    blended = mixtures({name: settings[name] for name in sorted(numeric)})
    scaled = sorted(numeric - unscaled.union(*blended))
    for names in (scaled, []) if scaled else ([],):
        found, x = _standard(given, settings, names)
        if is_same(x):
            return replace(found, notes=() if names == scaled else (OTHER_MODEL,)), x
    return kept, features


def _as_given(given: Model) -> CodedModel:
    """Return a model in the coding of its formula."""
    terms = [
        Term(_called(term), tuple(columns), _called(term) == "Intercept")
        for term, columns in given.spec.term_indices.items()
        if columns
    ]
    return CodedModel(given.formula, given, given.names, tuple(terms), _factors(given))


def _standard(given: Model, settings: Settings, scaled: list[str]) -> tuple[CodedModel, np.ndarray]:
    """Return a model with sum contrasts, and with some numeric factors from -1 to 1."""
    words: dict[str, str] = {}  # as formulaic names factors
    written = []
    for term in given.spec.formula:
        parts = []
        for factor in term.factors:
            text = WRITTEN[factor.eval_method.value](factor.expr)
            categorical = _categorical(factor.expr, given)
            if categorical is not None:
                text = f"C({_quoted(categorical)}, contr.sum)"
                words[text] = factor.expr
            parts.append(text)
        written.append(":".join(parts))
    has_intercept = "1" in written
    standard = " + ".join(["1" if has_intercept else "0", *(part for part in written if part != "1")])
    model, features = fit(f"~ {standard}", settings, coded=scaled)
    terms = []
    for term, columns in model.spec.term_indices.items():
        if not columns:  # a category of one level
            continue
        used = {name for factor in term.factors if factor.expr not in words for name in _names(factor.expr)}
        plain = used & set(given.factors) <= set(scaled) | set(given.levels)
        terms.append(Term(_worded(_called(term), words), tuple(columns), plain))
    names = tuple(_worded(name, words) for name in model.names)
    own = CodedModel(given.formula, model, names, tuple(terms), _factors(given), frozenset(scaled))
    return own, features


def mixtures(columns: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Return the names of columns that are components of mixtures: they vary and have a constant sum.

    These are all columns, or those of which none is negative, beside other factors.

    >>> water, salt = np.array([0.0, 0.3, 1.0, 0.3]), np.array([1.0, 0.7, 0.0, 0.7])
    >>> mixtures({"water": water, "temp": np.array([20, 20, 60, 60]), "salt": salt})
    [['water', 'salt']]
    >>> mixtures({"water": water, "salt": salt, "oak": salt[[0, 1, 1, 2]], "elm": water[[0, 1, 1, 2]]})
    [['water', 'salt'], ['oak', 'elm']]
    >>> mixtures({"water": water, "salt": salt, "sugar": water})  # they share a component
    [['salt', 'sugar'], ['water', 'salt']]
    """
    varying = {name: values for name, values in columns.items() if np.ptp(values) > 0}
    narrowest = min(map(np.ptp, varying.values()), default=0.0)
    if len(columns) > 1 and varying and _is_constant(columns.values(), narrowest):
        return _separate(columns, list(columns))
    names = [name for name, values in varying.items() if values.min() >= 0]
    if len(names) < 2:
        return []
    found, is_one = _combination(varying, names)
    if found:
        return _separate(columns, found)
    # Several combinations are 1. Without one of the columns, there may be one only.
    parts = [_combination(varying, [n for n in names if n != name])[0] for name in names if is_one]
    return [list(part) for part in dict.fromkeys(map(tuple, parts)) if part]


def mixtures_of(settings: Mapping[str, np.ndarray], names: Iterable[str]) -> list[list[str]]:
    """Return the mixtures of which two or more of some numeric factors are components.

    A component that other components determine may be another column, as in models with a slack variable.
    """
    factors = {name: settings[name] for name in names}
    every = {k: v for k, v in settings.items() if v.dtype.kind in "iuf" and 0 < np.ptp(v) < np.inf}
    return mixtures(factors) or [part for part in mixtures(every) if len(factors.keys() & set(part)) > 1]


def disjoint_mixtures(settings: Mapping[str, np.ndarray], names: Iterable[str]) -> list[list[str]]:
    """Return the mixtures of some factors. Raise InputError if two of them have a component in common."""
    found = mixtures_of(settings, names)
    components = [name for mixture in found for name in mixture]
    if len(set(components)) < len(components):
        value = " and ".join(map(listed, found))
        remedy = "Leave out of the model what other components determine."
        raise InputError("mixtures", "must not have a component in common", f"got {value}", remedy)
    return found


def _combination(columns: Mapping[str, np.ndarray], names: list[str]) -> tuple[list[str], bool]:
    """Return the columns whose sum is constant, none if there are others, and True if a combination is 1.

    If the sum is the only constant one, a combination that is 1 has no other columns.
    """
    x = np.column_stack([columns[name] / float(columns[name].max()) for name in names])
    shares = np.linalg.lstsq(x, np.ones(len(x)))[0]
    found = [name for name, share in zip(names, shares, strict=True) if abs(share) > 1e-6]
    is_mixture = len(found) > 1 and _is_constant([columns[name] for name in found])
    return (found if is_mixture else []), bool(np.allclose(x @ shares, 1.0, rtol=0, atol=1e-9))


def _separate(columns: Mapping[str, np.ndarray], names: list[str]) -> list[list[str]]:
    """Return the mixtures of which columns with a constant sum consist, which are one or more."""
    varying = [name for name in names if np.ptp(columns[name]) > 0]
    x = np.column_stack([columns[name] / float(np.abs(columns[name]).max()) for name in varying])
    gram = (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))
    values, vectors = np.linalg.eigh(gram)
    relations = vectors.T[values <= 1e-12 * values[-1]]
    # Gauss-Jordan elimination: a mixture that shares no component with others is a row of the result.
    for k in range(len(relations)):
        row, column = divmod(int(np.argmax(np.abs(relations[k:]))), len(varying))
        relations[[k, k + row]] = relations[[k + row, k]]
        relations[k] /= relations[k, column]
        others = np.arange(len(relations)) != k
        relations[others] -= np.outer(relations[others, column], relations[k])
    found = [[n for n, part in zip(varying, row, strict=True) if abs(part) > 1e-6] for row in relations]
    is_split = sum(map(len, found)) == len(varying) == len(set().union(*found))
    if is_split and all(len(part) > 1 and _is_constant([columns[n] for n in part]) for part in found):
        return sorted(found, key=lambda part: varying.index(part[0]))
    return [names]


def _is_constant(columns: Iterable[np.ndarray], narrowest: float = np.inf) -> bool:
    """Return True if columns have a constant sum, whose tolerance is below the range of the narrowest one."""
    total = np.sum(list(columns), axis=0)
    tolerance = 1e-9 * np.abs(total).max(initial=0.0)
    return bool(np.ptp(total) <= tolerance < narrowest)


def outside_span(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the columns of z that are no combinations of columns of x, in their order."""
    scale = np.linalg.norm(x, axis=0)
    left, values, _ = np.linalg.svd(x / np.where(scale > 0, scale, 1.0), full_matrices=False)
    basis = left[:, values > SINGULAR_VALUE_RTOL * values.max(initial=0.0)]
    residual = z - basis @ (basis.T @ z)
    outside = span_rtol(values[: basis.shape[1]])
    return np.flatnonzero(np.linalg.norm(residual, axis=0) > outside * np.linalg.norm(z, axis=0))


def span_rtol(values: np.ndarray) -> float:
    """Return the part of a vector outside of a span that counts as round-off, relative to its length.

    ``values`` are the non-zero singular values of the matrix that spans it, with columns of length 1.
    """
    if not len(values):
        return 0.0
    return min(1e-7, 16 * len(values) * float(np.finfo(float).eps * values[0] / values[-1]))


def left_out(model: CodedModel) -> str:
    """Return the formula of all interactions of two factors and the squares of the numeric ones."""
    squares = [f"I({name}**2)" for name, is_numeric in model.factors.items() if is_numeric]
    return "~ " + " + ".join([f"({' + '.join(model.factors)})**2", *squares])


def _factors(model: Model) -> dict[str, bool]:
    """Return the factors of a model as its formula writes them, and True for numeric ones."""
    written = {
        name: factor.expr
        for factor in model.spec.factor_contrasts
        for name in model.factors
        if name in model.spec.factor_variables[factor]
        and (name not in model.levels or factor.expr == f"C({_quoted(name)})")
    }
    return {written.get(name, _quoted(name)): name not in model.categories for name in model.factors}


def _called(term: object) -> str:
    return "Intercept" if str(term) == "1" else str(term)


def _worded(name: str, words: dict[str, str]) -> str:
    """Return a name of formulaic with factors as the user wrote them."""
    for written, given in words.items():
        name = name.replace(written, given)
    return name


def _expressions(model: Model) -> list[str]:
    """Return the Python expressions of a formula that are not contrasts."""
    return [
        factor.expr
        for term in model.spec.formula
        for factor in term.factors
        if factor.eval_method.value == "python" and _categorical(factor.expr, model) is None
    ]


def _categorical(expression: str, model: Model) -> str | None:
    """Return the factor of an expression that has default contrasts, cat or C(cat), or None."""
    if expression in model.levels:
        return expression
    found = re.fullmatch(r"C\(\s*(?:`([^`]+)`|(\w+))\s*\)", expression)
    return (found[1] or found[2]) if found else None


def _quoted(name: str) -> str:
    return name if name.isidentifier() or name == "1" else f"`{name}`"


def _braced(expression: str) -> str:
    """Return a Python expression as a factor of a formula, in which ``*`` and ``+`` join terms.

    >>> _braced("x**2"), _braced("I(x**2)")
    ('{x**2}', 'I(x**2)')
    """
    tree, _ = _parsed(expression)
    is_call = isinstance(tree, ast.Expression) and isinstance(tree.body, ast.Call)
    return expression if is_call else f"{{{expression}}}"


WRITTEN: dict[str, Callable[[str], str]] = {"lookup": _quoted, "python": _braced, "literal": str}
"""Ways to write a factor in a formula, by the way in which formulaic evaluates it."""


def _parsed(expression: str) -> tuple[ast.AST, dict[str, str]]:
    """Return the syntax tree of an expression, and the names that backticks quote by their stand-ins."""
    quoted = {f"quoted_{k}": name for k, name in enumerate(re.findall("`([^`]*)`", expression))}
    for stand_in, name in quoted.items():
        expression = expression.replace(f"`{name}`", stand_in)
    return ast.parse(expression, mode="eval"), quoted


def _names(expression: str) -> set[str]:
    """Return the names in an expression.

    >>> sorted(_names("C(`a b`, contr.sum)"))
    ['C', 'a b', 'contr']
    """
    try:
        tree, quoted = _parsed(expression)
    except SyntaxError:  # a plain name that Python does not allow
        return {expression}
    return {quoted.get(node.id, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _outside_polynomials(expression: str) -> set[str]:
    """Return the names in an expression that is no polynomial, and nothing for a polynomial.

    >>> _outside_polynomials("I(temp**2 - 3*temp)"), sorted(_outside_polynomials("log(temp)"))
    (set(), ['log', 'temp'])
    >>> sorted(_outside_polynomials("I(temp**0.5)"))
    ['I', 'temp']
    """
    allowed = (
        ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Load, ast.Add, ast.Sub, ast.Mult,
        ast.Pow, ast.USub, ast.UAdd, ast.Call,
    )  # fmt: skip
    tree, _ = _parsed(expression)
    for node in ast.walk(tree):
        calls_other = isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id == "I"
        )
        is_root = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _is_whole(node.right)
        if not isinstance(node, allowed) or calls_other or is_root:
            return _names(expression)
    return set()


def _is_whole(node: ast.expr) -> bool:
    """Return True for a whole number that is not negative."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
