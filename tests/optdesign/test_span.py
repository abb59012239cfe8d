"""Rank decisions and bases, on pleasant and on ugly data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import EPS, matrices, problems

import optdesign as od
from optdesign import span


def normalised_rank(x: np.ndarray) -> int:
    """Rank of the non-zero rows, each scaled to unit length."""
    norm = np.linalg.norm(x, axis=1)
    unit = x[norm > 0] / norm[norm > 0, None]
    return int(np.linalg.matrix_rank(unit)) if len(unit) else 0


@given(problems())
def test_ranks_are_numpys(p: od.DesignProblem) -> None:
    for b in range(p.n_blocks):
        assert p.ranks[b] == normalised_rank(p.candidates[p.blocks == b])


@given(matrices(), st.integers(0, 2**32 - 1))
def test_ranks_under_norms_from_1e_minus_6_to_1e6(x: np.ndarray, seed: int) -> None:
    """Scaling rows by powers of two is exact and changes no span."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-20, 21, size=len(x)))
    assert od.DesignProblem(x * scale[:, None]).rank == normalised_rank(x)


@given(matrices(), st.integers(0, 2**32 - 1))
def test_ranks_under_units_of_columns(x: np.ndarray, seed: int) -> None:
    scale = np.exp2(np.random.default_rng(seed).integers(-20, 21, size=x.shape[1]))
    assert od.DesignProblem(x * scale).rank == normalised_rank(x)


@given(matrices(), st.integers(0, 2**32 - 1))
def test_ranks_under_budgets_from_1e_minus_6_to_1e6(x: np.ndarray, seed: int) -> None:
    budgets = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, size=len(x))
    assert od.DesignProblem(x, groups=np.arange(len(x)), budgets=budgets).rank == normalised_rank(x)


