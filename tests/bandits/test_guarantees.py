"""Checks of theorems and remarks, on runs made up so that the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import found, made_up

from bandits.reproduce import guarantees
from bandits.reproduce.catalogue import (
    ENHANCED,
    EXPERIMENTS,
    FEDPE,
    FEDPE_SCALARS,
    FEDPE_SHARED,
    FEDPE_SHARED_SCALARS,
    LOCAL,
    MIDDLE,
    lower_bound_pair,
    main_case,
    minimax,
)
from bandits.reproduce.description import AUTHORS, LOWER_SECOND, SHARED, TEXT, Case, Instance
from bandits.reproduce.summary import bound, theory_value


def shared(policy, run, kind=SHARED):
    return {Case(Instance(kind), policy, MIDDLE): run}


def test_regret_is_held_against_the_bound_at_every_time():
    case = main_case(TEXT, FEDPE)
    nothing = found({})
    limits = np.array([bound(case, nothing, t) for t in (1, 2, 3)])
    for factors, holds in (((0.5, 1.0, 0.9), True), ((0.5, 1.1, 0.9), False)):
        results = found({case: made_up(limits * np.array(factors))})
        finding = guarantees.below_the_bound(FEDPE)(results, TEXT)
        assert finding == (f"at most {max(factors):.1%} of the bound", holds)


def test_protocols_must_agree_to_the_last_bit():
    for last, holds in ((2.0, True), (np.nextafter(2.0, 3.0), False)):
        runs = shared(FEDPE, made_up([[1.0, 2.0]]), TEXT) | shared(
            FEDPE_SCALARS, made_up([[1.0, last]]), TEXT
        )
        assert guarantees.same_decisions(found(runs), TEXT).holds == holds


@pytest.mark.parametrize(("sent", "holds"), [(300, True), (226, True), (224, False), (376, False)])
def test_scalars_are_cheaper_by_a_factor_near_d(sent, holds):
    runs = shared(FEDPE_SHARED, made_up([[1.0]], uploaded=sent))
    runs |= shared(FEDPE_SHARED_SCALARS, made_up([[1.0]], uploaded=100))
    assert guarantees.cheaper("uploaded", 1)(found(runs), SHARED).holds == holds


def test_shared_parameters_are_compared_with_powers_of_the_number_of_arms():
    apart = made_up([[100.0 * np.sqrt(10.0)]], uploaded=120, downloaded=1300)
    together = made_up([[100.0]], uploaded=100, downloaded=100)
    results = found(shared(FEDPE, apart) | shared(FEDPE_SHARED, together))
    assert guarantees.shared_regret(results, SHARED) == ("factor 3.16, expected 3.16", True)
    assert guarantees.shared_cost("uploaded", 0)(results, SHARED).holds
    assert guarantees.shared_cost("downloaded", 1)(results, SHARED) == ("factor 13.00, expected 10.00", False)


def test_one_of_two_instances_must_lie_above_the_lower_bound():
    for second, holds in ((1.5, True), (0.9, False)):
        runs = {}
        for policy in (ENHANCED, LOCAL):
            for kind, cases in lower_bound_pair(policy).items():
                factor = second if kind == LOWER_SECOND else 0.5
                runs |= {case: made_up([[factor * minimax(case)]]) for case in cases.values()}
        finding = guarantees.above_the_lower_bound(found(runs), LOWER_SECOND)
        assert finding.holds == holds
        assert f"at least {second:.2f} times" in finding.measured


def test_the_second_instance_has_a_better_arm_for_every_group():
    first, second = (
        cases[1024].instance.environment(3, 1024) for cases in lower_bound_pair(ENHANCED).values()
    )
    assert np.all(first.means.argmax(axis=1) == 0)
    assert np.all(second.means.argmax(axis=1) != 0)
    np.testing.assert_allclose(second.means.max(axis=1), 2.0 * first.means.max(axis=1))


def test_an_order_in_theory_starts_at_the_first_point():
    scaling = EXPERIMENTS["clients"]
    first, second = list(scaling.curves[AUTHORS].values())[:2]
    results = found({first: made_up([[60.0]])})
    assert theory_value(scaling, first, results) == pytest.approx(60.0)
    assert theory_value(scaling, second, results) == pytest.approx(60.0 / np.sqrt(10.0))
