"""Property-based tests of design code: problems of every structure, and rules for any result.

>>> import optdesign as od
>>> from hypothesis import given
>>> from optdesign.testing import assert_certified, problems
>>> @given(problems(structure="strata"))
... def test_designs_of_strata(problem):
...     assert_certified(od.solve(problem), tol=1e-6)
>>> test_designs_of_strata()

*Problems.* :func:`problems` draws small ones whose numbers are exact, :func:`random_problems` larger ones
from seeds, :func:`ugly_problems` those on which naive code breaks. :func:`feasible_weights` and
:func:`weighted` add designs, :func:`matrices` and :func:`semidefinite` serve tests of linear algebra.

*Assertions.* :func:`assert_feasible`, :func:`assert_certified` and :func:`assert_same_design` take one
answer. :func:`assert_solves` holds a routine of your own against one problem, :func:`check_solver` against
many.

*Your own strategies and checks.* :func:`chosen` and :func:`at_least_one` check options,
``PHASES`` are the hypothesis phases of a search for a failing example.

Needs hypothesis: the extra ``testing`` of the distribution optdesign-bandits.
"""

try:
    import hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError(
        "optdesign.testing needs hypothesis, which is not installed. Install the extra testing of "
        "optdesign-bandits; from a clone: python -m pip install '.[testing]'"
    ) from error

from optdesign.testing.assertions import assert_certified, assert_feasible, assert_same_design
from optdesign.testing.families import FAMILIES, random_problems, ugly_problem, ugly_problems
from optdesign.testing.linear import lattice, matrices, semidefinite
from optdesign.testing.options import PHASES, at_least_one, chosen
from optdesign.testing.solver import assert_solves, check_solver
from optdesign.testing.strategies import STRUCTURES, feasible_weights, problems, weighted

__all__ = [
    "FAMILIES",
    "PHASES",
    "STRUCTURES",
    "assert_certified",
    "assert_feasible",
    "assert_same_design",
    "assert_solves",
    "at_least_one",
    "check_solver",
    "chosen",
    "feasible_weights",
    "lattice",
    "matrices",
    "problems",
    "random_problems",
    "semidefinite",
    "ugly_problem",
    "ugly_problems",
    "weighted",
]
