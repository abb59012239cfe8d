"""MovieLens-100K as a federated bandit: clients are users, arms are groups of films.

1. Ratings are divided by the largest, 5, and the missing ones are predicted by user-based collaborative
   filtering: a user's mean plus how far the ten most similar raters of the film were from theirs, weighted by
   similarity; or, with ``centred=False``, simply the weighted mean of their ratings. Similarity is Pearson's
   correlation over the films both rated, and counts if positive. Raters as similar as the tenth count as
   well. The paper does not state which of the two it has, and the results differ.
2. R = W H by non-negative factorisation with d factors; x_{i,a} is the row of user i in W, for every arm.
3. k-means groups the columns of H, one per film, into K arms; theta_a is the centre of group a.

Steps 1 and 2 do not depend on the seed and are kept on disk; the seed starts k-means and chooses the clients.
The factorisation is unique at best up to a positive scale per factor. It stays as the solver leaves it:
Fed-PE does not see a common scale, since only ||x|| / ell enters its widths.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.environments.linear import LinearEnvironment
from optdesign.runtime.files import atomic

SHA256 = "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"
"""Checksum of u.data in MovieLens-100K, as GroupLens publishes it."""

TOP_RATING = 5.0
NEIGHBOURS = 10
ITERATIONS = 5000
"""Most iterations of the factorisation; 1,000 suffice for d = 3."""

LIBRARIES = ("numpy", "scipy", "scikit-learn")
"""Libraries that compute the factors."""


def recipe(source: bytes) -> str:
    """Return the part of a cached file's name that identifies the code: a hash of source and versions."""
    whole = hashlib.sha256(source)
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            whole.update(f"{name} {importlib.metadata.version(name)}\n".encode())
    return whole.hexdigest()[:16]


RECIPE = recipe(files("bandits.environments").joinpath("ratings.py").read_bytes())
"""Recipe of this module, read when it is imported."""

BROKEN = (ValueError, EOFError, KeyError, zipfile.BadZipFile)
"""Errors of reading a truncated or foreign archive."""


class Facts(NamedTuple):
    """Ranges of the features and gaps of a MovieLens instance, as the paper states them."""

    smallest_norm2: float
    largest_norm2: float
    smallest_gap: float
    """Smallest gap of an arm that is not best for its client."""
    largest_gap: float


