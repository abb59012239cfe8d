"""Random problems for tests of candidates that are larger than memory, and their comparison with memory."""

from typing import Any, NamedTuple

import numpy as np

import optdesign as od
from optdesign.problem.large import LargeProblem


class Drawn(NamedTuple):
    """The arguments of a problem."""

    x: np.ndarray
    groups: np.ndarray | None
    parameter_blocks: np.ndarray | None
    budgets: Any


def drawn_problem(seed: int) -> Drawn:
    """Return a problem with groups, parameter blocks, rank deficiencies, units of forty orders of magnitude,
    float32 or float64, and names as labels, each of them in some of the seeds."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(200, 1500)), int(rng.integers(1, 6))
    family = seed % 4
    if family == 0:
        x = rng.normal(size=(n, d))
    elif family == 1:
        x = np.vander(rng.uniform(-1, 1, n), d, increasing=True)
    elif family == 2:
        x = rng.choice([-1.0, 1.0], size=(n, d))
    else:
        x = rng.standard_cauchy(size=(n, d)) + 3.0
    if seed % 3 == 0 and d > 1:  # of deficient rank
        x[:, -1] = x[:, 0] if seed % 2 else 0.0
    if seed % 5 == 0:  # units
        x = x * 10.0 ** rng.integers(-20, 21, d)
    elif seed % 5 == 1:
        x = x.astype(np.float32)
    m, k = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    names = np.array([f"site {i}" for i in range(m)], dtype=object)
    groups = None if m == 1 else np.concatenate([np.arange(m), rng.integers(0, m, n - m)])
    blocks = None if k == 1 else rng.integers(0, k, n)
    budgets: Any = None if seed % 2 else rng.uniform(0.5, 20, m)
    if groups is not None and seed % 7 < 3:
        groups = names[groups]
        budgets = budgets if budgets is None else dict(zip(names.tolist(), budgets, strict=True))
    return Drawn(x, groups, blocks, budgets)


def assert_same_optimum(large: od.DesignResult, memory: od.DesignResult) -> None:
    """Assert that two certified designs of one problem agree within both certificates."""
    assert large.rank == memory.rank
    assert large.converged
    assert memory.converged
    # log Det is within the gap of the optimum for both; the rest is the rounding of log Det itself.
    rounding = 1e-9 * max(1.0, abs(memory.log_det))
    assert large.log_det - memory.log_det <= memory.gap + rounding
    assert memory.log_det - large.log_det <= large.gap + rounding


def assert_design_of_memory(large: od.DesignProblem, small: od.DesignProblem) -> None:
    """Assert that a large problem has the candidates, the rank and the optimum of one in memory."""
    assert isinstance(large, LargeProblem)
    for name in ("names", "group_names", "parameter_block_names", "n_candidates", "rank"):
        assert getattr(large, name) == getattr(small, name)
    np.testing.assert_allclose(large.fetch(np.arange(large.n_candidates)).x, small.source.whole(), rtol=1e-12)
    result = od.solve(large)
    assert od.certify(small, result.weights).relative_gap <= 1e-6
    assert_same_optimum(result, od.solve(small))
