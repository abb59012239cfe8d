"""Single conditions on settings: integers, text, dates, missing entries, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_rows import INTEGERS, rows

import optdesign as od
from optdesign.factors.conditions import kept
from optdesign.tables.columns import Settings


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_integers_of_every_type_do_not_wrap_around(data: st.DataObject) -> None:
    types = data.draw(st.tuples(*[st.sampled_from(INTEGERS)] * 2))
    drawn = [
        data.draw(st.lists(st.integers(int(np.iinfo(t).min), int(np.iinfo(t).max)), min_size=3, max_size=3))
        for t in types
    ]
    columns = {name: np.array(v, dtype=t) for name, v, t in zip("ab", drawn, types, strict=True)}
    limit = data.draw(st.integers(-(2**130), 2**130))
    pairs = list(zip(*drawn, strict=True))
    assert rows(columns, f"a + b <= {limit}") == [k for k, (a, b) in enumerate(pairs) if a + b <= limit]
    assert rows(columns, f"a - b < {limit}") == [k for k, (a, b) in enumerate(pairs) if a - b < limit]
    assert rows(columns, f"a * b > {limit}") == [k for k, (a, b) in enumerate(pairs) if a * b > limit]
    assert rows(columns, f"a ** 2 >= {limit}") == [k for k, (a, _) in enumerate(pairs) if a**2 >= limit]
    assert rows(columns, "a == b") == [k for k, (a, b) in enumerate(pairs) if a == b]


SMALL = np.array([200, 100, 255, 0], np.uint8)


@pytest.mark.parametrize(
    "table",
    [
        {"a": SMALL, "b": SMALL},
        pd.DataFrame({"a": SMALL, "b": SMALL}),
        pd.DataFrame({"a": pd.array(SMALL, dtype="UInt8"), "b": SMALL}),
        pl.DataFrame({"a": SMALL, "b": SMALL}),
        pa.table({"a": SMALL, "b": SMALL}),
    ],
    ids=["arrays", "pandas", "nullable", "polars", "pyarrow"],
)
def test_sums_of_small_integers(table: Any) -> None:
    assert rows(Settings(table), "a + b <= 255") == [1, 3]
    assert kept(Settings(table), lambda s: s["a"] + s["b"] <= 255).tolist() == [1, 3]


CASES: list[tuple[dict[str, Any], str, list[int]]] = [
    ({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1]}, "(x > 0) + (y > 0) <= 1", [0, 1, 2]),
    ({"u": [True, False], "v": [True, True]}, "u + v == 2", [0]),
    ({"u": [True, False], "v": [True, True]}, "-u < 0 and v * 3 == 3", [0]),
    ({"u": [True, False], "v": [True, True]}, "u and v", [0]),
    ({"u": [True, False, None]}, "u == True", [0]),
    ({"u": [True, False, None]}, "u != True", [1, 2]),
    ({"u": [True, False]}, "u == 1 or not True", [0]),
    ({"x": [2**62, 1]}, "x * 4 > 0", [0, 1]),
    ({"x": np.array([2**64 - 1, 1], np.uint64)}, "x + 1 > 18446744073709551615", [0]),
    ({"x": [2**53, 2**53 + 1]}, "x > 9007199254740992", [1]),
    ({"x": [10**15, 10**15 + 1]}, "x + 0.5 > 1000000000000001", [1]),
    ({"x": [-3, 3]}, "x % 2 == 1 and x // 2 == -2", [0]),
    ({"x": [-3.0, 3.0]}, "x % 2 == 1 and x // 2 == -2", [0]),
    ({"x": [-3, 3, 0]}, "x / 0 > 1", [1]),
    ({"x": [-3, 3, 0]}, "x // 0 > 1", [1]),
    ({"x": [-3.0, 3.0, 0.0]}, "x // 0 > 1", [1]),
    ({"x": [-3, 3, 0]}, "x % 0 == x % 0", []),
    ({"x": [-3, 3, 0]}, "6 % x == 0", [0, 1]),
    ({"x": [-3.0, 3.0, 0.0]}, "6 % x == 0", [0, 1]),
    ({"x": [0, 1]}, "x ** -1 > 5", [0]),
    ({"x": [0, 3, -3]}, "2 ** (x // x) == 2", [1, 2]),
    ({"x": [0, 3, -3]}, "(7 // x) ** 2 >= 4", [0, 1, 2]),
    ({"x": [1, -1]}, "x ** 99999999999999999999 == -1", [1]),
    ({"u": np.array([True, False], dtype=object)}, "u", [0]),
    ({"x": [2, 3]}, "x ** -1 == 0.5", [0]),
    ({"x": [-4, 4]}, "x ** 0.5 == 2", [1]),
    ({"x": [-8.0, 8.0]}, "x ** 3 == -512", [0]),
    ({"x": [0.3, 0.2, 0.25, 0.1, 0.7]}, "x % 0.1 == 0", [0, 1, 3, 4]),
    ({"x": [0.3, 0.2, 0.25, 0.1, 0.7]}, "x % 0.1 < 0.01", [0, 1, 3, 4]),
    ({"x": [0.3, 0.29, 0.31, 0.7]}, "x // 0.1 == 3", [0, 2]),
    ({"x": [0.1, 0.2]}, "x ** 2 == 0.01", [0]),
    ({"x": [0.1, 0.2]}, "x ** 2 <= 0.04", [0, 1]),
    ({"x": [0.1, 0.2]}, "x ** 2 < 0.04", [0]),
    ({"x": [2, 3]}, "x ** 0.5 * x ** 0.5 == x", [0, 1]),
    ({"x": [0.1], "y": [0.2]}, "(0.3 - x - y) ** 0.5 == 0", [0]),
    ({"x": [0.1], "y": [0.2]}, "1 / (x + y - 0.3) > 5", [0]),
    ({"x": [0.1], "y": [0.2]}, "(x + y - 0.3) / (x + y - 0.3) == 1", []),
    ({"x": [1.0, np.nan]}, "x > 0", [0]),
    ({"x": [1.0, np.nan]}, "x != 7", [0, 1]),
    ({"x": [1.0, np.nan]}, "x not in [7]", [0, 1]),
    ({"x": [1, 2, 3]}, "1 < x <= 2 < 3", [1]),
    ({"x": [1, 2, 3]}, "x not in []", [0, 1, 2]),
    ({"x": [1, 2, 3]}, "x in (1, 1 + 2)", [0, 2]),
    ({"x": np.array([0.1, 0.5], np.float16)}, "x == 0.1", [0]),
    ({"x": np.array([0.1, 0.5], np.float32)}, "x * 3 == 0.3", [0]),
    ({"x": [Decimal("0.1"), Decimal("0.2")]}, "x * 3 == 0.3", [0]),
    ({"x": [Fraction(1, 3), Fraction(2, 3)]}, "x * 3 == 1", [0]),
    ({"g": ["a", "b", None]}, "g != 'a'", [1, 2]),
    ({"g": ["a", "b", None]}, "g < 'b'", [0]),
    ({"g": ["a", "b", None]}, "g == g", [0, 1]),
    ({"\u00b5g": [1, 2]}, "\u00b5g > 1", [1]),
    ({"a b": [1, 2], "c": ["`a b`", "x"]}, "`a b` > 1 or c == '`a b`'", [0, 1]),
    ({"d": np.array(["2020-01-01", "2020-03-01"], "datetime64[ns]")}, "d < '2020-02-01'", [0]),
    ({"d": np.array(["2020-01-01", "2020-03-01"], "datetime64[ns]")}, "d < '3000-01-01'", [0, 1]),
    ({"d": np.array(["2020-01-01", "2020-03-01"], "datetime64[ns]")}, "d in ['2020-01-01']", [0]),
    ({"d": np.array(["2020-01-01", "NaT"], "datetime64[s]")}, "'2020-01-01' != d", [1]),
    (
        {"d": np.array(["2020-01", "2020-03"], "datetime64[M]"), "e": np.array(["2020-02-01"] * 2, "M8[us]")},
        "d < e",
        [0],
    ),
    ({"d": np.array([1, 2], "timedelta64[h]"), "e": np.array([90, 90], "timedelta64[m]")}, "d < e", [0]),
]


@pytest.mark.parametrize(("columns", "where", "expected"), CASES, ids=[case[1] for case in CASES])
def test_values_of_single_conditions(columns: dict[str, Any], where: str, expected: list[int]) -> None:
    assert rows(columns, where) == expected


def test_a_mask_of_objects() -> None:
    table = Settings({"x": [1, 2, 3]})
    assert kept(table, np.array([True, False, True], dtype=object)).tolist() == [0, 2]
    assert kept(table, pd.array([True, False, True], dtype="boolean")).tolist() == [0, 2]
    with pytest.raises(
        ValueError, match="must give True or False for each of 3 settings; the array gives object"
    ):
        kept(table, pd.array([True, None, True], dtype="boolean"))


@pytest.mark.parametrize(
    ("columns", "where", "message"),
    [
        ({"g": ["1", "2"]}, "g == 1", "g holds text and 1 numbers"),
        ({"g": ["1", "2"]}, "g in ['1', 2]", "g holds text and 2 numbers"),
        ({"g": ["1", "2"]}, "g + 1 > 2", "arithmetic must have numbers; g holds text"),
        ({"a b": ["1", "2"]}, "`a b` > 2", "`a b` holds text"),
        ({"x": [1, 2]}, "x == '1'", "x holds numbers and '1' text"),
        ({"x": [1, 2]}, "x == [1]", "a list must follow in"),
        ({"x": [1, 2]}, "x in 1", "a list must follow in or not in, as in"),
        ({"x": [1, 2]}, "x == None", "constants must be numbers, text, True or False; got None"),
        ({"x": [1, 2]}, "x and x > 1", "and, or, not must join conditions such as x > 0; x is none"),
        ({"x": [1, 2]}, "~x == 1", "must join conditions"),
        ({"x": [1, 2]}, "(x & 1) == 1", "must join conditions"),
        ({"u": [True, None]}, "not u", "u is none, or is missing in some rows"),
        ({"x": [2, 3]}, "x ** 1000000 > 1", r"whole numbers must stay below 2\^1000"),
        ({"x": [2, 3]}, "9 ** 9 ** 9 > x", r"whole numbers must stay below 2\^1000"),
        ({"x": [2, 3]}, "x > " + "-" * 5000 + "1", "recursion"),
        ({"d": np.array(["2020"], "M8[s]")}, "d < 'x'", "dates must be compared with text such as"),
        ({"d": np.array(["2020"], "M8[s]")}, "d < ''", "dates must be compared with text such as"),
        ({"d": np.array(["2020"], "M8[s]")}, "d < '2020-01-01T00:00Z'", "dates must be compared with text"),
        ({"d": np.array(["2020"], "M8[s]")}, "d < 2021", "d holds dates and 2021 numbers"),
        ({"d": np.array(["2020"], "M8[s]")}, "d - d < 1", "arithmetic must have numbers; d holds dates"),
        ({"d": np.array([1], "m8[s]")}, "d < '1 hour'", "'1 hour' is text and the other side is not"),
    ],
)
def test_conditions_without_a_meaning(columns: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(columns, where)


def test_text_whose_levels_have_another_order_is_not_ordered() -> None:
    doses = pd.DataFrame({"dose": pd.Categorical(["low", "high"], ["low", "mid", "high"])})
    with pytest.raises(ValueError, match=r"levels are not in alphabetical order\. List the levels"):
        rows(Settings(doses), "dose <= 'mid'")
    assert rows(Settings(doses), "dose in ('low', 'mid')") == [0]
    assert rows(Settings({"g": pd.Categorical(["b", "a"])}), "g < 'b'") == [1]
    assert rows(Settings({"g": pd.Categorical([3, 1])}), "g <= 2") == [1]


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series([1, None, 2**60 + 1], dtype="Int64"),
        pl.Series([1, None, 2**60 + 1]),
        pa.array([1, None, 2**60 + 1]),
        pa.chunked_array([[1, None], [2**60 + 1]]),
        [1, None, 2**60 + 1],
    ],
    ids=lambda v: type(v).__module__,
)
def test_large_integers_beside_missing_entries_are_not_rounded(ids: Any) -> None:
    with pytest.raises(
        ValueError, match=r"id must fit double precision .* holds 1152921504606846977 in row 3"
    ):
        Settings({"id": ids})
    assert Settings({"id": [1, 2**63]})["id"].dtype == np.uint64


@pytest.mark.parametrize(
    "times",
    [
        [datetime(2020, 1, 1, 12), datetime(2020, 3, 1), None],
        pd.Series([datetime(2020, 1, 1, 12), datetime(2020, 3, 1), None]),
        pd.Series([pd.Timestamp(2020, 1, 1, 12), pd.Timestamp(2020, 3, 1), None], dtype=object),
        pl.Series([datetime(2020, 1, 1, 12), datetime(2020, 3, 1), None]),
        pa.array([datetime(2020, 1, 1, 12), datetime(2020, 3, 1), None]),
        pa.array([datetime(2020, 1, 1, 12), datetime(2020, 3, 1), None], pa.timestamp("ms")),
    ],
    ids=lambda v: type(v).__module__,
)
def test_times_of_every_library_compare_alike(times: Any) -> None:
    assert rows({"t": times}, "t == '2020-03-01'") == [1]
    assert rows({"t": times}, "t <= '2020-03-01'") == [0, 1]
    assert rows({"t": times}, "t < '2020-01-01T12:00:00.001'") == [0]
    assert rows({"t": times}, "t != '2020-03-01'") == [0, 2]


AWARE = [datetime(2024, 5, 31, h, tzinfo=ZoneInfo("Europe/Paris")) for h in (0, 12, 23)]


@pytest.mark.parametrize(
    "times",
    [AWARE, pd.Series(AWARE), pl.Series(AWARE).dt.convert_time_zone("Europe/Paris"), pa.array(AWARE)],
    ids=lambda v: type(v).__module__,
)
def test_times_with_a_time_zone_compare_by_their_local_time(times: Any) -> None:
    assert rows({"t": times}, "t >= '2024-05-31T12:00'") == [1, 2]
    assert rows({"t": times}, "t <= '2024-05-31'") == [0]
    assert rows({"t": times}, "t < '2024-05-31T23:00'") == [0, 1]


def test_local_times_are_compared_before_and_after_the_clocks_are_set_forward() -> None:
    pytz = pytest.importorskip("pytz")
    hours = pd.to_datetime(["2024-03-30 12:00", "2024-04-01 22:00", "2024-04-02 12:00"], utc=True)
    for zone in ("Europe/Rome", pytz.timezone("Europe/Rome"), ZoneInfo("Europe/Rome")):
        times = pd.Series(hours.tz_convert(zone))
        for form in (times, times.tolist(), pl.from_pandas(times)):
            assert rows({"t": form}, "t >= '2024-04-02T00:00'") == [1, 2]
            assert rows({"t": form}, "t == '2024-04-02'") == [1]
            assert rows({"t": form}, "t < '2024-03-30T14:00'") == [0]
            names = od.DesignProblem(np.eye(3), groups=form).group_names
            assert names == ("2024-03-30T13:00", "2024-04-02", "2024-04-02T14:00")


def test_times_of_several_offsets_and_dates_among_times_are_times() -> None:
    later = timezone(timedelta(hours=1))
    offsets = [datetime(2024, 1, 1, 9, tzinfo=UTC), datetime(2024, 1, 1, 11, tzinfo=later), None]
    mixed = [date(2024, 1, 1), datetime(2024, 1, 1, 11), None]
    for times in (offsets, mixed, pd.Series(offsets, dtype=object), np.array(mixed, dtype=object)):
        assert rows({"t": times}, "t >= '2024-01-01T10:30'") == [1]
        assert rows({"t": times}, "t < '2024-01-01T11:00'") == [0]
    same = [datetime(2024, 1, 1, 10, tzinfo=UTC), datetime(2024, 1, 1, 10, tzinfo=later)]
    with pytest.raises(od.InputError, match="different local times"):
        rows({"t": same}, "t >= '2024-01-01'")


def test_durations_are_not_compared_as_text() -> None:
    hours = [timedelta(hours=h) for h in (0, 2, 30)]
    for given_hours in (
        hours,
        pd.Series(hours),
        pd.Series(hours, dtype=object),
        pa.array(hours),
        [*hours[:2], None],
    ):
        column = Settings({"t": given_hours})["t"]
        assert column.dtype.kind == "m"
        assert column[:2].tolist() == Settings({"t": pd.Series(hours)})["t"][:2].astype(column.dtype).tolist()
        with pytest.raises(od.InputError, match="values of one kind must be compared"):
            rows({"t": given_hours}, "t >= '1 day'")


@pytest.mark.parametrize(("dtype", "limit"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)])
def test_whole_numbers_in_columns_of_floats_are_exact(dtype: type, limit: int) -> None:
    x = np.array([limit - 1, limit, 1 - limit, np.nan], dtype=dtype)
    assert rows({"x": x}, f"x < {limit}") == [0, 2]
    assert rows({"x": x, "y": np.full(4, limit, dtype)}, "x == y") == [1]
    assert rows({"x": np.array([1700000000000.0, 1700000000001.0])}, "x <= 1700000000000") == [0]


def test_half_precision_of_pyarrow_has_its_tolerance() -> None:
    assert rows({"x": pa.array([0.1, 0.3], pa.float16())}, "x * 3 == 0.3") == [0]


def test_boolean_factors_count_as_0_and_1_in_a_model() -> None:
    both = pd.DataFrame({"a": [True, False, True], "b": [True, True, False]})
    c = od.candidates(both, "~ 0 + a + I(a + b) + I(a - b) + a:b")
    by_name = dict(zip(c.names, c.features.T.tolist(), strict=True))
    assert by_name["I(a + b)"] == [2, 1, 1]
    assert by_name["I(a - b)"] == [0, -1, 1]
    assert by_name["a"] == [1, 0, 1]
    assert by_name["a:b"] == [1, 0, 0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_small_integers_do_not_wrap_around_in_a_model(dtype: type) -> None:
    levels = np.array([0, 50, 127], dtype=dtype)
    c = od.candidates(
        od.factorial({"a": levels, "b": levels}), "~ 0 + I(a * b) + a:b + I(a**3) + I(a - 2 * b)"
    )
    a, b = np.repeat([0.0, 50.0, 127.0], 3), np.tile([0.0, 50.0, 127.0], 3)
    by_name = dict(zip(c.names, c.features.T, strict=True))
    np.testing.assert_array_equal(by_name["I(a * b)"], a * b)
    np.testing.assert_array_equal(by_name["a:b"], a * b)
    np.testing.assert_array_equal(by_name["I(a ** 3)"], a**3)
    np.testing.assert_array_equal(by_name["I(a - 2 * b)"], a - 2 * b)
    problem = od.DesignProblem(np.array([[100, 1], [1, 100]], dtype=dtype))
    np.testing.assert_array_equal(problem.candidates, [[100, 1], [1, 100]])


@pytest.mark.parametrize(
    ("dtype", "value"), [(np.int64, 2**63 - 1), (np.uint64, 2**64 - 1), (np.int64, 2**53 + 1)]
)
def test_integers_next_to_the_largest_do_not_fit_double_precision(dtype: type, value: int) -> None:
    with pytest.raises(ValueError, match="must fit double precision"):
        od.DesignProblem(np.array([[value], [1]], dtype=dtype))
    with pytest.raises(ValueError, match="must fit double precision"):
        od.candidates(pd.DataFrame({"a": np.array([value, 1], dtype=dtype)}), "~ a")
    low = np.array([[-(2**63)], [2**62]])
    assert od.DesignProblem(low).candidates.tolist() == [[-(2.0**63)], [2.0**62]]
