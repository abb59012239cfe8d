"""The command bandits reproduce: names, effort; interrupts of both commands."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from bandits.cli import commands
from bandits.reproduce import EXPERIMENTS, QUICK, Effort


def command(*words):
    return CliRunner().invoke(commands.app, list(map(str, words)), catch_exceptions=False)


@pytest.mark.slow
def test_the_command_writes_and_counts(tmp_path):
    result = command("reproduce", "fig5", "--out", tmp_path, "--trials", 2, "--horizon", 150, "--n-jobs", 1)
    assert result.exit_code == 0
    assert "statements of the paper, empirical comparison: 0 hold, 0 do not, 10 not decided" in result.output
    assert "statements of the paper, true or false by construction: 2 hold, 1 do not" in result.output
    assert {"fig5.png", "fig5.svg", "fig5.csv", "report.html", "claims.csv", "runs"} == {
        path.name for path in tmp_path.iterdir()
    }


def test_the_command_knows_what_is_meant(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        commands, "reproduce_experiments", lambda *args, **options: asked.append((args, options)) or []
    )
    result = command("reproduce", "--out", tmp_path, "--quick")
    without = [name for name in EXPERIMENTS if name not in ("fig1c", "ordering-movielens")]
    assert asked[-1][0] == (without, tmp_path, QUICK)
    assert "left out: fig1c, ordering-movielens" in result.output
    command("reproduce", "table2", "fig1a", "--out", tmp_path, "--ratings", "u.data")
    assert asked[-1][0] == (["fig1a", "table2"], tmp_path, Effort())
    command("reproduce", "all", "--ratings", "u.data", "--trials", 4)
    assert asked[-1][0][0] == list(EXPERIMENTS)
    assert asked[-1][0][2] == Effort(4)
    for words, message in [
        (["fig1d"], "NAME must be all or one of fig1a, .*got 'fig1d' .did you mean"),
        (["fig1c"], "--ratings must name u.data of MovieLens-100K for fig1c"),
    ]:
        with pytest.raises(ValueError, match=message):
            command("reproduce", *words)


@pytest.mark.parametrize("name", ["run", "reproduce"])
def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch, name):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    file = tmp_path / "small.toml"
    file.write_text('horizon = 10\n[environment]\nkind = "authors"\n[[policy]]\nkind = "FedPE"\n')
    monkeypatch.setattr(commands, "simulate", interrupted)
    monkeypatch.setattr(commands, "reproduce_experiments", interrupted)
    result = command(name, file if name == "run" else "fig5", "--out", tmp_path)
    assert result.exit_code == 130
    assert "finished trials are kept" in result.stderr
