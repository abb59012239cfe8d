"""Evidence for and against a statement, and the verdicts that follow from all of it.

A check of measured numbers returns two p-values: of the test whose rejection shows the statement, and of the
test whose rejection shows its opposite. Tests are Student's t on one number per trial. Holm's method is
applied to both p-values of all statements at once, so the probability of any false verdict among them is at
most 5 %. A statement for which neither test is rejected is not decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bandits.reproduce.formatting import NEGLIGIBLE

LEVEL = 0.05
"""Probability of any false verdict among the statements that are tested."""


class Evidence(NamedTuple):
    """p-values: a small one ``in_favour`` shows the statement, a small one ``against`` shows its opposite."""

    in_favour: float
    against: float

    @property
    def reversed(self) -> Evidence:
        """Evidence for the opposite statement."""
        return Evidence(self.against, self.in_favour)


NO_EVIDENCE = Evidence(1.0, 1.0)


class Finding(NamedTuple):
    """Measured numbers in words, and evidence.

    A statement that needs no test has True or False instead, or None if nothing was measured.
    """

    measured: str
    evidence: Evidence | bool | None


class Decision(NamedTuple):
    """True, False, or None for "not decided"; and the adjusted p-value of the likelier direction, if any."""

    holds: bool | None
    p: float | None


UNTESTED = Decision(None, None)


def exceeds(values: np.ndarray, limit: float = 0.0) -> Evidence:
    """Test whether the mean over trials exceeds a limit. A single trial is no evidence.

    Values that differ by no more than round-off count as equal, and a mean as near to the limit counts as it.
    """
    from scipy.stats import t

    n = len(values)
    if n < 2 or not np.all(np.isfinite(values)):
        return NO_EVIDENCE
    distance, spread = float(values.mean()) - limit, float(values.std(ddof=1))
    round_off = NEGLIGIBLE * max(float(np.abs(values).max()), abs(limit))
    if spread <= round_off:
        return Evidence(float(distance <= round_off), float(distance >= -round_off))
    error = spread / np.sqrt(n)
    return Evidence(float(t.sf(distance / error, n - 1)), float(t.cdf(distance / error, n - 1)))


def below(values: np.ndarray, limit: float = 0.0) -> Evidence:
    """Test whether the mean over trials is below a limit."""
    return exceeds(values, limit).reversed


def within(values: np.ndarray, low: float, high: float) -> Evidence:
    """Test whether the mean over trials lies between two limits."""
    return all_of([exceeds(values, low), below(values, high)])


def all_of(parts: Sequence[Evidence]) -> Evidence:
    """Evidence that all statements hold: each must be shown; one that is refuted refutes all (Bonferroni)."""
    return Evidence(max(p.in_favour for p in parts), min(1.0, len(parts) * min(p.against for p in parts)))


def any_of(parts: Sequence[Evidence]) -> Evidence:
    """Evidence that at least one statement holds."""
    return all_of([part.reversed for part in parts]).reversed


def limits(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % confidence interval of a mean by Student's t; infinite for a single trial."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return -np.inf, np.inf
    half = float(t.ppf(1.0 - LEVEL / 2.0, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half


def quotient_limits(above: np.ndarray, under: np.ndarray) -> tuple[float, float]:
    """Return the 95 % confidence interval of the quotient of two means by Fieller's method.

    It has the quotients r for which Student's t does not reject that above - r under has the mean 0.
    """
    from scipy.stats import t

    n = len(above)
    if n < 2:
        return -np.inf, np.inf
    mean = np.array([above.mean(), under.mean()])
    error = t.ppf(1.0 - LEVEL / 2.0, n - 1) ** 2 * np.cov(above, under) / n
    # (mean_0 - r mean_1)^2 <= error_00 - 2 r error_01 + r^2 error_11, a quadratic inequality in r.
    (c, b), (_, a) = np.outer(mean, mean) - error
    if a <= 0.0:
        return -np.inf, np.inf
    half = float(np.sqrt(max(b * b - a * c, 0.0)) / a)
    return float(b / a) - half, float(b / a) + half


def holm(evidence: Sequence[Evidence]) -> list[Decision]:
    """Decide all statements together by Holm's method over both p-values of each."""
    p = np.array(evidence, dtype=float).ravel()
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    out = []
    for in_favour, against in adjusted.reshape(-1, 2):
        likelier = float(min(in_favour, against))
        out.append(Decision(bool(in_favour < against) if likelier <= LEVEL else None, likelier))
    return out
