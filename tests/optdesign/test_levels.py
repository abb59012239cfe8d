"""Exchange of levels: against listed candidates, known determinants, and a bound that is one."""

import itertools
import re

import numpy as np
import pytest

import optdesign as od
from optdesign.levels import Bounded, climb_levels, kick_levels

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
    climb_levels(*fixed, settings, z, weights, inverse)
    weights[8:] = 0.0
    value = climb_levels(*fixed, settings, z, weights, inverse)
    value = kick_levels(*fixed, settings, z, weights, inverse, value, rng.random((3, 6)))
    assert np.array_equal(z, bounded.coordinates(settings))
    assert np.allclose(inverse[0] @ (z[:8].T @ z[:8]), np.eye(d), atol=1e-9)
    x = model.features(settings)
    assert value - bounded.log_scale == pytest.approx(np.linalg.slogdet(x.T @ x)[1], abs=1e-9)


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
        (({"a": [1, 2]}, 2.5), ValueError, "runs must be a whole number of at least 1; got 2.5"),
    ],
)
def test_mistakes_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        od.MainEffects(*arguments)
