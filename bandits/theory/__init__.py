"""Results of the paper as numbers: regret bounds, communication bounds, the lower bound.

``bounds`` has the theorems, with the total regret over all clients; read it first. ``confidence`` has the
widths of confidence intervals and ``schedules`` the lengths of phases.
"""

from bandits.theory.bounds import (
    Cost,
    communication_bound,
    enhanced_regret,
    fedpe_regret,
    lower_bound,
    phase_regret,
    regret_bound,
)

__all__ = [
    "Cost",
    "communication_bound",
    "enhanced_regret",
    "fedpe_regret",
    "lower_bound",
    "phase_regret",
    "regret_bound",
]
