"""Messages between clients and server, and their cost.

Every message concerns a batch of clients: arrays have a leading client axis, of length 1 in a message
between two machines and of length M in the simulator. ``gather`` joins the messages of several clients,
``part`` extracts the message for some of them.

The cost is the number of scalars, integers and reals alike, as in the paper. Fed-PE, Enhanced Fed-PE and
Collaborative Fed-PE send the same messages in the same phases and are charged alike:

| message | direction | scalars per client |
|---|---|---|
| FirstEstimates | up, once | d per arm (and d more if the estimate is almost zero) |
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


def check_protocol(protocol: str) -> None:
    """Raise ValueError for other words."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}.")


M = TypeVar("M", bound="Message")


@dataclass(frozen=True, eq=False)
class Message(ABC):
    """Base of all messages: arrays with a leading client axis.

    See Also
    --------
    bandits.protocol.Ledger : Count messages.

    Examples
    --------
    >>> import numpy as np
    >>> ActiveArms(np.array([[True, False]])).scalars
    1
    """

    @property
    @abstractmethod
    def scalars(self) -> int:
        """Cost of the message in scalars."""

    def part(self: M, rows: slice | np.ndarray) -> M:
        """Return the message for some of the clients.

        Parameters
        ----------
        rows : slice or ndarray of int
            Numbers of the clients.

        Returns
        -------
        Message
            Message of the same class.
        """
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
    """First estimates theta-hat^0 of every client: one vector per arm.

    Attributes
    ----------
    vectors : ndarray of shape (m, K, d)
        Estimates.
    directions : ndarray of shape (m, K, d)
        Unit directions of estimates that are zero; zero elsewhere.

    See Also
    --------
    bandits.protocol.LocalEstimates : Estimates of later phases.

    Examples
    --------
    >>> import numpy as np
    >>> FirstEstimates(np.ones((1, 2, 3)), np.zeros((1, 2, 3))).scalars
    6
    """

    vectors: np.ndarray
    directions: np.ndarray

    @property
    def scalars(self) -> int:
        """Cost of K d per client, and d for every direction that is sent."""
        return self.vectors.size + self.directions.shape[2] * int(self.directions.any(axis=2).sum())


class _PerActiveArm(Message):
    """Message with a number per active arm."""

    active: np.ndarray

    @property
    def scalars(self) -> int:
        """One number per active arm."""
        return int(self.active.sum())


@dataclass(frozen=True, eq=False)
class ActiveArms(_PerActiveArm):
    """Active arms A_i^p of every client.

    Attributes
    ----------
    active : ndarray of bool of shape (m, K)
        True for active arms.

    See Also
    --------
    bandits.protocol.PullPlan : Pulls of the active arms.

    Examples
    --------
    >>> import numpy as np
    >>> ActiveArms(np.array([[True, True, False]])).scalars
    2
    """

    active: np.ndarray


@dataclass(frozen=True, eq=False)
class PullPlan(_PerActiveArm):
    """Pulls f_{i,a}^p of the active arms.

    Attributes
    ----------
    pulls : ndarray of int of shape (m, K)
        Numbers of pulls.
    active : ndarray of bool of shape (m, K)
        True for active arms.

    See Also
    --------
    bandits.protocol.ActiveArms : Active arms of a phase.

    Examples
    --------
    >>> import numpy as np
    >>> PullPlan(np.array([[3, 0]]), np.array([[True, True]])).scalars
    2
    """

    pulls: np.ndarray
    active: np.ndarray


