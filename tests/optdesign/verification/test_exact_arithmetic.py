"""The arithmetic of verification, against rational numbers."""

from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdesign.problem import exact_rank as modular
from optdesign.verification import exact_arithmetic as extended
from optdesign.verification.exact_arithmetic import exact_rank, factorise, information


def rationals(x: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in row] for row in x]


def determinant(a: list[list[Fraction]]) -> Fraction:
    a, out = [row[:] for row in a], Fraction(1)
    for k in range(len(a)):
        j = next((i for i in range(k, len(a)) if a[i][k]), None)
        if j is None:
            return Fraction(0)
        if j != k:
            a[k], a[j], out = a[j], a[k], -out
        out *= a[k][k]
        for i in range(k + 1, len(a)):
            c = a[i][k] / a[k][k]
            a[i] = [u - c * v for u, v in zip(a[i], a[k], strict=True)]
    return out


def rational_rank(x: np.ndarray) -> int:
    """The order of the largest minor that is not zero."""
    rows = rationals(x)
    n, d = x.shape
    for r in range(min(n, d), 0, -1):
        for i in combinations(range(n), r):
            for j in combinations(range(d), r):
                if determinant([[rows[a][b] for b in j] for a in i]):
                    return r
    return 0


def rational_information(x: np.ndarray, w: np.ndarray) -> list[list[Fraction]]:
    rows, weights, d = rationals(x), [Fraction(float(v)) for v in w], x.shape[1]
    return [
        [
            sum((c * row[j] * row[k] for c, row in zip(weights, rows, strict=True)), Fraction(0))
            for k in range(d)
        ]
        for j in range(d)
    ]


def pseudo_determinant(u: list[list[Fraction]], rank: int) -> Fraction:
    """The sum of the principal minors of an order is the elementary symmetric function of the eigenvalues."""
    return sum(
        (determinant([[u[a][b] for b in j] for a in j]) for j in combinations(range(len(u)), rank)),
        Fraction(0),
    )


