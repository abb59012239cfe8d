"""Algorithms 1 and 2 of the paper (and 3, for timing), transcribed line by line: one client, one arm, one
pull at a time, dictionaries and plain NumPy. Slow on purpose; the tests compare it with the package message
for message, the benchmark compares the time. Of "Collaborative" the paper says that full information is
exchanged after each phase; ``OpenClient`` and ``OpenServer`` do that in the same manner.

The corrections of the package's docstring apply here too: the squared norm in V_a^1, and no messages once
the horizon is reached; a product that exceeds an integer by rounding only is that integer. Rewards are
taken to be non-zero.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from scipy.optimize import minimize

RCOND = 1e-9
"""Singular values below this fraction of the largest count as zero; the instances are far from it."""


class LiteralClient:
    """Algorithm 1."""

    def __init__(self, i, x, ell, sigma, draw, intervals):
        self.i, self.x, self.ell, self.sigma, self.draw, self.intervals = i, x, ell, sigma, draw, intervals
        self.arms = range(len(x))
        self.pulled = []

    def pull(self, a, explore=True):
        self.pulled.append(a)
        return self.draw(self.i, a, explore)

    def initialise(self, horizon):
        theta = {}
        for a in self.arms:
            if len(self.pulled) < horizon:
                y = self.pull(a)
                theta[a] = y * self.x[a] / np.linalg.norm(self.x[a]) ** 2
        self.active = list(self.arms)
        self.p = 1
        return theta

    def eliminate(self, theta, v):
        r, u = {}, {}
        for a in self.active:
            r_hat = self.x[a] @ theta[a]
            width = self.sigma * math.sqrt(self.x[a] @ v[a] @ self.x[a]) / self.ell
            r[a], u[a] = self.intervals(self.i, a, self.p, r_hat, width)
        self.best = max(self.active, key=lambda a: r[a])
        floor = r[self.best] - u[self.best]
        self.active = [a for a in self.active if r[a] + u[a] >= floor]
        return self.active

    def explore(self, f, length, horizon):
        end = min(len(self.pulled) + length, horizon)
        theta = {}
        for a in self.active:
            rewards = []
            for _ in range(f[a]):
                if len(self.pulled) < end:
                    rewards.append(self.pull(a))
            if f[a] > 0 and rewards:
                theta[a] = (sum(rewards) / f[a]) * self.x[a] / np.linalg.norm(self.x[a]) ** 2
        while len(self.pulled) < end:
            self.pull(self.best, explore=False)
        self.p += 1
        return theta


class LiteralServer:
    """Algorithm 2, for disjoint or shared parameters."""

    def __init__(self, clients, arms, design, shared):
        self.clients, self.arms, self.design, self.shared = range(clients), range(arms), design, shared

    def initialise(self, theta0):
        self.direction = {(i, a): t / np.linalg.norm(t) for i, a, t in _flat(theta0)}
        self.active = {i: list(self.arms) for i in self.clients}
        return self.aggregate(theta0, defaultdict(lambda: 1))

    def plan(self, active, f):
        self.active = active
        pi = self.design(self.direction, active)
        return {key: math.ceil(weight * f * (1 - 1e-12)) for key, weight in pi.items()}

    def aggregate(self, theta, pulls):
        total = {a: 0.0 for a in self.arms}
        moment = {a: 0.0 for a in self.arms}
        for i, a, t in _flat(theta):
            total[a] = total[a] + pulls[i, a] * np.outer(t, t) / np.linalg.norm(t) ** 2
            moment[a] = moment[a] + pulls[i, a] * t
        return self.invert(total, moment)

    def invert(self, total, moment):
        if self.shared:
            v = np.linalg.pinv(sum(total.values()), rcond=RCOND, hermitian=True)
            estimate = v @ sum(moment.values())
            return {a: estimate for a in self.arms}, {a: v for a in self.arms}
        alive = sorted({a for i in self.clients for a in self.active[i]})
        v = {a: np.linalg.pinv(total[a], rcond=RCOND, hermitian=True) for a in alive}
        return {a: v[a] @ moment[a] for a in alive}, v


class OpenClient(LiteralClient):
    """Algorithm 1 with nothing to hide: first rewards and means go up as they are."""

    def initialise(self, horizon):
        return self._rewards(super().initialise(horizon))

    def explore(self, f, length, horizon):
        return self._rewards(super().explore(f, length, horizon))

    def _rewards(self, theta):
        return {a: t @ self.x[a] for a, t in theta.items()}


class OpenServer(LiteralServer):
    """Algorithm 2 with the features known: least squares on them, on a phase or on all phases so far."""

    def __init__(self, clients, arms, design, shared, features, pooling):
        super().__init__(clients, arms, design, shared)
        self.direction = {(i, a): features[i, a] for i in self.clients for a in self.arms}
        self.active = {i: list(self.arms) for i in self.clients}
        self.pooling = pooling
        self.forget()

    def forget(self):
        self.total = {a: 0.0 for a in self.arms}
        self.moment = {a: 0.0 for a in self.arms}

    def initialise(self, rewards):
        return self.aggregate(rewards, defaultdict(lambda: 1))

    def aggregate(self, means, pulls):
        if not self.pooling:
            self.forget()
        for i, a, mean in _flat(means):
            x = self.direction[i, a]
            self.total[a] = self.total[a] + pulls[i, a] * np.outer(x, x)
            self.moment[a] = self.moment[a] + pulls[i, a] * mean * x
        return self.invert(self.total, self.moment)


def _flat(theta):
    return [(i, a, t) for i in sorted(theta) for a, t in sorted(theta[i].items())]


def run(
    features, lengths, horizon, *, ell, sigma, draw, design, intervals,
    shared=False, collaborative=False, pooling=False,
):  # fmt: skip
    """Play to the horizon; returns the messages of all phases, in order, and the clients' pulls.

    ``collaborative`` exchanges full information after each phase; norms are known then, so ell = 1. With
    ``pooling`` its estimates are of all phases.
    """
    m, k, _ = features.shape
    kind, ell = (OpenClient, 1.0) if collaborative else (LiteralClient, ell)
    clients = [kind(i, features[i], ell, sigma, draw, intervals) for i in range(m)]
    if collaborative:
        server = OpenServer(m, k, design, shared, features, pooling)
    else:
        server = LiteralServer(m, k, design, shared)
    messages = []
    theta = {c.i: c.initialise(horizon) for c in clients}
    if len(lengths):
        messages.append(("first", theta))
        broadcast = server.initialise(theta)
    for p, f in enumerate(lengths, start=1):
        messages.append(("global", broadcast))
        active = {c.i: c.eliminate(*broadcast) for c in clients}
        messages.append(("active", active))
        plan = server.plan(active, int(f))
        messages.append(("plan", plan))
        theta = {c.i: c.explore({a: plan[c.i, a] for a in c.active}, int(f) + k, horizon) for c in clients}
        if p < len(lengths):
            messages.append(("local", theta))
            broadcast = server.aggregate(theta, plan)
    return messages, [c.pulled for c in clients]


def fedpe_intervals(alpha):
    """The paper's r-hat and u = alpha ||x||_V / ell."""

    def intervals(*seen):
        *_, r, width = seen
        return r, alpha * width

    return intervals


