"""One trial of one policy: what it plays with, and what it leaves behind.

A :class:`Trial` owns everything that happens once: an environment as fresh as on the first day, the stream of
random numbers, the clock that adds up regret, and the ledger that counts scalars. ``simulate`` makes one per
trial and hands it to the policy, so nothing can leak from trial to trial, and results depend neither on their
order nor on how many run at a time.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bandits.environments import LinearEnvironment
from bandits.protocol import Ledger
from bandits.regret import RegretClock

PHASE = np.dtype(
    [
        ("trial", np.int64),
        ("phase", np.int64),  # p, from 1
        ("start", np.int64),  # pulls made by a client before the phase
        ("length", np.int64),  # pulls in the phase: f^p + K, less if cut at the horizon
        ("active", np.float64),  # active arms per client, after elimination
        ("sparsity", np.float64),  # positive design weights per client: the paper's sparsity level
        ("iterations", np.int64),  # of the design: sweeps from the uniform start, 0 if that will do
        ("gap", np.float64),  # G - D of the design
        ("uploaded", np.int64),  # scalars up in this phase, those of the start counted in phase 1
        ("downloaded", np.int64),
        ("lost_best", np.int64),  # clients that have dropped an optimal arm by now
    ]
)
"""One row per trial and phase."""


class Record(NamedTuple):
    """Regret at the chosen times, scalars up and down, and a row of ``PHASE`` per phase."""

    regret: np.ndarray
    uploaded: int
    downloaded: int
    phases: np.ndarray


class Trial:
    """A trial in progress.

    Policies that explore in phases ``pull`` sums of rewards and tell the ``clock`` what was played; policies
    that decide at every step call ``step`` until ``done``. Messages pass the ``ledger``.

    Parameters
    ----------
    env : LinearEnvironment
        The trial plays on ``env.fresh()``.
    horizon : int
        T, the number of pulls of each client.
    times : integers, ascending
        When to read the regret; the last is the horizon.
    rng : numpy.random.Generator
        The one stream of this trial: rewards come from it, and whatever a policy draws.

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
        self, env: LinearEnvironment, horizon: int, times: ArrayLike, rng: np.random.Generator
    ) -> None:
        self.env = env.fresh()
        self.horizon = horizon
        self.rng = rng
        self.clock = RegretClock(self.env.gaps, np.asarray(times))
        self.ledger = Ledger()
        self.phases: list[tuple[float, ...]] = []
        """Rows of ``PHASE``; the column ``trial`` is filled in later."""

    @property
    def time(self) -> int:
        """Pulls made by each client so far."""
        return self.clock.time

    @property
    def done(self) -> bool:
        """Whether the horizon is reached."""
        return self.time >= self.horizon

    @property
    def record(self) -> Record:
        """What is kept of the trial."""
        return Record(
            self.clock.regret,
            self.ledger.uploaded,
            self.ledger.downloaded,
            np.array(self.phases, dtype=PHASE),
        )

    def pull(self, counts: np.ndarray) -> np.ndarray:
        """Sums of the rewards of ``counts`` (M, K) pulls. The clock does not move: see ``clock.advance``."""
        return self.env.pull(self.rng, counts)

    def step(self, arms: np.ndarray) -> np.ndarray:
        """Let client i pull arm arms[i] once; returns the M rewards."""
        once = np.zeros(self.env.means.shape, dtype=np.int64)
        rows = np.arange(len(once))
        once[rows, arms] = 1
        self.clock.step(arms)
        return self.pull(once)[rows, arms]


class Policy(Protocol):
    """Anything ``bandits.simulate`` can play. It keeps nothing of a trial to itself."""

    @property
    def name(self) -> str:
        """What tables and plots call it."""

    def play(self, trial: Trial) -> None:
        """Play a trial until it is done."""
