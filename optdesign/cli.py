"""The command ``optdesign``: designs of candidates in a file, from the shell.

    optdesign solve candidates.csv --group site --block model --budget budgets.csv --out design.csv
    optdesign verify design.csv --group site --block model
    optdesign demo

Exit codes: 0 solved (or verified), 1 not converged (or not verified; whatever was found is still written),
2 bad input, with one message on standard error.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer

from optdesign import __version__, files, plotting, tables
from optdesign.certificate import certify
from optdesign.examples import authors_features
from optdesign.files import CandidateFile, Labels
from optdesign.problem import DesignProblem
from optdesign.progress import waiting
from optdesign.result import DesignResult, History, Status
from optdesign.solve import METHODS, solve
from optdesign.verification import Verification, verify

SOLVED, NOT_CONVERGED, BAD_INPUT = 0, 1, 2

SHOWN = 12
"""Candidates of a design that are listed in the terminal."""

DEMO_TOL = 1e-6

app = typer.Typer(
    name="optdesign",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Optimal experimental designs under several budgets, each with a certificate.",
)

Group = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column of group labels [default: 'group', if there is one]."),
]
Block = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column of block labels [default: 'block', if there is one]."),
]
Features = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Feature columns [default: all other numeric columns].")
]
Json = Annotated[bool, typer.Option("--json", help="Print a report in JSON instead of a table.")]


def main() -> None:
    """Run the command line."""
    app(prog_name="optdesign")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"optdesign {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command("solve")
def solve_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Candidates: .csv, .parquet or .npz.")],
    group: Group = None,
    block: Block = None,
    features: Features = None,
    budget: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Two columns: group label, budget [default: all 1].")
    ] = None,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * rank.")] = 1e-6,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    max_iter: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the rows with weight and variance: .csv, .parquet or .npz."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save a picture: .png, .pdf or .svg.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the best weights for the candidates of a file, with their certificate."""
    with _bad_input():
        _check_outputs(out, plot)
        with waiting(f"reading {file}"):
            source = files.read(file, group=group, block=block, features=_names(features))
            if budget is not None:
                source = source.with_budgets(budget)
            problem = source.problem()
        result = solve(
            problem, tol=tol, method=method, max_iter=max_iter, time_limit=time_limit, progress=True
        )
        if out is not None:
            with waiting(f"writing {out}"):
                files.write(out, source, problem.budgets, result.weights, result.variances)
        if plot is not None:
            with waiting(f"drawing {plot}"):
                plotting.save(result, plot, tol=tol, groups=source.groups.names, blocks=source.blocks.names)
    outputs = {"design": out, "plot": plot}
    if as_json:
        _print_json({**_solved(result), **_described(source, problem), "outputs": _paths(outputs)})
    else:
        _print_result(result, source)
        _print_outputs(outputs)
    raise typer.Exit(SOLVED if result.converged else NOT_CONVERGED)


