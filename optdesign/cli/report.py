"""Reports of the command ``optdesign`` on a design: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from optdesign.cli.candidate_file import CandidateFile
from optdesign.cli.spelling import status
from optdesign.design.display import duration, largest, text
from optdesign.design.result import DesignResult, rounded_down, rounded_up
from optdesign.problem.dependence import in_words, of_what
from optdesign.problem.problem import DesignProblem
from optdesign.runs.runs import Runs
from optdesign.tables.columns import Labels
from optdesign.verification.verify import Verification

SHOWN = 20
"""Candidates of a design that are listed in the terminal."""

COLUMNS = 8
"""Factors or features that a table in the terminal has columns for."""


def certified(result: DesignResult) -> dict[str, Any]:
    """The certificate of a design."""
    return {
        "gap": result.gap,
        "relative_gap": result.relative_gap,
        "efficiency": result.efficiency,
        "rank": result.rank,
        "g_value": result.g_value,
        "log_det": result.log_det,
        "support": len(result.support),
    }


def solved(result: DesignResult) -> dict[str, Any]:
    """The certificate of a design, and how it was found."""
    return {
        "status": result.status.name,
        "message": status(result),
        **certified(result),
        "iterations": result.iterations,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "method": result.method,
    }


def searched(runs: Runs, source: CandidateFile, order: np.ndarray) -> dict[str, Any]:
    """Whole runs: how good they are, how many of each row of the file, and the list in its order."""
    return {
        "status": runs.status.name,
        "message": status(runs),
        "efficiency": runs.efficiency,
        "log_det": runs.log_det,
        "rank": runs.rank,
        "rows": source.numbers.tolist(),
        "counts": runs.counts.tolist(),
        "runs": [_told(source, n) for n in order.tolist()],
        "method": runs.method,
        "tries": runs.tries,
        "seconds": runs.seconds,
        "compile_seconds": runs.compile_seconds,
    }


def design(result: DesignResult, source: CandidateFile) -> dict[str, Any]:
    """The weights of all candidates beside their rows in the file, and in words those that are not zero."""
    return {
        "rows": source.numbers.tolist(),
        "weights": result.weights.tolist(),
        "design": [
            {**_told(source, n), "weight": float(result.weights[n]), "variance": float(result.variances[n])}
            for n in result.support.tolist()
        ],
    }


def _told(source: CandidateFile, row: int) -> dict[str, Any]:
    """A candidate in words: its row in the file, from 1, its labels and its settings."""
    names = dict.fromkeys([n for n in (source.group, source.block) if n is not None] + list(source.factors))
    cells = {name: source.columns[name][row] for name in names}
    return {
        "row": source.row(row),
        "settings": {k: v.item() if isinstance(v, np.generic) else v for k, v in cells.items()},
    }


def described(source: CandidateFile, problem: DesignProblem) -> dict[str, Any]:
    """The problem, and what was noticed about it."""
    return {
        "candidates": problem.n_candidates,
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
    }


def verified(result: DesignResult, outcome: Verification, tol: float) -> dict[str, Any]:
    """Return the result of the comparison with another solver, with the verdict."""
    return {
        "optimal": outcome.agrees and result.relative_gap <= tol,
        "conclusion": conclusion(result, outcome, tol),
        "verdict": _verdict(result, outcome, tol),
        "message": outcome.message,
        "notes": list(outcome.notes),
        "comparisons": [
            {"name": c.name, "difference": c.difference, "tolerance": c.tolerance, "agrees": c.agrees}
            for c in outcome.comparisons
        ],
        **_judged(result, tol),
    }


def judged(result: DesignResult, tol: float) -> dict[str, Any]:
    """Return the verdict that follows from the certificate alone."""
    return {
        "optimal": result.relative_gap <= tol,
        "conclusion": certificate_conclusion(result, tol),
        **_judged(result, tol),
    }


def _judged(result: DesignResult, tol: float) -> dict[str, Any]:
    return {"tol": tol, "within_tol": result.relative_gap <= tol}


def certificate_conclusion(result: DesignResult, tol: float) -> str:
    """One line that says what the certificate of a design proves."""
    relative, least = f"relative gap {rounded_up(result.relative_gap)}", rounded_down(result.efficiency)
    if not math.isfinite(result.gap):
        return "NOT optimal: the design loses rank, that is, it cannot estimate what the candidates could"
    if not result.relative_gap <= tol:
        return f"NOT optimal: efficiency only at least {least} ({relative} exceeds --tol {tol:.3g})"
    return f"optimal to within {tol:.3g}: efficiency at least {least} ({relative})"


def conclusion(result: DesignResult, outcome: Verification, tol: float) -> str:
    """One line that says whether a design is optimal: its certificate first, then what was compared."""
    proved = certificate_conclusion(result, tol)
    if math.isfinite(result.gap) and outcome.refuted:
        return "NOT verified: exact arithmetic contradicts the certificate"
    if not result.relative_gap <= tol:
        return proved
    if not outcome.agrees:
        why = "cvxpy differs" if outcome.verdict == "differs" else "cvxpy has no answer to compare with"
        return (
            f"NOT verified: the certificate holds (relative gap {rounded_up(result.relative_gap)}), but {why}"
        )
    return f"{proved}; exact arithmetic and cvxpy agree" + (", see the notes" if outcome.notes else "")


def _verdict(result: DesignResult, outcome: Verification, tol: float) -> str:
    """The outcome in a word. A design far from the optimum agrees with nothing: it is merely consistent."""
    return "consistent" if outcome.agrees and not result.relative_gap <= tol else outcome.verdict


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


def paths(outputs: dict[str, Path | None]) -> dict[str, str]:
    """The outputs that were asked for."""
    return {name: str(path) for name, path in outputs.items() if path is not None}


def print_json(report: dict[str, Any]) -> None:
    """Print a report; JSON has no infinity, so a number that is not finite becomes null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in report.items()}
    typer.echo(json.dumps(finite, indent=2, allow_nan=False))


