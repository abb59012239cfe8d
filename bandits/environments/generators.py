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
    """Return the instance of the paper's text: gaps in [0.2, 0.4] and norms in [0.5, 1].

    The parameter of arm a is the basis vector a mod d. Each client has one best arm, at random, with a
    reward in [0.6, 0.9]. A feature is its reward along theta_a plus a random orthogonal part that brings its
    norm to a value uniform between max(0.5, reward) and 1. With d = 1 the norm is the reward, which then
    starts at 0.9.

    Parameters
    ----------
    clients : int, default 100
        Number M of clients.
    arms : int, default 10
        Number K of arms.
    dim : int, default 3
        Length d of a feature vector.
    seed : int, default 0
        Seed of the random numbers.
    shared : bool, default False
        True if all arms have the first basis vector.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.environments.authors : Return the instance of the authors' experiments.

    Examples
    --------
    >>> env = synthetic(clients=4, arms=3, dim=2)
    >>> env.means.shape
    (4, 3)
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

    The features are those of a client of :func:`bandits.environments.synthetic` with shared parameters. DELB
    needs such an instance, and other algorithms accept it.

    Parameters
    ----------
    clients : int, default 100
        Number M of clients.
    arms : int, default 10
        Number K of arms.
    dim : int, default 3
        Length d of a feature vector.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.DELB : Play an algorithm for identical clients.

    Examples
    --------
    >>> env = identical(clients=4, arms=3, dim=2)
    >>> bool((env.features == env.features[0]).all()), env.shared
    (True, True)
    """
    _check_counts(clients=clients)
    one = synthetic(1, arms, dim, seed, shared=True)
    return LinearEnvironment(np.repeat(one.features, clients, axis=0), one.parameters, ell=one.ell, L=one.L)


def authors(clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0) -> LinearEnvironment:
    """Return the instance of the authors' experiments: theta_a is the first basis vector for every arm.

    The first coordinate is uniform in [0.7, 0.8] for one arm per client and in [0.5, 0.6] for the others. The
    remaining coordinates are uniform in [0, 0.6 / (d - 1)] and [0, 0.8 / (d - 1)]. So norms lie in [0.5, 1].
    The parameters are declared per arm, because the algorithms do not use that they agree.

    Parameters
    ----------
    clients : int, default 100
        Number M of clients.
    arms : int, default 10
        Number K of arms.
    dim : int, default 3
        Length d of a feature vector.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.environments.synthetic : Return the instance of the paper's text.

    Examples
    --------
    >>> authors(clients=4, arms=3, dim=2).parameters.tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    """
    x = authors_features(clients, arms, dim, seed)
    return LinearEnvironment(x, np.tile(np.eye(dim)[0], (arms, 1)), ell=0.5, L=1.0)


def movielens(
    path: str | Path, clients: int = 100, arms: int = 30, dim: int = 3, seed: int = 0, *,
    centred: bool = True, other_ratings: bool = False, cache: str | Path | None = None,
) -> LinearEnvironment:  # fmt: skip
    r"""Return the paper's instance on MovieLens-100K: clients are users, arms are groups of films.

    :mod:`bandits.environments.ratings` describes the features and parameters, and
    :func:`bandits.environments.ratings.facts` compares them with the paper's statements. It needs the extra
    ``movielens``.

    Parameters
    ----------
    path : str or Path
        File ``u.data``: tab-separated user, film, rating from 1 to 5, time.
    clients : int, default 100
        Number of users drawn.
    arms : int, default 30
        Number of groups of films.
    dim : int, default 3
        Number of factors.
    seed : int, default 0
        Seed of k-means and of the choice of clients.
    centred : bool, default True
        True to predict missing ratings from deviations from users' means, False from plain ratings.
    other_ratings : bool, default False
        True to accept a file that is not MovieLens-100K, in the same format.
    cache : str or Path, optional
        Directory for the factors. Default: ``optdesign`` in the user's cache directory.

    Returns
    -------
    LinearEnvironment
        The instance.

    Raises
    ------
    ValueError
        If the file is not MovieLens-100K.
    ImportError
        If scikit-learn is missing.

    See Also
    --------
    bandits.environments.synthetic : Return an instance without data.

    Examples
    --------
    >>> import tempfile
    >>> from itertools import product
    >>> rows = [f"{u}\t{f}\t{1 + (u * f) % 5}\t0" for u, f in product(range(1, 13), range(1, 11))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "u.data").write_text("\n".join(rows))
    ...     env = movielens(
    ...         f"{folder}/u.data", clients=4, arms=3, dim=2, other_ratings=True, cache=folder
    ...     )
    >>> env.means.shape
    (4, 3)
    """
    options = {"centred": centred, "other_ratings": other_ratings}
    return LinearEnvironment(*instance(path, clients, arms, dim, seed, **options, cache=cache))


