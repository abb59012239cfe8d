"""Finer candidates: what the levels of numeric factors cost, measured by levels between and around them.

A certificate holds on the candidates that are listed. Here candidates are added beside those with weight: one
numeric factor at a time moves up and down by a step, within its range, or two components of a mixture move in
opposite directions. The first step is half the largest distance of neighbouring levels. The problem is solved
again, and the step is halved once the gain is below a tolerance, until it is small beside the smallest
distance of neighbouring levels. The old optimum is a design on the new candidates as well, so its efficiency
there is what it lost to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from optdesign.design.display import text
from optdesign.design.efficiency import efficiency
from optdesign.design.result import DesignResult, rounded_down
from optdesign.errors import InputError
from optdesign.factors.coding import disjoint_mixtures
from optdesign.factors.conditions import kept
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.solvers.solve import solve_many
from optdesign.tables.columns import Settings, row_codes

SAME_LEVEL = 1e-9
"""Settings that differ by at most this fraction of the range of their factor are the same."""


class Round(NamedTuple):
    """One round of a refinement."""

    step: float
    """Step of every factor, as a fraction of its first step."""
    candidates: int
    efficiency: float
    """Efficiency of the old optimum against the design of this round."""


@dataclass(frozen=True, eq=False)
class Refinement:
    """Result of :func:`optdesign.refine`.

    Attributes
    ----------
    problem : DesignProblem
        Problem with the old candidates, in their order, followed by the new ones.
    design : DesignResult
        Optimal design of that problem.
    old : DesignResult
        Optimal design on the old candidates.
    efficiency : float
        Lower bound on the D-efficiency of the old optimum against all designs on the new candidates.
    loss : float
        1 - efficiency: what the old candidates lost to the new ones at most.
    levels : dict of str to list
        Levels with weight in the new design that the old candidates did not have, by factor.
    history : tuple of Round
        Step, number of candidates and efficiency of the old optimum in every round.

    See Also
    --------
    optdesign.refine : Make a refinement.

    Examples
    --------
    >>> import optdesign as od
    >>> c = od.candidates({"x": [-1, -0.5, 0, 0.5, 1]}, model="~ x + I(x**2) + I(x**3)")
    >>> found = od.refine(od.DesignProblem(c))
    >>> round(found.loss, 3), [round(level, 2) for level in found.levels["x"]]
    (0.009, [-0.45, 0.45])
    """

    problem: DesignProblem
    design: DesignResult
    old: DesignResult = field(repr=False)
    efficiency: float
    levels: dict[str, list[float]]
    history: tuple[Round, ...] = field(repr=False)
    _is_complete: bool = field(default=True, repr=False)

    @property
    def loss(self) -> float:
        """Upper bound on the loss of efficiency by the old candidates, against the new ones."""
        return 1.0 - self.efficiency

    def __str__(self) -> str:
        least = rounded_down(self.efficiency)
        lines = [
            f"the optimum on the old candidates has an efficiency of at least {least} on the new ones",
            f"  candidates  {self.old.problem.n_candidates}, then {self.problem.n_candidates}",
        ]
        for name, levels in self.levels.items():
            lines.append(f"  {name:<10}  new levels with weight: {', '.join(map(text, levels))}")
        if not self._is_complete:
            lines.append(f"  the search ended after {len(self.history)} rounds; more rounds may find more")
        return "\n".join(lines)


def refine(problem: DesignProblem, *, where: Any = None, tol: float = 1e-4, rounds: int = 40) -> Refinement:
    """Add levels between and around those with weight, and measure what the old candidates lost.

    Parameters
    ----------
    problem : DesignProblem
        Made from :func:`optdesign.candidates`, so that the model can be evaluated at new settings.
    where : condition, optional
        Condition that new settings must meet, as in :func:`optdesign.candidates`; a problem does not keep it.
        Factors stay within the range of the old candidates of the same group and parameter block. Components
        of a mixture with a condition are limited by the condition alone, because a lattice may not reach its
        bounds. Every mixture keeps its sum.
    tol : float, default 1e-4
        Smallest relative gain of a round that is followed by another one with the same step, and largest
        loss by the last halving of the step.
    rounds : int, default 40
        Largest number of rounds. The result says so when it is printed if they end the search early.

    Returns
    -------
    Refinement
        New problem and design, with the efficiency of the old optimum against all designs on the new
        candidates. The search is local: levels that it did not try may gain more. Columns of the settings
        that are neither in the model nor in a mixture keep the values of the candidates beside the new ones.

    Raises
    ------
    InputError
        If the problem has no model, or no numeric factor with more than one level.

    See Also
    --------
    optdesign.candidates : Make candidates from factors and a model.

    Examples
    --------
    >>> import optdesign as od
    >>> c = od.candidates({"dose": [0, 5, 10]}, model="~ dose + I(dose**2)")
    >>> od.refine(od.DesignProblem(c)).loss < 1e-6
    True
    """
    check_problem(problem)
    model, settings = problem.model, problem.settings
    moves, unevenness = ([], 1.0) if model is None or settings is None else _moves(settings, model)
    if model is None or settings is None or not moves:
        rule = "must have a model with a numeric factor of several levels"
        value = "it has none" if model is not None else "it was not made by candidates(factors, model)"
        raise InputError("problem", rule, value, "Pass DesignProblem(candidates(factors, model)).")
    solved = 1e-7  # relative gap of every design
    (old,) = solve_many([problem], tol=solved)  # unlike solve, it raises KeyboardInterrupt at Ctrl-C
    design = old
    step, history, before = 1.0, [], 1.0
    least_step = 2.0**-8 * unevenness
    for _ in range(rounds):
        p = design.problem
        added, origin = _moved(design, moves, step, where)
        if added is not None:
            p = _extended(p, added, origin)
            start = np.append(design.weights, np.zeros(len(origin)))
            (design,) = solve_many([p], tol=solved, start=start)
        now = float(np.exp((old.log_det - design.log_det) / problem.rank))
        history.append(Round(step, p.n_candidates, min(1.0, now)))
        if before - now < tol:
            step /= 2
            if step < least_step:
                break
        before = now
    weights = np.append(old.weights, np.zeros(design.problem.n_candidates - problem.n_candidates))
    return Refinement(
        problem=design.problem,
        design=design,
        old=old,
        efficiency=efficiency(design.problem, weights, best=design),
        levels=_new_levels(problem, design),
        history=tuple(history),
        _is_complete=step < least_step,
    )


def _moves(settings: Settings, model: Any) -> tuple[list[dict[str, float]], float]:
    """Return the directions in which settings move, and the unevenness of the levels.

    A direction has the first step of every factor in it. The unevenness is the smallest ratio of two
    distances of neighbouring levels of one factor.
    """
    first_step, unevenness = {}, 1.0
    varying = {k: v for k, v in settings.items() if v.dtype.kind in "iuf" and np.ptp(v) > 0}
    numeric = [name for name in model.factors if name in varying and name not in model.categories]
    blends = disjoint_mixtures(settings, numeric)
    for name in dict.fromkeys([*numeric, *(name for mixture in blends for name in mixture)]):
        values = np.unique(settings[name].astype(np.float64))
        distances = np.diff(values)
        distances = distances[distances > SAME_LEVEL * np.ptp(values)]
        if len(distances):
            first_step[name] = float(distances.max()) / 2
            unevenness = min(unevenness, float(distances.min() / distances.max()))
    moves = [
        dict(zip(pair, (h, -h), strict=True))
        for mixture in blends
        for pair in permutations(mixture, 2)
        for h in [min(first_step[name] for name in pair)]
    ]
    alone = [name for name in first_step if not any(name in mixture for mixture in blends)]
    return moves + [{name: sign * first_step[name]} for name in alone for sign in (-1.0, 1.0)], unevenness


def _moved(
    design: DesignResult, moves: list[dict[str, float]], step: float, where: Any
) -> tuple[Settings | None, np.ndarray]:
    """Return the settings beside the supported ones that are new and possible, and the row each is from."""
    p, settings, support = design.problem, design.problem.settings, design.support
    assert settings is not None
    names = {name for move in moves for name in move}
    cells = np.unique(p.groups * p.n_parameter_blocks + p.parameter_blocks, return_inverse=True)[1]
    low = {name: _of_cells(np.minimum, settings[name], cells) for name in names}
    high = {name: _of_cells(np.maximum, settings[name], cells) for name in names}
    if where is not None:
        for name in {name for move in moves if len(move) > 1 for name in move}:
            mixture = {name}.union(*(move for move in moves if len(move) > 1 and name in move))
            low[name] = np.zeros(len(cells))
            high[name] = np.full(len(cells), float(sum(settings[other][0] for other in mixture)))
    columns = {k: [np.asarray(v, dtype=np.float64 if k in names else None)] for k, v in settings.items()}
    for move in moves:
        part = {name: settings[name][support] for name in settings}
        for name, h in move.items():
            part[name] = part[name] + step * h
        for name, column in part.items():
            columns[name].append(column)
    whole = Settings({k: np.concatenate(v) for k, v in columns.items()}, settings.levels)
    origin = np.concatenate([np.arange(settings.n_rows), *(support for _ in moves)])
    inside = np.ones(whole.n_rows, bool)
    keys = []
    for name, column in whole.items():
        if name in names:
            smallest, largest = low[name].min(), high[name].max()
            room = SAME_LEVEL * (largest - smallest)
            inside &= (column >= low[name][origin] - room) & (column <= high[name][origin] + room)
            column = np.round((column - smallest) / (largest - smallest) / SAME_LEVEL)
        keys.append(column)
    first = np.unique(row_codes(keys, whole.n_rows), return_index=True)[1]
    rows = first[(first >= settings.n_rows) & inside[first]]
    if where is not None and len(rows):
        possible = np.zeros(whole.n_rows, bool)
        possible[kept(whole, where)] = True
        rows = rows[possible[rows]]
    return (whole.take(rows) if len(rows) else None), origin[rows]


def _of_cells(extreme: np.ufunc, values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return, for every row, the smallest or largest value in its cell."""
    out = values[np.unique(cells, return_index=True)[1]].astype(np.float64)
    extreme.at(out, cells, values)
    return out[cells]


