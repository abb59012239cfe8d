"""Correlations of the estimates of a design, as a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optdesign.evaluation.evaluation import Evaluation
from optdesign.numbers.checks import check_type
from optdesign.plot.style import MOST, picture, shades
from optdesign.plot.text import all_distinct


def correlations(evaluation: Evaluation, *, ax: Any = None, path: str | Path | None = None) -> Any:
    """Draw the absolute correlations of the estimates.

    Dark cells are pairs of coefficients that the design cannot separate well. Coefficients that are not
    estimable are grey. Correlations are written into the cells of up to 10 coefficients.

    Parameters
    ----------
    evaluation : Evaluation
        Result of :func:`optdesign.evaluate`.
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
    optdesign.evaluate : The correlations as numbers.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.evaluate({"x": [-1, -1, 0, 1, 1]}, model="~ x + I(x**2)")
    >>> figure = od.plot.correlations(e)
    """
    check_evaluation(evaluation)
    r, p = evaluation.correlation, len(evaluation.terms)
    side = float(np.clip(2.6 + 0.28 * p, 4.4, 6.4))
    with picture(ax, path, size=(side + 1.2, side)) as (axes,):
        axes.set_facecolor("0.93")
        image = axes.imshow(np.abs(r), cmap=shades(), vmin=0, vmax=1, aspect="equal")
        every = -(-p // MOST.coefficients)
        at = np.arange(0, p, every)
        labels = np.array(all_distinct(evaluation.terms, 26))[at]
        size = 9 if p <= 20 else 7
        axes.set_xticks(at, labels, rotation=90, fontsize=size)
        axes.set_yticks(at, labels, fontsize=size)
        axes.tick_params(length=0)
        for side_name in ("left", "bottom"):
            axes.spines[side_name].set_visible(False)
        if p <= MOST.numbers:
            for i, j in np.ndindex(p, p):
                if i != j and np.isfinite(r[i, j]):
                    colour = "white" if abs(r[i, j]) > 0.5 else "black"
                    text = f"{r[i, j]:.2f}".replace("-0.00", "0.00").replace("0.", ".")
                    axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=8)
        lost = int(np.sum(np.isnan(np.diag(r))))
        title = "Correlations of the estimates"
        axes.set_title(title + (f"\n{lost} of {p} coefficients are not estimable" if lost else ""))
        axes.figure.colorbar(image, ax=axes, label="absolute value", shrink=0.8)
        return axes.figure


def check_evaluation(evaluation: object) -> None:
    """Raise TypeError unless the argument is an Evaluation."""
    check_type(evaluation, Evaluation, "evaluation must be an Evaluation", "Pass evaluate(design).")
