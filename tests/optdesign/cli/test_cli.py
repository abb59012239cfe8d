import json
import re
import runpy
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import optdesign as od
from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli
from optdesign.design import result as result_module
from optdesign.runtime.progress import Progress

RNG = np.random.default_rng(3)
SITES, ARMS = ["north", "south", "west"], ["a", "b"]
ROWS = [(SITES[i % 3], ARMS[i // 3 % 2], *RNG.normal(size=2)) for i in range(24)]
BUDGETS = "site,budget\nnorth,1\nsouth,2\nwest,5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "site,arm,x,y",
        *(f"{s},{a},{x!r},{y!r}" for s, a, x, y in ((*r[:2], *map(float, r[2:])) for r in ROWS)),
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "budgets.csv").write_text(BUDGETS)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def solved(*arguments):
    result = run("solve", "data.csv", "--group", "site", "--parameter-block", "arm", *arguments)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("optdesign: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def expected(budgets=None):
    x = np.array([r[2:] for r in ROWS], dtype=float)
    groups = [SITES.index(r[0]) for r in ROWS]
    return od.DesignProblem(x, groups, [ARMS.index(r[1]) for r in ROWS], budgets)


def test_solve_prints_the_certificate_and_the_design():
    out = solved().stdout
    assert "efficiency" in out
    assert "at least 0.999999" in out
    assert "converged" in out
    assert "features x, y" in out
    assert "north" in out


@pytest.mark.parametrize("suffix", files.SUFFIXES)
def test_solve_saves_a_design_that_certifies_itself(folder, suffix):
    solved("--budget", "budgets.csv", "--out", f"design{suffix}", "--tol", "1e-9")
    labels = {} if suffix == ".npz" else {"group": "site", "block": "arm"}
    saved = files.read(folder / f"design{suffix}", **labels)
    certificate = od.certify(expected([1, 2, 5]), saved.weights)
    assert certificate.relative_gap <= 1e-9
    assert saved.groups.names.tolist() == SITES
    options = ["--group=site", "--parameter-block=arm"] if labels else []
    checked = run("verify", f"design{suffix}", *options, "--tol", "1e-8")
    assert checked.exit_code == 0, checked.output
    assert "agrees" in checked.stdout


def test_solve_reads_parquet_and_npz_alike():
    site, arm, x, y = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"site": site, "arm": arm, "x": x, "y": y}), "data.parquet")
    np.savez(
        "data.npz",
        candidates=np.column_stack([x, y]),
        groups=site,
        parameter_blocks=arm,
        budgets=[1.0, 2.0, 5.0],
    )
    options = ["--group", "site", "--parameter-block", "arm", "--budget", "budgets.csv", "--json"]
    reports = [
        json.loads(run("solve", "data.csv", *options).stdout),
        json.loads(run("solve", "data.parquet", *options).stdout),
        json.loads(run("solve", "data.npz", "--json").stdout),
    ]
    for report in reports:
        assert report["log_det"] == pytest.approx(reports[0]["log_det"], abs=1e-5)
        assert report["rank"] == 4


def test_json_report_is_complete(folder):
    report = json.loads(solved("--json", "--out", "d.csv", "--plot", "d.png", "--method", "bca").stdout)
    assert report["status"] == "CONVERGED"
    assert report["message"] == od.Status.CONVERGED.value
    assert report["gap"] <= 1e-6 * report["rank"]
    assert report["relative_gap"] == pytest.approx(report["gap"] / report["rank"])
    assert report["efficiency"] == pytest.approx(1 / (1 + report["relative_gap"]))
    assert report["g_value"] == pytest.approx(report["rank"] + report["gap"])
    assert report["log_det"] == pytest.approx(od.solve(expected()).log_det, abs=1e-5)
    assert report["method"] == "bca"
    assert report["iterations"] >= 1
    assert report["seconds"] > 0
    assert 0 < report["support"] <= report["candidates"] == 24
    assert (report["groups"], report["parameter_blocks"], report["features"]) == (3, 2, ["x", "y"])
    assert report["rank_note"] == report["deficiency_note"] == ""
    assert (report["parameters"], report["ignored_columns"]) == (4, [])
    assert report["deficient_parameter_blocks"] == 0
    assert report["outputs"] == {"design": "d.csv", "plot": "d.png"}
    assert (folder / "d.png").stat().st_size > 5000


