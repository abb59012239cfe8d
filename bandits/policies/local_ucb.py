"""Local UCB: every client plays its own K-armed bandit without features and without communication.

At round t a client pulls the arm with the largest  mean + sigma sqrt(c(t) / n),  n being how often it
pulled the arm, after one pull of each arm in the order of their indices. Two indices are offered:

    "authors"   c(t) = 2 log(1 + t log^2 t)      of the paper's experiments; asymptotically optimal
    "ucb1"      c(t) = 8 log t                   UCB1, whose 2 log t / n is for rewards in [0, 1],
                                                 restated for sigma-sub-Gaussian noise (there sigma = 1/2)

A decision costs K multiplications: the logarithms depend on t only and are tabulated, and a pull changes
the mean and the square root of one arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.checks import check_positive
from bandits.policies.stepwise import Stepwise
from bandits.trials.trial import Trial

INDICES = ("authors", "ucb1")


class State(NamedTuple):
    """Mean reward, 1 / sqrt(pulls) and pulls of every client and arm, (M, K); and sigma sqrt(c(t))."""

    average: np.ndarray
    shrink: np.ndarray
    pulls: np.ndarray
    bonus: np.ndarray


@dataclass(frozen=True)
class LocalUCB(Stepwise):
    """UCB at every client alone, without communication.

    Parameters
    ----------
    index : {"authors", "ucb1"}, default "authors"
        Index of the authors' experiments, or that of UCB1.
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: that of the environment.

    See Also
    --------
    bandits.FedPE : Share the exploration between clients.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> int(bandits.simulate(bandits.LocalUCB(), env, 50, trials=1).uploaded[0])
    0
    """

    index: str = "authors"
    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.index not in INDICES:
            raise ValueError(f"index must be one of {', '.join(INDICES)}; got {self.index!r}.")
        check_positive("sigma", self.sigma)

    @property
    def name(self) -> str:
        """Class name, and the index if it is not the authors'."""
        return "LocalUCB" + ("" if self.index == "authors" else f" ({self.index})")

    def start(self, trial: Trial) -> State:
        """Return the state before the first round, without observations."""
        sigma = trial.env.sigma if self.sigma is None else self.sigma
        average, shrink, pulls = np.zeros((3, *trial.env.means.shape))
        return State(average, shrink, pulls, sigma * exploration(self.index, trial.horizon))

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """Return the arm with the largest index, after one pull of each arm."""
        arms = state.pulls.shape[1]
        if t <= arms:
            return t - 1
        best, top = 0, -np.inf
        for a in range(arms):
            value = state.average[i, a] + state.bonus[t] * state.shrink[i, a]
            if value > top:
                best, top = a, value
        return best

    @staticmethod
    def observe(state, i, a, y):
        """Update the mean and the square root of one arm. Overwrites the state."""
        state.pulls[i, a] += 1.0
        state.average[i, a] += (y - state.average[i, a]) / state.pulls[i, a]
        state.shrink[i, a] = 1.0 / np.sqrt(state.pulls[i, a])


def exploration(index: str, horizon: int) -> np.ndarray:
    """Return sqrt(c(t)) for t = 0 .. horizon."""
    t = np.maximum(np.arange(horizon + 1), 1)
    return np.sqrt(2.0 * np.log1p(t * np.log(t) ** 2) if index == "authors" else 8.0 * np.log(t))
