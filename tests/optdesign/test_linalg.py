"""Pseudo-determinants and pseudo-inverses against NumPy, SciPy and their definitions."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from problems import EPS

from optdesign import linalg
from optdesign.testing import matrices, semidefinite

# Eigenvalues of the strategy lie in {0} or [1/4, 4]: condition at most 16, so 1e3 eps covers the rounding
# of an eigendecomposition of a 4 x 4 matrix and of products of its factors with room for cond^2 = 256.
RTOL = 1e3 * EPS


@given(semidefinite())
def test_pseudo_inverse_is_numpys(a: np.ndarray) -> None:
    expected = np.linalg.pinv(a, hermitian=True, rcond=1e-8)
    np.testing.assert_allclose(linalg.pseudo_inverse(a), expected, rtol=0, atol=RTOL * 4)


@given(semidefinite())
def test_pseudo_inverse_by_definition(a: np.ndarray) -> None:
    v = linalg.pseudo_inverse(a)
    for got, expected in [(a @ v @ a, a), (v @ a @ v, v), ((a @ v).T, a @ v), ((v @ a).T, v @ a)]:
        np.testing.assert_allclose(got, expected, rtol=0, atol=RTOL * 16)


@given(semidefinite())
def test_pseudo_det_is_the_product_of_non_zero_eigenvalues(a: np.ndarray) -> None:
    values = np.linalg.eigvalsh(a)
    values = values[values > 0.1]
    assert linalg.pseudo_det(a) == pytest.approx(np.prod(values), rel=RTOL)
    assert linalg.log_pseudo_det(a) == pytest.approx(np.sum(np.log(values)), abs=RTOL * 4)


@given(semidefinite(), st.integers(0, 4))
def test_degree_is_zero_above_the_rank_and_infinite_below(a: np.ndarray, degree: int) -> None:
    rank = int(np.sum(np.linalg.eigvalsh(a) > 0.1))
    if degree > len(a):
        with pytest.raises(
            ValueError, match=rf"degree must be an integer between 0 and {len(a)}; got {degree}"
        ):
            linalg.pseudo_det(a, degree)
    elif degree == rank:
        assert linalg.pseudo_det(a, degree) == linalg.pseudo_det(a)
    else:
        assert linalg.pseudo_det(a, degree) == (0.0 if degree > rank else np.inf)


@given(semidefinite(), st.integers(0, 4))
def test_degree_by_its_limit(a: np.ndarray, degree: int) -> None:
    """det(A + eps I) / eps^(n - s) grows like eps^(s - rank): compare two values of eps."""
    n, rank = len(a), int(np.sum(np.linalg.eigvalsh(a) > 0.1))
    if degree > n:
        return
    one, two = (np.linalg.det(a + e * np.eye(n)) / e ** (n - degree) for e in (1e-3, 5e-4))
    # Each non-zero eigenvalue, at least 1/4, changes by the factor (v + 1e-3) / (v + 5e-4) <= 1.002.
    growth = np.log2(one / two)
    assert growth == pytest.approx(degree - rank, abs=n * np.log2(1.002) + 1e-6)
    expected = linalg.pseudo_det(a, degree)
    assert (growth > 0.5) == (expected == 0.0)
    assert (growth < -0.5) == (expected == np.inf)


@given(matrices())
def test_range_basis_is_orthonormal_and_spans(x: np.ndarray) -> None:
    q = linalg.range_basis(x.T)
    assert q.shape == (x.shape[1], np.linalg.matrix_rank(x))
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=RTOL)
    np.testing.assert_allclose(q @ (q.T @ x.T), x.T, atol=RTOL * np.abs(x).max())
    assert scipy.linalg.orth(x.T).shape == q.shape


@given(semidefinite())
def test_eigen_range_reconstructs(a: np.ndarray) -> None:
    values, vectors = linalg.eigen_range(a)
    np.testing.assert_allclose((vectors * values) @ vectors.T, a, atol=RTOL * 4)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=RTOL)


def test_a_larger_rtol_drops_small_eigenvalues() -> None:
    a = np.diag([1.0, 1e-5])
    assert linalg.pseudo_det(a) == pytest.approx(1e-5, rel=RTOL)
    assert linalg.pseudo_det(a, rtol=1e-4) == pytest.approx(1.0, rel=RTOL)
    assert linalg.log_pseudo_det(a, rtol=1e-4) == pytest.approx(0.0, abs=RTOL)
    assert linalg.pseudo_inverse(a, rtol=1e-4)[1, 1] == 0.0
    assert linalg.range_basis(a, rtol=1e-4).shape == (2, 1)


def test_zero_and_empty_matrices() -> None:
    assert linalg.pseudo_det(np.zeros((2, 2))) == 1.0
    assert linalg.pseudo_det(np.zeros((2, 2)), 1) == 0.0
    assert linalg.log_pseudo_det(np.zeros((2, 2))) == 0.0
    assert not linalg.pseudo_inverse(np.zeros((2, 2))).any()
    assert linalg.range_basis(np.zeros((3, 2))).shape == (3, 0)
    assert linalg.pseudo_det(np.zeros((0, 0))) == 1.0


def test_the_logarithm_does_not_overflow() -> None:
    assert linalg.log_pseudo_det(np.eye(3) * 1e300) == pytest.approx(900 * np.log(10), rel=RTOL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.pseudo_det([1.0, 2.0]), r"a must be a square matrix; got shape \(2,\)"),
        (lambda: linalg.pseudo_det(np.ones((2, 3))), r"a must be a square matrix; got shape \(2, 3\)"),
        (lambda: linalg.pseudo_inverse([[np.nan]]), "a must be finite; .* Clean"),
        (lambda: linalg.pseudo_inverse([[np.inf]]), "a must be finite"),
        (lambda: linalg.pseudo_inverse([[1.0, 2.0], [0.0, 1.0]]), "a must be symmetric; .* Pass"),
        (lambda: linalg.log_pseudo_det(np.diag([1.0, -2.0])), "a must be positive semi-definite; .* -2. If"),
        (
            lambda: linalg.pseudo_det(np.eye(2), -1),
            "degree must be an integer between 0 and 2; got -1. Leave",
        ),
        (
            lambda: linalg.pseudo_det(np.eye(2), 1.5),
            "degree must be an integer between 0 and 2; got 1.5. Leave",
        ),
        (
            lambda: linalg.pseudo_det(np.eye(2), 2.0),
            "degree must be an integer between 0 and 2; got 2.0. Leave",
        ),
        (
            lambda: linalg.rank_one_update(np.diag([1.0, 0.0]), [0.0, 2.0], 1.0),
            "u must lie in the range of A; 2 of",
        ),
        (
            lambda: linalg.rank_one_update(np.diag([1.0, 0.0]), [1.0, 1e-3], 1.0),
            "u must lie in the range of A; 0.001",
        ),
        (lambda: linalg.range_basis([1.0, 2.0]), r"a must be a matrix; got shape \(2,\)"),
        (lambda: linalg.range_basis([[np.nan, 1.0]]), "a must be finite"),
        (lambda: linalg.rank_one_update(np.eye(2), [1.0, 0.0], -1.0), "the update must preserve the range"),
        (lambda: linalg.rank_one_update(np.eye(2), [1.0, 0.0], -2.0), "the update must preserve the range"),
        (lambda: linalg.rank_one_update([[3e16]], [1.0], 1.0), r"u = 3e\+16 is not between 1e-12 and 1e\+12"),
    ],
)
def test_errors_say_what_to_do(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("size", [5e-308, 1e-200, 1e200, 1e308])
def test_matrices_near_the_ends_of_the_range(size: float) -> None:
    a = size * np.array([[1.0, 0.5], [0.5, 1.0]])
    inverse = np.array([[4.0, -2.0], [-2.0, 4.0]]) / 3
    np.testing.assert_allclose(linalg.pseudo_inverse(a) * size, inverse, rtol=1e-12)
    assert linalg.log_pseudo_det(a) == pytest.approx(2 * np.log(size) + np.log(0.75), rel=1e-12)
    assert linalg.range_basis(a).shape == (2, 2)


def test_bad_arguments_are_explained() -> None:
    eye = np.eye(2)
    for call, words in [
        (lambda: linalg.pseudo_det([[2, 1j], [-1j, 2]]), "a must be real numbers"),
        (lambda: linalg.pseudo_det([["a"]]), "a must be real numbers"),
        (lambda: linalg.pseudo_det([[1, 2], [3]]), "a must be a rectangular array"),
        (lambda: linalg.pseudo_det(eye, rtol=np.nan), "rtol must be at least 0"),
        (lambda: linalg.pseudo_det(eye, rtol=-1), "rtol must be at least 0"),
        (lambda: linalg.pseudo_inverse([[1e-320]]), "inverse in the range of floating point"),
        (lambda: linalg.rank_one_update(eye, [1.0, 0.0, 0.0], 1.0), "an entry for each row"),
        (lambda: linalg.rank_one_update(eye, [1.0, 0.0], np.inf), "must be finite"),
        (lambda: linalg.det_ratio(eye, [np.nan, 0.0], 1.0), "must be finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


def test_partial_products_of_a_pseudo_determinant_stay_in_range() -> None:
    assert linalg.pseudo_det(np.diag([3e-7] * 50 + [3e6] * 50)) == pytest.approx(3.0**100 * 1e-50)


def test_eigenvalues_beyond_the_range_of_doubles() -> None:
    """The eigenvalues are 2.7e308 and 0.7e308, or no doubles because the smallest ones are far apart."""
    large = np.array([[1.7e308, 1e308], [1e308, 1.7e308]])
    expected = np.log(2.7) + np.log(0.7) + 616 * np.log(10)
    assert linalg.log_pseudo_det(large) == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(
        1e308 * linalg.pseudo_inverse(large), np.array([[1.7, -1.0], [-1.0, 1.7]]) / 1.89, rtol=1e-12
    )
    small = np.ldexp([[2.0, 1.0], [1.0, 3.0]], -1074)
    assert linalg.log_pseudo_det(small) == pytest.approx(np.log(5) - 2148 * np.log(2), rel=1e-14)


def test_rank_one_updates_near_the_ends_of_the_range() -> None:
    half = linalg.rank_one_update([[1e-300]], [1.0], 1e300)
    np.testing.assert_allclose(half, [[5e-301]], rtol=1e-12)
    np.testing.assert_allclose(linalg.rank_one_update([[1e300]], [1e-150], 1.0), [[5e299]], rtol=1e-12)
    assert linalg.det_ratio([[1.0]], [1e200], 1e-300) == pytest.approx(1e100, rel=1e-12)
    for size in (1e-200, 1e200):
        with pytest.raises(ValueError, match="u must lie in the range of A"):
            linalg.rank_one_update(np.diag([1.0, 0.0]), [size, size], 1e-300)
    with pytest.raises(ValueError, match="inf is not between"):
        linalg.rank_one_update([[1.0]], [1e200], 1.0)
