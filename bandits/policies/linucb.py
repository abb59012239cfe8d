"""Centralised LinUCB: the server sees every reward at once and decides for all clients.

Li, Chu, Langford, Schapire: A Contextual-Bandit Approach to Personalized News Article Recommendation, WWW
2010, for parameters of each arm's own; Abbasi-Yadkori, Pal, Szepesvari: Improved Algorithms for Linear
Stochastic Bandits, NeurIPS 2011, for shared ones and for the default width. Client i pulls the arm with the
largest

    x' theta-hat + alpha ||x||_{A^-1}                   (see bandits.policies.ridge for theta-hat and A)

where alpha is a constant, as in the first paper, or, by default, the radius of the second at confidence
1 - delta / B, so that the intervals of all B parameter vectors hold at all times with probability 1 - delta.

It is what could be done without limits on communication: clients send their features at the start (K d
scalars each), and in every round each sends a reward and is sent an arm. All clients decide before any of
them observes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.policies.parameters import blocks, check_parameters, suffix
from bandits.policies.ridge import Ridge, learn, predict, radius, ridge
from bandits.policies.stepwise import Stepwise
from bandits.trials.trial import Trial


class State(NamedTuple):
    """One model for all clients, and the widths of its blocks."""

    features: np.ndarray
    model: Ridge
    width: np.ndarray
    """alpha of every block, (B,)."""
    fixed: bool
    """Whether alpha stays as it is."""
    sigma: float
    log_term: float
    """2 log(B / delta)."""
    bias: float
    """sqrt(lambda) s."""


@dataclass(frozen=True)
class LinUCB(Stepwise):
    """Centralised LinUCB.

    Parameters
    ----------
    parameters : "disjoint" or "shared"
    alpha : float, optional
        A constant width. Default: the radius of the confidence ellipsoid, which grows with the data.
    ridge : float
        lambda.
    delta : float
        Probability with which the default radius may fail.
    sigma, s : float, optional
        Sub-Gaussian parameter of the rewards, and bound on ||theta||. Default: the environment's.
    """

    parameters: str = "disjoint"
    alpha: float | None = None
    ridge: float = 1.0
    delta: float = 0.1
    sigma: float | None = None
    s: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self.parameters)
        check_linear(self.ridge, self.delta, self.sigma, self.s)
        if self.alpha is not None and not 0.0 <= self.alpha < math.inf:
            raise ValueError(
                f"alpha must be finite and not negative; got {self.alpha}. Leave it out for the theory's."
            )

    @property
    def name(self) -> str:
        """Class name, and what is not the default about the parameters."""
        return type(self).__name__ + suffix(self.parameters)

    def start(self, trial: Trial) -> State:
        """Features are sent, nothing else is known."""
        env = trial.env
        trial.ledger.uploaded += env.features.size
        count = blocks(self.parameters, env)
        sigma = env.sigma if self.sigma is None else self.sigma
        log_term = 2.0 * (math.log(count) - math.log(self.delta))
        bias = math.sqrt(self.ridge) * (env.s if self.s is None else self.s)
        first = radius(0.0, sigma, log_term, bias) if self.alpha is None else self.alpha
        return State(
            np.array(env.features), ridge(1, count, env.dim, self.ridge), np.full(count, first),
            self.alpha is not None, sigma, log_term, bias,
        )  # fmt: skip

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """The largest upper bound."""
        arms, best, top = state.features.shape[1], 0, -np.inf
        for a in range(arms):
            b = a if len(state.width) > 1 else 0
            mean, deviation = predict(state.model, 0, b, state.features, i, a)
            value = mean + state.width[b] * deviation
            if value > top:
                best, top = a, value
        return best

    @staticmethod
    def observe(state, i, a, y):
        """One more observation of the arm's block."""
        b = a if len(state.width) > 1 else 0
        learn(state.model, 0, b, state.features, i, a, y)
        if not state.fixed:
            state.width[b] = radius(state.model.log_det[0, b], state.sigma, state.log_term, state.bias)

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """A reward up and an arm down, for every client."""
        sent[0] += len(state.features)
        sent[1] += len(state.features)


def check_linear(weight: float, delta: float, sigma: float | None, s: float | None) -> None:
    """Refuse options of a linear model that have no meaning."""
    if not 0.0 < weight < math.inf:
        raise ValueError(
            f"ridge must be positive and finite; got {weight}. Without it there is no inverse to start with."
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly in (0, 1); got {delta}. The paper takes 0.1.")
    for key, value in (("sigma", sigma), ("s", s)):
        if value is not None and not 0.0 < value < math.inf:
            raise ValueError(
                f"{key} must be positive and finite; got {value}. Leave it out for the environment's."
            )
