"""Locally optimal designs of generalised linear models: candidates at given parameters.

A response whose mean is mu(eta), eta = x' theta, informs about theta as a linear one with the candidate

    sqrt(v(eta)) x,     v(eta) = mu'(eta)^2 / variance(mu(eta)),

so the design that is D-optimal for these rows is locally D-optimal at theta (Chernoff 1953). The roots are
computed from the logarithm of v, so that large predictors neither overflow nor become zero too early:

    logistic   log v = -a - 2 log(1 + exp(-a)),  a = abs(eta)
    probit     log v = 2 log phi(eta) - log Phi(eta) - log Phi(-eta)
    cloglog    log v = 2 eta - exp(eta) - log(1 - exp(-exp(eta)))
    poisson    log v = eta
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from optdesign.errors import InputError
from optdesign.numbers.checks import check_choice
from optdesign.numbers.roundoff import gamma
from optdesign.problem.candidates import Candidates
from optdesign.problem.inputs import floats, in_order, matrix
from optdesign.problem.source import read_only
from optdesign.tables.columns import is_frame, is_single


def _logistic(eta: np.ndarray) -> np.ndarray:
    return -np.abs(eta) - 2 * np.log1p(np.exp(-np.abs(eta)))


def _probit(eta: np.ndarray) -> np.ndarray:
    from scipy.special import log_ndtr

    return -(eta**2) - np.log(2 * np.pi) - log_ndtr(eta) - log_ndtr(-eta)


def _cloglog(eta: np.ndarray) -> np.ndarray:
    rate = np.exp(eta)
    # 1 - exp(-r) is r to the last bit where r is tiny, and then its logarithm is eta itself.
    share = np.where(eta < -40, eta, np.log(-np.expm1(-np.maximum(rate, np.finfo(float).tiny))))
    return 2 * eta - rate - share


FAMILIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": _logistic,
    "probit": _probit,
    "cloglog": _cloglog,
    "poisson": lambda eta: eta,
}
"""Logarithm of the weight of an observation, as a function of its linear predictor."""


@overload
def local(features: Candidates, parameters: Any, family: str = ...) -> Candidates: ...
@overload
def local(features: ArrayLike, parameters: ArrayLike, family: str = ...) -> np.ndarray: ...
def local(features: Any, parameters: Any, family: str = "logistic") -> Any:
    """Return candidates of a generalised linear model at given parameters.

    Each row is scaled by the square root of its information at the parameters, so a D-optimal design of the
    scaled candidates is locally D-optimal for the model.

    Parameters
    ----------
    features : array_like of shape (N, d) or Candidates
        Rows of the linear predictor. An intercept is a column of ones, or part of the model.
    parameters : array_like of shape (d,) or mapping of str to float
        Parameters at which the design is optimal: a guess, or an estimate from earlier data. A mapping, or a
        pandas Series with an index of names, has the names of the candidates' columns.
    family : {"logistic", "probit", "cloglog", "poisson"}, default "logistic"
        Link of a binary response, or "poisson" for counts with a logarithmic link.

    Returns
    -------
    ndarray of shape (N, d) or Candidates
        Scaled rows in the form of ``features``. Candidates keep their settings and names. Arrays in single
        precision keep their precision.

    See Also
    --------
    optdesign.candidates : Make candidates from factors and a model.

    Examples
    --------
    >>> local([[1.0, 0.0], [1.0, 2.0]], [0.0, 0.0]).tolist()  # at zero every weight is 1/4
    [[0.5, 0.0], [0.5, 1.0]]
    """
    check_choice(family, FAMILIES, "family")
    if isinstance(features, Candidates) and features.model.scale is not None:
        rule, value = "must be those of the linear predictor", "they are scaled by local already"
        raise InputError("features", rule, value, "Pass the candidates that candidates() returns.")
    x = features.features if isinstance(features, Candidates) else matrix(features)
    names = features.names if isinstance(features, Candidates) else None
    if not isinstance(features, Candidates) and is_frame(features):
        names = tuple(map(str, getattr(features, "column_names", features.columns)))
    if names is not None or isinstance(parameters, Mapping):
        parameters = _in_order(parameters, names)
    theta = floats(parameters, "parameters").copy()
    if theta.shape != (x.shape[1],) or not np.isfinite(theta).all():
        rule = f"must be {x.shape[1]} finite numbers, one for each feature"
        raise InputError("parameters", rule, f"got {theta.tolist()}", "An intercept has one as well.")
    if isinstance(features, Candidates):
        model = replace(features.model, scale=partial(rows, parameters=theta, family=family))
        return replace(features, features=rows(x, theta, family), model=model)
    return rows(x, theta, family, np.float32 if is_single(features) else np.float64)


def _in_order(parameters: Any, names: tuple[str, ...] | None) -> Any:
    """Parameters in the order of the features, if they come by name: in a dict, or in a pandas Series."""
    if not hasattr(parameters, "items"):
        return parameters
    pairs = list(parameters.items())
    if not isinstance(parameters, Mapping) and [key for key, _ in pairs] == list(range(len(pairs))):
        return parameters  # a Series with the default index
    if names is None:
        raise TypeError(
            "parameters must be an array where the features have no names. Pass numbers in the order of the "
            "columns, or Candidates."
        )
    return in_order(pairs, names, "parameters", "columns")


def rows(
    features: np.ndarray, parameters: np.ndarray, family: str, dtype: type[np.floating] = np.float64
) -> np.ndarray:
    """Return rows of features times the roots of their weights. No entry is rounded to zero or infinity."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        eta = _predictors(features, parameters)
        root = np.exp(FAMILIES[family](eta) / 2)
        scaled = (features * root[:, None]).astype(dtype)
        is_held = np.isfinite(scaled) & ((features == 0) | (np.abs(scaled) >= np.finfo(dtype).tiny))
    for n in np.flatnonzero(~(is_held.all(axis=1) & (root > 0)))[:1]:
        size = "is too large" if root[n] > 1 else "is too small"
        value = f"that of features[{n}] is {eta[n]:g}, and its {family} weight {size}"
        remedy = "Leave such rows out, or look at the units of the parameters."
        raise InputError("parameters", "must give predictors whose weights can be held", value, remedy)
    return read_only(scaled)


def _predictors(features: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return features @ parameters, exactly rounded where terms that cancel could leave an error of 1e-9."""
    eta = features @ parameters
    error = gamma(len(parameters)) * (np.abs(features) @ np.abs(parameters))
    theta = [Fraction(value) for value in parameters.tolist()]
    for n in np.flatnonzero((error > 1e-9) & np.isfinite(error)):
        terms = zip(features[n].tolist(), theta, strict=True)
        exact = sum((Fraction(value) * factor for value, factor in terms), Fraction(0))
        eta[n] = float(exact)
    return eta
