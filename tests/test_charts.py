"""The charts of the page Benchmarks are drawn from the stored tables."""

import math
from pathlib import Path

import pytest
from benchmark_scripts import load

ROOT = Path(__file__).parents[1]
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def charts():
    """Return the module that draws the charts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return load(ROOT / "benchmarks" / "charts.py")


STORED = sorted({table.stem for table in ROOT.glob("docs/measured/*.txt")} - {"times"})


def test_every_stored_table_has_a_chart(charts):
    assert set(STORED) <= set(charts.CHARTS)


@pytest.mark.parametrize("name", STORED)
def test_charts_show_points_of_the_table(charts, name):
    figure = charts.CHARTS[name]()
    values = [float(x) for ax in figure.axes for line in ax.lines for x in line.get_xdata()]
    assert sum(map(math.isfinite, values)) > len(figure.axes)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == len(labels) > 1


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1.44 s (3e-03)", 1.44),
        ("734 us (3e-03)", 734e-6),
        ("38 %", 0.38),
        ("1e-06", 1e-6),
        ("20,000", 2e4),
        (">105", 105.0),
        ("131102", 131102.0),
        ("17.75 same disjoint", 17.75),
    ],
)
def test_cells_are_read_in_seconds(charts, cell, expected):
    assert charts.number(cell) == pytest.approx(expected)


def test_a_cell_without_a_number_is_not_drawn(charts):
    assert math.isnan(charts.number("-"))


def test_a_table_that_is_not_there_raises_an_error(charts):
    with pytest.raises(ValueError, match=r"suite\.txt must have one table"):
        charts.table("suite", "no such column")
