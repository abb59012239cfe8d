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
    listed,
    lookup,
    missing_label,
    number,
    times_as_text,
)
from optdesign.tables.values import column, objects, refuse_mask

CANDIDATE = "candidate"
"""Name of an index into the arrays of a problem, from 0. A row of a printed table counts from 1."""

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
    """Return a read-only C-ordered array that later changes of a small source do not reach."""
    out = np.ascontiguousarray(array)
    if np.may_share_memory(out, np.asarray(source)) and out.nbytes <= COPY_LIMIT:
        out = out.copy()
    return read_only(out)


def matrix(candidates: ArrayLike) -> np.ndarray:
    """Return candidates as float64, or as a memory map of float32, C-ordered and read-only."""
    if hasattr(candidates, "toarray"):
        remedy = "Pass candidates.toarray()."
        raise InputError("candidates", "must be a dense array", "got a sparse one", remedy)
    source = as_array(candidates, "candidates")
    check_axes(
        source, "candidates", "N, d", "Put one candidate a row; a single feature is a column: x[:, None]."
    )
    check_real(source, "candidates")
    if isinstance(source, np.memmap) and source.dtype == np.float32:
        return _frozen(source, source)
    x = np.asarray(source, dtype=np.float64)
    if source.dtype.itemsize >= 8 and source.dtype != np.float64:
        check_exact(source, x)
    return _frozen(x, source)


def check_axes(array: np.ndarray, name: str, axes: str, remedy: str) -> None:
    """Raise InputError unless an array has these axes, such as "N, d", none of them empty."""
    count = axes.count(",") + 1
    if array.ndim != count or 0 in array.shape:
        none = "neither" if count == 2 else "none"
        raise InputError(name, f"must have shape ({axes}), {none} of them 0", f"got {array.shape}", remedy)


def check_real(array: np.ndarray, name: str) -> None:
    """Raise InputError unless an array holds real numbers."""
    if array.dtype.kind not in "buif":
        raise InputError(name, "must be real numbers", f"got dtype {array.dtype}", "Convert them first.")


def refuse_blocks(blocks: object) -> None:
    """Raise TypeError if the former argument ``blocks`` is given."""
    if blocks is not None:
        raise TypeError(
            f"blocks must not be given: the word has two meanings. {TWO_MEANINGS} "
            "Pass parameter_blocks for parameter blocks."
        )


def as_array(values: ArrayLike, name: str) -> np.ndarray:
    """Return values as an array. Raise InputError unless they are rectangular and not masked."""
    refuse_mask(values, name)
    try:
        return np.asanyarray(values)
    except ValueError:
        remedy = "Pad or drop the short rows."
        raise InputError(name, "must be a rectangular array", "its rows differ in length", remedy) from None


def floats(values: ArrayLike, name: str) -> np.ndarray:
    """Return values as float64. Raise InputError unless they are numbers that double precision can hold."""
    array = as_array(values, name)
    check_real(array, name)
    x = np.asarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and array.size:
        check_exact(np.atleast_1d(array), np.atleast_1d(x), name)
    return x


def one_per_candidate(
    values: ArrayLike, name: str, n: int, remedy: str = "Pass them in the order of the candidates."
) -> np.ndarray:
    """Return values as float64. Raise InputError unless there is one per candidate."""
    check_order(values, name)
    array = floats(values, name)
    check_length(array, n, name, remedy)
    return array


def check_order(values: Any, name: str) -> None:
    """Raise InputError for a column of a frame of candidates, which ``to_frame`` made, in another order."""
    index: Any = getattr(values, "index", None)
    if getattr(index, "name", None) == CANDIDATE and np.any(np.diff(index) < 0):
        value = f"the index {CANDIDATE!r} is in another order"
        raise InputError(
            name, "must be in the order of the candidates", value, f"Sort it: {name}.sort_index()."
        )


def check_length(array: np.ndarray, n: int, name: str, remedy: str, entry: str = "entry") -> None:
    """Raise InputError unless an array has shape (n,)."""
    if array.shape != (n,):
        value = f"got {array.shape}"
        raise InputError(name, f"must have one {entry} per candidate, shape ({n},)", value, remedy)


