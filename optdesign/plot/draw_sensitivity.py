"""Pictures of the proof of optimality: no variance exceeds its bound.

A design is optimal exactly if, in every group i, no candidate has a larger variance than the mean of those
that carry the weight. That mean, times the budget, is the group's share of the rank,

    s_i = sum_{n in i} w_n g_n,      sum_i s_i = D,

and the condition is f_i g_n <= s_i for all n in i. With one group it is the general equivalence theorem:
budget times variance is at most the rank. The largest excess of every group over its bound sums to the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.result import DesignResult, rounded_up
from optdesign.plot.draw_weights import label_candidates, limits, positions
from optdesign.plot.naming import Names, names_in
from optdesign.plot.panels import Panel, panel_picture
from optdesign.plot.scales import View, frame, totals_at, view
from optdesign.plot.style import BLUE, GREY, MOST, ORANGE, largest_nearby, legend, picture
from optdesign.plot.surface import draw_curve, draw_map, draw_marks
from optdesign.plot.text import all_distinct, letters, readable, wrapped


class Sensitivities(NamedTuple):
    """Budget times variance of every candidate, and the bound of every group."""

    scaled: np.ndarray
    bounds: np.ndarray

    def relative(self, groups: np.ndarray) -> np.ndarray:
        """Return the fraction of the bound of its group for every candidate; zero for a variance of zero."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(self.scaled == 0, 0.0, self.scaled / self.bounds[groups])

    def name(self, groups: np.ndarray) -> str:
        """Return the name of the fraction, with the number of finite variances whose fraction is infinite."""
        over = np.count_nonzero(np.isfinite(self.scaled) & np.isinf(self.relative(groups)))
        note = f"\nnot drawn: {over:,} variance{'' if over == 1 else 's'} above a bound of 0"
        return "variance / bound" + (note if over else "")


def sensitivities(result: DesignResult) -> Sensitivities:
    """Return the two quantities that are compared."""
    p = result.problem
    informed = np.where(result.weights > 0, result.variances, 0.0)
    bounds = np.bincount(p.groups, weights=result.weights * informed, minlength=p.n_groups)
    return Sensitivities(p.budgets[p.groups] * result.variances, bounds)


