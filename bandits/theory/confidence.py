"""Widths of confidence intervals that all hold at once with probability 1 - delta.

Fed-PE estimates the reward of every active arm of every client in every phase. With sigma_{i,a} the
sub-Gaussian width of one estimate, the intervals  r-hat +- alpha sigma_{i,a}  all hold with probability
at least 1 - delta (Lemma "BndAllErr") for the smaller of

    alpha_1 = sqrt( 2 log(2 M K H / delta) )                       a union over clients, arms, phases
    alpha_2 = sqrt( 2 log(B H / delta) + d log(k e) )              a union over blocks and phases

with B the number of parameter vectors, K if each arm has its own and 1 if they share one, and k > 1 that
satisfies  k d >= 2 log(B H / delta) + d log(k e).  The bound grows with k, so the smallest k is used;
there the two sides are equal and alpha_2 = sqrt(k d).
"""

from __future__ import annotations

import math

import numpy as np

from bandits.checks import check_probability


def smallest_k(dim: int, blocks: int, phases: int, delta: float) -> float:
    """Return the smallest k > 1 with  k d >= 2 log(B H / delta) + d log(k e).

    Dividing by d gives k - log k = 1 + c with c = 2 log(B H / delta) / d. The left side is convex and
    increases for k > 1, and 1 + c + sqrt(2 c) lies to the right of the root, so Newton's method descends to
    it.

    Parameters
    ----------
    dim : int
        Length d of a feature vector.
    blocks : int
        Number B of parameter vectors.
    phases : int
        Number H of phases.
    delta : float
        Probability with which confidence intervals may fail.

    Returns
    -------
    float
        The root.

    See Also
    --------
    bandits.confidence.alpha : Use it in the width.

    Examples
    --------
    >>> k = smallest_k(dim=3, blocks=10, phases=16, delta=0.1)
    >>> abs(3 * k - 2 * math.log(1600) - 3 * math.log(k * math.e)) < 1e-12
    True
    """
    c = 2.0 * (math.log(blocks * phases) - math.log(delta)) / dim  # the quotient could overflow
    k = 1.0 + c + math.sqrt(2.0 * c)
    while True:
        step = (k - math.log(k) - 1.0 - c) * k / (k - 1.0)
        if step <= 1e-15 * k:
            return k
        k -= step


def alpha(clients: int, arms: int, dim: int, phases: int, delta: float, *, shared: bool = False) -> float:
    """Return the multiple of the sub-Gaussian width at which all intervals hold with probability 1 - delta.

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    phases : int
        Number H of phases.
    delta : float
        Probability with which confidence intervals may fail.
    shared : bool, default False
        True if all arms have the same parameter vector.

    Returns
    -------
    float
        The multiple.

    See Also
    --------
    bandits.confidence.smallest_k : Solve the equation for k.

    Examples
    --------
    >>> round(alpha(clients=100, arms=10, dim=3, phases=16, delta=0.1), 4)
    4.8983
    """
    check_probability("delta", delta)
    h = max(phases, 1)
    over_clients = math.sqrt(2.0 * (math.log(2.0 * clients * arms * h) - math.log(delta)))
    over_blocks = math.sqrt(dim * smallest_k(dim, 1 if shared else arms, h, delta))
    return min(over_clients, over_blocks)


def prior_variance(clients: int, arms: int, dim: int, *, shared: bool = False) -> float:
    """Return the constant of the mixture bound (Lemma "Laplace"): the paper's d K / M, or d / M if shared.

    It is the variance under the optimal design, averaged over clients, times the phase length: G* = d K for
    disjoint parameters and d for shared ones.

    Parameters
    ----------
    clients : int
        Number M of clients.
    arms : int
        Number K of arms.
    dim : int
        Length d of a feature vector.
    shared : bool, default False
        True if all arms have the same parameter vector.

    Returns
    -------
    float
        The constant.

    See Also
    --------
    bandits.confidence.mixture_alpha : Use it in the width.

    Examples
    --------
    >>> prior_variance(clients=10, arms=5, dim=2)
    1.0
    """
    return dim * (1 if shared else arms) / clients


def mixture_alpha(variance: np.ndarray, prior: float, failure: float) -> np.ndarray:
    """Return the width multiple of a martingale of a given total variance, prior included, at all times.

    Lemma "Laplace": ``|sum| <= sqrt(v log(v / (prior failure^2)))`` for every phase with probability at least
    1 - failure, where v = prior + the variances so far.

    Parameters
    ----------
    variance : ndarray
        Total variance v.
    prior : float
        Constant of the mixture.
    failure : float
        Probability with which the bound may fail.

    Returns
    -------
    ndarray
        Multiples of the deviation.

    See Also
    --------
    bandits.confidence.prior_variance : Return the constant.

    Examples
    --------
    >>> import numpy as np
    >>> mixture_alpha(np.array([2.0]), prior=1.0, failure=0.1).round(4).tolist()
    [2.3018]
    """
    return np.sqrt(np.log(variance / prior) - 2.0 * np.log(failure))
