"""The front door: choose a method, run it under its limits, certify what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.certificate import Certificate, certify, scale, settled
from optdesign.design.result import DesignResult, History, Status
from optdesign.problem.problem import DesignProblem, check_number, check_problem, floats, read_only
from optdesign.runtime import clock
from optdesign.runtime import threads as cores
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import DeferredInterrupt, Stopped, stop_when
from optdesign.solvers import Method, Step, auto, bca, lifted, newton
from optdesign.solvers.start import default_start
from optdesign.solvers.tidy import tidied

METHODS: dict[str, Method] = {"auto": auto.run, "bca": lifted(bca.run), "newton": lifted(newton.run)}
"""Every method by name, each described in its file under :mod:`optdesign.solvers`."""

DEFAULT_MAX_ITER = 100_000
"""Iterations after which a solver gives up, unless told otherwise."""

START_MIX = 1e-3
"""Share of the uniform design that is mixed into a start which loses rank, or whose relative gap exceeds
the inverse of this: it informs some direction hardly more than that share does."""

SMALL = 5e6
"""Multiplications of a pass over the data below which one thread is enough."""

RETRIES = 4
"""How often a solver goes on when its own gap is below the target and the certificate's is not."""


def solve(
    problem: DesignProblem,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    start: ArrayLike | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    threads: int | None = None,
) -> DesignResult:
    """Find the optimal design of a problem, with its certificate.

    Parameters
    ----------
    problem : DesignProblem
    tol : float
        Stop when gap <= tol * rank; the D-efficiency is then at least 1 / (1 + tol).
    method : str
        "auto", "bca" or "newton"; see the docs page "choosing a method".
    start : (N,) array, optional
        Weights to start from, say of a similar problem. They are scaled to the budgets; a group without
        any starts uniform, and a start that loses rank, or nearly, is mixed with the uniform design.
    max_iter : int, optional
        Most iterations: sweeps, Newton steps, or rounds of pricing. Default: 100,000.
    time_limit : float, optional
        Most seconds, not counting those of first use: of compilation, or of plain Python in its place.
    progress : bool
        Show a progress display on standard error once a second has passed.
    threads : int, optional
        Cores to use. Default: all that this process may use, where problems are large enough for it to pay;
        one in threads that are not the first. The result is the same for any number, but for rounding in
        systems of large order.

    Returns
    -------
    DesignResult
        Always feasible and always certified; ``status`` says why the solver stopped. Ctrl-C stops the
        solver, not the program: the status is then ``Status.INTERRUPTED``.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 21)
    >>> r = od.solve(od.DesignProblem(np.column_stack([np.ones(21), x, x**2])))
    >>> [round(float(v), 6) for v in x[r.support]]
    [-1.0, 0.0, 1.0]
    """
    began = clock.now()
    _check(problem, tol, method, max_iter, time_limit, threads)
    tol, time_limit = float(tol), None if time_limit is None else float(time_limit)
    with (
        DeferredInterrupt() as interrupted,
        Progress(progress, tol * problem.rank) as display,
        _cores(problem, threads),
    ):
        run = _Run(problem, start, tol, began, time_limit, interrupted)
        limit = DEFAULT_MAX_ITER if max_iter is None else int(max_iter)
        status, certificate = run.go(METHODS[method], limit, display)
        result = run.result(method, status, certificate)
    # Asked when none can be held back any more: an interrupt is never swallowed.
    return replace(result, status=Status.INTERRUPTED) if interrupted else result


