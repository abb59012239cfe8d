"""The overview of a design: what it draws are the numbers of the result, and all of it can be read."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from drawn import assert_legible, draw, texts

import optdesign as od
from optdesign.design.result import History
from optdesign.examples import authors_features
from optdesign.plot import style
from optdesign.plot.draw_convergence import floor_percent


def panels(figure):
    return [axes for axes in figure.axes if axes.get_title(loc="left")]


def labels(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


@pytest.fixture(scope="module")
def grid():
    return od.solve(od.DesignProblem.disjoint(authors_features(12, 4, 2, seed=1)), method="bca")


@pytest.fixture(scope="module")
def strata():
    """Three groups of twelve candidates, whose bounds are in another order than the groups."""
    x = np.random.default_rng(0).normal(size=(36, 2))
    p = od.DesignProblem(x, np.arange(36) % 3, budgets=[1, 9, 4], group_names=["c", "a", "b"])
    return od.solve(p, tol=1e-9)


@pytest.mark.parametrize(
    "suffix", [".png", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".pdf", ".svg"))]
)
def test_picture_is_written(grid, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    od.plot.overview(grid, words=("client", "arm"), title="An instance", path=path)
    first = path.read_bytes()
    assert len(first) > 5000
    assert list(tmp_path.iterdir()) == [path]
    od.plot.overview(grid, words=("client", "arm"), title="An instance", path=str(path))
    assert path.read_bytes() == first


@pytest.mark.parametrize(("path", "words"), [("a.gif", "path must end in"), ("no/a.png", "does not exist")])
def test_path_is_checked(grid, path, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        od.plot.weights(grid, path=tmp_path / path)


@pytest.mark.slow
def test_panels_of_a_grid(grid, monkeypatch):
    monkeypatch.setattr(style, "MOST", style.MOST._replace(bars=10))
    figure = od.plot.overview(grid, convergence=True, tol=1e-6, words=("client", "arm"))
    totals, variances, gaps = panels(figure)
    assert totals.get_title(loc="left") == "Total weight by client and arm"
    assert f"rank {grid.rank} of {grid.rank}, gap " in variances.get_title(loc="left")
    assert "efficiency at least 99.999" in gaps.get_title(loc="left")
    shown = np.nan_to_num(np.ma.filled(totals.images[0].get_array(), 0.0))
    np.testing.assert_allclose(shown, grid.weights_matrix())
    assert [t.get_text() for t in totals.texts] == [f"{w:.3g}" for w in grid.weights_matrix().ravel()]
    assert [t.get_text() for t in variances.get_legend().get_texts()] == [
        "bound of each client: they sum to the rank",
        "candidate with weight",
        "candidate without weight",
    ]
    assert "side by side" in variances.get_xlabel()
    np.testing.assert_allclose(gaps.lines[0].get_ydata(), grid.history.gaps)
    np.testing.assert_array_equal(gaps.lines[0].get_xdata(), grid.history.iterations)
    assert gaps.get_yscale() == "log"
    assert gaps.get_xlabel() == "sweep"
    assert_legible(figure)


def test_bounds_sum_to_the_rank_and_excess_to_the_gap(strata):
    variances = panels(od.plot.overview(strata))[1]
    bounds = variances.patches[0].get_data().values
    assert bounds.sum() == pytest.approx(strata.rank, rel=1e-12)
    p = strata.problem
    largest = [p.budgets[i] * strata.variances[p.groups == i].max() for i in range(3)]
    # Both sides round: sums of a few numbers of the size of the rank.
    assert np.sum(largest - bounds) <= strata.gap + 1e-14 * strata.rank
    assert not np.all(np.diff(bounds) > 0)


def test_groups_come_in_the_same_order_everywhere(strata):
    """Of every panel, what stands above the label of a group belongs to it."""
    p, names = strata.problem, ["c", "a", "b"]
    bars, variances = panels(od.plot.overview(strata))
    assert labels(variances.xaxis) == names
    rows = sorted(strata.support, key=lambda n: (p.groups[n], n))
    assert labels(bars.yaxis) == [f"group {names[p.groups[n]]}, row {n + 1}" for n in rows]
    np.testing.assert_allclose([bar.get_width() for bar in bars.patches], strata.weights[rows])
    idle = np.flatnonzero(strata.weights == 0)
    for points, drawn in zip(variances.collections, (strata.support, idle), strict=True):
        x, y = points.get_offsets().T
        np.testing.assert_array_equal(np.round(x), p.groups[drawn])
        np.testing.assert_allclose(y, p.budgets[p.groups[drawn]] * strata.variances[drawn])


def test_rows_are_numbered_as_in_the_table(monkeypatch):
    x = np.random.default_rng(0).normal(size=(300, 3))
    r = od.solve(od.DesignProblem(x))
    bars, variances = panels(od.plot.overview(r))
    assert bars.get_title(loc="left") == f"Weights: {len(r.support)} of 300 candidates"
    assert labels(bars.yaxis) == [f"row {n + 1}" for n in r.support]
    drawn, y = variances.collections[0].get_offsets().T
    np.testing.assert_array_equal(drawn, r.support + 1)
    np.testing.assert_allclose(y, r.variances[r.support])
    monkeypatch.setattr(style, "MOST", style.MOST._replace(bars=2))
    stems = panels(od.plot.overview(r))[0]
    np.testing.assert_array_equal(stems.lines[0].get_xdata(), r.support + 1)
    np.testing.assert_allclose(stems.lines[0].get_ydata(), r.weights[r.support])
    assert stems.get_xlabel() == variances.get_xlabel() == "row"
    rows = 2 * np.arange(len(x)) + 5
    numbered = panels(od.plot.overview(r, rows=rows))[1].collections
    drawn = [at for points in numbered for at in points.get_offsets()[:, 0].tolist()]
    assert sorted(drawn) == rows.tolist()
    with pytest.raises(ValueError, match="rows must have one entry per candidate"):
        od.plot.weights(r, rows=rows[1:])


def test_exact_zero_gap_is_drawn(grid):
    gaps = np.array([1e-1, 1e-3, 0.0])
    r = replace(grid, history=History(np.arange(3), np.arange(3.0), gaps))
    (axes,) = od.plot.convergence(r, tol=1e-6).axes
    running, zero = axes.lines[:2]
    np.testing.assert_array_equal(running.get_ydata(), gaps[:2])
    np.testing.assert_array_equal(zero.get_xdata(), [2])
    assert 0 < zero.get_ydata()[0] < 1e-6 * r.rank
    assert axes.get_ylim()[0] < zero.get_ydata()[0]
    assert "exactly zero" in [t.get_text() for t in axes.get_legend().get_texts()]


def test_zero_gap_alone_is_drawn():
    r = od.solve(od.DesignProblem(np.ones((1, 1))))
    assert r.history.gaps.tolist() == [0.0]
    figure = od.plot.convergence(r)
    low, high = figure.axes[0].get_ylim()
    assert low < figure.axes[0].lines[1].get_ydata()[0] < high
    assert_legible(figure)


def test_rank_is_explained_in_the_words_of_the_columns():
    t = np.linspace(-1, 1, 9)
    x = np.column_stack([np.ones(9), t, t**2, 1 + t])
    figure = od.plot.overview(od.solve(od.DesignProblem(x, names=["one", "c", "square", "cc"])))
    shown = [t.get_text() for t, _ in texts(figure)]
    assert "Rank 3 of 4: cc is a combination of one, c." in shown
    assert any("rank 3 of 4, gap" in text for text in shown)
    assert_legible(figure)


def test_rank_notes_name_the_block():
    x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [2.0, 4.0]])
    blocks = ["film", "film", "resin", "resin"]
    r = od.solve(od.DesignProblem(x, parameter_blocks=blocks, names=["a", "b"]))
    figure = od.plot.overview(r, words=("plant", "product"))
    assert "Rank 3 of 4 in product resin: b is a combination of a." in [
        t.get_text() for t, _ in texts(figure)
    ]


def test_close_ranks_are_told():
    x = np.array([[1.0, 1.0], [2.0, 2 * (1 + 3e-10)], [3.0, 3 * (1 - 3e-10)]])
    p = od.DesignProblem(x)
    assert p.rank_note
    figure = od.plot.overview(od.solve(p))
    assert p.rank_note in " ".join(t.get_text().replace("\n", " ") for t, _ in texts(figure))
    assert_legible(figure)


@pytest.mark.slow
def test_long_labels_and_many_groups_are_legible():
    x = np.random.default_rng(0).normal(size=(300, 3))
    names = [f"hospital number {i} of the region in the north" for i in range(30)]
    r = od.solve(od.DesignProblem(x, np.arange(300) % 30, group_names=names))
    figure = od.plot.overview(r)
    assert_legible(figure)
    for axes in panels(figure):
        assert labels(axes.xaxis) == [f"…{i}…" for i in range(0, 30, 2)]
    long = [f"{word} and a long name of a group" for word in ("one", "two", "six")]
    r = od.solve(od.DesignProblem(x, np.arange(300) % 3, group_names=long))
    assert_legible(od.plot.overview(r))


def test_large_problems_are_thinned_out(monkeypatch):
    monkeypatch.setattr(style, "MOST", style.MOST._replace(cells=5, points=20))
    r = od.solve(od.DesignProblem.disjoint(authors_features(20, 8, 2)))
    totals, variances = panels(od.plot.overview(r))
    shown = np.nan_to_num(np.ma.filled(totals.images[0].get_array(), 0.0))
    assert shown.shape == (5, 5)
    assert shown.sum() == pytest.approx(20)
    assert len(variances.collections[1].get_offsets()) <= 20
    assert len(variances.collections[0].get_offsets()) == len(r.support)
    assert len(totals.texts) == 0


def test_efficiency_is_never_rounded_up():
    assert floor_percent(0.99999999) == "99.9999989 %"
    assert floor_percent(1.0) == "100.0000000 %"


def test_drawn_on_given_axes(grid):
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    assert od.plot.weights(grid, ax=ax) is figure
    assert len(ax.patches) == len(grid.support)
    draw(figure)


def test_missing_matplotlib_names_the_extra(grid, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"from a clone: python -m pip install .\.\[plot\]"):
        od.plot.overview(grid, path=tmp_path / "a.png")


def test_the_gap_asked_for_is_the_tolerance_times_the_rank(strata):
    axes = od.plot.convergence(strata, tol=1e-4).axes[0]
    goal = next(line for line in axes.lines if line.get_label().startswith("asked for"))
    assert list(goal.get_ydata()) == [1e-4 * strata.rank] * 2
    assert goal.get_label() == f"asked for: {1e-4 * strata.rank:.1e}"
