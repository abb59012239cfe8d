"""Designs of every kind as one: rows of a model matrix, runs of each, and a region for predictions.

A design is a list of runs, weights, or a table of settings. The region is the candidates of a problem; for a
table it is all combinations of the levels that occur in it, or the rows themselves if their numeric factors
have a constant sum, as mixtures have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.display import CANDIDATE, RUN, VARIANCE, WEIGHT
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.factors.coding import CodedModel, Term, coded_model, in_coding, mixtures, mixtures_of
from optdesign.factors.formula import named
from optdesign.factors.grids import factorial
from optdesign.problem.candidates import Candidates, candidates
from optdesign.problem.inputs import check_order
from optdesign.problem.problem import DesignProblem
from optdesign.runs.runs import Runs, RunTable
from optdesign.saving.files import load
from optdesign.tables.columns import Settings, is_frame, listed, number

AT_RUNS = "the runs are the only candidates, of predictions and efficiencies; region= gives others"

UNLISTED = (
    "the runs are the only candidates, of predictions and of efficiencies other than D; "
    "evaluate(runs.table(), model=...) has all combinations of levels"
)

AS_SAVED = (
    f"the columns {WEIGHT!r} and {VARIANCE!r} are read as those of a saved design; rename one of "
    "them if they are data"
)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A design with its model matrix."""

    features: np.ndarray
    """(m, d), rows that are run."""
    weights: np.ndarray
    """(m,), the number of runs of each row; fractions for weights."""
    blocks: np.ndarray
    """(m,), parameter block of each row."""
    order: np.ndarray | None
    """(n,), the row of every run, in the order of the list; None for fractions."""
    names: tuple[str, ...]
    terms: tuple[Term, ...]
    block_names: tuple[str, ...]
    region: np.ndarray
    """(N, d), features of the region."""
    region_blocks: np.ndarray
    model: CodedModel | None
    settings: Settings | None
    """Settings of the rows."""
    region_settings: Settings | None
    pool: np.ndarray
    """(M, d), features of all candidates that the design is compared with."""
    pool_weights: np.ndarray
    pool_groups: np.ndarray
    pool_blocks: np.ndarray
    efficiency: float | None = None
    """A certified lower bound on the D-efficiency that came with the design."""
    notes: tuple[str, ...] = ()

    @property
    def n_runs(self) -> float:
        """Number of runs, or sum of the weights."""
        return float(self.weights.sum())

    def by_block(self, blocks: np.ndarray) -> list[np.ndarray]:
        """Return the rows of every parameter block, given the block of each row."""
        return [np.flatnonzero(blocks == b) for b in range(len(self.block_names))]


def experiment(
    design: Any, model: str | None, *, runs: float | None, region: Any, coded: bool, alias: str | None = None
) -> Experiment:
    """Return a design of any kind as rows of a model matrix. ``alias`` may name more columns of a table."""
    if isinstance(design, str | Path) and Path(design).suffix.lower() == ".json":
        design = load(design)
    if isinstance(design, Runs | DesignResult):
        weights = design.counts if isinstance(design, Runs) else design.weights
        found = _of_problem(design.problem, weights, model, region, coded)
        known = model is None or model == design.problem.formula
        found = replace(found, efficiency=design.efficiency if known else None)
        if isinstance(design, Runs) and design.unlisted:
            found = replace(found, notes=(*found.notes, UNLISTED))
    elif isinstance(design, tuple) and len(design) == 2 and isinstance(design[0], DesignProblem):
        found = _of_problem(design[0], _nonnegative(design[1], design[0].n_candidates), model, region, coded)
    elif isinstance(design, RunTable):
        own = Settings({k: v for k, v in design.columns.items() if k not in (RUN, CANDIDATE)})
        found = _of_table(own, model, region, coded, alias)
    elif isinstance(design, str | Path | Mapping) or is_frame(design):
        found = _of_table(design, model, region, coded, alias)
    else:
        raise TypeError(
            f"design must be runs, a result, a pair (problem, weights) or a table of settings; got "
            f"{type(design).__name__}. Name the columns of an array: "
            "evaluate({'a': x[:, 0], 'b': x[:, 1]}, model='~ a + b')."
        )
    return found if runs is None else _scaled(found, runs)