def solve_many(problems: Iterable[DesignProblem], *, n_jobs: int = 1, **options: Any) -> list[DesignResult]:
    """Solve several problems, n_jobs at a time (-1: one per core); ``options`` go to :func:`solve`.

    Threads share one copy of the compiled kernels, which release the interpreter lock, so nothing is
    started or copied per problem. Results come in the order of the problems and do not depend on n_jobs.
    Ctrl-C ends the whole with KeyboardInterrupt.

    >>> import numpy as np, optdesign as od
    >>> rng = np.random.default_rng(0)
    >>> results = od.solve_many([od.DesignProblem(rng.normal(size=(50, 3))) for _ in range(4)], n_jobs=2)
    >>> all(r.converged for r in results)
    True
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0. Use 1 for one after the other, -1 for one per core.")
    if n_jobs == 1:
        return [_or_interrupt(solve(problem, **options)) for problem in problems]
    from joblib import Parallel, delayed

    options = {"threads": 1, **options}
    run = Parallel(n_jobs=n_jobs, prefer="threads")
    return list(run(delayed(solve)(problem, **options) for problem in problems))


def _or_interrupt(result: DesignResult) -> DesignResult:
    """Raise what a single solve turns into a status."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


class _Run:
    """One run of one solver: limits, history and status."""

    def __init__(
        self,
        problem: DesignProblem,
        start: ArrayLike | None,
        tol: float,
        began: float,
        time_limit: float | None,
        interrupted: DeferredInterrupt,
    ) -> None:
        self.problem, self.began, self.interrupted, self.tol = problem, began, interrupted, tol
        self.goal = tol * problem.rank
        self.first_use = clock.first_use_seconds()
        self.deadline = np.inf if time_limit is None else began + time_limit
        self.weights = self._default() if start is None else _given(problem, start)
        if time_limit is not None and not self._over():
            # What the last certificate will take is what one takes now.
            before = clock.now()
            settled(problem, self.weights)
            self.deadline -= clock.now() - before
        self.iterations = 0
        self.spans: list[tuple[float, float, int]] = []
        self.gaps: list[np.ndarray] = []
        self.stages: list[str] = []

    def _default(self) -> np.ndarray:
        """The start that suits the problem, or the uniform design if there is no time for it."""
        try:
            with stop_when(self._over):
                return default_start(self.problem)
        except Stopped:
            return self.problem.uniform()

    def go(self, method: Method, max_iter: int, display: Progress) -> tuple[Status, Certificate]:
        """Run the method until the certificate holds, a limit is met, or nothing moves any more."""
        target = self.goal
        for _ in range(RETRIES):
            left, before = max_iter - self.iterations, len(self.gaps)
            try:
                with stop_when(self._over):
                    stopped = self._iterate(method(self.problem, self.weights, target, left), display)
            except Stopped:
                stopped = self._why()
            except KeyboardInterrupt:  # of another's making: ours wait between steps
                stopped = Status.INTERRUPTED
            self.weights, certificate = settled(self.problem, self.weights)
            excess = certificate.gap - self.goal
            if stopped is Status.INTERRUPTED:
                return stopped, certificate
            if excess <= 0:
                # What was found is good enough: where there is no time for it, it need not be tidy.
                if stopped is None:
                    self.weights, certificate = self._tidied(certificate)
                return Status.CONVERGED, certificate
            if stopped is not None:
                return stopped, certificate
            if self.iterations >= max_iter:
                return Status.MAX_ITER, certificate
            # The certificate's gap is that of the weights, the best that were met, but for dust, and some
            # rounding: so much further, from where it is.
            reached = min((float(np.min(gaps)) for gaps in self.gaps[before:]), default=np.inf)
            seen = max(reached, certificate.gap - certificate.rounding)
            further = min(target, seen) - excess
            if reached > target or further <= 0:
                break
            target = further
        seen = certificate.gap - certificate.rounding
        cleared = seen <= max(self.goal, certificate.rounding)
        return Status.PRECISION if cleared else Status.STALLED, certificate

    def _tidied(self, certificate: Certificate) -> tuple[np.ndarray, Certificate]:
        """Tidy weights with their certificate, if there is time for it."""
        try:
            with stop_when(self._over):
                return tidied(self.problem, self.weights, certificate, self.goal)
        except Stopped:
            return self.weights, certificate

    def _iterate(self, steps: Iterator[Step], display: Progress) -> Status | None:
        """Let the solver work. Returns why it was stopped, if it was."""
        before = clock.now()
        for gaps, stage in steps:
            if stage not in self.stages[-1:]:
                self.stages.append(stage)
            if len(gaps):
                now = clock.now()
                self.spans.append((before - self.began, now - self.began, len(gaps)))
                self.gaps.append(gaps)
                self.iterations += len(gaps)
                before = now
                display.update(self.iterations, float(gaps[-1]))
            else:
                display.doing(stage)
            if self._over():
                return self._why()
        return None

    def _over(self) -> bool:
        """Whether somebody wants an answer now."""
        return bool(self.interrupted) or (self.deadline < np.inf and clock.now() > self.deadline)

    def _why(self) -> Status:
        """Who that is."""
        return Status.INTERRUPTED if self.interrupted else Status.TIME_LIMIT

    def result(self, name: str, status: Status, certificate: Certificate) -> DesignResult:
        """Everything the run has to say."""
        first_use = clock.first_use_seconds() - self.first_use
        return DesignResult(
            problem=self.problem,
            weights=read_only(self.weights),
            certificate=certificate,
            status=status,
            method=f"auto: {', then '.join(self.stages)}" if name == "auto" else name,
            iterations=self.iterations,
            seconds=clock.now() - self.began + first_use,
            compile_seconds=first_use,
            history=History(
                np.arange(1, self.iterations + 1),
                np.array([a + (b - a) * k / n for a, b, n in self.spans for k in range(1, n + 1)]),
                np.concatenate(self.gaps) if self.gaps else np.empty(0),
            ),
            tol=self.tol,
        )


