"""Efficient rounding of rows of weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optdesign as od


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_rows_sum_to_their_runs_and_keep_the_largest_fraction(rows, columns, extra, seed):
    """Every count is at least (1 - (l - 1) / n) w_n, with l positive weights and n runs."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(columns), rows) * (rng.uniform(size=(rows, columns)) < 0.7)
    support = (weights > 0).sum(axis=1)
    runs = np.where(support > 0, support + extra, 0)
    counts = od.apportion(weights, runs)
    np.testing.assert_array_equal(counts.sum(axis=1), runs)
    assert np.all((counts > 0) == (weights > 0))
    for w, c, n, positive in zip(weights, counts, runs, support, strict=True):
        if positive:
            ideal = n * w / w.sum()
            assert np.all(c >= (1 - (positive - 1) / n) * ideal - 1e-9)


@pytest.mark.parametrize(
    ("weights", "runs", "expected"),
    [
        ([1e308, 1e308], 5, [3, 2]),
        ([5e-324, 5e-324], 4, [2, 2]),
        ([1e-310, 3e-310, 0.0], 4, [1, 3, 0]),
        ([1e-300, 1e300], 50, [1, 49]),
        ([1.0, 1.0], 2**53, [2**52, 2**52]),
        ([0.0, 0.5], 2**53, [0, 2**53]),
    ],
)
def test_weights_and_runs_of_any_size(weights, runs, expected):
    """Sums that overflow, subnormal weights and the largest number of runs: the same rule, and an end."""
    assert od.apportion([weights], [runs]).tolist() == [expected]


@pytest.mark.parametrize(
    ("weights", "runs", "message"),
    [
        ([0.5, 0.5], [2], "weights must be finite, not negative, and of shape"),
        ([[0.5, -0.5]], [2], "weights must be finite, not negative"),
        ([[0.5, 0.5]], [2.0], "runs must be integers of shape"),
        ([[0.5, 0.5]], [2, 2], "runs must be integers of shape"),
        ([[0.5, 0.5]], [1], r"runs\[0\] = 1, and row 0 has 2 positive"),
        ([[0.5, 0.5]], [2**53 + 1], r"2\^53; runs\[0\] = 9007199254740993, .* Lower runs\[0\]"),
        ([[0.0, 0.0]], [1], r"runs\[0\] = 1, and row 0 has 0 positive"),
    ],
)
def test_wrong_arguments_are_refused(weights, runs, message):
    with pytest.raises(ValueError, match=message):
        od.apportion(weights, runs)
