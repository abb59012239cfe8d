"""The kernels of block coordinate ascent, against plain NumPy or an independent numerical optimum.

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`.
"""

import numpy as np
import pytest
from cases import RTOL, Case, seeds
from problems import EPS, KINDS, random_problem, weights_of
from scipy.optimize import brentq, minimize_scalar

import optdesign as od
from optdesign.algebra import blocks as algebra
from optdesign.algebra import reduced
from optdesign.solvers import bca
from optdesign.solvers import group_step as visits

pytestmark = pytest.mark.kernels


@seeds
def test_separable(seed: int) -> None:
    c = Case(seed, blocks=9, groups=20, n=60)
    c.blocks[:3] = [0, 1, 0]
    c.blocks[3:6] = [0, 1, 2]
    got = bca._separable(c.blocks, c.starts, 9)
    for i, (lo, hi) in enumerate(zip(c.starts, c.starts[1:], strict=False)):
        assert got[i] == (len(set(c.blocks[lo:hi])) == hi - lo)
    assert not got[0]
    assert got[1]


@seeds
def test_multiply_variance_and_add_outer(seed: int) -> None:
    c = Case(seed)
    v, b = c.inverses(), 0
    r = int(c.ranks[b])
    n = int(c.rows()[b][0])
    out = np.full(r, np.nan)
    square = algebra.multiply(v[b], c.z[n], out)
    np.testing.assert_allclose(out, (v[b] @ c.z[n])[:r], atol=RTOL)
    assert square == pytest.approx(c.z[n] @ v[b] @ c.z[n], rel=RTOL)
    assert visits._variance(v, b, c.z, n, r) == pytest.approx(square, rel=RTOL)
    expected = v.copy()
    expected[b, :r, :r] += 0.3 * np.outer(out, out)
    algebra.add_outer(v[b], out, 0.3)
    np.testing.assert_allclose(v, expected, rtol=RTOL, atol=RTOL)


@seeds
def test_write_variances(seed: int) -> None:
    """To the last digit those of one candidate after the other, whether or not four lie in one block."""
    c = Case(seed)
    v, g = c.inverses(), np.full(len(c.z), -7.0)
    for blocks in (c.blocks, np.sort(c.blocks)):
        visits._write_variances(c.z, blocks, c.ranks, 1, len(c.z), v, g)
        one = [visits._variance(v, b, c.z, n, c.ranks[b]) for n, b in enumerate(blocks)]
        np.testing.assert_array_equal(g, [*one[1:], -7.0])


def water_level(s: np.ndarray) -> np.ndarray:
    """Shares max(0, mu - s) that sum to one, by bisection on mu."""
    finite = s[np.isfinite(s)]
    mu = brentq(
        lambda m: np.maximum(0, m - s).sum() - 1, finite.min(), finite.min() + 1, xtol=1e-15, rtol=8 * EPS
    )
    return np.maximum(0, mu - s)


@pytest.mark.parametrize("seed", range(20))
def test_water_fill(seed: int) -> None:
    """A group whose candidates lie in different blocks, against bisection; some vectors are zero."""
    c = Case(seed, blocks=6, groups=4, n=36)
    c.blocks[9:18] = c.blocks[:9]
    lo, hi = 18, 24
    c.starts = np.array([0, lo, hi, 36])
    c.blocks[lo:hi] = np.arange(6)
    for i in range(lo, hi):
        c.z[i] = c.rng.normal(size=3) * 10.0 ** c.rng.uniform(-1, 1)
        c.z[i, c.ranks[c.blocks[i]] :] = 0.0
    if seed % 2:
        c.z[lo + 1] = 0.0
    if seed % 3 == 0:  # no share yet: the candidate may enter
        c.u[lo] = 0.0
        c.u[lo:hi] /= c.u[lo:hi].sum()
    inverse, g = c.inverses(), c.variances()
    before = c.objective(c.u)
    with np.errstate(divide="ignore"):
        expected = water_level(np.where(g[lo:hi] > 0, np.maximum(0, 1 / g[lo:hi] - c.u[lo:hi]), np.inf))
    old = c.u.copy()
    buffers = c.buffers()
    top = visits.water_fill(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, *buffers)
    # The offsets are sums of 1 / g up to 1e2 * cond; the level inherits their absolute rounding.
    scale = max(1.0, (1 / g[lo:hi][g[lo:hi] > 0]).max())
    np.testing.assert_allclose(c.u[lo:hi], expected, atol=RTOL * scale)
    assert top == pytest.approx(g[lo:hi].max(), rel=RTOL)
    assert np.array_equal(c.u[:lo], old[:lo])
    assert np.array_equal(c.u[hi:], old[hi:])
    assert c.u[lo:hi].sum() == pytest.approx(1, abs=10 * EPS)
    assert c.objective(c.u) >= before - RTOL
    # The rank-one updates leave the inverse of the new information.
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-7, atol=1e-7 * np.abs(inverse).max())
    # Optimal: no feasible direction inside the group improves F.
    after = c.variances()[lo:hi]
    assert after.max() <= c.u[lo:hi] @ after / c.u[lo:hi].sum() + RTOL * scale * after.max() ** 2


