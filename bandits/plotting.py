"""Regret curves: mean over trials, with the standard deviation shaded, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bandits.simulation.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Told apart by colour-blind readers as well (Okabe and Ito)."""

STYLES = ("-", "--", "-.", ":")

BOUND_POINTS = 64
"""Horizons at which a bound is computed for a plot."""


def plot_regret(
    runs: Mapping[str, Run], title: str = "", bounds: Mapping[str, Callable[[int], float]] | None = None
) -> Figure:
    """Per-client cumulative regret over time, one curve per run.

    ``bounds`` maps labels to functions of the horizon, say of :mod:`bandits.theory` divided by the number of
    clients; they are drawn thin and grey, and both axes become logarithmic, since bounds lie far above.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    start = [] if bounds else [0]
    for n, (label, run) in enumerate(runs.items()):
        t, mean, std = (np.append(start, values) for values in (run.times, run.mean, run.std))
        colour = COLOURS[n % len(COLOURS)]
        axes.plot(t, mean, STYLES[n % len(STYLES)], color=colour, linewidth=1.8, label=label)
        axes.fill_between(t, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
    horizon = max(run.horizon for run in runs.values())
    if bounds:
        first = min(int(run.times[0]) for run in runs.values())
        t = np.unique(np.geomspace(first, horizon, BOUND_POINTS).round())
        for n, (label, bound) in enumerate(bounds.items()):
            values = [bound(int(at)) for at in t]
            axes.plot(t, values, STYLES[n % len(STYLES)], color="0.45", linewidth=1.0, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_xlim(0, horizon)
        axes.set_ylim(bottom=0)
    axes.set_xlabel("pulls of each client")
    axes.set_ylabel("cumulative pseudo-regret per client")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write PNG and SVG beside each other."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    figure.savefig(paths[0], dpi=200)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def write_csv(runs: Mapping[str, Run], path: Path) -> None:
    """One row per policy and time: mean and standard deviation of the regret, and every trial."""
    path.parent.mkdir(parents=True, exist_ok=True)
    width = max(len(run.trials) for run in runs.values())
    header = ["policy", "time", "mean", "std", *(f"trial_{n}" for n in range(width))]
    lines = [",".join(header)]
    for label, run in runs.items():
        quoted = '"' + label.replace('"', '""') + '"'
        for c, t in enumerate(run.times):
            values = [run.mean[c], run.std[c], *run.regret[:, c]]
            lines.append(",".join([quoted, str(t), *(f"{v:.10g}" for v in values)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
