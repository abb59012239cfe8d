"""Problems of every structure, composed so that a failing one shrinks to few, round numbers.

A problem is small: entries are multiples of 1/4 unless you bring your own, scales are powers of two,
dependent columns and copies are exact. So every rank is beyond doubt, and what a test finds is not rounding.
Hypothesis prints a problem as the call that makes it, ready to be pasted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from optdesign.errors import InputError
from optdesign.problem.problem import DesignProblem
from optdesign.testing.linear import lattice
from optdesign.testing.options import at_least_one, chosen

Structure = Literal["classical", "strata", "disjoint", "shared", "mixed"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)
"""One group and one block; groups; clients and arms with parameters per arm, or shared; any of these."""


class _Options(NamedTuple):
    """The checked arguments of :func:`problems`."""

    max_candidates: int
    max_groups: int
    max_blocks: int
    max_dim: int
    entries: st.SearchStrategy[float]
    deficient: bool | None
    copies: int
    """1 if there must be copies, else 0."""
    scales: float
    budgets: float

    @property
    def free_dim(self) -> int:
        """Most columns that are drawn; a dependent one is added."""
        return self.max_dim - 1 if self.deficient else self.max_dim


def problems(
    *,
    structure: Structure | Sequence[Structure] | None = None,
    max_candidates: int = 12,
    max_groups: int = 4,
    max_blocks: int = 3,
    max_dim: int = 3,
    entries: st.SearchStrategy[float] | None = None,
    deficient: bool | None = None,
    duplicates: bool = False,
    scales: float = 0.0,
    budgets: float = 1.0,
) -> st.SearchStrategy[DesignProblem]:
    """Return a strategy of small and often degenerate problems.

    They shrink towards one candidate [1] with budget 1.

    Parameters
    ----------
    structure : str or sequence of str, optional
        "classical" (one group, one parameter block), "strata" (groups, one parameter block), "disjoint" and
        "shared" (made by the constructors of these names, some arms inactive), "mixed" (any groups and
        parameter blocks, some without candidates). Default: any.
    max_candidates : int, default 12
        Largest number of candidates.
    max_groups : int, default 4
        Largest number of groups: the clients of "disjoint" and "shared".
    max_blocks : int, default 3
        Largest number of parameter blocks: the arms of "disjoint".
    max_dim : int, default 3
        Largest length of a candidate.
    entries : hypothesis strategy of float, optional
        Entries of the candidates. With other floats, ranks can be close decisions. Default:
        :func:`optdesign.testing.lattice`.
    deficient : bool, optional
        True if every parameter block has a column that depends on others, False if every parameter block has
        full rank. Default: both occur.
    duplicates : bool, default False
        True if some candidates occur twice in one parameter block, in any groups.
    scales : float, default 0.0
        Rows and columns are multiplied by powers of two, up to this number of orders of magnitude each way.
    budgets : float, default 1.0
        Orders of magnitude of the budgets above or below 1; with 0 they are 1.

    Returns
    -------
    hypothesis strategy of DesignProblem
        The strategy.

    See Also
    --------
    optdesign.testing.random_problems : Draw larger problems from seeds.
    optdesign.testing.ugly_problems : Draw ill-conditioned problems.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(problems(), lambda p: p.rank == 2, settings=smallest).candidates.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    kinds = chosen("structure", structure, STRUCTURES)
    entries = lattice() if entries is None else entries
    options = _Options(
        max_candidates, max_groups, max_blocks, max_dim, entries, deficient, int(duplicates), scales, budgets
    )
    at_least_one(max_candidates=max_candidates, max_groups=max_groups, max_blocks=max_blocks, max_dim=max_dim)
    # Rows, columns and budgets differ by so many orders of magnitude at most, in either direction.
    most_scales = 20.0
    for name, orders in {"scales": scales, "budgets": budgets}.items():
        if not 0 <= orders <= most_scales:
            remedy = "Use 6."
            raise InputError(name, f"must lie between 0 and {most_scales:g} orders", f"got {orders}", remedy)
    if deficient and max_dim < 2:
        raise InputError("max_dim", "must be at least 2 for deficient problems", "got 1", "Use 3.")
    if duplicates and (max_candidates < 2 or (max_groups < 2 and not {*kinds}.isdisjoint(GRIDS))):
        rule = "need max_candidates of at least 2 and, with clients, max_groups of at least 2"
        value = f"got {max_candidates} and {max_groups}"
        raise InputError("duplicates", rule, value, "Raise them, or leave duplicates out.")
    return st.sampled_from(kinds).flatmap(
        lambda kind: _grids(kind, options) if kind in GRIDS else _labelled(kind, options)
    )


