"""Instance families for benchmarks and tests: features of shape (clients, arms, dim), seeded."""

from __future__ import annotations

import numpy as np

FAMILIES = ("gauss", "cone", "same", "cond", "clust")


def features(family: str, clients: int, arms: int, dim: int, seed: int = 0) -> np.ndarray:
    """Features of one family.

    gauss: independent normal entries. cone: their absolute values. same: one vector per client, the same
    for all arms up to a perturbation of 1e-3, as in matrix-factorised ratings. cond: normal, with axes
    scaled from 1 down to 1e-2. clust: a few centres with noise of 0.05.
    """
    rng = np.random.default_rng([seed, clients, arms, dim, FAMILIES.index(family)])
    normal = rng.normal(size=(clients, arms, dim))
    if family == "gauss":
        return normal
    if family == "cone":
        return np.abs(normal)
    if family == "same":
        return np.abs(rng.normal(size=(clients, 1, dim))) + 1e-3 * normal
    if family == "cond":
        return normal * np.logspace(0, -2, dim)
    centres = rng.normal(size=(dim + 2, dim))
    return centres[rng.integers(len(centres), size=(clients, arms))] + 0.05 * normal
