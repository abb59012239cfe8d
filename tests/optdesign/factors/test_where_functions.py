"""Conditions with lists, and functions that return a Series."""

import pandas as pd
import pytest

import optdesign as od
from optdesign.factors.conditions import kept
from optdesign.tables.columns import Settings

FACTORS = {"x": [1, 2, 3], "y": [1, 2]}


def test_no_comparison_follows_a_list():
    # Python compares the list with y.
    with pytest.raises(ValueError, match="no comparison must follow a list"):
        od.candidates(FACTORS, model="~ x", where="x in [1, 2] == y")


def test_a_list_may_end_a_chain():
    c = od.candidates(FACTORS, model="~ x", where="y < x in [1, 2]")
    assert (c.settings["x"].tolist(), c.settings["y"].tolist()) == ([2], [1])


def test_a_function_must_return_a_series_with_the_index_of_the_frame():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[2, 0, 1])
    c = od.candidates(frame, model="~ x", where=lambda _: frame["x"] > 1)
    assert c.settings["x"].tolist() == [2, 3]
    with pytest.raises(ValueError, match="where must have the index of the frame"):
        od.candidates(frame, model="~ x", where=lambda _: frame.sort_index()["x"] > 1)
    with pytest.raises(ValueError, match="the function gives object"):
        od.candidates(frame, model="~ x", where=lambda _: None)


def test_absolute_values_of_constants_and_of_divisions_by_zero():
    assert od.candidates(FACTORS, model="~ x", where="x < abs(-2)").settings["x"].tolist() == [1, 1]
    settings = Settings({"x": [-3, 4, 0], "y": [0, 0, 1]})
    assert kept(settings, "abs(x // y) > 5").tolist() == [0, 1]
