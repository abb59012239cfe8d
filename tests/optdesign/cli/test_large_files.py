"""The command solve on candidates that stay on disk: the same options, and the rows with weight."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import refused, run

import optdesign as od
from optdesign.cli import candidate_file as files
from optdesign.runtime import progress

N = 900
MODEL = "~ temp * cat + I(temp**2)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = {
        "temp": rng.uniform(20, 60, N),
        "press": rng.integers(1, 5, N),
        "cat": np.array(["a", "b"], dtype=object)[rng.integers(0, 2, N)],
        "site": np.array(["Turin", "Lyon"], dtype=object)[rng.integers(0, 2, N)],
    }
    (tmp_path / "logs").mkdir()
    for k in range(3):
        part = {name: values[300 * k : 300 * k + 300] for name, values in table.items()}
        pq.write_table(pa.table(part), tmp_path / "logs" / f"{k}.parquet", row_group_size=100)
    pq.write_table(pa.table(table), tmp_path / "all.parquet")
    np.save(tmp_path / "x.npy", rng.normal(size=(N, 3)))
    return tmp_path


def report(*options: str) -> dict[str, Any]:
    done = run("solve", *options, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        ["--model", MODEL, "--group", "site", "--budget", "Turin=2,Lyon=1"],
        ["--model", MODEL, "--where", "press < 4 and temp > 25"],
        ["--features", "temp,press", "--parameter-block", "cat", "--budget", "3"],
        ["--group", "site"],
    ],
)
def test_a_directory_has_the_design_of_one_file(options: list[str]) -> None:
    large, small = report("logs", *options), report("all.parquet", *options)
    for name in ("candidates", "features", "ignored_columns", "groups", "parameter_blocks", "rank", "model"):
        assert large[name] == small[name], name
    assert abs(large["log_det"] - small["log_det"]) <= large["gap"] + small["gap"] + 1e-9
    # The rows are those of all files, so the weights certify themselves on the file in memory.
    weights = dict(zip(large["rows"], large["weights"], strict=True))
    dense = [weights.get(row, 0.0) for row in small["rows"]]
    labels = dict(zip(options[::2], options[1::2], strict=True))
    source = files.read(
        Path("all.parquet"), model=labels.get("--model"), where=labels.get("--where"),
        group=labels.get("--group"), block=labels.get("--parameter-block"),
        features=labels["--features"].split(",") if "--features" in labels else None,
    )  # fmt: skip
    if "--budget" in labels:
        source = source.with_budgets(labels["--budget"])
    assert od.certify(source.problem(), dense).relative_gap <= 1e-6


def test_the_rows_with_weight_are_saved() -> None:
    done = run("solve", "logs", "--model", MODEL, "--group", "site", "--out", "rows.csv")
    assert done.exit_code == 0, done.output
    assert "candidates        900, factors temp, cat" in done.stdout
    assert "I 1" not in done.stdout  # an average over all candidates, which are not in memory
    saved = files.read(Path("rows.csv"), model=MODEL, group="site")
    assert saved.weights is not None
    assert saved.weights.min() > 0
    table = pq.read_table("all.parquet").to_pandas()
    for row, temp in zip(saved.columns["row"].tolist(), saved.columns["temp"].tolist(), strict=True):
        assert table["temp"][row - 1] == temp
    assert run("certify", "rows.csv", "--model", MODEL, "--group", "site").exit_code == 0


def test_memory_maps(folder: Path) -> None:
    found = report("x.npy")
    weights = np.zeros(N)
    weights[np.array(found["rows"]) - 1] = found["weights"]
    assert od.certify(od.DesignProblem(np.load(folder / "x.npy")), weights).relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["logs", "--runs", "12"], "--runs must be left out"),
        (["logs", "--plot", "a.png"], "--plot must be left out"),
        (["logs", "--out", "a.npz"], "--out must end in .csv or .parquet"),
        (["logs", "--where", "temp > 1"], "--where must come with --model"),
        (["logs", "--group", "sites"], "did you mean 'site'"),
        (["logs", "--budget", "Turin=1", "--group", "site"], "no budget for 'Lyon'"),
        (["logs", "--features", "cat"], "column 'cat' of logs/0.parquet is string"),
        (["logs", "--model", "~ center(temp)"], "must work row by row"),
        (["x.npy", "--group", "site"], "--group needs files with columns"),
        (["empty"], "must be a directory of Parquet or NPY files"),
    ],
)
def test_wrong_options(arguments: list[str], message: str, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert message in refused("solve", *arguments)


def test_categories_of_numbers_are_no_features(folder: Path) -> None:
    table = pq.read_table("all.parquet").select(["temp", "press"])
    table = table.append_column("cat", table["press"].dictionary_encode())
    (folder / "doses").mkdir()
    for path in ("doses.parquet", "doses/0.parquet"):
        pq.write_table(table, path)
    for path in ("doses.parquet", "doses"):
        done = run("solve", path, "--json")
        assert json.loads(done.stdout)["features"] == ["temp", "press"]
        assert "column 'cat'" in refused("solve", path, "--features", "temp,cat")


def test_rows_are_shown_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "terminal", lambda: True)
    monkeypatch.setattr(progress, "DELAY", 60.0)
    shown: list[str] = []
    with progress.Progress(True, 1e-6) as display:
        monkeypatch.setattr(display, "_show", lambda **changes: shown.append(changes["description"]))
        od.DesignProblem("logs", groups="site", parameter_blocks="cat")
        display.update(3, 0.5)
        od.DesignProblem("logs", groups="site", parameter_blocks="cat")
    assert "starting, 900 of 900 rows" in shown
    assert "iteration 3, gap 5.00e-01, 300 of 900 rows" in shown
