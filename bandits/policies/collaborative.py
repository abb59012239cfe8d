"""Collaborative Fed-PE: what could be done if nothing had to stay private.

The paper's benchmark exchanges all information after each phase. The clients send their features once and
the means of their rewards after every exploration, so that

- estimation is ordinary least squares on the features themselves: the directions become the features, and the
  width ||x||_V carries no loss from unknown norms (ell = 1),
- the design balances the variances of rewards rather than of unit directions,
- the intervals are those of Enhanced Fed-PE: the estimates of all phases, each with its own width.

The estimates of a phase are unbiased given all before it, with variance sigma^2 ||x||_V^2, so the intervals
all hold at once with probability 1 - delta for the reason they do in Enhanced Fed-PE (Lemma "Laplace").

With ``pooling`` the server instead runs one least squares over the explorations of all phases, at the
confidence level of Fed-PE. Pooled pulls depend on earlier rewards through the active sets, so no guarantee
is proved for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bandits.policies.enhanced import EnhancedClient
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


class Open:
    """What a client with no secrets does differently: its scalars are means of rewards."""

    features: np.ndarray

    def initialise(self, rewards: np.ndarray) -> Message:
        """Send features and first rewards."""
        self.direction = self.features
        self.norm = np.ones(rewards.shape)
        return FullInformation(self.features, rewards)


class OpenClient(Open, EnhancedClient):
    """Algorithm 1 with the intervals of all phases."""


class PooledClient(Open, Client):
    """Algorithm 1 with the interval of the pooled estimate."""


class OpenServer(Server):
    """Algorithm 2 on features and the rewards of a phase."""

    def _meet(self, first: Message) -> np.ndarray:
        assert isinstance(first, FullInformation)
        self.direction = first.features
        return first.rewards[:, :, None] * first.features


class PoolingServer(OpenServer):
    """Algorithm 2 on features and all rewards so far."""

    def _information(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        information, moment, ranks = super()._information(vectors)
        if self.phase == 0:
            # The first pulls see every arm of every client, so no later phase adds a dimension.
            self.pool = information, moment, ranks.copy()
        else:
            self.pool = self.pool[0] + information, self.pool[1] + moment, self.pool[2]
        return self.pool


@dataclass(frozen=True)
class CollaborativeFedPE(Phased):
    """Fed-PE with full information exchange. Further options are those of ``bandits.Phased``.

    Parameters
    ----------
    pooling : bool
        One least squares over all phases, without a proved guarantee, in place of one a phase.
    """

    pooling: bool = False

    @property
    def name(self) -> str:
        """As for Fed-PE, and whether phases are pooled."""
        return super().name + (" (pooling)" if self.pooling else "")

    def parties(self) -> tuple[type[Client], type[Server]]:
        """Clients and server that hide nothing."""
        return (PooledClient, PoolingServer) if self.pooling else (OpenClient, OpenServer)

    def setting(self, clients: int, arms: int, dim: int, horizon: int, ell: float, sigma: float) -> Setting:
        """As for Fed-PE; norms are known, and scalars say all there is to say."""
        known = super().setting(clients, arms, dim, horizon, ell, sigma)
        return replace(known, ell=1.0, protocol=SCALARS)
