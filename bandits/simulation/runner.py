"""Simulation of a policy on an environment in many trials.

Trials are independent: trial n draws from its own stream, spawned from the seed by its number, so results
depend neither on n_jobs nor on which trials were run before. A run with a checkpoint file can be interrupted
and called again: finished trials are not played again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from numpy.typing import ArrayLike

from bandits.checks import LARGEST, check_jobs, whole
from bandits.environments.linear import LinearEnvironment
from bandits.simulation.checkpoints import merge, resumed
from bandits.simulation.fingerprints import UNKNOWN, fingerprint
from bandits.simulation.run import Run
from bandits.trials.trial import Policy, Record, Trial
from optdesign.runtime.progress import Counter

CURVE_POINTS = 128
"""Times at which regret is recorded unless others are asked for, evenly spaced."""

SAVE_EVERY = 2.0
"""Seconds between two writes of the checkpoint, so that fast trials do not wait for the disk."""


def simulate(
    policy: Policy,
    env: LinearEnvironment,
    horizon: int,
    trials: int = 10,
    seed: int = 0,
    *,
    times: ArrayLike | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Run:
    """Play a policy ``trials`` times and record regret, communication and phases.

    Parameters
    ----------
    policy : Policy
        ``FedPE()``, ``EnhancedFedPE()``, ``CollaborativeFedPE()``, ``LocalUCB()``, ``LinUCB()``, ``LinTS()``,
        ``DELB()``, ``DisLinUCB()``, ``FedUCB()``, or one of your own.
    env : LinearEnvironment
        Environment on which all trials are played.
    horizon : int
        T, the number of pulls of each client.
    trials : int, default 10
        Number of trials. Trial n uses the n-th stream spawned from the seed.
    seed : int, default 0
        Seed of all trials.
    times : array_like of int, optional
        Times at which regret is read; the horizon is appended. Default: 128 evenly spaced times.
    n_jobs : int, default 1
        Number of trials at a time, in processes of their own; -1 for one per core. Results do not depend on
        it.
    progress : bool, default False
        Show finished trials and the time left on standard error after one second.
    checkpoint : str or Path, optional
        File (.npz) to which finished trials are saved during the run, and from which they are read if it
        exists. It must belong to the same policy, environment, horizon, times and seed. A file written by
        other code of this package, or with another version of a library, is stale: it is renamed to
        ``NAME.stale.npz`` with a warning, and its trials are played again. Several processes may share a
        file. Their trials are merged under a lock (the file ``.checkpoints.lock`` beside it).

    Returns
    -------
    Run
        Regret per client (the mean over clients), scalars (totals over clients) and phases of all trials.

    Raises
    ------
    ValueError
        If an argument breaks a rule, or the policy does.

    See Also
    --------
    bandits.load : Read a saved run.
    bandits.plotting.plot_regret : Draw runs.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.synthetic(clients=5, arms=3, dim=2)
    >>> run = bandits.simulate(bandits.EnhancedFedPE(), env, 500, trials=3, times=[100, 200])
    >>> run.times.tolist(), run.regret.shape
    ([100, 200, 500], (3, 3))
    """
    if isinstance(policy, type) or not (hasattr(policy, "play") and hasattr(policy, "name")):
        raise TypeError(f"policy must be an object with a name and a method play; got {policy!r}.")
    horizon, trials = whole("horizon", horizon, 1, LARGEST), whole("trials", trials, 1)
    seed = whole("seed", seed, 0)
    check_jobs(n_jobs)
    at = _times(times, horizon)
    path = None if checkpoint is None else Path(checkpoint)
    try:
        identity = fingerprint(policy, env, horizon, at, seed)
    except ValueError:
        if path is not None:
            raise
        identity = f"{UNKNOWN} {uuid.uuid4().hex}"
    run = Run.empty(policy.name, horizon, at, identity)
    if path is not None:
        run = resumed(path, run)
    done = set(run.trials.tolist())
    missing = [n for n in range(trials) if n not in done]
    finished: list[tuple[int, Record]] = []
    saved = time.monotonic()
    try:
        with Counter(progress, "trials", len(missing)) as display:
            for item in _play(policy, env, horizon, at, seed, missing, n_jobs, identity):
                finished.append(item)
                display.step()
                if path is not None and time.monotonic() - saved > SAVE_EVERY:
                    run, finished = merge(run.extended(finished), path), []
                    saved = time.monotonic()
    finally:
        run = run.extended(finished)
        if path is not None:
            run = merge(run, path)
    return run.select(range(trials))


def _play(
    policy: Policy,
    env: LinearEnvironment,
    horizon: int,
    times: np.ndarray,
    seed: int,
    missing: list[int],
    n_jobs: int,
    identity: str,
) -> Iterator[tuple[int, Record]]:
    """Yield trials as they finish, with their numbers."""
    if n_jobs == 1 or len(missing) < 2:
        for n in missing:
            yield _trial(policy, env, horizon, times, seed, n)
        return
    left = set(missing)
    for _ in range(2):
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        try:
            for n, record in pool(
                delayed(_same_trial)(identity, policy, env, horizon, times, seed, n) for n in sorted(left)
            ):
                left.discard(n)
                yield n, record
            return
        except _OtherContent:
            # These processes have imported a module before it changed. New processes import it again.
            get_reusable_executor().shutdown()
    raise ValueError(
        f"n_jobs must be 1 for {policy.name}: the policy or the environment differs in other processes, such "
        "as by values that were assigned to a module. Pass these values as options."
    )


class _OtherContent(Exception):
    """Raised in a process in which policy or environment differ from those of the caller."""


_compared: set[str] = set()
"""Identities that were computed in this process and equal those of the caller."""


def _same_trial(
    identity: str,
    policy: Policy,
    env: LinearEnvironment,
    horizon: int,
    times: np.ndarray,
    seed: int,
    n: int,
) -> tuple[int, Record]:
    """Play a trial in another process, or raise an error if the identity differs there."""
    if identity not in _compared and not identity.startswith(UNKNOWN):
        if fingerprint(policy, env, horizon, times, seed) != identity:
            raise _OtherContent
        _compared.add(identity)
    return _trial(policy, env, horizon, times, seed, n)


def _trial(
    policy: Policy, env: LinearEnvironment, horizon: int, times: np.ndarray, seed: int, n: int
) -> tuple[int, Record]:
    stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(n,)))
    trial = Trial(env, horizon, times, stream, policy.name)
    policy.play(trial)
    return n, trial.finished()


def _times(times: ArrayLike | None, horizon: int) -> np.ndarray:
    if times is None:
        count = min(CURVE_POINTS, horizon)
        return np.arange(1, count + 1) * horizon // count
    try:
        given = np.unique(np.append(np.asarray(times, dtype=np.float64), horizon))
    except (TypeError, ValueError) as error:
        raise ValueError(f"times must be whole numbers of pulls; got {times!r}: {error}.") from None
    if not np.all(given == np.floor(given)):
        wrong = given[given != np.floor(given)][0]
        raise ValueError(f"times must be whole numbers of pulls; got {wrong}.")
    if given[0] < 1 or given[-1] > horizon:
        raise ValueError(
            f"times must lie in 1 .. horizon = {horizon}; they span {given[0]:g} .. {given[-1]:g}."
        )
    return given.astype(np.int64)
