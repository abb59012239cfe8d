"""The charts of the page Benchmarks, one per table of docs/measured, drawn from the stored tables.

python benchmarks/charts.py [--out docs/figures] [NAME...]

Nothing is measured here: run it after `make measured/NAME`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from stored import MEASURED, number, table, tables, text

from optdesign.plot.style import STYLE

# Okabe and Ito's palette: distinguishable without colour vision. Markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v")
WIDTH, ROW, DPI = 7.2, 0.25, 100
LARGEST = 25
"""Variants in the chart of the ablation: those with the largest slow-down."""
FLOOR = 1e-17
"""Differences of zero are drawn here."""


def new(rows: int, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure for a number of labelled rows."""
    figure = Figure(figsize=(WIDTH, ROW * rows + 1.2), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, panels, sharey=True)))


def dots(
    ax: Axes, labels: list[str], series: dict[str, list[float]], xlabel: str, *, log: bool = True
) -> None:
    """Draw one row per label and one marker per series."""
    rows = np.arange(len(labels))
    for (name, values), colour, marker in zip(series.items(), COLOURS, MARKERS, strict=False):
        ax.plot(values, rows, linestyle="", color=colour, marker=marker, markersize=6, label=name)
    finish(ax, labels, xlabel, log=log, legend=len(series) > 1)


def strip(ax: Axes, points: list[tuple[str, float]], xlabel: str, *, log: bool = True) -> None:
    """Draw one row per label with all its values."""
    labels = list(dict.fromkeys(label for label, _ in points))
    rows = [labels.index(label) for label, _ in points]
    ax.plot([value for _, value in points], rows, linestyle="", marker="o", color=COLOURS[0], alpha=0.45)
    finish(ax, labels, xlabel, log=log, legend=False)


