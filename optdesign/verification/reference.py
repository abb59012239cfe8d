"""Answers of convex solvers, for verification. Needs cvxpy, loaded on first use.

The problem is stated in one of the two forms of :mod:`optdesign.verification.programs`. The status of a
solver is ignored: the weights that it returns are made feasible and certified. If it fails, the other form is
tried, and then SCS; the method of the result names them.

*Many candidates.* Convex solvers accept thousands of candidates, not more. Larger problems are solved by
column generation: on the candidates of the largest variance under the uniform design, with a basis of every
block, and then, round after round, with those whose variances under the weights of the solver exceed the
bound. The certificate is always over all candidates.
"""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from optdesign.algebra.blocks import entries
from optdesign.algebra.reduced import Reduced, reduce
from optdesign.design.certificate import Certificate, certify
from optdesign.design.result import DesignResult, History, Status
from optdesign.numbers.checks import check_choice, check_time_limit
from optdesign.problem.problem import DesignProblem
from optdesign.runtime import clock
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import DeferredInterrupt
from optdesign.verification.programs import PROGRAMS, repaired
from optdesign.verification.worker import Worker


@dataclass(frozen=True)
class Limits:
    """Sizes and times that decide how a problem is given to a solver."""

    broken_gap: float = 1e-2
    """A solver has failed if the relative gap over the candidates that it was given exceeds this."""
    entries: int = 200_000
    """Entries of outer products above which a solver is given a working set of candidates."""
    rounds: int = 20
    """Most rounds in which candidates are added."""
    process_entries: int = 80_000
    """Entries above which a solver works in a process of its own, which takes a second or two to start."""
    clarabel_rank: int = 64
    """Largest rank of a parameter block that CLARABEL is given: its systems grow with the fourth power."""
    call_seconds: float = 30.0
    """Most seconds of one call of a solver."""
    solver_share: float = 0.7
    """Share of that time that is the limit of a solver in another process. Its start takes the rest."""
    grace: float = 1.5
    """Seconds that solvers have to end by themselves at their limit and after Ctrl-C."""


LIMITS = Limits()

TIME_OPTIONS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}
"""Statuses of solvers that mean a time limit."""


def solve(
    problem: DesignProblem,
    solver: str = "CLARABEL",
    *,
    form: str = "auto",
    tol: float = 1e-3,
    time_limit: float | None = None,
    progress: bool = False,
    **options: Any,
) -> DesignResult:
    """Solve a problem with cvxpy and certify the result.

    Parameters
    ----------
    problem : DesignProblem
        Candidates, groups, parameter blocks and budgets.
    solver : str, default "CLARABEL"
        Cone solver of cvxpy: "CLARABEL", "SCS" or another installed one.
    form : {"auto", "primal", "dual"}, default "auto"
        Convex program; "auto" takes the smaller one.
    tol : float, default 1e-3
        The status is CONVERGED if the certified gap is at most tol * rank. The tolerance is not passed to the
        solver; see ``options``.
    time_limit : float, optional
        Largest number of seconds. The weights found until then are returned, or the uniform design if there
        are none. The same holds after Ctrl-C. A solver that does not stop is ended at most 3 s later.
        Default: no limit.
    progress : bool, default False
        Show a progress display on standard error after one second.
    **options : object
        Options of the solver, such as ``eps`` of SCS or ``tol_gap_rel`` of CLARABEL.

    Returns
    -------
    DesignResult
        Result of the same type as that of :func:`optdesign.solve`.

    See Also
    --------
    optdesign.solve : Solve a problem with the algorithms of this package.
    optdesign.verify : Compare a result with this one.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> r = od.reference.solve(od.DesignProblem(np.eye(2)))
    >>> r.converged, r.method
    (True, 'cvxpy/CLARABEL (primal)')
    """
    check_choice(form, ("auto", *PROGRAMS), "form", "Leave it out for auto.")
    check_time_limit(time_limit)
    watch = clock.Stopwatch()
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    with (
        DeferredInterrupt() as interrupted,
        Progress(progress, tol * problem.rank) as display,
        Worker() as worker,
    ):
        run = _Run(problem, watch, deadline, interrupted, display, worker, problem.uniform())
        with suppress(_StopAsked):
            run.solve(_plan(problem, solver.upper(), form, options))
    return run.result(tol)


class _StopAsked(Exception):
    """Ctrl-C, or the end of the time limit."""


