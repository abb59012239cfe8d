"""Hypothesis settings for all tests: the same examples in every run, and no deadline (kernels compile).

And Ctrl-C is Python's, also where the tests were started with it ignored, as in the background of a shell.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "stable",
    deadline=None,
    derandomize=True,
    print_blob=False,  # also where CI is set: tests read what is printed
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# For make mutants: what is found is not made small.
settings.register_profile(
    "mutants", settings.get_profile("stable"), phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
settings.load_profile("stable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes text or bytes to a file and returns its path."""

    def put(text: str | bytes, name: str = "data.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return put
