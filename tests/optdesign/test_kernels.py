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
from optdesign.solvers import bca, start

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


@given(matrices(max_rows=10), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_eliminate(x: np.ndarray, n_blocks: int, seed: int) -> None:
    """Scales are powers of two, so that they cost no digits; candidates may be a part, in any order."""
    rng = np.random.default_rng(seed)
    blocks, groups = np.arange(len(x)) % n_blocks, rng.integers(0, 3, size=len(x))
    row_scale, column = (
        2.0 ** rng.integers(-2, 3, size=3),
        2.0 ** rng.integers(-2, 3, size=(n_blocks, x.shape[1])),
    )
    candidates = rng.permutation(len(x))[: rng.integers(1, len(x) + 1)]
    pivots, ranks, maps, margin = span._eliminate(x, candidates, blocks, groups, row_scale, column, 1e-10)
    for b in range(n_blocks):
        own = candidates[blocks[candidates] == b]
        part = x[own] * row_scale[groups[own], None]
        rank = np.linalg.matrix_rank(part) if len(part) else 0
        assert ranks[b] == rank
        chosen = pivots[b, :rank]
        assert np.all(pivots[b, rank:] == -1)
        assert set(chosen) <= set(own)
        basis = x[chosen] * row_scale[groups[chosen], None]
        if rank:  # the first pivot is the largest row, as scaled
            size = np.linalg.norm(part / column[b], axis=1)
            assert np.linalg.norm(basis[0] / column[b]) == size.max()
        # The scaled pivots become unit vectors, and every row is recovered from its coordinates. Lattice
        # rows of at most four entries up to 2 in quarters: a pivot's residual is at least 1 / (8^2 4)^3,
        # so 1e-7 bounds eps times the condition; row and column scales multiply it by at most 4^4 in all.
        np.testing.assert_allclose(basis @ maps[b, :, :rank], np.eye(rank), atol=1e-5)
        np.testing.assert_allclose(part @ maps[b, :, :rank] @ basis, part, atol=1e-5)
        assert not maps[b, :, rank:].any()
        rejected, accepted = margin[b]
        assert rejected <= 1e-10 < accepted
        # Nothing is left to reject where the rank is full, nothing accepted where it is zero.
        assert rejected == 0.0 if rank == x.shape[1] else rejected >= 0.0
        assert (accepted == np.inf) == (rank == 0)


@seeds
def test_reflect(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, v = rng.normal(size=(3, 4)), rng.normal(size=4)
    k = int(rng.integers(0, 4))
    beta = 2 / (v[k:] @ v[k:])
    expected = a.copy()
    expected[1, k:] -= beta * (a[1, k:] @ v[k:]) * v[k:]
    got = a.copy()
    span._reflect(got, 1, v, beta, k)
    np.testing.assert_allclose(got, expected, atol=RTOL)
    np.testing.assert_array_equal(got[[0, 2]], a[[0, 2]])
    assert np.linalg.norm(got[1]) == pytest.approx(np.linalg.norm(a[1]), rel=RTOL)


def test_column_scales() -> None:
    peak = np.array([[1.0, 3.0, 0.0, 1e-9], [0.0, 0.0, 0.0, 0.0], [4.0, 5e300, 1e-300, 0.7]])
    got = span._column_scales(peak)
    # Powers of two, within a factor of two of the peak from above, where the floor does not hold.
    assert np.all(np.frexp(got)[0] == 0.5)
    floor = span.COLUMN_FLOOR * peak.max(axis=1, keepdims=True)
    lifted = np.maximum(peak, floor)
    assert np.all(got[[0, 2]] >= lifted[[0, 2]])
    assert np.all(got[[0, 2]] < 2 * lifted[[0, 2]])
    np.testing.assert_array_equal(got[1], 1.0)


@seeds
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_log_volumes(seed: int, size: float) -> None:
    """log det of the Gram matrix of the first rows, by an SVD; squares would leave the range."""
    rng = np.random.default_rng(seed)
    p, ranks = rng.normal(size=(4, 3, 3)), np.array([3, 0, 1, 2])
    expected = [
        2 * np.log(np.linalg.svd(p[b, :r], compute_uv=False)).sum() + 2 * r * np.log(size)
        for b, r in enumerate(ranks)
    ]
    np.testing.assert_allclose(span.log_volumes(size * p, ranks), expected, rtol=RTOL, atol=RTOL)


def test_log_volumes_of_nearly_parallel_rows() -> None:
    """Rows at an angle of 1e-6: the second is orthogonalised twice, so the volume keeps ten digits."""
    p = np.array([[[1.0, 0.0], [1.0, 2.0**-20]]])
    assert span.log_volumes(p, np.array([2]))[0] == pytest.approx(-40 * np.log(2), rel=RTOL)


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
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("quick", [False, True])
def test_variances_in_tiles(seed: int, n: int, quick: bool) -> None:
    """Full and partial tiles, empty blocks and one of rank 0, groups in any order."""
    rng = np.random.default_rng(seed)
    ranks = np.array([2, 0, 3, 1, 2])
    x, blocks, groups = rng.normal(size=(n, 4)), rng.choice([0, 1, 2, 4], size=n), rng.integers(0, 3, size=n)
    maps, factor = rng.normal(size=(5, 4, 3)), rng.normal(size=(5, 3, 3))
    lower = np.tril(factor)
    expected = np.array(
        [
            np.sum((lower[b, : ranks[b], : ranks[b]] @ (x[i] @ maps[b])[: ranks[b]]) ** 2)
            for i, b in enumerate(blocks)
        ]
    )
    given_maps = np.ascontiguousarray(maps @ lower.transpose(0, 2, 1)) if quick else maps
    got, largest = np.full(n, np.nan), np.zeros(3)
    certificate._variances(x, blocks, groups, given_maps, ranks, factor, quick, got, largest)
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL)
    np.testing.assert_array_equal(largest, [max([0.0, *got[groups == i]]) for i in range(3)])


@seeds
def test_sort_by_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 5, size=30)
    blocks[blocks == 2] = 3
    end, rows = np.full(6, -7), np.full(30, -7)
    certificate._sort_by_block(blocks, 4, 21, end, rows)
    part = np.arange(4, 21)
    np.testing.assert_array_equal(rows[:17], part[np.argsort(blocks[4:21], kind="stable")])
    np.testing.assert_array_equal(end, np.searchsorted(np.sort(blocks[4:21]), np.arange(6)))
    assert np.all(rows[17:] == -7)