GRIDS: tuple[Structure, ...] = ("disjoint", "shared")


@st.composite
def _labelled(draw: st.DrawFn, kind: str, o: _Options) -> DesignProblem:
    full, most = o.deficient is False, o.max_candidates - o.copies
    d = draw(st.integers(1, min(o.max_dim, most) if full else o.free_dim))
    # All that belongs to a candidate is drawn at once: when it goes, nothing else changes.
    group = st.just(0) if kind == "classical" else st.integers(0, o.max_groups - 1)
    block = st.integers(0, o.max_blocks - 1) if kind == "mixed" else st.just(0)
    candidate = st.tuples(group, block, *[o.entries] * d)
    drawn = draw(st.lists(candidate, min_size=d if full else 1, max_size=most))
    groups, blocks = (np.array([c[i] for c in drawn]) for i in (0, 1))
    x = draw(_features(np.array([c[2:] for c in drawn]), o))
    if full:
        blocks = _completed(x, blocks)
    rows = np.arange(len(x))
    if o.copies:
        copy = st.tuples(st.integers(0, len(x) - 1), group)
        again = draw(st.lists(copy, min_size=1, max_size=o.max_candidates - len(x)))
        rows = np.append(rows, [row for row, _ in again])
        groups = np.append(groups, [label for _, label in again])
    groups = np.unique(groups, return_inverse=True)[1].reshape(-1)
    budgets = draw(_budgets(int(groups.max()) + 1, o))
    given = {"groups": groups, "parameter_blocks": blocks[rows], "budgets": budgets}
    options = {name: v.tolist() for name, v in given.items() if v is not None and v.any()}
    # Rows are scaled before they are copied, so that copies are equal.
    return draw(_built(DesignProblem, draw(_scaled(x, o))[rows], options))


