"""The world the algorithms act in: M clients, K arms, a reward that is linear in private features.

    y = x_{i,a}' theta_a + noise         theta_a = theta for all arms if parameters are shared

An environment knows what no algorithm may: the parameters. Algorithms see features (each client its own),
sums of rewards, and the bounds ell <= ||x|| <= L. Generators below are seeded; the same seed gives the
same environment.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bandits.movielens import instance
from bandits.noise import Bernoulli, Noise, law, noise_named
from optdesign.examples import authors_features

TIE = 1e-12
"""Arms whose mean is within this of the best count as tied, relative to the largest mean."""

ARRAYS = ("features", "parameters", "means", "gaps", "optimal")
"""Attributes of an environment that cannot be written to."""


@dataclass(frozen=True, eq=False)
class LinearEnvironment:
    """Features, parameters and noise. Frozen, and validated once, here.

    Parameters
    ----------
    features : (M, K, d) array
        x_{i,a}, none of them zero. They are copied, cannot be written to, and stay the same in all rounds.
    parameters : (K, d) array, or (d,) when all arms share one
    noise : "gaussian", "bounded", "two-point", "bernoulli" or a :class:`bandits.noise.Noise`
    scale : float
        Scale of the noise; for Gaussian noise its standard deviation.
    ell, L, s : float, optional
        What the algorithms are told about the norms: ell <= ||x|| <= L and ||theta|| <= s. By default the
        tightest bounds; bounds of your own must hold.

    Examples
    --------
    >>> env = LinearEnvironment([[[1.0], [0.5]]], [[0.2], [0.8]])
    >>> env.means.tolist(), env.gaps.tolist()
    ([[0.2, 0.4]], [[0.2, 0.0]])
    """

    features: np.ndarray
    parameters: np.ndarray
    noise: Noise
    shared: bool
    ell: float
    L: float
    s: float
    means: np.ndarray = field(repr=False)

    def __init__(
        self,
        features: ArrayLike,
        parameters: ArrayLike,
        noise: str | Noise = "gaussian",
        scale: float = 1.0,
        *,
        ell: float | None = None,
        L: float | None = None,
        s: float | None = None,
    ) -> None:
        x, theta = _numbers("features", features), _numbers("parameters", parameters)
        if x.ndim != 3 or 0 in x.shape:
            raise ValueError(
                f"features must have shape (clients, arms, dim), none of them 0; got {x.shape}. "
                "Stack one (arms, dim) array per client; features that change from round to round are not "
                "supported."
            )
        _, k, d = x.shape
        if theta.shape not in ((d,), (k, d)):
            raise ValueError(
                f"parameters must have shape ({k}, {d}), one row per arm, or ({d},) if shared; "
                f"got {theta.shape}."
            )
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(theta))):
            raise ValueError("features and parameters must be finite; some entries are not. Fill them in.")
        norms = np.linalg.norm(x, axis=2)
        if norms.min() == 0.0:
            i, a = np.unravel_index(int(np.argmin(norms)), norms.shape)
            raise ValueError(
                f"features must not be zero; features[{i}, {a}] is. "
                "Add a constant feature, or drop the client or the arm."
            )
        low, high = float(norms.min()), float(norms.max())
        size = float(np.linalg.norm(np.atleast_2d(theta), axis=1).max())
        values = {
            "features": x,
            "parameters": theta,
            "noise": noise_named(noise, scale),
            "shared": theta.ndim == 1,
            "ell": _bound("ell", ell, low, ell is None or 0.0 < ell <= low),
            "L": _bound("L", L, high, L is None or high <= L < np.inf),
            "s": _bound("s", s, size, s is None or size <= s < np.inf),
            "means": np.einsum("ikd,kd->ik", x, np.broadcast_to(theta, (k, d))),
        }
        for name, value in values.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)
        if isinstance(self.noise, Bernoulli) and not np.all((self.means >= 0.0) & (self.means <= 1.0)):
            raise ValueError(
                f"means must lie in [0, 1] for Bernoulli rewards; they span [{self.means.min():g}, "
                f"{self.means.max():g}]. Rescale the features or the parameters."
            )

    @property
    def clients(self) -> int:
        """M."""
        return self.features.shape[0]

    @property
    def arms(self) -> int:
        """K."""
        return self.features.shape[1]

    @property
    def dim(self) -> int:
        """Length of a feature vector, d."""
        return self.features.shape[2]

    @property
    def sigma(self) -> float:
        """Sub-Gaussian parameter of the noise."""
        return self.noise.sigma

    @property
    def common(self) -> bool:
        """Whether all arms have equal parameters, declared as shared or not."""
        return bool(self.shared or np.all(self.parameters == self.parameters[0]))

    @cached_property
    def gaps(self) -> np.ndarray:
        """What each client loses in expectation by one pull of each arm, shape (M, K)."""
        return frozen(self.means.max(axis=1, keepdims=True) - self.means)

    @cached_property
    def optimal(self) -> np.ndarray:
        """Which arms are best for each client, ties included, shape (M, K)."""
        return frozen(self.gaps <= TIE * max(1.0, float(np.abs(self.means).max())))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, whose arrays cannot be written to either."""
        for name, value in state.items():
            fixed = name in ARRAYS and isinstance(value, np.ndarray)
            object.__setattr__(self, name, frozen(value) if fixed else value)

    def pull(self, rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """Sums of the rewards of ``counts`` (M, K) pulls. Your own environment may have another rule."""
        return self.noise.sums(rng, self.means, counts)

    @property
    def law(self) -> tuple[int, float] | None:
        """How kernels can draw rewards, see :func:`bandits.noise.law`; None if only ``pull`` can tell."""
        return law(self.noise) if type(self).pull is LinearEnvironment.pull else None

    def fresh(self) -> LinearEnvironment:
        """The environment as a trial should find it: itself if it has no state, else a deep copy."""
        if type(self) is LinearEnvironment and self.law is not None:
            return self
        try:
            return copy.deepcopy(self)
        except TypeError as error:
            raise ValueError(
                f"environments with a pull or noise of their own must be copyable, for every trial anew; "
                f"{error}. Give {type(self).__name__} a method fresh, or its noise a __deepcopy__."
            ) from None


def frozen(array: np.ndarray) -> np.ndarray:
    """Return an array of the same values that cannot be made writable: itself if it is one, else a copy.

    >>> x = frozen(np.ones(2))
    >>> frozen(x) is x
    True
    """
    base: object = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if isinstance(base, bytes):
        return array
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Return a copy as an array of doubles, or raise ValueError."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must be given; some entries are masked. Fill them in.")
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers; got {type(values).__name__}: {error}."
        ) from None


