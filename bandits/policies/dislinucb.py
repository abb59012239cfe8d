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

from bandits.policies.linucb import check_linear
from bandits.policies.parameters import blocks, check_parameters, suffix
from bandits.policies.ridge import Ridge, learn, predict, radius, refresh, ridge
from bandits.policies.stepwise import Stepwise
from bandits.trials.trial import Trial
from optdesign.runtime.jit import kernel


class Sums(NamedTuple):
    """Sums of x x' and of x y, (M, B, d, d) and (M, B, d)."""

    information: np.ndarray
    moment: np.ndarray


class State(NamedTuple):
    """A model per client, what each has seen since the last synchronisation, and the sums of all."""

    features: np.ndarray
    model: Ridge
    width: np.ndarray
    """Radius, (M, B)."""
    news: Sums
    """Of each client alone, since the last synchronisation."""
    changed: np.ndarray
    """True if client i has pulled block b since the last synchronisation, (M, B)."""
    growth: np.ndarray
    """Growth of log det A_i since the last synchronisation, (M,)."""
    last: np.ndarray
    """When that was, (1,)."""
    threshold: float
    sigma: float
    log_term: float
    bias: float


@dataclass(frozen=True)
class DisLinUCB(Stepwise):
    """DisLinUCB.

    Parameters
    ----------
    parameters : "disjoint" or "shared"
    threshold : float, optional
        D: the larger, the rarer the synchronisations. Default: the paper's.
    ridge : float
        lambda; 1 in the paper.
    delta : float
        Probability with which confidence intervals may fail.
    sigma, s : float, optional
        Sub-Gaussian parameter of the rewards, and bound on ||theta||. Default: the environment's.
    """

    parameters: str = "disjoint"
    threshold: float | None = None
    ridge: float = 1.0
    delta: float = 0.1
    sigma: float | None = None
    s: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self.parameters)
        check_linear(self.ridge, self.delta, self.sigma, self.s)
        if self.threshold is not None and not self.threshold >= 0.0:
            raise ValueError(
                f"threshold must not be negative; got {self.threshold}. Leave it out for the paper's."
            )

    @property
    def name(self) -> str:
        """Class name, and what is not the default about the parameters."""
        return type(self).__name__ + suffix(self.parameters)

    def start(self, trial: Trial) -> Any:
        """Nothing is known, nothing sent."""
        env, count = trial.env, blocks(self.parameters, trial.env)
        m, d = env.clients, env.dim
        sigma = env.sigma if self.sigma is None else self.sigma
        log_term = 2.0 * (math.log(m * count) - math.log(self.delta))
        bias = math.sqrt(self.ridge) * (env.s if self.s is None else self.s)
        usual = trial.horizon * math.log(max(m * trial.horizon, 2)) / (d * count * m)
        return State(
            features=np.array(env.features),
            model=ridge(m, count, d, self.ridge),
            width=np.full((m, count), radius(0.0, sigma, log_term, bias)),
            news=Sums(np.zeros((m, count, d, d)), np.zeros((m, count, d))),
            changed=np.zeros((m, count), dtype=np.bool_),
            growth=np.zeros(m),
            last=np.zeros(1),
            threshold=usual if self.threshold is None else float(self.threshold),
            sigma=sigma,
            log_term=log_term,
            bias=bias,
        )

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """The largest upper bound of client i's own model."""
        arms, best, top = state.features.shape[1], 0, -np.inf
        for a in range(arms):
            b = a if state.width.shape[1] > 1 else 0
            mean, deviation = predict(state.model, i, b, state.features, i, a)
            value = mean + state.width[i, b] * deviation
            if value > top:
                best, top = a, value
        return best

    @staticmethod
    def observe(state, i, a, y):
        """One more observation of the client's own."""
        b = a if state.width.shape[1] > 1 else 0
        state.growth[i] += learn(state.model, i, b, state.features, i, a, y)
        state.width[i, b] = radius(state.model.log_det[i, b], state.sigma, state.log_term, state.bias)
        note(state.news, i, b, state.features, a, y)
        state.changed[i, b] = True

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """Add the news of all clients to the model of each if log det has grown enough. Adds to sent."""
        if not grown(state, t):
            return
        count_scalars(state.changed, state.features.shape[2], sent)
        for b in range(state.width.shape[1]):
            collect(state.model, state.news, b)
        share(state, t)


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
    """Whether a client's log det has grown by enough since the last synchronisation."""
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
    model, news = state.model, state.news
    m, count, d = news.moment.shape
    for b in range(count):
        wide = radius(model.log_det[0, b], state.sigma, state.log_term, state.bias)
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
            state.width[i, b] = wide
            state.growth[i] = 0.0
    state.last[0] = t
