"""Factors as axes: numeric scales, levels side by side, and three proportions as a triangle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.plot.naming import Names, label_axis
from optdesign.plot.style import GREY
from optdesign.plot.text import readable
from optdesign.tables.columns import Settings, lookup, missing, number, times_as_text

HEIGHT = np.sqrt(3) / 2
"""Height of a triangle with sides 1."""


class Scale(NamedTuple):
    """A factor as an axis: position of every candidate, and the levels at 0, 1, ... if it is not numeric."""

    name: str
    at: np.ndarray
    levels: tuple[Any, ...] | None

    def label(self, axis: Any, more: str = "") -> None:
        """Name an axis, and its levels."""
        if self.levels is None:
            axis.set_label_text(readable(self.name, 40) + more)
        else:
            label_axis(axis, self.levels, len(self.levels), self.name)
            axis.set_label_text(axis.get_label_text() + more)
            room = max(0.5, 0.06 * (len(self.levels) - 1))  # for the circles at the first and the last level
            low, high = -room, len(self.levels) - 1 + room
            axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})


class View(NamedTuple):
    """Factors that a picture shows, and factors over which it is a maximum or a sum."""

    scales: tuple[Scale, ...]
    others: tuple[str, ...]

    @property
    def is_triangle(self) -> bool:
        """True if three proportions are shown."""
        return len(self.scales) == 3

    def note_on_others(self, what: str) -> str:
        """Return the note on factors that are not shown, which follows the name of a quantity."""
        names = ", ".join(self.others[:3]) + (", ..." if len(self.others) > 3 else "")
        return f"{what} over {readable(names, 40)}" if self.others else ""

    def places(self) -> np.ndarray:
        """Positions of the candidates in the picture, (N, 1) or (N, 2)."""
        if not self.is_triangle:
            return np.column_stack([scale.at for scale in self.scales])
        a, b, c = (scale.at for scale in self.scales)
        total = a + b + c
        return np.column_stack([b + c / 2, HEIGHT * c]) / total[:, None]


def view(names: Names, factors: str | Sequence[str] | None = None) -> View | None:
    """Return the factors to show: the given ones, all if 2 or 3 proportions, or the first 2.

    None if the candidates have no settings. Columns that only repeat groups or parameter blocks are not
    chosen.
    """
    settings = names.problem.settings
    if settings is None or not len(settings):
        if factors is not None:
            rule = "must be names of settings, and the candidates have none"
            remedy = "Build the problem with them: DesignProblem(candidates, settings={name: column})."
            raise InputError("factors", rule, f"got {factors!r}", remedy)
        return None
    free = list(names.factors)
    if factors is None:
        chosen = free if len(free) <= 2 or _are_proportions(settings, free) else free[:2]
        chosen = chosen or list(settings)[:1]
    else:
        chosen = [factors] if isinstance(factors, str) else list(factors)
    scales = tuple(_scale(settings, name) for name in chosen)
    if not 1 <= len(scales) <= 2 and not _are_proportions(settings, chosen):
        rule = "must be one or two names, or three whose values are proportions"
        raise InputError("factors", rule, f"got {chosen!r}", "Choose two: the others are taken together.")
    return View(scales, tuple(name for name in free if name not in chosen))


def _scale(settings: Settings, name: str) -> Scale:
    column = lookup(settings, name, "factors")
    gone = missing(column)
    if gone is not None:
        value = f"{name!r} lacks that of row {gone + 1}"
        raise InputError("factors", "must have no missing entries", value, "Fill it in.")
    levels, numbers = number(column, settings.levels.get(name))
    at = column.astype(np.float64) if column.dtype.kind in "iuf" else None
    if at is not None and len(np.unique(at)) == len(levels):  # whole numbers above 2^53 may coincide
        return Scale(name, at, None)
    return Scale(name, numbers.astype(np.float64), tuple(times_as_text(levels).tolist()))


def _are_proportions(settings: Settings, names: Sequence[str]) -> bool:
    """Return True if three columns of numbers that are not negative have the same sum in every row."""
    if len(names) != 3 or any(settings[name].dtype.kind not in "iuf" for name in names):
        return False
    columns = np.array([settings[name] for name in names], dtype=np.float64)
    sums = columns.sum(axis=0)
    # Three columns are proportions if their sums differ by no more than this fraction.
    same_sum = 1e-6
    same = np.ptp(sums) <= same_sum * np.abs(sums).max()
    return bool(same and columns.min() >= -same_sum * sums.max() and sums.min() > 0)


def totals_at(places: np.ndarray, values: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the rows whose values are positive, and the sum of the values at each place.

    >>> totals_at(np.array([[0.0], [1.0], [1.0]]), np.array([0, 2, 3]), np.arange(3))
    (array([[1.]]), array([5]))
    """
    kept = rows[values[rows] > 0]
    extent = np.ptp(places, axis=0)
    scaled = np.round(places[kept] / np.where(extent > 0, extent, 1.0), 12)
    _, first, where = np.unique(scaled, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(where.ravel(), weights=values[kept], minlength=len(first))
    return places[kept][first], total.astype(values.dtype)


class Profile(NamedTuple):
    """The largest value at every place where there is a candidate: places by axis, and values."""

    places: tuple[np.ndarray, ...]
    cells: tuple[np.ndarray, ...]
    values: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """Coordinates of the places, one row each."""
        return np.column_stack([place[k] for place, k in zip(self.places, self.cells, strict=True)])

    @property
    def is_grid(self) -> bool:
        """True if most combinations of places have a candidate."""
        return 2 * len(self.values) >= math.prod(len(place) for place in self.places)

    def grid(self) -> np.ndarray:
        """Values as a matrix, rows along the second axis, NaN where there is no candidate."""
        out = np.full([len(place) for place in self.places], np.nan)
        out[self.cells] = self.values
        return out.T


def profile(places: np.ndarray, values: np.ndarray, most: int) -> Profile:
    """Return the largest value at every place; more than ``most`` places along an axis are joined."""
    found = [_along(axis, most) for axis in places.T]
    shape = [len(place) for place, _ in found]
    cell = np.ravel_multi_index([k for _, k in found], shape)
    occupied, where = np.unique(cell, return_inverse=True)
    top = np.full(len(occupied), -np.inf)
    np.maximum.at(top, where, values)
    return Profile(tuple(place for place, _ in found), np.unravel_index(occupied, shape), top)


def _along(at: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Places along an axis, at most so many, and the one of every candidate."""
    places, index = np.unique(at, return_inverse=True)
    if len(places) <= most:
        return places, index
    low, high = places[0], places[-1]
    index = np.minimum((at - low) * (most / (high - low)), most - 1).astype(np.int64)
    return low + (np.arange(most) + 0.5) * (high - low) / most, index


def edges(places: np.ndarray) -> np.ndarray:
    """Borders between places, and as far beyond the first and the last.

    >>> edges(np.array([0.0, 1.0, 3.0])).tolist()
    [-0.5, 0.5, 2.0, 4.0]
    """
    if len(places) == 1:
        return places[0] + np.array([-0.5, 0.5])
    middle = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


def frame(axes: Any, shown: View, more: str = "") -> None:
    """Name the axes of a picture, or draw and name the triangle."""
    if not shown.is_triangle:
        for axis, scale in zip((axes.xaxis, axes.yaxis), shown.scales, strict=False):
            scale.label(axis, more if axis is axes.xaxis else "")
        return
    corners = np.array([[0, 0], [1, 0], [0.5, HEIGHT], [0, 0]])
    axes.plot(*corners.T, color="black", linewidth=1.0, zorder=2)
    outline = axes.fill(*corners.T, visible=False)[0]
    for drawn in axes.collections:
        drawn.set_clip_path(outline)
    for share in (0.2, 0.4, 0.6, 0.8):
        for k in range(3):
            a, b, c = corners[k], corners[(k + 1) % 3], corners[(k + 2) % 3]
            line = np.array([a + share * (b - a), c + share * (b - c)])
            axes.plot(*line.T, color=GREY, linewidth=0.5, zorder=0)
    for (x, y), ha, va, scale in zip(
        corners, ("left", "right", "center"), ("top", "top", "bottom"), shown.scales, strict=False
    ):
        offset = 16 if va == "bottom" else -16
        axes.annotate(
            f"{readable(scale.name, 18)} only", (x, y), (0, offset), textcoords="offset points", ha=ha, va=va
        )
    axes.set(xlim=(-0.08, 1.08), ylim=(-0.15, HEIGHT + 0.15), aspect="equal")
    axes.set_axis_off()
    if more:
        axes.annotate(more.strip(), (0.5, -0.02), xycoords="axes fraction", ha="center", va="top", fontsize=9)
