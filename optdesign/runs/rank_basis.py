"""Which runs carry the rank: a basis of every block, within the runs that each group has.

A set of candidates is useful if it is linearly independent (in every block) and takes at most n_i of group i.
These are the common independent sets of two matroids, so the largest has a size that is known exactly
(Edmonds): it has D elements, a basis of every block, unless some groups S violate

    D - rank(candidates outside S) <= sum of n_i over S,

which is what those groups must contribute. A greedy choice mostly finds a basis; where it stops early,
augmenting paths go on, and where those end, the groups that they reached are such an S.

*Arithmetic.* The greedy choice is made in floating point. Augmenting paths, and with them every refusal, are
decided modulo a prime, on the numbers as given (:mod:`optdesign.verification.exact_arithmetic`): rows that
are independent modulo the prime are independent, and rows that are dependent modulo it are so but for a
coincidence of probability 5e-10. Neither the sizes of rows nor nearly equal rows matter. The vectors are x_n'
T_b, with T_b the map of the span: their rank is the rank of the rows, as long as T_b keeps the rank of the
block, and it is never above the rank of the problem.
"""

from __future__ import annotations

import numpy as np

from optdesign.algebra.passes import coordinates
from optdesign.errors import InputError
from optdesign.problem.problem import DesignProblem
from optdesign.runs.search import SLICE
from optdesign.tables.columns import listed
from optdesign.verification.exact_arithmetic import PRIME, echelon, residues

GREEDY_WORK = 5e6
"""Multiplications of the greedy choice: it is among the heaviest candidates if there are very many."""


def basis(
    problem: DesignProblem, runs: np.ndarray, weights: np.ndarray, *, proved: bool = False
) -> np.ndarray:
    """Return candidates that are a basis of every block, at most runs[i] of group i.

    Heavy candidates are preferred. With ``proved``, the greedy choice is checked by exact arithmetic too.
    Raises ValueError, with the number of runs needed, if there is no basis.
    """
    rows = _heavy(problem, weights)
    size = weights[rows]
    size = np.sqrt(np.where(size > 0, size, size.min(where=size > 0, initial=np.inf)))
    chosen = _greedy(problem, rows, size, runs)
    if proved or len(chosen) < problem.rank:
        chosen = _independent(problem, chosen)
    if len(chosen) < problem.rank:
        chosen = _augmented(problem, _pool(problem, chosen), chosen, runs)
    return chosen


def _heavy(problem: DesignProblem, weights: np.ndarray) -> np.ndarray:
    """Return the candidates that have weight, or the heaviest and a basis if there are very many."""
    support = np.flatnonzero(weights != 0)
    room = max(problem.rank, int(GREEDY_WORK / (problem.rank * problem.largest_rank)))
    if len(support) <= room:
        return support
    share = weights[support] / problem.budgets[problem.groups[support]]
    return np.union1d(support[np.argpartition(-share, room)[:room]], problem.basis)


def exact_rank(problem: DesignProblem, rows: np.ndarray) -> int:
    """Return the sum over blocks of the rank of some candidates, by exact arithmetic."""
    return len(_independent(problem, rows))


