"""Files of all formats: round trips, types, arrays, and files that appear whole or not at all."""

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from candidate_files import CSV, error

from optdesign.cli import candidate_file as files
from optdesign.runtime.files import atomic


@pytest.mark.parametrize("first", files.SUFFIXES)
@pytest.mark.parametrize("second", files.SUFFIXES)
def test_round_trip_through_all_formats(write, tmp_path, first, second):
    f = files.read(write(CSV), group="site", block="arm")
    w, g = np.array([0.25, 1.0, 0.75]), np.array([1 / 3, 2.0, 3.0])
    budgets = np.array([1.0, 1.0])
    files.write(tmp_path / f"one{first}", f, budgets, np.zeros(3), g)
    names = {"group": None if first == ".npz" else "site", "block": None if first == ".npz" else "arm"}
    middle = files.read(tmp_path / f"one{first}", **names)
    files.write(tmp_path / f"two{second}", middle, budgets, w, g)
    if second == ".npz":
        names = {}
    last = files.read(tmp_path / f"two{second}", **names)
    assert last.features == f.features
    np.testing.assert_array_equal(last.candidates, f.candidates)
    np.testing.assert_array_equal(last.weights, w)
    assert last.groups.names.tolist() == ["north", "south"]
    assert last.groups.numbers.tolist() == [0, 1, 0]
    assert last.blocks.numbers.tolist() == [0, 1, 1]
    if second != ".npz":
        np.testing.assert_array_equal(last.columns["variance"], g)
        if first != ".npz":
            assert last.columns["note"].tolist() == ["first", "with, comma", ""]


def test_parquet_types(tmp_path):
    from decimal import Decimal

    table = {
        "site": pa.array(["b", "a", "b"]).dictionary_encode(),
        "day": pa.array(np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="datetime64[s]")),
        "x": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]),
        "flag": [True, False, True],
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    f = files.read(path, group="site", block="day")
    assert f.features == ("x", "flag")
    np.testing.assert_array_equal(f.candidates, [[1.5, 1], [2.5, 0], [3.5, 1]])
    assert f.blocks.numbers.tolist() == [0, 1, 0]
    files.write(tmp_path / "b.csv", f, np.ones(2), np.ones(3), np.ones(3))
    assert "2024-01-02" in (tmp_path / "b.csv").read_text()
    pq.write_table(pa.table({"site": ["a", None], "x": [1, 2]}), path)
    assert "row 2, column 'site'" in error(path, group="site")
    pq.write_table(pa.table({"x": [1, None]}), path)
    assert "row 2, column 'x'" in error(path)
    assert "x must be numbers; row 1" in error(_dates(path), features=["x"])
    pq.write_table(pa.table({"site": [b"b", b"a"], "hash": [b"\xff", b"\xfe"], "x": [1, 2]}), path)
    f = files.read(path, group="site")
    assert (f.groups.names.tolist(), f.features) == (["a", "b"], ("x",))
    flags = pa.array([True, None, False]).dictionary_encode()
    pq.write_table(pa.table({"flag": flags, "x": [1, 2, 4]}), path)
    assert files.read(path).features == ("x",)


def _dates(path):
    pq.write_table(pa.table({"x": np.array(["2024-01-01"], dtype="datetime64[s]")}), path)
    return path


def test_npz_arrays(tmp_path):
    x = np.arange(6).reshape(3, 2)
    path = tmp_path / "a.npz"
    np.savez(path, candidates=x, groups=["v", "u", "v"], budgets=[1.0, 3.0], clusters=[1, 1, 0])
    f = files.read(path, block="clusters")
    assert f.features == ("x0", "x1")
    assert f.blocks.numbers.tolist() == [1, 1, 0]
    assert f.problem().budgets.tolist() == [1, 3]
    np.testing.assert_array_equal(files.read(path, features=["x1"]).candidates, x[:, 1:])
    assert "no 'other'" in error(path, group="other")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.ones(3)}, ["'candidates'", "'x'"]),
        ({"candidates": np.ones(3)}, ["(N, d)", "(3,)"]),
        ({"candidates": np.ones((3, 2)), "groups": [0, 1]}, ["group", "(3,)", "(2,)"]),
        ({"candidates": np.ones((3, 2)), "weights": np.ones((3, 1))}, ["weight", "(3,)"]),
        ({"candidates": np.ones((3, 2)), "features": ["a"]}, ["2 columns", "'a'"]),
        ({"candidates": np.ones((3, 2)), "budgets": [1.0, 2.0]}, ["budgets", "(1,)", "(2,)"]),
        ({"candidates": np.array([["a", "b"]])}, ["must be numbers", "'a'"]),
        ({"candidates": np.array([[None]])}, ["plain arrays"]),
        (
            {"candidates": np.ones((3, 2)), "features": ["x", "weight"], "weights": np.ones(3)},
            ["not be called 'weight'"],
        ),
        (
            {"candidates": np.ones((3, 2)), "features": ["x", "group"], "groups": [0, 0, 1]},
            ["not be called 'group'"],
        ),
    ],
)
def test_bad_npz(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    message = error(tmp_path / "a.npz")
    for word in words:
        assert word in message


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def interrupted():
        with atomic(path) as temporary:
            temporary.write_text("half of the n")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(path):
        with atomic(Path(path)):
            raise AssertionError("there is no such directory")

    with pytest.raises(FileNotFoundError) as caught:
        written("nowhere/out.csv")
    assert caught.value.filename == "nowhere/out.csv"


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with atomic(tmp_path / "link.csv") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"from a clone: python -m pip install .\.\[parquet\]"):
        files.read(tmp_path / "a.parquet")
