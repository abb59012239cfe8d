"""Pictures of the efficiency of whole runs against their number."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from pathlib import Path
from typing import Any

from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.plot.naming import whole_ticks
from optdesign.plot.style import BLUE, ORANGE, legend, picture
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import exact
from optdesign.runs.rounding import apportion
from optdesign.runs.rounding import round as rounded
from optdesign.runs.runs import RunStatus
from optdesign.solvers.solve import solve_many


def efficiencies(
    problem: DesignProblem | DesignResult,
    sizes: Iterable[int],
    *,
    seed: int = 0,
    tries: int | None = None,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the efficiency of designs of whole runs against the number of runs.

    Dots are the best runs that :func:`optdesign.exact` finds, and squares are the optimal weights after
    :func:`optdesign.round`. Both are lower bounds on the efficiency per run, against all designs on
    these candidates, fractions of runs included. The broken line at 1 marks no loss to whole runs. Sizes that
    are too small for full rank are omitted, and named below the axis. Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    problem : DesignProblem or DesignResult
        Problem, or its solved design.
    sizes : iterable of int
        Numbers of runs. Several groups share them in proportion to the budgets of the problem, with at least
        one run each.
    seed : int, default 0
        Seed of :func:`optdesign.exact`.
    tries : int, optional
        Number of starts of :func:`optdesign.exact`.
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
    optdesign.exact : Search for runs.
    optdesign.round : Round a design to runs.

    Examples
    --------
    >>> import optdesign as od
    >>> p = od.DesignProblem([[1, -1], [1, 0], [1, 1]])
    >>> figure = od.plot.efficiencies(p, [2, 3, 4], tries=1)
    """
    p = problem.problem if isinstance(problem, DesignResult) else problem
    drawn: list[tuple[int, float, float]] = []
    left_out: dict[int, InputError] = {}
    for n in _sizes(sizes, p.n_groups):
        budgets = apportion(p.budgets[None], [n])[0]
        here = DesignProblem(
            p.source.whole(), p.groups, p.parameter_blocks, budgets, _single=p.span.is_single
        )
        try:
            runs = exact(here, seed=seed, tries=tries)
        except InputError as error:
            left_out[n] = error
            continue
        if runs.status is RunStatus.INTERRUPTED:
            raise KeyboardInterrupt
        (optimum,) = solve_many([here])
        drawn.append((n, runs.efficiency, rounded(optimum).efficiency))
    if not drawn:
        raise left_out.popitem()[1]
    kept, found, followed = zip(*drawn, strict=True)
    with picture(ax, path) as (axes,):
        axes.axhline(1.0, color=ORANGE, linestyle="--", linewidth=1.2, zorder=1)
        axes.plot(kept, found, "o-", color=BLUE, markersize=5, label="exact", zorder=3)
        axes.plot(
            kept, followed, "s:", color="0.45", markerfacecolor="white", markersize=5, linewidth=1.0,
            label="weights, rounded", zorder=2,
        )  # fmt: skip
        low = min(found + followed)
        axes.set(
            title="Efficiency of whole runs", xlabel=f"number of runs{_named(list(left_out))}",
            ylabel="efficiency on these candidates, at least",
            ylim=(low - 0.08 * max(1 - low, 0.01), 1 + 0.1 * max(1 - low, 0.01)),
        )  # fmt: skip
        whole_ticks(axes.xaxis)
        axes.grid(axis="y", color="0.9", linewidth=0.7)
        legend(axes, outside=ax is None)
        return axes.figure


def _sizes(sizes: Iterable[int], groups: int) -> list[int]:
    try:
        numbers = sorted({index(n) for n in sizes})
    except TypeError:
        raise TypeError(f"sizes must be whole numbers of runs; got {sizes!r}. Say range(6, 25).") from None
    if not numbers or numbers[0] < groups:
        rule = f"must be at least one run for each of the {groups} group(s)"
        raise InputError("sizes", rule, f"got {numbers[:1]}", "Begin with the number of parameters.")
    return numbers


def _named(sizes: list[int]) -> str:
    """Return the addition to the name of the axis for sizes that are not shown."""
    if not sizes:
        return ""
    shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
    return f"\nleft out, too few to keep the rank: {shown}"
