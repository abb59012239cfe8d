"""Hadamard matrices: orthogonal two-level designs of n runs and n - 1 factors.

Constructions: Paley's first for n = q + 1 and his second for n = 2 (q + 1), with q a prime, and doubling.
These give all orders up to 100 that are multiples of 4, except 52, 92 and 100.
"""

from __future__ import annotations

import numpy as np


def orthogonal_runs(runs: int, factors: int) -> np.ndarray | None:
    """Return ones and minus ones of shape (runs, factors) with orthogonal columns of sum 0, or None.

    The smallest Hadamard matrix with enough columns is repeated. Orders are limited, because a matrix of
    order n has n^2 entries.

    >>> orthogonal_runs(8, 2).tolist()[:4]
    [[1, 1], [-1, 1], [1, -1], [-1, -1]]
    """
    for order in range(factors + 1, min(runs, max(1024, 2 * factors)) + 1):
        if runs % order == 0 and (h := hadamard(order)) is not None:
            return np.tile(h[:, 1 : factors + 1], (runs // order, 1))
    return None


def hadamard(n: int) -> np.ndarray | None:
    """Return a matrix H of ones and minus ones with H'H = n I and a first column of ones, or None.

    >>> hadamard(4).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    h = _matrix(n)
    return None if h is None else h * h[:, :1]


def _matrix(n: int) -> np.ndarray | None:
    if n <= 2:
        return np.array([[1, 1], [1, -1]])[:n, :n]
    if n % 4:
        return None
    if (half := _matrix(n // 2)) is not None:
        return np.kron([[1, 1], [1, -1]], half)
    if _is_prime(n - 1):  # n - 1 is 3 modulo 4, so the characters are a skew matrix
        q = np.zeros((n, n), np.int64)
        q[0, 1:], q[1:, 0], q[1:, 1:] = 1, -1, _characters(n - 1)
        return q + np.eye(n, dtype=np.int64)
    if _is_prime(n // 2 - 1):  # 1 modulo 4, so the characters are symmetric
        q = np.zeros((n // 2, n // 2), np.int64)
        q[0, 1:] = q[1:, 0] = 1
        q[1:, 1:] = _characters(n // 2 - 1)
        return np.kron(q, [[1, 1], [1, -1]]) + np.kron(np.eye(n // 2, dtype=np.int64), [[1, -1], [-1, -1]])
    return None


def _is_prime(q: int) -> bool:
    return q > 1 and all(q % k for k in range(2, int(q**0.5) + 1))


def _characters(q: int) -> np.ndarray:
    """Return the matrix of quadratic characters of i - j modulo a prime."""
    character = np.full(q, -1)
    character[np.arange(1, q) ** 2 % q] = 1
    character[0] = 0
    return character[(np.arange(q)[:, None] - np.arange(q)) % q]