def _of_problem(
    problem: DesignProblem, weights: np.ndarray, model: str | None, region: Any, coded: bool
) -> Experiment:
    """Return a design on the candidates of a problem."""
    formula = model or problem.formula
    fitted, x = None, problem.source.whole()
    if formula is not None:
        if problem.settings is None:
            value = "the candidates are features without settings"
            remedy = "Make them with candidates(...), or leave the model out to evaluate the features."
            raise InputError("model", "needs the settings of the factors", value, remedy)
        if problem.model is not None and formula == problem.formula:
            fitted, x = in_coding(problem.model, x, problem.settings, coded=coded)
        else:
            fitted, x = coded_model(formula, problem.settings, coded=coded)
    support = np.flatnonzero(weights)
    by_group = support[np.argsort(problem.groups[support], kind="stable")]
    names = (
        fitted.names if fitted is not None else problem.names or tuple(f"x{j}" for j in range(problem.dim))
    )
    terms = tuple(Term(name, (j,), False) for j, name in enumerate(names)) if fitted is None else fitted.terms
    block_names = problem.parameter_block_names or range(problem.n_parameter_blocks)
    region_x, region_settings = _region(region, fitted, x, problem.settings)
    one = problem.n_parameter_blocks == 1
    if region is not None and not one:
        value = f"there are {problem.n_parameter_blocks}"
        remedy = "Predictions are averaged over the candidates."
        raise InputError("region", "must be left out for several parameter blocks", value, remedy)
    return Experiment(
        features=x[by_group],
        weights=weights[by_group].astype(np.float64),
        blocks=problem.parameter_blocks[by_group],
        order=_order(weights[by_group]),
        names=tuple(names),
        terms=terms,
        block_names=tuple(map(str, block_names)),
        region=region_x,
        region_blocks=problem.parameter_blocks if not one else np.zeros(len(region_x), np.int64),
        model=fitted,
        settings=None if problem.settings is None else problem.settings.take(by_group),
        region_settings=region_settings,
        pool=x,
        pool_weights=weights.astype(np.float64),
        pool_groups=problem.groups,
        pool_blocks=problem.parameter_blocks,
        notes=() if fitted is None else fitted.notes,
    )


def _of_table(table: Any, model: str | None, region: Any, coded: bool, alias: str | None) -> Experiment:
    """Return a design that is a table of settings, one row a run; or a saved design, with weights."""
    if model is None:
        remedy = "Write a formula of its columns: model='~ temp * cat'."
        raise InputError("model", "must be given with a table of settings", "got none", remedy)
    made = candidates(Settings(table) if isinstance(table, Mapping) else table, model)
    settings, n = made.settings, len(made)
    is_saved = {WEIGHT, VARIANCE} <= set(settings) - set(made.model.factors)
    weights = _nonnegative(settings[WEIGHT], n) if is_saved else np.ones(n)
    names = {*_factors(made), *(named(alias) if alias else ())} & set(settings)
    used = Settings(
        {name: settings[name] for name in settings if name in names},
        {name: own for name, own in settings.levels.items() if name in names},
    )
    notes: tuple[str, ...] = (AS_SAVED,) if is_saved else ()
    if region is None:
        whole, notes = (used, notes) if is_saved else _combinations(used, made.model.categories)
    else:
        whole = region.settings if isinstance(region, Candidates) else candidates(region, model).settings
    fitted, x = coded_model(model, whole, coded=coded)
    rows = np.flatnonzero(weights)
    features = fitted.model.features(used.take(rows))
    zeros = np.zeros(len(x), np.int64)
    return Experiment(
        features=features,
        weights=weights[rows],
        blocks=np.zeros(len(rows), np.int64),
        order=_order(weights[rows]),
        names=fitted.names,
        terms=fitted.terms,
        block_names=("0",),
        region=x,
        region_blocks=zeros,
        model=fitted,
        settings=used.take(rows),
        region_settings=whole,
        pool=np.vstack([x, features]),
        pool_weights=np.concatenate([np.zeros(len(x)), weights[rows]]),
        pool_groups=np.zeros(len(x) + len(rows), np.int64),
        pool_blocks=np.zeros(len(x) + len(rows), np.int64),
        notes=(*notes, *made.doubtful_levels, *fitted.notes),
    )


