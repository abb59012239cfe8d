"""A plain NumPy twin of the kernels of spans and information.

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`.
"""

import numpy as np
import pytest
from cases import RTOL, Case, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from optdesign.algebra import blocks as information
from optdesign.algebra import passes
from optdesign.problem import coordinates as rows
from optdesign.problem import elimination, span
from optdesign.problem.coordinates import sort_by_block
from optdesign.problem.source import Source
from optdesign.testing import matrices

pytestmark = pytest.mark.kernels


# ------------------------------------------------------------------------------------------------- span


@given(matrices(), st.integers(1, 3))
@settings(max_examples=20)
def test_scan(x: np.ndarray, n_blocks: int) -> None:
    blocks = np.arange(len(x)) % n_blocks
    peaks, bad = span.scan(Source(x), blocks, n_blocks)
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
    assert span.scan(Source(x), np.zeros(5, np.int64), 1)[1] == 3


@seeds
def test_coordinates(seed: int) -> None:
    c = Case(seed)
    maps = c.rng.normal(size=(3, 3, 2))
    some = c.rng.permutation(len(c.z))[:7]
    expected = np.einsum("nj,njk->nk", c.z[some], maps[c.blocks[some]])
    plain, refined = np.full((2, 7, 2), np.nan)
    rows.write_coordinates(c.z[some[::-1]], np.arange(7)[::-1], c.blocks, some, maps, plain)
    rows.write_refined(c.z[some], c.blocks[some], maps, refined)
    np.testing.assert_allclose(plain, expected, rtol=0, atol=RTOL)
    np.testing.assert_allclose(refined, expected, rtol=0, atol=RTOL)


