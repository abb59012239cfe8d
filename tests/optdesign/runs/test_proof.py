"""Branch and bound: proofs against the enumeration of all whole runs."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from benchmark_scripts import load
from hunt.enumeration import best_gain
from hunt.truth import Truth, instance
from test_exact import all_designs, log_det, tiny

import optdesign as od
from optdesign.runs import proof
from optdesign.runs.proof import prove

enumeration = load(Path(__file__).parents[3] / "benchmarks" / "enumeration.py")


def check(seed: int) -> None:
    problem = enumeration.drawn(seed)
    runs = od.exact(problem, seed=seed, tries=1, prove=True, time_limit=10)
    assert runs.status in (od.RunStatus.PROVED, od.RunStatus.BOUND)
    assert runs.log_det == pytest.approx(enumeration.largest_log_det(problem), abs=1e-7)
    assert runs.log_det <= runs.bound <= runs.log_det + 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_proved_runs_are_the_best_of_all(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 212))
def test_proved_runs_are_the_best_of_all_in_many_problems(seed: int) -> None:
    check(seed)


@pytest.mark.kernels
def test_a_proof_from_poor_runs_finds_the_best() -> None:
    problem = enumeration.drawn(1)
    poor = np.zeros(problem.n_candidates, np.int64)
    poor[: problem.rank] = 1
    poor[0] += int(problem.budgets[0]) - problem.rank
    counts, left = prove(problem, poor, lambda: False)
    assert left == 0
    assert od.certify(problem, counts).log_det == pytest.approx(
        enumeration.largest_log_det(problem), abs=1e-7
    )


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8])
def test_groups_and_parameter_blocks_are_proved(seed: int) -> None:
    problem = tiny(seed)
    best = max(log_det(problem, counts) for counts in all_designs(problem))
    assert best > -math.inf
    runs = od.exact(problem, prove=True)
    assert runs.status in (od.RunStatus.PROVED, od.RunStatus.BOUND)
    assert runs.log_det == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8])
def test_proofs_do_not_depend_on_the_order_of_candidates_or_on_pauses(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two slices of the work at a node, the clock is read."""
    monkeypatch.setattr("optdesign.runs.proof.SLICE", 10.0)
    p, order = tiny(seed), np.random.default_rng(seed).permutation(7)
    mixed = od.DesignProblem(p.candidates[order], p.groups[order], p.parameter_blocks[order], p.budgets)
    best = max(log_det(p, counts) for counts in all_designs(p))
    runs, reads = od.exact(mixed, tries=1), 0

    def stopped() -> bool:
        nonlocal reads
        reads += 1
        return False

    counts, left = prove(mixed, runs.counts, stopped)
    assert left == 0
    assert np.array_equal(np.bincount(mixed.groups, counts), p.budgets)
    assert od.certify(mixed, counts).log_det == pytest.approx(best, abs=1e-7)
    assert reads > 1


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


@pytest.mark.parametrize("seed", [108, 128, 161])
def test_nearly_singular_runs_are_proved_only_if_round_off_allows_it(seed: int) -> None:
    """The runs of one group are equal up to 1e-9 or less, so log det in doubles has few correct digits."""
    rng = np.random.default_rng([seed, 99])
    distance = 10.0 ** -rng.uniform(3, 14)
    sizes = rng.integers(2, 5, size=2)
    base = rng.normal(size=3)
    near = base + distance * rng.normal(size=(sizes[0], 3))
    if rng.random() < 0.3:
        near[1] = near[0]
    x = np.vstack([near, rng.normal(size=(sizes[1], 3))])
    groups, budgets = np.repeat([0, 1], sizes), [int(rng.integers(2, 4)), 1]
    runs = od.exact(od.DesignProblem(x, groups, budgets=budgets), seed=seed, prove=True, tries=2)
    gain = best_gain(Truth(instance(x, groups, budgets=budgets)), runs.counts)
    assert runs.bound >= runs.log_det + float(gain.mid()) - 1e-7


@pytest.mark.parametrize("prove", [False, True])
def test_the_bound_of_optimal_runs_holds_for_other_runs(prove: bool) -> None:
    """Other runs have a log det that is larger by 9.6e-8, which is a D-efficiency of 1 + 1e-9."""
    half, root = 1e-6, np.sqrt(0.5)
    found = np.diag([1 + 2 * half, 1 - 2 * half])
    others = (1 + 4.8e-10) * np.array([[root, root], [root, -root]])
    rows = np.vstack([np.kron(np.eye(50), part) for part in (found, others)])
    p = od.DesignProblem(rows, budgets=100)
    runs = od.exact(p, tries=1, prove=prove)
    assert runs.status is od.RunStatus.BOUND
    assert runs.bound >= od.Runs.given(p, np.repeat([0, 1], 100)).log_det - 1e-8
    assert runs.bound == runs.log_det + runs.certificate.gap


def test_an_incomplete_proof_keeps_the_reason_why_the_search_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "MOST_NODES", 3)
    x = np.random.default_rng(1).normal(size=(30, 2))
    p = od.DesignProblem(x / np.linalg.norm(x, axis=1)[:, None], budgets=7)
    runs = od.exact(p, prove=True, tries=10**6, time_limit=2)
    assert runs.bound > runs.log_det + 1e-8
    assert runs.tries < 10**6
    assert runs.status is od.RunStatus.TIME_LIMIT
