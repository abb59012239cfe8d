"""DesignProblem: what it accepts, what it refuses and how it says so, and that it never changes."""

import dataclasses
import pathlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from problems import KINDS, random_problem

import optdesign as od
from optdesign.problem import inputs as module
from optdesign.testing import lattice, matrices, problems

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


# --------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": [[1.0, np.nan]]}, r"candidates must be finite; candidates\[0\] = \[1.0, nan\]. Drop"),
        (
            {"candidates": [[1.0, 2.0], [np.inf, 0.0]]},
            r"candidates must be finite; candidates\[1\] = .* Drop",
        ),
        ({"candidates": [[1.0, -np.inf]]}, r"candidates must be finite; candidates\[0\]"),
        ({"candidates": [1.0, 2.0]}, r"candidates must have shape \(N, d\).* got \(2,\). Put one candidate"),
        ({"candidates": np.ones((2, 2, 2))}, r"candidates must have shape \(N, d\).* got \(2, 2, 2\)"),
        ({"candidates": 3.0}, r"candidates must have shape \(N, d\).* got \(\)"),
        ({"candidates": np.ones((0, 2))}, r"candidates must have shape .* got \(0, 2\)"),
        ({"candidates": np.ones((2, 0))}, r"candidates must have shape .* got \(2, 0\)"),
        ({"candidates": [[1.0], [1.0, 2.0]]}, "candidates must be a rectangular array; .* Pad or drop"),
        ({"candidates": [["a", "b"]]}, "candidates must be real numbers; got dtype <U1. Convert"),
        ({"candidates": [[1j]]}, "candidates must be real numbers; got dtype complex128. Convert"),
        ({"candidates": np.array([[None]])}, "candidates must be real numbers; got dtype object. Convert"),
        ({"candidates": np.zeros((3, 2))}, "candidates must have at least one non-zero row; all 3 rows"),
        ({"groups": [0, 1]}, r"groups must have one label per candidate, shape \(3,\); got \(2,\). Label"),
        ({"groups": [[0], [0], [0]]}, r"groups must have one label per candidate, .* got \(3, 1\)"),
        ({"groups": 0}, r"groups must have one label per candidate, .* got \(\)"),
        (
            {"groups": [0, 1, -2]},
            r"groups must be integers 0, 1, 2, ...; groups\[2\] = -2 with 3 candidates. Renumber",
        ),
        ({"groups": [0, 2, 0]}, "every group must have a candidate; group 1 of 3 has none. Number"),
        ({"groups": [0, 1, 10**6]}, r"groups must be integers 0, 1, 2, ...; groups\[2\] = 1000000 with 3"),
        (
            {"groups": np.array([0, 1, 2**64 - 1], np.uint64)},
            r"groups must be integers .* 18446744073709551615",
        ),
        ({"groups": [0, 1, 0.5]}, r"groups must be integers .* groups\[2\] = 0.5"),
        ({"groups": [0, np.nan, 1]}, r"groups must not be missing; groups\[1\] is. Fill it in"),
        ({"groups": [0, np.inf, 1]}, r"groups must be integers .* groups\[1\] = inf"),
        ({"groups": [0, 1e300, 1]}, r"groups must be integers .* groups\[1\] = 1e\+300"),
        ({"groups": ["a", None, "c"]}, r"groups must not be missing; groups\[1\] is. Fill it in"),
        (
            {"parameter_blocks": [0, 1, -1]},
            r"parameter_blocks must be integers .* parameter_blocks\[2\] = -1",
        ),
        (
            {"parameter_blocks": [0, 0]},
            r"parameter_blocks must have one label per candidate, shape \(3,\); got \(2,\)",
        ),
        (
            {"parameter_blocks": [0, 0, 1001]},
            r"parameter_blocks must be integers 0, 1, 2, ...; parameter_blocks\[2\] = 1001",
        ),
        (
            {"parameter_blocks": [0, 0.25, 1]},
            r"parameter_blocks must be integers .* parameter_blocks\[1\] = 0.25",
        ),
        ({"budgets": [0.0]}, r"budgets must be positive and finite; budgets\[0\] = 0. Drop the group"),
        ({"budgets": -1.0}, r"budgets must be positive and finite; budgets\[0\] = -1. Drop"),
        ({"budgets": np.nan}, r"budgets must be positive and finite; budgets\[0\] = nan. Drop"),
        ({"budgets": [np.inf]}, r"budgets must be positive and finite; budgets\[0\] = inf. Drop"),
        ({"groups": [0, 1, 2], "budgets": [1.0, 1.0]}, r"budgets must have one entry .* \(3,\); got \(2,\)"),
        ({"budgets": [[1.0]]}, r"budgets must have one entry per group, shape \(1,\); got \(1, 1\)"),
        ({"budgets": [1.0, 2.0]}, "every group must have a candidate; group 1 of 2 has none"),
        ({"budgets": ["one"]}, "budgets must be real numbers; got dtype <U3. Convert"),
        ({"budgets": [1j]}, "budgets must be real numbers; got dtype complex128"),
        ({"groups": [0, 1, 1], "budgets": [[1.0], [2.0, 3.0]]}, "budgets must be a rectangular array"),
    ],
)
def test_bad_input_is_named_with_rule_value_and_remedy(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        od.DesignProblem(**({"candidates": X} | arguments))
    assert str(error.value).endswith((".", ")[1]."))


@pytest.mark.parametrize("make", [od.DesignProblem.disjoint, od.DesignProblem.shared])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3)),), r"features must have shape \(clients, arms, dim\).* got \(2, 3\). Stack"),
        ((np.ones((2, 0, 3)),), r"features must have shape .* got \(2, 0, 3\)"),
        (([[[1.0], [2.0]], [[1.0]]],), "features must be a rectangular array"),
        (
            (np.ones((2, 2, 1)), np.ones((2, 2))),
            r"active must be a boolean array of shape \(2, 2\); got float64",
        ),
        ((np.ones((2, 2, 1)), np.ones((2, 3), bool)), r"active must be a boolean array .* \(2, 3\). Pass"),
        ((np.ones((2, 2, 1)), [[True], [True, False]]), "active must be a rectangular array"),
        (
            (np.ones((3, 2, 1)), np.array([[True, True], [False, False], [True, False]])),
            "active must leave every client an arm; client 1 has none. Drop",
        ),
        ((np.ones((2, 2, 1)), None, [1.0, 0.0]), r"budgets must be positive and finite; budgets\[1\] = 0"),
        (
            (np.ones((2, 2, 1)), None, [1.0]),
            r"budgets must have one entry per group, shape \(2,\); got \(1,\)",
        ),
        ((np.full((2, 2, 1), np.nan),), "must be finite"),
        ((np.zeros((2, 2, 1)),), "must have at least one non-zero row"),
    ],
)
def test_bad_grids_are_named(make, arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(*arguments)


# ------------------------------------------------------------------------------------------- acceptance


def same(a: od.DesignProblem, b: od.DesignProblem) -> None:
    for name in ("candidates", "groups", "parameter_blocks", "budgets"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert (a.rank, a.n_parameter_blocks, a.n_groups) == (b.rank, b.n_parameter_blocks, b.n_groups)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.float16, np.float32, ">f8", ">f4", bool])