def instance(
    path: str | Path, clients: int, arms: int, dim: int, seed: int, *,
    centred: bool = True, other_ratings: bool = False, cache: str | Path | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return features (M, K, d) and parameters (K, d); see :func:`bandits.environments.movielens`."""
    users, films = factors(path, dim, centred=centred, other_ratings=other_ratings, cache=cache)
    for name, value, most, of in (
        ("clients", clients, len(users), "users"),
        ("arms", arms, len(films), "films"),
    ):
        if not 1 <= value <= most:
            raise ValueError(f"{name} must lie in 1 .. {most}, the {of} of {path}; got {value}.")
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(users), clients, replace=False))
    with _scikit_learn() as sklearn:
        centres = sklearn.cluster.KMeans(arms, n_init=10, random_state=seed).fit(films).cluster_centers_
    return np.repeat(users[chosen][:, None, :], arms, axis=1), centres


def factors(
    path: str | Path, dim: int, *,
    centred: bool = True, other_ratings: bool = False, cache: str | Path | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return W (users, d) and the transpose of H (films, d), from the cache if it has both."""
    content, folder = _content(Path(path), other_ratings), _cache_directory(cache)
    reading = "centred" if centred else "plain"
    file = folder / f"factors-{hashlib.sha256(content).hexdigest()[:16]}-{reading}-d{dim}-{RECIPE}.npz"
    with (
        contextlib.suppress(OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile),
        file.open("rb") as kept,
    ):
        archive = np.load(kept)
        return archive["users"], archive["films"]
    ratings = _ratings(content, Path(path))
    if not 1 <= dim <= min(ratings.shape):
        raise ValueError(f"dim must lie in 1 .. {min(ratings.shape)}, the rank of the ratings; got {dim}.")
    with _scikit_learn() as sklearn:
        model = sklearn.decomposition.NMF(dim, init="nndsvda", random_state=0, max_iter=ITERATIONS)
        users = model.fit_transform(complete(ratings, centred=centred) / TOP_RATING)
    films = np.ascontiguousarray(model.components_.T)
    # A cache that cannot be written costs seconds, not the result.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic(file) as partial, partial.open("wb") as target:
            np.savez(target, users=users, films=films)
    return users, films


def facts(env: LinearEnvironment) -> Facts:
    """Return the smallest and largest squared norm of features and gap of arms that are not best."""
    norm2 = np.sum(env.features**2, axis=2)
    gaps = env.gaps[~env.optimal]
    return Facts(float(norm2.min()), float(norm2.max()), float(gaps.min()), float(gaps.max()))


def complete(ratings: np.ndarray, *, centred: bool = True) -> np.ndarray:
    """Fill the zeros of a (users, films) matrix of ratings by user-based collaborative filtering.

    Neighbours are the ten most similar raters of the film, and all others that are as similar as the tenth.
    Their ratings are averaged as deviations from their means if ``centred``, else as they are. The prediction
    is the user's mean if no similar user rated a film. Predictions stay within the range of the ratings, and
    ratings that are known stay as they are.
    """
    rated = ratings > 0.0
    mean = ratings.sum(axis=1) / np.maximum(rated.sum(axis=1), 1)
    squared = squared_similarity(ratings)
    out = np.empty(ratings.shape)
    for film in range(ratings.shape[1]):
        raters = np.flatnonzero(rated[:, film])
        near = squared[:, raters]
        if len(raters) > NEIGHBOURS:
            # Squares are compared, because square roots of two numbers may round to the same one.
            tenth = np.partition(near, -NEIGHBOURS, axis=1)[:, -NEIGHBOURS, None]
            near[near < tenth] = 0.0
        weight = np.sqrt(near)
        base = mean if centred else np.zeros(len(mean))
        total = weight.sum(axis=1)
        weighted = (weight * (ratings[raters, film] - base[raters])).sum(axis=1)
        out[:, film] = base + np.divide(weighted, total, out=mean - base, where=total > 0.0)
    known = ratings[rated]
    return np.where(rated, ratings, np.clip(out, known.min(), known.max()))


def squared_similarity(ratings: np.ndarray) -> np.ndarray:
    """Return the squared correlation of every two users over the films that both rated.

    An entry is 0 if the correlation is negative or undefined, and on the diagonal. Ratings are integers, so
    the numerator and the denominator are integers below 2^53, which float64 represents exactly in any order
    of summation. The quotient is rounded once: equal correlations have equal entries.
    """
    rated = (ratings > 0.0).astype(np.float64)
    common, total = rated @ rated.T, ratings @ rated.T
    covariance = common * (ratings @ ratings.T) - total * total.T
    variance = common * (ratings**2 @ rated.T) - total**2
    denominator = variance * variance.T
    if denominator.max() > 2.0**53:
        raise ValueError(
            f"ratings must have integer sums below 2^53; two users have up to {common.max():.0f} films in "
            "common. Use at most 4,870 films."
        )
    out = np.zeros(common.shape)
    np.divide(covariance**2, denominator, out=out, where=(covariance > 0.0) & (denominator > 0.0))
    np.fill_diagonal(out, 0.0)
    return out


def _content(path: Path, other_ratings: bool) -> bytes:
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if not other_ratings and found != SHA256:
        raise ValueError(
            f"path must be u.data of MovieLens-100K, with SHA-256 {SHA256}; {path} has {found}. Get the data "
            "set MovieLens 100K (ml-100k) from GroupLens, or pass other_ratings=True for ratings of your own."
        )
    return content


def _ratings(content: bytes, path: Path) -> np.ndarray:
    """Return the (users, films) matrix of ratings, 0 if missing, without empty rows and columns."""
    expected = (
        f"{path} must have lines of user, film, rating from 1 to {TOP_RATING:.0f} and time, as integers"
    )
    try:
        user, film, rating, _ = np.loadtxt(content.decode().splitlines(), dtype=np.int64, ndmin=2).T
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{expected}; {error}.") from None
    wrong = np.flatnonzero((rating < 1) | (rating > TOP_RATING))
    if len(wrong):
        raise ValueError(f"{expected}; line {wrong[0] + 1} has the rating {rating[wrong[0]]}.")
    users, row = np.unique(user, return_inverse=True)
    films, column = np.unique(film, return_inverse=True)
    out = np.zeros((len(users), len(films)))
    out[row, column] = rating
    if np.count_nonzero(out) < len(rating):
        pairs, count = np.unique(np.stack([user, film], axis=1), axis=0, return_counts=True)
        twice = pairs[np.argmax(count > 1)]
        raise ValueError(
            f"{path} must have one rating per user and film; user {twice[0]} rates film {twice[1]} more than "
            "once. Keep one of these lines."
        )
    return out


def _cache_directory(given: str | Path | None) -> Path:
    if given is not None:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optdesign"


@contextlib.contextmanager
def _scikit_learn() -> Iterator[Any]:
    """scikit-learn on one thread: with more, sums are rounded in another order, and seeds do not repeat."""
    try:
        import sklearn.cluster
        import sklearn.decomposition
        import threadpoolctl
    except ImportError:
        raise ImportError(
            "MovieLens needs scikit-learn, which is not installed. Install the extra movielens of "
            "optdesign-bandits; from a clone: python -m pip install '.[movielens]'"
        ) from None
    with threadpoolctl.threadpool_limits(1):
        yield sklearn
