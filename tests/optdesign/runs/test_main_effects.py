"""Exchange of levels: against listed candidates, known determinants, and a bound that is one."""

import itertools
import re

import numpy as np
import pytest
from exact_levels import true_efficiency

import optdesign as od
from optdesign.runs.main_effects import Bounded, level_moves
from optdesign.runs.rank_two import IDLE

LARGEST = {
    3: 4,
    4: 16,
    5: 48,
    6: 160,
    7: 576,
    8: 4096,
    9: 14336,
    10: 73728,
    11: 327680,
    12: 2985984,
    13: 14929920,
}
"""Maximal determinants of matrices of ones and minus ones (OEIS A003433)."""


@pytest.mark.parametrize("n", [pytest.param(n, marks=[pytest.mark.slow] * (n > 8)) for n in LARGEST])
def test_saturated_two_level_designs_have_the_largest_determinant(n):
    model = od.MainEffects({f"f{j}": [-1, 1] for j in range(n - 1)}, runs=n)
    runs = od.exact(model, tries=20)
    assert np.exp(runs.log_det / 2) == pytest.approx(LARGEST[n], rel=1e-9)
    assert runs.efficiency == pytest.approx(LARGEST[n] ** (2 / n) / n, rel=1e-9)
    assert runs.efficiency <= 1


def listed(model):
    """All combinations of levels as a problem."""
    every = np.array(list(itertools.product(*(range(len(v)) for v in model.factors.values()))))
    return od.DesignProblem(model.features(every), budgets=model.runs)


@pytest.mark.parametrize(
    "model",
    [
        od.MainEffects({"a": [-1, 0, 1], "b": ["x", "y", "z"], "c": [0, 10]}, runs=9),
        od.MainEffects({"a": [1, 2, 4, 8], "b": [3, 5, 6]}, runs=7, degree=2),
        od.MainEffects({"a": list("abcd"), "b": list("abcde")}, runs=8),
    ],
    ids=repr,
)
def test_the_bound_is_the_optimum_over_all_combinations_and_the_runs_are_as_good(model):
    problem = listed(model)
    optimum = od.solve(problem, tol=1e-9)
    bounded = Bounded(model)
    bound = model.n_parameters * np.log(model.runs) + bounded.slack - bounded.log_scale
    assert bound == pytest.approx(optimum.log_det, abs=1e-7)
    ours, theirs = od.exact(model), od.exact(problem)
    assert ours.log_det == pytest.approx(theirs.log_det, abs=1e-8)
    assert ours.efficiency == pytest.approx(theirs.efficiency, rel=1e-5)
    assert ours.counts.sum() == model.runs


def some_levels(rng):
    """Draw levels of a factor: categories, years, small steps far from zero, or several magnitudes."""
    size = int(rng.integers(2, 7))
    steps = np.arange(size)
    drawn = [
        list("abcdef"[:size]),
        (2018 + steps).tolist(),
        (rng.uniform(200, 400) + 0.1 * steps).tolist(),
        (10 ** rng.uniform(-3, 7) + steps).tolist(),
        (10.0 ** rng.uniform(-9, 9, size=size)).tolist(),
        (1e8 * rng.normal() + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=size)).tolist(),
        np.linspace(-1, 1, size).tolist(),
    ]
    return drawn[rng.integers(len(drawn))]


@pytest.mark.parametrize("seed", range(60))
def test_efficiency_is_a_lower_bound_and_log_det_exact_for_ugly_levels(seed):
    rng = np.random.default_rng(seed)
    factors = {name: some_levels(rng) for name in "uvw"[: rng.integers(1, 4)]}
    degree = int(rng.integers(1, 5))
    least = od.MainEffects(factors, runs=1000, degree=degree).n_parameters
    model = od.MainEffects(factors, runs=least + int(rng.integers(0, 9)), degree=degree)
    runs = od.exact(model, tries=1)
    efficiency, log_det = true_efficiency(model, runs)
    assert efficiency * (1 - 1e-8) <= runs.efficiency <= efficiency * (1 + 1e-13)
    assert runs.log_det == pytest.approx(log_det, rel=1e-12, abs=1e-11)
    assert runs.rank == model.n_parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "degree"),
    [
        ([2018, 2019, 2020, 2021, 2022], 3),
        ([2018, 2019, 2020, 2021, 2022], 4),
        ([300, 300.1, 300.2, 300.3], 3),
        ([1e6, 1e6 + 1, 1e6 + 2], 2),
        ([1000.0 + i for i in range(8)], 4),
    ],
    ids=str,
)
def test_levels_far_from_zero_have_the_design_of_centred_ones(levels, degree):
    centred = [round(10 * (v - levels[0])) / 10 for v in levels]
    far, near = (
        od.exact(od.MainEffects({"a": v, "b": v}, runs=14, degree=degree)) for v in (levels, centred)
    )
    assert far.efficiency == pytest.approx(near.efficiency, rel=1e-9)
    assert (
        far.efficiency
        <= true_efficiency(od.MainEffects({"a": levels, "b": levels}, 14, degree=degree), far)[0]
    )
    assert far.log_det == pytest.approx(near.log_det, rel=1e-9)
    assert f"rank {far.rank} of {far.rank}" in str(far)


def test_the_table_has_the_settings_in_their_own_units():
    runs = od.exact(od.MainEffects({"temp": [20, 60], "cat": ["old", "new"]}, runs=4))
    table = runs.table()
    assert list(table.columns) == ["run", "temp", "cat"]
    assert sorted(zip(table["temp"].tolist(), table["cat"].tolist(), strict=True)) == [
        (20, "new"), (20, "old"), (60, "new"), (60, "old"),
    ]  # fmt: skip


