"""Control without learning: every client always pulls the arm with its longest feature vector.

    arm_i = min argmax_a ||x_{i,a}||

Nothing is estimated and nothing is sent, so the regret measures how far norms alone identify the best arms
of an instance. An algorithm that does not beat this control on an instance shows no benefit of learning
there. Norms are compared up to ``TIE``; the lowest arm wins a tie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandits.trials.trial import Trial

TIE = 1e-12
"""Norms within this fraction of the largest norm of a client count as equal; it covers round-off."""


@dataclass(frozen=True)
class LongestFeature:
    """Pull the arm with the longest feature vector in every round.

    See Also
    --------
    bandits.LocalUCB : Use the rewards of every client.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.LinearEnvironment([[[1.0, 0.0], [0.0, 2.0]]], [[0.5, 0.0], [0.0, 0.1]])
    >>> run = bandits.simulate(bandits.LongestFeature(), env, horizon=100, trials=1)
    >>> round(float(run.mean[-1]), 9), int(run.uploaded[0] + run.downloaded[0])
    (30.0, 0)
    """

    @property
    def name(self) -> str:
        """Class name."""
        return type(self).__name__

    def play(self, trial: Trial) -> None:
        """Play one trial. No reward is drawn, because no decision depends on one.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
        arms = longest(trial.env.features)
        trial.clock.advance(np.zeros(trial.env.means.shape, dtype=np.int64), arms, trial.horizon)


def longest(features: np.ndarray) -> np.ndarray:
    """Return the lowest arm with the longest feature vector of every client, (M,).

    >>> longest(np.array([[[3.0, 4.0], [5.0, 0.0], [1.0, 1.0]]])).tolist()
    [0]
    """
    # Scaled to entries of at most 1, so that no square overflows.
    norms = np.linalg.norm(features / np.abs(features).max(axis=(1, 2), keepdims=True), axis=2)
    return np.argmax(norms >= (1.0 - TIE) * norms.max(axis=1, keepdims=True), axis=1)