def enhanced_intervals(m, k, d, delta, lengths, *, sigma=1.0, shared=False):
    """r-bar and u-bar of Enhanced Fed-PE, from lists of everything seen so far."""
    history = defaultdict(list)
    f = [1, *map(int, lengths)]
    prior = sigma**2 * (d / m if shared else d * k / m)

    def intervals(i, a, p, r, width):
        history[i, a].append((r, width))
        past = history[i, a]
        weight = sum(f[q - 1] for q in range(1, p + 1))
        r_bar = sum(r_q * f[q] for q, (r_q, _) in enumerate(past)) / weight
        variance = prior + sum((s_q * f[q]) ** 2 for q, (_, s_q) in enumerate(past))
        alpha = math.sqrt(math.log(m**2 * k**2 * variance / (prior * delta**2)))
        return r_bar, alpha * math.sqrt(variance) / weight

    return intervals


def literal_bca(epsilon):
    """Algorithm 3, each client's subproblem by a general-purpose solver; disjoint parameters."""

    def design(direction, active):
        clients, arms = sorted(active), sorted({a for arms in active.values() for a in arms})
        pi = {(i, a): 1 / len(active[i]) for i in clients for a in active[i]}
        v, rank = {}, 0
        for a in arms:
            total = sum(
                pi[i, a] * np.outer(direction[i, a], direction[i, a]) for i in clients if a in active[i]
            )
            v[a] = np.linalg.pinv(total, rcond=RCOND, hermitian=True)
            rank += np.linalg.matrix_rank(total, tol=RCOND)
        while _g(direction, active, v) > rank + epsilon:
            for i in clients:
                own = active[i]
                g = np.array([direction[i, a] @ v[a] @ direction[i, a] for a in own])
                old = np.array([pi[i, a] for a in own])
                step = _subproblem(g, old)
                for a, w, g_a in zip(own, step, g, strict=True):
                    e = v[a] @ direction[i, a]
                    v[a] = v[a] - w * np.outer(e, e) / (1 + w * g_a)
                    pi[i, a] = pi[i, a] + w
        return pi

    return design


def _g(direction, active, v):
    return sum(max(direction[i, a] @ v[a] @ direction[i, a] for a in active[i]) for i in active)


def _subproblem(g, old):
    """max sum log(1 + w g) with sum w = 0 and -old <= w <= 1 - old, kept off the singular edge."""
    if len(g) == 1:
        return np.zeros(1)
    low = np.where(1 - old * g < 1e-9, -0.999 * old, -old)
    found = minimize(
        lambda w: -np.log(1 + w * g).sum(),
        np.zeros(len(g)),
        jac=lambda w: -g / (1 + w * g),
        bounds=list(zip(low, 1 - old, strict=True)),
        constraints=[{"type": "eq", "fun": lambda w: w.sum(), "jac": lambda w: np.ones(len(w))}],
        method="SLSQP",
    )
    step = np.clip(found.x, low, 1 - old)
    return step - step.mean() if abs(step.sum()) > 1e-9 else step
