"""Prediction variance along each factor of a design."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.evaluation.evaluation import Evaluation
from optdesign.factors.coding import disjoint_mixtures
from optdesign.plot.draw_correlations import check_evaluation
from optdesign.plot.naming import label_axis
from optdesign.plot.panels import arrangement
from optdesign.plot.style import BLUE, picture
from optdesign.plot.text import all_distinct
from optdesign.tables.columns import number


def profiles(evaluation: Evaluation, *, path: str | Path | None = None) -> Any:
    """Draw the prediction variance along each factor, the other factors at their centre.

    The centre of a numeric factor is the middle of its range in the region, and that of a categorical factor
    its first level. In mixtures, the other components keep their proportions.

    Parameters
    ----------
    evaluation : Evaluation
        Result of :func:`optdesign.evaluate` for a model with a formula.
    path : str or Path, optional
        File to save to: .png, .pdf or .svg.

    Returns
    -------
    matplotlib.figure.Figure
        A new figure.

    Raises
    ------
    InputError
        If the design has no formula or several parameter blocks.

    See Also
    --------
    optdesign.plot.design_space : Prediction variance over the whole region.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.evaluate({"x": [-1, -1, 0, 1, 1]}, model="~ x + I(x**2)")
    >>> figure = od.plot.profiles(e)
    """
    check_evaluation(evaluation)
    lines = _lines(evaluation)
    shape = arrangement(len(lines))
    size = (1.0 + 2.6 * shape[1] if shape[1] > 1 else 5.0, 0.9 + 2.3 * shape[0])
    with picture(None, path, size=size, shape=shape, sharey=True) as axes:
        for empty in axes[len(lines) :]:
            empty.set_visible(False)
        top = max(values[np.isfinite(values)].max(initial=0.0) for _, values in lines.values())
        for one, name, (at, values) in zip(axes, all_distinct(list(lines), 30), lines.values(), strict=False):
            if at.dtype == object:
                one.plot(np.arange(len(at)), values, "o", color=BLUE)
                label_axis(one.xaxis, at.tolist(), len(at), name)
                one.margins(x=0.2)
            else:
                one.plot(at, values, color=BLUE, linewidth=1.8)
                one.locator_params(axis="x", nbins=4)
            one.set_xlabel(name)
            one.set_ylim(0, 1.08 * top or 1)
            one.grid(axis="y", color="0.9", linewidth=0.7)
        for one in axes[:: shape[1]]:
            one.set_ylabel("variance / sigma²")
        title = "Prediction variance along each factor, the others at their centre"
        axes[0].figure.suptitle(
            title if shape[1] > 1 else title.replace(", ", ",\n"), fontsize=11, x=0.01, ha="left"
        )
        return axes[0].figure


def _lines(evaluation: Evaluation, points: int = 81) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return settings along every factor, ``points`` along a numeric one, and the variances there."""
    x = evaluation.experiment
    if x.model is None or x.region_settings is None or len(x.block_names) > 1:
        rule = "must be that of a formula and one parameter block"
        value = "the features have no factors" if x.model is None else f"there are {len(x.block_names)}"
        raise InputError("evaluation", rule, value, "Evaluate a table of settings with a model.")
    settings, model = x.region_settings, x.model.model
    numeric = [name for name in model.factors if name not in model.categories]
    along: dict[str, np.ndarray] = {}
    centre: dict[str, Any] = {}
    for name in model.factors:
        values = settings[name]
        if name in numeric:
            low, high = float(values.min()), float(values.max())
            along[name], centre[name] = np.linspace(low, high, points), (low + high) / 2
        else:
            along[name] = number(values, settings.levels.get(name)).names.astype(object)
            centre[name] = along[name][0]
    varying = [name for name in numeric if settings[name].dtype.kind in "iuf" and np.ptp(settings[name]) > 0]
    blends = disjoint_mixtures(settings, varying)
    centre |= {name: float(settings[name].mean()) for mixture in blends for name in mixture}
    out = {}
    for name, at in along.items():
        columns: dict[str, Any] = {other: np.full(len(at), value) for other, value in centre.items()}
        columns[name] = at if name in numeric else list(at)
        for mixture in blends:
            total = sum(centre[other] for other in mixture)
            for other in mixture if name in mixture else ():
                if other != name:
                    columns[other] = centre[other] * (total - at) / (total - centre[name])
        out[name] = at, evaluation.predict(columns)
    return out
