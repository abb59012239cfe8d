"""DisLinUCB: LinUCB at every client; all clients synchronise once one has gained enough information.

Wang, Hu, Chen, Wang: Distributed Bandit Learning: Near-Optimal Regret with Efficient Communication, ICLR
2020. Client i decides by LinUCB on the synchronised data and its own pulls since. If for any client

    ( log det A_i - log det A_last ) (t - t_last)  >  D,         D = T log(M T) / (d M) unless given,

all clients exchange the sums of x x' and x y since the last synchronisation, so the regret is that of one
LinUCB with all pulls up to logarithms, for O(M^1.5 d^3) scalars whatever T is.

The paper has one parameter vector for all arms. With disjoint parameters the model has B = K blocks: log
det is the sum over blocks, and d B takes the place of d in D. The confidence level is delta / (M B), a
union over clients and blocks. As in the paper, no union is taken over synchronisations.

Communication. Only models that changed are sent, and only one half of each symmetric matrix. A model is

    d (d + 1) / 2   entries of the sum of x x'     and     d   entries of the sum of x y .

- Up, client i: the models of the blocks that it has pulled since the last synchronisation.
- Down, client i: the models of the blocks that another client has pulled since, summed over the clients. A
  block that only client i has pulled is not sent: it has the sum.

With  q = d (d + 1) / 2 + d  a message of n models costs  min( n (q + 1), B q )  scalars: the models and
the indices of their blocks, or all B models without indices. The signal that starts a synchronisation has
no content and is not counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandits.checks import is_number
from bandits.policies.linear import LinearPolicy, Model, best_arm
from bandits.policies.ridge import block_of, learn, radius, refresh
from bandits.trials.trial import Trial
from optdesign.runtime.jit import inlined, kernel


class Sums(NamedTuple):
    """Sums of x x' and of x y, (M, B, d, d) and (M, B, d)."""

    information: np.ndarray
    moment: np.ndarray


class State(NamedTuple):
    """A model with a row per client, and the observations of each since the last synchronisation."""

    model: Model
    news: Sums
    """Sums over the observations of each client since the last synchronisation."""
    changed: np.ndarray
    """True if client i has pulled block b since the last synchronisation, (M, B)."""
    growth: np.ndarray
    """Growth of log det A_i since the last synchronisation, (M,)."""
    last: np.ndarray
    """Round of the last synchronisation, (1,)."""
    threshold: float


@dataclass(frozen=True)
class DisLinUCB(LinearPolicy):
    """DisLinUCB, which synchronises when a determinant has grown enough.

    Further options are those of :class:`bandits.policies.linear.LinearPolicy`.

    Parameters
    ----------
    threshold : float, optional
        Threshold D. A larger one makes synchronisations rarer. Default: that of the paper on DisLinUCB.

    See Also
    --------
    bandits.FedUCB : Add differential privacy.
    bandits.LinUCB : Synchronise in every round.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> bandits.simulate(bandits.DisLinUCB(), env, 50, trials=1).policy
    'DisLinUCB'
    """

    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and not (is_number(self.threshold) and self.threshold >= 0.0):
            raise ValueError(
                f"threshold must not be negative; got {self.threshold}. Leave it out for the paper's."
            )

    def start(self, trial: Trial) -> Any:
        """Return the state before the first round, without observations."""
        return self.clients(trial, self.model(trial.env, trial.env.clients))

    def clients(self, trial: Trial, model: Model) -> State:
        """Return the state of clients that have a model and no data to send.

        Parameters
        ----------
        trial : Trial
            Trial in progress.
        model : Model
            Model of every client.

        Returns
        -------
        State
            The state.
        """
        m, count = model.width.shape
        d, horizon = trial.env.dim, trial.horizon
        usual = horizon * math.log(max(m * horizon, 2)) / (d * count * m)
        return State(
            model=model,
            news=empty_sums(m, count, d),
            changed=np.zeros((m, count), dtype=np.bool_),
            growth=np.zeros(m),
            last=np.zeros(1),
            threshold=usual if self.threshold is None else float(self.threshold),
        )

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """Return the arm with the largest upper bound in client i's own model."""
        return best_arm(state.model, i, i)

    @staticmethod
    def observe(state, i, a, y):
        """Add an observation to the model and the news of client i. Overwrites the state."""
        record(state, i, a, y, y)

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """Add the news of all clients to the model of each if log det has grown enough. Adds to sent."""
        if not grown(state, t):
            return
        count_scalars(state.changed, state.model.features.shape[2], sent)
        for b in range(state.changed.shape[1]):
            collect(state.model.ridge, state.news, b)
        share(state, t)