def test_any_real_dtype(dtype) -> None:
    x = np.array([[1, 0], [0, 1], [1, 1]], dtype=dtype)
    before = x.tobytes()
    p = od.DesignProblem(x, groups=np.array([0, 1, 1], np.uint8), budgets=np.array([1, 2], np.int32))
    same(p, od.DesignProblem(X, [0, 1, 1], None, [1.0, 2.0]))
    od.solve(p, method="bca")
    assert x.tobytes() == before
    assert p.candidates.dtype == np.float64


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        np.ndarray.tolist,
        lambda x: tuple(map(tuple, x)),
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
        np.asmatrix,
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_any_container_and_memory_order(convert) -> None:
    x = np.random.default_rng(0).normal(size=(6, 2))
    given_x = convert(x)
    before = np.array(given_x).tobytes()
    p = od.DesignProblem(given_x, groups=[0, 0, 1, 1, 2, 2])
    same(p, od.DesignProblem(x, groups=np.array([0, 0, 1, 1, 2, 2])))
    od.certify(p, od.solve(p, method="bca").weights)
    assert np.array(given_x).tobytes() == before


def test_read_only_inputs_are_fine_and_stay_so() -> None:
    x, groups, budgets = X.copy(), np.array([0, 1, 1]), np.array([1.0, 2.0])
    for array in (x, groups, budgets):
        array.flags.writeable = False
    p = od.DesignProblem(x, groups, groups, budgets)
    r = od.solve(p, start=p.uniform(), method="bca")
    assert r.converged
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_maps(tmp_path: pathlib.Path, dtype: type[np.floating]) -> None:
    x = np.random.default_rng(1).normal(size=(50, 3)).astype(dtype)
    path = tmp_path / "x.npy"
    np.save(path, x)
    before = path.read_bytes()
    p = od.DesignProblem(np.load(path, mmap_mode="r"))
    r = od.solve(p, tol=1e-6)
    assert r.converged
    assert path.read_bytes() == before
    assert od.certify(od.DesignProblem(x.astype(float)), r.weights).gap == pytest.approx(r.gap, abs=1e-12)


