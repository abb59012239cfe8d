"""Exact ranks of floats, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import matrices

from optdesign import modular

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
    def residue(v: Fraction) -> int:
        return v.numerator * pow(v.denominator, -1, modular.PRIME) % modular.PRIME

    assert modular._residue(a, modular.POWERS) == residue(Fraction(a))
    exact = residue(Fraction(a) * Fraction(b))
    product = modular._residue(a, modular.POWERS) * modular._residue(b, modular.POWERS)
    assert product % modular.PRIME == exact


@given(st.integers(1, modular.PRIME - 1))
def test_inverses(a: int) -> None:
    assert int(modular._inverse(a)) * a % modular.PRIME == 1


@given(matrices(), st.integers(0, 2**32 - 1), st.booleans())
def test_verdicts(x: np.ndarray, seed: int, noisy: bool) -> None:
    """Any rows as pivots: dependent ones are SMALLER, a basis of a part of the span LARGER, of all SAME."""
    rng = np.random.default_rng(seed)
    x = x * 10.0 ** rng.uniform(-30, 30, size=x.shape[1])
    if noisy:  # dependent rows are then independent by a rounding
        x = x * (1 + 2.0**-52 * rng.integers(0, 2, size=x.shape))
    blocks = rng.integers(0, 2, size=len(x))
    pivots, ranks = np.full((2, x.shape[1]), -1), np.zeros(2, np.int64)
    expected = []
    for b in range(2):
        own = np.flatnonzero(blocks == b)
        chosen = rng.permutation(own)[: rng.integers(0, min(len(own), x.shape[1]) + 1)]
        ranks[b] = len(chosen)
        pivots[b, : len(chosen)] = chosen
        if exact_rank(x[chosen]) < len(chosen):
            expected.append(modular.SMALLER)
        else:
            expected.append(modular.LARGER if exact_rank(x[own]) > len(chosen) else modular.SAME)
    assert modular.compare_ranks(x, blocks, pivots, ranks).tolist() == expected


def test_single_precision_counts_as_what_it_is() -> None:
    x = np.float32([[0.1, 0.2], [0.2, 0.4], [0.3, 0.6]])
    third = exact_rank(x.astype(float)) > 1  # 0.3 and 0.6 are rounded alike, and so is their ratio
    verdict = modular.compare_ranks(x, np.zeros(3, np.int64), np.array([[0, -1]]), np.array([1]))
    assert verdict.tolist() == [modular.LARGER if third else modular.SAME]
