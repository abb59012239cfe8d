"""The command solve with --model, --where and --runs."""

import json
import re
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run, write_example

import optdesign as od
from optdesign.cli import commands as cli


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path)
    return tmp_path


FACTORS = "temp;cat;conc\n" + "".join(
    f"{t};{c};{k}\n" for t in (20, 40, 60) for c in "ab" for k in ("0,5", "1,5")
)


def test_a_model_of_the_factors_in_a_file(folder):
    (folder / "factors.csv").write_text(FACTORS)
    model = "~ temp * cat + I(temp**2) + conc"
    done = run("solve", "factors.csv", "--model", model, "--tol", "1e-9", "--json", "--out", "d.csv")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    levels = {"temp": [20, 40, 60], "cat": ["a", "b"], "conc": [0.5, 1.5]}
    c = od.candidates(levels, model=model)
    assert report["features"] == list(c.names)
    assert report["model"] == model
    assert od.certify(od.DesignProblem(c), report["weights"]).relative_gap <= 1e-9
    told = run("solve", "factors.csv", "--model", model).stdout
    assert f"model             {model}\nterms             Intercept, temp, cat[T.b]" in told
    assert " row   temp   cat   conc     weight   variance" in told
    assert "   1     20   a      0.5   0.0" in told
    again = run("certify", "d.csv", "--model", model, "--tol", "1e-8")
    assert again.exit_code == 0, again.output
    some = run("solve", "factors.csv", "--model", "~ temp", "--where", "conc > 1 and cat == 'a'").stdout
    assert "candidates        3, factors temp" in some
    assert "ignored           cat, conc: not in the model" in some
    assert "\n   2     20   0.5" in some  # rows are those of the file
    assert "\n  10     60   0.5" in some


@pytest.mark.parametrize("options", [[], ["--runs", "6"]])
def test_rows_are_those_of_the_file_in_table_picture_and_json(folder, monkeypatch, options):
    (folder / "factors.csv").write_text(FACTORS)
    command = [
        "solve",
        "factors.csv",
        "--model",
        "~ temp + cat",
        "--where",
        "temp > 20 and conc > 1",
        *options,
    ]
    report = json.loads(run(*command, "--json").stdout)
    assert report["rows"] == [6, 8, 10, 12]
    amounts = dict(zip(report["rows"], report["counts" if options else "weights"], strict=True))
    table = FACTORS.splitlines()[1:]
    for told in report["runs" if options else "design"]:
        temp, cat, _ = table[told["row"] - 1].split(";")
        assert told["settings"] == {"temp": int(temp), "cat": cat}
        assert amounts[told["row"]] == told.get("weight", amounts[told["row"]]) > 0
    drawn = {}
    name = "runs" if options else "overview"
    draw = getattr(cli.pictures, name)
    monkeypatch.setattr(cli.pictures, name, lambda *a, **k: drawn.update(k, figure=draw(*a, **k)))
    shown = run(*command, "--plot", "d.png").stdout
    rows = [int(row) for row in re.findall(r"^ *(\d+) +\d+ +[ab] ", shown, re.MULTILINE)]
    assert rows == [row for row, amount in amounts.items() if amount]
    assert drawn["rows"].tolist() == report["rows"]
    if not options:
        labels = [tick.get_text() for tick in drawn["figure"].axes[0].get_yticklabels()]
        assert [label.partition(":")[0] for label in labels] == [f"row {row}" for row in rows]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_runs_of_two_machines(folder, suffix):
    rows = [f"{a},{b},{m}" for a in (-1, 0, 1) for b in (-1, 0, 1) for m in "AB"]
    (folder / "f.csv").write_text("\n".join(["a,b,machine", *rows]) + "\n")
    model = "~ (a + b)**2 + I(a**2) + I(b**2)"
    options = ["--model", model, "--group", "machine", "--runs", "A=12,B=8", "--seed", 1]
    done = run("solve", "f.csv", *options, "--out", f"runs{suffix}", "--plot", "runs.png")
    assert done.exit_code == 0, done.stderr
    assert "runs              12 (A) + 8 (B)" in done.stdout
    assert "efficiency        at least 0.9" in done.stdout
    assert " row   machine    a    b   runs" in done.stdout
    c = od.candidates(folder / "f.csv", model=model)
    p = od.DesignProblem(c, groups="machine", budgets={"A": 12, "B": 8})
    expected_runs = od.exact(p, seed=1)
    listed = pd.read_csv("runs.csv") if suffix == ".csv" else pd.read_parquet("runs.parquet")
    assert list(listed.columns) == ["run", "a", "b", "machine"]
    assert listed["run"].tolist() == list(range(1, 21))
    assert listed["machine"].tolist() == ["A"] * 12 + ["B"] * 8
    found = sorted(listed[["a", "b", "machine"]].itertuples(index=False, name=None))
    table = expected_runs.table()
    assert found == sorted(zip(*(table[k].tolist() for k in ("a", "b", "machine")), strict=True))
    assert (folder / "runs.png").stat().st_size > 5000
    report = json.loads(run("solve", "f.csv", *options, "--json", "--randomise", 3).stdout)
    assert report["counts"] == expected_runs.counts.tolist()
    assert report["efficiency"] == expected_runs.efficiency
    order = [told["row"] - 1 for told in report["runs"]]
    assert sorted(order) == np.repeat(np.arange(18), report["counts"]).tolist()
    assert order != sorted(order)


