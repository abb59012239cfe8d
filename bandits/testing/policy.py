"""Tests of any policy: rules for every run, and changes that must not affect it.

A policy knows the features, the bounds ell, L and s, the noise level sigma, and the rewards it pays for. It
does not know the parameters, nor means and gaps that follow from them, and it keeps nothing from trial to
trial. Sums over T pulls of M clients are compared up to 4 T M roundings of the larger sum.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from bandits.environments.linear import LinearEnvironment
from bandits.policies.stepwise import Stepwise, interpreted
from bandits.simulation.run import Run
from bandits.simulation.runner import simulate
from bandits.testing.strategies import environments
from bandits.trials.regret import RegretClock
from bandits.trials.trial import Policy, Record, Trial
from optdesign.testing import PHASES

UNIT = float(np.finfo(np.float64).eps) / 2.0
"""Unit round-off of double precision, 2^-53."""

Maker = Callable[[LinearEnvironment], Policy]
"""For policies that differ between environments, say with parameters shared or not."""


def assert_played(run: Run, env: LinearEnvironment) -> None:
    """Assert that a run on an environment is well formed.

    Regret is finite, starts at 0, never decreases, and increases per pull by at most the mean over clients of
    the largest gap. Scalars are counted. Phases follow one another up to the horizon, and each leaves every
    client at least one arm.

    Parameters
    ----------
    run : Run
        Run to check.
    env : LinearEnvironment
        Environment of the run.

    Raises
    ------
    AssertionError
        If the run breaks a rule.

    See Also
    --------
    bandits.testing.assert_plays : Check a policy on one environment.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(3, 2, 2)
    >>> assert_played(bandits.simulate(bandits.FedPE(), env, 100, trials=2), env)
    """
    who = f"{run.policy} on {env.clients} client(s) with {env.arms} arm(s)"
    if run.times[-1] != run.horizon or run.regret.shape != (len(run.trials), len(run.times)):
        raise AssertionError(f"{who}: regret is not read up to the horizon {run.horizon}")
    if not np.all(np.isfinite(run.regret)):
        raise AssertionError(f"{who}: regret is not finite: {run.regret.tolist()}")
    worst = float(env.gaps.max(axis=1).mean())
    lengths = np.diff(run.times, prepend=0)
    steps = np.diff(run.regret, axis=1, prepend=0.0)
    slack = 4 * UNIT * run.horizon * env.clients * max(worst * run.horizon, float(np.abs(run.regret).max()))
    for name, wrong in (("falls", -steps), ("grows too fast", steps - worst * lengths)):
        n, c = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        if wrong[n, c] > slack:
            raise AssertionError(
                f"{who}: regret {name} up to pull {run.times[c]} of trial {run.trials[n]}, by "
                f"{steps[n, c]:.6g} in {lengths[c]} pull(s); one pull costs between 0 and {worst:.6g}"
            )
    for name in ("uploaded", "downloaded"):
        counts = getattr(run, name)
        if np.any(counts < 0):
            raise AssertionError(f"{who}: scalars {name} must not be negative; got {counts.min()}")
    _assert_phases(run, env, who)


def _assert_phases(run: Run, env: LinearEnvironment, who: str) -> None:
    """Phases of each trial, if a policy records any."""
    for n, trial in enumerate(run.trials):
        rows = run.phases[run.phases["trial"] == trial]
        ends = rows["start"] + rows["length"]
        if np.any(rows["start"][1:] < ends[:-1]) or np.any(rows["length"] < 0) or np.any(ends > run.horizon):
            raise AssertionError(
                f"{who}: phases of trial {trial} overlap or pass the horizon {run.horizon}; they start at "
                f"{rows['start'].tolist()} with lengths {rows['length'].tolist()}"
            )
        for name in ("active", "sparsity", "gap"):
            if np.any(np.isnan(rows[name])):
                raise AssertionError(f"{who}: the column {name} of the phases of trial {trial} has NaN")
        if np.any((rows["active"] < 1) | (rows["active"] > env.arms)):
            raise AssertionError(
                f"{who}: a client must have between one and {env.arms} active arm(s); the phases of trial "
                f"{trial} have {rows['active'].tolist()} on average"
            )
        for name in ("uploaded", "downloaded"):
            if rows[name].sum() > getattr(run, name)[n]:
                raise AssertionError(
                    f"{who}: the phases of trial {trial} have {rows[name].sum()} scalars {name}, the ledger "
                    f"{getattr(run, name)[n]}"
                )


def assert_plays(policy: Policy | Maker, env: LinearEnvironment, horizon: int, seed: int = 0) -> None:
    """Assert that a policy obeys the rules on one environment.

    1. It plays to the horizon, and its runs pass :func:`bandits.testing.assert_played`.
    2. Trials are independent: a trial played first, by a copy, equals the same trial played second. So
       results depend neither on n_jobs nor on earlier trials.
    3. The times at which regret is read do not matter.
    4. Every observed reward costs a pull: no client sees the rewards of more pulls than it has made, and the
       regret is at least that of the pulls whose rewards were drawn.
    5. Decisions do not use the parameters: with hidden parameters and the same rewards, the pulls are equal,
       those without observed rewards included.
    6. A step-wise policy does not index its arrays out of bounds, which compiled code would not detect.

    Parameters
    ----------
    policy : Policy or callable
        Policy, or a function of the environment that returns one.
    env : LinearEnvironment
        Environment to play on.
    horizon : int
        Number of pulls of each client.
    seed : int, default 0
        Seed of the trials.

    Raises
    ------
    AssertionError
        If the policy breaks a rule.

    See Also
    --------
    bandits.testing.check_policy : Try many environments.

    Examples
    --------
    >>> import bandits
    >>> assert_plays(bandits.LocalUCB(), bandits.environments.authors(3, 2, 2), horizon=20)
    """
    own: Policy = policy(env) if not hasattr(policy, "play") else policy  # type: ignore[assignment]
    if isinstance(own, Stepwise):
        _assert_within_arrays(copy.deepcopy(own), env, horizon, seed)
    run = simulate(copy.deepcopy(own), env, horizon, trials=2, seed=seed)
    assert_played(run, env)
    _assert_repeatable(copy.deepcopy(own), run, env, seed)
    shown, hidden = (_watched(copy.deepcopy(own), env, horizon, seed, hide) for hide in (False, True))
    _assert_paid(own, env, horizon, shown[0], shown[1])
    if not _same(shown[1].counts, hidden[1].counts) or not _same(shown[2], hidden[2]):
        raise AssertionError(
            f"{own.name} makes other pulls when the parameters are hidden from it: it reads parameters, "
            "means, gaps or regret, which nobody may know. Use features, ell, L, s, sigma and rewards"
        )


def check_policy(
    policy: Policy | Maker,
    strategy: st.SearchStrategy[LinearEnvironment] | None = None,
    *,
    max_horizon: int = 100,
    max_examples: int = 50,
) -> None:
    """Search for an environment, a horizon and a seed for which a policy breaks a rule.

    Each drawn case is passed to :func:`bandits.testing.assert_plays`. A failing case is shrunk. An exception
    of the policy counts as a failure.

    Parameters
    ----------
    policy : Policy or callable
        Policy, or a function of the environment that returns one.
    strategy : hypothesis strategy of LinearEnvironment, optional
        Environments to draw. Default: :func:`bandits.testing.environments`.
    max_horizon : int, default 100
        Largest horizon.
    max_examples : int, default 50
        Number of cases.

    Raises
    ------
    AssertionError
        If the policy breaks a rule.

    See Also
    --------
    bandits.testing.assert_plays : Check one environment.

    Examples
    --------
    >>> import bandits
    >>> check_policy(bandits.LongestFeature(), max_examples=3)
    """

    @settings(max_examples=max_examples, deadline=None, phases=PHASES, report_multiple_bugs=False)
    @given(
        env=environments() if strategy is None else strategy,
        horizon=st.integers(1, max_horizon),
        seed=st.integers(0, 2**16),
    )
    def plays(env: LinearEnvironment, horizon: int, seed: int) -> None:
        assert_plays(policy, env, horizon, seed)

    plays()


def _assert_repeatable(policy: Policy, run: Run, env: LinearEnvironment, seed: int) -> None:
    """Play the second trial first and read the regret at the end only; ``policy`` has not played before."""
    stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    trial = Trial(env, run.horizon, [run.horizon], stream, policy.name)
    policy.play(trial)
    again = trial.finished()
    off = abs(float(again.regret[-1]) - float(run.regret[1, -1]))
    if off > 4 * UNIT * run.horizon * env.clients * float(run.regret[1, -1]):
        raise AssertionError(
            f"{policy.name} plays trial 1 otherwise when it comes first: regret {again.regret[-1]:.9g}, and "
            f"{run.regret[1, -1]:.9g} after trial 0. Draw from trial.rng alone, and keep nothing of a trial"
        )
    for name in ("uploaded", "downloaded"):
        if getattr(again, name) != getattr(run, name)[1]:
            raise AssertionError(
                f"{policy.name} sends other numbers of scalars when trial 1 comes first: {name} "
                f"{getattr(again, name)}, and {getattr(run, name)[1]} after trial 0"
            )


def _assert_within_arrays(policy: Stepwise, env: LinearEnvironment, horizon: int, seed: int) -> None:
    """Play as plain Python. Other errors than those of indices are differences to compiled code."""
    object.__setattr__(policy, "_compiled", partial(interpreted, type(policy)))
    trial = Trial(env, horizon, [horizon], np.random.default_rng(seed), policy.name)
    try:
        with np.errstate(all="ignore"):
            policy.play(trial)
    except IndexError as error:
        raise AssertionError(
            f"{policy.name} uses an index out of bounds in step {trial.time + 1} or later: {error}. Compiled "
            "code reads or overwrites other memory there"
        ) from error
    except (ArithmeticError, TypeError, AttributeError):
        return


class _Watched(LinearEnvironment):
    """An environment that notes what is pulled; its parameters may be hidden, the rewards are the same."""

    inner: LinearEnvironment
    counts: list[np.ndarray]

    def __init__(self, env: LinearEnvironment, hide: bool) -> None:
        shown = np.zeros_like(env.parameters) if hide else env.parameters
        super().__init__(env.features, shown, env.noise, ell=env.ell, L=env.L, s=env.s)
        object.__setattr__(self, "inner", env.fresh())
        object.__setattr__(self, "counts", [])

    def pull(self, rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """Return sums of rewards, as the environment gives them."""
        self.counts.append(np.array(counts))
        return self.inner.pull(rng, counts)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Watched:
        """Return a copy that notes its pulls in the same list, because they show rewards as well."""
        out = copy.copy(self)
        object.__setattr__(out, "inner", copy.deepcopy(self.inner, memo))
        return out


class _WatchedClock(RegretClock):
    """A clock that notes what is pulled, also without drawn rewards."""

    def __init__(self, clock: RegretClock) -> None:
        super().__init__(clock.gaps, clock.times, clock.policy)
        self.pulled: list[np.ndarray] = []

    def advance(self, pulls: np.ndarray, best: np.ndarray, length: int) -> None:
        """Advance, and note the pulls."""
        super().advance(pulls, best, length)
        self.pulled += [np.array(pulls), np.array(best), np.array(length)]

    def step(self, arms: ArrayLike) -> np.ndarray:
        """Advance by one pull of each client, and note the arms."""
        chosen = super().step(arms)
        self.pulled.append(np.array(chosen))
        return chosen

    def finish(self, regret: np.ndarray) -> None:  # noqa: ARG002
        """Raise AssertionError, because a regret without pulls cannot be checked."""
        raise AssertionError(
            f"{self.policy} hands over its regret by clock.finish in an environment with a pull of its own, "
            "so that its pulls are unknown. Use trial.step or clock.advance"
        )


def _watched(
    policy: Policy, env: LinearEnvironment, horizon: int, seed: int, hide: bool
) -> tuple[Record, _Watched, list[np.ndarray]]:
    """Play a trial on a watched environment; return its record, that environment, and all pulls."""
    trial = Trial(_Watched(env, hide), horizon, [horizon], np.random.default_rng(seed), policy.name)
    trial.clock = clock = _WatchedClock(trial.clock)
    policy.play(trial)
    watched: Any = trial.env
    return trial.finished(), watched, clock.pulled


def _assert_paid(
    policy: Policy, env: LinearEnvironment, horizon: int, record: Record, watched: _Watched
) -> None:
    """Assert that the pulls whose rewards were drawn are among those that were made."""
    drawn = np.zeros(env.means.shape, dtype=np.int64)
    for counts in watched.counts:
        if counts.shape != drawn.shape or np.any(counts < 0):
            raise AssertionError(
                f"{policy.name} pulls counts {counts.tolist()}; they must be {drawn.shape} and not negative. "
                "Use trial.pull"
            )
        drawn += counts
    most = int(drawn.sum(axis=1).max())
    if most > horizon:
        raise AssertionError(
            f"{policy.name} learns the rewards of {most} pulls of a client, and the horizon is {horizon}: "
            "every pull must be counted. Advance the clock by as many"
        )
    least, regret = float((drawn * env.gaps).sum() / env.clients), float(record.regret[-1])
    slack = 4 * UNIT * horizon * env.clients * max(least, regret)
    if regret < least - slack:
        raise AssertionError(
            f"{policy.name} counts a regret of {regret:.9g}, and the pulls whose rewards it drew cost "
            f"{least:.9g}. Advance the clock by the arms that are pulled"
        )
    if np.all(drawn.sum(axis=1) == horizon) and regret > least + slack:
        raise AssertionError(
            f"{policy.name} counts a regret of {regret:.9g}, and all its pulls cost {least:.9g}. "
            "Advance the clock by the arms that are pulled"
        )


def _same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
