"""Arithmetic for verification that shares nothing with the solvers': exact, in the user's coordinates.

*Ranks.* A double has a value modulo any odd prime, and there is no rounding in that arithmetic. Rows that are
independent modulo p are independent; rows that are dependent modulo p are so in truth, but for a coincidence
of probability about 1 / p. The prime is not that of :mod:`optdesign.problem.exact_rank`, and neither is the
method: elimination by columns.

*Information.* A double is an integer times a power of two, so U = sum_n w_n x_n x_n' is computed exactly, in
integers.

*Factors.* With Delta = diag(U)^(1/2), the matrix Delta^-1 U Delta^-1 does not depend on the units of the
columns. It is factorised by Cholesky's method with the largest pivot first, in decimal floating point, to the
rank r that is known beforehand: U = Delta L L' Delta, L of shape (d, r), with rows J for the pivots and N for
the others. Then

    g(x) = norm(L_J^-1 Delta_J^-1 x_J)^2,      log Det U = sum_J log U_jj + 2 log det L_J + log det(I + W'W),

with W = Delta_N L_N L_J^-1 Delta_J^-1, because a row of the span is x_J [I, W']. The number of digits is
doubled until log Det agrees.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import NamedTuple

import numpy as np

PRIME = 2_038_074_743
"""Below 2^31, so that products fit in 64 bits."""

LOWEST_POWER, HIGHEST_POWER = -1140, 1040
"""Exponents of two that occur in doubles, with those of their last digits."""

POWERS = np.array([pow(2, e % (PRIME - 1), PRIME) for e in range(LOWEST_POWER, HIGHEST_POWER)])
"""2^e modulo the prime, e from LOWEST_POWER."""

AGREEMENT = Decimal("1e-20")
"""Two numbers of digits agree when log Det differs by no more, relative to ``max(1, |log Det|)``."""


def residues(x: np.ndarray) -> np.ndarray:
    """Return doubles modulo the prime."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    digits = (mantissa * 2.0**53).astype(np.int64)
    return digits % PRIME * POWERS[exponent - 53 - LOWEST_POWER] % PRIME


def exact_rank(x: np.ndarray, basis: np.ndarray) -> tuple[int, int]:
    """Rank of the rows x[basis], and of all rows of x.

    A vector v is drawn from those with x_n'v = 0 modulo the prime for all n of the basis. A row with x'v != 0
    lies outside their span and joins them, until there is none.
    """
    rng = np.random.default_rng(PRIME)
    reduced, columns = echelon(residues(x[basis]))
    rank = first = len(columns)
    while rank < x.shape[1]:
        v = rng.integers(1, PRIME, size=(x.shape[1],))
        v[columns] = 0
        v[columns] = -(reduced * v % PRIME).sum(axis=1) % PRIME
        outside = _first_outside(x, v)
        if outside < 0:
            break
        reduced, columns = echelon(np.vstack([reduced, residues(x[outside])]))
        rank = len(columns)
    return first, rank


def _first_outside(x: np.ndarray, v: np.ndarray) -> int:
    """Return the first row with x'v != 0 modulo the prime, or -1."""
    chunk = 1 << 15  # candidates worked on at a time
    for start in range(0, len(x), chunk):
        dots = (residues(x[start : start + chunk]) * v % PRIME).sum(axis=1) % PRIME
        if dots.any():
            return start + int(np.argmax(dots != 0))
    return -1


