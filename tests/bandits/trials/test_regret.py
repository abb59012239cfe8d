"""The clock of regret: phases, single steps and finished loops against the sum of what was pulled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.trials.regret import RegretClock

GAPS = np.array([[0.0, 0.5, 0.25], [1.0, 0.0, 0.125], [0.0, 0.0, 2.0]])
"""Exact in binary, so that sums in any order are equal."""


@pytest.mark.kernels
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12), st.data())
def test_steps_add_up_to_the_mean_over_clients(arms, data):
    pulled = np.array(arms)
    horizon = len(pulled)
    times = np.unique([*data.draw(st.lists(st.integers(1, horizon), max_size=4)), horizon])
    clock = RegretClock(GAPS, times)
    expected = GAPS[np.arange(3), pulled].mean(axis=1).cumsum()
    for t, choice in enumerate(pulled, start=1):
        assert np.isnan(clock.regret[times >= t]).all(), "not a number at times that have not come"
        clock.step(choice)
        assert clock.time == t
        assert clock.total == pytest.approx(expected[t - 1], rel=1e-14)
    np.testing.assert_allclose(clock.regret, expected[times - 1], rtol=1e-14)


@pytest.mark.kernels
def test_regret_at_the_end_of_an_arm_of_a_phase_and_between():
    """One client, two pulls of arm 0, one of arm 2, then arm 1 until the end: all times of two phases."""
    clock = RegretClock(GAPS[1:2], np.arange(1, 11))
    for _ in range(2):
        clock.advance(np.array([[2, 0, 1]]), np.array([1]), 5)
    one = [1.0, 2.0, 2.125, 2.125, 2.125]
    assert clock.regret.tolist() == one + [v + 2.125 for v in one]
    assert (clock.time, clock.total) == (10, 4.25)


@pytest.mark.kernels
def test_phases_that_end_between_the_times_asked_for():
    """The estimated best arm may cost something too: two pulls of arm 0, then arm 2, in phases of five."""
    clock = RegretClock(GAPS[1:2], np.array([3, 8, 12]))
    one = np.cumsum([1.0, 1.0, 0.125, 0.125, 0.125])
    for phase in range(1, 4):
        clock.advance(np.array([[2, 0, 0]]), np.array([2]), 5)
        assert clock.total == one[4] * phase if phase < 3 else one[4] * 2 + one[1]
    assert clock.regret.tolist() == [one[2], one[4] + one[2], 2 * one[4] + one[1]]


@pytest.mark.kernels
def test_a_phase_that_passes_the_horizon_is_cut_there():
    clock = RegretClock(GAPS[1:2], np.array([2, 3]))
    clock.advance(np.array([[10, 0, 0]]), np.array([1]), 10)
    assert clock.regret.tolist() == [2.0, 3.0]
    assert (clock.time, clock.total) == (3, 3.0)


@pytest.mark.kernels
def test_phases_and_steps_may_alternate():
    """A time that is the end of one stretch is read then, and stays as it was read."""
    clock = RegretClock(GAPS, np.array([1, 2, 4, 5]))
    clock.step(np.array([1, 0, 2]))
    clock.advance(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]]), np.array([0, 1, 0]), 3)
    clock.step(np.array([1, 0, 2]))
    assert clock.regret.tolist() == pytest.approx([3.5 / 3, 7 / 3, 7 / 3, 3.5], rel=1e-14)
    assert clock.time == 5


def test_a_finished_loop_is_taken_over_per_client():
    """Regret comes summed over the clients, and is kept as their mean."""
    clock = RegretClock(GAPS, np.array([3, 7, 20]))
    clock.finish(np.array([1.5, 4.5, 7.5]))
    assert clock.regret.tolist() == [0.5, 1.5, 2.5]
    assert (clock.time, clock.total) == (20, 2.5)
