"""Passes over the data: loops and BLAS give the same, in pieces and whole, whatever the blocks are.

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`.
"""

import numpy as np
import pytest
from cases import RTOL

import optdesign as od
from optdesign.algebra import passes
from optdesign.algebra.reduced import reduce
from optdesign.runtime import threads

pytestmark = pytest.mark.kernels


def problem_of(seed: int, blocks: int) -> od.DesignProblem:
    """Groups and blocks in no order, the last block of lower rank."""
    rng = np.random.default_rng(seed)
    n, d = 90, 4
    x, block = rng.normal(size=(n, d)), rng.integers(0, blocks, size=n)
    x[block == blocks - 1, -1] = x[block == blocks - 1, 0]
    return od.DesignProblem(x, np.arange(n) % 3, block, budgets=[1.0, 2.0, 5.0])


@pytest.fixture(params=[1, 3], ids=["one block", "three blocks"])
def problem(request: pytest.FixtureRequest) -> od.DesignProblem:
    return problem_of(0, request.param)


def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """BLAS for everything, in small pieces."""
    monkeypatch.setattr(passes, "WIDE", 0)
    monkeypatch.setattr(passes, "WIDE_TILE", 7)
    monkeypatch.setattr(threads, "PIECE", 11 * 4)


def test_information_of_some_candidates(problem: od.DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    some = rng.permutation(problem.n_candidates)[:50]
    w = rng.exponential(size=50)
    expected = np.zeros((problem.n_parameter_blocks, *problem.rows.maps.shape[2:] * 2))
    for n, weight in zip(some, w, strict=True):
        t = problem.candidates[n] @ problem.rows.maps[problem.parameter_blocks[n]]
        expected[problem.parameter_blocks[n]] += weight * np.outer(t, t)
    loops = passes.information_matrices(problem, w, some)
    wide(monkeypatch)
    for got in (loops, passes.information_matrices(problem, w, some)):
        np.testing.assert_allclose(np.tril(got), np.tril(expected), rtol=0, atol=RTOL)


def test_variances_of_all_candidates(problem: od.DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    information = passes.information_matrices(problem, problem.uniform(), np.arange(problem.n_candidates))
    results = []
    for blas in (False, True):
        if blas:
            wide(monkeypatch)
        factor, log_det = passes.inverse_factors(information, problem.ranks)
        white = passes.composed(problem.rows.maps, problem.ranks, factor)
        results.append((*passes.variances_of(problem, problem.rows, white), log_det))
    for loops, blas in zip(*results, strict=True):
        np.testing.assert_allclose(loops, blas, rtol=RTOL)
    g, largest, _ = results[0]
    assert problem.uniform() @ g == pytest.approx(problem.rank, rel=RTOL)
    np.testing.assert_array_equal(largest, [g[problem.groups == i].max() for i in range(3)])


def test_information_without_rank(problem: od.DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the block that loses it, and of no other."""
    few = np.flatnonzero(problem.parameter_blocks == 0)[:1]
    some = np.concatenate([few, np.flatnonzero(problem.parameter_blocks > 0)])
    information = passes.information_matrices(problem, np.ones(len(some)), some)
    wide(monkeypatch)
    lost = np.isneginf(passes.inverse_factors(information, problem.ranks)[1])
    np.testing.assert_array_equal(lost, np.arange(problem.n_parameter_blocks) == 0)


def test_coordinates_of_some_candidates(problem: od.DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    some = np.random.default_rng(1).permutation(problem.n_candidates)[:40]
    expected = np.einsum(
        "nj,njk->nk", problem.candidates[some], problem.rows.maps[problem.parameter_blocks[some]]
    )
    loops = passes.coordinates(problem, some, problem.rows)
    scaled = reduce(problem).z
    wide(monkeypatch)
    for got in (loops, passes.coordinates(problem, some, problem.rows)):
        np.testing.assert_allclose(got, expected, rtol=0, atol=RTOL)
    np.testing.assert_allclose(reduce(problem).z, scaled, rtol=0, atol=RTOL)


def test_certificates_by_loops_and_by_blas(
    problem: od.DesignProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = od.certify(problem, problem.uniform())
    wide(monkeypatch)
    blas = od.certify(problem, problem.uniform())
    np.testing.assert_allclose(blas.variances, loops.variances, rtol=RTOL)
    assert blas.gap == pytest.approx(loops.gap, rel=RTOL)
    assert blas.log_det == pytest.approx(loops.log_det, rel=RTOL)
    assert 0 < blas.rounding < 1e-11 * problem.rank
