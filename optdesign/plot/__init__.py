"""Pictures of designs, one call each: ``od.plot.weights(result, path="weights.svg")``.

Every function draws a new figure, or on ``ax`` where that is given, saves it if ``path`` is, and returns the
matplotlib Figure. Matplotlib (the extra ``plot``) is loaded by the first picture, not before;
``require_matplotlib`` loads it at once, so that a long computation does not end in an ImportError.
"""

from optdesign.plot.draw_convergence import convergence
from optdesign.plot.draw_correlations import correlations
from optdesign.plot.draw_design_space import design_space
from optdesign.plot.draw_efficiencies import efficiencies
from optdesign.plot.draw_ellipsoid import ellipsoid
from optdesign.plot.draw_overview import overview
from optdesign.plot.draw_power import power
from optdesign.plot.draw_profiles import profiles
from optdesign.plot.draw_runs import runs
from optdesign.plot.draw_sensitivity import sensitivity
from optdesign.plot.draw_weights import weights
from optdesign.plot.style import require_matplotlib

__all__ = [
    "convergence",
    "correlations",
    "design_space",
    "efficiencies",
    "ellipsoid",
    "overview",
    "power",
    "profiles",
    "require_matplotlib",
    "runs",
    "sensitivity",
    "weights",
]
