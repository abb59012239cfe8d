"""Policies that estimate parameters by ridge regression at every step: their options and their model.

A model has R rows, one for all clients or one per client, and B blocks, one per arm or one for all if
parameters are shared. Row r has for client i and arm a, with b the block of the arm, the upper bound

    x_{i,a}' theta-hat_{r,b} + w_{r,b} ||x_{i,a}||_{A^-1}

(see :mod:`bandits.policies.ridge` for theta-hat and A). The width w is a constant or, by default, the radius
of the confidence ellipsoid at the level delta / (R B), so that the intervals of all rows and blocks hold at
all times with probability 1 - delta.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from bandits.checks import check_positive, check_probability
from bandits.environments.linear import LinearEnvironment
from bandits.policies.parameters import blocks, check_parameters, suffix
from bandits.policies.ridge import Confidence, Ridge, block_of, predict, radius, ridge
from bandits.policies.stepwise import Stepwise
from bandits.trials.trial import Trial
from optdesign.runtime.jit import inlined

LARGEST_CONDITION = 1e13
"""Largest L^2 M T / lambda, which bounds the condition number of A; L is the largest norm of a feature.

Estimates have a relative round-off of 1e-16 times that number. Regret differed from that of exact arithmetic
from 3e14 on; from 1e16 on, A was singular.
"""


class Model(NamedTuple):
    """Estimates and widths of R rows and B blocks, and the features that they apply to."""

    features: np.ndarray
    """(M, K, d)."""
    ridge: Ridge
    width: np.ndarray
    """w, (R, B)."""
    confidence: Confidence
    """Constants of w at the level of one row and block."""


@dataclass(frozen=True)
class LinearPolicy(Stepwise):
    """Options of policies that estimate parameters by ridge regression.

    Parameters
    ----------
    parameters : {"disjoint", "shared"}, default "disjoint"
        Every arm has a parameter vector of its own, or all arms have the same.
    ridge : float, default 1.0
        Ridge parameter lambda, at least 1e-13 L^2 M T. L is the largest norm of a feature.
    delta : float, default 0.1
        Probability with which the confidence intervals may fail.
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: that of the environment.
    s : float, optional
        Bound on ||theta||. Default: that of the environment.
    """

    parameters: str = "disjoint"
    _: KW_ONLY
    ridge: float = 1.0
    delta: float = 0.1
    sigma: float | None = None
    s: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self.parameters)
        check_positive("ridge", self.ridge, "Without it there is no inverse to start with.")
        check_probability("delta", self.delta)
        check_positive("sigma", self.sigma)
        check_positive("s", self.s)

    @property
    def name(self) -> str:
        """Class name, and the parameters if they are shared."""
        return type(self).__name__ + suffix(self.parameters)

    def play(self, trial: Trial) -> None:
        """Play one trial, or raise ValueError if features are so large that round-off exceeds lambda.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
        env, pulls = trial.env, trial.env.clients * trial.horizon
        condition = float(np.square(env.features).sum(axis=2).max()) * pulls / float(self.ridge)
        if condition > LARGEST_CONDITION:
            raise ValueError(
                f"features must have squared norms of at most {LARGEST_CONDITION:g} ridge / (clients x "
                f"horizon), or round-off exceeds the ridge parameter; for {self.name} with ridge = "
                f"{self.ridge:g} and {pulls} pulls they exceed it {condition / LARGEST_CONDITION:.3g} times. "
                "Divide the features by a constant, or use a larger ridge."
            )
        super().play(trial)

    def model(self, env: LinearEnvironment, rows: int, width: float | None = None) -> Model:
        """Return a model of so many rows without observations, with a constant width or the radius."""
        count = blocks(self.parameters, env)
        log_term = 2.0 * (math.log(rows * count) - math.log(self.delta))
        bias = math.sqrt(self.ridge) * (env.s if self.s is None else self.s)
        sigma = env.sigma if self.sigma is None else self.sigma
        return empty_model(env, rows, count, self.ridge, sigma, log_term, bias, width)


def empty_model(
    env: LinearEnvironment,
    rows: int,
    count: int,
    weight: float,
    sigma: float,
    log_term: float,
    bias: float,
    width: float | None = None,
) -> Model:
    """Return a model without observations, with lambda = weight and ``count`` blocks."""
    first = radius(0.0, sigma, log_term, bias) if width is None else width
    return Model(
        features=np.array(env.features),
        ridge=ridge(rows, count, env.dim, weight),
        width=np.full((rows, count), first),
        confidence=Confidence(width is None, sigma, log_term, bias),
    )


@inlined
def best_arm(model, r, i):
    """Return the arm of client i with the largest upper bound in row r."""
    estimates, features, width = model.ridge, model.features, model.width
    best, top = 0, -np.inf
    for a in range(features.shape[1]):
        b = block_of(width, a)
        mean, deviation = predict(estimates, r, b, features, i, a)
        value = mean + width[r, b] * deviation
        if value > top:
            best, top = a, value
    return best
