"""Results with claims that need not be true, for the tests of verification."""

import copy
import dataclasses
from functools import cached_property

import numpy as np

import optdesign as od

LEFT_OUT = "what the noted ranks leave out"
NAMES = [
    "weights",
    "rank of the candidates",
    "rank of the design",
    "log Det",
    "sum of weight times variance",
    "variances",
    "gap",
    "efficiency",
    "status",
    "objective against cvxpy",
    "information against cvxpy (log eigenvalues)",
]


def pair_of_lengths() -> od.DesignProblem:
    """The uniform design over these is far from optimal."""
    return od.DesignProblem(np.vstack([np.eye(2), np.full((40, 2), [1e-3, 0.0])]))


def forged(r: od.DesignResult, **changes: object) -> od.DesignResult:
    """The result with a certificate that claims something else."""
    return dataclasses.replace(r, certificate=dataclasses.replace(r.certificate, **changes))


def given(problem: od.DesignProblem, weights: np.ndarray) -> od.DesignResult:
    """Any weights with their own certificate."""
    return od.DesignResult.given(problem, weights)


def wrong(v: od.Verification) -> list[str]:
    return [c.name for c in v.comparisons if not c.agrees]


def pressures() -> np.ndarray:
    """A full quadratic in a pressure of 1e5 to 1e6 and a concentration of 1e-6 to 5e-6."""
    p, c = (v.ravel() for v in np.meshgrid(np.linspace(1e5, 1e6, 5), np.linspace(1e-6, 5e-6, 5)))
    return np.column_stack([np.ones(25), p, c, p * p, p * c, c * c])


def with_rank(problem: od.DesignProblem, rank: int) -> od.DesignProblem:
    """The problem as a program would see it that takes its only block for one of lower rank."""
    out = copy.copy(problem)
    pivots = problem.span.pivots.copy()
    pivots[:, rank:] = -1
    maps = problem.span.maps[:, :, :rank].copy()
    span = problem.span._replace(ranks=np.array([rank]), pivots=pivots, maps=maps)
    object.__setattr__(out, "span", span)
    for name, value in vars(od.DesignProblem).items():
        if isinstance(value, cached_property):
            out.__dict__.pop(name, None)
    return out
