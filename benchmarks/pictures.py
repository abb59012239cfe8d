"""The pictures of docs/pictures.md, one a function of od.plot.

python benchmarks/pictures.py [--out docs/figures]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import optdesign as od
from optdesign.examples import authors_features

DPI = 80
"""Enough for a page on a screen, and small in a repository."""

QUADRATIC = "~ (temperature + pressure)**2 + I(temperature**2) + I(pressure**2)"


def one_factor() -> od.DesignResult:
    doses = od.candidates({"dose": np.linspace(0, 10, 101)}, model="~ dose + I(dose**2) + I(dose**3)")
    return od.solve(od.DesignProblem(doses))


def two_factors(budget: float = 1) -> od.DesignProblem:
    grid = {"temperature": np.linspace(20, 80, 13), "pressure": np.linspace(1, 3, 9)}
    return od.DesignProblem(od.candidates(grid, model=QUADRATIC), budgets=budget)


def mixture() -> od.DesignResult:
    blends = od.simplex_lattice(["water", "ethanol", "acetone"], 12)
    model = "~ 0 + water + ethanol + acetone + water:ethanol + water:acetone + ethanol:acetone"
    return od.solve(od.DesignProblem(od.candidates(blends, model=model)))


def machines() -> od.DesignProblem:
    levels = {"temperature": [20, 30, 40, 50, 60], "catalyst": ["gold", "nickel"], "machine": ["A", "B"]}
    runs = od.candidates(levels, model="~ temperature * catalyst + I(temperature**2)")
    return od.DesignProblem(runs, groups="machine", budgets={"A": 12, "B": 8})


def federated() -> od.DesignResult:
    return od.solve(od.DesignProblem.disjoint(authors_features(30, 8, 3)), method="bca")


def cloud() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 2)) @ [[2.0, 0.9], [0.0, 0.6]]


def figures() -> dict[str, Any]:
    design, points = od.solve(machines()), cloud()
    return {
        "overview": od.plot.overview(design),
        "weights": od.plot.weights(od.solve(two_factors())),
        "weights-federated": od.plot.weights(federated()),
        "sensitivity-one": od.plot.sensitivity(one_factor()),
        "sensitivity-two": od.plot.sensitivity(od.solve(two_factors())),
        "sensitivity-mixture": od.plot.sensitivity(mixture()),
        "sensitivity-groups": od.plot.sensitivity(design, "temperature"),
        "sensitivity-federated": od.plot.sensitivity(federated()),
        "runs": od.plot.runs(od.exact(machines())),
        "runs-plane": od.plot.runs(od.exact(two_factors(14))),
        "efficiencies": od.plot.efficiencies(two_factors(), range(6, 31)),
        "ellipsoid": od.plot.ellipsoid(od.min_volume_ellipsoid(points), points),
        "convergence": od.plot.convergence(federated(), tol=1e-6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures().items():
        path = folder / f"plot-{name}.png"
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
