"""Estimated times in nanoseconds. All choices between methods and systems are made by these estimates.

The estimates depend on sizes alone, not on a clock. So the choices do not depend on the speed or the load of
the machine. The units were measured once on one core; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optdesign.algebra.blocks import WIDE, entries
from optdesign.problem.problem import DesignProblem


class Units(NamedTuple):
    """Nanoseconds of elementary operations."""

    flop: float = 0.04
    """An operation in BLAS."""
    loop: float = 0.7
    """A multiplication and an addition in a compiled loop over a matrix."""
    row: float = 20.0
    """Fetching a row."""
    call: float = 5_000.0
    """A call from Python, of NumPy or of a kernel."""

    @property
    def in_parts(self) -> float:
        """The calls of a Newton step in parts, in addition to those of its linear system and of any step."""
        return 12 * self.call


UNITS = Units()

SWEEPS = 10
"""Number of sweeps after which the rate of the gap is estimated. It is also the number of sweeps at the start
of a round on a working set, and the number after which the inverse of block coordinate ascent is
recomputed."""


class Assumed(NamedTuple):
    """Numbers that are not known in advance."""

    steps: int = 6
    """Newton steps of a round."""
    products: int = 30
    """Products of a step by iteration, for the choice of the system: iteration can be replaced by a matrix
    later. The true number is between 4 and several hundred. It is large if candidates nearly repeat each
    other."""
    planned_products: int = 60
    """The same for choices that cannot be revised."""
    memory: int = 4 << 30
    """Bytes that the matrices of a system may take. Larger systems are solved by iteration."""


ASSUMED = Assumed()


def pass_time(problem: DesignProblem) -> float:
    """Return the time of a pass over all candidates that computes their variances."""
    # Rows of one block are read in order; rows of several are gathered block by block.
    gather = UNITS.row if problem.n_parameter_blocks > 1 else 0.0
    return problem.n_candidates * (gather + 2 * UNITS.flop * problem.dim * problem.largest_rank)


def sweeps_time(problem: DesignProblem, rows: int, positive: int) -> float:
    """Return the time of ``SWEEPS`` sweeps over some rows, of which ``positive`` have weight.

    A sweep computes the variances of all rows and updates the inverse for those with weight. Candidates of
    one group and block are exchanged in pairs. With one block, variances are computed four at a time.
    """
    r = problem.largest_rank
    variances = (UNITS.row + UNITS.loop * r**2 / 2) / (4 if problem.n_parameter_blocks == 1 else 1)
    sweep = rows * variances + positive * (2 * UNITS.row + UNITS.loop * r**2)
    exchanges = UNITS.loop * r * positive**2 / (problem.n_groups * problem.n_parameter_blocks)
    return SWEEPS * (sweep + exchanges)


def newton_time(problem: DesignProblem, positive: int) -> float:
    """Return the time of Newton steps to the end, if ``positive`` candidates have weight.

    These are two rounds on a working set, or one on all candidates.
    """
    if mostly_positive(problem, positive):
        return steps_time(problem, problem.n_candidates)
    return 2 * steps_time(problem, positive)


def mostly_positive(problem: DesignProblem, positive: int) -> bool:
    """Return True if most candidates have weight: weights then do not suggest a working set."""
    return 2 * positive > problem.n_candidates


def steps_time(problem: DesignProblem, rows: int) -> float:
    """Return the time of the Newton steps of a round on some rows, with the calls around them."""
    return 10 * UNITS.call + ASSUMED.steps * step_time(problem, rows)


def step_time(problem: DesignProblem, rows: int) -> float:
    """Return the time of a Newton step on some rows, if all blocks have equally many.

    Groups with a choice are assumed to have two candidates; groups without a choice are left out.
    """
    blocks, rank = problem.n_parameter_blocks, problem.largest_rank
    rows = min(rows, 2 * max(0, rows - problem.n_groups))
    groups = min(problem.n_groups, rows // 2)
    together = one_call(blocks, rank, rows / blocks, groups)
    calls = 3 * UNITS.call + min(5 * UNITS.row * rows, UNITS.in_parts)
    if together <= UNITS.in_parts:
        return calls + together
    dense = min(by_information(blocks, rank, rows, groups), by_group(blocks, rank, rows, groups))
    iteration = ASSUMED.planned_products * product_time(blocks, rank, rows)
    return min(calls + together, 3 * UNITS.call + UNITS.in_parts + min(iteration, dense))


def one_call(blocks: int, rank: int, size: float, groups: int) -> float:
    """Return the time of the system of a step in one call, for blocks of ``size`` candidates each."""
    if rank >= WIDE:
        return math.inf
    return UNITS.loop * (blocks * (size**2 * rank / 2 + size**3 / 2) + groups**3 / 6)


def by_group(blocks: int, rank: int, rows: float, groups: int) -> float:
    """Return the time of the system by group, for blocks of equal size."""
    size = rows / blocks
    if not _fits(blocks * size**2 + groups**2):
        return math.inf
    columns, inverse = 2 * groups * size**2, 2 * size**3 / 3
    block = size**2 * rank + size**3 / 3 + min(columns, inverse)
    return blocks * (3 * UNITS.call + UNITS.flop * block) + UNITS.flop * groups**3 / 3


def by_information(blocks: int, rank: int, rows: int, groups: int) -> float:
    """Return the time of the system by information."""
    q = blocks * entries(rank)
    if not _fits(q**2):
        return math.inf
    squares = rows * UNITS.loop * entries(rank) ** 2 / (4 if blocks == 1 else 1)
    return squares + UNITS.flop * (groups * q**2 + q**3 / 3)


def by_iteration(blocks: int, rank: int, rows: int) -> float:
    """Return the time of the system by iteration with the assumed number of products."""
    return ASSUMED.products * product_time(blocks, rank, rows)


def product_time(blocks: int, rank: int, rows: int) -> float:
    """Return the time of a product with the matrix of a system in single precision."""
    return (1 + blocks) * UNITS.call + rows * (UNITS.row + 2 * UNITS.flop * rank**2)


def _fits(numbers: float) -> bool:
    """Return True if a matrix of so many numbers fits into memory."""
    return 8 * numbers <= ASSUMED.memory
