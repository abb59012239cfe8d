"""A plain NumPy twin, or an independent numerical optimum, for every compiled kernel.

These tests run a second time with the kernels as plain Python. Unless a comment says otherwise, rounding
is bounded by the number of additions times eps times the size of the terms; sizes here are below 10 and
lengths below 40, conditions below 1e3, so RTOL = 1e-10 covers every one of them with the same margin.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import EPS, KINDS, matrices, random_problem, weights_of
from scipy.optimize import brentq, minimize_scalar

import optdesign as od
from optdesign import certificate, information, reduced, span
from optdesign.solvers import bca

pytestmark = pytest.mark.kernels
RTOL = 1e-10


class Case:
    """Coordinates of a random instance, split into groups and blocks, with shares of full rank."""

    def __init__(self, seed: int, blocks: int = 3, groups: int = 4, width: int = 3, n: int = 24) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.ranks = np.array([1 + b % width for b in range(blocks)])
        self.blocks = rng.integers(0, blocks, size=n)
        self.blocks[: 2 * blocks * width] = np.arange(2 * blocks * width) % blocks
        self.z = rng.normal(size=(n, width))
        for i in range(n):
            self.z[i, self.ranks[self.blocks[i]] :] = 0.0
        self.starts = np.linspace(0, n, groups + 1).astype(np.int64)
        self.u = rng.exponential(size=n) + 0.05
        for lo, hi in zip(self.starts, self.starts[1:], strict=False):
            self.u[lo:hi] /= self.u[lo:hi].sum()

    def matrices(self) -> np.ndarray:
        return np.array([(self.z[r].T * self.u[r]) @ self.z[r] for r in self.rows()])

    def rows(self) -> list[np.ndarray]:
        return [np.flatnonzero(self.blocks == b) for b in range(len(self.ranks))]

    def inverses(self) -> np.ndarray:
        out = np.zeros((len(self.ranks), self.z.shape[1], self.z.shape[1]))
        for b, (m, r) in enumerate(zip(self.matrices(), self.ranks, strict=True)):
            out[b, :r, :r] = np.linalg.inv(m[:r, :r])
        return out

    def objective(self, u: np.ndarray) -> float:
        total = 0.0
        for r, rows in zip(self.ranks, self.rows(), strict=True):
            z = self.z[rows, :r]
            total += np.linalg.slogdet((z.T * u[rows]) @ z)[1]
        return total

    def variances(self) -> np.ndarray:
        return np.einsum("ni,nij,nj->n", self.z, self.inverses()[self.blocks], self.z)

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scratch space as a kernel may find it: memory that was never written can hold anything."""
        n = len(self.z)
        return np.full(n, np.nan), np.full(n, np.nan), np.full((n, self.z.shape[1]), np.nan)


seeds = pytest.mark.parametrize("seed", range(5))


# ------------------------------------------------------------------------------------------------- span


