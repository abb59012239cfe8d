"""Theorems of the paper: regret bounds, communication costs, the lower bound.

Regret here is the total over all clients, as in the theorems; divide by M to put a bound beside the curves
of :class:`bandits.Run`. The bounds count phases p >= 1; the K initial pulls cost each client at most its K
gaps more, which ``regret_bound`` adds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandits.checks import check_positive, check_probability, is_number, whole
from bandits.environments.linear import LinearEnvironment
from bandits.protocol import VECTORS, check_protocol
from bandits.theory.confidence import alpha
from bandits.theory.schedules import Exponential


def fedpe_regret(
    clients: int, arms: int, dim: int, horizon: int, *, delta: float = 0.1, ratio: float = 1.0,
    c: int = 1, n: int = 2, shared: bool = False, sigma: float = 1.0,
) -> float:  # fmt: skip
    """Return the bound of Theorems "BoundAlgorithm1" and "BoundSharedParameter" for f^p = c n^p.

        R(T) <= 4 alpha (L / ell) sqrt(d B M) ( sqrt(n^2 - n) / (sqrt(n) - 1) sqrt(T)
                + K sqrt(n) / (sqrt(c n) - sqrt(c)) + (1 - 1 / sqrt(c)) (c n + K) )

    with B = K parameter vectors, or 1 if shared. It holds with probability 1 - delta. Two constants differ
    from the print: the geometric series sum_p n^{-(p-1)/2} K / sqrt(c) gives the sqrt(n) in the second term,
    and the third is added because f^0 is one pull, not c.

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
    delta : float, default 0.1
        Probability with which the bound may fail.
    ratio : float, default 1.0
        Ratio L / ell of the bounds on the norms of the features.
    c : int, default 1
        Factor of the phase lengths.
    n : int, default 2
        Base of the phase lengths.
    shared : bool, default False
        True if all arms have the same parameter vector.
    sigma : float, default 1.0
        Sub-Gaussian parameter of the rewards.

    Returns
    -------
    float
        Bound on the total regret of all clients.

    See Also
    --------
    bandits.theory.regret_bound : Return the bound for a policy and an environment.

    Examples
    --------
    >>> round(fedpe_regret(clients=100, arms=10, dim=3, horizon=2**17))
    1363143
    """
    _check_sizes(clients=clients, arms=arms, dim=dim, horizon=horizon)
    _check_constants(delta, ratio, sigma)
    phases = len(Exponential(c, n).lengths(horizon, arms))
    level = sigma * alpha(clients, arms, dim, phases, delta, shared=shared)
    blocks = 1 if shared else arms
    growth = np.sqrt(n * n - n) / (np.sqrt(n) - 1.0) * np.sqrt(horizon)
    growth += arms * np.sqrt(n) / (np.sqrt(c * n) - np.sqrt(c)) + (1.0 - 1.0 / np.sqrt(c)) * (c * n + arms)
    return float(4.0 * level * ratio * np.sqrt(dim * blocks * clients) * growth)


def phase_regret(
    lengths: np.ndarray, clients: int, arms: int, dim: int, *, delta: float = 0.1, ratio: float = 1.0,
    shared: bool = False, sigma: float = 1.0, phases: int | None = None,
) -> float:  # fmt: skip
    """Return the bound of Lemma "PhaseRegret", summed over the phases: sharper, and for every schedule.

        R_p <= 4 alpha (L / ell) sqrt(d B M) (f^p + K) / sqrt(f^{p-1})

    Parameters
    ----------
    lengths : ndarray of int
        Phase lengths f^1 .. f^H.
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    delta : float, default 0.1
        Probability with which the bound may fail.
    ratio : float, default 1.0
        Ratio L / ell of the bounds on the norms of the features.
    shared : bool, default False
        True if all arms have the same parameter vector.
    sigma : float, default 1.0
        Sub-Gaussian parameter of the rewards.
    phases : int, optional
        Number H of phases up to the horizon, on which alpha depends. Default: the number of ``lengths``.

    Returns
    -------
    float
        Bound on the total regret of all clients.

    See Also
    --------
    bandits.theory.fedpe_regret : Return the bound of the theorem.

    Examples
    --------
    >>> import numpy as np
    >>> bound = phase_regret(np.array([2, 4, 8]), clients=10, arms=2, dim=3)
    >>> bound < phase_regret(np.array([2, 4, 8]), clients=20, arms=2, dim=3)
    True
    """
    _check_sizes(clients=clients, arms=arms, dim=dim)
    _check_constants(delta, ratio, sigma)
    count = len(lengths) if phases is None else whole("phases", phases, len(lengths))
    level = sigma * alpha(clients, arms, dim, count, delta, shared=shared)
    before = np.append(1, lengths[:-1])
    total = np.sum((lengths + arms) / np.sqrt(before)) if len(lengths) else 0.0
    return float(4.0 * level * ratio * np.sqrt(dim * (1 if shared else arms) * clients) * total)


def enhanced_regret(
    lengths: np.ndarray, clients: int, arms: int, dim: int, horizon: int, *, delta: float = 0.1,
    ratio: float = 1.0, shared: bool = False, sigma: float = 1.0,
) -> float:  # fmt: skip
    """Return the bound of Theorem "BoundRefinedAlgorithm".

        R(T) <= 4 sqrt(6) (L / ell) sum_p (f^p + K) / sqrt(S_{p-1}) sqrt(d B M log(L K M T / (ell delta)))

    with S_p = sum_{q <= p} f^q and f^0 = 1.

    Parameters
    ----------
    lengths : ndarray of int
        Phase lengths f^1 .. f^H.
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    horizon : int
        T, the number of pulls of each client.
    delta : float, default 0.1
        Probability with which the bound may fail.
    ratio : float, default 1.0
        Ratio L / ell of the bounds on the norms of the features.
    shared : bool, default False
        True if all arms have the same parameter vector.
    sigma : float, default 1.0
        Sub-Gaussian parameter of the rewards.

    Returns
    -------
    float
        Bound on the total regret of all clients.

    See Also
    --------
    bandits.theory.phase_regret : Return the bound for Fed-PE.

    Examples
    --------
    >>> import numpy as np
    >>> bound = enhanced_regret(np.array([2, 4, 8]), clients=10, arms=2, dim=3, horizon=20)
    >>> bound < enhanced_regret(np.array([2, 4, 8]), clients=20, arms=2, dim=3, horizon=20)
    True
    """
    _check_sizes(clients=clients, arms=arms, dim=dim, horizon=horizon)
    _check_constants(delta, ratio, sigma)
    if not len(lengths):
        return 0.0
    before = np.cumsum(np.append(1, lengths[:-1]))
    blocks = 1 if shared else arms
    log = np.log(ratio * arms * clients * horizon / delta)
    total = np.sum((lengths + arms) / np.sqrt(before))
    return float(4.0 * np.sqrt(6.0) * sigma * ratio * total * np.sqrt(dim * blocks * clients * log))


def regret_bound(policy: Any, env: LinearEnvironment, horizon: int, time: int | None = None) -> float:
    """Return the bound on a policy's regret that holds with probability 1 - delta, all pulls included.

    The paper bounds ``FedPE`` and ``EnhancedFedPE`` without ``budgets`` and with its own rules for designs,
    for rounding and for the arms to keep.

    Parameters
    ----------
    policy : FedPE or EnhancedFedPE
        Policy with its options.
    env : LinearEnvironment
        Environment.
    horizon : int
        T, the number of pulls of each client.
    time : int, optional
        Number of pulls of each client up to which regret is counted. The bound depends on the horizon too,
        because the confidence level and some schedules do. Default: the horizon.

    Returns
    -------
    float
        Bound on the total regret of all clients.

    Raises
    ------
    ValueError
        If the paper has no bound for the policy.

    See Also
    --------
    bandits.theory.fedpe_regret : Return the bound for given constants.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=6, arms=3, dim=2)
    >>> run = bandits.simulate(bandits.FedPE(), env, horizon=1000, trials=2)
    >>> bool(6 * run.mean[-1] < regret_bound(bandits.FedPE(), env, 1000))
    True
    """
    bound = getattr(policy, "regret_bound", None)
    if bound is None:
        raise ValueError(
            f"policy must be FedPE or EnhancedFedPE, the policies that the paper bounds; got {policy!r}. "
            "Compute another theorem from the functions of bandits.theory."
        )
    return bound(env, horizon, time)


def lower_bound(clients: int, arms: int, dim: int, horizon: int) -> float:
    """Return the bound of Theorem "lower" on the regret of collinearly-dependent policies.

    A policy is collinearly dependent if clients whose features have no common subspace do not affect each
    other's actions. Policies that estimate by least squares, such as Fed-PE, are. A policy that pools the
    rewards of all clients is not, and its regret can be smaller.

    The bound holds on one of two instances. The proof bounds the sum of the regrets on both by
    M T Delta / 4 exp(-2 M T Delta^2 / (d (K - 1))). With Delta = sqrt(d (K - 1) / (4 M T)) that is
    sqrt(d (K - 1) M T / (64 e)), and one of them has half of it. M must be a multiple of d. For other M, the
    bound is that of the largest multiple of d, or of d = M if there are fewer clients than dimensions.

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

    Returns
    -------
    float
        Bound on the total regret of all clients.

    See Also
    --------
    bandits.environments.lower_bound : Return the instances.

    Examples
    --------
    >>> round(lower_bound(clients=100, arms=10, dim=3, horizon=2**17), 1)
    709.6
    """
    _check_sizes(clients=clients, arms=arms, dim=dim, horizon=horizon)
    groups = min(dim, clients)
    return float(np.sqrt(groups * (arms - 1) * (clients - clients % groups) * horizon / np.e) / 16.0)


class Cost(NamedTuple):
    """Scalars from clients to server, and back.

    Attributes
    ----------
    uploaded : int
        Scalars from clients to server.
    downloaded : int
        Scalars from server to clients.

    See Also
    --------
    bandits.theory.communication_bound : Return the cost of Fed-PE.

    Examples
    --------
    >>> Cost(3, 4).uploaded
    3
    """

    uploaded: int
    downloaded: int


def communication_bound(
    clients: int, arms: int, dim: int, phases: int, *, protocol: str = VECTORS, shared: bool = False
) -> Cost:
    """Return the largest number of scalars that Fed-PE or a variant can send in H phases.

    It is reached if no arm is ever eliminated and every first reward is 0. Per client, 2 K d scalars go up at
    the start: an estimate per arm, and a direction per estimate that is 0. The paper counts K d, which is
    enough if no first reward is 0. In every phase the global estimates go down (K (d + d^2), or d
    + d^2 if shared; 2 K with scalars), active arms up (K) and pulls down (K). After every phase but the last
    the local estimates go up (K d, or K with scalars).

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    phases : int
        Number H of phases.
    protocol : {"vectors", "scalars"}, default "vectors"
        Messages of the paper, or the shorter ones of its remark.
    shared : bool, default False
        True if all arms have the same parameter vector.

    Returns
    -------
    Cost
        Scalars up and down of all clients.

    See Also
    --------
    bandits.protocol.Ledger : Count the scalars of a trial.

    Examples
    --------
    >>> communication_bound(clients=1, arms=2, dim=3, phases=2)
    Cost(uploaded=22, downloaded=52)
    """
    _check_sizes(clients=clients, arms=arms, dim=dim)
    check_protocol(protocol)
    if not whole("phases", phases, 0):
        return Cost(0, 0)
    if protocol == VECTORS:
        estimate, model = arms * dim, (1 if shared else arms) * (dim + dim * dim)
    else:
        estimate, model = arms, 2 * arms
    up = 2 * arms * dim + phases * arms + (phases - 1) * estimate
    down = phases * (model + arms)
    return Cost(clients * up, clients * down)


def _check_sizes(**sizes: int) -> None:
    """Raise ValueError unless all sizes are whole numbers of at least 1."""
    for name, value in sizes.items():
        whole(name, value, 1)


def _check_constants(delta: float, ratio: float, sigma: float) -> None:
    """Raise ValueError unless a theorem can hold with these constants."""
    check_probability("delta", delta)
    check_positive("sigma", sigma, "It is 1 in the paper.")
    if not (is_number(ratio) and 1.0 <= ratio < np.inf):
        raise ValueError(f"ratio must be L / ell, finite and at least 1; got {ratio!r}.")
