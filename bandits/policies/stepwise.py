"""Policies that decide at every step: one loop, compiled once for each of them.

A round is: every client chooses an arm, every client pulls it and observes the reward, and then clients and
server may synchronise. A policy says how by a state, a NamedTuple of arrays and numbers, and three functions
of it that numba can compile:

    choose(state, i, t, rng)             the arm that client i pulls in round t = 1, 2, ...
    observe(state, i, a, y)              client i pulled arm a and got y
    synchronise(state, t, rng, sent)     after round t; adds scalars to sent[0] (up) and sent[1] (down)

The loop draws rewards, reads the clock and keeps the ledger. Where rewards can only be had from the
environment's own ``pull``, the same three functions are called round by round.

Compiled loops must not take functions as arguments, or they could not be cached on disk; so each policy gets
a copy of the loop in which the three names stand for its own. The copy is cached beside the policy's file,
under a name with a hash of all the code that goes into it, so that other code never finds it.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config

from bandits.noise import draw
from bandits.trial import Trial
from optdesign._kernel import code_hash, kernel, uncached

STEPS_PER_CALL = 1 << 20
"""Decisions between two returns to Python, where an interrupt is noticed."""


class Stepwise:
    """Base of policies that decide at every step; a subclass gives ``start`` and the functions.

    >>> import bandits, numpy as np
    >>> from typing import NamedTuple
    >>> class Counts(NamedTuple):
    ...     pulls: np.ndarray
    >>> class RoundRobin(Stepwise):
    ...     def start(self, trial):
    ...         return Counts(np.zeros((trial.env.clients, trial.env.arms)))
    ...     @staticmethod
    ...     def choose(state, i, t, rng):
    ...         return np.argmin(state.pulls[i])
    ...     @staticmethod
    ...     def observe(state, i, a, y):
    ...         state.pulls[i, a] += 1
    >>> env = bandits.environments.authors(3, 4, 2)
    >>> run = bandits.simulate(RoundRobin(), env, horizon=40, trials=1)
    >>> bool(np.isclose(run.regret[0, -1], 10 * env.gaps.sum() / 3))
    True
    """

    @property
    def name(self) -> str:
        """Class name."""
        return type(self).__name__

    def start(self, trial: Trial) -> Any:
        """The state before the first round: a NamedTuple of arrays and numbers, made anew for every trial.

        What is sent before the first round goes to ``trial.ledger.uploaded`` and ``downloaded``.
        """
        raise NotImplementedError

    @staticmethod
    def choose(state, i, t, rng):
        """The arm that client i pulls in round t."""
        raise NotImplementedError

    @staticmethod
    def observe(state, i, a, y):
        """Client i pulled arm a and got y. Overwrites the state."""

    @staticmethod
    def synchronise(state, t, rng, sent):
        """What clients and server exchange after round t. Overwrites the state, and adds to sent."""

    def play(self, trial: Trial) -> None:
        """One trial, a million decisions at a time."""
        env, state, sent = trial.env, self.start(trial), np.zeros(2, dtype=np.int64)
        if env.law is None:
            self._play_any(trial, state, sent)
        else:
            rounds = self._compiled(_rounds)
            # Copies, as arrays that can be written are another type and would be compiled for again.
            means, gaps, times = np.array(env.means), np.array(env.gaps), np.array(trial.clock.times)
            regret, lost = np.zeros(len(times)), np.zeros(1)
            length = max(1, STEPS_PER_CALL // env.clients)
            for first in range(1, trial.horizon + 1, length):
                last = min(first + length - 1, trial.horizon)
                rounds(trial.rng, *env.law, state, means, gaps, first, last, times, regret, lost, sent)
            trial.clock.finish(regret)
        trial.ledger.uploaded += int(sent[0])
        trial.ledger.downloaded += int(sent[1])

    def _play_any(self, trial: Trial, state: Any, sent: np.ndarray) -> None:
        """The same rounds, with the rewards of any environment."""
        decide, learn = self._compiled(_decide), self._compiled(_learn)
        arms = np.empty(trial.env.clients, dtype=np.int64)
        while not trial.done:
            t = trial.time + 1
            decide(state, t, trial.rng, arms)
            learn(state, t, trial.rng, arms, trial.step(arms), sent)

    def _compiled(self, loop: Any) -> Callable[..., None]:
        kind: Any = type(self)
        return compiled(kind, loop)


@functools.cache
def compiled(policy: type, loop: types.FunctionType) -> Callable[..., None]:
    """A loop whose choose, observe and synchronise are those of a policy."""
    own = {name: getattr(policy, name) for name in ("choose", "observe", "synchronise")}
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return types.FunctionType(loop.__code__, loop.__globals__ | own)
    name = f"{loop.__name__}_{policy.__name__}_{code_hash([loop, *own.values()])[:16]}"
    file = own["choose"].__code__.co_filename
    on_disk = os.path.isfile(file)
    code = loop.__code__.replace(co_name=name, co_filename=file) if on_disk else loop.__code__
    copy = types.FunctionType(code, loop.__globals__ | {key: _jitted(f) for key, f in own.items()}, name)
    copy.__qualname__ = name
    return kernel(copy) if on_disk else uncached(copy)


def _jitted(function: Any) -> Any:
    """A function as the loop can call it; it is compiled into the loop, which has the cache."""
    return function if hasattr(function, "py_func") else uncached(function)


choose: Any = None
observe: Any = None
synchronise: Any = None
"""In the loops below these names stand for a policy's own functions; see ``compiled``."""


def _rounds(rng, kind, scale, state, means, gaps, first, last, times, regret, lost, sent):
    """Rounds first .. last of all clients. Overwrites state, regret, lost and sent, and advances rng."""
    m = len(means)
    arms = np.empty(m, np.int64)
    n = np.searchsorted(times, first)
    for t in range(first, last + 1):
        for i in range(m):
            arms[i] = choose(state, i, t, rng)
        for i in range(m):
            a = arms[i]
            observe(state, i, a, draw(rng, kind, scale, means[i, a]))
            lost[0] += gaps[i, a]
        synchronise(state, t, rng, sent)
        if t == times[n]:
            regret[n] = lost[0]
            n += 1


def _decide(state, t, rng, arms):
    """Let every client choose. Overwrites arms and advances rng."""
    for i in range(len(arms)):
        arms[i] = choose(state, i, t, rng)


def _learn(state, t, rng, arms, rewards, sent):
    """Let every client observe, and synchronise. Overwrites state and sent."""
    for i in range(len(arms)):
        observe(state, i, arms[i], rewards[i])
    synchronise(state, t, rng, sent)
