"""A process of its own for convex solvers, so that they can be ended at any moment.

A solver in a thread cannot be stopped, and one that is left behind may bring the interpreter down at its
exit. The process runs ``python -m optdesign.verification.worker``, which reads a job and writes its outcome,
both pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import IO, Any

import numpy as np

from optdesign.algebra.reduced import Reduced
from optdesign.verification.programs import PROGRAMS


class Worker:
    """A process for each job, which can be ended by another thread."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(
        self, form: str, reduced: Reduced, solver: str, options: dict[str, Any]
    ) -> tuple[np.ndarray, int]:
        """Return or raise the result of the program of that form. Raise EOFError if the process is ended."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "optdesign.verification.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,  # Ctrl-C is for us to answer
        )
        outcome = pickle.loads(self.process.communicate(pickle.dumps((form, reduced, solver, options)))[0])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.kill()


def work(jobs: IO[bytes], outcomes: IO[bytes]) -> None:
    """Do a job."""
    form, *job = pickle.load(jobs)
    try:
        outcome: object = PROGRAMS[form](*job)
    except Exception as error:
        outcome = RuntimeError(f"{type(error).__name__}: {error}")
    pickle.dump(outcome, outcomes)


if __name__ == "__main__":
    # The output of solvers must not be mixed with the outcome.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        work(sys.stdin.buffer, out)
