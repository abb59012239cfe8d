"""Rank decisions and bases, on pleasant and on ugly data."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import EPS

import optdesign as od
from optdesign.problem import span
from optdesign.runtime import threads
from optdesign.testing import matrices, problems


def normalised_rank(x: np.ndarray) -> int:
    """Rank of the non-zero rows, each scaled to unit length."""
    norm = np.linalg.norm(x, axis=1)
    unit = x[norm > 0] / norm[norm > 0, None]
    return int(np.linalg.matrix_rank(unit)) if len(unit) else 0


@given(problems())
def test_ranks_are_numpys(p: od.DesignProblem) -> None:
    for b in range(p.n_parameter_blocks):
        assert p.ranks[b] == normalised_rank(p.candidates[p.parameter_blocks == b])


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


@pytest.mark.parametrize("angle", [1e-3, 1e-5, 1e-8, 1e-10])
def test_near_collinear_candidates_keep_their_dimension(angle: float) -> None:
    # The residual of (1, 1 + 2a) against (1, 1), relative to its norm, is a.
    x = np.array([[1.0, 1.0], [1.0, 1.0 + 2 * angle], [1.0, 1.0 - 2 * angle]])
    p = od.DesignProblem(x)
    assert p.rank == 2
    assert ("close decision" in p.rank_note) == (angle < span.DECISION.rtol * span.DECISION.close)
    assert od.solve(p, tol=1e-9).converged


def test_a_difference_of_rounding_is_no_dimension_and_said_to_be_none() -> None:
    p = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 4 * EPS]])
    assert p.rank == 1
    assert p.exact_rank.tolist() == [1]
    assert "In exact arithmetic on the numbers as given it is larger" in p.rank_note


def test_dependence_that_is_exact_is_no_close_decision() -> None:
    """A dummy variable too many, all levels of a factor and the constant, in other units."""
    levels = np.arange(60) % 4
    x = np.column_stack([np.ones(60), *(levels == k for k in range(4)), np.arange(60) ** 2])
    p = od.DesignProblem(x * [1.0, 1e9, 3.0, 7e-7, 1.0, 1e-30])
    assert p.rank == 5
    assert p.exact_rank.tolist() == [0]
    assert p.rank_note == ""


@pytest.mark.parametrize(("angle", "rank"), [(1e-10, 2), (1e-13, 1)])
def test_close_decisions_are_reported(angle: float, rank: int) -> None:
    p = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 2 * angle], [0.0, 0.0]], parameter_blocks=[1, 1, 0])
    assert p.rank == rank
    assert p.doubtful_blocks.tolist() == [1]
    assert f"block 1 has rank {rank}" in p.rank_note
    assert "1 parameter block(s)" in p.rank_note


def test_the_margin_is_that_of_the_pivots() -> None:
    """Not the best there is: the large row that is nearly parallel is taken, and its residual recorded."""
    x = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-3], [-1.0, 2.0, 0.0]]) * 1e6
    p = od.DesignProblem(np.vstack([x, [1.0, 2.0, 3.0]]))
    assert set(p.span.pivots[0]) == {0, 1, 2}
    assert p.span.margin[0, 1] < 0.1
    alone = od.DesignProblem(np.vstack([x[[0, 2]], [1.0, 2.0, 3.0]]))
    assert alone.span.margin[0, 1] > 0.1


def test_single_precision_has_a_tolerance_of_its_own_and_close_decisions_too() -> None:
    x = np.array([[1.0, 1.0], [1.0, 1.0 + 2e-4], [1.0, 1.0 - 2e-4]])
    assert od.DesignProblem(x).rank_note == ""
    single = od.DesignProblem(x.astype(np.float32))
    assert single.rank == 2
    assert "close decision" in single.rank_note
    lost = od.DesignProblem(np.float32([[1.0, 1.0], [1.0, 1.0 + 2e-7]]))
    assert lost.rank == 1
    assert "larger" in lost.rank_note


# ------------------------------------------------------------------------------------------------ units


def quadratic(p: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(p)), p, c, p * p, p * c, c * c])


def test_pressure_and_concentration_in_their_own_units() -> None:
    p, c = (a.ravel() for a in np.meshgrid(np.linspace(1e5, 1e6, 5), np.linspace(1e-6, 5e-6, 5)))
    x = quadratic(p, c)
    physical, relative = (od.solve(od.DesignProblem(y), tol=1e-12) for y in (x, x / x.max(axis=0)))
    assert physical.rank == relative.rank == 6
    assert len(physical.support) == len(relative.support) == 9
    np.testing.assert_allclose(physical.weights, relative.weights, atol=1e-6)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_a_raw_polynomial_in_years(degree: int) -> None:
    """The same as in years since 2005, divided by 15: a linear map of the candidates."""
    years = np.arange(1990.0, 2021.0)
    raw = od.solve(od.DesignProblem(np.vander(years, degree + 1)), tol=1e-9)
    coded = od.solve(od.DesignProblem(np.vander((years - 2005) / 15, degree + 1)), tol=1e-9)
    assert raw.rank == coded.rank == degree + 1
    assert raw.converged
    assert coded.converged
    # Two designs within their gaps of the optimum: log Det, up to the Jacobian of the map, is that close.
    jacobian = degree * (degree + 1) * np.log(15)
    assert raw.log_det - jacobian == pytest.approx(coded.log_det, abs=1e-4)


def test_units_that_span_forty_orders_of_magnitude() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.normal(size=(40, 4))
        units, sizes = 10.0 ** rng.uniform(-20, 20, size=4), 10.0 ** rng.uniform(-6, 6, size=(40, 1))
        plain, scaled = od.DesignProblem(x * sizes), od.DesignProblem(x * sizes * units)
        assert plain.rank == scaled.rank == 4
        a, b = od.solve(plain, tol=1e-9), od.solve(scaled, tol=1e-9)
        assert a.converged
        assert b.converged
        assert b.log_det - 2 * np.log(units).sum() == pytest.approx(a.log_det, abs=1e-8)


def test_a_large_row_does_not_hide_the_others() -> None:
    """One row of 1e20 in the first column: scaled to its peak alone, the others would be parallel."""
    p = od.DesignProblem([[1e20, 1.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 1.0], [5.0, 1.0, 1.0]])
    assert p.rank == 3
    assert od.solve(p, tol=1e-9).converged


@pytest.mark.parametrize("size", [1e-100, 1e-155, 1e-165, 1e-250])
def test_rows_of_any_size(size: float) -> None:
    r = od.solve(od.DesignProblem([[1.0, 0.0], [0.0, size]]), tol=1e-9)
    assert r.rank == 2
    assert r.converged
    np.testing.assert_allclose(r.weights, 0.5, rtol=1e-8)
    assert r.log_det == pytest.approx(2 * np.log(0.5) + 2 * np.log(size), rel=1e-12)


def test_rows_too_small_for_coordinates_are_left_out_and_named() -> None:
    p = od.DesignProblem([[1.0, 0.0], [1.0, 1.0], [0.0, 1e-300]], parameter_blocks=[0, 0, 0])
    assert 2 not in p.span.pivots[0]
    alone = od.DesignProblem([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1e-300, 0.0]])
    assert alone.rank == 2
    assert "larger" in alone.rank_note


@pytest.mark.parametrize("size", [1e-260, 1e-303, 1e-310, 5e-324])
def test_columns_too_small_for_coordinates_are_refused(size: float) -> None:
    x = np.random.default_rng(0).normal(size=(8, 3))
    with pytest.raises(ValueError, match=r"columns of at least 1e-250 in size; column 2 is .* block 1"):
        od.DesignProblem(np.vstack([x, x * [1.0, 1.0, size]]), parameter_blocks=np.repeat([0, 1], 8))


def test_more_dimensions_than_candidates() -> None:
    x = np.random.default_rng(0).normal(size=(3, 9))
    p = od.DesignProblem(x)
    assert p.rank == 3
    r = od.solve(p, tol=1e-9)
    # Independent vectors share the budget equally (Lemma "linIndpdnt": g_n = 1 / w_n), up to the gap:
    # f max 1 / w_n <= D + gap.
    assert r.weights.min() >= 1 / (3 + r.gap) - 10 * EPS


def test_a_column_of_tiny_numbers_counts_as_any_other() -> None:
    """1e-17 may be a concentration: its unit is not ours to judge."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=20), 1e-17 * rng.normal(size=20)])
    p = od.DesignProblem(x)
    assert p.rank == 2
    assert p.rank_note == ""