def finish(ax: Axes, labels: list[str], xlabel: str, *, log: bool, legend: bool) -> None:
    """Label the axes, with the first row at the top."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_xlabel(xlabel)
    ax.set_xscale("log" if log else "linear")
    if log and ax.get_xlim()[1] < 100 * ax.get_xlim()[0]:  # fewer than two powers of 10 may have a label
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(True, axis="both", alpha=0.3)
    if legend:
        ax.figure.legend(loc="outside upper center", ncols=4, columnspacing=1.0, frameon=False)


def one(labels: list[str], series: dict[str, list[float]], xlabel: str, *, log: bool = True) -> Figure:
    """Return a chart of one panel."""
    figure, (ax,) = new(len(labels))
    dots(ax, labels, series, xlabel, log=log)
    return figure


def ablation() -> Figure:
    found = table("ablation", "variant", "slowest family", "fastest family")
    slow, fast = found.numbers("slowest family"), found.numbers("fastest family")
    rows = np.argsort(slow)[::-1][:LARGEST]
    labels = [found.column("variant")[k] for k in rows]
    series = {"slowest family": [slow[k] for k in rows], "fastest family": [fast[k] for k in rows]}
    return one(labels, series, f"time over that of the default, the {len(rows)} largest slow-downs")


def baselines() -> Figure:
    found = table("baselines", "policy", "M = 1", "M = 100")
    return one(
        found.column("policy"), {m: found.numbers(m) for m in ("M = 1", "M = 100")}, "microseconds a decision"
    )


def before() -> Figure:
    found = table("before", "instance", "now / before")
    points = list(zip(map(family, found.column("instance")), found.numbers("now / before"), strict=True))
    figure, (ax,) = new(len(set(dict(points))))
    strip(ax, points, "time now over time before, one point per size", log=False)
    ax.axvline(1.0, color="black", linewidth=0.8)
    return figure


def classical() -> Figure:
    found = table("classical", "candidates", "one pass")
    names = [name for name in found.columns if "1e-" in name]
    series = {name.replace("ours", "optdesign"): found.numbers(name) for name in names}
    return one(found.column("candidates"), series, "seconds")


def design() -> Figure:
    found = table("design", "solver", "time (gap)")
    return one(found.column("solver"), {"time": found.numbers("time (gap)")}, "seconds, authors' instance")


def evaluation() -> Figure:
    points, title = [], ""
    for line in text("evaluation").splitlines():
        cells = line.rsplit(maxsplit=3)
        if line and not line.startswith(" "):
            title = re.split("[,:]", line)[0]
        elif len(cells) == 4 and re.fullmatch(r"[\d.]+e[+-]\d+", cells[3]):
            points.append((title, max(float(cells[3]), FLOOR)))
    figure, (ax,) = new(len(set(dict(points))))
    strip(ax, points, "difference from the figure of the source")
    return figure


def exact() -> Figure:
    found = table("exact", "method", "time", "efficiency")
    first = found.columns.index("efficiency")
    points = [
        (row[0].replace("ours", "optdesign"), 1.0 - number(cell))
        for row in found.rows
        for cell in row[first:]
        if cell
    ]
    figure, (ax,) = new(len(found.rows))
    strip(ax, points, "1 - efficiency of 56 runs, one point per seed")
    return figure


def fedpe() -> Figure:
    found = table("fedpe", "policy", "ours", "authors")
    ours, ratio = found.numbers("ours"), found.numbers("transcription / ours")
    series = {
        "bandits": ours,
        "literal transcription": [a * b for a, b in zip(ours, ratio, strict=True)],
        "authors' code": found.numbers("authors"),
    }
    return one(found.column("policy"), series, "seconds a trial, M = 100, K = 10, d = 3, T = 2^17")


def first_use() -> Figure:
    found = table("first_use", "problem", "process", "import")
    labels = [f"{row[0]}, {row[1]} process" for row in found.rows]
    names = ("import", "first solve", "second solve")
    return one(labels, {name: found.numbers(name) for name in names}, "seconds of the processor")


def hunt() -> Figure:
    points, title, place = [], "", 0
    for line in text("hunt").splitlines():
        if " slack " in line:
            title, place = line.split()[0], line.index("slack") + len("slack")
        elif found := re.search(r"(\d\.\d)e([+-]\d+)$", line[:place]):
            points.append((title, max(float(found[0]), FLOOR)))
    figure, (ax,) = new(len(set(dict(points))))
    strip(ax, points, "median distance between claim and truth, one point per family")
    return figure


def large() -> Figure:
    found = table("large", "kernel or function", "share")
    labels = [name.replace("<method 'copy' of 'numpy.ndarray' objects>", "copy of an array")
              for name in found.column("kernel or function")]  # fmt: skip
    return one(labels, {"": found.numbers("share")}, "share of the time, 100,000 clients", log=False)


def machines() -> Figure:
    found = table("machines", "case", "passes", "memory")
    figure, (left, right) = new(len(found.rows), panels=2)
    dots(left, found.column("case"), {"": found.numbers("passes")}, "passes over the data", log=False)
    dots(right, found.column("case"), {"": found.numbers("memory")}, "MB beside the page cache", log=False)
    return figure


def movielens() -> Figure:
    found = table("movielens", "ratings and start", "Enhanced", "Local UCB")
    series = {"Enhanced Fed-PE": found.numbers("Enhanced"), "local UCB": found.numbers("Local UCB")}
    return one(found.column("ratings and start"), series, "regret per client at T = 2^17", log=False)


def mutants() -> Figure:
    stored = text("mutants")
    names = re.findall(r"^(\S+\.py): \d+ mutants$", stored, flags=re.M)
    counts = re.findall(r"^  (\d+) tried, (\d+) noticed, (\d+) equivalent", stored, flags=re.M)
    series = {
        "noticed": [int(noticed) / int(tried) for tried, noticed, _ in counts],
        "equivalent": [int(same) / int(tried) for tried, _, same in counts],
    }
    return one(names, series, "share of the changes", log=False)


def regret() -> Figure:
    found = [t for t in tables("regret") if "scalars up" in t.columns][-1]
    order = np.argsort(found.numbers("regret"))
    labels = [found.column("policy")[k] for k in order]
    figure, (left, right) = new(len(labels), panels=2)
    dots(left, labels, {"": [found.numbers("regret")[k] for k in order]}, "regret per client")
    sent = np.array(found.numbers("scalars up")) + found.numbers("scalars down")
    dots(right, labels, {"": list(sent[order])}, "scalars sent per client")
    right.set_xscale("symlog", linthresh=100)
    right.set_xlim(-10)
    figure.suptitle(found.title.partition(",")[0], fontsize="medium")
    return figure


def rounding() -> Figure:
    found = [t for t in tables("rounding") if "uploaded" in t.columns]
    labels = [f"{name(t.title)}: {row[0]}" for t in found for row in t.rows]
    figure, (left, right) = new(len(labels), panels=2)
    arms = [value for t in found for value in t.numbers("arms with weight a client")]
    dots(left, labels, {"": arms}, "arms with weight per client", log=False)
    dots(
        right, labels, {"": [v for t in found for v in t.numbers("uploaded")]}, "scalars uploaded", log=False
    )
    return figure


def name(title: str) -> str:
    """Return the name of the instance in a title of the table of roundings."""
    return title.removeprefix("Fed-PE on ").partition(",")[0].removeprefix("the ")


def suite() -> Figure:
    found = table("suite", "instance", "cvxpy / auto")
    points = list(zip(map(family, found.column("instance")), found.numbers("cvxpy / auto"), strict=True))
    figure, (ax,) = new(len(set(dict(points))))
    strip(ax, points, "time of cvxpy with Clarabel over that of auto, one point per size")
    ax.axvline(1.0, color="black", linewidth=0.8)
    return figure


def wide() -> Figure:
    found = table("wide", "candidates", "ours", "Wolfe-Atwood")
    labels = [f"{row[0]}, {row[1]}" for row in found.rows]
    series = {"optdesign": found.numbers("ours"), "Wolfe-Atwood": found.numbers("Wolfe-Atwood")}
    return one(labels, series, "seconds")


def family(instance: str) -> str:
    """Return the family of an instance, its first two words."""
    return " ".join(instance.split()[:2])


def search_ablation() -> Figure:
    titles = {"3^6, 56": "56 runs on 3^6: 1 - efficiency", "2^7 in 4 x 8": "2^7 in 4 blocks of 8: 1 - D"}
    found = table("search_ablation", *titles)
    losses = {title: [1 - value for value in found.numbers(name)] for name, title in titles.items()}
    series = {title: [value / values[0] for value in values] for title, values in losses.items()}
    return one([row[0] for row in found.rows], series, "loss over that of the default", log=False)


CHARTS: dict[str, Callable[[], Figure]] = {
    chart.__name__: chart
    for chart in (
        ablation, baselines, before, classical, design, evaluation, exact, fedpe, first_use, hunt, large,
        machines, movielens, mutants, regret, rounding,
        search_ablation, suite, wide,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    is_stored = [name for name in CHARTS if (MEASURED / f"{name}.txt").exists()]
    parser.add_argument("names", nargs="*", default=is_stored, metavar="NAME")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        for chosen in args.names:
            path = args.out / f"chart-{chosen}.png"
            CHARTS[chosen]().savefig(path, dpi=DPI, metadata={"Software": None})
            print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
