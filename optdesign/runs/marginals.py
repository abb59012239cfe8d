"""The D-optimal design of a single factor, in coordinates in which it has unit information.

The coordinates of a level are values of functions q_1, ..., q_p that are orthonormal, together with the
constant 1, under the optimal shares of the levels. The bound of :mod:`optdesign.runs.main_effects` holds for
the span of the functions of the model, so the q_k must lie in that span exactly.

*Numbers.* The span is that of the polynomials up to degree p. The recurrence

    q_k = s_k (t q_{k-1} - sum_{j < k} c_kj q_j),      t = (level - middle) / 2^e,

is evaluated in rational arithmetic. Any coefficients c_kj and scales s_k, rounded or not, give polynomials of
degree k, so round-off in them affects orthogonality only, and orthogonality is measured. Powers of the levels
themselves are not used: their Gram matrix is singular in double precision for levels such as years. The
leading coefficient of q_k is the product of the scales over 2^(e k), which gives the determinant of the
change of basis from the powers in the units of the factor.

*Categories.* The span is that of all functions of L levels. Equal shares are optimal, and Helmert's contrasts
are orthonormal under them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from optdesign.numbers.roundoff import gamma
from optdesign.problem.elimination import LOG_2
from optdesign.problem.problem import DesignProblem
from optdesign.solvers.solve import solve


class Marginal(NamedTuple):
    """The optimal design of a factor alone; see the module's docstring."""

    share: np.ndarray
    """Shares of the levels, of sum 1."""
    values: np.ndarray
    """q_k of every level, (levels, p), each with a relative error of at most gamma(8)."""
    log_scale: float
    """Logarithm of the factor by which these coordinates multiply the determinant of the moments."""
    slack: float
    """Upper bound on log det of the moments of (1, q) over all shares of the levels; 0 without a gap."""


def categories(size: int) -> Marginal:
    """Return the optimal design of a category, with effects for all levels but the last."""
    values = math.sqrt(size) * helmert(size).T
    # The matrix (1, effects) has determinant +-size, so det of its moments is size^(2 - size).
    return Marginal(np.full(size, 1 / size), values, (size - 2) * math.log(size), 0.0)


def numbers(levels: Sequence[float], degree: int) -> Marginal:
    """Return the optimal design of a polynomial in numeric levels, with effects of the powers 1 to degree."""
    size, d = len(levels), degree + 1
    even = np.full(size, 1 / size)
    # Grid to which orthonormal polynomials are rounded before the design of a factor is solved: finer than
    # its gap.
    residue = 2.0**-44
    # Only the weights of this problem are used. Residues of cancellation, such as 1e-17, become zeros.
    start = np.round(orthonormal(levels, degree, even)[0] / residue) * residue
    optimal = 1e-10  # relative gap to which the design of a single factor is solved
    optimum = solve(DesignProblem(np.column_stack([np.ones(size), start])), tol=optimal)
    share = optimum.weights / math.fsum(optimum.weights)
    values, log_scale = orthonormal(levels, degree, share)
    # With moments S = I + E of (1, q) under the shares, variances are at most |(1, q)|^2 / (1 - |E|) and
    # log det S is at most d |E|; see optdesign.certificate.
    y = np.column_stack([np.ones(size), values])
    moments = (y.T * share) @ y
    off = float(np.linalg.norm(moments - np.eye(d))) + gamma(size + 4 * d + 16) * float(np.trace(moments))
    largest = float(np.max(np.sum(y * y, axis=1))) * (1 + gamma(2 * d + 16)) / (1 - off)
    return Marginal(share, values, log_scale, d * (math.log(largest / d) + off + gamma(8)))


def orthonormal(levels: Sequence[float], degree: int, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """Return polynomials of degree 1, 2, ... that are orthonormal with 1, and the log of their scale.

    The first result has the values at the levels, (levels, degree), each correctly rounded. The second is the
    logarithm of the factor by which the determinant of the moments of (1, level, level^2, ...) is multiplied
    if these polynomials replace the powers.
    """
    exact = [Fraction(level) for level in levels]
    middle, width = (min(exact) + max(exact)) / 2, max(exact) - min(exact)
    t = _Dyadic.of(*(level - middle for level in exact)).divided(_exponent(width))
    basis, known = [_Dyadic.of(*[Fraction(1)] * len(exact))], [np.ones(len(exact))]
    log_lead, log_scale = 0.0, 0.0
    for _ in range(degree):
        q = t.times(basis[-1])
        while True:
            shift = q.largest_exponent  # powers of two keep the values within the range of doubles
            q = q.divided(shift)
            log_lead -= shift * LOG_2
            value = q.rounded()
            length = math.sqrt(float(shares @ (value * value)))
            products = [float(shares @ (value * other)) for other in known]
            if max(map(abs, products)) <= gamma(2 * len(exact) + 16) * length:
                break
            for product, other in zip(products, basis, strict=True):
                q = q.minus(other.times(_Dyadic.of(Fraction(product))))
        basis.append(q.times(_Dyadic.of(Fraction(1.0 / length))))
        known.append(basis[-1].rounded())
        log_lead += math.log(1.0 / length) - _exponent(width) * LOG_2
        log_scale += 2.0 * log_lead
    return np.column_stack(known[1:]), log_scale


class _Dyadic(NamedTuple):
    """A vector of exact numbers, digits / 2^places."""

    digits: np.ndarray
    """Python integers."""
    places: int

    @classmethod
    def of(cls, *values: Fraction) -> _Dyadic:
        """Return fractions whose denominators are powers of two."""
        places = max(value.denominator.bit_length() for value in values) - 1
        return cls(np.array([int(value * 2**places) for value in values], dtype=object), places)

    @property
    def largest_exponent(self) -> int:
        """Return e such that the largest entry is between 2^(e - 1) and 2^e in size."""
        return int(np.abs(self.digits).max()).bit_length() - self.places

    def divided(self, exponent: int) -> _Dyadic:
        """Return the vector divided by a power of two."""
        return _Dyadic(self.digits, self.places + exponent)

    def times(self, other: _Dyadic) -> _Dyadic:
        """Return the entrywise product with another vector, or with one number."""
        return _Dyadic(self.digits * other.digits, self.places + other.places)

    def minus(self, other: _Dyadic) -> _Dyadic:
        """Return the difference from another vector."""
        places = max(self.places, other.places)
        own, theirs = (one.digits * 2 ** (places - one.places) for one in (self, other))
        return _Dyadic(own - theirs, places)

    def rounded(self) -> np.ndarray:
        """Return the nearest doubles."""
        up, down = max(0, -self.places), max(0, self.places)
        return np.array(self.digits * 2**up / 2**down, dtype=np.float64)


def _exponent(value: Fraction) -> int:
    """Return e with 2^(e - 1) < value < 2^(e + 1), for a positive value."""
    return value.numerator.bit_length() - value.denominator.bit_length()
