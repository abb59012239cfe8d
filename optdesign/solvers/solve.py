"""The public functions that solve problems.

:func:`solve` checks its arguments, chooses the initial weights, runs a method in the loop around all methods
(:mod:`optdesign.solvers.loop`), and builds the result. Candidates larger than memory have a loop of their own
(:mod:`optdesign.solvers.pool`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.large import Certified, LargeResult
from optdesign.design.result import DesignResult, Status
from optdesign.errors import InputError
from optdesign.numbers.checks import check_choice, check_count, check_jobs, check_positive, check_time_limit
from optdesign.problem.large import LargeProblem
from optdesign.problem.problem import DesignProblem, check_problem, read_only
from optdesign.runtime import clock
from optdesign.runtime import threads as cores
from optdesign.runtime.progress import Progress
from optdesign.runtime.stopping import DeferredInterrupt
from optdesign.solvers import auto, bca, newton
from optdesign.solvers.loop import Recorder, Stop, run_method
from optdesign.solvers.method import MAX_ITER, Method, on_problem
from optdesign.solvers.pool import STAGE, solve_large
from optdesign.solvers.start import default_start, given_start
from optdesign.sources.engine import LostEngineError

METHODS: dict[str, Method] = {"auto": auto.run, "bca": on_problem(bca.run), "newton": on_problem(newton.run)}
"""The methods of ``solve`` by name. ``on_problem`` makes a method of one for reduced problems."""


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
        Candidates, groups, parameter blocks and budgets.
    tol : float, default 1e-6
        Stop when gap <= tol * rank. The D-efficiency is then at least 1 / (1 + tol).
    method : {"auto", "bca", "newton"}, default "auto"
        Algorithm; see the page "Choosing a method".
    start : array_like of shape (N,), optional
        Initial weights, for example those of a similar problem. They are scaled to the budgets. A group
        without positive weights gets equal weights. Weights with singular or nearly singular information are
        mixed with the uniform design.
    max_iter : int, optional
        Largest number of iterations: sweeps, Newton steps, or rounds on a working set. Default: 100,000.
    time_limit : float, optional
        Largest number of seconds. The limit does not include the time of first use, in which kernels are
        compiled or run uncompiled. Default: no limit.
    progress : bool, default False
        Show a progress display on standard error after one second.
    threads : int, optional
        Number of threads. The result does not depend on it, up to round-off in large linear systems. Default:
        1 if the problem is small or the call is outside the main thread, otherwise all cores that this
        process may use.

    Returns
    -------
    DesignResult
        Always feasible and certified. ``status`` is the reason why the solver stopped. Ctrl-C stops the
        solver, not the program: the status is then ``Status.INTERRUPTED``.

    Raises
    ------
    InputError
        If an option breaks a rule.

    See Also
    --------
    optdesign.certify : Bound the efficiency of any weights.
    optdesign.verify : Check a result independently.
    optdesign.exact : Find whole runs instead of weights.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 21)
    >>> r = od.solve(od.DesignProblem(np.column_stack([np.ones(21), x, x**2])))
    >>> [round(float(v), 6) for v in x[r.support]]
    [-1.0, 0.0, 1.0]
    """
    watch = clock.Stopwatch()
    _check_arguments(problem, tol, method, max_iter, time_limit, threads)
    tol, time_limit = float(tol), None if time_limit is None else float(time_limit)
    limit = MAX_ITER if max_iter is None else int(max_iter)
    with (
        DeferredInterrupt() as interrupted,
        Progress(progress, tol * problem.rank) as display,
        _thread_context(problem, threads),
    ):
        stop = Stop(interrupted, np.inf if time_limit is None else watch.began + time_limit)
        recorder = Recorder(watch.began, display)
        if isinstance(problem, LargeProblem):
            if start is not None:
                remedy = "Leave it out: the solver starts from a sample."
                raise InputError("start", "must be left out for candidates larger than memory", remedy=remedy)
            method_name = f"{method}: {STAGE}"
            certified, status = _solve_large(problem, tol, method, limit, recorder, stop, watch)
            build_result: Callable[..., DesignResult] = partial(LargeResult, certified)
        else:
            weights = _initial_weights(problem, start, stop)
            stop.reserve_certificate(problem, weights)
            weights, certificate, status = run_method(
                problem, METHODS[method], weights, tol * problem.rank, limit, recorder, stop
            )
            # No stage is recorded if a stop ends the method before its first step.
            stages = ", then ".join(recorder.stages) or "start"
            method_name = f"auto: {stages}" if method == "auto" else method
            build_result = partial(DesignResult, problem, read_only(weights), certificate)
        solver_fields = _solver_fields(method_name, tol, recorder, watch)
    # An interrupt may arrive while the contexts exit, so the flag is read after them.
    return build_result(status=Status.INTERRUPTED if interrupted else status, **solver_fields)


