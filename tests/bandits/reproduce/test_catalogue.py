"""The catalogue of experiments: those of the paper, with the paper's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import bandits
from bandits.reproduce import EXPERIMENTS
from bandits.reproduce.catalogue import ALGORITHMS, BENCHMARKS, LONGEST, POLICIES
from bandits.reproduce.claims import CLAIMS
from bandits.reproduce.description import (
    AUTHORS,
    IDENTICAL,
    MOVIELENS,
    RATED,
    SHARED,
    TEXT,
    Instance,
    Table,
)


def test_all_figures_and_tables_are_there():
    panels = [f"fig{n}{letter}" for n in (1, 2, 3, 4) for letter in "abc"]
    assert list(EXPERIMENTS)[:15] == [*panels, "fig5", "table1", "table2"]
    beyond = ["shared", "protocols", "ordering", "ordering-movielens", "clients", "lowerbound"]
    assert list(EXPERIMENTS)[15:] == beyond


def test_numbers_are_the_papers():
    first = EXPERIMENTS["fig1a"].cases
    assert {(c.instance.clients, c.instance.arms, c.instance.dim, c.horizon) for c in first} == {
        (100, 10, 3, 2**17)
    }
    assert {c.policy for c in first} == {"Fed-PE", "Enhanced Fed-PE", *BENCHMARKS, "Local UCB"}
    assert {c.instance.kind for c in first} == {AUTHORS, TEXT}
    assert {c.instance for c in EXPERIMENTS["fig1c"].cases} == {Instance(kind, 100, 30, 3) for kind in RATED}
    assert {(c.instance.arms, c.instance.dim) for c in EXPERIMENTS["fig1b"].cases} == {(10, 4)}
    sizes = {
        letter: sorted({getattr(c.instance, name) for c in EXPERIMENTS[f"fig2{letter}"].cases})
        for letter, name in (("a", "clients"), ("b", "arms"), ("c", "dim"))
    }
    assert sizes == {"a": [50, 100, 200], "b": [5, 10, 20], "c": [3, 4, 5]}
    assert {c.horizon for c in EXPERIMENTS["fig2a"].cases + EXPERIMENTS["fig5"].cases} == {2**16}
    assert {c.trials for name in list(EXPERIMENTS)[:15] for c in EXPERIMENTS[name].cases} == {10}
    assert {c.trials for c in EXPERIMENTS["ordering"].cases} == {50}


def test_collaborative_is_shown_with_both_intervals():
    assert [POLICIES[label].intervals for label in BENCHMARKS] == ["fedpe", "enhanced"]
    for name in ("fig1a", "fig1c", "table1", "ordering", "ordering-movielens"):
        assert set(BENCHMARKS) <= {case.policy for case in EXPERIMENTS[name].cases}


def test_tables_have_a_control_without_learning():
    """On every kind of instance of a table that compares algorithms."""
    for name in ("table1", "table2", "ordering", "ordering-movielens"):
        table = EXPERIMENTS[name]
        assert isinstance(table, Table)
        controlled = {row.model for row in table.rows if row.label.startswith(LONGEST)}
        assert controlled == {row.model for row in table.rows}
        for row in table.rows:
            control = row.label.startswith(LONGEST)
            assert isinstance(POLICIES[row.case.policy], bandits.LongestFeature) == control


def test_figures_2_to_4_read_the_same_simulations():
    for letter in "abc":
        assert EXPERIMENTS[f"fig2{letter}"].cases == EXPERIMENTS[f"fig3{letter}"].cases
        assert EXPERIMENTS[f"fig2{letter}"].cases == EXPERIMENTS[f"fig4{letter}"].cases


def test_cases_have_policies_and_file_names_of_their_own():
    cases = {case for experiment in EXPERIMENTS.values() for case in experiment.cases}
    cases |= {case for claim in CLAIMS for case in claim.cases()}
    assert {case.policy for case in cases} <= set(POLICIES)
    alike = {(case.instance, case.policy, case.horizon) for case in cases}
    assert len({case.slug for case in cases}) == len(alike)
    assert len({label for _, label, _, _ in ALGORITHMS}) == len(ALGORITHMS)


def test_instances_are_those_of_their_kind():
    sizes = (4, 3, 2)
    np.testing.assert_array_equal(
        Instance(TEXT, *sizes).environment(5, 100).features,
        bandits.environments.synthetic(*sizes, 5).features,
    )
    assert Instance(SHARED, *sizes).environment(0, 100).shared
    assert not Instance(AUTHORS, *sizes).environment(0, 100).shared
    same = Instance(IDENTICAL, *sizes).environment(0, 100).features
    assert np.all(same == same[0])
    with pytest.raises(ValueError, match="ratings must be the path"):
        Instance(MOVIELENS, *sizes).environment(0, 100)
