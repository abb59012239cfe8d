"""Rules that decide the paper's statements, on runs made up so that the answer is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_up import found, made_up

from bandits.reproduce import checks
from bandits.reproduce.catalogue import (
    COLLABORATIVE,
    ENHANCED,
    EXPONENTIAL,
    FEDPE,
    GREEDY,
    LOCAL,
    LONG,
    MIDDLE,
    PAPER,
    PHASE_LENGTHS,
    UNIFORM,
    main_case,
    swept,
)
from bandits.reproduce.description import AUTHORS, MOVIELENS, TEXT
from bandits.reproduce.running import Effort, Results
from bandits.reproduce.summary import scalars


def main(**regrets):
    """Results of the four algorithms on the authors' instance."""
    labels = {"fedpe": FEDPE, "enhanced": ENHANCED, "collaborative": COLLABORATIVE, "local": LOCAL}
    runs = {main_case(AUTHORS, labels[name]): made_up(rows) for name, rows in regrets.items()}
    return found(runs)


def over_sizes(panel, values, **options):
    pairs = zip(swept(AUTHORS, panel).values(), values, strict=True)
    return found({case: made_up([[0.0, value]] * 3, **options) for case, value in pairs})


def test_better_needs_confidence_and_not_only_a_lower_mean():
    clear = main(enhanced=[[10], [20], [30]], fedpe=[[15], [26], [34]])
    doubtful = main(enhanced=[[10], [20], [30]], fedpe=[[30], [15], [18]])
    assert checks.better(ENHANCED, FEDPE)(clear, AUTHORS).holds
    assert not checks.better(ENHANCED, FEDPE)(doubtful, AUTHORS).holds
    assert not checks.better(FEDPE, ENHANCED)(clear, AUTHORS).holds


def test_better_measures_the_paired_difference():
    results = main(enhanced=[[10], [20], [30]], fedpe=[[15], [26], [34]])
    # Differences 5, 6, 4: mean 5, standard error 1 / sqrt 3, t quantile 2.92 with two degrees of freedom.
    least = 5 - 2.919986 / np.sqrt(3)
    assert checks.better(ENHANCED, FEDPE)(results, AUTHORS).measured == (
        f"20 against 25; less by 5, with 95% confidence by at least {least:.0f}"
    )


def test_a_single_trial_proves_no_order():
    assert not checks.better(ENHANCED, FEDPE)(main(enhanced=[[1]], fedpe=[[100]]), AUTHORS).holds


@pytest.mark.parametrize(("value", "holds"), [(124, True), (125, True), (126, False)])
def test_slightly_is_a_quarter(value, holds):
    results = main(enhanced=[[value]], collaborative=[[100]])
    assert checks.ratio(ENHANCED, COLLABORATIVE, 0.0, checks.SLIGHTLY)(results, AUTHORS).holds == holds


@pytest.mark.parametrize(("enhanced", "holds"), [(125, True), (126, False)])
def test_privacy_costs_a_part_of_what_communication_wins(enhanced, holds):
    results = main(enhanced=[[enhanced]], collaborative=[[100]], local=[[200]])
    assert checks.cost_of_privacy(results, AUTHORS).holds == holds


def test_overtaking_is_for_good():
    late = main(fedpe=[[5, 6, 7, 7]], local=[[1, 5, 8, 10]])
    again = main(fedpe=[[5, 6, 7, 12]], local=[[1, 5, 8, 10]])
    always = main(fedpe=[[0, 1, 2, 3]], local=[[1, 5, 8, 10]])
    check = checks.overtakes(FEDPE, LOCAL)
    assert check(late, AUTHORS) == ("from 3 pulls on; at the horizon 7 against 10", True)
    assert check(again, AUTHORS) == ("not within 4 pulls; at the horizon 12 against 10", False)
    assert check(always, AUTHORS).measured.startswith("from 1 pulls on")


def test_rankings_are_compared_with_movielens():
    def results(order):
        runs = {main_case(AUTHORS, label): made_up([[n]]) for n, label in enumerate(PAPER)}
        runs |= {main_case(MOVIELENS, label): made_up([[n]]) for n, label in enumerate(order)}
        return found(runs)

    check = checks.same_ranking(AUTHORS)
    assert check(results(PAPER), MOVIELENS).holds
    assert not check(results(PAPER[::-1]), MOVIELENS).holds


@pytest.mark.parametrize(
    ("values", "sign", "holds"),
    [((8, 4, 2), -1, True), ((8, 6, 5), -1, False), ((2, 4, 8), 1, True), ((2, 4, 8), -1, False)],
)
def test_proportional_is_a_slope_near_one(values, sign, holds):
    # M doubles twice, so values that double twice have slope 1.
    assert checks.proportional("a", checks.regret, sign)(over_sizes("a", values), AUTHORS).holds == holds


def test_slopes_are_measured():
    assert (
        "slope 2.00"
        in checks.proportional("a", checks.regret, 1)(over_sizes("a", (1, 4, 16)), AUTHORS).measured
    )
    zero = checks.proportional("a", checks.regret, 1)(over_sizes("a", (0, 4, 16)), AUTHORS)
    assert not zero.holds


