"""The record of many trials: regret, communication and phases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bandits.simulation.fingerprints import differences
from bandits.trials.trial import PHASE, Record
from optdesign.runtime.files import atomic


@dataclass(frozen=True, eq=False)
class Run:
    """Result of :func:`bandits.simulate`.

    Attributes
    ----------
    policy : str
        Name of the policy.
    horizon : int
        T, the number of pulls of each client.
    times : ndarray of int of shape (C,)
        Times at which regret was read; the last is the horizon.
    trials : ndarray of int
        Numbers of the trials, ascending.
    regret : ndarray of shape (trials, C)
        Cumulative pseudo-regret per client (the mean over clients), with every pull counted. The last column
        is at the horizon.
    uploaded : ndarray of int of shape (trials,)
        Scalars from clients to server, by the paper's cost model.
    downloaded : ndarray of int of shape (trials,)
        Scalars from server to clients, by the paper's cost model.
    phases : structured ndarray
        One row per trial and phase; see ``bandits.trials.trial.PHASE`` for the columns.
    identity : str
        Hashes of code, policy, environment and plan. Only runs that agree in all of them can be joined.

    See Also
    --------
    bandits.simulate : Make a run.
    bandits.concatenate : Join runs.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> run = bandits.simulate(bandits.LocalUCB(), env, horizon=50, trials=2)
    >>> run.policy, run.regret[:, -1].shape, run.uploaded.tolist()
    ('LocalUCB', (2,), [0, 0])
    """

    policy: str
    horizon: int
    times: np.ndarray = field(repr=False)
    trials: np.ndarray
    regret: np.ndarray = field(repr=False)
    uploaded: np.ndarray = field(repr=False)
    downloaded: np.ndarray = field(repr=False)
    phases: np.ndarray = field(repr=False)
    identity: str = field(repr=False)

    @classmethod
    def empty(cls, policy: str, horizon: int, times: np.ndarray, identity: str) -> Run:
        """Return a run without trials.

        Parameters
        ----------
        policy : str
            Name of the policy.
        horizon : int
            Number of pulls of each client.
        times : ndarray of int
            Times at which regret is read.
        identity : str
            Hashes of code, policy, environment and plan.

        Returns
        -------
        Run
            The run.
        """
        none = np.empty(0, dtype=np.int64)
        return cls(
            policy, horizon, times, none, np.empty((0, len(times))), none, none, np.empty(0, PHASE), identity
        )

    @property
    def mean(self) -> np.ndarray:
        """Mean regret over trials, (C,)."""
        return self.regret.mean(axis=0)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of the regret over trials, (C,); zero for a single trial."""
        return self.regret.std(axis=0, ddof=1) if len(self.trials) > 1 else np.zeros(len(self.times))

    def extended(self, finished: Iterable[tuple[int, Record]]) -> Run:
        """Return this run with more trials.

        Parameters
        ----------
        finished : iterable of tuple
            Pairs of a trial's number and its :class:`bandits.Record`. Trials that the run has are left out:
            another process that shares the checkpoint has played them.

        Returns
        -------
        Run
            All trials in ascending order.
        """
        known = set(self.trials.tolist())
        pairs = [(n, record) for n, record in finished if n not in known]
        if not pairs:
            return self
        phases = []
        for n, record in pairs:
            rows = record.phases.copy()
            rows["trial"] = n
            phases.append(rows)
        return self._joined(
            np.array([n for n, _ in pairs]),
            np.array([r.regret for _, r in pairs]),
            np.array([r.uploaded for _, r in pairs]),
            np.array([r.downloaded for _, r in pairs]),
            np.concatenate(phases),
        )

    def select(self, numbers: Iterable[int]) -> Run:
        """Return the trials with the given numbers.

        Parameters
        ----------
        numbers : iterable of int
            Numbers of trials.

        Returns
        -------
        Run
            The selected trials.

        Raises
        ------
        ValueError
            If the run does not have one of the trials.
        """
        wanted = np.array(sorted(numbers))
        missing = np.setdiff1d(wanted, self.trials)
        if len(missing):
            raise ValueError(
                f"numbers must be those of trials of the run; trial {missing[0]} is not among its "
                f"{len(self.trials)} trial(s). Simulate more trials."
            )
        keep = np.isin(self.trials, wanted)
        rows = np.isin(self.phases["trial"], wanted)
        return Run(
            self.policy, self.horizon, self.times, self.trials[keep], self.regret[keep],
            self.uploaded[keep], self.downloaded[keep], self.phases[rows], self.identity,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write a .npz file. An interrupt leaves the old file or the new one.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic(target) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, policy=self.policy, horizon=self.horizon, times=self.times, trials=self.trials,
                regret=self.regret, uploaded=self.uploaded, downloaded=self.downloaded,
                phases=self.phases, identity=self.identity,
            )  # fmt: skip

    def _joined(
        self,
        trials: np.ndarray,
        regret: np.ndarray,
        uploaded: np.ndarray,
        downloaded: np.ndarray,
        phases: np.ndarray,
    ) -> Run:
        """Return this run with more rows, in the order of the trial numbers."""
        numbers = np.concatenate([self.trials, trials])
        order = np.argsort(numbers, kind="stable")
        table = np.concatenate([self.phases, phases])
        return Run(
            self.policy,
            self.horizon,
            self.times,
            numbers[order],
            np.concatenate([self.regret, regret])[order],
            np.concatenate([self.uploaded, uploaded])[order],
            np.concatenate([self.downloaded, downloaded])[order],
            table[np.lexsort((table["phase"], table["trial"]))],
            self.identity,
        )


