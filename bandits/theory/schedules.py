"""Lengths of the phases: f^1, f^2, ... until the horizon.

Time begins with K pulls, one of each arm; phase p then takes f^p + K pulls, and the phase in which the
horizon T is reached is cut there. A schedule turns (T, K) into the lengths of the phases that begin
before T:  K + sum_{p < H} (f^p + K) < T <= K + sum_{p <= H} (f^p + K).

>>> len(Exponential().lengths(horizon=2**17, arms=10))
16
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Protocol

import numpy as np

from bandits.checks import LARGEST, whole

LONGEST = LARGEST
"""Phases are not made longer than this, so that pulls stay exact in double precision."""


class Schedule(Protocol):
    """Protocol of a rule for the phase lengths, given a horizon and a number of arms.

    See Also
    --------
    bandits.schedules.Exponential : The paper's choice.

    Examples
    --------
    >>> Exponential().lengths(horizon=20, arms=2).tolist()
    [2, 4, 8]
    """

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return the phase lengths f^1 .. f^H; H is 0 if the K initial pulls reach the horizon.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Lengths.
        """


@dataclass(frozen=True)
class Exponential:
    """Phase lengths f^p = c n^p, the paper's choice: O(log T) phases.

    Parameters
    ----------
    c : int, default 1
        Factor.
    n : int, default 2
        Base.

    See Also
    --------
    bandits.schedules.Uniform : Phases of equal length.

    Examples
    --------
    >>> Exponential(c=1, n=3).lengths(horizon=20, arms=1).tolist()
    [3, 9, 27]
    """

    c: int = 1
    n: int = 2

    def __post_init__(self) -> None:
        # NumPy integers would overflow in powers and sums.
        object.__setattr__(self, "c", whole("c", self.c, 1))
        object.__setattr__(self, "n", whole("n", self.n, 2))

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return the lengths c n^p of the phases that begin before the horizon.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Lengths.
        """
        return _cut((self.c * self.n**p for p in range(1, horizon + 1)), horizon, arms)


@dataclass(frozen=True)
class Uniform:
    """Phases of equal length: K, as in the paper (the first one pull shorter), or any other length.

    Parameters
    ----------
    length : int, optional
        Length. Default: the number of arms.

    See Also
    --------
    bandits.schedules.Exponential : The paper's choice.

    Examples
    --------
    >>> Uniform(5).lengths(horizon=22, arms=2).tolist()
    [5, 5, 5]
    """

    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            object.__setattr__(self, "length", whole("length", self.length, 1, remedy=" Leave it out for K."))

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return equal lengths until the horizon.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Lengths.
        """
        if self.length is None:
            return _cut(chain([max(arms - 1, 1)], repeat(arms)), horizon, arms)
        return _cut(repeat(self.length), horizon, arms)


@dataclass(frozen=True)
class Greedy:
    """Phase lengths with O(log log T) phases:  S_p - S_{p-1} + K = 2 sqrt(T S_{p-1}),  f^p = S_p - S_{p-1}.

    See Also
    --------
    bandits.schedules.Exponential : The paper's choice.

    Examples
    --------
    >>> len(Greedy().lengths(horizon=10_000, arms=2)) < 6
    True
    """

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return lengths that grow as fast as the regret bound allows; the last phase ends at the horizon.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Lengths.
        """
        out = _cut(self._steps(horizon, arms), horizon, arms)
        if len(out):
            left = horizon - arms - int(out[:-1].sum()) - arms * len(out)
            out[-1] = max(1, min(int(out[-1]), left))
        return out

    @staticmethod
    def _steps(horizon: int, arms: int) -> Iterator[int]:
        total = 1.0
        while True:
            # At least one pull: the recursion could shrink where K > sqrt(T), which the paper excludes.
            following = max(total - arms + 2.0 * math.sqrt(horizon * total), math.ceil(total) + 1.0)
            yield math.ceil(following) - math.ceil(total)
            total = following


@dataclass(frozen=True)
class Lengths:
    """Given sequence of phase lengths.

    Parameters
    ----------
    values : iterable of int
        Phase lengths f^1, f^2, ...

    See Also
    --------
    bandits.schedules.Exponential : The paper's choice.

    Examples
    --------
    >>> Lengths([3, 3, 100]).lengths(horizon=20, arms=2).tolist()
    [3, 3, 100]
    """

    values: tuple[int, ...]

    def __init__(self, values: Iterable[int]) -> None:
        given = tuple(whole("each of the values", _exact(v), 1) for v in values)
        if not given:
            raise ValueError("values must have at least 1 phase length; got none. Append lengths.")
        object.__setattr__(self, "values", given)

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return the given lengths of the phases that begin before the horizon.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Lengths.
        """
        reach = arms + sum(self.values) + arms * len(self.values)
        if reach < horizon:
            raise ValueError(
                f"values must reach the horizon {horizon}; these {len(self.values)} phases end at {reach}. "
                "Append lengths."
            )
        return _cut(iter(self.values), horizon, arms)


def _exact(value: object) -> object:
    """Return a float without a fractional part as an int, and anything else as it is."""
    return int(value) if isinstance(value, float | np.floating) and value.is_integer() else value


def checked_lengths(schedule: Schedule, horizon: int, arms: int) -> np.ndarray:
    """Return the lengths of a schedule; ValueError unless they are whole and reach the horizon."""
    said = np.asarray(schedule.lengths(horizon, arms))
    numbers = said.dtype.kind in "iuf" and bool(np.all(np.abs(said) <= LONGEST))  # also False for NaN
    lengths = said.astype(np.int64) if numbers else said
    if not numbers or said.ndim != 1 or np.any(lengths != said) or np.any(lengths < 1):
        raise ValueError(
            f"schedule must give a sequence of whole phase lengths of at least 1; {schedule!r} gave {said}."
        )
    reach = arms + int(lengths.sum()) + arms * len(lengths)
    if reach < horizon:
        raise ValueError(
            f"schedule must reach the horizon {horizon}; the {len(lengths)} phases of {schedule!r} end at "
            f"{arms} + {int(lengths.sum())} + {len(lengths)} * {arms} = {reach} pulls. Append phases."
        )
    return _cut(lengths.tolist(), horizon, arms)


def _cut(steps: Iterable[int], horizon: int, arms: int) -> np.ndarray:
    """Return the lengths of the phases that begin before the horizon."""
    out: list[int] = []
    t = arms
    for f in steps:
        if t >= horizon:
            break
        out.append(min(f, LONGEST))
        t += f + arms
    return np.array(out, dtype=np.int64)