@pytest.mark.parametrize(("values", "holds"), [((3, 2, 1), True), ((3, 2, 2), False), ((1, 2, 3), False)])
def test_monotone_is_from_each_size_to_the_next(values, holds):
    check = checks.monotone(lambda kind: swept(kind, "a"), checks.regret, -1)
    assert check(over_sizes("a", values), AUTHORS).holds == holds


def everywhere(**options):
    return found({case: made_up([[1.0, 2.0]] * 2, **options) for case in checks.all_swept(TEXT)})


def test_sparsity_is_judged_over_all_sizes():
    assert checks.sparsity_between(1.5, 2.5)(everywhere(sparsity=2.0), TEXT).holds
    assert not checks.sparsity_between(1.5, 2.5)(everywhere(sparsity=1.4), TEXT).holds
    assert checks.never_below_one(everywhere(sparsity=1.0), TEXT).holds
    assert not checks.never_below_one(everywhere(sparsity=0.9), TEXT).holds
    assert checks.ends_at_one(everywhere(sparsity=1.01), TEXT).holds
    assert not checks.ends_at_one(everywhere(sparsity=1.02), TEXT).holds
    # M = 100, K = 10, d = 3: 60 weights beyond one per client.
    assert checks.few_positive_weights(everywhere(sparsity=1.6), TEXT).holds
    assert not checks.few_positive_weights(everywhere(sparsity=1.61), TEXT).holds


def test_constant_regret_does_not_grow_in_the_second_half():
    flat, rising = ([[1.0, 2.0, 2.0, last]] for last in (2.0, 2.1))
    for rows, holds in ((flat, True), (rising, False)):
        results = found({case: made_up(rows) for case in checks.all_swept(TEXT)})
        assert checks.ends_constant(results, TEXT).holds == holds


def test_sparsity_and_communication_are_compared_by_rank():
    for sign in (1, -1):
        runs = {
            case: made_up([[1.0]], sparsity=1.0 + n, uploaded=case.instance.clients * (100 + sign * n))
            for n, case in enumerate(checks.all_swept(TEXT))
        }
        finding = checks.sparsity_goes_with_communication(found(runs), TEXT)
        assert finding == (f"rank correlation {sign:.2f} over 7 sizes", sign > 0)


@pytest.mark.parametrize(("many", "holds"), [(4, True), (5, True), (6, False)])
def test_more_clients_may_cost_a_quarter_more_iterations(many, holds):
    cases = swept(TEXT, "a")
    runs = {cases[m]: made_up([[1.0]], iterations=k) for m, k in ((50, 4), (200, many))}
    assert checks.not_slower(found(runs), TEXT).holds == holds


def test_phase_lengths_trade_regret_for_scalars():
    def results(*pairs):
        runs = {
            checks.phase_length_case(TEXT, label): made_up([[regret]], uploaded=100 * sent)
            for label, (regret, sent) in zip(PHASE_LENGTHS, pairs, strict=True)
        }
        return found(runs)

    good, bad = results((5, 1000), (6, 20), (50, 4)), results((5, 1000), (6, 20), (20, 30))
    assert checks.best_tradeoff(good, TEXT).holds
    assert not checks.best_tradeoff(results((5, 1000), (6, 20), (20, 4)), TEXT).holds
    assert checks.communication_falls(good, TEXT).holds
    assert not checks.communication_falls(bad, TEXT).holds


def test_phases_are_those_of_the_schedule():
    nothing = Results({}, Effort())
    assert checks.phases(FEDPE, LONG, 10, 16)(nothing, AUTHORS).holds
    assert checks.phases(EXPONENTIAL, MIDDLE, 10, 15)(nothing, AUTHORS).holds
    assert checks.phases(GREEDY, MIDDLE, 10, 3)(nothing, AUTHORS).holds
    # A uniform phase takes f + K = 110 pulls, and 10 are made before the first: not 65,536 / 100.
    assert checks.phases(UNIFORM, MIDDLE, 10, 655)(nothing, AUTHORS) == ("596 phases for T = 65536", False)
    assert np.ceil((2**16 - 10) / 110) == 596


def test_the_basis_belongs_to_the_text_alone():
    results = Results({}, Effort(trials=1))
    assert checks.canonical_parameters(results, TEXT) == (
        "3 different parameter vectors in dimension 3",
        True,
    )
    assert checks.canonical_parameters(results, AUTHORS) == (
        "1 different parameter vectors in dimension 3",
        False,
    )


def test_gaps_and_norms_are_those_of_all_trials():
    results = Results({}, Effort(trials=2))
    for kind, holds in ((TEXT, True), (AUTHORS, False)):
        assert checks.range_of(checks.gaps, 0.2, 0.4)(results, kind).holds == holds
        assert checks.range_of(checks.norms, 0.5, 1.0)(results, kind).holds
    assert len(checks.gaps(results, AUTHORS)) == 2 * 100 * 9
    np.testing.assert_allclose(checks.squared_norms(results, TEXT), checks.norms(results, TEXT) ** 2)


def test_communication_is_what_goes_up_and_what_comes_down():
    """Per client, and up and down weigh the same."""
    case = main_case(AUTHORS, ENHANCED)
    run = dataclasses.replace(
        made_up([[1.0], [2.0]]), uploaded=np.array([300, 500]), downloaded=np.array([100, 40])
    )
    assert case.instance.clients == 100
    assert scalars(run, case).tolist() == [4.0, 5.4]