def label(
    labels: Any,
    n: int,
    name: str,
    *,
    names: Any = None,
    columns: Mapping[str, Any] | None = None,
    budgets: Any = None,
) -> tuple[np.ndarray, int, Names | None]:
    """Return labels as integers, their number, and their names if these are not 0, 1, 2, ...

    ``labels`` may be the name of one of the ``columns``; ``names`` are what numbers are to be called. With
    ``budgets`` by label, numbers are labels like others where they are not 0, 1, 2, ...
    """
    if labels is None:
        return read_only(np.zeros(n, np.int64)), 1, label_names(names, 1, name)
    if isinstance(labels, str):
        source = columns or {}
        values = lookup(source, labels, name)
        return _by_name(values, getattr(source, "levels", {}).get(labels), n, name, names)
    array = as_array(labels, name)
    check_length(array, n, name, "Label every row of candidates.", "label")
    if array.dtype.kind not in "buif" or hasattr(labels, "cat") or hasattr(labels, "codes"):
        return _by_name(*column(labels, name), n, name, names)
    _check_labels(array, name)
    # Labels may leave gaps up to 1000, or up to ten times the number of candidates.
    most = max(1000, 10 * n)
    by_label = hasattr(budgets, "items") and names is None
    if array.dtype.kind == "f" or not by_label:
        _check_numbers(array, name, 2**53 if by_label else most)
    if array.dtype != np.uint64 or not by_label:
        array = array.astype(np.int64, copy=False)
    if by_label:
        present = np.unique(array)
        if not np.array_equal(present, np.arange(len(present))):
            return _by_name(array, None, n, name, None)
    count = int(np.maximum.reduce(array)) + 1
    known = label_names(names, count, name)
    return _frozen(array, labels), count if known is None else len(known), known


def _check_numbers(array: np.ndarray, name: str, most: int) -> None:
    """Raise InputError unless labels are whole numbers from 0 and below ``most``."""
    bad = (array < 0) | (array >= most)
    if array.dtype.kind == "f":
        bad |= array != np.floor(array)
    for at in np.flatnonzero(bad)[:1]:
        value = f"{name}[{at}] = {array[at]} with {len(array)} candidates"
        remedy = "Renumber: numpy.unique(labels, return_inverse=True)[1]."
        raise InputError(name, "must be integers 0, 1, 2, ...", value, remedy)


def refuse_names(names: Any, name: str) -> None:
    """Raise TypeError if names are given for groups or parameter blocks that have labels."""
    if names is not None:
        remedy = "Pass numbers, or leave it out."
        raise TypeError(f"{name[:-1]}_names must be left out where {name} are labels already. {remedy}")


def _by_name(
    array: np.ndarray, levels: Names | None, n: int, name: str, names: Any
) -> tuple[np.ndarray, int, Names]:
    """Return labels of any kind, numbered in the order of their levels, or sorted."""
    refuse_names(names, name)
    check_length(array, n, name, "Label every row.", "label")
    _check_labels(array, name)
    found = number(times_as_text(array), levels)
    return read_only(found.numbers.astype(np.int64)), len(found.names), tuple(found.names.tolist())


def _check_labels(array: np.ndarray, name: str) -> None:
    """Raise ValueError if a label is missing: None, NaN, NaT, or text without a visible character."""
    at = missing_label(array)
    if at is not None:
        raise InputError(name, "must not be missing", f"{name}[{at}] is", "Fill it in or drop the row.")


def label_names(names: Any, count: int, name: str) -> Names | None:
    """Return the names of numbered groups or parameter blocks: one each, all different."""
    if names is None:
        return None
    argument, values = f"{name[:-1]}_names", times_as_text(names) if isinstance(names, np.ndarray) else names
    given = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if isinstance(names, set | frozenset) or len(given) < count or len(set(given)) < len(given):
        rule = f"must be {count} different labels, one for each number"
        raise InputError(argument, rule, f"got {listed(given)}", "Give them in the order of the numbers.")
    _check_labels(objects(given), argument)
    return given


def column_names(names: Sequence[Any] | None, dim: int) -> tuple[str, ...] | None:
    """Return the names of the columns of candidates: one each, all different."""
    if names is None:
        return None
    given = tuple(map(str, names))
    if isinstance(names, str | set | frozenset) or len(given) != dim or len(set(given)) < dim:
        rule = f"must be {dim} different names, one for each column of candidates"
        raise InputError("names", rule, f"got {listed(given)}", "Leave them out, or name every column.")
    return given


def check_settings(settings: Settings | None, n: int) -> None:
    """Raise InputError unless settings have one row per candidate."""
    if settings is not None and settings.n_rows != n:
        value = f"got {settings.n_rows} for {n} candidates"
        remedy = "Give every candidate its settings."
        raise InputError("settings", "must have one row per candidate", value, remedy)


def called(names: Names | None, at: int) -> str:
    """Return a group or block as an error names it: by its label, or by its number."""
    return str(at) if names is None else repr(names[at])


