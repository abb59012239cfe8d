"""D- and G-optimal designs and smallest ellipsoids: known optima, containment, units and offsets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from problems import EPS, assert_certified, plain, polynomial

import optdesign as od

TOL = 1e-9
INSIDE = 1e-9
"""No multiple of an ellipsoid smaller by more than this contains the points."""


def cube(d: int) -> np.ndarray:
    return np.array(list(itertools.product([-1.0, 1.0], repeat=d)))


def simplex(d: int) -> np.ndarray:
    """d + 1 unit vectors of equal angles."""
    q = np.linalg.svd(np.eye(d + 1) - 1 / (d + 1))[0][:, :d]
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def cloud(d: int, n: int = 200, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)


def ball_volume(d: int) -> float:
    return math.pi ** (d / 2) / math.gamma(d / 2 + 1)


# ------------------------------------------------------------------------------------------------ designs


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_designs_of_polynomial_regression(degree: int) -> None:
    known = polynomial(degree)
    r = od.d_optimal(known.problem.candidates, tol=TOL)
    assert_certified(r, TOL)
    optimum = plain(known.problem, known.weights)
    assert abs(r.log_det - optimum.log_det) <= r.gap + 2 * optimum.error


def test_both_criteria_have_the_same_design() -> None:
    x = cloud(3)
    d, g = od.d_optimal(x, tol=TOL), od.g_optimal(x, tol=TOL)
    np.testing.assert_array_equal(d.weights, g.weights)
    assert_certified(g, TOL)
    assert g.weights.sum() == pytest.approx(1.0, rel=len(x) * EPS)
    # Kiefer and Wolfowitz: the largest variance is at least d, whatever the design.
    assert 3 - 1e-12 <= g.g_value <= 3 * (1 + TOL)
    assert g.g_value == pytest.approx(plain(g.problem, g.weights).variances.max(), rel=1e-10)
    for seed in range(20):
        w = np.random.default_rng(seed).dirichlet(np.ones(len(x)))
        assert od.certify(g.problem, w).g_value >= g.g_value - g.gap
        assert od.certify(g.problem, w).log_det <= d.log_det + d.gap


@pytest.mark.parametrize("function", [od.d_optimal, od.g_optimal, od.min_volume_ellipsoid])
def test_options_reach_the_solver(function) -> None:
    r = function(cloud(3), tol=1e-14, method="bca", max_iter=2)
    result = getattr(r, "result", r)
    assert result.method == "bca"
    assert result.iterations == 2
    with pytest.raises(ValueError, match="tol must be positive"):
        function(cloud(3), tol=0.0)


# ------------------------------------------------------------------------------- ellipsoids, known optima


def centres(points: np.ndarray, centred: bool) -> np.ndarray:
    """A shift that the answer has to follow, unless the centre is given."""
    return np.zeros(points.shape[1]) if centred else np.arange(1.0, points.shape[1] + 1)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", ["cube", "cross", "simplex", "sphere"])
def test_points_of_a_ball(shape: str, d: int, centred: bool) -> None:
    """All have the ball through their points as the smallest ellipsoid, and a linear map takes it along."""
    points, radius = {
        "cube": (cube(d), math.sqrt(d)),
        "cross": (np.concatenate([np.eye(d), -np.eye(d)]), 1.0),
        "simplex": (simplex(d), 1.0),
        # On the sphere, with a cross among them so that the ball is the optimum.
        "sphere": (np.concatenate([np.eye(d), -np.eye(d), _directions(d)]), 1.0),
    }[shape]
    m = np.random.default_rng(d).normal(size=(d, d)) + 3 * np.eye(d)
    shift = centres(points, centred)
    e = od.min_volume_ellipsoid(points @ m.T + shift, centred=centred, tol=TOL)
    inverse = np.linalg.inv(m)
    # Eigenvalues of the shape relative to the optimum are within exp(+-sqrt(2 gap)) of 1, up to the level.
    close = 3 * math.sqrt(2 * TOL * (d + 1))
    relative = radius**2 * m.T @ e.shape @ m
    np.testing.assert_allclose(relative, np.eye(d), atol=close)
    assert np.linalg.norm(inverse @ (e.centre - shift)) <= close * radius
    best = math.log(ball_volume(d)) + d * math.log(radius) + np.linalg.slogdet(m)[1]
    rounding = 1e-12
    assert -rounding <= e.log_volume - best <= math.log(e.volume_ratio) + rounding
    assert e.volume == pytest.approx(math.exp(e.log_volume), rel=1e-12)
    # A gap of tol * rank in G is (level / d)^(d/2) <= exp(tol * rank / 2).
    assert 1 - rounding <= e.volume_ratio <= math.exp(TOL * (d + 1) / 2) + rounding
    np.testing.assert_allclose(e.levels(points[:1] @ m.T + shift), 1, atol=close)


def _directions(d: int) -> np.ndarray:
    x = np.random.default_rng(d).normal(size=(50, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_two_points_of_a_line() -> None:
    e = od.min_volume_ellipsoid([[3.0], [7.0], [4.0]], tol=TOL)
    assert e.centre.tolist() == pytest.approx([5.0], abs=1e-6)
    assert e.volume == pytest.approx(4.0, rel=1e-6)
    e = od.min_volume_ellipsoid([[3.0], [-7.0], [4.0]], centred=True, tol=TOL)
    assert e.centre.tolist() == [0.0]
    assert e.volume == pytest.approx(14.0, rel=1e-6)


# ---------------------------------------------------------------------- containment, and the certificate


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("d", [1, 2, 4, 8])
def test_all_points_are_inside_at_any_tolerance(d: int, tol: float, centred: bool) -> None:
    """And the certified ratio is at least the true one, which a run of nine digits knows."""
    points = cloud(d)
    e = od.min_volume_ellipsoid(points, centred=centred, tol=tol)
    best = od.min_volume_ellipsoid(points, centred=centred, tol=TOL)
    levels = e.levels(points)
    assert levels.max() <= 1
    assert levels.max() >= 1 - INSIDE  # no smaller multiple of it would do
    true = math.exp(e.log_volume - best.log_volume)
    assert true <= e.volume_ratio * (1 + 1e-12)
    assert true >= 1 / best.volume_ratio * (1 - 1e-12)
    assert e.volume_ratio <= math.exp(tol * e.result.rank / 2) * (1 + 1e-12)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_run_that_was_stopped_is_certified_too(limit: int) -> None:
    points = cloud(4)
    e = od.min_volume_ellipsoid(points, method="bca", max_iter=limit, tol=1e-15)
    best = od.min_volume_ellipsoid(points, tol=TOL)
    assert e.levels(points).max() <= 1
    assert 1 / best.volume_ratio <= math.exp(e.log_volume - best.log_volume) <= e.volume_ratio


def test_points_touched_are_the_support() -> None:
    points = cloud(3)
    e = od.min_volume_ellipsoid(points, tol=1e-12)
    heavy = e.result.weights > 1e-3
    np.testing.assert_allclose(e.levels(points)[heavy], 1, atol=1e-6)


# ------------------------------------------------------------------------------------- offsets and units


@pytest.mark.parametrize("offset", [1e6, -1e6, 1e8])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_far_from_the_origin(offset: float, d: int) -> None:
    """What the offset costs is the rounding of the points: eps * offset, relative to their size."""
    near = cloud(d)
    far = near + offset
    moved = far - offset  # exact: what is left of the points
    e, expected = od.min_volume_ellipsoid(far, tol=TOL), od.min_volume_ellipsoid(moved, tol=TOL)
    lost = 10 * EPS * abs(offset) / np.ptp(moved, axis=0).min()
    assert e.result.converged
    assert e.log_volume == pytest.approx(expected.log_volume, abs=1e-8 + d * lost)
    # The centre is a number near the offset, so it is rounded as the points are.
    root = np.linalg.cholesky(expected.shape).T
    assert np.linalg.norm(root @ (e.centre - offset - expected.centre)) <= 1e-3 + lost * d
    assert e.levels(far).max() <= 1


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("scale", [1e-16, 1e-8, 1e8, 1e16])
def test_units_do_not_matter(scale: float, centred: bool) -> None:
    points = cloud(3)
    e = od.min_volume_ellipsoid(points * scale, centred=centred, tol=TOL)
    one = od.min_volume_ellipsoid(points, centred=centred, tol=TOL)
    assert e.levels(points * scale).max() <= 1
    assert e.log_volume - 3 * math.log(scale) == pytest.approx(one.log_volume, abs=1e-8)
    assert e.volume == pytest.approx(math.exp(e.log_volume), rel=1e-12)


@pytest.mark.parametrize("centred", [False, True])
def test_units_of_each_coordinate_do_not_matter(centred: bool) -> None:
    points, units = cloud(3), np.array([1e-16, 1.0, 1e16])
    e = od.min_volume_ellipsoid(points * units, centred=centred, tol=TOL)
    one = od.min_volume_ellipsoid(points, centred=centred, tol=TOL)
    assert e.levels(points * units).max() <= 1
    np.testing.assert_allclose(e.shape * np.outer(units, units), one.shape, rtol=0, atol=1e-4)


def test_volumes_beyond_floating_point() -> None:
    points = cube(8) * 1e50
    e = od.min_volume_ellipsoid(points, tol=TOL)
    assert e.volume == np.inf
    expected = math.log(ball_volume(8)) + 4 * math.log(8) + 8 * 50 * math.log(10)
    assert e.log_volume == pytest.approx(expected, rel=1e-9)
    assert od.min_volume_ellipsoid(cube(8) * 1e-50, tol=TOL).volume == 0.0


# ------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
def test_points_of_a_hyperplane_are_refused(offset: float) -> None:
    rng = np.random.default_rng(0)
    flat = rng.integers(-8, 9, size=(30, 2)) @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 2.0]]) + offset
    with pytest.raises(
        ValueError, match="points must span all 3 dimensions; to rounding they lie in a hyperplane, where"
    ):
        od.min_volume_ellipsoid(flat)
    if offset == 0:
        with pytest.raises(ValueError, match="they lie in a hyperplane through the origin"):
            od.min_volume_ellipsoid(flat, centred=True)


def test_a_hyperplane_off_the_origin_is_fine_about_the_origin() -> None:
    points = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.5]])
    e = od.min_volume_ellipsoid(points, centred=True, tol=TOL)
    assert e.levels(points).max() <= 1
    np.testing.assert_allclose(e.shape, np.eye(2) / 2, atol=1e-4)
    with pytest.raises(ValueError, match="hyperplane"):
        od.min_volume_ellipsoid(points)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], r"points must have shape \(N, d\), neither of them 0; got \(2,\). One point a row"),
        (np.zeros((0, 2)), r"got \(0, 2\)"),
        (np.zeros((2, 0)), r"got \(2, 0\)"),
        ([[1.0, 2.0], [np.nan, 1.0]], r"points must be finite; points\[1\] = \[nan, 1.0\]. Drop the row"),
        ([[np.inf, 2.0], [0.0, 1.0]], r"points must be finite; points\[0\]"),
        ([[1.0, 2.0]], "they lie in a hyperplane"),
        ([["a", "b"]], "points"),
    ],
)
def test_bad_points_are_named(points, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.min_volume_ellipsoid(points)


# ------------------------------------------------------------------------------------------ thin point sets


@pytest.mark.parametrize("thin", [1e-3, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("centred", [False, True])
def test_thin_point_sets(thin: float, offset: float, centred: bool) -> None:
    """All inside in rational arithmetic on the numbers as stored, and the ratio covers what that took."""
    z = np.random.default_rng(0).normal(size=(60, 2))
    points = np.column_stack([z[:, 0] + thin * z[:, 1], 0.7 * z[:, 0] - thin * z[:, 1]]) + offset
    e = od.min_volume_ellipsoid(points, centred=centred, tol=1e-9)
    assert np.all(np.linalg.eigvalsh(e.shape) > -EPS * np.linalg.norm(e.shape))
    factor = [[Fraction(v) for v in row] for row in e.factor.tolist()]
    centre = [Fraction(v) for v in e.centre.tolist()]
    v = [
        [sum(a * (Fraction(x) - c) for a, x, c in zip(row, point, centre, strict=True)) for row in factor]
        for point in points.tolist()
    ]
    assert max(a * a + b * b for a, b in v) <= 1
    # The dual bound of the module's docstring, exactly: ratio^2 >= 1 / (d^d det(B S B')).
    total = sum(map(Fraction, e.result.weights.tolist()))
    u = [Fraction(w) / total for w in e.result.weights.tolist()]
    mean = [0 if centred else sum(w * y[k] for w, y in zip(u, v, strict=True)) for k in range(2)]
    s = [
        [sum(w * y[i] * y[j] for w, y in zip(u, v, strict=True)) - mean[i] * mean[j] for j in range(2)]
        for i in range(2)
    ]
    assert Fraction(e.volume_ratio) ** 2 * 4 * (s[0][0] * s[1][1] - s[0][1] * s[1][0]) >= 1
    # Loose by what storing the centre and the factor costs, no more.
    lost = 64 * EPS * (1 + offset) / thin
    assert e.volume_ratio <= 1 + 1e-8 + lost


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_volume_of_thin_sets_is_that_of_the_stored_factor(d: int, centred: bool) -> None:
    """Compare the volume with the determinant of the factor in rational arithmetic."""
    for seed in range(8):
        rng = np.random.default_rng([d, centred, seed])
        thin = 10.0 ** -rng.uniform(0, 11, size=d)
        units = 10.0 ** rng.uniform(-40, 40, size=d) if seed % 2 else np.ones(d)
        points = (rng.normal(size=(20, d)) * thin) @ rng.normal(size=(d, d)) * units
        e = od.min_volume_ellipsoid(points, centred=centred)
        numbers = [fmpq(*v.as_integer_ratio()) for v in e.factor.ravel().tolist()]
        det = abs(fmpq_mat(d, d, numbers).det())
        log_det = math.log(int(det.p)) - math.log(int(det.q))
        expected = math.log(ball_volume(d)) - log_det
        rounding = 8 * EPS * (d + math.log(int(det.p)) + math.log(int(det.q)))
        assert abs(e.log_volume - expected) <= rounding
        assert e.volume == pytest.approx(math.exp(expected), rel=2 * rounding)


@pytest.mark.parametrize("size", [1e-305, 5e-324, 1e307, 1.7e308])
@pytest.mark.parametrize("centred", [False, True])
def test_points_out_of_range_are_refused(size: float, centred: bool) -> None:
    points = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.5, 0.2]]) * size
    with pytest.raises(ValueError, match="points must have coordinates between 1e-250 and 1e\\+250 in size"):
        od.min_volume_ellipsoid(points, centred=centred)
