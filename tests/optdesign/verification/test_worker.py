"""Jobs in another process: what they return and raise, and that the process can be ended."""

import io
import os
import pickle
import signal

import numpy as np
import pytest
from problems import random_problem

from optdesign.algebra.reduced import reduce
from optdesign.verification import programs, worker
from optdesign.verification.worker import Worker

REDUCED = reduce(random_problem(3, "shared"))


def test_a_job_returns_what_the_program_does() -> None:
    with Worker() as w:
        for _ in range(2):
            raw, iterations = w.run("dual", REDUCED, "CLARABEL", {})
        process = w.process
        # A terminal sends Ctrl-C to the group of processes in front: it is ours to answer, not the solver's.
        assert os.getpgid(process.pid) != os.getpgid(0)
    expected = programs.dual(REDUCED, "CLARABEL", {})
    np.testing.assert_array_equal(raw, expected[0])
    assert iterations == expected[1]
    assert process.returncode is not None
    assert w.process is None


@pytest.mark.slow
def test_an_error_comes_back_and_the_process_goes_on() -> None:
    with Worker() as w:
        with pytest.raises(RuntimeError, match="SolverError"):
            w.run("dual", REDUCED, "NO_SUCH_SOLVER", {})
        process = w.process
        assert len(w.run("primal", REDUCED, "SCS", {})[0]) == len(REDUCED.z)
        assert w.process is process


@pytest.mark.slow
def test_a_process_that_has_died_is_replaced() -> None:
    with Worker() as w:
        w.run("dual", REDUCED, "CLARABEL", {})
        first = w.process
        first.send_signal(signal.SIGKILL)
        first.wait()
        w.run("dual", REDUCED, "CLARABEL", {})
        assert w.process is not first


def test_a_process_that_cannot_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.sys, "executable", "true")
    with Worker() as w, pytest.raises(EOFError):
        w.run("dual", REDUCED, "CLARABEL", {"filler": np.zeros(10**6)})


@pytest.mark.slow
def test_ending_twice_is_fine() -> None:
    w = Worker()
    w.end()
    with pytest.raises(RuntimeError):
        w.run("dual", REDUCED, "NO_SUCH_SOLVER", {})
    w.end()
    w.end()


def test_jobs_are_served_until_there_are_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(reduced, solver, options):
        if solver == "bad":
            raise ArithmeticError("no step")
        return reduced, options

    monkeypatch.setattr(worker, "PROGRAMS", {"primal": program})
    jobs = io.BytesIO()
    for name in ("good", "bad", "good"):
        pickle.dump(("primal", 7, name, 8), jobs)
    jobs.seek(0)
    outcomes = io.BytesIO()
    worker.serve(jobs, outcomes)
    outcomes.seek(0)
    first, second, third = (pickle.load(outcomes) for _ in range(3))
    assert first == third == (7, 8)
    assert str(second) == "ArithmeticError: no step"
