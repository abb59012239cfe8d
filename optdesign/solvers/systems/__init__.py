"""The linear system of a Newton step, and the ways to solve it.

In whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums a step of :mod:`optdesign.solvers.newton` solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

Each module is one way: by group, by information, by iteration. All have one protocol: ``factorise`` returns
True if it succeeded, then ``solve`` returns du and dlambda. Both raise a pending stop between two pieces of
work. Small systems need none of them: the whole step is one call (:mod:`optdesign.solvers.newton_kernels`).
"""

from __future__ import annotations

import numpy as np

from optdesign.solvers import costs
from optdesign.solvers.systems.by_group import ByGroup
from optdesign.solvers.systems.by_information import ByInformation
from optdesign.solvers.systems.by_iteration import ByIteration
from optdesign.solvers.systems.layout import Layout

Dense = ByGroup | ByInformation
System = Dense | ByIteration


def cheapest_system(layout: Layout) -> System | None:
    """Return the way to solve (1) with the least estimated time, None for a step in one call.

    The number of products of an iteration is not known in advance. So an iteration may take as long as the
    best matrix would, and is then replaced by it (:attr:`ByIteration.exceeds_budget`).
    """
    size = len(layout.ranks), int(layout.ranks.max()), layout.n_rows
    one_call = costs.one_call(len(layout.ranks), int(layout.ranks.max()), layout.largest, layout.n_groups)
    if one_call <= costs.UNITS.in_parts:
        return None
    dense = min(_dense_times(layout).values())
    iteration = costs.by_iteration(*size)
    if one_call <= costs.UNITS.in_parts + min(dense, iteration):
        return None
    if iteration < dense:
        return ByIteration(layout, dense / costs.product_time(*size))
    return dense_system(layout)


def dense_system(layout: Layout) -> Dense:
    """Return the way to solve (1) by matrices with the least estimated time."""
    times = _dense_times(layout)
    return min(times, key=lambda way: times[way])(layout)


def _dense_times(layout: Layout) -> dict[type[Dense], float]:
    """Return the nanoseconds of every way to solve (1) by matrices, infinite if its matrices do not fit."""
    blocks, rank = len(layout.ranks), int(layout.ranks.max())
    # Blocks of equal size whose factors take as long as those of the given sizes.
    even = blocks * float(np.cbrt(np.mean(layout.sizes.astype(float) ** 3)))
    return {
        ByInformation: costs.by_information(blocks, rank, layout.n_rows, layout.n_groups),
        ByGroup: costs.by_group(blocks, rank, even, layout.n_groups),
    }
