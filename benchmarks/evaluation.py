"""Evaluations that are published, or computed by R, beside those of optdesign.

python benchmarks/evaluation.py
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

import optdesign as od

SKPR = "skpr, reference page of eval_design, commit 572c8cd of its repository"
R = "R 4.2.2: solve(t(X) %*% X), hat, pf with ncp; car::vif"


COFFEE_NOTE = """skpr prints no run list. The list here is a D-optimal one of optdesign whose last levels
  have the most runs. This 1 of the 12 ways to name the levels was chosen because its powers agree, so the
  agreement tests the formulas on a list that fits the figures, not on the list of skpr."""


def show(title: str, source: str, rows: Iterable[tuple[str, float, float]], note: str = "") -> None:
    print(f"{title}\n  source: {source}")
    if note:
        print(f"  note: {note}")
    print(f"  {'figure':<42}{'reference':>12}{'optdesign':>14}{'difference':>12}")
    for name, published, ours in rows:
        print(f"  {name:<42}{published:>12.8g}{ours:>14.9g}{abs(published - ours):>12.1e}")
    print()


def eleven() -> None:
    levels = {name: [-1, 1] for name in "ABC"}
    runs = od.exact(od.DesignProblem(od.candidates(levels, "~ A + B + C"), budgets=11))
    cases: list[tuple[str, dict[str, Any], float]] = [
        ("power, alpha 0.2, effect 2", {"alpha": 0.2, "effect": 2}, 0.9622638),
        ("power, model ~ A + C", {"alpha": 0.2, "effect": 2, "model": "~ A + C"}, 0.9659328),
        ("power, alpha 0.05, effect 2", {"effect": 2}, 0.7991116),
        ("power, alpha 0.2, effect 1", {"alpha": 0.2, "effect": 1}, 0.6021367),
    ]
    rows = [(name, value, float(od.evaluate(runs, **o).power[1])) for name, o, value in cases]
    show("11 runs of three factors at two levels", SKPR, rows)


COFFEE = {
    "cost": [1, 2],
    "type": ["Colombian", "Ethiopian", "Kona", "Sumatra"],
    "size": ["Grande", "Short", "Venti"],
}


def coffee_table() -> Any:
    """Return a D-optimal list in which the last levels have the most runs; ``COFFEE_NOTE`` says why."""
    runs = od.exact(od.DesignProblem(od.candidates(COFFEE, "~ cost + size + type"), budgets=29))
    table = runs.table().to_frame().drop(columns=["run", "candidate"])
    for name in ("type", "size"):
        most, last = table[name].value_counts().idxmax(), COFFEE[name][-1]
        table[name] = table[name].replace({most: last, last: most})
    return table


def coffee() -> None:
    e = od.evaluate(coffee_table(), "~ cost + size + type", effect=2)
    published = [0.9990689, 0.9991530, 0.9443775, 0.9443775, 0.8339422, 0.8339422, 0.8339422]
    rows = [(f"power of {n}", p, float(v)) for n, p, v in zip(e.terms, published, e.power, strict=True)]
    terms = zip(e.effect_terms[2:], [0.9522717, 0.9907584], e.effect_power[2:], strict=True)
    rows += [(f"power of the term {n}", p, float(v)) for n, p, v in terms]
    show("Coffee, 29 runs", SKPR, rows, COFFEE_NOTE)


def caffeine() -> None:
    grid = list(product([80, 100], ["Kona", "Java"], ["Large", "Medium", "Small"]))
    table = dict(zip(("temp", "type", "beansize"), map(list, zip(*grid, strict=True)), strict=True))
    e = od.evaluate(table, "~ temp + type + beansize", effect=2)
    rows = [
        ("power of temp", 0.8424665, float(e.power[1])),
        ("power of beansize[S.Large]", 0.5593966, float(e.power[3])),
        ("power of the term beansize", 0.5165386, float(e.effect_power[3])),
    ]
    show("Caffeine, 12 runs", "README of skpr", rows)


def plackett_burman() -> None:
    first = np.array([1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1])
    x = np.vstack([np.roll(first, k) for k in range(11)] + [-np.ones(11)])
    table = {f"x{j + 1}": x[:, j] for j in range(11)}
    e = od.evaluate(table, "~ " + " + ".join(table))
    size = np.abs(e.alias)
    rows = [
        ("largest alias coefficient", 1 / 3, float(size.max())),
        ("main effects aliased with an interaction", 9, float(np.mean(np.sum(size > 1e-9, axis=0)))),
        ("variance inflation", 1, float(e.vif.max())),
    ]
    show("Plackett-Burman, 12 runs of 11 factors", "Plackett and Burman 1946; partial aliasing of 1/3", rows)


def box_behnken() -> None:
    pairs = [(0, 1), (0, 2), (1, 2)]
    rows = np.zeros((15, 3))
    for k, (i, j) in enumerate(pairs):
        rows[4 * k : 4 * k + 4, [i, j]] = list(product([-1, 1], repeat=2))
    table = dict(zip("abc", rows.T, strict=True))
    e = od.evaluate(table, "~ (a + b + c)**2 + I(a**2) + I(b**2) + I(c**2)", effect=2)
    at = {name: k for k, name in enumerate(e.terms)}
    figures = []
    for name, variance, vif, power in BOX_BEHNKEN:
        j = at[name]
        figures.append((f"variance of {name}", variance, float(e.relative_variances[j])))
        if vif is not None:
            figures.append((f"VIF of {name}", vif, float(e.vif[j])))
        figures.append((f"power of {name}", power, float(e.power[j])))
    show("Box-Behnken design, three factors, three centre points", R, figures)


def central_composite() -> None:
    s = np.sqrt(2)
    table = {
        "a": [-1, 1, -1, 1, -s, s, 0, 0, 0, 0, 0, 0, 0],
        "b": [-1, -1, 1, 1, 0, 0, -s, s, 0, 0, 0, 0, 0],
    }
    # The coded range is -sqrt(2) to sqrt(2); own units are those of the textbook.
    e = od.evaluate(table, "~ a * b + I(a**2) + I(b**2)", coded=False)
    at = {name: k for k, name in enumerate(e.terms)}
    figures = [(f"variance of {n}", v, float(e.relative_variances[at[n]])) for n, v in CENTRAL_COMPOSITE]
    figures.append(("VIF of I(a ** 2)", CCD_VIF, float(e.vif[at["I(a ** 2)"]])))
    figures.append(("leverage of a factorial point", CCD_LEVERAGE, float(e.leverages[0])))
    show("Rotatable central composite design, two factors, five centre points", R, figures)


def simulation(experiments: int = 100_000) -> None:
    sigma = 1.4
    e = od.evaluate(coffee_table(), "~ cost + size + type", effect=2, sigma=sigma)
    x, rng = e.experiment.features, np.random.default_rng(0)
    n, p = x.shape
    q, c = np.linalg.qr(x)[0], np.linalg.inv(x.T @ x)
    rejected = np.zeros(p)
    critical = stats.t.isf(0.025, n - p)
    for _ in range(10):
        y = (x @ e.coefficients)[:, None] + sigma * rng.normal(size=(n, experiments // 10))
        s = np.sqrt(np.sum((y - q @ (q.T @ y)) ** 2, axis=0) / (n - p))
        rejected += np.sum(np.abs(c @ x.T @ y) / (np.sqrt(np.diag(c))[:, None] * s) > critical, axis=1)
    print(f"Power of t tests beside {experiments:,} simulated experiments: coffee, effect 2, sigma {sigma}")
    print(f"  {'coefficient':<24}{'simulated':>12}{'optdesign':>12}{'standard errors apart':>24}")
    for name, power, share in zip(e.terms, e.power, rejected / experiments, strict=True):
        apart = (share - power) / np.sqrt(power * (1 - power) / experiments)
        print(f"  {name:<24}{share:>12.5f}{power:>12.5f}{apart:>24.2f}")


def main() -> None:
    for case in (eleven, coffee, caffeine, plackett_burman, box_behnken, central_composite, simulation):
        case()


BOX_BEHNKEN: list[tuple[str, float, float | None, float]] = [
    ("Intercept", 0.3333333333, None, 0.2914704611),
    ("a", 0.125, 1.0, 0.6228026745),
    ("a:b", 0.25, 1.0, 0.3681575143),
    ("I(a ** 2)", 0.2708333333, 1.011111111, 0.3450088944),
]
"""Coefficient, variance, variance inflation factor and power."""

CENTRAL_COMPOSITE = [("Intercept", 0.2), ("a", 0.125), ("a:b", 0.25), ("I(a ** 2)", 0.14375)]
CCD_VIF, CCD_LEVERAGE = 1.017307692, 0.625

if __name__ == "__main__":
    main()
