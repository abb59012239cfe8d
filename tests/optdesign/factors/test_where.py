"""Conditions with lists."""

import pytest

import optdesign as od

FACTORS = {"x": [1, 2, 3], "y": [1, 2]}


def test_no_comparison_follows_a_list():
    # Python compares the list with y.
    with pytest.raises(ValueError, match="no comparison must follow a list"):
        od.candidates(FACTORS, model="~ x", where="x in [1, 2] == y")


def test_a_list_may_end_a_chain():
    c = od.candidates(FACTORS, model="~ x", where="y < x in [1, 2]")
    assert (c.settings["x"].tolist(), c.settings["y"].tolist()) == ([2], [1])
