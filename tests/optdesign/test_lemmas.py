"""The paper's lemmas and propositions on matrices, equivalence and block coordinate ascent.

Each test carries the label of its statement in the paper's appendix.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import EPS, KINDS, METHODS, assert_bounds, assert_certified, basis, plain, random_problem

import optdesign as od
from optdesign import linalg
from optdesign.testing import assert_feasible, problems, semidefinite, weighted

# Eigenvalues of ``semidefinite`` lie in {0} or [1/4, 4]; see test_linalg.RTOL.
ATOL = 1e4 * EPS
vectors = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).normal(size=4))


class TestLimitRelationsPseudo:
    """Proposition "limit_relations_pseudo": the error falls like eps over the smallest eigenvalue squared."""

    EPSILON = 1e-6
    # (v + e)^-2 v differs from 1 / v by at most 2 e / v^2 <= 32 e, and solving with A + e I (condition
    # 4 / e) costs at most 4 eps / e times the size of the result, here up to 1 / 0.25^2.
    SLACK = 32 * EPSILON + 16 * 4 * EPS / EPSILON

    def shifted(self, a: np.ndarray) -> np.ndarray:
        return np.linalg.inv(a + self.EPSILON * np.eye(len(a)))

    @given(semidefinite())
    def test_item_1(self, a: np.ndarray) -> None:
        s = self.shifted(a)
        # A itself is known to 4 eps only, which the two inverses amplify by up to 1 / e^2 outside the range.
        slack = self.SLACK + 16 * EPS / self.EPSILON**2
        np.testing.assert_allclose(s @ a @ s, linalg.pseudo_inverse(a), rtol=0, atol=slack)

    @given(semidefinite())
    def test_item_2(self, a: np.ndarray) -> None:
        np.testing.assert_allclose(a @ self.shifted(a) @ a, a, rtol=0, atol=self.SLACK)

    @given(semidefinite(), vectors)
    def test_item_3(self, a: np.ndarray, c: np.ndarray) -> None:
        v = a @ c[: len(a)]
        slack = self.SLACK * max(1.0, np.linalg.norm(v))
        np.testing.assert_allclose(self.shifted(a) @ v, linalg.pseudo_inverse(a) @ v, rtol=0, atol=slack)


@given(weighted(), st.integers(0, 2**32 - 1))
def test_logdet_gradient(case: tuple[od.DesignProblem, np.ndarray], seed: int) -> None:
    """Lemma "logdet": the gradient of F is the variances, by central differences along feasible lines."""
    problem, w = case
    rng = np.random.default_rng(seed)
    towards = rng.exponential(size=len(w)) + 0.01
    towards *= (problem.budgets / np.bincount(problem.groups, weights=towards))[problem.groups]
    direction = towards - w
    # Along w + t (towards - w), F is a sum of log(1 + t e_k) with e_k >= -1 and, since both ends are
    # positive, e_k <= max(towards / w) =: m. So |F'''| <= 2 D m^3 near 0, and a central difference with
    # step h errs by at most D m^3 h^2 / 3 (doubled for the curvature of the bound), plus rounding / h.
    m = max(1.0, float(np.max(towards / w)))
    h = 1e-4 / m
    here = plain(problem, w)
    ahead, behind = (plain(problem, w + s * h * direction) for s in (1, -1))
    slope = (ahead.log_det - behind.log_det) / (2 * h)
    rounding = here.error + 10 * EPS * max(1.0, abs(here.log_det))
    bound = here.rank * m**3 * h**2 + 2 * rounding / h
    g = od.certify(problem, w).variances
    assert abs(slope - g @ direction) <= bound


@given(weighted(), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_concave(case: tuple[od.DesignProblem, np.ndarray], t: float, seed: int) -> None:
    """Lemma "concave": log Det is concave on matrices with the same range."""
    problem, one = case
    two = np.random.default_rng(seed).exponential(size=len(one)) + 0.01
    two *= (problem.budgets / np.bincount(problem.groups, weights=two))[problem.groups]
    f_one, f_two, between = (od.certify(problem, w).log_det for w in (one, two, (1 - t) * one + t * two))
    rounding = plain(problem, one).error + plain(problem, two).error
    assert between >= (1 - t) * f_one + t * f_two - rounding - 10 * EPS * (abs(f_one) + abs(f_two))


@given(semidefinite(), vectors, st.floats(-0.9, 10.0))
def test_low_rank_update(a: np.ndarray, c: np.ndarray, fraction: float) -> None:
    """Lemma "low_rank_update", for both signs of the scale and any degree."""
    u = a @ c[: len(a)]
    v = linalg.pseudo_inverse(a)
    quadratic = u @ v @ u
    assume(quadratic > 1e-3)
    scale = fraction / quadratic  # 1 + scale u' A^+ u = 1 + fraction >= 0.1: the range is kept
    updated = a + scale * np.outer(u, u)
    # |updated| <= 4 + 10 * 16 / (1/4)..: eigenvalues stay within [0.1 / 4, 4 * 11], condition below 2000.
    slack = 2000 * ATOL
    np.testing.assert_allclose(
        linalg.rank_one_update(v, u, scale), linalg.pseudo_inverse(updated, rtol=1e-9), rtol=0, atol=slack
    )
    ratio = linalg.det_ratio(v, u, scale)
    assert ratio == pytest.approx(1 + fraction, rel=ATOL)
    for degree in range(len(a) + 1):
        after, before = (linalg.pseudo_det(m, degree, rtol=1e-9) for m in (updated, a))
        assert after == pytest.approx(ratio * before, rel=slack)


@given(semidefinite(), vectors)
def test_low_rank_update_refuses_to_lose_the_range(a: np.ndarray, c: np.ndarray) -> None:
    """Taking away all of a direction, scale = -1 / (u' A^+ u), leaves a smaller range."""
    u = a @ c[: len(a)]
    v = linalg.pseudo_inverse(a)
    quadratic = u @ v @ u
    assume(quadratic > 1e-3)
    with pytest.raises(ValueError, match="must preserve the range"):
        linalg.rank_one_update(v, u, -1 / quadratic)


@given(weighted())
def test_rank(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    """Lemma "rank": with positive weights, rank(U) = rank(U^+) = rank of the vectors, and ranges agree."""
    problem, w = case
    for b in range(problem.n_parameter_blocks):
        rows = problem.parameter_blocks == b
        x = problem.candidates[rows]
        u = (x.T * w[rows]) @ x
        # Weights lie within a factor of 64 * 8 of one another and x on a lattice, so non-zero eigenvalues
        # are far above 1e-10 of the largest.
        values, vectors = linalg.eigen_range(u, rtol=1e-10)
        rank = np.linalg.matrix_rank(x) if len(x) else 0
        assert problem.ranks[b] == rank == len(values)
        assert np.linalg.matrix_rank(linalg.pseudo_inverse(u, rtol=1e-10), tol=1e-8) == rank
        # Equal ranges: equal projections.
        q = basis(x)
        np.testing.assert_allclose(vectors @ vectors.T, q @ q.T, atol=1e-6)


@given(semidefinite(), vectors, st.floats(0.1, 10.0))
def test_linIndpdnt(a: np.ndarray, u0: np.ndarray, scale: float) -> None:
    """Lemma "linIndpdnt": u0' (l0 u0 u0' + A)^+ u0 = 1 / l0 for u0 outside the range of A."""
    u0 = u0[: len(a)]
    values, q = linalg.eigen_range(a)
    outside = np.linalg.norm(u0 - q @ (q.T @ u0)) if len(values) < len(a) else 0.0
    assume(outside > 0.1)
    got = u0 @ linalg.pseudo_inverse(scale * np.outer(u0, u0) + a, rtol=1e-9) @ u0
    # The smallest non-zero eigenvalue is at least about min(1/4, scale outside^2) / (1 + |u0|^2 / outside^2),
    # above 1e-6 here, so the condition is below 1e9 at worst.
    size = 4 + scale * (u0 @ u0)
    condition = size * (1 + (u0 @ u0) / outside**2) / min(0.25, scale * outside**2)
    assert got == pytest.approx(1 / scale, rel=100 * EPS * condition)


def equivalence(problem: od.DesignProblem, seed: int) -> None:
    """The three statements at the optimum, and their failure away from it."""
    r = od.solve(problem, tol=1e-5)
    best = assert_certified(r, 1e-5)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        raw = rng.exponential(size=problem.n_candidates) + 1e-3
        w = raw * (problem.budgets / np.bincount(problem.groups, weights=raw))[problem.groups]
        other = plain(problem, w)
        rounding = 2 * (other.error + best.error)
        # 1) the maximiser of F: F(w) <= F(w*) + gap; and the gap of w bounds its own distance.
        assert other.log_det <= best.log_det + r.gap + rounding
        assert best.log_det - other.log_det <= other.gap + rounding
        # 2) the minimiser of G, 3) whose value is D, which no design goes below.
        assert other.g_value >= best.g_value - r.gap - rounding
        assert other.g_value >= best.rank - rounding
        # trace identity behind the three: sum_n w_n g_n = D.
        assert abs(w @ other.variances - other.rank) <= rounding


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("deficient", [False, True])
def test_OptimizationEquivalence(seed: int, deficient: bool) -> None:
    """Lemma "OptimizationEquivalence": unit budgets, one block an arm."""
    problem = random_problem(seed, "disjoint", deficient=deficient)
    unit = od.DesignProblem(problem.candidates, problem.groups, problem.parameter_blocks)
    equivalence(unit, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_General_equivalence(seed: int, kind: str) -> None:
    """Lemma "General_equivalence": unequal budgets and arbitrary vectors."""
    equivalence(random_problem(seed, kind), seed)


@given(weighted())
def test_General_equivalence_bounds_any_design(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    """G >= D for every design, with degenerate data too."""
    problem, w = case
    c = od.certify(problem, w)
    p = plain(problem, w)
    assert p.gap >= -p.error
    assert_bounds(c, p)
    assert c.relative_gap == c.gap / c.rank
    assert c.efficiency == pytest.approx(1 / (1 + c.relative_gap), rel=4 * EPS)
    assert c.efficiency <= c.rank / c.g_value


@settings(max_examples=30)
@given(problems())
def test_block_updates_stay_feasible_and_ascend(problem: od.DesignProblem) -> None:
    """Proposition "after each block updating under BCA pi is always in C", and F never decreases.

    Sweep after sweep, by running one more each time from the same start.
    """
    before = -np.inf
    for sweeps in range(5):
        if sweeps == 0:
            w = problem.uniform()
        else:
            w = od.solve(problem, tol=1e-14, method="bca", max_iter=sweeps).weights
        assert_feasible(problem, w)
        p = plain(problem, w)  # raises, or has an infinite condition, if the rank is lost
        assert np.isfinite(od.certify(problem, w).gap)
        assert p.rank == problem.rank
        assert p.log_det >= before - 2 * p.error - 10 * EPS * abs(p.log_det)
        before = p.log_det


@settings(max_examples=20)
@given(weighted(), st.sampled_from(METHODS))
def test_no_method_ends_below_its_start(case: tuple[od.DesignProblem, np.ndarray], method: str) -> None:
    """A warm start is only ever improved, up to the gap that was asked for."""
    problem, w = case
    r = od.solve(problem, tol=1e-4, method=method, start=w)
    p = plain(problem, w)
    assert r.log_det >= p.log_det - r.gap - 2 * p.error
