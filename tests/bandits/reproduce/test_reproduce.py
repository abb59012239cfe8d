"""The paper's experiments: what they are, that they are played once and kept, what is written."""

from __future__ import annotations

import csv
import hashlib
import html
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bandits
from bandits.plotting import write_rows
from bandits.reproduce import EXPERIMENTS, QUICK, Effort, reproduce, running
from bandits.reproduce.catalogue import ALGORITHMS, BENCHMARKS, LONGEST, POLICIES
from bandits.reproduce.claims import relevant, totals
from bandits.reproduce.description import (
    AUTHORS,
    RATED,
    Case,
    Instance,
)
from bandits.reproduce.drawing import draw_scaling, scaling_rows
from bandits.reproduce.report import write_report
from bandits.reproduce.running import Results, play
from bandits.reproduce.summary import heading, note, points
from bandits.simulation import runner

SMALL = [Case(Instance(AUTHORS, 6, 3, 2), label, 300) for label in ("Fed-PE", "Local UCB")]
TINY = Effort(trials=2, longest=200)
NAMES = ["fig1a", "fig3a", "fig5", "table1", "table2", "shared", "protocols", "lowerbound"]


def played(cases, out, effort=TINY, n_jobs=1):
    return play(cases, out, effort, ratings=None, n_jobs=n_jobs, progress=False)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_trial_is_a_simulation_on_an_instance_of_its_own(tmp_path):
    results = played(SMALL, tmp_path)
    for case in SMALL:
        run = results[case]
        assert run.horizon == 200
        for n in range(2):
            env = bandits.environments.authors(6, 3, 2, seed=n)
            alone = bandits.simulate(POLICIES[case.policy], env, 200, trials=1, seed=n)
            np.testing.assert_array_equal(run.regret[n], alone.regret[0])
            mine = run.phases[run.phases["trial"] == n]
            np.testing.assert_array_equal(mine["sparsity"], alone.phases["sparsity"])
            assert run.uploaded[n] == alone.uploaded[0]


@pytest.mark.slow
def test_workers_make_no_difference(tmp_path):
    one, two = (played(SMALL, tmp_path / str(n), n_jobs=n) for n in (1, 2))
    for case in SMALL:
        np.testing.assert_array_equal(one[case].regret, two[case].regret)


