"""One trial of one policy: its environment, random numbers, clock and ledger, and its record.

A :class:`Trial` has all state of one trial: a new environment, the stream of random numbers, the clock that
adds up the regret, and the ledger that counts scalars. ``simulate`` makes one object per trial and passes it
to the policy. Trials therefore do not affect each other. Results depend neither on the order of the trials
nor on the number of trials that run at the same time.

A trial checks the values of policy and environment. Arms and numbers of pulls must be integers in their
range. Rewards must be finite. The features, parameters, means and gaps of the environment must be the same at
every pull and at the end. Features that change from round to round raise an error.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bandits.checks import LARGEST, integers, pulls_per_arm, rewards_per_arm, whole
from bandits.environments.linear import LinearEnvironment, frozen
from bandits.protocol import Ledger
from bandits.trials.regret import RegretClock

PHASE = np.dtype(
    [
        ("trial", np.int64),
        ("phase", np.int64),  # p, from 1
        ("start", np.int64),  # pulls made by a client before the phase
        ("length", np.int64),  # pulls in the phase: f^p + K, less if cut at the horizon
        ("active", np.float64),  # active arms per client, after elimination
        ("sparsity", np.float64),  # positive design weights per client: the paper's sparsity level
        ("iterations", np.int64),  # sweeps of the design, 0 if the uniform start meets the gap
        ("gap", np.float64),  # G - D of the design
        ("uploaded", np.int64),  # scalars up in this phase, those of the start counted in phase 1
        ("downloaded", np.int64),
        ("lost_best", np.int64),  # clients that have dropped an optimal arm so far
    ]
)
"""One row per trial and phase."""

ROUND_OFF = 1e-9
"""Largest decrease of the regret that is accepted as round-off, relative to the largest regret."""

CONSTANT = ("features", "parameters", "means", "gaps")
"""Attributes of an environment that must not change during a trial."""


class Record(NamedTuple):
    """Regret, scalars and phases of one trial.

    Attributes
    ----------
    regret : ndarray of shape (C,)
        Regret per client at the chosen times.
    uploaded : int
        Scalars from clients to server.
    downloaded : int
        Scalars from server to clients.
    phases : structured ndarray
        One row of ``PHASE`` per phase.

    See Also
    --------
    bandits.Trial : Trial that makes the record.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.LinearEnvironment([[[1.0], [0.5]]], [[0.2], [0.8]])
    >>> trial = Trial(env, 1, [1], np.random.default_rng(0))
    >>> _ = trial.step(np.array([1]))
    >>> trial.record.uploaded
    0
    """

    regret: np.ndarray
    uploaded: int
    downloaded: int
    phases: np.ndarray


class Trial:
    """State of one trial.

    Policies that explore in phases call ``pull``, which returns sums of rewards, and advance the ``clock``.
    Policies that decide at every step call ``step`` until ``done``. Policies count messages in the
    ``ledger``.

    Parameters
    ----------
    env : LinearEnvironment
        Environment. The trial plays on ``env.fresh()``.
    horizon : int
        T, the number of pulls of each client.
    times : array_like of int
        Times at which regret is read, ascending; the last is the horizon.
    rng : numpy.random.Generator
        Random stream of this trial, for rewards and for the draws of a policy.
    policy : str, default "the policy"
        Name of the policy in error messages.

    See Also
    --------
    bandits.Policy : Object that plays a trial.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.LinearEnvironment([[[1.0], [0.5]]], [[0.2], [0.8]])
    >>> trial = Trial(env, 3, [1, 3], np.random.default_rng(0))
    >>> while not trial.done:
    ...     rewards = trial.step(np.array([0]))
    >>> trial.record.regret.round(12).tolist()
    [0.2, 0.6]
    """

    def __init__(
        self,
        env: LinearEnvironment,
        horizon: int,
        times: ArrayLike,
        rng: np.random.Generator,
        policy: str = "the policy",
    ) -> None:
        self.horizon = whole("horizon", horizon, 1, LARGEST)
        at = integers("times", times, np.shape(times), "the caller", "Give numbers of pulls.")
        if at.ndim != 1 or not len(at) or np.any(np.diff(at, prepend=0) < 1) or at[-1] != self.horizon:
            raise ValueError(
                f"times must ascend from 1 or more to the horizon {horizon}; got {at.tolist()}. "
                "Sort them, and append the horizon."
            )
        self.env = _fresh(env)
        self._constant = {name: frozen(np.asarray(getattr(self.env, name))) for name in CONSTANT}
        self.rng = rng
        self.policy = policy
        self.clock = RegretClock(self._constant["gaps"], at, policy)
        self.ledger = Ledger()
        self.phases: list[tuple[float, ...]] = []
        """Rows of ``PHASE``; the column ``trial`` is filled in later."""

    @property
    def time(self) -> int:
        """Pulls made by each client so far."""
        return self.clock.time

    @property
    def done(self) -> bool:
        """True if the horizon is reached."""
        return self.time >= self.horizon

    @property
    def record(self) -> Record:
        """Regret, scalars and phases of the trial."""
        return Record(
            self.clock.regret,
            self.ledger.uploaded,
            self.ledger.downloaded,
            np.array(self.phases, dtype=PHASE),
        )

    def finished(self) -> Record:
        """Return the record of a finished trial.

        Returns
        -------
        Record
            Regret, scalars and phases.

        Raises
        ------
        ValueError
            If the trial is not at its horizon, or if the regret or the scalars are invalid.
        """
        if self.time != self.horizon:
            raise ValueError(
                f"policy must play to the horizon {self.horizon}; {self.policy} made {self.time} pulls per "
                "client. Go on until trial.done."
            )
        self.check_environment()
        regret = np.asarray(self.clock.regret)
        is_curve = regret.shape == self.clock.times.shape and regret.dtype.kind == "f"
        if not is_curve or not np.all(np.isfinite(regret)):
            raise ValueError(
                f"regret must be finite at all times; {self.policy} left {regret}. "
                "Advance the clock by every pull, and do not set its attributes."
            )
        # Gaps are not negative, so only round-off can make regret fall.
        if np.any(np.diff(regret, prepend=0.0) < -ROUND_OFF * regret.max()):
            raise ValueError(
                f"regret must not fall; {self.policy} left {regret}. Leave the attributes of the clock alone."
            )
        if not np.array_equal(self.clock.gaps, self._constant["gaps"]):
            raise ValueError(
                f"gaps of the clock must be those of the environment; {self.policy} changed them. "
                "Leave the attributes of the clock alone."
            )
        record = self.record
        for name in ("uploaded", "downloaded"):
            whole(f"ledger.{name} of {self.policy}", getattr(record, name), 0, None)
        return record

    def pull(self, counts: ArrayLike) -> np.ndarray:
        """Return sums of the rewards of pulls.

        This does not advance the clock; see ``clock.advance``.

        Parameters
        ----------
        counts : array_like of int of shape (M, K)
            Number of pulls of every client and arm.

        Returns
        -------
        ndarray of shape (M, K)
            Sums of the rewards.
        """
        checked = pulls_per_arm("counts", counts, self._constant["means"].shape, self.policy)
        # A copy, because a pull that overwrites its argument would change the counts that the policy keeps.
        sums = rewards_per_arm(self.env.pull(self.rng, checked.copy()), checked, type(self.env).__name__)
        self.check_environment()
        return sums

    def step(self, arms: ArrayLike) -> np.ndarray:
        """Pull one arm of every client once.

        Parameters
        ----------
        arms : array_like of int of shape (M,)
            Arm of every client.

        Returns
        -------
        ndarray of shape (M,)
            Rewards.
        """
        chosen = self.clock.step(arms)
        once = np.zeros(self._constant["means"].shape, dtype=np.int64)
        rows = np.arange(len(once))
        once[rows, chosen] = 1
        return self.pull(once)[rows, chosen]

    def check_environment(self) -> None:
        """Raise ValueError if the environment has changed since the trial began."""
        for name, before in self._constant.items():
            _check_same(self.env, name, before, f"they changed before pull {self.time + 1} of a trial")


def _fresh(env: LinearEnvironment) -> LinearEnvironment:
    """Return ``env.fresh()``, or raise an error if it is invalid or has other values than ``env``."""
    if not isinstance(env, LinearEnvironment):
        raise TypeError(
            f"env must be a LinearEnvironment; got {type(env).__name__}. Make one, or a subclass with a pull."
        )
    fresh = env.fresh()
    if not isinstance(fresh, LinearEnvironment):
        raise TypeError(
            f"fresh of {type(env).__name__} must return a LinearEnvironment; got {type(fresh).__name__}."
        )
    shape = (env.clients, env.arms)
    for name in ("means", "gaps"):
        values = np.asarray(getattr(fresh, name))
        if values.shape != shape or values.dtype.kind != "f" or not np.all(np.isfinite(values)):
            raise ValueError(
                f"{name} must be finite numbers of shape {shape}, clients and arms; {type(env).__name__} has "
                f"type {values.dtype} and shape {values.shape}. Correct its {name}."
            )
    if fresh.gaps.min() < 0.0:
        raise ValueError(
            f"gaps must not be negative; {type(env).__name__} has {fresh.gaps.min()}. "
            "Subtract the means from the largest mean of each client."
        )
    if fresh is not env:
        for name in CONSTANT:
            _check_same(fresh, name, np.asarray(getattr(env, name)), "fresh() changed them")
    return fresh


def _check_same(env: LinearEnvironment, name: str, before: np.ndarray, when: str) -> None:
    """Raise ValueError if an attribute differs from its former value; ``when`` states when it changed."""
    now = getattr(env, name)
    if now is not before and not np.array_equal(np.asarray(now), before):
        raise ValueError(
            f"{name} of an environment must stay the same; in {type(env).__name__} {when}. Features that "
            "change from round to round are not supported: regret would be measured against other arms than "
            "the policy sees. Only the rule of pull may depend on time."
        )


class Policy(Protocol):
    """Protocol of the objects that ``bandits.simulate`` runs. They must not keep state from trial to trial.

    See Also
    --------
    bandits.Stepwise : Base of policies that decide at every step.
    bandits.Phased : Base of policies that explore in phases.

    Examples
    --------
    >>> import bandits
    >>> class First:
    ...     name = "first arm"
    ...     def play(self, trial):
    ...         while not trial.done:
    ...             trial.step(np.zeros(trial.env.clients, dtype=int))
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> bandits.simulate(First(), env, horizon=10, trials=1).policy
    'first arm'
    """

    @property
    def name(self) -> str:
        """Name in tables and plots."""

    def play(self, trial: Trial) -> None:
        """Play a trial until it is done.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
