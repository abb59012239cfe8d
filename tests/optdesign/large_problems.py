"""Problems for the tests of methods: large groups, and groups on which sweeps are slow."""

import numpy as np
from structures import instances

import optdesign as od


def many(groups: int = 1, blocks: int = 1, n: int = 6000, dim: int = 5, seed: int = 0) -> od.DesignProblem:
    """Large groups of Gaussian candidates, in no order, with unequal budgets."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, groups, size=n), rng.integers(0, blocks, size=n)
    return od.DesignProblem(rng.normal(size=(n, dim)), *labels, budgets=1.0 + np.arange(groups))


def slow_for_sweeps() -> od.DesignProblem:
    return od.DesignProblem.disjoint(instances.features("same", 100, 10, 3))
