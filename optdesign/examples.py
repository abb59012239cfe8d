"""Instances of the paper.

Public for packages that build on this one: :func:`authors_features`.
"""

from __future__ import annotations

import numpy as np

from optdesign.errors import InputError

__all__ = ["authors_features"]


def authors_features(
    clients: int = 100, arms: int = 10, dim: int = 3, seed: int | np.random.Generator = 0
) -> np.ndarray:
    """Return the features of the synthetic instance in the experiments of the paper's authors.

    One arm of every client, chosen at random, has its first coordinate uniform in [0.7, 0.8] and the others
    uniform in [0, 0.6 / (dim - 1)]. For the remaining arms these are [0.5, 0.6] and [0, 0.8 / (dim - 1)]. The
    parameter of every arm is the first basis vector, so that arm is the best.

    Parameters
    ----------
    clients : int, default 100
        Number of clients.
    arms : int, default 10
        Number of arms.
    dim : int, default 3
        Length of a feature vector.
    seed : int or numpy.random.Generator, default 0
        Seed or source of the random numbers.

    Returns
    -------
    ndarray of shape (clients, arms, dim)
        Features.

    See Also
    --------
    optdesign.DesignProblem.disjoint : State the design problem of these features.

    Examples
    --------
    >>> authors_features(clients=4, arms=2).shape
    (4, 2, 3)
    """
    for name, value in (("clients", clients), ("arms", arms), ("dim", dim)):
        if value < 1:
            raise InputError(name, "must be at least 1", f"got {value}", "The paper has 100, 10 and 3.")
    rng = np.random.default_rng(seed)
    best = np.arange(arms) == rng.integers(arms, size=clients)[:, None]
    first = rng.uniform(0.0, 0.1, (clients, arms)) + np.where(best, 0.7, 0.5)
    rest = rng.uniform(0.0, 1.0 / max(dim - 1, 1), (clients, arms, dim - 1))
    return np.concatenate([first[..., None], rest * np.where(best, 0.6, 0.8)[..., None]], axis=2)
