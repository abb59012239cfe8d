"""Reports of the command ``optdesign`` on a design: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer

from optdesign.cli.candidate_file import CandidateFile
from optdesign.cli.spelling import status
from optdesign.design.certificate import Certificate
from optdesign.design.display import duration, grid_note, group_places, largest, texts
from optdesign.design.result import DesignResult, rounded_down, rounded_up
from optdesign.problem.dependence import in_words, scope
from optdesign.problem.large import Part
from optdesign.problem.problem import DesignProblem
from optdesign.runs.runs import Runs
from optdesign.tables.columns import times_as_text
from optdesign.verification.verify import Verification

ROWS_SHOWN = 20
"""Candidates of a design that are listed."""

COLUMNS_SHOWN = 8
"""Factors or features that have columns."""


def print_solved(
    found: DesignResult | Runs,
    source: CandidateFile,
    outputs: dict[str, Path | None],
    as_json: bool,
    order: Any = None,
) -> None:
    """Print a design, or runs listed in ``order``, with the files that were written."""
    if as_json:
        values = solved(found, source) if isinstance(found, DesignResult) else searched(found, source, order)
        print_json({**values, **described(source, found.problem), "outputs": _paths(outputs)})
    else:
        print_result(found, source, next(iter(outputs.values())))
        print_outputs(outputs)


def certified(result: DesignResult | Runs) -> dict[str, Any]:
    """Return the certificate of a design, or of runs."""
    names = ("gap", "relative_gap", "efficiency", "g_efficiency", "rank", "g_value", "log_det")
    return {**_values(result.certificate, *names), "support": len(result.support)}


def _values(found: DesignResult | Runs | Certificate, *names: str) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names}


def solved(result: DesignResult, source: CandidateFile) -> dict[str, Any]:
    """Return a design with its certificate: all weights, and the supported candidates in words."""
    return {
        "status": result.status.name,
        "message": status(result),
        **certified(result),
        **_values(result, "iterations", "seconds", "compile_seconds", "method"),
        "rows": source.numbers.tolist(),
        "weights": result.weights.tolist(),
        "design": [
            {**_candidate(source, n), "weight": float(w), "variance": float(result.variances[n])}
            for n, w in zip(result.support.tolist(), result.weights[result.support], strict=True)
        ],
    }


def searched(runs: Runs, source: CandidateFile, order: np.ndarray) -> dict[str, Any]:
    """Return whole runs: their quality, the number of runs of each row, and the list in its order."""
    return {
        "status": runs.status.name,
        "message": status(runs),
        **_values(runs, "efficiency", "log_det", "rank", "method", "tries", "seconds", "compile_seconds"),
        "rows": source.numbers.tolist(),
        "counts": runs.counts.tolist(),
        "runs": [_candidate(source, n) for n in order.tolist()],
    }


def _candidate(source: CandidateFile, row: int) -> dict[str, Any]:
    """Return the row of a candidate in the file, from 1, with its labels and its settings."""
    names = dict.fromkeys([n for n in (source.group, source.block) if n is not None] + list(source.factors))
    cells = {name: source.columns[name][row] for name in names}
    return {
        "row": int(source.numbers[row]),
        "settings": {name: _plain(value) for name, value in cells.items()},
    }


def _plain(value: Any) -> Any:
    """Return an entry of a table as JSON has it."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return times_as_text(np.array([value]))[0]
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if plain is None or isinstance(plain, str | int | float) else str(plain)


def described(source: CandidateFile, problem: DesignProblem) -> dict[str, Any]:
    """Return a description of the problem, with notes."""
    return {
        "candidates": _size(problem),
        "model": source.model,
        "features": list(source.features),
        "notes": list(source.notes),
        "ignored_columns": list(source.ignored),
        "groups": problem.n_groups,
        "parameter_blocks": problem.n_parameter_blocks,
        "parameters": problem.n_parameters,
        "deficient_parameter_blocks": len(_deficient(problem)),
        "deficiency_note": deficiency_note(source, problem),
        "rank_note": problem.rank_note,
        "grid_note": grid_note(problem),
    }


def judged(
    source: CandidateFile, result: DesignResult | Runs, outcome: Verification | None, tol: float
) -> dict[str, Any]:
    """Return the verdict that follows from the certificate and, if there is one, from the comparison.

    A design passes if it is optimal to within tol, and runs if they keep the rank; both if the comparison
    agrees.
    """
    is_list = isinstance(result, Runs)
    within = result.certificate.relative_gap <= tol
    passed = math.isfinite(result.certificate.gap) if is_list else within
    values: dict[str, Any] = {"tol": tol, "within_tol": within, "optimal": within, "passed": passed}
    values["conclusion"] = conclusion(result, outcome, tol)
    if outcome is not None:
        values |= {
            "optimal": outcome.agrees and within,
            "passed": outcome.agrees and passed,
            # The comparison may agree although the design is far from the optimum.
            "verdict": "consistent" if outcome.agrees and not passed else outcome.verdict,
            "message": outcome.message,
            "notes": [*source.notes, *outcome.notes],
            "comparisons": [
                {"name": c.name, "difference": c.difference, "tolerance": c.tolerance, "agrees": c.agrees}
                for c in outcome.comparisons
            ],
        }
    return values


