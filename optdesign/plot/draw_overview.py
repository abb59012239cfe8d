"""Pictures of a design in one figure: weights, variances and, optionally, convergence."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from optdesign.design.result import DesignResult
from optdesign.plot.draw_convergence import draw_convergence
from optdesign.plot.draw_sensitivity import draw_panels, draw_rows, headline
from optdesign.plot.draw_weights import draw_weights
from optdesign.plot.naming import names_in
from optdesign.plot.panels import panels
from optdesign.plot.scales import view
from optdesign.plot.style import picture
from optdesign.plot.text import readable


def overview(
    result: DesignResult,
    *,
    convergence: bool = False,
    tol: float | None = None,
    words: tuple[str, str] | None = None,
    rows: ArrayLike | None = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Draw weights and variances side by side.

    Groups come in the same order in both panels, and rows are numbered as in tables. Candidates made of
    factors show their variances over these, as :func:`optdesign.plot.sensitivity` does on one panel. A
    caption names columns that are combinations of others, and a rank that was a close decision.

    Parameters
    ----------
    result : DesignResult
        Design to draw.
    convergence : bool, default False
        Add a panel with the running gap.
    tol : float, optional
        Tolerance whose gap the third panel marks.
    words : tuple of str, optional
        Words for groups and for parameter blocks. Default: the columns of the settings that distinguish them,
        or "group" and "parameter block".
    rows : array_like of shape (N,), optional
        Row numbers of the candidates. Default: 1, 2, ...
    title : str, optional
        Title of the figure.
    path : str or Path, optional
        File to save to: .png, .pdf or .svg.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    See Also
    --------
    optdesign.plot.weights : Draw the weights alone.
    optdesign.plot.sensitivity : Draw the variances alone.

    Examples
    --------
    >>> import optdesign as od
    >>> figure = od.plot.overview(od.solve(od.DesignProblem([[1, -1], [1, 0], [1, 1]])))
    """
    names = names_in(result, words, rows)
    shown = view(names)
    ratios = (1.1, 1.2, 1.0)[: 3 if convergence else 2]
    size = (14.0 if convergence else 10.5, 4.8)
    with picture(path=path, size=size, shape=(1, len(ratios)), width_ratios=ratios) as axes:
        figure = axes[0].figure
        draw_weights(axes[0], result.weights, names)
        if shown is None:
            draw_rows(axes[1], result, names)
        else:
            draw_panels(axes[1:2], result, shown, panels(names, 1))
            marked = ", circles: weight"
            if len(shown.scales) == 1:
                axes[1].set_ylim(top=1.2 * axes[1].get_ylim()[1])
                axes[1].legend(loc="upper left", ncols=2)
                marked = ""
            axes[1].set_title(f"Variance and its bound\n{headline(result)}{marked}")
        if convergence:
            draw_convergence(axes[2], result, tol)
        if title:
            figure.suptitle(readable(title, 120), fontsize=12, x=0.01, ha="left")
        notes = [line for note in names.notes() for line in textwrap.wrap(note, int(11 * size[0]))]
        if notes:
            text = "\n".join(readable(line, 400) for line in notes)
            figure.supxlabel(text, fontsize=9, x=0.01, ha="left")
        return figure
