"""The command ``optdesign``: designs of candidates in a file, from the shell.

    optdesign solve candidates.csv --group site --parameter-block model --budget budgets.csv --out design.csv
    optdesign solve factors.csv --model "~ temp * cat + I(temp**2)" --runs 20 --out runs.csv
    optdesign certify design.csv --group site --parameter-block model
    optdesign verify design.csv --group site --parameter-block model
    optdesign demo
    optdesign warm-up

Exit codes: 0 solved (certified, verified), 1 not converged (not so; whatever was found is still written) or
a search for runs that was interrupted, 2 bad input, with one message on standard error, 141 if the program
that reads the output stops reading.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import numpy as np
import typer

from optdesign import plot as pictures
from optdesign.cli import candidate_file as files
from optdesign.cli import notices, outputs, report, saved
from optdesign.cli.candidate_file import CandidateFile
from optdesign.cli.options import (
    Block,
    Budget,
    DesignCommand,
    Features,
    Group,
    Json,
    Model,
    NoBlock,
    NoGroup,
    Passing,
    Saved,
    TimeLimit,
    chosen_label,
)
from optdesign.cli.pipes import ExitCode, command_line
from optdesign.cli.roles import Label
from optdesign.cli.spelling import as_option
from optdesign.cli.warm_up import warm_up_command
from optdesign.design.display import CANDIDATE
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.examples import authors_features, grid_file
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import exact
from optdesign.runs.runs import Runs, RunStatus
from optdesign.runtime.progress import waiting
from optdesign.solvers.solve import METHODS, solve
from optdesign.tables import files as tables
from optdesign.verification.verify import verify

VERIFY_TOL = 1e-4
"""Relative gap up to which a saved design counts as optimal, unless another is asked for."""

app = command_line(
    "optdesign", "Optimal experimental designs under several budgets, each with a certificate."
)


def main() -> None:
    """Run the command line."""
    app(prog_name="optdesign")


@app.command(
    "solve",
    cls=DesignCommand,
    short_help="Find the best weights, or whole runs, for the candidates of a file, with a certificate.",
)
def solve_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Candidates: .csv, .parquet or .npz.")],
    model: Model = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="Rows that are candidates: 'temp <= 60 or cat == \"a\"'."),
    ] = None,
    group: Group = None,
    no_group: NoGroup = False,
    block: Block = None,
    no_block: NoBlock = False,
    features: Features = None,
    budget: Budget = None,
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|A=12,B=8|FILE",
            help="Whole runs instead of weights: how many, for every group or by its label.",
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * rank.")] = 1e-6,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    max_iter: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    time_limit: TimeLimit = None,
    tries: Annotated[int | None, typer.Option(help="Starts of the search for runs [default: 10].")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search for runs [default: 0].", min=0)] = None,
    randomise: Annotated[
        int | None, typer.Option(metavar="SEED", help="List the runs in random order.", min=0)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the rows with weight and variance: .csv, .parquet or .npz; or one run a row.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save a picture: .png, .pdf or .svg.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="FILE is a saved design: replace its columns weight and variance."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the best weights for the candidates of a file, with their certificate.

    With --runs, find whole runs, and how good they are at least against all designs.
    """
    with _bad_input():
        if runs is not None and budget is not None:
            raise InputError(
                "--runs and --budget", "must not both be given: runs are the budgets", remedy="Drop one."
            )
        for option, value in (("--tries", tries), ("--seed", seed), ("--randomise", randomise)):
            if runs is None and value is not None:
                raise InputError(option, "must come with --runs: weights are not searched", remedy="Drop it.")
        given = runs or budget
        outputs.check(out, plot, [file] if given is None else [file, Path(given)], force=force)
        if runs is not None and out is not None:
            tables.check_suffix(out, "--out of a run list", files.SUFFIXES[:2])
        with waiting(f"reading {file}"):
            source = files.read(
                file,
                group=chosen_label("group", group, no_group),
                block=chosen_label("parameter-block", block, no_block),
                features=_names(features),
                model=model,
                where=where,
                fresh=not again,
            )
            if given is not None:
                source = source.with_budgets(given, "--budget" if runs is None else "--runs")
        with waiting("finding the rank of every parameter block"):
            problem = source.problem()
        if runs is not None:
            _check_whole(problem)
            with waiting("searching for runs"), _assuming(source):
                found = exact(problem, seed=seed or 0, tries=tries, time_limit=time_limit)
            _report_runs(found, source, randomise, out, plot, as_json)
        result = solve(
            problem, tol=tol, method=method, max_iter=max_iter, time_limit=time_limit, progress=True
        )
        if out is not None:
            with waiting(f"writing {out}"):
                files.write(out, source, problem.budgets, result.weights, result.variances)
        if plot is not None:
            with _drawing(plot):
                pictures.overview(result, words=_words(source), rows=source.numbers, path=plot)
    written = {"design": out, "plot": plot}
    if as_json:
        described = report.described(source, problem)
        design = report.design(result, source)
        report.print_json({**report.solved(result), **described, **design, "outputs": report.paths(written)})
    else:
        report.print_result(result, source, out)
        report.print_outputs(written)
    raise typer.Exit(ExitCode.DONE if result.converged else ExitCode.NOT_CONVERGED)


