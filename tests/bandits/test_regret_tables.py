"""Tables of runs: every column belongs to the trial in its name."""

from __future__ import annotations

import csv

import bandits
from bandits.plotting import write_csv


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
