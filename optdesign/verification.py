"""Compare a design with the answer of an independent convex solver.

Both answers come with a gap, and the gaps alone say how far two near-optimal designs may differ. Weights
are never compared, since optima are not unique; the information matrices of optima are.

*Objective.* Each F lies within its gap below the maximum, so F1 and F2 differ by at most max(gap1, gap2).

*G.* Each G lies between D and D + gap, so G1 and G2 differ by at most max(gap1, gap2).

*Information.* Let e_k be the eigenvalues of the U_b relative to the optimal ones. Optimality of U* gives
sum e_k <= D, hence sum (e_k - 1 - log e_k) <= F(w*) - F(w) <= gap, so every e_k lies between the two
roots of t - 1 - log t = gap. Eigenvalues of U1 relative to U2 then lie between quotients of such roots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from optdesign import reference
from optdesign.certificate import certify, information_matrices
from optdesign.result import DesignResult

ROUNDING = 1e-9
"""Allowance for rounding, relative to max(1, size of the quantity), on top of what the gaps allow."""

INCONCLUSIVE_GAP = 0.1
"""A reference whose relative gap exceeds this proves too little to compare with."""


@dataclass(frozen=True)
class Comparison:
    """One quantity of two designs: how far apart it is, and how far apart it may be."""

    name: str
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the difference is within what the two gaps allow."""
        return self.difference <= self.tolerance


@dataclass(frozen=True)
class Verification:
    """Outcome of a verification; ``str()`` of it says what differs."""

    verdict: str
    """"agrees", "differs" or "inconclusive"."""
    message: str
    comparisons: tuple[Comparison, ...] = ()
    reference: DesignResult | None = field(default=None, repr=False)

    @property
    def agrees(self) -> bool:
        """True if every compared quantity agrees."""
        return self.verdict == "agrees"

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.message}"]
        lines += [
            f"  {c.name}: difference {c.difference:.3g}, allowed {c.tolerance:.3g}"
            + ("" if c.agrees else "  <- differs")
            for c in self.comparisons
        ]
        return "\n".join(lines)


def verify(result: DesignResult, solver: str = "CLARABEL", *, form: str = "auto") -> Verification:
    """Solve the same problem with cvxpy and compare objective, G and information. Raises nothing.

    >>> import numpy as np, optdesign as od
    >>> bool(od.verify(od.solve(od.DesignProblem(np.eye(3)))))
    True
    """
    try:
        other = reference.solve(result.problem, solver, form=form)
    except Exception as error:
        return Verification("inconclusive", f"{solver} failed: {type(error).__name__}: {error}")
    if not other.relative_gap <= INCONCLUSIVE_GAP:
        return Verification(
            "inconclusive",
            f"{solver} stopped at a relative gap of {other.relative_gap:.2g}, too far from the optimum",
            reference=other,
        )
    return compare(result, other)


def compare(ours: DesignResult, theirs: DesignResult) -> Verification:
    """Compare two designs of one problem at the tolerances that follow from their gaps.

    What is compared comes from our weights alone; what is allowed, from the gap that our result claims.
    """
    try:
        certificate = certify(ours.problem, ours.weights)
    except ValueError as error:
        return Verification("differs", f"our weights are no design: {error}", reference=theirs)
    if not np.isfinite(max(ours.gap, certificate.gap)):
        return Verification("differs", "our design loses rank", reference=theirs)
    allowed = max(ours.gap, theirs.gap)
    comparisons = [
        Comparison(name, abs(a - b), allowed + ROUNDING * max(1.0, abs(a)))
        for name, a, b in [
            ("objective log Det", certificate.log_det, theirs.log_det),
            ("G", certificate.g_value, theirs.g_value),
        ]
    ]
    low, high = _relative_eigenvalues(ours, theirs)
    (low_a, high_a), (low_b, high_b) = _log_eigenvalue_range(ours.gap), _log_eigenvalue_range(theirs.gap)
    difference = max(np.log(high), -np.log(low))
    tolerance = max(high_a - low_b, high_b - low_a) + np.sqrt(ROUNDING)
    comparisons.append(Comparison("information (log eigenvalues)", float(difference), float(tolerance)))
    wrong = [c.name for c in comparisons if not c.agrees]
    who = f"{theirs.method}, whose relative gap is {theirs.relative_gap:.2g}"
    if wrong:
        return Verification("differs", f"{', '.join(wrong)} against {who}", tuple(comparisons), theirs)
    return Verification("agrees", f"with {who}", tuple(comparisons), theirs)


def _log_eigenvalue_range(gap: float) -> tuple[float, float]:
    """The logarithms of the two roots of t - 1 - log t = gap, bracketed: they meet where gap is zero."""
    if gap <= 0:
        return 0.0, 0.0

    def excess(s: float) -> float:
        return math.expm1(s) - s - gap

    return brentq(excess, -1 - gap, 0.0), brentq(excess, 0.0, math.log(2 * (1 + gap)))


def _relative_eigenvalues(ours: DesignResult, theirs: DesignResult) -> tuple[float, float]:
    """Smallest and largest eigenvalue of our information relative to theirs, over all blocks."""
    problem = ours.problem
    pair = [
        information_matrices(problem, result.weights, np.arange(len(result.weights)))
        for result in (ours, theirs)
    ]
    low, high = np.inf, 0.0
    for b in np.flatnonzero(problem.ranks):
        r = problem.ranks[b]
        values = eigh(pair[0][b, :r, :r], pair[1][b, :r, :r], eigvals_only=True, lower=True)
        low, high = min(low, float(values[0])), max(high, float(values[-1]))
    return max(low, np.finfo(float).tiny), high
