"""The result of a solver: weights, their certificate, and the history of the solve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.certificate import Certificate, certify
from optdesign.design.display import duration, html, html_report, notes, report, to_frame
from optdesign.design.measures import Measures, measures
from optdesign.problem.dependence import scope
from optdesign.problem.large import Part
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import Frozen, read_only


class Status(Enum):
    """Reason why a solver stopped; the value is the message.

    See Also
    --------
    optdesign.DesignResult : Result that has a status.

    Examples
    --------
    >>> print(Status.CONVERGED.value)
    converged: the gap is at most tol * rank
    """

    CONVERGED = "converged: the gap is at most tol * rank"
    MAX_ITER = "stopped at max_iter; the weights are feasible. Raise max_iter or tol, or change the method"
    TIME_LIMIT = "stopped at time_limit; the weights are feasible. Raise time_limit or tol"
    INTERRUPTED = "interrupted; the weights are feasible and certified as they are"
    GIVEN = "given: the weights were not solved for, only certified"
    PRECISION = (
        "optimal up to round-off; the gap is the bound that double precision proves. Ask for a larger tol"
    )
    STALLED = "no further progress in double precision; the gap bounds the distance from the optimum"


class History(NamedTuple):
    """Running gap of a solver, one entry per iteration.

    The gap of the result is recomputed at the end and can differ.

    Attributes
    ----------
    iterations : ndarray of int
        Number of the iteration.
    seconds : ndarray
        Seconds since the start of the solve, without first use.
    gaps : ndarray
        Gap after the iteration, as the solver computed it.

    See Also
    --------
    optdesign.DesignResult : Result that has a history.
    optdesign.plot.convergence : Draw the history.

    Examples
    --------
    >>> import optdesign as od
    >>> r = od.solve(od.DesignProblem([[1.0, 0.0], [0.0, 2.0]]))
    >>> len(r.history.gaps) == len(r.history.iterations)
    True
    """

    iterations: np.ndarray
    seconds: np.ndarray
    gaps: np.ndarray


def rounded_down(efficiency: float) -> str:
    """Return an efficiency to nine digits, never more than it is.

    >>> rounded_down(0.99999999999)
    '0.999999999'
    """
    # As the exact decimal: multiplying by 1e9 in floating point may round up to the next digit.
    return f"{Decimal(efficiency).quantize(Decimal('1e-9'), rounding=ROUND_FLOOR):f}"


def rounded_up(gap: float) -> str:
    """Return a gap to three digits, never less than it is.

    >>> rounded_up(3.9524e-14), rounded_up(0.1), rounded_up(0.0)
    ('3.96e-14', '0.101', '0')
    """
    if not 0 < gap < math.inf:
        return f"{gap:.3g}"
    return f"{float(Decimal(gap).normalize(Context(prec=3, rounding=ROUND_CEILING))):.3g}"


@dataclass(frozen=True, eq=False, repr=False)
class DesignResult(Frozen):
    """Design with its certificate. All numbers are recomputed from the final weights.

    Attributes
    ----------
    problem : DesignProblem
        Problem that was solved.
    weights : ndarray of shape (N,)
        Weight of every candidate; the weights of a group sum to its budget.
    certificate : Certificate
        Proof of the gap and of the efficiency.
    status : Status
        Reason why the solver stopped; its value is the message.
    method : str
        Method that computed the weights.
    iterations : int
        Number of iterations: sweeps, Newton steps, or rounds on a working set.
    seconds : float
        Wall time, including ``compile_seconds``.
    history : History
        Running gap of the solver.
    tol : float or None
        Tolerance that the solver was given; None if the weights were given, or if the tolerance is unknown.
    compile_seconds : float
        Part of ``seconds`` for first use: compilation, loading of compiled code, and the time that kernels
        ran as plain Python instead of being compiled. ``time_limit`` and ``history.seconds`` exclude it.

    See Also
    --------
    optdesign.solve : Compute a design.
    optdesign.certify : Certify weights of any origin.
    optdesign.round : Turn a design into whole runs.

    Examples
    --------
    >>> import optdesign as od
    >>> r = od.solve(DesignProblem([[1.0, 0.0], [0.0, 2.0]]))
    >>> r.weights.tolist(), r.rank, r.efficiency > 0.999999
    ([0.5, 0.5], 2, True)
    """

    problem: DesignProblem
    weights: np.ndarray
    certificate: Certificate
    status: Status
    method: str
    iterations: int
    seconds: float
    history: History
    tol: float | None = None
    compile_seconds: float = 0.0

    @classmethod
    def given(cls, problem: DesignProblem, weights: ArrayLike, *, method: str = "given") -> DesignResult:
        """Return weights of any origin as a result, with the certificate of :func:`optdesign.certify`.

        Parameters
        ----------
        problem : DesignProblem
            Problem of the weights.
        weights : array_like of shape (N,)
            Feasible weights. Negative round-off is set to zero.
        method : str, default "given"
            Origin of the weights.

        Returns
        -------
        DesignResult
            Result with the status ``Status.GIVEN``.

        Examples
        --------
        >>> p = DesignProblem([[1.0, 0.0], [0.0, 1.0]])
        >>> DesignResult.given(p, [0.5, 0.5]).efficiency > 0.999999
        True
        """
        certificate, none = certify(problem, weights), np.empty(0)
        w = read_only(np.maximum(np.array(weights, dtype=np.float64), 0.0))
        return cls(problem, w, certificate, Status.GIVEN, method, 0, 0.0, History(none, none, none))

    @property
    def converged(self) -> bool:
        """True if the requested gap was reached."""
        return self.status is Status.CONVERGED

    @property
    def gap(self) -> float:
        """Proved bound on G - D, which bounds the distance of log Det from its maximum."""
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        """Gap divided by the rank."""
        return self.certificate.relative_gap

    @property
    def efficiency(self) -> float:
        """Lower bound D / G on the D-efficiency, against all designs on these candidates."""
        return self.certificate.efficiency

    @property
    def rank(self) -> int:
        """D, the sum of the ranks of the parameter blocks."""
        return self.certificate.rank

    @property
    def g_value(self) -> float:
        """Proved bound on G, the sum over groups of budget times largest variance."""
        return self.certificate.g_value

    @property
    def log_det(self) -> float:
        """F, the sum over parameter blocks of log Det of the information."""
        return self.certificate.log_det

    @property
    def variances(self) -> np.ndarray:
        """Variance g_n of every candidate."""
        return self.certificate.variances

    @cached_property
    def measures(self) -> Measures:
        """The D-, A-, G- and I-efficiency of the weights by the usual definitions.

        I is NaN if most candidates are not in memory, because it is an average over all of them.
        """
        found = measures(self.problem, self.weights, self.log_det, self.variances)
        if isinstance(self.problem, Part):
            found = found._replace(G=self.rank / self.g_value, I=math.nan)
        return found

    @property
    def support(self) -> np.ndarray:
        """Indices of the candidates with positive weight."""
        return np.flatnonzero(self.weights)

    @property
    def support_weights(self) -> np.ndarray:
        """Weights of the candidates with positive weight."""
        return self.weights[self.support]

    def in_memory(self) -> DesignResult:
        """Return the design as a result whose candidates are in memory.

        Rounding, exact designs and pictures need candidates in memory. For a problem that is larger than
        memory this is the design on its supported candidates and on a basis, with the certificate of the
        whole problem. Any other design is returned as it is.

        Returns
        -------
        DesignResult
            This design. If the whole problem is larger than memory, candidate k is row
            ``problem.pool.rows[k]`` of it, and efficiencies of whole runs, multiplied by ``efficiency``, are
            bounds against all designs on all candidates.
        """
        return self

    def weights_matrix(self) -> np.ndarray:
        """Return the weights by clients and arms, for problems made by disjoint or shared.

        Returns
        -------
        ndarray of shape (M, K)
            Weights, zero where an arm is inactive.
        """
        return self.problem.to_grid(self.weights)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for every candidate.

        The columns are the settings of the factors (or the features, if only these have names), ``group`` and
        ``parameter_block`` by their labels, ``weight`` and ``variance``. A setting that has one of these
        names is called ``weight_setting``, and so on. The index, ``candidate``, counts from 0 as arrays do.
        Needs the extra ``frames``.

        Returns
        -------
        pandas.DataFrame
            One row per candidate.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return to_frame(self)

    def __repr__(self) -> str:
        return (
            f"DesignResult({self.status.name}, gap {rounded_up(self.gap)}, "
            f"efficiency {self._efficiency()}, rank {self.rank} of {self.problem.n_parameters}, "
            f"support {len(self.support)} of {self.problem.n_candidates}, method {self.method!r})"
        )

    def __str__(self) -> str:
        return report(self.status.value, self._facts())

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the certificate and the largest weights."""
        return html(self, html_report(self.status.value, self._facts()))

    def _facts(self) -> list[tuple[str, str]]:
        """Return the lines of a report on the design, each a name and a value."""
        p, time = self.problem, duration(self.seconds, self.compile_seconds)
        gaps = f"(gap {rounded_up(self.gap)}, relative {rounded_up(self.relative_gap)})"
        support = f"support {len(self.support)} of {p.n_candidates}"
        facts = [
            ("efficiency", f"{self._efficiency()}  {gaps}"),
            ("measures", str(self.measures)),
            ("log det", f"{self.log_det:.9g}    rank {self.rank} of {p.n_parameters}    {support}"),
            ("method", f"{self.method}, {self.iterations} iterations, {time}"),
        ]
        return facts + [("note", note) for note in notes(p)]

    def _efficiency(self) -> str:
        return f"at least {rounded_down(self.efficiency)}{scope(self.problem)}"
