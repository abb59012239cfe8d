"""Runs and results with given numbers, for tests of what is read from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandits.reproduce.running import Effort, Results
from bandits.run import Run
from bandits.trial import PHASE


def made_up(regret, *, sparsity=1.0, iterations=1, uploaded=0, downloaded=0):
    """A run with these rows of regret; as many phases as columns, with the given numbers."""
    regret = np.atleast_2d(np.asarray(regret, dtype=float))
    trials, columns = regret.shape
    phases = np.zeros(regret.size, PHASE)
    phases["trial"] = np.repeat(np.arange(trials), columns)
    phases["phase"] = np.tile(np.arange(columns) + 1, trials)
    phases["sparsity"], phases["iterations"] = sparsity, iterations
    empty = Run.empty("made up", columns, np.arange(1, columns + 1), "")
    return replace(
        empty, trials=np.arange(trials), regret=regret, phases=phases,
        uploaded=np.full(trials, uploaded), downloaded=np.full(trials, downloaded),
    )  # fmt: skip


def found(runs):
    """Results of runs by case."""
    return Results({case.slug: run for case, run in runs.items()}, Effort())