class _Attempt:
    """A solver, a form and the options that are meant for that solver."""

    def __init__(self, solver: str, form: str, options: dict[str, Any]) -> None:
        self.solver, self.form, self.options = solver, form, options
        self.name = f"{solver} ({form})"

    def __call__(self, reduced: Reduced, seconds: float, worker: Worker) -> tuple[np.ndarray, int]:
        """Return raw weights and iterations; the time limit needs a solver that has one."""
        if self.solver == "CLARABEL" and reduced.ranks.max() > LIMITS.clarabel_rank:
            raise MemoryError(f"CLARABEL takes parameter blocks up to rank {LIMITS.clarabel_rank}")
        heavy = _entries(reduced.ranks, reduced.blocks) > LIMITS.process_entries
        options = dict(self.options)
        if self.solver in TIME_OPTIONS:
            options.setdefault(TIME_OPTIONS[self.solver], LIMITS.solver_share * seconds if heavy else seconds)
        if heavy:
            return worker.run(self.form, reduced, self.solver, options)
        return PROGRAMS[self.form](reduced, self.solver, options)


def _plan(problem: DesignProblem, solver: str, form: str, options: dict[str, Any]) -> list[_Attempt]:
    """Return the attempts in their order."""
    import cvxpy

    if solver not in cvxpy.installed_solvers():
        raise cvxpy.error.SolverError(
            f"solver must be one of {', '.join(cvxpy.installed_solvers())}; got {solver!r}."
        )
    # ``form="auto"`` takes the dual when candidates outnumber the entries of the H_b by this factor.
    dual_ratio = 4.0
    if form == "auto":
        form = "dual" if problem.n_candidates > dual_ratio * entries(problem.ranks).sum() else "primal"
    forms = [form, *(set(PROGRAMS) - {form})]
    plan = [_Attempt(solver, f, options) for f in forms]
    return plan if solver == "SCS" else plan + [_Attempt("SCS", f, {}) for f in forms]


def _others(plan: list[_Attempt]) -> list[_Attempt]:
    """Return the attempts with another solver than the first."""
    return [attempt for attempt in plan if attempt.solver != plan[0].solver]


