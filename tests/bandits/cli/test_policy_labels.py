"""Labels and options of experiments in tables, pictures and file names: as they were written."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import bandits
from bandits.cli import commands
from bandits.plotting import COLOURS, plot_regret

runner = CliRunner()

FILE = """
horizon = 50
trials = 2
title = "Price in $, regret in $"
[environment]
kind = "authors"
clients = 2
arms = 2
dim = 2
"""


def play(folder, *labels, kind="LocalUCB", words=()):
    """Run an experiment with a policy per label, each with its own sigma."""
    file = folder / "c.toml"
    entries = [
        f"[[policy]]\nkind = '{kind}'\nsigma = {1.0 + n}\nlabel = '{label}'" for n, label in enumerate(labels)
    ]
    file.write_text(FILE + "\n".join(entries), encoding="utf-8")
    call = ["run", str(file), "--out", str(folder / "out"), *words]
    return runner.invoke(commands.app, call, catch_exceptions=False)


def test_labels_are_printed_as_they_are_written(tmp_path):
    labels = [r"$\frac{$", "[red]x[/]", ":smile:", "_hidden", "5 $ or 6 $"]
    result = play(tmp_path, *labels)
    assert result.exit_code == 0
    for label in labels:
        assert label in result.output
    assert (tmp_path / "out" / "regret.png").exists()


def test_labels_of_other_alphabets_have_files_of_their_own(tmp_path):
    assert play(tmp_path, "\u03b1", "\u03b2").exit_code == 0
    assert len(list((tmp_path / "out").glob("regret-*.npz"))) == 2


def test_labels_with_one_file_name_are_refused_before_anything_is_played(tmp_path):
    with pytest.raises(ValueError, match=r"'A b' and 'a-B' would both be saved in regret-a-b\.npz"):
        play(tmp_path, "A b", "a-B")
    assert not (tmp_path / "out").exists()


def test_every_curve_has_its_label_and_a_look_of_its_own():
    env = bandits.environments.authors(2, 2, 2)
    run = bandits.simulate(bandits.LocalUCB(), env, 20, trials=1)
    labels = ["_first", *map(str, range(len(COLOURS) + 2))]
    figure = plot_regret(dict.fromkeys(labels, run))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
    assert len(looks) == len(labels)


def test_another_horizon_makes_the_environment_for_it(tmp_path):
    """The gaps of the lower bound are those of the horizon that is played."""
    file = tmp_path / "c.toml"
    file.write_text(
        "horizon = 100\ntrials = 1\n[environment]\nkind = 'lower_bound'\nclients = 4\narms = 3\ndim = 2\n"
        "[[policy]]\nkind = 'LocalUCB'"
    )
    out = tmp_path / "out"
    words = ["run", str(file), "--out", str(out), "--horizon", "400", "--trials", "3"]
    assert runner.invoke(commands.app, words, catch_exceptions=False).exit_code == 0
    env = bandits.environments.lower_bound(4, 3, 2, 400)
    run = bandits.simulate(bandits.LocalUCB(), env, 400, trials=3)
    np.testing.assert_array_equal(bandits.load(out / "regret-localucb.npz").regret, run.regret)
