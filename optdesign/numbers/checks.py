"""Checks of arguments: their type, choices among names, numbers, counts, seconds and numbers of workers."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from types import UnionType
from typing import Any

from optdesign.errors import InputError


def check_type(value: object, expected: type | UnionType, rule: str, remedy: str) -> None:
    """Raise TypeError unless the value is of an expected type; ``rule`` names the argument and the type."""
    if not isinstance(value, expected):
        raise TypeError(f"{rule}; got {type(value).__name__}. {remedy}")


def check_choice(value: object, known: Collection[str], name: str, remedy: str = "") -> None:
    """Raise InputError unless the value is one of the known words."""
    if not (isinstance(value, str) and value in known):
        raise InputError(name, f"must be one of {', '.join(known)}", f"got {value!r}", remedy)


def check_number(value: object, name: str, remedy: str) -> None:
    """Raise TypeError unless the value is a real number."""
    # A truth value of NumPy is no Real.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}. {remedy}")


def check_positive(value: Any, name: str, remedy: str) -> None:
    """Raise InputError unless the value is a positive finite number."""
    check_number(value, name, remedy)
    if not 0 < value < math.inf:
        raise InputError(name, "must be positive and finite", f"got {value}", remedy)


def check_count(value: object, name: str, remedy: str) -> None:
    """Raise InputError unless the value is a positive integer."""
    if not (isinstance(value, Integral) and int(value) >= 1):
        raise InputError(name, "must be an integer, at least 1", f"got {value!r}", remedy)


def check_time_limit(seconds: Any, remedy: str = "Leave it out for none.") -> None:
    """Raise InputError unless the value is None or a positive number of seconds."""
    if seconds is not None:
        check_number(seconds, "time_limit", remedy)
        if not seconds > 0:
            raise InputError("time_limit", "must be positive seconds", f"got {seconds}", remedy)


def check_jobs(n_jobs: object) -> None:
    """Raise InputError unless the value is an integer other than 0."""
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        remedy = "Use 1 for one after the other, -1 for one per core."
        raise InputError("n_jobs", "must be an integer that is not 0", f"got {n_jobs!r}", remedy)
