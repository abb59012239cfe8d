"""The candidate of each group to which differences are taken."""

import numpy as np

from optdesign.runtime.jit import kernel


@kernel
def pivots(w, starts, total):
    """Row of the largest w in every group. Overwrites total with the sums of w."""
    pivot = np.empty(len(starts) - 1, np.int64)
    for i in range(len(pivot)):
        pivot[i] = starts[i]
        total[i] = w[starts[i]]
        for n in range(starts[i] + 1, starts[i + 1]):
            total[i] += w[n]
            if w[n] > w[pivot[i]]:
                pivot[i] = n
    return pivot
