"""What one trial of one policy leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bandits.environments import LinearEnvironment

PHASE = np.dtype(
    [
        ("trial", np.int64),
        ("phase", np.int64),  # p, from 1
        ("start", np.int64),  # pulls made by a client before the phase
        ("length", np.int64),  # pulls in the phase: f^p + K, less if cut at the horizon
        ("active", np.float64),  # active arms per client, after elimination
        ("sparsity", np.float64),  # positive design weights per client: the paper's sparsity level
        ("iterations", np.int64),  # sweeps or steps of the design solver
        ("gap", np.float64),  # G - D of the design
        ("uploaded", np.int64),  # scalars up in this phase, those of the start counted in phase 1
        ("downloaded", np.int64),
        ("lost_best", np.int64),  # clients that have dropped an optimal arm by now
    ]
)
"""One row per trial and phase."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Regret at the chosen times, scalars up and down, and a row of ``PHASE`` per phase."""

    regret: np.ndarray
    uploaded: int
    downloaded: int
    phases: np.ndarray


class Policy(Protocol):
    """Anything ``bandits.simulate`` can play."""

    @property
    def name(self) -> str:
        """What tables and plots call it."""

    def play(
        self, env: LinearEnvironment, horizon: int, times: np.ndarray, rng: np.random.Generator
    ) -> Trial:
        """One trial: regret per client at ``times``, the last of which is the horizon."""
