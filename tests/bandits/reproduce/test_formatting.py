"""Numbers as text: digits that suit the uncertainty, and nothing that rounds to 0."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.reproduce.formatting import interval, plain, power, rounded, span, with_spread


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.5, 0.034, "0.500 ± 0.034"),
        (0.5, 0.0, "0.5 ± 0"),
        (0.5, math.nan, "0.5"),
        (57_720.4, 4_133.0, "57,700 ± 4,100"),
        (577.2, 41.3, "577 ± 41"),
        (-3.0, 0.25, "-3.00 ± 0.25"),
        (2.0, 1e-14, "2 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (3e-7, 2e-8, "0.000000300 ± 0.000000020"),
        (1e-20, 5e-21, "1e-20 ± 5e-21"),
    ],
)
def test_a_value_has_the_digits_of_its_spread(value, spread, text):
    assert with_spread(value, spread) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (0.0, "0"), (1234.5, "1,234"), (74_832.4, "74,832"), (0.00012345, "0.0001234"),
     (1.0, "1"), (999.96, "1000"), (1e20, "1e+20"), (math.nan, "nan")],
)  # fmt: skip
def test_a_value_without_a_spread_has_four_digits(value, text):
    assert plain(value) == text


@given(st.floats(1e-200, 1e12), st.floats(1e-6, 10.0))
def test_rounding_stays_within_the_spread_and_never_gives_zero(value, relative):
    spread = value * relative
    shown = float(rounded(value, spread).replace(",", ""))
    assert abs(shown - value) <= 0.051 * spread
    first, second = (float(part.replace(",", "")) for part in with_spread(value, spread).split(" ± "))
    assert first == shown
    assert second == pytest.approx(spread, rel=0.051)


def test_intervals_share_their_digits():
    assert interval(-0.9668, -1.0024, -0.9312) == "-0.967 (95 % interval -1.002 to -0.931)"
    assert interval(5.0, 5.0, 5.0) == "5 (95 % interval 5 to 5)"
    assert interval(5.0, -math.inf, math.inf) == "5 (no 95 % interval)"


def test_horizons_are_powers_of_two_if_they_are():
    assert [power(n) for n in (1, 512, 1024, 2**17, 1000, 100_000)] == [
        "1", "512", "2^10", "2^17", "1,000", "100,000"
    ]  # fmt: skip
    assert span([2**13, 2**10, 2**13]) == "2^10 to 2^13"
    assert span([2**13]) == "2^13"
