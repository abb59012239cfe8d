"""Collaborative Fed-PE: Fed-PE in which features and rewards are not private.

The paper describes its benchmark as Fed-PE, modified so that all information is exchanged after the
exploration of each phase. The clients send their features once and their rewards after each exploration,
so that

- estimation is ordinary least squares on the features: the directions become the features, and the width
  ||x||_V has no factor 1 / ell for unknown norms (ell = 1),
- the design balances the variances of rewards rather than those of unit directions.

The paper does not state the confidence intervals. The option ``intervals`` selects them.

"fedpe" (default): those of Fed-PE, r-hat^p +- alpha sigma ||x||_{V^p} from the last phase, since the text
names only the exchange as modified. The estimates of a phase are unbiased given all earlier phases, with
variance sigma^2 ||x||_V^2, so Lemma "BndAllErr" applies with ell = 1.

"enhanced": those of Enhanced Fed-PE, from the estimates of all phases, each weighted by f^{p-1}. They hold
by Lemma "Laplace". The regret of the authors' published code, 232 at T = 2^17, agrees with these and not
with "fedpe"; docs/bandits.md has the measured figures.

Either way all intervals hold at once with probability 1 - delta.

With ``pooling`` the server runs one least squares over the explorations of all phases, with the interval
of Fed-PE. Pooled pulls depend on earlier rewards through the active sets, so no guarantee is proved.

Communication: the messages are those of Fed-PE under the same ``protocol``, with x in place of the unit
direction and y in place of the norm of the estimate. Only the first message is longer, by one scalar per
arm: it has a feature and a reward where Fed-PE sends their product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bandits.policies.enhanced import EnhancedClient
from bandits.policies.fedpe import Client, Server
from bandits.policies.phased import Phased, Setting
from bandits.protocol import Message

FEDPE, ENHANCED = "fedpe", "enhanced"
INTERVALS = (FEDPE, ENHANCED)


@dataclass(frozen=True, eq=False)
class FullInformation(Message):
    """Features (m, K, d) and first rewards (m, K): everything a client knows at the start."""

    features: np.ndarray
    rewards: np.ndarray

    @property
    def scalars(self) -> int:
        """Cost of d + 1 per arm."""
        return self.features.size + self.rewards.size


class Open:
    """The part of a client that sends features and rewards: its scalars are means of rewards."""

    features: np.ndarray

    def initialise(self, rewards: np.ndarray) -> Message:
        """Send features and first rewards."""
        self.direction = self.features
        self.norm = np.ones(rewards.shape)
        return FullInformation(self.features, rewards)


class OpenClient(Open, Client):
    """Algorithm 1 with the interval of the last phase, or of the pooled estimate."""


class EnhancedOpenClient(Open, EnhancedClient):
    """Algorithm 1 with the intervals of all phases."""


class OpenServer(Server):
    """Algorithm 2 on features and the rewards of a phase."""

    def _store_directions(self, first: Message) -> np.ndarray:
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
    """Fed-PE with full information exchange. Further options are those of :class:`bandits.Phased`.

    Parameters
    ----------
    intervals : {"fedpe", "enhanced"}, default "fedpe"
        Confidence intervals of Fed-PE, or those of Enhanced Fed-PE. The paper's text does not state them and
        names only the exchange as modified. With those of Enhanced Fed-PE the regret is that of the authors'
        published experiments.
    pooling : bool, default False
        True for one least squares over all phases, without a proved guarantee, in place of one per phase. It
        needs ``intervals="fedpe"``.

    See Also
    --------
    bandits.FedPE : Send estimates instead of rewards.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=6, arms=3, dim=2)
    >>> bandits.simulate(bandits.CollaborativeFedPE(), env, horizon=1000, trials=2).policy
    'CollaborativeFedPE'
    """

    intervals: str = FEDPE
    pooling: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.intervals not in INTERVALS:
            raise ValueError(f"intervals must be one of {', '.join(INTERVALS)}; got {self.intervals!r}.")
        if self.pooling and self.intervals != FEDPE:
            raise ValueError(
                f"intervals must be 'fedpe' with pooling=True; got {self.intervals!r}. A pooled estimate has "
                "the data of all phases already. Drop one of the two options."
            )

    @property
    def name(self) -> str:
        """Name of Fed-PE, with the intervals and the pooling if they are not the defaults."""
        own = " (enhanced intervals)" if self.intervals == ENHANCED else ""
        return super().name + own + (" (pooling)" if self.pooling else "")

    def parties(self) -> tuple[type[Client], type[Server]]:
        """Return the classes of the client and the server."""
        client = EnhancedOpenClient if self.intervals == ENHANCED else OpenClient
        return client, PoolingServer if self.pooling else OpenServer

    def setting(self, clients: int, arms: int, dim: int, horizon: int, ell: float, sigma: float) -> Setting:
        """Return the setting of Fed-PE with ell = 1, since norms are known."""
        return replace(super().setting(clients, arms, dim, horizon, ell, sigma), ell=1.0)