def _bound(name: str, given: float | None, actual: float, holds: bool) -> float:
    if not holds:
        raise ValueError(
            f"{name} must bound the environment; got {given}, the data have {actual:g}. "
            "Give a finite bound, or leave it out to use that."
        )
    return actual if given is None else float(given)


def synthetic(
    clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0, *, shared: bool = False
) -> LinearEnvironment:
    """The paper's text: theta_a is a canonical basis vector, gaps in [0.2, 0.4], norms in [0.5, 1].

    Arm a uses basis vector a mod d, or all arms the first one if ``shared``. Each client has one best arm, at
    random, with a reward in [0.6, 0.9]; a feature is its reward along theta_a plus a random orthogonal part
    that brings its norm to a value uniform between max(0.5, reward) and 1. With d = 1 the norm is the reward,
    which then starts at 0.9.
    """
    rng = np.random.default_rng(seed)
    _check_counts(clients=clients, arms=arms, dim=dim)
    best = rng.integers(arms, size=clients)
    top = rng.uniform(0.6, 0.9, clients) if dim > 1 else rng.uniform(0.9, 1.0, clients)
    reward = top[:, None] - rng.uniform(0.2, 0.4, (clients, arms))
    reward[np.arange(clients), best] = top
    axis = np.zeros(arms, dtype=np.int64) if shared else np.arange(arms) % dim
    x = rng.standard_normal((clients, arms, dim))
    x[:, np.arange(arms), axis] = 0.0
    if dim > 1:
        norm = rng.uniform(np.maximum(0.5, reward), 1.0)
        x *= (np.sqrt(norm**2 - reward**2) / np.linalg.norm(x, axis=2))[:, :, None]
    x[:, np.arange(arms), axis] = reward
    theta = np.eye(dim)[0] if shared else np.eye(dim)[axis]
    return LinearEnvironment(x, theta, ell=0.5, L=1.0)


def identical(clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0) -> LinearEnvironment:
    """One linear bandit that all clients play: the same features for everybody, one parameter vector.

    The features are those of a client of :func:`synthetic` with shared parameters. Algorithms for distributed
    linear bandits (DELB) need this; the others may be played on it too.
    """
    _check_counts(clients=clients)
    one = synthetic(1, arms, dim, seed, shared=True)
    return LinearEnvironment(np.repeat(one.features, clients, axis=0), one.parameters, ell=one.ell, L=one.L)


def authors(clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0) -> LinearEnvironment:
    """The instance of the authors' experiments: theta_a is the first basis vector for every arm.

    The first coordinate is uniform in [0.7, 0.8] for one arm per client and in [0.5, 0.6] for the others;
    the remaining coordinates are uniform in [0, 0.6 / (d - 1)] and [0, 0.8 / (d - 1)]. So norms lie in
    [0.5, 1]. The parameters are declared per arm, since the algorithms are not told that they agree.
    """
    x = authors_features(clients, arms, dim, seed)
    return LinearEnvironment(x, np.tile(np.eye(dim)[0], (arms, 1)), ell=0.5, L=1.0)