def test_clean() -> None:
    groups, slack = np.array([0, 1, 0, 1]), np.array([1e-6, 1e-3])
    w, total = np.array([0.5, -9e-4, -9e-7, 2.0]), np.zeros(2)
    assert certificate._clean(w, groups, slack, total) == (-1, -1)
    np.testing.assert_array_equal(w, [0.5, 0.0, 0.0, 2.0])
    np.testing.assert_array_equal(total, [0.5, 2.0])
    for n, bad in [(0, np.nan), (1, np.inf), (3, -np.inf)]:
        w = np.array([0.5, 0.5, 0.5, 0.5])
        w[n] = bad
        assert certificate._clean(w, groups, slack, total) == (n, -1)
    assert certificate._clean(np.array([1.0, -9e-4, -2e-6, 1.0]), groups, slack, total) == (-1, 2)


@seeds
def test_exceeding(seed: int) -> None:
    """Reaching the threshold counts, and infinite values do."""
    rng = np.random.default_rng(seed)
    groups, values, threshold = (
        rng.integers(0, 3, size=25),
        rng.integers(0, 5, size=25) / 2.0,
        np.array([1.0, 0.5, 9.0]),
    )
    values[-1] = np.inf
    got = start.exceeding(groups, values, threshold)
    np.testing.assert_array_equal(got, np.flatnonzero(values >= threshold[groups]))
    assert got.dtype == np.int64
    assert len(start.exceeding(groups[:-1], values[:-1], np.full(3, 99.0))) == 0


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
def test_apply_variance_and_add_outer(seed: int) -> None:
    c = Case(seed)
    v, b = c.inverses(), 2
    r = int(c.ranks[b])
    n = int(c.rows()[b][0])
    out = np.full(3, np.nan)
    bca._apply(v, b, c.z, n, r, out)
    np.testing.assert_allclose(out, v[b] @ c.z[n], atol=RTOL)
    assert bca._variance(v, b, c.z, n, r) == pytest.approx(c.z[n] @ v[b] @ c.z[n], rel=RTOL)
    expected = v.copy()
    expected[b] += 0.3 * np.outer(out, out)
    bca._add_outer(v, b, out, r, 0.3)
    np.testing.assert_allclose(v, expected, rtol=RTOL, atol=RTOL)


