"""Optimal experimental designs under several budgets, each with a certificate.

>>> import numpy as np, optdesign as od
>>> candidates = np.random.default_rng(0).normal(size=(100, 3))
>>> r = od.solve(od.DesignProblem(candidates), tol=1e-9)
>>> r.converged, r.gap <= 1e-9 * r.rank
(True, True)
"""

from optdesign import linalg, plot, reference
from optdesign.candidates import Candidates, candidates
from optdesign.certificate import Certificate, certify
from optdesign.classical import d_optimal, g_optimal
from optdesign.efficiency import efficiency
from optdesign.ellipsoid import Ellipsoid, min_volume_ellipsoid
from optdesign.exact import exact
from optdesign.factors import factorial, simplex_centroid, simplex_lattice
from optdesign.levels import MainEffects
from optdesign.local import local
from optdesign.problem import DesignProblem
from optdesign.result import DesignResult, History, Status
from optdesign.rounding import round
from optdesign.runs import Runs, RunStatus, RunTable
from optdesign.saving import load, save
from optdesign.solve import METHODS, solve, solve_many
from optdesign.sparsify import sparsify
from optdesign.verification import Verification, verify

__all__ = [
    "METHODS",
    "Candidates",
    "Certificate",
    "DesignProblem",
    "DesignResult",
    "Ellipsoid",
    "History",
    "MainEffects",
    "RunStatus",
    "RunTable",
    "Runs",
    "Status",
    "Verification",
    "candidates",
    "certify",
    "d_optimal",
    "efficiency",
    "exact",
    "factorial",
    "g_optimal",
    "linalg",
    "load",
    "local",
    "min_volume_ellipsoid",
    "plot",
    "reference",
    "round",
    "save",
    "simplex_centroid",
    "simplex_lattice",
    "solve",
    "solve_many",
    "sparsify",
    "verify",
]

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """The public names alone: modules that work behind them stay out of tab completion."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
