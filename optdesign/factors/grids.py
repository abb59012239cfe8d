"""Settings to choose from: full factorials, and lattices and centroids of mixtures.

A full factorial has every combination of the levels of its factors. The components of a mixture are
non-negative and sum to one; the simplex lattice of degree m has all mixtures in multiples of 1/m (Scheffe
1958), and the simplex centroid the equal mixtures of every subset of the components (Scheffe 1963).

>>> factorial({"temp": [20, 40], "cat": ["b", "a"]})["cat"].tolist()
['b', 'a', 'b', 'a']
>>> simplex_lattice(2, 2)["x1"].tolist()
[1.0, 0.5, 0.0]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, prod
from numbers import Integral, Real
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.tables.columns import Settings, missing
from optdesign.tables.values import column


def factorial(levels: Mapping[str, Any] | Sequence[Any]) -> Settings:
    """Return every combination of the levels of the factors; the last factor changes fastest.

    Parameters
    ----------
    levels : mapping or sequence
        A mapping of each factor to its levels. Levels are a list or array, in which text keeps its order, or
        an integer k for k equal steps from -1 to 1. A sequence of levels is for factors x1, x2, ...

    Returns
    -------
    Settings
        One column per factor.

    See Also
    --------
    optdesign.candidates : Make candidates from factors and a model.
    optdesign.simplex_lattice : Return mixtures of components.

    Examples
    --------
    >>> s = factorial([3, 2])
    >>> s["x1"].tolist(), s["x2"].tolist()
    ([-1.0, -1.0, 0.0, 0.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    """
    if isinstance(levels, str | Integral) or not isinstance(levels, Mapping | Sequence | np.ndarray):
        raise TypeError(
            f"levels must be a dict of factors, or a list with one entry a factor; got {levels!r}. "
            "Three levels of two factors are [3, 3]."
        )
    named = levels if isinstance(levels, Mapping) else dict(zip(_names(len(levels)), levels, strict=True))
    if not named:
        raise InputError("levels", "must have a factor", "there is none", "Name one with its levels.")
    factors = {str(name): _levels(str(name), given) for name, given in named.items()}
    if len(factors) < len(named):
        value = f"got {', '.join(map(repr, named))}"
        raise InputError("factors", "must have names that differ as text", value)
    sizes = [len(values) for values, _ in factors.values()]
    _check_size(prod(sizes), "levels")
    grid = np.indices(sizes).reshape(len(sizes), -1)
    columns = {name: values[at] for (name, (values, _)), at in zip(factors.items(), grid, strict=True)}
    return Settings(columns, {name: order for name, (_, order) in factors.items() if order is not None})


def simplex_lattice(components: int | Sequence[str], degree: int) -> Settings:
    """Return all mixtures of the components in multiples of 1 / degree.

    Parameters
    ----------
    components : int or sequence of str
        Number of components, for x1, x2, ..., or their names.
    degree : int
        Number of equal steps from 0 to 1.

    Returns
    -------
    Settings
        One column of proportions per component. Each row sums to 1.

    See Also
    --------
    optdesign.simplex_centroid : Return the equal mixtures of every subset.
    optdesign.candidates : Make candidates from factors and a model.

    Examples
    --------
    >>> simplex_lattice(["water", "sugar", "flour"], 2).n_rows
    6
    """
    names = _components(components)
    if not _is_whole(degree) or degree < 1:
        remedy = "Quadratic models need 2."
        raise InputError("degree", "must be a whole number of at least 1", f"got {degree!r}", remedy)
    q, m = len(names), int(degree)
    _check_size(comb(q + m - 1, m), "degree")
    # A mixture is m steps and q - 1 bars between components in a row.
    bars = np.array(list(combinations(range(m + q - 1), q - 1)), dtype=np.float64)[::-1]
    parts = (np.diff(bars, prepend=-1.0, append=m + q - 1.0) - 1.0) / m
    return Settings(dict(zip(names, parts.T, strict=True)))


def simplex_centroid(components: int | Sequence[str]) -> Settings:
    """Return the equal mixtures of every subset of the components: pure ones, halves, thirds, and so on.

    Parameters
    ----------
    components : int or sequence of str
        Number of components, for x1, x2, ..., or their names.

    Returns
    -------
    Settings
        One column of proportions per component. Each row sums to 1.

    See Also
    --------
    optdesign.simplex_lattice : Return all mixtures in multiples of 1 / degree.
    optdesign.candidates : Make candidates from factors and a model.

    Examples
    --------
    >>> simplex_centroid(2)["x1"].tolist()
    [1.0, 0.0, 0.5]
    """
    names = _components(components)
    q = len(names)
    _check_size(2**q - 1, "components")
    subsets = [s for size in range(1, q + 1) for s in combinations(range(q), size)]
    points = np.zeros((len(subsets), q))
    for row, subset in zip(points, subsets, strict=True):
        row[list(subset)] = 1 / len(subset)
    return Settings(dict(zip(names, points.T, strict=True)))


def _levels(name: str, given: Any) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """Return the levels of a factor, and their order if they are text."""
    if _is_whole(given):
        if given < 1:
            remedy = "Two levels are -1 and 1."
            raise InputError(f"levels of {name!r}", "must be at least 1", f"got {given}", remedy)
        return (np.linspace(-1.0, 1.0, int(given)) if given > 1 else np.zeros(1)), None
    if isinstance(given, str | Real):
        raise TypeError(f"levels of {name!r} must be a list; got {given!r}. A single level is [{given!r}].")
    if isinstance(given, set | frozenset):
        raise TypeError(f"levels of {name!r} must have an order; got a set. Pass a list.")
    values, order = column(list(given) if isinstance(given, range | Iterator) else given, name)
    if values.ndim != 1 or not len(values):
        remedy = "Drop the factor."
        raise InputError(f"levels of {name!r}", "must be a list of one or more", f"got {given!r}", remedy)
    at = missing(values)
    if at is not None:
        raise InputError(f"levels of {name!r}", "must not be missing", f"entry {at} is", "Drop it.")
    distinct, first = np.unique(values, return_index=True)
    if len(distinct) < len(values):
        twice = next(v for k, v in enumerate(values.tolist()) if k not in first)
        raise InputError(f"levels of {name!r}", "must differ", f"{twice!r} occurs twice", "Drop one of them.")
    return values, order if order is not None else tuple(values.tolist()) if values.dtype == object else None


def _components(components: int | Sequence[str]) -> list[str]:
    if isinstance(components, str) or not (_is_whole(components) or isinstance(components, Sequence)):
        raise TypeError(
            f"components must be their number or a list of their names; got {components!r}. Three are 3."
        )
    names = [str(name) for name in components] if isinstance(components, Sequence) else _names(components)
    if not names or len(set(names)) < len(names):
        raise InputError("components", "must be one or more, with names that differ", f"got {components!r}")
    return names


def _names(count: int) -> list[str]:
    return [f"x{j + 1}" for j in range(count)]


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_size(rows: int, argument: str) -> None:
    most = 100_000_000  # rows of settings that are made at most
    if rows > most:
        remedy = "Take fewer levels, or list the settings that are possible."
        raise InputError(argument, f"must give at most {most:,} settings", f"these give {rows:,}", remedy)
