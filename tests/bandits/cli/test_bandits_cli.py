"""The command, its configuration files, its pictures and tables."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace

import numpy as np
import pytest
from made_up import made_up
from typer.testing import CliRunner

import bandits
import optdesign
from bandits.cli import commands, experiment_file
from bandits.plotting import plot_regret

runner = CliRunner()

SMALL = """
horizon = 200
trials = 2
[environment]
kind = "authors"
clients = 4
arms = 3
dim = 2
[[policy]]
kind = "FedPE"
schedule = { kind = "greedy" }
[[policy]]
kind = "LocalUCB"
label = "alone"
"""


def command(*words):
    return runner.invoke(commands.app, list(map(str, words)), catch_exceptions=False)


def test_run_writes_a_table_a_plot_and_the_runs_and_resumes(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    out = tmp_path / "out"
    result = command("run", file, "--out", out)
    assert result.exit_code == 0
    for word in ("FedPE", "alone", "regret.png"):
        assert word in result.output
    assert sorted(p.name for p in out.iterdir()) == [
        ".checkpoints.lock",
        "regret-alone.npz",
        "regret-fedpe.npz",
        "regret.csv",
        "regret.png",
        "regret.svg",
    ]
    env = bandits.environments.authors(4, 3, 2)
    policy = bandits.FedPE(schedule=bandits.schedules.Greedy())
    run = bandits.load(out / "regret-fedpe.npz")
    np.testing.assert_array_equal(run.regret, bandits.simulate(policy, env, 200, trials=2).regret)
    assert command("run", file, "--out", out, "--trials", 3).exit_code == 0
    more = bandits.load(out / "regret-fedpe.npz")
    np.testing.assert_array_equal(more.regret[:2], run.regret)
    with (out / "regret.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {row["policy"] for row in rows} == {"FedPE", "alone"}
    last = [row for row in rows if row["policy"] == "FedPE"][-1]
    assert int(last["time"]) == 200
    assert float(last["mean"]) == pytest.approx(more.mean[-1], rel=1e-9)
    assert float(last["trial_2"]) == pytest.approx(more.regret[2, -1], rel=1e-9)


def test_the_table_rounds_no_regret_to_zero():
    """Numbers have the digits of their deviation, and a single trial has no deviation."""
    run = made_up([[0.0031], [0.0035]], uploaded=2)
    table = commands._table({"x": run, "y": run.select([0])}, {"x": 1.0, "y": 1.0}, 4)
    cells = [list(column.cells) for column in table.columns]
    assert [column[0] for column in cells[1:6]] == ["2", "0.00330", "0.00028", "0.5", "0"]
    assert [column[1] for column in cells[1:6]] == ["1", "0.0031", "-", "0.5", "0"]


def test_the_example_is_complete_and_valid(tmp_path):
    printed = command("example").output
    file = tmp_path / "example.toml"
    file.write_text(printed)
    experiment = experiment_file.read(file)
    assert list(experiment.policies) == [
        "FedPE",
        "EnhancedFedPE",
        "CollaborativeFedPE",
        "UCB, no communication",
    ]
    assert experiment.policies["EnhancedFedPE"].protocol == "scalars"
    assert experiment.horizon == 2**17
    assert experiment.title == ""


def test_environments_from_a_file_and_from_generators(tmp_path):
    rng = np.random.default_rng(0)
    x, theta = rng.uniform(0.1, 0.5, (3, 2, 2)), rng.uniform(0.1, 0.5, 2)
    np.savez(tmp_path / "data.npz", features=x, parameters=theta)
    policy = [{"kind": "LocalUCB"}]

    def env(**options):
        return experiment_file.parse({"horizon": 10, "environment": options, "policy": policy}, tmp_path).env

    loaded = env(kind="file", path="data.npz", noise="bernoulli")
    assert loaded.shared
    assert loaded.sigma == 0.5
    np.testing.assert_array_equal(loaded.features, x)
    assert env(kind="lower_bound", clients=4, arms=3, dim=2).means.max() == pytest.approx(np.sqrt(4 / 160))
    assert env(kind="identical", clients=3, arms=2, dim=2).shared
    assert env(kind="random", clients=3, arms=2, dim=2, noise="bernoulli").sigma == 0.5
    assert env(kind="authors", clients=3, scale=0.25).sigma == 0.25
    assert env(kind="clusters", clients=3, arms=2, dim=2, n_clusters=2).clients == 3


def test_mistakes_in_a_file_are_named():
    good = {"horizon": 10, "environment": {"kind": "authors"}, "policy": [{"kind": "FedPE"}]}
    for change, word in [
        ({"horizons": 3}, "horizons"),
        ({"environment": {"kind": "moon"}}, "moon"),
        ({"environment": {"kind": "authors", "colour": 1}}, "colour"),
        ({"policy": [{"kind": "UCB"}]}, "UCB"),
        ({"polices": []}, r"'polices' \(did you mean 'policy'\?\)"),
        ({"policy": [{"kind": "fedpe"}]}, r"'fedpe' \(did you mean 'FedPE'\?\)"),
        ({"policy": [{"kind": "FedPE", "dleta": 0.1}]}, "did you mean 'delta'"),
        ({"environment": {"kind": "author"}}, "did you mean 'authors'"),
        ({"policy": [{"kind": "FedPE", "gap": 1}]}, "gap"),
        ({"policy": [{"kind": "FedPE"}, {"kind": "FedPE"}]}, "twice"),
        ({"policy": [{"kind": "FedPE", "schedule": {"kind": "weekly"}}]}, "weekly"),
        ({"policy": [{"kind": "FedPE", "schedule": {"kind": "greedy", "c": 2}}]}, "greedy|'c'"),
    ]:
        with pytest.raises(ValueError, match=word):
            experiment_file.parse({**good, **change})
    with pytest.raises(ValueError, match="must have policy"):
        experiment_file.parse({"horizon": 10, "environment": {}})


def test_errors_are_one_line_and_exit_with_2(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "broken.toml"
    broken.write_text("horizon = ")
    for words in (["reproduce", "fig9"], ["run", str(broken)], ["run", str(tmp_path / "none.toml")]):
        monkeypatch.setattr(sys, "argv", ["bandits", *words])
        with pytest.raises(SystemExit) as stopped:
            commands.main()
        assert stopped.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith("bandits: ")
        assert len(said.splitlines()) == 1


def test_results_of_another_experiment_are_refused_before_any_run(tmp_path, monkeypatch):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    out = tmp_path / "out"
    command("run", file, "--out", out)
    before = {p: p.read_bytes() for p in out.iterdir()}
    file.write_text(SMALL.replace('label = "alone"', 'label = "alone"\nsigma = 3.0'))
    monkeypatch.setattr(commands, "simulate", None)
    with pytest.raises(ValueError, match=r"regret-alone.npz was made with other options of 'alone'"):
        command("run", file, "--out", out)
    with pytest.raises(ValueError, match="--out must not hold results of another experiment"):
        command("run", file, "--out", out, "--horizon", 100)
    assert {p: p.read_bytes() for p in out.iterdir()} == before


def test_results_of_other_code_are_put_aside_and_played_again(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    out = tmp_path / "out"
    command("run", file, "--out", out)
    run = bandits.load(out / "regret-alone.npz")
    replace(run, regret=run.regret + 1.0, identity="0" * 64).save(out / "regret-alone.npz")
    with pytest.warns(UserWarning, match=r"regret-alone\.npz is stale: .* now regret-alone\.stale\.npz"):
        command("run", file, "--out", out)
    np.testing.assert_array_equal(bandits.load(out / "regret-alone.npz").regret, run.regret)


def test_a_damaged_checkpoint_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "regret-fedpe.npz").touch()
    monkeypatch.setattr(sys, "argv", ["bandits", "run", str(tmp_path / "small.toml"), "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        commands.main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "regret-fedpe.npz" in said
    assert "Delete it" in said
    assert len(said.splitlines()) == 1


def test_the_title_is_that_of_the_file(tmp_path, monkeypatch):
    drawn = []

    def draw(runs, title):
        drawn.append(title)
        return plot_regret(runs, title)

    monkeypatch.setattr("bandits.plotting.plot_regret", draw)
    for head in ("", 'title = "Four clients"\n'):
        (tmp_path / "small.toml").write_text(head + SMALL)
        command("run", tmp_path / "small.toml", "--out", tmp_path / "out")
    assert drawn == ["", "Four clients"]


def test_table_version_and_help(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    printed = command("run", tmp_path / "small.toml", "--out", tmp_path / "out").output
    for word in ("seconds", "scalars", "Best lost", "std"):
        assert word in printed
    assert command("--version").output == f"bandits {optdesign.__version__}\n"
    assert "..." not in command("--help").output.split("Commands:")[1]


def test_missing_matplotlib_is_named_before_any_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(commands, "simulate", None)
    monkeypatch.setattr(sys, "argv", ["bandits", "reproduce", "fig1a", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        commands.main()
    assert stopped.value.code == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err


def test_curves_show_mean_and_deviation():
    env = bandits.environments.authors(3, 2, 2)
    run = bandits.simulate(bandits.FedPE(), env, 100, trials=3)
    figure = plot_regret({"one": run}, "a title")
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.append(0.0, run.mean))
    assert len(axes.collections) == 1
    assert axes.get_legend().get_texts()[0].get_text() == "one"


def test_curves_can_carry_bounds():
    def bound(t):
        return bandits.theory.fedpe_regret(3, 2, 2, t) / 3

    run = bandits.simulate(bandits.FedPE(), bandits.environments.authors(3, 2, 2), 100, trials=3)
    bounded = plot_regret({"one": run}, bounds={"theory": bound})
    assert bounded.axes[0].lines[-1].get_ydata()[-1] == bound(100)
    assert bounded.axes[0].get_yscale() == "log"