@pytest.mark.parametrize("seed", range(30))
def test_rank_deficient_by_products(seed: int) -> None:
    """Rows are rounded combinations, of very different norms; the rank is that of the factor."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 60)), int(rng.integers(2, 7))
    r = int(rng.integers(1, d + 1))
    x = rng.normal(size=(n, r)) @ rng.normal(size=(r, d)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    p = od.DesignProblem(x)
    assert p.rank == min(r, n) == normalised_rank(x)
    t = p.coordinates(slice(None))
    back = t @ (x[p.span.pivots[0, : p.rank]])
    # Coordinates rebuild each row to rounding relative to its own norm, times the basis' condition.
    unit = x[p.span.pivots[0, : p.rank]]
    unit = unit / np.linalg.norm(unit, axis=1)[:, None]
    slack = 1e3 * EPS * np.linalg.cond(unit)
    assert np.all(np.linalg.norm(back - x, axis=1) <= slack * np.linalg.norm(x, axis=1))


@pytest.mark.parametrize("angle", [1e-3, 1e-5, 1e-8])
def test_near_collinear_candidates_keep_their_dimension(angle: float) -> None:
    # The residual of (1, 1 + 2a) against (1, 1), relative to its norm, is a.
    x = np.array([[1.0, 1.0], [1.0, 1.0 + 2 * angle], [1.0, 1.0 - 2 * angle]])
    p = od.DesignProblem(x)
    assert p.rank == 2
    assert ("close decision" in p.rank_note) == (angle < 1e-7)
    assert od.solve(p, tol=1e-6).converged


def test_a_column_in_small_units_is_no_close_decision() -> None:
    p = od.DesignProblem([[1.0, 0.0], [1.0, 1e-9]])
    assert p.rank == 2
    assert p.rank_note == ""


def test_a_difference_of_rounding_is_no_dimension() -> None:
    p = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 4 * EPS]])
    assert p.rank == 1
    assert p.rank_note == ""


@pytest.mark.parametrize(("angle", "rank"), [(1e-9, 2), (1e-11, 1)])
def test_close_decisions_are_reported(angle: float, rank: int) -> None:
    p = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 2 * angle], [0.0, 0.0]], blocks=[1, 1, 0])
    assert p.rank == rank
    assert p.span.close_blocks.tolist() == [1]
    assert f"block 1 has rank {rank}" in p.rank_note
    assert "1 block(s)" in p.rank_note


def test_more_dimensions_than_candidates() -> None:
    x = np.random.default_rng(0).normal(size=(3, 9))
    p = od.DesignProblem(x)
    assert p.rank == 3
    r = od.solve(p, tol=1e-9)
    # Independent vectors share the budget equally (Lemma "linIndpdnt": g_n = 1 / w_n), up to the gap:
    # f max 1 / w_n <= D + gap.
    assert r.weights.min() >= 1 / (3 + r.gap) - 10 * EPS


def test_a_column_of_rounding_noise_stays_noise() -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=20), 1e-17 * rng.normal(size=20)])
    assert od.DesignProblem(x).rank == 1


class TestTournament:
    """More candidates than a chunk: a pool is tried first, then chunks play a tournament."""

    N = span.CHUNK + 1000

    def test_full_rank(self) -> None:
        x = np.random.default_rng(0).normal(size=(self.N, 3))
        p = od.DesignProblem(x, blocks=np.arange(self.N) % 2)
        assert p.ranks.tolist() == [3, 3]

    def test_rank_deficient(self) -> None:
        rng = np.random.default_rng(1)
        x = rng.normal(size=(self.N, 2)) @ rng.normal(size=(2, 4))
        p = od.DesignProblem(x)
        assert p.rank == 2
        assert od.solve(p, tol=1e-4).converged

    def test_a_dimension_carried_by_one_candidate_is_found(self) -> None:
        rng = np.random.default_rng(2)
        x = np.zeros((self.N, 3))
        x[:, :2] = rng.normal(size=(self.N, 2))
        x[self.N - 7] = x[self.N - 8] + [0.0, 0.0, 1e-3]
        x[5] = x[6] + [0.0, 0.0, 2e-3]
        p = od.DesignProblem(x)
        assert p.rank == 3
        x[5] = x[6]
        assert od.DesignProblem(x).rank == 3
        x[self.N - 7] = x[self.N - 8]
        assert od.DesignProblem(x).rank == 2

    def test_a_hidden_direction_in_coordinates_that_hide_it(self) -> None:
        """All candidates satisfy x0 + x1 + x2 = 0, but for one that is no column's peak."""
        rng = np.random.default_rng(3)
        x = rng.normal(size=(self.N, 3))
        x[:, 2] = -x[:, 0] - x[:, 1]
        assert od.DesignProblem(x).rank == 2
        x[12_345] += [1e-2, 0.0, 0.0]
        p = od.DesignProblem(x)
        assert p.rank == 3
        assert 12_345 in p.span.pivots[0]

    def test_blocks_without_candidates_do_not_start_it(self) -> None:
        x = np.random.default_rng(4).normal(size=(self.N, 2))
        p = od.DesignProblem(x, blocks=np.full(self.N, 2))
        assert p.ranks.tolist() == [0, 0, 2]

    def test_several_chunks_certify_as_one(self) -> None:
        rng = np.random.default_rng(5)
        x = rng.normal(size=(self.N, 3))
        w = rng.exponential(size=self.N)
        w /= w.sum()
        c = od.certify(od.DesignProblem(x), w)
        u = (x.T * w) @ x
        g = np.einsum("ni,ij,nj->n", x, np.linalg.inv(u), x)
        slack = self.N * EPS * np.linalg.cond(u)
        np.testing.assert_allclose(c.variances, g, rtol=slack)
        assert c.log_det == pytest.approx(np.linalg.slogdet(u)[1], abs=3 * slack)
        assert c.gap == pytest.approx(g.max() - 3, rel=slack)


@pytest.mark.parametrize(
    ("size", "close"), [(1e-5, False), (1e-9, False), (1e-10, False), (5e-11, True), (1e-14, True)]
)
def test_a_tiny_column_is_a_close_decision(size: float, close: bool) -> None:
    """Below about 7.6e-11 of the largest a column cannot be told from noise: the rank note says so."""
    x = np.random.default_rng(0).normal(size=(30, 3)).clip(-2, 2)
    x[0] = 2.0
    p = od.DesignProblem(x * [1.0, size, 1.0])
    assert ("close decision" in p.rank_note) == close
    assert p.span.close_blocks.tolist() == ([0] if close else [])


def test_only_the_block_with_the_tiny_column_is_named_and_zero_columns_are_not() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    x[::2, 1] *= 1e-13
    p = od.DesignProblem(x, blocks=np.arange(40) % 2)
    assert p.span.close_blocks.tolist() == [0]
    x[::2, 1] = 0.0
    p = od.DesignProblem(x, blocks=np.arange(40) % 2)
    assert p.rank_note == ""
    assert p.ranks.tolist() == [2, 3]
