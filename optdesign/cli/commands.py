"""The command ``optdesign``: designs of candidates in a file, from the shell.

    optdesign solve candidates.csv --group site --parameter-block model --budget budgets.csv --out design.csv
    optdesign solve factors.csv --model "~ temp * cat + I(temp**2)" --runs 20 --out runs.csv
    optdesign certify design.csv --group site --parameter-block model
    optdesign verify design.csv --group site --parameter-block model
    optdesign verify runs.csv
    optdesign evaluate runs.csv --model "~ temp * cat" --against others.csv
    optdesign demo
    optdesign warm-up

Exit codes:

- 0: the design is solved, certified or verified.
- 1: the solver has not converged, the search for runs was interrupted, or the design does not pass. Results
  are written nevertheless.
- 2: the input is invalid. One message on standard error states the reason.
- 141: the program that reads the output has closed the pipe.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from optdesign import plot as pictures
from optdesign.cli import candidate_file as files
from optdesign.cli import evaluation_report, large_file, report, run_list_file, saved
from optdesign.cli.candidate_file import CandidateFile
from optdesign.cli.options import (
    Candidates,
    ColumnOptions,
    DesignCommand,
    Force,
    Json,
    Passing,
    Plot,
    Saved,
    Where,
    with_column_options,
)
from optdesign.cli.pipes import ExitCode, command_line
from optdesign.cli.roles import LabelColumns
from optdesign.cli.spelling import as_option
from optdesign.cli.two_plants import show_two_plants
from optdesign.cli.warm_up import warm_up_command
from optdesign.design.display import CANDIDATE
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.evaluation.evaluate import evaluate
from optdesign.examples import authors_features
from optdesign.numbers.checks import check_choice, check_positive, check_time_limit
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import exact
from optdesign.runs.runs import Runs, RunStatus
from optdesign.runtime.progress import waiting
from optdesign.solvers.solve import METHODS, solve
from optdesign.sources.opening import is_larger_than_memory
from optdesign.verification.verify import Verification, verify

VERIFY_TOL = 1e-4
"""Default of the largest relative gap of a saved design that passes."""

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
@with_column_options
def solve_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Candidates: .csv, .parquet or .npz, a directory of .parquet or .npy files, or .npy.",
        ),
    ],
    columns: ColumnOptions,
    where: Where = None,
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|A=12,B=8|FILE",
            help="Find whole runs instead of weights: their number, one number for each group, or a file.",
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * rank.")] = 1e-6,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    max_iter: Annotated[int | None, typer.Option(help="Largest number of iterations.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Largest number of seconds.")] = None,
    tries: Annotated[
        int | None, typer.Option(help="Starts of the search for runs [default: about 1 s].")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search for runs [default: 0].", min=0)] = None,
    randomise: Annotated[
        int | None, typer.Option(metavar="SEED", help="List the runs in random order.", min=0)
    ] = None,
    keep_groups: Annotated[
        bool, typer.Option("--keep-groups", help="Random order within groups, whose runs stay together.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the rows with weight and variance: .csv, .parquet or .npz. With --runs, save one row "
            "per run, and a recipe FILE.json for optdesign verify.",
        ),
    ] = None,
    plot: Plot = None,
    force: Force = False,
    again: Annotated[
        bool, typer.Option("--again", help="FILE is a saved design: replace its columns weight and variance.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the best weights for the candidates of a file, with their certificate.

    With --runs, find whole runs, with a bound on their efficiency against all designs on these candidates.
    """
    with _bad_input():
        if runs is not None and columns.budget is not None:
            rule = "must not both be given: runs are the budgets"
            raise InputError("--runs and --budget", rule, remedy="Drop one.")
        for option, value in (("--tries", tries), ("--seed", seed), ("--randomise", randomise)):
            if runs is None and value is not None:
                raise InputError(option, "must come with --runs: weights are not searched", remedy="Drop it.")
        if keep_groups and randomise is None:
            raise InputError("--keep-groups", "must come with --randomise SEED", remedy="Add it.")
        if is_larger_than_memory(file):
            large_file.check_options(runs, plot, out)
        inputs = [file, *(Path(given) for given in (runs, columns.budget) if given)]
        files.check_outputs(out, plot, inputs, force=force, is_run_list=runs is not None)
        limits: dict[str, Any] = {"tol": tol, "method": method, "max_iter": max_iter}
        limits["time_limit"] = time_limit
        if is_larger_than_memory(file):
            code = _solve_large(file, columns, where, out, limits, fresh=not again, as_json=as_json)
            raise typer.Exit(code)
        with waiting(f"reading {file}"):
            source = columns.read(file, runs=runs, where=where, fresh=not again)
        if out is not None and runs is None:
            files.check_kept(out, source)
        with waiting("finding the rank of every parameter block"):
            problem = source.problem()
        if runs is not None:
            for number in problem.budgets[problem.budgets % 1 != 0][:1]:
                raise InputError("--runs", "must be whole numbers", f"got {number:g}", "Round it.")
            try:
                with waiting("searching for runs"):
                    found = exact(problem, seed=seed or 0, tries=tries, time_limit=time_limit)
            except InputError as error:
                remedy = error.remedy + source.assumed
                raise as_option(error, budgets="--runs").replace(remedy=remedy) from None
            order = found.table(randomise=randomise, keep_groups=keep_groups)[CANDIDATE]
            recipe = None
            if out is not None:
                with waiting(f"writing {out}"):
                    files.write_runs(out, source, order)
                    recipe = run_list_file.recipe_path(out)
                    run_list_file.write_recipe(out, found, file, columns, where)
            _draw(pictures.runs, found, source, plot)
            written = {"runs": out, "recipe": recipe, "plot": plot}
            report.print_solved(found, source, written, as_json, order)
            failed = found.status is RunStatus.INTERRUPTED
        else:
            result = solve(problem, **limits, progress=True)
            if out is not None:
                with waiting(f"writing {out}"):
                    files.write(out, source, problem.budgets, result.weights, result.variances)
            _draw(pictures.overview, result, source, plot)
            report.print_solved(result, source, {"design": out, "plot": plot}, as_json)
            failed = not result.converged
    raise typer.Exit(ExitCode.NOT_CONVERGED if failed else ExitCode.DONE)