@given(matrices(), st.integers(1, 3))
@settings(max_examples=20)
def test_scan(x: np.ndarray, n_blocks: int) -> None:
    blocks = np.arange(len(x)) % n_blocks
    peaks, bad = span.scan(x, blocks, n_blocks)
    assert bad == -1
    for b in range(n_blocks):
        part = np.abs(x[blocks == b])
        if len(part) == 0:
            assert np.all(peaks.row[b] == -1)
            continue
        np.testing.assert_array_equal(peaks.value[b], part.max(axis=0))
        np.testing.assert_array_equal(peaks.row[b], np.flatnonzero(blocks == b)[part.argmax(axis=0)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scan_finds_the_first_bad_row(value: float) -> None:
    x = np.ones((5, 2))
    x[3, 1] = x[4, 0] = value
    assert span.scan(x, np.zeros(5, np.int64), 1)[1] == 3


@seeds
def test_coordinates(seed: int) -> None:
    c = Case(seed)
    maps = c.rng.normal(size=(3, 3, 2))
    expected = np.einsum("nj,njk->nk", c.z, maps[c.blocks])
    np.testing.assert_allclose(span.coordinates(c.z, c.blocks, maps), expected, rtol=0, atol=RTOL)


@given(matrices(max_rows=10), st.integers(1, 3))
@settings(max_examples=30)
def test_eliminate(x: np.ndarray, n_blocks: int) -> None:
    blocks = np.arange(len(x)) % n_blocks
    pivots, ranks, maps, margin = span._eliminate(x.copy(), blocks, n_blocks, 1e-10)
    for b in range(n_blocks):
        part = x[blocks == b]
        rank = np.linalg.matrix_rank(part) if len(part) else 0
        assert ranks[b] == rank
        chosen = pivots[b, :rank]
        assert np.all(pivots[b, rank:] == -1)
        assert np.all(blocks[chosen] == b)
        # The pivots become unit vectors, and every row is recovered from its coordinates. Lattice rows of
        # at most four entries up to 2 in quarters: a pivot's residual is at least 1 / (8^2 4)^3, so 1e-7
        # bounds eps times the condition.
        np.testing.assert_allclose(x[chosen] @ maps[b, :, :rank], np.eye(rank), atol=1e-7)
        np.testing.assert_allclose(part @ maps[b, :, :rank] @ x[chosen], part, atol=1e-7)
        assert not maps[b, :, rank:].any()
        rejected, accepted = margin[b]
        assert rejected <= 1e-10 < accepted
        # Nothing is left to reject where the rank is full, nothing accepted where it is zero.
        assert rejected == 0.0 if rank == x.shape[1] else rejected >= 0.0
        assert (accepted == np.inf) == (rank == 0)


@seeds
def test_reflect(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, v = rng.normal(size=(2, 4))
    k = int(rng.integers(0, 4))
    beta = 2 / (v[k:] @ v[k:])
    expected = row.copy()
    expected[k:] -= beta * (row[k:] @ v[k:]) * v[k:]
    got = row.copy()
    span._reflect(got, v, beta, k)
    np.testing.assert_allclose(got, expected, atol=RTOL)
    assert np.linalg.norm(got) == pytest.approx(np.linalg.norm(row), rel=RTOL)


# ------------------------------------------------------------------------------------------ information


@seeds
def test_accumulate(seed: int) -> None:
    c = Case(seed)
    c.u[::5] = 0.0
    got = np.zeros((3, 3, 3))
    information.accumulate(c.z, c.blocks, c.ranks, c.u, got)
    np.testing.assert_allclose(np.tril(got), np.tril(c.matrices()), atol=RTOL)
    assert not np.triu(got, 1).any()


@seeds
def test_factorise_and_invert(seed: int) -> None:
    c = Case(seed)
    m = c.matrices()
    factor = np.zeros_like(m)
    log_det, full = information.factorise(np.tril(m), c.ranks, factor)
    assert full.all()
    assert log_det == pytest.approx(c.objective(c.u), rel=RTOL, abs=RTOL)
    inverse = np.zeros_like(m)
    information.invert(factor, c.ranks, inverse)
    np.testing.assert_allclose(inverse, c.inverses(), rtol=RTOL, atol=RTOL)
    for b, r in enumerate(c.ranks):
        expected = np.linalg.inv(np.linalg.cholesky(m[b, :r, :r]))
        np.testing.assert_allclose(np.tril(factor[b, :r, :r]), expected, rtol=RTOL, atol=RTOL)


def test_factorise_flags_the_blocks_that_lose_rank() -> None:
    m = np.array([np.diag([1.0, 0.0]), np.diag([2.0, 3.0]), np.ones((2, 2)), np.zeros((2, 2))])
    ranks = np.array([2, 2, 2, 0])
    log_det, full = information.factorise(m, ranks, np.zeros_like(m))
    assert full.tolist() == [False, True, False, True]
    assert log_det == -np.inf


@seeds
def test_variances(seed: int) -> None:
    c = Case(seed)
    factor = np.zeros((3, 3, 3))
    information.factorise(c.matrices(), c.ranks, factor)
    got = np.full(len(c.z), np.nan)
    information.variances(c.z, c.blocks, c.ranks, factor, got)
    np.testing.assert_allclose(got, c.variances(), rtol=RTOL)
    assert c.u @ got == pytest.approx(c.ranks.sum(), rel=RTOL)


@seeds
def test_group_max(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, values = rng.integers(0, 4, size=30), rng.exponential(size=30)
    groups[:4] = np.arange(4)
    got = np.zeros(4)
    certificate._group_max(groups, values, got)
    np.testing.assert_array_equal(got, [values[groups == i].max() for i in range(4)])


@seeds
def test_scale_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, groups, factor = rng.normal(size=(9, 2)), rng.integers(0, 3, size=9), rng.exponential(size=3)
    expected = z * factor[groups][:, None]
    reduced._scale_rows(z, groups, factor)
    np.testing.assert_array_equal(z, expected)


# ------------------------------------------------------------------------------ block coordinate ascent


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
def test_apply_and_add_outer(seed: int) -> None:
    c = Case(seed)
    v, r = c.inverses()[2], int(c.ranks[2])
    row, out = c.z[c.rows()[2][0]], np.zeros(3)
    g = bca._apply(v, row, r, out)
    np.testing.assert_allclose(out, v @ row, atol=RTOL)
    assert g == pytest.approx(row @ v @ row, rel=RTOL)
    expected = v + 0.3 * np.outer(out, out)
    bca._add_outer(v, out, r, 0.3)
    np.testing.assert_allclose(v, expected, rtol=RTOL, atol=RTOL)


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
    top, step = bca._water_fill(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, *buffers)
    # The offsets are sums of 1 / g up to 1e2 * cond; the level inherits their absolute rounding.
    scale = max(1.0, (1 / g[lo:hi][g[lo:hi] > 0]).max())
    np.testing.assert_allclose(c.u[lo:hi], expected, atol=RTOL * scale)
    assert top == pytest.approx(g[lo:hi].max(), rel=RTOL)
    assert step == pytest.approx(np.abs(c.u - old)[lo:hi].max(), abs=EPS)
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
    assert bca._water_fill(c.z, c.blocks, c.ranks, 0, 2, c.u, inverse, *c.buffers()) == (0.0, 0.0)
    np.testing.assert_array_equal(c.u, old)


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


@pytest.mark.parametrize("kind", ["same", "parallel", "zero", "differ", "other"])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_exchange_pair(seed: int, kind: str, swap: bool) -> None:
    """The best exchange of a pair, against a scalar search on the true objective."""
    c, k, m = pair_case(seed, kind)
    k, m = (m, k) if swap else (k, m)
    inverse, old = c.inverses(), c.u.copy()

    def shifted(delta: float) -> np.ndarray:
        u = old.copy()
        u[k], u[m] = max(0.0, u[k] + delta), max(0.0, u[m] - delta)
        return u

    best = minimize_scalar(
        lambda t: -c.objective(shifted(t)),
        bounds=(-old[k], old[m]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    y = np.full((2, 3), np.nan)
    size = bca._exchange_pair(c.z, c.blocks, c.ranks, k, m, c.u, inverse, y)
    moved = c.u[k] - old[k]
    # A scalar search sees F to eps |F| only, so it finds the argument to sqrt of that; F itself agrees.
    assert c.objective(c.u) >= -best.fun - 1e-12
    assert moved == pytest.approx(best.x, abs=1e-5)
    assert size == pytest.approx(abs(moved), abs=EPS)
    assert c.u[k] + c.u[m] == pytest.approx(old[k] + old[m], abs=2 * EPS)
    assert min(c.u[k], c.u[m]) >= 0
    assert np.all(np.isfinite(inverse))
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())


def test_exchange_pair_of_equals_does_nothing() -> None:
    c, k, m = pair_case(0, "same")
    c.z[m] = c.z[k]
    inverse, old = c.inverses(), c.u.copy()
    assert bca._exchange_pair(c.z, c.blocks, c.ranks, k, m, c.u, inverse, np.zeros((2, 3))) == 0.0
    np.testing.assert_array_equal(c.u, old)


@pytest.mark.parametrize("kind", ["differ", "other"])
@pytest.mark.parametrize("swap", [False, True])
def test_exchange_pair_reads_no_stale_buffer(kind: str, swap: bool) -> None:
    """Blocks of different rank fill different lengths of the buffer; the rest may be NaN."""
    for seed in range(6):
        c, k, m = pair_case(seed, kind)
        k, m = (m, k) if swap else (k, m)
        inverse = c.inverses()
        bca._exchange_pair(c.z, c.blocks, c.ranks, k, m, c.u, inverse, np.full((2, 3), np.nan))
        assert np.all(np.isfinite(inverse))


@seeds
def test_exchange(seed: int) -> None:
    """Exchanges within a group leave the other groups alone, ascend, and keep the inverse."""
    c = Case(seed)
    lo, hi = int(c.starts[1]), int(c.starts[2])
    c.u[lo] = 0.0
    c.u[lo:hi] /= c.u[lo:hi].sum()
    inverse, old, before, g = c.inverses(), c.u.copy(), c.objective(c.u), c.variances()
    buffer, _, y = c.buffers()
    top, step = bca._exchange(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, buffer, y)
    assert top == pytest.approx(g[lo:hi].max(), rel=RTOL)
    assert 0 < step <= 1
    assert np.array_equal(c.u[:lo], old[:lo])
    assert np.array_equal(c.u[hi:], old[hi:])
    assert c.u[lo:hi].sum() == pytest.approx(1, abs=100 * EPS)
    assert np.all(c.u >= 0)
    assert c.objective(c.u) > before
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())


@seeds
def test_refresh_and_gap(seed: int) -> None:
    c = Case(seed)
    m, factor = np.full((3, 3, 3), np.nan), np.zeros((3, 3, 3))
    bca._refresh(c.z, c.blocks, c.ranks, c.u, m, factor)
    np.testing.assert_allclose(np.tril(m), np.tril(c.matrices()), atol=RTOL)
    g = c.variances()
    expected = sum(g[lo:hi].max() for lo, hi in zip(c.starts, c.starts[1:], strict=False)) - c.ranks.sum()
    assert bca._gap(c.z, c.blocks, c.starts, c.ranks, factor) == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_sweeps(seed: int, kind: str) -> None:
    """Each sweep visits every group once; the gap it reports at the target is that of its shares."""
    problem = random_problem(seed, kind)
    r = reduced.reduce(problem)
    u = r.restrict(problem.uniform(), problem)
    separable = bca._separable(r.blocks, r.starts, len(r.ranks))
    width = r.z.shape[1]
    inverse = np.zeros((len(r.ranks), width, width))
    f = [od.certify(problem, weights_of(r, u, problem)).log_det]
    for _ in range(3):
        n, step = bca._sweeps(r.z, r.blocks, r.starts, separable, r.ranks, 0.0, u, inverse, np.empty(1))
        assert n == 1
        assert 0 <= step <= 1
        f.append(od.certify(problem, weights_of(r, u, problem)).log_det)
        assert f[-1] >= f[-2] - RTOL
    gaps = np.full(300, np.nan)
    target = 1e-2 * r.rank
    n, _ = bca._sweeps(r.z, r.blocks, r.starts, separable, r.ranks, target, u, inverse, gaps)
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
        u = r.restrict(problem.uniform(), problem)
        separable = bca._separable(r.blocks, r.starts, len(r.ranks))
        width = r.z.shape[1]
        inverse = np.zeros((len(r.ranks), width, width))
        one = np.empty(1)
        bca._sweeps(r.z, r.blocks, r.starts, separable, r.ranks, -np.inf, u.copy(), inverse, one)
        target = float(one[0])
        gaps = np.empty(1)
        n, _ = bca._sweeps(r.z, r.blocks, r.starts, separable, r.ranks, target, u, inverse, gaps)
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
        got = bca._water_fill(
            z, np.arange(n), ones, 0, n, u, inverse, np.empty(n), np.empty(n), np.empty((n, 3))
        )
        np.testing.assert_array_equal(u, expected)
        assert got[1] == pytest.approx(1 - 1 / n)
