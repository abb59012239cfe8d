"""Centralised linear Thompson sampling.

Agrawal, Goyal: Thompson Sampling for Contextual Bandits with Linear Payoffs, ICML 2013. For every decision a
parameter is drawn from  N(theta-hat, v^2 A^-1)  and the arm that is best under it is pulled; v is a
constant, or by default the paper's

    v = sigma sqrt( 9 d log(t / delta) ),

under which the regret is of order d sqrt(d N) up to logarithms for N decisions in all. With parameters of
each arm's own, only the estimate x' theta_a of each arm is needed, which is normal with variance v^2
||x||^2_{A^-1}: one number an arm is drawn in place of d.

Communication is that of centralised LinUCB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandits.policies.linucb import check_linear
from bandits.policies.parameters import blocks, check_parameters, suffix
from bandits.policies.ridge import Ridge, learn, predict, ridge
from bandits.policies.stepwise import Stepwise
from bandits.trial import Trial
from optdesign._kernel import kernel


class State(NamedTuple):
    """One model for all clients, and the deviation v of every round."""

    features: np.ndarray
    model: Ridge
    deviation: np.ndarray
    """v of round t, for t = 0 .. T."""
    factor: np.ndarray
    """Work space, (d, d): a factor of A^-1."""
    sample: np.ndarray
    """Work space, (d,): a drawn parameter."""


@dataclass(frozen=True)
class LinTS(Stepwise):
    """Centralised linear Thompson sampling.

    Parameters
    ----------
    parameters : "disjoint" or "shared"
    v : float, optional
        A constant deviation. Default: the paper's, which grows with log t.
    ridge : float
        lambda; 1 in the paper.
    delta : float
        Probability with which the paper's bound may fail.
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: the environment's.
    """

    parameters: str = "disjoint"
    v: float | None = None
    ridge: float = 1.0
    delta: float = 0.1
    sigma: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self.parameters)
        check_linear(self.ridge, self.delta, self.sigma, None)
        if self.v is not None and not self.v >= 0.0:
            raise ValueError(f"v must not be negative; got {self.v}. Leave it out for the paper's.")

    @property
    def name(self) -> str:
        """Class name, and what is not the default about the parameters."""
        return type(self).__name__ + suffix(self.parameters)

    def start(self, trial: Trial) -> State:
        """Features are sent, nothing else is known."""
        env = trial.env
        trial.ledger.uploaded += env.features.size
        sigma = env.sigma if self.sigma is None else self.sigma
        t = np.maximum(np.arange(trial.horizon + 1.0), 1.0)
        deviation = sigma * np.sqrt(9.0 * env.dim * (np.log(t) - math.log(self.delta)))
        return State(
            np.array(env.features),
            ridge(1, blocks(self.parameters, env), env.dim, self.ridge),
            deviation if self.v is None else np.full(trial.horizon + 1, self.v),
            np.zeros((env.dim, env.dim)),
            np.zeros(env.dim),
        )

    @staticmethod
    def choose(state, i, t, rng):
        """The best arm under a draw from the posterior."""
        arms, best, top = state.features.shape[1], 0, -np.inf
        v = state.deviation[t]
        disjoint = state.model.theta.shape[1] > 1
        if not disjoint:
            _sample(state, v, rng)
        for a in range(arms):
            if disjoint:
                mean, deviation = predict(state.model, 0, a, state.features, i, a)
                value = mean + v * deviation * rng.standard_normal()
            else:
                value = 0.0
                for j in range(len(state.sample)):
                    value += state.features[i, a, j] * state.sample[j]
            if value > top:
                best, top = a, value
        return best

    @staticmethod
    def observe(state, i, a, y):
        """One more observation of the arm's block."""
        learn(state.model, 0, a if state.model.theta.shape[1] > 1 else 0, state.features, i, a, y)

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """A reward up and an arm down, for every client."""
        sent[0] += len(state.features)
        sent[1] += len(state.features)


@kernel
def _sample(state, v, rng):
    """theta-hat + v C z with C C' = A^-1 and z standard normal. Overwrites factor and sample."""
    d = len(state.sample)
    inverse, c = state.model.inverse[0, 0], state.factor
    for j in range(d):
        state.sample[j] = state.model.theta[0, 0, j]
    for j in range(d):
        for k in range(j, d):
            total = inverse[k, j]
            for n in range(j):
                total -= c[k, n] * c[j, n]
            c[k, j] = np.sqrt(max(total, 0.0)) if k == j else (total / c[j, j] if c[j, j] > 0.0 else 0.0)
    for j in range(d):
        z = v * rng.standard_normal()
        for k in range(j, d):
            state.sample[k] += c[k, j] * z
