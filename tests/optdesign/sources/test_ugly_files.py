"""Ugly directories of Parquet files: what goes together is read, and errors name the file and the row."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunked_problems import assert_same_optimum

import optdesign as od
from optdesign.problem.large import LargeProblem
from optdesign.runtime import memory
from optdesign.sources import parquet

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(300, 2))


def write(folder: Path, *tables: dict[str, Any], **options: Any) -> Path:
    """Write a file for every table; returns their directory."""
    for k, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"part-{k}.parquet", **options)
    return folder


def ab(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"a": X[low:high, 0], "b": X[low:high, 1], **more}


def test_columns_in_another_order_and_of_other_widths(tmp_path: Path) -> None:
    ints = pa.array(np.arange(100) % 7, pa.int8())
    second = {"b": X[100:200, 1].astype(np.float32), "a": pa.array(np.arange(100) % 3, pa.int64())}
    third = {"a": pa.array(np.arange(100) % 2 == 0), "b": ints}
    problem = od.DesignProblem(write(tmp_path, ab(0, 100), second, third))
    whole = np.concatenate([
        X[:100],
        np.column_stack([np.arange(100) % 3, X[100:200, 1].astype(np.float32)]),
        np.column_stack([np.arange(100) % 2 == 0, np.arange(100) % 7]),
    ])  # fmt: skip
    result = od.solve(problem)
    assert od.certify(od.DesignProblem(whole), result.weights).relative_gap <= 1e-6


def test_double_precision_in_a_later_file_is_kept(tmp_path: Path) -> None:
    first = {"a": X[:100, 0].astype(np.float32), "b": X[:100, 1].astype(np.float32)}
    problem = od.DesignProblem(write(tmp_path, first, ab(100, 300)))
    assert isinstance(problem, LargeProblem)
    fetched = problem.fetch(np.arange(100, 300)).x
    assert fetched.tolist() == X[100:].tolist()


def test_empty_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, ab(0, 0), ab(0, 200), ab(0, 0), ab(200, 300))
    (tmp_path / "_temporary.parquet").write_bytes(b"")
    (tmp_path / ".part.parquet").write_bytes(b"")
    assert_same_optimum(od.solve(od.DesignProblem(tmp_path)), od.solve(od.DesignProblem(X)))


def test_a_huge_row_group_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 64)
    write(tmp_path, ab(0, 300), row_group_size=300)
    assert_same_optimum(od.solve(od.DesignProblem(tmp_path)), od.solve(od.DesignProblem(X)))


def test_many_tiny_row_groups_are_read_together(tmp_path: Path) -> None:
    write(tmp_path, ab(0, 300), row_group_size=2)
    problem = od.DesignProblem(tmp_path)
    assert isinstance(problem, LargeProblem)
    assert len(problem.engine.files.spans) == 1  # type: ignore[attr-defined]
    assert_same_optimum(od.solve(problem), od.solve(od.DesignProblem(X)))


def same_labels(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Assert that a file has the same labels in memory and from chunks."""
    small = od.DesignProblem(path, groups="site", **options)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    large = od.DesignProblem(path, groups="site", **options)
    monkeypatch.undo()
    assert isinstance(large, LargeProblem)
    assert not isinstance(small, LargeProblem)
    assert large.group_names == small.group_names
    assert large.fetch(np.arange(300)).groups.tolist() == small.groups.tolist()
    assert_same_optimum(od.solve(large), od.solve(small))


