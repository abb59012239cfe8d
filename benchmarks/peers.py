"""What we measure ourselves against, written from the papers and compiled as well as our own code.

``literal_bca`` is Algorithm 3 of the paper as it stands: one general-purpose solver call per client and
NumPy updates. ``rex`` and ``wolfe_atwood`` solve the classical problem, one group and one block:

* REX: R. Harman, L. Filova, P. Richtarik, A randomized exchange algorithm for computing optimal
  approximate designs of experiments, JASA 2020. A leading exchange between the candidates of largest and
  smallest variance, then exchanges between the support and the candidates of largest variance in random
  order: all of them, or only those that remove a candidate if the leading one did.
* Wolfe-Atwood: Frank-Wolfe with away steps, M. J. Todd, Minimum-Volume Ellipsoids, SIAM 2016, from the
  greedy start of Kumar and Yildirim; variances follow each step.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from optdesign.algebra.passes import _variances_in_one
from optdesign.runtime.jit import kernel


def literal_bca(features: np.ndarray, gap: float, *, derivatives: bool = False) -> np.ndarray:
    """Algorithm 3 on features (M, K, d), all arms active; returns the weights (M, K).

    The subproblem is handed to SLSQP as it stands in the paper, or with its derivatives supplied as well.
    """
    clients, arms, _ = features.shape
    weights = np.full((clients, arms), 1.0 / arms)
    inverses = [np.linalg.pinv((features[:, a].T * weights[:, a]) @ features[:, a]) for a in range(arms)]
    rank = sum(np.linalg.matrix_rank(v, hermitian=True) for v in inverses)

    def variances(i: int) -> np.ndarray:
        return np.array([features[i, a] @ inverses[a] @ features[i, a] for a in range(arms)])

    while sum(variances(i).max() for i in range(clients)) > rank + gap:
        for i in range(clients):
            g = variances(i)
            step = minimize(
                lambda w, g=g: -np.sum(np.log(np.maximum(1 + w * g, 1e-300))),
                np.zeros(arms),
                jac=(lambda w, g=g: -g / np.maximum(1 + w * g, 1e-300)) if derivatives else None,
                bounds=list(zip(-weights[i], 1 - weights[i], strict=True)),
                constraints={"type": "eq", "fun": np.sum, **({"jac": np.ones_like} if derivatives else {})},
                method="SLSQP",
            ).x
            for a in range(arms):
                v = inverses[a] @ features[i, a]
                inverses[a] = inverses[a] - step[a] * np.outer(v, v) / (1 + step[a] * g[a])
            weights[i] = np.clip(weights[i] + step, 0, None)
            weights[i] /= weights[i].sum()
    return weights


def rex(x: np.ndarray, tol: float, seed: int = 0) -> np.ndarray:
    """D-optimal weights by REX, until max variance <= d (1 + tol)."""
    return _rex(x, tol, _greedy_basis(x), seed)


def wolfe_atwood(x: np.ndarray, tol: float, most: float = np.inf) -> np.ndarray:
    """D-optimal weights by Frank-Wolfe with away steps: max variance <= d (1 + tol), or so many steps."""
    return _wolfe_atwood(x, tol, _greedy_basis(x), most)


def _greedy_basis(x: np.ndarray) -> np.ndarray:
    """Rows that are farthest, in turn, from the span of those before."""
    residual = x.copy()
    rows = []
    for _ in range(x.shape[1]):
        norms = np.einsum("ij,ij->i", residual, residual)
        rows.append(int(np.argmax(norms)))
        q = residual[rows[-1]] / np.sqrt(norms[rows[-1]])
        residual -= np.outer(residual @ q, q)
    return np.array(rows)


@kernel
def _all_variances(x, rows, w, g):
    """Overwrite g with all variances; returns the inverse information."""
    d = x.shape[1]
    information = np.zeros((d, d))
    for i in rows:
        for j in range(d):
            for k in range(d):
                information[j, k] += w[i] * x[i, j] * x[i, k]
    factor = np.linalg.inv(np.linalg.cholesky(information))
    _variances_in_one(x, np.ascontiguousarray(factor.T), g)
    return factor.T @ factor


@kernel
def _rex(x, tol, start, seed):
    n, d = x.shape
    np.random.seed(seed)
    w = np.zeros(n)
    w[start] = 1.0 / d
    g = np.empty(n)
    while True:
        support = np.flatnonzero(w)
        inverse = _all_variances(x, support, w, g)
        if g.max() <= d * (1.0 + tol):
            return w
        k = np.argmax(g)
        m = support[np.argmin(g[support])]
        nullifying = _rex_exchange(x, w, inverse, k, m, False) and w[m] == 0.0
        leaders = np.argsort(-g)[: min(len(support), 4 * d)] if n < 1000 else _largest(g, 4 * d)
        leaders = np.random.permutation(leaders)
        for a in leaders:
            for b in np.random.permutation(support):
                if a != b and w[b] > 0.0:
                    _rex_exchange(x, w, inverse, a, b, nullifying)


@kernel
def _largest(g, count):
    """Indices of the largest entries, by a threshold found on a histogram."""
    low, high = g.min(), g.max()
    bins = np.zeros(1024, np.int64)
    scale = 1023.0 / max(high - low, 1e-300)
    for i in range(len(g)):
        bins[int((g[i] - low) * scale)] += 1
    total, b = 0, 1023
    while total < count and b > 0:
        total += bins[b]
        b -= 1
    threshold = low + (b + 1) / scale
    out = np.flatnonzero(g >= threshold)
    return out[:count]


@kernel
def _rex_exchange(x, w, inverse, k, m, only_nullifying):
    """Optimal exchange between k and m; tells whether it was made. Overwrites w and inverse."""
    d = x.shape[1]
    vk, vm = np.zeros(d), np.zeros(d)
    a, b, c = 0.0, 0.0, 0.0
    for i in range(d):
        for j in range(d):
            vk[i] += inverse[i, j] * x[k, j]
            vm[i] += inverse[i, j] * x[m, j]
        a += vk[i] * x[k, i]
        b += vm[i] * x[m, i]
        c += vk[i] * x[m, i]
    curvature = a * b - c * c
    if curvature > 1e-14 * a * b:
        delta = 0.5 * (a - b) / curvature
    else:
        delta = np.inf if a > b else -np.inf
    delta = min(max(delta, -w[k]), w[m])
    if delta == 0.0 or (only_nullifying and delta != w[m] and delta != -w[k]):
        return False
    if delta < 0.0:
        k, m, vk, vm, a, b, delta = m, k, vm, vk, b, a, -delta
    scale = delta / (1.0 + delta * a)
    left = b - scale * c * c
    for i in range(d):
        vm[i] -= scale * c * vk[i]
    back = delta / (1.0 - delta * left)
    for i in range(d):
        for j in range(d):
            inverse[i, j] += back * vm[i] * vm[j] - scale * vk[i] * vk[j]
    w[k] += delta
    w[m] -= delta
    return True


@kernel
def _wolfe_atwood(x, tol, start, most):
    n, d = x.shape
    w = np.zeros(n)
    w[start] = 1.0 / d
    g = np.empty(n)
    inverse = _all_variances(x, start, w, g)
    v = np.empty(d)
    count = 0
    while True:
        k, m = 0, -1
        for i in range(n):
            if g[i] > g[k]:
                k = i
            if w[i] > 0.0 and (m < 0 or g[i] < g[m]):
                m = i
        if g[k] <= d * (1.0 + tol) or count >= most:
            return w
        if g[k] / d - 1.0 >= 1.0 - g[m] / d:
            at = k
            step = (g[k] - d) / (d * (g[k] - 1.0))
        else:
            at = m
            step = (
                max((g[m] - d) / (d * (g[m] - 1.0)), -w[m] / (1.0 - w[m]))
                if g[m] > 1.0
                else (-w[m] / (1.0 - w[m]))
            )
        # w <- (1 - step) w + step e_at, U <- (1 - step) U + step x x'
        ratio = step / (1.0 - step)
        for i in range(d):
            v[i] = 0.0
            for j in range(d):
                v[i] += inverse[i, j] * x[at, j]
        scale = ratio / (1.0 + ratio * g[at])
        for i in range(d):
            for j in range(d):
                inverse[i, j] = (inverse[i, j] - scale * v[i] * v[j]) / (1.0 - step)
        for i in range(n):
            t = 0.0
            for j in range(d):
                t += x[i, j] * v[j]
            g[i] = (g[i] - scale * t * t) / (1.0 - step)
        for i in range(n):
            w[i] *= 1.0 - step
        w[at] += step
        if step < 0.0 and w[at] < 1e-15:
            w[at] = 0.0
        count += 1
        if count % (50 * d) == 0:
            inverse = _all_variances(x, np.flatnonzero(w), w, g)