def print_result(result: DesignResult, source: CandidateFile, saved: Path | None) -> None:
    """Print the certificate and the largest weights; ``saved`` is the file that holds all of them."""
    _print_facts(_facts(result, source))
    rows = largest(result, SHOWN)
    numbers = {
        "weight": [f"{result.weights[n]:.6f}" for n in rows],
        "variance": [f"{result.variances[n]:.6f}" for n in rows],
    }
    _print_table(_table(source, rows, numbers))
    _print_rest(len(result.support), "weights shown, the largest", saved)


def print_runs(runs: Runs, source: CandidateFile, saved: Path | None) -> None:
    """Print how good the runs are and how many there are of each row; ``saved`` is the file with the list."""
    _print_facts(_run_facts(runs, source))
    support = runs.support
    rows = np.sort(support[np.argsort(-runs.counts[support], kind="stable")[:SHOWN]])
    _print_table(_table(source, rows, {"runs": [str(runs.counts[n]) for n in rows]}))
    _print_rest(len(support), "rows that are run shown, the most frequent", saved)


def _print_facts(facts: Iterator[tuple[str, str]]) -> None:
    for name, value in facts:
        typer.echo(f"{name:<16}  {value}")
    typer.echo()


def _print_rest(count: int, what: str, saved: Path | None) -> None:
    if count > SHOWN:
        where = "save all with --out FILE" if saved is None else f"all are in {saved}"
        typer.echo(f"\n{SHOWN} of {count} {what}; {where}")
    typer.echo()


def print_verification(result: DesignResult, outcome: Verification, tol: float) -> None:
    """Print what was compared, and then the conclusion."""
    typer.echo(
        f"{'comparison':<16}  {_verdict(result, outcome, tol)}{str(outcome).removeprefix(outcome.verdict)}"
    )
    typer.echo(f"\n{conclusion(result, outcome, tol)}")


def print_certificate(result: DesignResult, tol: float) -> None:
    """Print what the certificate proves."""
    typer.echo(certificate_conclusion(result, tol))


def print_outputs(outputs: dict[str, Path | None]) -> None:
    """Say what was written where."""
    for name, path in paths(outputs).items():
        typer.echo(f"{name} written to {path}")