@seeds
def test_change(seed: int) -> None:
    """The inverse of one block changes; variances of the candidates in play that lie in it follow."""
    c = Case(seed)
    v, b = c.inverses(), 1
    r = int(c.ranks[b])
    play = c.rng.permutation(len(c.z))[:10]
    g = c.variances()[play]
    vector = c.rng.normal(size=3)
    expected = v.copy()
    expected[b, :r, :r] += 0.2 * np.outer(vector[:r], vector[:r])
    bca._change(c.z, c.blocks, c.ranks, play, b, vector, 0.2, v, g)
    np.testing.assert_allclose(v, expected, rtol=RTOL, atol=RTOL)
    z = c.z[play]
    np.testing.assert_allclose(g, np.einsum("ni,nij,nj->n", z, v[c.blocks[play]], z), rtol=RTOL, atol=RTOL)


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
    size = bca._exchange_pair(c.z, c.blocks, c.ranks, play, 3, 1, c.u, inverse, g, y)
    moved = c.u[k] - old[k]
    # A scalar search sees F to eps |F| only, so it finds the argument to sqrt of that; F itself agrees.
    assert c.objective(c.u) >= -best.fun - 1e-12
    assert moved == pytest.approx(best.x, abs=1e-5)
    assert size == pytest.approx(moved, abs=EPS)
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
    assert bca._exchange_pair(c.z, c.blocks, c.ranks, play, 0, 1, c.u, inverse, g, y) == share
    assert c.u[m] == 0
    assert c.objective(c.u) == pytest.approx(before, rel=RTOL)
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())


def test_exchange_pair_never_takes_from_the_gainer() -> None:
    """Where rounding has put the pair the wrong way round nothing moves."""
    c, k, m = pair_case(1, "same")
    k, m = ordered(c, k, m)
    inverse, old = c.inverses(), c.u.copy()
    play = np.array([k, m])
    g = c.variances()[play]
    assert bca._exchange_pair(c.z, c.blocks, c.ranks, play, 1, 0, c.u, inverse, g, np.empty((2, 3))) == 0
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
    top, step = bca._exchange(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, buffer, y, play)
    assert top == pytest.approx(g.max(), rel=RTOL)
    assert 0 < step <= 1
    assert np.array_equal(c.u[:lo], old[:lo])
    assert np.array_equal(c.u[hi:], old[hi:])
    assert c.u[lo:hi].sum() == pytest.approx(1, abs=100 * EPS)
    assert np.all(c.u >= 0)
    assert c.objective(c.u) > before
    np.testing.assert_allclose(inverse, c.inverses(), rtol=1e-8, atol=1e-8 * np.abs(inverse).max())
    # In play: shares, and the upper half of the excess over the mean.
    mean = old[lo:hi] @ g
    playing = lo + np.flatnonzero((old[lo:hi] > 0) | (g > mean + bca.PLAY * (g.max() - mean)))
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
        bca._exchange(c.z, c.blocks, c.ranks, lo, hi, c.u, inverse, buffer, y, np.empty(len(c.z), np.int64))
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
        _, step = bca._exchange(c.z, c.blocks, c.ranks, 0, copies, c.u, inverse, buffer, y, play)
        assert step == 0
        np.testing.assert_array_equal(c.u, old)


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
