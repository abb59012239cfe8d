"""Checks of the paper's statements on made-up runs, and the verdicts about all of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_up import found, made_up, noisy

from bandits.reproduce import checks, growth
from bandits.reproduce.catalogue import (
    BENCHMARKS,
    BOLD,
    ENHANCED,
    FEDPE,
    LOCAL,
    SEEDS,
    main_case,
    swept,
)
from bandits.reproduce.claims import (
    CLAIMS,
    COMPARISON,
    CONSTRUCTION,
    ORDER,
    SORTS,
    Verdict,
    decide,
    method,
    relevant,
    totals,
)
from bandits.reproduce.decisions import NO_EVIDENCE
from bandits.reproduce.description import AUTHORS, TEXT
from bandits.reproduce.report import claim_rows
from bandits.reproduce.running import Effort, Results
from bandits.reproduce.summary import scalars

PAIR = {"enhanced": [[10], [20], [30]], "fedpe": [[15], [26], [34]]}


def main(**regrets):
    """Return results on the authors' instance."""
    labels = {"fedpe": FEDPE, "enhanced": ENHANCED, "local": LOCAL, "bold": BOLD}
    runs = {main_case(AUTHORS, labels[name]): made_up(rows) for name, rows in regrets.items()}
    return found(runs)


def over_sizes(panel, values):
    pairs = zip(swept(AUTHORS, panel).values(), values, strict=True)
    return found({case: made_up([[0.0, value]] * 3) for case, value in pairs})


def test_better_measures_the_paired_difference():
    # Differences -5, -6, -4: mean -5, standard error 1 / sqrt 3, t quantile 4.30 with two degrees of freedom.
    half = 4.302653 / np.sqrt(3)
    finding = checks.better(ENHANCED, FEDPE)(main(**PAIR), AUTHORS)
    assert finding.measured == (
        f"20 against 25.0 in 3 trials; difference -5.0 (95 % interval {-5 - half:.1f} to {-5 + half:.1f})"
    )
    assert finding.evidence.in_favour < 0.01 < finding.evidence.against
    assert checks.better(FEDPE, ENHANCED)(main(**PAIR), AUTHORS).evidence == finding.evidence.reversed


def test_a_lower_mean_alone_is_no_evidence():
    doubtful = main(enhanced=[[10], [20], [30]], fedpe=[[30], [15], [18]])
    assert min(checks.better(ENHANCED, FEDPE)(doubtful, AUTHORS).evidence) > 0.05
    single = main(enhanced=[[1]], fedpe=[[100]])
    assert checks.better(ENHANCED, FEDPE)(single, AUTHORS).evidence == NO_EVIDENCE


def test_trials_that_only_one_policy_has_are_left_out():
    results = main(enhanced=[[10], [20], [30], [999]], bold=[[9], [18], [29]])
    assert "in 3 trials" in checks.better(BOLD, ENHANCED)(results, AUTHORS).measured


def test_overtaking_says_since_when():
    late = main(fedpe=[[5, 6, 7, 7]], local=[[1, 5, 8, 10]])
    again = main(fedpe=[[5, 6, 7, 12]], local=[[1, 5, 8, 10]])
    always = main(fedpe=[[0, 1, 2, 3]], local=[[1, 5, 8, 10]])
    check = checks.overtakes(FEDPE, LOCAL)
    assert check(late, AUTHORS).measured.startswith("mean lower from 3 pulls on; 7 against 10 in 1 trial;")
    assert check(again, AUTHORS).measured.startswith("mean not lower at the horizon; 12 against 10")
    assert check(always, AUTHORS).measured.startswith("mean lower from 1 pulls on")


def test_exponents_are_measured():
    def check(values):
        return growth.order(growth.over_sizes("a", checks.regret), 1)(over_sizes("a", values), AUTHORS)

    assert check((1, 4, 16)).measured == "exponent 2 (95 % interval 2 to 2); means 1, 4, 16 at 50, 100, 200"
    zero = check((0, 4, 16))
    assert zero.measured.startswith("no exponent")
    assert zero.evidence == NO_EVIDENCE


@pytest.mark.parametrize(
    ("exponent", "side", "limits"),
    [
        (1, growth.NEAR, (0.75, 1.25)),
        (-1, growth.NEAR, (-1.25, -0.75)),
        (2, growth.NEAR, (1.5, 2.5)),
        (0, growth.NEAR, (-0.25, 0.25)),
        (0.5, growth.AT_LEAST, (0.375, np.inf)),
        (-0.5, growth.AT_MOST, (-np.inf, -0.375)),
    ],
)
def test_orders_leave_a_quarter_of_the_exponent(exponent, side, limits):
    assert growth.accepted(exponent, side) == limits
    for limit in limits:
        assert np.isinf(limit) or f"{limit:g}" in growth.rule(exponent, side, "M")


def test_equal_levels_have_no_rank_correlation():
    results = found({case: made_up([[1.0]] * 2, uploaded=100) for case in checks.all_swept(TEXT)})
    assert checks.sparsity_goes_with_communication(results, TEXT).evidence == NO_EVIDENCE