def test_an_interrupt_costs_one_trial(tmp_path, monkeypatch):
    calls = []

    def interrupted(policy, env, *args, **options):
        calls.append(policy.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return bandits.simulate(policy, env, *args, **options)

    monkeypatch.setattr(running, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        played(SMALL, tmp_path)
    monkeypatch.undo()
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 2
    again = []
    module = runner

    def counted(policy, *args, trial=module._trial):
        again.append(policy.name)
        return trial(policy, *args)

    monkeypatch.setattr(module, "_trial", counted)
    results = played(SMALL, tmp_path)
    assert again == ["LocalUCB", "LocalUCB"]
    assert all(len(results[case].trials) == 2 for case in SMALL)


def test_cases_in_common_are_played_once_with_the_most_trials(tmp_path):
    more = replace(SMALL[0], trials=3)
    few = [replace(case, trials=2) for case in SMALL]
    results = played([*few, more, *few], tmp_path, Effort(longest=200))
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 5
    assert (len(results[few[0]].trials), len(results[more].trials)) == (2, 3)
    np.testing.assert_array_equal(results[few[0]].regret, results[more].regret[:2])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    verdicts = reproduce(NAMES, out, TINY)
    return out, verdicts


@pytest.mark.slow
def test_every_experiment_has_pictures_and_numbers(written):
    out, _ = written
    for name in NAMES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{name}.svg").read_text()
    last = [row for row in rows(out / "fig1a.csv") if row["curve"] == "Local UCB"][-1]
    trials = [float(last[f"trial_{n}"]) for n in range(2)]
    assert int(last["time"]) == 200
    assert float(last["mean"]) == pytest.approx(np.mean(trials), rel=1e-8)
    assert float(last["std"]) == pytest.approx(np.std(trials, ddof=1), rel=1e-6)
    env = bandits.environments.synthetic(100, 10, 3, seed=1)
    run = bandits.simulate(bandits.LocalUCB(), env, 200, trials=1, seed=1)
    assert trials[1] == pytest.approx(run.regret[0, -1], rel=1e-8)


@pytest.mark.slow
def test_figures_by_phase_count_phases(written):
    found = rows(written[0] / "fig3a.csv")
    phases = len(bandits.schedules.Exponential().lengths(200, 10))
    assert len(found) == 2 * 3 * phases
    assert [int(row["phase"]) for row in found[:phases]] == list(range(1, phases + 1))
    assert {row["curve"] for row in found} == {"M = 50", "M = 100", "M = 200"}


@pytest.mark.slow
def test_horizons_that_were_cut_are_one_point(written):
    """All horizons of the lower bound are cut to 200, which is played once and drawn once."""
    found = rows(written[0] / "lowerbound.csv")
    assert [(row["curve"], row["horizon"]) for row in found] == [
        (f"{label}, {which} instance", "200")
        for label in ("Enhanced Fed-PE", "Local UCB")
        for which in ("first", "second")
    ]
    for row in found:
        expected = bandits.theory.lower_bound(30, 10, 3, 200) / 30
        assert float(row["theory"]) == pytest.approx(expected, rel=1e-8)
        assert float(row["mean"]) > 0


@pytest.fixture(scope="module")
def lower(tmp_path_factory):
    """The lower bound with horizons up to 3000: 1024 and 2048 are played as described."""
    scaling = EXPERIMENTS["lowerbound"]
    return scaling, played(scaling.cases, tmp_path_factory.mktemp("lower"), Effort(trials=2, longest=3000))


def test_only_horizons_that_were_played_are_drawn(lower):
    scaling, results = lower
    header, *found = scaling_rows(scaling, results)
    assert [row[header.index("horizon")] for row in found] == [1024, 2048, 3000] * 4
    ax = draw_scaling(scaling, results).axes[0]
    for line in ax.get_lines():
        assert list(line.get_xdata()) == [1024, 2048, 3000]
    for curve in scaling.curves.values():
        assert [results[case].horizon for case in points(curve, results)] == [1024, 2048, 3000]


@given(st.integers(1, 2**18))
def test_every_point_has_a_horizon_of_its_own(longest):
    results = Results({}, Effort(longest=longest))
    for curve in EXPERIMENTS["lowerbound"].curves.values():
        horizons = [results.effort.applied(case).horizon for case in points(curve, results)]
        assert horizons == sorted(set(horizons))
        assert horizons[-1] == min(longest, 2**17)


def test_titles_and_captions_are_those_of_the_run(lower):
    scaling, results = lower
    assert heading(scaling, results) == (
        "The two instances behind the lower bound, M = 30, K = 10, d = 3, T = 2^10 to 3,000 "
        "(cut from 2^10 to 2^17)"
    )
    assert note(scaling, results) == (
        "Mean of 2 trials, each with its own second instance; bands: plus and minus one standard deviation."
    )
    title = draw_scaling(scaling, results).get_suptitle()
    assert title.replace("\n", " ").replace("\u00a0", " ") == heading(scaling, results)
    for experiment in EXPERIMENTS.values():
        assert "T = " not in experiment.title
        assert "seeds" not in experiment.title


def test_a_title_has_the_described_horizon_if_that_was_played():
    for effort in (Effort(), Effort(longest=2**17), Effort(longest=2**30)):
        title = heading(EXPERIMENTS["fig1a"], Results({}, effort))
        assert title == "Figure 1(a): regret, synthetic data, T = 2^17"
    assert note(EXPERIMENTS["ordering"], Results({}, Effort()), "bars").startswith("Mean of 50 trials, each")
    assert note(EXPERIMENTS["fig1a"], Results({}, Effort(trials=1))) == (
        "One trial, so that there is no standard deviation."
    )


@pytest.mark.slow
def test_a_single_trial_has_no_deviation(tmp_path):
    reproduce(["fig5", "table2"], tmp_path, Effort(trials=1, longest=150))
    assert {row["std"] for row in rows(tmp_path / "fig5.csv")} == {""}
    assert {row["regret_std"] for row in rows(tmp_path / "table2.csv")} == {""}
    page = (tmp_path / "report.html").read_text()
    assert "Trials per case: 1 in place of 10." in page
    assert "±" not in page.replace("mean ± standard deviation", "")


def test_numbers_are_not_rounded_to_zero(tmp_path):
    """Regret of 0.5 after one pull of each client is 0.5 in the report."""
    reproduce(["table2"], tmp_path, Effort(trials=2, longest=1))
    page = (tmp_path / "report.html").read_text()
    for row in rows(tmp_path / "table2.csv"):
        mean, std = float(row["regret_mean"]), float(row["regret_std"])
        assert 0.0 < mean < 1.0
        assert bandits.reproduce.formatting.with_spread(mean, std) in page
    assert "0 ± 0<" not in page.replace(".0 ± 0<", "")


def test_csv_files_have_ten_digits_and_no_nan(tmp_path):
    write_rows(tmp_path / "a.csv", [[0.1 + 0.2, float("nan"), 7, "x"]])
    assert (tmp_path / "a.csv").read_text().strip() == "0.3,,7,x"


@pytest.mark.slow
def test_tables_have_a_line_per_algorithm(written):
    out, _ = written
    lines = rows(out / "table1.csv")
    assert [line["algorithm"] for line in lines] == [label for _, label, _, _ in ALGORITHMS]
    for line in lines:
        assert float(line["regret_mean"]) > 0
        assert (line["lower_bound"] != "") == (line["model"] == "linear contextual, disjoint")
        if line["algorithm"].startswith("Local UCB"):
            assert (line["uploaded"], line["downloaded"], line["regret_bound"]) == ("0", "0", "")
        if line["algorithm"].startswith(LONGEST):
            assert (line["uploaded"], line["downloaded"]) == ("0", "0")
        if "Fed-PE" in line["algorithm"] and line["algorithm"] not in BENCHMARKS:
            assert float(line["regret_bound"]) > float(line["regret_mean"])
    assert len(rows(out / "table2.csv")) == 8


@pytest.mark.slow
def test_claims_are_those_that_the_experiments_decide(written):
    out, verdicts = written
    lines = rows(out / "claims.csv")
    assert list(lines[0]) == ["claim", "source", "measured", "holds"]
    assert [line["claim"] for line in lines] == [verdict.claim for verdict in verdicts]
    assert {line["holds"] for line in lines} == {"yes", "no", "not decided"}
    # Horizons are cut to 200 pulls, so no statement about the paper's horizons is decided.
    for line in lines:
        decided = "construction" in line["measured"] and "played to T = 200" not in line["measured"]
        assert (line["holds"] != "not decided") == decided
    assert all("; rule: " in line["measured"] for line in lines)
    decided = relevant(NAMES)
    assert len(lines) == sum(len(claim.kinds) for claim in decided)
    assert not any("MovieLens" in line["source"] for line in lines)


@pytest.mark.slow
def test_ratings_of_another_size_are_noticed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [
        f"{u}\t{i}\t{rng.integers(1, 6)}\t0" for u in range(110) for i in range(40) if rng.random() < 0.6
    ]
    ratings = tmp_path / "u.data"
    ratings.write_text("\n".join(lines))
    monkeypatch.setattr(
        "bandits.environments.ratings.SHA256", hashlib.sha256(ratings.read_bytes()).hexdigest()
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    verdicts = reproduce(["fig1c"], tmp_path, TINY, ratings=ratings)
    assert {verdict.source.split("; ")[1] for verdict in verdicts} == set(RATED)
    size = next(verdict for verdict in verdicts if "matrix" in verdict.claim)
    assert (size.measured, size.holds) == ("110 by 40", False)
    assert not [v for v in verdicts if v.holds is not None and v.sort != "true or false by construction"]
    assert (tmp_path / "fig1c.png").exists()


def test_wrong_ratings_are_refused_before_any_trial(tmp_path):
    ratings = tmp_path / "u.data"
    ratings.write_text("1\t1\t3\t0\n")
    with pytest.raises(ValueError, match="SHA-256"):
        reproduce(["fig1a", "fig1c"], tmp_path / "out", TINY, ratings=ratings, n_jobs=2)
    assert not (tmp_path / "out").exists()


class Page(HTMLParser):
    """Open tags, and what they refer to."""

    def __init__(self):
        super().__init__()
        self.open, self.files, self.cells = [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.cells += tag == "td"
        self.files += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_report_is_a_page_with_all_pictures(written):
    out, verdicts = written
    page = Page()
    text = (out / "report.html").read_text()
    page.feed(text)
    assert not page.open
    assert {"fig1a.png", "table2.csv"} <= set(page.files)
    assert all((out / file).exists() for file in page.files)
    assert page.cells >= 6 * len(verdicts)
    assert all(f"<li>{line}</li>" in text for line in totals(verdicts))
    assert "Horizons were cut to 200" in text
    assert "Trials per case: 2 in place of 10." in text
    for name in NAMES:
        assert f'alt="{html.escape(EXPERIMENTS[name].title)}, T = 200 (cut from ' in text


@pytest.mark.slow
def test_bands_say_what_they_are(written):
    out, _ = written
    words = "Mean of 2 trials, each on its own instance; bands: plus and minus one standard deviation."
    assert words in (out / "report.html").read_text()


def test_a_horizon_that_cuts_nothing_is_no_warning(tmp_path):
    case = replace(SMALL[0], trials=2)
    experiment = replace(
        EXPERIMENTS["fig5"], panels=(replace(EXPERIMENTS["fig5"].panels[0], curves={"x": case}),)
    )
    results = played([case], tmp_path, Effort(longest=1000))
    write_report(tmp_path / "report.html", {"x": experiment}, results, [])
    page = (tmp_path / "report.html").read_text()
    assert "warning" not in page.split("</style>")[1]
    assert "T = 300." in page


def test_quick_is_less():
    for case in EXPERIMENTS["fig1a"].cases:
        assert Effort().applied(case) == case
        less = QUICK.applied(case)
        assert (less.trials, less.horizon) < (case.trials, case.horizon)
