"""The command solve on columns of features: reports, files, limits and exit codes."""

import json
import signal
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import ROWS, SITES, expected, refused, run, solved, write_example

import optdesign as od
from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli
from optdesign.runtime.progress import Progress


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path)
    return tmp_path


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


def test_budgets_by_label_in_a_line():
    reports = [
        json.loads(solved("--json", "--budget", given).stdout)
        for given in ("budgets.csv", "west=5, north=1,south=2")
    ]
    assert reports[0]["weights"] == reports[1]["weights"]


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


def test_one_number_is_the_budget_of_every_group(folder):
    solved("--budget", "100", "--out", "d.csv")
    saved = files.read(folder / "d.csv", group="site", block="arm")
    np.testing.assert_allclose(np.bincount(saved.groups.numbers, saved.weights), 100)
    assert run("solve", "data.csv", "--features", "x,y", "--budget", "7").exit_code == 0


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