def test_rounding_noise_beside_its_cause_stays_noise() -> None:
    """Fahrenheit is Celsius and a constant, rounded."""
    celsius = np.linspace(-40, 60, 37)
    p = od.DesignProblem(np.column_stack([np.ones(37), celsius, 1.8 * celsius + 32]))
    assert p.rank == 2
    assert "larger" in p.rank_note


# --------------------------------------------------------------------------- round-off in place of zeros


def monomials(points: np.ndarray, exponents: list[tuple[int, ...]]) -> np.ndarray:
    return np.column_stack([np.prod(points**e, axis=1) for e in exponents])


@pytest.mark.parametrize("zero", [3 * 0.1 - 0.3, 1e-17, -2.2e-16, 1e-30])
@pytest.mark.parametrize("units", [1.0, 1e-5])
def test_a_factorial_with_round_off_in_place_of_zero_has_its_full_rank(zero: float, units: float) -> None:
    """The cubic model in two factors on 5 x 5 points has condition number 50; (1e-17)^3 is not a scale."""
    levels = units * np.array([-1, -0.5, zero, 0.5, 1])
    points = np.array(list(itertools.product(levels, repeat=2)))
    p = od.DesignProblem(monomials(points, list(itertools.product(range(4), repeat=2))), budgets=20)
    assert p.rank == 16
    assert p.rank_note == ""
    r = od.solve(p, tol=1e-9)
    assert r.converged
    assert (
        np.linalg.matrix_rank((p.candidates * np.sqrt(r.weights)[:, None]) / np.abs(p.candidates).max(axis=0))
        == 16
    )
    runs = od.exact(p, tries=1)
    assert runs.rank == 16
    assert np.linalg.matrix_rank(p.candidates[runs.support] / np.abs(p.candidates).max(axis=0)) == 16


