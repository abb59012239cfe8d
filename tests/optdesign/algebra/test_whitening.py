"""Maps that make a design white: how often, how far, and that all at once is the same to the last digit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from problems import EPS
from rationals import U, root

import optdesign as od
from optdesign.algebra import whitening
from optdesign.algebra.whitening import is_white

pytestmark = pytest.mark.kernels

seeds = pytest.mark.parametrize("seed", range(8))


@seeds
def test_how_far_from_white(seed: int) -> None:
    """The Frobenius norm of S - I, from lower triangles and first columns alone."""
    rng = np.random.default_rng(seed)
    ranks = np.array([3, 0, 1, 2])
    information, off = rng.normal(size=(4, 3, 3)), np.full(4, np.nan)
    exact = []
    for s, r in zip(information, ranks.tolist(), strict=True):
        s[np.triu_indices(3, 1)] = np.nan
        s[r:] = np.nan
        entries = [[Fraction(s[max(i, j), min(i, j)]) - (i == j) for j in range(r)] for i in range(r)]
        exact.append(root(sum((e**2 for row in entries for e in row), Fraction(0))))
    assert not is_white(information, ranks, off)
    np.testing.assert_allclose(off, [float(e) for e in exact], rtol=32 * EPS, atol=0)
    assert all(Fraction(got) >= e for got, e in zip(off.tolist(), exact, strict=True))


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_white_enough(rank: int) -> None:
    """Up to 64 u times the rank, in every block."""
    good, most = np.eye(4), float(64 * rank * U)
    for change, enough in [
        (most, True),
        (-most, True),
        (-most - float(U), False),
        (most + 2 * float(U), False),
    ]:
        s = np.eye(4)
        s[0, 0] += change
        for blocks in ([s], [s, good], [good, s]):
            off = np.full(len(blocks), np.nan)
            assert bool(is_white(np.array(blocks), np.full(len(blocks), rank), off)) == enough
            # A square and its sum for every entry, and ten roundings more.
            assert off.max() == abs(change) * (1 + (rank**2 + 10) * float(U))


class Attempts:
    """Counts what whitening asks for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sums = self.factors = self.looks = 0
        self.patch = monkeypatch.setattr
        for name, count in [
            ("information_matrices", "sums"),
            ("inverse_factors", "factors"),
            ("is_white", "looks"),
        ]:
            self.patch(whitening, name, self.counted(getattr(whitening, name), count))

    def counted(self, function, count: str):
        def call(*arguments):
            setattr(self, count, getattr(self, count) + 1)
            return function(*arguments)

        return call

    def of(self, problem: od.DesignProblem, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.sums = self.factors = self.looks = 0
        support = np.flatnonzero(w)
        return whitening.whitened(problem, problem.rows, support, w[support])


def with_two_blocks() -> tuple[od.DesignProblem, np.ndarray]:
    """Twelve candidates in two blocks of rank three, with uniform weights."""
    problem = od.DesignProblem(
        np.random.default_rng(0).normal(size=(12, 3)), parameter_blocks=np.arange(12) % 2
    )
    return problem, problem.uniform()


def informations(problem: od.DesignProblem, w: np.ndarray, maps: np.ndarray) -> list[np.ndarray]:
    """The information of every block in some coordinates, by plain NumPy."""
    out = []
    for b, r in enumerate(problem.ranks):
        rows = problem.parameter_blocks == b
        y = (problem.rows.source.whole()[rows] @ maps[b])[:, :r]
        out.append((y.T * w[rows]) @ y)
    return out


def assert_consistent(
    problem: od.DesignProblem, w: np.ndarray, white: np.ndarray, off: np.ndarray, log_det: np.ndarray
) -> None:
    """The distances are those of what is returned, and log det is what it takes away."""
    left, whole = informations(problem, w, white), informations(problem, w, problem.rows.maps)
    expected = [np.linalg.norm(s - np.eye(len(s))) for s in left]
    np.testing.assert_allclose(off, expected, rtol=0, atol=100 * EPS)
    taken = [np.linalg.slogdet(u)[1] - np.linalg.slogdet(s)[1] for s, u in zip(left, whole, strict=True)]
    np.testing.assert_allclose(log_det, taken, rtol=1e-12)


def test_vectors_are_looked_at_once_they_have_been_whitened(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, w = with_two_blocks()
    attempts = Attempts(monkeypatch)
    found = attempts.of(problem, w)
    assert (attempts.sums, attempts.factors, attempts.looks) == (2, 1, 1)
    assert found[1].max() <= 3 * whitening.ROUNDOFF
    assert_consistent(problem, w, *found)


@pytest.mark.parametrize("after", [2, 3, 4, 5])
def test_no_more_than_four_attempts(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that are a little off need several; what is returned is what was looked at last."""
    problem, w = with_two_blocks()
    attempts = Attempts(monkeypatch)
    right = whitening.inverse_factors

    def poor(*arguments):
        factor, log_det = right(*arguments)
        if attempts.factors < after - 1:
            factor = factor * (1 + 2.0**-20)
            log_det = log_det - 2 * problem.ranks * math.log1p(2.0**-20)
        return factor, log_det

    attempts.patch(whitening, "inverse_factors", poor)
    found = attempts.of(problem, w)
    done = min(after, 4)
    assert (attempts.sums, attempts.factors, attempts.looks) == (done, done - 1, done - 1)
    assert (found[1].max() <= 3 * whitening.ROUNDOFF) == (after <= 4)
    assert_consistent(problem, w, *found)


def test_a_block_that_loses_rank_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, w = with_two_blocks()
    w[::2] = 0.0
    w[0] = 0.5
    attempts = Attempts(monkeypatch)
    log_det = attempts.of(problem, w)[2]
    assert (attempts.sums, attempts.factors, attempts.looks) == (1, 1, 0)
    np.testing.assert_array_equal(np.isneginf(log_det), [True, False])


# ----------------------------------------------------------------------------------------- all at once


def uneven(seed: int) -> od.DesignProblem:
    """Groups and blocks in no order, units over nine decades, the last block of lower rank."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(150, 4)) * 10.0 ** np.array([0, -6, 3, 1])
    blocks = rng.integers(0, 3, size=150)
    x[blocks == 2, -1] = x[blocks == 2, 0]
    return od.DesignProblem(x, rng.integers(0, 5, size=150), blocks, budgets=10.0 ** np.arange(-2, 3))


@seeds
@pytest.mark.parametrize("attempts", [1, 2, whitening.WHITENINGS])
def test_all_at_once_is_the_same_to_the_last_digit(
    seed: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = uneven(seed)
    rng = np.random.default_rng(seed)
    support = np.flatnonzero(rng.random(150) < 0.8)
    w = 10.0 ** rng.uniform(-9, 0, size=len(support))
    at_once = whitening.measured(problem, problem.rows, support, w, attempts)
    assert at_once.full
    monkeypatch.setattr(whitening, "FEW", 0)
    for one, other in zip(
        at_once, whitening.measured(problem, problem.rows, support, w, attempts), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_rank_that_is_lost_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, w = with_two_blocks()
    support = np.append(np.flatnonzero(np.arange(12) % 2), 0)
    at_once = whitening.measured(problem, problem.rows, support, w[support])
    monkeypatch.setattr(whitening, "FEW", 0)
    in_turn = whitening.measured(problem, problem.rows, support, w[support])
    assert not at_once.full
    np.testing.assert_array_equal(at_once.log_det, in_turn.log_det)
    odd = problem.parameter_blocks == 1
    np.testing.assert_array_equal(at_once.g[odd], in_turn.g[odd])


def test_an_estimate_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, w = with_two_blocks()
    attempts = Attempts(monkeypatch)
    white, off, log_det = whitening.whitened(problem, problem.rows, np.arange(12), w, attempts=1)
    assert (attempts.sums, attempts.factors, attempts.looks) == (1, 1, 0)
    assert not off.any()
    left = informations(problem, w, white)
    np.testing.assert_allclose(left, [np.eye(3)] * 2, rtol=0, atol=100 * EPS)
    assert np.all(np.isfinite(log_det))
