"""Jobs in another process: what they return and raise, and that the process can be ended."""

import io
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from problems import random_problem

from optdesign.algebra.reduced import reduce
from optdesign.verification import programs, worker
from optdesign.verification.worker import Worker

REDUCED = reduce(random_problem(3, "shared"))


def test_a_job_returns_what_the_program_does() -> None:
    w = Worker()
    raw, iterations = w.run("dual", REDUCED, "CLARABEL", {})
    expected = programs.dual(REDUCED, "CLARABEL", {})
    np.testing.assert_array_equal(raw, expected[0])
    assert iterations == expected[1]
    assert w.process.returncode == 0


@pytest.mark.slow
def test_an_error_comes_back_and_the_next_job_has_a_process_of_its_own() -> None:
    w = Worker()
    with pytest.raises(RuntimeError, match="SolverError"):
        w.run("dual", REDUCED, "NO_SUCH_SOLVER", {})
    first = w.process
    assert len(w.run("primal", REDUCED, "SCS", {})[0]) == len(REDUCED.z)
    assert w.process is not first


@pytest.mark.slow
def test_a_process_that_is_ended_is_an_error() -> None:
    w, raised = Worker(), []

    def run() -> None:
        try:
            w.run("dual", REDUCED, "SCS", {"eps": 1e-300, "max_iters": 10**9})
        except EOFError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while w.process is None:
        time.sleep(0.01)
    # A terminal sends Ctrl-C to the group of processes in front: it is ours to answer, not the solver's.
    assert os.getpgid(w.process.pid) != os.getpgid(0)
    w.end()
    thread.join()
    assert raised
    assert w.process.returncode == -signal.SIGKILL
    w.end()  # ending twice is fine


def test_a_process_that_cannot_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.sys, "executable", "true")
    with pytest.raises(EOFError):
        Worker().run("dual", REDUCED, "CLARABEL", {"filler": np.zeros(10**6)})


def test_ending_before_the_first_job_is_fine() -> None:
    Worker().end()


@pytest.mark.parametrize("name", ["good", "bad"])
def test_the_outcome_of_a_job_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(reduced, solver, options):
        if solver == "bad":
            raise ArithmeticError("no step")
        return reduced, options

    monkeypatch.setattr(worker, "PROGRAMS", {"primal": program})
    job, outcome = io.BytesIO(pickle.dumps(("primal", 7, name, 8))), io.BytesIO()
    worker.work(job, outcome)
    written = pickle.loads(outcome.getvalue())
    assert written == (7, 8) if name == "good" else str(written) == "ArithmeticError: no step"