@seeds
def test_equilibrate(seed: int) -> None:
    """Row peaks in [1/2, 1), powers of two only, and the same result whatever the units were."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 4)) * (rng.random(size=(9, 4)) < 0.8)
    x[0], x[1] = 0.0, 1.0
    units = 2.0 ** rng.integers(-150, 150, size=4)
    sizes = 2.0 ** rng.integers(-150, 150, size=9)
    results = []
    for data in (x, x * units * sizes[:, None]):
        y, size, column = data.copy(), np.empty(9), np.empty(4)
        elimination.fit_columns(y, 0, 9, column)
        elimination.scale(y, 0, 9, size, column)
        np.testing.assert_array_equal(y * 2.0**column * 2.0 ** size[:, None], data)
        peak = np.abs(y[1:]).max(axis=1)
        assert np.all((peak >= 0.5) & (peak < 1))
        results.append(y)
    # The fit is unique up to one shift between rows and columns, and rounding of exponents.
    ratio = np.log2(np.abs(results[0][1:][x[1:] != 0] / results[1][1:][x[1:] != 0]))
    assert np.all(np.abs(ratio) <= 2)


def test_peak_columns_ignore_entries_far_below_the_peaks() -> None:
    y = np.array([[1.0, 4.0, 0.0], [2.0, 1.0, 0.0], [0.5, 0.0, 0.0]]) * [1.0, 2.0**40, 1.0]
    noisy = np.where(y == 0, [1e-60, 1e-60, 0.0], y)
    columns = []
    for data in (y, noisy):
        size, column = np.empty(3), np.full(3, np.nan)
        elimination.peak_columns(data.copy(), 0, 3, size, column)
        columns.append(column)
        elimination.scale(data, 0, 3, size, column)
        assert np.all(np.abs(data).max(axis=1) >= 0.5)
        assert np.all(np.abs(data).max(axis=0)[:2] >= 0.5)
    np.testing.assert_array_equal(*columns)


def test_eliminate_again_with_peaks() -> None:
    """Powers of 1e-17 count like other entries in the least-squares fit; the decision would be close."""
    levels = np.array([-1.0, 1e-17, 1.0])
    powers = levels[:, None] ** np.arange(3)
    x = np.einsum("ai,bj->abij", powers, powers).reshape(9, 9)
    maps, ranks = np.zeros((1, 9, 9)), np.zeros(1, np.int64)
    pivots, margin = np.full((1, 9), -1), np.zeros((1, 2))
    zero = np.zeros(9, np.int64)
    elimination.eliminate(x, np.arange(9), zero, zero, np.ones(1), 1e-12, maps, ranks, pivots, margin)
    assert ranks.tolist() == [9]
    assert margin[0, 1] > 1e-3
    np.testing.assert_allclose(x[pivots[0]] @ maps[0], np.eye(9), atol=1e-12)


@given(matrices(max_rows=10), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_eliminate(x: np.ndarray, n_blocks: int, seed: int) -> None:
    """Row scales are powers of two, so that they cost no digits; candidates may be a part, in any order."""
    rng = np.random.default_rng(seed)
    blocks, groups = np.arange(len(x)) % n_blocks, rng.integers(0, 3, size=len(x))
    row_scale = 2.0 ** rng.integers(-2, 3, size=3)
    candidates = rng.permutation(len(x))[: rng.integers(1, len(x) + 1)]
    d = x.shape[1]
    maps, ranks = np.zeros((n_blocks, d, d)), np.zeros(n_blocks, np.int64)
    pivots, margin = np.full((n_blocks, d), -1), np.zeros((n_blocks, 2))
    elimination.eliminate(
        x[candidates], candidates, blocks, groups, row_scale, 1e-10, maps, ranks, pivots, margin
    )
    for b in range(n_blocks):
        own = candidates[blocks[candidates] == b]
        part = x[own] * row_scale[groups[own], None]
        rank = np.linalg.matrix_rank(part) if len(part) else 0
        assert ranks[b] == rank
        chosen = pivots[b, :rank]
        assert np.all(pivots[b, rank:] == -1)
        assert set(chosen) <= set(own)
        basis = x[chosen] * row_scale[groups[chosen], None]
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
    elimination.reflect(got, 1, v, beta, k)
    np.testing.assert_allclose(got, expected, atol=RTOL)
    np.testing.assert_array_equal(got[[0, 2]], a[[0, 2]])
    assert np.linalg.norm(got[1]) == pytest.approx(np.linalg.norm(a[1]), rel=RTOL)


@seeds
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_log_volume(seed: int, size: float) -> None:
    """log det of the Gram matrix of the pivots, by an SVD; squares would leave the range."""
    rng = np.random.default_rng(seed)
    x, scale, ranks = rng.normal(size=(6, 3)), rng.choice([0.5, 3.0], size=6), np.array([3, 0, 1, 2])
    expected = 0.0
    for p, r in zip(np.split(x * scale[:, None], np.cumsum(ranks)[:-1]), ranks, strict=True):
        expected += 2 * np.log(np.linalg.svd(p, compute_uv=False)).sum() + 2 * r * np.log(size)
    got = rows.log_gram(size * x, 0.0 * x, scale, ranks)
    assert got == pytest.approx(expected, rel=RTOL, abs=RTOL)


def test_log_volume_of_nearly_parallel_rows() -> None:
    """Rows at an angle of 1e-6."""
    got = rows.log_gram(np.array([[1.0, 0.0], [1.0, 2.0**-20]]), np.zeros((2, 2)), np.ones(2), np.array([2]))
    assert got == pytest.approx(-40 * np.log(2), rel=RTOL)


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
    log_det = information.factorise(np.tril(m), c.ranks, factor)
    logarithms = [np.linalg.slogdet(m[b, :r, :r])[1] for b, r in enumerate(c.ranks)]
    np.testing.assert_allclose(log_det, logarithms, rtol=RTOL, atol=RTOL)
    assert log_det.sum() == pytest.approx(c.objective(c.u), rel=RTOL, abs=RTOL)
    inverse = np.zeros_like(m)
    information.invert(factor, c.ranks, inverse)
    np.testing.assert_allclose(inverse, c.inverses(), rtol=RTOL, atol=RTOL)
    for b, r in enumerate(c.ranks):
        expected = np.linalg.inv(np.linalg.cholesky(m[b, :r, :r]))
        np.testing.assert_allclose(np.tril(factor[b, :r, :r]), expected, rtol=RTOL, atol=RTOL)


def test_factorise_flags_the_blocks_that_lose_rank() -> None:
    m = np.array([np.diag([1.0, 0.0]), np.diag([2.0, 3.0]), np.ones((2, 2)), np.zeros((2, 2))])
    ranks = np.array([2, 2, 2, 0])
    log_det = information.factorise(m, ranks, np.zeros_like(m))
    np.testing.assert_allclose(log_det, [-np.inf, np.log(6), -np.inf, 0.0], rtol=RTOL)


@seeds
def test_variance(seed: int) -> None:
    c = Case(seed)
    factor = np.zeros((3, 3, 3))
    information.factorise(c.matrices(), c.ranks, factor)
    got = [information.variance(factor, b, c.z, n, c.ranks[b]) for n, b in enumerate(c.blocks)]
    np.testing.assert_allclose(got, c.variances(), rtol=RTOL)
    assert c.u @ got == pytest.approx(c.ranks.sum(), rel=RTOL)


@seeds
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_variances_in_tiles(seed: int, n: int) -> None:
    """Full and partial tiles, empty blocks and one of rank 0, groups in any order."""
    rng = np.random.default_rng(seed)
    ranks = np.array([2, 0, 3, 1, 2])
    x, blocks, groups = rng.normal(size=(n, 4)), rng.choice([0, 1, 2, 4], size=n), rng.integers(0, 3, size=n)
    white = rng.normal(size=(5, 4, 3)) * (np.arange(3) < ranks[:, None])[:, None]
    expected = np.array([np.sum((x[i] @ white[b]) ** 2) for i, b in enumerate(blocks)])
    got, largest = np.full(n, np.nan), np.zeros(3)
    for variances in (passes.variances_of_few, passes._variances):
        got[:] = np.nan
        variances(x, blocks, white, got)
        np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL)
    passes.raise_to_largest(groups, got, largest)
    np.testing.assert_array_equal(largest, [max([0.0, *got[groups == i]]) for i in range(3)])


@seeds
def test_sort_by_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 5, size=30)
    blocks[blocks == 2] = 3
    end, rows = np.full(6, -7), np.full(30, -7)
    sort_by_block(blocks, 4, 21, end, rows)
    part = np.arange(4, 21)
    np.testing.assert_array_equal(rows[:17], part[np.argsort(blocks[4:21], kind="stable")])
    np.testing.assert_array_equal(end, np.searchsorted(np.sort(blocks[4:21]), np.arange(6)))
    assert np.all(rows[17:] == -7)


@seeds
def test_add_information(seed: int) -> None:
    """Some candidates, more than fit a tile; the upper triangle stays as it is."""
    c = Case(seed)
    many = np.tile(np.arange(len(c.z)), 5)
    rows = c.rng.permutation(many)[: passes.TILE + 9]
    w, maps, got = c.rng.exponential(size=len(rows)), c.rng.normal(size=(3, 3, 3)), np.zeros((3, 3, 3))
    rest = np.zeros_like(got)
    passes.add_tiles(c.z, rows, c.blocks, rows, maps, c.ranks, w, got, rest)
    assert 0 < np.abs(rest).max() < RTOL * np.abs(got).max()
    got += rest
    for b, r in enumerate(c.ranks):
        own = c.blocks[rows] == b
        t = c.z[rows[own]] @ maps[b][:, :r]
        np.testing.assert_allclose(got[b, :r, :r], np.tril((t.T * w[own]) @ t), rtol=0, atol=100 * RTOL)
        assert not got[b, r:].any()


@seeds
def test_compose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    maps, factor, ranks = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 3, 3)), np.array([3, 2])
    got = maps.copy()
    passes.compose(got, ranks, factor)
    for b, r in enumerate(ranks):
        expected = maps[b, :, :r] @ np.tril(factor[b, :r, :r]).T
        np.testing.assert_allclose(got[b, :, :r], expected, rtol=0, atol=RTOL)
        assert not got[b, :, r:].any()