def conclusion(result: DesignResult | Runs, outcome: Verification | None, tol: float) -> str:
    """Return one line on whether a design is optimal: by its certificate first, then by the comparison."""
    relative = f"relative gap {rounded_up(result.certificate.relative_gap)}"
    proved = f"at least {rounded_down(result.efficiency)} on these candidates"
    agree = "" if outcome is None else "; exact arithmetic and cvxpy agree"
    notes = ", see the notes" if outcome is not None and outcome.notes else ""
    if not math.isfinite(result.certificate.gap):
        return "NOT optimal: the design loses rank, that is, it cannot estimate what the candidates could"
    if outcome is not None and outcome.refuted:
        return "NOT verified: exact arithmetic contradicts the certificate"
    if isinstance(result, Runs):
        if outcome is not None and not outcome.agrees:
            return f"NOT verified: {outcome.verdict}, {outcome.message}"
        alone = rounded_down(result.certificate.g_efficiency)
        return f"efficiency {proved} (the runs alone prove {alone}){agree}{notes}"
    if not result.relative_gap <= tol:
        return f"NOT optimal: efficiency only {proved} ({relative} exceeds --tol {tol:.3g})"
    if outcome is not None and not outcome.agrees:
        why = "cvxpy differs" if outcome.verdict == "differs" else "cvxpy has no answer to compare with"
        return f"NOT verified: the certificate holds ({relative}), but {why}"
    return f"optimal to within {tol:.3g}: efficiency {proved} ({relative}){agree}{notes}"


def _deficient(problem: DesignProblem) -> np.ndarray:
    return np.flatnonzero(problem.ranks < problem.dim)


def deficiency_note(source: CandidateFile, problem: DesignProblem) -> str:
    """Return a sentence about parameter blocks of deficient rank, or an empty string."""
    blocks = _deficient(problem)
    if len(blocks) == 0:
        return ""
    b, d = blocks[0], problem.dim
    total = f"rank {problem.rank} of {problem.n_parameters}"
    if problem.n_parameter_blocks == 1:
        return (
            f"{total}: the candidates cannot estimate all parameters; {in_words(problem, source.features)}."
        )
    others = f" and {len(blocks) - 1} more" if len(blocks) > 1 else ""
    word = source.block or "parameter block"
    name = f"{word} {str(source.blocks.names[b])!r} (rank {problem.ranks[b]} of {d})"
    whose = "their" if others else "its"
    words = ("; in the first, " if others else "; ") + in_words(problem, source.features)
    return f"{total}: {name}{others} cannot estimate all of {whose} parameters{words}."


