"""Prediction variance over the fraction of the region, for one design or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.evaluation.evaluation import Evaluation
from optdesign.plot.draw_correlations import check_evaluation
from optdesign.plot.style import BLUE, ORANGE, legend, picture
from optdesign.plot.text import all_distinct

LINES: tuple[dict[str, Any], ...] = (
    {"color": BLUE, "linestyle": "-"},
    {"color": ORANGE, "linestyle": "--"},
    {"color": "black", "linestyle": ":"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": (0, (6, 1.5))},
    {"color": "#56B4E9", "linestyle": (0, (1, 1))},
)
"""Lines that differ in colour and in their dashes."""


def design_space(
    evaluation: Evaluation,
    *others: Evaluation,
    labels: Sequence[str] | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the prediction variance against the fraction of the region that has at most that variance.

    A low and flat curve is a design that predicts well everywhere. The right end is the largest variance.
    Points that a design cannot predict are left out of its curve, which ends before 1.

    Parameters
    ----------
    evaluation : Evaluation
        Result of :func:`optdesign.evaluate`.
    *others : Evaluation
        Evaluations of other designs for comparison.
    labels : sequence of str, optional
        Names of the designs. Default: their number of runs.
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
    optdesign.plot.profiles : Prediction variance along each factor.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.evaluate({"x": [-1, -1, 0, 1, 1]}, model="~ x + I(x**2)")
    >>> figure = od.plot.design_space(e)
    """
    designs = [evaluation, *others]
    for one in designs:
        check_evaluation(one)
    names = [f"{one.n_runs:g} runs" for one in designs] if labels is None else list(map(str, labels))
    if len(names) != len(designs):
        remedy = "Give one for each design."
        raise InputError("labels", f"must have {len(designs)} names", f"got {len(names)}", remedy)
    if labels is None and len(set(names)) < len(names):
        names = [f"design {k + 1}, {name}" for k, name in enumerate(names)]
    with picture(ax, path) as (axes,):
        for k, (one, name) in enumerate(zip(designs, all_distinct(names, 40), strict=True)):
            values = np.sort(one.variances)
            fraction = (np.arange(len(values)) + 1) / len(values)
            finite = np.isfinite(values)
            x, y = np.concatenate([[0], fraction[finite]]), np.concatenate([values[:1], values[finite]])
            axes.plot(x, y, drawstyle="steps-pre", linewidth=1.8, label=name, **LINES[k % len(LINES)])
        axes.set(
            title="Prediction variance over the region",
            xlabel="fraction of the region",
            ylabel="variance / sigma²",
            xlim=(0, 1),
        )
        axes.set_ylim(bottom=0)
        axes.grid(color="0.9", linewidth=0.7)
        if len(designs) > 1:
            legend(axes, outside=ax is None)
        return axes.figure
