"""The paper's figures, by name. Each is an experiment with the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bandits import environments
from bandits.config import Experiment
from bandits.policies.collaborative import CollaborativeFedPE
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.local_ucb import LocalUCB
from bandits.trial import Policy


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: what to run, and what to write above it."""

    title: str
    experiment: Callable[[], Experiment]


def fig1a() -> Experiment:
    """Figure 1(a): four algorithms, ten trials, M = 100, K = 10, d = 3, T = 2^17, authors' instance."""
    policies: dict[str, Policy] = {
        "Fed-PE": FedPE(),
        "Enhanced Fed-PE": EnhancedFedPE(),
        "Collaborative": CollaborativeFedPE(),
        "Local UCB": LocalUCB(),
    }
    return Experiment(environments.authors(100, 10, 3, seed=0), policies, 2**17, 10, 0)


FIGURES = {"fig1a": Figure("Figure 1(a): synthetic data, M = 100, K = 10, d = 3", fig1a)}
"""Every figure that can be reproduced, by name."""
