import io
import math
import time

import pytest

from optdesign.runtime import progress


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
    """In the middle of a step, however long that is: the seconds go on."""
    stderr = watch(monkeypatch)
    with progress.Progress(True, 1e-6) as display:
        display.timer.join()
        assert display.bar.tasks[0].description == "starting"
        assert display.bar.tasks[0].start_time == display.began
        before = display.bar.tasks[0].elapsed
        assert display.bar.live.auto_refresh
        while display.bar.tasks[0].elapsed == before:
            time.sleep(1e-3)
        display.update(1, 1.0)
        display.bar.refresh()
    assert "iteration 1, gap 1.00e+00" in stderr.getvalue()


def test_a_gap_is_shown_that_came_before_the_display_opened(monkeypatch):
    watch(monkeypatch, delay=60.0)
    with progress.Progress(True, 1e-6) as display:
        display.update(1, 1.0)
        display.update(2, 1e-3)
        display._open()
        assert display.bar.tasks[0].description == "iteration 2, gap 1.00e-03"
        assert display.bar.tasks[0].completed == pytest.approx(math.log(1e3))


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
