"""Pictures of variances show, or count, every candidate whose variance exceeds its bound."""

import numpy as np
import pytest
from drawn import assert_legible

import optdesign as od


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
