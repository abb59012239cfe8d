"""The command demo, help and version, and what an import loads."""

import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run, write_example

import optdesign as od
from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_demo_solves_verifies_and_draws(folder):
    result = run("demo", "--out", "here/demo", "--seed", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("agrees") == 2
    plants = result.stdout.index("an experiment in two plants")
    assert plants < result.stdout.index("power") < result.stdout.index("the paper's synthetic instance")
    runs = od.load(folder / "here/demo/runs.json")
    assert runs.totals.tolist() == [9, 7]
    for name in ("runs.png", "prediction-variance.png"):
        assert (folder / "here/demo" / name).stat().st_size > 10_000
    assert "converged" in result.stdout
    assert re.search(r"20 of \d+ weights shown, the largest; all are in here/demo/design.csv", result.stdout)
    assert all(line == line.rstrip() for line in result.stdout.splitlines())
    assert (folder / "here/demo/demo.png").stat().st_size > 50_000
    saved = files.read(folder / "here/demo/design.csv", group="client", block="arm")
    assert saved.candidates.shape == (1000, 3)
    problem = replace(saved, budgets=np.ones(100)).problem()
    assert od.certify(problem, saved.weights).relative_gap <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verdict", "why"),
    [("differs", "cvxpy differs"), ("inconclusive", "cvxpy has no answer to compare with")],
)
def test_demo_fails_where_verification_does(verdict, why, monkeypatch):
    monkeypatch.setattr(cli, "verify", lambda *_, **__: od.Verification(verdict, "by a friend"))
    monkeypatch.setattr(cli.pictures, "overview", lambda *_, **__: None)
    result = run("demo", "--out", "demo")
    assert result.exit_code == cli.ExitCode.NOT_CONVERGED
    assert re.search(rf"NOT verified: the certificate holds \(.*\), but {why}\n", result.stdout)
    # The largest of many weights are shown, by row.
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
    assert "Certify a saved design or run list." in summaries
    assert run("solve").exit_code == 2
    assert run("solve", "data.csv", "--max-iter", "many").exit_code == 2
    monkeypatch.setattr(sys, "argv", ["optdesign", "--version"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("optdesign", run_name="__main__")
    assert caught.value.code == 0