def _facts(result: DesignResult, source: CandidateFile) -> Iterator[tuple[str, str]]:
    """Lines of the report, each a name and a value."""
    problem = result.problem
    yield from _problem_facts(problem, source)
    yield "gap", f"{rounded_up(result.gap)} (relative to the rank {rounded_up(result.relative_gap)})"
    yield "efficiency", f"at least {rounded_down(result.efficiency)}{of_what(problem)}"
    yield "log det", f"{result.log_det:.9g}"
    if result.method != "saved":
        iterations = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
        yield "method", f"{result.method}, {iterations}, {duration(result.seconds, result.compile_seconds)}"
        yield "status", status(result)
    yield from _notes(problem, source)


def _run_facts(runs: Runs, source: CandidateFile) -> Iterator[tuple[str, str]]:
    """Lines of the report on whole runs."""
    problem = runs.problem
    yield from _problem_facts(problem, source)
    yield "runs", " + ".join(map(str, runs.totals)) if problem.n_groups <= COLUMNS else str(runs.totals.sum())
    yield "efficiency", f"at least {rounded_down(runs.efficiency)} against all designs{of_what(problem)}"
    yield "log det", f"{runs.log_det:.9g}"
    yield "method", f"{runs.method}, {runs.tries} tries, {duration(runs.seconds, runs.compile_seconds)}"
    yield "status", status(runs)
    yield from _notes(problem, source)


def _problem_facts(problem: DesignProblem, source: CandidateFile) -> Iterator[tuple[str, str]]:
    """Yield lines on what was read: candidates, model, groups, parameter blocks and rank."""
    features = ", ".join(source.features)
    if source.model is not None:
        yield "candidates", f"{problem.n_candidates}, factors {', '.join(source.factors)}"
        yield "model", source.model.strip()
        yield "terms", features
        if source.ignored:
            yield "ignored", f"{', '.join(source.ignored)}: not in the model"
    else:
        yield "candidates", f"{problem.n_candidates}, features {features}"
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


def _no_model(problem: DesignProblem, source: CandidateFile) -> str:
    """What it means that no model was given: columns as they are, and whether one is an intercept."""
    first = problem.source.piece(0, 1)[0]
    same = first != 0
    for _, x in problem.source.pieces():
        same &= np.all(x == first, axis=0)
    constant = np.flatnonzero(same)
    if len(constant):
        return (
            f"none, so features are columns as they are, {source.features[constant[0]]} being the intercept"
        )
    example = " + ".join(source.features[:3]) + (" + ..." if len(source.features) > 3 else "")
    return f"none, so features are columns as they are, without an intercept; for one, --model '~ {example}'"


def _notes(problem: DesignProblem, source: CandidateFile) -> Iterator[tuple[str, str]]:
    for note in (*source.notes, deficiency_note(source, problem), problem.rank_note):
        if note:
            yield "note", note


def _table(source: CandidateFile, rows: np.ndarray, numbers: dict[str, list[str]]) -> Any:
    """A table of some candidates: row, labels and settings under the names of their columns, and numbers."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", justify="right")
    labels = [(column, values) for column, values in _labels(source) if column is not None]
    factors = [name for name in source.factors if name not in (source.group, source.block)][:COLUMNS]
    for column, _ in labels:
        table.add_column(escape(column))
    for name in factors:
        table.add_column(escape(name), justify="left" if source.columns[name].dtype == object else "right")
    for heading in numbers:
        table.add_column(heading, justify="right")
    for k, n in enumerate(rows.tolist()):
        told = [str(values.names[values.numbers[n]]) for _, values in labels]
        told += [text(source.columns[name][n]) for name in factors]
        table.add_row(str(source.row(n)), *map(escape, told), *(column[k] for column in numbers.values()))
    return table


def _labels(source: CandidateFile) -> tuple[tuple[str | None, Labels], ...]:
    return (source.group, source.groups), (source.block, source.blocks)


def _print_table(table: Any) -> None:
    """Print a table as wide as it is, without spaces at the end of its lines or blank lines around it."""
    from rich.console import Console

    printed = io.StringIO()
    wide = 10_000  # columns of a terminal in which no table is ever squeezed
    Console(file=printed, color_system=None, width=wide).print(table)
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    typer.echo("\n".join(lines).strip("\n"))
