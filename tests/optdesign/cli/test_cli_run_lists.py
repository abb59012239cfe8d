"""A run list from the command line is certified and verified without options, and changes are noticed."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run

import optdesign as od

MODEL = "~ plant + temp * conc + I(temp**2)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{p},{t},{0.1 * k!r}" for p in ("Turin", "Lyon") for t in (20, 40, 60) for k in (1, 3)]
    (tmp_path / "f.csv").write_text("\n".join(["plant,temp,conc", *rows]) + "\n")
    done = run("solve", "f.csv", "--model", MODEL, "--group", "plant", "--where", "temp < 60 or conc < 0.25",
               "--runs", "Lyon=4,Turin=6", "--out", "list.csv", "--randomise", 1,
               "--keep-groups")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "runs written to list.csv\nrecipe written to list.csv.json\n" in done.stdout
    assert "6 (Turin) + 4 (Lyon)" in done.stdout
    return tmp_path


def lines(path="list.csv"):
    return Path(path).read_text().splitlines()


def test_a_list_is_verified_as_it_is(folder):
    listed = lines()
    assert listed[0] == "run,plant,temp,conc"
    assert [line.split(",")[1] for line in listed[1:]] == ["Turin"] * 6 + ["Lyon"] * 4
    assert not any("0000000" in line for line in listed)
    done = run("verify", "list.csv", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["verdict"] == "agrees"
    assert report["efficiency"] == json.loads((folder / "list.csv.json").read_text())["efficiency"]
    assert report["g_efficiency"] < report["efficiency"]
    said = run("certify", "list.csv").stdout.splitlines()[-1]
    assert said.startswith("efficiency at least 0.9")
    assert "on these candidates (the runs alone prove 0." in said


def test_a_list_of_a_file_with_row_names_of_r_is_verified():
    head, *rows = Path("f.csv").read_text().splitlines()
    named = [f"{k},{row}" for k, row in enumerate(rows, 1)]
    Path("r.csv").write_text("\n".join(["," + head, *named]) + "\n")
    done = run("solve", "r.csv", "--model", MODEL, "--runs", 9, "--out", "named.csv")
    assert done.exit_code == 0, done.stderr
    assert lines("named.csv")[0] == "run,plant,temp,conc"
    assert run("verify", "named.csv").exit_code == 0


def test_reordered_rounded_and_longer_lists_are_the_same_runs():
    head, *rows = lines()
    changed = [f"{row},{k}.5" for k, row in enumerate(reversed(rows))]
    Path("list.csv").write_text("\n".join([head + ",yield", *changed]) + "\n")
    assert run("verify", "list.csv").exit_code == 0


def test_settings_of_different_sizes_are_different_settings():
    sizes = [5.6e-17, 1e-12, 1e-9, 1 / 3, 1.0]
    pd.DataFrame({"x": sizes}).to_csv("x.csv", index=False)
    options = ["--candidates", "x.csv", "--model", "~ x"]
    Path("own.csv").write_text("x\n0\n1e-12\n1e-9\n0.333333333\n1\n")
    listed = json.loads(run("certify", "own.csv", *options, "--json").stdout)
    assert listed["support"] == len(sizes)
    for other in ("5e-10", "1.1e-12", "1e-13", "0.33333333", "0.9999999"):
        Path("own.csv").write_text(f"x\n{other}\n1\n")
        assert f"x = {other}, is none" in refused("certify", "own.csv", *options)


def test_text_that_differs_by_a_space_at_its_beginning_stays_apart():
    names = [" A", "A", " A", "A"]
    pd.DataFrame({"cat": names, "x": [0, 0, 1, 1]}).to_parquet("c.parquet")
    assert run("solve", "c.parquet", "--model", "~ cat * x", "--runs", 4, "--out", "own.csv").exit_code == 0
    assert run("verify", "own.csv").exit_code == 0
    assert od.candidates("own.csv", "~ cat * x").settings["cat"].tolist() == names


def test_lists_with_labels_that_are_fractions():
    label = np.repeat([0.5, 1.0, 0.1 + 0.2], 2)
    pd.DataFrame({"oven": label, "x": [0.0, 1.0] * 3}).to_parquet("c.parquet")
    options = ["--model", "~ x", "--group", "oven", "--runs", 2, "--out", "own.csv"]
    assert run("solve", "c.parquet", *options).exit_code == 0
    assert run("verify", "own.csv").exit_code == 0


def test_designs_keep_categories_of_numbers():
    frame = pd.DataFrame({"day": pd.Categorical([3, 1, 7] * 2), "x": [0.0, 0, 0, 1, 1, 1]})
    frame.to_parquet("c.parquet")
    for out in ("d.csv", "d.parquet"):
        said = refused("solve", "c.parquet", "--model", "~ x + day", "--out", out)
        assert "'day' has categories of numbers" in said
        assert run("solve", "c.parquet", "--model", "~ x + C(day)", "--out", out).exit_code == 0
        assert run("certify", out, "--model", "~ x + C(day)").exit_code == 0
    assert run("solve", "c.parquet", "--model", "~ x + day", "--out", "d.npz").exit_code == 0
    assert run("certify", "d.npz").exit_code == 0


def test_a_changed_list_is_noticed():
    head, *rows = lines()
    other = rows[0].split(",")[:1] + rows[1].split(",")[1:]
    twice = next(k for k, row in enumerate(rows) if row.split(",")[1:] != other[1:])
    rows[twice] = ",".join(other)
    Path("list.csv").write_text("\n".join([head, *rows]) + "\n")
    done = run("verify", "list.csv")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("NOT verified")
    rows[0] = "1,Turin,33,0.1"
    Path("list.csv").write_text("\n".join([head, *rows]) + "\n")
    said = refused("verify", "list.csv")
    assert (
        "every run must be a candidate; line 2 of list.csv, plant = Turin, temp = 33, conc = 0.1, is none"
        in said
    )


def test_a_changed_list_has_the_numbers_of_its_own_runs(folder):
    head, *rows = lines()
    same = [row.split(",")[1:] for row in rows]
    worse = next(k for k in range(1, len(rows)) if same[k][0] == same[0][0] and same[k] != same[0])
    rows[worse] = ",".join([rows[worse].split(",")[0], *same[0]])
    Path("list.csv").write_text("\n".join([head, *rows]) + "\n")
    before = json.loads((folder / "list.csv.json").read_text())["efficiency"]
    Path("alone.csv").write_text(Path("list.csv").read_text())
    options = ["--candidates", "f.csv", "--model", MODEL, "--group", "plant"]
    done = run("certify", "alone.csv", *options, "--where", "temp < 60 or conc < 0.25", "--json")
    truth = json.loads(done.stdout)
    own = json.loads(run("certify", "list.csv", "--json").stdout)
    assert own["efficiency"] == truth["efficiency"] < before
    assert own["log_det"] == truth["log_det"]
    evaluated = json.loads(run("evaluate", "list.csv", "--json").stdout)
    assert evaluated["d_efficiency"] == truth["efficiency"]


def test_a_forged_efficiency_is_noticed(folder):
    recipe = folder / "list.csv.json"
    content = json.loads(recipe.read_text())
    recipe.write_text(json.dumps(content | {"efficiency": 0.9999}))
    assert run("verify", "list.csv").exit_code == 1


def test_candidates_that_changed_or_moved(folder):
    text = (folder / "f.csv").read_text()
    (folder / "f.csv").write_text(text.replace("20", "21"))
    assert "f.csv has changed since the list was written" in refused("verify", "list.csv")
    (folder / "f.csv").unlink()
    assert "must be where the recipe states" in refused("verify", "list.csv")
    (folder / "g.csv").write_text(text)
    options = ["--candidates", "g.csv", "--model", MODEL, "--group", "plant"]
    done = run("verify", "list.csv", *options, "--where", "temp < 60 or conc < 0.25")
    assert done.exit_code == 0, done.output
    recipe = folder / "list.csv.json"
    recipe.write_text("{}")
    assert "must be the recipe of a run list" in refused("verify", "list.csv")
    recipe.unlink()
    assert "must have its recipe list.csv.json beside it" in refused("verify", "list.csv")


def test_a_colleagues_list_has_the_efficiency_of_python():
    Path("own.csv").write_text("conc,temp,plant\n" + "0.1,20,Lyon\n0.3,40,Lyon\n0.1,60,Turin\n0.3,20,Turin\n"
                               "0.1,40,Turin\n0.3,60,Lyon\n")  # fmt: skip
    done = run("certify", "own.csv", "--candidates", "f.csv", "--model", MODEL, "--group", "plant", "--json")
    assert done.exit_code == 0, done.output
    c = od.candidates("f.csv", model=MODEL)
    p = od.DesignProblem(c, groups="plant", budgets=3)
    wanted = [
        ("Lyon", 20, 1),
        ("Lyon", 40, 3),
        ("Turin", 60, 1),
        ("Turin", 20, 3),
        ("Turin", 40, 1),
        ("Lyon", 60, 3),
    ]
    settings = list(zip(*(c.settings[k].tolist() for k in ("plant", "temp", "conc")), strict=True))
    counts = [sum(s[:2] == w[:2] and round(10 * s[2]) == w[2] for w in wanted) for s in settings]
    assert json.loads(done.stdout)["efficiency"] == pytest.approx(od.certify(p, counts).efficiency, abs=1e-6)


def test_options_of_lists(folder):
    assert "--keep-groups must come with --randomise" in refused("solve", "f.csv", "--keep-groups")
    (folder / "other.csv.json").write_text("mine")
    for name in ("list.csv", "other.csv"):
        said = refused("solve", "f.csv", "--model", "~ temp", "--runs", 4, "--out", name)
        assert f"'{name}.json' exists" in said


def test_large_whole_numbers_that_differ_in_the_last_digit():
    levels = [2**53, 2**53 - 1, 2**53 - 5]
    Path("big.csv").write_text("\n".join(["b,d", *(f"{b},{d}" for d in "MT" for b in levels)]) + "\n")
    model = f"~ d + I((b - {2**53}) / 2)"
    done = run("solve", "big.csv", "--model", model, "--runs", 14, "--out", "big_list.csv")
    assert done.exit_code == 0, done.stderr
    assert str(2**53) in done.stdout
    claimed = json.loads(Path("big_list.csv.json").read_text())
    report = json.loads(run("certify", "big_list.csv", "--json").stdout)
    assert report["log_det"] == pytest.approx(claimed["log_det"], rel=1e-12)
    assert run("verify", "big_list.csv").exit_code == 0
    text = Path("big_list.csv").read_text()
    Path("big_list.csv").write_text(text.replace("9007199254740987", "9007199254740986", 1))
    assert "every run must be a candidate" in refused("certify", "big_list.csv")


@pytest.mark.parametrize("names", ["run,run_", "run_,run"])
def test_factors_with_the_name_of_the_number_of_the_run(names):
    rows = "\n".join(f"{i},{j}" for i in (-1, 0, 1) for j in (-1, 0, 1))
    Path("names.csv").write_text(f"{names}\n{rows}\n")
    model = ("--model", "~ run + I(run**2) + run_", "--runs", 5, "--out", "names_list.csv")
    claimed = json.loads(run("solve", "names.csv", *model, "--json").stdout)
    found = run("certify", "names_list.csv", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["log_det"] == pytest.approx(claimed["log_det"])


@pytest.mark.parametrize("unit", ["ns", "s"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates(unit, ending):
    days = np.array(["2024-01-01", "2023-05-06"] * 3, dtype=f"M8[{unit}]")
    pd.DataFrame({"day": days, "t": np.arange(6.0)}).to_parquet("days.parquet")
    options = ("--model", "~ t", "--group", "day", "--runs", "2024-01-01=3,2023-05-06=2")
    done = run("solve", "days.parquet", *options, "--out", f"days.{ending}.{ending}", "--json")
    assert done.exit_code == 0, done.stderr
    found = [one["settings"]["day"] for one in json.loads(done.stdout)["runs"]]
    assert sorted(found) == ["2023-05-06"] * 2 + ["2024-01-01"] * 3
    assert run("certify", f"days.{ending}.{ending}").exit_code == 0


def test_times_of_day_are_text_in_json():
    times = [datetime.time(8, 30), datetime.time(9), datetime.time(10)]
    pd.DataFrame({"time": times, "x": [1.0, 2.0, 4.0]}).to_parquet("t.parquet")
    report = json.loads(run("solve", "t.parquet", "--group", "time", "--json").stdout)
    assert [row["settings"]["time"] for row in report["design"]] == [str(time) for time in times]