def load(path: str | Path) -> Run:
    """Return a run that ``Run.save`` wrote.

    Parameters
    ----------
    path : str or Path
        File to read.

    Returns
    -------
    Run
        The run.

    See Also
    --------
    bandits.simulate : Make a run.

    Examples
    --------
    >>> import tempfile, bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bandits.simulate(bandits.LocalUCB(), env, 50, trials=2).save(f"{folder}/run.npz")
    ...     bandits.load(f"{folder}/run.npz").trials.tolist()
    [0, 1]
    """
    with Path(path).open("rb") as file:
        # Damaged archives raise errors of zipfile, zlib, tokenize and NumPy, among them NotImplementedError.
        try:
            with np.load(file) as data:
                run = Run(
                    str(data["policy"]), int(data["horizon"]), data["times"], data["trials"], data["regret"],
                    data["uploaded"], data["downloaded"], data["phases"], str(data["identity"]),
                )  # fmt: skip
            _check_consistent(run)
        except Exception as error:
            raise ValueError(
                f"{path} must be a run saved by this package; it is empty, cut off or something else "
                f"({error}). Delete it, or name another file."
            ) from None
    return run


def _check_consistent(run: Run) -> None:
    """Raise ValueError unless the arrays of a run have the types and shapes of one run."""
    n, c = len(run.trials), len(run.times)
    expected = {
        "times": ("i", (c,)),
        "trials": ("i", (n,)),
        "regret": ("f", (n, c)),
        "uploaded": ("i", (n,)),
        "downloaded": ("i", (n,)),
    }
    for name, (kind, shape) in expected.items():
        array = getattr(run, name)
        if array.dtype.kind != kind or array.shape != shape:
            raise ValueError(f"{name} has type {array.dtype} and shape {array.shape}, not {shape}")
    if run.phases.dtype != PHASE or run.phases.ndim != 1:
        raise ValueError(f"phases have type {run.phases.dtype}")
    if (
        np.any(np.diff(run.trials) < 1)
        or np.any(np.diff(run.times) < 1)
        or not np.all(np.isfinite(run.regret))
    ):
        raise ValueError("trials or times do not ascend, or regret is not finite")


def concatenate(runs: Sequence[Run]) -> Run:
    """Join runs of the same policy, environment, horizon, times and seed with different trials.

    Parameters
    ----------
    runs : sequence of Run
        Runs to join.

    Returns
    -------
    Run
        All trials in ascending order.

    Raises
    ------
    ValueError
        If the runs do not belong together, or share a trial.

    See Also
    --------
    bandits.Run.select : Return some of the trials.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> run = bandits.simulate(bandits.LocalUCB(), env, 50, trials=3)
    >>> bandits.concatenate([run.select([0]), run.select([1, 2])]).trials.tolist()
    [0, 1, 2]
    """
    if not runs:
        raise ValueError("runs must have at least one run; got none.")
    out = runs[0]
    for other in runs[1:]:
        if other.identity != out.identity:
            raise ValueError(
                f"runs must agree in code, policy, environment, horizon, times and seed; {other.policy} "
                f"differs from {out.policy} in {', '.join(differences(out.identity, other.identity))}. "
                "Simulate them with the same code and arguments, or keep them apart."
            )
        twice = np.intersect1d(out.trials, other.trials)
        if len(twice):
            raise ValueError(f"runs must have different trials; trial {twice[0]} occurs twice. Select first.")
        out = out._joined(other.trials, other.regret, other.uploaded, other.downloaded, other.phases)
    return out
