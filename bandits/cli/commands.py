"""The command ``bandits``: run experiments from a file, reproduce the paper's figures.

    bandits example > config.toml
    bandits run config.toml --out results
    bandits reproduce all --out figures --ratings u.data

Exit codes: 0 done, 2 bad input, 130 interrupted, with one message on standard error, 141 if the program that
reads the output stops reading.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from bandits.cli.experiment_file import EXAMPLE, Experiment, read
from bandits.cli.options import suggestion
from bandits.reproduce import EXPERIMENTS, QUICK, Effort, needs_ratings, totals
from bandits.reproduce import reproduce as reproduce_experiments
from bandits.reproduce.formatting import plain, rounded
from bandits.simulation.fingerprints import differences, fingerprint, is_stale
from bandits.simulation.run import Run, load
from bandits.simulation.runner import simulate
from bandits.trials.trial import Policy
from optdesign.cli.pipes import command_line
from optdesign.plot import require_matplotlib

app = command_line("bandits", "Fed-PE and its variants: simulate, compare, reproduce.")

HEADINGS = (
    "trials",
    "regret\nmean",
    "regret\nstd",
    "scalars\nup",
    "scalars\ndown",
    "best\nlost",
    "seconds",
)

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Directory for the plot, the table and the saved runs.")
]
Jobs = Annotated[int, typer.Option("--n-jobs", help="Trials at a time; -1 takes all cores.")]
Trials = Annotated[int | None, typer.Option("--trials", min=1, help="Another number of trials.")]
Horizon = Annotated[int | None, typer.Option("--horizon", min=1, help="Another horizon.")]


@app.command(short_help="Run the experiment of a file: a table, a plot, and saved results.")
def run(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file; see: bandits example")],
    out: Out = Path("bandits-results"),
    n_jobs: Jobs = 1,
    trials: Trials = None,
    horizon: Horizon = None,
) -> None:
    """Run the experiment of a file: a table, a plot, and saved results.

    Finished trials are kept in the output directory: call again after an interrupt, or with more trials,
    and only missing trials are run.
    """
    experiment = read(config, horizon=horizon, trials=trials)
    try:
        _execute(experiment, out, "regret", n_jobs)
    except KeyboardInterrupt:
        _interrupted(out)


@app.command(short_help="Reproduce the paper's figures and tables, and test its statements.")
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME|all", help=f"Which: {', '.join(EXPERIMENTS)}.")
    ] = None,
    out: Out = Path("bandits-results"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Three trials, short horizons: not the paper's numbers."),
    ] = False,
    ratings: Annotated[
        Path | None, typer.Option("--ratings", metavar="FILE", help="u.data of MovieLens-100K, for fig1c.")
    ] = None,
    n_jobs: Jobs = -1,
    trials: Trials = None,
    horizon: Annotated[int | None, typer.Option("--horizon", min=1, help="Cut horizons to this.")] = None,
) -> None:
    """Reproduce figures and tables of the paper: PNG, SVG and CSV, report.html and claims.csv.

    Finished trials are kept in the output directory: call again after an interrupt, and only missing
    trials are run.
    """
    require_matplotlib()
    chosen = _chosen(names or ["all"], ratings)
    given = QUICK if quick else Effort()
    effort = Effort(trials or given.trials, horizon or given.longest)
    try:
        verdicts = reproduce_experiments(chosen, out, effort, ratings=ratings, n_jobs=n_jobs, progress=True)
    except KeyboardInterrupt:
        _interrupted(out)
    for line in totals(verdicts):
        typer.echo(f"statements of the paper, {line}")
    typer.echo(f"written: {', '.join(chosen)} as PNG, SVG and CSV, report.html and claims.csv, in {out}")


def _interrupted(out: Path) -> NoReturn:
    """End with code 130 and a message on how to resume."""
    typer.echo(f"interrupted: finished trials are kept in {out}; the same command resumes the run", err=True)
    raise typer.Exit(130) from None


def _chosen(names: list[str], ratings: Path | None) -> list[str]:
    """Return the experiments of these names in the paper's order; ``all`` omits MovieLens without ratings."""
    for name in names:
        if name not in (*EXPERIMENTS, "all"):
            known = ", ".join(EXPERIMENTS)
            raise ValueError(
                f"NAME must be all or one of {known}; got {name!r}{suggestion(name, EXPERIMENTS)}."
            )
    everything = "all" in names
    out = [name for name in EXPERIMENTS if everything or name in names]
    lacking = [name for name in out if ratings is None and needs_ratings(EXPERIMENTS[name])]
    if lacking and not everything:
        raise ValueError(
            f"--ratings must name u.data of MovieLens-100K for {lacking[0]}; got none. "
            "Get the data set ml-100k from GroupLens."
        )
    if lacking:
        typer.echo(
            f"left out: {', '.join(lacking)}, because --ratings u.data (MovieLens-100K) is missing", err=True
        )
    return [name for name in out if name not in lacking]


