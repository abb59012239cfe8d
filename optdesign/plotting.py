"""Pictures of a design: where the weight is, why it is optimal, how it was found. Needs matplotlib.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; weights are shown by
lightness alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.result import DesignResult, rounded_down, rounded_up
from optdesign.tables import atomic

Names = Sequence[Any] | np.ndarray | None

SUFFIXES = (".png", ".pdf", ".svg")

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#9A9A9A"

SHADES = ("#B5DCF2", BLUE, "#001E33")
"""Small to large weights; none is white."""

MOST_POINTS = 20_000
"""Candidates without weight that are drawn; of more, every so-manieth is."""

MOST_CELLS = 1000
"""Rows and columns of the picture of the weights; of more, neighbours share a cell."""

MOST_NUMBERS = (15, 8)
"""Rows and columns of the picture of the weights in which the numbers are written out."""

MOST_TICKS = 15
"""Labels along an axis that are written out."""


BESIDE = "(its candidates side by side)"
"""Why candidates of a group are spread along its part of an axis."""


def matplotlib() -> Any:
    """The matplotlib module, or an ImportError that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            'pictures need matplotlib, which is not installed: pip install "optdesign[plot]"'
        ) from None
    return matplotlib


def save(
    result: DesignResult,
    path: Path,
    *,
    tol: float | None = None,
    groups: Names = None,
    blocks: Names = None,
    words: tuple[str, str] = ("group", "block"),
    title: str | None = None,
) -> None:
    """Draw a design into a PNG, PDF or SVG file, which appears whole or not at all.

    ``groups`` and ``blocks`` are the labels to show, their numbers by default; ``words`` is what groups
    and blocks are called, and ``tol`` draws the gap that was asked for.
    """
    figure = draw(result, tol=tol, groups=groups, blocks=blocks, words=words, title=title)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=160)


def draw(
    result: DesignResult,
    *,
    tol: float | None = None,
    groups: Names = None,
    blocks: Names = None,
    words: tuple[str, str] = ("group", "block"),
    title: str | None = None,
) -> Any:
    """The figure of :func:`save`, as a matplotlib Figure that belongs to no window."""
    mpl = matplotlib()
    from matplotlib.figure import Figure

    style = {
        "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.spines.top": False,
        "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9,
    }  # fmt: skip
    with mpl.rc_context(style):
        figure = Figure(figsize=(14, 4.6))
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.06)
        weights, bound, history = figure.subplots(1, 3, width_ratios=(1.05, 1.2, 1))
        _draw_weights(figure, weights, result, groups, blocks, words)
        _draw_variances(bound, result, groups, words[0])
        _draw_history(history, result, tol)
        if title:
            figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    return figure


