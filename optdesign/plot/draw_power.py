"""Power against the number of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.evaluation.evaluation import Evaluation
from optdesign.plot.draw_correlations import check_evaluation
from optdesign.plot.draw_design_space import LINES
from optdesign.plot.naming import whole_ticks
from optdesign.plot.style import GREY, legend, picture
from optdesign.plot.text import all_distinct


def power(
    evaluation: Evaluation,
    runs: Iterable[float] | None = None,
    *,
    target: float = 0.8,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Draw the power of every term against the number of runs, in the proportions of the design.

    Terms whose curves coincide share one curve. A dotted vertical line marks the runs of the design.

    Parameters
    ----------
    evaluation : Evaluation
        Result of :func:`optdesign.evaluate`. Its effect, sigma and alpha are used.
    runs : iterable of float, optional
        Numbers of runs. Default: from one degree of freedom for the error to 3 times the runs of the design.
    target : float, default 0.8
        Power at which a horizontal line is drawn.
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
    optdesign.Evaluation.power_at : The power as numbers.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.evaluate({"x": [-1, -1, 0, 1, 1]}, model="~ x + I(x**2)")
    >>> figure = od.plot.power(e, range(4, 20))
    """
    check_evaluation(evaluation)
    e = evaluation
    sizes = np.arange(e.rank + 1, max(3 * e.n_runs, 3 * e.rank) + 1) if runs is None else _sizes(runs, e.rank)
    curves = _distinct(e, sizes)
    labels = dict(zip(e.effect_terms, all_distinct(e.effect_terms, 20), strict=True))
    with picture(ax, path) as (axes,):
        axes.axhline(target, color=GREY, linewidth=0.9)
        axes.axvline(e.n_runs, color=GREY, linewidth=0.9, linestyle=":")
        for k, (names, values) in enumerate(curves):
            if k < len(LINES):
                axes.plot(sizes, values, linewidth=1.8, label=_label(names, labels), **LINES[k])
            else:
                label = f"{len(curves) - len(LINES)} other curves" if k == len(LINES) else None
                axes.plot(sizes, values, linewidth=0.8, color=GREY, label=label, zorder=1)
        axes.set(
            title=f"Power at level {e.alpha:g}, in the proportions of {e.n_runs:g} runs",
            xlabel="number of runs",
            ylabel="power",
            ylim=(0, 1.02),
            xlim=(sizes[0], sizes[-1]) if len(sizes) > 1 else None,
        )
        whole_ticks(axes.xaxis)
        axes.grid(color="0.9", linewidth=0.7)
        if curves:
            legend(axes, outside=ax is None)
        return axes.figure


def _sizes(runs: Iterable[float], rank: int) -> np.ndarray:
    sizes = np.unique(np.asarray(list(runs), dtype=np.float64))
    if not len(sizes) or not np.all(np.isfinite(sizes)) or sizes[-1] <= rank:
        value = f"got {sizes.tolist()[:3]}"
        raise InputError("runs", f"must be numbers above the rank {rank}", value, "Say range(6, 25).")
    return sizes[sizes > rank]


def _distinct(e: Evaluation, sizes: np.ndarray) -> list[tuple[list[str], np.ndarray]]:
    """Return the distinct curves with their terms, the least power first, without the intercept."""
    out: list[tuple[list[str], np.ndarray]] = []
    for name, values in zip(e.effect_terms, e.power_at(sizes), strict=True):
        if name.endswith("Intercept") or not np.any(np.isfinite(values)):
            continue
        same = next((names for names, own in out if np.allclose(own, values, atol=5e-4)), None)
        if same is None:
            out.append(([name], values))
        else:
            same.append(name)
    return sorted(out, key=lambda curve: float(np.nansum(curve[1])))


def _label(names: list[str], labels: dict[str, str]) -> str:
    shown = ", ".join(labels[name] for name in names[:2])
    return shown + (f" and {len(names) - 2} more" if len(names) > 2 else "")
