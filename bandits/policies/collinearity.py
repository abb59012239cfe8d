"""Classes of clients that share information.

Two clients are collinear when for some arm one's feature lies in the span of others' together with the
second's, but not without it: only then do observations of the second inform about the first.
Per arm this is an equivalence, namely connectedness of the matroid of the feature vectors; over arms the
transitive closure is taken. Clients of different classes do not influence each other under Fed-PE (the
paper's corollary), so the server treats every class as a federation of its own. There are at most d.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from optdesign import DesignProblem

ROUNDOFF = 1e-15
"""Entries up to this size in a feature of length one do not count when columns are scaled."""

ZERO = 1e-10
"""Coordinates up to this size count as zero; features, and so the basis, have length one."""


def collinear_classes(features: np.ndarray, *, shared: bool = False) -> np.ndarray:
    """Return the class of collinear clients to which each client belongs.

    Every feature is written in a basis made of some of the features of its arm (of all arms, if parameters
    are shared). It forms a circuit with the basis vectors whose coordinate is not zero, and circuits connect
    the elements of a matroid. Coordinates up to 1e-10 count as zero; features have length one, and columns
    are scaled before, so that units do not count if they differ by less than about 1e12.

    Parameters
    ----------
    features : ndarray of shape (M, K, d)
        Features of all clients.
    shared : bool, default False
        True if all arms have the same parameter vector.

    Returns
    -------
    ndarray of int of shape (M,)
        Label of every client's class, numbered in the order of their first clients.

    See Also
    --------
    bandits.environments.clusters : Return an instance with several classes.

    Examples
    --------
    >>> collinear_classes(np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[2.0, 0.0]]])).tolist()
    [0, 1, 0]
    """
    m, k, d = features.shape
    parts = [features.reshape(m * k, d)] if shared else np.swapaxes(features, 0, 1)
    scaled = np.stack([_balanced(part) for part in parts])
    scaled = scaled.reshape(m, k, d) if shared else np.swapaxes(scaled, 0, 1)
    unit = _unit(scaled)
    problem = (DesignProblem.shared if shared else DesignProblem.disjoint)(unit)
    t = np.abs(problem.coordinates(slice(0, problem.n_candidates)))
    n, column = np.nonzero(t > ZERO)
    i, j = problem.groups[n], problem.groups[problem.span.pivots[problem.parameter_blocks[n], column]]
    graph = coo_matrix((np.ones(len(i), dtype=bool), (i, j)), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    first = np.unique(labels, return_index=True)[1]
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[labels]


def _unit(x: np.ndarray) -> np.ndarray:
    """Return features of length one."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def _balanced(x: np.ndarray) -> np.ndarray:
    """Return x (n, d) with columns scaled by powers of two, so that their units do not count.

    The exponents are least squares of log2 |x_nj| = row_n + column_j over the entries that are not round-off.
    """
    size = np.abs(_unit(x))
    mask = size > ROUNDOFF
    log = np.log2(size, where=mask, out=np.zeros_like(size))
    share = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    right = (log - mask * (share * log).sum(axis=1, keepdims=True)).sum(axis=0)
    left = np.diag(mask.sum(axis=0)) - mask.T @ share
    return np.ldexp(x, -np.rint(np.linalg.pinv(left) @ right).astype(int))
