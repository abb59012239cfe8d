"""The policies that have a confidence level delta."""

import bandits

LEARNERS = [
    bandits.FedPE,
    bandits.EnhancedFedPE,
    bandits.CollaborativeFedPE,
    bandits.LinUCB,
    bandits.LinTS,
    bandits.DELB,
    bandits.DisLinUCB,
    bandits.FedUCB,
]
