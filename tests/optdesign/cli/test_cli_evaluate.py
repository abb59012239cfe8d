"""The command evaluate on run lists and saved designs."""

import json

import numpy as np
import pytest
from command_line import refused, run

import optdesign as od

MODEL = "~ a * b"


@pytest.fixture(autouse=True)
def lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    c = od.candidates({"a": [-1, 0, 1], "b": ["u", "v"]}, MODEL)
    for n in (8, 12):
        od.exact(od.DesignProblem(c, budgets=n), tries=1).table().write(f"runs{n}.csv")
    od.save(od.solve(od.DesignProblem(c)), "weights.json")


def test_figures_are_those_of_python():
    done = run("evaluate", "runs8.csv", "--model", MODEL, "--effect", 2, "--json")
    assert done.exit_code == 0, done.stderr
    e = od.evaluate("runs8.csv", MODEL, effect=2)
    read = json.loads(done.stdout)
    np.testing.assert_allclose([line["power"] for line in read["coefficients"]], e.power)
    text = run("evaluate", "runs8.csv", "--model", MODEL, "--effect", 2).stdout
    assert str(e) in text


def test_two_designs_side_by_side(tmp_path):
    done = run("evaluate", "runs8.csv", "--model", MODEL, "--against", "runs12.csv", "--plot", "both.png")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "both.png").stat().st_size > 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("a "))
    pair = [od.evaluate(f"runs{n}.csv", MODEL) for n in (8, 12)]
    expected = [f"{getattr(e, name)[1]:.4f}" for name in ("standard_errors", "vif", "power") for e in pair]
    assert line.split()[1:] == expected
    both = json.loads(
        run("evaluate", "runs8.csv", "--model", MODEL, "--against", "runs12.csv", "--json").stdout
    )
    assert [one["file"] for one in both["designs"]] == ["runs8.csv", "runs12.csv"]


def test_saved_weights_are_scaled_to_runs():
    done = run("evaluate", "weights.json", "--runs", 12, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["error_df"] == pytest.approx(8)


def test_bad_input():
    assert "model must be given" in refused("evaluate", "runs8.csv").replace("--model", "model")
    assert "sigma must be positive" in refused(
        "evaluate", "runs8.csv", "--model", MODEL, "--sigma", 0
    ).replace("--sigma", "sigma")
