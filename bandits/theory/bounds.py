"""Theorems of the paper: regret bounds, communication costs, the lower bound.

Regret here is the total over all clients, as in the theorems; divide by M to put a bound beside the curves
of :class:`bandits.Run`. The bounds count phases p >= 1; the K initial pulls cost each client at most its K
gaps more, which ``regret_bound`` adds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandits.environments.linear import LinearEnvironment
from bandits.protocol import VECTORS
from bandits.theory.confidence import alpha
from bandits.theory.schedules import Exponential


def fedpe_regret(
    clients: int, arms: int, dim: int, horizon: int, *, delta: float = 0.1, ratio: float = 1.0,
    c: int = 1, n: int = 2, shared: bool = False, sigma: float = 1.0,
) -> float:  # fmt: skip
    """Return the bound of Theorems "BoundAlgorithm1" and "BoundSharedParameter" for f^p = c n^p.

        R(T) <= 4 alpha (L / ell) sqrt(d B M) ( sqrt(n^2 - n) / (sqrt(n) - 1) sqrt(T)
                + K sqrt(n) / (sqrt(c n) - sqrt(c)) + (1 - 1 / sqrt(c)) (c n + K) )

    with B = K parameter vectors, or 1 if shared; ``ratio`` is L / ell. It holds with probability 1 - delta.
    Two constants differ from the print: the geometric series sum_p n^{-(p-1)/2} K / sqrt(c) gives the sqrt(n)
    in the second term, and the third is there because f^0 is one pull, and not c.
    """
    phases = len(Exponential(c, n).lengths(horizon, arms))
    level = sigma * alpha(clients, arms, dim, phases, delta, shared=shared)
    blocks = 1 if shared else arms
    growth = np.sqrt(n * n - n) / (np.sqrt(n) - 1.0) * np.sqrt(horizon)
    growth += arms * np.sqrt(n) / (np.sqrt(c * n) - np.sqrt(c)) + (1.0 - 1.0 / np.sqrt(c)) * (c * n + arms)
    return float(4.0 * level * ratio * np.sqrt(dim * blocks * clients) * growth)


def phase_regret(
    lengths: np.ndarray, clients: int, arms: int, dim: int, *, delta: float = 0.1, ratio: float = 1.0,
    shared: bool = False, sigma: float = 1.0,
) -> float:  # fmt: skip
    """Return the bound of Lemma "PhaseRegret", summed over the phases: sharper, and for every schedule.

    R_p <= 4 alpha (L / ell) sqrt(d B M) (f^p + K) / sqrt(f^{p-1})
    """
    level = sigma * alpha(clients, arms, dim, len(lengths), delta, shared=shared)
    before = np.append(1, lengths[:-1])
    total = np.sum((lengths + arms) / np.sqrt(before)) if len(lengths) else 0.0
    return float(4.0 * level * ratio * np.sqrt(dim * (1 if shared else arms) * clients) * total)


def enhanced_regret(
    lengths: np.ndarray, clients: int, arms: int, dim: int, horizon: int, *, delta: float = 0.1,
    ratio: float = 1.0, shared: bool = False, sigma: float = 1.0,
) -> float:  # fmt: skip
    """Return the bound of Theorem "BoundRefinedAlgorithm", with S_p = sum_{q <= p} f^q and f^0 = 1:

    R(T) <= 4 sqrt(6) (L / ell) sum_p (f^p + K) / sqrt(S_{p-1}) sqrt(d B M log(L K M T / (ell delta)))
    """
    if not len(lengths):
        return 0.0
    before = np.cumsum(np.append(1, lengths[:-1]))
    blocks = 1 if shared else arms
    log = np.log(ratio * arms * clients * horizon / delta)
    total = np.sum((lengths + arms) / np.sqrt(before))
    return float(4.0 * np.sqrt(6.0) * sigma * ratio * total * np.sqrt(dim * blocks * clients * log))


def regret_bound(policy: Any, env: LinearEnvironment, horizon: int) -> float:
    """Return the bound on a policy's regret that holds with probability 1 - delta, all pulls included.

    The paper bounds ``FedPE`` and ``EnhancedFedPE`` with equal budgets and its own rules for designs and for
    the arms to keep. ValueError for other policies.
    """
    bound = getattr(policy, "regret_bound", None)
    if bound is None:
        raise ValueError(
            f"policy must be FedPE or EnhancedFedPE, the policies that the paper bounds; got {policy!r}. "
            "Compute another theorem from the functions of bandits.theory."
        )
    return bound(env, horizon)


def lower_bound(clients: int, arms: int, dim: int, horizon: int) -> float:
    """Return the bound of Theorem "lower" on the regret of any policy on one of two instances.

    The proof bounds the sum of the regrets on both by M T Delta / 4 exp(-2 M T Delta^2 / (d (K - 1))); with
    Delta = sqrt(d (K - 1) / (4 M T)) that is sqrt(d (K - 1) M T / (64 e)), and one of them has half of it.
    """
    return float(np.sqrt(dim * (arms - 1) * clients * horizon / np.e) / 16.0)


class Cost(NamedTuple):
    """Scalars from clients to server, and back."""

    uploaded: int
    downloaded: int


def communication_bound(
    clients: int, arms: int, dim: int, phases: int, *, protocol: str = VECTORS, shared: bool = False
) -> Cost:
    """Return the most scalars that Fed-PE can send in H phases, those sent if no arm is ever eliminated.

    At the start K d up; in every phase the global estimates down (K (d + d^2), or d + d^2 if shared; 2 K with
    scalars), active arms up (K) and pulls down (K); after every phase but the last the local estimates up
    (K d, or K with scalars). All per client.
    """
    if not phases:
        return Cost(0, 0)
    if protocol == VECTORS:
        estimate, model = arms * dim, (1 if shared else arms) * (dim + dim * dim)
    else:
        estimate, model = arms, 2 * arms
    up = arms * dim + phases * arms + (phases - 1) * estimate
    down = phases * (model + arms)
    return Cost(clients * up, clients * down)
