"""Branch and bound: proofs against the enumeration of all whole runs."""

import itertools
import math
import re

import numpy as np
import pytest
from test_exact import all_designs, log_det, tiny

import optdesign as od
from optdesign.runs.proof import prove


def drawn(seed: int) -> od.DesignProblem:
    """Draw a problem of at most 30 candidates and 8 runs, few enough to enumerate."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    runs, size = int(rng.integers(d, 9)), int(rng.integers(d + 1, 31))
    while math.comb(size + runs - 1, runs) > 100_000:
        size -= 1
    x = rng.normal(size=(size, d)) if seed % 2 else rng.integers(-2, 3, size=(size, d)).astype(float)
    x[:d] += 3 * np.eye(d)
    return od.DesignProblem(x, budgets=runs)


def largest_log_det(problem: od.DesignProblem) -> float:
    """Return the largest log det of all whole runs of one group and block, by enumeration."""
    every = itertools.combinations_with_replacement(range(problem.n_candidates), int(problem.budgets[0]))
    best = -math.inf
    while len(part := np.array(list(itertools.islice(every, 20_000)))):
        x = problem.candidates[part]
        sign, value = np.linalg.slogdet(x.transpose(0, 2, 1) @ x)
        best = max(best, float(value[sign > 0].max(initial=-math.inf)))
    return best


def check(seed: int) -> None:
    problem = drawn(seed)
    runs = od.exact(problem, seed=seed, tries=1, prove=True, time_limit=10)
    assert runs.status in (od.RunStatus.PROVED, od.RunStatus.BOUND)
    assert runs.log_det == pytest.approx(largest_log_det(problem), abs=1e-7)
    assert runs.bound == runs.log_det


@pytest.mark.parametrize("seed", range(12))
def test_proved_runs_are_the_best_of_all(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 212))
def test_proved_runs_are_the_best_of_all_in_many_problems(seed: int) -> None:
    check(seed)


@pytest.mark.kernels
def test_a_proof_from_poor_runs_finds_the_best() -> None:
    problem = drawn(1)
    poor = np.zeros(problem.n_candidates, np.int64)
    poor[: problem.rank] = 1
    poor[0] += int(problem.budgets[0]) - problem.rank
    counts, left = prove(problem, poor, lambda: False)
    assert left == 0
    assert od.certify(problem, counts).log_det == pytest.approx(largest_log_det(problem), abs=1e-7)


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8])
def test_groups_and_parameter_blocks_are_proved(seed: int) -> None:
    problem = tiny(seed)
    best = max(log_det(problem, counts) for counts in all_designs(problem))
    assert best > -math.inf
    runs = od.exact(problem, prove=True)
    assert runs.status in (od.RunStatus.PROVED, od.RunStatus.BOUND)
    assert runs.log_det == pytest.approx(best, abs=1e-7)


def test_a_proof_that_is_stopped_states_what_can_be_gained() -> None:
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(60, 4)), budgets=9)
    start = od.round(od.solve(problem)).counts
    counts, left = prove(problem, start, lambda: True)
    assert left == math.inf
    assert np.array_equal(counts, start)
    runs = od.exact(problem, prove=True)
    assert runs.status is od.RunStatus.PROVED
    assert "efficiency at least 1" in str(runs)


def test_factors_without_a_list_are_refused() -> None:
    model = od.MainEffects({"a": [-1, 1], "b": [-1, 1]}, runs=5)
    with pytest.raises(ValueError, match=re.escape("prove must be False without a list of candidates")):
        od.exact(model, prove=True)
