"""Environments of every kind, composed so that a failing one shrinks to few, round numbers.

Features and parameters are multiples of 1/4 unless you bring your own entries, so that ties, arms of equal
mean, rewards of exactly zero and collinear clients are common. Hypothesis prints an environment as the call
that makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bandits.environments import random as random_environment
from bandits.environments.linear import LinearEnvironment
from bandits.environments.noise import KINDS
from bandits.policies.parameters import PARAMETERS, SHARED
from optdesign.testing import at_least_one, chosen, lattice

NOISES = (*KINDS, "bernoulli")
"""Names of the noises, the Gaussian first."""


def environments(
    *,
    parameters: str | None = None,
    noise: str | Sequence[str] | None = None,
    max_clients: int = 4,
    max_arms: int = 4,
    max_dim: int = 3,
    entries: st.SearchStrategy[float] | None = None,
    scale: float | None = None,
    collinear: bool = False,
    identical: bool = False,
) -> st.SearchStrategy[LinearEnvironment]:
    """Return a strategy of small and often degenerate environments.

    They shrink towards one client, one arm and rewards zero.

    Parameters
    ----------
    parameters : {"disjoint", "shared"}, optional
        One vector per arm, or one for all arms. Default: both occur.
    noise : str or sequence of str, optional
        Any of "gaussian", "bounded", "two-point", "bernoulli". For Bernoulli rewards all numbers are made
        non-negative and the parameters small enough, so that every mean is a probability. Default: all occur.
    max_clients : int, default 4
        Largest number of clients.
    max_arms : int, default 4
        Largest number of arms.
    max_dim : int, default 3
        Largest length of a feature vector.
    entries : hypothesis strategy of float, optional
        Entries of features and parameters. Zero features become the first basis vector. Default:
        :func:`optdesign.testing.lattice`.
    scale : float, optional
        Scale of the noise, 0 for none. Bernoulli rewards have no scale, and occur beside it only if ``noise``
        names them. Default: 1, 1/2 or 2.
    collinear : bool, default False
        True if the features of some client are multiples of another's.
    identical : bool, default False
        True if all clients have the features of the first.

    Returns
    -------
    hypothesis strategy of LinearEnvironment
        The strategy.

    See Also
    --------
    bandits.testing.random_environments : Draw environments in general position.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(environments(), lambda env: env.gaps.max() > 0, settings=smallest).means.tolist()
    [[0.0, 1.0]]
    """
    if parameters is not None and parameters not in PARAMETERS:
        raise ValueError(f"parameters must be one of {', '.join(PARAMETERS)}; got {parameters!r}.")
    kinds = chosen("noise", tuple(KINDS) if noise is None and scale is not None else noise, NOISES)
    at_least_one(max_clients=max_clients, max_arms=max_arms, max_dim=max_dim)
    if collinear and max_clients < 2:
        raise ValueError("max_clients must be at least 2 for collinear clients; got 1. Use 4.")
    values = lattice() if entries is None else entries
    scales = st.sampled_from([1.0, 0.5, 2.0]) if scale is None else st.just(scale)
    sizes = (max_clients, max_arms, max_dim)
    words = st.sampled_from(PARAMETERS if parameters is None else (parameters,))
    return _environments(sizes, words, st.sampled_from(kinds), values, scales, collinear, identical)


@st.composite
def _environments(
    draw: st.DrawFn,
    sizes: tuple[int, int, int],
    words: st.SearchStrategy[str],
    kinds: st.SearchStrategy[str],
    entries: st.SearchStrategy[float],
    scales: st.SearchStrategy[float],
    collinear: bool,
    identical: bool,
) -> LinearEnvironment:
    most, arms, dim = sizes
    parameters, kind = draw(words), draw(kinds)
    k, d = draw(st.integers(1, arms)), draw(st.integers(1, dim))
    # All that belongs to a client is drawn at once: when it goes, nothing else changes.
    drawn = draw(st.lists(st.tuples(*[entries] * (k * d)), min_size=1, max_size=most - collinear))
    x = np.array(drawn, dtype=np.float64).reshape(len(drawn), k, d)
    x[~x.any(axis=2), 0] = 1.0
    shape = (d,) if parameters == SHARED else (k, d)
    theta = draw(arrays(np.float64, shape, elements=entries, fill=st.nothing()))
    if not draw(st.booleans()):  # no column that is zero for all
        used = x.any(axis=(0, 1))
        x, theta = x[:, :, used], theta[..., used]
    if not draw(st.booleans()):  # no arm that is another's twin
        same = np.concatenate([x, np.broadcast_to(theta, (k, x.shape[2]))[None]]).transpose(1, 0, 2)
        kept = np.sort(np.unique(same.reshape(k, -1), axis=0, return_index=True)[1])
        x, theta = x[:, kept], theta if parameters == SHARED else theta[kept]
    if collinear:
        like, factor = draw(st.integers(0, len(x) - 1)), draw(st.sampled_from([1.0, -1.0, 2.0, 0.5]))
        x = np.concatenate([x, factor * x[[like]]])
    if identical:
        x = np.repeat(x[:1], len(x), axis=0)
    options: dict[str, Any] = {}
    if kind == "bernoulli":
        x, theta = np.abs(x), np.abs(theta)
        largest = np.einsum("ikd,kd->ik", x, np.broadcast_to(theta, x.shape[1:])).max()
        theta = theta / 2.0 ** np.ceil(np.log2(max(1.0, largest)))
    elif (scale := draw(scales)) != 1.0:
        options["scale"] = st.just(scale)
    if kind != "gaussian":
        options["noise"] = st.just(kind)
    return draw(st.builds(LinearEnvironment, st.just(x.tolist()), st.just(theta.tolist()), **options))


def random_environments(
    *,
    parameters: str | None = None,
    noise: str | Sequence[str] | None = None,
    max_clients: int = 6,
    max_arms: int = 5,
    max_dim: int = 4,
) -> st.SearchStrategy[LinearEnvironment]:
    """Return a strategy of environments in general position: :func:`bandits.environments.random` of a seed.

    No two arms tie. Sizes shrink; the numbers do not.

    Parameters
    ----------
    parameters : {"disjoint", "shared"}, optional
        One vector per arm, or one for all arms. Default: both occur.
    noise : str or sequence of str, optional
        Any of "gaussian", "bounded", "two-point", "bernoulli". Default: all occur.
    max_clients : int, default 6
        Largest number of clients.
    max_arms : int, default 5
        Largest number of arms.
    max_dim : int, default 4
        Largest length of a feature vector.

    Returns
    -------
    hypothesis strategy of LinearEnvironment
        The strategy.

    See Also
    --------
    bandits.testing.environments : Draw small environments with exact numbers.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(random_environments(), lambda env: True, settings=smallest).clients
    1
    """
    shared = st.booleans() if parameters is None else st.just(parameters == SHARED)
    return st.builds(
        random_environment, st.integers(1, max_clients), st.integers(1, max_arms), st.integers(1, max_dim),
        st.integers(0, 2**32 - 1), shared=shared, noise=st.sampled_from(chosen("noise", noise, NOISES)),
    )  # fmt: skip
