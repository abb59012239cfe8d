"""Certificates of weights of any origin, against plain NumPy and against rational arithmetic."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from problems import EPS, assert_bounds, exact_gap, plain, ranks_of

import optdesign as od
from optdesign.algebra import passes, whitening
from optdesign.algebra.blocks import WIDE
from optdesign.design import certificate
from optdesign.testing import weighted

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


@pytest.mark.kernels
@given(weighted())
def test_certificate_is_that_of_plain_numpy(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    problem, w = case
    c, p = od.certify(problem, w), plain(problem, w)
    assert c.rank == p.rank
    np.testing.assert_allclose(c.variances, p.variances, rtol=0, atol=2 * p.error / problem.budgets.min())
    assert abs(c.log_det - p.log_det) <= 2 * p.error + 10 * EPS * abs(p.log_det)
    assert_bounds(c, p)


@given(weighted(max_candidates=8))
def test_certificate_is_that_of_rational_arithmetic(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    problem, w = case
    c, exact = od.certify(problem, w), max(0.0, exact_gap(problem, w))
    assert 0 <= c.gap - exact <= 2 * plain(problem, w).error + c.rounding


@pytest.mark.parametrize("seed", range(40))
def test_near_collinear_candidates_cost_the_digits_they_lack(seed: int) -> None:
    """Candidates that differ by a fraction e of their norm: what is proved is true, with its own error."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    n, e = int(rng.integers(d, 9)), 10.0 ** rng.uniform(-7, -2)
    x = rng.normal(size=(1, d)) + e * rng.normal(size=(n, d))
    if seed % 2:
        x *= 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    problem = od.DesignProblem(x)
    c, exact = od.certify(problem, problem.uniform()), exact_gap(problem, problem.uniform())
    assert 0 <= c.gap - exact <= 2 * c.rounding
    # More than that may be left open only where it is little beside the gap.
    allowed = max(certificate.SHARES.g * c.g_value, certificate.SHARES.gap * c.gap)
    assert c.rounding <= allowed * (1 + 1e-6)


