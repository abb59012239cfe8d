"""Pictures and CSV files of figures and tables.

Curves are told apart by dash and marker as well as by colour, so they survive a printer without colours.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bandits.plotting import COLOURS, STYLES
from bandits.reproduce.description import ITERATIONS, REGRET, SPARSITY, Figure, Panel, Table
from bandits.reproduce.running import Results
from bandits.reproduce.summary import bound, bounded, moments, phase_values, table_lines
from bandits.run import Run
from optdesign.tables import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

MARKERS = ("o", "s", "^", "D", "v", "P")
AXES = {
    REGRET: ("pulls of each client", "cumulative pseudo-regret per client"),
    SPARSITY: ("phase p", "arms with positive weight, per client"),
    ITERATIONS: ("phase p", "iterations of the design"),
}
BOUND_POINTS = 24
BOUND = "bound, "
"""What the labels of bounds begin with."""


def curve(quantity: str, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Where a figure reads a run, and what it reads: (C,) and (trials, C)."""
    if quantity == REGRET:
        return run.times, run.regret
    return phase_values(run, quantity)


def note(trials: int, spread: str = "bands") -> str:
    """What is shown, and what the bands or bars are."""
    return (
        f"Mean of {trials} trials, each on its own instance; {spread}: plus and minus one standard deviation."
    )


def draw_figure(figure: Figure, results: Results) -> Picture:
    """The panels of a figure side by side, under one legend; regret on the same axis in all of them."""
    from matplotlib.figure import Figure as Picture

    count = len(figure.panels)
    picture = Picture(figsize=(4.6 * (count + figure.bounds), 4.4), layout="constrained")
    axes = np.atleast_1d(picture.subplots(1, count + figure.bounds))
    for ax, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(ax, figure.quantity, panel, results)
    highest = max(ax.get_ylim()[1] for ax in axes[:count])
    for ax in axes[:count]:
        ax.set_ylim(0.0, highest if figure.quantity == REGRET else None)
    if figure.bounds:
        _draw_bounds(axes[-1], figure.panels[0], results)
    picture.suptitle(figure.title)
    known = dict(zip(*reversed(axes[-1].get_legend_handles_labels()), strict=True))
    labels = sorted(known, key=lambda label: label.startswith(BOUND))
    picture.legend(
        [known[label] for label in labels], labels, loc="outside lower center", ncols=len(labels),
        frameon=False, fontsize="small", title=note(results.effort.trials),
        title_fontproperties={"size": "small"},
    )  # fmt: skip
    return picture


def draw_table(table: Table, results: Results) -> Picture:
    """A row per algorithm, with its regret and the scalars it sends on two axes."""
    from matplotlib.figure import Figure as Picture

    lines = table_lines(table, results)
    picture = Picture(figsize=(9.2, 1.7 + 0.34 * len(lines)), layout="constrained")
    left, right = picture.subplots(1, 2, sharey=True)
    models = list(dict.fromkeys(line["model"] for line in lines))
    rows = np.arange(len(lines)) + np.array([models.index(line["model"]) for line in lines])
    for row, line in zip(rows, lines, strict=True):
        mean, std, sent = line["regret_mean"], line["regret_std"], line["uploaded"] + line["downloaded"]
        style: dict[str, Any] = {
            "color": COLOURS[0],
            "fmt": MARKERS[models.index(line["model"])],
            "capsize": 3,
        }
        for ax, value, spread in ((left, mean, std), (right, sent, 0.0)):
            ax.errorbar(value, row, xerr=spread, **style)
            end = (value + spread, row)
            ax.annotate(
                f"{value:,.0f}", end, (7, 0), textcoords="offset points", va="center", fontsize="small"
            )
    heads = [rows[[line["model"] for line in lines].index(model)] - 1 for model in models]
    left.set_yticks([*rows, *heads], [*(line["algorithm"] for line in lines), *models])
    for text in left.get_yticklabels()[len(rows) :]:
        text.set_fontweight("bold")
    left.set_ylim(rows[-1] + 0.7, -1.7)
    left.set_xscale("log")
    left.set_xlabel("regret per client at the horizon")
    right.set_xscale("symlog", linthresh=10.0)
    right.set_xlim(-2.0, 5.0 * right.get_xlim()[1])
    left.set_xlim(right=2.0 * left.get_xlim()[1])
    right.set_xlabel("scalars sent per client, up and down")
    for ax in (left, right):
        ax.grid(axis="x", alpha=0.25)
        ax.tick_params(axis="y", length=0)
    picture.suptitle(table.title)
    picture.supxlabel(note(results.effort.trials, "bars"), fontsize="small", color="0.3")
    return picture


