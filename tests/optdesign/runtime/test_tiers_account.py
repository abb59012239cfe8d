"""Seconds of plain Python are summed over processes, in a file that may be missing or damaged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optdesign.runtime import tiers

COUNT = """
import sys, numpy as np
from optdesign.runtime import jit, tiers
tiers.ALLOWANCE = 0.03
@jit.kernel
def slow(x):
    for n in range(200_000):
        x[0] += n
    return x[0]
slow(np.zeros(1))
print(len(slow.signatures), tiers.account.seconds.get(tiers.TOTAL, 0.0))
"""


@pytest.mark.slow
def test_seconds_are_summed_over_processes(tmp_path: Path) -> None:
    """A kernel whose single call is below the allowance is compiled in the process that exceeds it."""
    script = tmp_path / "script.py"
    script.write_text(COUNT.replace("0.03", "0.15"))
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    said = []
    while not said or said[-1][0] == "0":
        run = subprocess.run(
            [sys.executable, script], env=settings, capture_output=True, text=True, check=True
        )
        said.append(run.stdout.split())
        assert len(said) < 50
    assert len(said) > 1
    totals = [float(total) for _, total in said]
    assert totals == sorted(totals)


def test_a_file_is_saved_whenever_the_seconds_double(tmp_path: Path) -> None:
    """A second process reads what a first one has saved, and adds to it."""
    path = tmp_path / "folder" / "account.json"
    one, two = tiers.Account(path), tiers.Account(path)
    one.add("f", 0.004)
    assert not path.exists()
    one.add("f", 0.008)
    two.add("g", 0.5)
    saved = {"f": 0.025, "g": 0.5, tiers.TOTAL: 0.512}
    assert json.loads(path.read_text()) == pytest.approx(saved)
    assert two.seconds == tiers.Account(path).seconds == json.loads(path.read_text())
    assert [p.name for p in path.parent.iterdir()] == ["account.json"]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"f": "much"}', '{"f": null}', "3"])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(content)
    account = tiers.Account(path)
    assert account.seconds == {}
    account.add("f", 1.0)
    assert tiers.Account(path).seconds == {"f": 1.0, tiers.TOTAL: 1.0}


def test_a_file_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file" / "account.json"
    path.parent.write_text("no directory")
    account = tiers.Account(path)
    for _ in range(10):
        account.add("f", 1.0)
    assert account.seconds[tiers.TOTAL] == 10.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_does_not_save_the_seconds_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it wait for a lock that another thread of the parent holds."""
    account = tiers.Account(tmp_path / "account.json")
    monkeypatch.setattr(tiers, "account", account)
    account.add("f", 0.005)
    with account.lock:
        child = os.fork()
        if child == 0:
            account.add("g", 1.0)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert tiers.Account(account.path).seconds == {"g": 1.0, tiers.TOTAL: 1.0}
