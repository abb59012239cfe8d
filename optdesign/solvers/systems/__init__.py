"""The linear system of a Newton step, and the ways to solve it.

In whitened coordinates a_n = L^-1 z_n the Hessian of -F is H_nm = (a_n' a_m)^2 within a block, so with
W = diag(u / s) and A the group sums a step of :mod:`optdesign.solvers.newton` solves

    (H + W^-1) du + A' dlambda = r,    A du = 0.                                            (1)

Each way is a file here: by group, by difference, by information, by iteration. They share a protocol:
``factorise``, which returns whether it succeeded, then ``solve``; both are generators that yield while they
work. Where that takes less time than the calls, a step is one call and needs none of them
(:mod:`optdesign.solvers.newton_kernels`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.solvers import costs
from optdesign.solvers.systems.by_difference import ByDifference
from optdesign.solvers.systems.by_group import ByGroup
from optdesign.solvers.systems.by_information import ByInformation
from optdesign.solvers.systems.by_iteration import ByIteration
from optdesign.solvers.systems.layout import Layout

Dense = ByGroup | ByDifference | ByInformation
System = Dense | ByIteration


class AtOnce(NamedTuple):
    """No system of its own: the step is one call."""

    offsets: np.ndarray | None
    """Where the entries of blocks begin, if it is solved by information, and None if by candidates."""


def cheapest_system(layout: Layout) -> System | AtOnce:
    """The way to solve (1) that promises to take the least time.

    How long iteration takes nobody knows beforehand. So it may take as long as the best of the others, after
    which it gives way to that (:func:`without_strain`): what is lost is no more than one step.
    """
    size = len(layout.ranks), int(layout.ranks.max()), layout.n_rows
    at_once = costs.at_once(*size, layout.largest, layout.n_groups)
    way = AtOnce(layout.offsets if at_once == costs.at_once_by_information(*size, layout.n_groups) else None)
    if at_once <= costs.IN_PARTS:
        return way
    times = dense_ways(layout)
    dense = min(times, key=lambda way: times[way])
    iteration = costs.by_iteration(*size)
    if at_once <= costs.IN_PARTS + min(times[dense], iteration):
        return way
    if iteration < times[dense]:
        return ByIteration(layout, times[dense] / costs.product_time(*size))
    return dense(layout)


def steadier(system: System | AtOnce, layout: Layout) -> System | AtOnce:
    """The same system, or where a step is one call and either way is short, that by candidates: its matrices
    have a condition, where W is large, which the one of information has not.
    """
    if not isinstance(system, AtOnce):
        return system
    size = len(layout.ranks), int(layout.ranks.max()), layout.largest, layout.n_groups
    return AtOnce(None) if costs.at_once_by_candidates(*size) <= costs.IN_PARTS else system


def without_strain(system: System | AtOnce) -> System | AtOnce:
    """The same system, or the best dense one where iteration has taken as long as that would."""
    if not (isinstance(system, ByIteration) and system.strained):
        return system
    times = dense_ways(system.layout)
    return min(times, key=lambda way: times[way])(system.layout)


def dense_ways(layout: Layout) -> dict[type[Dense], float]:
    """Nanoseconds of every way to solve (1) by matrices, infinite for those that do not fit."""
    blocks, rank = len(layout.ranks), int(layout.ranks.max())
    size = blocks, rank, layout.n_rows, layout.n_groups
    # Blocks of equal size whose factors take as long as those of theirs.
    even = blocks * float(np.cbrt(np.mean(layout.sizes.astype(float) ** 3)))
    times: dict[type[Dense], float] = {
        ByInformation: costs.by_information(*size),
        ByGroup: costs.by_group(blocks, rank, even, layout.n_groups),
    }
    if layout.one_block_a_group:
        times[ByDifference] = costs.by_difference(*size)
    return times
