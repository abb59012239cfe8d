"""The smallest ellipsoid around points, seen along all but two coordinates.

The shadow of ``{c + B^-1 u : |u| <= 1}`` on some coordinates takes those rows of c and of B^-1. With these
rows written as P diag(l) Q', its semi-axes have the lengths l and the columns of P for directions. In two
dimensions the shadow is the ellipse itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.result import rounded_up
from optdesign.ellipsoid import Ellipsoid
from optdesign.errors import InputError
from optdesign.plot.style import BLUE, GREY, ORANGE, legend, picture, subsample
from optdesign.problem.inputs import floats


def ellipsoid(
    ellipsoid: Ellipsoid,
    points: ArrayLike,
    coordinates: tuple[int, int] = (0, 1),
    *,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw an ellipsoid, its centre and its axes around the points.

    Points with weight in the design behind it have a ring. The title has the semi-axes, and the fraction by
    which the volume may exceed the minimum. An ellipsoid in more than 2 dimensions is projected onto two
    coordinates, and the axes are those of the projection.

    Parameters
    ----------
    ellipsoid : Ellipsoid
        Ellipsoid to draw.
    points : array_like of shape (N, d)
        Points that it contains.
    coordinates : tuple of int, default (0, 1)
        Coordinates to project onto.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. Default: a new figure.
    path : str or Path, optional
        File to save to: .png, .pdf or .svg.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    optdesign.min_volume_ellipsoid : Compute the ellipsoid.

    Examples
    --------
    >>> import optdesign as od
    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> figure = od.plot.ellipsoid(od.min_volume_ellipsoid(square), square)
    """
    x = floats(points, "points")
    d = len(ellipsoid.centre)
    if x.shape != (len(ellipsoid.result.weights), d):
        rule = f"must be those of the ellipsoid, shape ({len(ellipsoid.result.weights)}, {d})"
        raise InputError("points", rule, f"got {x.shape}", "Pass what min_volume_ellipsoid was given.")
    chosen = list(coordinates)
    if d < 2 or len(set(chosen)) != 2 or not all(0 <= k < d for k in chosen):
        rule = f"must be two different ones of 0 to {d - 1}"
        remedy = "An ellipsoid in one dimension is an interval: see its centre and factor."
        raise InputError("coordinates", rule, f"got {coordinates}", remedy)
    half = np.linalg.inv(ellipsoid.factor)[chosen]  # the shadow is centre + half u, |u| <= 1
    directions, lengths, _ = np.linalg.svd(half, full_matrices=False)
    centre = ellipsoid.centre[chosen]
    turn = np.linspace(0, 2 * np.pi, 361)
    outline = centre + (np.column_stack([np.cos(turn), np.sin(turn)]) * lengths) @ directions.T
    flat = 20  # ratio of the two extents beyond which the axes get units of their own
    with picture(ax, path, size=(5.6, 5.2)) as (axes,):
        _draw_points(axes, x[:, chosen], ellipsoid.result.support)
        axes.plot(*outline.T, color=BLUE, linewidth=1.6, label="ellipse" if d == 2 else "shadow", zorder=2)
        for k, style in enumerate(("-", "--")):
            ends = centre + np.array([[-1.0], [1.0]]) * lengths[k] * directions[:, k]
            axes.plot(
                *ends.T, style, color=ORANGE, linewidth=1.3, zorder=2, label=f"semi-axis {lengths[k]:.4g}"
            )
        axes.plot(*centre, "+", color="black", markersize=9, label="centre", zorder=5)
        extent = np.ptp(outline, axis=0)
        if extent.max() <= flat * extent.min():
            axes.set_aspect("equal", adjustable="datalim")
        excess = rounded_up(ellipsoid.volume_ratio - 1)
        what = "Smallest ellipse" if d == 2 else f"Shadow of the smallest ellipsoid in {d} dimensions"
        axes.set(
            title=f"{what}\nsemi-axes {lengths[0]:.3g}, {lengths[1]:.3g}; volume least to {excess}",
            xlabel=f"coordinate {chosen[0]}", ylabel=f"coordinate {chosen[1]}",
        )  # fmt: skip
        if ax is None:
            legend(axes, outside=True)
        return axes.figure


def _draw_points(axes: Any, x: np.ndarray, touching: np.ndarray) -> None:
    others = subsample(np.setdiff1d(np.arange(len(x)), touching))
    axes.scatter(*x[others].T, s=9, color=GREY, linewidths=0, label="point", rasterized=len(others) > 2000)
    axes.scatter(
        *x[touching].T, s=36, facecolor="white", edgecolor="black", linewidths=1.3, label="holds it", zorder=4
    )
