"""What things cost, in nanoseconds: the one place that knows about speed.

Methods are chosen by these estimates, which come from sizes alone and not from a clock: so results do not
depend on the machine, nor on what else it does. Units were measured once, on one core; only ratios matter.
"""

from __future__ import annotations

import math

from optdesign.algebra.blocks import WIDE, entries
from optdesign.problem.problem import DesignProblem

FLOP = 0.04
"""An operation in BLAS."""
LOOP = 0.7
"""A multiplication and an addition in a compiled loop over a matrix."""
ROW = 20.0
"""Fetching a row."""
CALL = 5_000.0
"""A call from Python, of NumPy or of a kernel."""

IN_PARTS = 12 * CALL
"""The calls of a Newton step in parts, beside those of its linear system and of any step."""

SWEEPS, STEPS = 10, 6
"""Sweeps between two looks at how fast the gap falls, and Newton steps that a round needs, mostly."""

PRODUCTS = (30, 60)
"""Products of a step by iteration, of which nobody knows how many they are: from four to hundreds, where
candidates nearly repeat each other or groups can exchange theirs. It is tried where the first promise to be
faster, since it gives way to others; plans, which nothing makes good, count on the second."""

MEMORY = 4 << 30
"""Bytes of the matrices of a system; beyond, only iteration is left."""


def pass_time(problem: DesignProblem) -> float:
    """One pass over all candidates that computes their variances."""
    fetched = (
        ROW if problem.n_parameter_blocks > 1 else 0.0
    )  # where there is one block, they are where they are
    return problem.n_candidates * (fetched + 2 * FLOP * problem.dim * problem.largest_rank)


def sweeps_time(problem: DesignProblem, rows: int, positive: int) -> float:
    """Some sweeps over so many rows, of which so many have weight: variances of all, updates for those.

    Candidates that share a group's weight and a block are exchanged in pairs, each against all of them; where
    there is one block only, variances are computed four at a time.
    """
    r = problem.largest_rank
    variances = (ROW + LOOP * r**2 / 2) / (4 if problem.n_parameter_blocks == 1 else 1)
    sweep = rows * variances + positive * (2 * ROW + LOOP * r**2)
    return SWEEPS * (sweep + LOOP * r * positive**2 / (problem.n_groups * problem.n_parameter_blocks))


def newton_time(problem: DesignProblem, positive: int) -> float:
    """Newton steps until they are done, if so many candidates have weight: two rounds on those that matter,
    or one on all.
    """
    if spread(problem, positive):
        return steps_time(problem, problem.n_candidates)
    return 2 * steps_time(problem, positive)


def spread(problem: DesignProblem, positive: int) -> bool:
    """Whether Newton steps are on all candidates: weight on most does not tell which of them matter."""
    return 2 * positive > problem.n_candidates


def steps_time(problem: DesignProblem, rows: int) -> float:
    """Newton steps on so many candidates, for a round, with the calls around them."""
    return 10 * CALL + STEPS * step_time(problem, rows)


def step_time(problem: DesignProblem, rows: int) -> float:
    """A Newton step on so many candidates, if blocks have equally many.

    Groups that have a choice between them have it between two, mostly; the others are left out.
    """
    blocks, rank = problem.n_parameter_blocks, problem.largest_rank
    rows = min(rows, 2 * max(0, rows - problem.n_groups))
    groups = min(problem.n_groups, rows // 2)
    together = at_once(blocks, rank, rows, rows / blocks, groups)
    calls = 3 * CALL + min(5 * ROW * rows, IN_PARTS)
    if together <= IN_PARTS:
        return calls + together
    dense = min(by_information(blocks, rank, rows, groups), by_group(blocks, rank, rows, groups))
    if blocks == 1:
        dense = min(dense, by_difference(blocks, rank, rows, groups))
    in_parts = 3 * CALL + IN_PARTS + min(PRODUCTS[1] * product_time(blocks, rank, rows), dense)
    return min(calls + together, in_parts)


def at_once(blocks: int, rank: int, rows: int, size: float, groups: int) -> float:
    """The system of a step in one call, for blocks of so many candidates each; not for wide ones."""
    if rank >= WIDE:
        return math.inf
    by_candidates = at_once_by_candidates(blocks, rank, size, groups)
    return min(by_candidates, at_once_by_information(blocks, rank, rows, groups))


def at_once_by_candidates(blocks: int, rank: int, size: float, groups: int) -> float:
    """The same by candidates only."""
    return blocks_by_loops(blocks, rank, size) + LOOP * groups**3 / 6


def at_once_by_information(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The same by information only. Rows of its matrix are long, which takes half the time."""
    q = blocks * entries(rank)
    return squares_by_loops(blocks, rank, rows) + LOOP / 2 * (groups * q**2 / 2 + q**3 / 6)


def by_group(blocks: int, rank: int, rows: float, groups: int) -> float:
    """The system by group, for so many rows in blocks of equal size."""
    size = rows / blocks
    if not _fits(blocks * size**2 + groups**2):
        return math.inf
    own = min(blocks_by_calls(blocks, rank, size, groups), blocks_by_loops(blocks, rank, size))
    return own + FLOP * groups**3 / 3


def blocks_by_calls(blocks: int, rank: int, size: float, groups: int) -> float:
    """Factors of matrices of so many candidates each, and their part of the Schur complement, by LAPACK."""
    columns, inverse = 2 * groups * size**2, 2 * size**3 / 3
    return blocks * (3 * CALL + FLOP * (size**2 * rank + size**3 / 3 + min(columns, inverse)))


def blocks_by_loops(blocks: int, rank: int, size: float) -> float:
    """The same by loops."""
    return blocks * LOOP * (size**2 * rank / 2 + size**3 / 2)


def by_difference(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by difference."""
    size = max(rows - groups, 0) / blocks
    if not _fits(blocks * size**2):
        return math.inf
    return blocks * (3 * CALL + FLOP * (4 * size**2 * rank + size**3 / 3))


def by_information(blocks: int, rank: int, rows: int, groups: int) -> float:
    """The system by information."""
    q = blocks * entries(rank)
    if not _fits(q**2):
        return math.inf
    own = min(squares_by_calls(blocks, rank, rows), squares_by_loops(blocks, rank, rows))
    return own + FLOP * (groups * q**2 + q**3 / 3)


def squares_by_calls(blocks: int, rank: int, rows: int) -> float:
    """Sums of so many squares by BLAS, and of products with pivots where these may be in other blocks."""
    q, products = entries(rank), 1 if blocks == 1 else 3
    return 10 * CALL * blocks + rows * (8 * LOOP * q + products * FLOP * q**2)


def squares_by_loops(blocks: int, rank: int, rows: int) -> float:
    """The same by loops: a triangle of squares, or also products with pivots that are in other blocks."""
    return rows * LOOP * entries(rank) ** 2 / (4 if blocks == 1 else 1)


def by_iteration(blocks: int, rank: int, rows: int) -> float:
    """The system by iteration, mostly."""
    return PRODUCTS[0] * product_time(blocks, rank, rows)


def product_time(blocks: int, rank: int, rows: int) -> float:
    """A product with the matrix of a system, in single precision, which takes half the time."""
    return (1 + blocks) * CALL + rows * (ROW + 2 * FLOP * rank**2)


def _fits(numbers: float) -> bool:
    """Whether matrices of so many numbers are not too large to be kept."""
    return 8 * numbers <= MEMORY
