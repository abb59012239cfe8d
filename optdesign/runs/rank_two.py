"""Price and apply a change of rank two of an information matrix.

Every move of whole runs changes an information matrix M to M + e d' + d e' + a d d'. With V the inverse of M,

    det ratio = (1 + e'Vd)^2 + d'Vd (a - e'Ve),
    new V     = V - V [e d] K^-1 [e d]' V,    K = [[e'Ve - a, 1 + e'Vd], [1 + e'Vd, d'Vd]].

For rows P the matrix S = P V P' changes in the same way, with P V e and P V d for V e and V d.

| move | e | d | a |
|---|---|---|---|
| run x becomes x + d | x | change of the run | 1 |
| the same in block b, whose effect is eliminated | x - m_b | change of the run | 1 - 1 / k_b |
| a run of block 1 and a run of block 2 change places | m_2 - m_1 | x_2 - x_1 | -(1 / k_1 + 1 / k_2) |

A block b has k_b runs and mean m_b. Rows are centred at m_b if the effect of the block is eliminated.
"""

from __future__ import annotations

import math

import numpy as np

from optdesign.runtime.jit import kernel

MOVE_GAIN = 1e-8
"""Gains and differences of gains below this are round-off. The first of equal moves is made, so that runs do
not depend on the round-off of a computer."""

SAFE = 1e-5
"""A perturbation may not lower the determinant by more than this factor: the rank would be in doubt."""

REFRESH = 200
"""Moves after which inverses are recomputed from the runs, at the next opportunity."""

ROW, IDLE, CHANGES = range(3)
"""Entries of ``place`` of a search: next row to visit, rows visited since the last gain, moves since the last
refresh."""

SINGULAR = 1e12
"""Condition number above which a matrix is called singular."""


def inverted(m: np.ndarray) -> tuple[float, np.ndarray | None]:
    """Return log det and inverse of a positive definite matrix, or -inf and None."""
    try:
        factor = np.linalg.cholesky(m)
        inverse = np.linalg.inv(m)
    except np.linalg.LinAlgError:
        return -math.inf, None
    if not np.linalg.norm(m) * np.linalg.norm(inverse) < SINGULAR * len(m):
        return -math.inf, None
    return 2.0 * float(np.log(np.diag(factor)).sum()), (inverse + inverse.T) / 2


@kernel
def det_ratio(ee, ed, dd, a):
    """Return the factor of the determinant, from e'Ve, e'Vd, d'Vd and a."""
    return (1.0 + ed) * (1.0 + ed) + dd * (a - ee)


@kernel
def update(s, e, d, ee, ed, dd, a):
    """Update s = P V P' in place, from e = P V e and d = P V d."""
    q = 1.0 + ed
    scale = 1.0 / (dd * (ee - a) - q * q)
    for i in range(len(e)):
        ce, cd = scale * (dd * e[i] - q * d[i]), scale * ((ee - a) * d[i] - q * e[i])
        for j in range(len(e)):
            s[i, j] -= ce * e[j] + cd * d[j]
