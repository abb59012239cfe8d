"""Error-free transformations and the bounds that proofs rest on, against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optdesign.numbers.roundoff import UNIT, gamma, sum_groups, two_product, two_sum
from optdesign.problem import coordinates as rows

pytestmark = pytest.mark.kernels

numbers = st.floats(-1e60, 1e60).filter(lambda v: v == 0 or abs(v) > 1e-60)


@given(numbers, numbers)
def test_sums_and_products_with_their_errors_are_exact(a: float, b: float) -> None:
    s, e = two_sum(a, b)
    assert s == a + b
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)
    p, e = two_product(a, b)
    assert p == a * b
    assert Fraction(p) + Fraction(e) == Fraction(a) * Fraction(b)


@given(st.lists(numbers, min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_the_bound_on_compensated_products_holds(values: list[float], seed: int) -> None:
    """With a last term that cancels nearly everything, where the plain product has no digit left."""
    rng = np.random.default_rng(seed)
    a = np.array([*values, 1.0])
    b = rng.normal(size=len(a))
    b[-1] = -float(sum(Fraction(x) * Fraction(y) for x, y in zip(a[:-1], b[:-1], strict=True)))
    out = np.empty((1, 1))
    rows.write_refined(a[None], np.zeros(1, np.int64), b[None, :, None], out)
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    terms = sum(abs(Fraction(x) * Fraction(y)) for x, y in zip(a, b, strict=True))
    bound = Fraction(UNIT) * abs(exact) + Fraction(gamma(len(a))) ** 2 * terms
    assert abs(Fraction(float(out[0, 0])) - exact) <= bound


@given(st.lists(numbers, min_size=1, max_size=30))
def test_sums_of_groups(values: list[float]) -> None:
    w, groups = np.array(values), np.arange(len(values)) % 2
    total, error = np.full(2, np.nan), np.full(2, np.nan)
    sum_groups(groups, w, total, error)
    for i in range(2):
        exact = sum(map(Fraction, w[groups == i].tolist()), Fraction(0))
        size = sum(map(abs, map(Fraction, w[groups == i].tolist())), Fraction(0))
        assert abs(Fraction(total[i]) + Fraction(error[i]) - exact) <= Fraction(gamma(len(w))) ** 2 * size