def _order(weights: np.ndarray) -> np.ndarray | None:
    """Return the row of every run if the weights are whole numbers of at most 1e7 runs, and None if not."""
    is_whole = np.all(weights == np.floor(weights)) and weights.sum() <= 1e7
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64)) if is_whole else None


def common_region(paths: list[Path], model: str) -> Settings:
    """Return all combinations of the levels of several lists, or their rows if these are no region."""
    tables = [candidates(path, model) for path in paths]
    settings = [table.settings for table in tables]
    factors = [name for name in _factors(tables[0]) if all(name in one for one in settings)]
    levels = {
        name: tuple(dict.fromkeys(level for one in settings for level in one.levels[name]))
        for name in factors
        if all(name in one.levels for one in settings)
    }
    whole = {name: np.concatenate([one[name] for one in settings]) for name in factors}
    return _combinations(Settings(whole, levels), tables[0].model.categories)[0]


def _factors(table: Candidates) -> list[str]:
    """Return the factors of a model, and the other columns that are components of their mixtures."""
    model, settings = table.model, table.settings
    numeric = [k for k in model.factors if settings[k].dtype.kind in "iuf" and k not in model.categories]
    components = (name for mixture in mixtures_of(settings, numeric) for name in mixture)
    return list(dict.fromkeys([*model.factors, *components]))


def _combinations(
    settings: Settings, categories: set[str], most: int = 20_000
) -> tuple[Settings, tuple[str, ...]]:
    """Return all combinations of the levels of a table, or its rows if these are no region of the factors.

    The rows are returned, too, if there are more than ``most`` combinations.
    """
    levels = {name: number(settings[name], settings.levels.get(name)).names for name in settings}
    numeric = [name for name in settings if settings[name].dtype.kind in "iuf" and name not in categories]
    blends = mixtures({name: settings[name] for name in numeric})
    if mixture := list(dict.fromkeys(name for components in blends for name in components)):
        which = "the numeric factors have" if set(mixture) == set(numeric) else f"{listed(mixture)} have"
        return settings, (f"{which} a constant sum, so {AT_RUNS}",)
    if prod(map(len, levels.values())) > most:
        return settings, (f"the levels have more than {most} combinations, so {AT_RUNS}",)
    return factorial(levels), ()


def _region(
    region: Any, fitted: CodedModel | None, x: np.ndarray, settings: Settings | None
) -> tuple[np.ndarray, Settings | None]:
    """Return the features and settings of a region, which are those of the candidates if none is given."""
    if region is None:
        return x, settings
    if fitted is not None:
        own = region if isinstance(region, Candidates) else candidates(region, fitted.formula)
        return fitted.model.features(own.settings), own.settings
    rows = np.asarray(region, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != x.shape[1] or not len(rows) or not np.all(np.isfinite(rows)):
        rule = f"must be finite features with {x.shape[1]} columns, because the design has no formula"
        raise InputError("region", rule, f"got shape {rows.shape}", "Stack one row for each prediction.")
    return rows, None


def _nonnegative(weights: ArrayLike, n: int) -> np.ndarray:
    """Return weights as floats. Raise InputError unless they are n, none negative and one positive."""
    check_order(weights, "weights")
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.all(np.isfinite(w)) or w.min() < 0 or not w.any():
        rule = f"must be {n} finite numbers of at least 0 with a positive sum"
        value = f"got shape {w.shape}, smallest {w.min(initial=np.inf):g}"
        raise InputError("weights", rule, value, "Give one weight for each candidate.")
    return w


def _scaled(found: Experiment, runs: float) -> Experiment:
    """Return the same design with another number of runs, in the same proportions."""
    if not np.isfinite(runs) or not runs > 0:
        remedy = "Leave it out to keep the weights."
        raise InputError("runs", "must be a positive number", f"got {runs!r}", remedy)
    factor = runs / found.n_runs
    if factor == 1:
        return found
    return replace(found, weights=factor * found.weights, order=None)