def echelon(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the reduced row echelon form modulo the prime, without zero rows, and the columns of its pivots.

    >>> echelon(np.array([[0, 2, 4], [0, 1, 2]]))
    (array([[0, 1, 2]]), array([1]))
    """
    a, columns = a.copy(), list[int]()
    for k in range(len(a)):
        nonzero = a[k:] != 0
        j = int(np.argmax(nonzero.any(axis=0)))
        at = k + int(np.argmax(nonzero[:, j]))
        if a[at, j] == 0:
            break
        a[[k, at]] = a[[at, k]]
        a[k] = a[k] * pow(int(a[k, j]), -1, PRIME) % PRIME
        factor = a[:, j].copy()
        factor[k] = 0
        a = (a - factor[:, None] * a[k] % PRIME) % PRIME
        columns.append(j)
    return a[: len(columns)], np.array(columns, dtype=np.int64)


@dataclass(frozen=True)
class Information:
    """U_jk = 2^(exponent + shift_j + shift_k) entries_jk, exactly."""

    entries: np.ndarray
    """Python integers, (d, d), symmetric."""
    shift: np.ndarray
    exponent: int


def information(x: np.ndarray, weights: np.ndarray) -> Information:
    """Return the information of some candidates, without any rounding."""
    rows, shift = _integers(x)
    w, exponent = _integers(weights[:, None])
    weighted = rows * w
    entries = np.zeros((x.shape[1], x.shape[1]), dtype=object)
    for j in range(x.shape[1]):
        entries[j, j:] = entries[j:, j] = weighted[:, j] @ rows[:, j:]
    return Information(entries, shift, int(exponent[0]))


def _integers(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers and one power of two per column whose products are x."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    digits = (mantissa * 2.0**53).astype(np.int64)
    exponent = exponent.astype(np.int64) - 53
    used = digits != 0
    shift = np.min(np.where(used, exponent, HIGHEST_POWER), axis=0)
    left = np.where(used, exponent - shift, 0)
    return np.left_shift(digits.astype(object), left.astype(object)), shift


class LeftOut(NamedTuple):
    """Distances of candidates from a span; zero up to round-off if it is the span of all candidates."""

    share: np.ndarray
    """Over their own lengths, with columns in units of Delta."""
    ratio: np.ndarray
    """Over the shortest axis of the information, in the same units."""
    plain: np.ndarray
    """The same in the units of the candidates, or more."""


@dataclass(frozen=True)
class Factor:
    """U = Delta L L' Delta of one block, to the rank asked for; see the module's docstring."""

    columns: np.ndarray
    """J, the columns of the pivots."""
    others: np.ndarray
    """N, the columns that follow from them."""
    lower: np.ndarray
    """L_J, (r, r), lower triangular, of Decimals."""
    rest: np.ndarray
    """L_N, (d - r, r)."""
    size: np.ndarray
    """Delta, the roots of the diagonal."""
    smallest: Decimal
    """The smallest pivot."""
    log_det: Decimal
    digits: int

    def whiten(self, x: np.ndarray) -> np.ndarray:
        """L_J^-1 Delta_J^-1 x_J of some candidates, (n, r), as Decimals."""
        with _arithmetic(self.digits):
            return _substitute(self.lower, _decimals(x[:, self.columns]) / self.size[self.columns])

    def variances(self, x: np.ndarray) -> np.ndarray:
        """Return the variances of some candidates, rounded to doubles at the end."""
        with _arithmetic(self.digits):
            y = self.whiten(x)
            return np.array([float(g) for g in (y * y).sum(axis=1)])

    def left_out(self, x: np.ndarray) -> LeftOut:
        """Return the distances of some candidates, none of them zero, from the span of this rank."""
        with _arithmetic(self.digits):
            scaled = _decimals(x) / self.size
            off = scaled[:, self.others] - _substitute(self.lower, scaled[:, self.columns]) @ self.rest.T
            length = _lengths(off)
            return LeftOut(
                (length / _lengths(scaled)).astype(np.float64),
                (length / self.smallest.sqrt()).astype(np.float64),
                _lengths(off * self.size[self.others]).astype(np.float64) * np.linalg.norm(self.inverse()),
            )

    def relative(self, other: Information) -> np.ndarray:
        """Another information of the block in coordinates in which this one is the identity, rounded."""
        with _arithmetic(self.digits):
            u = _scaled(other)[np.ix_(self.columns, self.columns)]
            size = self.size[self.columns]
            half = _substitute(self.lower, (u / size[:, None] / size).T)
            return _substitute(self.lower, half.T).astype(np.float64)

    def inverse(self) -> np.ndarray:
        """Return the map from x_J to whitened coordinates in doubles, (r, r), for sorting, not for proofs."""
        with _arithmetic(self.digits):
            identity = np.array(_decimals(np.eye(len(self.columns))))
            return (_substitute(self.lower, identity) / self.size[self.columns, None]).astype(np.float64)


def factorise(u: Information, rank: int) -> Factor | None:
    """Factorise to a rank, with as many digits as necessary, or return None if there are not so many."""
    before, digits, most_digits = None, 50, 1600
    while digits <= most_digits:
        factor = _factorise(u, rank, digits)
        if factor and before:
            with _arithmetic(digits):
                difference = abs(factor.log_det - before.log_det)
                if difference <= AGREEMENT * max(Decimal(1), abs(factor.log_det)):
                    return factor
        before, digits = factor, 2 * digits
    return None


def _factorise(u: Information, rank: int, digits: int) -> Factor | None:
    """One attempt; None where rounding, or the information itself, leaves no pivot."""
    with _arithmetic(digits):
        a = _scaled(u)
        squared = a.diagonal().copy()
        squared[squared <= 0] = Decimal(1)
        size = _sqrt(squared)
        a = a / size[:, None] / size
        order: list[int] = []
        lower = np.full((len(a), rank), Decimal(0))
        smallest = Decimal(1)
        for k in range(rank):
            j = int(np.argmax(a.diagonal()))
            pivot = a[j, j]
            if pivot <= 0:
                return None
            smallest = min(smallest, pivot)
            order.append(j)
            lower[:, k] = a[:, j] / pivot.sqrt()
            a = a - np.outer(lower[:, k], lower[:, k])
            a[order, :] = a[:, order] = Decimal(0)
        others = np.setdiff1d(np.arange(len(a)), order)
        chosen, rest = lower[order], lower[others]
        w = _substitute(chosen.T[::-1, ::-1], rest[:, ::-1])[:, ::-1] * size[others, None] / size[order]
        log_det = sum((squared[j].ln() for j in order), Decimal(0))
        log_det += 2 * sum((d.ln() for d in chosen.diagonal()), Decimal(0))
        from_others = _log_det(w @ w.T + _decimals(np.eye(len(others))))
        if from_others is None:
            return None
        log_det += from_others
        return Factor(np.array(order), others, chosen, rest, size, smallest, log_det, digits)


def _log_det(a: np.ndarray) -> Decimal | None:
    """Return log det of a positive definite matrix, or None if the digits do not show that it is one."""
    a, total = a.copy(), Decimal(0)
    for k in range(len(a)):
        if a[k, k] <= 0:
            return None
        total += a[k, k].ln()
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k + 1 :])
    return total


def _substitute(lower: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Solve L y = x for every row x of a matrix."""
    y = np.empty_like(rows)
    for k in range(len(lower)):
        known = y[:, :k] @ lower[k, :k] if k else Decimal(0)
        y[:, k] = (rows[:, k] - known) / lower[k, k]
    return y


def _scaled(u: Information) -> np.ndarray:
    """Return the entries as Decimals."""
    powers = np.array([Decimal(2) ** int(e) for e in u.shift], dtype=object)
    return _decimals(u.entries) * powers[:, None] * powers * Decimal(2) ** u.exponent


def _lengths(rows: np.ndarray) -> np.ndarray:
    return np.array(_sqrt((rows * rows).sum(axis=1) + Decimal(0)))


def _arithmetic(digits: int) -> AbstractContextManager[Context]:
    """Set the number of digits, independent of the caller's context."""
    return localcontext(Context(prec=digits))


_decimals = np.frompyfunc(Decimal, 1, 1)
_sqrt = np.frompyfunc(Decimal.sqrt, 1, 1)
