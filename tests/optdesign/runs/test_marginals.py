"""Designs of single factors: orthonormal polynomials and contrasts in exact arithmetic, bounds, scales."""

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_levels import log_det, optimum_of_levels, rational_effects

from optdesign.runs.marginals import categories, numbers, orthonormal

UGLY = [
    ([2018, 2019, 2020, 2021, 2022], 3),
    ([300, 300.1, 300.2, 300.3], 3),
    ([1e6, 1e6 + 1, 1e6 + 2], 2),
    ([0.0, 1e-200, 2e-200, 1.0], 2),
    ([1e-12, 3e-7, 0.1, 5e6, 1e12], 4),
    ([-1.0, 1.0], 1),
    (np.linspace(20, 80, 31).tolist(), 9),
]
"""Levels and degrees."""


@pytest.mark.parametrize(("levels", "degree"), UGLY, ids=str)
def test_values_are_those_of_polynomials_of_the_degree(levels, degree):
    """Divided differences of order degree + 1 vanish up to the rounding of the values."""
    share = np.full(len(levels), 1 / len(levels))
    values, _ = orthonormal(levels, degree, share)
    exact = [Fraction(level) for level in levels]
    for k in range(degree):
        for start in range(len(levels) - k - 2):
            at = range(start, start + k + 3)
            parts = [
                Fraction(values[i, k]) / math.prod(exact[i] - exact[j] for j in at if j != i) for i in at
            ]
            assert abs(sum(parts)) <= Fraction(2) ** -52 * sum(map(abs, parts))


@pytest.mark.parametrize(("levels", "degree"), UGLY, ids=str)
def test_moments_are_the_identity_under_the_shares_given(levels, degree):
    share = np.random.default_rng(degree).dirichlet(np.ones(len(levels)))
    values, _ = orthonormal(levels, degree, share)
    y = np.column_stack([np.ones(len(levels)), values])
    assert np.allclose((y.T * share) @ y, np.eye(degree + 1), atol=1e-13)


@pytest.mark.parametrize(("levels", "degree"), UGLY, ids=str)
def test_scale_and_slack_give_the_optimum_in_the_units_of_the_levels(levels, degree):
    own = numbers(levels, degree)
    rows = [[Fraction(1), *effects] for effects in rational_effects(levels, degree)]
    best = optimum_of_levels(levels, degree)
    assert own.slack - own.log_scale >= best - 1e-12 * abs(best)
    assert own.slack <= 1e-9
    exact = log_det(rows, [Fraction(share) for share in own.share.tolist()])
    assert exact == pytest.approx(-own.log_scale, rel=1e-13, abs=1e-11)


@pytest.mark.parametrize("size", [2, 3, 5, 40])
def test_contrasts_of_categories(size):
    own = categories(size)
    y = np.column_stack([np.ones(size), own.values])
    assert np.allclose(y.T @ y / size, np.eye(size), atol=1e-14)
    rows = [[Fraction(1), *effects] for effects in rational_effects(["level"] * size, 1)]
    exact = log_det(rows, [Fraction(1, size)] * size)
    assert exact == pytest.approx(-own.log_scale, rel=1e-13)
    assert own.slack == 0