def test_water_fill_of_zero_vectors_changes_nothing() -> None:
    c = Case(0, blocks=2)
    c.blocks[:2] = [0, 1]
    c.z[:2] = 0.0
    inverse, old = c.inverses(), c.u.copy()
    assert visits.water_fill(c.z, c.blocks, c.ranks, 0, 2, c.u, inverse, *c.buffers()) == 0.0
    np.testing.assert_array_equal(c.u, old)


def test_water_fill_ends_though_the_level_is_an_offset_up_to_rounding() -> None:
    """Offsets 0 and nearly 1: by rounding the level passes them on the way down and lies above them after."""
    inverse = np.array([1.0 + 2 * EPS, 1.0 - EPS / 2, 1.0 + EPS, 1.0 + EPS])[:, None, None]
    u = np.array([1.0 - EPS, EPS / 2, EPS / 2, 0.0])
    z, blocks, ranks = np.array([[1.0], [1.0], [1.0], [-1.0]]), np.array([0, 3, 2, 1]), np.ones(4, np.int64)
    visits.water_fill(z, blocks, ranks, 0, 4, u, inverse, np.empty(4), np.empty(4), np.empty((2, 1)))
    np.testing.assert_allclose(u, [1.0, 0.0, 0.0, 0.0], rtol=0, atol=4 * EPS)


def pair_case(seed: int, kind: str) -> tuple[Case, int, int]:
    c = Case(seed, blocks=2, width=3)
    k, m = 20, 21
    c.blocks[[k, m]] = {
        "same": [1, 1],
        "parallel": [1, 1],
        "zero": [1, 1],
        "differ": [1, 0],
        "other": [0, 1],
    }[kind]
    c.z[[k, m]] = c.rng.normal(size=(2, 3))
    if kind == "parallel":
        c.z[m] = -2.0 * c.z[k]
    if kind == "zero":
        c.z[m] = 0.0
    for i in (k, m):
        c.z[i, c.ranks[c.blocks[i]] :] = 0.0
    return c, k, m


def ordered(c: Case, k: int, m: int) -> tuple[int, int]:
    """The gainer, of the larger variance, first."""
    g = c.variances()
    return (k, m) if g[k] >= g[m] else (m, k)


@pytest.mark.parametrize("kind", ["same", "parallel", "zero", "differ", "other"])
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_exchange_pair(seed: int, kind: str, empty: bool) -> None:
    """The best exchange of a pair, against a scalar search on the true objective; variances follow."""
    c, k, m = pair_case(seed, kind)
    k, m = ordered(c, k, m)
    if empty:  # a gainer without a share yet; its variance only rises
        c.u[k] = 0.0
    inverse, old = c.inverses(), c.u.copy()

    def shifted(delta: float) -> np.ndarray:
        u = old.copy()
        u[k], u[m] = u[k] + delta, max(0.0, u[m] - delta)
        return u

    best = minimize_scalar(
        lambda t: -c.objective(shifted(t)), bounds=(0, old[m]), method="bounded", options={"xatol": 1e-12}
    )
    play = np.array([3, m, 8, k, 17])
    g = c.variances()[play]
    # Blocks of different rank fill different lengths of the buffer; the rest may be anything.
    y = np.full((2, 3), np.nan)
    visits._exchange_pair(c.z, c.blocks, c.ranks, play, play[3], play[1], c.u, inverse, g, y)
    moved = c.u[k] - old[k]
    # A scalar search sees F to eps |F| only, so it finds the argument to sqrt of that; F itself agrees.
    assert c.objective(c.u) >= -best.fun - 1e-12
    assert moved == pytest.approx(best.x, abs=1e-5)
    assert c.u[k] + c.u[m] == pytest.approx(old[k] + old[m], abs=2 * EPS)
    assert min(c.u[k], c.u[m]) >= 0
    np.testing.assert_array_equal(np.delete(c.u, [k, m]), np.delete(old, [k, m]))
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())
    np.testing.assert_allclose(g, c.variances()[play], rtol=1e-8, atol=1e-8 * g.max())


