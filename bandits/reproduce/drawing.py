"""Pictures and CSV files of figures and tables.

Curves differ in dash and marker as well as in colour, for printers without colours.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from bandits.plotting import COLOURS, STYLES
from bandits.reproduce.description import (
    ITERATIONS,
    REGRET,
    SPARSITY,
    Case,
    Experiment,
    Figure,
    Panel,
    Scaling,
    Table,
)
from bandits.reproduce.formatting import plain, rounded
from bandits.reproduce.running import Results
from bandits.reproduce.summary import (
    bound,
    bounded,
    heading,
    moments,
    note,
    phase_values,
    points,
    table_lines,
    theory_value,
)
from bandits.simulation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

DASHES = (*STYLES, (0, (6, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
AXES = {
    REGRET: ("pulls of each client", "cumulative pseudo-regret per client"),
    SPARSITY: ("phase p", "arms with positive weight, per client"),
    ITERATIONS: ("phase p", "iterations of the design"),
}
TITLE_DENSITY = 10.0
"""Characters of a title that fit into an inch."""
BOUND_POINTS = 24
BOUND = "bound, "
"""Prefix of the labels of bounds."""


def curve(quantity: str, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the times or phases at which a figure reads a run, (C,), and the values, (trials, C)."""
    if quantity == REGRET:
        return run.times, run.regret
    return phase_values(run, quantity)


def draw_figure(figure: Figure, results: Results) -> Picture:
    """Draw the panels of a figure side by side, under one legend; regret on the same axis in all of them."""
    from matplotlib.figure import Figure as Picture

    count = len(figure.panels)
    columns = count + figure.bounds
    picture = Picture(figsize=(max(4.6 * columns, 7.0), 4.4), layout="constrained")
    axes = np.atleast_1d(picture.subplots(1, columns))
    for ax, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(ax, figure, panel, results)
    highest = max(ax.get_ylim()[1] for ax in axes[:count])
    for ax in axes[:count]:
        low = None if figure.logarithmic else 0.0
        ax.set_ylim(low, highest if figure.quantity == REGRET else None)
    if figure.bounds:
        _draw_bounds(axes[-1], figure.panels[0], results)
    _set_title(picture, figure, results)
    known = dict(zip(*reversed(axes[-1].get_legend_handles_labels()), strict=True))
    labels = sorted(known, key=lambda label: label.startswith(BOUND))
    picture.legend(
        [known[label] for label in labels], labels, loc="outside lower center", ncols=3 * columns,
        frameon=False, fontsize="small", title=note(figure, results),
        title_fontproperties={"size": "small"},
    )  # fmt: skip
    return picture


def draw_table(table: Table, results: Results) -> Picture:
    """Draw a row per algorithm: its regret and the scalars it sends on two axes, and the orders in theory."""
    from matplotlib.figure import Figure as Picture
    from matplotlib.ticker import LogLocator

    lines = table_lines(table, results)
    models = list(dict.fromkeys(line["model"] for line in lines))
    rows = np.arange(len(lines)) + np.array([models.index(line["model"]) for line in lines])
    picture = Picture(figsize=(11.5, 1.8 + 0.3 * (len(lines) + len(models))), layout="constrained")
    left, right = picture.subplots(1, 2, sharey=True)
    for row, line in zip(rows, lines, strict=True):
        mean, std, sent = line["regret_mean"], line["regret_std"], line["uploaded"] + line["downloaded"]
        marker = MARKERS[models.index(line["model"]) % len(MARKERS)]
        drawn = 0.0 if np.isnan(std) else std
        for ax, value, spread, text in (
            (left, mean, drawn, rounded(mean, std)),
            (right, sent, 0, plain(sent)),
        ):
            ax.errorbar(value, row, xerr=spread or None, color=COLOURS[0], fmt=marker, capsize=3)
            end = (value + spread, row)
            ax.annotate(text, end, (7, 0), textcoords="offset points", va="center", fontsize=9)
        orders = f"{line['regret_order']};  {line['communication_order']}"
        right.text(1.02, row, orders, transform=right.get_yaxis_transform(), va="center", fontsize=9)
    right.text(
        1.02, -1.0, "in theory: total regret;  communication", transform=right.get_yaxis_transform(),
        va="center", fontsize=9, fontweight="bold",
    )  # fmt: skip
    heads = [rows[[line["model"] for line in lines].index(model)] - 1 for model in models]
    left.set_yticks([*rows, *heads], [*(line["algorithm"] for line in lines), *models])
    for text in left.get_yticklabels()[len(rows) :]:
        text.set_fontweight("bold")
    left.set_ylim(rows[-1] + 0.7, -1.7)
    left.set_xscale("log")
    low, high = left.get_xlim()
    # The number beside the last point needs room; labels between powers of 10 fit a short range only.
    left.set_xlim(low, high * (high / low) ** 0.2)
    if high < 20.0 * low:
        left.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        left.xaxis.set_major_formatter("{x:g}")
    left.xaxis.set_minor_formatter("")
    left.set_xlabel("regret per client at the horizon")
    right.set_xscale("symlog", linthresh=10.0)
    right.set_xlim(-2.0, 25.0 * right.get_xlim()[1] ** 1.1)
    right.set_xlabel("scalars sent per client, up and down")
    for ax in (left, right):
        ax.grid(axis="x", alpha=0.25)
        ax.tick_params(axis="y", length=0)
    _set_title(picture, table, results)
    picture.supxlabel(note(table, results, "bars"), fontsize="small", color="0.3")
    return picture