@dataclass
class _Run:
    """The best answer so far, and how it was found."""

    problem: DesignProblem
    watch: clock.Stopwatch
    deadline: float
    interrupted: DeferredInterrupt
    display: Progress
    worker: Worker
    weights: np.ndarray
    certificate: Certificate | None = None
    method: str = "cvxpy, stopped before its first answer"
    iterations: int = 0
    history: list[tuple[int, float, float]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def solve(self, plan: list[_Attempt]) -> None:
        """Solve on working sets until no other candidate violates its bound."""
        problem = self.problem
        large = _entries(problem.ranks, problem.parameter_blocks) > LIMITS.entries
        rows = first_rows(problem) if large else None
        # No more are added when the relative gap is this, or twice that over the candidates given.
        sufficient = 1e-6
        for _ in range(LIMITS.rounds):
            try:
                weights, certificate = self._answer(plan, rows)
            except Exception as error:
                if self.certificate is None or isinstance(error, _StopAsked):
                    raise
                return
            if rows is None:
                return
            bound = largest_variances(problem, rows, certificate.variances)
            near = math.fsum(problem.budgets * bound) - problem.rank
            if certificate.gap <= max(2 * near, sufficient * problem.rank):
                return
            rows = next_rows(problem, rows, weights, certificate.variances, bound)

    def _answer(self, plan: list[_Attempt], rows: np.ndarray | None) -> tuple[np.ndarray, Certificate]:
        """Return the result of the first attempt that does not fail. Overwrites plan."""
        problem, reduced = self.problem, reduce(self.problem, rows)
        given = np.arange(problem.n_candidates) if rows is None else rows
        while True:
            attempt, last = plan[0], len(plan) == 1
            self._check_stop(0.0)
            before = time.perf_counter()
            seconds = min(LIMITS.call_seconds, self.deadline - before)
            try:
                raw, iterations = self._watched(partial(attempt, reduced, seconds, self.worker), seconds)
            except _StopAsked:
                raise
            except Exception as error:
                slow = isinstance(error, TimeoutError)
                if last or (slow and not _others(plan)):
                    error.add_note(f"after {', '.join([*self.failed, attempt.name])}")
                    raise
            else:
                self.iterations += iterations
                weights, certificate = _certified(problem, reduced, raw)
                self._keep(weights, certificate, attempt, given)
                near = math.fsum(problem.budgets * largest_variances(problem, given, certificate.variances))
                slow = time.perf_counter() - before > LIMITS.solver_share * seconds
                if near <= (1 + LIMITS.broken_gap) * problem.rank or last or (slow and not _others(plan)):
                    return weights, certificate
            self.failed.append(attempt.name)
            plan[:] = _others(plan) if slow else plan[1:]  # if it is slow, the other form is no faster

    def _keep(
        self, weights: np.ndarray, certificate: Certificate, attempt: _Attempt, given: np.ndarray
    ) -> None:
        """Record an answer, and take it if it is the best."""
        self.history.append((self.iterations, self.watch.times()["seconds"], certificate.gap))
        if self.certificate is None or certificate.gap < self.certificate.gap:
            self.weights, self.certificate = weights, certificate
            self.method = f"cvxpy/{attempt.name}"
            if len(given) < self.problem.n_candidates:
                self.method += f" on {len(given):,} of {self.problem.n_candidates:,} candidates"
            if self.failed:
                self.method += f", after {', '.join(self.failed)} failed"

    def _watched(self, work: Callable[[], tuple[np.ndarray, int]], seconds: float) -> tuple[np.ndarray, int]:
        """Do some work in a thread, and check for Ctrl-C and the time limit meanwhile.

        Solvers release the interpreter lock. The worker is ended at the time limit. Work in this process is
        small, and soon ends by itself.
        """
        outcome: Future[tuple[np.ndarray, int]] = Future()

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:
                outcome.set_exception(error)

        thread = threading.Thread(target=run, daemon=True)
        until = time.perf_counter() + seconds + LIMITS.grace
        tick = 0.1  # seconds between two looks at Ctrl-C and the clock while a solver works
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._show()
            thread.start()
            try:
                while not outcome.done():
                    thread.join(tick)
                    self._show()
                    _take_signals_back()
                    self._check_stop(LIMITS.grace)
                    if not outcome.done() and time.perf_counter() > until:
                        raise TimeoutError(f"no answer after {seconds:g} s")
            except BaseException:
                self.worker.end()
                thread.join(LIMITS.grace)
                raise
        return outcome.result()

    def _show(self) -> None:
        self.display.update(self.iterations, self.history[-1][2] if self.history else math.inf)

    def _check_stop(self, grace: float) -> None:
        """Raise _StopAsked after an interrupt or the time limit; solvers have ``grace`` seconds to end."""
        if self.interrupted or time.perf_counter() > self.deadline + grace:
            raise _StopAsked

    def result(self, tol: float) -> DesignResult:
        """Return the result of the run."""
        certificate = self.certificate or certify(self.problem, self.weights)
        if self.interrupted:
            status = Status.INTERRUPTED
        elif certificate.relative_gap <= tol:
            status = Status.CONVERGED
        else:
            status = Status.TIME_LIMIT if time.perf_counter() > self.deadline else Status.STALLED
        iterations, seconds, gaps = np.array(self.history).reshape(-1, 3).T
        return DesignResult(
            problem=self.problem,
            weights=self.weights,
            certificate=certificate,
            status=status,
            method=self.method,
            iterations=self.iterations,
            history=History(iterations.astype(np.int64), seconds, gaps),
            tol=tol,
            **self.watch.times(),
        )


def _certified(problem: DesignProblem, reduced: Reduced, raw: np.ndarray) -> tuple[np.ndarray, Certificate]:
    """Return feasible weights from the raw ones of a solver, and their certificate over all candidates."""
    weights = np.zeros(problem.n_candidates)
    reduced.extend(repaired(raw, reduced), weights)
    certificate = certify(problem, weights)
    # Share of the uniform design mixed into weights that a solver leaves without full rank.
    uniform_floor = 1e-12
    if not np.isfinite(certificate.gap):
        weights = (1 - uniform_floor) * weights + uniform_floor * problem.uniform()
        certificate = certify(problem, weights)
    return weights, certificate


def _entries(ranks: np.ndarray, blocks: np.ndarray) -> int:
    """Entries of the outer products of candidates of these blocks."""
    return int(np.sum(entries(ranks)[blocks]))


def largest_variances(problem: DesignProblem, rows: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the largest variance in every group, of some candidates."""
    largest = np.zeros(problem.n_groups)
    np.maximum.at(largest, problem.groups[rows], variances[rows])
    return largest


def first_rows(problem: DesignProblem) -> np.ndarray:
    """Candidates with the largest variances under the uniform design, and a basis of every block."""
    variances = np.nan_to_num(certify(problem, problem.uniform()).variances)
    top = _top(problem, problem.budgets[problem.groups] * variances, 2 * problem.support_bound)
    return np.union1d(problem.basis, top)


def next_rows(
    problem: DesignProblem, rows: np.ndarray, weights: np.ndarray, variances: np.ndarray, bound: np.ndarray
) -> np.ndarray:
    """Return the candidates that were used or nearly so, and those outside with the largest variances."""
    share = weights[rows] / problem.budgets[problem.groups[rows]]
    # Candidates stay from round to round if they have this share of their budget, or a variance this near the
    # largest.
    used, near = 1e-6, 0.9
    kept = rows[(share > used) | (variances[rows] > near * bound[problem.groups[rows]])]
    excess = problem.budgets[problem.groups] * (variances - bound[problem.groups])
    return np.union1d(np.union1d(kept, problem.basis), _top(problem, excess, problem.support_bound))


def _top(problem: DesignProblem, values: np.ndarray, count: int) -> np.ndarray:
    """Return the candidates with the largest values, and the one with the largest of every group."""
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(problem.groups[order], return_index=True)
    return np.union1d(order[first], order[:count])


def _take_signals_back() -> None:
    """Restore the handler of Ctrl-C, which SCS replaces while it works."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
