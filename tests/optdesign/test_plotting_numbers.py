"""What is drawn stands where it should: heights, places and labels, with groups of unequal budgets."""

import numpy as np
import pytest

import optdesign as od
from optdesign import plotting

NAMES = ["north", "south", "west"]


@pytest.fixture(scope="module")
def strata() -> od.DesignResult:
    x = np.random.default_rng(0).normal(size=(12, 2))
    return od.solve(od.DesignProblem(x, np.arange(12) % 3, budgets=[5.0, 1.0, 2.0]), tol=1e-4)


def panels(result: od.DesignResult) -> list:
    figure = plotting.draw(result, tol=1e-4, groups=NAMES)
    return [axes for axes in figure.axes if axes.get_title(loc="left")]


def test_points_above_a_label_are_budget_times_variance_of_its_candidates(strata: od.DesignResult) -> None:
    axes = panels(strata)[1]
    points = np.vstack([np.asarray(c.get_offsets()) for c in axes.collections])
    for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        i = NAMES.index(label.get_text())
        drawn = points[np.abs(points[:, 0] - place) < 0.5, 1]
        own = strata.problem.budgets[i] * strata.variances[strata.problem.groups == i]
        np.testing.assert_allclose(np.sort(drawn), np.sort(own), rtol=1e-12)


def test_stems_above_a_label_are_the_weights_of_its_candidates(strata: od.DesignResult) -> None:
    axes = panels(strata)[0]
    x, y = axes.lines[0].get_data()
    for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        own = strata.weights[strata.problem.groups == NAMES.index(label.get_text())]
        np.testing.assert_allclose(np.sort(y[np.abs(x - place) < 0.5]), np.sort(own[own > 0]), rtol=1e-12)


def test_the_gap_asked_for_is_the_tolerance_times_the_rank(strata: od.DesignResult) -> None:
    axes = panels(strata)[2]
    goal = next(line for line in axes.lines if line.get_label().startswith("asked for"))
    assert list(goal.get_ydata()) == [1e-4 * strata.rank] * 2
    assert goal.get_label() == "asked for: 2.0e-04"
