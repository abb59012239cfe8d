"""Directories of Parquet and NPY files: the same designs as tables in memory."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunked_problems import assert_design_of_memory, assert_same_optimum

import optdesign as od
from optdesign.problem.large import LargeProblem
from optdesign.runtime import memory
from optdesign.sources import parquet

pyarrow = pytest.importorskip("pyarrow")
parquet_format = pytest.importorskip("pyarrow.parquet")

SITES = np.array(["Turin", "Lyon", "Bern"], dtype=object)
OPTIONS: dict[str, Any] = {
    "groups": "site", "parameter_blocks": "arm", "budgets": {"Bern": 1, "Lyon": 2, "Turin": 3},
}  # fmt: skip


def table(n: int = 900) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sites = SITES[np.concatenate([np.arange(3), rng.integers(0, 3, n - 3)])]
    x = rng.normal(size=(3, n)).astype(np.float32)
    return {"a": x[0], "site": sites, "b": x[1], "c": x[2], "arm": rng.integers(3, 5, n)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of three Parquet files with row groups of 70 rows, read 50 rows at a time."""
    monkeypatch.setattr(parquet, "ROWS", 50)
    columns = table()
    for k in range(3):
        part = pyarrow.table({name: values[300 * k : 300 * k + 300] for name, values in columns.items()})
        parquet_format.write_table(part, tmp_path / f"part-{k}.parquet", row_group_size=70)
    return tmp_path


