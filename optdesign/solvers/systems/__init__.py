"""The linear system of a Newton step, and the ways to solve it.

In whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums a step of :mod:`optdesign.solvers.newton` solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

Each way is a file here: by group, by difference, by information, by iteration. They share a protocol:
``factorise``, which returns whether it succeeded, then ``solve``; both are generators that yield while they
work.
"""

from __future__ import annotations

from optdesign.solvers import costs
from optdesign.solvers.systems.by_difference import ByDifference
from optdesign.solvers.systems.by_group import ByGroup
from optdesign.solvers.systems.by_information import ByInformation
from optdesign.solvers.systems.by_iteration import MOST, ByIteration
from optdesign.solvers.systems.layout import Layout

System = ByGroup | ByDifference | ByInformation | ByIteration


def cheapest_system(layout: Layout) -> System:
    """The way to solve (1) that takes the least time; iteration only where it is far ahead."""
    times = ways(layout)
    times[ByIteration] *= costs.CAUTION
    return min(times, key=lambda way: times[way])(layout)


def without_strain(system: System) -> System:
    """The same system, or a dense one where iteration takes all that it may and that is more than a dense one
    would take.
    """
    if not (isinstance(system, ByIteration) and system.strained):
        return system
    times = ways(system.layout)
    rank, rows = int(system.layout.ranks.max()), system.layout.n_rows
    times[ByIteration] = costs.products_time(rank, rows, 2 * MOST)
    way = min(times, key=lambda way: times[way])
    return system if way is ByIteration else way(system.layout)


def ways(layout: Layout) -> dict[type[System], float]:
    """Nanoseconds of every way that there is to solve (1)."""
    size = len(layout.ranks), int(layout.ranks.max()), layout.n_rows
    times: dict[type[System], float] = {
        ByInformation: costs.by_information(*size, layout.n_groups),
        ByGroup: costs.by_group(*size, layout.n_groups),
        ByIteration: costs.by_iteration(*size),
    }
    if layout.one_block_a_group:
        times[ByDifference] = costs.by_difference(*size, layout.n_groups)
    return times