@st.composite
def _grids(draw: st.DrawFn, kind: str, o: _Options) -> DesignProblem:
    full, disjoint = o.deficient is False, kind == "disjoint"
    widest = o.max_candidates // (1 + o.copies)
    k = draw(st.integers(1, min(o.max_blocks, widest) if disjoint else widest))
    most = min(o.max_groups, o.max_candidates // k) - o.copies  # the last client may be a copy
    d = draw(st.integers(1, min(o.max_dim, most * (1 if disjoint else k)) if full else o.free_dim))
    least = (d if disjoint else -(-d // k)) if full else 1
    client = st.tuples(*[st.integers(0, 3)] * k, *[o.entries] * (k * d))
    drawn = np.array(draw(st.lists(client, min_size=least, max_size=most)), dtype=np.float64)
    x = draw(_features(drawn[:, k:].reshape(-1, d), o)).reshape(len(drawn), k, -1)
    active = drawn[:, :k] < 3
    if not draw(st.booleans()):  # no arm that is zero for all
        active, x = active[:, x.any(axis=(0, 2))], x[:, x.any(axis=(0, 2))]
        k = x.shape[1]
    active[:, 0] |= ~active.any(axis=1)
    if full:
        for part in (x[:, a] for a in range(k)) if disjoint else (x.reshape(-1, x.shape[2]),):
            _complete(part)
    clients = np.arange(len(x))
    if o.copies:
        clients = np.append(clients, draw(st.integers(0, len(x) - 1)))
    budgets = draw(_budgets(len(clients), o))
    options = {} if budgets is None else {"budgets": budgets.tolist()}
    if not active.all() and x[active].any() and not (full and _loses_rank(x, active, disjoint)):
        options["active"] = active[clients].tolist()
    scaled = draw(_scaled(x.reshape(-1, x.shape[2]), o)).reshape(x.shape)[clients]
    return draw(_built(_disjoint if disjoint else _shared, scaled, options))


def _disjoint(features: Any, **options: Any) -> DesignProblem:
    return DesignProblem.disjoint(features, **options)


def _shared(features: Any, **options: Any) -> DesignProblem:
    return DesignProblem.shared(features, **options)


for _make in (_disjoint, _shared):  # as hypothesis should print them
    _make.__name__ = f"DesignProblem.{_make.__name__[1:]}"


def _built(
    make: Callable[..., DesignProblem], x: np.ndarray, options: dict[str, Any]
) -> st.SearchStrategy[DesignProblem]:
    """Return the problem by a call that hypothesis remembers, and prints."""
    return st.builds(make, st.just(x.tolist()), **{name: st.just(v) for name, v in options.items()})


@st.composite
def _features(draw: st.DrawFn, x: np.ndarray, o: _Options) -> np.ndarray:
    """Rows, not all zero, without zero columns in half the cases; a dependent column if asked for."""
    if not x.any():
        x.flat[0] = 1.0
    if not draw(st.booleans()):
        x = x[:, x.any(axis=0)]
    if not o.deficient:
        return x
    mixture = draw(arrays(np.int64, x.shape[1], elements=st.integers(-2, 2)))
    return np.column_stack([x, x @ mixture])


def _complete(x: np.ndarray) -> None:
    """Overwrite the first rows by those of the identity where the rank is not full."""
    d = x.shape[1]
    if np.linalg.matrix_rank(x) < d:
        x[:d] = np.eye(d)


def _completed(x: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Labels of blocks of full rank: the others join the first, which is completed. Overwrites x."""
    out = blocks.copy()
    for b in np.unique(blocks)[1:]:
        if np.linalg.matrix_rank(x[blocks == b]) < x.shape[1]:
            out[blocks == b] = blocks.min()
    first = out == out.min()
    if first.sum() < x.shape[1]:
        out[:], first[:] = 0, True
    rows = x[first]
    _complete(rows)
    x[first] = rows
    return np.unique(out, return_inverse=True)[1].reshape(-1)


def _loses_rank(x: np.ndarray, active: np.ndarray, disjoint: bool) -> bool:
    """Return True if the active arms do not span what all arms do, which is everything."""
    parts = [x[active[:, a], a] for a in range(x.shape[1])] if disjoint else [x[active]]
    return any(len(part) == 0 or np.linalg.matrix_rank(part) < x.shape[2] for part in parts)


@st.composite
def _scaled(draw: st.DrawFn, x: np.ndarray, o: _Options) -> np.ndarray:
    """Rows and columns times powers of two: no rank changes."""
    most = int(o.scales * math.log2(10))
    if most == 0:
        return x
    rows, columns = (draw(arrays(np.int64, n, elements=st.integers(-most, most))) for n in x.shape)
    return np.ldexp(x, rows[:, None] + columns)


@st.composite
def _budgets(draw: st.DrawFn, n: int, o: _Options) -> np.ndarray | None:
    """Budgets, whole numbers before others; None if all are one."""
    if o.budgets == 0:
        return None
    whole = st.integers(1, max(1, min(int(10**o.budgets), 1000))).map(float)
    other = st.floats(-o.budgets, o.budgets).map(lambda e: 10.0**e)
    values = draw(arrays(np.float64, n, elements=st.one_of(whole, other), fill=st.nothing()))
    return None if np.all(values == 1) else values


@st.composite
def feasible_weights(draw: st.DrawFn, problem: DesignProblem, *, zeros: bool = False) -> np.ndarray:
    """Return a strategy of weights that sum to the budget in every group, up to round-off.

    They are positive, so that no rank is lost. In a group, the largest is at most 64 times the smallest.

    Parameters
    ----------
    problem : DesignProblem
        Problem of the weights.
    zeros : bool, default False
        True if some weights may be zero. The rank may then be lost.

    Returns
    -------
    hypothesis strategy of ndarray
        The strategy.

    See Also
    --------
    optdesign.testing.weighted : Draw a problem with weights.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> p = DesignProblem([[1.0], [1.0], [1.0]], groups=[0, 0, 1], budgets=[1, 5])
    >>> find(feasible_weights(p), lambda w: True, settings=smallest).tolist()
    [0.5, 0.5, 5.0]
    """
    sizes = st.one_of(st.integers(1, 8).map(float), st.floats(0.125, 8.0))
    elements = st.one_of(st.just(0.0), sizes) if zeros else sizes
    raw = draw(arrays(np.float64, problem.n_candidates, elements=elements, fill=st.nothing()))
    raw += (np.bincount(problem.groups, weights=raw) == 0)[problem.groups]
    return raw * (problem.budgets / np.bincount(problem.groups, weights=raw))[problem.groups]


@st.composite
def weighted(draw: st.DrawFn, /, **options: Any) -> tuple[DesignProblem, np.ndarray]:
    """Return a strategy of problems with positive feasible weights.

    Parameters
    ----------
    **options : object
        Options of :func:`optdesign.testing.problems`.

    Returns
    -------
    hypothesis strategy of tuple
        The strategy of pairs of a problem and weights.

    See Also
    --------
    optdesign.testing.feasible_weights : Draw weights of a given problem.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(weighted(), lambda pair: True, settings=smallest)[1].tolist()
    [1.0]
    """
    problem = draw(problems(**options))
    return problem, draw(feasible_weights(problem))
