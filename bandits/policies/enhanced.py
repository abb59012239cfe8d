"""Enhanced Fed-PE: intervals from the estimates of all phases (the paper's appendix).

The difference to Fed-PE is in the intervals alone. With S = sum_{q <= p} f^{q-1} and f^0 = 1,

    r-bar = sum_{q <= p} r-hat^q f^{q-1} / S
    v     = prior + sum_{q <= p} (sigma^q f^{q-1})^2            prior = d K / M, or d / M if shared
    u-bar = sqrt( v log( v (M K)^2 / (prior delta^2) ) ) / S

The phase terms are martingale differences, so the bound of Lemma "Laplace" holds in all phases at once for
one arm of one client with probability 1 - delta / (M K). With prior = d K / M the logarithm is the paper's
log(M^3 K v / (d delta^2)). Phases need not grow: uniform and greedy schedules are valid too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.policies.fedpe import Client, Server
from bandits.policies.phased import KeepRule, Phased, Setting, confident
from bandits.theory.bounds import enhanced_regret
from bandits.theory.confidence import mixture_alpha, prior_variance


class EnhancedClient(Client):
    """Algorithm 1 with intervals from all phases so far."""

    def __init__(self, features: np.ndarray, setting: Setting, keep: KeepRule = confident) -> None:
        super().__init__(features, setting, keep)
        s = setting
        # The mixture's constant is in units of the noise, like the widths that are added to it.
        self.prior = s.sigma**2 * prior_variance(s.clients, s.arms, s.dim, shared=s.shared)
        self.failure = s.delta / (s.clients * s.arms)
        self.length = 0
        self.total = np.zeros(features.shape[:2])
        self.variance = np.full(features.shape[:2], self.prior)

    def intervals(self, r: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r-bar and u-bar; ``width`` is sigma^p."""
        f = self.setting.f(self.phase - 1)
        self.length += f
        self.total = self.total + f * r
        self.variance = self.variance + (f * width) ** 2
        level = mixture_alpha(self.variance, self.prior, self.failure)
        return self.total / self.length, level * np.sqrt(self.variance) / self.length


class EnhancedFedPE(Phased):
    """Enhanced Fed-PE, whose estimates use all phases. The options are those of :class:`bandits.Phased`.

    See Also
    --------
    bandits.FedPE : Use the estimates of the last phase.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=6, arms=3, dim=2)
    >>> bandits.simulate(bandits.EnhancedFedPE(), env, horizon=1000, trials=2).policy
    'EnhancedFedPE'
    """

    def parties(self) -> tuple[type[Client], type[Server]]:
        """Return Algorithm 1 with other intervals, and Algorithm 2."""
        return EnhancedClient, Server

    def theorem(self, lengths: np.ndarray, time: int, phases: int, **constants: Any) -> float:  # noqa: ARG002
        """Return the bound of Theorem "BoundRefinedAlgorithm"."""
        return enhanced_regret(lengths, horizon=time, **constants)
