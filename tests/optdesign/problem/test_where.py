"""Candidates that a condition leaves: arrays, functions and expressions."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import optdesign as od
from optdesign.tables.columns import Settings


@pytest.mark.parametrize(
    "where",
    [
        "a * 2 + b <= 5 and g != 'v'",
        "(a * 2 + b <= 5) & ~(g == 'v')",
        "not (a * 2 + b > 5 or g in ['v'])",
        "-10 < a * 2 + b <= 5 and `g` not in ('v', 'w')",
        lambda s: (s["a"] * 2 + s["b"] <= 5) & (s["g"] != "v"),
        [a * 2 + b <= 5 and g != "v" for a in (1, 2, 3) for b in (1, 2) for g in "uv"],
    ],
)
def test_conditions_say_the_same_in_three_ways(where) -> None:
    c = od.candidates({"a": [1, 2, 3], "b": [1, 2], "g": ["u", "v"]}, model="~ a", where=where)
    rows = list(zip(*(c.settings[k].tolist() for k in "abg"), strict=True))
    assert rows == [(a, b, "u") for a in (1, 2, 3) for b in (1, 2) if a * 2 + b <= 5]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a > 7", "must leave some settings; 'a > 7' leaves none of 3"),
        ("aa > 1", "there is no 'aa'"),
        ("a.max() > 1", "has call, which is not evaluated"),
        ("a.size", "has attribute, which"),
        ("__import__('os').getcwd()", "which is not evaluated"),
        ("[k for k in (1,)]", "has listcomp, which"),
        ("(lambda: a)()", "which is not evaluated"),
        ("@a > 1", "is none .invalid syntax"),
        ("a >", "must be an expression such as"),
        ("1 < 2", "must name a factor"),
        ("a + 1", "True or False for each of 3 settings; 'a . 1' gives int64"),
        ("a > 'x'", "'a > 'x'' fails|fails"),
        ([True, False], r"the array gives bool of shape \(2,\)"),
        (lambda s: s["a"], "must give True or False for each of 3 settings; the function gives int64"),
    ],
)
def test_bad_conditions(where, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.candidates({"a": [1, 2, 3]}, model="~ a", where=where)


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("a + b <= 0.3", lambda a, b: a + b <= 3),
        ("a + b - 0.3 <= 0", lambda a, b: a + b <= 3),
        ("0.3 >= b + a", lambda a, b: a + b <= 3),
        ("a + b < 0.3", lambda a, b: a + b < 3),
        ("a + b > 0.3", lambda a, b: a + b > 3),
        ("a + b == 0.3", lambda a, b: a + b == 3),
        ("a + b != 0.3", lambda a, b: a + b != 3),
        ("a + b in [0.3, 0.7]", lambda a, b: a + b in (3, 7)),
        ("a + b not in [0.3]", lambda a, b: a + b != 3),
        ("0.3 < a + b <= 0.7", lambda a, b: 3 < a + b <= 7),
        ("not a + b > 0.3 or a / b == 3", lambda a, b: a + b <= 3 or (a == 3 * b and b > 0)),
        ("a + b <= 0.3 & 3 * a >= 0.3", lambda a, b: a + b <= 3 and a >= 1),
        ("a < 1e400 and (a + b == 0.3) == True", lambda a, b: a + b == 3),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_comparisons_forgive_rounding(where: str, keeps, dtype) -> None:
    lattice = od.simplex_lattice(["a", "b", "c"], 10)
    tenths = {name: np.round(10 * column) for name, column in lattice.items()}
    mixtures = Settings({name: column.astype(dtype) for name, column in lattice.items()})
    c = od.candidates(mixtures, model="~ 0 + a + b + c", where=where)
    expected = [k for k in range(66) if keeps(tenths["a"][k], tenths["b"][k])]
    assert np.array_equal(c.settings["a"], mixtures["a"][expected])
    assert np.array_equal(c.settings["b"], mixtures["b"][expected])


def test_comparisons_forgive_no_more_than_rounding() -> None:
    close = [1.0, 1.0 + 1e-9, 2.0]
    assert len(od.candidates({"x": close}, model="~ x", where="x > 1")) == 2
    large = [10**15, 10**15 + 1, 10**15 + 2]
    assert len(od.candidates({"x": large}, model="~ x", where=f"x > {large[1]}")) == 1


def test_a_series_that_is_in_another_order_than_the_frame() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 0.0, 1.0]}, index=["p", "q", "r"])
    mask = frame["x"] > 1
    assert od.candidates(frame, "~ x", where=mask).settings["x"].tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match=r"where must have the index of the frame.*where.to_numpy\(\)"):
        od.candidates(frame, "~ x", where=mask.iloc[::-1])
    groups = pd.Series(["a", "a", "b"], index=frame.index)
    assert od.DesignProblem(frame, groups=groups).groups.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="groups must have the index of the frame"):
        od.DesignProblem(frame, groups=groups.iloc[::-1])
    with pytest.raises(ValueError, match="blocks must have the index of the frame"):
        od.DesignProblem(frame, parameter_blocks=groups.reset_index(drop=True))


DAYS = [datetime.date(2024, 1, 2), datetime.date(2024, 1, 10), datetime.date(2024, 3, 1)]


@pytest.mark.parametrize("days", [DAYS, [str(day) for day in DAYS]])
def test_dates_compare_with_text_in_their_format(days: list[Any]) -> None:
    def left(where: str) -> int:
        return len(od.candidates({"day": days}, "~ day", where=where))

    assert left("day <= '2024-01-10'") == left("'2024-01-10' >= day") == 2
    assert left("day in ['2024-01-10', 'spare']") == 1
    assert left("day != 'spare'") == 3
    for where in (
        "day <= '2024-1-10'", "'2024-1-2' < day", "day != '2024-1-2'", "day in ['2024-01-10', '2024-3-1']",
        "day < '2024'", "day < 'spare'",
    ):  # fmt: skip
        with pytest.raises(od.InputError, match="in their format, such as '2024-01-02'; got '"):
            left(where)


def test_times_of_a_day_compare_with_text_in_their_format() -> None:
    times = [datetime.time(8, 30), datetime.time(10, 0), datetime.time(17, 15)]
    assert len(od.candidates({"t": times}, "~ t", where="t < '12:00:00'")) == 2
    with pytest.raises(od.InputError, match="such as '08:30:00'; got '9:00'"):
        od.candidates({"t": times}, "~ t", where="t >= '9:00'")


def test_text_beside_dates_has_the_order_of_the_alphabet() -> None:
    c = od.candidates({"batch": ["2024-01-02", "2024-1-2", "b"]}, "~ batch", where="batch <= '2024-1'")
    assert c.settings["batch"].tolist() == ["2024-01-02"]


@pytest.mark.parametrize(
    "days", [["1/2/2024", "1/10/2024"], ["2024-1-2", "2024-1-10"], ["02.01.2024", "10.01.2024"]]
)
def test_dates_that_are_not_written_in_their_order_are_not_ordered(days: list[str]) -> None:
    with pytest.raises(od.InputError, match="must be written as '2024-05-31'"):
        od.candidates(pd.DataFrame({"day": days}), "~ day", where=f"day < '{days[1]}'")
    assert len(od.candidates(pd.DataFrame({"day": days}), "~ day", where=f"day == '{days[1]}'")) == 1
    named = [*days, "spare"]
    assert len(od.candidates(pd.DataFrame({"day": named}), "~ day", where="day < 's'")) == 2


def test_dates_with_other_separators_compare_in_their_format() -> None:
    c = od.candidates({"day": ["2024/01/02", "2024/01/10"]}, "~ day", where="day < '2024/01/10'")
    assert c.settings["day"].tolist() == ["2024/01/02"]
