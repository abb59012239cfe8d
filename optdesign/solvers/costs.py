"""What things cost, in nanoseconds: the one place that knows about speed.

Methods are chosen by these estimates, which come from sizes alone and not from a clock: so results do not
depend on the machine, nor on what else it does. Units were measured once, on one core; only ratios matter.
"""

from __future__ import annotations

import math

from optdesign.problem import DesignProblem

FLOP = 0.025
"""An operation in BLAS."""
LOOP = 0.7
"""A multiplication and an addition in a compiled loop over a matrix."""
ROW = 10.0
"""Fetching a row."""
CALL = 70_000.0
"""A Newton step on nothing: some thirty calls from Python."""
BLOCK = 50_000.0
"""The calls of LAPACK for a block."""
STEP_ROW = 250.0
"""A row in a Newton step, beside the linear system."""

FEW = 8
"""With one group in so many candidates of a block, or fewer, columns cost less than an inverse."""

ITERATIONS = (130, 70)
"""Products of a step by iteration: so many, and so many for every time that there are Q candidates, because
then H is singular and only W^-1 bounds it from below."""
CAUTION = 3
"""How far ahead of all dense ways it must be, since it may need more and its steps are inexact."""

MEMORY = 4 << 30
"""Bytes of the matrices of a system; beyond, only iteration is left."""

WIDE_ENTRIES = 100
"""Entries of a block from which on the sums of an information system go through BLAS."""


def pass_time(problem: DesignProblem) -> float:
    """One pass over all candidates that computes their variances."""
    return problem.n_candidates * (ROW + 2 * FLOP * problem.dim * float(problem.ranks.max()))


def sweep_time(problem: DesignProblem, rows: int, positive: int) -> float:
    """A sweep over some rows, of which so many have weight: variances of all, updates for those with weight.

    Candidates that share a group's weight and a block are exchanged in pairs, each against all of them.
    """
    r = float(problem.ranks.max())
    updates = (48 + r**2) * (0.3 * rows + 0.7 * positive) + 2 * ROW * rows * (problem.n_blocks > 1)
    return updates + 0.5 * r * positive**2 / (problem.n_groups * problem.n_blocks)


def step_time(problem: DesignProblem, rows: int, groups: int) -> float:
    """A Newton step on so many candidates and groups, if blocks have equally many."""
    blocks, rank = problem.n_blocks, int(problem.ranks.max())
    dense = min(by_information(blocks, rank, rows, groups), by_group(blocks, rank, rows, groups))
    if blocks == 1:
        dense = min(dense, by_difference(blocks, rank, rows, groups))
    iterated = by_iteration(blocks, rank, rows)
    return CALL + STEP_ROW * rows + (iterated if CAUTION * iterated < dense else dense)


def by_group(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by group, for so many rows in blocks of equal size."""
    size = rows / blocks
    if not _fits(blocks * size**2 + groups**2):
        return math.inf
    complement = 2 * groups * size**2 if FEW * groups <= size else 2 * size**3 / 3
    work = FLOP * (blocks * (size**2 * rank + size**3 / 3 + complement) + groups**3 / 3)
    return BLOCK * blocks + work


def by_difference(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by difference."""
    size = max(rows - groups, 0) / blocks
    if not _fits(blocks * size**2):
        return math.inf
    return blocks * (BLOCK + FLOP * (4 * size**2 * rank + size**3 / 3))


def by_information(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by information."""
    entries = rank * (rank + 1) / 2
    q = blocks * entries
    if not _fits(q**2):
        return math.inf
    own = (3 * FLOP if entries >= WIDE_ENTRIES else 1.5 * LOOP) * rows * entries**2
    return own + FLOP * (groups * q**2 + q**3 / 3)


def by_iteration(blocks: int, rank: int, rows: int) -> float:
    """The system by iteration."""
    products = ITERATIONS[0] + ITERATIONS[1] * rows / (blocks * rank * (rank + 1) / 2)
    return products * rows * (ROW + 4 * FLOP * rank**2)


def _fits(numbers: float) -> bool:
    """Whether matrices of so many numbers are not too large to be kept."""
    return 8 * numbers <= MEMORY
