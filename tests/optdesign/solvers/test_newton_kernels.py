"""The kernels of the interior point method, against plain NumPy.

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`.
"""

import numpy as np
import pytest
from cases import RTOL, Whitened, seeds
from problems import EPS

from optdesign.solvers import newton
from optdesign.solvers import newton_kernels as steps
from optdesign.solvers.systems.layout import Layout

pytestmark = pytest.mark.kernels


def free_of(c: Whitened) -> newton._FreeRows:
    fixed = np.zeros((len(c.ranks), c.z.shape[1], c.z.shape[1]))
    return newton._FreeRows(np.arange(len(c.z)), c.z, Layout(c.blocks, c.starts, c.ranks), fixed)


def test_groups_without_a_choice_are_split_off() -> None:
    """One candidate, or zero vectors only."""
    z = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1e-300], [0.0, 2.0], [3.0, 0.0]])
    rows, own, rest = np.full(7, -1), np.zeros(5, np.int64), np.ones(7)
    assert newton._split(z, np.array([0, 1, 3, 5, 7]), rows, own, rest) == (4, 2)
    assert rows[:4].tolist() == [3, 4, 5, 6]
    assert own[:3].tolist() == [0, 2, 4]
    assert rest.tolist() == [1, 1, 1, 0, 0, 0, 0]


@seeds
@pytest.mark.parametrize("theta", [1e-3, 0.5, 1.0])
def test_interior_points(seed: int, theta: float) -> None:
    """Shares mixed with equal ones; bounds above the largest variances by theta of their mean."""
    c = Whitened(seed)
    u, sizes = c.u.copy(), np.diff(c.starts)
    newton._mix_uniform(c.starts, theta, u)
    np.testing.assert_allclose(u, (1 - theta) * c.u + theta / sizes[c.groups], rtol=RTOL)
    g, s, bound = c.rng.exponential(size=len(u)), np.full(len(u), np.nan), np.full(len(sizes), np.nan)
    newton._set_slacks(c.starts, theta, g, s, bound)
    top = np.array([g[c.groups == i].max() for i in range(len(sizes))])
    np.testing.assert_allclose(bound, top + theta * top.mean(), rtol=RTOL)
    np.testing.assert_array_equal(s, bound[c.groups] - g)


@seeds
def test_negligible_shares_are_dropped(seed: int) -> None:
    c = Whitened(seed)
    u = c.u * 10.0 ** -c.rng.uniform(0, 8, size=len(c.u))
    top = np.array([u[c.groups == i].max() for i in range(len(c.sums))])
    clean = np.where(u < 1e-4 * top[c.groups], 0.0, u)
    assert newton._drop_below(c.starts, 1e-4, u) == np.count_nonzero(clean == 0) > 0
    np.testing.assert_allclose(u, clean / (c.sums @ clean)[c.groups], rtol=RTOL)
    assert newton._drop_below(c.starts, 1e-9, u) == 0  # zeros are not counted


