"""Try to refute a design: by exact arithmetic, and by the answer of an independent convex solver.

First every claim of the design is recomputed by :mod:`optdesign.verification.audit`, which shares no
arithmetic with the solvers. Then the answer of a convex solver is compared. Both answers come with a gap, and
the gaps alone say how far two near-optimal designs may differ. Weights are never compared, since optima are
not unique; the information matrices of optima are. The matrices are exact, in the candidates' own
coordinates.

*Whole runs.* Their efficiency e is a claim about all designs on these candidates. The reference v is one of
them, so e must not exceed exp((F(runs) - F(v)) / D). The gap of v proves exp((F(runs) - F(v)) / D) D / G(v),
without the solvers of this package.

*Objective.* Each F lies within its gap below the maximum, so F1 and F2 differ by at most max(gap1, gap2).

*Information.* Let e_k be the eigenvalues of the U_b relative to the optimal ones. Optimality of U* gives
sum e_k <= D, hence sum (e_k - 1 - log e_k) <= F(w*) - F(w) <= gap, so every e_k lies between the two
roots of t - 1 - log t = gap. Eigenvalues of U1 relative to U2 then lie between quotients of such roots.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

from optdesign.design.feasible import FEASIBILITY_RTOL, exact_totals
from optdesign.design.result import DesignResult, Status, rounded_down
from optdesign.design.run_list import Runs
from optdesign.numbers.checks import check_type
from optdesign.runtime.progress import waiting
from optdesign.verification import reference
from optdesign.verification.audit import LIMITS, Audit, Comparison, audit, excess_of, information_work
from optdesign.verification.exact_arithmetic import information

INCONCLUSIVE_GAP = 0.1
"""A reference whose relative gap exceeds this proves too little to compare with."""


@dataclass(frozen=True)
class Verification:
    """Outcome of a verification; ``str()`` of it lists the differences.

    Attributes
    ----------
    verdict : {"agrees", "differs", "inconclusive"}
        Result of all comparisons.
    message : str
        Reason for the verdict.
    comparisons : tuple of Comparison
        Compared quantities, with the difference and the allowed difference of each.
    reference : DesignResult or None
        Design of the convex solver.
    notes : tuple of str
        Comparisons that were not possible, or only in part, with the reasons.
    refuted : bool
        True if exact arithmetic contradicts a claim of the design.

    See Also
    --------
    optdesign.verify : Verify a result.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> v = od.verify(od.solve(od.DesignProblem(np.eye(2))))
    >>> v.verdict, v.refuted
    ('agrees', False)
    """

    verdict: str
    message: str
    comparisons: tuple[Comparison, ...] = ()
    reference: DesignResult | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    refuted: bool = False

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
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def verify(
    result: DesignResult | Runs,
    solver: str = "CLARABEL",
    *,
    form: str = "auto",
    time_limit: float | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute the claims of a design exactly, and compare it with the result of cvxpy.

    The claims of whole runs are numbers of runs, rank, log Det and the efficiency. Runs of
    :class:`optdesign.MainEffects` have no list of candidates to compare on, and are inconclusive.

    A solver that fails, or that is stopped by the time limit or by Ctrl-C, raises no error. The verdict is
    then "inconclusive", unless exact arithmetic has refuted the design already.

    Parameters
    ----------
    result : DesignResult or Runs
        Design to verify.
    solver : str, default "CLARABEL"
        Cone solver of cvxpy: "CLARABEL", "SCS" or another installed one.
    form : {"auto", "primal", "dual"}, default "auto"
        Convex program; "auto" takes the smaller one.
    time_limit : float, optional
        Largest number of seconds of the convex solver, which is ended at most 3 s later. Default: no limit.
    progress : bool, default False
        Show a progress display on standard error after one second.

    Returns
    -------
    Verification
        Verdict and comparisons. It is true in a condition if everything agrees.

    Raises
    ------
    TypeError
        If ``result`` is neither a DesignResult nor Runs.

    See Also
    --------
    optdesign.certify : Compute the certificate with the package's own arithmetic.
    optdesign.reference.solve : Solve a problem with cvxpy.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> bool(od.verify(od.solve(od.DesignProblem(np.eye(3)))))
    True
    """
    remedy = "Pass solve(problem), or exact(problem)."
    check_type(result, DesignResult | Runs, "result must be a DesignResult or Runs", remedy)
    runs = result if isinstance(result, Runs) else None
    if isinstance(result, Runs):
        if result.unlisted:
            return Verification("inconclusive", "the candidates of MainEffects are not listed")
        if refused := _wrong_counts(result):
            return Verification("differs", f"{refused.name} against the budgets", (refused,), refuted=True)
        result = _as_design(result)
    with waiting("recomputing all claims in exact arithmetic") if progress else nullcontext():
        own = audit(result)
    if refusal := _refutation(result, own):
        return Verification("differs", refusal, own.comparisons, notes=own.notes, refuted=bool(own.wrong))
    try:
        other = reference.solve(result.problem, solver, form=form, time_limit=time_limit, progress=progress)
    except Exception as error:
        told = ", ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
        return _inconclusive(own, f"{solver} failed: {told}", None)
    if not other.relative_gap <= INCONCLUSIVE_GAP:
        stopped = f"stopped at a relative gap of {other.relative_gap:.2g}, too far from the optimum"
        if other.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            stopped += f" ({other.status.name.lower().replace('_', ' ')})"
        return _inconclusive(own, f"{other.method} {stopped}", other)
    return compare(result, other, own) if runs is None else _compare_runs(runs, other, own)


