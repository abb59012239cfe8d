"""Pictures of whole runs: the number of runs at each setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from optdesign.numbers.checks import check_type
from optdesign.plot.draw_convergence import floor_percent
from optdesign.plot.draw_weights import draw_weights, size_of
from optdesign.plot.naming import names_of, whole_ticks
from optdesign.plot.panels import Panel, panel_picture
from optdesign.plot.scales import View, frame, totals_at, view
from optdesign.plot.style import BLUE, GREY, legend, picture, subsample
from optdesign.plot.text import all_distinct, letters, wrapped
from optdesign.runs.runs import Runs


def runs(
    runs: Runs,
    factors: str | Sequence[str] | None = None,
    *,
    words: tuple[str, str] | None = None,
    rows: ArrayLike | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the whole runs of :func:`optdesign.round` or :func:`optdesign.exact`.

    In the plane of two factors, or in the triangle of three proportions, a circle with a number shows how
    many times a setting is run. Circles are larger for more runs, and have no number if they are crowded.
    Grey points are candidates without runs. Over one factor the picture has stems. Each group and parameter
    block has a panel. They are summed if there are more than 6, or on ``ax``. Runs that differ only in
    factors that are not on an axis are also summed, as the label of the axis states. Without settings there
    is a bar for every row of the table that is run.

    Parameters
    ----------
    runs : Runs
        Runs to draw.
    factors : str or sequence of str, optional
        Factors to show. Default: all of them if they are one, two, or three proportions, otherwise the first
        two.
    words : tuple of str, optional
        Words for groups and for parameter blocks. Default: the columns of the settings that distinguish them,
        or "group" and "parameter block".
    rows : array_like of shape (N,), optional
        Row numbers of the candidates. Default: 1, 2, ...
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
    optdesign.plot.weights : Draw the weights of a design.

    Examples
    --------
    >>> import optdesign as od
    >>> c = od.candidates({"t": [0, 1, 2]}, model="~ t")
    >>> figure = od.plot.runs(od.exact(od.DesignProblem(c, budgets=4)))
    """
    check_type(runs, Runs, "runs must be Runs", "Pass round(result) or exact(problem).")
    names = names_of(runs.problem, words, rows)
    shown = view(names, factors)
    percent = f"{floor_percent(runs.efficiency)[:-6]} %"
    title = f"{int(runs.counts.sum()):,} runs\nefficiency at least {percent} on these candidates"
    if shown is None:
        with picture(ax, path, size=size_of(runs.counts)) as (axes,):
            draw_weights(axes, runs.counts, names, "run")
            axes.set_title(f"{title}\n{axes.get_title(loc='left')}")
            return axes.figure
    with panel_picture(names, title, ax, path, 1.0) as (axes, cells):
        if _draw_panels(axes, runs.counts, shown, cells):
            legend(axes[0], outside=ax is None)
    return axes[0].figure


def _draw_panels(axes: Any, counts: np.ndarray, shown: View, cells: list[Panel]) -> bool:
    """Draw runs over factors, one panel a cell. Return True if there was no room for numbers."""
    places = shown.places()
    found = [totals_at(places, counts, cell.rows) for cell in cells]
    most = max(int(total.max(initial=1)) for _, total in found)
    numbers = all(_have_room(at, places) for at, _ in found)
    summed = "\n".join(["", shown.note_on_others("summed")]).rstrip()
    titles = all_distinct([cell.title for cell in cells], 36)
    for one, cell, title, (at, total) in zip(axes, cells, titles, found, strict=True):
        if len(shown.scales) == 1:
            _stems(one, at[:, 0], total, most)
        else:
            _circles(one, places[cell.rows], at, total / most, total.tolist() if numbers else [])
        frame(one, shown, wrapped(summed, letters(one)))
        if len(cells) > 1:
            sum_here = int(counts[cell.rows].sum())
            one.set_title(f"{title}: {sum_here:,}", fontsize=10)
            one.label_outer()
    return len(shown.scales) > 1 and not numbers


def _stems(axes: Any, at: np.ndarray, total: np.ndarray, most: int) -> None:
    axes.vlines(at, 0, total, color=BLUE, linewidth=1.6)
    axes.plot(at, total, "o", color=BLUE)
    axes.margins(x=0.08)
    axes.set(ylabel="runs", ylim=(0, 1.15 * most))
    whole_ticks(axes.yaxis)


def _have_room(at: np.ndarray, places: np.ndarray) -> bool:
    """Return True if circles with numbers in them would lie apart."""
    if places.shape[1] == 1 or len(at) < 2:
        return True
    extent = np.ptp(places, axis=0)
    scaled = at / np.where(extent > 0, extent, 1.0)
    # Circles have no numbers in them if two settings are closer than this fraction of the picture.
    close = 0.1
    most_numbers = 200
    return len(at) <= most_numbers and float(pdist(scaled).min()) > close


def _circles(
    axes: Any, all_places: np.ndarray, at: np.ndarray, share: np.ndarray, numbers: Sequence[int]
) -> None:
    """Circles where there are runs, with their numbers if these are given."""
    idle = subsample(np.unique(all_places, axis=0), 2000)
    axes.scatter(*idle.T, s=6, color=GREY, linewidths=0, zorder=1)
    size = 130 + 470 * share if len(numbers) else 15 + 100 * share
    axes.scatter(
        *at.T, s=size, color=BLUE, edgecolors="black", zorder=3, clip_on=False, label="runs (area: how many)"
    )
    for place, count in zip(at, numbers, strict=False):
        axes.annotate(
            f"{count}", place, ha="center", va="center", color="white", fontsize=9, zorder=4,
            annotation_clip=False,
        )  # fmt: skip
    axes.margins(0.12)