@pytest.mark.parametrize("seed", range(20))
def test_a_mixture_lattice_with_round_off_in_place_of_zeros_has_its_full_rank(seed: int) -> None:
    """Homogeneous polynomials of degree 3 in 4 components: 20 terms, estimable on a lattice of 4 parts."""
    rng = np.random.default_rng(seed)
    points = np.array([p for p in itertools.product(range(5), repeat=4) if sum(p) == 4]) / 4
    round_off = rng.choice([1e-17, -5.6e-17, 2.2e-16, 1e-20], size=points.shape)
    noisy = np.where((points == 0) & (rng.random(points.shape) < 0.5), round_off, points)
    cubic = [e for e in itertools.product(range(4), repeat=4) if sum(e) == 3]
    p = od.DesignProblem(monomials(noisy, cubic))
    assert p.rank == len(cubic) == 20
    assert od.solve(p).converged


def test_runs_print_the_notes_of_their_problem() -> None:
    celsius = np.linspace(-40, 60, 37)
    x = np.column_stack([np.ones(37), celsius, 1.8 * celsius + 32])
    text = str(od.exact(od.DesignProblem(x, budgets=4), tries=1))
    assert "for the 2 of 3 parameters" in text
    assert "column 2 is a combination of column 0, column 1" in text
    assert "treated as round-off" in text


def test_the_note_on_a_larger_exact_rank_claims_no_optimum() -> None:
    """The note belongs to the problem and also appears beside weights whose gap is infinite."""
    p = od.DesignProblem([[1.0, 1.0, 0.0], [1.0, 1.0 + 4 * EPS, 0.0], [0.0, 0.0, 1.0]])
    assert od.certify(p, [1.0, 0.0, 0.0]).gap == np.inf
    assert "optimal" not in p.rank_note
    assert "beyond rank 2 are treated as round-off" in p.rank_note


class TestTournament:
    """More candidates than a chunk: a pool is tried first, then chunks play a tournament."""

    PIECE = 6000
    N = PIECE + 1000

    @pytest.fixture(autouse=True)
    def _pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So many rows, or fewer where they have more than two columns."""
        monkeypatch.setattr(threads, "PIECE", 2 * self.PIECE)

    def test_full_rank(self) -> None:
        x = np.random.default_rng(0).normal(size=(self.N, 3))
        p = od.DesignProblem(x, parameter_blocks=np.arange(self.N) % 2)
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
        x[4_321] += [1e-2, 0.0, 0.0]
        p = od.DesignProblem(x)
        assert p.rank == 3
        assert 4_321 in p.span.pivots[0]

    @pytest.mark.parametrize("n", [N, 2 * PIECE + 1, 2 * PIECE])
    def test_a_dimension_that_the_last_candidate_alone_has(self, n: int) -> None:
        """Neither in a sample nor a peak: only who looks at every row of every chunk finds it."""
        x = np.repeat(np.linspace(1.0, 2.0, n)[:, None], 2, axis=1)
        assert od.DesignProblem(x).rank == 1
        for row in (n - 1, self.PIECE, self.PIECE - 1):
            one = x.copy()
            one[row] = [0.3, 0.2]
            p = od.DesignProblem(one)
            assert p.rank == 2
            assert row in p.span.pivots[0]

    def test_blocks_without_candidates_do_not_start_it(self) -> None:
        x = np.random.default_rng(4).normal(size=(self.N, 2))
        p = od.DesignProblem(x, parameter_blocks=np.full(self.N, 2))
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

    @pytest.mark.parametrize(("n", "d"), [(400, 2), (5000, 10)])
    def test_a_pool_of_clustered_rows_is_not_believed(self, n: int, d: int) -> None:
        """Most rows are alike; the few others have coordinates of a million in a basis of those."""
        rng = np.random.default_rng(0)
        x = 1 + 5e-7 * rng.normal(size=(n, d))
        x[[17, 101, 303]] *= np.array([[0.0], [0.5], [0.3]])
        x[:, 0] = 1.0
        r = od.solve(od.DesignProblem(x), tol=1e-9)
        assert r.converged
        assert np.abs(r.problem.coordinates(slice(None))).max() <= 2**d


def test_indicator_columns_in_units_of_their_own_have_no_more_than_their_exact_rank() -> None:
    """An intercept and all indicators of two factors have rank 3 + 4 - 1, in any units of the columns."""
    rng = np.random.default_rng(0)
    cells = np.array(list(itertools.product(range(3), range(4))))
    x = np.column_stack([np.ones(12), np.eye(3)[cells[:, 0]], np.eye(4)[cells[:, 1]]])
    for _ in range(200):
        p = od.DesignProblem(x * 10.0 ** rng.integers(-6, 7, size=8))
        assert p.rank == 6
        assert od.solve(p).converged