@app.command()
def example() -> None:
    """Print a commented configuration file, ready to run."""
    typer.echo(EXAMPLE, nl=False)


def _execute(plan: Experiment, out: Path, stem: str, n_jobs: int) -> None:
    """Play all policies, then write and print the results."""
    from bandits.plotting import plot_regret, save_figure, write_csv

    require_matplotlib()
    checkpoints = {label: out / f"{stem}-{_slug(label)}.npz" for label in plan.policies}
    for label, path in checkpoints.items():
        alike = next(other for other in checkpoints if checkpoints[other] == path)
        if alike != label:
            raise ValueError(
                f"policy labels must differ in letters or digits; {alike!r} and {label!r} would both be "
                f"saved in {path.name}. Rename one."
            )
    for label, policy in plan.policies.items():
        _check_checkpoint(checkpoints[label], plan, policy, label)
    runs: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    for label, policy in plan.policies.items():
        began = time.perf_counter()
        runs[label] = simulate(
            policy, plan.env, plan.horizon, plan.trials, plan.seed, n_jobs=n_jobs, progress=True,
            checkpoint=checkpoints[label],
        )  # fmt: skip
        seconds[label] = time.perf_counter() - began
    write_csv(runs, out / f"{stem}.csv")
    # A dollar sign in a label or a title is no mathematics.
    drawn = {label.replace("$", r"\$"): run for label, run in runs.items()}
    paths = save_figure(plot_regret(drawn, plan.title.replace("$", r"\$")), out / stem)
    console = Console(markup=False, emoji=False)
    console.print(_table(runs, seconds, plan.env.clients))
    console.print(f"written: {', '.join(p.name for p in paths)}, {stem}.csv and the runs, in {out}")


def _check_checkpoint(path: Path, plan: Experiment, policy: Policy, label: str) -> None:
    """Raise ValueError if the directory holds the results of another experiment."""
    if not path.exists():
        return
    saved = load(path)
    wanted = fingerprint(policy, plan.env, plan.horizon, saved.times, plan.seed)
    parts = differences(saved.identity, wanted)
    if parts and not is_stale(parts):
        raise ValueError(
            f"--out must not hold results of another experiment; {path} was made with other options of "
            f"{label!r}, or another environment, horizon or seed. Choose another, or delete the file."
        )


def _table(runs: dict[str, Run], seconds: dict[str, float], clients: int) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        caption="Regret and scalars are per client; regret as mean and standard deviation over the trials, "
        "scalars as mean. Best lost: trials in which a client dropped its best arm.",
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for label, run in runs.items():
        lost = sum(run.phases["lost_best"][run.phases["trial"] == n].max(initial=0) > 0 for n in run.trials)
        table.add_row(
            label,
            str(len(run.trials)),
            rounded(run.mean[-1], run.std[-1]),
            rounded(run.std[-1], run.std[-1]) if len(run.trials) > 1 else "-",
            plain(run.uploaded.mean() / clients),
            plain(run.downloaded.mean() / clients),
            str(lost) if len(run.phases) else "-",
            f"{seconds[label]:.2f}",
        )
    return table


def _slug(label: str) -> str:
    """Return the letters and digits of a label, of any alphabet, with hyphens between them."""
    return re.sub(r"[\W_]+", "-", label.lower()).strip("-") or "run"


def main() -> None:
    """Run the command line; an error is one line, without a traceback."""
    try:
        app(prog_name="bandits")
    except (ValueError, ImportError) as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    typer.echo(f"bandits: {message}", err=True)
    sys.exit(2)
