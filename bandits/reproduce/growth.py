"""Orders of growth: exponents fitted over sizes, each with a confidence interval.

The exponent of a trial is the slope of its values over the sizes on logarithmic axes, by least squares. A
statement of order gives an exponent e. "Proportional" holds if the exponent lies within a quarter of e, "at
least" if it is not below that range, "at most" if it is not above. Upper bounds are statements of order "at
most": a result that is better than the order agrees with them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandits.reproduce.catalogue import (
    FEDPE,
    FEDPE_SCALARS,
    FEDPE_SHARED,
    FEDPE_SHARED_SCALARS,
    FEDUCB_SHARED,
    by_arms,
    by_dim,
    by_horizon,
    swept,
)
from bandits.reproduce.checks import Check, Reading, paired, regret
from bandits.reproduce.decisions import NO_EVIDENCE, Evidence, Finding, below, exceeds, limits, within
from bandits.reproduce.description import TEXT, Case
from bandits.reproduce.formatting import interval, plain
from bandits.reproduce.running import Results
from bandits.reproduce.summary import phase_values

NEAR, AT_LEAST, AT_MOST = "between", "at least", "at most"
TOLERANCE = 0.25
"""Half the width of the range around an exponent, in units of the exponent; of 1 for the exponent 0."""

Curves = Callable[[Results, str], tuple[list[float], np.ndarray]]
"""From results and a kind of instance to sizes (S,) and values (S, trials)."""


def accepted(exponent: float, side: str) -> tuple[float, float]:
    """Return the range of exponents that agree with a statement of order."""
    margin = TOLERANCE * (abs(exponent) or 1.0)
    low = -np.inf if side == AT_MOST else exponent - margin
    return low, np.inf if side == AT_LEAST else exponent + margin


def rule(exponent: float, side: str, over: str) -> str:
    """Return the rule of :func:`order` in words."""
    low, high = accepted(exponent, side)
    if side == NEAR:
        return f"fitted exponent of {over} between {low:g} and {high:g}"
    return f"fitted exponent of {over} {side} {high if side == AT_MOST else low:g}"


def exponents(sizes: list[float], values: np.ndarray) -> np.ndarray:
    """Return the slope of each trial on logarithmic axes, (trials,)."""
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def order(curves: Curves, exponent: float, side: str = NEAR) -> Check:
    """Fit the exponent in every trial and compare it with a stated order."""

    def check(results: Results, kind: str) -> Finding:
        sizes, values = curves(results, kind)
        means = ", ".join(plain(mean) for mean in values.mean(axis=1))
        means += " at " + ", ".join(plain(size) for size in sizes)
        if values.min() <= 0.0:
            return Finding(f"no exponent, since some values are 0: {means}", NO_EVIDENCE)
        slopes = exponents(sizes, values)
        words = f"exponent {interval(slopes.mean(), *limits(slopes))}; means {means}"
        return Finding(words, _evidence(slopes, *accepted(exponent, side)))

    return check


def over_sizes(panel: str, reading: Reading) -> Curves:
    """Read the cases of a panel of Figures 2 to 4."""
    return by_size(lambda kind: swept(kind, panel), reading)


def by_size(cases: Callable[[str], dict[int, Case]], reading: Reading) -> Curves:
    """Read cases by their sizes."""

    def curves(results: Results, kind: str) -> tuple[list[float], np.ndarray]:
        return list(map(float, cases(kind))), paired(results, reading, list(cases(kind).values()))

    return curves


def after_start(direction: str) -> Reading:
    """Read the scalars sent in one direction after the first phase, which includes the start."""

    def reading(results: Results, case: Case) -> np.ndarray:
        return phase_values(results.all_trials(case), direction)[1][:, 1:].sum(axis=1)

    return reading


def broadcast(results: Results, case: Case) -> np.ndarray:
    """Read the scalars of the estimates that clients download: all but one number of pulls per active arm."""
    run = results.all_trials(case)
    plans = case.instance.clients * phase_values(run, "active")[1]
    return (phase_values(run, "downloaded")[1] - plans).sum(axis=1)


def scalars_save(direction: str) -> Curves:
    """Divide the scalars sent as vectors by those sent as scalars, by d."""

    def curves(results: Results, kind: str) -> tuple[list[float], np.ndarray]:
        vectors, scalars = (by_dim(kind, label) for label in protocols(kind))
        return _quotients(results, after_start(direction), vectors, scalars)

    return curves


def sharing_saves(reading: Reading) -> Curves:
    """Divide a reading of Fed-PE with a parameter vector per arm by that with a shared one, by K."""

    def curves(results: Results, _kind: str) -> tuple[list[float], np.ndarray]:
        return _quotients(results, reading, by_arms(FEDPE), by_arms(FEDPE_SHARED))

    return curves


def feducb_over_fedpe(results: Results, _kind: str) -> tuple[list[float], np.ndarray]:
    """Divide the regret of FedUCB by that of Fed-PE with shared parameters, by log T."""
    horizons, values = _quotients(results, regret, by_horizon(FEDUCB_SHARED), by_horizon(FEDPE_SHARED))
    return np.log(horizons).tolist(), values


def protocols(kind: str) -> tuple[str, str]:
    """Return the labels of Fed-PE with vectors and with scalars on a kind of instance."""
    return (FEDPE, FEDPE_SCALARS) if kind == TEXT else (FEDPE_SHARED, FEDPE_SHARED_SCALARS)


def _quotients(
    results: Results, reading: Reading, above: dict[int, Case], under: dict[int, Case]
) -> tuple[list[float], np.ndarray]:
    """Return sizes and the quotients of readings, trial by trial; 0 if a divisor is 0."""
    values = paired(results, reading, [*above.values(), *under.values()])
    top, bottom = values[: len(above)], values[len(above) :]
    return list(map(float, above)), np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0.0)


def _evidence(slopes: np.ndarray, low: float, high: float) -> Evidence:
    if np.isinf(low):
        return below(slopes, high)
    return exceeds(slopes, low) if np.isinf(high) else within(slopes, low, high)
