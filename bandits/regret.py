"""Cumulative pseudo-regret of pulls whose order is defined.

Within a phase a client pulls arm after arm in the order of their indices, as often as planned, and then its
estimated best arm until the phase ends. So the regret at any time is known exactly without playing pull by
pull. It is the mean over clients, and it counts every pull, the first K included.
"""

from __future__ import annotations

import numpy as np

from optdesign._kernel import kernel


class RegretClock:
    """Adds up regret phase by phase and reads it at chosen times.

    >>> clock = RegretClock(np.array([[0.5, 0.0]]), np.array([1, 3, 4]))
    >>> clock.advance(np.array([[1, 1]]), np.array([1]), 2)
    >>> clock.advance(np.array([[1, 0]]), np.array([1]), 10)
    >>> clock.time, clock.regret.tolist()
    (4, [0.5, 1.0, 1.0])
    """

    def __init__(self, gaps: np.ndarray, times: np.ndarray) -> None:
        self.gaps, self.times = gaps, times
        self.regret = np.full(len(times), np.nan)
        """Not a number at times that have not come."""
        self.time = 0
        self.total = 0.0

    def advance(self, pulls: np.ndarray, best: np.ndarray, length: int) -> None:
        """Play a phase of that length, or what fits before the last of the times."""
        stop = min(self.time + length, int(self.times[-1]))
        now = np.flatnonzero((self.times > self.time) & (self.times <= stop))
        offsets = np.append(self.times[now], stop) - self.time
        out = np.zeros(len(offsets))
        _walk(self.gaps, pulls, best, offsets, out)
        out /= len(self.gaps)
        self.regret[now] = self.total + out[:-1]
        self.total += out[-1]
        self.time = stop

    def step(self, arms: np.ndarray) -> None:
        """Let every client pull one arm."""
        self.total += float(self.gaps[np.arange(len(arms)), arms].mean())
        self.time += 1
        self.regret[self.times == self.time] = self.total

    def finish(self, regret: np.ndarray) -> None:
        """Take over the regret of a loop of its own, summed over clients, that has played to the end."""
        self.regret = regret / len(self.gaps)
        self.total = float(self.regret[-1])
        self.time = int(self.times[-1])


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
