"""Algorithm 3 of the paper: block coordinate ascent from the uniform design, counted sweep by sweep.

The method "bca" of :func:`optdesign.solve` makes the same sweeps, but its start depends on the problem, it
computes certificates at intervals, and it drops small weights at the end. The function of this module starts
from the uniform design and computes a certificate after every sweep, so its number of sweeps is that of the
paper's loop ``while G > D + gap``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from optdesign.design.certificate import certify
from optdesign.design.result import DesignResult, History, Status
from optdesign.numbers.checks import check_count, check_positive
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import read_only
from optdesign.runtime import clock
from optdesign.solvers import bca
from optdesign.solvers.method import MAX_ITER, on_problem


def coordinate_ascent(
    problem: DesignProblem, *, gap: float = 0.1, max_sweeps: int = MAX_ITER
) -> DesignResult:
    """Return the design of Algorithm 3 of the paper, with the smallest sufficient number of sweeps.

    Parameters
    ----------
    problem : DesignProblem
        Candidates, groups, parameter blocks and budgets.
    gap : float, default 0.1
        Stop when G - D <= gap; 0.1 in the paper. ``solve`` has gap <= tol * rank instead.
    max_sweeps : int
        Largest number of sweeps.

    Returns
    -------
    DesignResult
        ``iterations`` is the number of sweeps, 0 if the uniform design suffices. ``history`` has the proved
        gap after every sweep.

    See Also
    --------
    optdesign.solve : Solve to any tolerance by the fastest method.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> r = od.coordinate_ascent(od.DesignProblem(np.eye(2)), gap=0.1)
    >>> r.iterations, r.weights.tolist()
    (0, [0.5, 0.5])
    """
    watch = clock.Stopwatch()
    check_problem(problem)
    check_positive(gap, "gap", "The paper takes 0.1.")
    check_count(max_sweeps, "max_sweeps", f"Leave it out for {MAX_ITER:,}.")
    weights = problem.uniform()
    certificate = certify(problem, weights)
    gaps: list[float] = []
    seconds: list[float] = []
    if certificate.gap > gap:
        # The target 0 is never met: the certificate is the only stopping rule.
        for _ in on_problem(partial(bca.run, batch=1))(problem, weights, 0.0, int(max_sweeps)):
            certificate = certify(problem, weights)
            gaps.append(certificate.gap)
            seconds.append(clock.now() - watch.began)
            if certificate.gap <= gap:
                break
    if certificate.gap <= gap:
        status = Status.CONVERGED
    else:
        status = Status.MAX_ITER if len(gaps) >= max_sweeps else Status.STALLED
    return DesignResult(
        problem=problem,
        weights=read_only(weights),
        certificate=certificate,
        status=status,
        method="bca",
        iterations=len(gaps),
        **watch.times(),
        history=History(np.arange(1, len(gaps) + 1), np.array(seconds), np.array(gaps)),
        tol=gap / problem.rank,
    )
