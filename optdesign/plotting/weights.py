"""Where the weight is: a bar for each candidate that has any, or totals by group and block if many have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.plotting.naming import Names, label_axis, names_of, whole_ticks
from optdesign.plotting.style import BLUE, GREY, picture, shades, thinned
from optdesign.plotting.text import all_readable, readable
from optdesign.result import DesignResult

MOST_BARS = 24
"""Candidates with weight that get a bar and a label of their own."""

MOST_CELLS = 1000
"""Rows and columns of the picture of totals; of more, neighbours share a cell."""

MOST_NUMBERS = (15, 8)
"""Rows and columns of the picture of totals in which the numbers are written out."""

BESIDE = "(its candidates side by side)"
"""Why candidates of a group are spread along its part of an axis."""


def weights(
    result: DesignResult,
    *,
    settings: Mapping[str, Any] | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the weights of a design; returns the matplotlib Figure.

    Up to 24 candidates with weight are bars, with the weight at their end, in the order of the table and
    labelled by its row numbers, group, block and settings. More are stems along the rows or the groups; with
    several blocks, totals by group and block, darker where there is more, written out if there are a few.

    ``settings`` maps names of factors to columns of one entry per candidate (default: those of the problem);
    ``ax`` are matplotlib Axes to draw on; ``path`` is a file to save to, .png, .pdf or .svg.
    """
    names = names_of(result.problem, settings=settings)
    bars = min(len(result.support), MOST_BARS)
    with picture(ax, path, size=(6.4, max(3.0, 1.3 + 0.21 * bars))) as (axes,):
        draw_weights(axes, result, names)
        return axes.figure


def draw_weights(axes: Any, result: DesignResult, names: Names) -> None:
    """The weights of a design on given axes."""
    if len(result.support) <= MOST_BARS:
        _bars(axes, result, names)
    elif result.problem.n_blocks == 1:
        _stems(axes, result, names)
    else:
        _totals(axes, result, names)


def _bars(axes: Any, result: DesignResult, names: Names) -> None:
    p, support = result.problem, result.support
    rows = support[np.lexsort((support, p.blocks[support], p.groups[support]))]
    group, value = p.groups[rows], result.weights[rows]
    place = np.arange(len(rows))
    axes.barh(place, value, height=0.62, color=BLUE)
    for at, weight in zip(place, value, strict=True):
        axes.annotate(
            f"{weight:.3g}", (weight, at), (3, 0), textcoords="offset points", va="center", fontsize=8
        )
    for at in np.flatnonzero(np.diff(group)):
        axes.axhline(at + 0.5, color=GREY, linewidth=0.7)
    labels = []
    for n in rows:
        i = int(p.groups[n]) if p.n_groups > 1 else None
        b = int(p.blocks[n]) if p.n_blocks > 1 else None
        where = names.place(i, b)
        labels.append(f"{where}, {names.candidate(n)}" if where else names.candidate(n))
    axes.set_yticks(place, all_readable(labels, 42), fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set(
        title=f"Weights: {len(rows)} of {p.n_candidates:,} candidates", xlabel="weight",
        xlim=(0, 1.14 * value.max()), ylim=(max(len(rows), 4) - 0.4, -0.6),
    )  # fmt: skip


def _stems(axes: Any, result: DesignResult, names: Names) -> None:
    p, support = result.problem, result.support
    x, drawn = positions(result), thinned(support)
    axes.vlines(x[drawn], 0, result.weights[drawn], color=BLUE, linewidth=1.2, rasterized=len(drawn) > 2000)
    axes.plot(x[drawn], result.weights[drawn], "o", color=BLUE, markersize=3, rasterized=len(drawn) > 2000)
    few = "" if len(drawn) == len(support) else f", {len(drawn):,} drawn"
    title = f"Weights: {len(support):,} of {p.n_candidates:,} candidates{few}"
    axes.set(ylabel="weight", title=title, xlim=limits(x))
    axes.set_ylim(bottom=0)
    label_candidates(axes, names)


def _totals(axes: Any, result: DesignResult, names: Names) -> None:
    p = result.problem
    rows, columns = min(p.n_groups, MOST_CELLS), min(p.n_blocks, MOST_CELLS)
    cell = (p.groups * rows // p.n_groups) * columns + p.blocks * columns // p.n_blocks
    grid = np.bincount(cell, weights=result.weights, minlength=rows * columns).reshape(rows, columns)
    image = axes.imshow(
        np.where(grid > 0, grid, np.nan), aspect="auto", vmin=0, interpolation="none", cmap=shades(),
        extent=(-0.5, p.n_blocks - 0.5, p.n_groups - 0.5, -0.5),
    )  # fmt: skip
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("total weight (white: none)")
    if p.n_groups <= MOST_NUMBERS[0] and p.n_blocks <= MOST_NUMBERS[1]:
        for (row, column), total in np.ndenumerate(grid):
            light = total < 0.35 * grid.max()
            text = f"{total:.3g}" if total > 0 else "0"
            axes.text(column, row, text, ha="center", va="center", color="black" if light else "white")
    axes.set(title=f"Total weight by {readable(names.words[0])} and {readable(names.words[1])}")
    label_axis(axes.xaxis, names.blocks, p.n_blocks, names.words[1])
    label_axis(axes.yaxis, names.groups, p.n_groups, names.words[0])


def positions(result: DesignResult) -> np.ndarray:
    """Where candidates stand on an axis: at their row, from 1; or side by side within their group, from 0."""
    p = result.problem
    if p.n_groups == 1:
        return np.arange(1.0, p.n_candidates + 1)
    order = np.argsort(p.groups, kind="stable")
    size = np.bincount(p.groups)
    first = np.repeat(np.cumsum(size) - size, size)
    within = np.empty(p.n_candidates)
    within[order] = (np.arange(p.n_candidates) - first + 0.5) / np.repeat(size, size)
    return p.groups + 0.7 * (within - 0.5)


def limits(x: np.ndarray) -> tuple[float, float]:
    """What an axis shows of positions: all, and a margin."""
    margin = 0.4 + 0.02 * float(np.ptp(x))
    return float(x.min()) - margin, float(x.max()) + margin


def label_candidates(axes: Any, names: Names) -> None:
    """Name the axis of :func:`positions`."""
    p = names.problem
    if p.n_groups > 1:
        label_axis(axes.xaxis, names.groups, p.n_groups, f"{names.words[0]} {BESIDE}")
    else:
        axes.set_xlabel("row")
        whole_ticks(axes.xaxis)
