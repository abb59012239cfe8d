"""Drive the state machines by hand, as a network would, and keep every message."""

from __future__ import annotations

import numpy as np

from bandits.protocol import gather


class Rewards:
    """Rewards fixed beforehand: the n-th exploratory pull of arm a by client i always pays the same."""

    def __init__(self, env, seed=0):
        self.env, self.seed = env, seed
        self.streams = {}
        self.drawn = 0

    def draw(self, i, a, explore=True):
        """One reward; those of exploitation are never looked at."""
        if not explore:
            return 0.0
        if (i, a) not in self.streams:
            self.streams[i, a] = np.random.default_rng([self.seed, i, a])
        once = np.zeros((1, 1), dtype=np.int64) + 1
        return float(
            self.env.noise.sums(self.streams[i, a], self.env.means[i : i + 1, a : a + 1], once)[0, 0]
        )

    def sums(self, pulls, clients=None):
        """Sums of the next pulls of every arm, for all clients or some."""
        ids = range(len(pulls)) if clients is None else clients
        out = np.zeros(pulls.shape)
        for row, i in enumerate(ids):
            for a in range(pulls.shape[1]):
                out[row, a] = sum(self.draw(i, a) for _ in range(pulls[row, a]))
        return out


def converse(policy, env, horizon, rewards, batches=None, plays=None):
    """Let clients (one batch, or several) and a server talk; returns the messages and the machines.

    ``batches`` lists the client ids of every client object; by default there is a single one for all. The
    pulls and the best arms of every phase are appended to ``plays``.
    """
    batches = [np.arange(env.clients)] if batches is None else [np.asarray(b) for b in batches]
    setting = policy.setting(env.clients, env.arms, env.dim, horizon, env.ell, env.sigma)
    clients = [policy.client(env.features[b], setting) for b in batches]
    server = policy.server(setting)
    messages = []

    def up(kind, parts):
        message = gather(parts)
        messages.append((kind, message))
        return message

    def down(kind, message):
        messages.append((kind, message))
        return [message.part(b) for b in batches]

    last = len(setting.lengths)
    if last:
        first = [c.initialise(rewards.sums(c.pulls, b)) for c, b in zip(clients, batches, strict=True)]
        estimates = server.initialise(up("first", first))
    for p in range(1, last + 1):
        parts = down("global", estimates)
        active = up("active", [c.eliminate(m) for c, m in zip(clients, parts, strict=True)])
        parts = down("plan", server.design(active))
        pulls = [c.explore(m) for c, m in zip(clients, parts, strict=True)]
        if plays is not None:
            plays.append((np.concatenate(pulls), np.concatenate([c.best for c in clients]), setting.f(p)))
        if p < last:
            local = [c.estimate(rewards.sums(n, b)) for c, n, b in zip(clients, pulls, batches, strict=True)]
            estimates = server.aggregate(up("local", local))
    return messages, clients, server
