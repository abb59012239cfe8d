"""Whole runs of many factors, without a list of candidates: exchange of single levels.

Factor j has levels l, each with a vector f_j(l): the powers of a number, or the contrasts of a category. A
run sets every factor to a level and informs the parameters of the additive model

    x = (1, f_1(l_1), ..., f_k(l_k)),

so there are as many candidates as combinations of levels, too many to list. Changing one level of one run
moves its x by d, and multiplies det by (1 + a + 2 b + c) (1 - a) + (a + b)^2, with a = x'Vx, b = x'Vd,
c = d'Vd: all levels of a factor are tried at the cost of a few products (Meyer and Nachtsheim, Technometrics
37, 1995).

*The bound.* Let M_j be the moments of (1, f_j) under the marginal design of factor j. By Fischer's inequality
for the covariance of x, with D = 1 + sum of the p_j parameters,

    log det(M / n) <= sum_j log det M_j <= sum_j F_j*,

where F_j* is the D-optimum of factor j alone, a problem with as many candidates as levels. Independent levels
at the marginal optima attain it. So the bound holds against all designs, and it is sharp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from optdesign._kernel import kernel
from optdesign.compensated import gamma
from optdesign.exchange import REFRESH, SAFE, SLICE, refresh
from optdesign.problem import DesignProblem
from optdesign.solve import solve
from optdesign.source import read_only
from optdesign.tries import GAIN, Best, Clock, Try, best_of

RIDGE = 1e-3
"""Part of the identity that is added while a start is not of full rank."""

STARTS = 100
"""Starts that may fail to have full rank before a try is given up."""

PATIENCE = 500
"""Kicks in a row without a gain that end a try."""

WORK = 4e8
"""Multiplications that those kicks may cost: fewer kicks where they are dear."""

KICK = 4
"""Levels that a kick changes."""

OPTIMAL = 1e-10
"""Relative gap to which the design of a single factor is solved."""


@dataclass(frozen=True, eq=False, repr=False)
class MainEffects:
    """An additive model over factors and a number of runs; all combinations of levels are candidates.

    Parameters
    ----------
    factors : mapping of names to levels
        Numbers have an effect for every power up to ``degree``, in their own units; levels that are text are
        categories, with an effect for all of them but the last, whose is the negative sum of the others.
    runs : int
        Number of runs.
    degree : int
        Largest power of the numeric factors; a factor of k levels has no power above k - 1.

    Notes
    -----
    :func:`optdesign.candidates` codes categories otherwise, by differences from the first level, and so has
    another log det for the same runs. Efficiencies, and which runs are best, do not depend on the coding.

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
    """Of the parameters."""
    tables: tuple[np.ndarray, ...] = field(repr=False)
    """By factor, f_j of its levels, (levels, p_j)."""

    def __init__(self, factors: Mapping[str, Sequence[Any]], runs: int, *, degree: int = 1) -> None:
        if not isinstance(factors, Mapping) or not factors:
            raise TypeError(
                f"factors must map names to levels; got {type(factors).__name__}. "
                'For instance: {"temp": [20, 40], "cat": ["a", "b"]}.'
            )
        _check_whole(runs, "runs", 1)
        _check_whole(degree, "degree", 1)
        levels = {str(name): tuple(values) for name, values in factors.items()}
        tables, names = [], ["1"]
        for name, values in levels.items():
            table, columns = _effects(name, values, int(degree))
            tables.append(read_only(table))
            names.extend(columns)
        if runs < len(names):
            raise ValueError(
                f"runs must be enough to keep the rank: {len(names)} parameters need at least {len(names)} "
                f"runs; {runs} were given. Raise runs, or drop factors or levels."
            )
        for key, value in {
            "factors": levels, "runs": int(runs), "degree": int(degree), "names": tuple(names),
            "tables": tuple(tables),
        }.items():  # fmt: skip
            object.__setattr__(self, key, value)

    @property
    def n_parameters(self) -> int:
        """D, the number of parameters with the intercept."""
        return len(self.names)

    @property
    def n_candidates(self) -> int:
        """Number of combinations of levels."""
        return math.prod(len(values) for values in self.factors.values())

    def features(self, settings: np.ndarray) -> np.ndarray:
        """x of runs whose levels are given by number, (runs, factors)."""
        parts = [table[settings[:, j]] for j, table in enumerate(self.tables)]
        return np.column_stack([np.ones(len(settings)), *parts])

    def problem(self, settings: np.ndarray) -> tuple[DesignProblem, np.ndarray]:
        """The different runs as candidates, with their settings, and how often each is run."""
        rows, counts = np.unique(settings, axis=0, return_counts=True)
        columns = {
            name: np.array(values)[rows[:, j]] for j, (name, values) in enumerate(self.factors.items())
        }
        problem = DesignProblem(
            self.features(rows), budgets=float(self.runs), names=self.names, settings=columns
        )
        return problem, counts

    def __repr__(self) -> str:
        return (
            f"MainEffects({len(self.factors)} factors, {self.n_candidates} combinations, "
            f"{self.n_parameters} parameters, {self.runs} runs)"
        )


