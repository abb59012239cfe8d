"""The round-off allowance of the certificate: a bound on the exact G of the given numbers.

Take any matrices A_b, here computed so that the vectors y_n = A_b x_n are nearly white:
S_b = sum_n w_n y_n y_n' = I + E_b. Then U_b^+ = A_b' S_b^-1 A_b on the span of the block, so that, with
Euclidean norms ``|.|``, ``g_n = y_n' S_b^-1 y_n <= |y_n|^2 / (1 - |E_b|)``. No inverse has to be exact.

If eta bounds sqrt(f_i) times the rounding error of y_n (see
:class:`optdesign.problem.coordinates.Rows`) and M is the number of groups, then by the Cauchy-Schwarz
inequality G grows by at most 2 eta sqrt(M G) + M eta^2 and ``|E_b|`` by 2 eta sqrt(M tr S_b) + M eta^2. The
rounding of sums is added, and so is the fraction by which weights miss their budgets. If ``|E_b| < 1/2`` is
proved then so is the rank of the design; if not, the gap is infinite.
"""

from __future__ import annotations

import numpy as np

from optdesign.numbers.roundoff import gamma, two_sum
from optdesign.runtime.jit import kernel


@kernel
def bound_on_g(budgets, largest, ranks, off, eta, own, terms, missed):
    """Return a bound on G and the fraction of it that is the allowance; both inf if rank is not proved.

    ``own`` bounds the root of sum_n w_n e_n^2, where e_n is the length of the error of y_n. It is at most
    sqrt(M) eta.
    """
    m = len(budgets)
    total, error = 0.0, 0.0
    for i in range(m):
        total, e = two_sum(total, budgets[i] * largest[i])
        error += e
    total += error
    worst = 0.0
    rank = 0
    for b in range(len(ranks)):
        rank = max(rank, ranks[b])
        worst = np.maximum(worst, off[b] + sum_error(1, own, ranks[b] * (1.0 + off[b]), terms))
    worst += missed
    if not (worst < 0.5 and total < np.inf):  # also if eta or a variance is NaN
        return np.inf, np.inf
    bound = total + 2.0 * eta * np.sqrt(m * total) + m * (eta * eta)
    bound *= (1.0 + gamma(rank + 16)) / (1.0 - worst)
    return bound, 1.0 - total / bound


@kernel
def error_length(white, rounding):
    """Return eta, a bound on the error of sqrt(f_i) y_n, y_n = x_n @ white[b], for all candidates."""
    eta = 0.0
    for b in range(len(white)):
        square = 0.0
        for k in range(white.shape[2]):
            error = 0.0
            for j in range(white.shape[1]):
                error += abs(white[b, j, k]) * rounding[b, j]
            square += error * error
        eta = np.maximum(eta, square)  # NaN is kept
    return np.sqrt(eta) * (1.0 + gamma(white.shape[1] + white.shape[2] + 8))


@kernel
def sum_error(groups, eta, trace, terms):
    """Return a bound on the norm of the error of a sum sum_n w_n y_n y_n' of the given trace.

    ``terms`` is the number of terms that are added at a time without compensation.
    """
    return 2.0 * eta * np.sqrt(groups * trace) + groups * (eta * eta) + gamma(terms + 8) * trace