@app.command("verify")
def verify_command(
    design: Annotated[Path, typer.Argument(metavar="DESIGN", help="A saved design, with weights.")],
    group: Group = None,
    block: Block = None,
    features: Features = None,
    solver: Annotated[str, typer.Option(help="CLARABEL, SCS or another cone solver of cvxpy.")] = "CLARABEL",
    tol: Annotated[
        float | None, typer.Option(help="Ask for a certificate with gap <= tol * rank as well.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Certify the weights of a saved design and compare them with the answer of cvxpy.

    The budgets are the sums of the weights. Exit code 0 if the two agree, 1 if not or if cvxpy fails.
    """
    with _bad_input():
        with waiting(f"reading {design}"):
            source = files.read(design, group=group, block=block, features=_names(features))
            result = _saved_design(source, design)
            solver = _known_solver(solver)
        with waiting(f"solving with cvxpy and {solver}"):
            outcome = verify(result, solver)
    good_enough = tol is None or result.relative_gap <= tol
    if as_json:
        report = {**_certified(result), **_described(source, result.problem), **_verified(outcome)}
        _print_json({**report, "tol": tol, "within_tol": good_enough})
    else:
        _print_result(result, source)
        _print_verification(outcome)
        if not good_enough:
            typer.echo(f"The relative gap {result.relative_gap:.3g} exceeds --tol {tol:.3g}.")
    raise typer.Exit(SOLVED if outcome.agrees and good_enough else NOT_CONVERGED)


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the picture and the design go.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random features.")] = 0,
) -> None:
    """Solve, certify, verify and draw the paper's synthetic instance: 100 clients, 10 arms, dimension 3."""
    features = authors_features(clients=100, arms=10, dim=3, seed=seed)
    clients, arms, dim = features.shape
    source = _grid(features)
    design, picture = out / "design.csv", out / "demo.png"
    with _bad_input():
        out.mkdir(parents=True, exist_ok=True)
        _check_outputs(design, picture)
        result = solve(DesignProblem.disjoint(features), tol=DEMO_TOL, method="bca", progress=True)
        with waiting("verifying with cvxpy"):
            outcome = verify(result)
        with waiting(f"drawing {picture}"):
            files.write(design, source, result.problem.budgets, result.weights, result.variances)
            title = f"The authors' synthetic instance: {clients} clients, {arms} arms, dimension {dim}"
            plotting.save(result, picture, tol=DEMO_TOL, words=("client", "arm"), title=title)
    typer.echo(f"{clients} clients (groups), {arms} arms (blocks), dimension {dim}, seed {seed}\n")
    _print_result(result, source)
    _print_verification(outcome)
    _print_outputs({"design": design, "plot": picture})
    raise typer.Exit(SOLVED if result.converged and outcome.agrees else NOT_CONVERGED)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn what is wrong with the input, or with where output should go, into a message and exit code 2."""
    try:
        yield
    except (ValueError, ImportError) as error:
        _refuse(str(error))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        _refuse(f"{error.strerror or error}{where}. Check the path.")


def _refuse(message: str) -> NoReturn:
    typer.echo(f"optdesign: {message}", err=True)
    raise typer.Exit(BAD_INPUT)


def _check_outputs(out: Path | None, plot: Path | None) -> None:
    """Refuse outputs that could not be written before the work is done."""
    if out is not None:
        if tables.check_suffix(out, "--out", files.SUFFIXES) == ".parquet":
            tables.pyarrow()
        tables.check_writable(out, "--out")
    if plot is not None:
        tables.check_suffix(plot, "--plot", plotting.SUFFIXES)
        plotting.matplotlib()
        tables.check_writable(plot, "--plot")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _saved_design(source: CandidateFile, path: Path) -> DesignResult:
    """The weights of a file with a fresh certificate; unless given, budgets are the sums of the weights."""
    weights = source.weights
    if weights is None:
        raise ValueError(
            f"a saved design must have a column 'weight'; {path} has "
            f"{', '.join(map(repr, source.columns))}. Save one with optdesign solve --out."
        )
    if source.budgets is None:
        names, numbers = source.groups
        budgets = np.bincount(numbers, weights=weights, minlength=len(names))
        empty = np.flatnonzero(~(budgets > 0))
        if len(empty):
            raise ValueError(
                f"the weights of a group must sum to something positive, its budget; those of group "
                f"{str(names[empty[0]])!r} in {path} sum to {budgets[empty[0]]:g}. Drop its rows."
            )
        source = replace(source, budgets=budgets)
    problem = source.problem()
    nothing = np.empty(0)
    return DesignResult(
        problem=problem,
        weights=weights,
        certificate=certify(problem, weights),
        status=Status.GIVEN,
        method="saved",
        iterations=0,
        seconds=0.0,
        history=History(nothing, nothing, nothing),
    )


def _known_solver(name: str) -> str:
    import cvxpy

    known = cvxpy.installed_solvers()
    if name.upper() not in known:
        raise ValueError(
            f"--solver must be one of {', '.join(known)}; got {name!r}. Leave it out for CLARABEL."
        )
    return name.upper()


def _grid(features: np.ndarray) -> CandidateFile:
    """Features (clients, arms, dim) as a file of candidates would hold them."""
    clients, arms, dim = features.shape
    names = [f"x{j}" for j in range(dim)]
    flat = features.reshape(-1, dim)
    client, arm = np.divmod(np.arange(len(flat)), arms)
    columns = {"client": client, "arm": arm, **dict(zip(names, flat.T, strict=True))}
    return CandidateFile(
        candidates=flat,
        features=tuple(names),
        groups=Labels(np.arange(clients), client),
        blocks=Labels(np.arange(arms), arm),
        budgets=None,
        weights=None,
        columns=columns,
    )


def _certified(result: DesignResult) -> dict[str, Any]:
    return {
        "gap": result.gap,
        "relative_gap": result.relative_gap,
        "efficiency": result.efficiency,
        "rank": result.rank,
        "g_value": result.g_value,
        "log_det": result.log_det,
        "support": len(result.support),
    }


def _solved(result: DesignResult) -> dict[str, Any]:
    return {
        "status": result.status.name,
        "message": result.status.value,
        **_certified(result),
        "iterations": result.iterations,
        "seconds": result.seconds,
        "method": result.method,
    }


def _described(source: CandidateFile, problem: DesignProblem) -> dict[str, Any]:
    return {
        "candidates": problem.n_candidates,
        "features": list(source.features),
        "groups": problem.n_groups,
        "blocks": problem.n_blocks,
        "rank_note": _rank_note(source, problem),
    }


def _verified(outcome: Verification) -> dict[str, Any]:
    return {
        "verdict": outcome.verdict,
        "message": outcome.message,
        "comparisons": [
            {"name": c.name, "difference": c.difference, "tolerance": c.tolerance, "agrees": c.agrees}
            for c in outcome.comparisons
        ],
    }


def _rank_note(source: CandidateFile, problem: DesignProblem) -> str:
    """The problem's note on close rank decisions, with the label of the block it numbers."""
    if not problem.rank_note:
        return ""
    b = int(problem.span.close_blocks[0])
    return f"{problem.rank_note} Block {b} is {str(source.blocks.names[b])!r}."


def _paths(outputs: dict[str, Path | None]) -> dict[str, str]:
    return {name: str(path) for name, path in outputs.items() if path is not None}


def _print_json(report: dict[str, Any]) -> None:
    """Print a report; JSON has no infinity, so a number that is not finite becomes null."""
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in report.items()}
    typer.echo(json.dumps(finite, indent=2, allow_nan=False))


def _print_result(result: DesignResult, source: CandidateFile) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    problem = result.problem
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("candidates", f"{problem.n_candidates}, features {escape(', '.join(source.features))}")
    facts.add_row("groups, blocks", f"{problem.n_groups}, {problem.n_blocks}")
    facts.add_row("rank", str(result.rank))
    facts.add_row("gap", f"{result.gap:.3g} (relative to the rank {result.relative_gap:.3g})")
    # Rounded down: the display never promises more than the certificate.
    facts.add_row("efficiency", f"at least {math.floor(result.efficiency * 1e9) / 1e9:.9f}")
    facts.add_row("log det", f"{result.log_det:.9g}")
    if result.method != "saved":
        facts.add_row("method", f"{result.method}, {result.iterations} iterations, {result.seconds:.3g} s")
        facts.add_row("status", escape(result.status.value))
    note = _rank_note(source, problem)
    if note:
        facts.add_row("note", escape(note))
    console.print(facts)

    support = result.support
    largest = support[np.argsort(-result.weights[support], kind="stable")[:SHOWN]]
    design = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("row", "group", "block", "weight", "variance"):
        design.add_column(heading, justify="left" if heading in ("group", "block") else "right")
    for n in np.sort(largest):
        group, block = (str(labels.names[labels.numbers[n]]) for labels in (source.groups, source.blocks))
        numbers = f"{result.weights[n]:.6f}", f"{result.variances[n]:.6f}"
        design.add_row(str(n + 1), escape(group), escape(block), *numbers)
    console.print(design)
    if len(support) > SHOWN:
        console.print(f"The {SHOWN} largest of {len(support)} weights; the others are smaller.\n")


def _print_verification(outcome: Verification) -> None:
    typer.echo(f"verification  {outcome}")


def _print_outputs(outputs: dict[str, Path | None]) -> None:
    for name, path in _paths(outputs).items():
        typer.echo(f"{name} written to {path}")


if __name__ == "__main__":
    main()
