"""Style of all pictures: colours, sizes, axes and files.

Colours are those of Okabe and Ito, which people with any colour vision can distinguish. They differ in
lightness, which also orders the values in :data:`SHADES`. Needs matplotlib, once a picture is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optdesign.plot.text import dress, wrap_title
from optdesign.runtime.files import atomic
from optdesign.runtime.optional import optional
from optdesign.tables.files import check_suffix, check_writable

SUFFIXES = (".png", ".pdf", ".svg")

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#9A9A9A"

SHADES = ("#D9EEFA", "#56B4E9", BLUE, "#001E33")
"""Small to large; none is white."""


class Most(NamedTuple):
    """Largest numbers of things that a picture shows one by one."""

    points: int = 20_000
    """Candidates of a kind; of more, every k-th is drawn, or the one with the largest value of every k."""
    places: int = 250
    """Distinct places along an axis of a map; of more, neighbours share a place."""
    lattice: int = 50
    """Distinct places along the side of a triangle; of more, neighbours share a place."""
    cells: int = 1000
    """Rows and columns of the picture of totals; of more, neighbours share a cell."""
    bars: int = 24
    """Candidates with weight that get a bar and a label of their own."""
    ticks: int = 15
    """Labels along an axis; of more, every k-th is written."""
    coefficients: int = 26
    """Coefficients that are named in the map of correlations; of more, every k-th is."""
    numbers: int = 10
    """Coefficients whose correlations are written into the map."""


MOST = Most()

STYLE = {
    "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9, "text.usetex": False,
    "axes.axisbelow": True, "svg.hashsalt": "optdesign",
}  # fmt: skip

UNDATED: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Metadata without a date, so that equal pictures are equal files."""


def require_matplotlib() -> Any:
    """Return the matplotlib module.

    Returns
    -------
    module
        The module matplotlib.

    Raises
    ------
    ImportError
        If matplotlib is missing. The message has the command that installs it.

    See Also
    --------
    optdesign.plot.overview : Draw a design.

    Examples
    --------
    >>> require_matplotlib().__name__
    'matplotlib'
    """
    return optional("matplotlib", "pictures need", "plot")


@contextmanager
def picture(
    ax: Any = None,
    path: str | Path | None = None,
    *,
    size: tuple[float, float] = (6.4, 4.4),
    shape: tuple[int, int] = (1, 1),
    **layout: Any,
) -> Iterator[np.ndarray]:
    """Axes to draw on, ``ax`` or those of a new figure; afterwards texts get their fonts, ``path`` its file.

    A new figure belongs to no window. The path is checked first, and its file appears whole or not at all.
    """
    mpl = require_matplotlib()
    from matplotlib.figure import Figure

    target = None if path is None else Path(path)
    if target is not None:
        check_suffix(target, "path", SUFFIXES)
        check_writable(target, "path", force=True)
    resolution = 160  # dots per inch of bitmaps, and of what is a bitmap within a vector graphic
    with mpl.rc_context(STYLE):
        if ax is None:
            figure = Figure(figsize=size)
            # Notebooks show the figure without ``%matplotlib inline``, whatever the backend.
            figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
            figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.06)
            axes = figure.subplots(*shape, squeeze=False, **layout).ravel()
        else:
            figure, axes = ax.figure, np.array([ax])
        yield axes
        if ax is not None:
            wrap_title(ax)
        dress(figure)
        if target is not None:
            suffix = target.suffix.lower()
            with atomic(target) as temporary:
                figure.savefig(temporary, dpi=resolution, format=suffix[1:], metadata=UNDATED[suffix])


def _png(figure: Any) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=100, metadata=UNDATED[".png"])
    return data.getvalue()


def legend(axes: Any, *, outside: bool) -> None:
    """Add the legend: below all panels of a new figure, or within given axes."""
    if outside:
        handles, labels = axes.get_legend_handles_labels()
        letters = 12.5 * axes.figure.get_figwidth()
        columns = int(letters / (7 + max(map(len, labels))))
        axes.figure.legend(handles, labels, loc="outside lower left", ncols=min(max(columns, 1), 3))
    else:
        axes.legend(loc="best", fontsize=8)


def shades() -> Any:
    """Return the colour map from small to large, with decreasing lightness."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("shades", SHADES)


def subsample(rows: np.ndarray, most: int | None = None) -> np.ndarray:
    """Return at most ``most`` of the rows, evenly spaced."""
    most = MOST.points if most is None else most
    return rows[:: max(1, -(-len(rows) // most))]


def largest_nearby(rows: np.ndarray, at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the rows, or the one with the largest value of every k neighbours if there are too many.

    >>> many = np.arange(40_000)
    >>> largest_nearby(many, at=many, values=many % 2).tolist() == many[1::2].tolist()
    True
    """
    step = max(1, -(-len(rows) // MOST.points))
    if step == 1:
        return rows
    rows = rows[np.argsort(at[rows], kind="stable")]
    start = np.arange(0, len(rows), step)
    order = np.lexsort((values[rows], np.arange(len(rows)) // step))
    return rows[order[np.minimum(start + step, len(rows)) - 1]]
