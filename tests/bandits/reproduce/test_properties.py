"""Statements that construction decides: each check on data for which it holds, and for which it fails."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import found, made_up

from bandits.reproduce import properties
from bandits.reproduce.catalogue import (
    ENHANCED,
    EXPERIMENTS,
    EXPONENTIAL,
    FEDPE,
    FEDPE_SCALARS,
    FEDPE_SHARED,
    GREEDY,
    LOCAL,
    LONG,
    MIDDLE,
    UNIFORM,
    by_arms,
    lower_bound_pair,
    main_case,
    minimax,
)
from bandits.reproduce.checks import all_swept
from bandits.reproduce.description import AUTHORS, LOWER_SECOND, MOVIELENS, SHARED, TEXT, Case, Instance
from bandits.reproduce.running import Effort, Results
from bandits.reproduce.summary import bound_of, theory_value

NOTHING = Results({}, Effort())


def test_phases_are_those_of_the_schedule():
    assert properties.phases(FEDPE, LONG, 10, 16)(NOTHING, AUTHORS) == ("16 phases for T = 2^17", True)
    assert properties.phases(EXPONENTIAL, MIDDLE, 10, 15)(NOTHING, AUTHORS).evidence is True
    assert properties.phases(GREEDY, MIDDLE, 10, 3)(NOTHING, AUTHORS).evidence is True
    # A uniform phase takes f + K = 110 pulls, and 10 are made before the first: not 65,536 / 100.
    assert properties.phases(UNIFORM, MIDDLE, 10, 655)(NOTHING, AUTHORS) == (
        "596 phases for T = 2^16",
        False,
    )
    assert np.ceil((2**16 - 10) / 110) == 596


def test_the_basis_belongs_to_the_text_alone():
    results = Results({}, Effort(trials=1))
    assert properties.canonical_parameters(results, TEXT) == (
        "3 different parameter vectors in dimension 3",
        True,
    )
    assert properties.canonical_parameters(results, AUTHORS) == (
        "1 different parameter vector in dimension 3",
        False,
    )


def test_gaps_and_norms_are_those_of_all_trials():
    results = Results({}, Effort(trials=2))
    for kind, holds in ((TEXT, True), (AUTHORS, False)):
        assert properties.range_of(properties.gaps, 0.2, 0.4)(results, kind).evidence is holds
        assert properties.range_of(properties.norms, 0.5, 1.0)(results, kind).evidence is True
        assert properties.range_of(properties.norms, 0.6, 1.0)(results, kind).evidence is False
    assert len(properties.gaps(results, AUTHORS)) == 2 * 100 * 9
    np.testing.assert_allclose(properties.squared_norms(results, TEXT), properties.norms(results, TEXT) ** 2)


def test_one_value_of_many_outside_shows():
    values = np.append(np.full(9_999, 0.5), 0.0)
    finding = properties.range_of(lambda *_: values, 0.4, 0.8)(NOTHING, AUTHORS)
    assert finding == ("0 to 0.5, 9,999 of 10,000 inside", False)


@pytest.mark.parametrize(("films", "holds"), [(1682, True), (1681, False)])
def test_ratings_have_the_papers_sizes(films, holds, monkeypatch, tmp_path):
    monkeypatch.setattr(properties, "factors", lambda *_: (np.zeros((943, 3)), np.zeros((films, 3))))
    results = Results({}, Effort(), ratings=tmp_path)
    assert properties.rating_matrix(results, MOVIELENS) == (f"943 by {films}", holds)


def test_sparsity_levels_are_at_least_one():
    for level, holds in ((1.0, True), (0.9, False)):
        results = found({case: made_up([[1.0, 2.0]] * 2, sparsity=level) for case in all_swept(TEXT)})
        assert properties.never_below_one(results, TEXT).evidence is holds
    without = found({case: made_up(np.empty((2, 0))) for case in all_swept(TEXT)})
    assert properties.never_below_one(without, TEXT) == ("no phase was played", None)


def test_regret_is_compared_with_the_bound_of_its_own_instance():
    """The bound of trial 1 is that of the instance of trial 1, not that of trial 0."""
    case = main_case(TEXT, FEDPE)
    limits = np.array(
        [[bound_of(case, NOTHING.environment(case, n), 3, t) for t in (1, 2, 3)] for n in (0, 1)]
    )
    assert np.all(limits[0] != limits[1])
    for factors, holds in (((0.5, 1.0, 0.9), True), ((0.5, 1.001, 0.9), False)):
        results = found({case: made_up(limits * np.array(factors))})
        finding = properties.below_the_bound(FEDPE)(results, TEXT)
        assert finding == (f"at most {max(factors):.3g} times the bound in 2 trials", holds)


def equal_trials(case, regret):
    """Return a case and a run in which all its trials have the same regret."""
    return case, made_up([regret] * case.trials)


def test_protocols_must_agree_to_the_last_bit():
    for last, holds in ((2.0, True), (np.nextafter(2.0, 3.0), False)):
        runs = dict(
            equal_trials(Case(Instance(TEXT), policy, MIDDLE), regret)
            for policy, regret in ((FEDPE, [1.0, 2.0]), (FEDPE_SCALARS, [1.0, last]))
        )
        assert properties.same_decisions(found(runs), TEXT).evidence is holds


def test_broadcasts_fall_by_the_number_of_arms_without_plans():
    """A plan has one number per active arm: 100 clients with 2 active arms download 200 numbers in it."""
    for arms, holds in ((1.0, True), (0.7, False)):
        runs = {}
        for k, case in by_arms(FEDPE).items():
            runs[case] = made_up([[1.0]], downloaded=int(1000 * k * arms) + 200, active=2.0)
        for case in by_arms(FEDPE_SHARED).values():
            runs[case] = made_up([[1.0]], downloaded=1000 + 200, active=2.0)
        finding = properties.broadcast_falls(found(runs), SHARED)
        assert finding.evidence is holds
    assert finding.measured == "factor 3.5, 7, 14, 28 at K = 5, 10, 20, 40"


def test_one_of_two_instances_must_lie_above_the_lower_bound():
    for second, holds in ((1.5, True), (0.9, False)):
        runs = {}
        for policy in (ENHANCED, LOCAL):
            for kind, cases in lower_bound_pair(policy).items():
                factor = second if kind == LOWER_SECOND else 0.5
                runs |= dict(equal_trials(case, [factor * minimax(case)]) for case in cases.values())
        finding = properties.above_the_lower_bound(found(runs), LOWER_SECOND)
        assert finding.evidence is holds
        assert f"at least {second:.3g} times" in finding.measured
        assert finding.measured.endswith("T = 2^10 to 2^17")


def test_the_second_instance_has_a_better_arm_for_every_group():
    first, second = (
        cases[1024].instance.environment(3, 1024) for cases in lower_bound_pair(ENHANCED).values()
    )
    assert np.all(first.means.argmax(axis=1) == 0)
    assert np.all(second.means.argmax(axis=1) != 0)
    np.testing.assert_allclose(second.means.max(axis=1), 2.0 * first.means.max(axis=1))


def test_an_order_in_theory_starts_at_the_first_point():
    scaling = EXPERIMENTS["clients"]
    first, second = scaling.curves[AUTHORS][:2]
    results = found(dict([equal_trials(first, [60.0])]))
    assert theory_value(scaling, first, results) == pytest.approx(60.0)
    assert theory_value(scaling, second, results) == pytest.approx(60.0 / np.sqrt(10.0))