def _greedy(problem: DesignProblem, rows: np.ndarray, size: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return independent candidates, each time the one of largest residual, within the runs."""
    z = coordinates_of(problem, rows) * size[:, None]
    norm = np.linalg.norm(z, axis=1)
    blocks, groups = problem.parameter_blocks[rows], problem.groups[rows]
    left = runs.copy()
    chosen: list[int] = []
    residual = norm.copy()
    same: slice | np.ndarray = slice(None)
    # The greedy choice takes vectors whose residual exceeds this fraction of their length.
    independent = 1e-9
    for _ in range(problem.rank):
        fit = np.where((residual > independent * norm) & (left[groups] > 0), residual, 0.0)
        at = int(np.argmax(fit))
        if not fit[at] > 0:
            break
        if problem.n_parameter_blocks > 1:
            same = blocks == blocks[at]
        direction = z[at] / residual[at]
        z[same] -= np.outer(z[same] @ direction, direction)
        z[same] -= np.outer(z[same] @ direction, direction)  # twice is enough
        residual[same] = np.linalg.norm(z[same], axis=1)
        residual[at] = 0.0
        left[groups[at]] -= 1
        chosen.append(int(rows[at]))
    return np.array(chosen, dtype=np.int64)


def coordinates_of(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Return coordinates of some candidates: by compensated products, or as solvers read them if very many.

    Compensated products take about 20 times as long, and are of use where information is nearly singular.
    """
    if len(rows) * problem.dim * problem.largest_rank <= SLICE:
        return problem.coordinates(rows)
    return coordinates(problem, rows, problem.rows)


def _pool(problem: DesignProblem, chosen: np.ndarray) -> np.ndarray:
    """Return candidates that span, in every group and block, what all of its candidates span."""
    order = np.lexsort((problem.parameter_blocks, problem.groups))
    label = problem.groups[order] * problem.n_parameter_blocks + problem.parameter_blocks[order]
    parts = [chosen]
    for rows in np.split(order, np.flatnonzero(np.diff(label)) + 1):
        rank = int(problem.ranks[problem.parameter_blocks[rows[0]]])
        if rank:
            first = _greedy(problem, rows, np.ones(len(rows)), np.full(problem.n_groups, rank))
            parts.append(_independent(problem, np.concatenate([first, np.setdiff1d(rows, first)])))
    return np.unique(np.concatenate(parts))


def _augmented(problem: DesignProblem, pool: np.ndarray, chosen: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return a largest choice among the pool, from a choice that is independent and within the runs."""
    inside = np.isin(pool, chosen)
    while inside.sum() < problem.rank:
        path, reached = _path(problem, pool, inside, runs)
        if not path:
            _refuse(problem, runs, reached, int(np.sum(inside & ~reached[problem.groups[pool]])))
        inside[path] = ~inside[path]
    return pool[inside]


def _path(
    problem: DesignProblem, pool: np.ndarray, inside: np.ndarray, runs: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """Return a shortest augmenting path, if there is one, and the groups that the search reached."""
    groups, blocks = problem.groups[pool], problem.parameter_blocks[pool]
    used = np.bincount(groups[inside], minlength=len(runs))
    reached = np.zeros(len(runs), dtype=bool)
    before = np.full(len(pool), -1)
    outside, circuits = np.zeros(len(pool), dtype=bool), dict[int, np.ndarray]()
    for b in np.unique(blocks):
        own = np.flatnonzero(blocks == b)
        members = own[inside[own]]
        parts, outside[own] = _parts(_vectors(problem, pool[own]), inside[own])
        circuits |= {int(x): own[parts[:, k] != 0] for k, x in enumerate(members)}
    seen = inside | outside
    queue = np.flatnonzero(outside).tolist()
    for y in queue:  # which grows
        if used[groups[y]] < runs[groups[y]]:
            path = [y]
            while before[y] >= 0:
                y = int(before[y])
                path.append(y)
            return path, reached
        if reached[groups[y]]:
            continue
        reached[groups[y]] = True
        for x in np.flatnonzero(inside & (groups == groups[y])):
            before[x] = y
            following = circuits[int(x)]
            following = following[~seen[following]]
            seen[following] = True
            before[following] = x
            queue.extend(following.tolist())
    return [], reached


def _vectors(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Return x_n' T_b modulo the prime for candidates of one block b, (rows, rank of the block)."""
    b = int(problem.parameter_blocks[rows[0]])
    maps = residues(problem.span.maps[b, :, : problem.ranks[b]])
    return _product(residues(problem.source.take(rows)), maps)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two matrices modulo the prime."""
    out = np.zeros((len(a), b.shape[1]), np.int64)
    for k in range(len(b)):
        out = (out + a[:, k, None] * b[k]) % PRIME
    return out


def _independent(problem: DesignProblem, rows: np.ndarray) -> np.ndarray:
    """Return those of some candidates that are outside the span of the ones before them, block by block."""
    keep = [np.empty(0, np.int64)]
    for b in np.unique(problem.parameter_blocks[rows]):
        own = rows[problem.parameter_blocks[rows] == b]
        keep.append(own[echelon(_vectors(problem, own).T)[1]])
    return np.concatenate(keep)


def _parts(vectors: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of vectors in those inside, which are independent, and which are outside."""
    members = vectors[inside]
    size, width = members.shape
    # [C B, C] with C B the identity in the columns.
    table, columns = echelon(np.hstack([members, np.eye(size, dtype=np.int64)]))
    picked = vectors[:, columns]
    outside = np.any(_product(picked, table[:, :width]) != vectors, axis=1)
    return _product(picked, table[:, width:]), outside


def _refuse(problem: DesignProblem, runs: np.ndarray, reached: np.ndarray, rest: int) -> None:
    """Say how many runs the groups that were reached must have."""
    needed, which = problem.rank - rest, np.flatnonzero(reached)
    if len(which) == 0:
        rule = f"must have rank {problem.rank}, that of the problem, in exact arithmetic too"
        remedy = f"{problem.rank_note} Drop columns that follow from others."
        raise InputError("candidates", rule, f"it is {rest}", remedy)
    given = f"{int(runs[which].sum())} were given"
    terms, by_block = "or drop terms of the model.", ""
    if problem.n_parameter_blocks > 1:
        terms += " If the labels are those of a blocking factor, make it a term of the model instead."
        by_block = _by_block(problem)
    if rest == 0:
        rule = (
            f"must be enough runs to keep the rank: {problem.rank} estimable parameters"
            f"{by_block} need at least {needed} runs"
        )
        raise InputError("budgets", rule, given, f"Raise the budget, {terms}")
    called = which.tolist() if problem.group_names is None else [problem.group_names[i] for i in which]
    named = 5  # groups that a message names before the rest is only counted
    names = ", ".join(map(str, called[:named]))
    if len(called) > named:
        names += f" and {len(called) - named} more"
    several = len(which) > 1
    rule = (
        f"must be enough runs to keep the rank: the other groups reach {rest} of {problem.rank}{by_block}, "
        f"so group{'s' if several else ''} {names} must have at least {needed} runs"
        f"{' in all' if several else ''}"
    )
    raise InputError("budgets", rule, given, f"Raise {'their budgets' if several else 'its budget'}, {terms}")


def _by_block(problem: DesignProblem) -> str:
    """Return words that name the parameter blocks by which the number of parameters is multiplied."""
    count = problem.n_parameter_blocks
    names = range(count) if problem.parameter_block_names is None else problem.parameter_block_names
    most = "" if np.all(problem.ranks == problem.largest_rank) else "at most "
    return f" ({most}{problem.largest_rank} in each of the {count} parameter blocks {listed(names)})"
