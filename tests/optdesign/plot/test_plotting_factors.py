"""Variances and runs over factors: what is drawn are the numbers, and all of it can be read."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from drawn import assert_legible, texts

import optdesign as od
from optdesign.plot import style
from optdesign.plot.naming import Role, names_of, roles
from optdesign.plot.panels import panels
from optdesign.plot.scales import HEIGHT, edges, profile, view


def quadratic(*columns):
    pairs = combinations_with_replacement(columns, 2)
    return np.column_stack([np.ones(len(columns[0])), *columns, *(a * b for a, b in pairs)])


def plane(n=7):
    a, b = (v.ravel() for v in np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n)))
    return od.DesignProblem(quadratic(a, b), settings={"temp": 50 + 30 * a, "speed": 3 + b}, budgets=14)


def mixture(degree=6, total=1.0):
    lattice = [(i, j, degree - i - j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    x = np.array(lattice) / degree
    features = np.column_stack([x, x[:, [0]] * x[:, 1:], x[:, 1] * x[:, 2]])
    settings = dict(zip(("water", "ethanol", "acetone"), total * x.T, strict=True))
    return od.DesignProblem(features, settings=settings, budgets=12)


def plants():
    """Two plants, two products, three factors, one of them of levels; other budgets."""
    rows = list(
        product([20, 40, 60], ["nickel", "gold"], [0.0, 0.5, 1.0], ["Lyon", "Turin"], ["film", "resin"])
    )
    temp, cat, speed, plant, kind = (np.array(v, dtype=object) for v in zip(*rows, strict=True))
    t = (temp.astype(float) - 40) / 20
    x = np.column_stack([np.ones(len(t)), t, t * t, cat == "gold", speed.astype(float)]).astype(float)
    settings = {
        "temp": temp.astype(int), "cat": cat, "speed": speed.astype(float), "plant": plant, "kind": kind,
    }  # fmt: skip
    return od.DesignProblem(
        x, plant, kind, budgets={"Lyon": 12, "Turin": 8}, settings=settings, names=["1", "t", "t2", "c", "s"]
    )


def shown_texts(figure):
    return [t.get_text() for t, _ in texts(figure)]


def drawn_panels(figure):
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]


def test_one_factor_is_a_curve_below_its_bound():
    t = np.linspace(-1, 1, 201)
    r = od.solve(od.DesignProblem(quadratic(t), settings={"temp": 50 + 30 * t}, budgets=4), tol=1e-10)
    figure = od.plot.sensitivity(r)
    (axes,) = figure.axes
    curve, bound = axes.lines
    np.testing.assert_array_equal(curve.get_xdata(), 50 + 30 * t)
    np.testing.assert_allclose(curve.get_ydata(), 4 * r.variances)
    np.testing.assert_allclose(bound.get_ydata(), 3, rtol=1e-12)
    (marks,) = axes.collections
    np.testing.assert_allclose(
        marks.get_offsets(), np.column_stack([50 + 30 * t, 4 * r.variances])[r.support]
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("temp", "budget × variance")
    assert_legible(figure)


def test_two_factors_are_a_map():
    r = od.solve(plane(), tol=1e-10)
    figure = od.plot.sensitivity(r)
    axes, bar = figure.axes
    mesh, marks = axes.collections
    np.testing.assert_allclose(mesh.get_array(), (14 * r.variances / 6).reshape(7, 7))
    x, y = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    for border, levels in ((x, np.linspace(20, 80, 7)), (y, np.linspace(2, 4, 7))):
        np.testing.assert_allclose(border[1:-1], (levels[1:] + levels[:-1]) / 2)
        assert (border[0], border[-1]) == (levels[0], levels[-1])  # nothing beyond the range
    settings = r.problem.settings
    expected = np.column_stack([settings["temp"], settings["speed"]])[r.support]
    drawn = marks.get_offsets()
    np.testing.assert_allclose(drawn, expected[np.lexsort(expected.T[::-1])])
    weight = {tuple(np.round(p, 9)): w for p, w in zip(expected, r.weights[r.support], strict=True)}
    sizes = marks.get_sizes()
    np.testing.assert_allclose(
        (sizes - 20) / (sizes.max() - 20),
        [weight[tuple(np.round(p, 9))] / r.weights.max() for p in drawn],
    )
    assert mesh.get_clim()[1] == pytest.approx(1, abs=1e-9)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("temp", "speed")
    assert bar.get_ylabel() == "variance / bound"
    assert_legible(figure)


@pytest.mark.parametrize("total", [1.0, 100.0])
def test_three_proportions_are_a_triangle(total):
    r = od.solve(mixture(total=total), tol=1e-10)
    figure = od.plot.sensitivity(r)
    axes = figure.axes[0]
    hexagons, marks = axes.collections
    water, ethanol, acetone = (r.problem.settings[k] / total for k in ("water", "ethanol", "acetone"))
    corners = np.array([[0, 0], [1, 0], [0.5, HEIGHT]])
    places = np.column_stack([water, ethanol, acetone]) @ corners
    centres = np.array([path.vertices[:6].mean(axis=0) for path in hexagons.get_paths()])
    nearest = np.linalg.norm(centres[:, None] - places, axis=2).argmin(axis=1)
    assert sorted(nearest) == list(range(len(places)))
    np.testing.assert_allclose(hexagons.get_array(), (12 * r.variances / 6)[nearest])
    marked = np.linalg.norm(marks.get_offsets()[:, None] - places, axis=2).argmin(axis=1)
    assert sorted(marked) == r.support.tolist()
    for name, corner in zip(("water", "ethanol", "acetone"), corners, strict=True):
        (label,) = (t for t in axes.texts if t.get_text() == f"{name} only")
        np.testing.assert_allclose(label.xy, corner)
    assert_legible(figure)


def test_a_fine_mixture_is_joined(monkeypatch):
    monkeypatch.setattr(style, "MOST", style.MOST._replace(lattice=5))
    r = od.solve(mixture(20))
    hexagons = od.plot.sensitivity(r).axes[0].collections[0]
    assert len(hexagons.get_paths()) == 21
    assert hexagons.get_array().max() == pytest.approx((12 * r.variances / 6).max())


def test_every_group_and_block_has_its_panel_and_bound():
    r = od.solve(plants(), tol=1e-10)
    p = r.problem
    figure = od.plot.sensitivity(r, "speed")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"plant {i}, kind {b}" for i in ("Lyon", "Turin") for b in ("film", "resin")
    ]
    shares = np.bincount(p.groups, r.weights * r.variances)
    assert shares.sum() == pytest.approx(r.rank)
    for axes, (i, b) in zip(figure.axes, product((0, 1), (0, 1)), strict=True):
        curve, bound = axes.lines
        assert bound.get_ydata()[0] == pytest.approx(shares[i])
        here = (p.groups == i) & (p.parameter_blocks == b)
        for x, y in zip(*curve.get_data(), strict=True):
            rows = here & (p.settings["speed"] == x)
            assert y == pytest.approx(p.budgets[i] * r.variances[rows].max())
    assert figure.axes[0].get_ylabel() == "budget × variance\nlargest over temp, cat"
    assert f"rank {r.rank} of 10" in figure.get_suptitle()
    assert_legible(figure)


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_dates_are_named_on_their_axis(unit):
    days = np.array(["2024-01-01", "2023-05-06"] * 2, dtype=f"M8[{unit}]")
    p = od.DesignProblem(np.eye(2)[[0, 0, 1, 1]], settings={"day": days, "t": [1.0, 1.0, 2.0, 2.0]})
    shown = view(names_of(p), "day").scales[0]
    assert (shown.levels, shown.at.tolist()) == (("2023-05-06", "2024-01-01"), [1, 0, 1, 0])


def test_levels_are_named_on_their_axis():
    r = od.solve(plants())
    figure = od.plot.sensitivity(r, ["temp", "cat"])
    first = figure.axes[0]
    assert [t.get_text() for t in first.get_yticklabels()] == ["gold", "nickel"]
    p = r.problem
    relative = p.budgets[p.groups] * r.variances / np.bincount(p.groups, r.weights * r.variances)[p.groups]
    for k, cat in enumerate(("gold", "nickel")):
        rows = (p.groups == 0) & (p.parameter_blocks == 0) & (p.settings["cat"] == cat)
        expected = [relative[rows & (p.settings["temp"] == t)].max() for t in (20, 40, 60)]
        np.testing.assert_allclose(first.collections[0].get_array()[k], expected)
    assert "largest over speed" in figure.axes[-1].get_ylabel()
    assert_legible(figure)


@pytest.mark.slow
@pytest.mark.parametrize("factors", ["a", ["a", "b"]])
def test_many_groups_share_a_panel(factors):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 9, size=(900, 2)) / 4.0 - 1
    p = od.DesignProblem(quadratic(*z.T), np.arange(900) % 30, settings={"a": z[:, 0], "b": z[:, 1]})
    r = od.solve(p, tol=1e-9)
    figure = od.plot.sensitivity(r, factors)
    axes = figure.axes[0]
    relative = r.variances / np.bincount(p.groups, r.weights * r.variances)[p.groups]
    if factors == "a":
        drawn = axes.lines[0].get_ydata()
        expected = [relative[z[:, 0] == x].max() for x in np.unique(z[:, 0])]
        assert axes.lines[1].get_ydata()[0] == 1
        assert "largest over b" in axes.get_ylabel()
    else:
        drawn = axes.collections[0].get_array().ravel()
        expected = [
            relative[(z == (x, y)).all(axis=1)].max() for y, x in product(np.unique(z[:, 0]), repeat=2)
        ]
    np.testing.assert_allclose(drawn, expected)
    assert any("largest over all 30 groups" in text for text in shown_texts(figure))
    assert_legible(figure)


def test_scattered_candidates_stay_scattered():
    z = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    r = od.solve(od.DesignProblem(quadratic(*z.T), settings={"a": z[:, 0], "b": z[:, 1]}))
    points = od.plot.sensitivity(r).axes[0].collections[0]
    order = np.lexsort((z[:, 1], z[:, 0]))
    np.testing.assert_array_equal(points.get_offsets(), z[order])
    np.testing.assert_allclose(points.get_array(), r.variances[order] / 6)


def test_large_problems_keep_their_maxima(monkeypatch, tmp_path):
    monkeypatch.setattr(style, "MOST", style.MOST._replace(points=100))
    z = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    r = od.solve(od.DesignProblem(quadratic(*z.T), settings={"a": z[:, 0], "b": z[:, 1]}))
    curve = od.plot.sensitivity(r, "a", path=tmp_path / "a.svg").axes[0]
    assert len(curve.collections[0].get_offsets()) <= 100
    assert curve.lines[0].get_ydata().max() == pytest.approx(r.variances.max())
    assert len(curve.lines[0].get_ydata()) <= 20_000 // 30
    assert (tmp_path / "a.svg").stat().st_size < 100_000
    found = profile(z, r.variances, 20)
    assert found.grid().shape == (20, 20)
    assert found.values.max() == r.variances.max()


def test_a_poor_design_is_seen_above_its_bound():
    r = od.solve(plane())
    w = 14 * np.eye(49)[[0, 6, 42, 48, 24, 10, 30]].mean(axis=0)
    poor = replace(r, weights=w, certificate=od.certify(r.problem, w))
    assert poor.gap > 1
    axes, _ = od.plot.sensitivity(poor).axes
    assert axes.collections[0].get_clim()[1] == pytest.approx((14 * poor.variances / 6).max())


def test_lost_rank_is_told():
    r = od.solve(plane())
    w = np.zeros(49)
    w[[0, 5]] = 7
    lost = replace(r, weights=w, certificate=od.certify(r.problem, w))
    infinite = np.count_nonzero(np.isinf(lost.variances))
    for figure in (od.plot.sensitivity(lost), od.plot.overview(lost), od.plot.sensitivity(lost, "temp")):
        assert any(f"rank lost: {infinite} infinite variances not drawn" in t for t in shown_texts(figure))


@pytest.mark.slow
def test_overview_draws_factors(tmp_path):
    for p in (plane(), mixture(), plants()):
        figure = od.plot.overview(od.solve(p), path=tmp_path / "a.png")
        assert_legible(figure)
    t = np.linspace(-1, 1, 21)
    r = od.solve(od.DesignProblem(quadratic(t), settings={"temp": 50 + 30 * t}))
    figure = od.plot.overview(r)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [
        f"row {n + 1}: temp {50 + 30 * t[n]:g}" for n in r.support
    ]
    assert_legible(figure)


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ("tmp", "did you mean 'temp'"),
        (["temp", "speed", "cat"], "one or two names, or three whose values are proportions"),
        ([], "one or two names"),
    ],
)
def test_factors_are_checked(factors, words):
    with pytest.raises(ValueError, match=words):
        od.plot.sensitivity(od.solve(plants()), factors)


def test_factors_need_settings():
    with pytest.raises(ValueError, match="candidates have none"):
        od.plot.sensitivity(od.d_optimal(np.eye(2)), "temp")


def test_missing_settings_are_named():
    p = od.DesignProblem(np.eye(3), settings={"a": [1.0, np.nan, 2.0], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="'a' lacks that of row 2"):
        od.plot.sensitivity(od.solve(p))


def test_roles_of_columns():
    p = plants()
    assert roles(p) == {
        "temp": Role.FACTOR,
        "cat": Role.FACTOR,
        "speed": Role.FACTOR,
        "plant": Role.GROUP,
        "kind": Role.BLOCK,
    }
    assert [scale.name for scale in view(names_of(p)).scales] == ["temp", "cat"]
    one = od.DesignProblem(np.eye(2), settings={"same": ["x", "x"], "a": [1, 2]})
    assert roles(one)["same"] is Role.CONSTANT
    assert [scale.name for scale in view(names_of(one)).scales] == ["a"]


def test_panels_cover_all_candidates_once():
    for most, count in ((6, 4), (3, 2), (1, 1)):
        cells = panels(names_of(plants()), most)
        assert len(cells) == count
        np.testing.assert_array_equal(np.sort(np.concatenate([cell.rows for cell in cells])), np.arange(72))


def test_edges_of_one_place():
    np.testing.assert_array_equal(edges(np.array([3.0])), [2.5, 3.5])


def runs_of(p):
    return od.round(od.solve(p, tol=1e-8))


def circles(axes):
    """Count at every place, as written and by area."""
    points = axes.collections[-1]
    places = [tuple(np.round(place, 9)) for place in points.get_offsets()]
    written = [int(t.get_text()) for t in axes.texts if t.get_text().isdecimal()]
    area = dict(zip(written, points.get_sizes(), strict=True))
    assert [area[n] for n in sorted(area)] == sorted(area.values())
    return dict(zip(places, written, strict=True))


def test_runs_in_the_plane():
    runs = runs_of(plane())
    figure = od.plot.runs(runs)
    s = runs.problem.settings
    expected = {(round(s["temp"][n], 9), round(s["speed"][n], 9)): runs.counts[n] for n in runs.support}
    assert circles(figure.axes[0]) == expected
    title = figure.axes[0].get_title(loc="left")
    assert title.startswith("14 runs\nefficiency at least 9")
    assert title.endswith(" % on these candidates")
    assert len(figure.axes[0].collections[0].get_offsets()) == 49
    assert_legible(figure)


@pytest.mark.slow
def test_runs_are_summed_over_other_factors_by_group_and_block():
    runs = runs_of(plants())
    p = runs.problem
    figure = od.plot.runs(runs, ["temp", "speed"])
    for axes, (i, b) in zip(drawn_panels(figure), product((0, 1), (0, 1)), strict=True):
        here = (p.groups == i) & (p.parameter_blocks == b)
        assert axes.get_title(loc="left").endswith(f": {runs.counts[here].sum()}")
        for (temp, speed), count in circles(axes).items():
            rows = here & (p.settings["temp"] == temp) & (p.settings["speed"] == speed)
            assert count == runs.counts[rows].sum()
        assert sum(circles(axes).values()) == runs.counts[here].sum()
    assert "summed over cat" in figure.axes[2].get_xlabel()
    assert_legible(figure)


@pytest.mark.slow
def test_runs_over_one_factor_in_a_triangle_and_without_settings():
    runs = runs_of(plants())
    figure = od.plot.runs(runs, "temp")
    drawn = sum(axes.lines[0].get_ydata().sum() for axes in drawn_panels(figure))
    assert drawn == 20
    assert_legible(figure)
    runs = runs_of(mixture())
    figure = od.plot.runs(runs)
    assert sorted(circles(figure.axes[0]).values()) == sorted(runs.counts[runs.support])
    assert_legible(figure)
    bare = od.DesignProblem(plane().candidates, budgets=14)
    runs = runs_of(bare)
    figure = od.plot.runs(runs)
    (axes,) = figure.axes
    assert [t.get_text() for t in axes.get_yticklabels()] == [f"row {n + 1}" for n in runs.support]
    assert [bar.get_width() for bar in axes.patches] == runs.counts[runs.support].tolist()
    assert_legible(figure)


def test_crowded_runs_have_no_numbers():
    z = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    p = od.DesignProblem(quadratic(*z.T), settings={"a": z[:, 0], "b": z[:, 1]}, budgets=60)
    runs = od.round(od.solve(p, tol=1e-8), "ceiling")  # all candidates that have weight, two of them close
    figure = od.plot.runs(runs)
    points = figure.axes[0].collections[-1]
    drawn = {tuple(np.round(place, 9)) for place in points.get_offsets()}
    assert drawn == {tuple(np.round(z[n], 9)) for n in runs.support}
    assert not figure.axes[0].texts
    assert "runs (area: how many)" in shown_texts(figure)
    assert_legible(figure)


def test_words_name_groups_and_blocks():
    r = od.solve(plants())
    figures = [
        od.plot.sensitivity(r, "temp", words=("site", "product")),
        od.plot.runs(od.round(r), words=("site", "product")),
    ]
    for figure in figures:
        assert drawn_panels(figure)[0].get_title(loc="left").startswith("site Lyon, product film")
    assert od.plot.weights(r, words=("site", "product")).axes[0].get_ylabel() == "site"


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e12])
def test_runs_at_levels_in_any_unit_stay_apart(unit):
    c = od.candidates({"x": [0, unit, 2 * unit], "y": [0, 1]}, "~ x + y + I(x**2)")
    runs = od.exact(od.DesignProblem(c, budgets=12), seed=0)
    figure = od.plot.runs(runs)
    assert [text.get_text() for text in figure.axes[0].texts] == ["2"] * 6