def _wrong_counts(runs: Runs) -> Comparison | None:
    """Return the comparison of the numbers of runs with the budgets, or None if they are equal."""
    problem, counts = runs.problem, np.asarray(runs.counts)
    off = np.inf
    is_whole = np.all(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
    if counts.shape == (problem.n_candidates,) and is_whole:
        pairs = zip(exact_totals(problem, counts), problem.budgets.tolist(), strict=True)
        off = float(max(abs(total - Fraction(budget)) for total, budget in pairs))
    found = Comparison("numbers of runs", off, 0.0)
    return None if found.agrees else found


def _as_design(runs: Runs) -> DesignResult:
    """Return whole runs as a design whose certificate has their claims."""
    given = DesignResult.given(runs.problem, runs.counts)
    claims = replace(given.certificate, log_det=runs.log_det, rank=runs.rank)
    return replace(given, certificate=claims)


def _compare_runs(runs: Runs, theirs: DesignResult, own: Audit) -> Verification:
    """Compare the efficiency of whole runs with the one that a reference design allows."""
    if own.missing:
        ratio = math.exp((runs.log_det - theirs.log_det) / runs.rank)
    else:
        ratio = math.exp(-math.fsum(np.log(relative_eigenvalues(own, theirs))) / runs.rank)
    other = theirs.method.partition("/")[0]
    excess = Comparison(
        f"efficiency above its value against {other}",
        excess_of(runs.efficiency - ratio),
        FEASIBILITY_RTOL + own.noise,
    )
    comparisons = (*own.comparisons, excess)
    if not excess.agrees:
        return Verification("differs", f"{excess.name} {theirs.method}", comparisons, theirs, own.notes)
    proved = (
        f"which alone proves an efficiency of at least {rounded_down(min(1.0, ratio * theirs.efficiency))}"
    )
    if runs.bound < math.inf:
        note = "the upper bound on whole runs was not compared: exact(..., prove=True) proves it again."
        own = replace(own, notes=(*own.notes, note))
    exact = "exact ranks" if own.missing else "exact arithmetic"
    message = f"with {exact} and with {theirs.method}, {proved} on these candidates"
    return Verification("agrees", message, comparisons, theirs, own.notes)


def compare(ours: DesignResult, theirs: DesignResult, own: Audit | None = None) -> Verification:
    """Compare two designs of one problem at the tolerances that follow from their gaps.

    ``own`` is the audit of ours, made afresh if left out.
    """
    own = audit(ours) if own is None else own
    if refusal := _refutation(ours, own):
        return Verification("differs", refusal, own.comparisons, theirs, own.notes, bool(own.wrong))
    comparisons, notes = compared_with(ours, theirs, own)
    comparisons, notes = own.comparisons + comparisons, own.notes + notes
    wrong = [c.name for c in comparisons if not c.agrees]
    who = f"{theirs.method}, whose relative gap is {theirs.relative_gap:.2g}"
    if wrong:
        return Verification("differs", f"{', '.join(wrong)} against {who}", comparisons, theirs, notes)
    exact = "exact ranks" if own.missing else "exact arithmetic"
    return Verification("agrees", f"with {exact} and with {who}", comparisons, theirs, notes)


def _refutation(result: DesignResult, own: Audit) -> str:
    """Return the contradictions of exact arithmetic to a design as text, or an empty string."""
    wrong = own.wrong
    if "rank of the design" in wrong:
        return "our design loses rank"
    if wrong:
        return f"{', '.join(wrong)} against exact arithmetic"
    return "" if result.gap < math.inf else "our certificate proves nothing: its gap is infinite"


def _inconclusive(own: Audit, message: str, other: DesignResult | None) -> Verification:
    return Verification("inconclusive", message, own.comparisons, other, own.notes)


def compared_with(
    ours: DesignResult, theirs: DesignResult, own: Audit
) -> tuple[tuple[Comparison, ...], tuple[str, ...]]:
    """Objective and information of two designs, and a note where matrices are too large to be exact."""
    problem, other = ours.problem, theirs.method.partition("/")[0]
    allowed = max(ours.gap, theirs.gap) + LIMITS.rtol * max(1.0, abs(ours.log_det)) + own.noise * ours.rank
    if own.missing or (information_work(problem, int(np.count_nonzero(theirs.weights))) > LIMITS.work):
        difference = abs(ours.log_det - theirs.log_det)
        note = "the information of the two designs was not compared: too many numbers for exact arithmetic."
        return (Comparison(f"objective against {other}", difference, allowed),), (note,)
    logs = np.log(relative_eigenvalues(own, theirs))
    (low_a, high_a), (low_b, high_b) = log_eigenvalue_range(ours.gap), log_eigenvalue_range(theirs.gap)
    tolerance = max(high_a - low_b, high_b - low_a) + math.sqrt(LIMITS.rtol) + own.noise
    return (
        Comparison(f"objective against {other}", abs(math.fsum(logs)), allowed),
        Comparison(f"information against {other} (log eigenvalues)", float(np.max(np.abs(logs))), tolerance),
    ), ()


def relative_eigenvalues(own: Audit, theirs: DesignResult) -> np.ndarray:
    """Eigenvalues of their information relative to ours, over all blocks: their logarithms sum to F2 - F1."""
    source, values = theirs.problem.source, [np.empty(0)]
    for b, factor in own.factors.items():
        used = own.rows[b][theirs.weights[own.rows[b]] > 0]
        other = information(source.take(used), theirs.weights[used])
        values.append(np.linalg.eigvalsh(factor.relative(other)))
    return np.maximum(np.concatenate(values), np.finfo(float).tiny)


def log_eigenvalue_range(gap: float) -> tuple[float, float]:
    """Return the logarithms of the two roots of t - 1 - log t = gap, which are equal for gap = 0."""
    if gap <= 0:
        return 0.0, 0.0

    def excess(s: float) -> float:
        return math.expm1(s) - s - gap

    return brentq(excess, -2 - gap, 0.0), brentq(excess, 0.0, math.log(2 * (1 + gap)))
