import io
import math
import time

import numpy as np
import pytest

import optdesign as od
from optdesign.runtime import progress, threads


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watch(monkeypatch, delay=0.0):
    """Make standard error a terminal; called in the test, since pytest captures anew after fixtures."""
    monkeypatch.setattr(progress, "DELAY", delay)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def test_display_shows_iteration_and_gap(monkeypatch):
    stderr = watch(monkeypatch)
    with progress.Progress(True, 1e-6) as display:
        display.timer.join()
        display.update(1, math.inf)
        display.update(2, 1.0)
        display.update(30, 1e-3)
        display.bar.refresh()
        assert display.bar.tasks[0].completed == pytest.approx(math.log(1e3))
        assert display.bar.tasks[0].total == pytest.approx(math.log(1e6))
        display.update(31, 1e-9)
        assert display.bar.tasks[0].completed == display.bar.tasks[0].total
    assert "iteration 30, gap 1.00e-03" in stderr.getvalue()


def test_display_opens_by_itself_with_what_it_was_told_before(monkeypatch):
    """In the middle of a step, however long that is: it says what is done, and the seconds go on."""
    stderr = watch(monkeypatch)
    with progress.Progress(True, 1e-6) as display:
        display.doing("a first stage")
        display.timer.join()
        assert display.bar.tasks[0].description == "a first stage"
        assert display.bar.tasks[0].start_time == display.began
        before = display.bar.tasks[0].elapsed
        assert display.bar.live.auto_refresh
        while display.bar.tasks[0].elapsed == before:
            time.sleep(1e-3)
        display.doing("a second stage")
        display.bar.refresh()
        display.update(1, 1.0)
        display.doing("not shown in place of a gap")
        display.bar.refresh()
    assert "a second stage" in stderr.getvalue()
    assert "iteration 1, gap 1.00e+00" in stderr.getvalue()
    assert "not shown" not in stderr.getvalue()


def test_a_gap_is_shown_that_came_before_the_display_opened(monkeypatch):
    watch(monkeypatch, delay=60.0)
    with progress.Progress(True, 1e-6) as display:
        display.update(1, 1.0)
        display.update(2, 1e-3)
        display._open()
        assert display.bar.tasks[0].description == "iteration 2, gap 1.00e-03"
        assert display.bar.tasks[0].completed == pytest.approx(math.log(1e3))


def test_solvers_say_what_they_do_in_steps_without_a_gap(monkeypatch):
    said = []
    monkeypatch.setattr(progress.Progress, "doing", lambda _, stage: said.append(stage))
    monkeypatch.setattr(threads, "PIECE", 100)
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(200, 20)))
    assert od.solve(problem, method="newton").converged
    assert set(said) == {"newton"}


def test_nothing_is_shown_within_the_first_second(monkeypatch):
    stderr = watch(monkeypatch, delay=60.0)
    with progress.Progress(True, 1e-6) as display:
        display.update(1, 1.0)
    with progress.waiting("reading"):
        pass
    assert stderr.getvalue() == ""


def test_nothing_is_shown_when_nobody_looks(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with progress.Progress(True, 1e-6) as display, progress.waiting("reading"):
        display.update(1, 1.0)
    assert stream.getvalue() == ""


def test_waiting_shows_its_text_as_it_is(monkeypatch):
    stderr = watch(monkeypatch)
    with progress.waiting("reading a[1].csv"):
        deadline = time.monotonic() + 5
        while "reading" not in stderr.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "reading a[1].csv" in stderr.getvalue()


def test_waiting_ends_with_the_error_inside(monkeypatch):
    watch(monkeypatch)
    with pytest.raises(KeyError), progress.waiting("reading"):
        raise KeyError


def test_a_counter_shows_tasks(monkeypatch):
    stderr = watch(monkeypatch)
    with progress.Counter(True, "trials", 3) as display:
        display.timer.join()
        display.step()
        display.step()
        display.bar.refresh()
        assert display.bar.tasks[0].completed == 2
        assert display.bar.tasks[0].total == 3
    assert "trials 2/3" in stderr.getvalue()
