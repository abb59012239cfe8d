"""Weights that are zero but for round-off cost no pull, and those that carry a direction do."""

from __future__ import annotations

import numpy as np
import pytest

import bandits
from bandits.policies.design import Design, ascent
from bandits.protocol import ActiveArms
from optdesign import DesignProblem


def planned(active, policy):
    """Return the pulls of a phase of 2^10 for unit features in one dimension."""
    clients, arms = active.shape
    setting = policy.setting(clients, arms, 1, 4000, 1.0, 1.0)
    x = np.ones((clients, arms, 1))
    client, server = policy.client(x, setting), policy.server(setting)
    server.initialise(client.initialise(np.ones((clients, arms))))
    return server.design(ActiveArms(active)).pulls


@pytest.mark.parametrize("clients", [20, 1000])
def test_roundoff_of_the_design_costs_no_pull(clients):
    """With 1,000 clients round-off reaches 1e-13 of a client's budget: its size is that of 1 / g."""
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        active = rng.random((clients, 4)) < 0.6
        active[:, 0] = True
        problem = DesignProblem.disjoint(np.ones((*active.shape, 1)), active)
        weights = problem.to_grid(ascent(problem, 0.1).weights)
        roundoff = (weights > 0) & (weights < 1e-11)
        found += int(np.count_nonzero(roundoff))
        pulls = planned(active, bandits.FedPE(schedule=[1024, 4000]))
        np.testing.assert_array_equal(pulls > 0, (weights > 0) & ~roundoff)
    assert found > 0


def test_small_weights_that_carry_a_direction_or_a_whole_client_are_kept():
    weights = np.array([[1.0, 0.0], [1.0 - 1e-14, 1e-14]])
    rule = bandits.FedPE(design=lambda *_: Design(weights.ravel(), 0))
    assert planned(np.ones((2, 2), dtype=bool), rule)[1, 1] == 1
    small = bandits.FedPE(budgets=(1.0, 1e-13))
    assert np.all(planned(np.ones((2, 2), dtype=bool), small) > 0)