def draw_scaling(scaling: Scaling, results: Results) -> Picture:
    """Draw regret at the horizon over a number, on logarithmic axes, beside the value in theory."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(6.4, 4.6), layout="constrained")
    ax = picture.subplots()
    for n, (label, cases) in enumerate(scaling.curves.items()):
        played = points(cases, results)
        values = np.array([results[case].regret[:, -1] for case in played]).T
        _draw_curve(ax, n, np.array([_at(scaling, case, results) for case in played]), values, label)
    played = points(next(iter(scaling.curves.values())), results)
    at = [_at(scaling, case, results) for case in played]
    line = [theory_value(scaling, case, results) for case in played]
    marker = "_" if len(at) == 1 else None
    ax.plot(at, line, color="0.45", linewidth=1.0, marker=marker, label=scaling.reference)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(scaling.number)
    ax.set_ylabel("regret per client at the horizon")
    ax.grid(alpha=0.25)
    _set_title(picture, scaling, results)
    picture.legend(
        loc="outside lower center", ncols=2, frameon=False, fontsize="small",
        title=note(scaling, results), title_fontproperties={"size": "small"},
    )  # fmt: skip
    return picture


def figure_rows(figure: Figure, results: Results) -> list[list[object]]:
    """Return header and rows: instance, curve, time or phase, mean, standard deviation, every trial."""
    where = "time" if figure.quantity == REGRET else "phase"
    names = _trial_names(results.trials(figure.cases[0]))
    rows: list[list[object]] = [["panel", "curve", where, "mean", "std", *names]]
    for panel in figure.panels:
        for label, case in panel.curves.items():
            at, values = curve(figure.quantity, results[case])
            rows += [[panel.title, label, x, *_spread(values[:, c])] for c, x in enumerate(at.tolist())]
    return rows


def scaling_rows(scaling: Scaling, results: Results) -> list[list[object]]:
    """Return header and rows: curve, number, value in theory, mean, standard deviation, every trial."""
    names = _trial_names(results.trials(scaling.cases[0]))
    rows: list[list[object]] = [["curve", scaling.number, "theory", "mean", "std", *names]]
    for label, cases in scaling.curves.items():
        for case in points(cases, results):
            theory = theory_value(scaling, case, results)
            at = _at(scaling, case, results)
            rows.append([label, at, theory, *_spread(results[case].regret[:, -1])])
    return rows


def table_rows(table: Table, results: Results) -> list[list[object]]:
    """Return header and rows of a table."""
    lines = table_lines(table, results)
    return [list(lines[0]), *(list(line.values()) for line in lines)]


def _set_title(picture: Picture, experiment: Experiment, results: Results) -> None:
    """Write the heading above a picture, in as many lines as its width requires."""
    text = heading(experiment, results)
    for phrase in (" = ", "(cut from "):
        text = text.replace(phrase, phrase.replace(" ", "\u00a0"))
    picture.suptitle(fill(text, int(TITLE_DENSITY * picture.get_figwidth())))


def _at(scaling: Scaling, case: Case, results: Results) -> int:
    return scaling.at(results.effort.applied(case))


def _trial_names(trials: int) -> list[object]:
    return [f"trial_{n}" for n in range(trials)]


def _spread(values: np.ndarray) -> list[object]:
    """Return the mean, the standard deviation and the values."""
    mean, std = moments(values)
    return [float(mean), float(std), *values.tolist()]


def _draw_panel(ax: Axes, figure: Figure, panel: Panel, results: Results) -> None:
    from_zero = figure.quantity == REGRET and not figure.logarithmic
    for n, (label, case) in enumerate(panel.curves.items()):
        at, values = curve(figure.quantity, results[case])
        if from_zero:
            at, values = np.append(0, at), np.pad(values, ((0, 0), (1, 0)))
        _draw_curve(ax, n, at, values, label)
    ax.set_xlabel(AXES[figure.quantity][0])
    ax.set_ylabel(AXES[figure.quantity][1])
    ax.set_title(panel.title, fontsize="medium")
    if from_zero:
        ax.set_xlim(0, int(at[-1]))
    if figure.logarithmic:
        ax.set_xscale("log")
        ax.set_yscale("log")
    if figure.quantity == SPARSITY:
        ax.axhline(1.0, color="0.45", linewidth=1.0, label="one arm per client, the least")
    ax.grid(alpha=0.25)


def _draw_curve(ax: Axes, n: int, at: np.ndarray, values: np.ndarray, label: str) -> None:
    mean, std = moments(values)
    colour = COLOURS[n % len(COLOURS)]
    ax.plot(
        at, mean, linestyle=DASHES[n % len(DASHES)], color=colour, label=label, linewidth=1.6, markersize=4.5,
        marker=MARKERS[n % len(MARKERS)], markevery=max(1, len(at) // 8),
    )  # fmt: skip
    ax.fill_between(at, mean - std, mean + std, color=colour, alpha=0.18, linewidth=0)


def _draw_bounds(ax: Axes, panel: Panel, results: Results) -> None:
    """Draw regret and the bounds that hold with probability 1 - delta, mean over the trials' instances."""
    for n, (label, case) in enumerate(panel.curves.items()):
        run = results[case]
        _draw_curve(ax, n, run.times, run.regret, label)
        if bounded(case):
            t = np.unique(np.geomspace(run.times[0], run.horizon, BOUND_POINTS).round().astype(int))
            above = bound(case, results, t.tolist())
            dash = DASHES[n % len(DASHES)]
            ax.plot(t, above, linestyle=dash, color="0.45", linewidth=1.0, label=BOUND + label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_title(f"{next(iter(panel.curves.values())).instance.kind}, with bounds", fontsize="medium")
    ax.set_xlabel(AXES[REGRET][0])
    ax.grid(alpha=0.25)