def _solve_large(
    file: Path,
    columns: ColumnOptions,
    where: str | None,
    out: Path | None,
    limits: dict[str, Any],
    *,
    fresh: bool,
    as_json: bool,
) -> int:
    """Solve candidates that stay on disk, write and print the rows with weight, and return the exit code."""
    with waiting(f"reading {file}"):
        large = large_file.LargeFile(file, columns, where, fresh=fresh)
    found: Any = solve(large.problem, **limits, progress=True)
    with waiting("reading the rows with weight"):
        source, result = large.with_weight(found)
    if out is not None:
        large_file.write(out, source, result)
    report.print_solved(result, source, {"design": out}, as_json)
    return ExitCode.DONE if result.converged else ExitCode.NOT_CONVERGED


def _draw(draw: Any, found: DesignResult | Runs, source: CandidateFile, plot: Path | None) -> None:
    """Draw a design or runs to ``plot``, if it is given."""
    if plot is not None:
        words = source.group or "group", source.block or "parameter block"
        with _drawing(plot):
            draw(found, words=words, rows=source.numbers, path=plot)


@app.command("certify", cls=DesignCommand, short_help="Certify a saved design or run list.")
@with_column_options
def certify_command(
    design: Saved,
    columns: ColumnOptions,
    candidates: Candidates = None,
    where: Where = None,
    tol: Passing = VERIFY_TOL,
    as_json: Json = False,
) -> None:
    """Certify the weights of a saved design, or a run list, without another solver.

    Exit code 0 if gap <= tol * rank, 1 if not. The budgets are the sums of the weights. With --budget, it is
    an error if the sums differ from these budgets. A run list passes if the runs determine all parameters
    that the candidates can estimate. Its candidates, model and groups are those of its recipe FILE.json, or
    those that --candidates and other options give.
    """
    with _bad_input():
        source, result = _read_design(design, columns, candidates, where, tol, claimed=False)
    _report_saved(design, source, result, None, tol, as_json)


