"""Smoke test of an installed wheel: `python -I smoke.py`, outside the checkout, with no optional dependency.

It solves, certifies and verifies a small design, plays a short bandit, and runs both commands.
"""

import importlib.metadata
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

import optdesign as od

loaded = [name for name in ("cvxpy", "matplotlib", "bandits") if name in sys.modules]
assert not loaded, f"import optdesign loads {loaded}"

import bandits  # noqa: E402

BIN = Path(sys.executable).parent


def command(*words: str, folder: str | None = None) -> str:
    """Return the output of an installed command."""
    done = subprocess.run([BIN / words[0], *words[1:]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def check_installation() -> None:
    """Check that the packages are those of the wheel, typed, with one version."""
    for package in (od, bandits):
        assert Path(sys.prefix) in Path(package.__file__).parents, f"{package.__file__} is not of the wheel"
        assert files(package).joinpath("py.typed").is_file(), f"{package.__name__} has no py.typed"
    assert importlib.metadata.version("optdesign-bandits") == od.__version__


def check_design() -> None:
    """Check a design of two groups from the candidates to the run list."""
    candidates = np.random.default_rng(0).normal(size=(60, 3))
    problem = od.DesignProblem(candidates, groups=np.arange(60) % 2, budgets=[12, 8])
    result = od.solve(problem)
    assert result.gap <= 1e-6 * result.rank
    assert od.certify(problem, result.weights).efficiency >= 1 - 1e-6
    verification = od.verify(result)
    assert verification.agrees, str(verification)
    assert od.round(result).counts.sum() == 20


def check_bandit() -> None:
    """Check a short simulation of Fed-PE."""
    env = bandits.environments.authors(clients=5, arms=3, dim=2, seed=0)
    run = bandits.simulate(bandits.FedPE(), env, horizon=500, trials=1, seed=0)
    assert run.times[-1] == 500
    assert np.all(np.isfinite(run.regret))


def check_commands() -> None:
    """Check that both commands start, and that a file of candidates is solved, certified and verified."""
    assert command("optdesign", "--version").split()[-1] == od.__version__
    assert "solve" in command("optdesign", "--help")
    assert "reproduce" in command("bandits", "--help")
    with tempfile.TemporaryDirectory() as folder:
        rows = np.random.default_rng(1).normal(size=(20, 2))
        np.savetxt(Path(folder) / "c.csv", rows, delimiter=",", header="a,b", comments="")
        command("optdesign", "solve", "c.csv", "--out", "d.csv", folder=folder)
        for name in ("certify", "verify"):
            assert command("optdesign", name, "d.csv", folder=folder)


if __name__ == "__main__":
    for check in (check_installation, check_design, check_bandit, check_commands):
        check()
        print(f"{check.__name__}: passed")
