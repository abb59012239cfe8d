"""Run lists in files: the settings of every run, and beside them a recipe of the problem.

``--out list.csv`` writes the list as a plain table, which spreadsheets read, and ``list.csv.json``, the
recipe: the file of candidates with its checksum, the options that state the model, groups and parameter
blocks, and the efficiency that was proved. With both, a list is certified and verified without options; the
candidates are read again from their file. Without the recipe, the candidates and options are given again.
Runs are matched with candidates by their settings and labels, so a list may be reordered, rounded to nine
digits, and have more columns, such as responses.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.cli.candidate_file import CandidateFile, names_in_list
from optdesign.cli.options import ColumnOptions
from optdesign.design.display import RUN, WEIGHT
from optdesign.design.run_list import Runs
from optdesign.errors import InputError
from optdesign.evaluation.experiment import common_region
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import relaxed
from optdesign.runs.grid import find_grid
from optdesign.runtime.files import atomic
from optdesign.saving.files import load
from optdesign.tables.columns import lookup, row_codes
from optdesign.tables.files import Table, place, read_table, written

FORMAT, RECIPE_VERSION = "optdesign run list", 1


def recipe_path(path: Path) -> Path:
    """Return the path of the recipe of a run list.

    >>> recipe_path(Path("list.csv")).name
    'list.csv.json'
    """
    return path.with_name(path.name + ".json")


def write_recipe(path: Path, runs: Runs, candidates: Path, columns: ColumnOptions, where: str | None) -> None:
    """Write the recipe of a run list beside it."""
    recipe = {
        "format": FORMAT,
        "version": RECIPE_VERSION,
        "candidates": os.path.relpath(candidates.resolve(), path.resolve().parent),
        "sha256": _checksum(candidates),
        "options": {**asdict(columns), "budget": None},
        "where": where,
        "efficiency": runs.efficiency,
        "log_det": runs.log_det,
        "rank": runs.rank,
    }
    with atomic(recipe_path(path)) as temporary:
        temporary.write_text(json.dumps(recipe, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Recipe:
    """How the problem of a run list is made: candidates, options, and what is claimed of the list."""

    candidates: Path
    columns: ColumnOptions
    where: str | None
    claims: dict[str, Any]


def find_recipe(
    path: Path, candidates: Path | None, columns: ColumnOptions, where: str | None
) -> Recipe | None:
    """Return the recipe of a run list, or None for a saved design, which has weights of its own.

    Candidates that are given come first; the options are then those of the command line.
    """
    if candidates is not None:
        return Recipe(candidates, columns, where, {})
    beside = recipe_path(path)
    if not beside.exists():
        if path.suffix.lower() == ".csv" and path.exists() and _is_list_alone(path):
            rule = f"must have its recipe {beside.name} beside it, or candidates"
            remedy = "Add --candidates FILE, with --model, --where, --group and so on as in the solve."
            raise InputError("a run list", rule, f"there is no {beside}", remedy)
        return None
    try:
        saved = json.loads(beside.read_text(encoding="utf-8"))
        options = ColumnOptions(**saved["options"])
        source = path.resolve().parent / saved["candidates"]
        claims = {name: saved[name] for name in ("efficiency", "log_det", "rank")}
        if (saved["format"], saved["version"]) != (FORMAT, RECIPE_VERSION):
            raise ValueError(f"it is not of version {RECIPE_VERSION}")
    except (ValueError, KeyError, TypeError) as error:
        value = f"it is none ({error})"
        raise InputError(str(beside), "must be the recipe of a run list", value, "Solve again.") from None
    argument = f"the candidates of {path}"
    remedy = "Restore the file, or give it with --candidates and the options of the solve."
    if not source.exists():
        raise InputError(argument, "must be where the recipe states", f"there is no {source}", remedy)
    if _checksum(source) != saved["sha256"]:
        value = f"{source} has changed since the list was written"
        raise InputError(argument, "must be as they were", value, remedy)
    return Recipe(source, options, saved["where"], claims)


def read_runs(path: Path, recipe: Recipe, *, claimed: bool = False) -> tuple[CandidateFile, Runs]:
    """Return the candidates of a run list and its runs, with the numbers that are computed or ``claimed``."""
    source = recipe.columns.read(recipe.candidates, where=recipe.where, fresh=True)
    in_list = names_in_list(source.columns)
    labels = {k for k in (source.group, source.block) if k is not None and k not in source.factors}
    text = {in_list[k] for k in labels if source.columns[k].dtype.kind not in "biuf"}
    rows = _matched(source, read_table(path, text=text), path)
    counts = np.bincount(rows, minlength=len(source.candidates))
    totals = np.bincount(source.groups.numbers[rows], minlength=len(source.groups.names))
    for i in np.flatnonzero(totals == 0)[:1]:
        value = f"{path} has none of group {str(source.groups.names[i])!r}"
        raise InputError("every group", "must have a run", value, "Drop its candidates.")
    source = replace(source, budgets=totals.astype(np.float64))
    problem = source.problem()
    runs = Runs.given(problem, counts, best=relaxed(problem, find_grid(problem)), method="saved")
    return source, replace(runs, **recipe.claims) if claimed else runs


def comparable(paths: list[Path], model: str | None) -> tuple[list[tuple[Any, Any]], str | None]:
    """Return the designs of files, each with the region on which it is evaluated, and the formula.

    Lists with a recipe are runs of its candidates, which are the region of a list without one beside it, or
    with a recipe of other candidates. With a model alone, the region is all combinations of the levels of all
    lists. None stands for the default.
    """
    designs = [load(path) if path.suffix.lower() == ".json" else _of_recipe(path, model) for path in paths]
    owner = next((design for design in designs if design is not None), None)
    if owner is None:
        is_weighted = [WEIGHT in read_table(path, text=set()) for path in paths]
        is_common = len(paths) > 1 and model is not None and not any(is_weighted)
        region = common_region(paths, model) if is_common and model is not None else None
        return [(path, region) for path in paths], model
    first = owner.problem
    model = model or first.formula
    found: list[tuple[Any, Any]] = []
    for path, design in zip(paths, designs, strict=True):
        if design is not None and _same_candidates(design.problem, first):
            found.append((design, None))
        elif path.suffix.lower() == ".json" or model is None or first.settings is None:
            value = f"those of {path} differ from those of {paths[designs.index(owner)]}"
            remedy = "Evaluate them one by one, or compare lists with --model and without recipes."
            raise InputError("two designs", "must have the same candidates to be compared", value, remedy)
        else:
            found.append((path, first.settings))
    return found, model


def _same_candidates(one: DesignProblem, other: DesignProblem) -> bool:
    """Return True if two problems have the same candidates, or the same settings."""
    if one is other:
        return True
    if one.settings is None or other.settings is None:
        return np.array_equal(one.candidates, other.candidates)
    ours, theirs = one.settings, other.settings
    return list(ours) == list(theirs) and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _of_recipe(path: Path, model: str | None) -> Runs | None:
    """Return the runs of a list with a recipe; None without one, or if a model is given and it is broken."""
    if not recipe_path(path).exists():
        return None
    try:
        recipe = find_recipe(path, None, ColumnOptions(), None)
    except InputError:
        if model is None:
            raise
        return None
    return None if recipe is None else read_runs(path, recipe)[1]


def _matched(source: CandidateFile, table: Table, path: Path) -> np.ndarray:
    """Return the candidate of every run of a list."""
    n = len(source.candidates)
    names = dict.fromkeys(k for k in (source.group, source.block, *source.factors) if k is not None)
    in_list = names_in_list(source.columns)
    known, codes = np.ones(len(next(iter(table.values()), ())), bool), []
    for name in names:
        runs = lookup(table, in_list[name], "the columns of the candidates", str(path))
        own, found = _codes(source.columns[name], runs)
        known &= found
        codes.append(own)
    place_of = row_codes(codes, n + len(known))
    distinct, first = np.unique(place_of[:n], return_index=True)
    at = np.minimum(np.searchsorted(distinct, place_of[n:]), len(distinct) - 1)
    for k in np.flatnonzero(~(known & (distinct[at] == place_of[n:])))[:1]:
        cells = ", ".join(f"{name} = {written(table[in_list[name]][k])}" for name in names)
        value = f"{place(path, int(k))} of {path}, {cells}, is none"
        remedy = "Correct the row, or evaluate the list: optdesign evaluate."
        raise InputError("every run", "must be a candidate", value, remedy)
    return first[at]


def _codes(candidates: np.ndarray, runs: np.ndarray, rtol: float = 1e-9) -> tuple[np.ndarray, np.ndarray]:
    """Assign numbers to the values of a column, of candidates and then of runs, and return the known runs.

    Numbers are one setting if they agree to nine digits, or up to round-off of the largest of their column.
    They differ by at most the fraction ``rtol`` of the largest, and by 0.5 in a column of whole numbers.
    """
    if candidates.dtype.kind in "biuf" and runs.dtype.kind in "biuf":
        values = np.unique(candidates.astype(np.float64))
        above = np.minimum(np.searchsorted(values, runs), len(values) - 1)
        below = np.maximum(above - 1, 0)
        nearest = np.where(np.abs(runs - values[below]) < np.abs(values[above] - runs), below, above)
        largest = np.abs(values).max()
        most = min(rtol * largest, 0.5 if np.all(values == np.round(values)) else np.inf)
        tolerance = np.maximum(5 * rtol * np.abs(values[nearest]), 1e-15 * largest)
        found = np.abs(values[nearest] - runs) <= np.minimum(tolerance, most)
        return np.concatenate([np.searchsorted(values, candidates), nearest]), found
    if candidates.dtype.kind == "M":  # dates, which are text in a CSV file
        with contextlib.suppress(ValueError):
            runs = runs.astype(str).astype(candidates.dtype)
    both = [written(v) for v in (*candidates.tolist(), *runs.tolist())]
    codes = np.unique(both, return_inverse=True)[1]
    return codes, np.isin(codes[len(candidates) :], codes[: len(candidates)])


def _is_list_alone(path: Path) -> bool:
    """Return True if a CSV file has the column of a run list and no weights."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        names = file.readline().strip().replace('"', "").split(",")
    return RUN in names and WEIGHT not in names


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
