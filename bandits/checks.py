"""Checks of the numbers that policies and environments pass to a trial: arms, pulls and rewards.

An array of integers must have an integer type. Truth values and floating-point numbers are refused whatever
their values, because a truncated 2.7 or a truth value used as an index is a defect of the caller.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = 1 << 53
"""Largest horizon and number of pulls: integers up to this are exact in double precision."""


SMALLEST_SIZE, LARGEST_SIZE = 1e-60, 1e60
"""Range of the sizes of features and of sigma: their squares and products neither overflow nor vanish."""


LARGEST_REWARDS = 1e100
"""Largest sum of rewards: squares of it do not overflow in the estimates."""


def whole(name: str, value: Any, least: int, most: int | None = None, remedy: str = "") -> int:
    """Return a whole number as an int, or raise ValueError unless it lies in least .. most.

    >>> whole("trials", True, 1)
    Traceback (most recent call last):
    ValueError: trials must be a whole number of at least 1; got True.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.{remedy}")
    if most is not None and int(value) > most:
        raise ValueError(f"{name} must be a whole number of at most {most}; got {value!r}.{remedy}")
    return int(value)


def is_number(value: object) -> bool:
    """Return True if the value is a real number, and no truth value, text or array."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_positive(
    name: str, value: float | None, remedy: str = "Leave it out for the environment's."
) -> None:
    """Raise ValueError unless the value is positive and finite, or None.

    >>> check_positive("sigma", 0.0)
    Traceback (most recent call last):
    ValueError: sigma must be positive and finite; got 0.0. Leave it out for the environment's.
    """
    if value is not None and not (is_number(value) and 0.0 < value < math.inf):
        raise ValueError(f"{name} must be positive and finite; got {value!r}. {remedy}")


def check_probability(name: str, value: float, remedy: str = "The paper takes 0.1.") -> None:
    """Raise ValueError unless the value lies strictly between 0 and 1."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise ValueError(f"{name} must lie strictly in (0, 1); got {value!r}. {remedy}")


def check_jobs(n_jobs: int) -> None:
    """Raise ValueError unless n_jobs is a whole number other than 0."""
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0; got {n_jobs!r}. -1 takes all cores.")


def check_sigma(sigma: float) -> None:
    """Raise ValueError unless confidence intervals can be computed for this sub-Gaussian parameter.

    >>> check_sigma(0.0)
    Traceback (most recent call last):
    ValueError: sigma must be positive; got 0.0. Without noise there are no widths: pass a small sigma.
    """
    if not sigma > 0.0:
        raise ValueError(
            f"sigma must be positive; got {sigma}. Without noise there are no widths: pass a small sigma."
        )
    if not SMALLEST_SIZE <= sigma <= LARGEST_SIZE:
        raise ValueError(
            f"sigma must lie in {SMALLEST_SIZE:g} .. {LARGEST_SIZE:g}; got {sigma}. "
            "Divide rewards and sigma by a constant."
        )


def integers(argument: str, values: Any, shape: tuple[int, ...], who: str, remedy: str) -> np.ndarray:
    """Return values as an int64 array, or raise ValueError unless they are integers of this shape.

    >>> integers("arms", [0, 1], (2,), "MyPolicy", "Use np.argmax.").tolist()
    [0, 1]
    >>> integers("arms", [0.0, 2.7], (2,), "MyPolicy", "Use np.argmax.")
    Traceback (most recent call last):
    ValueError: arms must be integers; MyPolicy gave values of type float64, such as 2.7. Use np.argmax.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        shown = f", such as {array.flat[_first_fraction(array)]}" if array.size else ""
        raise ValueError(
            f"{argument} must be integers; {who} gave values of type {array.dtype}{shown}. {remedy}"
        )
    if array.shape != shape:
        raise ValueError(f"{argument} must have shape {shape}; {who} gave shape {array.shape}. {remedy}")
    if array.size and int(array.max()) > LARGEST:
        raise ValueError(f"{argument} must be at most 2^53; {who} gave {array.max()}. {remedy}")
    return array.astype(np.int64, copy=False)


def pulls_per_arm(argument: str, values: Any, shape: tuple[int, ...], who: str) -> np.ndarray:
    """Return numbers of pulls as an int64 array, or raise ValueError; they must not be negative."""
    pulls = integers(argument, values, shape, who, "Give one number of pulls per client and arm.")
    if pulls.size and pulls.min() < 0:
        i, a = (int(n) for n in np.argwhere(pulls < 0)[0])
        raise ValueError(
            f"{argument} must not be negative; {who} gave client {i} {pulls[i, a]} pulls of arm {a}. "
            "Use 0 for arms that are not pulled."
        )
    return pulls


def arm_per_client(argument: str, values: Any, clients: int, arms: int, who: str, when: str) -> np.ndarray:
    """Return one arm per client as an int64 array, or raise ValueError; arms are 0 .. K - 1."""
    chosen = integers(
        argument, values, (clients,), f"{who} ({when})", "Give the index of one arm per client."
    )
    wrong = np.flatnonzero((chosen < 0) | (chosen >= arms))
    if len(wrong):
        raise ValueError(no_such_arm(argument, who, int(wrong[0]), when, int(chosen[wrong[0]]), arms))
    return chosen


def no_such_arm(argument: str, who: str, client: int, when: str, arm: object, arms: int) -> str:
    """Return the message for an arm that does not exist."""
    return (
        f"{argument} must be in 0 .. K - 1 = {arms - 1}; {who} gave client {client} arm {arm} in {when}. "
        "Arms are counted from 0, and a negative index does not count from the end."
    )


def rewards_per_arm(values: Any, counts: np.ndarray, who: str) -> np.ndarray:
    """Return sums of rewards as a float64 array, or raise ValueError.

    They must be finite, have the shape of the counts, and be 0 for arms that were not pulled.
    """
    sums = np.asarray(values)
    if sums.dtype.kind not in "fiu":
        raise ValueError(f"rewards must be real numbers; pull of {who} gave values of type {sums.dtype}.")
    if sums.shape != counts.shape:
        raise ValueError(
            f"rewards must have shape {counts.shape}; pull of {who} gave shape {sums.shape}. "
            "Return one sum of rewards per client and arm."
        )
    sums = sums.astype(np.float64, copy=False)
    for rule, wrong in (
        ("be finite", ~np.isfinite(sums)),
        (f"be at most {LARGEST_REWARDS:g} in size", np.abs(sums) > LARGEST_REWARDS),
        ("be 0 for arms that are not pulled", (counts == 0) & (sums != 0.0)),
    ):
        if wrong.any():
            i, a = (int(n) for n in np.argwhere(wrong)[0])
            raise ValueError(
                f"rewards must {rule}; pull of {who} gave {sums[i, a]} for {counts[i, a]} pulls of arm {a} "
                f"by client {i}. Correct pull, or sums of the noise."
            )
    return sums


def _first_fraction(array: np.ndarray) -> int:
    """Return the position of the first value that is not a whole number, or 0."""
    if array.dtype.kind != "f":
        return 0
    return int(np.argmax(~(np.floor(array) == array)))