def _check_whole(problem: DesignProblem) -> None:
    part = np.flatnonzero(problem.budgets != np.floor(problem.budgets))
    if len(part):
        raise InputError("--runs", "must be whole numbers", f"got {problem.budgets[part[0]]:g}", "Round it.")


def _report_runs(
    found: Runs,
    source: CandidateFile,
    randomise: int | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> NoReturn:
    """Write, draw and report whole runs: the end of the command."""
    order = found.table(randomise=randomise)[CANDIDATE]
    if out is not None:
        with waiting(f"writing {out}"):
            files.write_runs(out, source, order)
    if plot is not None:
        with _drawing(plot):
            pictures.runs(found, words=_words(source), rows=source.numbers, path=plot)
    written = {"runs": out, "plot": plot}
    if as_json:
        described, listed = report.described(source, found.problem), report.searched(found, source, order)
        report.print_json({**listed, **described, "outputs": report.paths(written)})
    else:
        report.print_runs(found, source, out)
        report.print_outputs(written)
    raise typer.Exit(ExitCode.NOT_CONVERGED if found.status is RunStatus.INTERRUPTED else ExitCode.DONE)


@app.command("certify", cls=DesignCommand, short_help="Certify the weights of a saved design.")
def certify_command(
    design: Saved,
    model: Model = None,
    group: Group = None,
    no_group: NoGroup = False,
    block: Block = None,
    no_block: NoBlock = False,
    features: Features = None,
    budget: Budget = None,
    tol: Passing = VERIFY_TOL,
    as_json: Json = False,
) -> None:
    """Certify the weights of a saved design: the proof alone, without another solver.

    Exit code 0 if gap <= tol * rank, 1 if not. The budgets are the sums of the weights; with --budget, sums
    that differ from these budgets are refused.
    """
    with _bad_input():
        labels = chosen_label("group", group, no_group), chosen_label("parameter-block", block, no_block)
        source, result = _read_design(design, model, labels, features, budget, tol)
    if as_json:
        described = report.described(source, result.problem)
        report.print_json({**report.certified(result), **described, **report.judged(result, tol)})
    else:
        report.print_result(result, source, design)
        report.print_certificate(result, tol)
    raise typer.Exit(ExitCode.DONE if result.relative_gap <= tol else ExitCode.NOT_CONVERGED)


@app.command(
    "verify",
    cls=DesignCommand,
    short_help="Certify the weights of a saved design, recompute it exactly, and compare with cvxpy.",
)
def verify_command(
    design: Saved,
    model: Model = None,
    group: Group = None,
    no_group: NoGroup = False,
    block: Block = None,
    no_block: NoBlock = False,
    features: Features = None,
    budget: Budget = None,
    solver: Annotated[str, typer.Option(help="CLARABEL, SCS or another cone solver of cvxpy.")] = "CLARABEL",
    tol: Passing = VERIFY_TOL,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds for cvxpy.")] = None,
    as_json: Json = False,
) -> None:
    """Certify the weights of a saved design, recompute it exactly, and compare with the answer of cvxpy.

    Exit code 0 if gap <= tol * rank and both agree, 1 if not or if cvxpy fails. The budgets are the sums
    of the weights; with --budget, sums that differ from these budgets are refused.
    """
    with _bad_input():
        if time_limit is not None and not time_limit > 0:
            raise InputError(
                "--time-limit", "must be positive seconds", f"got {time_limit}", "Leave it out for none."
            )
        labels = chosen_label("group", group, no_group), chosen_label("parameter-block", block, no_block)
        source, result = _read_design(design, model, labels, features, budget, tol)
        with waiting("loading cvxpy"):
            solver = _known_solver(solver)
        outcome = verify(result, solver, time_limit=time_limit, progress=True)
    if as_json:
        described, told = report.described(source, result.problem), report.verified(result, outcome, tol)
        both = {"notes": described["notes"] + told["notes"]}
        report.print_json({**report.certified(result), **described, **told, **both})
    else:
        report.print_result(result, source, design)
        report.print_verification(result, outcome, tol)
    passed = outcome.agrees and result.relative_gap <= tol
    raise typer.Exit(ExitCode.DONE if passed else ExitCode.NOT_CONVERGED)


@app.command("demo", short_help="Solve, certify, verify and draw the paper's synthetic instance.")
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the picture and the design go.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random features.")] = 0,
) -> None:
    """Solve, certify, verify and draw the paper's synthetic instance: 100 clients, 10 arms, dimension 3."""
    features = authors_features(clients=100, arms=10, dim=3, seed=seed)
    clients, arms, dim = features.shape
    source = grid_file(features)
    design, picture = out / "design.csv", out / "demo.png"
    demo_tol = 1e-6
    with _bad_input():
        out.mkdir(parents=True, exist_ok=True)
        outputs.check(design, picture, [], force=True)
        result = solve(DesignProblem.disjoint(features), tol=demo_tol, method="bca", progress=True)
        outcome = verify(result, progress=True)
        with _drawing(picture):
            files.write(design, source, result.problem.budgets, result.weights, result.variances)
            title = f"The authors' synthetic instance: {clients} clients, {arms} arms, dimension {dim}"
            words = ("client", "arm")
            pictures.overview(result, convergence=True, tol=demo_tol, words=words, title=title, path=picture)
    typer.echo(f"{clients} clients (groups), {arms} arms (parameter blocks), dimension {dim}, seed {seed}\n")
    report.print_result(result, source, design)
    report.print_verification(result, outcome, demo_tol)
    typer.echo()
    report.print_outputs({"design": design, "plot": picture})
    raise typer.Exit(ExitCode.DONE if result.converged and outcome.agrees else ExitCode.NOT_CONVERGED)


