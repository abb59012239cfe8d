"""Maps that make the candidates of a design white, and the variances that follow.

If A_b maps the candidates of a block to y_n with sum_n w_n y_n y_n' = I, variances are squared lengths:
g_n = |y_n|^2. A is the inverse factor of the information, up to round-off that grows with the condition of
the weights. The distance of the resulting information from the identity is measured, and A is corrected by
the factor of that information. A certificate (:mod:`optdesign.design.certificate`) needs the distance; an
estimate does not compute it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.blocks import WIDE, factorise
from optdesign.algebra.passes import (
    add_tiles,
    compose,
    composed,
    information_matrices,
    inverse_factors,
    raise_to_largest,
    variances_of,
    variances_of_few,
)
from optdesign.numbers.roundoff import ROUNDOFF, gamma
from optdesign.problem.coordinates import Rows
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.jit import kernel

WHITENINGS = 4
"""Largest number of attempts to make vectors white."""

FEW = 10_000
"""Largest number of entries of the candidates for which one compiled call does all of the work. Larger
problems always need the parts of that call, and should not wait until the call is compiled as well."""


class Measured(NamedTuple):
    """Variances under given weights, and the maps that give them."""

    white: np.ndarray
    """Maps that make the supported rows white, as columns."""
    off: np.ndarray
    """The norm |E_b| by block, as computed, if it was measured."""
    log_det: np.ndarray
    """log det U by block."""
    g: np.ndarray
    """Variances of all candidates."""
    largest: np.ndarray
    """The largest of every group."""

    @property
    def full(self) -> bool:
        """True if no block loses rank."""
        return bool(np.minimum.reduce(self.log_det) > -np.inf)


def fits_one_call(rows: Rows) -> bool:
    """Return True if the problem is so small that one call for all of the work is faster."""
    return rows.source.n_rows * rows.source.dim <= FEW and rows.maps.shape[2] < WIDE


def measured(
    problem: DesignProblem, rows: Rows, support: np.ndarray, weights: np.ndarray, attempts: int = WHITENINGS
) -> Measured:
    """Return the variances of all candidates under the weights of some, and the maps that give them.

    If a block loses rank its log det is -inf, and only the variances of other blocks are valid. Small
    problems take one call, by the same kernels and to the same digits.
    """
    if not fits_one_call(rows):
        white, off, log_det = whitened(problem, rows, support, weights, attempts)
        return Measured(white, off, log_det, *variances_of(problem, rows, white))
    n = problem.n_candidates
    off, log_det = np.zeros((2, problem.n_parameter_blocks))
    out = Measured(rows.maps.copy(), off, log_det, np.empty(n), np.zeros(problem.n_groups))
    x = rows.source.piece(0, n)
    _measure(x, problem.parameter_blocks, problem.groups, problem.ranks, support, weights, attempts, *out)
    return out


def whitened(
    problem: DesignProblem, rows: Rows, support: np.ndarray, weights: np.ndarray, attempts: int = WHITENINGS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return matrices that make the supported rows white, as columns; |E_b| as computed; log det U by block.

    Each attempt uses the factor of the information that the last one left. With one attempt |E_b| is not
    computed. A block that loses rank ends the attempts: its log det is -inf, and only the matrices of other
    blocks are valid.
    """
    white = rows.maps
    off, log_det = np.zeros((2, problem.n_parameter_blocks))
    for attempt in range(attempts):
        information = information_matrices(problem, weights, support, rows._replace(maps=white))
        if attempt > 0 and (is_white(information, problem.ranks, off) or attempt == attempts - 1):
            break
        factor, new = inverse_factors(information, problem.ranks)
        log_det += new
        white = composed(white, problem.ranks, factor)
        if np.minimum.reduce(log_det) == -np.inf:
            break
    return white, off, log_det


@kernel
def _measure(x, blocks, groups, ranks, support, weights, attempts, white, off, log_det, g, largest):
    """Do the work of ``measured`` in one call. Overwrites white, given as the maps, and what follows it."""
    width = white.shape[2]
    factor = np.zeros((len(ranks), width, width))
    for attempt in range(attempts):
        information = np.zeros((len(ranks), width, width))
        rest = np.zeros((len(ranks), width, width))
        add_tiles(x, support, blocks, support, white, ranks, weights, information, rest)
        for b in range(len(ranks)):
            for i in range(ranks[b]):
                for j in range(i + 1):
                    information[b, i, j] += rest[b, i, j]
        if attempt > 0 and (is_white(information, ranks, off) or attempt == attempts - 1):
            break
        new = factorise(information, ranks, factor)
        compose(white, ranks, factor)
        full = True
        for b in range(len(ranks)):
            log_det[b] += new[b]
            full &= log_det[b] > -np.inf
        if not full:
            break
    variances_of_few(x, blocks, white, g)
    raise_to_largest(groups, g, largest)


@kernel
def is_white(information, ranks, off):
    """Return True if every block is the identity up to round-off times its rank. Reads lower triangles.

    Overwrites off with the Frobenius norms of the differences, rounded up.
    """
    enough = True
    for b in range(len(ranks)):
        square = 0.0
        for i in range(ranks[b]):
            off_one = information[b, i, i] - 1.0
            square += off_one * off_one
            for j in range(i):
                square += 2.0 * (information[b, i, j] * information[b, i, j])
        enough &= np.sqrt(square) <= ROUNDOFF * ranks[b]
        off[b] = np.sqrt(square) * (1.0 + gamma(ranks[b] * ranks[b] + 10))
    return enough
