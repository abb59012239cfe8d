"""Long names, and weights of many candidates at one place: labels, titles and ticks stay legible."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from drawn import assert_legible, texts
from matplotlib.figure import Figure

import optdesign as od
from optdesign.plot.naming import names_of
from optdesign.plot.text import readable

LEVELS = {
    "reactor temperature": [20.0, 40.0, 60.0],
    "feed pressure in bar": [1.0, 2.0, 3.0],
    "residence time": [5.0, 10.0, 15.0],
    "catalyst material": ["gold on carbon", "nickel, Raney", "platinum black"],
    "plant": ["Lyon, old building", "Rotterdam harbour"],
}
TEMPERATURE, PRESSURE, TIME, CATALYST, PLANT = LEVELS


@pytest.fixture(scope="module")
def experiment():
    """Three numeric factors, a factor of three levels and two plants; linear effects."""
    columns = zip(*product(*LEVELS.values()), strict=True)
    settings = {
        name: np.array(c, dtype=float if name in (TEMPERATURE, PRESSURE, TIME) else object)
        for name, c in zip(LEVELS, columns, strict=True)
    }
    dummies = [settings[CATALYST] == level for level in LEVELS[CATALYST][1:]]
    numbers = [settings[name] for name in (TEMPERATURE, PRESSURE, TIME)]
    x = np.column_stack([np.ones(len(numbers[0])), *numbers, *dummies]).astype(float)
    return od.DesignProblem(x, settings[PLANT], budgets=[10, 6], settings=settings)


def at_the_corners(problem):
    """Return equal weights in a plant for all settings with extreme numbers: 12 share a place of a plane."""
    s = problem.settings
    corner = np.all(
        [np.isin(s[name], [min(LEVELS[name]), max(LEVELS[name])]) for name in list(LEVELS)[:3]], axis=0
    )
    weights = np.where(corner, problem.budgets[problem.groups] / 24, 0.0)
    return replace(od.solve(problem), weights=weights, certificate=od.certify(problem, weights))


@pytest.mark.slow
@pytest.mark.parametrize(
    "factors", [None, (TEMPERATURE, CATALYST), (CATALYST, TIME), CATALYST, TIME], ids=str
)
def test_long_names_are_legible_over_factors(experiment, factors):
    design = at_the_corners(experiment)
    assert design.relative_gap < 1e-9
    assert_legible(od.plot.sensitivity(design, factors))
    assert_legible(od.plot.runs(od.round(design), factors))


@pytest.mark.slow
@pytest.mark.parametrize("convergence", [False, True])
def test_long_names_are_legible_in_an_overview(experiment, convergence):
    assert_legible(od.plot.overview(at_the_corners(experiment), convergence=convergence))


def test_circles_grow_with_the_total_at_a_place(experiment):
    design = at_the_corners(experiment)
    plants = od.plot.sensitivity(design).axes[:2]
    sizes = [axes.collections[-1].get_sizes() for axes in plants]
    np.testing.assert_allclose(sizes, [[180.0] * 4, [20 + 160 * 6 / 10] * 4])


@pytest.mark.slow
def test_long_labels_of_bars_are_values_below_a_heading(experiment):
    p = experiment
    weights = np.zeros(p.n_candidates)
    rows = np.random.default_rng(0).choice(p.n_candidates, 20, replace=False)
    weights[rows] = (p.budgets / np.bincount(p.groups[rows]))[p.groups[rows]]
    design = replace(od.solve(p), weights=weights, certificate=od.certify(p, weights))
    s, names = p.settings, list(LEVELS)[:4]
    expected = [
        f"{s[PLANT][n]}, {n + 1}: " + ", ".join(f"{s[name][n]}".removesuffix(".0") for name in names)
        for n in sorted(rows, key=lambda n: (p.groups[n], n))
    ]
    for figure in (od.plot.weights(design), od.plot.overview(design)):
        axes = figure.axes[0]
        assert " ".join(axes.get_ylabel().split()) == "plant, row: " + ", ".join(names)
        assert [t.get_text() for t in axes.get_yticklabels()] == expected
        assert_legible(figure)


def test_labels_are_cut_between_words():
    label = "plant Lyon, product film, row 4: temperature -1, pressure 1"
    for most in range(12, len(label)):
        shown = readable(label, most)
        assert len(shown) <= most
        assert set(re.findall(r"[-\w]+", shown)) <= set(re.findall(r"[-\w]+", label))
    assert readable("temperature of the bath (°C):concentration", 26) == "temperature…concentration"
    assert readable("pressure of the left vessel -0.25", 18) == "pressure of…-0.25"


def test_titles_name_the_scope_of_an_efficiency(experiment):
    design = od.solve(experiment)
    for figure in (
        od.plot.runs(od.round(design)),
        od.plot.convergence(design),
        od.plot.efficiencies(design, [12]),
    ):
        shown = [
            t.get_text() for t, _ in texts(figure) if "fficiency" in t.get_text() and "least" in t.get_text()
        ]
        assert shown
        assert all("on these candidates" in " ".join(text.split()) for text in shown)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_settings_are_labels_as_given(kind):
    dose = np.array([100000.3, 100000.4], dtype=kind)
    p = od.DesignProblem(np.eye(2), settings={"dose": dose})
    assert [names_of(p).candidate(n) for n in (0, 1)] == ["row 1: dose 100000.3", "row 2: dose 100000.4"]


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_that_coincide_in_double_precision_are_levels(kind):
    stamps = np.array([2**53, 2**53 + 1], dtype=kind)
    p = od.DesignProblem(np.eye(2), settings={"stamp": stamps}, budgets=7)
    axes = od.plot.runs(od.Runs.given(p, [3, 4])).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == [str(2**53), str(2**53 + 1)]
    assert sorted(y for line in axes.lines for y in line.get_ydata()) == [3, 4]


def test_long_labels_of_groups_differ():
    groups = [f"{'a' * 40}{k}{'b' * 40}" for k in range(2)]
    p = od.DesignProblem(np.eye(2), groups, settings={"level": groups, "x": [0, 1]}, budgets=7)
    runs = od.Runs.given(p, [7, 7])
    result = od.solve(p)
    shown = od.plot.runs(runs, "level", ax=Figure().subplots()).axes[0]
    for labels in (
        [text.get_text() for text in shown.get_xticklabels()],
        [text.get_text() for text in od.plot.weights(result).axes[0].get_yticklabels()],
        [axes.get_title(loc="left") for axes in od.plot.runs(runs, "x").axes],
        [axes.get_title(loc="left") for axes in od.plot.sensitivity(result, "x").axes[:2]],
    ):
        assert len(set(labels)) == 2


def test_numbers_of_runs_are_whole():
    p = od.DesignProblem(np.eye(2), budgets=2469)
    figure = od.plot.runs(od.Runs.given(p, [1234, 1235]))
    assert {"1234", "1235"} <= {found.get_text() for found in figure.axes[0].texts}