def _extended(p: DesignProblem, added: Settings, origin: np.ndarray) -> DesignProblem:
    """Return a problem with more candidates, in the groups and parameter blocks of those they are from."""
    assert p.model is not None
    assert p.settings is not None
    both = {name: np.concatenate([p.settings[name], added[name]]) for name in p.settings}
    return DesignProblem(
        np.vstack([p.source.whole(), p.model.features(added)]),
        np.append(p.groups, p.groups[origin]),
        np.append(p.parameter_blocks, p.parameter_blocks[origin]),
        p.budgets,
        names=p.names,
        settings=Settings(both, p.settings.levels),
        group_names=p.group_names,
        parameter_block_names=p.parameter_block_names,
        _model=p.model,
    )


def _new_levels(problem: DesignProblem, design: DesignResult) -> dict[str, list[float]]:
    """Return the levels with weight that the old candidates did not have, by factor."""
    found, settings = {}, design.problem.settings
    assert settings is not None
    assert problem.settings is not None
    negligible = 1e-3  # weights below this fraction of the largest are not listed
    rows = np.flatnonzero(design.weights > negligible * design.weights.max())
    for name, column in settings.items():
        if column.dtype.kind in "iuf":
            old = problem.settings[name]
            new = [
                v
                for v in np.unique(column[rows]).tolist()
                if np.abs(old - v).min() > SAME_LEVEL * np.ptp(column)
            ]
            if new:
                found[name] = new
    return found
