"""Pictures of designs, one call each: ``od.plot.weights(result, path="weights.svg")``.

Every function draws a new figure, or on ``ax`` where that is given, saves it if ``path`` is, and returns the
matplotlib Figure. Matplotlib (the extra ``plot``) is loaded by the first picture, not before.
"""

from optdesign.plotting.convergence import convergence
from optdesign.plotting.efficiencies import efficiencies
from optdesign.plotting.ellipsoid import ellipsoid
from optdesign.plotting.overview import overview
from optdesign.plotting.runs import runs
from optdesign.plotting.sensitivity import sensitivity
from optdesign.plotting.weights import weights

__all__ = ["convergence", "efficiencies", "ellipsoid", "overview", "runs", "sensitivity", "weights"]
