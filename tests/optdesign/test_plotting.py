import sys

import numpy as np
import pytest

import optdesign as od
from optdesign import plotting
from optdesign.examples import authors_features


def three_panels(figure):
    return [axes for axes in figure.axes if axes.get_title(loc="left")]


def titles(figure):
    return [axes.get_title(loc="left") for axes in three_panels(figure)]


@pytest.fixture(scope="module")
def grid():
    return od.solve(od.DesignProblem.disjoint(authors_features(12, 4, 2, seed=1)), method="bca")


@pytest.mark.parametrize("suffix", plotting.SUFFIXES)
def test_picture_is_written(grid, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    plotting.save(grid, path, tol=1e-6, words=("client", "arm"), title="An instance")
    assert path.stat().st_size > 5000
    assert list(tmp_path.iterdir()) == [path]


def test_panels_of_a_grid(grid):
    figure = plotting.draw(grid, tol=1e-6, words=("client", "arm"))
    first, second, third = titles(figure)
    assert first == "Total weight per client and arm"
    assert f"rank + gap = {grid.rank} + " in second
    assert "efficiency at least 99.999" in third
    weights, variances, gaps = three_panels(figure)
    shown = np.nan_to_num(np.ma.filled(weights.images[0].get_array(), 0.0))
    np.testing.assert_allclose(shown, grid.weights_matrix())
    bounds = np.sort(grid.variances.reshape(12, 4).max(axis=1))
    np.testing.assert_allclose(variances.patches[0].get_data().values, bounds)
    assert [t.get_text() for t in weights.texts] == [f"{w:.3g}" for w in grid.weights_matrix().ravel()]
    assert [t.get_text() for t in variances.get_legend().get_texts()] == [
        "bound: largest of each client",
        "candidate with weight",
        "candidate without weight",
    ]
    assert "side by side" in variances.get_xlabel()
    drawn = sum(len(points.get_offsets()) for points in variances.collections)
    assert drawn == grid.problem.n_candidates
    np.testing.assert_allclose(gaps.lines[0].get_ydata(), grid.history.gaps)
    assert gaps.get_yscale() == "log"
    assert gaps.get_xlabel() == "sweep"


def test_one_group_and_one_block():
    r = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(300, 3))))
    figure = plotting.draw(r)
    weights, variances, _ = three_panels(figure)
    assert weights.get_title(loc="left") == f"Weights: {len(r.support)} of 300 candidates have any"
    assert weights.get_xlabel() == variances.get_xlabel() == "candidate"
    np.testing.assert_allclose(weights.lines[0].get_ydata(), r.weights[r.support])


@pytest.mark.parametrize(("names", "rotation"), [("abc", 0), (["a long name of a group"] * 3, 35)])
def test_labels_are_written_out(names, rotation):
    x = np.random.default_rng(0).normal(size=(12, 2))
    r = od.solve(od.DesignProblem(x, np.repeat([0, 1, 2], 4), budgets=[1, 2, 5]))
    weights = three_panels(plotting.draw(r, groups=list(names), blocks=["all"]))[0]
    assert [t.get_text() for t in weights.get_xticklabels()] == list(names)
    assert weights.get_xticklabels()[0].get_rotation() == rotation


def test_large_problems_are_thinned_out(monkeypatch):
    monkeypatch.setattr(plotting, "MOST_CELLS", 5)
    monkeypatch.setattr(plotting, "MOST_POINTS", 20)
    r = od.solve(od.DesignProblem.disjoint(authors_features(20, 8, 2)))
    weights, variances, _ = three_panels(plotting.draw(r))
    shown = np.nan_to_num(np.ma.filled(weights.images[0].get_array(), 0.0))
    assert shown.shape == (5, 5)
    assert shown.sum() == pytest.approx(20)
    assert len(variances.collections[1].get_offsets()) < 40
    assert len(variances.collections[0].get_offsets()) == len(r.support)
    assert len(weights.texts) == 0


def test_efficiency_is_never_rounded_up():
    assert plotting._floor_percent(0.99999999) == "99.9999989 %"
    assert plotting._floor_percent(1.0) == "100.0000000 %"


def test_missing_matplotlib_names_the_extra(grid, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"optdesign\[plot\]"):
        plotting.save(grid, tmp_path / "a.png")
