"""Evidence, confidence intervals and Holm's method."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bandits.reproduce.decisions import (
    LEVEL,
    NO_EVIDENCE,
    Evidence,
    all_of,
    any_of,
    below,
    exceeds,
    holm,
    limits,
    quotient_limits,
    within,
)

VALUES = np.array([4.1, 5.3, 4.7, 6.0, 5.2])
P = st.floats(0.0, 1.0)


@pytest.mark.parametrize("limit", [0.0, 4.9, 5.06, 7.0])
def test_a_mean_is_compared_by_students_t(limit):
    expected = [stats.ttest_1samp(VALUES, limit, alternative=side).pvalue for side in ("greater", "less")]
    np.testing.assert_allclose(exceeds(VALUES, limit), expected, rtol=1e-10)
    np.testing.assert_allclose(below(VALUES, limit), expected[::-1], rtol=1e-10)


def test_equal_values_are_compared_exactly():
    assert exceeds(np.full(3, 2.0), 1.0) == Evidence(0.0, 1.0)
    assert exceeds(np.full(3, 2.0), 3.0) == Evidence(1.0, 0.0)
    assert exceeds(np.full(3, 2.0), 2.0) == NO_EVIDENCE


@pytest.mark.parametrize("trials", [3, 10, 50])
@pytest.mark.parametrize("value", [8.24, 0.1, -3.3])
def test_round_off_is_no_evidence(value, trials):
    """The mean of equal numbers, and so their standard deviation, has round-off."""
    values = np.full(trials, value)
    for sign in (-1.0, 1.0):
        assert exceeds(values, value + sign * np.spacing(value)) == NO_EVIDENCE
        assert exceeds(values, value - sign * 1e-6) == Evidence(float(sign < 0), float(sign > 0))


@pytest.mark.parametrize("values", [[1.0], [], [1.0, np.nan], [np.inf, 1.0, 2.0]])
def test_one_trial_or_a_value_that_is_not_finite_is_no_evidence(values):
    assert exceeds(np.array(values), 0.0) == NO_EVIDENCE


def test_a_range_needs_both_limits():
    assert within(VALUES, 3.0, 7.0).in_favour < 0.01
    for low, high in ((5.0, 9.0), (2.0, 5.0)):
        assert min(within(VALUES, low, high)) > LEVEL
    for low, high in ((8.0, 9.0), (1.0, 2.0)):
        assert within(VALUES, low, high).against < 0.01


def test_all_and_any():
    parts = [Evidence(0.01, 0.99), Evidence(0.2, 0.8)]
    assert all_of(parts) == Evidence(0.2, 1.0)
    assert any_of(parts) == Evidence(0.02, 0.99)


@given(st.lists(st.tuples(P, P), max_size=12))
def test_holm_is_the_textbook_procedure(pairs):
    """Reject the k-th smallest p-value of N while it is at most level / (N - k + 1)."""
    evidence = [Evidence(*pair) for pair in pairs]
    flat = sorted(p for pair in pairs for p in pair)
    largest = -1.0
    for k, p in enumerate(flat):
        if p * (len(flat) - k) > LEVEL:
            break
        largest = p
    for one, decision in zip(evidence, holm(evidence), strict=True):
        assert (decision.holds is not None) == (min(one) <= largest)
        if decision.holds is not None and one.in_favour != one.against:
            assert decision.holds == (one.in_favour < one.against)


def test_more_statements_need_more_evidence():
    one = Evidence(0.02, 0.98)
    assert holm([one])[0].holds is True
    assert [decision.holds for decision in holm([one, NO_EVIDENCE])] == [None, None]
    assert holm([Evidence(0.98, 0.001), one])[1].holds is None
    assert holm([]) == []


@pytest.mark.slow
def test_holm_keeps_the_probability_of_a_false_verdict():
    """All 20 statements are neither true nor false: their means equal the limit."""
    rng = np.random.default_rng(0)
    false = sum(
        any(d.holds is not None for d in holm([exceeds(row) for row in rng.standard_normal((20, 10))]))
        for _ in range(400)
    )
    # 400 repetitions with probability 0.05 give at most 34 with probability 0.999.
    assert false <= stats.binom.ppf(0.999, 400, LEVEL)
    assert false > 0


def test_intervals_are_those_of_scipy():
    expected = stats.t.interval(0.95, 4, VALUES.mean(), stats.sem(VALUES))
    np.testing.assert_allclose(limits(VALUES), expected, rtol=1e-12)
    assert limits(VALUES[:1]) == (-math.inf, math.inf)


def test_quotient_limits_are_where_the_test_changes():
    under = np.array([2.0, 2.2, 1.9, 2.1, 2.3])
    for limit in quotient_limits(VALUES, under):
        assert min(exceeds(VALUES - limit * under)) == pytest.approx(LEVEL / 2, rel=1e-8)
    low, high = quotient_limits(VALUES, under)
    assert low < VALUES.mean() / under.mean() < high


def test_a_quotient_may_have_no_limits():
    assert quotient_limits(VALUES[:1], VALUES[:1]) == (-math.inf, math.inf)
    assert quotient_limits(VALUES, np.array([1.0, -1.0, 2.0, -2.0, 0.1])) == (-math.inf, math.inf)
    assert quotient_limits(2.0 * VALUES, VALUES) == pytest.approx((2.0, 2.0))