def print_json(report: dict[str, Any]) -> None:
    """Print a report; JSON has no infinity, so a number that is not finite becomes null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in report.items()}
    typer.echo(json.dumps(finite, indent=2, allow_nan=False))


def print_result(found: DesignResult | Runs, source: CandidateFile, saved: Path | None) -> None:
    """Print facts and the largest weights, or the most frequent runs; ``saved`` is the file with all rows."""
    for name, value in _facts(found, source):
        typer.echo(f"{name:<16}  {value}")
    typer.echo()
    rows = largest(found.counts if isinstance(found, Runs) else found.weights, ROWS_SHOWN)
    if isinstance(found, Runs):
        numbers = {"runs": [str(found.counts[n]) for n in rows]}
        shown = "rows that are run shown, the most frequent"
    else:
        columns = {"weight": found.weights, "variance": found.variances}
        numbers = {name: [f"{value:.6f}" for value in column[rows]] for name, column in columns.items()}
        shown = "weights shown, the largest"
    _print_table(source, rows, numbers)
    if len(found.support) > ROWS_SHOWN:
        where = "save all with --out FILE" if saved is None else f"all are in {saved}"
        typer.echo(f"\n{ROWS_SHOWN} of {len(found.support)} {shown}; {where}")
    typer.echo()


def print_verdict(judged: dict[str, Any], outcome: Verification | None) -> None:
    """Print the comparisons, if there are any, and then the conclusion."""
    if outcome is not None:
        compared = str(outcome).removeprefix(outcome.verdict)
        typer.echo(f"{'comparison':<16}  {judged['verdict']}{compared}\n")
    typer.echo(judged["conclusion"])


def print_outputs(outputs: dict[str, Path | None]) -> None:
    """Print the paths of the files that were written."""
    for name, path in _paths(outputs).items():
        typer.echo(f"{name} written to {path}")


def _paths(outputs: dict[str, Path | None]) -> dict[str, str]:
    return {name: str(path) for name, path in outputs.items() if path is not None}


def _facts(found: DesignResult | Runs, source: CandidateFile) -> Iterator[tuple[str, str]]:
    """Yield the lines of the report, each a name and a value."""
    problem = found.problem
    yield from _problem_facts(problem, source)
    if isinstance(found, Runs):
        yield "runs", _totals(found, source)
        work = f"{found.tries} tries"
    else:
        yield "gap", f"{rounded_up(found.gap)} (relative to the rank {rounded_up(found.relative_gap)})"
        work = f"{found.iterations} iteration{'' if found.iterations == 1 else 's'}"
    yield "efficiency", f"at least {rounded_down(found.efficiency)}{scope(problem)}"
    own = found.measures
    # I is an average over all candidates, of which a few are in memory.
    yield "measures", str(own._replace(I=math.nan) if isinstance(problem, Part) else own)
    yield "log det", f"{found.log_det:.9g}"
    if found.method != "saved":
        yield "method", f"{found.method}, {work}, {duration(found.seconds, found.compile_seconds)}"
        yield "status", status(found)
    for note in (*source.notes, deficiency_note(source, problem), problem.rank_note, grid_note(problem)):
        if note:
            yield "note", note


def _totals(runs: Runs, source: CandidateFile) -> str:
    """Return the numbers of runs, by group in the order of the candidates if there are a few."""
    problem = runs.problem
    if problem.n_groups > COLUMNS_SHOWN or problem.n_groups == 1:
        return str(runs.totals.sum())
    order = np.argsort(group_places(problem))
    return " + ".join(f"{runs.totals[i]} ({source.groups.names[i]})" for i in order)


def _problem_facts(problem: DesignProblem, source: CandidateFile) -> Iterator[tuple[str, str]]:
    """Yield lines on what was read: candidates, model, groups, parameter blocks and rank."""
    features = ", ".join(source.features)
    if source.model is not None:
        yield "candidates", f"{_size(problem)}, factors {', '.join(source.factors)}"
        yield "model", source.model.strip()
        yield "terms", features
        if source.ignored:
            yield "ignored", f"{', '.join(source.ignored)}: not in the model"
    else:
        yield "candidates", f"{_size(problem)}, features {features}"
        if source.factors:
            yield "model", _no_model(problem, source)
        if source.ignored:
            ignored = ", ".join(source.ignored)
            yield "ignored", f"{ignored}: not numeric; choose columns with --features, or use --model"
    groups, blocks = problem.n_groups, problem.n_parameter_blocks
    yield "groups", str(groups) if source.group is None else f"{groups} (column {source.group})"
    each = f"{problem.dim} parameter{'' if problem.dim == 1 else 's'} each"
    yield (
        "parameter blocks",
        str(blocks) if source.block is None else f"{blocks}, one per {source.block}, {each}",
    )
    yield "rank", f"{problem.rank} of {problem.n_parameters} parameters"


def _size(problem: DesignProblem) -> int:
    """Return the number of candidates, also of a problem of which a few are in memory."""
    return problem.whole.n_candidates if isinstance(problem, Part) else problem.n_candidates


def _no_model(problem: DesignProblem, source: CandidateFile) -> str:
    """Return the note about a missing model: the columns are the features, with or without an intercept."""
    first = problem.source.piece(0, 1)[0]
    same = first != 0
    for _, x in problem.source.pieces():
        same &= np.all(x == first, axis=0)
    constant = np.flatnonzero(same)
    if len(constant) and not isinstance(problem, Part):
        return (
            f"none, so features are columns as they are, {source.features[constant[0]]} being the intercept"
        )
    example = " + ".join(source.features[:3]) + (" + ..." if len(source.features) > 3 else "")
    if isinstance(problem, Part):
        return f"none, so features are columns as they are; for an intercept, --model '~ {example}'"
    return f"none, so features are columns as they are, without an intercept; for one, --model '~ {example}'"


def _print_table(source: CandidateFile, rows: np.ndarray, numbers: dict[str, list[str]]) -> None:
    """Print a table of some candidates: row, labels, settings, and numbers.

    The table is as wide as it is, without spaces at the end of its lines or blank lines around it.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    labels = {source.group: source.groups, source.block: source.blocks}
    columns: list[tuple[str, Literal["left", "right"], Any]] = [("row", "right", source.numbers[rows])]
    columns += [(k, "left", v.names[v.numbers[rows]]) for k, v in labels.items() if k is not None]
    for name in [name for name in source.factors if name not in labels][:COLUMNS_SHOWN]:
        values = source.columns[name][rows]
        columns.append((name, "left" if values.dtype == object else "right", texts(values)))
    columns += [(name, "right", values) for name, values in numbers.items()]
    for name, justify, _ in columns:
        table.add_column(Text(name), justify=justify)
    for row in zip(*(values for _, _, values in columns), strict=True):
        table.add_row(*(Text(str(cell)) for cell in row))
    printed = io.StringIO()
    wide = 10_000  # columns of a terminal in which no table is ever squeezed
    Console(file=printed, color_system=None, width=wide).print(table)
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    typer.echo("\n".join(lines).strip("\n"))
