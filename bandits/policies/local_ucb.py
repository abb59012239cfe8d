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

from bandits.environments import LinearEnvironment
from bandits.noise import Bernoulli, Bounded, Gaussian, Noise, TwoPoint
from bandits.trial import PHASE, Trial
from optdesign._kernel import kernel

INDICES = ("authors", "ucb1")

GAUSSIAN, BERNOULLI, TWO_POINT, BOUNDED = range(4)


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

    def play(
        self, env: LinearEnvironment, horizon: int, times: np.ndarray, rng: np.random.Generator
    ) -> Trial:
        """One trial; no communication and no phases."""
        bonus = (env.sigma if self.sigma is None else self.sigma) * exploration(self.index, horizon)
        regret = np.zeros(len(times))
        known = _compiled(env.noise)
        if known is None:
            _play_any(env, bonus, times, rng, regret)
        else:
            for i in range(env.clients):
                _play(rng, *known, env.means[i], env.gaps[i], bonus, times, regret)
        return Trial(regret / env.clients, 0, 0, np.empty(0, dtype=PHASE))


def exploration(index: str, horizon: int) -> np.ndarray:
    """sqrt(c(t)) for t = 0 .. horizon."""
    t = np.maximum(np.arange(horizon + 1), 1)
    return np.sqrt(2.0 * np.log1p(t * np.log(t) ** 2) if index == "authors" else 8.0 * np.log(t))


def _compiled(noise: Noise) -> tuple[int, float] | None:
    """Code and scale of the noises the kernel draws itself."""
    match noise:
        case Gaussian(scale):
            return GAUSSIAN, scale
        case Bernoulli():
            return BERNOULLI, 1.0
        case TwoPoint(scale):
            return TWO_POINT, scale
        case Bounded(scale):
            return BOUNDED, scale
    return None


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
        if kind == GAUSSIAN:
            reward = means[a] + scale * rng.standard_normal()
        elif kind == BERNOULLI:
            reward = 1.0 if rng.random() < means[a] else 0.0
        elif kind == TWO_POINT:
            reward = means[a] + (scale if rng.random() < 0.5 else -scale)
        else:
            reward = means[a] + scale * (2.0 * rng.random() - 1.0)
        count[a] += 1.0
        total[a] += reward
        average[a] = total[a] / count[a]
        shrink[a] = 1.0 / np.sqrt(count[a])
        lost += gaps[a]
        if t == times[n]:
            regret[n] += lost
            n += 1


def _play_any(
    env: LinearEnvironment,
    bonus: np.ndarray,
    times: np.ndarray,
    rng: np.random.Generator,
    regret: np.ndarray,
) -> None:
    """All rounds of all clients, round by round, with any noise. Overwrites regret."""
    rows = np.arange(env.clients)
    count = np.zeros(env.means.shape, dtype=np.int64)
    total = np.zeros(env.means.shape)
    lost, n = 0.0, 0
    for t in range(1, int(times[-1]) + 1):
        if t <= env.arms:
            pulled = np.full(env.clients, t - 1)
        else:
            pulled = np.argmax(total / count + bonus[t] / np.sqrt(count), axis=1)
        once = np.zeros_like(count)
        once[rows, pulled] = 1
        total += env.pull(rng, once)
        count += once
        lost += float(env.gaps[rows, pulled].sum())
        if t == times[n]:
            regret[n] = lost
            n += 1
