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


def authors(clients: int, arms: int, dim: int, seed: int = 0) -> np.ndarray:
    """The synthetic instance of the paper's authors, as described in the paper's errata.

    Every arm's parameter is the first basis vector, so the first coordinate is the reward: in [0.7, 0.8]
    for one arm of each client, in [0.5, 0.6] for the others.
    """
    rng = np.random.default_rng(seed)
    x = np.empty((clients, arms, dim))
    x[..., 0] = rng.uniform(0.5, 0.6, size=(clients, arms))
    x[..., 1:] = rng.uniform(0, 0.8 / (dim - 1), size=(clients, arms, dim - 1))
    who, best = np.arange(clients), rng.integers(arms, size=clients)
    x[who, best, 0] = rng.uniform(0.7, 0.8, size=clients)
    x[who, best, 1:] = rng.uniform(0, 0.6 / (dim - 1), size=(clients, dim - 1))
    return x
