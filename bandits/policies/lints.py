"""Centralised linear Thompson sampling.

In each round, client i draws a parameter for every block b and pulls the arm with the largest x'
theta-tilde:

    theta-tilde_b ~ N( theta-hat_b, v_b^2 A_b^-1 )       (see bandits.policies.ridge for theta-hat and A)

The option ``v`` sets the deviation v_b.

"beta" (default): v_b is the confidence radius of block b,

    beta_b = sigma sqrt( 2 log(B / delta) + log det A_b - d log lambda ) + sqrt(lambda) s .

Abeille, Lazaric: Linear Thompson Sampling Revisited, AISTATS 2017, sample theta-hat + beta_t V_t^-1/2 eta.
On the event that all ellipsoids hold, which has probability 1 - delta, a sample of a best arm exceeds the
mean of that arm with probability at least P(N(0, 1) >= 1) = 0.16. Their regret is of order d sqrt(d N) up
to logarithms for N decisions. Their beta_t bounds log det A by its largest value; here log det A is
computed, as in ``LinUCB``, and the confidence level is that of ``LinUCB``.

"worst-case": the constant of Agrawal, Goyal: Thompson Sampling for Contextual Bandits with Linear Payoffs,
ICML 2013, in round t,

    v = sigma sqrt( 9 d log(t / delta) ) .

Their t counts decisions, of which a round has M; delta / M in place of delta gives their level.

"sigma": v = sigma. The sample is then drawn from the Bayesian posterior for Gaussian noise of variance
sigma^2 and the prior N(0, sigma^2 / lambda I). No bound on the regret for a fixed parameter is proved for
it.

A number: v is that number in all rounds.

With disjoint parameters only x' theta-tilde_a is needed, which is normal with mean x' theta-hat_a and
deviation v_a ||x||_{A_a^-1}; one number per arm is drawn in place of d.

The communication is that of centralised LinUCB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from bandits.policies.linear import LinearPolicy, Model
from bandits.policies.ridge import learn, predict
from bandits.trials.trial import Trial
from optdesign.runtime.jit import kernel

BETA, WORST_CASE, SIGMA = "beta", "worst-case", "sigma"
DEVIATIONS = (BETA, WORST_CASE, SIGMA)
"""Named values of the option ``v``."""


class State(NamedTuple):
    """One model for all clients, whose width is the deviation v_b, and work space."""

    model: Model
    schedule: np.ndarray
    """v of round t for t = 0 .. T; empty unless v depends on t."""
    factor: np.ndarray
    """Work space, (d, d): a factor of A^-1."""
    sample: np.ndarray
    """Work space, (d,): a drawn parameter."""


@dataclass(frozen=True)
class LinTS(LinearPolicy):
    """Centralised linear Thompson sampling.

    Further options are those of :class:`bandits.policies.linear.LinearPolicy`.

    Parameters
    ----------
    v : {"beta", "worst-case", "sigma"} or float, default "beta"
        Deviation of the samples: the confidence radius beta_t of Abeille and Lazaric, the constant
        sigma sqrt(9 d log(t / delta)) of Agrawal and Goyal, the posterior deviation sigma, or a constant.

    See Also
    --------
    bandits.LinUCB : Use an upper bound instead of samples.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=6, arms=3, dim=2)
    >>> beta, worst = (
    ...     bandits.simulate(bandits.LinTS(v=v), env, horizon=2000, trials=4).mean[-1]
    ...     for v in ("beta", "worst-case")
    ... )
    >>> bool(beta < worst)
    True
    """

    v: float | str = BETA

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.v in DEVIATIONS if isinstance(self.v, str) else is_deviation(self.v)
        if not known:
            raise ValueError(
                f"v must be one of {', '.join(DEVIATIONS)} or a finite number that is not negative; "
                f"got {self.v!r}. Leave it out for the confidence radius."
            )

    @property
    def name(self) -> str:
        """Class name, and the parameters and the deviation if they are not the defaults."""
        return super().name + ("" if self.v == BETA else f" (v = {self.v})")

    def start(self, trial: Trial) -> State:
        """Return the state before the first round. Every client sends its features."""
        env = trial.env
        trial.ledger.uploaded += env.features.size
        sigma = env.sigma if self.sigma is None else self.sigma
        constants = {BETA: None, WORST_CASE: 0.0, SIGMA: sigma}
        schedule = np.zeros(0)
        if self.v == WORST_CASE:
            t = np.maximum(np.arange(trial.horizon + 1.0), 1.0)
            schedule = sigma * np.sqrt(9.0 * env.dim * (np.log(t) - math.log(self.delta)))
        return State(
            model=self.model(env, 1, constants[self.v] if isinstance(self.v, str) else float(self.v)),
            schedule=schedule,
            factor=np.zeros((env.dim, env.dim)),
            sample=np.zeros(env.dim),
        )

    @staticmethod
    def choose(state, i, t, rng):
        """Return the best arm under a sample. Overwrites the work space."""
        model = state.model
        arms, best, top = model.features.shape[1], 0, -np.inf
        disjoint = model.width.shape[1] > 1
        if len(state.schedule) > 0:
            model.width[:] = state.schedule[t]
        if not disjoint:
            _sample(state, rng)
        for a in range(arms):
            if disjoint:
                mean, deviation = predict(model.ridge, 0, a, model.features, i, a)
                value = mean + model.width[0, a] * deviation * rng.standard_normal()
            else:
                value = 0.0
                for j in range(len(state.sample)):
                    value += model.features[i, a, j] * state.sample[j]
            if value > top:
                best, top = a, value
        return best

    @staticmethod
    def observe(state, i, a, y):
        """Add an observation to the arm's block. Overwrites the state."""
        model = state.model
        learn(model.ridge, model.width, model.confidence, 0, model.features, i, a, y)

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """Count a reward up and an arm down for every client. Adds to sent."""
        sent[0] += len(state.model.features)
        sent[1] += len(state.model.features)


def is_deviation(v: object) -> bool:
    """Return True if v is a finite number that is not negative."""
    return isinstance(v, Real) and not isinstance(v, bool) and 0.0 <= float(v) < math.inf


@kernel
def _sample(state, rng):
    """Draw theta-hat + v C z with C C' = A^-1 and z standard normal. Overwrites factor and sample."""
    d = len(state.sample)
    estimates, c = state.model.ridge, state.factor
    inverse, v = estimates.inverse[0, 0], state.model.width[0, 0]
    for j in range(d):
        state.sample[j] = estimates.theta[0, 0, j]
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
