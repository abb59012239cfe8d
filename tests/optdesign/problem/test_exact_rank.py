"""Exact ranks of floats, against rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdesign.problem import exact_rank as modular
from optdesign.problem.source import Source
from optdesign.testing import matrices

pytestmark = pytest.mark.kernels


def exact_rank(x: np.ndarray) -> int:
    rows = [[Fraction(float(v)) for v in row] for row in x]
    rank = 0
    for j in range(x.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            c = rows[i][j] / rows[rank][j]
            rows[i] = [a - c * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e100, 1e100))
def test_residues_are_those_of_the_exact_values(a: float, b: float) -> None:
    for prime, powers in zip(modular.PRIMES, modular.POWERS, strict=True):
        exact = [v.numerator * pow(v.denominator, -1, prime) % prime for v in (Fraction(a), Fraction(b))]
        got = [int(modular.residue(v, prime, powers)) for v in (a, b)]
        assert got == exact
        product = Fraction(a) * Fraction(b)
        assert got[0] * got[1] % prime == product.numerator * pow(product.denominator, -1, prime) % prime


@given(st.integers(1, min(modular.PRIMES) - 1))
def test_inverses(a: int) -> None:
    for prime in modular.PRIMES:
        assert int(modular.inverse_modulo(a, prime)) * a % prime == 1


def test_a_prime_in_the_data_is_no_coincidence() -> None:
    """Minors that one of the primes divides: the other decides."""
    for prime in map(float, modular.PRIMES):
        for x in ([[prime]], [[1.0, 1.0], [1.0, 1.0 + prime]]):
            n = len(x)
            arguments = Source(np.array(x)), np.zeros(n, np.int64), np.arange(n), np.array([n])
            assert modular.compare_ranks(*arguments).tolist() == [modular.SAME_RANK]
    # Determinant of the first prime, entries near 2^53: told from parallel by the second.
    p = modular.PRIMES[0]
    a, b = 2**53 - 111, 2**52 + 12345
    while math.gcd(a, b) != 1:
        b += 1
    d = p * pow(a, -1, b) % b
    rows = np.array([[a, b], [(a * d - p) // b, d]], dtype=float)
    verdict = modular.compare_ranks(Source(rows), np.zeros(2, np.int64), np.array([0]), np.array([1]))
    assert verdict.tolist() == [modular.LARGER]


@given(matrices(), st.integers(0, 2**32 - 1), st.booleans())
def test_verdicts(x: np.ndarray, seed: int, noisy: bool) -> None:
    """Dependent rows are SMALLER, a basis of a part of the span LARGER, and a basis of it all is the same."""
    rng = np.random.default_rng(seed)
    x = x * 10.0 ** rng.uniform(-30, 30, size=x.shape[1])
    if noisy:  # dependent rows are then independent by a rounding
        x = x * (1 + 2.0**-52 * rng.integers(0, 2, size=x.shape))
    blocks = rng.integers(0, 2, size=len(x))
    basis, ranks = [], np.zeros(2, np.int64)
    expected = []
    for b in range(2):
        own = np.flatnonzero(blocks == b)
        chosen = rng.permutation(own)[: rng.integers(0, min(len(own), x.shape[1]) + 1)]
        ranks[b] = len(chosen)
        basis.append(chosen)
        if exact_rank(x[chosen]) < len(chosen):
            expected.append(modular.SMALLER)
        else:
            expected.append(modular.LARGER if exact_rank(x[own]) > len(chosen) else modular.SAME_RANK)
    assert modular.compare_ranks(Source(x), blocks, np.concatenate(basis), ranks).tolist() == expected


def test_single_precision_counts_as_what_it_is() -> None:
    x = np.float32([[0.1, 0.2], [0.2, 0.4], [0.3, 0.6]])
    third = exact_rank(x.astype(float)) > 1  # 0.3 and 0.6 are rounded alike, and so is their ratio
    verdict = modular.compare_ranks(Source(x), np.zeros(3, np.int64), np.array([0]), np.array([1]))
    assert verdict.tolist() == [modular.LARGER if third else modular.SAME_RANK]
