"""What a picture shows, read back from the figure: its texts, and whether any overlap or are cut off."""

from itertools import combinations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.text import Text


def draw(figure):
    """Lay a figure out, as saving it would."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def texts(figure):
    """Every text that is seen, with its box in pixels. Ticks beyond the limits of an axis are not."""
    renderer = draw(figure)
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = {*axis.get_major_ticks(), *axis.get_minor_ticks()}
            drawn = axis._update_ticks() if axes.axison and axis.get_visible() else []
            hidden |= {label for tick in ticks - set(drawn) for label in (tick.label1, tick.label2)}
    seen = (t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip())
    return [(t, t.get_window_extent(renderer)) for t in seen if t not in hidden]


def overlapping(figure):
    """Pairs of texts that lie over each other. Slanted neighbours are parallel: their boxes may meet."""
    boxes = [(t, box.padded(-1)) for t, box in texts(figure) if box.width > 2 and box.height > 2]
    return [
        (a.get_text(), b.get_text())
        for (a, one), (b, other) in combinations(boxes, 2)
        if one.overlaps(other) and not (a.get_rotation() == b.get_rotation() == 35)
    ]


def cut_off(figure):
    """Texts that reach beyond the figure."""
    whole = figure.bbox.padded(1)
    return [
        t.get_text()
        for t, box in texts(figure)
        if box.x0 < whole.x0 or box.y0 < whole.y0 or box.x1 > whole.x1 or box.y1 > whole.y1
    ]


def assert_legible(figure):
    """No text is cut off, over another or under a circle; drawing raises no warning, about glyphs or else."""
    beyond, over, under = cut_off(figure), overlapping(figure), covered(figure)
    assert not beyond, beyond
    assert not over, over
    assert not under, under


def covered(figure):
    """Texts beside the panels that a circle covers. Numbers in circles belong there."""
    labels = [(t, box) for t, box in texts(figure) if t.axes is None or t not in t.axes.texts]
    found = []
    for axes in figure.axes:
        for points in (c for c in axes.collections if isinstance(c, PathCollection)):
            places = points.get_offset_transform().transform(points.get_offsets())
            radii = np.sqrt(np.resize(points.get_sizes(), len(places))) / 2 * figure.dpi / 72
            for place, radius in zip(places, radii, strict=True):
                found += [
                    t.get_text() for t, box in labels if np.hypot(*(place - _nearest(box, place))) < radius
                ]
    return found


def _nearest(box, place):
    """Return the point of a box that is nearest to a place."""
    return np.clip(place, box.min, box.max)