@app.command(
    "verify",
    cls=DesignCommand,
    short_help="Certify a saved design or run list, recompute it exactly, and compare with cvxpy.",
)
@with_column_options
def verify_command(
    design: Saved,
    columns: ColumnOptions,
    candidates: Candidates = None,
    where: Where = None,
    solver: Annotated[str, typer.Option(help="CLARABEL, SCS or another cone solver of cvxpy.")] = "CLARABEL",
    tol: Passing = VERIFY_TOL,
    time_limit: Annotated[float | None, typer.Option(help="Largest number of seconds for cvxpy.")] = None,
    as_json: Json = False,
) -> None:
    """Certify a saved design or a run list, recompute it exactly, and compare with the answer of cvxpy.

    Exit code 0 if gap <= tol * rank and the exact numbers and cvxpy agree with the design, 1 if not or if
    cvxpy fails. The budgets are the sums of the weights. With --budget, it is an error if the sums differ
    from these budgets. A run list passes if the exact numbers and cvxpy agree with the efficiency that it
    states. Its candidates, model and groups are those of its recipe FILE.json, or those that --candidates
    and other options give.
    """
    with _bad_input():
        check_time_limit(time_limit)
        source, result = _read_design(design, columns, candidates, where, tol, claimed=True)
        with waiting("loading cvxpy"):
            solver = _known_solver(solver)
        outcome = verify(result, solver, time_limit=time_limit, progress=True)
    _report_saved(design, source, result, outcome, tol, as_json)


def _report_saved(
    path: Path,
    source: CandidateFile,
    result: DesignResult | Runs,
    outcome: Verification | None,
    tol: float,
    as_json: bool,
) -> NoReturn:
    """Print the verdict on a saved design or run list and end the command."""
    judged = report.judged(source, result, outcome, tol)
    if as_json:
        values = report.certified(result)
        report.print_json({**values, **report.described(source, result.problem), **judged})
    else:
        report.print_result(result, source, path)
        report.print_verdict(judged, outcome)
    raise typer.Exit(ExitCode.DONE if judged["passed"] else ExitCode.NOT_CONVERGED)


