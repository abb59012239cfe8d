"""Collaborative Fed-PE: what could be done if nothing had to stay private.

The paper's benchmark exchanges all information after each phase. The clients send their features once and
the means of their rewards after every exploration, so that

- estimation is ordinary least squares on the features themselves: the directions become the features, and the
  width ||x||_V carries no loss from unknown norms (ell = 1),
- the design balances the variances of rewards rather than of unit directions,
- the server pools the explorations of all phases, and not the last one's alone.

The paper states no bound for this benchmark. The confidence level is that of Fed-PE; as pooled pulls
depend on earlier rewards through the active sets, its guarantee is not proved here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bandits.policies.fedpe import Client, Server
from bandits.policies.phased import Phased, Setting
from bandits.protocol import SCALARS, Message


@dataclass(frozen=True, eq=False)
class FullInformation(Message):
    """Features (m, K, d) and first rewards (m, K): everything a client knows at the start."""

    features: np.ndarray
    rewards: np.ndarray

    @property
    def scalars(self) -> int:
        """d + 1 per arm."""
        return self.features.size + self.rewards.size


class OpenClient(Client):
    """Algorithm 1 of a client with no secrets: its scalars are means of rewards."""

    def initialise(self, rewards: np.ndarray) -> Message:
        """Send features and first rewards."""
        self.direction = self.features
        self.norm = np.ones(rewards.shape)
        return FullInformation(self.features, rewards)


class PoolingServer(Server):
    """Algorithm 2 on features and all rewards so far."""

    def _meet(self, first: Message) -> np.ndarray:
        assert isinstance(first, FullInformation)
        self.direction = first.features
        return first.rewards[:, :, None] * first.features

    def _information(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        information, moment, ranks = super()._information(vectors)
        if self.phase == 0:
            # The first pulls see every arm of every client, so no later phase adds a dimension.
            self.pool = information, moment, ranks.copy()
        else:
            self.pool = self.pool[0] + information, self.pool[1] + moment, self.pool[2]
        return self.pool


class CollaborativeFedPE(Phased):
    """Fed-PE with full information exchange; see :class:`bandits.policies.phased.Phased` for the options."""

    client_type = OpenClient
    server_type = PoolingServer

    def setting(self, clients: int, arms: int, dim: int, horizon: int, ell: float, sigma: float) -> Setting:
        """As for Fed-PE; norms are known, and scalars say all there is to say."""
        known = super().setting(clients, arms, dim, horizon, ell, sigma)
        return replace(known, ell=1.0, protocol=SCALARS)