def test_long_designs_say_where_the_rest_is(folder):
    rows = [f"{k},{k % 5 + 1}" for k in range(30)]
    (folder / "long.csv").write_text("site,x\n" + "\n".join(rows) + "\n")
    shown = run("solve", "long.csv", "--group", "site").stdout
    assert "20 of 30 weights shown, the largest; save all with --out FILE" in shown
    assert " row   site   x     weight   variance" in shown
    shown = run("solve", "long.csv", "--group", "site", "--out", "d.csv").stdout
    assert "20 of 30 weights shown, the largest; all are in d.csv" in shown


def test_json_has_the_weights_and_tells_candidates():
    report = json.loads(solved("--json", "--tol", "1e-9").stdout)
    assert od.certify(expected(), report["weights"]).relative_gap <= 1e-9
    assert len(report["design"]) == report["support"]
    for told in report["design"]:
        n = told["row"] - 1
        assert told["weight"] == report["weights"][n]
        assert told["settings"] == dict(zip(("site", "arm", "x", "y"), ROWS[n], strict=True))


def test_without_a_model_it_says_what_it_took(folder):
    (folder / "plain.csv").write_text("run,x,kind\n1,5,a\n2,3,b\n3,4,a\n")
    told = run("solve", "plain.csv").stdout
    assert "candidates        3, features run, x" in told
    assert "without an intercept; for one, --model '~ run + x'" in told
    assert "ignored           kind: not numeric; choose columns with --features, or use --model" in told
    assert "note              column 'run' counts the rows and was taken as a feature" in told
    chosen = run("solve", "plain.csv", "--features", "x").stdout
    assert "counts the rows" not in chosen
    (folder / "plain.csv").write_text("one,x\n1,5\n1,3\n1,4\n")
    assert "columns as they are, one being the intercept" in run("solve", "plain.csv").stdout


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
    assert "runs              12 + 8" in done.stdout
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
        (["--group", "site", "--runs", "north=1,south=2"], ["no budget for 'west'. Add it, as in west=8."]),
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


def test_budgets_by_label_in_a_line():
    reports = [
        json.loads(solved("--json", "--budget", given).stdout)
        for given in ("budgets.csv", "west=5, north=1,south=2")
    ]
    assert reports[0]["weights"] == reports[1]["weights"]


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


def test_a_saved_design_is_certified_for_what_is_named():
    """Without the options it was solved with it is another problem, and that is said."""
    solved("--out", "d.csv")
    hint = "without site, arm; if the design was solved with other --model, --group, --parameter-block or"
    for command in ("certify", "verify"):
        assert hint in run(command, "d.csv").stdout
        assert any(hint in note for note in json.loads(run(command, "d.csv", "--json").stdout)["notes"])
        same = run(command, "d.csv", "--group", "site", "--parameter-block", "arm")
        assert same.exit_code == 0
        assert "if the design was solved" not in same.stdout
    solved("--out", "d.npz")
    assert run("certify", "d.npz").exit_code == 0  # an archive holds labels and features


def test_interrupted_runs_are_exit_code_1_and_still_written(monkeypatch):
    search = sys.modules["optdesign.runs.exact"]
    lay_out = search.lay_out

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return lay_out(*arguments)

    monkeypatch.setattr(search, "lay_out", interrupted)
    done = run("solve", "data.csv", "--runs", 5, "--out", "runs.csv")
    assert done.exit_code == 1
    assert "status            interrupted; the runs are the best found so far" in done.stdout
    assert len(pd.read_csv("runs.csv")) == 5


def test_features_can_be_chosen():
    assert json.loads(solved("--features", "y", "--json").stdout)["features"] == ["y"]


