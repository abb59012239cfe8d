"""The arithmetic of Fed-PE over many clients at once, each client's part the same in any batch.

Sums run in a fixed order, term by term, so a client computes the same bits alone as in a batch, and clients
of one class never touch the bits of another.
"""

from __future__ import annotations

import numpy as np

from bandits.environments.linear import LinearEnvironment
from optdesign.runtime.jit import kernel

CUTOFF = 1e-14
"""Relative size below which an eigenvalue of a scaled information matrix counts as zero."""

LARGEST_SPREAD = 2.0**30
"""Largest ratio of the units of coordinates at which a projection in these units keeps the digits of all."""

LARGEST_SIGNAL = 1e4
"""Largest L s / sigma at which directions may be taken as one. Rewards are then off by about sigma / 1000."""


def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Inner products along the last axis, summed from the first coordinate to the last."""
    total = u[..., 0] * v[..., 0]
    for j in range(1, u.shape[-1]):
        total = total + u[..., j] * v[..., j]
    return total


def pseudo_inverses(matrices: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moore-Penrose inverses of positive semi-definite matrices (..., d, d) of at most the ranks (...).

    The second array has the ranks of the inverses, which are less than ``ranks`` if directions are taken as
    one.

    Coordinates are first scaled so that the diagonal is about 1. The units of the features do not decide
    therefore which eigenvalues count. Eigenvalues below ``CUTOFF`` times the largest are rounding, or belong
    to directions so nearly parallel that they are better taken as one. A design never causes such small
    eigenvalues by its weights: a client that explores a direction alone gives it at least the share
    1 / (D + gap) of its pulls.

    For U = S W S with the scales S, S^-1 W^+ S^-1 is a generalised inverse of U. With the projection onto the
    range of U on both sides it is the Moore-Penrose inverse. The projection would lose small coordinates if
    scales differ by more than ``LARGEST_SPREAD``; the generalised inverse is returned then. Both have the
    same products x' V y for x and y in the range of U, as the features are.
    """
    d = matrices.shape[-1]
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    size = np.exp2(np.rint(np.log2(np.where(diagonal > 0.0, diagonal, 1.0)) / 2.0))
    values, vectors = np.linalg.eigh(matrices / (size[..., :, None] * size[..., None, :]))
    keep = (np.arange(d) >= d - ranks[..., None]) & (values > CUTOFF * values[..., -1:])
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    scaled = vectors / size[..., :, None]
    out = (scaled * inverse[..., None, :]) @ np.swapaxes(scaled, -1, -2)
    singular = ~keep.all(axis=-1) & (size.max(axis=-1) <= LARGEST_SPREAD * size.min(axis=-1))
    if singular.any():
        spanning = (vectors * size[..., :, None] * keep[..., None, :])[singular]
        basis = np.linalg.svd(spanning)[0] * (np.arange(d) < keep[singular].sum(axis=-1)[:, None])[:, None, :]
        onto = basis @ np.swapaxes(basis, -1, -2)
        out[singular] = onto @ out[singular] @ onto
    return out, keep.sum(axis=-1)


def check_separate(env: LinearEnvironment, sigma: float) -> None:
    """Raise ValueError if rewards can depend on the difference of features that are taken as one.

    The same bound holds for estimates with round-off that exceeds the noise.
    """
    if env.L * env.s > LARGEST_SIGNAL * sigma:
        raise ValueError(
            "features must not be parallel up to round-off if rewards depend on their difference; L s / sigma"
            f" is {env.L * env.s / sigma:.3g}, and above {LARGEST_SIGNAL:g} they are not taken as one. "
            "Subtract its mean from every coordinate, or rescale features of very different norms."
        )


def are_accurate(
    information: np.ndarray, moment: np.ndarray, theta: np.ndarray, potential: np.ndarray, deviation: float
) -> bool:
    """Return True if round-off of theta = V moment is less than the noise of the estimates.

    With the residual r = moment - U theta, an estimate x' theta is off by x' V r, which is at most
    ||x||_V ||r||_V. The standard deviation of the estimate is at most ``deviation`` times ||x||_V.
    """
    residual = moment - (information @ theta[..., None])[..., 0]
    error = np.einsum("...j,...jk,...k->...", residual, potential, residual)
    return bool(np.all(error < deviation**2))


@kernel
def accumulate(direction, member, pulls, vectors, information, moment):
    """Add f e e' and f theta-hat_i of every client to its class. Overwrites information and moment."""
    m, arms, d = direction.shape
    blocks = information.shape[1]
    for i in range(m):
        c = member[i]
        for a in range(arms):
            f = pulls[i, a]
            if f > 0:
                b = a if blocks > 1 else 0
                for j in range(d):
                    moment[c, b, j] += f * vectors[i, a, j]
                    for k in range(d):
                        information[c, b, j, k] += f * direction[i, a, j] * direction[i, a, k]


@kernel
def project(direction, active, member, theta, potential, estimate, deviation):
    """Compute e' theta and sqrt(e' V e) of the active arms. Overwrites estimate and deviation."""
    m, arms, d = direction.shape
    blocks = theta.shape[1]
    for i in range(m):
        c = member[i]
        for a in range(arms):
            if active[i, a]:
                b = a if blocks > 1 else 0
                mean = 0.0
                square = 0.0
                for j in range(d):
                    mean += direction[i, a, j] * theta[c, b, j]
                    row = 0.0
                    for k in range(d):
                        row += potential[c, b, j, k] * direction[i, a, k]
                    square += direction[i, a, j] * row
                estimate[i, a] = mean
                deviation[i, a] = np.sqrt(max(square, 0.0))
