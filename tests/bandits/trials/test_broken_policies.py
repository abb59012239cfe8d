"""Policies that break a rule are refused with an error that names policy, client, step, arm and rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.policies.stepwise import NO_INTEGER, arm_of
from bandits.testing import check_policy, environments
from bandits.trials.regret import RegretClock
from bandits.trials.trial import Trial

ENV = bandits.environments.authors(3, 4, 2, seed=0)
BEST = np.zeros(3, dtype=np.int64)


class OwnPull(bandits.LinearEnvironment):
    """Rewards that no kernel can draw."""

    def pull(self, rng, counts):
        return super().pull(rng, counts)


ENVIRONMENTS = [ENV, OwnPull(ENV.features, ENV.parameters)]


def new_trial(horizon=20, env=ENV):
    return Trial(env, horizon, [horizon], np.random.default_rng(0), "Mine")


class Late(NamedTuple):
    """From a step on, client 2 pulls an arm that does not exist."""

    step: int
    arm: int


class OutOfRange(bandits.Stepwise):
    def __init__(self, arm, step=7):
        self.arm, self.step = arm, step

    def start(self, _):
        return Late(self.step, self.arm)

    @staticmethod
    def choose(state, i, t, _):
        return state.arm if t >= state.step and i == 2 else 0


class Constant(bandits.Stepwise):
    """Returns a value of any type."""

    def start(self, _):
        return Late(1, 0)


def constant(value):
    class Of(Constant):
        @staticmethod
        def choose(_state, _i, _t, _rng):
            return value

    return Of()


# -------------------------------------------------------------------------------------------- single steps


@pytest.mark.kernels
@pytest.mark.parametrize("env", ENVIRONMENTS, ids=["law", "pull"])
@pytest.mark.parametrize("arm", [4, -1, -4, 10**12])
def test_a_stepwise_arm_out_of_range_is_refused(arm, env):
    message = rf"in 0 .. K - 1 = 3; OutOfRange gave client 2 arm {arm} in step 7. Arms are counted from 0"
    with pytest.raises(ValueError, match=message):
        bandits.simulate(OutOfRange(arm), env, 20, trials=1)
    assert bandits.simulate(OutOfRange(3), env, 20, trials=1).regret[0, -1] > 0


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("value", "env"),
    [(2.7, ENVIRONMENTS[0]), (True, ENVIRONMENTS[0]), (None, ENVIRONMENTS[1])],
    ids=["2.7", "True", "None"],
)
def test_a_stepwise_arm_must_be_an_integer(value, env):
    with pytest.raises(
        ValueError, match=r"choose must return an integer; Of gave client 0 .* in step 1, which"
    ):
        bandits.simulate(constant(value), env, 20, trials=1)


@pytest.mark.kernels
def test_integers_of_every_type_are_arms():
    run = bandits.simulate(constant(np.uint8(1)), ENV, 20, trials=1)
    assert run.regret[0, -1] == pytest.approx(20 * ENV.gaps[:, 1].mean(), rel=1e-12)


def test_the_type_of_a_choice_decides_in_python_as_in_compiled_code():
    number = np.zeros(1)
    assert [arm_of(value, number) for value in (3, np.uint8(3))] == [3, 3]
    for value in (3.0, np.float32(3), True, np.True_):
        assert arm_of(value, number) == NO_INTEGER
        assert number[0] == value
    for value in (None, "3", np.array([3])):
        assert arm_of(value, number) == NO_INTEGER
        assert np.isnan(number[0])


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([0, 4, 0], r"arms must be in 0 .. K - 1 = 3; Mine gave client 1 arm 4 in step 1"),
        ([0, 0, -1], r"Mine gave client 2 arm -1 in step 1. Arms are counted from 0"),
        ([0.0, 2.7, 0.0], r"arms must be integers; Mine \(step 1\) gave values of type float64, such as 2.7"),
        ([True, False, True], r"arms must be integers; Mine \(step 1\) gave values of type bool"),
        ([np.nan] * 3, r"type float64, such as nan"),
        (["0", "1", "2"], r"arms must be integers"),
        (None, r"arms must be integers; Mine \(step 1\) gave values of type object"),
        ([0, 1], r"arms must have shape \(3,\); Mine \(step 1\) gave shape \(2,\)"),
        ([[0, 1, 2]], r"gave shape \(1, 3\)"),
        (1, r"gave shape \(\)"),
        (np.array([2**63, 0, 0], dtype=np.uint64), r"arms must be at most 2\^53"),
    ],
)
def test_steps_check_their_arms(arms, message):
    trial = new_trial()
    with pytest.raises(ValueError, match=message):
        trial.step(arms)
    assert trial.time == 0
    with pytest.raises(ValueError, match=message):
        RegretClock(ENV.gaps, np.array([20]), "Mine").step(arms)


def test_no_step_follows_the_horizon():
    trial = new_trial(1)
    trial.step(BEST)
    with pytest.raises(ValueError, match="policy must stop at the horizon 1; Mine went on"):
        trial.step(BEST)


# -------------------------------------------------------------------------------------------------- phases

ONES = np.ones((3, 4), dtype=np.int64)


def test_numbers_of_pulls_are_checked():
    for name, use in (
        ("counts", lambda trial, pulls: trial.pull(pulls)),
        ("pulls", lambda trial, pulls: trial.clock.advance(pulls, BEST, 20)),
    ):
        for pulls, message in (
            (-ONES, f"{name} must not be negative; Mine.* gave client 0 -1 pulls of arm 0"),
            (0.5 * ONES, f"{name} must be integers; Mine.* gave values of type float64, such as 0.5"),
            (np.full((3, 4), np.nan), "such as nan"),
            (ONES > 0, f"{name} must be integers; Mine.* gave values of type bool"),
            (ONES[:2], rf"{name} must have shape \(3, 4\); Mine.* gave shape \(2, 4\)"),
            (ONES[0], r"gave shape \(4,\)"),
            (2**60 * ONES, rf"{name} must be at most 2\^53"),
        ):
            trial = new_trial()
            with pytest.raises(ValueError, match=message):
                use(trial, pulls)
            assert trial.time == 0


@pytest.mark.parametrize(
    ("pulls", "best", "length", "message"),
    [
        (
            ONES,
            BEST + 4,
            4,
            r"best must be in 0 .. K - 1 = 3; Mine gave client 0 arm 4 in the phase that starts",
        ),
        (ONES, BEST - 1, 4, r"gave client 0 arm -1"),
        (ONES, BEST + 0.5, 4, r"best must be integers"),
        (ONES, 0, 4, r"best must have shape \(3,\)"),
        (ONES, BEST, 3, r"pulls must fit into the phase; Mine gave client 0 4 pulls .* its length is 3"),
        (2**53 * np.ones((3, 4), dtype=np.int64), BEST, 3, "pulls must fit into the phase"),
        (ONES, BEST, -1, r"length of the phase .* Mine, must be a whole number of at least 0; got -1"),
        (ONES, BEST, 4.5, r"must be a whole number of at least 0; got 4.5"),
        (ONES, BEST, True, r"must be a whole number of at least 0; got True"),
    ],
)
def test_phases_check_their_arms_and_lengths(pulls, best, length, message):
    with pytest.raises(ValueError, match=message):
        new_trial().clock.advance(pulls, best, length)


def test_sums_of_pulls_cannot_wrap_around():
    pulls = np.full((1, 2048), 2**53)
    with pytest.raises(ValueError, match=f"gave client 0 {2**64} pulls"):
        RegretClock(np.zeros((1, 2048)), np.array([9])).advance(pulls, np.zeros(1, dtype=np.int64), 9)


def test_a_loop_hands_over_finite_regret_at_all_times():
    for regret in (np.zeros(2), np.array([np.nan]), np.zeros((1, 1))):
        with pytest.raises(
            ValueError, match="regret must have one finite number for each of the 1 times; Mine"
        ):
            new_trial().clock.finish(regret)


# ------------------------------------------------------------------------------------------------- trials


class Steps:
    """Chooses arms by a function of the numbers of clients and arms, and makes its mistake in every step."""

    name = "Steps"

    def __init__(self, arms):
        self.arms = arms

    def play(self, trial):
        while not trial.done:
            trial.step(self.arms(trial.env.clients, trial.env.arms))


class Played(Steps):
    """Plays correctly, and then does something."""

    name = "Played"

    def __init__(self, then):
        self.arms, self.then = lambda m, _: zeros(m), then

    def play(self, trial):
        super().play(trial)
        self.then(trial)


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (lambda t: setattr(t.clock, "time", 3), "policy must play to the horizon 20; Played made 3 pulls"),
        (lambda t: t.clock.regret.fill(np.nan), "regret must be finite at all times; Played left"),
        (lambda t: setattr(t.ledger, "uploaded", -1), "ledger.uploaded of Played must be a whole number"),
        (lambda t: setattr(t.ledger, "downloaded", 2.5), "ledger.downloaded of Played .* got 2.5"),
        (lambda t: setattr(t.ledger, "downloaded", np.nan), "ledger.downloaded of Played .* got nan"),
    ],
)
def test_what_a_policy_leaves_behind_is_checked(then, message):
    with pytest.raises(ValueError, match=message):
        bandits.simulate(Played(then), ENV, 20, trials=1)


@pytest.mark.parametrize(
    ("horizon", "times", "message"),
    [
        (20, [10], "times must ascend from 1 or more to the horizon 20"),
        (20, [0, 20], "times must ascend"),
        (20, [5, 5, 20], "times must ascend"),
        (20, [], "times must"),
        (20, [2.5, 20], "times must be integers"),
        (0, [0], "horizon must be a whole number of at least 1"),
        (2.5, [2], "horizon must be a whole number of at least 1"),
    ],
)
def test_a_trial_checks_its_times(horizon, times, message):
    with pytest.raises(ValueError, match=message):
        Trial(ENV, horizon, times, np.random.default_rng(0))


@pytest.mark.parametrize(
    "policy", [bandits.FedPE, "FedPE", None, object()], ids=["class", "name", "none", "object"]
)
def test_a_policy_must_be_an_object_that_plays(policy):
    with pytest.raises(TypeError, match="policy must be an object with a name and a method play; got"):
        bandits.simulate(policy, ENV, 20)


# --------------------------------------------------------------------------------------------- check_policy


class Phases(Steps):
    def play(self, trial):
        m, k = trial.env.means.shape
        while not trial.done:
            pulls, best = self.arms(m, k)
            trial.clock.advance(pulls, best, k)


def zeros(*shape):
    return np.zeros(shape, dtype=np.int64)


BROKEN = [
    OutOfRange(-1, 1),
    OutOfRange(10**6, 1),
    constant(0.0),
    Steps(lambda m, k: zeros(m) + k),
    Steps(lambda m, _: zeros(m) - 1),
    Steps(lambda m, _: np.zeros(m)),
    Steps(lambda m, _: np.zeros(m, dtype=bool)),
    Steps(lambda m, _: zeros(m + 1)),
    Steps(lambda _m, _k: 0),
    Phases(lambda m, k: (zeros(m, k) - 1, zeros(m))),
    Phases(lambda m, k: (zeros(m, k), zeros(m) - 1)),
    Phases(lambda m, k: (zeros(m, k), zeros(m) + k)),
    Phases(lambda m, k: (np.zeros((m, k)), zeros(m))),
    Phases(lambda m, k: (zeros(m, k) + 2, zeros(m))),
    Phases(lambda m, k: (zeros(k), zeros(m))),
    bandits.FedPE(rounding=lambda w, f: np.ceil(w * f)),
    bandits.FedPE(rounding=lambda w, f: bandits.ceiling(w, f)[:, ::-1] + f),
    bandits.FedPE(keep=lambda r, _u, _a: np.ones(r.shape, dtype=int)),
]


@pytest.mark.slow
@pytest.mark.parametrize("policy", BROKEN, ids=lambda policy: policy.name)
def test_check_policy_finds_every_one(policy):
    with pytest.raises(ValueError, match=r"must .*; .*"):
        check_policy(policy, environments(parameters="disjoint"), max_examples=20)


class Overruns(bandits.Stepwise):
    """Reads behind the end of its array: nothing that compiled code would notice."""

    def start(self, trial):
        return Tally(np.zeros((trial.env.clients, 2)))

    @staticmethod
    def choose(state, i, _t, _rng):
        return int(state.total[i, 2] > np.inf)


class Tally(NamedTuple):
    total: np.ndarray


def test_an_index_out_of_bounds_is_found():
    with pytest.raises(
        AssertionError, match="Overruns uses an index out of bounds in step 1 or later: index 2"
    ):
        check_policy(Overruns(), environments(max_clients=1), max_examples=5)


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.integers(-5, 8), st.floats(allow_nan=True), st.booleans()), min_size=2, max_size=4),
    st.sampled_from([np.asarray, list, tuple, lambda v: np.asarray(v)[:, None]]),
)
def test_any_arms_are_played_or_refused(arms, make):
    """Arms are played exactly if they are an integer array of one existing arm per client."""
    given_arms = make(arms)
    array = np.asarray(given_arms)
    good = array.shape == (3,) and array.dtype.kind == "i" and array.min() >= 0 and array.max() < 4
    trial = new_trial()
    if good:
        trial.step(given_arms)
        assert trial.clock.total == pytest.approx(ENV.gaps[np.arange(3), array].mean(), abs=1e-15)
    else:
        with pytest.raises(ValueError, match="arms must"):
            trial.step(given_arms)
        assert trial.time == 0
