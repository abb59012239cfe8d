"""Ridge regression that follows single observations, for policies that decide at every step.

A model has, for each of its R rows (one for all clients, or one per client) and B blocks (one per arm, or
one for all if parameters are shared),

    A = lambda I + sum x x',    theta = A^-1 sum x y,    log_det = log det A - d log lambda .

An observation changes A^-1, theta and log_det in O(d^2) by the Sherman-Morrison formula. So that rounding
does not add up over millions of observations, A itself is kept too, and they are computed from it afresh now
and then, and after an observation that changes A^-1 by orders of magnitude.

Confidence (Abbasi-Yadkori, Pal, Szepesvari, NeurIPS 2011, theorem 2): with probability 1 - delta, at all
times and for all x at once,  |x' (theta-hat - theta)| <= radius ||x||_{A^-1},

    radius = sigma sqrt( 2 log(1 / delta) + log_det ) + sqrt(lambda) s,    ||theta|| <= s .
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.runtime.jit import inlined, kernel

REFRESH = 4096
"""Observations of a block between two inversions from scratch."""

LARGE = 1e4
"""Value of 1 + ||x||^2_{A^-1} from which on the Sherman-Morrison formula loses digits; A is then inverted."""


class Ridge(NamedTuple):
    """Models of R rows and B blocks."""

    information: np.ndarray
    """A, (R, B, d, d)."""
    moment: np.ndarray
    """sum x y, (R, B, d)."""
    inverse: np.ndarray
    theta: np.ndarray
    log_det: np.ndarray
    """(R, B)."""
    seen: np.ndarray
    """Observations since the last inversion, (R, B)."""
    work: np.ndarray
    """Work space for a matrix and a vector, (d + 1, d)."""
    ridge: float


class Confidence(NamedTuple):
    """Constants of the radius."""

    adaptive: bool
    """True if the width is the radius, which changes with the data; False if it is constant."""
    sigma: float
    log_term: float
    """2 log(1 / delta)."""
    bias: float
    """sqrt(lambda) s."""


def ridge(rows: int, blocks: int, dim: int, weight: float) -> Ridge:
    """Return models without observations, with lambda = weight."""
    eye = np.broadcast_to(np.eye(dim), (rows, blocks, dim, dim))
    return Ridge(
        weight * eye,
        np.zeros((rows, blocks, dim)),
        eye / weight,
        np.zeros((rows, blocks, dim)),
        np.zeros((rows, blocks)),
        np.zeros((rows, blocks), dtype=np.int64),
        np.zeros((dim + 1, dim)),
        weight,
    )


@kernel
def radius(log_det, sigma, log_term, bias):
    """Return sigma sqrt(2 log(1 / delta) + log_det) + sqrt(lambda) s."""
    return sigma * np.sqrt(log_term + log_det) + bias


@inlined
def block_of(width, a):
    """Return the block of an arm, given the widths (R, B): the arm itself, or 0 if B = 1."""
    return min(a, width.shape[1] - 1)


@kernel
def predict(model, r, b, features, i, a):
    """Return x' theta and ||x||_{A^-1} for x = features[i, a]."""
    mean, square = 0.0, 0.0
    for j in range(features.shape[2]):
        x = features[i, a, j]
        mean += x * model.theta[r, b, j]
        row = 0.0
        for k in range(j):
            row += model.inverse[r, b, j, k] * features[i, a, k]
        square += (2.0 * row + model.inverse[r, b, j, j] * x) * x
    return mean, np.sqrt(max(square, 0.0))


@kernel
def learn(model, width, confidence, r, features, i, a, y):
    """Add the observation of y at x = features[i, a] to row r; return the growth of log det A.

    Overwrites the model and the width.
    """
    b, d = block_of(width, a), features.shape[2]
    gain = model.work[d]
    error, scale = y, 1.0
    for j in range(d):
        x = features[i, a, j]
        error -= x * model.theta[r, b, j]
        model.moment[r, b, j] += x * y
        gain[j] = 0.0
        for k in range(d):
            gain[j] += model.inverse[r, b, j, k] * features[i, a, k]
            model.information[r, b, j, k] += x * features[i, a, k]
        scale += x * gain[j]
    growth = np.log(scale)
    model.log_det[r, b] += growth
    model.seen[r, b] += 1
    if model.seen[r, b] >= REFRESH or scale > LARGE:
        refresh(model, r, b)
    else:
        for j in range(d):
            step = gain[j] / scale
            model.theta[r, b, j] += step * error
            for k in range(d):
                model.inverse[r, b, j, k] -= step * gain[k]
    if confidence.adaptive:
        width[r, b] = radius(model.log_det[r, b], confidence.sigma, confidence.log_term, confidence.bias)
    return growth


@kernel
def refresh(model, r, b):
    """Compute inverse, theta and log_det from information and moment. Overwrites the model."""
    d = model.moment.shape[2]
    factor, column = model.work[:d], model.work[d]
    log_det = -d * np.log(model.ridge)
    for j in range(d):  # Cholesky
        for k in range(j + 1):
            total = model.information[r, b, j, k]
            for n in range(k):
                total -= factor[j, n] * factor[k, n]
            factor[j, k] = np.sqrt(total) if j == k else total / factor[k, k]
        log_det += 2.0 * np.log(factor[j, j])
    for c in range(d):  # the columns of the inverse, from the diagonal down
        for j in range(d):
            total = 1.0 if j == c else 0.0
            for k in range(j):
                total -= factor[j, k] * column[k]
            column[j] = total / factor[j, j]
        for j in range(d - 1, c - 1, -1):
            for k in range(j + 1, d):
                column[j] -= factor[k, j] * column[k]
            column[j] /= factor[j, j]
            model.inverse[r, b, j, c] = column[j]
            model.inverse[r, b, c, j] = column[j]
    for j in range(d):
        model.theta[r, b, j] = 0.0
        for k in range(d):
            model.theta[r, b, j] += model.inverse[r, b, j, k] * model.moment[r, b, k]
    model.log_det[r, b] = log_det
    model.seen[r, b] = 0