app.command("warm-up", short_help="Compile every kernel, for images of containers.")(warm_up_command)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn an error of the input into a message and exit code 2."""
    try:
        yield
    except InputError as error:
        _refuse(str(as_option(error)))
    except (ValueError, ImportError) as error:
        _refuse(str(error))


@contextmanager
def _drawing(path: Path) -> Iterator[None]:
    """Say that a picture is drawn and, if labels have characters without a font, what it shows instead."""
    with warnings.catch_warnings(record=True) as notes, waiting(f"drawing {path}"):
        warnings.simplefilter("always", UserWarning)
        yield
    for note in notes:
        typer.echo(f"optdesign: {note.message}", err=True)


def _refuse(message: str) -> NoReturn:
    typer.echo(f"optdesign: {message}", err=True)
    raise typer.Exit(ExitCode.BAD_INPUT)


def _words(source: CandidateFile) -> tuple[str, str]:
    """Return the words of pictures for groups and parameter blocks: the columns of their labels."""
    return source.group or "group", source.block or "parameter block"


@contextmanager
def _assuming(source: CandidateFile) -> Iterator[None]:
    """Add to an error of a search for runs which columns are labels only because of their names."""
    try:
        yield
    except InputError as error:
        raise as_option(error, budgets="--runs").replace(remedy=error.remedy + source.assumed) from None


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _read_design(
    path: Path,
    model: str | None,
    labels: tuple[Label, Label],
    features: str | None,
    budget: str | None,
    tol: float,
) -> tuple[CandidateFile, DesignResult]:
    """A saved design as its file holds it, and certified."""
    if not tol > 0:
        raise InputError("--tol", "must be positive", f"got {tol}", f"The default is {VERIFY_TOL:g}.")
    with waiting(f"reading {path}"):
        group, block = labels
        source = files.read(path, group=group, block=block, features=_names(features), model=model)
        source = replace(source, notes=(*source.notes, *notices.assumed(source.ignored)))
        if budget is not None:
            source = source.with_budgets(budget)
        return source, saved.design(source, path)


def _known_solver(name: str) -> str:
    import cvxpy

    known = cvxpy.installed_solvers()
    if name.upper() not in known:
        raise InputError(
            "--solver", f"must be one of {', '.join(known)}", f"got {name!r}", "Leave it out for CLARABEL."
        )
    return name.upper()


if __name__ == "__main__":
    main()
