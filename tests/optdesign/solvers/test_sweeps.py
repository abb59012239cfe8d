"""Algorithm 3 sweep by sweep: its certificate, its count, and its limits."""

from __future__ import annotations

import numpy as np
import pytest

import optdesign as od
from optdesign.examples import authors_features


@pytest.mark.parametrize("make", [od.DesignProblem.disjoint, od.DesignProblem.shared])
@pytest.mark.parametrize("gap", [10.0, 0.1, 1e-4])
def test_the_gap_is_reached_in_the_fewest_sweeps(make, gap):
    problem = make(authors_features(20, 6, 3))
    result = od.coordinate_ascent(problem, gap=gap)
    assert result.converged
    assert od.certify(problem, result.weights).gap == result.gap <= gap
    assert result.iterations == len(result.history.gaps)
    assert np.all(result.history.gaps[:-1] > gap)
    if result.iterations:
        assert od.certify(problem, problem.uniform()).gap > gap
        assert result.history.gaps[-1] == result.gap
    else:
        np.testing.assert_array_equal(result.weights, problem.uniform())


def test_the_number_of_sweeps_is_limited():
    problem = od.DesignProblem.disjoint(authors_features(20, 6, 3))
    result = od.coordinate_ascent(problem, gap=1e-9, max_sweeps=3)
    assert (result.status, result.iterations) == (od.Status.MAX_ITER, 3)
    assert result.gap == od.certify(problem, result.weights).gap


def test_it_ends_where_double_precision_ends():
    result = od.coordinate_ascent(od.DesignProblem.disjoint(authors_features(6, 3, 2)), gap=1e-300)
    assert result.status in (od.Status.STALLED, od.Status.MAX_ITER)
    assert result.gap < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": 0.0}, "gap must be positive and finite; got 0.0"),
        ({"gap": np.inf}, "gap must be positive"),
        ({"max_sweeps": 0}, "max_sweeps must be an integer, at least 1; got 0"),
        ({"max_sweeps": 1.5}, "max_sweeps must be an integer"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        od.coordinate_ascent(od.DesignProblem(np.eye(2)), **options)