@pytest.mark.parametrize(
    ("model", "labels"), [("~ run + temp", []), ("~ temp", ["--group", "run"]), ("~ temp", [])]
)
def test_a_column_called_run_is_kept(folder, model, labels):
    """As a factor, as the group, or as a column that the model does not use."""
    rows = [(r, t) for r in (10, 20) for t in (1, 2, 3)]
    (folder / "q.csv").write_text("run,temp\n" + "".join(f"{r},{t}\n" for r, t in rows))
    done = run("solve", "q.csv", "--model", model, *labels, "--runs", 4, "--out", "q_o.csv", "--json")
    assert done.exit_code == 0, done.stderr
    listed = pd.read_csv("q_o.csv")
    assert list(listed.columns) == ["run", "run_", "temp"]
    assert listed["run"].tolist() == list(range(1, len(listed) + 1))
    expected_rows = [rows[told["row"] - 1] for told in json.loads(done.stdout)["runs"]]
    assert list(zip(listed["run_"], listed["temp"], strict=True)) == expected_rows


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "5", "--budget", "5"], ["--runs and --budget must not both"]),
        (["--runs", "2.5"], ["--runs must be whole numbers; got 2.5"]),
        (["--runs", "0"], ["--runs must be positive", "got 0. Leave it out for weights."]),
        (["--runs", "5", "--out", "runs.npz"], ["--out of a run list must end in .csv or .parquet"]),
        (["--runs", "1", "--features", "x,y"], ["runs"]),
        (["--tries", "3"], ["--tries must come with --runs"]),
        (["--seed", "0"], ["--seed must come with --runs"]),
        (["--randomise", "1", "--budget", "3"], ["--randomise must come with --runs"]),
        (["--where", "x > 0"], ["--where must come with --model"]),
        (["--model", "~ x", "--features", "x"], ["--features must be left out with --model"]),
        (["--model", "~ xx"], ["--model must be a formula", "no factor 'xx'", "did you mean 'x'"]),
        (["--model", "~ x", "--where", "z > 1"], ["--where must name a column", "'z'"]),
        (
            ["--model", "~ log(x)"],
            ["--model must give finite features", "with x = ", "is nan in line 4 of data.csv"],
        ),
        (
            ["--group", "site", "--runs", "north=1,south=2"],
            ["no budget for 'west'. Give one for each of 'north', 'south', 'west'"],
        ),
        (["--out", "/proc/a.csv"], ["/proc/a.csv"]),
        (["--out", "/proc/a.parquet"], ["/proc/a.parquet"]),
        (["--plot", "/proc/a.png"], ["/proc/a.png"]),
        (["--group", "site", "--budget", "north=1,south=2,west=x"], ["pair 3 gives group 'west' 'x'"]),
    ],
)
def test_bad_models_and_runs(arguments, words):
    message = refused("solve", "data.csv", *arguments)
    for word in words:
        assert word in message


def test_a_model_without_factors():
    done = run("solve", "data.csv", "--model", "~ 1", "--no-group", "--no-parameter-block", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["features"] == ["Intercept"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["20,a", ",b"], ["'temp' is missing in line 3 of f.csv"]),
        (["20,a", "4o,b", "60,a"], ["line 3, column 'temp' of f.csv holds '4o', among numbers"]),
        (["20,a", "40,"], ["'cat' is missing in line 3 of f.csv"]),
        (
            ["9007199254740993,a", "1,b"],
            ["line 2, column 'temp' of f.csv holds '9007199254740993', too large"],
        ),
    ],
)
def test_bad_factors_are_found_in_the_file(folder, rows, words):
    (folder / "f.csv").write_text("\n".join(["temp,cat", *rows]) + "\n")
    message = refused("solve", "f.csv", "--model", "~ temp + cat")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a,b\n"1,5",1\n"2,5",2\n"2,5",3\n', "'1,5'"),
        ("a;b\n1.000,5;1\n2.000,5;2\n2.000,5;3\n", "'1.000,5'"),
    ],
)
def test_text_that_looks_like_numbers_is_noted(folder, text, shown):
    (folder / "f.csv").write_text(text)
    note = f"factor 'a' is text, such as {shown}, and so a category"
    assert f"note              {note}" in run("solve", "f.csv", "--model", "~ a + b").stdout
    assert note not in run("solve", "f.csv", "--model", "~ b").stdout
    (folder / "f.csv").write_text(text.replace(",5", "x"))
    assert "category" not in run("solve", "f.csv", "--model", "~ a + b").stdout


def test_interrupted_runs_are_exit_code_1_and_still_written(monkeypatch):
    search = sys.modules["optdesign.runs.exact"]
    rounded = search.rounded

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return rounded(*arguments)

    monkeypatch.setattr(search, "rounded", interrupted)
    done = run("solve", "data.csv", "--runs", 5, "--out", "runs.csv")
    assert done.exit_code == 1
    assert "status            interrupted; the runs are the best found so far" in done.stdout
    assert len(pd.read_csv("runs.csv")) == 5
