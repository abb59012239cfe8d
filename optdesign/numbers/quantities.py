"""Arithmetic and comparisons of columns of numbers that round-off does not decide.

A :class:`Quantity` is an array of values with a bound on the error of each. Whole numbers are exact: int64
arrays, or arrays of Python integers if a result might not fit. Other numbers are float64 and have an error
e >= 0, so that the value stands for the interval [value - e, value + e]:

- an entry v that is read has e = 2^-40 |v|, or a larger fraction if it is stored in lower precision;
- an entry of a column of whole numbers has e = 0 if its type represents all whole numbers up to it;
- an operation propagates the errors of its operands and adds its own round-off, 2^-53 of the result;
- a whole number beyond 2^53 that meets a fraction is rounded, with e = 2^-53 of it.

Two quantities are equal if their intervals meet. Functions that jump (``//``, ``%``, division by 0) take an
operand at a jump if its interval contains the jump: 0.3 // 0.1 is 3, and 0.3 % 0.1 is 0. Division by 0 gives
an infinity or NaN, also of whole numbers; a comparison with NaN is false, except ``!=``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from optdesign.numbers.roundoff import UNIT

EXACT = 2**53
"""Whole numbers up to this size are exact in double precision."""


class Quantity(NamedTuple):
    """Numbers and bounds on their errors.

    Whole numbers are int64, or an object array of Python integers. This has an infinity or NaN for every
    division by 0. They have no errors.
    """

    value: np.ndarray
    error: np.ndarray | float = 0.0

    @property
    def is_whole(self) -> bool:
        """True if the values are whole numbers by type."""
        return self.value.dtype.kind != "f"


def quantity(values: Any) -> Quantity:
    """Return numbers or booleans as a quantity. Booleans are 0 and 1.

    >>> quantity(np.array([200, 100], dtype=np.uint8)).value.dtype
    dtype('int64')
    """
    array = np.asarray(values)
    # Relative error of numbers in double precision: 4,096 times the distance between neighbours.
    rounding = 2.0**-40
    # Largest whole number up to which all are exact in lower precision, by the number of bytes.
    whole = {4: 2.0**24, 2: 2.0**11}
    # Relative error of numbers in lower precision, by the number of bytes: 16 times, and once, that distance.
    lower_rounding = {4: 2.0**-19, 2: 2.0**-10}
    if array.dtype.kind == "f":
        precision = lower_rounding.get(array.dtype.itemsize, rounding)
        value = array.astype(np.float64)
        error = np.abs(value) * precision
        if np.all((value == np.rint(value)) | np.isnan(value)):
            error = np.where(np.abs(value) <= whole.get(array.dtype.itemsize, EXACT), 0.0, error)
        return Quantity(value, error)
    if array.dtype.kind in "bi":
        return Quantity(array.astype(np.int64))
    return _fitted(array.astype(object))


def add(a: Quantity, b: Quantity) -> Quantity:
    """Return a + b."""
    if a.is_whole and b.is_whole:
        return _exactly(operator.add, a, b, _bound(a) + _bound(b))
    (x, ex), (y, ey) = _real(a), _real(b)
    value = x + y
    return Quantity(value, ex + ey + UNIT * np.abs(value))


def negate(a: Quantity) -> Quantity:
    """Return -a."""
    if a.is_whole:
        return _exactly(operator.sub, Quantity(np.asarray(0)), a, _bound(a))
    return Quantity(-a.value, a.error)


def absolute(a: Quantity) -> Quantity:
    """Return |a|."""
    if a.is_whole:
        return _exactly(lambda value, _: np.abs(value), a, a, _bound(a))
    return Quantity(np.abs(a.value), a.error)


def square_root(a: Quantity) -> Quantity:
    """Return the square root of a; it is NaN if a is negative."""
    return power(a, quantity(0.5))


def subtract(a: Quantity, b: Quantity) -> Quantity:
    """Return a - b."""
    return add(a, negate(b))


def multiply(a: Quantity, b: Quantity) -> Quantity:
    """Return a * b."""
    if a.is_whole and b.is_whole:
        return _exactly(operator.mul, a, b, _bound(a) * _bound(b))
    (x, ex), (y, ey) = _real(a), _real(b)
    value = x * y
    return Quantity(value, np.abs(x) * ey + np.abs(y) * ex + ex * ey + UNIT * np.abs(value))


def divide(a: Quantity, b: Quantity) -> Quantity:
    """Return a / b."""
    (x, ex), (y, ey) = _real(a), _real(b)
    y = np.where(np.abs(y) <= ey, 0.0, y)
    x = np.where((y == 0) & (np.abs(x) <= ex), 0.0, x)
    value = np.asarray(x / y)
    return Quantity(value, (ex + np.abs(value) * ey) / (np.abs(y) - ey) + UNIT * np.abs(value))


def floor_divide(a: Quantity, b: Quantity) -> Quantity:
    """Return floor(a / b)."""
    if a.is_whole and b.is_whole:
        by_zero = divide(a, b).value  # an infinity or NaN
        return _unless_zero(operator.floordiv, a, b, by_zero)
    value, error = divide(a, b)
    nearest = np.rint(value)
    floor = np.where(np.abs(value - nearest) <= error, nearest, np.floor(value))
    return Quantity(floor, np.where(error < 0.5, 0.0, error))


def modulo(a: Quantity, b: Quantity) -> Quantity:
    """Return a - b floor(a / b), which has the sign of b."""
    if a.is_whole and b.is_whole:
        return _unless_zero(operator.mod, a, b, np.nan)
    return subtract(a, multiply(b, floor_divide(a, b)))


def power(a: Quantity, b: Quantity) -> Quantity:
    """Return a ** b. Fractional powers of negative numbers are NaN."""
    if a.is_whole and b.is_whole and _is_natural(b.value):
        base, exponent = _bound(a), _bound(b)
        _check_bits(base.bit_length() * exponent if base > 1 else 1)
        return _exactly(operator.pow, a, b, max(base**exponent if base > 1 else 1, 1))
    (x, ex), (y, ey) = _real(a), _real(b)
    is_zero = (np.abs(x) <= ex) & ((y < 0) | ((x < 0) & (y != np.floor(y))))
    x = np.where(is_zero, 0.0, x)
    value = np.asarray(x**y)
    size, shift = np.abs(x), np.abs(value)
    ends = (size + ex) ** y, np.maximum(size - ex, 0.0) ** y
    by_base = np.where(np.asarray(ex) == 0, 0.0, np.maximum(*(np.abs(end - shift) for end in ends)))
    by_exponent = np.where(
        (np.asarray(ey) == 0) | (size == 0), 0.0, shift * np.expm1(ey * np.abs(np.log(size)))
    )
    return Quantity(value, by_base + by_exponent + 4 * UNIT * shift)


def compare(holds: Callable[[Any, Any], Any], a: Quantity, b: Quantity) -> np.ndarray:
    """Return the truth of a comparison; numbers whose intervals meet count as equal.

    >>> compare(operator.le, add(quantity(0.1), quantity(0.2)), quantity(0.3))
    array(True)
    """
    if a.is_whole and b.is_whole:
        return np.asarray(holds(a.value, b.value), dtype=bool)
    (x, ex), (y, ey) = _real(a), _real(b)
    error = np.asarray(ex + ey)
    meet = np.isfinite(error) & (np.abs(x - y) <= error)
    return np.where(meet, holds(0, 0), holds(x, y))


def _bound(a: Quantity) -> int:
    """Return the largest absolute value of whole numbers."""
    if a.value.dtype == object:
        return max((abs(v) for v in a.value.flat if isinstance(v, int)), default=0)
    return max(-int(np.min(a.value, initial=0)), int(np.max(a.value, initial=0)))


def _is_natural(values: np.ndarray) -> bool:
    """Return True if no value is negative, infinite or NaN."""
    if values.dtype == object:
        return all(isinstance(v, int) and v >= 0 for v in values.flat)
    return bool(np.min(values, initial=0) >= 0)


def _check_bits(bits: int) -> None:
    # Whole numbers have fewer bits than this, so that float64 can represent their size.
    most_bits = 1000
    if bits > most_bits:
        raise ValueError(
            f"whole numbers must stay below 2^{most_bits}; a result may have {bits} bits. "
            "Compute with floats: 2.0 instead of 2"
        )


def _exactly(compute: Callable[[Any, Any], Any], a: Quantity, b: Quantity, bound: int) -> Quantity:
    """Return the result of an operation on whole numbers whose absolute value is at most ``bound``."""
    _check_bits(bound.bit_length())
    fits = bound < 2**63 and a.value.dtype != object and b.value.dtype != object
    kind: Any = np.int64 if fits else object
    return Quantity(np.asarray(compute(a.value.astype(kind), b.value.astype(kind)), dtype=kind))


def _unless_zero(
    compute: Callable[[Any, Any], Any], a: Quantity, b: Quantity, otherwise: np.ndarray | float
) -> Quantity:
    """Return a whole result of a division, or ``otherwise`` in the entries whose divisor is 0."""
    is_zero = np.asarray(b.value == 0, dtype=bool)
    divisor = Quantity(np.where(is_zero, 1, b.value))
    result = _exactly(compute, a, divisor, _bound(a) + _bound(divisor))
    if not is_zero.any():
        return result
    return Quantity(np.where(is_zero, np.asarray(otherwise).astype(object), result.value.astype(object)))


def _real(a: Quantity) -> tuple[np.ndarray, np.ndarray | float]:
    """Return the values in double precision and their errors."""
    if not a.is_whole:
        return a.value, a.error
    value = a.value.astype(np.float64)
    return value, UNIT * np.abs(value) if _bound(a) > EXACT else 0.0


def _fitted(whole: np.ndarray) -> Quantity:
    """Return Python integers as int64 if all of them fit."""
    bound = _bound(Quantity(whole))
    _check_bits(bound.bit_length())
    return Quantity(whole.astype(np.int64) if bound < 2**63 else whole)
