"""Drive the state machines by hand, as a network would, and keep every message."""

from __future__ import annotations

import pickle

import numpy as np

import bandits
from bandits.policies.linear import Model
from bandits.protocol import gather


def environment(parameters, m=4, k=3, d=2, seed=0, scale=1.0):
    """Return a random environment with Gaussian noise of a scale."""
    env = bandits.environments.random(m, k, d, seed, shared=parameters == "shared")
    return bandits.LinearEnvironment(env.features, env.parameters, scale=scale)


def final_regrets(policies, horizon, trials):
    """Return the mean regret per client of every policy on the authors' instance of 100 clients."""
    env = bandits.environments.authors(100, 10, 3, seed=0)
    return [bandits.simulate(policy, env, horizon, trials=trials).mean[-1] for policy in policies]


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


def converse(policy, env, horizon, rewards, batches=None, plays=None, sleep=False):
    """Let clients (one batch, or several) and a server talk; returns the messages and the machines.

    ``batches`` lists the client ids of every client object; by default there is a single one for all. The
    pulls and the best arms of every phase are appended to ``plays``. With ``sleep``, machines and messages
    are pickled and restored at every step.
    """
    batches = [np.arange(env.clients)] if batches is None else [np.asarray(b) for b in batches]
    setting = policy.setting(env.clients, env.arms, env.dim, horizon, env.ell, env.sigma)
    clients = [policy.client(env.features[b], setting) for b in batches]
    server = policy.server(setting)
    messages = []

    def each(do):
        """Let every client do something."""
        out = []
        for n, batch in enumerate(batches):
            if sleep:
                clients[n] = pickle.loads(pickle.dumps(clients[n]))
            out.append(do(n, clients[n], batch))
        return out

    def ask(method, kind, parts):
        """Join the clients' messages, and let the server answer."""
        nonlocal server
        message = gather(parts)
        messages.append((kind, message))
        if sleep:
            server, message = pickle.loads(pickle.dumps((server, message)))
        return getattr(server, method)(message)

    def tell(kind, message):
        """What each client receives."""
        messages.append((kind, message))
        return [message.part(b) for b in batches]

    last = len(setting.lengths)
    if last:
        first = each(lambda _, c, b: c.initialise(rewards.sums(c.pulls, b)))
        estimates = ask("initialise", "first", first)
    for p in range(1, last + 1):
        heard = tell("global", estimates)
        active = each(lambda n, c, _, heard=heard: c.eliminate(heard[n]))
        heard = tell("plan", ask("design", "active", active))
        pulls = each(lambda n, c, _, heard=heard: c.explore(heard[n]))
        if plays is not None:
            plays.append((np.concatenate(pulls), np.concatenate([c.best for c in clients]), setting.f(p)))
        if p < last:
            local = each(lambda n, c, b, pulls=pulls: c.estimate(rewards.sums(pulls[n], b)))
            estimates = ask("aggregate", "local", local)
    return messages, clients, server


def model_of(state):
    """Return the linear model in the state of a policy that decides at every step."""
    if isinstance(state, Model):
        return state
    return state.model if hasattr(state, "model") else state.clients.model
