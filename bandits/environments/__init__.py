"""Environments: clients, arms, features, parameters and the noise of the rewards.

``linear`` has the class :class:`LinearEnvironment`; read it first. ``generators`` makes the instances of the
paper and random ones, ``ratings`` makes features and parameters from MovieLens-100K, and ``noise`` draws
rewards.
"""

from bandits.environments.generators import (
    authors,
    clusters,
    identical,
    lower_bound,
    movielens,
    random,
    synthetic,
)
from bandits.environments.linear import LinearEnvironment

__all__ = [
    "LinearEnvironment",
    "authors",
    "clusters",
    "identical",
    "lower_bound",
    "movielens",
    "random",
    "synthetic",
]
