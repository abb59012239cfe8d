"""The number of checks of a pending stop in some work; the free rows of a problem."""

from collections.abc import Callable

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.runtime.stopping import stop_when
from optdesign.solvers import newton


def checks_of_a_stop(work: Callable[[], object]) -> int:
    """Return how often some work checks whether a stop is pending."""
    checks = 0

    def condition() -> bool:
        nonlocal checks
        checks += 1
        return False

    with stop_when(condition):
        work()
    return checks


def free_of(problem: od.DesignProblem) -> newton._FreeRows:
    """Return the rows of groups that have a choice."""
    reduced = reduce(problem)
    return newton._free_rows(reduced, reduced.restrict(problem.uniform()))
