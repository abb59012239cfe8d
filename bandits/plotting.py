"""Regret curves and tables of runs.

Curves are the mean over trials, with the standard deviation shaded, as in the paper's figures.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bandits.simulation.run import Run
from optdesign.runtime.files import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Distinct under colour blindness (Okabe and Ito)."""

STYLES = ("-", "--", "-.", ":")

BOUND_POINTS = 64
"""Horizons at which a bound is computed for a plot."""


def plot_regret(
    runs: Mapping[str, Run], title: str = "", bounds: Mapping[str, Callable[[int], float]] | None = None
) -> Figure:
    """Return a figure of the cumulative regret per client over time, with one curve per run.

    Parameters
    ----------
    runs : mapping of str to Run
        Runs by label.
    title : str, default ""
        Title of the figure.
    bounds : mapping of str to callable, optional
        Functions of the horizon by label, such as those of :mod:`bandits.theory` divided by the number of
        clients. They are thin grey lines, and both axes become logarithmic, because bounds lie far above.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    bandits.plotting.save_figure : Write the figure.
    bandits.plotting.write_csv : Write the numbers.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> figure = plot_regret({"local": bandits.simulate(bandits.LocalUCB(), env, 50, trials=2)})
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    start = [] if bounds else [0]
    lines: list[Line2D] = []
    for n, (label, run) in enumerate(runs.items()):
        t, mean, std = (np.append(start, values) for values in (run.times, run.mean, run.std))
        # Another style for every eight colours, so that 32 curves differ.
        colour, style = COLOURS[n % len(COLOURS)], STYLES[(n + n // len(COLOURS)) % len(STYLES)]
        lines += axes.plot(t, mean, style, color=colour, linewidth=1.8, label=label)
        axes.fill_between(t, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
    horizon = max(run.horizon for run in runs.values())
    if bounds:
        first = min(int(run.times[0]) for run in runs.values())
        t = np.unique(np.geomspace(first, horizon, BOUND_POINTS).round())
        for n, (label, bound) in enumerate(bounds.items()):
            values = [bound(int(at)) for at in t]
            style = STYLES[n % len(STYLES)]
            lines += axes.plot(t, values, style, color="0.45", linewidth=1.0, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_xlim(0, horizon)
        axes.set_ylim(bottom=0)
    axes.set_xlabel("pulls of each client")
    axes.set_ylabel("cumulative pseudo-regret per client")
    axes.grid(alpha=0.25)
    # Labels are given explicitly, because matplotlib omits those of curves that begin with an underscore.
    axes.legend(
        lines, [*runs, *(bounds or {})], frameon=False, ncols=2, loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )  # fmt: skip
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as PNG and SVG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Figure to write.
    stem : Path
        Path without the ending.

    Returns
    -------
    list of Path
        The two files.

    See Also
    --------
    bandits.plotting.plot_regret : Draw runs.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save_figure(Figure(), Path(folder) / "empty")]
    ['empty.png', 'empty.svg']
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    # A dot in the name, as in "delta-0.1", does not begin an ending.
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg")]
    figure.savefig(paths[0], dpi=200)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def write_csv(runs: Mapping[str, Run], path: Path) -> None:
    """Write one row per policy and time: mean and standard deviation of the regret, and every trial.

    The column of a trial has its number in its name. Cells of trials that a run does not have are empty.

    Parameters
    ----------
    runs : mapping of str to Run
        Runs by label.
    path : Path
        File to write.

    See Also
    --------
    bandits.plotting.plot_regret : Draw runs.

    Examples
    --------
    >>> import tempfile, bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> run = bandits.simulate(bandits.LocalUCB(), env, 50, trials=2, times=[25])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv({"local": run}, Path(folder) / "run.csv")
    ...     len((Path(folder) / "run.csv").read_text().splitlines())
    3
    """
    numbers = sorted({n for run in runs.values() for n in run.trials.tolist()})
    rows: list[list[object]] = [["policy", "time", "mean", "std", *(f"trial_{n}" for n in numbers)]]
    for label, run in runs.items():
        regret = np.full((len(run.times), len(numbers)), np.nan)
        regret[:, np.searchsorted(numbers, run.trials)] = run.regret.T
        columns = zip(run.times, run.mean, run.std, regret, strict=True)
        rows += [[label, time, mean, std, *trials] for time, mean, std, trials in columns]
    write_rows(path, rows)


def write_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file. An interrupted call leaves no partial file.

    Numbers have 10 digits, and NaN is an empty cell.

    Parameters
    ----------
    path : Path
        File to write.
    rows : iterable of sequence
        Cells of every row.

    See Also
    --------
    bandits.plotting.write_csv : Write runs.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rows(Path(folder) / "a.csv", [["x", "y"], [1, 0.5]])
    ...     (Path(folder) / "a.csv").read_text().split()
    ['x,y', '1,0.5']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_csv_cell(value) for value in row] for row in rows)


def _csv_cell(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.10g}"
