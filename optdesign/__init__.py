"""Optimal experimental designs under several budgets, each with a certificate.

>>> import numpy as np, optdesign as od
>>> candidates = np.random.default_rng(0).normal(size=(100, 3))
>>> r = od.solve(od.DesignProblem(candidates), tol=1e-9)
>>> r.converged, r.gap <= 1e-9 * r.rank
(True, True)
"""

from optdesign import linalg, plot
from optdesign.design.certificate import Certificate
from optdesign.design.efficiency import efficiency
from optdesign.design.measures import Measures
from optdesign.design.result import DesignResult, History, Status
from optdesign.design.run_list import Runs, RunStatus, RunTable
from optdesign.design.sparsify import sparsify
from optdesign.ellipsoid import Ellipsoid, min_volume_ellipsoid
from optdesign.errors import InputError
from optdesign.evaluation.evaluate import evaluate
from optdesign.evaluation.evaluation import Evaluation
from optdesign.factors.grids import factorial, simplex_centroid, simplex_lattice
from optdesign.problem.candidates import Candidates, candidates
from optdesign.problem.glm import local
from optdesign.problem.problem import DesignProblem
from optdesign.runs.certification import certify
from optdesign.runs.exact import exact
from optdesign.runs.main_effects import MainEffects
from optdesign.runs.refinement import Refinement, refine
from optdesign.runs.rounding import apportion, round
from optdesign.saving.files import load, save
from optdesign.solvers.classical import d_optimal, g_optimal
from optdesign.solvers.solve import METHODS, solve, solve_many
from optdesign.solvers.sweeps import coordinate_ascent
from optdesign.verification import reference
from optdesign.verification.verify import Verification, verify

__all__ = [
    "METHODS",
    "Candidates",
    "Certificate",
    "DesignProblem",
    "DesignResult",
    "Ellipsoid",
    "Evaluation",
    "History",
    "InputError",
    "MainEffects",
    "Measures",
    "Refinement",
    "RunStatus",
    "RunTable",
    "Runs",
    "Status",
    "Verification",
    "apportion",
    "candidates",
    "certify",
    "coordinate_ascent",
    "d_optimal",
    "efficiency",
    "evaluate",
    "exact",
    "factorial",
    "g_optimal",
    "linalg",
    "load",
    "local",
    "min_volume_ellipsoid",
    "plot",
    "reference",
    "refine",
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
    """Return the public names only. Internal modules are left out of tab completion."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
