"""The commands certify and verify on saved designs."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import BUDGETS, expected, refused, run, solved, write_example

import optdesign as od
from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli
from optdesign.design import result as result_module


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path)
    return tmp_path


@pytest.fixture
def uniform(folder):
    p = expected()
    source = files.read(folder / "data.csv", group="site", block="arm")
    files.write(folder / "d.csv", source, p.budgets, p.uniform(), np.zeros(24))


def test_a_saved_design_is_certified_for_what_is_named():
    """Without the options it was solved with it is another problem, and that is said."""
    solved("--out", "d.csv")
    hint = "without site, arm; if the design was solved with other --model, --group, --parameter-block or"
    for command in ("certify", "verify"):
        assert hint in run(command, "d.csv").stdout
        assert any(hint in note for note in json.loads(run(command, "d.csv", "--json").stdout)["notes"])
        same = run(command, "d.csv", "--group", "site", "--parameter-block", "arm")
        assert same.exit_code == 0
        assert "if the design was solved" not in same.stdout
    solved("--out", "d.npz")
    assert run("certify", "d.npz").exit_code == 0  # an archive holds labels and features


def test_verify_reports_in_json():
    solved("--budget", "budgets.csv", "--out", "d.csv")
    result = run(
        "verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--solver", "scs", "--json"
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["verdict"] == "agrees"
    assert report["relative_gap"] <= 1e-6
    assert len(report["comparisons"]) == 10
    assert report["notes"] == []
    assert report["within_tol"]
    assert report["optimal"]
    assert report["tol"] == 1e-4


@pytest.mark.usefixtures("uniform")
def test_verify_of_poor_weights_cannot_be_misread():
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    last = result.stdout.splitlines()[-1]
    assert last.startswith("NOT optimal: efficiency only at least 0.")
    assert "exceeds --tol 0.0001" in last
    assert "agrees" not in result.stdout
    assert "comparison        consistent: with exact arithmetic and with cvxpy" in result.stdout
    report = json.loads(
        run("verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--json").stdout
    )
    assert (report["optimal"], report["within_tol"], report["verdict"]) == (False, False, "consistent")
    assert report["conclusion"] == last


@pytest.mark.usefixtures("uniform")
def test_verify_passes_what_its_tolerance_allows():
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--tol", 10)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("optimal to within 10: efficiency at least 0.")


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize("command", ["certify", "verify"])
def test_the_tolerance_is_for_the_gap_over_the_rank(command):
    """Just above it the design passes, just below it does not; the gap itself is four times as large."""
    report = json.loads(
        run("certify", "d.csv", "--group", "site", "--parameter-block", "arm", "--json").stdout
    )
    assert report["gap"] == pytest.approx(4 * report["relative_gap"])
    for factor, code in ((1.01, cli.ExitCode.DONE), (0.99, cli.ExitCode.NOT_CONVERGED)):
        tol = repr(factor * report["relative_gap"])
        result = run(command, "d.csv", "--group", "site", "--parameter-block", "arm", "--tol", tol)
        assert result.exit_code == code
        assert result.stdout.splitlines()[-1].startswith("NOT optimal") == (code != cli.ExitCode.DONE)


@pytest.mark.parametrize(("budget", "good"), [("budgets.csv", True), ("other.csv", False), ("3", False)])
def test_verify_compares_budgets(folder, budget, good):
    solved("--budget", "budgets.csv", "--out", "d.csv")
    (folder / "other.csv").write_text(BUDGETS.replace("south,2", "south,2.5"))
    arguments = ["verify", "d.csv", "--group", "site", "--parameter-block", "arm", "--budget", budget]
    if good:
        assert run(*arguments).exit_code == 0
    else:
        message = refused(*arguments)
        assert ("'north'" if budget == "3" else "'south'") in message
        assert ("budget is 3" if budget == "3" else "sum to 2, and its budget is 2.5") in message


def test_verify_of_weights_that_lose_rank(folder):
    (folder / "d.csv").write_text("x,y,weight\n1,0,1\n0,1,0\n")
    result = run("verify", "d.csv", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["verdict"] == "differs"
    assert report["gap"] is None
    assert report["conclusion"].startswith("NOT optimal: the design loses rank")


def test_verify_that_is_inconclusive_is_exit_code_1(monkeypatch):
    solved("--out", "d.csv")
    failed = od.Verification("inconclusive", "the solver failed")
    monkeypatch.setattr(cli, "verify", lambda *_, **__: failed)
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    assert "inconclusive: the solver failed" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("NOT verified: the certificate holds")


def test_verify_says_when_exact_arithmetic_contradicts(monkeypatch):
    solved("--out", "d.csv")
    lying = od.certify

    def certify(problem, weights):
        return replace(lying(problem, weights), log_det=0.0)

    monkeypatch.setattr(result_module, "certify", certify)
    result = run("verify", "d.csv", "--group", "site", "--parameter-block", "arm")
    assert result.exit_code == 1
    assert "comparison        differs: log Det against exact arithmetic" in result.stdout
    assert result.stdout.splitlines()[-1] == "NOT verified: exact arithmetic contradicts the certificate"


def test_verify_hands_over_the_time_limit(monkeypatch):
    solved("--out", "d.csv")
    seen = []

    def verify(result, solver, **options):
        seen.append((solver, options))
        return od.verify(result, solver, **options)

    monkeypatch.setattr(cli, "verify", verify)
    arguments = [
        "verify",
        "d.csv",
        "--group",
        "site",
        "--parameter-block",
        "arm",
        "--solver",
        "scs",
        "--time-limit",
        60,
    ]
    assert run(*arguments).exit_code == 0
    assert seen == [("SCS", {"time_limit": 60.0, "progress": True})]


@pytest.mark.parametrize("command", ["certify", "verify"])
def test_notes_on_ranks_are_printed(folder, command):
    """In floating point 0.1 + 0.2 is outside the span, in exact arithmetic; both say so."""
    rows = [f"{x!r},{y!r},{x + y!r},0.25" for x, y in ((0.1, 0.2), (0.3, 0.4), (0.7, 0.1), (0.1, 0.7))]
    (folder / "d.csv").write_text("x,y,z,weight\n" + "\n".join(rows) + "\n")
    result = run(command, "d.csv", "--tol", 10)
    assert result.exit_code == 0, result.output
    assert "In exact arithmetic on the numbers as given it is larger" in result.stdout
    assert ("  note: the exact rank of 1 parameter block(s)" in result.stdout) == (command == "verify")


def test_certify_needs_no_other_solver(monkeypatch):
    solved("--budget", "budgets.csv", "--out", "d.csv")
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    arguments = ["certify", "d.csv", "--group", "site", "--parameter-block", "arm", "--budget", "budgets.csv"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert last.startswith("optimal to within 0.0001: efficiency at least 0.99999")
    assert "cvxpy" not in result.stdout
    report = json.loads(run(*arguments, "--json").stdout)
    assert (report["optimal"], report["within_tol"], report["tol"]) == (True, True, 1e-4)
    assert report["conclusion"] == last
    assert report["rank"] == 4
    assert "comparisons" not in report


@pytest.mark.usefixtures("uniform")
def test_certify_of_poor_weights_is_exit_code_1():
    arguments = ["certify", "d.csv", "--group", "site", "--parameter-block", "arm"]
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("NOT optimal: efficiency only at least 0.")
    assert run(*arguments, "--tol", 10).exit_code == 0


def test_certify_of_weights_that_lose_rank(folder):
    (folder / "d.csv").write_text("x,y,weight\n1,0,1\n0,1,0\n")
    result = run("certify", "d.csv", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["gap"] is None
    assert report["conclusion"].startswith("NOT optimal: the design loses rank")


def test_verify_takes_budgets_of_an_archive():
    np.savez("d.npz", candidates=np.eye(2), budgets=[3.0], weights=[1.0, 1.0])
    assert "sum to the budget" in refused("verify", "d.npz")


def test_labels_of_an_archive_may_be_bytes():
    np.savez("d.npz", candidates=np.eye(2), groups=np.array([b"B", b"A"]))
    assert run("solve", "d.npz", "--budget", "A=1,B=2", "--out", "o.npz").exit_code == 0
    with np.load("o.npz") as found:
        assert dict(zip(found["groups"].tolist(), found["weights"].tolist(), strict=True)) == {"A": 1, "B": 2}
