"""Hunt for false claims of :func:`optdesign.min_volume_ellipsoid`.

Claims: all points are inside, |B (x - c)| <= 1 in exact arithmetic; ``log_volume`` and ``volume`` are those
of B; the volume is at most ``volume_ratio`` times the smallest; points are refused only if they lie in a
hyperplane, to rounding.

*Truth.* For weights u of sum 1 with covariance S (second moments, if the centre is fixed), every ellipsoid
{|A (x - c)| <= 1} around the points has det(A S A') <= d^-d. So the smallest volume, as 1 / |det A|, is at
least d^(d/2) det(S)^(1/2). On the other hand the ellipsoid of the optimal u, scaled until it contains the
points, is a witness against a ratio that is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

import optdesign as od
from hunt.claims import Found, call
from hunt.truth import cholesky, number, rank

WARM_UP = "gaussian"

BITS = 2500
"""Precision of balls: enough for points in units from 1e-250 to 1e250."""

VOLUME_RTOL = 1e-9
"""Largest relative error of a volume, and largest error of its logarithm relative to max(1, its size)."""

THIN = 1e-9
"""Points whose smallest width, after scaling of the coordinates, exceeds this must not be refused."""


class Points(NamedTuple):
    """Points and options."""

    x: np.ndarray
    centred: bool
    tol: float


def gaussian(rng: np.random.Generator) -> np.ndarray:
    """Gaussian points."""
    d = int(rng.integers(1, 5))
    return rng.normal(size=(int(rng.integers(d + 1, 40)), d))


def integers(rng: np.random.Generator) -> np.ndarray:
    """Small integers, with ties."""
    d = int(rng.integers(1, 4))
    return rng.integers(-3, 4, size=(int(rng.integers(d + 1, 20)), d)).astype(float)


def thin(rng: np.random.Generator) -> np.ndarray:
    """Points near a hyperplane that is not parallel to the axes."""
    x = gaussian(rng)
    d = x.shape[1]
    if d == 1:
        return x
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    x[:, -1] *= 10.0 ** rng.uniform(-10, -1)
    return x @ rotation


def far(rng: np.random.Generator) -> np.ndarray:
    """Points far from the origin, relative to their distances."""
    x = gaussian(rng)
    return x + rng.normal(size=x.shape[1]) * 10.0 ** rng.uniform(0, 10)


def units(rng: np.random.Generator) -> np.ndarray:
    """Coordinates in units from 1e-30 to 1e30."""
    x = gaussian(rng)
    return x * 10.0 ** rng.uniform(-30, 30, size=x.shape[1])


def row_sizes(rng: np.random.Generator) -> np.ndarray:
    """Points whose distances to the origin differ by many orders of magnitude."""
    x = gaussian(rng)
    return x * 10.0 ** rng.uniform(-8, 8, size=(len(x), 1))


def near_copies(rng: np.random.Generator) -> np.ndarray:
    """Points that almost agree, and few others."""
    x = gaussian(rng)
    x[: len(x) // 2] = x[0] + 10.0 ** rng.uniform(-15, -3) * rng.normal(size=x[: len(x) // 2].shape)
    return x


def decimals(rng: np.random.Generator) -> np.ndarray:
    """Decimals in the units of an experiment, on a grid."""
    d = int(rng.integers(1, 4))
    steps = rng.choice([0.1, 0.25, 1.0, 1e-3], size=d)
    return rng.choice([0.0, 20.0, 300.1, 2018.0], size=d) + steps * rng.integers(0, 4, size=(12, d))


def flat(rng: np.random.Generator) -> np.ndarray:
    """Integer points in a hyperplane, exactly."""
    d = int(rng.integers(2, 5))
    x = rng.integers(-3, 4, size=(int(rng.integers(d + 1, 15)), d)).astype(float)
    x[:, -1] = x[:, :-1] @ rng.integers(-2, 3, size=d - 1) + int(rng.integers(0, 2))
    return x


FAMILIES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    f.__name__: f for f in (gaussian, integers, thin, far, units, row_sizes, near_copies, decimals, flat)
}


def case(family: str, seed: int) -> Found:
    """Draw points and options, and examine the ellipsoid."""
    rng = np.random.default_rng([seed, 5, list(FAMILIES).index(family)])
    x = FAMILIES[family](rng)
    return examine(Points(x, bool(rng.random() < 0.4), float(rng.choice([1e-3, 1e-6, 1e-9]))))


def examine(points: Points) -> Found:
    """Compute an ellipsoid, and compare every claim with the truth."""
    flint.ctx.prec = BITS
    x, centred = points.x, points.centred
    made, refusal = call(od.min_volume_ellipsoid, x, centred=centred, tol=points.tol)
    if made is None:
        return Found("refused", _wrong_refusal(points, refusal))
    status = made.result.status.name
    if centred and np.any(made.centre != 0):
        return Found(status, f"the centre is {made.centre.tolist()}, not the origin")
    outside = _largest_level(made, x)
    if outside > 1:
        return Found(status, f"a point is outside by {float(outside - 1):.3g}")
    true = _log_volume(made.factor)
    allowed = VOLUME_RTOL * max(1.0, abs(float(true.mid())))
    if not abs(number(made.log_volume) - true) <= arb(allowed):
        return Found(status, f"log volume {made.log_volume!r}, truly {true.str(15, radius=False)}")
    if 1e-300 < made.volume < 1e300 and not abs(number(made.volume) / true.exp() - 1) <= VOLUME_RTOL * 10:
        return Found(status, f"volume {made.volume!r}, truly {true.exp().str(15, radius=False)}")
    if made.volume_ratio == math.inf:
        return Found("unproved", noted=True)
    return _examine_ratio(made, x, centred)


def _examine_ratio(made: od.Ellipsoid, x: np.ndarray, centred: bool) -> Found:
    status = made.result.status.name
    log_det = _log_det(made.factor)
    smallest = _least_log_volume(x, made.result.weights, centred)
    ratio = number(made.volume_ratio)
    if smallest is not None and ratio.log() >= -log_det - smallest:
        return Found(status, slack=float((ratio.log() + log_det + smallest).mid()))
    rival = _rival(x, centred)
    if rival is not None and ratio.log() < -log_det - rival:
        best = (-log_det - rival).exp()
        return Found(
            status, f"volume ratio {made.volume_ratio!r}, truly at least {best.str(12, radius=False)}"
        )
    return Found(status, undecided=True)


def _exact(x: np.ndarray) -> list[list[fmpq]]:
    return [[fmpq(*float(v).as_integer_ratio()) for v in row] for row in np.atleast_2d(x)]


def _largest_level(made: od.Ellipsoid, x: np.ndarray) -> Fraction:
    """Return the largest |B (x - c)|^2 over the points, exactly."""
    factor = fmpq_mat(_exact(made.factor))
    centre = _exact(made.centre)[0]
    moved = fmpq_mat([[v - c for v, c in zip(row, centre, strict=True)] for row in _exact(x)])
    image = (moved * factor.transpose()).tolist()
    level = max(sum((v * v for v in row), fmpq(0)) for row in image)
    return Fraction(int(level.p), int(level.q))


def _log_det(factor: np.ndarray) -> arb:
    return abs(arb(fmpq_mat(_exact(factor)).det())).log()


def _log_volume(factor: np.ndarray) -> arb:
    """Return the logarithm of the volume pi^(d/2) / (Gamma(d/2 + 1) |det B|)."""
    half = arb(len(factor)) / 2
    return half * arb.pi().log() - (half + 1).lgamma() - _log_det(factor)


def _moments(x: np.ndarray, weights: np.ndarray, centred: bool) -> tuple[list[arb], arb_mat]:
    """Return the mean, or the origin, and the second moments around it, under weights scaled to sum 1."""
    d = x.shape[1]
    u = [number(w) for w in weights]
    total = sum(u, arb(0))
    rows = [[number(v) for v in row] for row in x]
    mean = [arb(0)] * d
    if not centred:
        mean = [sum((w * r[j] for w, r in zip(u, rows, strict=True)), arb(0)) / total for j in range(d)]
    moved = arb_mat([[r[j] - mean[j] for j in range(d)] for r in rows])
    scaled = arb_mat([[w / total * moved[i, j] for j in range(d)] for i, w in enumerate(u)])
    return mean, moved.transpose() * scaled


def _least_log_volume(x: np.ndarray, weights: np.ndarray, centred: bool) -> arb | None:
    """Return a lower bound on -log |det A| of all ellipsoids around the points, from the weights."""
    d = x.shape[1]
    det = _moments(x, weights, centred)[1].det()
    return (arb(d).log() * d + det.log()) / 2 if det > 0 else None


def _rival(x: np.ndarray, centred: bool) -> arb | None:
    """Return -log |det A| of an ellipsoid around the points that is nearly the smallest."""
    y = x if centred else np.column_stack([np.ones(len(x)), x])
    weights = od.solve(od.DesignProblem(y), tol=1e-12, time_limit=5).weights
    mean, moments = _moments(x, weights, centred)
    d = x.shape[1]
    try:
        lower = cholesky(moments)
        white = lower.solve(
            arb_mat([[number(v) - c for v, c in zip(row, mean, strict=True)] for row in x]).transpose()
        )
    except (ZeroDivisionError, ValueError):
        return None
    top = arb(0)
    for n in range(len(x)):
        top = top.max(sum((white[j, n] ** 2 for j in range(d)), arb(0)))
    volume = moments.det().log() / 2 + arb(d) / 2 * top.log()
    return volume if volume.is_finite() else None


def _wrong_refusal(points: Points, refusal: str) -> str:
    """Return a description of a refusal of points that are not in a hyperplane, or an empty string."""
    x = points.x if points.centred else np.column_stack([np.ones(len(points.x)), points.x])
    if rank(x) < x.shape[1]:
        return ""
    middle = 0.0 if points.centred else (points.x.min(axis=0) + points.x.max(axis=0)) / 2
    y = points.x - middle
    y = y / np.abs(y).max(axis=0)
    y = y if points.centred else np.column_stack([np.ones(len(y)), y])
    width = np.linalg.svd(y, compute_uv=False)[-1]
    return f"refused points of width {width:.3g}: {refusal}" if width > THIN else ""