def test_communication_is_what_goes_up_and_what_comes_down():
    """Per client, and up and down weigh the same."""
    case = main_case(AUTHORS, ENHANCED)
    run = dataclasses.replace(
        made_up([[1.0], [2.0]]), uploaded=np.array([300, 500]), downloaded=np.array([100, 40])
    )
    assert case.instance.clients == 100
    assert scalars(run, case).tolist() == [4.0, 5.4]
    assert checks.upload(found({case: run}), case).tolist() == [3.0, 5.0]


def test_the_start_is_not_part_of_what_protocols_save():
    case = main_case(AUTHORS, ENHANCED)
    run = made_up([[1.0, 2.0, 3.0]], uploaded=300)
    run.phases["uploaded"][0] = 999
    assert growth.after_start("uploaded")(found({case: run}), case).tolist() == [200.0]


def test_no_statement_is_counted_twice():
    for names in (["fig1a"], ["ordering"], ["fig1a", "ordering"]):
        listed = [(claim.claim, kind) for claim in relevant(names) for kind in claim.kinds]
        assert len(set(listed)) == len(listed)
    everything = [(claim.claim, claim.source, kind) for claim in CLAIMS for kind in claim.kinds]
    assert len(set(everything)) == len(everything)
    alone, more = ({claim.claim for claim in relevant([name])} for name in ("fig1a", "ordering"))
    assert "Enhanced Fed-PE outperforms Fed-PE" in alone & more
    assert more < alone


def test_comparisons_use_all_seeds_that_were_played():
    runs = {
        main_case(AUTHORS, label): made_up([[1.0 + n] for n in range(SEEDS)]) for label in (ENHANCED, FEDPE)
    }
    assert f"in {SEEDS} trials" in checks.better(ENHANCED, FEDPE)(found(runs), AUTHORS).measured


def test_both_readings_of_collaborative_have_the_same_statements():
    first, second = (
        {claim.claim.replace(label, "") for claim in CLAIMS if label in claim.claim} for label in BENCHMARKS
    )
    assert first == second
    assert len(first) == 3


def enhanced_outperforms():
    claim = next(c for c in CLAIMS if c.claim == "Enhanced Fed-PE outperforms Fed-PE")
    return dataclasses.replace(claim, kinds=(AUTHORS,))


def test_statements_about_a_horizon_are_not_decided_below_it():
    claim = enhanced_outperforms()
    cases = [main_case(AUTHORS, label) for label in (ENHANCED, FEDPE)]
    for longest, holds in ((2**13, None), (2**17, True), (None, True)):
        effort = Effort(longest=longest)
        runs = {effort.applied(case).slug: noisy(case, regret=1.0 + (case.policy == FEDPE)) for case in cases}
        verdict = decide([claim], Results(runs, effort))[0]
        assert verdict.holds is holds
        if holds is None:
            assert verdict.measured == "played to T = 2^13; the statement is about T = 2^17"
            assert verdict.p is None


def test_statements_about_every_horizon_are_decided_at_any():
    claims = [claim for claim in relevant(["fig1a"]) if claim.sort == CONSTRUCTION and "gaps" in claim.claim]
    verdicts = decide(claims, Results({}, Effort(trials=1, longest=8)))
    assert [verdict.holds for verdict in verdicts] == [False, True]


def test_tests_are_corrected_for_their_number():
    claim = enhanced_outperforms()
    doubtful = main(enhanced=[[10], [20], [30]], fedpe=[[14], [27], [34]])
    alone = decide([claim], doubtful)[0]
    many = decide([claim] * 10, doubtful)
    assert alone.holds is True
    assert [verdict.holds for verdict in many] == [None] * 10
    assert many[0].p > 0.05 >= alone.p
    assert alone.measured.endswith(f"adjusted p {alone.p:.2g}")


def test_totals_tell_the_sorts_apart():
    verdicts = [
        Verdict("a", "s", COMPARISON, "r", "m", True, 0.01),
        Verdict("b", "s", COMPARISON, "r", "m", None, 0.5),
        Verdict("c", "s", ORDER, "r", "m", False, 0.01),
        Verdict("d", "s", ORDER, "r", "m", None),
        Verdict("e", "s", CONSTRUCTION, "r", "m", True),
    ]
    assert totals(verdicts) == [
        "empirical comparison: 1 hold, 0 do not, 1 not decided",
        "order of growth: 0 hold, 1 do not, 1 not decided",
        "true or false by construction: 1 hold, 0 do not, 0 not decided",
    ]
    assert totals(verdicts[:1]) == ["empirical comparison: 1 hold, 0 do not, 0 not decided"]
    assert "3 of 4 comparisons and orders of growth" in method(verdicts)
    assert "Holm's method" in method(verdicts)
    rows = claim_rows(verdicts)
    assert rows[0] == ["claim", "source", "measured", "holds"]
    assert [row[3] for row in rows[1:]] == ["yes", "not decided", "no", "not decided", "yes"]
    assert rows[1][2] == "m [empirical comparison; rule: r]"


def test_identities_and_theorems_are_not_confirmations():
    by_claim = {claim.claim: claim.sort for claim in CLAIMS}
    assert set(by_claim.values()) == set(SORTS)
    for words in (
        "sparsity level is at least 1",
        "same decisions",
        "below its bound",
        "lower bound",
        "lie in",
    ):
        found_sorts = {sort for claim, sort in by_claim.items() if words in claim}
        assert found_sorts == {CONSTRUCTION}
