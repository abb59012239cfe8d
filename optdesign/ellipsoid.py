"""The smallest ellipsoid around points: the dual of the D-optimal design on them.

*Centred at the origin.* For any weights u of sum 1 with information U, every ellipsoid ``{x : |B x| <= 1}``
that contains the points has ``sum_n u_n |B x_n|^2 = tr(B U B') <= 1``, so det(B U B') <= d^-d by the
inequality of arithmetic and geometric means: its volume, a constant over ``|det B|``, is at least that
constant times d^(d/2) det(U)^(1/2).

*Free centre.* The same holds with the covariance S of the points under u in place of U, since
``sum_n u_n |B (x_n - c)|^2`` is least where c is the mean.

So an ellipsoid that contains the points has at most d^(-d/2) det(B S B')^(-1/2) times the smallest volume,
whatever the weights are; they are those of the optimal design on the points, lifted to (1, x) where the
centre is free, for which that is 1 at the optimum. Both claims are made of the factor B and the centre as
they are stored: B is inflated until the points are inside in compensated arithmetic with its error added, and
B S B' is formed from the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, localcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.whitening import whitened
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.numbers.roundoff import UNIT, gamma
from optdesign.problem.coordinates import log_gram, write_refined
from optdesign.problem.decimals import decimals, log_abs_det
from optdesign.problem.inputs import check_axes, floats
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.solvers.solve import solve
from optdesign.tables.columns import check_exact


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Ellipsoid ``{x : |factor (x - centre)| <= 1}``, with a certificate of its volume.

    Attributes
    ----------
    centre : ndarray of shape (d,)
        Centre.
    factor : ndarray of shape (d, d)
        Matrix that maps the ellipsoid to the unit ball.
    volume_ratio : float
        Upper bound on the volume divided by that of the smallest ellipsoid; 1 is the optimum.
    result : DesignResult
        Design of the scaled points, to which a coordinate 1 is added if the centre is free. At the optimum
        the ellipsoid touches the points ``result.support``.

    See Also
    --------
    optdesign.min_volume_ellipsoid : Compute the ellipsoid of points.
    optdesign.plot.ellipsoid : Draw it.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.min_volume_ellipsoid([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> round(e.volume, 4)
    6.2832
    """

    centre: np.ndarray
    factor: np.ndarray
    volume_ratio: float
    result: DesignResult = field(repr=False)

    @property
    def shape(self) -> np.ndarray:
        """Matrix factor' factor; the ellipsoid is {x : (x - centre)' shape (x - centre) <= 1}.

        For a thin ellipsoid it has fewer correct digits than the factor.
        """
        return self.factor.T @ self.factor

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume.

        The determinant of the factor is computed in twice the precision, because the factor of a thin
        ellipsoid is ill-conditioned.
        """
        d = len(self.centre)
        exponent = np.frexp(np.abs(self.factor).max(axis=0))[1]
        columns, none = read_only(np.ldexp(self.factor, -exponent)), read_only(np.zeros((d, d)))
        log_det = 0.5 * log_gram(columns, none, read_only(np.ones(d)), read_only(np.array([d])))
        if not math.isfinite(log_det):
            with localcontext(Context(prec=800)):
                log_det = log_abs_det(decimals(columns))
        log_det += math.log(2.0) * int(exponent.sum())
        return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1) - log_det

    @property
    def volume(self) -> float:
        """Volume of the ellipsoid; infinite if it exceeds the range of floating point."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_volume))

    def levels(self, points: ArrayLike) -> np.ndarray:
        """Return ``|factor (x - centre)|^2`` of points.

        Parameters
        ----------
        points : array_like of shape (N, d)
            One point a row.

        Returns
        -------
        ndarray of shape (N,)
            Values of at most 1 inside the ellipsoid.
        """
        x = floats(points, "points")
        if x.ndim != 2 or x.shape[1] != len(self.centre):
            remedy = "One point a row."
            raise InputError("points", f"must have shape (N, {len(self.centre)})", f"got {x.shape}", remedy)
        return np.sum(_offsets(x, self.centre, self.factor)[0] ** 2, axis=1)


