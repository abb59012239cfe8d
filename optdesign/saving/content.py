"""Problems, designs and whole runs as JSON has them.

The content of a file is the problem as it was given (candidates, labels, budgets, names and settings) and, of
a design, its weights, certificate, status and history. Whole runs are their counts and claims, with the
design that gives the bound on their efficiency, or with the additive model whose combinations of levels are
the candidates. Floats are written with enough digits to restore them, and infinities, which JSON does not
have, as text.

Building the problem anew applies all its rules. The certificate, or the rank, log det and efficiency of the
runs, are computed again and compared with those in the file. An upper bound on whole runs is not: its proof
may take any time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.certificate import Certificate, certify
from optdesign.design.result import DesignResult, History, Status
from optdesign.design.run_list import Runs, RunStatus
from optdesign.errors import InputError
from optdesign.factors.formula import Model, fit
from optdesign.problem.large import Part
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runs.main_effects import Bounded, MainEffects
from optdesign.saving.values import (
    array_json,
    array_of,
    labels_json,
    labels_of,
    number_json,
    settings_json,
    settings_of,
)
from optdesign.tables.columns import Settings

RESULT_FACTS = ("method", "iterations", "seconds", "compile_seconds", "tol")
"""Fields of a design that are saved as they are. Files of earlier releases may lack the last two."""

RUN_FACTS = ("rank", "method", "tries", "seconds", "compile_seconds")
"""Fields of whole runs that are saved as they are."""

NOTHING_LEFT = 1 - 2e-6
"""Efficiency of runs with nothing left to gain: the weights they are compared with have a relative gap of at
most 1e-6."""

SCALARS = ("gap", "relative_gap", "efficiency", "g_value", "log_det", "rank", "rounding")


def content_of(design: DesignResult | Runs | DesignProblem) -> dict[str, Any]:
    """Return a problem, a design or whole runs as JSON has them."""
    if isinstance(design, DesignProblem):
        return {"problem": _problem(design), "result": None}
    alone = _alone(design)
    if isinstance(alone, DesignResult):
        return {"problem": _problem(alone.problem), "result": _result(alone)}
    if alone.model is not None:
        return {"model": _model(alone), "runs": _runs(alone)}
    best = None if alone.best is None else _result(alone.best)
    return {"problem": _problem(alone.problem), "result": best, "runs": _runs(alone)}


def restored(content: dict[str, Any], path: Path) -> Any:
    """Return the object of a content."""
    if "model" in content:
        return _restored_levels(content["model"], content["runs"], path)
    problem = _restored_problem(content["problem"])
    saved = content["result"]
    result = None if saved is None else _restored_result(saved, problem, path)
    if "runs" in content:
        return _restored_runs(content["runs"], problem, result, path)
    return problem if result is None else result


def _alone(design: Any) -> Any:
    """Return a design of candidates in memory, without those of its problem that are not."""
    if not isinstance(design.problem, Part):
        return design
    problem = design.problem.alone()
    if isinstance(design, Runs):
        best = design.best and _alone(design.best)
        again = Runs.given(problem, design.counts, best=best)
        return replace(design, problem=problem, best=best, efficiency=again.efficiency, log_det=again.log_det)
    return replace(design, problem=problem, certificate=certify(problem, design.weights))


def _problem(problem: DesignProblem) -> dict[str, Any]:
    grid = problem._grid
    return {
        "candidates": array_json(problem.source.whole()),
        "single": problem.span.is_single,
        "groups": array_json(problem.groups),
        "parameter_blocks": array_json(problem.parameter_blocks),
        "budgets": array_json(problem.budgets),
        "n_parameter_blocks": problem.n_parameter_blocks,
        "names": problem.names,
        "settings": None if problem.settings is None else settings_json(problem.settings),
        "formula": problem.formula,
        "coding": {} if problem.model is None else problem.model.coding,
        "group_names": labels_json(problem.group_names, "group_names"),
        "parameter_block_names": labels_json(problem.parameter_block_names, "parameter_block_names"),
        "grid": None
        if grid is None
        else [grid[0], grid[1], None if grid[2] is None else array_json(grid[2])],
    }


def _restored_problem(saved: dict[str, Any]) -> DesignProblem:
    if saved["grid"] is not None:
        return _restored_grid(saved, *saved["grid"])
    candidates = array_of(saved["candidates"])
    settings = None if saved["settings"] is None else settings_of(saved["settings"])
    return DesignProblem(
        candidates,
        array_of(saved["groups"]),
        array_of(saved["parameter_blocks"]),
        array_of(saved["budgets"]),
        names=saved["names"],
        settings=settings,
        group_names=labels_of(saved["group_names"]),
        parameter_block_names=labels_of(saved["parameter_block_names"]),
        _single=saved["single"],
        _model=_restored_model(saved, settings, candidates),
    )


def _restored_model(saved: dict[str, Any], settings: Settings | None, candidates: np.ndarray) -> Model | None:
    """Return the model that makes the candidates of the settings, or None if it is not certain.

    A formula with functions of all settings, such as splines with knots at quantiles, makes other features
    if candidates were added.
    """
    formula, coding = saved["formula"], saved["coding"]
    if formula is None or settings is None:
        return None
    try:
        whole = Settings({name: np.array(ends) for name, ends in coding.items()})
        model, again = fit(formula, settings, coded=list(coding), whole=whole)
    except ImportError:  # the extra is not installed
        return None
    same = again.shape == candidates.shape
    largest = np.abs(candidates).max(axis=0)
    return model if same and np.all(np.abs(again - candidates) <= 1e-9 * largest) else None


def _restored_grid(
    saved: dict[str, Any], clients: int, arms: int, flat: dict[str, Any] | None
) -> DesignProblem:
    """Return a problem of clients and arms. Raise ValueError unless its labels are those of the file."""
    x = array_of(saved["candidates"])
    rows = np.arange(clients * arms) if flat is None else array_of(flat)
    features = np.zeros((clients * arms, x.shape[1]), np.float32 if saved["single"] else np.float64)
    features[rows] = x
    active = np.isin(np.arange(clients * arms), rows).reshape(clients, arms)
    make = DesignProblem.shared if saved["n_parameter_blocks"] == 1 else DesignProblem.disjoint
    grid = features.reshape(clients, arms, -1)
    problem = make(grid, None if flat is None else active, array_of(saved["budgets"]))
    for name in ("groups", "parameter_blocks"):
        if not np.array_equal(getattr(problem, name), array_of(saved[name])):
            raise ValueError("the labels of the candidates must be those of clients and arms")
    return problem


def _result(result: DesignResult) -> dict[str, Any]:
    return {
        "weights": array_json(result.weights),
        "certificate": {name: number_json(getattr(result.certificate, name)) for name in SCALARS},
        "variances": array_json(result.variances),
        "status": result.status.name,
        "history": [array_json(part) for part in result.history],
        **{name: getattr(result, name) for name in RESULT_FACTS},
    }


def _restored_result(saved: dict[str, Any], problem: DesignProblem, path: Path) -> DesignResult:
    weights = read_only(array_of(saved["weights"]))
    if np.any(weights < 0):
        raise ValueError("weights must not be negative")
    scalars: dict[str, Any] = {
        name: value if name == "rank" else float(value) for name, value in saved["certificate"].items()
    }
    stored = Certificate(variances=read_only(array_of(saved["variances"])), **scalars)
    again = certify(problem, weights)
    if difference := _difference(stored, again):
        remedy = "Solve again."
        raise InputError(f"the certificate in {path}", "must be that of its weights", difference, remedy)
    status, tol = Status[saved["status"]], saved.get("tol")
    if status is Status.CONVERGED and tol is not None and not stored.gap <= tol * stored.rank:
        value = f"it says converged at tol {tol:g}, and the relative gap is {stored.relative_gap:g}"
        raise InputError(f"the status in {path}", "must be that of its weights", value, "Solve again.")
    return DesignResult(
        problem=problem,
        weights=weights,
        certificate=stored,
        status=status,
        history=History(*map(array_of, saved["history"])),
        **{name: saved[name] for name in RESULT_FACTS if name in saved},
    )


def _runs(runs: Runs) -> dict[str, Any]:
    return {
        **{name: array_json(getattr(runs, name)) for name in ("counts", "asked")},
        **{name: number_json(getattr(runs, name)) for name in ("efficiency", "log_det", "bound")},
        **{name: getattr(runs, name) for name in RUN_FACTS},
        "status": runs.status.name,
    }


def _stored_runs(saved: dict[str, Any], problem: DesignProblem, **origin: Any) -> Runs:
    """Return runs as they are in a file. ``origin`` is the model, or the design that gives the bound."""
    return Runs(
        problem=problem,
        counts=read_only(array_of(saved["counts"])),
        asked=read_only(array_of(saved["asked"])),
        efficiency=float(saved["efficiency"]),
        log_det=float(saved["log_det"]),
        bound=float(saved["bound"]),
        status=RunStatus[saved["status"]],
        **origin,
        **{name: saved[name] for name in RUN_FACTS},
    )


def _restored_runs(
    saved: dict[str, Any], problem: DesignProblem, best: DesignResult | None, path: Path
) -> Runs:
    """Return saved runs, if their numbers are those of the counts."""
    stored = _stored_runs(saved, problem, best=best)
    again = Runs.given(problem, stored.counts, best=best)
    _check_claims(stored, again.rank, again.efficiency, again.log_det, path)
    return stored


def _model(runs: Runs) -> dict[str, Any]:
    """Return the additive model of runs, and the numbers of the levels in every distinct run."""
    model: MainEffects = runs.model
    columns: Any = runs.problem.settings
    levels = {name: np.array(values) for name, values in model.factors.items()}
    numbers = [np.argmax(columns[name][:, None] == values, axis=1) for name, values in levels.items()]
    return {
        "factors": {name: array_json(values) for name, values in levels.items()},
        "runs": model.runs,
        "degree": model.degree,
        "settings": array_json(np.column_stack(numbers)),
    }


def _restored_levels(model: dict[str, Any], saved: dict[str, Any], path: Path) -> Runs:
    """Return saved runs of an additive model, if their numbers are those of the counts."""
    factors = {name: list(array_of(levels)) for name, levels in model["factors"].items()}
    rebuilt = MainEffects(factors, model["runs"], degree=model["degree"])
    distinct, counts = array_of(model["settings"]), array_of(saved["counts"])
    settings = np.repeat(distinct, counts, axis=0)
    problem, again = rebuilt.problem(settings)
    if not (np.array_equal(counts, again) and counts.sum() == rebuilt.runs and distinct.min() >= 0):
        raise ValueError("the runs must be distinct and as many as the model has")
    stored = _stored_runs(saved, problem, model=rebuilt)
    _check_claims(stored, rebuilt.n_parameters, *Bounded(rebuilt).judge(settings), path)
    return stored


def _check_claims(stored: Runs, rank: int, efficiency: float, log_det: float, path: Path) -> None:
    """Raise InputError if the claims of runs in a file are not those computed again."""
    scale = max(1.0, abs(stored.log_det))
    if not stored.bound >= stored.log_det - 1e-9 * scale:
        value = f"it is {stored.bound:.12g} with a log det of {stored.log_det:.12g}"
        raise InputError(f"the bound of the runs in {path}", "must be at least their log det", value)
    is_wrong = {
        RunStatus.BOUND: efficiency < NOTHING_LEFT,
        RunStatus.PROVED: not stored.bound <= stored.log_det + 1e-8 * scale,
    }
    if is_wrong.get(stored.status, False):
        value = f"it says {stored.status.value!r} at an efficiency of {efficiency:.9g}"
        raise InputError(f"the status of the runs in {path}", "must be that of the counts", value)
    for name, one, other, size in (
        ("rank", stored.rank, rank, 1.0),
        ("efficiency", stored.efficiency, efficiency, 1.0),
        ("log det", stored.log_det, log_det, scale),
    ):
        if not _near(one, other, size):
            rule = "must be that of the counts"
            value = f"it is {one:.12g} in the file and {other:.12g} for the counts"
            raise InputError(f"the {name} of the runs in {path}", rule, value, "Search again.")


def _difference(stored: Certificate, again: Certificate) -> str:
    """Name the first field in which two certificates differ by more than the round-off of other machines."""
    for name in ("rank", *SCALARS):
        one, other = getattr(stored, name), getattr(again, name)
        scale = 1.0 if name in ("efficiency", "relative_gap") else stored.rank
        if not _near(one, other, scale):
            return f"{name} is {one:.12g} in the file and {other:.12g} for the weights"
    one, other = stored.variances, again.variances
    if one.shape != other.shape or not _near(
        one, other, np.max(other, where=np.isfinite(other), initial=0.0)
    ):
        return "variances in the file are not those of the weights"
    return ""


def _near(one: ArrayLike, other: ArrayLike, scale: float) -> bool:
    """Return True if finite numbers differ by at most 1e-9 * scale, and others not at all."""
    # Largest difference between a stored certificate and one computed again, perhaps on another machine: as a
    # fraction of the rank for gap, G and log det, of 1 for efficiency and relative gap, and of the largest
    # variance.
    agreement = 1e-9
    return bool(np.allclose(one, other, rtol=0.0, atol=agreement * scale))
