"""Candidates of generalised linear models: the weights by another route, and large predictors."""

import pickle

import flint
import numpy as np
import pandas as pd
import pytest

import optdesign as od
from optdesign.problem.glm import FAMILIES

PRECISION = 8000
"""Bits: the mean of a response is one less exp(-1000) at the ends of the test."""


def exact_root(family: str, eta: float) -> flint.arb:
    """The root of mu'(eta)^2 / variance, from the definition."""
    e = flint.arb(eta)
    if family == "poisson":
        return (e / 2).exp()
    if family == "logistic":
        mean = 1 / (1 + (-e).exp())
        slope = mean * mean * (-e).exp()
    elif family == "probit":
        mean = (-e / flint.arb(2).sqrt()).erfc() / 2
        slope = (-e * e / 2).exp() / (2 * flint.arb.pi()).sqrt()
    else:
        mean = 1 - (-e.exp()).exp()
        slope = (e - e.exp()).exp()
    return slope / (mean * (1 - mean)).sqrt()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("eta", [0.0, 0.3, -2.0, 5.0, -30.0, 36.0, -45.0, 1000.0, -1000.0])
def test_weights_are_those_of_the_definition(family: str, eta: float) -> None:
    if (family, abs(eta)) == ("probit", 1000.0) or (family == "cloglog" and eta > 7):
        with pytest.raises(
            ValueError, match=rf"features\[0\] is {eta:g}, and its {family} weight is too small"
        ):
            od.local([[eta]], [1.0], family=family)
        return
    root = od.local([[1.0, eta]], [0.0, 1.0], family=family)[0, 0]
    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        error = float(abs(flint.arb(root) / exact_root(family, eta) - 1))
    finally:
        flint.ctx.prec = before
    # The logarithm of the weight is a sum of terms of up to eta^2, or exp(eta) for cloglog, each rounded.
    assert error <= 4e-16 * (4 + eta**2 + (np.exp(eta) if family == "cloglog" else 0))


def test_candidates_keep_their_settings_and_their_model() -> None:
    c = od.candidates({"dose": [0, 1, 2, 3]}, model="~ dose")
    at = od.local(c, [-3.0, 2.0])
    assert at.names == c.names
    assert at.settings is c.settings
    np.testing.assert_array_equal(at.features, od.local(c.features, [-3.0, 2.0]))
    again = pickle.loads(pickle.dumps(at))
    np.testing.assert_array_equal(again.rows({"dose": [3, 0]}), at.features[[3, 0]])


def test_predictors_that_cancel_are_exact() -> None:
    """The predictor is 1 for the given floats; in double precision the sum is 0 or 2."""
    rows = od.local([[1e16, 1.0, 1.0, -1e16], [1.0, 0.0, 0.0, 0.0]], [1.0, 0.5, 0.5, 1.0])
    weight = np.exp(-1) / (1 + np.exp(-1)) ** 2
    np.testing.assert_allclose(rows[0, 1], np.sqrt(weight), rtol=1e-14)


def test_candidates_keep_the_parameters_of_the_call() -> None:
    theta = np.array([0.0, 2.0])
    c = od.local(od.candidates({"t": [-2.0, 0.0, 2.0]}, "~ t"), theta)
    before = c.rows({"t": 0.5})
    theta *= 0.1
    np.testing.assert_array_equal(c.rows({"t": 0.5}), before)


@pytest.mark.parametrize(
    ("features", "parameters"),
    [(np.float32([[1, 0], [1, 1]]), [-205.0, 1.0]), (np.array([[1e-200, 0.0], [0.0, 1.0]]), [-7e202, 0.0])],
)
def test_rows_that_underflow_are_refused(features: np.ndarray, parameters: list[float]) -> None:
    with pytest.raises(od.InputError, match="weight is too small"):
        od.local(features, parameters)
    scaled = od.local(features, np.divide(parameters, 10))
    assert scaled.dtype == features.dtype
    assert np.all((scaled == 0) == (features == 0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([[1.0]], [1.0], "normal"),
            "family must be one of logistic, probit, cloglog, poisson; got 'normal'",
        ),
        (([[1.0]], [1.0, 2.0]), "parameters must be 1 finite numbers"),
        (([[1.0]], [np.nan]), "parameters must be 1 finite numbers"),
        (([[1.0]], ["a"]), "parameters must be real numbers"),
        (([1.0], [1.0]), "candidates must have shape"),
        (
            ([[1.0], [2000.0]], [1.0], "poisson"),
            r"features\[1\] is 2000, and its poisson weight is too large",
        ),
    ],
)
def test_bad_input(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.local(*arguments)


def test_parameters_by_name() -> None:
    doses = od.candidates({"dose": [1.0, 2.0, 4.0]}, model="~ dose")
    expected = od.local(doses, [-3.0, 1.0]).features
    by_name = {"dose": 1.0, "Intercept": -3.0}
    for given in (by_name, pd.Series(by_name), pd.Series([-3.0, 1.0])):
        np.testing.assert_array_equal(od.local(doses, given).features, expected)
    for bad in (
        {"dose": 1.0},
        by_name | {"time": 1.0},
        pd.Series([1, 2, 3], index=["dose", "dose", "Intercept"]),
    ):
        with pytest.raises(ValueError, match="once each, those of the columns, 'Intercept', 'dose'; "):
            od.local(doses, bad)
    with pytest.raises(TypeError, match="must be an array where the features have no names"):
        od.local([[1.0, 2.0]], {"a": 1.0, "b": 2.0})
    labelled = pd.Series([-3.0, 1.0], index=["const", "x1"])  # of an array, which has no names to match
    np.testing.assert_array_equal(od.local([[1.0, 4.0]], labelled), expected[2:])
    frame = pd.DataFrame({"Intercept": 1.0, "dose": [1.0, 2.0, 4.0]})
    for given in (by_name, pd.Series(by_name)):
        np.testing.assert_array_equal(od.local(frame, given), expected)
    with pytest.raises(ValueError, match="once each, those of the columns, 'Intercept', 'dose'; "):
        od.local(frame, labelled)


def test_candidates_are_scaled_once() -> None:
    c = od.candidates({"x": [-1, 0, 1]}, "~ x")
    with pytest.raises(od.InputError, match="scaled by local already"):
        od.local(od.local(c, [0.0, 1.0]), [0.0, 2.0])