def _check_whole(value: object, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _effects(name: str, values: tuple[Any, ...], degree: int) -> tuple[np.ndarray, list[str]]:
    """f_j of the levels of a factor, and the names of its entries."""
    if len(set(values)) < max(2, len(values)):
        raise ValueError(
            f"factors must have two levels or more, all different; {name!r} has {list(values)}. "
            "Drop the factor, or the levels that repeat."
        )
    if all(isinstance(value, str) for value in values):
        table = np.vstack([np.eye(len(values) - 1), -np.ones(len(values) - 1)])
        return table, [f"{name}[{value}]" for value in values[:-1]]
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"levels must be all numbers or all text; {name!r} has {list(values)}. Convert them."
        )
    powers = range(1, min(degree, len(values) - 1) + 1)
    return np.column_stack([numbers**k for k in powers]), [name if k == 1 else f"{name}^{k}" for k in powers]


class Bounded:
    """A model in coordinates in which independent levels at the marginal optima have unit information."""

    def __init__(self, model: MainEffects) -> None:
        widths = [table.shape[1] for table in model.tables]
        self.first = np.concatenate([[1], 1 + np.cumsum(widths)])
        self.sizes = np.array([len(table) for table in model.tables])
        self.values = np.zeros((len(widths), int(self.sizes.max()), max(widths)))
        self.log_scale = 0.0
        """log of what the coordinates multiply det M by."""
        self.slack = 0.0
        """Bound on sum_j F_j* in these coordinates: zero but for the gaps."""
        self.marginals = []
        known: dict[bytes, tuple[np.ndarray, np.ndarray, float, float]] = {}
        for j, table in enumerate(model.tables):
            key = table.tobytes() + bytes([table.shape[1] % 256])
            if key not in known:  # factors are mostly alike
                known[key] = _marginal(table)
            share, values, log_scale, slack = known[key]
            self.values[j, : len(table), : widths[j]] = values
            self.log_scale += log_scale
            self.slack += slack
            self.marginals.append(share)

    def coordinates(self, settings: np.ndarray) -> np.ndarray:
        """Rows of the runs, and below them those of a ridge."""
        d = int(self.first[-1])
        z = np.zeros((len(settings) + d, d))
        z[: len(settings), 0] = 1.0
        for j in range(len(self.sizes)):
            width = self.first[j + 1] - self.first[j]
            z[: len(settings), self.first[j] : self.first[j + 1]] = self.values[j, settings[:, j], :width]
        z[len(settings) :] = math.sqrt(RIDGE) * np.eye(d)
        return z

    def efficiency(self, settings: np.ndarray) -> float:
        """Lower bound on the D-efficiency of runs, rounding included."""
        n, d = len(settings), int(self.first[-1])
        z = self.coordinates(settings)[:n]
        values = np.linalg.eigvalsh(z.T @ z / n)
        # Coordinates have an error of the conditions of single factors, which are a handful of levels.
        values = values - gamma(8 * (n + 10 * d)) * values.sum()
        if values[0] <= 0:
            return 0.0
        return min(1.0, math.exp((float(np.log(values).sum()) - self.slack) / d) * (1 - gamma(8)))


