"""What things cost, in nanoseconds: the one place that knows about speed.

Methods are chosen by these estimates, which come from sizes alone and not from a clock: so results do not
depend on the machine, nor on what else it does. Units were measured once, on one core; only ratios matter.
"""

from __future__ import annotations

import math

from optdesign.problem import DesignProblem

FLOP = 0.04
"""An operation in BLAS."""
LOOP = 0.7
"""A multiplication and an addition in a compiled loop over a matrix."""
ROW = 20.0
"""Fetching a row."""
CALL = 50_000.0
"""The calls from Python of a Newton step, and again those for a block of it that has a matrix of its own."""

SWEEPS, STEPS = 10, 6
"""Sweeps between two looks at how fast the gap falls, and Newton steps that instances need, mostly."""

PRODUCTS = (20, 60)
"""Products of a step by iteration, of which nobody knows how many they are: from four to hundreds, where
candidates nearly repeat each other or groups can exchange theirs. It is tried where the first promise to be
faster, since it gives way to others; plans, which nothing makes good, count on the second."""

MEMORY = 4 << 30
"""Bytes of the matrices of a system; beyond, only iteration is left."""

WIDE_ENTRIES = 100
"""Entries of a block from which on the sums of an information system go through BLAS."""


def pass_time(problem: DesignProblem) -> float:
    """One pass over all candidates that computes their variances."""
    fetched = ROW if problem.n_blocks > 1 else 0.0  # where there is one block, they are where they are
    return problem.n_candidates * (fetched + 2 * FLOP * problem.dim * problem.largest_rank)


def sweeps_time(problem: DesignProblem, rows: int, positive: int) -> float:
    """Some sweeps over so many rows, of which so many have weight: variances of all, updates for those.

    Candidates that share a group's weight and a block are exchanged in pairs, each against all of them.
    """
    r = problem.largest_rank
    sweep = rows * (ROW + LOOP * r**2 / 2) + positive * (2 * ROW + LOOP * r**2)
    return SWEEPS * (sweep + LOOP * r * positive**2 / (problem.n_groups * problem.n_blocks))


def steps_time(problem: DesignProblem, rows: int, groups: int) -> float:
    """Newton steps on so many candidates and groups, until they are done."""
    return STEPS * step_time(problem, rows, groups)


def step_time(problem: DesignProblem, rows: int, groups: int) -> float:
    """A Newton step on so many candidates and groups, if blocks have equally many."""
    blocks, rank = problem.n_blocks, problem.largest_rank
    dense = min(by_information(blocks, rank, rows, groups), by_group(blocks, rank, rows, groups))
    if blocks == 1:
        dense = min(dense, by_difference(blocks, rank, rows, groups))
    return CALL + min(PRODUCTS[1] * product_time(rank, rows), dense)


def by_group(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by group, for so many rows in blocks of equal size."""
    size = rows / blocks
    if not _fits(blocks * size**2 + groups**2):
        return math.inf
    columns, inverse = 2 * groups * size**2, 2 * size**3 / 3
    work = FLOP * (blocks * (size**2 * rank + size**3 / 3 + min(columns, inverse)) + groups**3 / 3)
    return CALL * blocks + work


def by_difference(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by difference."""
    size = max(rows - groups, 0) / blocks
    if not _fits(blocks * size**2):
        return math.inf
    return blocks * (CALL + FLOP * (4 * size**2 * rank + size**3 / 3))


def by_information(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by information."""
    entries = rank * (rank + 1) / 2
    q = blocks * entries
    if not _fits(q**2):
        return math.inf
    own = (FLOP if entries >= WIDE_ENTRIES else LOOP / 2) * rows * entries**2
    return own + FLOP * (groups * q**2 + q**3 / 3)


def by_iteration(rank: int, rows: int) -> float:
    """The system by iteration, mostly."""
    return PRODUCTS[0] * product_time(rank, rows)


def product_time(rank: int, rows: int) -> float:
    """A product with the matrix of a system, in single precision, which takes half the time."""
    return CALL + rows * (ROW + 2 * FLOP * rank**2)


def _fits(numbers: float) -> bool:
    """Whether matrices of so many numbers are not too large to be kept."""
    return 8 * numbers <= MEMORY