def lower_bound(
    clients: int, arms: int, dim: int, horizon: int, best: ArrayLike | None = None
) -> LinearEnvironment:
    """Return the instance in the proof of the lower bound: d groups of clients without common information.

    Clients of group s have the s-th basis vector for every arm. The mean reward of arm 0 is
    Delta = sqrt(d (K - 1) / (4 M T)), and that of the others is 0.

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    horizon : int
        T, the number of pulls of each client.
    best : array_like of int of shape (d,), optional
        One arm per group whose mean reward is 2 Delta: the second instance of the proof. Default: the first
        instance.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.theory.lower_bound : Return the bound.

    Examples
    --------
    >>> lower_bound(clients=2, arms=2, dim=2, horizon=1).means.tolist()
    [[0.5, 0.0], [0.5, 0.0]]
    """
    _check_counts(clients=clients, arms=arms, dim=dim, horizon=horizon)
    if arms < 2 or clients % dim:
        raise ValueError(
            f"arms must be at least 2 and clients a multiple of dim; got {arms} arms, "
            f"{clients} clients and dim {dim}."
        )
    chosen = np.asarray(0 if best is None else best)
    if best is not None and (
        chosen.shape != (dim,) or chosen.dtype.kind not in "iu" or np.any((chosen < 1) | (chosen >= arms))
    ):
        raise ValueError(
            f"best must have one arm from 1 to {arms - 1} for each of the {dim} groups; got {best}. "
            "Arm 0 is the one that is best without it."
        )
    delta = np.sqrt(dim * (arms - 1) / (4.0 * clients * horizon))
    theta = np.zeros((arms, dim))
    theta[0] = delta
    if best is not None:
        theta[chosen, np.arange(dim)] += 2.0 * delta
    x = np.repeat(np.eye(dim), clients // dim, axis=0)
    return LinearEnvironment(np.repeat(x[:, None, :], arms, axis=1), theta)


def clusters(
    clients: int, arms: int, dim: int, n_clusters: int, seed: int = 0, *, orthogonal: bool = False
) -> LinearEnvironment:
    """Return clients in clusters whose features span independent subspaces: collinear within a cluster only.

    R^d is split into ``n_clusters`` subspaces of nearly equal dimension, spanned by the columns of a random
    matrix, the same for every arm. With n_clusters = d, clients of a cluster have parallel features.

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    n_clusters : int
        Number of clusters.
    seed : int, default 0
        Seed of the random numbers.
    orthogonal : bool, default False
        True if the columns of the random matrix are orthonormal.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.collinear_classes : Return the classes of collinear clients.

    Examples
    --------
    >>> clusters(clients=4, arms=2, dim=2, n_clusters=2).features.shape
    (4, 2, 2)
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
    """Return features in random directions with norms uniform in [0.5, 1], and parameters on the unit sphere.

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    seed : int, default 0
        Seed of the random numbers.
    shared : bool, default False
        True if all arms have the same parameter vector.
    noise : str or Noise, default "gaussian"
        Distribution of the rewards. For Bernoulli rewards all coordinates are made positive, so that every
        mean is a probability.

    Returns
    -------
    LinearEnvironment
        The instance.

    See Also
    --------
    bandits.environments.synthetic : Return an instance with bounded gaps.

    Examples
    --------
    >>> random(clients=4, arms=2, dim=3).features.shape
    (4, 2, 3)
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
