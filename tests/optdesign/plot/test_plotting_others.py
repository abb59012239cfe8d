"""Efficiencies against the number of runs, and ellipsoids."""

import re
from pathlib import Path

import numpy as np
import pytest
from drawn import assert_legible
from matplotlib.figure import Figure
from signals import interrupt_after

import optdesign as od

ROOT = Path(__file__).parents[3]
LINE = np.column_stack([np.ones(5), np.linspace(-1, 1, 5)])


def test_efficiencies_are_those_of_exact_and_round():
    p = od.DesignProblem(np.column_stack([LINE, LINE[:, 1] ** 2]), [0, 0, 0, 1, 1], budgets=[2, 1])
    figure = od.plot.efficiencies(p, [9, 4, 6], tries=2)
    (axes,) = figure.axes
    best, followed = axes.lines[1:]
    for line, search in (
        (best, lambda q: od.exact(q, tries=2)),
        (followed, lambda q: od.round(od.solve(q))),
    ):
        np.testing.assert_array_equal(line.get_xdata(), [4, 6, 9])
        expected = [
            search(od.DesignProblem(p.candidates, p.groups, budgets=b)).efficiency
            for b in ([3, 1], [4, 2], [6, 3])
        ]
        np.testing.assert_allclose(line.get_ydata(), expected)
    low, high = axes.get_ylim()
    assert low < min(expected)
    assert high > 1
    assert_legible(figure)


@pytest.mark.parametrize(("sizes", "error"), [([], ValueError), ([1], ValueError), ([2.5], TypeError)])
def test_sizes_are_checked(sizes, error):
    with pytest.raises(error, match="sizes must be"):
        od.plot.efficiencies(od.DesignProblem(np.eye(2), [0, 1]), sizes)


def test_too_few_runs_for_the_rank_are_refused():
    with pytest.raises(ValueError, match="runs"):
        od.plot.efficiencies(od.solve(od.DesignProblem(LINE)), [1])


def test_sizes_that_lose_the_rank_are_left_out_and_named():
    p = od.DesignProblem(np.column_stack([LINE, LINE[:, 1] ** 2]))
    figure = od.plot.efficiencies(p, range(1, 6), tries=1)
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), [3, 4, 5])
    assert axes.get_xlabel() == "number of runs\nleft out, too few to keep the rank: 1, 2"
    assert_legible(figure)


def test_an_interrupt_ends_the_picture():
    rng = np.random.default_rng(0)
    p = od.DesignProblem(rng.normal(size=(300, 6)))
    od.plot.efficiencies(p, [8], tries=1)  # compiled before the signal comes
    with interrupt_after(0.3), pytest.raises(KeyboardInterrupt):
        od.plot.efficiencies(p, [30], tries=10_000)


def test_pictures_of_designs_and_of_runs_are_told_apart():
    result = od.solve(od.DesignProblem(LINE, budgets=4))
    for picture in (od.plot.sensitivity, od.plot.weights, od.plot.overview, od.plot.convergence):
        with pytest.raises(TypeError, match="result must be a DesignResult; got Runs"):
            picture(od.round(result))
    with pytest.raises(TypeError, match=r"runs must be Runs; got DesignResult\. Pass round\(result\)"):
        od.plot.runs(result)


def test_ellipse_and_its_axes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + 3
    e = od.min_volume_ellipsoid(x, tol=1e-10)
    figure = od.plot.ellipsoid(e, x)
    (axes,) = figure.axes
    outline, major, minor, centre = axes.lines
    np.testing.assert_allclose(e.levels(outline.get_xydata()), 1, rtol=1e-9)
    np.testing.assert_allclose(centre.get_xydata()[0], e.centre)
    lengths = 1 / np.sqrt(np.linalg.eigvalsh(e.shape))
    for line, length in zip((major, minor), lengths, strict=True):
        ends = line.get_xydata()
        np.testing.assert_allclose(e.levels(ends), 1, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(ends[1] - ends[0]), 2 * length)
        assert line.get_label() == f"semi-axis {length:.4g}"
    others, touching = axes.collections
    np.testing.assert_array_equal(touching.get_offsets(), x[e.result.support])
    assert len(others.get_offsets()) + len(e.result.support) == 50
    assert_legible(figure)


