"""Cumulative pseudo-regret of pulls whose order is defined.

Within a phase a client pulls arm after arm in the order of their indices, as often as planned, and then its
estimated best arm until the phase ends. So the regret at any time is known exactly without playing pull by
pull. It is the mean over clients, and it counts every pull, the first K included.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bandits.checks import arm_per_client, pulls_per_arm, whole
from optdesign.runtime.jit import kernel

WRAPS = 2.0**62
"""Sums below this fit into int64, also if the sum in double precision is not exact."""


class RegretClock:
    """Adds up regret phase by phase and reads it at chosen times.

    >>> clock = RegretClock(np.array([[0.5, 0.0]]), np.array([1, 3, 4]))
    >>> clock.advance(np.array([[1, 1]]), np.array([1]), 2)
    >>> clock.advance(np.array([[1, 0]]), np.array([1]), 10)
    >>> clock.time, clock.regret.tolist()
    (4, [0.5, 1.0, 1.0])
    """

    def __init__(self, gaps: np.ndarray, times: np.ndarray, policy: str = "the policy") -> None:
        self.gaps, self.times, self.policy = np.array(gaps), times, policy
        self.regret = np.full(len(times), np.nan)
        """NaN at times that are not reached yet."""
        self.time = 0
        self.total = 0.0

    def advance(self, pulls: np.ndarray, best: np.ndarray, length: int) -> None:
        """Play a phase of that length, or the part of it that ends at the last of the times.

        Client i makes pulls[i, a] pulls of each arm a, at most ``length`` in all, and then pulls best[i].
        """
        clients, arms = self.gaps.shape
        when = f"the phase that starts at pull {self.time}"
        pulls = pulls_per_arm("pulls", pulls, (clients, arms), f"{self.policy} ({when})")
        best = arm_per_client("best", best, clients, arms, self.policy, when)
        length = whole(f"length of {when}, given by {self.policy},", length, 0)
        planned = _largest_sum(pulls)
        if planned[1] > length:
            raise ValueError(
                f"pulls must fit into the phase; {self.policy} gave client {planned[0]} {planned[1]} pulls "
                f"in {when}, and its length is {length}. Give a longer phase or fewer pulls."
            )
        stop = min(self.time + length, int(self.times[-1]))
        now = np.flatnonzero((self.times > self.time) & (self.times <= stop))
        offsets = np.append(self.times[now], stop) - self.time
        out = np.zeros(len(offsets))
        _walk(self.gaps, pulls, best, offsets, out)
        out /= len(self.gaps)
        self.regret[now] = self.total + out[:-1]
        self.total += out[-1]
        self.time = stop

    def step(self, arms: ArrayLike) -> np.ndarray:
        """Let every client pull one arm; return the arms as an int64 array."""
        clients, count = self.gaps.shape
        chosen = arm_per_client("arms", arms, clients, count, self.policy, f"step {self.time + 1}")
        if self.time >= self.times[-1]:
            raise ValueError(
                f"policy must stop at the horizon {self.times[-1]}; {self.policy} went on. "
                "Play until trial.done."
            )
        self.total += float(self.gaps[np.arange(len(chosen)), chosen].mean())
        self.time += 1
        self.regret[self.times == self.time] = self.total
        return chosen

    def finish(self, regret: np.ndarray) -> None:
        """Take over the regret of a loop that has played to the horizon, summed over clients."""
        regret = np.asarray(regret, dtype=np.float64)
        if regret.shape != self.times.shape or not np.all(np.isfinite(regret)):
            raise ValueError(
                f"regret must have one finite number for each of the {len(self.times)} times; "
                f"{self.policy} gave {regret}."
            )
        self.regret = regret / len(self.gaps)
        self.total = float(self.regret[-1])
        self.time = int(self.times[-1])


def _largest_sum(pulls: np.ndarray) -> tuple[int, int]:
    """Return the client with the most pulls, and their number; exact although int64 sums could wrap."""
    sums = pulls.sum(axis=1, dtype=np.float64)
    if sums.max() < WRAPS:
        sums = pulls.sum(axis=1)
    client = int(np.argmax(sums))
    return client, sum(pulls[client].tolist())


@kernel
def _walk(gaps, pulls, best, offsets, out):
    """Add every client's regret after offsets (ascending) pulls of a phase. Overwrites out."""
    m, arms = gaps.shape
    for i in range(m):
        total = 0.0
        used = 0
        n = 0
        for a in range(arms):
            ahead = used + pulls[i, a]
            while n < len(offsets) and offsets[n] <= ahead:
                out[n] += total + (offsets[n] - used) * gaps[i, a]
                n += 1
            total += pulls[i, a] * gaps[i, a]
            used = ahead
        while n < len(offsets):
            out[n] += total + (offsets[n] - used) * gaps[i, best[i]]
            n += 1
