"""Policies that decide at every step: one loop, compiled once for each of them.

A round is: every client chooses an arm, every client pulls it and observes the reward, and then clients and
server may synchronise. A policy says how by a state, a NamedTuple of arrays and numbers, and three functions
of it that numba can compile:

    choose(state, i, t, rng)             the arm that client i pulls in round t = 1, 2, ...
    observe(state, i, a, y)              client i pulled arm a and got y
    synchronise(state, t, rng, sent)     after round t; adds scalars to sent[0] (up) and sent[1] (down)

The loop draws rewards, reads the clock and keeps the ledger. It checks every arm before it is used:
``choose`` must return an integer in 0 .. K - 1. If an environment has its own ``pull``, the same three
functions are called round by round.

Compiled loops must not take functions as arguments, or they could not be cached on disk; so each policy gets
a copy of the loop in which the three names stand for its own. The copy is cached beside the policy's file,
under a name with a hash of all the code that goes into it, so that other code never finds it.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config
from numba import types as numba_types
from numba.extending import overload

from bandits.checks import no_such_arm
from bandits.environments.noise import draw
from bandits.trials.trial import Trial
from optdesign.runtime.jit import code_hash, inlined, kernel, uncached

STEPS_PER_CALL = 1 << 20
"""Decisions between two returns to Python, where an interrupt is noticed."""

NO_INTEGER = -(1 << 62)
"""Code of a choice whose type is not an integer type."""


class Stepwise:
    """Base of policies that decide at every step. A subclass defines ``start`` and the functions.

    See Also
    --------
    bandits.Policy : Protocol of all policies.

    Examples
    --------
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
        """Return the state before the first round.

        Scalars that are sent before the first round are added to ``trial.ledger.uploaded`` and
        ``downloaded``.

        Parameters
        ----------
        trial : Trial
            Trial that begins.

        Returns
        -------
        NamedTuple
            Arrays and numbers, new for every trial.
        """
        raise NotImplementedError

    @staticmethod
    def choose(state, i, t, rng):
        """Return the arm that client i pulls in round t.

        Parameters
        ----------
        state : NamedTuple
            State.
        i : int
            Client.
        t : int
            Round.
        rng : numpy.random.Generator
            Random stream of the trial.

        Returns
        -------
        int
            Arm.
        """
        raise NotImplementedError

    @staticmethod
    def observe(state, i, a, y):
        """Update the state after client i pulled arm a and got reward y. Overwrites the state.

        Parameters
        ----------
        state : NamedTuple
            State.
        i : int
            Client.
        a : int
            Arm.
        y : float
            Reward.
        """

    @staticmethod
    def synchronise(state, t, rng, sent):
        """Exchange data between clients and server after round t. Overwrites the state, and adds to sent.

        Parameters
        ----------
        state : NamedTuple
            State.
        t : int
            Round.
        rng : numpy.random.Generator
            Random stream of the trial.
        sent : ndarray of int of shape (2,)
            Scalars up and down.
        """

    def play(self, trial: Trial) -> None:
        """Play one trial, a million decisions at a time.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
        env, state, sent = trial.env, self.start(trial), np.zeros(2, dtype=np.int64)
        fault = np.zeros(3)
        if env.law is None:
            self._play_any(trial, state, sent, fault)
        else:
            rounds = self._compiled(_rounds)
            # Copies, as arrays that can be written are another type and would be compiled for again.
            means, gaps, times = np.array(env.means), np.array(env.gaps), np.array(trial.clock.times)
            regret, lost = np.zeros(len(times)), np.zeros(1)
            length = max(1, STEPS_PER_CALL // env.clients)
            for first in range(1, trial.horizon + 1, length):
                last = min(first + length - 1, trial.horizon)
                wrong = rounds(
                    trial.rng, *env.law, state, means, gaps, first, last, times, regret, lost, sent, fault
                )
                self._check(wrong, fault, env.arms)
            trial.clock.finish(regret)
        trial.ledger.uploaded += int(sent[0])
        trial.ledger.downloaded += int(sent[1])

    def _play_any(self, trial: Trial, state: Any, sent: np.ndarray, fault: np.ndarray) -> None:
        """Play the same rounds with the rewards of any environment."""
        decide, learn = self._compiled(_decide), self._compiled(_learn)
        arms = np.empty(trial.env.clients, dtype=np.int64)
        while not trial.done:
            t = trial.time + 1
            self._check(decide(state, t, trial.rng, arms, trial.env.arms, fault), fault, trial.env.arms)
            learn(state, t, trial.rng, arms, trial.step(arms), sent)

    def _check(self, wrong: bool, fault: np.ndarray, arms: int) -> None:
        """Raise ValueError if a loop ended at a choice that is no arm; fault is step, client and value."""
        if not wrong:
            return
        step, client, value = fault.tolist()
        if not np.isfinite(value) or value != int(value) or 0 <= value < arms:
            raise ValueError(
                f"choose must return an integer; {self.name} gave client {int(client)} {value:g} in step "
                f"{int(step)}, which is not of an integer type. Return an index such as np.argmax(...)."
            )
        raise ValueError(
            no_such_arm(
                "the arm that choose returns", self.name, int(client), f"step {int(step)}", int(value), arms
            )
        )

    def _compiled(self, loop: Any) -> Callable[..., Any]:
        kind: Any = type(self)
        return compiled(kind, loop)


def compiled(policy: type, loop: types.FunctionType) -> Callable[..., Any]:
    """Return a loop whose choose, observe and synchronise are those of a policy.

    Compiled code keeps the values that globals and closures had when it was compiled. So loops are found by a
    hash of them, and a policy whose functions or constants have changed since gets another loop.
    """
    own = _own(policy)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return interpreted(policy, loop)
    # The implementation of arm_of for compiled code is not among the names of the loop.
    key = (policy, loop, code_hash([loop, _arm_of, *own.values()]))
    if key not in _loops:
        _loops[key] = _copy(policy, loop, own, key[2])
    return _loops[key]


def interpreted(policy: type, loop: types.FunctionType) -> Callable[..., Any]:
    """Return the same loop as plain Python, in which an index outside an array is an IndexError."""
    plain = {name: getattr(function, "py_func", function) for name, function in _own(policy).items()}
    return types.FunctionType(loop.__code__, loop.__globals__ | plain)


def _own(policy: type) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in ("choose", "observe", "synchronise")}


_loops: dict[tuple[type, types.FunctionType, str], Callable[..., Any]] = {}
"""Loops of this process, by policy, loop and the hash of all the code in it."""


def _copy(policy: type, loop: types.FunctionType, own: dict[str, Any], code: str) -> Callable[..., Any]:
    """Return a new copy of the loop, which is compiled when it is first called."""
    name = f"{loop.__name__}_{policy.__name__}_{code[:16]}"
    file = own["choose"].__code__.co_filename
    on_disk = os.path.isfile(file)
    body = loop.__code__.replace(co_name=name, co_filename=file) if on_disk else loop.__code__
    copy = types.FunctionType(body, loop.__globals__ | {key: _jitted(f) for key, f in own.items()}, name)
    copy.__qualname__ = name
    return kernel(copy) if on_disk else uncached(copy)


def _jitted(function: Any) -> Any:
    """Return a function that is copied into the loop, which has the cache; a call would count references."""
    return function if hasattr(function, "py_func") else inlined(function)


choose: Any = None
observe: Any = None
synchronise: Any = None
"""In the loops below these names stand for a policy's own functions; see ``compiled``."""


