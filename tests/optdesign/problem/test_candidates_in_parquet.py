"""Candidates from Parquet files are those of their data frames."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import optdesign as od


def test_a_parquet_file_has_the_levels_and_local_times_of_its_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "dose": pd.Categorical(["low", "mid", "high", "low"], ["low", "mid", "high"], ordered=True),
            "at": pd.to_datetime(["2024-05-31 00:00", "2024-05-31 23:00"] * 2).tz_localize("Asia/Tokyo"),
        }
    )
    frame.to_parquet(tmp_path / "doses.parquet")
    for factors in (frame, tmp_path / "doses.parquet"):
        assert od.candidates(factors, "~ dose").names == ("Intercept", "dose[T.mid]", "dose[T.high]")
        assert len(od.candidates(factors, "~ dose", where="at >= '2024-05-31T12:00'")) == 2
        with pytest.raises(ValueError, match="must not be compared by order"):
            od.candidates(factors, "~ dose", where="dose < 'mid'")


def test_large_integers_beside_missing_ones_in_a_parquet_file_are_not_rounded(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": pd.array([2**60 + 1, None], dtype="Int64"), "x": [1.0, 2.0]})
    frame.to_parquet(tmp_path / "ids.parquet")
    with pytest.raises(ValueError, match="id must fit double precision"):
        od.candidates(tmp_path / "ids.parquet", "~ x", where=f"id == {2**60}")


@pytest.mark.parametrize("dose", [[20, 10, 40, 10], [0.5, 0.25, 1.0, 0.25], [True, False, True, False]])
def test_categories_of_numbers_in_a_parquet_file_are_those_of_their_frame(
    dose: list[Any], tmp_path: Path
) -> None:
    frame = pd.DataFrame({"dose": pd.Categorical(dose), "x": [0.0, 1.0, 2.0, 4.0]})
    path = tmp_path / "doses.parquet"
    frame.to_parquet(path)
    for table in (frame, path, tmp_path):
        with pytest.raises(od.InputError, match=r"must be numbers; column 'dose'"):
            od.DesignProblem(table)
        assert od.DesignProblem(table, groups="dose").names == ("x",)
    small, large = od.candidates(frame, "~ dose + x"), od.candidates(path, "~ dose + x")
    assert large.names == small.names
    np.testing.assert_array_equal(large.features, small.features)
    with pytest.raises(od.InputError, match="column 'dose' has categories of numbers"):
        od.candidates(tmp_path, "~ dose + x")
