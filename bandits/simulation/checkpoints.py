"""Checkpoints: files of finished trials that an interrupted run resumes from.

Several processes may share a checkpoint. Each of them reads, merges and replaces the file under a lock.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from filelock import BaseFileLock, FileLock

from bandits.simulation.fingerprints import differences, is_stale
from bandits.simulation.run import Run, concatenate, load

LOCK = ".checkpoints.lock"
"""Name of the lock file in the directory of a checkpoint. It is empty and stays in the directory."""

POLL = 0.01
"""Seconds between two attempts to take the lock."""


def locked(path: Path) -> BaseFileLock:
    """Return the lock of the checkpoints in the directory of a path. The directory must exist."""
    return FileLock(path.resolve().parent / LOCK, poll_interval=POLL)


def merge(run: Run, path: Path) -> Run:
    """Add the trials of a run to a checkpoint; return the run with all trials of the checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        if path.exists():
            saved = load(path)
            run = concatenate([run, saved.select(np.setdiff1d(saved.trials, run.trials))])
        run.save(path)
    return run


def resumed(path: Path, empty: Run) -> Run:
    """Return the run of a checkpoint, or the empty run if there is none or other code wrote it.

    A checkpoint of other code is kept under another name, and a warning says so.
    """
    if not path.parent.exists():
        return empty
    with locked(path):
        if not path.exists():
            return empty
        saved = load(path)
        parts = differences(saved.identity, empty.identity)
        aside = path.with_name(f"{path.stem}.stale{path.suffix}")
        if is_stale(parts):
            path.replace(aside)
    if not parts:
        return saved
    if not is_stale(parts):
        raise ValueError(
            f"checkpoint must belong to this run; {path} was written by another {_listed(parts)}. "
            "Name another file, or delete it."
        )
    warnings.warn(
        f"the checkpoint {path} is stale: it was written by other code or another version of bandits, "
        f"optdesign, Python, NumPy, SciPy or Numba. Its {len(saved.trials)} trial(s) are not used and are "
        f"played again. The old file is now {aside.name}.",
        stacklevel=3,
    )
    return empty


def _listed(parts: Sequence[str]) -> str:
    """Return the parts in words."""
    words = {"plan": "horizon, times or seed", "policy": "policy (its options, class or functions)"}
    return " and another ".join(words.get(part, part) for part in parts)
