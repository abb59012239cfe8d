"""Functions that an experiment file names are those of the module beside it, as classes are."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import bandits
from bandits.cli.experiment_file import read

FILE = """
horizon = 20
[environment]
kind = "authors"
clients = 2
arms = 3
dim = 2
[[policy]]
kind = "FedPE"
keep = "rules_beside:keep"
"""


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, value in (("beside", True), ("elsewhere", False)):
        (tmp_path / name).mkdir()
        text = f"import numpy as np\n\n\ndef keep(r, u, active):\n    return np.full(r.shape, {value})\n"
        (tmp_path / name / "rules_beside.py").write_text(text, encoding="utf-8")
    (tmp_path / "beside" / "file.toml").write_text(FILE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("rules_beside", None)


def test_a_module_elsewhere_is_not_used(folders, monkeypatch):
    monkeypatch.syspath_prepend(folders / "elsewhere")
    (policy,) = read(folders / "beside" / "file.toml").policies.values()
    assert isinstance(policy, bandits.FedPE)
    assert policy.keep(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2), dtype=bool)).all()


def test_a_module_that_was_imported_from_elsewhere_is_refused(folders, monkeypatch):
    monkeypatch.syspath_prepend(folders / "elsewhere")
    __import__("rules_beside")
    with pytest.raises(ValueError, match="must name a module that is not imported from elsewhere"):
        read(folders / "beside" / "file.toml")
