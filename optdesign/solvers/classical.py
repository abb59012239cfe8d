"""The classical names: D-optimal and G-optimal designs.

Both are the one problem of :mod:`optdesign.problem.problem` with a single group and a single block. By the
equivalence theorem of Kiefer and Wolfowitz the D-optimal and the G-optimal design are the same. D-optimality
refers to log Det, and G-optimality to the largest variance, which is the rank d at the optimum.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from optdesign.design.result import DesignResult
from optdesign.problem.problem import DesignProblem
from optdesign.solvers.solve import solve


def d_optimal(candidates: ArrayLike, **options: Any) -> DesignResult:
    """Return the D-optimal design: weights of sum 1 that maximise log Det of the information.

    Parameters
    ----------
    candidates : array_like of shape (N, d)
        One candidate a row.
    **options : object
        Options of :func:`optdesign.solve`.

    Returns
    -------
    DesignResult
        Weights with their certificate.

    See Also
    --------
    optdesign.g_optimal : Return the same design, described by its largest variance.
    optdesign.solve : Solve problems with groups and parameter blocks.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 101)
    >>> r = od.d_optimal(np.column_stack([np.ones(101), x]))
    >>> x[r.support].tolist(), r.weights[r.support].round(6).tolist()
    ([-1.0, 1.0], [0.5, 0.5])
    """
    return solve(DesignProblem(candidates), **options)


def g_optimal(candidates: ArrayLike, **options: Any) -> DesignResult:
    """Return the G-optimal design: weights of sum 1 that minimise the largest variance.

    It is the D-optimal design. The largest variance is ``result.g_value``. It exceeds its minimum, the rank,
    by at most ``result.gap``.

    Parameters
    ----------
    candidates : array_like of shape (N, d)
        One candidate a row.
    **options : object
        Options of :func:`optdesign.solve`.

    Returns
    -------
    DesignResult
        Weights with their certificate.

    See Also
    --------
    optdesign.d_optimal : Return the same design, described by its determinant.
    optdesign.solve : Solve problems with groups and parameter blocks.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> r = od.g_optimal(np.vander(np.linspace(-1, 1, 51), 3))
    >>> round(r.g_value, 4)
    3.0
    """
    return d_optimal(candidates, **options)