CATEGORIES = pa.DictionaryArray.from_arrays(
    pa.array(np.repeat([3, 1, 0], 100), pa.int8()), pa.array(["zinc", "tin", "lead", "iron"])
)
DAYS = np.datetime64("2024-05-01") + np.repeat(np.arange(3), 100)
HOURS = np.repeat(np.array(["2024-05-01", "2024-05-02", "2024-05-02T12:00"], "datetime64[us]"), 100)


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(np.repeat(["b", "a", "c"], 100)),
        CATEGORIES,
        pa.array(np.repeat([7, 3, 5], 100), pa.int16()),
        pa.array(np.repeat([0.5, 2.0, 1.0], 100)),
        pa.array(np.repeat([True, False, True], 100)),
        pa.array(DAYS),
        pa.array(HOURS),
        pa.array(HOURS, pa.timestamp("us", tz="Europe/Rome")),
    ],
    ids=["text", "categories", "integers", "floats", "booleans", "days", "times", "zones"],
)
def test_labels_are_those_of_memory(labels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rows in (70, 1000):
        monkeypatch.setattr(parquet, "ROWS", rows)
        write(tmp_path, ab(0, 300, site=labels), row_group_size=90)
        same_labels(tmp_path / "part-0.parquet", monkeypatch)


@pytest.mark.parametrize(
    ("second", "options", "message"),
    [
        ({"a": X[:5, 0]}, {}, r"part-1\.parquet must have the columns of .*part-0\.parquet; 'b' is in one"),
        (ab(0, 5, c=X[:5, 0]), {}, r"part-1\.parquet must have the columns of .*; 'c' is in one"),
        (ab(0, 5) | {"a": list("vwxyz")}, {}, r"part-1\.parquet .*column 'a' is string instead of double"),
        (ab(0, 5) | {"a": pa.nulls(5)}, {}, r"part-1\.parquet .*column 'a' is null instead of double"),
        (ab(0, 5) | {"a": [1.0, 2.0, None, 4.0, 5.0]}, {}, r"'a' is nan in row 3 of .*part-1\.parquet"),
        (ab(0, 5) | {"b": [1, 2, 3, None, 5]}, {}, r"'b' is nan in row 4 of .*part-1\.parquet"),
        (ab(0, 5) | {"b": [1.0, np.inf, 3, 4, 5]}, {}, r"'b' is inf in row 2 of .*part-1\.parquet"),
        (
            ab(0, 2) | {"a": [2**60 + 1, 1]},
            {},
            r"column 'a' must fit double .* in row 1 of .*part-1\.parquet",
        ),
        (ab(0, 2) | {"a": [-(2**63), 2**53 + 1]}, {}, r"in row 2 of .*part-1\.parquet"),
    ],
)
def test_errors_name_the_file_and_the_row(
    second: dict[str, Any], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write(tmp_path, ab(0, 300), second)
    with pytest.raises(od.InputError, match=message):
        od.DesignProblem(tmp_path, **options)


@pytest.mark.parametrize(
    ("site", "message"),
    [
        (
            ["x", None, "y"],
            r"groups must not be missing; column 'site' is empty in row 2 of .*part-1\.parquet",
        ),
        (["x", "y", " "], r"column 'site' is empty in row 3 of .*part-1\.parquet"),
        ([1, 2, 3], r"part-1\.parquet .*column 'site' is int64 instead of string"),
    ],
)
def test_errors_of_labels_name_the_file_and_the_row(site: list[Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, ab(0, 300, site=np.repeat(["x", "y", "z"], 100)), ab(0, 3, site=site))
    with pytest.raises(od.InputError, match=message):
        od.DesignProblem(tmp_path, groups="site")


def test_files_that_are_not_parquet(tmp_path: Path) -> None:
    write(tmp_path, ab(0, 300))
    (tmp_path / "x.parquet").write_bytes(b"")
    with pytest.raises(od.InputError, match=r"x\.parquet must be a Parquet file; it is none"):
        od.DesignProblem(tmp_path)
    (tmp_path / "x.parquet").unlink()
    (tmp_path / "site=Lyon").mkdir()
    write(tmp_path / "site=Lyon", ab(0, 5))
    with pytest.raises(od.InputError, match=r"must have the columns of .*; 'site' is in one"):
        od.DesignProblem(tmp_path)


def test_damaged_pages_name_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, ab(0, 300)) / "part-0.parquet"
    data = bytearray(path.read_bytes())
    data[4:400] = bytes(396)
    path.write_bytes(bytes(data))
    with pytest.raises(od.InputError, match=r"part-0\.parquet must be a Parquet file that can be read"):
        od.DesignProblem(tmp_path)


def test_columns_that_only_name_rows_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, ab(0, 300, index=np.arange(300)))
    with pytest.warns(UserWarning, match="columns 'index' name the rows"):
        problem = od.DesignProblem(tmp_path)
    assert problem.names == ("a", "b")
    write(tmp_path, ab(0, 300, weight=np.ones(300), variance=np.ones(300)))
    with pytest.raises(od.InputError, match="those of a saved design"):
        od.DesignProblem(tmp_path)


def test_npy_files_name_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", np.ones((3, 3)))
    with pytest.raises(od.InputError, match=r"b\.npy must have shape \(N, 2\).*as .*a\.npy; got float64"):
        od.DesignProblem(tmp_path)
    np.save(tmp_path / "b.npy", np.array([[1.0, 2.0], [np.nan, 1.0]]))
    with pytest.raises(od.InputError, match=r"row 2 of .*b\.npy = \[nan"):
        od.DesignProblem(tmp_path)
    (tmp_path / "b.npy").write_bytes(b"")
    with pytest.raises(od.InputError, match=r"b\.npy must be an NPY file"):
        od.DesignProblem(tmp_path)


@pytest.mark.parametrize("groups", [np.arange(300) % 2 == 0, np.repeat([1.0, 0.0, 2.0], 100)])
def test_labels_of_arrays_are_those_of_memory(groups: Any) -> None:
    large, small = LargeProblem(X, groups), od.DesignProblem(X, groups)
    assert large.group_names == small.group_names
    assert large.fetch(np.arange(300)).groups.tolist() == small.groups.tolist()


def test_categories_of_pandas_keep_their_order() -> None:
    pandas = pytest.importorskip("pandas")
    sites = pandas.Categorical(np.repeat(["b", "a"], 150), categories=["c", "b", "a"])
    for groups in (sites, pandas.Series(sites)):
        large, small = LargeProblem(X, groups), od.DesignProblem(X, groups)
        assert large.group_names == small.group_names == ("b", "a")
        assert large.fetch(np.arange(300)).groups.tolist() == small.groups.tolist()
    gone = pandas.Categorical(["a", None, *["b"] * 298])
    with pytest.raises(od.InputError, match=r"groups\[1\] is"):
        LargeProblem(X, gone)


def test_wrong_labels_of_arrays() -> None:
    for groups, message in (
        (np.full(300, 0.5), r"must be integers 0, 1, 2, .*groups\[0\] is 0\.5"),
        (np.full(300, np.nan), r"must not be missing; groups\[0\] is"),
        ("site", "must be an array of labels"),
    ):
        with pytest.raises(od.InputError, match=message):
            LargeProblem(X, groups)
