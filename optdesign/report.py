"""What the command ``optdesign`` says about a design: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from optdesign.dependence import in_words, of_what
from optdesign.files import CandidateFile
from optdesign.problem import DesignProblem
from optdesign.result import DesignResult, rounded_down, rounded_up
from optdesign.verification import Verification

SHOWN = 20
"""Candidates of a design that are listed in the terminal."""

WIDE = 10_000
"""Columns of a terminal in which no table is ever squeezed."""

OPTIONS = {"max_iter": "--max-iter", "time_limit": "--time-limit", "tol": "--tol", "method": "--method"}
"""Arguments of ``solve`` as the command line spells them."""


def spelled(message: str) -> str:
    """An error of the solver with the argument it names spelled as the option it is here."""
    argument, _, rest = message.partition(" must ")
    return f"{OPTIONS[argument]} must {rest}" if argument in OPTIONS else message


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
        "method": result.method,
    }


def described(source: CandidateFile, problem: DesignProblem) -> dict[str, Any]:
    """The problem, and what was noticed about it."""
    return {
        "candidates": problem.n_candidates,
        "features": list(source.features),
        "ignored_columns": list(source.ignored),
        "groups": problem.n_groups,
        "blocks": problem.n_blocks,
        "parameters": problem.n_parameters,
        "deficient_blocks": len(_deficient(problem)),
        "deficiency_note": deficiency_note(source, problem),
        "rank_note": rank_note(source, problem),
    }


def verified(result: DesignResult, outcome: Verification, tol: float) -> dict[str, Any]:
    """What a comparison with another solver found, and what follows from it and the certificate."""
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
    """What follows from the certificate alone."""
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


def status(result: DesignResult) -> str:
    """Why the solver stopped, and what to do about it on the command line."""
    message = result.status.value
    if result.converged:
        return message
    for argument in ("max_iter", "time_limit", "tol"):
        message = message.replace(argument, OPTIONS[argument])
    return message.replace("change the method", "change --method")


def _deficient(problem: DesignProblem) -> np.ndarray:
    return np.flatnonzero(problem.ranks < problem.dim)


def deficiency_note(source: CandidateFile, problem: DesignProblem) -> str:
    """A sentence about blocks with fewer independent candidates than features, or an empty string."""
    blocks = _deficient(problem)
    if len(blocks) == 0:
        return ""
    b, d = blocks[0], problem.dim
    total = f"rank {problem.rank} of {problem.n_parameters}"
    if problem.n_blocks == 1:
        return (
            f"{total}: the candidates cannot estimate all parameters; {in_words(problem, source.features)}."
        )
    others = f" and {len(blocks) - 1} more" if len(blocks) > 1 else ""
    name = f"{source.block or 'block'} {str(source.blocks.names[b])!r} (rank {problem.ranks[b]} of {d})"
    whose = "their" if others else "its"
    words = ("; in the first, " if others else "; ") + in_words(problem, source.features)
    return f"{total}: {name}{others} cannot estimate all of {whose} parameters{words}."


def rank_note(source: CandidateFile, problem: DesignProblem) -> str:
    """The problem's note on close rank decisions, with the label of the block it numbers."""
    if not problem.rank_note:
        return ""
    b = int(problem.doubtful_blocks[0])
    return f"{problem.rank_note} Block {b} is {str(source.blocks.names[b])!r}."


def paths(outputs: dict[str, Path | None]) -> dict[str, str]:
    """The outputs that were asked for."""
    return {name: str(path) for name, path in outputs.items() if path is not None}


def print_json(report: dict[str, Any]) -> None:
    """Print a report; JSON has no infinity, so a number that is not finite becomes null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in report.items()}
    typer.echo(json.dumps(finite, indent=2, allow_nan=False))


def print_result(result: DesignResult, source: CandidateFile, saved: Path | None) -> None:
    """Print the certificate and the largest weights; ``saved`` is the file that holds all of them."""
    for name, value in _facts(result, source):
        typer.echo(f"{name:<10}  {value}")
    typer.echo()
    support = result.support
    largest = support[np.argsort(-result.weights[support], kind="stable")[:SHOWN]]
    _print_table(_weights(result, source, np.sort(largest)))
    if len(support) > SHOWN:
        where = "save all with --out FILE" if saved is None else f"all are in {saved}"
        typer.echo(f"\n{SHOWN} of {len(support)} weights shown, the largest; {where}")
    typer.echo()


def print_verification(result: DesignResult, outcome: Verification, tol: float) -> None:
    """Print what was compared, and then the conclusion."""
    typer.echo(f"comparison  {_verdict(result, outcome, tol)}{str(outcome).removeprefix(outcome.verdict)}")
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
    yield "candidates", f"{problem.n_candidates}, features {', '.join(source.features)}"
    if source.ignored:
        yield "ignored", f"{', '.join(source.ignored)}: not numeric; choose columns with --features"
    for name, n, column in (
        ("groups", problem.n_groups, source.group),
        ("blocks", problem.n_blocks, source.block),
    ):
        yield name, str(n) if column is None else f"{n} (column {column})"
    yield "rank", f"{result.rank} of {problem.n_parameters} parameters"
    yield "gap", f"{rounded_up(result.gap)} (relative to the rank {rounded_up(result.relative_gap)})"
    yield "efficiency", f"at least {rounded_down(result.efficiency)}{of_what(problem)}"
    yield "log det", f"{result.log_det:.9g}"
    if result.method != "saved":
        iterations = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
        yield "method", f"{result.method}, {iterations}, {result.seconds:.3g} s"
        yield "status", status(result)
    for note in (deficiency_note(source, problem), rank_note(source, problem)):
        if note:
            yield "note", note


def _weights(result: DesignResult, source: CandidateFile, rows: np.ndarray) -> Any:
    """The table of some weights, with the labels under the names of their columns."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", justify="right")
    labels = [(source.group, source.groups), (source.block, source.blocks)]
    labels = [(column, values) for column, values in labels if column is not None]
    for column, _ in labels:
        table.add_column(escape(str(column)))
    for heading in ("weight", "variance"):
        table.add_column(heading, justify="right")
    for n in rows:
        names = [escape(str(values.names[values.numbers[n]])) for _, values in labels]
        table.add_row(str(n + 1), *names, f"{result.weights[n]:.6f}", f"{result.variances[n]:.6f}")
    return table


def _print_table(table: Any) -> None:
    """Print a table as wide as it is, without spaces at the end of its lines or blank lines around it."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, color_system=None, width=WIDE).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    typer.echo("\n".join(lines).strip("\n"))
