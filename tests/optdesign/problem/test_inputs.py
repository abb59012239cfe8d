"""Numbers that double precision cannot represent, and rows whose coordinates it cannot."""

import numpy as np
import pytest

import optdesign as od

EYE = np.eye(2)


@pytest.mark.parametrize(
    "budgets", [2**53 + 1, [2**53 + 1], {0: 2**53 + 1}, np.array([2**53 + 1], np.uint64)]
)
def test_budgets_that_double_precision_would_round_are_refused(budgets):
    with pytest.raises(ValueError, match="budgets must fit double precision"):
        od.DesignProblem(EYE, budgets=budgets)
    assert od.exact(od.DesignProblem(EYE, budgets=2**53)).counts.sum() == 2**53


def test_columns_of_a_sorted_frame_of_candidates_are_refused():
    problem = od.DesignProblem([[1.0, 0.0], [1.0, 1.0], [1.0, 5.0]], budgets=3)
    result = od.solve(problem)
    frame = result.to_frame()
    assert od.certify(problem, frame["weight"]).efficiency > 0.99
    weights = frame.sort_values("weight")["weight"]
    for use in (
        lambda: od.certify(problem, weights),
        lambda: od.evaluate((problem, weights)),
        lambda: od.efficiency(problem, weights, best=result),
        lambda: od.sparsify(result, cost=weights),
        lambda: od.solve(problem, start=weights),
    ):
        with pytest.raises(od.InputError, match=r"must be in the order of the candidates.*sort_index\(\)"):
            use()
    runs = od.exact(problem, seed=0)
    counts = runs.to_frame()["runs"]
    assert od.Runs.given(problem, counts).log_det == pytest.approx(runs.log_det)
    with pytest.raises(od.InputError, match="counts must be in the order of the candidates"):
        od.Runs.given(problem, counts[::-1])


def test_points_that_double_precision_would_round_are_refused():
    square = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    for points in (2**60 + square, 1 + square * np.finfo(np.longdouble).eps):
        with pytest.raises(ValueError, match="points must fit double precision"):
            od.min_volume_ellipsoid(points)


def test_rows_whose_coordinates_overflow_are_refused():
    # The rank is 3, but the third direction is informed by subnormal entries of the last row alone.
    tiny = 3.873e-321
    x = [[1.985, tiny, tiny], [0.524, tiny, tiny], [-0.649, 0.247, 0.569], [tiny, tiny, tiny]]
    with pytest.raises(ValueError, match="rows of similar sizes; in parameter block 0"):
        od.DesignProblem(x)


def test_weights_whose_information_overflows_have_no_certificate():
    rng = np.random.default_rng(21272)
    x = rng.normal(size=(6, 4)) * np.array([1e29, 1e-148, 1e-136, 1e-144, 1e-150, 1e-150])[:, None]
    p = od.DesignProblem(x)
    assert od.certify(p, p.uniform()).gap == np.inf
    assert od.solve(p).efficiency >= 0


def test_points_at_the_origin_have_no_ellipsoid():
    for centred in (True, False):
        with pytest.raises(ValueError, match="points must span all 2 dimensions"):
            od.min_volume_ellipsoid(np.zeros((3, 2)), centred=centred)