def movielens(
    path: str | Path, clients: int = 100, arms: int = 30, dim: int = 3, seed: int = 0, *,
    centred: bool = True, other_ratings: bool = False, cache: str | Path | None = None,
) -> LinearEnvironment:  # fmt: skip
    """The paper's experiment on MovieLens-100K: clients are users, arms are groups of films.

    :mod:`bandits.movielens` says how features and parameters are made from the ratings, and
    :func:`bandits.movielens.facts` compares them with what the paper states. Needs scikit-learn.

    Parameters
    ----------
    path : path of ``u.data``
        Tab-separated user, film, rating from 1 to 5, time.
    clients, arms, dim : int
        How many users are drawn, how many groups of films, how many factors.
    seed : int
        Starts k-means and chooses the clients.
    centred : bool
        Whether missing ratings are predicted from deviations from users' means, or from plain ratings.
    other_ratings : bool
        Accept a file that is not MovieLens-100K, in the same format.
    cache : path, optional
        Directory for the factors. Default: ``optdesign`` in the user's cache directory.
    """
    options = {"centred": centred, "other_ratings": other_ratings}
    return LinearEnvironment(*instance(path, clients, arms, dim, seed, **options, cache=cache))


def lower_bound(
    clients: int, arms: int, dim: int, horizon: int, best: ArrayLike | None = None
) -> LinearEnvironment:
    """The construction in the proof of the lower bound: d groups of clients that cannot help each other.

    Clients of group s have the s-th basis vector for every arm. Arm 0 pays Delta = sqrt(d (K - 1) / (4 M T)),
    the others nothing; with ``best`` (one arm per group) arm best[s] pays 2 Delta to group s instead, which
    is the proof's second instance.
    """
    _check_counts(clients=clients, arms=arms, dim=dim, horizon=horizon)
    if arms < 2 or clients % dim:
        raise ValueError(
            f"arms must be at least 2 and clients a multiple of dim; got {arms} arms, "
            f"{clients} clients and dim {dim}."
        )
    if best is not None and (
        np.shape(best) != (dim,) or not np.all((np.asarray(best) >= 1) & (np.asarray(best) < arms))
    ):
        raise ValueError(
            f"best must have one arm from 1 to {arms - 1} for each of the {dim} groups; got {best}. "
            "Arm 0 is the one that is best without it."
        )
    delta = np.sqrt(dim * (arms - 1) / (4.0 * clients * horizon))
    theta = np.zeros((arms, dim))
    theta[0] = delta
    if best is not None:
        theta[np.asarray(best), np.arange(dim)] += 2.0 * delta
    x = np.repeat(np.eye(dim), clients // dim, axis=0)
    return LinearEnvironment(np.repeat(x[:, None, :], arms, axis=1), theta)


def clusters(
    clients: int, arms: int, dim: int, n_clusters: int, seed: int = 0, *, orthogonal: bool = False
) -> LinearEnvironment:
    """Clients in clusters whose features span independent subspaces: collinear within, never across.

    R^d is split into ``n_clusters`` subspaces of nearly equal dimension, spanned by the columns of a random
    matrix (orthonormal if ``orthogonal``), the same for every arm. With n_clusters = d, clients of a cluster
    have parallel features.
    """
    rng = np.random.default_rng(seed)
    _check_counts(clients=clients, arms=arms, dim=dim, n_clusters=n_clusters)
    if n_clusters > min(dim, clients):
        raise ValueError(f"n_clusters must be at most dim {dim} and clients {clients}; got {n_clusters}.")
    basis = rng.standard_normal((dim, dim))
    if orthogonal:
        basis = np.linalg.qr(basis)[0]
    member = np.arange(clients) * n_clusters // clients
    owner = np.arange(dim) * n_clusters // dim
    coordinates = rng.standard_normal((clients, arms, dim)) * (owner == member[:, None])[:, None, :]
    return LinearEnvironment(_with_norms(coordinates @ basis.T, rng), _unit(rng, (arms, dim)))


def random(
    clients: int, arms: int, dim: int, seed: int = 0, *, shared: bool = False, noise: str | Noise = "gaussian"
) -> LinearEnvironment:
    """Features in random directions with norms uniform in [0.5, 1], parameters on the unit sphere.

    For Bernoulli rewards all coordinates are made positive, so that every mean is a probability.
    """
    rng = np.random.default_rng(seed)
    _check_counts(clients=clients, arms=arms, dim=dim)
    x, theta = rng.standard_normal((clients, arms, dim)), _unit(rng, (dim,) if shared else (arms, dim))
    if noise == "bernoulli" or isinstance(noise, Bernoulli):
        x, theta = np.abs(x), np.abs(theta)
    return LinearEnvironment(_with_norms(x, rng), theta, noise)


def _unit(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    v = rng.standard_normal(shape)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def _with_norms(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return x * (rng.uniform(0.5, 1.0, x.shape[:2]) / np.linalg.norm(x, axis=2))[:, :, None]


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value}.")
