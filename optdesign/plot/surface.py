"""Values over one factor, over the plane of two, and over the triangle of three proportions.

If several values fall on one place, because factors are not shown or groups and blocks share a panel, the
largest is drawn. The maximum of the picture is then the maximum over all candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optdesign.plot import style
from optdesign.plot.scales import HEIGHT, Profile, View, edges, frame, profile
from optdesign.plot.style import BLUE, GREY, ORANGE, shades, subsample


def draw_curve(
    axes: Any,
    shown: View,
    rows: np.ndarray,
    values: np.ndarray,
    support: np.ndarray,
    bound: float,
    *,
    more_at_a_place: bool,
) -> None:
    """Values over one factor, below their bound, with those of the support marked."""
    at = shown.scales[0].at
    most_places = 2001  # places along a curve; of more, neighbours are joined
    # If the curve is a maximum over other factors, scattered places are joined until each has several values.
    most = max(20, len(rows) // 30) if more_at_a_place else most_places
    top = profile(at[rows, None], values[rows], min(most, most_places))
    if len(top.values) < len(rows):
        some = subsample(rows)
        axes.scatter(at[some], values[some], s=5, color=GREY, linewidths=0, rasterized=len(some) > 2000)
    joined = shown.scales[0].levels is None
    few_places = 60  # places along a curve up to which each is marked
    few = len(top.values) <= few_places
    axes.plot(
        top.points[:, 0], top.values, color=GREY if not joined else "0.35", linewidth=1.2 if joined else 0,
        marker="o" if few or not joined else "", markersize=3.5, label="variance", zorder=3,
    )  # fmt: skip
    axes.axhline(bound, color=ORANGE, linewidth=1.3, linestyle="--", label="bound", zorder=2)
    axes.scatter(
        at[support], values[support], s=42, color=BLUE, edgecolors="black", linewidths=0.8, zorder=4,
        label="candidate with weight",
    )  # fmt: skip
    frame(axes, shown)


def draw_map(
    axes: Any, shown: View, rows: np.ndarray, values: np.ndarray, limits: tuple[float, float]
) -> Any:
    """Values by shade, between limits, over a plane or a triangle; returns what a colour bar needs."""
    places = shown.places()[rows]
    options = {"cmap": shades(), "rasterized": True, "zorder": 1}
    if not len(rows):
        drawn = axes.scatter([], [], c=[], **options)
    elif shown.is_triangle:
        drawn = _hexagons(axes, places, values[rows], options)
    else:
        found = profile(places, values[rows], style.MOST.places)
        drawn = _cells(axes, shown, found, options)
    drawn.set_clim(*limits)
    return drawn


def _cells(axes: Any, shown: View, found: Profile, options: dict[str, Any]) -> Any:
    margin = 0.04  # around a map, for the circles on its border, as a fraction of its sides
    if found.is_grid:
        x, y = (edges(place) for place in found.places)
        for axis, scale, border in zip("xy", shown.scales, (x, y), strict=True):
            low, high = float(scale.at.min()), float(scale.at.max())
            if scale.levels is None and low < high:  # no settings beyond the first and the last
                np.clip(border, low, high, out=border)
                room = margin * (high - low)
                axes.set(**{f"{axis}lim": (low - room, high + room)})
        return axes.pcolormesh(x, y, np.ma.masked_invalid(found.grid()), **options)
    points = found.points
    size = 30 if len(points) <= 500 else 8
    return axes.scatter(*points.T, c=found.values, s=size, marker="s", linewidths=0, **options)


def _hexagons(axes: Any, places: np.ndarray, values: np.ndarray, options: dict[str, Any]) -> Any:
    from matplotlib.collections import PolyCollection

    share = np.unique(np.round(places[:, 1] / HEIGHT, 9))
    finest = 1 / style.MOST.lattice
    side = max(float(np.diff(share).min(initial=1.0)), finest)
    # Neighbours closer than the finest distance share the place of the first lattice point near them.
    up = np.round(places[:, 1] / (HEIGHT * side))
    right = np.round(places[:, 0] / side - up / 2)
    if side == finest:
        places = np.column_stack([(right + up / 2) * side, up * side * HEIGHT])
    top = profile(side * np.round(places / side, 3), values, len(places))
    turn = np.pi / 6 + np.arange(6) * np.pi / 3
    corners = side / np.sqrt(3) * np.column_stack([np.cos(turn), np.sin(turn)])
    hexagons = PolyCollection(top.points[:, None] + corners, array=top.values, linewidths=0, **options)
    return axes.add_collection(hexagons)


def draw_marks(axes: Any, places: np.ndarray, share: np.ndarray) -> None:
    """Circles at places with weight, of areas that grow with the share of the largest total, at most 1."""
    axes.scatter(
        *places.T, s=20 + 160 * share, facecolor="white", edgecolor="black", linewidths=1.3, zorder=4,
        label="candidate with weight (area: how much)", clip_on=False,
    )  # fmt: skip
