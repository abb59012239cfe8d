"""Generators of environments: the instances of the paper, and random ones.

Each generator is seeded: the same seed gives the same environment.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from bandits.environments.linear import LinearEnvironment
from bandits.environments.noise import Bernoulli, Noise
from bandits.environments.ratings import instance
from optdesign.examples import authors_features


def synthetic(
    clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0, *, shared: bool = False
) -> LinearEnvironment:
    """Return the instance of the paper's text: theta_a a basis vector, gaps in [0.2, 0.4], norms in [0.5, 1].

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
    """Return an instance in which all clients have the same features, with one parameter vector.

    The features are those of a client of :func:`synthetic` with shared parameters. Algorithms for distributed
    linear bandits (DELB) need this; the others may be played on it too.
    """
    _check_counts(clients=clients)
    one = synthetic(1, arms, dim, seed, shared=True)
    return LinearEnvironment(np.repeat(one.features, clients, axis=0), one.parameters, ell=one.ell, L=one.L)


def authors(clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0) -> LinearEnvironment:
    """Return the instance of the authors' experiments: theta_a is the first basis vector for every arm.

    The first coordinate is uniform in [0.7, 0.8] for one arm per client and in [0.5, 0.6] for the others;
    the remaining coordinates are uniform in [0, 0.6 / (d - 1)] and [0, 0.8 / (d - 1)]. So norms lie in
    [0.5, 1]. The parameters are declared per arm, since the algorithms do not use that they agree.
    """
    x = authors_features(clients, arms, dim, seed)
    return LinearEnvironment(x, np.tile(np.eye(dim)[0], (arms, 1)), ell=0.5, L=1.0)


def movielens(
    path: str | Path, clients: int = 100, arms: int = 30, dim: int = 3, seed: int = 0, *,
    centred: bool = True, other_ratings: bool = False, cache: str | Path | None = None,
) -> LinearEnvironment:  # fmt: skip
    """Return the paper's instance on MovieLens-100K: clients are users, arms are groups of films.

    :mod:`bandits.environments.ratings` describes the features and parameters, and
    :func:`bandits.environments.ratings.facts` compares them with the paper's statements. Needs scikit-learn.

    Parameters
    ----------
    path : path of ``u.data``
        Tab-separated user, film, rating from 1 to 5, time.
    clients, arms, dim : int
        Number of users drawn, of groups of films, and of factors.
    seed : int
        Starts k-means and chooses the clients.
    centred : bool
        True to predict missing ratings from deviations from users' means, False from plain ratings.
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
    """Return the instance in the proof of the lower bound: d groups of clients without common information.

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
    """Return clients in clusters whose features span independent subspaces: collinear within a cluster only.

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
    """Return features in random directions with norms uniform in [0.5, 1], parameters on the unit sphere.

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
