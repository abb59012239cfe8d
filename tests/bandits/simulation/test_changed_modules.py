"""Trials in other processes are those of the policy in this process, also after its module has changed."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

import bandits

ENV = bandits.environments.authors(3, 4, 2, seed=1)
SOURCE = """
import numpy as np

ARM = {arm}


class Fixed:
    name = "fixed"

    def play(self, trial):
        while not trial.done:
            trial.step(np.full(trial.env.clients, ARM))
"""


class Inner:
    class Nested(bandits.FedPE):
        """A class within a class."""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    get_reusable_executor().shutdown()
    write(tmp_path, 0)
    yield importlib.import_module("changing")
    sys.modules.pop("changing")
    get_reusable_executor().shutdown()


def write(folder, arm):
    (folder / "changing.py").write_text(SOURCE.format(arm=arm), encoding="utf-8")
    importlib.invalidate_caches()


def regret(module, n_jobs, **options):
    run = bandits.simulate(module.Fixed(), ENV, 20, trials=4, n_jobs=n_jobs, **options)
    return run.regret[:, -1].tolist()


@pytest.mark.slow
def test_processes_of_an_earlier_call_do_not_play_former_code(module, tmp_path):
    first = regret(module, 2)
    assert first == regret(module, 1)
    write(tmp_path, 1)
    importlib.reload(module)
    second = regret(module, 2, checkpoint=tmp_path / "run.npz")
    assert second == regret(module, 1) != first


@pytest.mark.slow
def test_a_helper_of_a_module_may_be_reloaded_too(module, tmp_path):
    policy = tmp_path / "calling.py"
    source = SOURCE.replace("import numpy as np", "import changing\nimport numpy as np")
    policy.write_text(source.format(arm=0).replace("clients, ARM", "clients, changing.ARM"), encoding="utf-8")
    calling = importlib.import_module("calling")
    first = regret(calling, 2)
    write(tmp_path, 1)
    importlib.reload(module)
    second = regret(calling, 2)
    sys.modules.pop("calling")
    assert second == regret(calling, 1) != first


@pytest.mark.slow
def test_values_assigned_to_a_module_are_refused_in_other_processes(module):
    module.ARM = 2
    assert len(set(regret(module, 1))) == 1
    with pytest.raises(ValueError, match="n_jobs must be 1 for fixed: the policy or the environment differs"):
        regret(module, 2)


@pytest.mark.slow
def test_policies_of_this_module_are_the_same_in_other_processes():
    class Local(bandits.FedPE):
        """Pickled by value."""

    for policy in (Inner.Nested(), Local(rounding=lambda w, f: np.ceil(w * f).astype(int)), bandits.LinTS()):
        runs = [bandits.simulate(policy, ENV, 100, trials=2, n_jobs=n) for n in (1, 2)]
        np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
