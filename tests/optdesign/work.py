"""Work that is done in pieces, done at once; the free rows of a problem."""

from collections.abc import Generator
from typing import Any

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.solvers import newton


def done(pieces: Generator[Any, None, Any]) -> Any:
    """Return the result of a generator."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value


def free_of(problem: od.DesignProblem) -> newton._FreeRows:
    """Return the rows of groups that have a choice."""
    reduced = reduce(problem)
    return newton._free_rows(reduced, reduced.restrict(problem.uniform()))