def _cores(problem: DesignProblem, threads: int | None) -> AbstractContextManager[None]:
    """The threads of a solve; one where the problem is too small for more to pay."""
    if threads is None:
        small = problem.n_candidates * problem.dim**2 < SMALL
        return cores.using(1 if small else cores.available())
    return cores.using(int(threads))


def _check(
    problem: DesignProblem,
    tol: float,
    method: str,
    max_iter: int | None,
    time_limit: float | None,
    threads: int | None,
) -> None:
    check_problem(problem)
    check_number(tol, "tol", "The default is 1e-6.")
    if not 0 < tol < np.inf:
        raise ValueError(f"tol must be positive and finite; got {tol}. The default is 1e-6.")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}; got {method!r}. Leave it out for 'auto'."
        )
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise ValueError(
            f"max_iter must be an integer, at least 1; got {max_iter!r}. "
            f"Leave it out for {DEFAULT_MAX_ITER:,}."
        )
    if threads is not None and not (isinstance(threads, Integral) and threads >= 1):
        raise ValueError(
            f"threads must be an integer, at least 1; got {threads!r}. "
            "Leave it out for all cores where it pays."
        )
    if time_limit is not None:
        check_number(time_limit, "time_limit", "Leave it out for none.")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive seconds; got {time_limit}. Leave it out for none.")


def _given(problem: DesignProblem, start: ArrayLike) -> np.ndarray:
    """Feasible, rank-preserving weights near the given ones."""
    uniform = problem.uniform()
    w = floats(start, "start").copy()
    if w.shape != (problem.n_candidates,):
        raise ValueError(
            f"start must have one entry per candidate, shape ({problem.n_candidates},); got {w.shape}. "
            "Of weights per client and arm, take those of the active arms: w[active]."
        )
    bad = ~((w >= 0) & np.isfinite(w))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"start must be finite and not negative; start[{at}] = {w[at]}. "
            "Leave it out to start from the uniform design."
        )
    # Largest entry of a group first: a sum of huge or subnormal entries would over- or underflow.
    peak = np.zeros(problem.n_groups)
    np.maximum.at(peak, problem.groups, w)
    top = peak[problem.groups]
    w = np.divide(w, top, out=uniform.copy(), where=top > 0)
    scale(problem.groups, problem.budgets, w)
    if certify(problem, w).relative_gap <= 1 / START_MIX:
        return w
    return (1 - START_MIX) * w + START_MIX * uniform