@given(weighted())
def test_the_gap_bounds_the_distance_to_any_other_design(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    problem, w = case
    c, other = od.certify(problem, w), od.certify(problem, problem.uniform())
    rounding = plain(problem, w).error + plain(problem, problem.uniform()).error
    assert other.log_det - c.log_det <= c.gap + rounding
    assert c.log_det - other.log_det <= other.gap + rounding


@given(weighted(max_candidates=8))
def test_weights_that_lose_rank_prove_nothing(case: tuple[od.DesignProblem, np.ndarray]) -> None:
    """All of a group's budget on one candidate; where that loses a dimension the gap is infinite."""
    problem, w = case
    first = np.unique(problem.groups, return_index=True)[1]
    corner = np.zeros_like(w)
    corner[first] = problem.budgets
    kept = ranks_of(problem, corner)
    c = od.certify(problem, corner)
    assert c.rank == problem.rank
    if sum(kept) < problem.rank:
        assert c.gap == c.relative_gap == c.g_value == np.inf
        assert c.efficiency == 0.0
        assert c.log_det == -np.inf
    else:
        p = plain(problem, corner)
        assert_bounds(c, p)
    # Candidates in the range of the information have a finite variance, the others an infinite one.
    for b in range(problem.n_parameter_blocks):
        rows = np.flatnonzero(problem.parameter_blocks == b)
        used = rows[corner[rows] > 0]
        for n in rows:
            outside = np.linalg.matrix_rank(problem.candidates[[*used, n]]) > kept[b]
            assert np.isinf(c.variances[n]) == outside


@pytest.mark.parametrize("miss", [9e-7, -9e-7, 1e-9, 1e-11])
@given(case=weighted())
def test_small_infeasibility_is_forgiven(case: tuple[od.DesignProblem, np.ndarray], miss: float) -> None:
    """The certificate is that of the weights rescaled, and not of others that are larger by a millionth.

    Rescaling is right to rounding, so what is left of the miss is a billionth of it or less.
    """
    problem, w = case
    near, exact = od.certify(problem, w * (1 + miss)), od.certify(problem, w)
    rounding = 4 * plain(problem, w).error + near.rounding + exact.rounding
    assert abs(near.g_value - exact.g_value) <= rounding
    np.testing.assert_allclose(
        near.variances, exact.variances, rtol=0, atol=2 * rounding / problem.budgets.min()
    )
    assert abs(near.log_det - exact.log_det) <= rounding + 10 * EPS * abs(exact.log_det)


def test_negligible_negative_weights_are_set_to_zero() -> None:
    p = od.DesignProblem(X)
    assert od.certify(p, [0.5, 0.5, -1e-9]).variances[2] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], r"weights must have one entry per candidate, shape \(3,\); got \(2,\). Pass"),
        ([[0.5, 0.5, 0.0]], r"weights must have one entry per candidate, .* got \(1, 3\)"),
        (1.0, r"weights must have one entry per candidate, .* got \(\)"),
        ([0.5, np.nan, 0.5], r"weights must be finite; weights\[1\] = nan. Replace"),
        ([0.5, 0.5, np.inf], r"weights must be finite; weights\[2\] = inf. Replace"),
        ([1.1, -0.1, 0.0], r"weights must not be negative; weights\[1\] = -0.1. Clip"),
        (
            [0.5, 0.6, 0.0],
            "weights must sum to the budget of each group; group 0 sums to 1.1, its budget is 1. R",
        ),
        ([0.0, 0.0, 0.0], "weights must sum to the budget of each group; group 0 sums to 0"),
    ],
)
def test_bad_weights_are_named(weights, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.certify(od.DesignProblem(X), weights)


def test_slack_is_relative_to_the_budget_of_the_group() -> None:
    p = od.DesignProblem(X, groups=[0, 0, 1], budgets=[1e-6, 1e6])
    assert np.isfinite(od.certify(p, [5e-7, 5e-7, 1e6 + 0.5]).gap)
    with pytest.raises(ValueError, match=r"group 0 sums to 1.1e-06"):
        od.certify(p, [5e-7, 6e-7, 1e6])
    with pytest.raises(ValueError, match=r"weights\[0\] = -1e-07"):
        od.certify(p, [-1e-7, 1.1e-6, 1e6])


@pytest.mark.parametrize("kind", [list, tuple, np.float32, "read-only", "strided"])
def test_weights_of_any_kind_and_never_modified(kind) -> None:
    p = od.DesignProblem(X)
    w = np.array([0.5, 0.25, 0.25])
    if kind == "read-only":
        w.flags.writeable = False
        given_w = w
    elif kind == "strided":
        given_w = np.repeat(w, 2)[::2]
    else:
        given_w = w.astype(kind) if kind is np.float32 else kind(w)
    before = np.array(given_w).tobytes()
    assert od.certify(p, given_w).gap == od.certify(p, w.copy()).gap
    assert np.array(given_w).tobytes() == before


def test_certificates_are_frozen() -> None:
    c = od.certify(od.DesignProblem(X), [0.5, 0.5, 0.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        c.gap = 0.0  # type: ignore[misc]


@pytest.mark.parametrize("share", [0.5, 1e-6, 1e-10])
def test_variances_of_a_design_that_loses_rank(share: float) -> None:
    """Directions that carry little are still informed: 1 / w along the axes, infinite where w is zero."""
    p = od.DesignProblem(np.eye(3))
    c = od.certify(p, [1 - share, share, 0.0])
    np.testing.assert_allclose(c.variances, [1 / (1 - share), 1 / share, np.inf], rtol=100 * EPS)


@pytest.mark.parametrize("dim", [2, WIDE + 1])
def test_a_block_that_loses_rank_leaves_the_variances_of_others(dim: int) -> None:
    """1 / w along the axes of both blocks, whatever their lengths; the first leaves out its last axis."""
    x, blocks = np.vstack([np.eye(dim), 2 * np.eye(dim)]), np.repeat([0, 1], dim)
    w = np.arange(1.0, 2 * dim + 1)
    w[dim - 1] = 0.0
    w /= w.sum()
    c = od.certify(od.DesignProblem(x, parameter_blocks=blocks), w)
    expected = np.concatenate([1 / w[: dim - 1], [np.inf], 1 / w[dim:]])
    np.testing.assert_allclose(c.variances, expected, rtol=100 * EPS)


@pytest.mark.kernels
@pytest.mark.parametrize("share", [1e-8, 1e-11, 1e-12, 1e-13, 3e-14])
def test_directions_that_carry_almost_nothing_are_still_seen(share: float) -> None:
    """U = s e1 e1' + c (1, 1)(1, 1)' has det s c and inverse entries 1 / s and 1 / c + 1 / s.

    Its Cholesky factor cancels to a pivot of s / c: small, but far more than rounding.
    """
    p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    c = od.certify(p, [share, 0.0, 1 - share])
    carried = 0.25 * (1 - share)
    assert np.isfinite(c.gap)
    np.testing.assert_allclose(c.variances, [1 / share, 1 / share + 1 / carried, 0.25 / carried], rtol=1e-12)
    assert c.log_det == pytest.approx(np.log(share) + np.log(carried), rel=1e-13)


def test_feasibility_ends_at_a_millionth_of_the_budget() -> None:
    p = od.DesignProblem(np.eye(2), budgets=8.0)
    assert np.isfinite(od.certify(p, [4.0, 4.0 + 8 * 0.9e-6]).gap)
    with pytest.raises(ValueError, match="must sum to the budget"):
        od.certify(p, [4.0, 4.0 + 8 * 1.1e-6])
    with pytest.raises(ValueError, match="must not be negative"):
        od.certify(p, [8 + 8 * 1.1e-6, -8 * 1.1e-6])


def test_more_candidates_than_are_sorted_at_a_time() -> None:
    """Several chunks, each of several blocks and tiles, groups in no order."""
    rng = np.random.default_rng(0)
    n = 2 * passes.CHUNK + passes.TILE + 1
    groups, blocks = rng.integers(0, 7, size=n), rng.integers(0, 3, size=n)
    problem = od.DesignProblem(rng.normal(size=(n, 3)), groups, blocks, budgets=np.arange(1.0, 8.0))
    w = problem.uniform()
    c, p = od.certify(problem, w), plain(problem, w)
    # Both obey p.error for budget times variance; the budgets are at least one.
    np.testing.assert_allclose(c.variances, p.variances, rtol=0, atol=2 * p.error)
    assert_bounds(c, p)
    white = whitening.whitened(problem, problem.rows, np.arange(n), w)[0]
    g, largest = passes.variances_of(problem, problem.rows, white)
    np.testing.assert_array_equal(g, c.variances)
    np.testing.assert_array_equal(largest, [g[groups == i].max() for i in range(7)])


@pytest.mark.parametrize("weights", [[1e308, 1e308, 0.5, 0.5], [0.5, 0.5, 1e308, 1e308]])
def test_sums_that_overflow_are_far_from_any_budget(weights: list[float]) -> None:
    p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 2.0]], groups=[0, 0, 1, 1])
    best = od.solve(p)
    with np.errstate(over="ignore", invalid="ignore"):  # plain Python, unlike kernels, says that it overflows
        with pytest.raises(ValueError, match="weights must sum to the budget of each group"):
            od.certify(p, weights)
        with pytest.raises(ValueError, match="weights must sum to the budget of each group"):
            od.efficiency(p, weights, best=best)


def test_high_dimensions_do_not_need_refined_coordinates():
    """The allowance grows with the third power of the dimension. Coordinates have a small part in it."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(640, 320)))
    found = od.certify(problem, problem.uniform())
    assert "refined" not in vars(problem)
    assert found.rounding < 1e-8 * found.g_value
