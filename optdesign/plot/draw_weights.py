"""Weights: a bar for each candidate with weight, or totals by group and block if many have weight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.result import DesignResult
from optdesign.plot import style
from optdesign.plot.naming import Names, label_axis, names_in, whole_ticks
from optdesign.plot.style import BLUE, GREY, picture, shades, subsample
from optdesign.plot.text import all_distinct, letters, readable, wrapped

BESIDE = "(its candidates side by side)"
"""Why candidates of a group are spread along its part of an axis."""


def weights(
    result: DesignResult,
    *,
    words: tuple[str, str] | None = None,
    rows: ArrayLike | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the weights of a design.

    Up to 24 candidates with weight are bars, in the order of the table, with row number, group, parameter
    block and settings as labels and the weight at the end. More candidates are stems along the rows or the
    groups. With several parameter blocks, they are totals by group and parameter block, darker for larger
    totals, with numbers if they are few.

    Parameters
    ----------
    result : DesignResult
        Design to draw.
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
    optdesign.plot.runs : Draw whole runs.

    Examples
    --------
    >>> import optdesign as od
    >>> figure = od.plot.weights(od.solve(od.DesignProblem([[1, -1], [1, 0], [1, 1]])))
    """
    names = names_in(result, words, rows)
    with picture(ax, path, size=size_of(result.weights)) as (axes,):
        draw_weights(axes, result.weights, names)
        return axes.figure


def size_of(values: np.ndarray) -> tuple[float, float]:
    """Return a figure that has room for the bars."""
    return 6.4, max(3.0, 1.3 + 0.21 * min(int(np.count_nonzero(values)), style.MOST.bars))


def draw_weights(axes: Any, values: np.ndarray, names: Names, word: str = "weight") -> None:
    """Draw the weights of a design, or counts of runs, on given axes."""
    if np.count_nonzero(values) <= style.MOST.bars:
        _bars(axes, values, names, word)
    elif names.problem.n_parameter_blocks == 1:
        _stems(axes, values, names, word)
    else:
        _totals(axes, values, names, word)


def _bars(axes: Any, values: np.ndarray, names: Names, word: str) -> None:
    p, support = names.problem, np.flatnonzero(values)
    rows = support[np.lexsort((support, p.parameter_blocks[support], p.groups[support]))]
    place = np.arange(len(rows))
    room, whole = letters(axes), values.dtype.kind in "iu"
    axes.barh(place, values[rows], height=0.62, color=BLUE)
    for at, value in zip(place, values[rows], strict=True):
        axes.annotate(
            _amount(value), (value, at), (3, 0), textcoords="offset points", va="center", fontsize=8
        )
    for at in np.flatnonzero(np.diff(p.groups[rows])):
        axes.axhline(at + 0.5, color=GREY, linewidth=0.7)
    labels, most = [names.candidate(n) for n in rows], min(52, max(16, 7 * room // 4))
    if max(map(len, labels)) > most:  # values alone, and their names once
        labels = [names.candidate(n, "{1}") for n in rows]
        heading = readable(names.candidate(rows[0], "{0}"), 120)
        axes.set_ylabel(wrapped(heading, letters(axes, upright=True)), fontsize=8)
    axes.set_yticks(place, all_distinct(labels, most), fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.get_major_locator().set_params(nbins=max(2, room // 8), integer=whole)
    axes.set(
        title=f"{word.capitalize()}s: {len(rows)} of {p.n_candidates:,} candidates",
        xlabel=f"{word}s" if whole else word,
        xlim=(0, (1 + 7 / max(room, 10)) * values.max()), ylim=(max(len(rows), 4) - 0.4, -0.6),
    )  # fmt: skip


def _amount(value: float) -> str:
    """Return a weight with 3 digits, or whole numbers of runs.

    >>> _amount(1234), _amount(2.0), _amount(0.33333)
    ('1234', '2', '0.333')
    """
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


def _stems(axes: Any, values: np.ndarray, names: Names, word: str) -> None:
    p, support = names.problem, np.flatnonzero(values)
    x, drawn = positions(names), subsample(support)
    axes.vlines(x[drawn], 0, values[drawn], color=BLUE, linewidth=1.2, rasterized=len(drawn) > 2000)
    axes.plot(x[drawn], values[drawn], "o", color=BLUE, markersize=3, rasterized=len(drawn) > 2000)
    few = "" if len(drawn) == len(support) else f", {len(drawn):,} drawn"
    title = f"{word.capitalize()}s: {len(support):,} of {p.n_candidates:,} candidates{few}"
    axes.set(ylabel=word, title=title, xlim=limits(x))
    axes.set_ylim(bottom=0)
    label_candidates(axes, names)


def _totals(axes: Any, values: np.ndarray, names: Names, word: str) -> None:
    p = names.problem
    rows, columns = (min(n, style.MOST.cells) for n in (p.n_groups, p.n_parameter_blocks))
    cell = (p.groups * rows // p.n_groups) * columns + p.parameter_blocks * columns // p.n_parameter_blocks
    grid = np.bincount(cell, weights=values, minlength=rows * columns).reshape(rows, columns)
    image = axes.imshow(
        np.where(grid > 0, grid, np.nan), aspect="auto", vmin=0, interpolation="none", cmap=shades(),
        extent=(-0.5, p.n_parameter_blocks - 0.5, p.n_groups - 0.5, -0.5),
    )  # fmt: skip
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(f"total {word} (white: none)")
    # Rows and columns of the picture of totals in which the numbers are written out.
    most_numbers = (15, 8)
    if p.n_groups <= most_numbers[0] and p.n_parameter_blocks <= most_numbers[1]:
        for (row, column), total in np.ndenumerate(grid):
            light = total < 0.35 * grid.max()
            axes.text(
                column,
                row,
                _amount(float(total)),
                ha="center",
                va="center",
                color="black" if light else "white",
            )
    axes.set(title=f"Total {word} by {readable(names.words[0])} and {readable(names.words[1])}")
    label_axis(axes.xaxis, p.parameter_block_names, p.n_parameter_blocks, names.words[1])
    label_axis(axes.yaxis, p.group_names, p.n_groups, names.words[0])


def positions(names: Names) -> np.ndarray:
    """Return positions on an axis: the row of a candidate, from 1, or its place in its group, from 0."""
    p = names.problem
    if p.n_groups == 1:
        return names.rows.astype(np.float64)
    order = np.argsort(p.groups, kind="stable")
    size = np.bincount(p.groups)
    first = np.repeat(np.cumsum(size) - size, size)
    within = np.empty(p.n_candidates)
    within[order] = (np.arange(p.n_candidates) - first + 0.5) / np.repeat(size, size)
    return p.groups + 0.7 * (within - 0.5)


def limits(x: np.ndarray) -> tuple[float, float]:
    """Return the limits of an axis: all positions and a margin."""
    margin = 0.4 + 0.02 * float(np.ptp(x))
    return float(x.min()) - margin, float(x.max()) + margin


def label_candidates(axes: Any, names: Names) -> None:
    """Name the axis of :func:`positions`."""
    p = names.problem
    if p.n_groups > 1:
        label_axis(axes.xaxis, p.group_names, p.n_groups, f"{names.words[0]} {BESIDE}")
    else:
        axes.set_xlabel("row")
        whole_ticks(axes.xaxis)
