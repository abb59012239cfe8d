"""Pictures of variances show, or count, every candidate whose variance exceeds its bound."""

import numpy as np
import pytest
from drawn import assert_legible

import optdesign as od
from optdesign.plot import style


def zero_bound(n_groups, **settings):
    """Return a design with the bound 0 in the first group, where one candidate has a positive variance."""
    x = [[0.0], [1.0]] + [[1.0]] * (n_groups - 1)
    p = od.DesignProblem(x, [0, *range(n_groups)], settings=settings)
    return od.DesignResult.given(p, [1, 0] + [1] * (n_groups - 1))


@pytest.mark.parametrize("factors", ["x", ["x", "y"]])
def test_variances_above_a_bound_of_zero_are_counted(factors):
    r = zero_bound(7, x=[0, 1] + [1] * 6, y=[0, 1] + [0] * 6)
    assert r.gap == pytest.approx(1 / 6)
    figure = od.plot.sensitivity(r, factors)
    label = figure.axes[-1].get_ylabel().replace("\n", " ")
    assert label.startswith("variance / bound not drawn: 1 variance above a bound of 0")
    assert_legible(figure)
    assert_legible(od.plot.overview(r))


def test_bounds_of_zero_in_a_panel_of_their_own_are_drawn():
    figure = od.plot.sensitivity(zero_bound(2, x=[0, 1, 1]))
    curve, bound = figure.axes[0].lines
    assert curve.get_ydata().tolist() == [0, 1]
    assert bound.get_ydata()[0] == 0
    assert "not drawn" not in figure.axes[0].get_ylabel()


def test_of_many_candidates_those_above_the_bound_are_drawn(monkeypatch):
    monkeypatch.setattr(style, "MOST", style.MOST._replace(points=20))
    x = np.ones((101, 1))
    x[[50, 77, 100], 0] = 10, 5, 7
    r = od.DesignResult.given(od.DesignProblem(x), np.eye(101)[0])
    _, idle = od.plot.sensitivity(r).axes[0].collections
    assert len(idle.get_offsets()) == 20
    drawn = {tuple(point) for point in idle.get_offsets()}
    assert {(51.0, 100.0), (78.0, 25.0), (101.0, 49.0)} <= drawn


def test_the_largest_fraction_of_neighbouring_groups_is_drawn(monkeypatch):
    """The bounds are 2 and 1: a value of 1.44 in the second group is larger than one of 1.62 in the first."""
    monkeypatch.setattr(style, "MOST", style.MOST._replace(points=1))
    x = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.9, 0, 0], [0, 0, 1.2]]
    r = od.DesignResult.given(od.DesignProblem(x, [0, 0, 1, 0, 1]), [0.5, 0.5, 1, 0, 0])
    _, idle = od.plot.sensitivity(r).axes[0].collections
    np.testing.assert_allclose(idle.get_offsets()[:, 1], [1.44])


@pytest.mark.parametrize("empty", [0, 1])
@pytest.mark.parametrize(
    "settings",
    [
        {"x": [0, 1, 0, 1]},
        {"x": [0, 1, 0, 1], "y": [2, 3, 3, 2]},
        {"level": ["a", "b", "a", "b"], "y": [2, 3, 3, 2]},
        {"a": [0, 0.5, 0, 0.25], "b": [1, 0.5, 0, 0.25], "c": [0, 0, 1, 0.5]},
    ],
    ids=["curve", "map", "levels", "triangle"],
)
def test_a_panel_without_finite_variances_is_empty(settings, empty):
    p = od.DesignProblem([[1.0], [2.0], [1.0], [2.0]], parameter_blocks=[0, 0, 1, 1], settings=settings)
    w = np.zeros(4)
    w[3 - 2 * empty] = 1
    r = od.DesignResult.given(p, w)
    assert np.isinf(r.variances[p.parameter_blocks == empty]).all()
    figure = od.plot.sensitivity(r)
    panels = figure.axes[:2]
    assert "rank lost: 2 infinite variances not drawn" in figure.get_suptitle()
    drawn = [
        axes.lines[0].get_ydata() if len(settings) == 1 else axes.collections[0].get_array()
        for axes in panels
    ]
    assert np.ma.count(drawn[empty]) == 0
    np.testing.assert_allclose(np.sort(np.ma.compressed(drawn[1 - empty])), [0.25, 1])
    assert_legible(figure)


@pytest.mark.parametrize("settings", [None, {"x": [0, 1]}, {"x": [0, 1], "y": [1, 0]}])
def test_all_bounds_may_be_zero(settings):
    r = od.DesignResult.given(od.DesignProblem([[0.0], [1.0]], settings=settings), [1, 0])
    figure = od.plot.sensitivity(r)
    assert_legible(figure)


def test_variances_over_a_factor_of_many_levels_are_marked() -> None:
    """A line between levels of a category would mean nothing, so every level has a mark."""
    x = np.ones((61, 1))
    x[60] = 10.0
    p = od.DesignProblem(x, settings={"cat": [f"level {k}" for k in range(61)]})
    figure = od.plot.sensitivity(od.DesignResult.given(p, np.arange(61) == 0))
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "variance"]
    assert line.get_marker() == "o"
    assert max(line.get_ydata()) == pytest.approx(100.0)
