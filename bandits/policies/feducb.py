"""FedUCB: DisLinUCB whose uploads can be made differentially private.

Dubey, Pentland: Differentially-Private Federated Linear Bandits, NeurIPS 2020. Clients decide and
synchronise as in DisLinUCB, but the uploads, the sums of (x, y)(x, y)' since the start, go through the
tree mechanism: the n-th release is the sum over the binary digits of n of sums over dyadic intervals of
releases, each with a symmetric Gaussian matrix of its own. An observation is in at most  h = 1 +
floor(log2 N)  of them for N releases, so by the Gaussian mechanism an entry needs the deviation

    sqrt(2 h) (L^2 + c^2) sqrt( 2 log(1.25 / privacy_delta) ) / epsilon        ||x|| <= L, y in [-c, c]

for (epsilon, privacy_delta)-privacy of everything a client ever uploads. With U a bound on the norm of the
noise of all M clients' uploads together, the server adds 2 U to the diagonal, so that A >= (lambda + U) I,
and

    radius = sigma sqrt( 2 log(1 / delta') + log det A - d log(lambda + U) )
             + s sqrt(lambda + 3 U) + U / sqrt(lambda + U)

(Shariff, Sheffet: Differentially Private Contextual Linear Bandits, NeurIPS 2018, proposition 4). Without
epsilon there is no noise, U = 0, and FedUCB is DisLinUCB.

``delta`` is the probability with which confidence intervals may fail, as in all other policies. With
privacy it is split: delta' = delta / (2 M B), a union over clients and blocks; delta / 4 for the norms of
the noise, a union over the N releases and B blocks; delta / 4 for rewards beyond the default c. The
self-normalised bound with the fixed regulariser (lambda + U) I holds at all times, so it needs no union
over releases, as in DisLinUCB.

``privacy_delta`` is a property of the mechanism, not of the intervals. (epsilon, privacy_delta)-privacy
admits a mechanism that discloses each observation in full with probability privacy_delta, so M clients
with T observations each must expect up to M T privacy_delta disclosures. A value of 1 / T or more
therefore protects no client and is refused. The default is delta / (M T): the probabilities of all
observations add up to delta.

Communication is that of DisLinUCB without privacy. With privacy all B models are sent in every release,
since the blocks that changed show which arms a client has pulled, and the noise changes all of them.

Known errors of the paper. Zhou, Chowdhury: On Differentially Private Federated Linear Contextual Bandits
(arXiv 2302.13945) show that the claimed privacy fails, since the times of the synchronisations depend on
unprotected data; that the regret bound miscounts the noise, which has to be added up over the M clients;
and that the communication bound has no ground once there is noise. Here U counts the noise of all M
clients. The schedule by log det is the paper's and stays the default, so the uploads are private and their
times are not. With ``period`` clients synchronise at fixed times, as those authors do, and the times
disclose nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.checks import check_positive, check_probability, is_number, whole
from bandits.policies.dislinucb import DisLinUCB, Sums, count_scalars, empty_sums, grown, record, share
from bandits.policies.dislinucb import State as Clients
from bandits.policies.linear import best_arm, empty_model
from bandits.policies.ridge import refresh
from bandits.trials.trial import Trial
from optdesign.runtime.jit import kernel


class State(NamedTuple):
    """The state of DisLinUCB, and the tree of noise."""

    clients: Clients
    total: Sums
    """Sums over all uploads, before the noise; one row."""
    nodes: np.ndarray
    """Noise of the intervals of the last release, summed over clients, (h, B, d + 1, d + 1)."""
    releases: np.ndarray
    """Number of releases so far, (1,)."""
    deviation: float
    """Deviation of an entry of a node's noise, summed over clients; 0 without privacy."""
    diagonal: float
    """lambda + 2 U."""
    bound: float
    """Rewards are clipped to this size in uploads."""
    period: int
    """Rounds between synchronisations; 0 if log det decides."""