def test_the_outcome_does_not_depend_on_the_number_of_jobs():
    model = od.MainEffects({f"f{j}": list("abc") for j in range(5)}, runs=14)
    one, two = (od.exact(model, tries=4, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.problem.candidates, two.problem.candidates)
    assert np.array_equal(one.counts, two.counts)
    assert one.tries == two.tries == 4


@pytest.mark.kernels
def test_changes_of_levels_keep_rows_inverse_and_determinant_together():
    model = od.MainEffects({"a": [-1, 0, 1], "b": ["x", "y", "z"], "c": [0, 10]}, runs=8, degree=2)
    bounded = Bounded(model)
    moves, rng = level_moves(bounded, 8), np.random.default_rng(1)
    state = moves.start(rng)
    moves.climb(state, 1e9)
    value = moves.refresh(state)
    for _ in range(5):
        moves.perturb(state, rng)
        new, _, complete = moves.climb(state, 1e9)
        assert complete
        value = max(value, new)
        assert np.allclose(state.z, moves.levels.rows(state.settings), atol=1e-12)
        assert np.allclose(state.inverse @ (state.z.T @ state.z), np.eye(moves.levels.rank), atol=1e-8)
        x = model.features(state.settings)
        assert new - bounded.log_scale == pytest.approx(np.linalg.slogdet(x.T @ x)[1], abs=1e-8)


@pytest.mark.kernels
def test_a_climb_in_slices_is_the_climb_in_one_piece():
    model = od.MainEffects({name: ["x", "y", "z"] for name in "abcd"}, runs=14)
    moves = level_moves(Bounded(model), 14)
    found = []
    for most in (1e9, 1.0, 1e3):
        state, slices = moves.start(np.random.default_rng(2)), 0
        while state.place[IDLE] < 14:
            moves.climb(state, most)
            slices += 1
        assert (slices == 1) == (most == 1e9)
        found.append(moves.refresh(state))
    assert found == [found[0]] * 3


def test_a_start_without_chance_has_full_rank():
    model = od.MainEffects({"a": [1, 2, 4, 8], "b": list("xyz"), "c": [0, 1]}, runs=7, degree=3)
    moves = level_moves(Bounded(model), 7)
    assert moves.refresh(moves.spanning()) > -np.inf


def test_a_search_that_is_cut_in_the_middle_of_climbs_returns_what_it_found():
    """One climb takes longer than the limit here, and every slice of it is shorter."""
    model = od.MainEffects({f"f{j}": [str(i) for i in range(6)] for j in range(24)}, runs=400)
    runs = od.exact(model, time_limit=0.02)
    assert runs.rank == 121
    assert 0 < runs.efficiency <= 1
    assert runs.status is od.RunStatus.TIME_LIMIT


def test_two_to_the_fifty_combinations_are_no_obstacle():
    model = od.MainEffects({f"f{j}": [0, 1] for j in range(50)}, runs=60)
    assert model.n_candidates == 2**50
    runs = od.exact(model, tries=1)
    assert runs.rank == 51
    assert 0.85 < runs.efficiency < 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (({}, 4), TypeError, "factors must map names to levels; got dict"),
        (
            ({"a": [1, 1]}, 4),
            ValueError,
            "factors must have two levels or more, all different; 'a' has [1, 1]",
        ),
        (({"a": [1, "x"]}, 4), ValueError, "levels must be all numbers or all text; 'a' has [1, 'x']"),
        (({"a": [1, 2], "b": list("xyz")}, 3), ValueError, "4 parameters need at least 4 runs; 3 were given"),
        (
            ({1: [0, 1], "1": [2, 3]}, 4),
            ValueError,
            "factors must have names that differ as text; got 1, '1'. Rename one of them",
        ),
        (({"1": [0, 1]}, 4), ValueError, "parameters with names that differ; '1' occurs twice"),
        (({"a": ["x", "y"], "a[x]": [0, 1]}, 4), ValueError, "differ; 'a[x]' occurs twice"),
        (({"a": "xy"}, 4), TypeError, "levels of 'a' must be a list; got 'xy'"),
        (({"a": 3}, 4), TypeError, "levels of 'a' must be a list; got 3"),
        (({"a": [10**18, 10**18 + 1]}, 4), ValueError, "levels must differ in double precision; 'a' has"),
        (({"a": [0, 1e61]}, 4), ValueError, "levels must have powers between 1e-250 and 1e+60 in size; 'a'"),
        (({"a": [0, 1e-260]}, 4), ValueError, "'a' has levels up to 1e-260 and power 1. Change the unit"),
        (({"a": [1, 2]}, 2.5), ValueError, "runs must be a whole number of at least 1; got 2.5"),
    ],
)
def test_mistakes_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        od.MainEffects(*arguments)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_a_time_limit_that_has_passed_still_leaves_full_rank(levels: int) -> None:
    """The first climb from a start without full rank is not cut short."""
    for seed in range(20):
        model = od.MainEffects(
            {"a": list(range(levels)), "b": ["x", "y"]}, runs=levels + 2, degree=levels - 1
        )
        runs = od.exact(model, seed=seed, tries=1, time_limit=1e-9)
        assert runs.rank == levels + 1
        assert runs.efficiency > 0


def test_the_rank_decision_of_many_parameters_is_made_on_demand() -> None:
    """The decision for the rounded features takes longer than a search with a time limit."""
    levels = [-1, 1]
    model = od.MainEffects({f"f{k}": levels for k in range(760)}, runs=800)
    runs = od.exact(model, time_limit=0.05)
    assert (runs.rank, runs.table()["f0"].shape) == (761, (800,))
    assert "span" not in vars(runs.problem)
    small = od.exact(od.MainEffects({"a": levels, "b": levels}, runs=4))
    assert small.problem.rank == 3
    assert small.certificate.gap < 1e-9
