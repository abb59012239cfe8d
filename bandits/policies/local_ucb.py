"""Local UCB: every client plays its own K-armed bandit, ignores features, and tells nobody anything.

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

import numpy as np

from bandits.noise import draw
from bandits.trial import Trial
from optdesign._kernel import kernel

INDICES = ("authors", "ucb1")


@dataclass(frozen=True)
class LocalUCB:
    """UCB at every client alone.

    Parameters
    ----------
    index : "authors" or "ucb1"
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: the environment's.
    """

    index: str = "authors"
    sigma: float | None = None

    def __post_init__(self) -> None:
        if self.index not in INDICES:
            raise ValueError(f"index must be one of {', '.join(INDICES)}; got {self.index!r}.")
        if self.sigma is not None and not self.sigma > 0.0:
            raise ValueError(f"sigma must be positive; got {self.sigma}. Leave it out for the environment's.")

    @property
    def name(self) -> str:
        """Class name, and the index if it is not the authors'."""
        return "LocalUCB" + ("" if self.index == "authors" else f" ({self.index})")

    def play(self, trial: Trial) -> None:
        """One trial; no communication and no phases."""
        env = trial.env
        bonus = (env.sigma if self.sigma is None else self.sigma) * exploration(self.index, trial.horizon)
        if env.law is None:
            _play_any(trial, bonus)
            return
        regret = np.zeros(len(trial.clock.times))
        for i in range(env.clients):
            _play(trial.rng, *env.law, env.means[i], env.gaps[i], bonus, trial.clock.times, regret)
        trial.clock.finish(regret)


def exploration(index: str, horizon: int) -> np.ndarray:
    """sqrt(c(t)) for t = 0 .. horizon."""
    t = np.maximum(np.arange(horizon + 1), 1)
    return np.sqrt(2.0 * np.log1p(t * np.log(t) ** 2) if index == "authors" else 8.0 * np.log(t))


@kernel
def _play(rng, kind, scale, means, gaps, bonus, times, regret):
    """All rounds of one client. Adds its regret at the times to regret, and advances rng."""
    arms = len(means)
    count = np.zeros(arms)
    total = np.zeros(arms)
    average = np.zeros(arms)
    shrink = np.zeros(arms)  # 1 / sqrt(count)
    lost = 0.0
    n = 0
    for t in range(1, times[-1] + 1):
        a = t - 1
        if t > arms:
            level = bonus[t]
            top = -np.inf
            for b in range(arms):
                value = average[b] + level * shrink[b]
                if value > top:
                    top = value
                    a = b
        reward = draw(rng, kind, scale, means[a])
        count[a] += 1.0
        total[a] += reward
        average[a] = total[a] / count[a]
        shrink[a] = 1.0 / np.sqrt(count[a])
        lost += gaps[a]
        if t == times[n]:
            regret[n] += lost
            n += 1


def _play_any(trial: Trial, bonus: np.ndarray) -> None:
    """All rounds of all clients, round by round, with rewards of any kind."""
    m, arms = trial.env.means.shape
    rows = np.arange(m)
    count, total = np.zeros((m, arms)), np.zeros((m, arms))
    while not trial.done:
        if trial.time < arms:
            pulled = np.full(m, trial.time)
        else:
            pulled = np.argmax(total / count + bonus[trial.time + 1] / np.sqrt(count), axis=1)
        total[rows, pulled] += trial.step(pulled)
        count[rows, pulled] += 1.0
