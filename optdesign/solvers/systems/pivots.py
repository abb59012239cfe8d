"""The candidate of each group to which differences are taken."""

import numpy as np

from optdesign._kernel import kernel


@kernel
def pivots(w, starts):
    """Row of the largest w in every group."""
    pivot = np.empty(len(starts) - 1, np.int64)
    for i in range(len(pivot)):
        pivot[i] = starts[i]
        for n in range(starts[i] + 1, starts[i + 1]):
            if w[n] > w[pivot[i]]:
                pivot[i] = n
    return pivot
