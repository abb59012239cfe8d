"""Which runs carry the rank: a basis of every block, within the runs that each group has.

A set of candidates is useful if it is linearly independent (in every block) and takes at most n_i of group i.
These are the common independent sets of two matroids, so the largest has a size that is known exactly
(Edmonds): it has D elements, a basis of every block, unless some groups S violate

    D - rank(candidates outside S) <= sum of n_i over S,

which is what those groups must contribute. A greedy choice mostly finds a basis; where it stops early,
augmenting paths go on, and where those end, the groups that they reached are such an S.
"""

from __future__ import annotations

import numpy as np

from optdesign.problem import DesignProblem

INDEPENDENT = 1e-9
"""A vector is outside a span if its residual exceeds this fraction of its length."""

NAMED = 5
"""Groups that a message names before the rest is only counted."""


def basis(problem: DesignProblem, runs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Candidates, at most runs[i] of group i, that are a basis of every block; heavy ones are preferred.

    Raises ValueError, with the number of runs that are needed, if there are none.
    """
    support = np.flatnonzero(weights != 0)
    chosen = _greedy(problem, support, np.sqrt(weights[support]), runs)
    if len(chosen) < problem.rank:
        pool = _pool(problem, support)
        chosen = _augmented(problem, pool, chosen, runs)
    return chosen


def _greedy(problem: DesignProblem, rows: np.ndarray, size: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Independent candidates, each time the one of largest residual, within the runs."""
    z = problem.coordinates(rows) * size[:, None]
    norm = np.linalg.norm(z, axis=1)
    blocks, groups = problem.blocks[rows], problem.groups[rows]
    left = runs.copy()
    chosen: list[int] = []
    residual = norm.copy()
    for _ in range(problem.rank):
        fit = np.where((residual > INDEPENDENT * norm) & (left[groups] > 0), residual, 0.0)
        at = int(np.argmax(fit))
        if not fit[at] > 0:
            break
        same = blocks == blocks[at]
        direction = z[at] / residual[at]
        z[same] -= np.outer(z[same] @ direction, direction)
        z[same] -= np.outer(z[same] @ direction, direction)  # twice is enough
        residual[same] = np.linalg.norm(z[same], axis=1)
        residual[at] = 0.0
        left[groups[at]] -= 1
        chosen.append(int(rows[at]))
    return np.array(chosen, dtype=np.int64)


def _pool(problem: DesignProblem, support: np.ndarray) -> np.ndarray:
    """Candidates that span, in every group and block, what all of its candidates span."""
    order = np.lexsort((problem.blocks, problem.groups))
    label = problem.groups[order] * problem.n_blocks + problem.blocks[order]
    parts = [support]
    for rows in np.split(order, np.flatnonzero(np.diff(label)) + 1):
        rank = int(problem.ranks[problem.blocks[rows[0]]])
        if rank:
            parts.append(_greedy(problem, rows, np.ones(len(rows)), np.full(problem.n_groups, rank)))
    return np.unique(np.concatenate(parts))


def _augmented(problem: DesignProblem, pool: np.ndarray, chosen: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """A largest choice among the pool, from a choice that is independent and within the runs."""
    vectors = _embedded(problem, pool)
    groups = problem.groups[pool]
    inside = np.isin(pool, chosen)
    while inside.sum() < problem.rank:
        path, reached = _path(vectors, groups, inside, runs)
        if not path:
            _refuse(problem, runs, reached, int(np.sum(inside & ~reached[groups])))
        for at in path:
            inside[at] = not inside[at]
    return pool[inside]


def _embedded(problem: DesignProblem, pool: np.ndarray) -> np.ndarray:
    """Coordinates of the pool as unit vectors of one space, the sum of the blocks' spaces."""
    z, blocks = problem.coordinates(pool), problem.blocks[pool]
    first = np.concatenate([[0], np.cumsum(problem.ranks)])
    out = np.zeros((len(pool), problem.rank))
    for b in np.flatnonzero(problem.ranks):
        rows = blocks == b
        out[rows, first[b] : first[b + 1]] = z[rows, : problem.ranks[b]]
    norm = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.where(norm > 0, norm, 1.0)


def _path(
    vectors: np.ndarray, groups: np.ndarray, inside: np.ndarray, runs: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """A shortest augmenting path, or none; and which groups the search reached."""
    members = np.flatnonzero(inside)
    basis_vectors = vectors[members]
    parts = vectors @ np.linalg.pinv(basis_vectors)
    outside = np.linalg.norm(vectors - parts @ basis_vectors, axis=1) > INDEPENDENT
    used = np.bincount(groups[members], minlength=len(runs))
    reached = np.zeros(len(runs), dtype=bool)
    before = np.full(len(vectors), -1)
    queue = np.flatnonzero(outside & ~inside).tolist()
    seen = np.zeros(len(vectors), dtype=bool)
    seen[queue] = True
    at = 0
    while at < len(queue):
        y = queue[at]
        at += 1
        if used[groups[y]] < runs[groups[y]]:
            path = [y]
            while before[y] >= 0:
                y = int(before[y])
                path.append(y)
            return path, reached
        if reached[groups[y]]:
            continue
        reached[groups[y]] = True
        for position in np.flatnonzero(groups[members] == groups[y]):
            x = int(members[position])
            before[x] = y
            following = np.flatnonzero((np.abs(parts[:, position]) > INDEPENDENT) & ~seen & ~inside)
            seen[following] = True
            before[following] = x
            queue.extend(following.tolist())
    return [], reached


def _refuse(problem: DesignProblem, runs: np.ndarray, reached: np.ndarray, rest: int) -> None:
    """Say how many runs the groups that were reached must have."""
    needed, which = problem.rank - rest, np.flatnonzero(reached)
    given = int(runs[which].sum())
    if rest == 0:
        raise ValueError(
            f"budgets must be enough runs to keep the rank: {problem.rank} parameters that can be told apart "
            f"need at least {needed} runs; {given} were given. Raise the budget, or drop terms of the model."
        )
    called = which.tolist() if problem.group_names is None else [problem.group_names[i] for i in which]
    names = ", ".join(map(str, called[:NAMED]))
    if len(called) > NAMED:
        names += f" and {len(called) - NAMED} more"
    several = len(which) > 1
    raise ValueError(
        f"budgets must be enough runs to keep the rank: the other groups reach {rest} of {problem.rank}, so "
        f"group{'s' if several else ''} {names} must have at least {needed} runs"
        f"{' in all' if several else ''}; {given} were given. "
        f"Raise {'their budgets' if several else 'its budget'}, or drop terms of the model."
    )
