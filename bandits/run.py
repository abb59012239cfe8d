"""The record of many trials: regret, communication and phases, with ways to keep and join it."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bandits.environments import LinearEnvironment
from bandits.identity import content_hash
from bandits.sources import CODE
from bandits.trial import PHASE, Policy, Record
from optdesign.tables.files import atomic

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]


PARTS = ("code", "policy", "environment", "plan")
"""Parts of an identity: the packages and libraries, the policy, the environment; horizon, times and seed."""

UNKNOWN = "unknown"
"""First word of the identity of a run that can be joined with no other."""


@dataclass(frozen=True, eq=False)
class Run:
    """What ``simulate`` returns.

    ``regret`` is cumulative pseudo-regret per client (the mean over clients), every pull counted; its last
    column is at the horizon.
    """

    policy: str
    horizon: int
    times: np.ndarray = field(repr=False)
    """When regret was read, (C,); the last is the horizon."""
    trials: np.ndarray
    """Numbers of the trials, ascending."""
    regret: np.ndarray = field(repr=False)
    """(trials, C)."""
    uploaded: np.ndarray = field(repr=False)
    """Scalars from clients to server, (trials,)."""
    downloaded: np.ndarray = field(repr=False)
    """Scalars from server to clients, (trials,)."""
    phases: np.ndarray = field(repr=False)
    """A structured array with a row per trial and phase; columns: ``bandits.trial.PHASE``."""
    identity: str = field(repr=False)
    """Hashes of code, policy, environment and plan: only runs that agree in all of them can be joined."""

    @classmethod
    def empty(cls, policy: str, horizon: int, times: np.ndarray, identity: str) -> Run:
        """A run without trials."""
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
        """This run with more trials."""
        pairs = list(finished)
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
        """The trials with these numbers."""
        wanted = np.array(sorted(numbers))
        keep = np.isin(self.trials, wanted)
        rows = np.isin(self.phases["trial"], wanted)
        return Run(
            self.policy, self.horizon, self.times, self.trials[keep], self.regret[keep],
            self.uploaded[keep], self.downloaded[keep], self.phases[rows], self.identity,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write a .npz file, all or nothing: an interrupt leaves the old file or the new one."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic(target) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, policy=self.policy, horizon=self.horizon, times=self.times, trials=self.trials,
                regret=self.regret, uploaded=self.uploaded, downloaded=self.downloaded,
                phases=self.phases, identity=self.identity,
            )  # fmt: skip

    def kept(self, path: Path) -> Run:
        """Save to a file that others may be writing to as well; returns this run with their trials."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            run = self
            if path.exists():
                theirs = load(path)
                run = concatenate([self, theirs.select(np.setdiff1d(theirs.trials, self.trials))])
            run.save(path)
        return run

    def _joined(
        self,
        trials: np.ndarray,
        regret: np.ndarray,
        uploaded: np.ndarray,
        downloaded: np.ndarray,
        phases: np.ndarray,
    ) -> Run:
        """This run and more rows, in the order of the trial numbers."""
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
    """Read a run written by ``Run.save``."""
    try:
        with Path(path).open("rb") as file, np.load(file) as data:
            return Run(
                str(data["policy"]), int(data["horizon"]), data["times"], data["trials"], data["regret"],
                data["uploaded"], data["downloaded"], data["phases"], str(data["identity"]),
            )  # fmt: skip
    except (EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} must be a run saved by this package; it is empty, cut off or something else ({error}). "
            "Delete it, or name another file."
        ) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes that use the same function from the files of a directory for a moment.

    The lock is on the directory, so nothing is left behind, also by a process that is killed. Where the
    system has no such locks, this does nothing.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def concatenate(runs: Sequence[Run]) -> Run:
    """Join runs of the same policy, environment, horizon, times and seed with different trials."""
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


def fingerprint(policy: Policy, env: LinearEnvironment, horizon: int, times: np.ndarray, seed: int) -> str:
    """Return the hashes of everything that determines a trial but its number, by ``PARTS``."""
    plan = content_hash(int(horizon), np.asarray(times, dtype=np.int64), int(seed))
    hashes = (CODE, content_hash(policy), content_hash(env), plan)
    return " ".join(f"{part}={value}" for part, value in zip(PARTS, hashes, strict=True))


def differences(saved: str, wanted: str) -> list[str]:
    """Return the parts in which two identities differ; "code" if one of them does not have these parts.

    The identity of a run whose content cannot be compared begins with ``UNKNOWN``.

    >>> differences("code=1 policy=2 environment=3 plan=4", "code=1 policy=2 environment=5 plan=4")
    ['environment']
    >>> differences("0123", "code=1 policy=2 environment=3 plan=4")
    ['code']
    """
    if saved != wanted and UNKNOWN in (saved.partition(" ")[0], wanted.partition(" ")[0]):
        return ["content that cannot be compared"]
    one, other = (dict(part.partition("=")[::2] for part in text.split(" ")) for text in (saved, wanted))
    if not set(one) == set(other) == set(PARTS):
        return [] if saved == wanted else ["code"]
    return [part for part in PARTS if one[part] != other[part]]


def is_stale(parts: Sequence[str]) -> bool:
    """Return True if runs that differ in these parts may be the same experiment played by other code.

    Hashes of policy and environment contain code of this package, so they say nothing if the code differs.
    """
    return "code" in parts and "plan" not in parts


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
