"""The command ``optdesign``: designs of candidates in a file, from the shell.

    optdesign solve candidates.csv --group site --block model --budget budgets.csv --out design.csv
    optdesign certify design.csv --group site --block model
    optdesign verify design.csv --group site --block model
    optdesign demo

Exit codes: 0 solved (certified, verified), 1 not converged (not so; whatever was found is still written),
2 bad input, with one message on standard error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import numpy as np
import typer

from optdesign import __version__, clock, files, plotting, report, tables
from optdesign.certificate import FEASIBILITY_RTOL
from optdesign.examples import authors_features
from optdesign.files import CandidateFile, Labels
from optdesign.problem import DesignProblem
from optdesign.progress import waiting
from optdesign.result import DesignResult
from optdesign.solve import METHODS, solve
from optdesign.verification import verify

SOLVED, NOT_CONVERGED, BAD_INPUT = 0, 1, 2

DEMO_TOL = 1e-6

WARM_UP = (4, "bca"), (4, "newton"), (20_000, "auto")
"""Numbers of candidates and methods that between them use every kernel."""

VERIFY_TOL = 1e-4
"""Relative gap up to which a saved design counts as optimal, unless another is asked for."""

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
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NUMBER",
        help="Two columns, group label and budget; or one number, the budget of every group "
        "[default: 1; of a saved design, what its weights sum to].",
    ),
]
Saved = Annotated[Path, typer.Argument(metavar="DESIGN", help="A saved design, with weights.")]
Passing = Annotated[float, typer.Option("--tol", help="Largest gap / rank of a design that passes.")]
TimeLimit = Annotated[float | None, typer.Option(help="Most seconds.")]
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


@app.command(
    "solve", short_help="Find the best weights for the candidates of a file, with their certificate."
)
def solve_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Candidates: .csv, .parquet or .npz.")],
    group: Group = None,
    block: Block = None,
    features: Features = None,
    budget: Budget = None,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * rank.")] = 1e-6,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    max_iter: Annotated[int | None, typer.Option(help="Most iterations.")] = None,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the rows with weight and variance: .csv, .parquet or .npz."),
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
    """Find the best weights for the candidates of a file, with their certificate."""
    with _bad_input():
        _check_outputs(out, plot, [file] if budget is None else [file, Path(budget)], force=force)
        with waiting(f"reading {file}"):
            source = files.read(file, group=group, block=block, features=_names(features), fresh=not again)
            if budget is not None:
                source = source.with_budgets(budget)
        _warm_up()
        with waiting("finding the rank of every block"):
            problem = source.problem()
        result = solve(
            problem, tol=tol, method=method, max_iter=max_iter, time_limit=time_limit, progress=True
        )
        if out is not None:
            with waiting(f"writing {out}"):
                files.write(out, source, problem.budgets, result.weights, result.variances)
        if plot is not None:
            with waiting(f"drawing {plot}"):
                names, words = (source.groups.names, source.blocks.names), _words(source)
                plotting.save(result, plot, tol=tol, groups=names[0], blocks=names[1], words=words)
    outputs = {"design": out, "plot": plot}
    if as_json:
        described = report.described(source, problem)
        report.print_json({**report.solved(result), **described, "outputs": report.paths(outputs)})
    else:
        report.print_result(result, source, out)
        report.print_outputs(outputs)
    raise typer.Exit(SOLVED if result.converged else NOT_CONVERGED)


@app.command("certify", short_help="Certify the weights of a saved design.")
def certify_command(
    design: Saved,
    group: Group = None,
    block: Block = None,
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
        source, result = _read_design(design, group, block, features, budget, tol)
    if as_json:
        described = report.described(source, result.problem)
        report.print_json({**report.certified(result), **described, **report.judged(result, tol)})
    else:
        report.print_result(result, source, design)
        report.print_certificate(result, tol)
    raise typer.Exit(SOLVED if result.relative_gap <= tol else NOT_CONVERGED)


@app.command(
    "verify",
    short_help="Certify the weights of a saved design, recompute it exactly, and compare with cvxpy.",
)
def verify_command(
    design: Saved,
    group: Group = None,
    block: Block = None,
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
            raise ValueError(
                f"--time-limit must be positive seconds; got {time_limit}. Leave it out for none."
            )
        source, result = _read_design(design, group, block, features, budget, tol)
        with waiting("loading cvxpy"):
            solver = _known_solver(solver)
        outcome = verify(result, solver, time_limit=time_limit, progress=True)
    if as_json:
        described = report.described(source, result.problem)
        report.print_json({**report.certified(result), **described, **report.verified(result, outcome, tol)})
    else:
        report.print_result(result, source, design)
        report.print_verification(result, outcome, tol)
    passed = outcome.agrees and result.relative_gap <= tol
    raise typer.Exit(SOLVED if passed else NOT_CONVERGED)


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
    source = _grid(features)
    design, picture = out / "design.csv", out / "demo.png"
    with _bad_input():
        out.mkdir(parents=True, exist_ok=True)
        _check_outputs(design, picture, [], force=True)
        _warm_up()
        result = solve(DesignProblem.disjoint(features), tol=DEMO_TOL, method="bca", progress=True)
        outcome = verify(result, progress=True)
        with waiting(f"drawing {picture}"):
            files.write(design, source, result.problem.budgets, result.weights, result.variances)
            title = f"The authors' synthetic instance: {clients} clients, {arms} arms, dimension {dim}"
            plotting.save(result, picture, tol=DEMO_TOL, words=("client", "arm"), title=title)
    typer.echo(f"{clients} clients (groups), {arms} arms (blocks), dimension {dim}, seed {seed}\n")
    report.print_result(result, source, design)
    report.print_verification(result, outcome, DEMO_TOL)
    typer.echo()
    report.print_outputs({"design": design, "plot": picture})
    raise typer.Exit(SOLVED if result.converged and outcome.agrees else NOT_CONVERGED)


@contextmanager
def _bad_input() -> Iterator[None]:
    """Turn what is wrong with the input, or with where output should go, into a message and exit code 2."""
    try:
        yield
    except (ValueError, ImportError) as error:
        _refuse(report.spelled(str(error)))
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        _refuse(f"{error.strerror or error}{where}. Check the path.")


def _refuse(message: str) -> NoReturn:
    typer.echo(f"optdesign: {message}", err=True)
    raise typer.Exit(BAD_INPUT)


def _check_outputs(out: Path | None, plot: Path | None, inputs: list[Path], *, force: bool) -> None:
    """Refuse, before the work is done, outputs that could not be written or would overwrite an input."""
    for option, path in (("--out", out), ("--plot", plot)):
        if path is not None and any(_same_file(path, file) for file in inputs):
            raise ValueError(f"{option} must not be a file that is read; got {path}. Choose another path.")
    if out is not None:
        if tables.check_suffix(out, "--out", files.SUFFIXES) == ".parquet":
            tables.pyarrow()
        tables.check_writable(out, "--out", force=force)
    if plot is not None:
        tables.check_suffix(plot, "--plot", plotting.SUFFIXES)
        plotting.matplotlib()
        tables.check_writable(plot, "--plot", force=force)


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _warm_up() -> None:
    """Solve problems that need every kernel, so that all are ready.

    Compiled kernels are kept on disk: later uses load them in a fraction of a second.
    """
    clock.be_silent()
    with waiting("compiling (first use only)"):
        for n, method in WARM_UP:
            turn = np.linspace(0.0, np.pi, n, endpoint=False)
            candidates = np.column_stack([np.cos(turn), 2 * np.sin(turn)])
            solve(DesignProblem(candidates, np.arange(n) % 2), method=method)


def _words(source: CandidateFile) -> tuple[str, str]:
    """What the file calls groups and blocks."""
    return source.group or files.GROUP, source.block or files.BLOCK


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _read_design(
    path: Path, group: str | None, block: str | None, features: str | None, budget: str | None, tol: float
) -> tuple[CandidateFile, DesignResult]:
    """A saved design as its file holds it, and certified."""
    if not tol > 0:
        raise ValueError(f"--tol must be positive; got {tol}. The default is {VERIFY_TOL:g}.")
    with waiting(f"reading {path}"):
        source = files.read(path, group=group, block=block, features=_names(features))
        if budget is not None:
            source = source.with_budgets(budget)
        return source, _saved_design(source, path)


def _saved_design(source: CandidateFile, path: Path) -> DesignResult:
    """The weights of a file with a fresh certificate; unless given, budgets are the sums of the weights."""
    weights = source.weights
    if weights is None:
        raise ValueError(
            f"a saved design must have a column 'weight'; {path} has "
            f"{', '.join(map(repr, source.columns))}. Save one with optdesign solve --out."
        )
    names, numbers = source.groups
    sums = np.bincount(numbers, weights=weights, minlength=len(names))
    if source.budgets is None:
        empty = np.flatnonzero(~(sums > 0))
        if len(empty):
            raise ValueError(
                f"the weights of a group must sum to something positive, its budget; those of group "
                f"{str(names[empty[0]])!r} in {path} sum to {sums[empty[0]]:g}. Drop its rows."
            )
        source = replace(source, budgets=sums)
    else:
        wrong = np.flatnonzero(~(np.abs(sums - source.budgets) <= FEASIBILITY_RTOL * source.budgets))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"the weights of a group must sum to the budget; those of group {str(names[i])!r} in {path} "
                f"sum to {sums[i]:g}, and its budget is {source.budgets[i]:g}. Solve again with this budget."
            )
    return DesignResult.given(source.problem(), weights, method="saved")


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
        group="client",
        block="arm",
        ignored=(),
        groups=Labels(np.arange(clients), client),
        blocks=Labels(np.arange(arms), arm),
        budgets=None,
        weights=None,
        columns=columns,
    )


if __name__ == "__main__":
    main()