def test_exchange_pair_of_copies_moves_the_whole_share() -> None:
    """Copies inform alike: any share does, and the gainer gets all, so that one of them is done with."""
    c, k, m = pair_case(0, "same")
    c.z[m] = c.z[k]
    inverse, before, share = c.inverses(), c.objective(c.u), c.u[m]
    play = np.array([k, m])
    g, y = c.variances()[play], np.empty((2, 3))
    gained = c.u[k] + share
    visits._exchange_pair(c.z, c.blocks, c.ranks, play, play[0], play[1], c.u, inverse, g, y)
    assert c.u[m] == 0
    assert c.u[k] == gained
    assert c.objective(c.u) == pytest.approx(before, rel=RTOL)
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())


def test_exchange_pair_never_takes_from_the_gainer() -> None:
    """Where rounding has put the pair the wrong way round nothing moves."""
    c, k, m = pair_case(1, "same")
    k, m = ordered(c, k, m)
    inverse, old = c.inverses(), c.u.copy()
    play = np.array([k, m])
    g = c.variances()[play]
    y = np.empty((2, 3))
    visits._exchange_pair(c.z, c.blocks, c.ranks, play, m, k, c.u, inverse, g, y)
    np.testing.assert_array_equal(c.u, old)


@pytest.mark.parametrize("seed", range(12))
def test_exchange(seed: int) -> None:
    """Largest against smallest variance, until they are ten times closer or the visits are used up."""
    c = Case(seed, n=40)
    lo, hi = int(c.starts[1]), int(c.starts[2])
    c.u[lo] = c.u[lo + 3] = 0.0
    c.u[lo:hi] /= c.u[lo:hi].sum()
    inverse, old, before, g = c.inverses(), c.u.copy(), c.objective(c.u), c.variances()[lo:hi]
    buffer, _, y = c.buffers()
    play = np.full(len(c.z), -7)
    top, work = visits.exchange(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, buffer, y, play)
    assert top == pytest.approx(g.max(), rel=RTOL)
    assert work > 0
    assert np.array_equal(c.u[:lo], old[:lo])
    assert np.array_equal(c.u[hi:], old[hi:])
    assert c.u[lo:hi].sum() == pytest.approx(1, abs=100 * EPS)
    assert np.all(c.u >= 0)
    assert c.objective(c.u) > before
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())
    # In play: shares, and the upper part of the excess over the mean.
    mean = old[lo:hi] @ g
    playing = lo + np.flatnonzero(
        (old[lo:hi] > 0) | (g > mean + visits.EXCHANGE.threshold * (g.max() - mean))
    )
    np.testing.assert_array_equal(play[: len(playing)], playing)
    resting = np.setdiff1d(np.arange(lo, hi), playing)
    assert not c.u[resting].any()
    np.testing.assert_allclose(buffer[: len(playing)], c.variances()[playing], rtol=1e-8)


def test_exchange_ends_at_its_optimum() -> None:
    """Repeated visits of one group close its gap, as if it were a problem of its own."""
    c = Case(3)
    lo, hi = int(c.starts[2]), int(c.starts[3])
    inverse = c.inverses()
    buffer, _, y = c.buffers()
    for _ in range(200):
        visits.exchange(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, buffer, y, np.empty(len(c.z), np.int64))
    g = c.variances()[lo:hi]
    assert g.max() - c.u[lo:hi] @ g <= 1e-8 * g.max()


