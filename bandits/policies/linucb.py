"""Centralised LinUCB: the server sees every reward at once and decides for all clients.

Li, Chu, Langford, Schapire: A Contextual-Bandit Approach to Personalized News Article Recommendation, WWW
2010, for parameters of each arm's own; Abbasi-Yadkori, Pal, Szepesvari: Improved Algorithms for Linear
Stochastic Bandits, NeurIPS 2011, for shared ones and for the default width. Client i pulls the arm with the
largest

    x' theta-hat + alpha ||x||_{A^-1}                   (see bandits.policies.ridge for theta-hat and A)

The width alpha is a constant, as in the first paper, or, by default, the radius of the second at confidence
1 - delta / B, so that the intervals of all B parameter vectors hold at all times with probability 1 - delta.

It shows the regret without limits on communication: clients send their features at the start (K d
scalars each), and in every round each sends a reward and is sent an arm. All clients decide before any of
them observes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bandits.checks import is_number
from bandits.policies.linear import LinearPolicy, Model, best_arm
from bandits.policies.ridge import learn
from bandits.trials.trial import Trial


@dataclass(frozen=True)
class LinUCB(LinearPolicy):
    """Centralised LinUCB. Further options are those of :class:`bandits.policies.linear.LinearPolicy`.

    Parameters
    ----------
    alpha : float, optional
        Constant width. Default: the radius of the confidence ellipsoid, which grows with the data.

    See Also
    --------
    bandits.LinTS : Sample instead of using an upper bound.
    bandits.DisLinUCB : Synchronise rarely.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=3, arms=2, dim=2)
    >>> bandits.simulate(bandits.LinUCB(), env, 50, trials=1).policy
    'LinUCB'
    """

    alpha: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and not (is_number(self.alpha) and 0.0 <= self.alpha < math.inf):
            raise ValueError(
                f"alpha must be finite and not negative; got {self.alpha}. Leave it out for the theory's."
            )

    def start(self, trial: Trial) -> Model:
        """Return the model before the first round. Every client sends its features."""
        trial.ledger.uploaded += trial.env.features.size
        return self.model(trial.env, 1, self.alpha)

    @staticmethod
    def choose(state, i, t, rng):  # noqa: ARG004
        """Return the arm with the largest upper bound."""
        return best_arm(state, 0, i)

    @staticmethod
    def observe(state, i, a, y):
        """Add an observation to the arm's block. Overwrites the state."""
        learn(state.ridge, state.width, state.confidence, 0, state.features, i, a, y)

    @staticmethod
    def synchronise(state, t, rng, sent):  # noqa: ARG004
        """Count a reward up and an arm down for every client. Adds to sent."""
        sent[0] += len(state.features)
        sent[1] += len(state.features)
