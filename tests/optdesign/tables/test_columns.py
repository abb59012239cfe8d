"""Columns of unusual types: bytes, wide integers, categorical dates, time zones, masked arrays."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import optdesign as od
from optdesign.tables.values import column

X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
DAYS = ["2024-01-02", "2024-01-01"] * 2
HOURS = ["2024-10-27 00:30", "2024-10-27 01:30"] * 2  # 02:30 twice in Berlin, where clocks are set back


def dates(unit: str) -> pd.Series:
    return pd.Series(pd.to_datetime(DAYS)).astype(f"datetime64[{unit}]")


@pytest.mark.parametrize(
    "labels",
    [
        dates("us").astype("category"),
        dates("ns").astype("category"),
        dates("s").dt.tz_localize("UTC").astype("category"),
        pa.array([datetime.datetime.fromisoformat(day) for day in DAYS]).dictionary_encode(),
    ],
)
def test_categories_that_are_dates_are_labels_in_their_order(labels):
    p = od.DesignProblem(X, groups=labels, budgets={"2024-01-02": 3, "2024-01-01": 1})
    spelled = [p.group_names[i] for i in p.groups]
    assert spelled == DAYS
    assert p.budgets[p.groups[0]] == 3
    c = od.candidates(pd.DataFrame({"day": dates("ns").astype("category")}), model="~ day")
    assert c.names == ("Intercept", "day[T.2024-01-02]")


def test_the_order_of_categories_that_are_dates_is_kept():
    days = pd.Categorical(dates("us"), categories=pd.to_datetime(sorted(DAYS, reverse=True)[::2]))
    p = od.DesignProblem(X, groups=days, budgets=[3, 1])
    assert (p.group_names, p.budgets.tolist()) == (("2024-01-02", "2024-01-01"), [3, 1])


@pytest.mark.parametrize(
    "times",
    [
        pd.Series(pd.to_datetime(HOURS, utc=True)).dt.tz_convert("Europe/Berlin"),
        pl.Series(HOURS).str.to_datetime(time_zone="UTC").dt.convert_time_zone("Europe/Berlin"),
    ],
)
def test_times_that_coincide_where_clocks_are_set_back_are_refused(times):
    with pytest.raises(ValueError, match="different local times for different times"):
        od.DesignProblem(X, groups=times)


def test_categories_that_coincide_as_text_are_refused():
    times = pd.Series(pd.to_datetime(HOURS, utc=True)).dt.tz_convert("Europe/Berlin").astype("category")
    with pytest.raises(ValueError, match="differ as text"):
        column(times, "hour")


def test_bytes_are_text_in_utf_8():
    assert column(np.array(["é".encode(), b"a"]), "site")[0].tolist() == ["é", "a"]
    with pytest.raises(ValueError, match=r"site must be text, or bytes in UTF-8; got b'\\xe9'"):
        column(np.array([b"\xe9", b"a"]), "site")


def test_integers_of_128_bits():
    wide = pl.Series([2**100, 1, 2]).cast(pl.Int128)
    assert column(wide, "a")[0].tolist() == [2.0**100, 1.0, 2.0]
    with pytest.raises(ValueError, match="must fit double precision"):
        column(pl.Series([2**100 + 1, 1, 2]).cast(pl.Int128), "a")


def test_masked_arrays_are_refused_everywhere():
    p = od.DesignProblem(X)
    r = od.solve(p)
    masked = np.ma.array([0.25] * 4, mask=[0, 1, 0, 0])
    points = np.ma.array(X, mask=[[0, 0], [0, 0], [0, 0], [1, 1]])
    calls = {
        "weights": lambda: od.certify(p, masked),
        "start": lambda: od.solve(p, start=masked),
        "cost": lambda: od.sparsify(r, cost=masked),
        "parameters": lambda: od.local(X, masked[:2]),
        "points": lambda: od.min_volume_ellipsoid(points),
        "active": lambda: od.DesignProblem.shared([X], active=np.ma.array([[True] * 4], mask=False)),
        "where": lambda: od.candidates({"x": [1, 2, 3, 4]}, model="~ x", where=masked > 0),
        "levels of 'f'": lambda: od.MainEffects({"f": masked}, runs=4),
        "a": lambda: od.linalg.pseudo_inverse(np.ma.array(np.eye(2), mask=np.eye(2))),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^{name} must not be masked"):
            call()
