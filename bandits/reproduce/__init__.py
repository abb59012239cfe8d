"""The paper's experiments: every figure, both tables, and every statement made about them.

    bandits reproduce all --out DIR --ratings u.data

``catalogue`` lists the experiments in the terms of ``description``; read it first. ``running`` plays them,
``summary`` and ``formatting`` reduce the runs to numbers and text, and ``drawing`` draws them. ``claims``
lists the statements of the paper; ``checks``, ``growth`` and ``properties`` measure them and ``decisions``
tests them. ``report`` writes one page with all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed

from bandits.plotting import save_figure, write_rows
from bandits.reproduce import claims, drawing, report
from bandits.reproduce.catalogue import EXPERIMENTS
from bandits.reproduce.claims import Verdict, totals
from bandits.reproduce.description import RATED, Experiment, Scaling, Table
from bandits.reproduce.running import QUICK, Effort, Results, play

__all__ = ["EXPERIMENTS", "QUICK", "Effort", "Verdict", "needs_ratings", "reproduce", "totals"]


def needs_ratings(experiment: Experiment) -> bool:
    """Return True if an experiment plays on MovieLens."""
    return any(case.instance.kind in RATED for case in experiment.cases)


def reproduce(
    names: Sequence[str], out: Path, effort: Effort | None = None, *,
    ratings: Path | None = None, n_jobs: int = 1, progress: bool = False,
) -> list[Verdict]:  # fmt: skip
    """Play experiments by name and write their pictures and numbers, report.html and claims.csv.

    Trials that were finished by an earlier call with the same directory are not played again.
    """
    chosen = {name: EXPERIMENTS[name] for name in names}
    told = claims.relevant(chosen)
    shown = [case for experiment in chosen.values() for case in experiment.cases]
    results = play(
        shown + [case for claim in told for case in claim.cases()],
        out, effort or Effort(), ratings=ratings, n_jobs=n_jobs, progress=progress,
    )  # fmt: skip
    # Pictures take longer than the trials of a quick call, so they are drawn side by side as well.
    Parallel(n_jobs=n_jobs)(
        delayed(_write)(out / name, experiment, results) for name, experiment in chosen.items()
    )
    verdicts = claims.decide(told, results)
    write_rows(out / "claims.csv", report.claim_rows(verdicts))
    report.write_report(out / "report.html", chosen, results, verdicts)
    return verdicts


def _write(stem: Path, experiment: Experiment, results: Results) -> None:
    match experiment:
        case Table():
            rows, picture = drawing.table_rows(experiment, results), drawing.draw_table(experiment, results)
        case Scaling():
            rows = drawing.scaling_rows(experiment, results)
            picture = drawing.draw_scaling(experiment, results)
        case _:
            rows, picture = drawing.figure_rows(experiment, results), drawing.draw_figure(experiment, results)
    write_rows(stem.with_suffix(".csv"), rows)
    save_figure(picture, stem)
