"""Checks of the parts of a problem, which :mod:`optdesign.problem.parts` takes from frames and files.

Labels may be numbers from 0 or text, and budgets come by position or by label. The results are read-only
arrays of the types that kernels are compiled for. An error names the argument, the rule, the value and the
remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.errors import InputError
from optdesign.problem.source import read_only
from optdesign.tables.columns import (
    Settings,
    check_exact,
    column,
    listed,
    lookup,
    missing_label,
    number,
    refuse_mask,
)

COPY_LIMIT = 1 << 26
"""Input arrays up to this many bytes are copied; larger ones are kept by reference if their type fits."""

LARGEST = 1e60
"""Entries and budgets may be as large as this, and their largest as small as its inverse."""

SMALLEST = 1e-250
"""And the largest entry of a column of a block as small as this, if it is not zero."""

TWO_MEANINGS = (
    "A parameter block has a parameter vector of its own, as every product may have. A blocking factor, such "
    "as a day, only shifts the response: make it a term of the model, and a group if the number of runs on "
    "every day is fixed."
)
"""The two meanings of the word block, for errors about it."""

Names = tuple[Any, ...]


def _frozen(array: np.ndarray, source: object) -> np.ndarray:
    """A read-only C-ordered array that later changes of a small source do not reach."""
    out = np.ascontiguousarray(array)
    if np.may_share_memory(out, np.asarray(source)) and out.nbytes <= COPY_LIMIT:
        out = out.copy()
    return read_only(out)


def matrix(candidates: ArrayLike) -> np.ndarray:
    """Candidates as float64, or as a memory map of float32, C-ordered and read-only."""
    if hasattr(candidates, "toarray"):
        raise InputError(
            "candidates", "must be a dense array", "got a sparse one", "Pass candidates.toarray()."
        )
    source = candidates if isinstance(candidates, np.ndarray) else as_array(candidates, "candidates")
    refuse_mask(source, "candidates")
    if source.ndim != 2 or 0 in source.shape:
        raise InputError(
            "candidates",
            "must have shape (N, d), neither of them 0",
            f"got {source.shape}",
            "Put one candidate a row; a single feature is a column: x[:, None].",
        )
    if source.dtype.kind not in "buif":
        raise InputError(
            "candidates", "must be real numbers", f"got dtype {source.dtype}", "Convert the columns first."
        )
    if isinstance(source, np.memmap) and source.dtype == np.float32:
        return _frozen(source, source)
    x = np.asarray(source, dtype=np.float64)
    if source.dtype.itemsize >= 8 and source.dtype != np.float64:
        check_exact(source, x)
    return _frozen(x, source)


def refuse_blocks(blocks: object) -> None:
    """Raise TypeError if the former argument ``blocks`` is given."""
    if blocks is not None:
        raise TypeError(
            f"blocks must not be given: the word has two meanings. {TWO_MEANINGS} "
            "Pass parameter_blocks for parameter blocks."
        )


def as_array(values: ArrayLike, name: str) -> np.ndarray:
    """Values as an array, if they are rectangular and not masked."""
    refuse_mask(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            name, "must be a rectangular array", "its rows differ in length", "Pad or drop the short rows."
        ) from None


def floats(values: ArrayLike, name: str) -> np.ndarray:
    """Values as float64, with an error that names them. Integers must fit double precision."""
    array = as_array(values, name)
    if array.dtype.kind not in "buif":
        raise InputError(name, "must be real numbers", f"got dtype {array.dtype}", "Convert them first.")
    x = np.asarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and array.size:
        rows = len(array) if array.ndim else 1
        check_exact(array.reshape(rows, -1), x.reshape(rows, -1), name)
    return x


def one_per_candidate(
    values: ArrayLike, name: str, n: int, remedy: str = "Pass them in the order of the candidates."
) -> np.ndarray:
    """Return values as float64. Raise InputError unless there is one per candidate."""
    array = floats(values, name)
    if array.shape != (n,):
        raise InputError(
            name, f"must have one entry per candidate, shape ({n},)", f"got {array.shape}", remedy
        )
    return array


def label(
    labels: Any,
    n: int,
    name: str,
    *,
    names: Any = None,
    columns: Mapping[str, Any] | None = None,
    budgets: Any = None,
) -> tuple[np.ndarray, int, Names | None]:
    """Labels as integers, how many there are, and what they are called, if not 0, 1, 2, ...

    ``labels`` may be the name of one of the ``columns``; ``names`` are what numbers are to be called. With
    ``budgets`` by label, numbers are labels like others where they are not 0, 1, 2, ...
    """
    if labels is None:
        return read_only(np.zeros(n, np.int64)), 1, _label_names(names, 1, name)
    if isinstance(labels, str):
        source = columns or {}
        values = lookup(source, labels, name)
        return _by_name(values, getattr(source, "levels", {}).get(labels), n, name, names)
    array = labels if isinstance(labels, np.ndarray) else as_array(labels, name)
    refuse_mask(array, name)
    if array.shape != (n,):
        raise InputError(
            name,
            f"must have one label per candidate, shape ({n},)",
            f"got {array.shape}",
            "Label every row of candidates.",
        )
    if array.dtype.kind not in "buif" or hasattr(labels, "cat") or hasattr(labels, "codes"):
        return _by_name(*column(labels, name), n, name, names)
    _check_labels(array, name)
    if array.dtype.kind == "f":
        array = _integral(array, name)
    if hasattr(budgets, "items") and names is None:
        present = np.unique(array)
        if not np.array_equal(present, np.arange(len(present))):
            return _by_name(array, None, n, name, None)
    if np.minimum.reduce(array) < 0:
        at = int(np.argmin(array))
        raise InputError(name, "must not be negative", f"{name}[{at}] = {array[at]}", "Number them from 0.")
    count = int(np.maximum.reduce(array)) + 1
    # Labels may leave gaps up to here, or up to ten times the number of candidates.
    label_slack = 1000
    if count > max(label_slack, 10 * n):
        at = int(np.argmax(array))
        raise InputError(
            name,
            "must be numbered 0, 1, 2, ...",
            f"{name}[{at}] = {array[at]} with {n} candidates",
            "Renumber: numpy.unique(labels, return_inverse=True)[1].",
        )
    known = _label_names(names, count, name)
    if known is not None:
        count = len(known)
    return _frozen(array.astype(np.int64, copy=False), labels), count, known


def _by_name(
    array: np.ndarray, levels: Names | None, n: int, name: str, names: Any
) -> tuple[np.ndarray, int, Names]:
    """Labels of any kind, numbered: in the order of their levels, or sorted."""
    if names is not None:
        raise TypeError(
            f"{name[:-1]}_names must be left out where {name} are labels already. "
            "Pass numbers, or leave it out."
        )
    if len(array) != n:
        raise InputError(
            name, "must have one label per candidate", f"got {len(array)} for {n}", "Label every row."
        )
    _check_labels(array, name)
    if array.dtype.kind == "M":
        array = np.datetime_as_string(array, unit="auto").astype(object)
    found = number(array.astype(str).astype(object) if array.dtype.kind == "m" else array, levels)
    return read_only(found.numbers.astype(np.int64)), len(found.names), tuple(found.names.tolist())


def _check_labels(array: np.ndarray, name: str) -> None:
    """Raise ValueError if a label is missing: None, NaN, NaT, or text without a visible character."""
    at = missing_label(array)
    if at is not None:
        raise InputError(name, "must not be missing", f"{name}[{at}] is", "Fill it in or drop the row.")


def _label_names(names: Any, count: int, name: str) -> Names | None:
    """The names of numbered groups or parameter blocks: one each, all different."""
    if names is None:
        return None
    argument, given = f"{name[:-1]}_names", tuple(v.item() if isinstance(v, np.generic) else v for v in names)
    if len(given) < count or len(set(given)) < len(given):
        raise InputError(
            argument,
            f"must be {count} different labels, one for each number",
            f"got {listed(given)}",
            "Give them in the order of the numbers.",
        )
    labels = np.empty(len(given), dtype=object)
    labels[:] = given
    _check_labels(labels, argument)
    return given


def column_names(names: Sequence[Any] | None, dim: int) -> tuple[str, ...] | None:
    """The names of the columns of candidates: one each, all different."""
    if names is None:
        return None
    given = tuple(map(str, names))
    if isinstance(names, str) or len(given) != dim or len(set(given)) < dim:
        raise InputError(
            "names",
            f"must be {dim} different names, one for each column of candidates",
            f"got {listed(given)}",
            "Leave them out, or name every column.",
        )
    return given


def check_settings(settings: Settings | None, n: int) -> None:
    """Refuse settings that are not one row a candidate."""
    if settings is not None and settings.n_rows != n:
        raise InputError(
            "settings",
            "must have one row per candidate",
            f"got {settings.n_rows} for {n} candidates",
            "Give every candidate its settings.",
        )


def called(names: Names | None, at: int) -> str:
    """A group or block as an error names it: by its label, or by its number."""
    return str(at) if names is None else repr(names[at])


def _integral(array: np.ndarray, name: str) -> np.ndarray:
    bad = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53)))
    if len(bad):
        raise InputError(
            name,
            "must be integers",
            f"{name}[{bad[0]}] = {array[bad[0]]}",
            "Number your labels: numpy.unique(labels, return_inverse=True)[1].",
        )
    return array.astype(np.int64)


def check_budgets(budgets: Any, n_groups: int, names: Names | None = None) -> np.ndarray:
    """A budget for every group: given by position, by label, as one number for all, or 1."""
    if budgets is None:
        return read_only(np.ones(n_groups))
    array = floats(_by_label(budgets, n_groups, names), "budgets")
    if array.ndim == 0:
        array = np.full(n_groups, array)
    if array.ndim != 1 or len(array) < n_groups or (names is not None and len(array) > n_groups):
        last = (
            f"The largest group label is {n_groups - 1}"
            if names is None
            else f"The groups are {listed(names)}"
        )
        raise InputError(
            "budgets", f"must have one entry per group, shape ({n_groups},)", f"got {array.shape}", f"{last}."
        )
    low, high = float(np.minimum.reduce(array)), float(np.maximum.reduce(array))
    if not (low > 0 and high < np.inf):
        bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
        raise InputError(
            "budgets",
            "must be positive and finite",
            f"budgets[{called(names, bad[0])}] = {array[bad[0]]:g}",
            "Drop the group or give it a budget.",
        )
    check_range("budgets", high)
    check_range("budgets", low)
    return _frozen(array, budgets)


def _by_label(budgets: Any, n_groups: int, names: Names | None) -> Any:
    """Budgets in the order of the groups, if they come with labels: a dict, or a pandas Series."""
    items = budgets.items() if hasattr(budgets, "items") else None
    if items is None:
        return budgets
    known = list(range(n_groups)) if names is None else list(names)
    given = {}
    for key, budget in items:
        spelled = _as_spelled(key, known)
        if spelled in given:
            raise InputError(
                "budgets", "must name each group once", f"{str(key)!r} occurs twice", "Drop one or sum them."
            )
        given[spelled] = budget
    if set(given) != set(known):
        of = f"0 to {n_groups - 1}" if names is None else listed(known)
        lacking = [k for k in known if k not in given]
        what = (
            f"there is none for {listed(lacking)}"
            if lacking and names is not None
            else f"got {listed(given)}"
        )
        raise InputError(
            "budgets with labels",
            f"must have those of the groups, {of}",
            what,
            f"{'Number the groups as the labels, or pass' if names is None else 'Spell them alike, or pass'} "
            "an array in their order.",
        )
    return [given[k] for k in known]


def _as_spelled(key: Any, known: list[Any]) -> Any:
    """The label of a budget as the labels of groups are spelled, which are text if they were dates."""
    if isinstance(key, date | np.datetime64) and key == key and key not in known:  # not NaT
        if str(key) in known:
            return str(key)
        if isinstance(key, datetime):
            key = key.replace(tzinfo=None)
        return str(np.datetime_as_string(np.datetime64(key), unit="auto"))
    return key


def check_range(name: str, size: float) -> None:
    """Refuse magnitudes whose powers leave the range of floating point."""
    if size > LARGEST or 0 < size < 1 / LARGEST:
        raise InputError(
            name,
            f"must be between {1 / LARGEST:g} and {LARGEST:g} in size",
            f"got {size:g}",
            "Change the units: the optimal design does not depend on them.",
        )


def check_columns(
    name: str, peaks: np.ndarray, names: tuple[str, ...] | None = None, blocks: Names | None = None
) -> None:
    """Refuse columns so small that their coordinates would leave the range of floating point."""
    if np.minimum.reduce(peaks, axis=None) >= SMALLEST:
        return
    tiny = (peaks > 0) & (peaks < SMALLEST)
    if tiny.any():
        block, column = (int(i) for i in np.argwhere(tiny)[0])
        raise InputError(
            name,
            f"must have columns of at least {SMALLEST:g} in size",
            f"column {called(names, column)} is at most {peaks[block, column]:g} in parameter block "
            f"{called(blocks, block)}",
            "Change its unit: the design does not depend on it.",
        )


def check_span(name: str, maps: np.ndarray, blocks: Names | None = None) -> None:
    """Refuse rows of so different sizes that coordinates of some of them leave the range of floating point.

    ``maps`` has the matrix of every block that computes the coordinates.
    """
    if not np.isfinite(maps).all():
        block = int(np.argmin(np.isfinite(maps).all(axis=(1, 2))))
        raise ValueError(
            f"{name} must have rows of similar sizes; in parameter block {called(blocks, block)} a direction "
            "that only tiny entries inform leaves the range of floating point. Drop the tiny rows, or set "
            "tiny entries to 0."
        )


def check_groups(groups: np.ndarray, n_groups: int, names: Names | None = None) -> None:
    """Refuse groups without candidates."""
    sizes = np.bincount(groups, minlength=n_groups)
    if not sizes.all():
        empty = np.flatnonzero(sizes == 0)
        raise InputError(
            "every group",
            "must have a candidate",
            f"group {called(names, empty[0])} of {n_groups} has none",
            "Number the groups 0, 1, 2, ... without gaps, with one budget each.",
        )
