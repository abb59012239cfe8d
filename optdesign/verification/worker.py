"""A process of its own for convex solvers, so that they can be ended at any moment.

A solver in a thread cannot be stopped, and one that is left behind may bring the interpreter down at its
exit. The process runs ``python -m optdesign.verification.worker``, which reads jobs and writes outcomes, both
pickled, until there are no more.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any

import numpy as np

from optdesign.algebra.reduced import Reduced
from optdesign.verification.programs import PROGRAMS


class Worker:
    """A process that is started with the first job, and ended on leaving the context."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def run(
        self, form: str, reduced: Reduced, solver: str, options: dict[str, Any]
    ) -> tuple[np.ndarray, int]:
        """Return or raise the result of the program of that form. Raise EOFError if the process is ended."""
        if self.process is not None and self.process.poll() is not None:
            self.end()
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "optdesign.verification.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,  # Ctrl-C is for us to answer
            )
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((form, reduced, solver, options), process.stdin)
            process.stdin.flush()
        except BrokenPipeError:
            raise EOFError("the solver's process has ended") from None
        outcome = pickle.load(process.stdout)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def end(self) -> None:
        """End the process, whatever it does. The next job starts another."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                with suppress(BrokenPipeError):  # half a job may still be in the pipe
                    stream.close()
            self.process = None

    def __exit__(self, *_: object) -> None:
        self.end()


def serve(jobs: IO[bytes], outcomes: IO[bytes]) -> None:
    """Do jobs until there are no more."""
    while True:
        try:
            form, reduced, solver, options = pickle.load(jobs)
        except EOFError:
            return
        outcome: tuple[np.ndarray, int] | Exception
        try:
            outcome = PROGRAMS[form](reduced, solver, options)
        except Exception as error:
            outcome = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(outcome, outcomes)
        outcomes.flush()


if __name__ == "__main__":
    # The output of solvers must not be mixed with the outcomes.
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        serve(sys.stdin.buffer, out)