def test_shadow_of_an_ellipsoid_touches_it():
    """The shadow is reached by points of the ellipsoid, and no point of it lies outside."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 4)) * [1, 2, 3, 4]
    e = od.min_volume_ellipsoid(x)
    figure = od.plot.ellipsoid(e, x, (3, 1))
    outline = figure.axes[0].lines[0].get_xydata()
    inverse = np.linalg.inv(e.shape)
    for angle in np.linspace(0, np.pi, 7):
        direction = np.array([np.cos(angle), np.sin(angle)])
        full = np.zeros(4)
        full[[3, 1]] = direction
        reach = full @ e.centre + np.sqrt(full @ inverse @ full)
        # 361 points of the outline miss its extreme point by an angle of half a degree at most.
        assert (outline @ direction).max() == pytest.approx(reach, rel=1e-3)
    assert figure.axes[0].get_xlabel() == "coordinate 3"
    assert_legible(figure)


@pytest.mark.parametrize(
    ("points", "coordinates", "words"),
    [
        (np.zeros((3, 2)), (0, 1), "points must be those of the ellipsoid"),
        (np.eye(2).repeat(2, axis=0) * [[1], [-1], [1], [-1]], (0, 2), "two different ones of 0 to 1"),
        (np.eye(2).repeat(2, axis=0) * [[1], [-1], [1], [-1]], (1, 1), "two different ones of 0 to 1"),
    ],
)
def test_points_and_coordinates_are_checked(points, coordinates, words):
    e = od.min_volume_ellipsoid([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    with pytest.raises(ValueError, match=words):
        od.plot.ellipsoid(e, points, coordinates)


def test_every_picture_takes_axes_and_leaves_the_style_alone():
    from matplotlib import rcParams

    before = dict(rcParams)
    p = od.DesignProblem(LINE, settings={"t": LINE[:, 1]}, budgets=4)
    r = od.solve(p)
    square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    for draw in (
        lambda ax: od.plot.weights(r, ax=ax),
        lambda ax: od.plot.sensitivity(r, ax=ax),
        lambda ax: od.plot.runs(od.round(r), ax=ax),
        lambda ax: od.plot.convergence(r, ax=ax),
        lambda ax: od.plot.efficiencies(r, [4, 5], tries=1, ax=ax),
        lambda ax: od.plot.ellipsoid(od.min_volume_ellipsoid(square), square, ax=ax),
    ):
        figure = Figure(layout="constrained")
        ax = figure.add_subplot()
        assert draw(ax) is figure
        assert figure.axes == [ax]
        assert ax.get_title(loc="left")
        assert_legible(figure)
    assert dict(rcParams) == before


@pytest.mark.slow
def test_docs_show_what_is_made(tmp_path, monkeypatch):
    """The example of the page runs, and the script that makes the page's pictures makes all of them."""
    page = (ROOT / "docs" / "pictures.md").read_text()
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)
    exec(compile(code, "pictures.md", "exec"), {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["efficiencies.pdf", "overview.png", "runs.svg"]
    script = (ROOT / "benchmarks" / "pictures.py").read_text()
    shown = set(re.findall(r"figures/plot-([a-z-]+)\.png", page))
    assert shown == set(re.findall(r'"([a-z-]+)": od\.plot', script))
    for name in shown:
        assert 5_000 < (ROOT / "docs" / "figures" / f"plot-{name}.png").stat().st_size < 100_000


@pytest.mark.slow
def test_small_axes_beside_each_other_are_legible():
    a, b = (v.ravel() for v in np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)))
    x = np.column_stack([np.ones(25), a, b, a * b, a * a, b * b])
    p = od.DesignProblem(x, settings={"temperature": 50 + 30 * a, "pressure": 3 + b}, budgets=14)
    r, points = od.solve(p), np.random.default_rng(0).normal(size=(30, 2))
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    od.plot.weights(r, ax=axes[0])
    od.plot.sensitivity(r, ax=axes[1])
    od.plot.sensitivity(r, "pressure", ax=axes[2])
    od.plot.runs(od.round(r), ax=axes[3])
    od.plot.convergence(r, tol=1e-6, ax=axes[4])
    od.plot.ellipsoid(od.min_volume_ellipsoid(points), points, ax=axes[5])
    assert_legible(figure)
