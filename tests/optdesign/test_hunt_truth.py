"""The truth of the hunt against values that are known by other means."""

import ast
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import log

import numpy as np
import pytest
from flint import arb
from hunt import enumeration, main_effects, sparsify, where
from hunt.claims import judge_efficiency
from hunt.truth import Truth, cholesky, instance, number, rank


@pytest.mark.parametrize("value", [0.1, -3.0, 5e-324, 1.7e308, 0.0])
def test_number_is_exact(value: float) -> None:
    exact = number(value)
    assert exact.is_exact()
    assert float(exact) == value


def test_rank_sees_the_last_bit() -> None:
    assert rank(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])) == 2
    assert rank(np.array([[0.1, 0.3], [1.0, 3.0]])) == 2  # the double 0.3 is not 3 times the double 0.1
    assert rank(np.array([[0.5, 1.5], [1.0, 3.0], [0.0, 0.0]])) == 1


def test_pseudo_determinant_and_variances() -> None:
    """Rank 2 in 3 columns: the product of the non-zero eigenvalues, and the pseudo-inverse."""
    rng = np.random.default_rng(0)
    x = (rng.integers(-3, 4, size=(8, 2)) @ rng.integers(-3, 4, size=(2, 3))).astype(float)
    blocks = np.arange(8) % 2
    truth = Truth(instance(x, np.arange(8) // 4, blocks, [1.0, 3.0]))
    assert truth.ranks == [2, 2]
    w = rng.uniform(size=8)
    measured = truth.measure(w)
    scaled = w * (np.array([1.0, 3.0]) / np.bincount(np.arange(8) // 4, w))[np.arange(8) // 4]
    log_det, g = 0.0, np.zeros(8)
    for b in range(2):
        own = blocks == b
        u = (x[own].T * scaled[own]) @ x[own]
        log_det += float(np.sum(np.log(np.linalg.eigvalsh(u)[1:])))
        g[own] = np.sum(x[own] * (x[own] @ np.linalg.pinv(u)), axis=1)
    assert float(measured.log_det) == pytest.approx(log_det)
    assert [float(v) for v in measured.variances] == pytest.approx(g.tolist())
    assert float(measured.g_value) == pytest.approx(g[:4].max() + 3 * g[4:].max())
    assert truth.measure(np.array([1.0, 0, 0, 0, 1, 0, 0, 0])) is None


def test_bracket_contains_the_known_optimum() -> None:
    """Quadratic regression on -1, 0, 1: the optimum is uniform, with determinant 4 / 27."""
    x = np.array([[1.0, t, t * t] for t in (-1.0, -0.5, 0.0, 0.5, 1.0)])
    truth = Truth(instance(x))
    wide = truth.bracket([np.array([0.3, 0.05, 0.3, 0.05, 0.3])])
    assert wide is not None
    low, high = wide
    assert low < arb(4) / 27 < high.exp()
    assert low.exp() < arb(4) / 27
    better = truth.ascended(np.array([0.3, 0.05, 0.3, 0.05, 0.3]), 200)
    narrow = truth.bracket([better])
    assert narrow.high - narrow.low < high - low
    assert abs(narrow.low.exp() - arb(4) / 27) < 1e-6


def test_efficiency_in_the_bracket_is_undecided() -> None:
    x = np.array([[1.0, t, t * t] for t in (-1.0, -0.5, 0.0, 0.5, 1.0)])
    truth = Truth(instance(x))
    w = np.full(5, 0.2)
    log_det = truth.measure(w).log_det
    true = float(((log_det - (arb(4) / 27).log()) / 3).exp())
    assert judge_efficiency(truth, true - 1e-12, log_det, [w]).undecided
    best = np.array([1.0, 0, 1, 0, 1])
    assert judge_efficiency(truth, true - 1e-12, log_det, [best])[:2] == ("", False)
    assert "truly at most" in judge_efficiency(truth, true + 1e-12, log_det, [best]).wrong


def test_cholesky() -> None:
    a = sparsify.arb_mat([[4, 2, 1], [2, 5, 3], [1, 3, 6]])
    lower = cholesky(a)
    product_ = lower * lower.transpose()
    assert all(product_[i, j].overlaps(a[i, j]) for i in range(3) for j in range(3))


def test_largest_rank_and_best_counts_by_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(3, 6))
        x = rng.integers(-2, 3, size=(n, 2)).astype(float)
        x[0, 0] = 1.0
        groups, blocks = np.arange(n) % 2, rng.integers(0, 2, size=n)
        blocks[0] = 0
        problem = instance(x, groups, blocks, rng.integers(1, 4, size=2))
        truth = Truth(problem)
        best, most, total = 0, 0.0, 0
        every = product(*(
            combinations_with_replacement(np.flatnonzero(groups == i), int(f))
            for i, f in enumerate(problem.budgets)
        ))  # fmt: skip
        for chosen in every:
            total += 1
            counts = np.bincount(np.concatenate(chosen), minlength=n)
            ranks = [rank(x[(blocks == b) & (counts > 0)]) for b in range(truth.n_blocks)]
            best = max(best, sum(ranks))
            if ranks == truth.ranks:
                most = max(most, float(truth.measure(counts, scale=False).log_det.exp()))
                any_counts = counts
        assert total == enumeration.n_counts(problem)
        assert best == enumeration.largest_rank(problem)
        if most:
            gain = enumeration.best_gain(truth, any_counts)
            own = truth.measure(any_counts, scale=False).log_det
            assert float((own + gain).exp()) == pytest.approx(most)


def test_optimum_of_all_combinations_is_the_sum_over_factors() -> None:
    """Independent factors at their own optima are certified against all combinations of levels."""
    levels = {"a": [-1.0, 0.0, 1.0, 2.0], "b": [0.0, 1.0, 4.0]}
    features = {name: main_effects._features(own, 2) for name, own in levels.items()}
    low = sum(main_effects.marginal(f).low for f in features.values())
    high = sum(main_effects.marginal(f).high for f in features.values())
    assert float(high - low) < 1e-9
    weights = {name: main_effects._proposals(f)[0] for name, f in features.items()}
    grid = list(product(range(4), range(3)))
    x = np.array([
        [1.0, *(int(v.p) / int(v.q) for v in features["a"][i][1:] + features["b"][j][1:])] for i, j in grid
    ])  # fmt: skip
    joint = np.array([weights["a"][i] * weights["b"][j] for i, j in grid])
    bracket = Truth(instance(x)).bracket([joint])
    assert float(bracket.low - low) == pytest.approx(0, abs=1e-6)
    assert float(bracket.high - high) == pytest.approx(0, abs=1e-6)


def test_cheapest_vertex() -> None:
    """Of 4 points on a line, 2 pairs have the same information as the uniform design, and so do mixtures."""
    problem = instance(np.array([[1.0], [-1.0], [1.0], [-1.0]]))
    truth = Truth(problem)
    weights = np.full(4, 0.25)
    assert sparsify.cheapest_vertex(truth, weights, np.array([3.0, 2.0, 5.0, 7.0])) == 2.0
    assert sparsify.information_change(truth, weights, np.array([1.0, 0, 0, 0])) == 0
    moved = sparsify.information_change(
        Truth(instance(np.eye(2))), np.array([0.5, 0.5]), np.array([0.4, 0.6])
    )
    assert moved == pytest.approx(np.sqrt(2 * 0.2**2) / 2)


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("a + b <= 0.3", [0, 1, 2]),
        ("a + b == 0.3", [0]),
        ("(a > 0) + (b > 0) <= 1", [1, 2]),
        ("u + u <= 255", [0, 2]),
        ("-u < 0", [0, 1, 2]),
        ("0 < a <= 0.1 or not p", [0, 1, 2]),
        ("s in ['x', 'y'] and (~p)", [1]),
        ("u % 7 == 2 and u // 7 == 14 and u ** 2 == 10000", [0]),
        ("a ** 2 == 0.01", [0]),
        ("a // 0.1 == 1 or a % 0.1 == 0", [0, 1, 2]),
    ],
)
def test_where_row_by_row(expression: str, rows: list[int]) -> None:
    tenth = Fraction(1, 10)
    columns = {
        "a": where.Column(np.array([0.1, 0.3, -0.2]), [tenth, 3 * tenth, -2 * tenth]),
        "b": where.Column(np.array([0.2, -0.1, 0.4]), [2 * tenth, -tenth, 4 * tenth]),
        "u": where.Column(np.array([100, 200, 5], np.uint8), [100, 200, 5]),
        "p": where.Column(np.array([True, False, False]), [True, False, False]),
        "s": where.Column(np.array(["x", "y", "z"], object), ["x", "y", "z"]),
    }
    tree = ast.parse(expression, mode="eval").body
    assert [n for n in range(3) if where.Row(columns, n).value(tree)] == rows


@pytest.mark.parametrize("expression", ["a < 0.1000000000000001", "a / (a - 0.1) > 1", "a and p"])
def test_where_leaves_open_answers_out(expression: str) -> None:
    columns = {
        "a": where.Column(np.array([0.1]), [Fraction(1, 10)]),
        "p": where.Column(np.array([True]), [True]),
    }
    with pytest.raises(where.Open):
        where.Row(columns, 0).value(ast.parse(expression, mode="eval").body)


def test_logistic_rows_have_the_sizes_of_their_weights() -> None:
    from hunt.instances import logistic

    sizes = [np.abs(logistic(np.random.default_rng(seed)).x[:, 0]) for seed in range(20)]
    assert all(np.all((s > 0) & (s <= 0.5 + 1e-12)) for s in sizes)
    assert max(log(s.max() / s.min()) for s in sizes) > 20
