"""The result of an evaluation: precision, power, aliasing, predictions and efficiencies of a design."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design.measures import Measures, usual
from optdesign.evaluation import efficiencies, report
from optdesign.evaluation.estimation import Fit, predicted
from optdesign.evaluation.experiment import Experiment
from optdesign.evaluation.power import power_of_f
from optdesign.factors.formula import pandas
from optdesign.runtime.files import atomic


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Precision, power, aliasing and prediction variance of a design; made by :func:`optdesign.evaluate`.

    Attributes
    ----------
    terms : tuple of str
        Names of the p coefficients.
    coefficients : ndarray
        The anticipated coefficients, (p,), for which the power is computed.
    standard_errors : ndarray
        Standard errors of the coefficients, (p,); infinite for those that are not estimable.
    relative_variances : ndarray
        Variances of the coefficients in units of sigma^2, (p,).
    vif : ndarray
        Variance inflation factors, (p,).
    power : ndarray
        Power of the two-sided t test of every coefficient, (p,); NaN if ``error_df`` is 0.
    correlation : ndarray
        Correlations of the estimates, (p, p).
    effect_terms : tuple of str
        Names of the terms of the model, which may have several coefficients.
    effect_df : ndarray
        Number of coefficients of every term of the model.
    effect_noncentrality : ndarray
        Noncentrality of the F statistic of every term of the model.
    effect_power : ndarray
        Power of the F test of every term of the model.
    alias_terms : tuple of str
        Names of the q terms that the model leaves out.
    alias : ndarray
        Bias of coefficient j per unit of the coefficient of term k that the model leaves out, (p, q).
    n_runs : float
        Number of runs, or sum of the weights.
    rank : int
        Rank of the information.
    error_df : float
        Degrees of freedom for the error: runs less rank.
    lack_of_fit_df : float
        Degrees of freedom for lack of fit: distinct rows of the model matrix less rank.
    pure_error_df : float
        Degrees of freedom of replicates.
    variances : ndarray
        Prediction variance at every point of the region, in units of sigma^2.
    leverages : ndarray
        Leverage of every run, in the order of the run list; for fractions, of every candidate with
        weight, its weight included. They sum to the rank.
    effect : float, dict or sequence
        The effect as it was given.
    sigma : float
        Standard deviation of the error.
    alpha : float
        Significance level of the tests.
    formula : str or None
        The formula of the model; None if features were evaluated as they are.
    notes : tuple of str
        Warnings about the evaluation, in sentences.
    experiment : Experiment
        Rows, weights and region of the design.
    fits : tuple
        Least squares of every parameter block.

    See Also
    --------
    optdesign.evaluate : Evaluate a design.
    optdesign.plot.design_space, optdesign.plot.power : Pictures of evaluations.

    Examples
    --------
    >>> import optdesign as od
    >>> e = od.evaluate({"x": [-1, -1, 1, 1]}, model="~ x")
    >>> e.terms, e.standard_errors.round(6).tolist(), e.error_df
    (('Intercept', 'x'), [0.5, 0.5], 2.0)
    """

    terms: tuple[str, ...]
    coefficients: np.ndarray
    standard_errors: np.ndarray
    relative_variances: np.ndarray
    vif: np.ndarray
    power: np.ndarray
    correlation: np.ndarray
    effect_terms: tuple[str, ...]
    effect_df: np.ndarray
    effect_noncentrality: np.ndarray
    effect_power: np.ndarray
    alias_terms: tuple[str, ...]
    alias: np.ndarray
    n_runs: float
    rank: int
    error_df: float
    lack_of_fit_df: float
    pure_error_df: float
    variances: np.ndarray
    leverages: np.ndarray
    effect: Any
    sigma: float
    alpha: float
    formula: str | None
    notes: tuple[str, ...]
    experiment: Experiment = field(repr=False)
    fits: tuple[Fit, ...] = field(repr=False)

    @property
    def average_variance(self) -> float:
        """Mean of the prediction variances over the region, in units of sigma^2: the I-criterion."""
        return float(self.variances.mean())

    @property
    def largest_variance(self) -> float:
        """Largest prediction variance over the region, in units of sigma^2.

        With one group, and the candidates as the region, it is the G-criterion. Groups are not distinguished;
        :attr:`g_efficiency` and ``measures.G`` weight the largest variance of every group by its budget.
        """
        return float(self.variances.max())

    @cached_property
    def measures(self) -> Measures:
        """Usual measures D, A, G and I per run, D and A in the coding of the evaluation."""
        x = self.experiment
        if self.rank < self._span.rank:
            return Measures(0.0, 0.0, 0.0, 0.0)
        budgets = self._span.budgets * self.n_runs / self._span.budgets.sum()
        largest = np.zeros(len(budgets))
        of_pool = self.variances if x.pool is x.region else predicted(self.fits, x.pool, x.pool_blocks)[0]
        np.maximum.at(largest, x.pool_groups, of_pool)
        spreads = [
            fit.spread(np.sqrt(x.weights[own])[:, None] * x.features[own])
            for fit, own in zip(self.fits, x.by_block(x.blocks), strict=True)
        ]
        return usual(spreads, self.rank, self.n_runs, float(budgets @ largest), self.average_variance)

    @cached_property
    def d_efficiency(self) -> float:
        """Lower bound on the D-efficiency against all designs on these candidates; the same in every coding.

        The candidates of a table are the region and the runs. The optimum is solved for when this is read.
        """
        known = self.experiment.efficiency
        return efficiencies.d_bound(self.experiment) if known is None else known

    @cached_property
    def g_efficiency(self) -> float:
        """Lower bound on the G-efficiency against all designs on these candidates.

        G is the largest variance of a candidate; with several groups, the sum over groups of budget times
        the largest variance in the group. No design has a G below the rank.
        """
        return efficiencies.g_bound(self.experiment)

    @cached_property
    def a_efficiency(self) -> float:
        """Lower bound on the A-efficiency against all designs on these candidates.

        A is the sum of the variances of the coefficients, in the coding of the evaluation.
        """
        return self._span.bound(None, self.rank)

    @cached_property
    def i_efficiency(self) -> float:
        """Lower bound on the I-efficiency against all designs on these candidates.

        I is the average variance of predictions over the region. NaN if no design on these candidates
        predicts everywhere in the region.
        """
        return self._span.bound(self.experiment, self.rank)

    @cached_property
    def _span(self) -> efficiencies.SpannedCandidates:
        return efficiencies.SpannedCandidates.of(self.experiment)

    def predict(self, settings: Any) -> np.ndarray:
        """Return the prediction variance at other settings, in units of sigma^2.

        Parameters
        ----------
        settings : mapping of columns or data frame
            Every factor of the model; without a formula, an array of features.

        Returns
        -------
        ndarray
            One variance for each row of the settings.

        Raises
        ------
        ValueError
            If the design has several parameter blocks.

        Examples
        --------
        >>> import optdesign as od
        >>> e = od.evaluate({"x": [-1, -1, 1, 1]}, model="~ x")
        >>> e.predict({"x": [0, 1]})
        array([0.25, 0.5 ])
        """
        if len(self.fits) > 1:
            raise ValueError("predict needs one parameter block. Evaluate each parameter block by itself.")
        model = self.experiment.model
        rows = np.asarray(settings, np.float64) if model is None else model.rows(settings)
        return self.fits[0].variances(rows)

    def power_at(self, runs: ArrayLike) -> np.ndarray:
        """Return the power of the F test of every term for other numbers of runs in the same proportions.

        Parameters
        ----------
        runs : array_like of shape (k,)
            Numbers of runs. The power is NaN for those that leave no degrees of freedom for the error.

        Returns
        -------
        ndarray of shape (n_terms, k)
            Power of every term, one column for each number of runs.

        Examples
        --------
        >>> import optdesign as od
        >>> e = od.evaluate({"x": [-1, -1, 1, 1]}, model="~ x", effect=2)
        >>> e.power_at([2, 4, 12])[1].round(3)
        array([  nan, 0.218, 0.876])
        """
        sizes = np.atleast_1d(np.asarray(runs, dtype=np.float64))
        ratio = self.effect_noncentrality / self.n_runs
        powers = [power_of_f(ratio * n, self.effect_df, n - self.rank, self.alpha) for n in sizes]
        return np.array(powers).reshape(len(sizes), -1).T

    def to_frame(self) -> Any:
        """Return a pandas frame with a row for every coefficient. It needs the extra ``frames``.

        Returns
        -------
        pandas.DataFrame
            Columns of the printed table, with the names of the coefficients as the index.
        """
        return pandas().DataFrame(report.columns(self)).set_index("term")

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values; those that are not finite are text.

        Returns
        -------
        dict
            The figures by name.
        """
        return report.plain(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return all figures in JSON.

        Parameters
        ----------
        path : str or Path, optional
            File to write the text to.

        Returns
        -------
        str
            The text.
        """
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        if path is not None:
            with atomic(Path(path)) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        return text

    def __repr__(self) -> str:
        return (
            f"Evaluation({len(self.terms)} coefficients, {self.n_runs:g} runs, "
            f"{self.error_df:g} degrees of freedom for the error)"
        )

    def __str__(self) -> str:
        return report.text(self)

    def _repr_html_(self) -> str:
        return report.html(self)