def sensitivity(
    result: DesignResult,
    factors: str | Sequence[str] | None = None,
    *,
    words: tuple[str, str] | None = None,
    rows: ArrayLike | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the variances of all candidates against their bound.

    The design is optimal if no variance exceeds the bound. Candidates with weight then touch it: budget times
    variance is the rank, or the group's share of it. Over one factor the picture is a curve below a broken
    line. Over two factors, and over the triangle of three proportions, it has shades of variance / bound,
    with circles at the candidates with weight. Each group and parameter block has a panel. If these are more
    than 6, or on ``ax``, the largest fraction of a bound is shown. The largest fraction is also shown over
    factors that are not on an axis, as the label of the axis states. Fractions of a bound of 0 are not drawn:
    the label states how many variances exceed it. Without settings, candidates are in the order of groups and
    rows. If more than 20,000 of them have no weight, only the largest fraction among neighbours is drawn.

    Parameters
    ----------
    result : DesignResult
        Design to draw.
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
    optdesign.plot.overview : Draw weights and variances.

    Examples
    --------
    >>> import optdesign as od
    >>> c = od.candidates({"t": [0, 1, 2]}, model="~ t")
    >>> figure = od.plot.sensitivity(od.solve(od.DesignProblem(c)), "t")
    """
    if (shown := view(names := names_in(result, words, rows), factors)) is None:
        with picture(ax, path) as (axes,):
            draw_rows(axes, result, names)
            return axes.figure
    title = f"Variance and its bound\n{headline(result)}"
    with panel_picture(names, title, ax, path, 1.4) as (axes, cells):
        draw_panels(axes, result, shown, cells)
        if ax is None or len(shown.scales) == 1:
            legend(axes[0], outside=ax is None)
    return axes[0].figure


def headline(result: DesignResult) -> str:
    """Rank and gap, for a title; or that the rank is lost, and the variances that are infinite for it."""
    lost = np.count_nonzero(~np.isfinite(result.variances))
    if lost:
        return f"rank lost: {lost:,} infinite variance{'' if lost == 1 else 's'} not drawn"
    return f"rank {result.rank} of {result.problem.n_parameters}, gap {rounded_up(result.gap)}"


def draw_panels(axes: Any, result: DesignResult, shown: View, cells: list[Panel]) -> None:
    """Variances over factors, one panel a cell."""
    draw = _draw_curves if len(shown.scales) == 1 else _draw_maps
    what = draw(axes, result, shown, cells)
    over = [
        shown.note_on_others("largest"),
        "" if cells[0].group is not None else f"largest over {cells[0].title}",
    ]
    text = "\n".join([what, *(readable(line, 60) for line in over if line)])
    text = wrapped(text, letters(axes[0], upright=True))
    if len(shown.scales) == 1:
        for one in axes:
            one.set_ylabel(text)
    else:
        bar = axes[0].figure.colorbar(axes[0].collections[0], ax=list(axes), shrink=0.9, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.axhline(1.0, color=ORANGE, linewidth=2)
        bar.set_label(text)
    if len(cells) > 1:
        for one, title in zip(axes, all_distinct([cell.title for cell in cells], 40), strict=True):
            one.set_title(title, fontsize=10)
            one.label_outer()


def _draw_curves(axes: Any, result: DesignResult, shown: View, cells: list[Panel]) -> str:
    p, found = result.problem, sensitivities(result)
    single = all(cell.group is not None for cell in cells)
    values = found.scaled if single else found.relative(p.groups)
    alone = (
        single
        and not shown.others
        and len(np.unique(p.groups * p.n_parameter_blocks + p.parameter_blocks)) == len(cells)
    )
    for one, cell in zip(axes, cells, strict=True):
        rows = cell.rows[np.isfinite(values[cell.rows])]
        bound = 1.0 if cell.group is None else float(found.bounds[cell.group])
        support = cell.rows[result.weights[cell.rows] > 0]
        draw_curve(one, shown, rows, values, support, bound, more_at_a_place=not alone)
    axes[0].set_ylim(0, max(one.dataLim.ymax for one in axes) * 1.12 or 1.0)
    return "budget × variance" if single else found.name(p.groups)


def _draw_maps(axes: Any, result: DesignResult, shown: View, cells: list[Panel]) -> str:
    sensitive, groups = sensitivities(result), result.problem.groups
    relative = sensitive.relative(groups)
    finite = np.isfinite(relative)
    low = np.floor(10 * relative[finite].min(initial=0.9)) / 10
    limits = low, float(relative[finite].max(initial=1.0))
    places = shown.places()
    found = [totals_at(places, result.weights, cell.rows) for cell in cells]
    most = max(float(total.max(initial=0.0)) for _, total in found)
    for one, cell, (at, total) in zip(axes, cells, found, strict=True):
        draw_map(one, shown, cell.rows[finite[cell.rows]], relative, limits)
        draw_marks(one, at, total / most)
        frame(one, shown)
    return sensitive.name(groups)


def draw_rows(axes: Any, result: DesignResult, names: Names) -> None:
    """Budget times variance of every candidate against its bound, in the order of groups and rows."""
    p = result.problem
    found = sensitivities(result)
    scaled, bounds = found
    x = positions(names)
    left, right = limits(x)
    finite = np.isfinite(scaled)
    edges = np.array([left, right]) if p.n_groups == 1 else np.arange(p.n_groups + 1) - 0.5
    several = f"bound of each {readable(names.words[0])}: they sum to the rank"
    label = "bound: the rank" if p.n_groups == 1 else several
    # Below the points, unless there are so many that they would hide it.
    above = 2 if p.n_groups <= MOST.ticks else 5
    axes.stairs(bounds, edges, baseline=None, color=ORANGE, linewidth=1.3, label=label, zorder=above)
    idle = np.flatnonzero(finite & (result.weights == 0))
    idle = largest_nearby(idle, x, found.relative(p.groups))
    for rows, color, size, zorder, label in (
        (result.support, BLUE, 16, 4, "candidate with weight"),
        (idle, GREY, 7, 3, "candidate without weight"),
    ):
        if not len(rows):
            continue
        axes.scatter(
            x[rows], scaled[rows], s=size, color=color, label=label, linewidths=0, zorder=zorder,
            rasterized=len(rows) > 2000,
        )  # fmt: skip
    top = max(bounds.max(), scaled[finite].max(initial=0.0))
    axes.set(
        ylabel="budget × variance", title=f"Variance and its bound\n{headline(result)}", xlim=(left, right),
        ylim=(0, 1.32 * top or 1.0),
    )  # fmt: skip
    label_candidates(axes, names)
    axes.legend(loc="upper left")
