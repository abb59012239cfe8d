"""Parts of candidates that are an array, a data frame, a file or made of factors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.problem.candidates import TABLES, Candidates
from optdesign.tables.columns import (
    Settings,
    check_exact,
    check_index,
    is_frame,
    is_single,
    listed,
    lookup,
    missing,
    missing_label,
)
from optdesign.tables.files import (
    check_suffix,
    place,
    read_table,
    refuse_saved_design,
    row_names,
    stored_index,
    stored_levels,
)


class Parts(NamedTuple):
    """Candidates with the names, settings and labels that came with them."""

    candidates: Any
    names: Sequence[Any] | None
    settings: Settings | None
    columns: Mapping[str, Any]
    """Columns that groups and parameter blocks may name."""
    is_single: bool
    """True if a column behind the candidates is in single precision."""


def unpack(candidates: Any, names: Any, settings: Any, labels: Sequence[Any]) -> Parts:
    """Take candidates apart: an array, a frame or file, or :class:`optdesign.problem.candidates.Candidates`.

    The features of a frame or file are all columns except those that ``labels`` (groups and blocks) name and
    those that only name rows.
    """
    if isinstance(candidates, Candidates):
        if names is not None or settings is not None:
            raise TypeError("names and settings must not be given with Candidates, which have their own.")
        made = candidates
        return Parts(made.features, made.names, made.settings, made.settings, made.is_single)
    own = None if settings is None else settings if isinstance(settings, Settings) else Settings(settings)
    taken = {label for label in labels if isinstance(label, str)}
    index: set[str] = set()
    path = Path(candidates) if isinstance(candidates, str | Path) else None
    if path is not None:
        check_suffix(path, "candidates", TABLES)
        candidates, index = Settings(read_table(path, text=taken), stored_levels(path)), stored_index(path)
    if not isinstance(candidates, Settings) and not is_frame(candidates):
        return Parts(candidates, names, own, own or {}, is_single(candidates))
    table = candidates if isinstance(candidates, Settings) else Settings(candidates)
    for name, argument in zip(labels, ("groups", "parameter_blocks"), strict=True):
        check_index(candidates, name, argument)
        if isinstance(name, str):
            at = missing_label(lookup(table, name, argument, "the frame"))
            if at is not None and path is not None:
                value = f"{place(path, at)}, column {name!r} of {path} is empty"
                raise InputError(argument, "must not be missing", value, "Fill it in or drop the row.")
    refuse_saved_design(set(table).difference(taken), "candidates")
    rows = [name for name in table if name in {*row_names(table), *index}.difference(taken)]
    if rows:
        warnings.warn(
            f"columns {listed(rows)} name the rows and are not features; rename them if they are.",
            stacklevel=3,
        )
    features = [name for name in table if name not in taken and name not in rows]
    if not features:
        value = "all columns of the frame are labels or names of rows"
        raise InputError("candidates", "must have a feature", value, "Add columns.")
    for name in features:
        at = missing(table[name])
        if table[name].dtype.kind not in "biuf" or name in table.levels:
            remedy = "Name it as groups or parameter_blocks, drop it, or make the features from a model: "
            remedy += "candidates(frame, model=...)."
            raise InputError("candidates", "must be numbers", f"column {name!r} is not", remedy)
        if at is not None:
            value = f"column {name!r} is missing"
            raise InputError("candidates", "must be finite", value, "Drop the row or fill it in.", at)
        check_exact(table[name], table[name].astype(np.float64), f"column {name!r}")
    single = any(is_single(table[name]) for name in features)
    x = np.column_stack([table[name] for name in features])
    return Parts(x, features if names is None else names, own, table, single)
