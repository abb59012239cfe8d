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

from bandits.checks import check_jobs
from bandits.environments.linear import LinearEnvironment
from bandits.reproduce.catalogue import POLICIES
from bandits.reproduce.description import RATED, Case, Instance
from bandits.simulation.run import Run
from bandits.simulation.runner import simulate
from optdesign.runtime.progress import Counter


@dataclass(frozen=True)
class Effort:
    """Amount of simulation: every case as it is described, or less."""

    trials: int | None = None
    """Another number of trials for all cases."""
    longest: int | None = None
    """Horizons are cut to this."""

    def applied(self, case: Case) -> Case:
        """Return the case that is played."""
        horizon = case.horizon if self.longest is None else min(case.horizon, self.longest)
        return replace(case, horizon=horizon, trials=self.trials or case.trials)


QUICK = Effort(trials=3, longest=2**13)


@dataclass(frozen=True)
class Results:
    """Runs of the cases that were played, found by the case as it is described."""

    runs: Mapping[str, Run]
    """By slug, with as many trials as any case wants."""
    effort: Effort
    ratings: Path | None = None

    def __getitem__(self, case: Case) -> Run:
        played = self.effort.applied(case)
        return self.runs[played.slug].select(range(played.trials))

    def all_trials(self, case: Case) -> Run:
        """Return the run of a case with all trials that any experiment has played of it."""
        return self.runs[self.effort.applied(case).slug]

    def trials(self, case: Case) -> int:
        """Return the number of trials of a case."""
        return self.effort.applied(case).trials

    def is_cut(self, case: Case) -> bool:
        """Return True if a case was played to a shorter horizon than described."""
        return self.effort.applied(case).horizon < case.horizon

    def environment(self, case: Case, trial: int = 0) -> LinearEnvironment:
        """Return the instance of a trial."""
        return _environment(case.instance, self.effort.applied(case).horizon, trial, self.ratings)


def play(
    cases: Iterable[Case], out: Path, effort: Effort, *, ratings: Path | None, n_jobs: int, progress: bool
) -> Results:
    """Play every case, or take its trials from the checkpoints of an earlier call."""
    tasks = {(case.slug, n): case for case in map(effort.applied, cases) for n in range(case.trials)}
    # Ratings are read once before workers would each do it, so a wrong file is refused at once.
    for instance in {case.instance for case in tasks.values() if case.instance.kind in RATED}:
        instance.environment(0, 1, ratings)
    trials: dict[str, dict[int, Run]] = {slug: {} for slug, _ in tasks}
    with Counter(progress, "trials", len(tasks)) as display:
        for slug, n, run in _finished(tasks, out / "runs", ratings, n_jobs):
            trials[slug][n] = run
            display.step()
    runs = {slug: joined([of[n] for n in sorted(of)]) for slug, of in trials.items()}
    return Results(runs, effort, ratings)


def joined(runs: list[Run]) -> Run:
    """Return trials on different instances as one run, numbered in their order."""
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
    tasks: Mapping[tuple[str, int], Case], out: Path, ratings: Path | None, n_jobs: int
) -> Iterator[tuple[str, int, Run]]:
    """Yield trials in the order in which they finish."""
    calls = ((case, n, out, ratings) for (_, n), case in tasks.items())
    check_jobs(n_jobs)
    if n_jobs == 1:
        yield from (_trial(*call) for call in calls)
    else:
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from pool(delayed(_trial)(*call) for call in calls)


def _trial(case: Case, n: int, out: Path, ratings: Path | None) -> tuple[str, int, Run]:
    env = _environment(case.instance, case.horizon, n, ratings)
    run = simulate(
        POLICIES[case.policy], env, case.horizon, trials=1, seed=n, checkpoint=out / f"{case.slug}-{n}.npz"
    )
    return case.slug, n, run


@lru_cache(maxsize=12)
def _environment(instance: Instance, horizon: int, seed: int, ratings: Path | None) -> LinearEnvironment:
    return instance.environment(seed, horizon, ratings)
