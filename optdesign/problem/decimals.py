"""Determinants in decimal arithmetic, for matrices whose digits two doubles a number do not hold."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

decimals = np.frompyfunc(Decimal, 1, 1)


def log_abs_det(a: np.ndarray) -> float:
    """Return the logarithm of the absolute determinant of a matrix of decimals, NaN if it is singular.

    Overwrites the matrix.
    """
    total = 0.0
    for k in range(len(a)):
        j = k + int(np.argmax(np.abs(a[k, k:])))
        a[:, [k, j]] = a[:, [j, k]]
        if not a[k, k]:
            return math.nan
        total += _log(abs(a[k, k]))
        a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
    return total


def log_det_of_gram(p: np.ndarray) -> float:
    """Return log det(P P') of decimals, NaN if the rows are dependent. Overwrites P.

    The method is that of :func:`optdesign.problem.coordinates.log_gram`.
    """
    total, others = 0.0, list(range(p.shape[1]))
    for k in range(len(p)):
        c = others[int(np.argmax(np.abs(p[k, others])))]
        if not p[k, c]:
            return math.nan
        total += 2.0 * _log(abs(p[k, c]))
        others.remove(c)
        p[k] /= p[k, c]
        rest = np.arange(len(p)) != k
        p[rest] -= np.outer(p[rest, c], p[k])
    w = p[:, others]
    return total + log_abs_det(w @ w.T + decimals(np.eye(len(p))))


def _log(value: Decimal) -> float:
    """Return the logarithm of a positive number of any size."""
    exponent = value.adjusted()
    return math.log(float(value.scaleb(-exponent))) + exponent * math.log(10.0)
