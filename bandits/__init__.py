"""Federated linear contextual bandits: Fed-PE, its variants and other algorithms, simulated.

>>> import bandits
>>> env = bandits.environments.authors(clients=10, arms=4, dim=2, seed=0)
>>> run = bandits.simulate(bandits.FedPE(), env, horizon=2**10, trials=2, seed=0)
>>> run.regret.shape == (2, len(run.times)), int(run.times[-1])
(True, 1024)
"""

from bandits import environments, plotting, protocol, theory
from bandits.environments import LinearEnvironment, noise
from bandits.policies.collaborative import CollaborativeFedPE
from bandits.policies.collinearity import collinear_classes
from bandits.policies.delb import DELB
from bandits.policies.design import Design, ascent
from bandits.policies.dislinucb import DisLinUCB
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.feducb import FedUCB
from bandits.policies.lints import LinTS
from bandits.policies.linucb import LinUCB
from bandits.policies.local_ucb import LocalUCB
from bandits.policies.longest import LongestFeature
from bandits.policies.phased import Phased, ceiling, confident, efficient
from bandits.policies.stepwise import Stepwise
from bandits.simulation.run import Run, concatenate, load
from bandits.simulation.runner import simulate
from bandits.theory import confidence, schedules
from bandits.trials.trial import Policy, Record, Trial

__all__ = [
    "DELB",
    "CollaborativeFedPE",
    "Design",
    "DisLinUCB",
    "EnhancedFedPE",
    "FedPE",
    "FedUCB",
    "LinTS",
    "LinUCB",
    "LinearEnvironment",
    "LocalUCB",
    "LongestFeature",
    "Phased",
    "Policy",
    "Record",
    "Run",
    "Stepwise",
    "Trial",
    "ascent",
    "ceiling",
    "collinear_classes",
    "concatenate",
    "confidence",
    "confident",
    "efficient",
    "environments",
    "load",
    "noise",
    "plotting",
    "protocol",
    "schedules",
    "simulate",
    "theory",
]