def test_large_arrays_are_kept_by_reference_and_small_ones_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).normal(size=(20, 3))
    assert not np.shares_memory(od.DesignProblem(x).candidates, x)
    monkeypatch.setattr(module, "COPY_LIMIT", x.nbytes - 1)
    large = od.DesignProblem(x)
    assert np.shares_memory(large.candidates, x)
    assert not large.candidates.flags.writeable
    assert x.flags.writeable


def test_later_changes_of_the_input_do_not_reach_the_problem() -> None:
    x, groups, blocks, budgets = X.copy(), np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 2.0])
    features, active = np.ones((2, 2, 1)), np.ones((2, 2), bool)
    p = od.DesignProblem(x, groups, blocks, budgets)
    q = od.DesignProblem.disjoint(features, active)
    for array in (x, groups, blocks, budgets, features, active):
        array[...] = 0
    same(p, od.DesignProblem(X, [0, 1, 1], [0, 0, 1], [1.0, 2.0]))
    same(q, od.DesignProblem.disjoint(np.ones((2, 2, 1))))


def test_inputs_are_bit_identical_after_everything() -> None:
    rng = np.random.default_rng(3)
    x, groups, blocks = rng.normal(size=(12, 3)), np.repeat([2, 0, 1], 4), np.tile([1, 0], 6)
    budgets, start = np.array([1.0, 2.0, 3.0]), rng.random(12)
    arrays_in = (x, groups, blocks, budgets, start)
    before = [a.tobytes() for a in arrays_in]
    p = od.DesignProblem(x, groups, blocks, budgets)
    r = od.solve(p, start=start, method="bca", tol=1e-4)
    weights = r.weights.copy()
    od.certify(p, r.weights)
    od.verify(r)
    assert [a.tobytes() for a in arrays_in] == before
    np.testing.assert_array_equal(r.weights, weights)


def test_the_problem_is_frozen() -> None:
    p = od.DesignProblem(X)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.budgets = np.ones(1)  # type: ignore[misc]
    for name in ("candidates", "groups", "parameter_blocks", "budgets"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(p, name)[0] = 7


@given(problems())
def test_problems_survive_pickling(p: od.DesignProblem) -> None:
    same(p, pickle.loads(pickle.dumps(p)))


@given(problems(structure=("classical", "strata", "mixed")))
def test_counts_and_defaults(p: od.DesignProblem) -> None:
    assert p.n_candidates == len(p.candidates)
    assert p.n_groups == len(p.budgets) == p.groups.max() + 1
    assert p.n_parameter_blocks == p.parameter_blocks.max() + 1
    assert p.rank == sum(p.ranks)
    totals = np.bincount(p.groups, weights=p.uniform())
    np.testing.assert_allclose(totals, p.budgets, rtol=1e-14)


def test_scalar_budget_and_float_labels() -> None:
    p = od.DesignProblem(X, groups=[0.0, 1.0, 1.0], parameter_blocks=np.array([True, False, True]), budgets=2)
    assert p.budgets.tolist() == [2.0, 2.0]
    assert p.groups.tolist() == [0, 1, 1]
    assert p.parameter_blocks.tolist() == [1, 0, 1]
    assert od.DesignProblem(X).budgets.tolist() == [1.0]


def test_a_block_without_candidates_has_rank_zero() -> None:
    p = od.DesignProblem(X, parameter_blocks=[0, 3, 3])
    assert p.ranks.tolist() == [1, 0, 0, 2]
    assert od.solve(p).converged


def test_labels_may_leave_gaps_up_to_the_slack() -> None:
    assert od.DesignProblem(X, parameter_blocks=[0, 0, 999]).n_parameter_blocks == 1000


def test_repr_counts_in_words() -> None:
    assert repr(od.DesignProblem(X)) == "DesignProblem(3 candidates x 2, 1 group, 1 parameter block, rank 2)"


# ----------------------------------------------------------------------------------------------- grids


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)).flatmap(
        lambda s: st.tuples(arrays(np.float64, s, elements=lattice()), arrays(np.bool_, s[:2]))
    ),
    st.booleans(),
)
def test_grids(case: tuple[np.ndarray, np.ndarray], shared: bool) -> None:
    features, active = case
    m, k, _ = features.shape
    active[:, 0] |= ~active.any(axis=1)
    features[0, np.flatnonzero(active[0])[0]] = 1.0
    make = od.DesignProblem.shared if shared else od.DesignProblem.disjoint
    p = make(features, active)
    where = np.argwhere(active)
    np.testing.assert_array_equal(p.groups, where[:, 0])
    np.testing.assert_array_equal(p.parameter_blocks, 0 if shared else where[:, 1])
    np.testing.assert_array_equal(p.candidates, features[active])
    assert p.n_parameter_blocks == (1 if shared else k)
    grid = p.to_grid(p.uniform())
    assert grid.shape == (m, k)
    assert not grid[~active].any()
    np.testing.assert_array_equal(grid[active], p.uniform())
    if active.all():
        same(p, make(features))
        np.testing.assert_array_equal(make(features).to_grid(p.uniform()), grid)


