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

ZERO = 1e-10
"""Coordinates up to this size count as zero; features, and so the basis, have length one."""


def collinear_classes(features: np.ndarray, *, shared: bool = False) -> np.ndarray:
    """Return the class of collinear clients to which each client belongs.

    Every feature is written in a basis made of some of the features of its arm (of all arms, if parameters
    are shared). It forms a circuit with the basis vectors whose coordinate is not zero, and circuits connect
    the elements of a matroid.

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
    m = len(features)
    length = np.linalg.norm(features, axis=2, keepdims=True)
    unit = features / np.where(length > 0, length, 1.0)
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
