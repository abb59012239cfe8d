"""Phase lengths: the horizon is reached exactly in the last phase, for every schedule."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.theory.schedules import Exponential, Greedy, Lengths, Uniform
from bandits.trials.regret import RegretClock

ANY = st.sampled_from([Exponential(), Exponential(3, 4), Uniform(), Uniform(7), Greedy()])


@settings(deadline=None, derandomize=True, max_examples=200)
@given(ANY, st.integers(1, 20_000), st.integers(1, 40))
def test_the_last_phase_reaches_the_horizon(schedule, horizon, arms):
    f = schedule.lengths(horizon, arms)
    ends = arms + np.cumsum(f + arms)
    if horizon <= arms:
        assert len(f) == 0
    else:
        assert ends[-1] >= horizon
        assert len(f) == 1 or ends[-2] < horizon
        assert f.min() >= 1


def test_the_papers_experiment_has_sixteen_phases():
    assert Exponential().lengths(2**17, 10).tolist() == [2**p for p in range(1, 17)]


def test_uniform_is_the_papers():
    f = Uniform().lengths(1000, 10)
    assert f[0] == 9
    assert set(f[1:]) == {10}
    assert Uniform().lengths(10, 1)[0] == 1


def test_greedy_has_loglog_many_phases_and_follows_the_recursion():
    horizon, arms = 2**16, 10
    f = Greedy().lengths(horizon, arms)
    assert len(f) <= math.ceil(math.log2(math.log2(horizon))) + 1
    s = 1.0
    for length in f[:-1]:
        following = s - arms + 2 * math.sqrt(horizon * s)
        assert length == math.ceil(following) - math.ceil(s)
        s = following
    assert arms + f.sum() + arms * len(f) == horizon


def test_any_sequence():
    assert Lengths([5, 1, 7]).lengths(20, 2).tolist() == [5, 1, 7]
    assert Lengths([5, 1, 7]).lengths(5, 2).tolist() == [5]
    with pytest.raises(ValueError, match="reach the horizon"):
        Lengths([5, 1]).lengths(100, 2)
    with pytest.raises(ValueError, match="at least 1"):
        Lengths([])
    with pytest.raises(ValueError, match="n must be a whole number of at least 2; got 1"):
        Exponential(1, 1)
    with pytest.raises(ValueError, match="length"):
        Uniform(0)


@pytest.mark.parametrize("schedule", [Exponential(), Uniform(), Greedy(), Lengths([20])])
def test_the_smallest_horizons(schedule):
    """None at the K first pulls, one from the pull after them on: it is never without a pull of its own."""
    for arms in (1, 2, 9):
        assert len(schedule.lengths(arms, arms)) == 0
        assert len(schedule.lengths(arms + 1, arms)) == 1
    assert Greedy().lengths(10, 9).tolist() == [1]
    assert Lengths([5, 1]).lengths(12, 2).tolist() == [5, 1], "2 + (5 + 2) + (1 + 2) pulls reach 12"


def test_greedy_phases_have_a_pull_where_the_recursion_would_shrink():
    """K = 40 exceeds the root of T = 100: S - K + 2 sqrt(T S) < S, and every phase is one pull."""
    assert Greedy().lengths(100, 40).tolist() == [1, 1]


def test_lengths_stay_exact_in_double_precision():
    assert Lengths([2**60]).lengths(10, 2).tolist() == [2**53]
    assert Lengths([2**53 - 1]).lengths(10, 2).tolist() == [2**53 - 1]


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_numpy_integers_do_not_overflow(kind):
    pairs: list[tuple[Exponential | Uniform, Exponential | Uniform]] = [
        (Exponential(kind(5), kind(3)), Exponential(5, 3)),
        (Uniform(kind(120)), Uniform(120)),
    ]
    for schedule, same in pairs:
        np.testing.assert_array_equal(schedule.lengths(3_000, 100), same.lengths(3_000, 100))
        assert schedule == same


def test_what_schedules_may_be():
    assert Uniform(1).lengths(4, 1).tolist() == [1, 1]
    for make in (lambda: Exponential(0, 2), lambda: Lengths([5, 0]), lambda: Uniform(0)):
        with pytest.raises(ValueError, match="at least 1"):
            make()
    for schedule, field in (
        (Exponential(), "c"),
        (Uniform(), "length"),
        (Greedy(), "any"),
        (Lengths([1]), "values"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(schedule, field, 3)


def test_a_schedule_of_ones_own_may_have_phases_of_one_pull():
    class Ones:
        def lengths(self, *_):
            return np.ones(5)

    assert bandits.FedPE(schedule=Ones()).lengths(10, 2).tolist() == [1, 1, 1]


def test_a_policy_takes_lengths_as_any_sequence():
    given = [5, 50, 500]
    expected = bandits.FedPE(schedule=given)
    for lengths in (tuple(given), np.array(given), np.array(given, dtype=float)):
        policy = bandits.FedPE(schedule=lengths)
        assert list(policy.schedule.lengths(300, 3)) == list(expected.schedule.lengths(300, 3))


def test_the_method_of_a_policy_is_checked():
    with pytest.raises(
        ValueError, match=r"design_method must be one of .*bca.*; got 'simplex'\. The paper's"
    ):
        bandits.FedPE(design_method="simplex")


class Short:
    """Two phases, whatever the horizon."""

    def __repr__(self):
        return "Short()"

    def lengths(self, horizon, arms):
        return np.array([4, 5]) if horizon > arms else np.empty(0)


@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])
def test_a_schedule_of_ones_own_must_reach_the_horizon(kind):
    """3 + (4 + 3) + (5 + 3) = 18 pulls: a horizon of 18 is reached, 19 is not."""
    env = bandits.environments.authors(4, 3, 2)
    run = bandits.simulate(kind(schedule=Short()), env, 18, trials=1)
    assert run.regret[0, -1] >= run.regret[0, 0] > 0
    with pytest.raises(ValueError, match=r"reach the horizon 19.*Short\(\) end at .* = 18 pulls"):
        bandits.simulate(kind(schedule=Short()), env, 19, trials=1)


@pytest.mark.parametrize("lengths", [[2.5, 100], [0, 100], [[5, 100]], [-3, 200]])
def test_a_schedule_of_ones_own_gives_whole_positive_lengths(lengths):
    class Odd:
        def lengths(self, *_):
            return np.array(lengths)

    with pytest.raises(ValueError, match="whole phase lengths of at least 1"):
        bandits.FedPE(schedule=Odd()).lengths(20, 3)


def test_phases_after_the_horizon_are_not_played():
    class Long:
        def lengths(self, *_):
            return np.full(100, 10)

    env = bandits.environments.authors(4, 3, 2)
    run = bandits.simulate(bandits.FedPE(schedule=Long()), env, 40, trials=1)
    assert run.phases["length"].tolist() == [13, 13, 11]


def test_time_that_has_not_come_has_no_regret():
    clock = RegretClock(np.array([[0.5, 0.0]]), np.array([1, 3]))
    clock.advance(np.array([[1, 1]]), np.array([1]), 2)
    np.testing.assert_array_equal(clock.regret, [0.5, np.nan])
