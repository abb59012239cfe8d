"""The command ``bandits``: run experiments from a file, reproduce the paper's figures."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bandits.config import EXAMPLE, Experiment, read
from bandits.reproduce import FIGURES
from bandits.run import Run
from bandits.simulate import simulate

app = typer.Typer(
    help="Fed-PE and its variants: simulate, compare, reproduce.", no_args_is_help=True, add_completion=False
)

Out = Annotated[Path, typer.Option("--out", help="Directory for the plot, the table and the saved runs.")]
Jobs = Annotated[int, typer.Option("--n-jobs", help="Trials at a time; -1 takes all cores.")]
Trials = Annotated[int | None, typer.Option("--trials", min=1, help="Another number of trials.")]
Horizon = Annotated[int | None, typer.Option("--horizon", min=1, help="Another horizon.")]


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="A TOML file; see: bandits example")],
    out: Out = Path("bandits-results"),
    n_jobs: Jobs = 1,
    trials: Trials = None,
    horizon: Horizon = None,
) -> None:
    """Run the experiment of a file: a table, a plot, and saved results.

    Finished trials are kept in the output directory: call again after an interrupt, or with more trials,
    and only what is missing is run.
    """
    _execute(read(config), out, "regret", config.stem, n_jobs, trials, horizon)


@app.command()
def reproduce(
    figure: Annotated[str, typer.Argument(help=f"Which figure: {', '.join(FIGURES)}.")],
    out: Out = Path("bandits-results"),
    n_jobs: Jobs = 1,
    trials: Trials = None,
    horizon: Horizon = None,
) -> None:
    """Reproduce a figure of the paper: PNG, SVG and CSV."""
    if figure not in FIGURES:
        raise ValueError(f"figure must be one of {', '.join(FIGURES)}; got {figure!r}.")
    _execute(FIGURES[figure].experiment(), out, figure, FIGURES[figure].title, n_jobs, trials, horizon)


@app.command()
def example() -> None:
    """Print a commented configuration file, ready to run."""
    typer.echo(EXAMPLE, nl=False)


def _execute(
    experiment: Experiment,
    out: Path,
    stem: str,
    title: str,
    n_jobs: int,
    trials: int | None,
    horizon: int | None,
) -> None:
    """Play all policies, then write and print what they did."""
    from bandits.plotting import plot_regret, save_figure, write_csv

    plan = replace(experiment, trials=trials or experiment.trials, horizon=horizon or experiment.horizon)
    runs: dict[str, Run] = {}
    seconds: dict[str, float] = {}
    for label, policy in plan.policies.items():
        began = time.perf_counter()
        runs[label] = simulate(
            policy, plan.env, plan.horizon, plan.trials, plan.seed, n_jobs=n_jobs, progress=True,
            checkpoint=out / f"{stem}-{_slug(label)}.npz",
        )  # fmt: skip
        seconds[label] = time.perf_counter() - began
    write_csv(runs, out / f"{stem}.csv")
    paths = save_figure(plot_regret(runs, title), out / stem)
    console = Console()
    console.print(_table(runs, seconds, plan.env.clients))
    console.print(f"written: {', '.join(p.name for p in paths)}, {stem}.csv and the runs, in {out}")


def _table(runs: dict[str, Run], seconds: dict[str, float], clients: int) -> Table:
    table = Table(
        caption="regret per client, mean and deviation over trials; scalars per client up and down; "
        "trials that lost a best arm; seconds"
    )
    for name in ("policy", "trials", "regret", "+-", "up", "down", "lost", "s"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for label, run in runs.items():
        lost = sum(run.phases["lost_best"][run.phases["trial"] == n].max(initial=0) > 0 for n in run.trials)
        table.add_row(
            label,
            str(len(run.trials)),
            f"{run.mean[-1]:.2f}",
            f"{run.std[-1]:.2f}",
            f"{run.uploaded.mean() / clients:.0f}",
            f"{run.downloaded.mean() / clients:.0f}",
            str(lost) if len(run.phases) else "-",
            f"{seconds[label]:.2f}",
        )
    return table


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "run"


def main() -> None:
    """Entry point: errors are one line, without a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