def _draw_weights(
    figure: Any,
    axes: Any,
    result: DesignResult,
    groups: Names,
    blocks: Names,
    words: tuple[str, str],
) -> None:
    """Weights: one cell per group and block, or, if there is one block, one stem per candidate."""
    p = result.problem
    if p.n_blocks == 1:
        x, support = _positions(result, np.arange(p.n_groups)), result.support
        axes.vlines(x[support], 0, result.weights[support], color=BLUE)
        axes.plot(x[support], result.weights[support], "o", color=BLUE, markersize=4)
        count = f"{len(support)} of {p.n_candidates} candidates"
        axes.set(ylabel="weight", title=f"Weights: {count} have any", xlim=_limits(x))
        axes.set_ylim(bottom=0)
        _label_axis(
            axes.xaxis, p.n_groups, groups, "candidate" if p.n_groups == 1 else f"{words[0]} {BESIDE}"
        )
        return
    rows, columns = min(p.n_groups, MOST_CELLS), min(p.n_blocks, MOST_CELLS)
    cell = (p.groups * rows // p.n_groups) * columns + p.blocks * columns // p.n_blocks
    grid = np.bincount(cell, weights=result.weights, minlength=rows * columns).reshape(rows, columns)
    from matplotlib.colors import LinearSegmentedColormap

    image = axes.imshow(
        np.where(grid > 0, grid, np.nan), aspect="auto", vmin=0, interpolation="none",
        cmap=LinearSegmentedColormap.from_list("shades", SHADES),
        extent=(-0.5, p.n_blocks - 0.5, p.n_groups - 0.5, -0.5),
    )  # fmt: skip
    bar = figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("total weight (white: none)")
    if p.n_groups <= MOST_NUMBERS[0] and p.n_blocks <= MOST_NUMBERS[1]:
        for (row, column), total in np.ndenumerate(grid):
            light = total < 0.35 * grid.max()
            text = f"{total:.3g}" if total > 0 else "0"
            axes.text(column, row, text, ha="center", va="center", color="black" if light else "white")
    axes.set(title=f"Total weight per {words[0]} and {words[1]}")
    _label_axis(axes.xaxis, p.n_blocks, blocks, words[1])
    _label_axis(axes.yaxis, p.n_groups, groups, words[0])


def _draw_variances(axes: Any, result: DesignResult, groups: Names, word: str) -> None:
    """Budget times variance of every candidate, below the largest of its group; those sum to G."""
    p = result.problem
    scaled = p.budgets[p.groups] * result.variances
    top = np.zeros(p.n_groups)
    np.maximum.at(top, p.groups, scaled)
    order = np.argsort(top, kind="stable")
    place = np.empty(p.n_groups, np.int64)
    place[order] = np.arange(p.n_groups)
    x = _positions(result, place)
    idle = np.flatnonzero(result.weights == 0)
    idle = idle[:: max(1, len(idle) // MOST_POINTS)]
    left, right = _limits(x)
    edges = np.array([left, right]) if p.n_groups == 1 else np.arange(p.n_groups + 1) - 0.5
    label = "bound: largest of all" if p.n_groups == 1 else f"bound: largest of each {word}"
    # Below the points, unless there are so many that they would hide it.
    above = 2 if p.n_groups <= MOST_TICKS else 5
    axes.stairs(top[order], edges, baseline=None, color=ORANGE, linewidth=1.2, label=label, zorder=above)
    for rows, color, size, zorder, label in (
        (result.support, BLUE, 16, 4, "candidate with weight"),
        (idle, GREY, 7, 3, "candidate without weight"),
    ):
        axes.scatter(
            x[rows],
            scaled[rows],
            s=size,
            color=color,
            label=label,
            linewidths=0,
            rasterized=True,
            zorder=zorder,
        )
    axes.set(
        ylabel="budget × variance",
        title=f"Variances: bounds sum to rank + gap = {result.rank} + {rounded_up(result.gap)}"
        + ("" if p.rank == p.n_parameters else f" (rank {p.rank} of {p.n_parameters})"),
        xlim=(left, right),
        ylim=(0, 1.3 * top.max()),
    )
    shown = None if groups is None else [groups[i] for i in order]
    several = f"{word}, sorted by bound {BESIDE}"
    _label_axis(axes.xaxis, p.n_groups, shown, "candidate" if p.n_groups == 1 else several)
    axes.legend(loc="upper left")


def _positions(result: DesignResult, place: np.ndarray) -> np.ndarray:
    """Where candidates stand on an axis of groups: side by side within the place of their group.

    With one group the axis counts candidates.
    """
    p = result.problem
    if p.n_groups == 1:
        return np.arange(p.n_candidates, dtype=float)
    order = np.argsort(p.groups, kind="stable")
    size = np.bincount(p.groups)
    first = np.repeat(np.cumsum(size) - size, size)
    within = np.empty(p.n_candidates)
    within[order] = (np.arange(p.n_candidates) - first + 0.5) / np.repeat(size, size)
    return place[p.groups] + 0.7 * (within - 0.5)


def _limits(x: np.ndarray) -> tuple[float, float]:
    margin = 0.3 + 0.02 * float(np.ptp(x))
    return float(x.min()) - margin, float(x.max()) + margin


def _label_axis(axis: Any, n: int, labels: Names, word: str) -> None:
    """Name an axis; write labels out if there are a few, and number them otherwise."""
    axis.set_label_text(word)
    if labels is not None and 1 < n <= MOST_TICKS:
        crowded = axis.axis_name == "x" and sum(len(str(v)) for v in labels) > 40
        axis.set_ticks(range(n), [str(v) for v in labels], rotation=35 if crowded else 0)


def _draw_history(axes: Any, result: DesignResult, tol: float | None) -> None:
    """Running gap of the solver, and the gap that was asked for."""
    steps, gaps = result.history.iterations, result.history.gaps
    seen = gaps > 0
    word = "sweep" if result.method == "bca" else "iteration"
    axes.plot(steps[seen], gaps[seen], color=BLUE, marker="o" if seen.sum() < 40 else "", markersize=3.5)
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if tol is not None:
        goal = tol * result.rank
        axes.axhline(goal, color=ORANGE, linestyle="--", linewidth=1.2, label=f"asked for: {goal:.1e}")
        axes.legend(loc="upper right")
    axes.grid(axis="y", color="0.9", linewidth=0.7)
    axes.set(
        xlabel=word,
        ylabel="gap",
        title=f"Gap: efficiency at least {_floor_percent(result.efficiency)}",
    )


def _floor_percent(efficiency: float) -> str:
    """A percentage that never promises more than the certificate."""
    return f"{Decimal(rounded_down(efficiency)) * 100:.7f} %"