@pytest.mark.parametrize("copies", [1, 3])
def test_exchange_without_anything_to_gain(copies: int) -> None:
    """Equal variances, and groups of zero vectors, are left alone."""
    c = Case(0)
    c.blocks[:3] = 1
    for row in (c.z[6], np.zeros(3)):
        c.z[:copies] = row
        c.blocks[:copies] = c.blocks[6]
        inverse, old = c.inverses(), c.u.copy()
        buffer, _, y = c.buffers()
        play = np.empty(len(c.z), np.int64)
        _, work = visits.exchange(c.z, c.blocks, c.ranks, 0, copies, c.u, inverse, buffer, y, play)
        assert work == 0
        np.testing.assert_array_equal(c.u, old)


@seeds
def test_inverses_afresh_and_their_gap(seed: int) -> None:
    c = Case(seed)
    inverse = np.zeros((3, 3, 3))
    got = bca._recompute_inverse(c.z, c.blocks, c.starts, c.ranks, c.u, inverse, 1.0)
    np.testing.assert_allclose(inverse, c.inverses(), rtol=RTOL, atol=RTOL)
    g = c.variances()
    expected = sum(g[lo:hi].max() for lo, hi in zip(c.starts, c.starts[1:], strict=False)) - c.ranks.sum()
    assert got == pytest.approx(expected, rel=RTOL)
    assert np.isnan(bca._recompute_inverse(c.z, c.blocks, c.starts, c.ranks, c.u, inverse, 0.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_sweeps(seed: int, kind: str) -> None:
    """Each sweep visits every group once; the gap it reports at the target is that of its shares."""
    problem = random_problem(seed, kind)
    r = reduced.reduce(problem)
    u = r.restrict(problem.uniform())
    state, _ = bca._state(r, u)
    f = [od.certify(problem, weights_of(r, u, problem)).log_det]
    for _ in range(3):
        assert bca._sweeps(*state, 0.0, 0, np.empty(1)) == 1
        f.append(od.certify(problem, weights_of(r, u, problem)).log_det)
        assert f[-1] >= f[-2] - RTOL
    gaps = np.full(300, np.nan)
    target = 1e-2 * r.rank
    n = bca._sweeps(*state, target, 0, gaps)
    assert np.isnan(gaps[n:]).all()
    assert np.all(gaps[: n - 1] > target)
    assert gaps[n - 1] <= target
    assert gaps[n - 1] == pytest.approx(od.certify(problem, weights_of(r, u, problem)).gap, abs=RTOL)


def test_sweeps_go_on_where_the_running_gap_is_below_the_target_and_the_true_one_is_not() -> None:
    """The running gap sums variances as groups are visited, some of them before later groups move."""
    seen = 0
    for seed in range(40):
        problem = random_problem(seed, "shared")
        r = reduced.reduce(problem)
        u = r.restrict(problem.uniform())
        one = np.empty(1)
        bca._sweeps(*bca._state(r, u.copy())[0], -np.inf, 0, one)
        target = float(one[0])
        gaps = np.empty(1)
        n = bca._sweeps(*bca._state(r, u)[0], target, 0, gaps)
        true = od.certify(problem, weights_of(r, u, problem)).gap
        assert n == 1
        assert gaps[0] == pytest.approx(true, abs=RTOL)
        seen += true > target
    assert seen > 0


@pytest.mark.parametrize("tiny", [1e-12, 1e-18, 1e-30])
def test_water_fill_with_offsets_beyond_sixteen_digits(tiny: float) -> None:
    """1 / g beside which 1 vanishes: alone it keeps the group's share, beside others it gets none."""
    ones = np.ones(2, np.int64)
    for scales, expected in [([tiny], [1.0]), ([1.0, tiny], [1.0, 0.0]), ([tiny, 1.0], [0.0, 1.0])]:
        z = np.array(scales)[:, None] * [[1.0, 0.0, 0.0]]
        n = len(scales)
        u, inverse = np.full(n, 1 / n), np.zeros((2, 3, 3))
        inverse[:, 0, 0] = 0.5  # as from other groups: g = z^2 / 2, so the offset of scale 1 is 2 - 1/n
        visits.water_fill(z, np.arange(n), ones, 0, n, u, inverse, np.empty(n), np.empty(n), np.empty((n, 3)))
        np.testing.assert_array_equal(u, expected)