def log(value: Fraction) -> float:
    with localcontext(Context(prec=60)):
        return float((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def test_the_prime_is_a_prime_and_another_one() -> None:
    p = extended.PRIME
    assert p < 2**31
    assert all(p % q for q in range(2, int(p**0.5) + 1))
    assert p not in modular.PRIMES
    assert len(set(extended.POWERS.tolist())) == len(extended.POWERS)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_residues_are_those_of_the_fractions(value: float) -> None:
    exact = Fraction(value)
    p = extended.PRIME
    assert extended.residues(np.array([value]))[0] == exact.numerator * pow(exact.denominator, -1, p) % p


@pytest.mark.parametrize(
    "x",
    [
        [[0.1, 0.3], [0.3, 0.9]],  # 0.9 is not three times 0.3
        [[0.1, 0.3], [0.2, 0.6]],  # 0.6 is twice 0.3
        [[1.0, 2.0**61], [1.0, 1.0]],
        [[1.0, 2.0**31 - 1.0], [1.0, -1.0]],
        [[7.0, 1.0], [49.0, 7.0], [21.0, 3.0], [35.0, 5.0], [1e-16, 3e-16]],
        [[0.0, 0.0], [0.0, 5e-324]],
        [[0.0, 0.0]],
        [[1e60, 1e-60, 1.0], [1.0, 1e-60, 1e-60], [1e60, 2e-60, 1.0]],
        [[0.1, 0.2, 0.1 + 0.2], [0.3, 0.5, 0.8], [1.0, 2.0, 3.0]],
    ],
)
def test_ranks_are_exact(x: list) -> None:
    array = np.array(x)
    for support in range(len(array) + 1):
        first, rank = exact_rank(array, np.arange(support))
        assert first == rational_rank(array[:support])
        assert rank == rational_rank(array)


@pytest.mark.parametrize("seed", range(10))
def test_ranks_of_products(seed: int) -> None:
    """Integer factors of a known inner dimension, with rows and columns scaled by powers of two."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 5))
    a, b = rng.integers(-9, 10, size=(400, r)), rng.integers(-9, 10, size=(r, 6))
    x = (a @ b) * 2.0 ** rng.integers(-200, 200, size=6) * 2.0 ** rng.integers(-200, 200, size=(400, 1))
    assert exact_rank(x, np.arange(2))[1] == np.linalg.matrix_rank(a @ b)


def test_the_last_of_many_rows_counts() -> None:
    x = np.zeros((70_000, 3))
    x[:, 0], x[-1, 2] = 1.0, 1e-50
    assert exact_rank(x, np.arange(10)) == (1, 2)


@pytest.mark.parametrize("seed", range(5))
def test_information_has_no_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-60, 60, size=3)
    x[rng.random(size=x.shape) < 0.2] = 0.0
    w = rng.random(7) * 10.0 ** rng.integers(-30, 5, size=7)
    u = information(x, w)
    scale = [Fraction(2) ** int(e) for e in u.shift]
    got = [
        [Fraction(2) ** u.exponent * scale[j] * scale[k] * u.entries[j, k] for k in range(3)]
        for j in range(3)
    ]
    assert got == rational_information(x, w)


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Rows, weights and the exact rank."""
    rng = np.random.default_rng(0)
    plain, w = rng.normal(size=(8, 4)), rng.random(8)
    a, b = rng.integers(-9, 10, size=(8, 2)), rng.integers(-9, 10, size=(2, 4))
    units = 2.0 ** np.array([-190, -60, 60, 190])
    near = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    return {
        "plain": (plain, w, 4),
        "plain, units": (plain * units, w, 4),
        "deficient": (1.0 * a @ b, w, 2),
        "deficient, units": (a @ b * units, w, 2),
        "a column of zeros": (plain * [1, 0, 1, 1], w, 3),
        "more digits than are tried first": (near, np.array([1.0, 1e-60]), 2),
        "one row": (plain[:1], w[:1], 1),
    }


@pytest.mark.parametrize("name", cases())
def test_log_det_and_variances(name: str) -> None:
    x, w, rank = cases()[name]
    u = rational_information(x, w)
    factor = factorise(information(x, w), rank)
    assert float(factor.log_det) == pytest.approx(log(pseudo_determinant(u, rank)), rel=1e-15)
    g = factor.variances(x)
    assert np.sum(w * g) == pytest.approx(rank, rel=1e-14)
    if rank == x.shape[1]:
        # By Cramer's rule for 1 - w g = det(U - w x x') / det U, one row at a time.
        for n, row in enumerate(rationals(x)):
            less = [
                [u[j][k] - Fraction(float(w[n])) * row[j] * row[k] for k in range(rank)] for j in range(rank)
            ]
            share = 1 - determinant(less) / determinant(u)
            assert g[n] == pytest.approx(float(share / Fraction(float(w[n]))), rel=1e-15)
    for distances in factor.left_out(x):
        np.testing.assert_array_less(distances, 1e-20)


@pytest.mark.parametrize("name", [name for name in cases() if not name.startswith("more digits")])
def test_the_inverse_gives_variances_to_double_precision(name: str) -> None:
    x, w, rank = cases()[name]
    factor = factorise(information(x, w), rank)
    y = x[:, factor.columns] @ factor.inverse()
    np.testing.assert_allclose(np.sum(y * y, axis=1), factor.variances(x), rtol=1e-9)


def test_other_information_in_whitened_coordinates() -> None:
    x, w, rank = cases()["plain"]
    v = w[::-1].copy()
    factor = factorise(information(x, w), rank)
    other = factor.relative(information(x, v))
    p, q = (x.T * w) @ x, (x.T * v) @ x
    np.testing.assert_allclose(
        np.linalg.eigvalsh(other), np.sort(np.linalg.eigvals(np.linalg.solve(p, q)).real), rtol=1e-10
    )
    assert np.linalg.slogdet(other)[1] == pytest.approx(
        float(factorise(information(x, v), rank).log_det - factor.log_det), rel=1e-13
    )
    np.testing.assert_allclose(factor.relative(information(x, w)), np.eye(rank), atol=1e-15)


def test_a_rank_that_is_not_there_has_no_factor() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert factorise(information(x, np.ones(2)), 1) is not None
    assert factorise(information(x, np.ones(2)), 2) is None


def test_what_is_left_out_of_a_lower_rank() -> None:
    """Over the roots of the diagonal the rows are (0.6, 0) and (0.8, 1), and U is [[1, 0.8], [0.8, 1]]."""
    x = np.array([[3.0, 0.0], [4.0, 2.0**-20]])
    factor = factorise(information(x, np.ones(2)), 1)
    assert factor.columns.tolist() == [0]
    left = factor.left_out(x)
    np.testing.assert_allclose(left.ratio, [0.6 * 0.8, 1 - 0.8 * 0.8], rtol=1e-14)
    np.testing.assert_allclose(left.share, left.ratio / [0.6, np.hypot(0.8, 1)], rtol=1e-14)
    np.testing.assert_allclose(left.plain, left.ratio * 2.0**-20 / 5, rtol=1e-14)


def test_the_callers_context_does_not_matter() -> None:
    x, w, rank = cases()["plain"]
    expected = factorise(information(x, w), rank)
    with localcontext(Context(prec=3, traps=[Inexact])):
        got = factorise(information(x, w), rank)
        np.testing.assert_array_equal(got.variances(x), expected.variances(x))
    assert got.log_det == expected.log_det


def test_what_is_left_out_is_measured_by_the_shortest_axis() -> None:
    """U of (1, 0, 0) and (1, 1, 0) has the correlation 1 / sqrt(2), so its second pivot is a half.

    Axes are roots of pivots: the third coordinate of a candidate counts sqrt(2) times.
    """
    x = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    factor = extended.factorise(extended.information(x, np.array([0.5, 0.5])), 2)
    assert float(factor.smallest) == 0.5
    left = factor.left_out(np.array([[0.0, 0.0, 1e-3], [1.0, 0.0, 1e-3]]))
    np.testing.assert_allclose(left.ratio, [np.sqrt(2) * 1e-3] * 2, rtol=1e-12)
    np.testing.assert_allclose(left.share, [1.0, 1e-3 / np.hypot(1.0, 1e-3)], rtol=1e-12)