def check_budgets(budgets: Any, n_groups: int, names: Names | None = None) -> np.ndarray:
    """Return a budget for every group: given by position, by label, as one number for all, or 1."""
    if budgets is None:
        return read_only(np.ones(n_groups))
    array = floats(_by_label(budgets, n_groups, names), "budgets")
    if array.ndim == 0:
        array = np.full(n_groups, array)
    if array.ndim != 1 or len(array) < n_groups or (names is not None and len(array) > n_groups):
        groups = listed(range(n_groups) if names is None else names)
        rule = f"must have one entry per group, shape ({n_groups},)"
        raise InputError("budgets", rule, f"got {array.shape}", f"The groups are {groups}.")
    for i in np.flatnonzero(~((array > 0) & np.isfinite(array)))[:1]:
        remedy = "Drop the group or give it a budget."
        value = f"budgets[{called(names, i)}] = {array[i]:g}"
        raise InputError("budgets", "must be positive and finite", value, remedy)
    check_range("budgets", float(array.max()))
    check_range("budgets", float(array.min()))
    return _frozen(array, budgets)


def _by_label(budgets: Any, n_groups: int, names: Names | None) -> Any:
    """Return budgets in the order of the groups, if they come with labels: a dict, or a pandas Series."""
    known = list(range(n_groups)) if names is None else list(names)
    if not hasattr(budgets, "items"):
        return budgets
    return in_order([(_as_spelled(k, known), v) for k, v in budgets.items()], known, "budgets", "groups")


def in_order(pairs: list[tuple[Any, Any]], known: Sequence[Any], name: str, of: str) -> list[Any]:
    """Return values that come with labels in the order of the known labels. Each must occur once."""
    keys, values = [key for key, _ in pairs], dict(pairs)
    if len(keys) != len(known) or set(keys) != set(known):
        lacking = [key for key in known if key not in values]
        rule = f"must have, once each, those of the {of}, {listed(known)}"
        value = f"there is none for {listed(lacking)}" if lacking else f"got {listed(keys)}"
        remedy = "Spell them alike, or pass an array in their order."
        raise InputError(f"{name} with labels", rule, value, remedy)
    return [values[key] for key in known]


def _as_spelled(key: Any, known: list[Any]) -> Any:
    """Return the label of a budget as the labels of groups are spelled, which are text if they were dates."""
    if isinstance(key, date | np.datetime64) and key == key and key not in known:  # not NaT
        if str(key) in known:
            return str(key)
        if isinstance(key, datetime):
            key = key.replace(tzinfo=None)
        return str(np.datetime_as_string(np.datetime64(key), unit="auto"))
    return key


def check_range(name: str, size: float) -> None:
    """Raise InputError for magnitudes whose powers leave the range of floating point."""
    if size > LARGEST or 0 < size < 1 / LARGEST:
        rule = f"must be between {1 / LARGEST:g} and {LARGEST:g} in size"
        remedy = "Change the units: the optimal design does not depend on them."
        raise InputError(name, rule, f"got {size:g}", remedy)


def check_peaks(
    name: str, peaks: np.ndarray, n: int, names: tuple[str, ...] | None = None, blocks: Names | None = None
) -> None:
    """Raise InputError unless the largest entries, by block and column of n rows, can be computed with."""
    tallest = float(np.maximum.reduce(peaks, axis=None))
    check_range(name, tallest)
    if tallest == 0:
        remedy = "There is nothing to inform: check the feature columns."
        raise InputError(name, "must have at least one non-zero row", f"all {n} rows are zero", remedy)
    # In smaller columns, coordinates would leave the range of floating point.
    for block, j in np.argwhere((peaks > 0) & (peaks < SMALLEST))[:1].tolist():
        rule = f"must have columns of at least {SMALLEST:g} in size"
        value = f"column {called(names, j)} is at most {peaks[block, j]:g} in parameter block "
        remedy = "Change its unit: the design does not depend on it."
        raise InputError(name, rule, value + called(blocks, block), remedy)


def check_span(name: str, maps: np.ndarray, blocks: Names | None = None) -> None:
    """Raise ValueError for rows of so different sizes that coordinates leave the range of floating point.

    ``maps`` has the matrix of every block that computes the coordinates.
    """
    if not np.isfinite(maps).all():
        block = int(np.argmin(np.isfinite(maps).all(axis=(1, 2))))
        raise ValueError(
            f"{name} must have rows of similar sizes; in parameter block {called(blocks, block)} a direction "
            "that only tiny entries inform leaves the range of floating point. Drop the tiny rows, or set "
            "tiny entries to 0."
        )


def check_groups(sizes: np.ndarray, names: Names | None = None) -> None:
    """Raise InputError if a group has no candidates, given the numbers of candidates."""
    if not sizes.all():
        value = f"group {called(names, int(np.argmin(sizes)))} of {len(sizes)} has none"
        remedy = "Number the groups 0, 1, 2, ... without gaps, with one budget each."
        raise InputError("every group", "must have a candidate", value, remedy)
