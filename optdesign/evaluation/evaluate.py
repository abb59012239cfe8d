"""Evaluate a design: the properties of an experiment before it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.evaluation import estimation
from optdesign.evaluation.evaluation import Evaluation
from optdesign.evaluation.experiment import Experiment, experiment
from optdesign.evaluation.power import noncentrality, power_of_f
from optdesign.factors.coding import coded_model, left_out
from optdesign.numbers.checks import check_number, check_positive
from optdesign.tables.columns import listed, suggestion


def evaluate(
    design: Any,
    model: str | None = None,
    effect: float | Mapping[str, float] | Sequence[float] = 1.0,
    sigma: float = 1.0,
    alpha: float = 0.05,
    *,
    runs: float | None = None,
    region: Any = None,
    alias: str | None = None,
    coded: bool = True,
) -> Evaluation:
    """Evaluate a design: standard errors, power, aliasing and prediction variance.

    Parameters
    ----------
    design : Runs, DesignResult, pair of a problem and weights, or table of settings
        A table has one run a row: a data frame, a dict of columns, a run list, or the path of a CSV or
        Parquet file. It needs a model. A path may also be a file that :func:`optdesign.save` wrote, or a
        saved design with the columns ``weight`` and ``variance``.
    model : str, optional
        Formula of the model. Default: that of the candidates. If they have none, their features are the
        columns of the model.
    effect : float, mapping of names to floats, or sequence of p floats, default 1.0
        The change of the response, in its own units, between the lowest and the highest setting of a factor.
        The anticipated coefficient is half of it in the standard coding, with alternating signs within a term
        of several coefficients. In other codings it is the effect divided by the range of its column. A
        mapping gives effects by name of term or coefficient; those that are not named have effect 1. A
        sequence has one effect for each coefficient, with its sign.
    sigma : float, default 1.0
        Standard deviation of the error of a run.
    alpha : float, default 0.05
        Level of the tests.
    runs : float, optional
        Number of runs to which the weights are scaled. Default: the weights as they are.
    region : Candidates, data frame, dict of levels or path, optional
        Settings at which predictions are averaged. Default: the candidates of the problem; for a table, all
        combinations of its levels, or its rows for mixtures, for more than 20,000 combinations and for saved
        designs with weights. It is an array of features for problems without a formula.
    alias : str, optional
        Formula of terms that the model leaves out. Default: interactions of two factors and squares of
        numeric factors that are not in the model.
    coded : bool, default True
        True for the standard coding: numeric factors from -1 to 1 over the candidates of the problem, or
        over the region of a table, and sum contrasts. False for the units and contrasts of the formula.

    Returns
    -------
    Evaluation
        Coefficients that are not estimable have infinite standard errors.

    Raises
    ------
    InputError
        If a table comes without a model, or if an argument has an invalid value.

    See Also
    --------
    exact : Search for whole runs.
    efficiency : Lower bound on the D-efficiency of weights.

    Examples
    --------
    >>> import optdesign as od
    >>> table = {"a": [-1, 1, -1, 1] * 2, "b": [-1, -1, 1, 1] * 2}
    >>> e = od.evaluate(table, model="~ a + b", effect=2, sigma=1)
    >>> e.terms, e.standard_errors.round(4).tolist(), e.error_df
    (('Intercept', 'a', 'b'), [0.3536, 0.3536, 0.3536], 5.0)
    >>> e.power.round(4).tolist(), e.alias_terms, round(e.largest_variance, 3)
    ([0.6228, 0.6228, 0.6228], ('a:b',), 0.375)
    """
    _check(sigma, alpha)
    x = experiment(design, model, runs=runs, region=region, coded=coded, alias=alias)
    own = x.by_block(x.blocks)
    fits = tuple(estimation.least_squares(x.features[rows], x.weights[rows]) for rows in own)
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = estimation.covariance_of(fits)
    relative = np.concatenate([fit.relative for fit in fits])
    _check_variances(relative, fits, _named(x)[0])
    parts = zip(own, np.split(relative, len(own)), strict=True)
    vif = [estimation.inflation(x.features[rows], x.weights[rows], part) for rows, part in parts]
    names, effects, columns = _named(x)
    coefficients = _anticipated(x, effect, names, effects, columns)
    n, rank = x.n_runs, sum(one.rank for one in fits)
    error_df = n - rank
    distinct = sum(len(np.unique(x.features[rows], axis=0)) for rows in own)
    lack_of_fit = max(0.0, min(distinct - rank, error_df))
    at_rows, _ = estimation.predicted(fits, x.features, x.blocks)
    variances, doubts = estimation.predicted(fits, x.region, x.region_blocks)
    alias_terms, aliased = _aliases(x, fits[0], alias, coded)
    single = [np.array([j]) for j in range(len(names))]
    ratios = noncentrality(single, coefficients, fits, sigma)
    effect_ratios = noncentrality(columns, coefficients, fits, sigma)
    effect_df = np.array([len(c) for c in columns])
    return Evaluation(
        terms=names,
        coefficients=coefficients,
        standard_errors=sigma * np.sqrt(relative),
        relative_variances=relative,
        vif=np.concatenate(vif),
        power=power_of_f(ratios, np.ones(len(names)), error_df, alpha),
        correlation=estimation.correlations(covariance),
        effect_terms=effects,
        effect_df=effect_df,
        effect_noncentrality=effect_ratios,
        effect_power=power_of_f(effect_ratios, effect_df, error_df, alpha),
        alias_terms=alias_terms,
        alias=aliased,
        n_runs=n,
        rank=rank,
        error_df=error_df,
        lack_of_fit_df=lack_of_fit,
        pure_error_df=max(0.0, error_df - lack_of_fit),
        variances=variances,
        leverages=x.weights * at_rows if x.order is None else at_rows[x.order],
        effect=effect,
        sigma=float(sigma),
        alpha=float(alpha),
        formula=None if x.model is None else x.model.formula,
        notes=_notes(x, names, np.isfinite(relative), error_df, [*(fit.note for fit in fits), *doubts]),
        experiment=x,
        fits=fits,
    )


def _check(sigma: float, alpha: float) -> None:
    check_positive(sigma, "sigma", "Give the standard deviation of the error of a run.")
    check_number(alpha, "alpha", "Give the level of the tests, such as 0.05.")
    if not 0 < alpha < 1:
        raise InputError("alpha", "must lie between 0 and 1", f"got {alpha}", "The usual level is 0.05.")


def _check_variances(variances: np.ndarray, fits: tuple[estimation.Fit, ...], names: Sequence[str]) -> None:
    """Raise InputError if the variance of an estimable coefficient is beyond the range of floating point."""
    estimable = np.concatenate([fit.estimable for fit in fits])
    most = 1e300
    for j in np.flatnonzero(estimable & ~(variances <= most))[:1]:
        rule = f"must have variances of at most {most:g}"
        value, remedy = f"that of {names[j]!r} is larger", "Change the unit of its column."
        raise InputError("coefficients", rule, value, remedy)


def _named(x: Experiment) -> tuple[tuple[str, ...], tuple[str, ...], list[np.ndarray]]:
    """Return the names of the coefficients, the names of the terms, and their columns; by parameter block."""
    prefixes = [""] if len(x.block_names) == 1 else [f"{block}: " for block in x.block_names]
    names = tuple(prefix + name for prefix in prefixes for name in x.names)
    effects = tuple(prefix + term.name for prefix in prefixes for term in x.terms)
    d = len(x.names)
    return names, effects, [b * d + np.array(t.columns) for b in range(len(prefixes)) for t in x.terms]


def _anticipated(
    x: Experiment, effect: Any, names: tuple[str, ...], effects: tuple[str, ...], columns: list[np.ndarray]
) -> np.ndarray:
    """Return the anticipated coefficients: half an effect in the standard coding, else effect / range.

    A constant column has the coefficient effect / (2 |value|).
    """
    unit = np.full(len(x.names), 0.5)
    span = np.ptp(x.region, axis=0)
    for term in x.terms:
        for j in () if term.is_standard else term.columns:
            constant = abs(float(x.region[0, j])) or 1.0
            unit[j] = 1 / span[j] if span[j] > 0 else 0.5 / constant
    unit = np.tile(unit, len(x.block_names))
    signs = np.ones(len(unit))
    for own in columns:
        signs[own[1::2]] = -1.0
    size = np.ones(len(unit))
    if isinstance(effect, Mapping):
        for name, value in effect.items():
            # Names without a parameter block mean all of them.
            terms, coefficients = [term.name for term in x.terms], x.names
            at = [k for k, known in enumerate(effects) if name in (known, terms[k % len(terms)])]
            found = [j for k in at for j in columns[k]] or [
                j for j, known in enumerate(names) if name in (known, coefficients[j % len(coefficients)])
            ]
            if not found:
                missing = f"there is no {name!r}{suggestion(str(name), [*effects, *names])}"
                remedy = f"The terms are {listed(effects)}."
                raise InputError("effect", "must name terms or coefficients", missing, remedy)
            size[found] = _finite(value)
    elif isinstance(effect, Real):
        size[:] = _finite(effect)
    else:
        values = np.asarray(effect, dtype=np.float64)
        if values.shape != size.shape or not np.all(np.isfinite(values)):
            rule = f"must be a finite number, a mapping, or {len(size)} numbers, one for each coefficient"
            remedy = f"The coefficients are {listed(names)}."
            raise InputError("effect", rule, f"got shape {values.shape}", remedy)
        size, signs = values, np.ones(len(unit))
    return size * signs * unit


def _finite(value: Any) -> float:
    check_number(value, "effect", "Give the change of the response between two settings.")
    if not np.isfinite(value):
        raise InputError("effect", "must be finite", f"got {value}", "Give the change of the response.")
    return float(value)


def _aliases(
    x: Experiment, fit: estimation.Fit, alias: str | None, coded: bool
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the terms that the model leaves out, and the alias matrix."""
    none = (), np.empty((len(x.names) * len(x.block_names), 0))
    if x.model is None or x.settings is None or x.region_settings is None or len(x.block_names) > 1:
        if alias is not None:
            remedy = "Leave it out."
            raise InputError("alias", "needs a design with a formula and one parameter block", remedy=remedy)
        return none
    if not x.model.factors:
        return none
    formula = alias or left_out(x.model)
    other, z = coded_model(formula, x.region_settings, coded=coded, beside=x.model)
    kept = estimation.outside(x.region, z)
    rows = other.model.features(x.settings)[:, kept]
    return tuple(other.names[j] for j in kept), fit.regression(x.features, x.weights, rows)


def _notes(
    x: Experiment, names: tuple[str, ...], estimable: np.ndarray, error_df: float, doubts: Sequence[str]
) -> tuple[str, ...]:
    found = list(x.notes)
    if not estimable.all():
        lost = [name for name, fine in zip(names, estimable, strict=True) if not fine]
        why = "because columns of the model matrix are linearly dependent up to round-off"
        found.append(f"not estimable, {why}: {listed(lost)}")
    if error_df <= 0:
        fractions = x.order is None and x.n_runs <= len(names)
        remedy = "runs= scales the weights to a number of runs" if fractions else "power needs more runs"
        found.append(f"no degrees of freedom are left for the error, so there is no power: {remedy}")
    return (*found, *dict.fromkeys(doubt for doubt in doubts if doubt))
