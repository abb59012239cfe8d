"""Runs and results with given numbers, for tests of checks and rules."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from bandits.reproduce.running import Effort, Results
from bandits.simulation.run import Run
from bandits.trials.trial import PHASE


def made_up(regret, *, sparsity=1.0, iterations=1, uploaded=0, downloaded=0, active=0.0):
    """Return a run with these rows of regret; it has as many phases as columns, with the given numbers.

    ``uploaded`` and ``downloaded`` are totals; every phase has the same part of them.
    """
    regret = np.atleast_2d(np.asarray(regret, dtype=float))
    trials, columns = regret.shape
    phases = np.zeros(regret.size, PHASE)
    phases["trial"] = np.repeat(np.arange(trials), columns)
    phases["phase"] = np.tile(np.arange(columns) + 1, trials)
    phases["sparsity"], phases["iterations"], phases["active"] = sparsity, iterations, active
    phases["uploaded"], phases["downloaded"] = (n // max(columns, 1) for n in (uploaded, downloaded))
    empty = Run.empty("made up", columns, np.arange(1, columns + 1), "")
    return replace(
        empty, trials=np.arange(trials), regret=regret, phases=phases,
        uploaded=np.full(trials, uploaded), downloaded=np.full(trials, downloaded),
    )  # fmt: skip


def noisy(case, *, regret=1.0, half=0.5, sparsity=1.0, iterations=1.0, uploaded=0, downloaded=0, active=0.0):
    """Return a run of ten trials around given numbers, with a deviation of 1 % that differs between cases.

    Regret has four columns; ``half`` is the part of it that has accrued at half of the time.
    """
    factor = 1.0 + 0.01 * np.random.default_rng(zlib.crc32(case.slug.encode())).standard_normal(10)
    rows = np.outer(factor * regret, [half / 2, half, (1 + half) / 2, 1.0])
    run = made_up(rows, active=active, uploaded=4 * int(uploaded), downloaded=4 * int(downloaded))
    run.phases["sparsity"] = np.maximum(sparsity * np.repeat(factor, 4), 1.0)
    run.phases["iterations"] = np.rint(1000 * iterations * np.repeat(factor, 4))
    return run


def found(runs):
    """Return the results of runs by case."""
    return Results({case.slug: run for case, run in runs.items()}, Effort())
