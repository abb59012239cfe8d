"""Formulas and conditions on Parquet files, chunk by chunk: the features of memory, or an error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunked_problems import assert_design_of_memory

import optdesign as od
from optdesign.problem.large import LargeProblem
from optdesign.sources import modelled, parquet
from optdesign.sources.packing import pack, unpack

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("formulaic")

N = 400


def columns(seed: int = 0) -> dict[str, Any]:
    """Return factors: numbers, text whose levels come late, categories, whole numbers, and labels."""
    rng = np.random.default_rng(seed)
    cat = np.array(["b", "a"], dtype=object)[rng.integers(0, 2, N)]
    cat[-3:] = "late"
    grade = pa.DictionaryArray.from_arrays(
        pa.array(rng.integers(0, 3, N), pa.int8()), pa.array(["low", "high", "mid"])
    )
    return {
        "temp": rng.uniform(20, 60, N),
        "press": rng.integers(1, 4, N),
        "cat": cat,
        "grade": grade,
        "site": np.array(["Turin", "Lyon"], dtype=object)[rng.integers(0, 2, N)],
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a Parquet file of many row groups, read 50 rows at a time."""
    monkeypatch.setattr(parquet, "ROWS", 50)
    pq.write_table(pa.table(columns()), tmp_path / "x.parquet", row_group_size=70)
    return tmp_path


FORMULAS = [
    "~ temp + I(temp**2) + cat",
    "~ temp * grade",
    "~ C(press) + log(temp)",
    "~ 0 + temp:cat + press",
    "~ poly(temp, 2, raw=True) + cat",
]
CONDITION = "temp < 50 and not (cat == 'a' and press == 2)"


@pytest.mark.parametrize(
    ("formula", "where"),
    [(formula, None) for formula in FORMULAS] + [(formula, CONDITION) for formula in FORMULAS[:2]],
)
def test_formulas_give_the_design_of_memory(formula: str, where: str | None, folder: Path) -> None:
    large = od.DesignProblem(od.candidates(folder, formula, where=where), groups="site")
    small = od.DesignProblem(od.candidates(folder / "x.parquet", formula, where=where), groups="site")
    assert_design_of_memory(large, small)


def test_coded_factors_have_the_range_of_all_rows(folder: Path) -> None:
    made = [
        od.candidates(path, "~ temp + press", coded=True, where="temp > 30")
        for path in (folder, folder / "x.parquet")
    ]
    large, small = map(od.DesignProblem, made)
    assert isinstance(large, LargeProblem)
    np.testing.assert_allclose(large.fetch(np.arange(large.n_candidates)).x, small.source.whole(), rtol=1e-12)
    assert repr(made[0]) == "LargeCandidates(1 files: Intercept, temp, press)"


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("where", [None, CONDITION])
def test_formulas_on_dask_frames_give_the_design_of_memory(formula: str, where: str | None) -> None:
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = pa.table(columns()).to_pandas()
    large = od.DesignProblem(
        od.candidates(dask_frames.from_pandas(frame, npartitions=7), formula, where=where), groups="site"
    )
    small = od.DesignProblem(od.candidates(frame, formula, where=where), groups="site")
    assert_design_of_memory(large, small)


def test_models_travel_to_workers() -> None:
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = pa.table(columns()).to_pandas()
    made = od.candidates(
        dask_frames.from_pandas(frame, npartitions=4), "~ temp * grade + cat", where="temp < 50"
    )
    layout = made.open("site", None).layout
    both = [one.chunk(0, frame, N, str, True).x for one in (layout, unpack(pack(layout)))]
    assert both[0].tobytes() == both[1].tobytes()


def test_wrong_formulas_on_dask_frames() -> None:
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = pa.table(columns()).to_pandas()
    large = dask_frames.from_pandas(frame, npartitions=4)
    assert repr(od.candidates(large, "~ temp")) == "LargeCandidates(4 partitions: Intercept, temp)"
    coded, small = (
        od.DesignProblem(od.candidates(rows, "~ temp", coded=True, where="temp > 30"))
        for rows in (large, frame)
    )
    assert isinstance(coded, LargeProblem)
    np.testing.assert_allclose(coded.fetch(np.arange(coded.n_candidates)).x, small.source.whole(), rtol=1e-12)
    with pytest.raises(od.InputError, match="must work row by row"):
        od.candidates(large, "~ center(temp)")
    with pytest.raises(od.InputError, match="must leave a candidate"):
        od.candidates(large, "~ temp", where="temp > 1000")
    frame.loc[N - 1, "temp"] = np.nan
    with pytest.raises(od.InputError, match="'temp' is missing in row 100 of partition 4"):
        od.DesignProblem(od.candidates(dask_frames.from_pandas(frame, npartitions=4), "~ temp"))
    frame["temp"] = [f"level {k}" for k in range(N)]
    with pytest.raises(od.InputError, match="must be numbers"):
        od.DesignProblem(dask_frames.from_pandas(frame[["temp", "press"]], npartitions=4))
    with pytest.raises(od.InputError, match="Pass a Dask frame"):
        od.candidates(dask_frames.from_pandas(frame, npartitions=4).to_dask_array(lengths=True), "~ temp")


