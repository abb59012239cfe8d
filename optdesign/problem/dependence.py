"""Which columns of a rank-deficient block are combinations of others, in words.

The pivots of a block span all its candidates, so a column is a combination of others on all candidates if it
is one on the pivots. Columns are taken from left to right: one whose residual on those before it is rounding
depends on them, and least squares say on which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optdesign.problem.exact_rank import are_used
from optdesign.problem.problem import DesignProblem


def dependences(problem: DesignProblem, block: int) -> list[tuple[int, list[int]]]:
    """Return the dependent columns of a block, each with the columns of its combination (none: it is zero).

    >>> problem = DesignProblem([[1.0, 2.0, 3.0], [1.0, 5.0, 6.0], [1.0, 9.0, 10.0]])
    >>> dependences(problem, 0)
    [(2, [0, 1])]
    """
    rank = int(problem.ranks[block])
    p = problem.pivots_of(block)
    for axis in (0, 1):  # columns first: in a large unit, one would hide the others in its rows
        p = p / np.maximum(np.abs(p).max(axis=axis, keepdims=True, initial=0.0), np.finfo(float).tiny)
    length = np.linalg.norm(p, axis=0)
    p = p / np.where(length > 0, length, 1.0)
    # A column depends on others if its residual is at most this fraction of its length: the first that leaves
    # as many independent columns as the rank.
    residuals = (1e-9, 1e-11, 1e-13, 0.0)
    for residual in residuals:
        independent: list[int] = []
        for j in np.flatnonzero(length).tolist():
            part = np.linalg.lstsq(p[:, independent], p[:, j], rcond=None)[0]
            if np.linalg.norm(p[:, independent] @ part - p[:, j]) > residual and len(independent) < rank:
                independent.append(j)
        if len(independent) == rank:
            break
    dependent = sorted(set(range(problem.dim)) - set(independent))
    exact = problem.pivots_of(block)
    used = are_used(exact[:, independent], exact[:, dependent])
    if problem.exact_rank[block]:  # parts up to this fraction are round-off of the candidates
        part = np.abs(np.linalg.lstsq(p[:, independent], p[:, dependent], rcond=None)[0])
        used &= part > 1e-14 * part.max(axis=0, initial=0.0)
    return [
        (j, [independent[k] for k in np.flatnonzero(own)]) for j, own in zip(dependent, used.T, strict=True)
    ]


def scope(problem: DesignProblem, *, listed: bool = True) -> str:
    """Return the words after an efficiency: the designs and parameters that it refers to.

    ``listed`` is False if the candidates are all combinations of levels instead of a list.

    >>> scope(DesignProblem([[1.0, 1.0], [2.0, 2.0]]))
    ' on these candidates, for the 1 of 2 parameters that are estimable'
    """
    on = " on these candidates" if listed else " on all combinations of these levels"
    if problem.rank == problem.n_parameters:
        return on
    return f"{on}, for the {problem.rank} of {problem.n_parameters} parameters that are estimable"


def in_words(problem: DesignProblem, names: Sequence[object] | None = None) -> str:
    """Return a sentence for the first block without full rank, or an empty string.

    Columns are called by ``names``, or by those of the problem.

    >>> in_words(DesignProblem([[1.0, 2.0, 3.0], [1.0, 5.0, 6.0], [1.0, 9.0, 10.0]]), ["one", "a", "b"])
    'b is a combination of one, a'
    """
    deficient = np.flatnonzero(problem.ranks < problem.dim)
    if not len(deficient):
        return ""
    names = problem.names if names is None else names
    label = [f"column {j}" for j in range(problem.dim)] if names is None else [str(name) for name in names]
    found = dependences(problem, int(deficient[0]))
    shown = 3  # sentences shown before the rest is only counted
    sentences = [
        f"{label[j]} is " + (f"a combination of {', '.join(label[k] for k in others)}" if others else "zero")
        for j, others in found[:shown]
    ]
    if len(found) > shown:
        sentences.append(f"and {len(found) - shown} more")
    return "; ".join(sentences)