def _marginal(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """The D-optimum of a factor alone: shares of its levels, white coordinates, log scale, slack."""
    x = np.column_stack([np.ones(len(table)), table])
    optimum = solve(DesignProblem(x), tol=OPTIMAL)
    share = optimum.weights / optimum.weights.sum()
    centred = table - share @ table
    factor = np.linalg.cholesky((centred.T * share) @ centred)
    log_scale = -2 * float(np.log(np.diag(factor)).sum())
    slack = x.shape[1] * math.log(optimum.g_value / x.shape[1])
    return share, np.linalg.solve(factor, centred.T).T, log_scale, slack


def search_levels(
    model: MainEffects, seed: int, tries: int | None, n_jobs: int, watch: Clock
) -> tuple[Best, float]:
    """The best settings found, and their efficiency."""
    bounded = Bounded(model)
    d, n, k = model.n_parameters, model.runs, len(model.tables)
    cost = float(n) * (d * d + float((bounded.sizes * np.diff(bounded.first) ** 2).sum()))
    patience = int(np.clip(WORK / cost, 10, PATIENCE))
    bound = d * math.log(n) + bounded.slack
    batch = int(np.clip(SLICE / (10 * cost), 1, 100))

    def run(number: int) -> Try:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        for _ in range(STARTS):
            settings = np.column_stack(
                [rng.choice(len(share), size=n, p=share) for share in bounded.marginals]
            ).astype(np.int64)
            z = bounded.coordinates(settings)
            weights, inverse = np.ones(n + d), np.zeros((1, d, d))
            fixed = bounded.values, bounded.sizes, bounded.first
            climb_levels(*fixed, settings, z, weights, inverse)
            weights[n:] = 0.0
            value = climb_levels(*fixed, settings, z, weights, inverse)
            if value > -np.inf or watch.stopped():
                break
        idle = 0
        while -np.inf < value < bound - GAIN and idle < patience and not watch.stopped():
            new = kick_levels(*fixed, settings, z, weights, inverse, value, rng.random((batch, 3 * KICK)))
            idle = 0 if new > value + GAIN else idle + batch
            value = new
        return Try(value, settings)

    best = best_of(run, tries, n_jobs, watch, bound)
    if best.value == -np.inf:
        raise ValueError(
            f"runs must be enough for the search to find full rank; {n} runs and {k} factors gave none. "
            "Raise runs or tries."
        )
    return best, bounded.efficiency(best.found)


@kernel
def _refreshed(z, weights, inverse):
    """Overwrite inverse with that of the rows' information. Returns log det, -inf if they lose rank."""
    ranks = np.array([z.shape[1]])
    return refresh(z, np.zeros(len(z), np.int64), ranks, weights, inverse, np.empty(len(z)))


@kernel
def _rank_one(v, x, sign):
    """Update the inverse v for x x' added (sign 1) or taken away (sign -1). Overwrites v."""
    d = len(x)
    y = np.zeros(d)
    own = 0.0
    for i in range(d):
        for j in range(d):
            y[i] += v[i, j] * x[j]
        own += y[i] * x[i]
    scale = sign / (1.0 + sign * own)
    for i in range(d):
        c = scale * y[i]
        for j in range(d):
            v[i, j] -= c * y[j]


@kernel
def _set(values, first, j, level, row, settings, z, inverse):
    """Set factor j of a run to a level. Overwrites settings, z and inverse."""
    old = z[row].copy()
    for i in range(first[j + 1] - first[j]):
        z[row, first[j] + i] = values[j, level, i]
    _rank_one(inverse[0], z[row], 1.0)
    _rank_one(inverse[0], old, -1.0)
    settings[row, j] = level


@kernel
def _ratio(values, first, j, old, new, y, a, v):
    """The factor of det when factor j of a run goes from one level to another; y = V x, a = x'Vx."""
    lo = first[j]
    width = first[j + 1] - lo
    b, c = 0.0, 0.0
    for i in range(width):
        step = values[j, new, i] - values[j, old, i]
        b += y[lo + i] * step
        for k in range(width):
            c += step * v[lo + i, lo + k] * (values[j, new, k] - values[j, old, k])
    return (1.0 + a + 2.0 * b + c) * (1.0 - a) + (a + b) * (a + b)


@kernel
def climb_levels(values, sizes, first, settings, z, weights, inverse):
    """Change single levels until nothing gains. Overwrites settings, z and inverse.

    Returns log det of what is found; -inf if the settings given lose rank.
    """
    n, factors = settings.shape
    d = z.shape[1]
    total = _refreshed(z, weights, inverse)
    if total == -np.inf:
        return total
    v = inverse[0]
    y = np.empty(d)
    done, idle, row = 0, 0, 0
    while idle < n:
        idle += 1
        stale = True
        for j in range(factors):
            if stale:
                a = 0.0
                for i in range(d):
                    y[i] = 0.0
                    for k in range(d):
                        y[i] += v[i, k] * z[row, k]
                    a += y[i] * z[row, i]
                stale = False
            best, gain = -1, 1.0 + GAIN
            for level in range(sizes[j]):
                if level != settings[row, j]:
                    ratio = _ratio(values, first, j, settings[row, j], level, y, a, v)
                    if ratio > gain:
                        best, gain = level, ratio
            if best >= 0:
                _set(values, first, j, best, row, settings, z, inverse)
                stale = True
                idle = 0
                done += 1
                if done % REFRESH == 0:
                    _refreshed(z, weights, inverse)
        row = (row + 1) % n
    return _refreshed(z, weights, inverse)


@kernel
def kick_levels(values, sizes, first, settings, z, weights, inverse, best, draws):
    """Change some levels at random and climb, once for every row of draws, from settings of log det best.

    Overwrites settings with the best found, and z and inverse with what belongs to them. Returns their log
    det.
    """
    n, factors = settings.shape
    kept, kept_z, kept_inverse = settings.copy(), z.copy(), inverse.copy()
    y = np.empty(z.shape[1])
    for t in range(len(draws)):
        for m in range(0, draws.shape[1], 3):
            row, j = np.int64(draws[t, m] * n), np.int64(draws[t, m + 1] * factors)
            level = np.int64(draws[t, m + 2] * sizes[j])
            a = 0.0
            for i in range(z.shape[1]):
                y[i] = 0.0
                for k in range(z.shape[1]):
                    y[i] += inverse[0, i, k] * z[row, k]
                a += y[i] * z[row, i]
            if _ratio(values, first, j, settings[row, j], level, y, a, inverse[0]) > SAFE:
                _set(values, first, j, level, row, settings, z, inverse)
        value = climb_levels(values, sizes, first, settings, z, weights, inverse)
        if value >= best:
            best = value
            _copy(settings, z, inverse, kept, kept_z, kept_inverse)
        else:
            _copy(kept, kept_z, kept_inverse, settings, z, inverse)
    return best


@kernel
def _copy(settings, z, inverse, to_settings, to_z, to_inverse):
    """Overwrite settings, rows and the inverse with others."""
    for n in range(len(settings)):
        for j in range(settings.shape[1]):
            to_settings[n, j] = settings[n, j]
    for n in range(len(z)):
        for j in range(z.shape[1]):
            to_z[n, j] = z[n, j]
    for k in range(inverse.shape[1]):
        for j in range(inverse.shape[2]):
            to_inverse[0, k, j] = inverse[0, k, j]
