"""Evaluations that are published, and those of R in the same run, beside those of optdesign.

python benchmarks/evaluation.py

R (r-base-core of Debian) is optional; without it a line states that it was not run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import product
from typing import Any

import numpy as np
from published import EXAMPLES, coffee_table
from scipy import stats

import optdesign as od


def heading(title: str, source: str, note: str = "") -> None:
    print(f"{title}\n  source: {source}")
    if note:
        print(f"  note: {note}")
    print(f"  {'figure':<48}{'source':>20}{'optdesign':>20}{'difference':>12}")


def published() -> None:
    agree = total = 0
    for example in EXAMPLES:
        found = example()
        heading(found.title, found.source, found.note)
        for name, value, ours in found.rows:
            print(f"  {name:<48}{value:>20}{ours:>20.10g}{abs(float(value) - ours):>12.1e}")
        own = sum(row.agrees for row in found.rows)
        print(f"  {own} of {len(found.rows)} figures agree to the last digit of the source\n")
        agree, total = agree + own, total + len(found.rows)
    print(f"{len(EXAMPLES)} published examples: {agree} of {total} figures agree to the last digit\n")


# R prints numbers with 17 digits; the model has the coding of optdesign.
SCRIPT = """
options(contrasts = c("contr.sum", "contr.poly"))
one <- function(table, formula, effects) {
  x <- model.matrix(formula, table); n <- nrow(x); p <- ncol(x); c <- solve(crossprod(x))
  fit <- lm(update(formula, y ~ .), cbind(table, y = cos(seq_len(n))))
  power <- function(j) {
    b <- effects[j]; ncp <- drop(b %*% solve(c[j, j, drop = FALSE], b)); q <- length(j)
    1 - pf(qf(0.95, q, n - p), q, n - p, ncp)
  }
  term <- attr(x, "assign")
  list(errors = coef(summary(fit))[, 2] / sigma(fit), leverages = hatvalues(fit),
       correlation = c[lower.tri(c)] / sqrt(outer(diag(c), diag(c)))[lower.tri(c)],
       power = sapply(seq_len(p), power), terms = sapply(unique(term), function(k) power(which(term == k))))
}
json <- function(found) {
  parts <- sapply(names(found), function(k)
    paste0('"', k, '": [', paste(sprintf("%.17g", found[[k]]), collapse = ", "), "]"))
  paste0("{", paste(parts, collapse = ", "), "}")
}
"""


def r_tables() -> dict[str, tuple[dict[str, Any], str, str]]:
    """Return tables with their models in the language of optdesign and of R."""
    plots = ["1", "2", "3", "4", "5", "6"]
    npk = {
        "block": [b for b in plots for _ in range(4)],
        "N": list("010111000110110010101100"),
        "P": list("110001011100010110010110"),
        "K": list("100101100101011000111010"),
    }
    square = np.array(list(product([-1, 1], repeat=2)))
    box = np.zeros((15, 3))
    for k, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        box[4 * k : 4 * k + 4, list(pair)] = square
    star = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
    central = np.vstack([square / np.sqrt(2), star, np.zeros((5, 2))])
    rng = np.random.default_rng(7)
    mixed = {"t": rng.choice([-1.0, 0.0, 1.0], 17), "cat": rng.choice(list("abc"), 17)}
    quadratic = "~ a + b + {} + I(a^2) + I(b^2) + {}"
    return {
        "npk of R, blocks and a factorial": (npk, "~ block + N + P + K + N:P", "~ block + N + P + K + N:P"),
        "Box-Behnken design, three factors, three centre points": (
            dict(zip("abc", box.T, strict=True)),
            quadratic.format("c", "I(c^2) + a:b + a:c + b:c"),
            quadratic.format("c", "I(c^2) + a:b + a:c + b:c"),
        ),
        "rotatable central composite design, two factors, five centre points": (
            dict(zip("ab", central.T, strict=True)), "~ a + b + I(a^2) + I(b^2) + a:b",
            "~ a + b + I(a^2) + I(b^2) + a:b",
        ),
        "17 random runs, a quadratic and an interaction with a category": (
            mixed, "~ t + cat + I(t^2) + t:cat", "~ t + cat + I(t^2) + t:cat",
        ),
    }  # fmt: skip


def r_itself() -> None:
    """Print the largest differences between R and optdesign on the same tables, models and effects."""
    program = shutil.which("Rscript")
    if program is None:
        print("R itself: not run, because Rscript is not installed\n")
        return
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    print(f"R itself, in this run: {(version.stdout or version.stderr).strip()}")
    print("  lm, hatvalues, solve and pf with ncp; largest absolute differences\n")
    names = ("errors", "leverages", "correlation", "power", "terms")
    print(f"  {'design':<72}" + "".join(f"{name:>13}" for name in names))
    for title, (table, model, in_r) in r_tables().items():
        e = od.evaluate(table, model, effect=2)
        columns = ", ".join(
            f"{k} = factor(c({', '.join(map(repr, v))}))"
            if isinstance(v[0], str)
            else f"{k} = c({', '.join(f'{x:.17g}' for x in v)})"
            for k, v in ((k, list(map(_plain, v))) for k, v in table.items())
        )
        effects = ", ".join(f"{b:.17g}" for b in e.coefficients)
        call = f"cat(json(one(data.frame({columns}), {in_r}, c({effects}))))"
        done = subprocess.run([program, "-e", SCRIPT + call], capture_output=True, text=True, check=True)
        theirs = {k: np.array(v) for k, v in json.loads(done.stdout).items()}
        lower = e.correlation.T[np.triu_indices(len(e.terms), 1)]
        ours = (e.standard_errors, e.leverages, lower, e.power, e.effect_power)
        apart = [float(np.abs(theirs[n] - o).max()) for n, o in zip(names, ours, strict=True)]
        print(f"  {title:<72}" + "".join(f"{a:>13.1e}" for a in apart))
    print()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def simulation(experiments: int = 100_000) -> None:
    sigma = 1.4
    table = coffee_table()
    e = od.evaluate(table, "~ cost + size + type", effect=2, sigma=sigma)
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


def distributions() -> None:
    """Print the largest difference between powers and SciPy's noncentral distributions."""
    apart, cases = 0.0, 0
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, alpha, sigma = int(rng.integers(9, 40)), float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.5, 3))
        table = {"a": rng.choice([-1.0, 0.0, 1.0], n), "b": rng.choice(list("uvw"), n)}
        e = od.evaluate(table, "~ a + b", effect=2, sigma=sigma, alpha=alpha)
        if e.rank < 4:
            continue
        delta = np.abs(e.coefficients) / e.standard_errors
        t, f = stats.t.isf(alpha / 2, e.error_df), stats.f.isf(alpha, 2, e.error_df)
        by_t = stats.nct.sf(t, e.error_df, delta) + stats.nct.cdf(-t, e.error_df, delta)
        own = e.coefficients[2:] / sigma
        c = np.linalg.inv(e.experiment.features.T @ e.experiment.features)[2:, 2:]
        by_f = stats.ncf.sf(f, 2, e.error_df, own @ np.linalg.solve(c, own))
        known = np.isfinite(by_t)  # the lower tail of SciPy's noncentral t is NaN for some of 10 and more
        apart = max(apart, float(np.abs(by_t - e.power)[known].max()), abs(float(by_f - e.effect_power[2])))
        cases += int(known.sum()) + 1
    print(
        f"Power beside scipy.stats.nct and ncf: {cases} powers of random designs, apart at most {apart:.1e}\n"
    )


def main() -> None:
    for part in (published, r_itself, distributions, simulation):
        part()


if __name__ == "__main__":
    main()