@dataclass(frozen=True, eq=False)
class LocalEstimates(Message):
    """Estimates theta-hat_{i,a}^p of the pulled arms.

    Attributes
    ----------
    values : ndarray of shape (m, K, d) or (m, K)
        Vectors, or scalars along the directions.
    pulled : ndarray of bool of shape (m, K)
        True for pulled arms.

    See Also
    --------
    bandits.protocol.GlobalEstimates : Estimates of the server.

    Examples
    --------
    >>> import numpy as np
    >>> LocalEstimates(np.ones((1, 2, 3)), np.array([[True, False]])).scalars
    3
    """

    values: np.ndarray
    pulled: np.ndarray

    @property
    def scalars(self) -> int:
        """One vector or one scalar per pulled arm."""
        width = self.values.shape[2] if self.values.ndim == 3 else 1
        return width * int(self.pulled.sum())


@dataclass(frozen=True, eq=False)
class GlobalEstimates(Message):
    """Estimates theta-hat_a^{p+1} and V_a^{p+1} of the server, one set per class of collinear clients.

    B is the number of arms, or 1 if parameters are shared. With one class, the usual case, this is the
    paper's broadcast.

    Attributes
    ----------
    theta : ndarray of shape (C, B, d)
        Estimates.
    potential : ndarray of shape (C, B, d, d)
        Matrices V_a.
    alive : ndarray of bool of shape (C, B)
        True for arms that are active for a client of the class.
    member : ndarray of int of shape (m,)
        Class of every client.

    See Also
    --------
    bandits.protocol.Projections : Shorter message with the same decisions.

    Examples
    --------
    >>> import numpy as np
    >>> alive, member = np.ones((1, 2), dtype=bool), np.zeros(1, dtype=int)
    >>> GlobalEstimates(np.ones((1, 2, 3)), np.ones((1, 2, 3, 3)), alive, member).scalars
    24
    """

    theta: np.ndarray
    potential: np.ndarray
    alive: np.ndarray
    member: np.ndarray

    @property
    def scalars(self) -> int:
        """Cost of d + d^2 for every client and every arm that is active in its class."""
        d = self.theta.shape[2]
        return (d + d * d) * int(self.alive.sum(axis=1)[self.member].sum())

    def part(self, rows: slice | np.ndarray) -> GlobalEstimates:
        """Return the message for some of the clients: the estimates of their classes."""
        classes, member = np.unique(self.member[rows], return_inverse=True)
        return GlobalEstimates(self.theta[classes], self.potential[classes], self.alive[classes], member)


@dataclass(frozen=True, eq=False)
class Projections(_PerActiveArm):
    """Numbers e' theta-hat_a and sqrt(e' V_a e) along each client's direction e.

    Attributes
    ----------
    estimate : ndarray of shape (m, K)
        Estimates, zero where an arm is inactive.
    deviation : ndarray of shape (m, K)
        Deviations, zero where an arm is inactive.
    active : ndarray of bool of shape (m, K)
        True for active arms.

    See Also
    --------
    bandits.protocol.GlobalEstimates : Message of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> active = np.array([[True, False]])
    >>> Projections(np.ones((1, 2)), np.ones((1, 2)), active).scalars
    2
    """

    estimate: np.ndarray
    deviation: np.ndarray
    active: np.ndarray

    @property
    def scalars(self) -> int:
        """Two numbers per active arm."""
        return 2 * super().scalars


class Ledger:
    """Count the scalars that pass, up and down.

    See Also
    --------
    bandits.protocol.Message : Message with a cost.

    Examples
    --------
    >>> import numpy as np
    >>> ledger = Ledger()
    >>> _ = ledger.up(ActiveArms(np.array([[True, False]])))
    >>> ledger.uploaded, ledger.downloaded
    (1, 0)
    """

    def __init__(self) -> None:
        self.uploaded = 0
        self.downloaded = 0

    def up(self, message: M) -> M:
        """Count a message to the server and return it.

        Parameters
        ----------
        message : Message
            Message.

        Returns
        -------
        Message
            The same message.
        """
        self.uploaded += message.scalars
        return message

    def down(self, message: M) -> M:
        """Count a message to the clients and return it.

        Parameters
        ----------
        message : Message
            Message.

        Returns
        -------
        Message
            The same message.
        """
        self.downloaded += message.scalars
        return message
