"""Whole runs of many factors, without a list of candidates: exchange of single levels.

Factor j has levels l, each with a vector f_j(l): the powers of a number, or the contrasts of a category. A
run sets every factor to a level and informs the parameters of the additive model

    x = (1, f_1(l_1), ..., f_k(l_k)),

so there are as many candidates as combinations of levels, too many to list. The search changes one level of
one run at a time (:mod:`optdesign.runs.levels`).

*The bound.* Let M_j be the moments of (1, f_j) under the marginal design of factor j. By Fischer's inequality
for the covariance of x, with D = 1 + sum of the p_j parameters,

    log det(M / n) <= sum_j log det M_j <= sum_j F_j*,

with F_j* the D-optimum of factor j alone, a problem with as many candidates as levels. Independent levels
at the marginal optima attain it. So the bound holds against all designs on all combinations of these levels,
and it is sharp.

*Round-off.* The search and the bound use the coordinates of :mod:`optdesign.runs.marginals`, which span the
same functions of the levels exactly and in which the bound is zero up to the gaps. An entry has a relative
error of at most gamma(8), so the moments of a run list have an error of at most gamma(20) times their trace,
and their eigenvalues are lowered by that and by the error of their computation. The determinant in the units
of the factors follows from the exact change of basis. Powers in these units, such as 2022^3, are written to
``features`` but nothing is computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from numbers import Integral
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.numbers.roundoff import gamma
from optdesign.problem.inputs import LARGEST, SMALLEST
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.problem.span import Peaks, Span
from optdesign.runs.grid import Levels
from optdesign.runs.hadamard import orthogonal_runs
from optdesign.runs.levels import LevelMoves
from optdesign.runs.marginals import Marginal, categories, numbers
from optdesign.runs.search import GAIN, Best, Clock, Try, best_of, iterate, most_work, stream
from optdesign.tables.values import refuse_mask


@dataclass(frozen=True, eq=False, repr=False)
class MainEffects:
    """State an additive model over factors and a number of runs; all combinations of levels are candidates.

    Parameters
    ----------
    factors : mapping of str to levels
        Levels of every factor. A factor with numbers has an effect for every power up to ``degree``, in its
        own units. A factor with text has an effect for every level except the last, whose effect is the
        negative sum of the others.
    runs : int
        Number of runs.
    degree : int, default 1
        Largest power of the numeric factors. A factor of k levels has no power above k - 1.

    Attributes
    ----------
    factors : mapping of str to tuple
        Levels of every factor.
    names : tuple of str
        Names of the parameters.
    tables : tuple of ndarray
        Features of the levels of every factor, of shape (levels, parameters of the factor).

    See Also
    --------
    optdesign.exact : Find the runs.
    optdesign.candidates : List candidates for models with interactions.

    Notes
    -----
    :func:`optdesign.candidates` codes categories by differences from the first level, and so has another log
    det for the same runs. Efficiencies and the best runs do not depend on the coding.

    The efficiency, rank and log det of the runs are those of the exact powers of the levels as floats. The
    features of ``runs.problem`` are these powers rounded to doubles. If the levels are far from zero, such as
    years, the rounded powers can have a lower rank; subtract a constant from the levels to avoid this.

    Examples
    --------
    >>> import optdesign as od
    >>> model = od.MainEffects({"a": [-1, 1], "b": [-1, 1], "c": [-1, 1]}, runs=4)
    >>> model
    MainEffects(3 factors, 8 combinations, 4 parameters, 4 runs)
    >>> round(od.exact(model).efficiency, 9)
    1.0
    """

    factors: Mapping[str, tuple[Any, ...]]
    runs: int
    degree: int
    names: tuple[str, ...] = field(repr=False)
    tables: tuple[np.ndarray, ...] = field(repr=False)

    def __init__(self, factors: Mapping[str, Sequence[Any]], runs: int, *, degree: int = 1) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise TypeError(
                f"factors must map names to levels; got {type(factors).__name__}. "
                'For instance: {"temp": [20, 40], "cat": ["a", "b"]}.'
            )
        _check_whole(runs, "runs", 1)
        _check_whole(degree, "degree", 1)
        for name, values in factors.items():
            refuse_mask(values, f"levels of {name!r}")
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise TypeError(f"levels of {name!r} must be a list; got {values!r}. For instance: [-1, 1].")
        levels = {str(name): tuple(values) for name, values in factors.items()}
        if len(levels) < len(factors):
            value = f"got {', '.join(map(repr, factors))}"
            raise InputError("factors", "must have names that differ as text", value, "Rename one of them.")
        tables, names = [], ["1"]
        for name, values in levels.items():
            table, columns = _effects(name, values, int(degree))
            tables.append(read_only(table))
            names.extend(columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            rule = "must give parameters with names that differ"
            value = f"{twice!r} occurs twice ('1' is the intercept)"
            raise InputError("factors", rule, value, "Rename a factor.")
        if runs < len(names):
            rule = f"must be enough to keep the rank: {len(names)} parameters need at least {len(names)} runs"
            raise InputError("runs", rule, f"{runs} were given", "Raise runs, or drop factors or levels.")
        for key, attribute in {
            "factors": levels, "runs": int(runs), "degree": int(degree), "names": tuple(names),
            "tables": tuple(tables),
        }.items():  # fmt: skip
            object.__setattr__(self, key, attribute)

    @property
    def n_parameters(self) -> int:
        """Number D of parameters, with the intercept."""
        return len(self.names)

    @property
    def n_candidates(self) -> int:
        """Number of combinations of levels."""
        return math.prod(len(values) for values in self.factors.values())

    def features(self, settings: np.ndarray) -> np.ndarray:
        """Return the features of runs.

        Parameters
        ----------
        settings : ndarray of int of shape (runs, factors)
            Number of the level of every factor in every run.

        Returns
        -------
        ndarray of shape (runs, n_parameters)
            Features.
        """
        parts = [table[settings[:, j]] for j, table in enumerate(self.tables)]
        return np.column_stack([np.ones(len(settings)), *parts])

    def problem(self, settings: np.ndarray) -> tuple[DesignProblem, np.ndarray]:
        """Return the distinct runs as a problem, and the number of repetitions of each.

        Parameters
        ----------
        settings : ndarray of int of shape (runs, factors)
            Number of the level of every factor in every run.

        Returns
        -------
        problem : DesignProblem
            Distinct runs as candidates, with their settings.
        counts : ndarray of int
            Number of repetitions of every candidate.
        """
        rows, counts = np.unique(settings, axis=0, return_counts=True)
        columns = {
            name: np.array(values)[rows[:, j]] for j, (name, values) in enumerate(self.factors.items())
        }
        problem = _DistinctRuns(
            self.features(rows), budgets=float(self.runs), names=self.names, settings=columns
        )
        return problem, counts

    def __repr__(self) -> str:
        return (
            f"MainEffects({len(self.factors)} factors, {self.n_candidates} combinations, "
            f"{self.n_parameters} parameters, {self.runs} runs)"
        )


class _DistinctRuns(DesignProblem):
    """Distinct runs as candidates.

    The rank of the runs is known. The rank decision of the rounded features takes longer than a search with a
    time limit, if parameters are many, so it is made when the span is first used.
    """

    _undecided: tuple[Peaks, float]

    def _decide_rank(self, peaks: Peaks, rtol: float) -> None:
        self.__dict__["_undecided"] = peaks, rtol

    @cached_property
    def span(self) -> Span:
        """Bases and ranks of the parameter blocks."""
        super()._decide_rank(*self._undecided)
        return self.__dict__["span"]


def _check_whole(value: object, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(name, f"must be a whole number of at least {least}", f"got {value!r}")


def _effects(name: str, values: tuple[Any, ...], degree: int) -> tuple[np.ndarray, list[str]]:
    """Return f_j of the levels of a factor, and the names of its entries."""
    if len(set(values)) < max(2, len(values)):
        rule = "must have two levels or more, all different"
        remedy = "Drop the factor, or the levels that repeat."
        raise InputError("factors", rule, f"{name!r} has {list(values)}", remedy)
    if _are_text(values):
        table = np.vstack([np.eye(len(values) - 1), -np.ones(len(values) - 1)])
        return table, [f"{name}[{value}]" for value in values[:-1]]
    levels = _floats(name, values)
    if len(set(levels)) < len(levels):
        rule = "must differ in double precision"
        raise InputError("levels", rule, f"{name!r} has {list(values)}", "Subtract a constant.")
    powers = range(1, min(degree, len(values) - 1) + 1)
    names = [name if k == 1 else f"{name}^{k}" for k in powers]
    largest = max(abs(Fraction(level)) for level in levels)
    for k in powers:
        if not SMALLEST <= largest**k <= LARGEST:
            rule = f"must have powers between {SMALLEST:g} and {LARGEST:g} in size"
            value = f"{name!r} has levels up to {float(largest):g} and power {k}"
            raise InputError("levels", rule, value, "Change the unit, or lower degree.")
    return np.array([[float(Fraction(level) ** k) for k in powers] for level in levels]), names


def _are_text(values: tuple[Any, ...]) -> bool:
    """Return True if the levels are those of a category."""
    return all(isinstance(value, str) for value in values)


def _floats(name: str, values: tuple[Any, ...]) -> list[float]:
    """Return numeric levels as floats."""
    try:
        levels = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.array([np.nan])
    if levels.shape != (len(values),) or not np.isfinite(levels).all():
        raise InputError(
            "levels", "must be all numbers or all text", f"{name!r} has {list(values)}", "Convert them."
        )
    return [float(level) for level in levels]


def _marginal(levels: tuple[float, ...] | None, size: int, degree: int) -> Marginal:
    """Return the optimal design of a factor alone; it is a category if it has no numeric levels."""
    return categories(size) if levels is None else numbers(levels, degree)


class Bounded:
    """A model in coordinates in which independent levels at the marginal optima have unit information."""

    def __init__(self, model: MainEffects) -> None:
        alike = cache(_marginal)  # factors are mostly alike
        factors = zip(model.factors.items(), model.tables, strict=True)
        self.marginals = [
            alike(None if _are_text(levels) else tuple(_floats(name, levels)), *table.shape)
            for (name, levels), table in factors
        ]
        self.log_scale = sum(own.log_scale for own in self.marginals)
        """Logarithm of the factor by which the coordinates multiply det M."""
        self.slack = sum(own.slack for own in self.marginals)
        """Bound on sum_j F_j* in these coordinates: zero up to the gaps."""
        sizes, widths = np.transpose([own.values.shape for own in self.marginals])
        tables = [np.ones(1), *(column for own in self.marginals for column in own.values.T)]
        depends = np.repeat(np.eye(len(widths), dtype=bool), widths, axis=1)
        depends = np.column_stack([np.zeros(len(widths), bool), depends])
        self.levels = Levels.of(tables, depends, sizes, np.zeros(0, bool))
        """Rows of all combinations of levels."""

    def judge(self, settings: np.ndarray) -> tuple[float, float]:
        """Return a lower bound on the D-efficiency of runs, and their log det in the units of the factors.

        The bound includes round-off.
        """
        z = self.levels.rows(settings)
        n, d = z.shape
        values = np.linalg.eigvalsh(z.T @ z / n)
        log_det = float(np.sum(np.log(np.maximum(values, 0.0)))) if values[0] > 0 else -math.inf
        # Errors of entries, products, sums and eigenvalues.
        low = values - gamma(2 * n + 20 * d + 40) * float(values.sum())
        if low[0] <= 0:
            return 0.0, log_det + d * math.log(n) - self.log_scale
        logs = np.log(low)
        log_efficiency = (float(logs.sum()) - self.slack) / d
        log_efficiency -= gamma(d + 16) * (float(np.abs(logs).sum()) + self.slack) / d
        efficiency = min(1.0, math.exp(log_efficiency) * (1 - gamma(8)))
        return efficiency, log_det + d * math.log(n) - self.log_scale


def level_moves(bounded: Bounded, runs: int) -> LevelMoves:
    """Return changes of levels of runs that are not listed."""
    reach = bounded.levels.rank * math.log(runs) + bounded.slack
    return LevelMoves(bounded.levels, runs, reach, [own.share for own in bounded.marginals])


def search_levels(
    model: MainEffects, seed: int, tries: int | None, n_jobs: int, watch: Clock
) -> tuple[Best, float, float]:
    """Return the best settings found, their efficiency and their log det."""
    bounded = Bounded(model)
    moves = level_moves(bounded, model.runs)
    is_two_level = np.all(bounded.levels.sizes == 2)
    orthogonal = orthogonal_runs(model.runs, len(model.factors)) if is_two_level else None
    most = most_work(watch)

    def run(number: int) -> Try:
        start = None
        if orthogonal is not None and number == 0:
            start = moves.state((orthogonal > 0).astype(np.int64))
        return iterate(moves, stream(seed, number), watch, is_optimal=is_optimal, start=start, most=most)

    def is_optimal(settings: np.ndarray) -> bool:
        return bounded.judge(settings)[0] >= 1 - GAIN

    best = best_of(run, tries, n_jobs, watch)
    return best, *bounded.judge(best.best.found)