def solve_many(problems: Iterable[DesignProblem], *, n_jobs: int = 1, **options: Any) -> list[DesignResult]:
    """Solve several problems in threads.

    The compiled kernels release the interpreter lock, so no data is copied. Results do not depend on n_jobs,
    up to round-off in large linear systems. Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    problems : iterable of DesignProblem
        Problems to solve.
    n_jobs : int, default 1
        Number of problems at a time; -1 for one per core.
    **options : object
        Options of :func:`optdesign.solve`.

    Returns
    -------
    list of DesignResult
        Results in the order of the problems.

    See Also
    --------
    optdesign.solve : Solve one problem.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> rng = np.random.default_rng(0)
    >>> results = od.solve_many([od.DesignProblem(rng.normal(size=(50, 3))) for _ in range(4)], n_jobs=2)
    >>> all(r.converged for r in results)
    True
    """
    check_jobs(n_jobs)
    if n_jobs == 1:
        return [_raise_if_interrupted(solve(problem, **options)) for problem in problems]
    from joblib import Parallel, delayed

    options = {"threads": 1, **options}  # the jobs already occupy the cores
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return list(parallel(delayed(solve)(problem, **options) for problem in problems))


def _solve_large(
    problem: LargeProblem,
    tol: float,
    method: str,
    limit: int,
    recorder: Recorder,
    stop: Stop,
    watch: clock.Stopwatch,
) -> tuple[Certified, Status]:
    """Solve a problem whose candidates are larger than memory, in at most ``limit`` iterations.

    Raises LostEngineError if the workers that hold the candidates are lost. Its attribute ``result`` is then
    the best certified design so far, if there is one.
    """
    try:
        return solve_large(problem, METHODS[method], tol * problem.rank, limit, recorder, stop)
    except LostEngineError as error:
        if error.certified is not None:
            solver_fields = _solver_fields(f"{method}: {STAGE}", tol, recorder, watch)
            error.result = LargeResult(error.certified, status=Status.INTERRUPTED, **solver_fields)
        raise


def _solver_fields(method: str, tol: float, recorder: Recorder, watch: clock.Stopwatch) -> dict[str, Any]:
    """Return the fields of a result that describe the run: method, iterations, times, history and tol."""
    return {
        "method": method,
        "iterations": recorder.iterations,
        **watch.times(),
        "history": recorder.history(),
        "tol": tol,
    }


def _raise_if_interrupted(result: DesignResult) -> DesignResult:
    """Return the result, or raise KeyboardInterrupt if its solve was interrupted."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _initial_weights(problem: DesignProblem, start: ArrayLike | None, stop: Stop) -> np.ndarray:
    """Return the weights of the given start, or of the default start if none is given.

    If a limit or an interrupt ends the computation of the default start, return the uniform design.
    """
    if start is not None:
        return given_start(problem, start)
    return stop.run_or_else(lambda: default_start(problem), problem.uniform)


def _thread_context(
    problem: DesignProblem, threads: int | None, parallel_from: float = 5e6
) -> AbstractContextManager[None]:
    """Return the context manager that sets the number of threads of a solve.

    If ``threads`` is None, the number is 1 for a problem with fewer multiplications per pass over the data
    than ``parallel_from``, and all available cores for other problems.
    """
    if threads is None:
        is_small = problem.n_candidates * problem.dim**2 < parallel_from
        return cores.using(1 if is_small else cores.available())
    return cores.using(int(threads))


def _check_arguments(
    problem: DesignProblem,
    tol: float,
    method: str,
    max_iter: int | None,
    time_limit: float | None,
    threads: int | None,
) -> None:
    """Raise InputError unless the arguments of solve are valid."""
    check_problem(problem)
    check_positive(tol, "tol", "The default is 1e-6.")
    check_choice(method, METHODS, "method", "Leave it out for 'auto'.")
    if max_iter is not None:
        check_count(max_iter, "max_iter", f"Leave it out for {MAX_ITER:,}.")
    if threads is not None:
        check_count(threads, "threads", "Leave it out for all cores if the problem is large.")
    check_time_limit(time_limit)
