"""Pictures of evaluations show the figures of the evaluation, and every label can be read."""

import numpy as np
import pandas as pd
import pytest
from drawn import assert_legible

import optdesign as od

NAMES = [f"setting {j} of the third line of the plant" for j in range(9)]
LONG = "~ " + " + ".join(f"`{name}`" for name in NAMES)


@pytest.fixture(scope="module")
def factors():
    levels = {
        "temp": [20, 40, 60],
        "pressure": [1.0, 2.0],
        "catalyst": ["gold", "nickel", "a very long name"],
    }
    c = od.candidates(levels, "~ (temp + pressure + catalyst)**2 + I(temp**2)")
    return [od.evaluate(od.exact(od.DesignProblem(c, budgets=n), tries=1), effect=2) for n in (14, 20)]


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    return od.evaluate({name: rng.choice([-1, 1], 30) for name in NAMES}, LONG, effect=2)


def test_correlations(factors, many):
    for e in (*factors, many):
        figure = od.plot.correlations(e)
        np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), np.abs(e.correlation))
        assert_legible(figure)
    table = {"a": [1, -1, 1, -1], "b": [1, -1, 1, -1]}
    lost = od.plot.correlations(od.evaluate(table, "~ a + b"))
    assert "2 of 3 coefficients are not estimable" in lost.axes[0].get_title(loc="left")


def test_design_space(factors):
    figure = od.plot.design_space(
        *factors, labels=["A label that is much longer than there is room for", "B"]
    )
    for line, e in zip(figure.axes[0].lines, factors, strict=True):
        np.testing.assert_array_equal(line.get_ydata()[1:], np.sort(e.variances))
        assert line.get_xdata()[-1] == 1
    assert_legible(figure)
    same = od.plot.design_space(factors[0], factors[0])
    assert [t.get_text() for t in same.legends[0].get_texts()] == ["design 1, 14 runs", "design 2, 14 runs"]
    with pytest.raises(od.InputError, match="labels must have 1 names"):
        od.plot.design_space(factors[0], labels=["a", "b"])


def test_design_space_ends_before_points_without_a_prediction():
    e = od.evaluate({"a": [1, -1, 1, -1], "b": [1, -1, 1, -1]}, "~ a + b")
    (line,) = od.plot.design_space(e).axes[0].lines
    assert line.get_xdata()[-1] == 0.5


def test_profiles(factors, many, tmp_path):
    e = factors[0]
    figure = od.plot.profiles(e, path=tmp_path / "profiles.png")
    assert (tmp_path / "profiles.png").stat().st_size > 0
    line = figure.axes[0].lines[0]
    at = {"temp": line.get_xdata(), "pressure": np.full(81, 1.5), "catalyst": ["gold"] * 81}
    np.testing.assert_allclose(line.get_ydata(), e.predict(at))
    at = {"temp": [40.0] * 3, "pressure": [1.5] * 3, "catalyst": ["gold", "nickel", "a very long name"]}
    np.testing.assert_allclose(figure.axes[2].lines[0].get_ydata(), e.predict(at))
    assert_legible(figure)
    assert_legible(od.plot.profiles(many))


def test_profiles_of_mixtures_stay_in_the_simplex():
    e = od.evaluate(od.simplex_lattice(["a", "b", "c"], 3), "~ 0 + a + b + c + a:b")
    line = od.plot.profiles(e).axes[0].lines[0]
    a = line.get_xdata()
    np.testing.assert_allclose(line.get_ydata(), e.predict({"a": a, "b": (1 - a) / 2, "c": (1 - a) / 2}))


def test_profiles_of_factors_that_are_numbers():
    e = od.evaluate({"day": [1, 1, 2, 2, 3, 3], "x": [-1, 1, 0, 1, -1, 0]}, "~ C(day) + x")
    figure = od.plot.profiles(e)
    assert len(figure.axes[0].lines[0].get_xdata()) == 3


def test_power(factors, many):
    e = factors[0]
    figure = od.plot.power(e, range(5, 40))
    curves = figure.axes[0].lines[2:]
    sizes = np.arange(e.rank + 1, 40)
    np.testing.assert_array_equal(curves[0].get_xdata(), sizes)
    expected = e.power_at(sizes)[1:]
    for line in curves:
        assert np.min(np.max(np.abs(expected - line.get_ydata()), axis=1)) < 5e-4
    assert_legible(figure)
    assert_legible(od.plot.power(many))
    with pytest.raises(od.InputError, match="runs must be numbers above the rank"):
        od.plot.power(e, [2, 3])


def test_other_things_are_refused():
    for draw in (od.plot.correlations, od.plot.design_space, od.plot.profiles, od.plot.power):
        with pytest.raises(TypeError, match="evaluation must be an Evaluation"):
            draw(np.eye(2))
    p = od.DesignProblem(np.eye(2), budgets=4)
    with pytest.raises(od.InputError, match="the features have no factors"):
        od.plot.profiles(od.evaluate((p, [2, 2])))


def test_profiles_of_two_mixtures_and_a_constant_component():
    first, second = (pd.DataFrame(dict(od.simplex_lattice(list(names), 2))) for names in ("ab", "uvw"))
    table = first.merge(2 * second, how="cross")
    e = od.evaluate(table, "~ 0 + (a + b)*(u + v + w) + a:b + u:v")
    panels = od.plot.profiles(e).axes
    at, variances = panels[2].lines[0].get_data()
    assert panels[2].get_xlabel() == "u"
    half, rest = np.full(len(at), 0.5), (2 - at) / 2
    np.testing.assert_allclose(variances, e.predict({"a": half, "b": half, "u": at, "v": rest, "w": rest}))
    first = 0.9 * first.assign(c=0.1 / 0.9)
    e = od.evaluate(first, "~ 0 + a + b + a:b + b:c")
    at, variances = od.plot.profiles(e).axes[0].lines[0].get_data()
    np.testing.assert_allclose(variances, e.predict({"a": at, "b": 0.9 - at, "c": np.full(len(at), 0.1)}))
