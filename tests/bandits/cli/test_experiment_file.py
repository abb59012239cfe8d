"""Configuration files: every key has a type and a range, and mistakes are told in one line."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bandits
from bandits.cli import commands, experiment_file
from bandits.cli.options import Unfit, _fit, checked, declared

HEAD = "horizon = 100\ntrials = 1\n"
ENVIRONMENT = '[environment]\nkind = "authors"\nclients = 4\narms = 3\ndim = 2\n'
POLICY = '[[policy]]\nkind = "FedPE"\n'

WRONG = [
    # head, environment, policy, and what the message must have
    ("horizon = true", "", "", "horizon must be a whole number of at least 1; got True"),
    ('horizon = "4096"', "", "", "horizon must be a whole number of at least 1; got '4096'"),
    ("horizon = 4096.7", "", "", "horizon must be a whole number of at least 1; got 4096.7"),
    ("horizon = 0", "", "", "horizon must be a whole number of at least 1; got 0"),
    ("horizon = 100000000000000000", "", "", "horizon must be a whole number of at most 9007199254740992"),
    ("horizon = 10\ntrials = 2.9", "", "", "trials must be a whole number of at least 1; got 2.9"),
    ("horizon = 10\nseed = -1", "", "", "seed must be a whole number of at least 0; got -1"),
    ("horizon = 10\ntitle = 3", "", "", "title must be text; got 3"),
    ("horizon = 10\nenvironment = 3", None, "", "environment must be a table with a kind; got 3"),
    ("horizon = 10\npolicy = 3", "", None, "policy must be a list of values; got 3"),
    ("horizon = 10\npolicy = []", "", None, "policy must have at least one entry; got none"),
    ("horizon = 10\npolicy = [3]", "", None, "policy must be a table with a kind; got 3"),
    ("", 'kind = "authors"\nclients = "20"', "", "clients must be a whole number of at least 1; got '20'"),
    ("", 'kind = "authors"\nclients = 0', "", "clients must be a whole number of at least 1; got 0"),
    ("", 'kind = "authors"\nseed = 1.5', "", "seed must be a whole number of at least 0; got 1.5"),
    ("", 'kind = "authors"\nscale = "wide"', "", "scale must be a number; got 'wide'"),
    ("", 'kind = "authors"\nscale = inf', "", "scale must be a number; got inf"),
    ("", 'kind = "authors"\nscale = -1', "", "scale must be finite and not negative; got -1"),
    ("", 'kind = "authors"\nell = 2.0', "", "ell must bound the environment; got 2.0"),
    ("", 'kind = "authors"\nnoise = 3', "", "noise must be text; got 3"),
    ("", 'kind = "authors"\nnoise = "pink"', "", "got 'pink'"),
    ("", 'kind = "random"\nclients = 2', "", "environment random must have arms"),
    ("", 'kind = "random"\nclients = 2\narms = 2\ndim = 2\nshared = 1', "", "shared must be true or false"),
    ("", 'kind = "lower_bound"\nclients = 2\narms = 2\ndim = 2\nbest = "x"', "", "best must be a list"),
    ("", "kind = 3", "", "kind of environment must be one of"),
    ("", 'kind = "file"\npath = 3', "", "path must be text; got 3"),
    ("", 'kind = "file"', "", "environment file must have path"),
    ("", 'kind = "nowhere:Thing"', "", "kind of environment must name a module that can be imported"),
    ("", "", 'kind = "FedPE"\nwarm_start = "yes"', "warm_start must be true or false; got 'yes'"),
    ("", "", 'kind = "FedPE"\ndelta = "a"', "delta must be a number; got 'a'"),
    ("", "", 'kind = "FedPE"\ndelta = 2', "delta must lie strictly in (0, 1); got 2"),
    ("", "", 'kind = "FedPE"\nbudgets = 3', "budgets must be a list of numbers; got 3"),
    ("", "", 'kind = "FedPE"\nbudgets = [1.0, "x"]', "budgets must be a list of numbers; got [1.0, 'x']"),
    ("", "", 'kind = "FedPE"\nbudgets = [2.0]', "budgets must lie in (0, 1]; got"),
    ("", "", 'kind = "FedPE"\nschedule = "greedy"', "schedule must be a table with a kind"),
    (
        "",
        "",
        'kind = "FedPE"\nschedule = { kind = "uniform", length = "2" }',
        "length must be a whole number",
    ),
    (
        "",
        "",
        'kind = "FedPE"\nschedule = { kind = "uniform", length = 0 }',
        "length must be a whole number of at least 1; got 0",
    ),
    ("", "", 'kind = "FedPE"\nschedule = { kind = "lengths", values = 3 }', "values must be a list of whole"),
    ("", "", 'kind = "FedPE"\nrounding = "up"', "rounding must be the name of a function"),
    ("", "", 'kind = "FedPE"\nlabel = 3', "label must be text; got 3"),
    ("", "", 'kind = "LocalUCB"\nindex = 1', "index must be text; got 1"),
    ("", "", 'kind = "LocalUCB"\nsigma = "x"', "sigma must be a number; got 'x'"),
    ("", "", 'kind = "math:pi"', "must name a class or a function"),
    ("", "", 'kind = "math:nothing"', "'math' has no 'nothing'"),
    ("", "", 'kind = "fractions:Fraction"', "must have a name and a method play"),
]


def refusal(tmp_path, monkeypatch, capsys, text):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["bandits", "run", str(file), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stopped:
        commands.main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bandits: {file}")
    assert len(said.splitlines()) == 1
    return said


@pytest.mark.parametrize(("head", "environment", "policy", "message"), WRONG)
def test_wrong_values_are_named(tmp_path, monkeypatch, capsys, head, environment, policy, message):
    parts = [
        (head or HEAD) + "\n",
        "" if environment is None else f"[environment]\n{environment}\n" if environment else ENVIRONMENT,
        "" if policy is None else f"[[policy]]\n{policy}\n" if policy else POLICY,
    ]
    assert message in refusal(tmp_path, monkeypatch, capsys, "".join(parts))


def test_a_data_file_without_features_is_named(tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "data.npz", x=np.ones(3))
    text = HEAD + '[environment]\nkind = "file"\npath = "data.npz"\n' + POLICY
    assert "data.npz" in refusal(tmp_path, monkeypatch, capsys, text)


def test_whole_numbers_are_numbers_and_lists_are_schedules():
    data = {
        "horizon": 100,
        "environment": {"kind": "authors", "clients": 4, "arms": 3, "dim": 2, "scale": 1},
        "policy": [{"kind": "FedPE", "schedule": [30, 90], "budgets": [1, 0.5, 1, 1]}],
    }
    policy = experiment_file.parse(data).policies["FedPE"]
    assert policy.schedule == bandits.schedules.Lengths([30, 90])
    assert policy.budgets == (1.0, 0.5, 1.0, 1.0)


@pytest.mark.parametrize("make", [*experiment_file.POLICIES.values(), *experiment_file.GENERATORS.values()])
def test_every_option_of_every_kind_has_a_type(make):
    """A value of no type at all is refused by each of them."""
    for name, parameter in inspect.signature(make).parameters.items():
        with pytest.raises(Unfit):
            _fit(object(), declared(parameter.annotation, make), name, experiment_file.makers(Path()))
        with pytest.raises(ValueError, match=name):
            checked(
                name, object(), declared(parameter.annotation, make), "it", experiment_file.makers(Path())
            )


OWN = """
from dataclasses import dataclass

