"""Messages between clients and server, and their cost.

Every message concerns a batch of clients: arrays have a leading client axis, of length 1 in a message
between two machines and of length M in the simulator. ``gather`` joins the messages of several clients,
``part`` extracts the message for some of them.

The cost is the number of scalars, integers and reals alike, as in the paper. Fed-PE, Enhanced Fed-PE and
Collaborative Fed-PE send the same messages in the same phases and are charged alike:

| message | direction | scalars per client |
|---|---|---|
| FirstEstimates | up, once | d per arm (and d more where the first reward was exactly zero) |
| FullInformation (Collaborative) | up, once | d + 1 per arm: the feature and the first reward |
| ActiveArms | up | 1 per active arm |
| PullPlan | down | 1 per active arm |
| LocalEstimates | up | d per pulled arm ("vectors") or 1 ("scalars") |
| GlobalEstimates | down ("vectors") | d + d^2 per arm active in the class, or once if shared |
| Projections | down ("scalars") | 2 per active arm of the client |

A class is a set of collinear clients (:mod:`bandits.policies.collinearity`). With one class, the usual case,
"vectors" is the paper's protocol, message for message, so a potential matrix V_a counts d^2 as in the
paper's bound although it is symmetric. "scalars" is the protocol of the paper's remark.

No message of Fed-PE holds a feature vector or a reward: estimates are rewards divided by a norm that the
server does not know, along a direction that may be that of the feature or its opposite. FullInformation
holds both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

VECTORS, SCALARS = "vectors", "scalars"
PROTOCOLS = (VECTORS, SCALARS)
"""The paper's protocol, and the cheaper one of its remark. Both lead to the same decisions, bit for bit."""

M = TypeVar("M", bound="Message")


@dataclass(frozen=True, eq=False)
class Message(ABC):
    """Base of all messages: arrays with a leading client axis."""

    @property
    @abstractmethod
    def scalars(self) -> int:
        """Cost of the message in scalars."""

    def part(self: M, rows: slice | np.ndarray) -> M:
        """Return the message for some of the clients."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def gather(messages: Sequence[M]) -> M:
    """Return the messages of several clients, in their order, as one."""
    if len(messages) == 1:
        return messages[0]
    kind = type(messages[0])
    joined: dict[str, Any] = {
        f.name: np.concatenate([getattr(m, f.name) for m in messages]) for f in fields(kind)
    }
    return kind(**joined)


@dataclass(frozen=True, eq=False)
class FirstEstimates(Message):
    """theta-hat^0: one vector per arm; ``directions`` has its direction if it is zero."""

    vectors: np.ndarray
    directions: np.ndarray

    @property
    def scalars(self) -> int:
        """K d per client, plus d for every direction that had to be sent apart."""
        return self.vectors.size + self.directions.shape[2] * int(self.directions.any(axis=2).sum())


@dataclass(frozen=True, eq=False)
class ActiveArms(Message):
    """A_i^p, as booleans (m, K)."""

    active: np.ndarray

    @property
    def scalars(self) -> int:
        """One index per active arm."""
        return int(self.active.sum())


@dataclass(frozen=True, eq=False)
class PullPlan(Message):
    """f_{i,a}^p for the active arms, as integers (m, K)."""

    pulls: np.ndarray
    active: np.ndarray

    @property
    def scalars(self) -> int:
        """One number per active arm."""
        return int(self.active.sum())


@dataclass(frozen=True, eq=False)
class LocalEstimates(Message):
    """theta-hat_{i,a}^p of the pulled arms: vectors (m, K, d), or scalars along the directions, (m, K)."""

    values: np.ndarray
    pulled: np.ndarray

    @property
    def scalars(self) -> int:
        """One vector or one scalar per pulled arm."""
        width = self.values.shape[2] if self.values.ndim == 3 else 1
        return width * int(self.pulled.sum())


@dataclass(frozen=True, eq=False)
class GlobalEstimates(Message):
    """theta-hat_a^{p+1} and V_a^{p+1}: (C, B, d) and (C, B, d, d), one set per class of collinear clients.

    B is the number of arms, or 1 if parameters are shared; ``alive`` (C, B) says which arms somebody of the
    class has active, and ``member`` (m,) which class a client belongs to. With one class, the usual case,
    this is the paper's broadcast.
    """

    theta: np.ndarray
    potential: np.ndarray
    alive: np.ndarray
    member: np.ndarray

    @property
    def scalars(self) -> int:
        """d + d^2 for every client and every arm alive in its class."""
        d = self.theta.shape[2]
        return (d + d * d) * int(self.alive.sum(axis=1)[self.member].sum())

    def part(self, rows: slice | np.ndarray) -> GlobalEstimates:
        """Return the message for some of the clients: the estimates of their classes."""
        classes, member = np.unique(self.member[rows], return_inverse=True)
        return GlobalEstimates(self.theta[classes], self.potential[classes], self.alive[classes], member)


@dataclass(frozen=True, eq=False)
class Projections(Message):
    """e' theta-hat_a and sqrt(e' V_a e) along each client's direction e, (m, K) each, zero where inactive."""

    estimate: np.ndarray
    deviation: np.ndarray
    active: np.ndarray

    @property
    def scalars(self) -> int:
        """Two numbers per active arm."""
        return 2 * int(self.active.sum())


class Ledger:
    """Counts the scalars that pass, up and down."""

    def __init__(self) -> None:
        self.uploaded = 0
        self.downloaded = 0

    def up(self, message: M) -> M:
        """Count a message to the server and hand it on."""
        self.uploaded += message.scalars
        return message

    def down(self, message: M) -> M:
        """Count a message to the clients and hand it on."""
        self.downloaded += message.scalars
        return message