def min_volume_ellipsoid(points: ArrayLike, *, centred: bool = False, **options: Any) -> Ellipsoid:
    """Return the smallest ellipsoid that contains all points, with free centre or centred at the origin.

    Parameters
    ----------
    points : array_like of shape (N, d)
        One point a row. The points do not lie in a hyperplane.
    centred : bool, default False
        True for an ellipsoid centred at the origin.
    **options : object
        Options of :func:`optdesign.solve`.

    Returns
    -------
    Ellipsoid
        Ellipsoid with a bound on its volume against the smallest one.

    Raises
    ------
    InputError
        If the points lie in a hyperplane.

    See Also
    --------
    optdesign.plot.ellipsoid : Draw the ellipsoid.

    Examples
    --------
    >>> import optdesign as od
    >>> square = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> e = od.min_volume_ellipsoid(square)
    >>> bool(np.allclose(e.centre, 0)), bool(np.allclose(e.shape, np.eye(2) / 2)), round(e.volume_ratio, 6)
    (True, True, 1.0)
    """
    x = floats(points, "points")
    check_axes(x, "points", "N, d", "One point a row.")
    check_exact(np.asarray(points), x, "points")
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError("points", "must be finite", f"points[{at}] = {x[at].tolist()}", "Drop the row.")
    size = np.abs(x).max(axis=0)
    # Coordinates of points may be as large as this, and their largest as small as its inverse.
    largest = 1e250
    if np.any((size > largest) | ((size > 0) & (size < 1 / largest))):
        rule = f"must have coordinates between {1 / largest:g} and {largest:g} in size, or zero"
        value = f"theirs are at most {', '.join(f'{v:g}' for v in size)}"
        raise InputError("points", rule, value, "Change the units.")
    # Shifted and scaled, so that neither the units nor the distance to the origin cost digits.
    d = x.shape[1]
    middle = np.zeros(d) if centred else 0.5 * x.min(axis=0) + 0.5 * x.max(axis=0)
    peak = np.abs(x - middle).max(axis=0)
    scale = np.exp2(np.ceil(np.log2(np.where(peak > 0, peak, 1.0))))
    y = (x - middle) / scale
    problem = DesignProblem(y if centred else np.column_stack([np.ones(len(y)), y])) if peak.any() else None
    if problem is None or problem.rank < problem.dim:
        flat = "a hyperplane through the origin" if centred else "a hyperplane"
        value = f"to rounding they lie in {flat}, where the smallest ellipsoid has volume 0"
        remedy = "Project them onto their span first."
        raise InputError("points", f"must span all {d} dimensions", value, remedy)
    result = solve(problem, **options)
    centre = np.zeros(d) if centred else middle + scale * (result.weights @ y)
    factor = _whitening(problem, result, centred) / scale
    factor, ratio = _inflated(x, centre, factor, result.weights, centred)
    return Ellipsoid(centre, factor, ratio, result)


def _whitening(problem: DesignProblem, result: DesignResult, centred: bool) -> np.ndarray:
    """Return B with B S B' nearly the identity, for the points that the problem is made of."""
    support, rows = result.support, problem.rows
    white = whitened(problem, rows, support, result.weights[support])[0][0]
    if rows.source is not problem.source:  # the rows are coordinates of the points
        white = problem.span.maps[0] @ white
    if centred:
        return white.T
    # |A (1, x)|^2 = 1 + |B (x - c)|^2 for all x, so B' B = A1' A1 with A = (a0, A1).
    return np.linalg.qr(white.T[:, 1:])[1]


def _offsets(x: np.ndarray, centre: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return factor (x - centre) of every point by compensated products, and a bound on each error."""
    high = x - centre
    back = high - x  # the exact error of the difference, as in two_sum
    low = (x - (high - back)) - (centre + back)
    both = np.column_stack([high, low])
    maps = np.concatenate([factor.T, factor.T])[None]
    out = np.empty(x.shape)
    write_refined(read_only(both), read_only(np.zeros(len(x), np.int64)), maps, out)
    terms = np.abs(both) @ np.abs(maps[0])
    return out, 2 * UNIT * np.abs(out) + 2 * gamma(2 * x.shape[1] + 1) ** 2 * terms


def _inflated(
    x: np.ndarray, centre: np.ndarray, factor: np.ndarray, weights: np.ndarray, centred: bool
) -> tuple[np.ndarray, float]:
    """Return the factor scaled until all points are inside, and the ratio of volumes that then holds."""
    margin = 4 * UNIT
    # Largest number of inflations. The factor is rounded, so each inflation exceeds the one that the points
    # require by a margin, which doubles each time.
    attempts = 60
    for _ in range(attempts):
        v, error = _offsets(x, centre, factor)
        top = float(np.max(np.sum((np.abs(v) + error) ** 2, axis=1))) * (1 + gamma(x.shape[1] + 4))
        if top <= 1.0:
            return factor, _ratio(v, error, weights, centred)
        factor = factor * ((1 - margin) / math.sqrt(top))
        margin *= 2
    return factor, math.inf


def _ratio(v: np.ndarray, error: np.ndarray, weights: np.ndarray, centred: bool) -> float:
    """d^(-d/2) det(B S B')^(-1/2), rounded up; infinite if round-off exceeds the smallest eigenvalue."""
    d = v.shape[1]
    u = weights / math.fsum(weights)
    used = np.flatnonzero(u)
    u, v, error = u[used], v[used], error[used]
    mean = np.zeros(d) if centred else u @ v
    s = (v.T * u) @ v - np.outer(mean, mean)
    values = np.linalg.eigvalsh(s)
    # Entries of v are at most 1 in length, so products and sums lose no more than this in all.
    lost = gamma(2 * len(used) + 10 * d + 16) * 2 + 4 * float(u @ np.linalg.norm(error, axis=1))
    if not values[0] > lost:
        return math.inf
    log_ratio = -0.5 * (d * math.log(d) + float(np.sum(np.log(values - lost))))
    return max(1.0, math.exp(log_ratio) * (1 + gamma(8 * d)))
