"""The outcome of one examined call, and claims that several functions make."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from flint import arb
from numba.core import event

from hunt.truth import Bracket, Truth, number

LOG_DET_RTOL = 1e-9
"""Largest error of a log det, relative to max(1, its size)."""

STEPS = (10, 40)
"""Steps of the multiplicative algorithm that narrow a bracket in which a claim cannot be decided."""

T = TypeVar("T")


class Found(NamedTuple):
    """The outcome of one call, and a description of the first false claim."""

    status: str
    wrong: str = ""
    noted: bool = False
    undecided: bool = False
    slack: float = np.nan
    """Distance between the claim and the truth, on the side that is allowed."""
    overrun: float = np.nan
    """Seconds beyond the time limit."""


class _Compilation(event.Listener):
    """Seconds in which Numba has compiled."""

    seconds, depth, since = 0.0, 0, 0.0

    def on_start(self, _: Any) -> None:
        """Note when the outermost compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.since = time.perf_counter()

    def on_end(self, _: Any) -> None:
        """Add the time of the outermost compilation."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.since


COMPILATION = _Compilation()
event.register("numba:compile", COMPILATION)


class Stopwatch:
    """Seconds of work in a ``with`` block, without compilation.

    The smaller of wall time and processor time counts, so that other processes make no difference. Wall time
    alone counts if the work is done by processes.
    """

    def __init__(self, *, processes: bool = False) -> None:
        self.seconds, self.processes = 0.0, processes

    def __enter__(self) -> Stopwatch:
        self._began = time.perf_counter(), time.process_time(), COMPILATION.seconds
        return self

    def __exit__(self, *_: object) -> None:
        wall, processor, compiling = self._began
        spent = time.perf_counter() - wall
        if not self.processes:
            spent = min(spent, time.process_time() - processor)
        self.seconds = spent - (COMPILATION.seconds - compiling)


def call(function: Callable[..., T], *args: Any, **options: Any) -> tuple[T | None, str]:
    """Return the value of a call, or None and the message of its ValueError."""
    try:
        return function(*args, **options), ""
    except ValueError as error:
        return None, str(error)


def wrong_log_det(claimed: float, true: arb) -> str:
    """Return a description of a log det that is not the true one, or an empty string."""
    allowed = LOG_DET_RTOL * max(1.0, abs(float(true.mid())))
    if abs(number(claimed) - true) <= arb(allowed):
        return ""
    return f"log det {claimed!r}, truly {true.str(18, radius=False)}"


class Judgement(NamedTuple):
    """A description of a false claim, whether the claim could be decided, and its distance to the truth."""

    wrong: str
    undecided: bool
    slack: float


def judge_efficiency(
    truth: Truth, claimed: float, log_det: arb, witnesses: list[np.ndarray], least: float = 0.0
) -> Judgement:
    """Compare a lower bound on an efficiency with the truth, exp((F - F*) / D).

    ``least`` is an efficiency that the status claims in addition. The claims are false if the lower end of
    the bracket of F* refutes them, and true if they follow from its upper end.
    """
    bracket = truth.bracket(witnesses)
    assert bracket is not None, "one witness has full rank"
    for steps in (0, *STEPS):
        if steps:
            better = truth.ascended(witnesses[0], steps)
            if (other := truth.bracket([better])) is not None:
                bracket = Bracket(bracket.low.max(other.low), bracket.high.min(other.high))
        most = ((log_det - bracket.low) / truth.rank).exp()
        sure = ((log_det - bracket.high) / truth.rank).exp()
        slack = float(most.mid()) - claimed
        if number(claimed) > most:
            return Judgement(f"efficiency {claimed!r}, truly at most {_short(most)}", False, slack)
        if least and most < arb(least):
            wrong = f"nothing left to gain claimed at an efficiency of at most {_short(most)}"
            return Judgement(wrong, False, slack)
        if number(claimed) <= sure and sure >= arb(least):
            return Judgement("", False, slack)
    return Judgement("", True, slack)


def _short(value: arb) -> str:
    return value.str(12, radius=False)
