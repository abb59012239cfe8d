"""Exchange of levels: against listed candidates, known determinants, and a bound that is one."""

import itertools
import re

import numpy as np
import pytest
from exact_levels import true_efficiency

import optdesign as od
from optdesign.runs import main_effects
from optdesign.runs.level_exchange import CHANGE, climb_levels, perturb_and_climb
from optdesign.runs.main_effects import Bounded

MANY = 1 << 60
"""More visits than any climb makes."""

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


@pytest.mark.parametrize("n", LARGEST)
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
    bounded, rng = Bounded(model), np.random.default_rng(1)
    settings = np.column_stack([rng.integers(0, size, size=8) for size in bounded.sizes])
    z = bounded.coordinates(settings)
    d = z.shape[1]
    weights, inverse = np.ones(8 + d), np.zeros((1, d, d))
    fixed = bounded.values, bounded.sizes, bounded.first
    climb_levels(*fixed, settings, z, weights, inverse, 0, 0, MANY)
    weights[8:] = 0.0
    value, row, idle = climb_levels(*fixed, settings, z, weights, inverse, 0, 0, MANY)
    assert idle == 8
    kept = settings.copy(), z.copy(), inverse.copy()
    value, perturbations, row, idle = perturb_and_climb(
        *fixed, settings, z, weights, inverse, *kept, value, rng.random((3, 6)), MANY
    )
    assert (perturbations, row, idle) == (3, 0, 0)
    settings, z, inverse = kept
    assert np.array_equal(z, bounded.coordinates(settings))
    assert np.allclose(inverse[0] @ (z[:8].T @ z[:8]), np.eye(d), atol=1e-9)
    x = model.features(settings)
    assert value - bounded.log_scale == pytest.approx(np.linalg.slogdet(x.T @ x)[1], abs=1e-9)


@pytest.mark.kernels
def test_a_climb_in_slices_is_the_climb_in_one_piece():
    """The inverse is computed anew for every slice, so that the two agree to round-off."""
    model = od.MainEffects({name: ["x", "y", "z"] for name in "abcd"}, runs=14)
    bounded, rng = Bounded(model), np.random.default_rng(2)
    fixed = bounded.values, bounded.sizes, bounded.first
    given = np.column_stack([rng.integers(0, 3, size=14) for _ in range(4)])
    found = []
    for most in (MANY, 1, 5):
        settings, z = given.copy(), bounded.coordinates(given)
        d = z.shape[1]
        weights, inverse = np.ones(14 + d), np.zeros((1, d, d))
        row, idle, slices = 0, 0, 0
        while idle < 14:
            value, row, idle = climb_levels(*fixed, settings, z, weights, inverse, row, idle, most)
            slices += 1
        assert (slices == 1) == (most == MANY)
        found.append(value)
        kept, draws = (settings.copy(), z.copy(), inverse.copy()), rng.random((2, 6))
        _, perturbations, _, rest = perturb_and_climb(
            *fixed, settings, z, weights, inverse, *kept, value, draws, min(most, 13)
        )
        assert perturbations == 0  # a climb visits every run at least once
        assert rest < 14
    assert found == pytest.approx([found[0]] * 3, abs=1e-9)


@pytest.mark.kernels
def test_changes_and_refreshes_count_as_work_of_a_slice():
    """A visit that changes many levels is far more work than a visit that changes none."""
    model = od.MainEffects({f"f{j}": [-1, 1] for j in range(12)}, runs=60)
    bounded, rng = Bounded(model), np.random.default_rng(3)
    given = rng.integers(0, 2, size=(60, 12))
    z = bounded.coordinates(given)
    d = z.shape[1]
    settings, weights, inverse = given.copy(), np.ones(60 + d), np.zeros((1, d, d))
    fixed = bounded.values, bounded.sizes, bounded.first
    _, row, _ = climb_levels(*fixed, settings, z, weights, inverse, 0, 0, 50)
    changes = int((settings != given).sum())
    assert 0 < row < 50
    assert row + CHANGE * changes < 50 + 1 + CHANGE * 12


def test_a_search_that_is_cut_in_the_middle_of_climbs_returns_what_it_found():
    """One climb takes longer than the limit here, and every slice of it is shorter."""
    model = od.MainEffects({f"f{j}": [str(i) for i in range(6)] for j in range(24)}, runs=400)
    runs = od.exact(model, time_limit=0.02)
    assert runs.rank == 121
    assert 0 < runs.efficiency <= 1
    assert runs.status is od.RunStatus.TIME_LIMIT


@pytest.mark.kernels
def test_search_ends_if_changes_that_seem_to_gain_lower_the_determinant():
    """Weights of 1e6 per run make the predicted gains wrong, as round-off does for singular information."""
    model = od.MainEffects({name: [-1, 0, 1] for name in "abc"}, runs=60, degree=2)
    bounded, rng = Bounded(model), np.random.default_rng(0)
    settings = rng.integers(0, 3, size=(60, 3))
    z = bounded.coordinates(settings)
    d = z.shape[1]
    weights, inverse = np.concatenate([np.full(60, 1e6), np.zeros(d)]), np.zeros((1, d, d))
    before = np.linalg.slogdet(z[:60].T @ z[:60])[1] + d * np.log(1e6)
    fixed = bounded.values, bounded.sizes, bounded.first
    value, row, idle = climb_levels(*fixed, settings, z, weights, inverse, 0, 0, MANY)
    assert (row, idle) == (0, 60)
    assert value <= before
    assert value == pytest.approx(np.linalg.slogdet(z[:60].T @ z[:60])[1] + d * np.log(1e6), abs=1e-9)
    assert np.array_equal(z, bounded.coordinates(settings))


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


def test_only_the_least_work_is_begun_after_the_time_limit(monkeypatch):
    """It is the work of the two refreshes, without which the runs may lose rank."""
    slices = []
    climb = main_effects.climb_levels

    def recorded(*args):
        slices.append(args[-1])
        return climb(*args)

    monkeypatch.setattr(main_effects, "climb_levels", recorded)
    model = od.MainEffects({f"f{j}": list("abcdefgh") for j in range(8)}, runs=80)
    runs = od.exact(model, time_limit=1e-9)
    assert runs.status is od.RunStatus.TIME_LIMIT
    assert runs.rank == model.n_parameters
    assert runs.efficiency > 0
    assert set(slices) == {2 * (80 + 2 * model.n_parameters)}


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
