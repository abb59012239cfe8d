"""Tables of runs: every column belongs to the trial in its name."""

from __future__ import annotations

import csv

import pytest
from matplotlib.figure import Figure

import bandits
from bandits.plotting import save_figure, write_csv


def test_columns_have_the_numbers_of_their_trials(tmp_path):
    env = bandits.environments.random(3, 4, 2)
    run = bandits.simulate(bandits.LocalUCB(), env, 50, trials=4, times=[25])
    write_csv({"late": run.select([2, 3]), "other": run.select([0, 3])}, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["policy", "time", "mean", "std", "trial_0", "trial_2", "trial_3"]
    for row in rows:
        c = run.times.tolist().index(int(row["time"]))
        missing = "trial_0" if row["policy"] == "late" else "trial_2"
        for n in (0, 2, 3):
            expected = "" if f"trial_{n}" == missing else f"{run.regret[n, c]:.10g}"
            assert row[f"trial_{n}"] == expected


def test_figures_keep_dots_in_their_names(tmp_path):
    for delta in ("0.1", "0.5"):
        save_figure(Figure(), tmp_path / f"delta-{delta}")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["delta-0.1.png", "delta-0.1.svg", "delta-0.5.png", "delta-0.5.svg"]


@pytest.mark.parametrize("numbers", [[4], [0, -1], range(5)])
def test_trials_that_a_run_does_not_have_are_refused(numbers):
    run = bandits.simulate(bandits.LocalUCB(), bandits.environments.random(3, 4, 2), 50, trials=4)
    with pytest.raises(ValueError, match=r"numbers must be those of trials of the run; trial -?\d is not"):
        run.select(numbers)