def test_the_grid_is_a_copy() -> None:
    r = od.solve(od.DesignProblem.disjoint(np.ones((2, 2, 1))))
    r.weights_matrix()[:] = 7
    assert r.weights.max() <= 1


def test_problems_without_clients_and_arms_have_no_grid() -> None:
    with pytest.raises(
        ValueError, match=r"only problems made by DesignProblem\.disjoint or \.shared .* Index by"
    ):
        od.solve(od.DesignProblem(X)).weights_matrix()


@given(matrices())
def test_log_volume_connects_coordinates_and_candidates(x: np.ndarray) -> None:
    """Det(sum x x') = det(sum t t') det(P P'): both sides by plain NumPy."""
    p = od.DesignProblem(x)
    t = p.coordinates(slice(None))
    values = np.linalg.eigvalsh(x.T @ x)
    # Lattice data: the smallest non-zero eigenvalue of x'x is at least det / largest^3 > 1e-9 of the largest.
    expected = np.sum(np.log(values[values > 1e-10 * values[-1]]))
    assert np.linalg.slogdet(t.T @ t)[1] + p.log_volume == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickled_problem_is_frozen_and_gives_the_same_bits(kind: str) -> None:
    p = random_problem(4, kind)
    q = pickle.loads(pickle.dumps(p))
    for name in ("candidates", "groups", "parameter_blocks", "budgets"):
        assert not getattr(q, name).flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            getattr(q, name)[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        q.budgets = np.ones(1)
    for method in od.METHODS:
        a, b = od.solve(p, tol=1e-8, method=method), od.solve(q, tol=1e-8, method=method)
        np.testing.assert_array_equal(a.weights, b.weights)
        assert (a.gap, a.log_det, a.iterations) == (b.gap, b.log_det, b.iterations)


@pytest.mark.parametrize("make", [od.DesignProblem.disjoint, od.DesignProblem.shared])
def test_masked_features_are_refused(make) -> None:
    """NumPy would drop the mask and take what lies beneath; even an empty mask is refused."""
    x = np.random.default_rng(0).normal(size=(4, 3, 2))
    for mask in (x > 1, np.zeros_like(x, bool)):
        with pytest.raises(
            ValueError, match=r"features must not be masked; NumPy would drop the mask\. Drop"
        ):
            make(np.ma.array(x, mask=mask))
    with pytest.raises(ValueError, match="candidates must not be masked"):
        od.DesignProblem(np.ma.array(x[0], mask=x[0] > 1))


@pytest.mark.parametrize("make", [od.DesignProblem.disjoint, od.DesignProblem.shared])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_maps_of_features_are_kept(
    make, dtype: type[np.floating], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=(40, 5, 3)).astype(dtype)
    x.tofile(tmp_path / "x.bin")
    mapped = np.memmap(tmp_path / "x.bin", dtype=dtype, mode="r", shape=x.shape)
    monkeypatch.setattr(module, "COPY_LIMIT", mapped.nbytes - 1)
    kept, copied = make(mapped), make(x.astype(np.float64))
    assert np.shares_memory(kept.candidates, mapped)
    assert kept.candidates.dtype == dtype
    np.testing.assert_array_equal(od.solve(kept).weights, od.solve(copied).weights)


class Series(dict):
    """As much of a pandas Series as matters: values with labels, in an order of their own."""


@pytest.mark.parametrize("kind", [dict, Series])
def test_budgets_with_labels_are_matched_by_label(kind: type[np.number]) -> None:
    p = od.DesignProblem(np.eye(3), groups=[0, 1, 2], budgets=kind({2: 5.0, 0: 1.0, 1: 3.0}))
    assert p.budgets.tolist() == [1.0, 3.0, 5.0]


@pytest.mark.parametrize("labels", [("a", "b"), (1, 2), (0,), (0, 1, 2)])
def test_budgets_with_other_labels_are_refused(labels: tuple) -> None:
    """By position they would be somebody else's."""
    with pytest.raises(ValueError, match="those of the groups, '0', '1'; "):
        od.DesignProblem(np.eye(2), groups=[0, 1], budgets=dict.fromkeys(labels, 1.0))


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.longdouble])
def test_numbers_that_double_precision_cannot_hold_are_refused(kind: type[np.number]) -> None:
    x = np.array([[2**53, 1], [2**53, 1]], dtype=kind)
    assert od.DesignProblem(x).rank == 1
    x[1, 0] += kind(1)
    with pytest.raises(ValueError, match=r"must fit double precision, which candidates\[1\] = .* does not"):
        od.DesignProblem(x)
