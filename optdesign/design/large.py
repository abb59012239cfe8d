"""Certificates and results of problems that are larger than memory.

Only candidates of a pool have weight, and only the pool is in memory. A certificate takes one pass over all
candidates, which also prices them. The allowance for round-off is that of a certificate in memory: the pool
has the coordinates of the whole problem and its bounds on entries. Arrays of length N are computed on
request.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cached_property
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optdesign.algebra.passes import raise_to_largest, variances_of_few
from optdesign.algebra.pricing import Priced, chunk_variances, merge_priced, price
from optdesign.algebra.whitening import Measured, whitened
from optdesign.design.certificate import Certificate, certificate_of
from optdesign.design.display import CANDIDATE
from optdesign.design.feasible import feasible, scale
from optdesign.design.measures import Measures, measures
from optdesign.design.result import DesignResult
from optdesign.factors.formula import pandas
from optdesign.problem.coordinates import Rows
from optdesign.problem.inputs import one_per_candidate
from optdesign.problem.large import LargeProblem, Part
from optdesign.problem.problem import DesignProblem
from optdesign.problem.selection import Pool, united
from optdesign.problem.source import read_only


class LargeCertificate(Certificate):
    """A certificate over all candidates of a problem that is larger than memory.

    ``white`` and ``maps`` are the matrices that give the variances of a chunk of candidates; see
    :func:`optdesign.algebra.pricing.price`.
    """

    def __init__(
        self, problem: LargeProblem, white: np.ndarray, maps: np.ndarray | None, **values: Any
    ) -> None:
        self.__dict__.update(values, problem=problem, white=white, maps=maps)

    @cached_property
    def variances(self) -> np.ndarray:
        """Variance of every candidate, (N,), NaN if the rank of the weights is not proved.

        The first access takes a pass over the data.
        """
        large: Any = self  # the attributes set in __init__ are not fields of the base class
        if self.log_det == -math.inf:
            return read_only(np.full(large.problem.n_candidates, math.nan))
        pieces = large.problem.reduce(chunk_variances, or_, (large.white, large.maps))
        return read_only(np.concatenate([pieces[first] for first in sorted(pieces)]))


class LargeResult(DesignResult):
    """A design with weights on few candidates of a problem that is larger than memory."""

    _certified: Certified
    """The candidates with weight, their weights and their certificate."""

    def __init__(self, certified: Certified, **values: Any) -> None:
        self.__dict__.update(
            values, problem=certified.part.whole, _certified=certified, certificate=certified.certificate
        )

    @property
    def support(self) -> np.ndarray:
        """Numbers of the candidates with positive weight."""
        return self._certified.part.pool.rows[self._certified.weights > 0]

    @property
    def support_weights(self) -> np.ndarray:
        """Weights of the candidates with positive weight."""
        return self._certified.weights[self._certified.weights > 0]

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every candidate, (N,)."""
        out = np.zeros(self.problem.n_candidates)
        out[self.support] = self.support_weights
        return read_only(out)

    @property
    def measures(self) -> Measures:
        """Usual efficiencies of the design. I is NaN, because it is an average over all candidates."""
        part, weights, certificate, variances = self._certified
        own = measures(part, weights, certificate.log_det, variances)
        return own._replace(G=self.rank / self.g_value, I=math.nan)

    def in_memory(self) -> DesignResult:
        """Return the design on its supported candidates; see :meth:`optdesign.DesignResult.in_memory`."""
        part, weights, large, variances = self._certified
        scalars = {f.name: getattr(large, f.name) for f in fields(Certificate) if f.name != "variances"}
        # The fields after problem, weights and certificate.
        run_fields = {f.name: getattr(self, f.name) for f in fields(DesignResult)[3:]}
        return DesignResult(part, weights, Certificate(variances=variances, **scalars), **run_fields)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for every supported candidate, indexed by its number."""
        frame = self.in_memory().to_frame()
        frame.index = pandas().Index(self._certified.part.pool.rows, name=CANDIDATE)
        return frame.loc[self.support]

    def _repr_html_(self) -> str:
        return self.in_memory()._repr_html_()


class Certified(NamedTuple):
    """Weights of some candidates of a large problem with their certificate over all candidates."""

    part: Part
    """The problem of the candidates with weight and the candidates of the basis."""
    weights: np.ndarray
    certificate: LargeCertificate
    variances: np.ndarray
    """Variances of the candidates of the part."""


def certify_part(part: Part, weights: np.ndarray, most: int) -> tuple[Certified, Pool]:
    """Return the certificate over all candidates for weights on a part, and a pool of violators.

    The pool has at most 2 x ``most`` violators of every group.
    """
    whole = part.whole
    support = np.flatnonzero(weights)
    w = weights[support]
    missed = scale(part.groups[support], part.budgets, w)
    # The matrices and the pricing of the last call of ``measure``, which certificate_of does not return.
    last: list[tuple[np.ndarray, np.ndarray | None, Priced]] = []

    def measure(problem: DesignProblem, rows: Rows, support: np.ndarray, w: np.ndarray) -> Measured:
        white, off, log_det = whitened(problem, rows, support, w)
        g, bound = np.empty(problem.n_candidates), np.zeros(problem.n_groups)
        # The pass uses the same kernel, so no candidate of the part exceeds the bound by round-off.
        variances_of_few(rows.source.whole(), problem.parameter_blocks, white, g)
        raise_to_largest(problem.groups, g, bound)
        maps = whole.span.maps if rows.source is not problem.source else None
        priced = whole.reduce(price, merge_priced, (white, bound, maps, most))
        last[:] = [(white, maps, priced)]
        return Measured(white, off, log_det, g, np.maximum(priced.largest, bound))

    certificate = certificate_of(part, support, w, missed, measure)
    white, maps, priced = last[0]
    scalars = {f.name: getattr(certificate, f.name) for f in fields(Certificate) if f.name != "variances"}
    kept = np.union1d(support, np.searchsorted(part.pool.rows, whole.basis_pool.rows))
    dense = np.zeros(len(weights))
    dense[support] = w
    certified = Certified(
        whole.part(part.pool.take(kept)),
        read_only(dense[kept]),
        LargeCertificate(whole, white, maps, **scalars),
        read_only(certificate.variances[kept]),
    )
    return certified, united(priced.top.pool, priced.drawn.pool)


def in_whole(part: Part, weights: np.ndarray, own: Certificate) -> Certificate:
    """Return the certificate of weights on a part over all candidates, with the variances of the part."""
    whole = certify_part(part, weights, 1)[0].certificate
    scalars = {f.name: getattr(whole, f.name) for f in fields(Certificate) if f.name != "variances"}
    return replace(own, **scalars)


def certify_large(problem: LargeProblem, weights: ArrayLike) -> Certificate:
    """Return the certificate of the weights of all candidates. Takes two passes over the data."""
    w = one_per_candidate(weights, "weights", problem.n_candidates)
    rows = np.flatnonzero(w)
    part = problem.part(united(problem.fetch(rows), problem.sample))
    dense = np.zeros(part.n_candidates)
    dense[np.searchsorted(part.pool.rows, rows)] = w[rows]
    return certify_part(part, feasible(part, dense)[0], 1)[0].certificate