import numpy as np

import bandits


@dataclass(frozen=True)
class FirstArm:
    arm: int = 0
    name = "first arm"

    def play(self, trial):
        while not trial.done:
            trial.step(np.full(trial.env.clients, self.arm))


class Flat(bandits.LinearEnvironment):
    def __init__(self, clients: int, level: float):
        super().__init__(np.ones((clients, 2, 1)), [[level], [0.0]])


def generous(weights, f):
    return bandits.ceiling(weights, f)
"""


@pytest.mark.slow
def test_classes_of_ones_own_are_named_by_module(tmp_path):
    """Also in processes that were started before the folder of the file was known."""
    bandits.simulate(bandits.LocalUCB(), bandits.environments.synthetic(3, 2, 2), 20, trials=2, n_jobs=2)
    (tmp_path / "ownthings.py").write_text(OWN)
    file = tmp_path / "own.toml"
    file.write_text(
        textwrap.dedent(
            """
            horizon = 50
            trials = 2
            [environment]
            kind = "ownthings:Flat"
            clients = 3
            level = 1
            [[policy]]
            kind = "ownthings:FirstArm"
            arm = 1
            [[policy]]
            kind = "FedPE"
            rounding = "ownthings:generous"
            """
        )
    )
    experiment = experiment_file.read(file)
    assert experiment.env.clients == 3
    run = bandits.simulate(experiment.policies["first arm"], experiment.env, 50, trials=2, n_jobs=2)
    np.testing.assert_allclose(run.regret[:, -1], 50.0)
    assert experiment.policies["FedPE"].rounding.__name__ == "generous"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ownthings.py").write_text(OWN)
    (elsewhere / "own.toml").write_text(file.read_text())
    with pytest.raises(ValueError, match=r"'ownthings' is .* Rename it"):
        experiment_file.read(elsewhere / "own.toml")
    file.write_text(file.read_text().replace("level = 1", 'level = "high"'))
    with pytest.raises(ValueError, match=r"own\.toml: environment ownthings:Flat: level must be a number"):
        experiment_file.read(file)


def test_every_kind_of_deviation_interval_and_control_can_be_written(tmp_path):
    """Options that are a name or a number, and a policy without options, from a file to the results."""
    written = [
        *(f'kind = "LinTS"{option}' for option in ("", '\nv = "worst-case"', "\nv = 1")),
        *(f'kind = "CollaborativeFedPE"{option}' for option in ("", '\nintervals = "enhanced"')),
        'kind = "LongestFeature"',
    ]
    text = "\n".join(f"[[policy]]\n{policy}" for policy in written)
    (tmp_path / "file.toml").write_text(f"{HEAD}{ENVIRONMENT}\n{text}\n")
    policies = experiment_file.read(tmp_path / "file.toml").policies
    assert list(policies) == [
        "LinTS",
        "LinTS (v = worst-case)",
        "LinTS (v = 1.0)",
        "CollaborativeFedPE",
        "CollaborativeFedPE (enhanced intervals)",
        "LongestFeature",
    ]
    assert policies["LinTS (v = 1.0)"] == bandits.LinTS(v=1.0)
    result = CliRunner().invoke(
        commands.app, ["run", str(tmp_path / "file.toml"), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0
    run = bandits.load(tmp_path / "out" / "regret-longestfeature.npz")
    env = bandits.environments.authors(4, 3, 2)
    np.testing.assert_array_equal(
        run.regret, bandits.simulate(bandits.LongestFeature(), env, 100, trials=1).regret
    )


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ('kind = "LinTS"\nv = "posterior"', "v must be one of beta, worst-case, sigma or a finite number"),
        ('kind = "LinTS"\nv = true', "v must be a number or text; got True"),
        ('kind = "CollaborativeFedPE"\nintervals = "wide"', "intervals must be one of fedpe, enhanced"),
        ('kind = "LongestFeature"\ndelta = 0.1', "policy LongestFeature may have no options; got 'delta'"),
        ('kind = "FedUCB"\nprivacy_delta = 2', "privacy_delta must lie strictly in (0, 1); got 2.0"),
    ],
)
def test_mistakes_in_these_options_are_named(tmp_path, monkeypatch, capsys, policy, words):
    text = HEAD + ENVIRONMENT + "[[policy]]\n" + policy + "\n"
    assert words in refusal(tmp_path, monkeypatch, capsys, text)


@pytest.mark.parametrize("content", ["text", "objects", "empty"])
def test_a_file_that_is_no_archive_of_numbers_is_named(tmp_path, content):
    data = tmp_path / "data.npz"
    if content == "objects":
        np.savez(data, features=np.array([None, 1], dtype=object), parameters=np.ones(2))
    else:
        data.write_text("hello" if content == "text" else "")
    file = tmp_path / "experiment.toml"
    file.write_text(
        'horizon = 10\n[environment]\nkind = "file"\npath = "data.npz"\n[[policy]]\nkind = "FedPE"\n'
    )
    with pytest.raises(ValueError, match=r"path must be an \.npz file"):
        experiment_file.read(file)