def arm_of(value, number):
    """Return a chosen arm as an integer, NO_INTEGER if its type is none. Writes the value to number[0]."""
    if isinstance(value, bool | np.bool_ | float | np.floating):
        number[0] = value
        return NO_INTEGER
    if isinstance(value, int | np.integer):
        number[0] = value
        return value
    number[0] = np.nan
    return NO_INTEGER


@overload(arm_of)
def _arm_of(value, number):  # noqa: ARG001
    """Return ``arm_of`` for compiled code, by the type that the compiler has found."""
    if isinstance(value, numba_types.Integer):

        def integer(value, number):
            number[0] = value
            return np.int64(value)

        return integer
    if isinstance(value, numba_types.Float | numba_types.Boolean):

        def number_only(value, number):
            number[0] = value
            return NO_INTEGER

        return number_only

    def nothing(value, number):  # noqa: ARG001
        number[0] = np.nan
        return NO_INTEGER

    return nothing


def _rounds(rng, kind, scale, state, means, gaps, first, last, times, regret, lost, sent, fault):
    """Play rounds first .. last of all clients; return True if a choice is no arm.

    Overwrites state, regret, lost and sent, and advances rng. A choice that is no arm ends the loop before it
    is used, and its step, client and value are written to fault.
    """
    m, k = means.shape
    arms = np.empty(m, np.int64)
    n = np.searchsorted(times, first)
    for t in range(first, last + 1):
        for i in range(m):
            arms[i] = arm_of(choose(state, i, t, rng), fault[2:])
            if arms[i] < 0 or arms[i] >= k:
                fault[0], fault[1] = t, i
                return True
        for i in range(m):
            a = arms[i]
            observe(state, i, a, draw(rng, kind, scale, means[i, a]))
            lost[0] += gaps[i, a]
        synchronise(state, t, rng, sent)
        if t == times[n]:
            regret[n] = lost[0]
            n += 1
    return False


def _decide(state, t, rng, arms, k, fault):
    """Let every client choose; return True if a choice is no arm. Overwrites arms, fault; advances rng."""
    for i in range(len(arms)):
        arms[i] = arm_of(choose(state, i, t, rng), fault[2:])
        if arms[i] < 0 or arms[i] >= k:
            fault[0], fault[1] = t, i
            return True
    return False


def _learn(state, t, rng, arms, rewards, sent):
    """Let every client observe, and synchronise. Overwrites state and sent."""
    for i in range(len(arms)):
        observe(state, i, arms[i], rewards[i])
    synchronise(state, t, rng, sent)
