"""The experiment of the demo: three factors in two plants, from a formula to a verified run list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from optdesign import plot as pictures
from optdesign.evaluation.evaluate import evaluate
from optdesign.problem.candidates import candidates
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import exact
from optdesign.saving.files import save
from optdesign.verification.verify import verify

FACTORS: dict[str, Any] = {
    "temp": [20, 40, 60],
    "time": [10, 20, 30],
    "catalyst": ["nickel", "gold", "none"],
    "plant": ["Turin", "Lyon"],
}
MODEL = "~ plant + catalyst + quad(temp, time)"
RUNS = {"Turin": 9, "Lyon": 7}


def show_two_plants(out: Path) -> bool:
    """Print the experiment, write its list and pictures to a folder, and return True if it is verified."""
    problem = DesignProblem(candidates(FACTORS, model=MODEL, coded=True), groups="plant", budgets=RUNS)
    runs = exact(problem, seed=0)
    table = runs.table(randomise=1, keep_groups=True)
    outcome = verify(runs)
    paths = {name: out / name for name in ("runs.csv", "runs.json", "runs.png", "prediction-variance.png")}
    table.write(paths["runs.csv"])
    save(runs, paths["runs.json"])
    pictures.runs(runs, ["temp", "time"], path=paths["runs.png"])
    found = evaluate(runs)
    pictures.design_space(found, path=paths["prediction-variance.png"])
    factors = "\n".join(f"  {name:<10}  {', '.join(map(str, levels))}" for name, levels in FACTORS.items())
    parts = (
        f"factors\n{factors}\nmodel\n  {MODEL}\nruns\n  "
        + " + ".join(f"{n} in {plant}" for plant, n in RUNS.items()),
        str(runs),
        f"the list, in random order within each plant\n{table}",
        f"its evaluation\n{found}",
        f"its verification\n{outcome}",
        "\n".join(f"{path.stem} written to {path}" for path in paths.values()),
    )
    typer.echo("== an experiment in two plants\n")
    typer.echo("\n\n".join(parts) + "\n")
    return outcome.agrees
