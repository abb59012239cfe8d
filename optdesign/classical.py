"""The classical names: D-optimal and G-optimal designs, and minimum-volume ellipsoids.

All three are the one problem of :mod:`optdesign.problem` with a single group and a single block. By the
equivalence theorem of Kiefer and Wolfowitz the D-optimal and the G-optimal design are the same; they
differ in what one reads off: log Det, or the largest variance, which is the rank d at the optimum.

The smallest ellipsoid around points is the dual of the D-optimal design on them. Let g be the largest
variance of weights u with information U.

*Centred at the origin.* {x : x' U^-1 x <= g} contains all points, and its squared volume is g^d det U times
a constant. The smallest one has d^d det U* >= d^d det U. So the volume is at most (g / d)^(d/2) times the
smallest.

*Free centre.* Lift the points to (1, x). With weighted mean c and covariance S the variance of a lifted point
is 1 + (x - c)' S^-1 (x - c), so {x : (x - c)' S^-1 (x - c) <= g - 1} contains all points, and its volume
is at most ((g - 1) / d)^(d/2) times the smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.certificate import information_matrices
from optdesign.problem import DesignProblem, floats
from optdesign.result import DesignResult
from optdesign.solve import solve


def d_optimal(candidates: ArrayLike, **options: Any) -> DesignResult:
    """D-optimal design: weights of sum 1 that maximise log Det of the information.

    ``options`` go to :func:`optdesign.solve`.

    >>> import numpy as np, optdesign as od
    >>> x = np.linspace(-1, 1, 101)
    >>> r = od.d_optimal(np.column_stack([np.ones(101), x]))
    >>> x[r.support].tolist(), r.weights[r.support].round(6).tolist()
    ([-1.0, 1.0], [0.5, 0.5])
    """
    return solve(DesignProblem(candidates), **options)


def g_optimal(candidates: ArrayLike, **options: Any) -> DesignResult:
    """G-optimal design: weights of sum 1 that minimise the largest variance, ``result.g_value``.

    It is the D-optimal design; the largest variance exceeds its minimum, the rank, by ``result.gap``.

    >>> import numpy as np, optdesign as od
    >>> r = od.g_optimal(np.vander(np.linspace(-1, 1, 51), 3))
    >>> round(r.g_value, 4)
    3.0
    """
    return d_optimal(candidates, **options)


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """{x : (x - centre)' shape (x - centre) <= 1}, with a certificate of how small it is."""

    centre: np.ndarray
    shape: np.ndarray
    volume_ratio: float
    """The volume is at most this many times that of the smallest ellipsoid; 1 is the optimum."""
    result: DesignResult = field(repr=False)
    """The design behind it, on scaled and, with free centre, lifted points; at the optimum the ellipsoid
    touches the points ``result.support``."""

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume."""
        d = len(self.centre)
        _, log_det = np.linalg.slogdet(self.shape)
        return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1) - 0.5 * float(log_det)

    @property
    def volume(self) -> float:
        """Volume of the ellipsoid; infinite where it exceeds the range of floating point."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_volume))

    def levels(self, points: ArrayLike) -> np.ndarray:
        """(x - centre)' shape (x - centre) of points: at most 1 inside."""
        y = np.asarray(points, dtype=np.float64) - self.centre
        return np.einsum("ni,ij,nj->n", y, self.shape, y)


def min_volume_ellipsoid(points: ArrayLike, *, centred: bool = False, **options: Any) -> Ellipsoid:
    """Smallest ellipsoid that contains all points, with free centre or centred at the origin.

    ``options`` go to :func:`optdesign.solve`; the points must not lie in a hyperplane.

    >>> import optdesign as od
    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> e = od.min_volume_ellipsoid(square)
    >>> bool(np.allclose(e.centre, 0)), bool(np.allclose(e.shape, np.eye(2) / 2)), round(e.volume_ratio, 6)
    (True, True, 1.0)
    """
    x = floats(points, "points")
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"points must have shape (N, d), neither of them 0; got {x.shape}. One point a row.")
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(f"points must be finite; points[{at}] = {x[at].tolist()}. Drop the row.")
    # Shifted and scaled, so that neither the units nor the distance to the origin cost digits.
    d = x.shape[1]
    middle = np.zeros(d) if centred else 0.5 * (x.min(axis=0) + x.max(axis=0))
    scale = np.abs(x - middle).max(axis=0)
    scale[scale == 0] = 1.0
    y = (x - middle) / scale
    problem = DesignProblem(y if centred else np.column_stack([np.ones(len(y)), y]))
    if problem.rank < problem.dim:
        flat = "a hyperplane through the origin" if centred else "a hyperplane"
        raise ValueError(
            f"points must span all {d} dimensions; they lie in {flat}, where the smallest ellipsoid has "
            "volume 0. Project them onto their span first."
        )
    result = solve(problem, **options)
    maps = problem.rows.maps[0]
    information = information_matrices(problem, result.weights, result.support)[0]
    inverse = maps @ np.linalg.inv(np.tril(information) + np.tril(information, -1).T) @ maps.T
    level, centre = result.g_value, np.zeros(d)
    if not centred:
        level, inverse, centre = level - 1, inverse[1:, 1:], result.weights @ y
    ratio = (level / d) ** (d / 2)
    return Ellipsoid(middle + scale * centre, inverse / level / np.outer(scale, scale), ratio, result)
