"""Problems, designs and whole runs in JSON, restored to the last bit.

A file has a format, a version, a checksum, and the content: the problem as it was given (candidates, labels,
budgets, names and settings) and, of a design, its weights, certificate, status and history. Whole runs are
their counts and claims, with the design that gives the bound on their efficiency. Floats are
written with enough digits to restore them, and infinities, which JSON does not have, as text. A
file is checked in three ways: the checksum shows damage, building the problem anew applies all its rules, and
the certificate, or the efficiency of the runs, is computed again and compared with the one in the file.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.certificate import Certificate, certify
from optdesign.design.result import DesignResult, History, Status
from optdesign.design.run_list import Runs, RunStatus
from optdesign.errors import InputError
from optdesign.numbers.checks import check_type
from optdesign.problem.large import Part
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runtime.files import atomic
from optdesign.tables.columns import Settings
from optdesign.tables.files import check_suffix, check_writable

FORMAT = "optdesign"
FILE_VERSION = 2

RESULT_FACTS = ("method", "iterations", "seconds", "compile_seconds", "tol")
"""Fields of a design that are saved as they are. Files of earlier releases may lack the last two."""

RUN_FACTS = ("rank", "method", "tries", "seconds", "compile_seconds", "unlisted")
"""Fields of whole runs that are saved as they are."""

NOTHING_LEFT = 1 - 2e-6
"""Efficiency of runs with nothing left to gain: the weights they are compared with have a relative gap of at
most 1e-6."""

SCALARS = ("gap", "relative_gap", "efficiency", "g_value", "log_det", "rank", "rounding")


def save(design: DesignResult | Runs | DesignProblem, path: str | PathLike[str]) -> None:
    """Save a design or whole runs with the problem, or a problem alone, as JSON.

    The file replaces an existing one. An interrupted call leaves no partial file. A design of
    ``result.in_memory()`` is saved with the certificate on the candidates that it has in memory.

    Parameters
    ----------
    design : DesignResult, Runs or DesignProblem
        Object to save.
    path : str or path-like
        File to write.

    See Also
    --------
    optdesign.load : Restore the object to the last bit.

    Examples
    --------
    >>> import tempfile, optdesign as od
    >>> r = od.solve(od.DesignProblem([[1.0, 0.0], [0.0, 2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     od.save(r, f"{folder}/design.json")
    ...     od.load(f"{folder}/design.json").weights.tolist()
    [0.5, 0.5]
    """
    rule = "design must be a DesignResult, Runs or a DesignProblem"
    check_type(design, DesignResult | Runs | DesignProblem, rule, "Save what solve or exact returns.")
    if isinstance(design, DesignProblem):
        content: dict[str, Any] = {"problem": _problem(design), "result": None}
    else:
        alone = _alone(design)
        best = alone.best if isinstance(alone, Runs) else alone
        content = {"problem": _problem(alone.problem), "result": best and _result(best)}
        if isinstance(alone, Runs):
            content["runs"] = _runs(alone)
    path = Path(path)
    check_suffix(path, "path", (".json",))
    check_writable(path, "path", force=True)
    text = json.dumps(content, allow_nan=False, ensure_ascii=False)
    head = {"format": FORMAT, "version": FILE_VERSION, "sha256": _checksum(text)}
    with atomic(path) as temporary:
        temporary.write_bytes(_encoded(f'{json.dumps(head)[:-1]},\n"content": {text}}}\n'))


def load(path: str | PathLike[str]) -> Any:
    """Return the design, whole runs or problem that :func:`optdesign.save` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    DesignResult, Runs or DesignProblem
        The saved object.

    Raises
    ------
    ValueError
        If the file was not written by ``save``, or was changed.

    See Also
    --------
    optdesign.save : Write the file.

    Examples
    --------
    >>> import tempfile, optdesign as od
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     od.save(od.DesignProblem([[1.0], [2.0]]), f"{folder}/problem.json")
    ...     od.load(f"{folder}/problem.json")
    DesignProblem(2 candidates x 1, 1 group, 1 parameter block, rank 1)
    """
    path = Path(path)
    try:
        document = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        rule = "must be a file that save wrote"
        remedy = "It may be cut short: save it again."
        raise InputError(str(path), rule, f"it is no JSON ({error})", remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        remedy = "Tables go to candidates."
        raise InputError(str(path), "must be a file that save wrote", "it has another format", remedy)
    if document.get("version") != FILE_VERSION:
        value = f"it is of {document.get('version')!r}"
        remedy = "Load it with the release of optdesign that saved it."
        raise InputError(str(path), f"must be of version {FILE_VERSION}", value, remedy)
    content: dict[str, Any] = document.get("content", {})
    if document.get("sha256") != _checksum(json.dumps(content, ensure_ascii=False)):
        remedy = "Restore it, or save it again."
        raise InputError(str(path), "must be as it was saved", "its checksum differs", remedy)
    try:
        return _restored(content, path)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        remedy = "Save it again."
        raise InputError(str(path), "must have the content of a saved object", what, remedy) from None


def _restored(content: dict[str, Any], path: Path) -> Any:
    """Return the object of a content."""
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


def _encoded(text: str) -> bytes:
    """Return text in UTF-8. Lone surrogates, which file names may have, are encoded like other characters."""
    return text.encode("utf-8", "surrogatepass")


def _checksum(text: str) -> str:
    return hashlib.sha256(_encoded(text)).hexdigest()


def _problem(problem: DesignProblem) -> dict[str, Any]:
    grid = problem._grid
    return {
        "candidates": _array(problem.source.whole()),
        "single": problem.span.is_single,
        "groups": _array(problem.groups),
        "parameter_blocks": _array(problem.parameter_blocks),
        "budgets": _array(problem.budgets),
        "n_parameter_blocks": problem.n_parameter_blocks,
        "names": problem.names,
        "settings": None if problem.settings is None else _settings(problem.settings),
        "formula": problem.formula,
        "group_names": _labels(problem.group_names, "group_names"),
        "parameter_block_names": _labels(problem.parameter_block_names, "parameter_block_names"),
        "grid": None if grid is None else [grid[0], grid[1], None if grid[2] is None else _array(grid[2])],
    }


def _restored_problem(saved: dict[str, Any]) -> DesignProblem:
    if saved["grid"] is not None:
        return _restored_grid(saved, *saved["grid"])
    return DesignProblem(
        _values(saved["candidates"]),
        _values(saved["groups"]),
        _values(saved["parameter_blocks"]),
        _values(saved["budgets"]),
        names=saved["names"],
        settings=None if saved["settings"] is None else _restored_settings(saved["settings"]),
        group_names=_restored_labels(saved["group_names"]),
        parameter_block_names=_restored_labels(saved["parameter_block_names"]),
        _single=saved["single"],
        _formula=saved.get("formula"),
    )


def _restored_grid(
    saved: dict[str, Any], clients: int, arms: int, flat: dict[str, Any] | None
) -> DesignProblem:
    """Return a problem of clients and arms. Raise ValueError unless its labels are those of the file."""
    x = _values(saved["candidates"])
    rows = np.arange(clients * arms) if flat is None else _values(flat)
    features = np.zeros((clients * arms, x.shape[1]), np.float32 if saved["single"] else np.float64)
    features[rows] = x
    active = np.isin(np.arange(clients * arms), rows).reshape(clients, arms)
    make = DesignProblem.shared if saved["n_parameter_blocks"] == 1 else DesignProblem.disjoint
    grid = features.reshape(clients, arms, -1)
    problem = make(grid, None if flat is None else active, _values(saved["budgets"]))
    for name in ("groups", "parameter_blocks"):
        if not np.array_equal(getattr(problem, name), _values(saved[name])):
            raise ValueError("the labels of the candidates must be those of clients and arms")
    return problem


def _result(result: DesignResult) -> dict[str, Any]:
    return {
        "weights": _array(result.weights),
        "certificate": {name: _number(getattr(result.certificate, name)) for name in SCALARS},
        "variances": _array(result.variances),
        "status": result.status.name,
        "history": [_array(part) for part in result.history],
        **{name: getattr(result, name) for name in RESULT_FACTS},
    }


def _restored_result(saved: dict[str, Any], problem: DesignProblem, path: Path) -> DesignResult:
    weights = read_only(_values(saved["weights"]))
    scalars: dict[str, Any] = {
        name: value if name == "rank" else float(value) for name, value in saved["certificate"].items()
    }
    stored = Certificate(variances=read_only(_values(saved["variances"])), **scalars)
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
        history=History(*map(_values, saved["history"])),
        **{name: saved[name] for name in RESULT_FACTS if name in saved},
    )


def _runs(runs: Runs) -> dict[str, Any]:
    return {
        **{name: _array(getattr(runs, name)) for name in ("counts", "asked")},
        **{name: _number(getattr(runs, name)) for name in ("efficiency", "log_det", "bound")},
        **{name: getattr(runs, name) for name in RUN_FACTS},
        "status": runs.status.name,
    }


def _restored_runs(
    saved: dict[str, Any], problem: DesignProblem, best: DesignResult | None, path: Path
) -> Runs:
    """Return saved runs, if their numbers are those of the counts.

    Runs of :class:`optdesign.MainEffects` have no list of candidates: their efficiency is not compared.
    """
    stored = Runs(
        problem=problem,
        counts=read_only(_values(saved["counts"])),
        asked=read_only(_values(saved["asked"])),
        efficiency=float(saved["efficiency"]),
        log_det=float(saved["log_det"]),
        bound=float(saved.get("bound", np.inf)),
        status=RunStatus[saved["status"]],
        best=best,
        **{name: saved[name] for name in RUN_FACTS},
    )
    if not stored.bound >= stored.log_det - 1e-9 * max(1.0, abs(stored.log_det)):
        value = f"it is {stored.bound:.12g} with a log det of {stored.log_det:.12g}"
        raise InputError(f"the bound of the runs in {path}", "must be at least their log det", value)
    if stored.unlisted:
        if not (0 <= stored.efficiency <= 1 and stored.rank == problem.dim and np.all(stored.counts > 0)):
            value = f"they are {stored.efficiency:.12g}, {stored.rank} and {stored.counts.tolist()}"
            rule = f"must be a fraction, {problem.dim}, and positive for a model without a list of candidates"
            raise InputError(f"efficiency, rank and counts of the runs in {path}", rule, value)
    else:
        again = Runs.given(problem, stored.counts, best=best)
        if stored.status is RunStatus.BOUND and again.efficiency < NOTHING_LEFT:
            value = f"it says {stored.status.value!r} at an efficiency of {again.efficiency:.9g}"
            raise InputError(f"the status of the runs in {path}", "must be that of the counts", value)
        for name, scale in (("rank", 1.0), ("efficiency", 1.0), ("log_det", max(1.0, abs(stored.log_det)))):
            one, other = getattr(stored, name), getattr(again, name)
            if np.isfinite(other) and not _near(one, other, scale):
                rule = "must be that of the counts"
                value = f"it is {one:.12g} in the file and {other:.12g} for the counts"
                raise InputError(f"the {name} of the runs in {path}", rule, value, "Search again.")
    return stored


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


def _settings(settings: Settings) -> dict[str, Any]:
    levels = settings.levels
    return {
        name: {**_array(values), "levels": _labels(levels.get(name), f"levels of {name!r}")}
        for name, values in settings.items()
    }


def _restored_settings(saved: dict[str, Any]) -> Settings:
    levels = {
        name: tuple(_restored_labels(column["levels"]) or ())
        for name, column in saved.items()
        if column["levels"] is not None
    }
    return Settings({name: _values(column) for name, column in saved.items()}, levels)


def _labels(labels: tuple[Any, ...] | None, what: str) -> list[Any] | None:
    """Return labels as JSON has them: text, numbers and booleans, and infinities as {"float": "inf"}."""
    if labels is None:
        return None
    for label in labels:
        if not isinstance(label, str | int | float):
            remedy = "Turn them into text."
            raise InputError(what, "must be text or numbers to be saved", f"got {label!r}", remedy)
    return [{"float": repr(v)} if isinstance(v, float) and not math.isfinite(v) else v for v in labels]


def _restored_labels(saved: list[Any] | None) -> list[Any] | None:
    """Return labels that were saved."""
    return saved and [float(label["float"]) if isinstance(label, dict) else label for label in saved]


def _array(array: np.ndarray) -> dict[str, Any]:
    """Return an array as JSON: its type, its shape, and its entries in order."""
    flat = array.reshape(-1)
    entries: list[Any] = (flat.astype(np.int64) if array.dtype.kind in "mM" else flat).tolist()
    if array.dtype.kind == "f" and not np.isfinite(flat).all():
        entries = list(map(_number, entries))
    return {"dtype": array.dtype.str, "shape": list(array.shape), "entries": entries}


def _values(saved: dict[str, Any]) -> np.ndarray:
    dtype, entries = np.dtype(saved["dtype"]), saved["entries"]
    if dtype.kind in "mM":
        return np.array(entries, dtype=np.int64).view(dtype).reshape(saved["shape"])
    out = np.empty(len(entries), dtype=dtype)
    out[:] = [float(v) for v in entries] if dtype.kind == "f" else entries
    return out.reshape(saved["shape"])


def _number(value: float) -> float | int | str:
    """Return a number as JSON has it, or as text if JSON does not have it."""
    return value if math.isfinite(value) else repr(float(value))
