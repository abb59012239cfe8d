"""Compensated sums and products, and bounds on their round-off.

With u = 2^-53, a dot product of n terms computed term by term has an error of at most gamma(n) sum |a_j b_j|,
gamma(n) = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The
compensated one of Ogita, Rump and Oishi (SIAM J. Sci. Comput. 26, 2005) has at most u |a'b| + gamma(n)^2 sum
|a_j b_j|: it is as good as if it were computed in twice the precision and then rounded. Both hold while
nothing underflows; callers scale their data.
"""

from __future__ import annotations

from optdesign.runtime.jit import kernel

UNIT = 2.0**-53
"""Unit roundoff u of double precision."""

ROUNDOFF = 64 * UNIT
"""Relative difference that is attributed to round-off."""


@kernel
def gamma(n):
    """Bound n u / (1 - n u) on the relative error of n roundings."""
    return n * UNIT / (1.0 - n * UNIT)


@kernel
def two_sum(a, b):
    """Return the rounded sum and its error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def two_product(a, b):
    """Return the rounded product and its error."""
    p = a * b
    splitter = 134217729.0  # 2^27 + 1, which cuts a double into two halves of 26 bits
    t = splitter * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = splitter * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def long_minus_product(a, a_low, b, b_low, c, c_low):
    """Return a - b c in twice the precision; each number is a rounded value and a remainder."""
    p, e = two_product(b, c)
    e += b * c_low + b_low * c
    s, f = two_sum(a, -p)
    return two_sum(s, f + (a_low - e))


@kernel
def long_quotient(a, a_low, b, b_low):
    """Return a / b in twice the precision."""
    q = a / b
    rest, rest_low = long_minus_product(a, a_low, q, 0.0, b, b_low)
    return two_sum(q, (rest + rest_low) / b)


@kernel
def sum_groups(groups, values, total, error):
    """Overwrite total with the sum of the values of every group, and error with its round-off."""
    for i in range(len(total)):
        total[i], error[i] = 0.0, 0.0
    for n in range(len(values)):
        if values[n] != 0.0:  # most weights are zero
            i = groups[n]
            total[i], e = two_sum(total[i], values[n])
            error[i] += e
