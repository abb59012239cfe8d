"""Arrays, labels, settings and numbers as JSON has them, restored to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.tables.columns import Settings


def settings_json(settings: Settings) -> dict[str, Any]:
    """Return settings as JSON, with the levels of categories."""
    levels = settings.levels
    return {
        name: {**array_json(values), "levels": labels_json(levels.get(name), f"levels of {name!r}")}
        for name, values in settings.items()
    }


def settings_of(saved: dict[str, Any]) -> Settings:
    """Return settings that were saved."""
    levels = {
        name: tuple(labels_of(column["levels"]) or ())
        for name, column in saved.items()
        if column["levels"] is not None
    }
    return Settings({name: array_of(column) for name, column in saved.items()}, levels)


def labels_json(labels: tuple[Any, ...] | None, what: str) -> list[Any] | None:
    """Return labels as JSON has them: text, numbers and booleans, and infinities as {"float": "inf"}."""
    if labels is None:
        return None
    for label in labels:
        if not isinstance(label, str | int | float):
            remedy = "Turn them into text."
            raise InputError(what, "must be text or numbers to be saved", f"got {label!r}", remedy)
    return [{"float": repr(v)} if isinstance(v, float) and not math.isfinite(v) else v for v in labels]


def labels_of(saved: list[Any] | None) -> list[Any] | None:
    """Return labels that were saved."""
    return saved and [float(label["float"]) if isinstance(label, dict) else label for label in saved]


def array_json(array: np.ndarray) -> dict[str, Any]:
    """Return an array as JSON: its type, its shape, and its entries in order."""
    flat = array.reshape(-1)
    entries: list[Any] = (flat.astype(np.int64) if array.dtype.kind in "mM" else flat).tolist()
    if array.dtype.kind == "f" and not np.isfinite(flat).all():
        entries = list(map(number_json, entries))
    return {"dtype": array.dtype.str, "shape": list(array.shape), "entries": entries}


def array_of(saved: dict[str, Any]) -> np.ndarray:
    """Return an array that was saved."""
    dtype, entries = np.dtype(saved["dtype"]), saved["entries"]
    if dtype.kind in "mM":
        return np.array(entries, dtype=np.int64).view(dtype).reshape(saved["shape"])
    out = np.empty(len(entries), dtype=dtype)
    out[:] = [float(v) for v in entries] if dtype.kind == "f" else entries
    return out.reshape(saved["shape"])


def number_json(value: float) -> float | int | str:
    """Return a number as JSON has it, or as text if JSON does not have it."""
    return value if math.isfinite(value) else repr(float(value))
