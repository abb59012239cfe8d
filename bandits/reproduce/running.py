"""Simulating the cases of several experiments: each once, side by side, with checkpoints and one display.

Trial n of a case plays on an instance drawn with seed n and takes its rewards from the stream of seed n, so
all policies meet the same instances, and differences between them can be taken trial by trial. Every trial
has a checkpoint of its own in the directory ``runs``: an interrupt costs the trials that are being played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from bandits.environments import LinearEnvironment
from bandits.progress import Progress
from bandits.reproduce.catalogue import POLICIES
from bandits.reproduce.description import Case, Instance
from bandits.run import Run
from bandits.simulate import simulate


@dataclass(frozen=True)
class Effort:
    """How much to simulate: the paper's ten trials and full horizons, or less."""

    trials: int = 10
    longest: int | None = None
    """Horizons are cut to this."""

    @property
    def full(self) -> bool:
        """Whether the numbers are the paper's."""
        return self == Effort()


QUICK = Effort(trials=3, longest=2**13)


@dataclass(frozen=True)
class Results:
    """Runs by case; cases have their full horizon, runs the one that was played."""

    runs: Mapping[Case, Run]
    effort: Effort
    ratings: Path | None = None

    def __getitem__(self, case: Case) -> Run:
        return self.runs[case]

    def __contains__(self, case: Case) -> bool:
        return case in self.runs

    def environment(self, instance: Instance, trial: int = 0) -> LinearEnvironment:
        """What a trial was played on."""
        return _environment(instance, trial, self.ratings)


def play(
    cases: Iterable[Case], out: Path, effort: Effort, *, ratings: Path | None, n_jobs: int, progress: bool
) -> Results:
    """Play every case, or take its trials from the checkpoints of an earlier call."""
    unique = list(dict.fromkeys(cases))
    tasks = [(case, n) for n in range(effort.trials) for case in unique]
    trials: dict[Case, dict[int, Run]] = {case: {} for case in unique}
    with Progress(progress, len(tasks)) as display:
        for case, n, run in _finished(tasks, out / "runs", effort.longest, ratings, n_jobs):
            trials[case][n] = run
            display.step()
    runs = {case: joined([of[n] for n in range(effort.trials)]) for case, of in trials.items()}
    return Results(runs, effort, ratings)


def joined(runs: list[Run]) -> Run:
    """Trials on different instances as one run, numbered in their order."""
    phases = np.concatenate([run.phases for run in runs])
    phases["trial"] = np.repeat(np.arange(len(runs)), [len(run.phases) for run in runs])
    return replace(
        runs[0],
        trials=np.arange(len(runs)),
        regret=np.concatenate([run.regret for run in runs]),
        uploaded=np.concatenate([run.uploaded for run in runs]),
        downloaded=np.concatenate([run.downloaded for run in runs]),
        phases=phases,
        identity="",
    )


def _finished(
    tasks: list[tuple[Case, int]], out: Path, longest: int | None, ratings: Path | None, n_jobs: int
) -> Iterator[tuple[Case, int, Run]]:
    """Trials in the order in which they finish."""
    if n_jobs == 1:
        yield from (_trial(case, n, out, longest, ratings) for case, n in tasks)
    else:
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from pool(delayed(_trial)(case, n, out, longest, ratings) for case, n in tasks)


def _trial(case: Case, n: int, out: Path, longest: int | None, ratings: Path | None) -> tuple[Case, int, Run]:
    played = case.within(longest)
    run = simulate(
        POLICIES[case.policy],
        _environment(case.instance, n, ratings),
        played.horizon,
        trials=1,
        seed=n,
        checkpoint=out / f"{played.slug}-{n}.npz",
    )
    return case, n, run


@lru_cache(maxsize=32)
def _environment(instance: Instance, seed: int, ratings: Path | None) -> LinearEnvironment:
    return instance.environment(seed, ratings)