@app.command("evaluate", short_help="Standard errors, power, aliases and prediction variance of a run list.")
def evaluate_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Runs, one a row, .csv or .parquet; or a saved .json.")
    ],
    model: Annotated[
        str | None, typer.Option(metavar="FORMULA", help="Model of the columns: '~ temp * cat'.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another design, to compare side by side.")
    ] = None,
    effect: Annotated[float, typer.Option(help="Change of the response over the range of a factor.")] = 1.0,
    sigma: Annotated[float, typer.Option(help="Standard deviation of a run.")] = 1.0,
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05,
    runs: Annotated[float | None, typer.Option(help="Number of runs to which weights are scaled.")] = None,
    plot: Plot = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Evaluate a run list or a saved design: standard errors, power, aliases and prediction variance.

    A list written by solve --runs --out has its model and candidates in its recipe FILE.json. Other lists
    need --model. Two lists are compared on the same region: the candidates of the first recipe, or all
    combinations of the levels in both lists. Saved designs are compared if they have the same candidates.
    """
    with _bad_input():
        given = [file] if against is None else [file, against]
        files.check_outputs(None, plot, given, force=force)
        with waiting(f"reading {' and '.join(map(str, given))}"):
            designs, formula = run_list_file.comparable(given, model)
        options: dict[str, Any] = {"effect": effect, "sigma": sigma, "alpha": alpha, "runs": runs}
        found = [evaluate(design, formula, region=region, **options) for design, region in designs]
        evaluated = list(zip(given, found, strict=True))
        if plot is not None:
            with _drawing(plot):
                evaluation_report.draw(evaluated, plot)
    if as_json:
        report.print_json(evaluation_report.described(evaluated))
    else:
        evaluation_report.print_evaluations(evaluated)


@app.command("demo", short_help="Plan, evaluate and verify an experiment; then the paper's instance.")
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the pictures and the design.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random features.")] = 0,
) -> None:
    """Plan an experiment in two plants, from a formula to a verified run list.

    Then solve, certify, verify and draw a synthetic instance of the paper's authors: 100 clients, 10 arms,
    dimension 3.
    """
    features = authors_features(clients=100, arms=10, dim=3, seed=seed)
    clients, arms, dim = features.shape
    design, picture = out / "design.csv", out / "demo.png"
    demo_tol = 1e-6
    with _bad_input():
        out.mkdir(parents=True, exist_ok=True)
        files.check_outputs(design, picture, [], force=True)
        planned = show_two_plants(out)
        result = solve(DesignProblem.disjoint(features), tol=demo_tol, method="bca", progress=True)
        outcome = verify(result, progress=True)
        problem = result.problem
        labels = {"client": problem.groups, "arm": problem.parameter_blocks}
        names = [f"x{j}" for j in range(dim)]
        table = labels | dict(zip(names, problem.source.whole().T, strict=True))
        source = files.from_columns(table, design, LabelColumns("client", "arm"), names)
        with _drawing(picture):
            files.write(design, source, problem.budgets, result.weights, result.variances)
            title = f"The authors' synthetic instance: {clients} clients, {arms} arms, dimension {dim}"
            words = ("client", "arm")
            pictures.overview(result, convergence=True, tol=demo_tol, words=words, title=title, path=picture)
    typer.echo("== the paper's synthetic instance\n")
    typer.echo(f"{clients} clients (groups), {arms} arms (parameter blocks), dimension {dim}, seed {seed}\n")
    report.print_result(result, source, design)
    report.print_verdict(report.judged(source, result, outcome, demo_tol), outcome)
    typer.echo()
    report.print_outputs({"design": design, "plot": picture})
    passed = planned and result.converged and outcome.agrees
    raise typer.Exit(ExitCode.DONE if passed else ExitCode.NOT_CONVERGED)


app.command("warm-up", short_help="Compile every kernel, for example in a container image.")(warm_up_command)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn an error in the input into a message on standard error and exit code 2."""
    try:
        yield
    except (ValueError, ImportError) as error:
        typer.echo(f"optdesign: {as_option(error) if isinstance(error, InputError) else error}", err=True)
        raise typer.Exit(ExitCode.BAD_INPUT) from None


@contextmanager
def _drawing(path: Path) -> Iterator[None]:
    """Show a progress display while a picture is drawn, then print its warnings, such as missing fonts."""
    with warnings.catch_warnings(record=True) as notes, waiting(f"drawing {path}"):
        warnings.simplefilter("once", UserWarning)
        yield
    for note in notes:
        typer.echo(f"optdesign: {note.message}", err=True)


def _read_design(
    path: Path,
    columns: ColumnOptions,
    candidates: Path | None,
    where: str | None,
    tol: float,
    *,
    claimed: bool,
) -> tuple[CandidateFile, DesignResult | Runs]:
    """Return a saved design with its certificate, or a run list.

    The numbers of a run list are those in its recipe if ``claimed`` is True, and computed ones otherwise.
    """
    check_positive(tol, "--tol", f"The default is {VERIFY_TOL:g}.")
    with waiting(f"reading {path}"):
        recipe = run_list_file.find_recipe(path, candidates, columns, where)
        if recipe is not None:
            return run_list_file.read_runs(path, recipe, claimed=claimed)
        return saved.design(columns.read(path), path)


def _known_solver(name: str) -> str:
    """Return the name of a solver in capitals, or raise InputError if cvxpy has no such solver."""
    import cvxpy

    check_choice(name.upper(), cvxpy.installed_solvers(), "--solver", "Leave it out for CLARABEL.")
    return name.upper()


if __name__ == "__main__":
    main()