@seeds
@pytest.mark.parametrize("with_fixed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_evaluate(seed: int, with_fixed: bool, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By loops and by BLAS."""
    monkeypatch.setattr(newton, "WIDE", 0 if wide else 100)
    c = Whitened(seed)
    a, g = np.zeros_like(c.z), np.full(len(c.z), np.nan)
    fixed = np.zeros((3, 3, 3))
    if with_fixed:
        rows = c.rng.normal(size=(3, 2, 3))
        for b, r in enumerate(c.ranks):
            fixed[b, :r, :r] = rows[b, :, :r].T @ rows[b, :, :r]
    gap = free_of(c)._replace(fixed=np.tril(fixed)).evaluate(c.u, a, g)
    expected_gap = 0.0
    for b, (m, r, rows) in enumerate(zip(c.matrices(), c.ranks, c.rows(), strict=True)):
        lower = np.linalg.cholesky((m + fixed[b])[:r, :r])
        np.testing.assert_allclose(a[rows, :r], np.linalg.solve(lower, c.z[rows, :r].T).T, atol=RTOL)
        assert not a[rows, r:].any()
    np.testing.assert_allclose(g, np.sum(a**2, axis=1), rtol=RTOL)
    for i in range(len(c.starts) - 1):
        part = slice(c.starts[i], c.starts[i + 1])
        expected_gap += g[part].max() - c.u[part] @ g[part]
    assert gap == pytest.approx(expected_gap, rel=RTOL)
    if not with_fixed:
        assert sum(c.u * g) == pytest.approx(c.ranks.sum(), rel=RTOL)


@pytest.mark.parametrize("wide", [False, True])
def test_evaluate_without_rank(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "WIDE", 0 if wide else 100)
    c = Whitened(0, blocks=1, groups=1)
    u = np.zeros(len(c.z))
    u[0] = 1.0
    c.ranks[:] = 3
    assert free_of(c).gap(u) == np.inf


@pytest.mark.parametrize(
    ("x", "dx", "expected"),
    [
        ([1.0, 2.0], [5.0, 0.0], 1.0),
        ([1.0, 2.0], [-0.5, -1.9], 1.0),
        ([1.0, 2.0], [-4.0, -4.0], 0.25),
        ([1e-20, 1.0], [-1e-10, 1.0], 1e-10),
    ],
)
def test_reach(x: list[float], dx: list[float], expected: float) -> None:
    assert steps._reach(np.array(x), np.array(dx)) == pytest.approx(expected, rel=4 * EPS)


@seeds
def test_centring(seed: int) -> None:
    """With steps as long as positivity allows, sigma = (mu after / mu before)^3."""
    rng = np.random.default_rng(seed)
    u, s, du = rng.exponential(size=(3, 9))
    du[::2] *= -3
    ds = -s - s / u * du  # the predictor aims at u s = 0
    assert du.min() < 0 < du.max()
    length = []
    for x, dx in ((u, du), (s, ds)):
        down = dx < 0
        length.append(min(1.0, (-x[down] / dx[down]).min()))
    mu, after = u @ s / 9, (u + length[0] * du) @ (s + length[1] * ds) / 9
    expected = (mu * (after / mu) ** 3 - du * ds) / u
    centre = np.full(9, np.nan)
    assert steps.centring(u, s, du, centre) == pytest.approx(after / mu, rel=RTOL)
    np.testing.assert_allclose(centre, expected, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize(
    ("left", "expected"), [(0.5, 0.9), (0.1, 0.9), (0.02, 0.98), (1e-9, 0.99), (0.0, 0.99)]
)
def test_reached(left: float, expected: float) -> None:
    """As much as the predictor leaves is left of the way, within bounds."""
    assert steps.step_fraction(left, 0.9, 0.99) == pytest.approx(expected, rel=4 * EPS)


@pytest.mark.parametrize("seed", range(10))
def test_move(seed: int) -> None:
    """A fraction of the way to the boundary, for shares and slacks each; u ds + s du = centre u - u s."""
    c = Whitened(seed)
    s, bound = c.rng.exponential(size=len(c.z)), c.rng.exponential(size=4)
    du, ds, dbound = c.rng.normal(size=len(c.z)), c.rng.normal(size=len(c.z)), c.rng.normal(size=4)
    du -= ((c.sums @ du) / (c.sums @ c.u))[c.groups] * c.u  # A du = 0
    u = c.u.copy()
    centre = s + ds + s / u * du
    primal, dual = (0.99 * steps._reach(x, dx) for x, dx in ((u, du), (s, ds)))
    new = u + primal * du
    new /= (c.sums @ new)[c.groups]
    expected_s, expected_bound = s + dual * ds, bound + dual * dbound
    steps.move(c.starts, u, s, bound, du, dbound, centre, 0.99)
    np.testing.assert_allclose(u, new, rtol=RTOL)
    np.testing.assert_allclose(s, expected_s, rtol=RTOL, atol=RTOL)
    np.testing.assert_allclose(bound, expected_bound, rtol=RTOL)
    assert np.all(u > 0)
    assert np.all(s > 0)
    np.testing.assert_allclose(c.sums @ u, 1.0, rtol=len(u) * EPS)


@seeds
def test_residual(seed: int) -> None:
    c = Whitened(seed)
    bound, g = c.rng.normal(size=4), c.rng.normal(size=len(c.z))
    np.testing.assert_array_equal(steps.residual(c.starts, bound, g), g - bound[c.groups])