def empty_sums(rows: int, count: int, dim: int) -> Sums:
    """Return sums over no observations."""
    return Sums(np.zeros((rows, count, dim, dim)), np.zeros((rows, count, dim)))


@inlined
def record(state, i, a, y, uploaded):
    """Add reward y of arm a to the model of client i, and the uploaded value to its news.

    Overwrites the state. The model has no name of its own here: a name that lives across a call costs two
    atomic operations for every array in it.
    """
    b = block_of(state.model.width, a)
    state.growth[i] += learn(
        state.model.ridge, state.model.width, state.model.confidence, i, state.model.features, i, a, y
    )
    note(state.news, i, b, state.model.features, a, uploaded)
    state.changed[i, b] = True


@kernel
def note(news, i, b, features, a, y):
    """Add an observation to the sums of client i. Overwrites news."""
    d = features.shape[2]
    for j in range(d):
        news.moment[i, b, j] += features[i, a, j] * y
        for k in range(d):
            news.information[i, b, j, k] += features[i, a, j] * features[i, a, k]


@kernel
def collect(model, news, b):
    """Add the news of all others to the model of client 0, which has its own. Overwrites the model."""
    m, _, d = news.moment.shape
    for i in range(1, m):
        for j in range(d):
            model.moment[0, b, j] += news.moment[i, b, j]
            for k in range(d):
                model.information[0, b, j, k] += news.information[i, b, j, k]
    refresh(model, 0, b)


@kernel
def grown(state, t):
    """Return True if a client's log det has grown enough since the last synchronisation."""
    most = 0.0
    for i in range(len(state.growth)):
        most = max(most, state.growth[i])
    return most * (t - state.last[0]) > state.threshold


@kernel
def message_scalars(n, count, d):
    """Return the scalars of a message: n models with their indices, or all count models without, if fewer."""
    size = d * (d + 1) // 2 + d
    return min(n * (size + 1), count * size)


@kernel
def count_scalars(changed, d, sent):
    """Add the scalars of one synchronisation to sent: own changes up, changes of other clients down."""
    m, count = changed.shape
    total = np.zeros(count, np.int64)
    for i in range(m):
        for b in range(count):
            if changed[i, b]:
                total[b] += 1
    for i in range(m):
        own, others = 0, 0
        for b in range(count):
            mine = 1 if changed[i, b] else 0
            own += mine
            if total[b] > mine:
                others += 1
        sent[0] += message_scalars(own, count, d)
        sent[1] += message_scalars(others, count, d)


@kernel
def share(state, t):
    """Copy the model of client 0 to every client and clear the news. Overwrites the state."""
    linear, news, terms = state.model, state.news, state.model.confidence
    model = linear.ridge
    m, count, d = news.moment.shape
    for b in range(count):
        wide = radius(model.log_det[0, b], terms.sigma, terms.log_term, terms.bias)
        for i in range(m):
            for j in range(d):
                news.moment[i, b, j] = 0.0
                model.moment[i, b, j] = model.moment[0, b, j]
                model.theta[i, b, j] = model.theta[0, b, j]
                for k in range(d):
                    news.information[i, b, j, k] = 0.0
                    model.information[i, b, j, k] = model.information[0, b, j, k]
                    model.inverse[i, b, j, k] = model.inverse[0, b, j, k]
            model.log_det[i, b] = model.log_det[0, b]
            model.seen[i, b] = 0
            state.changed[i, b] = False
            linear.width[i, b] = wide
            state.growth[i] = 0.0
    state.last[0] = t