def figure_rows(figure: Figure, results: Results) -> list[list[object]]:
    """Header and rows: instance, curve, where, mean, standard deviation, every trial."""
    trials = results.effort.trials
    where = "time" if figure.quantity == REGRET else "phase"
    rows: list[list[object]] = [
        ["panel", "curve", where, "mean", "std", *(f"trial_{n}" for n in range(trials))]
    ]
    for panel in figure.panels:
        for label, case in panel.curves.items():
            at, values = curve(figure.quantity, results[case])
            mean, std = moments(values)
            rows += [
                [panel.title, label, int(x), mean[c], std[c], *values[:, c]]
                for c, x in enumerate(at.tolist())
            ]
    return rows


def table_rows(table: Table, results: Results) -> list[list[object]]:
    """Header and rows of a table."""
    lines = table_lines(table, results)
    return [list(lines[0]), *(list(line.values()) for line in lines)]


def write_rows(path: Path, rows: list[list[object]]) -> None:
    """A CSV file, whole or not at all; numbers with ten digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([f"{v:.10g}" if isinstance(v, float) else v for v in row] for row in rows)


def _draw_panel(ax: Axes, quantity: str, panel: Panel, results: Results) -> None:
    for n, (label, case) in enumerate(panel.curves.items()):
        at, values = curve(quantity, results[case])
        if quantity == REGRET:
            at, values = np.append(0, at), np.pad(values, ((0, 0), (1, 0)))
        _draw_curve(ax, n, at, values, label)
    ax.set_xlabel(AXES[quantity][0])
    ax.set_ylabel(AXES[quantity][1])
    ax.set_title(panel.title, fontsize="medium")
    if quantity == REGRET:
        ax.set_xlim(0, int(at[-1]))
    if quantity == SPARSITY:
        ax.axhline(1.0, color="0.45", linewidth=1.0, label="one arm per client, the least")
    ax.grid(alpha=0.25)


def _draw_curve(ax: Axes, n: int, at: np.ndarray, values: np.ndarray, label: str) -> None:
    mean, std = moments(values)
    colour = COLOURS[n % len(COLOURS)]
    ax.plot(
        at, mean, STYLES[n % len(STYLES)], color=colour, label=label, linewidth=1.6, markersize=4.5,
        marker=MARKERS[n % len(MARKERS)], markevery=max(1, len(at) // 8),
    )  # fmt: skip
    ax.fill_between(at, mean - std, mean + std, color=colour, alpha=0.18, linewidth=0)


def _draw_bounds(ax: Axes, panel: Panel, results: Results) -> None:
    """Regret and the bounds that hold with probability 1 - delta, on logarithmic axes."""
    for n, (label, case) in enumerate(panel.curves.items()):
        run = results[case]
        _draw_curve(ax, n, run.times, run.regret, label)
        if bounded(case):
            t = np.unique(np.geomspace(run.times[0], run.horizon, BOUND_POINTS).round().astype(int))
            above = [bound(case, results, int(x)) for x in t]
            ax.plot(t, above, STYLES[n % len(STYLES)], color="0.45", linewidth=1.0, label=BOUND + label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_title(f"{panel.title.split(',')[0]}, with bounds", fontsize="medium")
    ax.set_xlabel(AXES[REGRET][0])
    ax.grid(alpha=0.25)