@dataclass(frozen=True, kw_only=True)
class FedUCB(DisLinUCB):
    """FedUCB. Uploads are private only with ``epsilon``.

    Further options are those of :class:`bandits.DisLinUCB`.

    Parameters
    ----------
    epsilon : float, optional
        Privacy of each client's uploads, in (0, 1]. Default: no privacy.
    privacy_delta : float, optional
        Probability with which the privacy of one observation may fail, in (0, 1 / horizon). Default:
        delta / (M T).
    reward_bound : float, optional
        Bound c to which rewards are clipped before they are uploaded. Default: a bound that no reward exceeds
        with probability 1 - delta / 4.
    period : int, optional
        Number of rounds between synchronisations. Default: they depend on log det, and their times are not
        private.

    See Also
    --------
    bandits.DisLinUCB : Synchronise without privacy.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> run = bandits.simulate(bandits.FedUCB(epsilon=1.0), env, 50, trials=1)
    >>> run.regret.shape[0]
    1
    """

    epsilon: float | None = None
    privacy_delta: float | None = None
    reward_bound: float | None = None
    period: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon is not None and not (is_number(self.epsilon) and 0.0 < self.epsilon <= 1.0):
            raise ValueError(
                f"epsilon must lie in (0, 1], where the Gaussian mechanism is proved; got {self.epsilon}. "
                "Leave it out for no privacy."
            )
        if self.privacy_delta is not None:
            check_probability("privacy_delta", self.privacy_delta, "Leave it out for delta / (M T).")
        check_positive(
            "reward_bound",
            self.reward_bound,
            "Leave it out for a bound that holds with probability 1 - delta / 4.",
        )
        if self.period is not None:
            whole("period", self.period, 1, remedy=" Leave it out for the paper's rule.")

    @property
    def name(self) -> str:
        """Name of DisLinUCB, and the privacy."""
        return super().name + ("" if self.epsilon is None else f" (epsilon = {self.epsilon:g})")

    def start(self, trial: Trial) -> State:
        """Return the state before the first round. The noise is drawn as it is needed."""
        env = trial.env
        plain = self.model(env, env.clients)
        (m, count), d, sigma = plain.width.shape, env.dim, plain.confidence.sigma
        rounds = trial.horizon if self.period is None else max(trial.horizon // self.period, 1)
        height = 1 + int(math.log2(rounds))
        bound, deviation, norm = math.inf, 0.0, 0.0
        log_term, s = plain.confidence.log_term, env.s if self.s is None else self.s
        if self.epsilon is not None:
            bound = self.reward_bound or s * env.L + sigma * math.sqrt(
                2.0 * math.log(8.0 * m * trial.horizon / self.delta)
            )
            failure = self._privacy_delta(m, trial.horizon)
            alone = node_deviation(height, env.L**2 + bound**2, self.epsilon, failure)
            deviation = math.sqrt(m) * alone
            norm = noise_norm(deviation * math.sqrt(height), d + 1, self.delta / (4.0 * rounds * count))
            log_term = 2.0 * (math.log(2.0 * m * count) - math.log(self.delta))
        low = self.ridge + norm
        bias = s * math.sqrt(self.ridge + 3.0 * norm) + norm / math.sqrt(low)
        return State(
            clients=self.clients(trial, empty_model(env, m, count, low, sigma, log_term, bias)),
            total=empty_sums(1, count, d),
            nodes=np.zeros((height, count, d + 1, d + 1)),
            releases=np.zeros(1, dtype=np.int64),
            deviation=deviation,
            diagonal=self.ridge + 2.0 * norm,
            bound=bound,
            period=self.period or 0,
        )

    def _privacy_delta(self, clients: int, horizon: int) -> float:
        """Return the given privacy_delta, which must be below 1 / T, or delta / (M T)."""
        if self.privacy_delta is None:
            return self.delta / (clients * horizon)
        if not self.privacy_delta * horizon < 1.0:
            raise ValueError(
                f"privacy_delta must be below 1 / horizon = {1.0 / horizon:.3g}, or it admits disclosing one "
                f"observation of every client; got {self.privacy_delta}. Leave it out for delta / (M T)."
            )
        return self.privacy_delta

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """Return the arm with the largest upper bound in client i's own model."""
        return best_arm(state.clients.model, i, i)

    @staticmethod
    def observe(state, i, a, y):
        """Add an observation to the model of client i, and the clipped reward to its news."""
        record(state.clients, i, a, y, min(max(y, -state.bound), state.bound))

    @staticmethod
    def synchronise(state, t, rng, sent):
        """Upload through the tree and add up the models if a release is due. Adds to sent."""
        clients = state.clients
        due = t % state.period == 0 if state.period > 0 else grown(clients, t)
        if not due:
            return
        if state.deviation > 0.0:
            clients.changed[:] = True
        count_scalars(clients.changed, clients.model.features.shape[2], sent)
        state.releases[0] += 1
        grow(state.nodes, state.releases[0], state.deviation, rng)
        for b in range(clients.changed.shape[1]):
            release(state, b)
        share(clients, t)


def node_deviation(height: int, size: float, epsilon: float, privacy_delta: float) -> float:
    """Return the deviation of an entry's noise: the Gaussian mechanism for all nodes at once.

    One observation (x, y) exchanged for another changes at most ``height`` nodes, each by at most
    sqrt(2) ||(x, y)||^2 <= sqrt(2) size in the Frobenius norm.
    """
    return math.sqrt(2.0 * height) * size * math.sqrt(2.0 * math.log(1.25 / privacy_delta)) / epsilon


def noise_norm(deviation: float, dim: int, failure: float) -> float:
    """Return a bound on the spectral norm of a symmetric Gaussian matrix with probability 1 - ``failure``.

    Its mean is at most 2 deviation sqrt(dim), and it is sqrt(2)-Lipschitz in the independent entries.
    """
    return deviation * (2.0 * math.sqrt(dim) + 2.0 * math.sqrt(math.log(1.0 / failure)))


@kernel
def grow(nodes, n, deviation, rng):
    """Draw the noise of release n, a new node at its lowest binary digit that is set. Overwrites nodes."""
    if deviation == 0.0:
        return
    _, count, size, _ = nodes.shape
    last = 0
    while (n >> last) & 1 == 0:
        last += 1
    for level in range(last + 1):
        for b in range(count):
            for j in range(size):
                for k in range(j + 1):
                    value = deviation * rng.standard_normal() if level == last else 0.0
                    nodes[level, b, j, k] = value
                    nodes[level, b, k, j] = value


@kernel
def release(state, b):
    """Set client 0's model to all sums so far, with noise and diagonal. Overwrites total and model."""
    news, total, model = state.clients.news, state.total, state.clients.model.ridge
    m, _, d = news.moment.shape
    for j in range(d):
        for i in range(m):
            total.moment[0, b, j] += news.moment[i, b, j]
        model.moment[0, b, j] = total.moment[0, b, j]
        for k in range(d):
            for i in range(m):
                total.information[0, b, j, k] += news.information[i, b, j, k]
            model.information[0, b, j, k] = total.information[0, b, j, k]
        model.information[0, b, j, j] += state.diagonal
    for level in range(len(state.nodes)):
        for j in range(d):
            model.moment[0, b, j] += state.nodes[level, b, d, j]
            for k in range(d):
                model.information[0, b, j, k] += state.nodes[level, b, j, k]
    refresh(model, 0, b)