def test_parquet_files_give_the_design_of_a_frame(folder: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(table())
    assert_design_of_memory(od.DesignProblem(folder, **OPTIONS), od.DesignProblem(frame, **OPTIONS))


def test_kernels_read_columns_without_a_transposed_copy(folder: Path) -> None:
    large = od.DesignProblem(folder, groups="site")
    assert isinstance(large, LargeProblem)

    def task(_: int, x: np.ndarray, *labels: np.ndarray) -> set[tuple[bool, bool]]:
        return {(x.T.flags.c_contiguous, x.flags.owndata)} if len(labels) == 2 else set()

    assert large.reduce(task, set.union) == {(True, False)}


def test_large_parquet_files_stay_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {name: values for name, values in table().items() if name in "abc"}
    parquet_format.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    small = od.DesignProblem(tmp_path / "x.parquet")
    monkeypatch.setattr(memory, "available", lambda: 10_000)
    large = od.DesignProblem(str(tmp_path / "x.parquet"))
    assert (isinstance(small, LargeProblem), isinstance(large, LargeProblem)) == (False, True)
    assert_same_optimum(od.solve(large), od.solve(small))


def hive(folder: Path, *columns: str) -> None:
    """Write the table with some columns in the names of directories."""
    dataset = pytest.importorskip("pyarrow.dataset")
    dataset.write_dataset(
        pyarrow.table(table()), folder, format="parquet", partitioning=list(columns),
        partitioning_flavor="hive",
    )  # fmt: skip


@pytest.mark.parametrize("columns", [["site"], ["arm", "site"]])
def test_names_of_directories_hold_columns(
    columns: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS", 50)
    hive(tmp_path, *columns)
    frame = pytest.importorskip("pandas").DataFrame(table())
    large, small = od.DesignProblem(tmp_path, **OPTIONS), od.DesignProblem(frame, **OPTIONS)
    assert isinstance(large, LargeProblem)
    for name in ("names", "group_names", "parameter_block_names", "n_candidates", "rank"):
        assert getattr(large, name) == getattr(small, name)
    assert_same_optimum(od.solve(large), od.solve(small))
    assert "site=" in large.engine.place(0)
    factors = {"model": "~ a + b * site + C(arm)", "where": "site != 'Bern' or arm > 3"}
    large, small = (
        od.DesignProblem(od.candidates(rows, **factors), groups="arm") for rows in (tmp_path, frame)
    )
    assert isinstance(large, LargeProblem)
    assert (large.names, large.n_candidates) == (small.names, small.n_candidates)
    assert_same_optimum(od.solve(large), od.solve(small))


def test_directories_that_name_other_columns(tmp_path: Path) -> None:
    hive(tmp_path / "one", "site")
    (tmp_path / "one" / "more").mkdir()
    parquet_format.write_table(pyarrow.table(table()), tmp_path / "one" / "more" / "x.parquet")
    od.DesignProblem(tmp_path / "one", groups="site")  # the file has the column itself
    for name, site in (("two", ["a", "b"]), ("three", [1, 2])):
        (tmp_path / name / "site=Turin").mkdir(parents=True)
        columns = {"x": [1.0, 2.0], "site": site}
        parquet_format.write_table(pyarrow.table(columns), tmp_path / name / "site=Turin" / "x.parquet")
        with pytest.raises(od.InputError, match=r"must name (each column once|columns in its directories)"):
            od.DesignProblem(tmp_path / name, groups="site")
    hive(tmp_path / "four", "site")
    parquet_format.write_table(pyarrow.table({"x": [1.0]}), tmp_path / "four" / "x.parquet")
    with pytest.raises(od.InputError, match="must have the columns of"):
        od.DesignProblem(tmp_path / "four", groups="site")
    for part in ("site=Turin", "site=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "five" / part).mkdir(parents=True)
        parquet_format.write_table(pyarrow.table({"x": [1.0]}), tmp_path / "five" / part / "x.parquet")
    with pytest.raises(od.InputError, match="column 'site' is empty in row 1 of"):
        od.DesignProblem(tmp_path / "five", groups="site")


def test_directories_that_write_one_number_in_two_ways_are_refused(tmp_path: Path) -> None:
    for part in ("site=1", "site=01"):
        (tmp_path / part).mkdir()
        parquet_format.write_table(pyarrow.table({"x": [1.0, 2.0]}), tmp_path / part / "x.parquet")
    with pytest.raises(od.InputError, match=r"must write whole numbers .*; got site=01"):
        od.DesignProblem(tmp_path, groups="site")


def test_directories_with_two_spellings_of_a_value_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "site=1" / "data"  # whose own name holds no column
    for first, second in (("site=a b", "site=a%20b"), ("a col=x", "a%20col=x"), ("site=1", "site=01")):
        for part in (first, second):
            (folder / part).mkdir(parents=True)
            parquet_format.write_table(pyarrow.table({"x": [1.0, 2.0]}), folder / part / "0.parquet")
        with pytest.raises(od.InputError, match=r"must (spell a value|write whole numbers) in the names"):
            od.DesignProblem(folder, groups=first.partition("=")[0])
        shutil.rmtree(folder)


def test_npy_files_give_the_design_of_one_array(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(900, 4))
    for k in range(3):
        np.save(tmp_path / f"{k}.npy", x[300 * k : 300 * k + 300])
    assert_same_optimum(od.solve(od.DesignProblem(tmp_path)), od.solve(od.DesignProblem(x)))


def test_wrong_directories(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(od.InputError, match=r"column 'site' of .*part-0\.parquet is string"):
        od.DesignProblem(folder)
    with pytest.raises(od.InputError, match="did you mean 'site'"):
        od.DesignProblem(folder, groups="sites")
    with pytest.raises(od.InputError, match="must be the name of a column"):
        od.DesignProblem(folder, groups=np.zeros(900, int))
    (tmp_path / "none").mkdir()
    with pytest.raises(od.InputError, match="directory of Parquet or NPY files"):
        od.DesignProblem(tmp_path / "none")
    columns = {"x": [1.0, None, 2.0], "site": ["a", "b", None]}
    (tmp_path / "gaps").mkdir()
    parquet_format.write_table(pyarrow.table(columns), tmp_path / "gaps" / "x.parquet")
    with pytest.raises(od.InputError, match=r"column 'site' is empty in row 3 of .*x\.parquet"):
        od.DesignProblem(tmp_path / "gaps", groups="site")
    parquet_format.write_table(pyarrow.table({"x": columns["x"]}), tmp_path / "gaps" / "x.parquet")
    with pytest.raises(od.InputError, match=r"'x' is nan in row 2 of .*x\.parquet"):
        od.DesignProblem(tmp_path / "gaps")