def test_factors_have_a_limited_number_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    dask_frames = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(modelled, "LEVELS", 50)
    frame = pa.table({"temp": np.arange(400.0), "name": [f"n{k % 80}" for k in range(400)]}).to_pandas()
    large = dask_frames.from_pandas(frame, npartitions=10)
    assert od.candidates(large, "~ temp").names == ("Intercept", "temp")
    with pytest.raises(od.InputError, match="must have at most 50 levels; column 'name' has more"):
        od.candidates(large, "~ name")
    with pytest.raises(od.InputError, match="few levels"):
        od.candidates(large, r"~ C(temp)")


def test_places_are_rows_of_the_file(folder: Path) -> None:
    table = columns()
    kept = np.flatnonzero(table["temp"] < 30)
    large = od.DesignProblem(od.candidates(folder, "~ temp", where="temp < 30"))
    assert isinstance(large, LargeProblem)
    assert [large.engine.place(k).partition(" of ")[0] for k in (0, 7, len(kept) - 1)] == [
        f"row {kept[k] + 1}" for k in (0, 7, len(kept) - 1)
    ]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("~ center(temp)", r"must work row by row.*'center\(temp\)'"),
        ("~ scale(temp) + press", "must work row by row"),
        ("~ poly(temp, 2)", "must work row by row"),
        ("~ bs(temp, df=4)", "must work row by row"),
        ("~ I(temp - temp.mean())", "depends on other rows"),
        ("~ I(temp > temp.median())", "depends on other rows"),
        ("~ I(temp / max(temp))", "depends on other rows"),
        ("~ C(temp)", "few levels"),
        ("~ C(press + temp)", "has several columns"),
        ("~ tempo", "formulaic can evaluate"),
    ],
)
def test_formulas_that_depend_on_all_rows_are_refused(formula: str, message: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"temp": rng.uniform(20, 60, 3000), "press": rng.integers(1, 4, 3000)}
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    with pytest.raises(od.InputError, match=message):
        od.candidates(tmp_path, formula)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temp": [1.0, 2.0, None, 4.0]}, r"'temp' is missing in row 3 of .*y\.parquet"),
        ({"cat": ["a", "b", " ", "a"]}, r"'cat' is missing in row 3 of .*y\.parquet"),
        ({"cat": ["a", "b", "12", "a"]}, r"holds 'a' among numbers in row 1 of"),
        ({"temp": [1.0, 2.0, 0.0, 4.0]}, r"'log\(temp\)' is -inf in row 3 of .*y\.parquet"),
    ],
)
def test_errors_name_the_file_and_the_row(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    good = {"temp": [1.0, 2.0, 3.0, 4.0], "cat": ["a", "b", "a", "a"]}
    pq.write_table(pa.table(good), tmp_path / "x.parquet")
    pq.write_table(pa.table(good | change), tmp_path / "y.parquet")
    with pytest.raises(od.InputError, match=message):
        od.DesignProblem(od.candidates(tmp_path, "~ log(temp) + cat"))


def test_wrong_arguments(folder: Path) -> None:
    with pytest.raises(od.InputError, match="must leave a candidate"):
        od.candidates(folder, "~ temp", where="temp > 1000")
    with pytest.raises(od.InputError, match="must be an expression"):
        od.candidates(folder, "~ temp", where=lambda s: s["temp"] > 1)
    with pytest.raises(od.InputError, match="did you mean 'site'"):
        od.DesignProblem(od.candidates(folder, "~ temp"), groups="sites")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_drawn_problems_of_factors_have_the_design_of_memory(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formulas, conditions, and categories as groups and parameter blocks."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(parquet, "ROWS", int(rng.integers(20, 200)))
    pq.write_table(pa.table(columns(seed)), tmp_path / "x.parquet", row_group_size=int(rng.integers(5, 300)))
    formula, where = FORMULAS[seed % len(FORMULAS)], (None, "temp < 45", "press != 2")[seed % 3]
    names = "grade", "site", "cat"
    labels = {"groups": names[seed % 3], "parameter_blocks": (None, *names)[seed // 3 % 4]}
    large, small = (
        od.DesignProblem(od.candidates(path, formula, where=where), **labels)
        for path in (tmp_path, tmp_path / "x.parquet")
    )
    assert_design_of_memory(large, small)


def test_a_file_in_which_a_column_of_a_condition_is_empty(tmp_path: Path) -> None:
    empty, full = pa.array([None] * 3, pa.bool_()), pa.array([True, False, None])
    for k, column in enumerate((full, empty)):
        pq.write_table(pa.table({"ok": column, "x": [0.0, 1.0, 2.0]}), tmp_path / f"{k}.parquet")
    for where, left in (("ok == True", 1), ("ok != True", 5)):
        problem = od.DesignProblem(od.candidates(tmp_path, "~ x", where=where))
        assert problem.n_candidates == left
