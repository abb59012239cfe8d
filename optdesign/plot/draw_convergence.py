"""Pictures of convergence: the running gap of the solver."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.design.result import DesignResult, rounded_down
from optdesign.plot.naming import check_result, whole_ticks
from optdesign.plot.style import BLUE, ORANGE, picture


def convergence(
    result: DesignResult, *, tol: float | None = None, ax: Any = None, path: str | Path | None = None
) -> Any:
    """Draw the running gap of the solver against its iterations.

    The scale is logarithmic. A gap of exactly 0 is an open triangle below all others.

    Parameters
    ----------
    result : DesignResult
        Result with a history.
    tol : float, optional
        Tolerance whose gap is marked by a broken line.
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
    optdesign.plot.overview : Draw weights, variances and the running gap.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> figure = od.plot.convergence(od.solve(od.DesignProblem(x)), tol=1e-6)
    """
    check_result(result)
    with picture(ax, path) as (axes,):
        draw_convergence(axes, result, tol)
        return axes.figure


def draw_convergence(axes: Any, result: DesignResult, tol: float | None) -> None:
    """Draw the running gap on given axes."""
    steps, gaps = result.history.iterations, result.history.gaps
    seen, zero = np.isfinite(gaps) & (gaps > 0), gaps <= 0
    goal = None if tol is None else tol * result.rank
    few = 40  # steps up to which each is marked
    axes.plot(steps[seen], gaps[seen], color=BLUE, marker="o" if seen.sum() < few else "", markersize=3.5)
    axes.set_yscale("log")
    if zero.any():
        least = min([*gaps[seen], *([] if goal is None else [goal])], default=1e-14)
        below = np.full(int(zero.sum()), 0.03 * least)
        axes.plot(
            steps[zero], below, "v", color=BLUE, markerfacecolor="white", markersize=7, label="exactly zero"
        )
    whole_ticks(axes.xaxis)
    if goal is not None:
        axes.axhline(goal, color=ORANGE, linestyle="--", linewidth=1.2, label=f"asked for: {goal:.1e}")
    if axes.get_legend_handles_labels()[0]:
        axes.set_ylim(top=10 * axes.get_ylim()[1])
        axes.legend(loc="upper right")
    axes.grid(axis="y", color="0.9", linewidth=0.7)
    axes.set(
        xlabel="sweep" if result.method == "bca" else "iteration",
        ylabel="gap",
        title=f"Gap: efficiency at least {floor_percent(result.efficiency)}\non these candidates",
    )


def floor_percent(efficiency: float) -> str:
    """Return a percentage that is rounded down.

    >>> floor_percent(0.99999999)
    '99.9999989 %'
    """
    return f"{Decimal(rounded_down(efficiency)) * 100:.7f} %"