def test_not_converged_is_exit_code_1_and_still_written(folder):
    result = run(
        "solve", "data.csv", "--group", "site", "--parameter-block", "arm",
        "--method", "bca", "--max-iter", 1, "--tol", "1e-12", "--out", "d.csv", "--plot", "d.svg",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "stopped at --max-iter" in result.stdout
    assert "1 iteration," in result.stdout
    saved = files.read(folder / "d.csv", group="site", block="arm")
    assert np.isfinite(od.certify(expected(), saved.weights).gap)
    assert (folder / "d.svg").exists()


def test_ctrl_c_is_exit_code_1_and_the_design_so_far_is_written(folder, monkeypatch):
    monkeypatch.setattr(Progress, "update", lambda *_: signal.raise_signal(signal.SIGINT))
    options = [
        "--group",
        "site",
        "--parameter-block",
        "arm",
        "--method",
        "bca",
        "--tol",
        "1e-12",
        "--max-iter",
        2,
    ]
    result = run("solve", "data.csv", *options, "--out", "d.csv", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["status"] == "INTERRUPTED"
    saved = files.read(folder / "d.csv", group="site", block="arm")
    assert np.isfinite(od.certify(expected(), saved.weights).gap)


def test_a_close_rank_decision_is_reported_with_the_label(folder):
    rows = [f"lab,{x},{x * (1 + e)}" for x, e in ((1.0, 0.0), (2.0, 3e-10), (3.0, -3e-10))]
    (folder / "near.csv").write_text("arm,x,y\n" + "\n".join([*rows, "other,1,2", "other,2,1"]) + "\n")
    note = json.loads(run("solve", "near.csv", "--parameter-block", "arm", "--json").stdout)["rank_note"]
    assert "close decision" in note
    assert "block 'lab' has rank 2" in note
    assert "block 'lab' has rank 2" in run("solve", "near.csv", "--parameter-block", "arm").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], ["No such file", "none.csv"]),
        (["data.txt"], ["must end in"]),
        (["data.csv", "--group", "sites"], ["did you mean 'site'?"]),
        (["data.csv", "--group", "place"], ["'place'", "'site', 'arm', 'x', 'y'"]),
        (["data.csv", "--tol", "-1"], ["--tol must be positive"]),
        (["data.csv", "--max-iter", "0"], ["--max-iter must be"]),
        (["data.csv", "--time-limit", "0"], ["--time-limit must be"]),
        (
            ["data.csv", "--group", "site", "--budget", "all"],
            ["--budget must be a number, labels with numbers", "or a file with two columns", "'all'"],
        ),
        (["data.csv", "--budget", "-3"], ["--budget must be positive", "-3"]),
        (["data.csv", "--budget", "budgets.csv"], ["--budget budgets.csv needs groups", "--group", "'site'"]),
        (["data.csv", "--method", "magic"], ["--method must be one of", "'magic'"]),
        (["data.csv", "--budget", "budgets.csv", "--group", "arm"], ["--budget", "'a', 'b'"]),
        (["data.csv", "--out", "design.xls"], ["--out must end in", "design.xls"]),
        (["data.csv", "--out", "missing/d.csv"], ["--out", "does not exist"]),
        (["data.csv", "--out", "folder.csv"], ["--out", "is a directory"]),
        (["data.csv", "--plot", "d.gif"], ["--plot must end in"]),
        (["data.csv", "--plot", "missing/d.png"], ["--plot", "does not exist"]),
        (["data.csv", "--features", "site"], ["line 2, column 'site' of data.csv"]),
        (["zero.csv"], ["non-zero"]),
        (["folder.csv"], ["directory"]),
    ],
)
def test_bad_input_is_exit_code_2_with_one_message(folder, arguments, words):
    (folder / "folder.csv").mkdir()
    (folder / "zero.csv").write_text("x\n0\n0\n")
    message = refused("solve", *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("module", "option", "extra"),
    [("pyarrow", "--out=d.parquet", "optdesign[parquet]"), ("matplotlib", "--plot=d.png", "optdesign[plot]")],
)
def test_a_missing_extra_is_named_before_the_work(monkeypatch, module, option, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(cli, "solve", None)
    assert extra in refused("solve", "data.csv", option)


def test_a_failing_write_leaves_nothing_behind(folder, monkeypatch):
    def full(path, _):
        path.write_text("half of the d")
        raise OSError(28, "No space left on device")

    (folder / "d.csv").write_text("old")
    before = sorted(folder.iterdir())
    monkeypatch.setattr(files, "write_table", full)
    options = ["--group=site", "--parameter-block=arm", "--out=d.csv"]
    assert "No space left" in refused("solve", "data.csv", *options, "--force")
    assert sorted(folder.iterdir()) == before
    assert (folder / "d.csv").read_text() == "old"


def test_files_that_exist_are_overwritten_only_by_force(folder):
    options = ["--group", "site", "--parameter-block", "arm"]
    (folder / "old.csv").write_text("old")
    (folder / "old.png").write_text("old")
    for option, name in (("--out", "old.csv"), ("--plot", "old.png")):
        message = refused("solve", "data.csv", *options, option, name)
        assert f"{option} must be a new file; {name!r} exists. Add --force to overwrite it." in message
        assert (folder / name).read_text() == "old"
    assert run("solve", "data.csv", *options, "--out", "old.csv", "--force").exit_code == 0
    assert "weight" in (folder / "old.csv").read_text()


def test_a_directory_that_is_read_only_is_refused_before_the_work(folder, monkeypatch):
    (folder / "locked").mkdir()
    monkeypatch.setattr("os.access", lambda path, _: "locked" not in str(path))
    message = refused(
        "solve", "data.csv", "--group", "site", "--parameter-block", "arm", "--out", "locked/d.csv"
    )
    assert "lies in a directory that you may not write to" in message


@pytest.mark.parametrize("content", [b"", b"not a table", b"PAR1PAR1"])
def test_parquet_files_that_are_none(folder, content):
    (folder / "no.parquet").write_bytes(content)
    message = refused("solve", "no.parquet")
    assert "no.parquet must be a Parquet file with one candidate a row; it is none" in message
    assert "name it .csv" in message


def test_verify_reports_in_json():
    solved("--budget", "budgets.csv", "--out", "d.csv")
    result = run(
        "verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--solver", "scs", "--json"
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["verdict"] == "agrees"
    assert report["relative_gap"] <= 1e-6
    assert len(report["comparisons"]) == 10
    assert report["notes"] == []
    assert report["within_tol"]
    assert report["optimal"]
    assert report["tol"] == 1e-4


@pytest.fixture
def uniform(folder):
    p = expected()
    source = files.read(folder / "data.csv", group="site", block="arm")
    files.write(folder / "d.csv", source, p.budgets, p.uniform(), np.zeros(24))


@pytest.mark.usefixtures("uniform")
def test_verify_of_poor_weights_cannot_be_misread():
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    last = result.stdout.splitlines()[-1]
    assert last.startswith("NOT optimal: efficiency only at least 0.")
    assert "exceeds --tol 0.0001" in last
    assert "agrees" not in result.stdout
    assert "comparison        consistent: with exact arithmetic and with cvxpy" in result.stdout
    report = json.loads(
        run("verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--json").stdout
    )
    assert (report["optimal"], report["within_tol"], report["verdict"]) == (False, False, "consistent")
    assert report["conclusion"] == last


@pytest.mark.usefixtures("uniform")
def test_verify_passes_what_its_tolerance_allows():
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--tol", 10)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("optimal to within 10: efficiency at least 0.")


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize("command", ["certify", "verify"])
def test_the_tolerance_is_for_the_gap_over_the_rank(command):
    """Just above it the design passes, just below it does not; the gap itself is four times as large."""
    report = json.loads(
        run("certify", "d.csv", "--group", "site", "--parameter-block", "arm", "--json").stdout
    )
    assert report["gap"] == pytest.approx(4 * report["relative_gap"])
    for factor, code in ((1.01, cli.SOLVED), (0.99, cli.NOT_CONVERGED)):
        tol = repr(factor * report["relative_gap"])
        result = run(command, "d.csv", "--group", "site", "--parameter-block", "arm", "--tol", tol)
        assert result.exit_code == code
        assert result.stdout.splitlines()[-1].startswith("NOT optimal") == (code != cli.SOLVED)


@pytest.mark.parametrize(("budget", "good"), [("budgets.csv", True), ("other.csv", False), ("3", False)])
def test_verify_compares_budgets(folder, budget, good):
    solved("--budget", "budgets.csv", "--out", "d.csv")
    (folder / "other.csv").write_text(BUDGETS.replace("south,2", "south,2.5"))
    arguments = ["verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--budget", budget]
    if good:
        assert run(*arguments).exit_code == 0
    else:
        message = refused(*arguments)
        assert ("'north'" if budget == "3" else "'south'") in message
        assert ("budget is 3" if budget == "3" else "sum to 2, and its budget is 2.5") in message


@pytest.mark.parametrize("name", ["weight", "variance"])
def test_a_column_of_the_user_is_never_taken_for_ours(folder, name):
    text = f"x,{name}\n1,70\n2,\n"
    (folder / "people.csv").write_text(text)
    for options in ([], ["--features", "x"], ["--features", f"x,{name}"], ["--group", name]):
        message = refused("solve", "people.csv", *options, "--out", "d.csv")
        assert f"rename it, say to 'body_{name}'" in message
    assert f"--features must not be '{name}'" in refused(
        "solve", "people.csv", "--features", f"x,{name}", "--again"
    )
    assert (folder / "people.csv").read_text() == text
    assert not (folder / "d.csv").exists()


@pytest.mark.parametrize("suffix", files.SUFFIXES)
def test_a_saved_design_can_be_solved_again(folder, suffix):
    solved("--out", f"d{suffix}")
    labels = [] if suffix == ".npz" else ["--group", "site", "--parameter-block", "arm"]
    assert "--again" in refused("solve", f"d{suffix}", *labels)
    result = run("solve", f"d{suffix}", *labels, "--again", "--tol", "1e-9", "--out", f"e{suffix}")
    assert result.exit_code == 0, result.output
    assert "features x, y" in result.stdout
    names = {} if suffix == ".npz" else {"group": "site", "block": "arm"}
    saved = files.read(folder / f"e{suffix}", **names)
    assert od.certify(expected(), saved.weights).relative_gap <= 1e-9


def test_columns_that_are_ignored_are_named(folder):
    (folder / "notes.csv").write_text("x,y,note,when\n1,0,good,May\n0,1,,June\n")
    assert "note, when: not numeric; choose columns with --features" in run("solve", "notes.csv").stdout
    report = json.loads(run("solve", "notes.csv", "--json").stdout)
    assert report["ignored_columns"] == ["note", "when"]
    assert "ignored" not in run("solve", "notes.csv", "--features", "x,y").stdout


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("drug,x,y\naspirin,1,2\naspirin,2,4\nother,1,0\nother,0,1\n",
         "rank 3 of 4: drug 'aspirin' (rank 1 of 2) cannot estimate all of its parameters; "
         "y is a combination of x."),
        ("drug,x,y\naspirin,1,2\nb,2,4\n",
         "rank 2 of 4: drug 'aspirin' (rank 1 of 2) and 1 more cannot estimate all of their parameters; "
         "in the first, y is a combination of x."),
        ("drug,x,y\na,1,2\na,2,4\n",
         "rank 1 of 2: the candidates cannot estimate all parameters; y is a combination of x."),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be_estimated_are_reported(folder, text, note):
    (folder / "drugs.csv").write_text(text)
    assert note in run("solve", "drugs.csv", "--parameter-block", "drug").stdout
    report = json.loads(run("solve", "drugs.csv", "--parameter-block", "drug", "--json").stdout)
    assert report["deficiency_note"] == note
    assert report["deficient_parameter_blocks"] == 1 + ("1 more" in note)


@pytest.mark.parametrize("path", ["data.csv", "./data.csv", "link.csv", "twin.csv", "budgets.csv"])
def test_inputs_are_not_overwritten(folder, path):
    (folder / "link.csv").symlink_to("data.csv")
    (folder / "twin.csv").hardlink_to(folder / "data.csv")
    before = (folder / "data.csv").read_text()
    options = ["--group", "site", "--parameter-block", "arm", "--budget", "budgets.csv"]
    assert "--out must not be a file that is read" in refused("solve", "data.csv", *options, "--out", path)
    assert "--plot must not be a file that is read" in refused("solve", "data.csv", *options, "--plot", path)
    assert (folder / "data.csv").read_text() == before


def test_one_number_is_the_budget_of_every_group(folder):
    solved("--budget", "100", "--out", "d.csv")
    saved = files.read(folder / "d.csv", group="site", block="arm")
    np.testing.assert_allclose(np.bincount(saved.groups.numbers, saved.weights), 100)
    assert run("solve", "data.csv", "--features", "x,y", "--budget", "7").exit_code == 0


def test_verify_of_weights_that_lose_rank(folder):
    (folder / "d.csv").write_text("x,y,weight\n1,0,1\n0,1,0\n")
    result = run("verify", "d.csv", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["verdict"] == "differs"
    assert report["gap"] is None
    assert report["conclusion"].startswith("NOT optimal: the design loses rank")


def test_verify_that_is_inconclusive_is_exit_code_1(monkeypatch):
    solved("--out", "d.csv")
    failed = od.Verification("inconclusive", "the solver failed")
    monkeypatch.setattr(cli, "verify", lambda *_, **__: failed)
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    assert "inconclusive: the solver failed" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("NOT verified: the certificate holds")


def test_verify_says_when_exact_arithmetic_contradicts(monkeypatch):
    solved("--out", "d.csv")
    lying = od.certify

    def certify(problem, weights):
        return replace(lying(problem, weights), log_det=0.0)

    monkeypatch.setattr(result_module, "certify", certify)
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    assert "comparison        differs: log Det against exact arithmetic" in result.stdout
    assert result.stdout.splitlines()[-1] == "NOT verified: exact arithmetic contradicts the certificate"


def test_verify_hands_over_the_time_limit(monkeypatch):
    solved("--out", "d.csv")
    seen = []

    def verify(result, solver, **options):
        seen.append((solver, options))
        return od.verify(result, solver, **options)

    monkeypatch.setattr(cli, "verify", verify)
    arguments = [
        "verify",
        "d.csv",
        "--group",
        "site",
        "--parameter-block",
        "arm",
        "--solver",
        "scs",
        "--time-limit",
        60,
    ]
    assert run(*arguments).exit_code == 0
    assert seen == [("SCS", {"time_limit": 60.0, "progress": True})]


@pytest.mark.parametrize("command", ["certify", "verify"])
def test_notes_on_ranks_are_printed(folder, command):
    """In floating point 0.1 + 0.2 is outside the span, in exact arithmetic; both say so."""
    rows = [f"{x!r},{y!r},{x + y!r},0.25" for x, y in ((0.1, 0.2), (0.3, 0.4), (0.7, 0.1), (0.1, 0.7))]
    (folder / "d.csv").write_text("x,y,z,weight\n" + "\n".join(rows) + "\n")
    result = run(command, "d.csv", "--tol", 10)
    assert result.exit_code == 0, result.output
    assert "In exact arithmetic on the numbers as given it is larger" in result.stdout
    assert ("  note: the exact rank of 1 parameter block(s)" in result.stdout) == (command == "verify")


def test_certify_needs_no_other_solver(monkeypatch):
    solved("--budget", "budgets.csv", "--out", "d.csv")
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    arguments = ["certify", "d.csv", "--group", "site", "--parameter-block", "arm", "--budget", "budgets.csv"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert last.startswith("optimal to within 0.0001: efficiency at least 0.99999")
    assert "cvxpy" not in result.stdout
    report = json.loads(run(*arguments, "--json").stdout)
    assert (report["optimal"], report["within_tol"], report["tol"]) == (True, True, 1e-4)
    assert report["conclusion"] == last
    assert report["rank"] == 4
    assert "comparisons" not in report


@pytest.mark.usefixtures("uniform")
def test_certify_of_poor_weights_is_exit_code_1():
    arguments = ["certify", "d.csv", "--group", "site", "--parameter-block", "arm"]
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("NOT optimal: efficiency only at least 0.")
    assert run(*arguments, "--tol", 10).exit_code == 0


def test_certify_of_weights_that_lose_rank(folder):
    (folder / "d.csv").write_text("x,y,weight\n1,0,1\n0,1,0\n")
    result = run("certify", "d.csv", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["gap"] is None
    assert report["conclusion"].startswith("NOT optimal: the design loses rank")


@pytest.mark.parametrize("command", ["certify", "verify"])
@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("x\n1\n", [], ["'weight'", "'x'"]),
        ("x,weight,group\n1,1,a\n2,0,b\n", [], ["'b'", "sum to 0"]),
        ("x,weight\n1,-1\n2,2\n", [], ["negative"]),
        ("x,weight\n1,1\n", ["--tol", "0"], ["--tol must be positive"]),
    ],
)
def test_bad_designs_are_refused(folder, command, text, options, words):
    (folder / "d.csv").write_text(text)
    message = refused(command, "d.csv", *options)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--solver", "magic"], ["--solver must be one of", "CLARABEL", "'magic'"]),
        (["--time-limit", "0"], ["--time-limit must be positive seconds; got 0"]),
    ],
)
def test_verify_refuses_bad_options(folder, options, words):
    (folder / "d.csv").write_text("x,weight\n1,1\n")
    message = refused("verify", "d.csv", *options)
    for word in words:
        assert word in message


def test_verify_takes_budgets_of_an_archive():
    np.savez("d.npz", candidates=np.eye(2), budgets=[3.0], weights=[1.0, 1.0])
    assert "sum to the budget" in refused("verify", "d.npz")


def test_what_takes_time_is_said(monkeypatch):
    said = []

    @contextmanager
    def waiting(text):
        said.append(text)
        yield

    monkeypatch.setattr(cli, "waiting", waiting)
    solved("--out", "d.csv")
    assert said[:2] == ["reading data.csv", "finding the rank of every parameter block"]
    assert said[-1] == "writing d.csv"


def test_demo_solves_verifies_and_draws(folder):
    result = run("demo", "--out", "here/demo", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert "agrees" in result.stdout
    assert "converged" in result.stdout
    assert re.search(r"20 of \d+ weights shown, the largest; all are in here/demo/design.csv", result.stdout)
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert (folder / "here/demo/demo.png").stat().st_size > 50_000
    saved = files.read(folder / "here/demo/design.csv", group="client", block="arm")
    assert saved.candidates.shape == (1000, 3)
    problem = replace(saved, budgets=np.ones(100)).problem()
    assert od.certify(problem, saved.weights).relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("verdict", "why"),
    [("differs", "cvxpy differs"), ("inconclusive", "cvxpy has no answer to compare with")],
)
def test_demo_fails_where_verification_does(verdict, why, monkeypatch):
    monkeypatch.setattr(cli, "verify", lambda *_, **__: od.Verification(verdict, "by a friend"))
    monkeypatch.setattr(cli.pictures, "overview", lambda *_, **__: None)
    result = run("demo", "--out", "demo")
    assert result.exit_code == cli.NOT_CONVERGED
    assert re.search(rf"NOT verified: the certificate holds \(.*\), but {why}\n", result.stdout)
    # Of many weights the largest are shown, by row.
    weights = files.read(Path("demo/design.csv")).weights
    shown = [
        int(row) - 1 for row in re.findall(r"^ *(\d+) +\d+ +\d+ +[01]\.\d+", result.stdout, re.MULTILINE)
    ]
    assert len(shown) == 20
    assert shown == sorted(shown)
    assert weights[shown].min() >= np.delete(weights, shown).max()


def test_demo_refuses_a_folder_it_cannot_make():
    assert "File exists" in refused("demo", "--out", "data.csv")


def test_version_help_and_usage(monkeypatch):
    assert run("--version").stdout == f"optdesign {od.__version__}\n"
    assert "--time-limit" in run("solve", "--help").stdout
    summaries = " ".join(run("--help").stdout.split())
    assert "..." not in summaries.split("Commands:")[1]
    assert "and compare with cvxpy." in summaries
    assert "Certify the weights of a saved design." in summaries
    assert run("solve").exit_code == 2
    assert run("solve", "data.csv", "--max-iter", "many").exit_code == 2
    monkeypatch.setattr(sys, "argv", ["optdesign", "--version"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("optdesign", run_name="__main__")
    assert caught.value.code == 0


def test_importing_the_package_loads_no_interface():
    code = (
        "import sys, optdesign; "
        "print([m for m in ('typer', 'rich', 'matplotlib', 'cvxpy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
