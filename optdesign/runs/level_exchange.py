"""Exchange of single levels of a run list, compiled.

Let V be the inverse of the information. Changing one level of one run moves its row x by d, and multiplies
det by (1 + a + 2 b + c) (1 - a) + (a + b)^2, with a = x'Vx, b = x'Vd, c = d'Vd. All levels of a factor are
compared at the cost of a few products (Meyer and Nachtsheim, Technometrics 37, 1995).
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.blocks import accumulate, add_outer, factorise, invert, multiply
from optdesign.runs.exchange import REFRESH, SAFE
from optdesign.runs.search import GAIN
from optdesign.runtime.jit import kernel

CHANGE = 5
"""Work of a change in units of that of a visit: a product and 2 updates of the inverse."""


@kernel
def _refreshed(z, weights, inverse):
    """Overwrite inverse with that of the rows' information. Returns log det, -inf if they lose rank."""
    ranks = np.array([z.shape[1]])
    information, factor = np.zeros_like(inverse), np.zeros_like(inverse)
    accumulate(z, np.zeros(len(z), np.int64), ranks, weights, information)
    total = factorise(information, ranks, factor)[0]
    if total > -np.inf:
        invert(factor, ranks, inverse)
    return total


@kernel
def _rank_one(v, x, sign):
    """Update the inverse v for x x' added (sign 1) or taken away (sign -1). Overwrites v."""
    y = np.empty(len(x))
    own = multiply(v, x, y)
    add_outer(v, y, -sign / (1.0 + sign * own))


@kernel
def _set(values, first, j, level, row, settings, z, inverse):
    """Set factor j of a run to a level. Overwrites settings, z and inverse."""
    old = z[row].copy()
    for i in range(first[j + 1] - first[j]):
        z[row, first[j] + i] = values[j, level, i]
    _rank_one(inverse[0], z[row], 1.0)
    _rank_one(inverse[0], old, -1.0)
    settings[row, j] = level


@kernel
def _ratio(values, first, j, old, new, y, a, v):
    """The factor of det when factor j of a run goes from one level to another; y = V x, a = x'Vx."""
    lo = first[j]
    width = first[j + 1] - lo
    b, c = 0.0, 0.0
    for i in range(width):
        step = values[j, new, i] - values[j, old, i]
        b += y[lo + i] * step
        for k in range(width):
            c += step * v[lo + i, lo + k] * (values[j, new, k] - values[j, old, k])
    return (1.0 + a + 2.0 * b + c) * (1.0 - a) + (a + b) * (a + b)


@kernel
def climb_levels(values, sizes, first, settings, z, weights, inverse, row, idle, most):
    """Change single levels until no change gains, or ``most`` units of work are done. Overwrites the arrays.

    A visit of a run is 1 unit of work, a change is CHANGE more, and a refresh is 1 more for every row.
    The search goes on at run ``row``, after ``idle`` visits in a row without a gain. Returns log det of the
    settings found, or -inf if the settings given lose rank, and the run and the idle visits to go on from;
    the climb is complete if these are at least the number of runs. It is also complete if the changes since
    the last refresh did not raise log det: then their gains were round-off.
    """
    n, factors = settings.shape
    total = _refreshed(z, weights, inverse)
    if total == -np.inf:
        return total, 0, n
    v = inverse[0]
    y = np.empty(z.shape[1])
    done, work = 0, 0
    while idle < n and work < most:
        idle += 1
        work += 1
        stale = True
        for j in range(factors):
            if stale:
                a = multiply(v, z[row], y)
                stale = False
            best, gain = -1, 1.0 + GAIN
            for level in range(sizes[j]):
                if level != settings[row, j]:
                    ratio = _ratio(values, first, j, settings[row, j], level, y, a, v)
                    if ratio > gain:
                        best, gain = level, ratio
            if best >= 0:
                _set(values, first, j, best, row, settings, z, inverse)
                stale = True
                idle = 0
                done += 1
                work += CHANGE
                if done % REFRESH == 0:
                    work += len(z)
                    before, total = total, _refreshed(z, weights, inverse)
                    if not total > before:
                        return total, 0, n
        row = (row + 1) % n
    if done % REFRESH > 0:
        total = _refreshed(z, weights, inverse)
    return total, row, idle


@kernel
def perturb_levels(values, sizes, first, settings, z, inverse, draws):
    """Change some levels at random, by three draws from [0, 1) each. Overwrites settings, z and inverse."""
    n, factors = settings.shape
    y = np.empty(z.shape[1])
    for m in range(0, len(draws), 3):
        row, j = np.int64(draws[m] * n), np.int64(draws[m + 1] * factors)
        level = np.int64(draws[m + 2] * sizes[j])
        a = multiply(inverse[0], z[row], y)
        if _ratio(values, first, j, settings[row, j], level, y, a, inverse[0]) > SAFE:
            _set(values, first, j, level, row, settings, z, inverse)


@kernel
def perturb_and_climb(
    values, sizes, first, settings, z, weights, inverse, kept, kept_z, kept_inverse, best, draws, most
):
    """Perturb and climb from the kept settings, whose log det is best, once for every row of draws.

    Overwrites all settings, rows and inverses; the kept ones become the best found. A climb that is not
    complete after ``most`` units of work ends the loop. Returns the log det of the kept settings, the number
    of complete climbs, and the run and the idle visits from which the last climb goes on.
    """
    start, none = np.int64(0), np.int64(0)
    for t in range(len(draws)):
        copy_state(kept, kept_z, kept_inverse, settings, z, inverse)
        perturb_levels(values, sizes, first, settings, z, inverse, draws[t])
        value, row, idle = climb_levels(
            values, sizes, first, settings, z, weights, inverse, start, none, most
        )
        if idle < len(settings):
            return best, t, row, idle
        if value >= best:
            best = value
            copy_state(settings, z, inverse, kept, kept_z, kept_inverse)
    return best, len(draws), 0, 0


@kernel
def copy_state(settings, z, inverse, to_settings, to_z, to_inverse):
    """Overwrite settings, rows and the inverse with others."""
    for n in range(len(settings)):
        for j in range(settings.shape[1]):
            to_settings[n, j] = settings[n, j]
    for n in range(len(z)):
        for j in range(z.shape[1]):
            to_z[n, j] = z[n, j]
    for k in range(inverse.shape[1]):
        for j in range(inverse.shape[2]):
            to_inverse[0, k, j] = inverse[0, k, j]
