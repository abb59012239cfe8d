"""MovieLens: the path from ratings to an environment, on made-up ratings and on the data where they are."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_limits

import bandits
from bandits.environments import ratings as movielens
from bandits.environments.ratings import NEIGHBOURS, complete, factors, facts, squared_similarity

DATA = Path(__file__).parents[4] / "shared" / "data" / "ml-100k" / "u.data"


@pytest.fixture(scope="module")
def ratings():
    """Ratings of 40 users for 30 films, one in two missing, with two tastes behind them."""
    rng = np.random.default_rng(0)
    taste = rng.uniform(0.2, 1.0, (40, 2)) @ rng.uniform(0.5, 2.5, (2, 30))
    full = np.clip(np.rint(taste + rng.normal(0.0, 0.5, taste.shape)), 1, 5)
    return np.where(rng.random(full.shape) < 0.5, full, 0.0)


@pytest.fixture(scope="module")
def file(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "u.data"
    rows = [f"{u + 1}\t{i + 1}\t{ratings[u, i]:.0f}\t881250949" for u, i in np.argwhere(ratings > 0)]
    path.write_text("\n".join(np.random.default_rng(1).permutation(rows)) + "\n")
    return path


@pytest.fixture
def environment(file, tmp_path):
    def make(**options):
        sizes = {"clients": 12, "arms": 5, "dim": 2, "cache": tmp_path / "cache"} | options
        return bandits.environments.movielens(file, other_ratings=True, **sizes)

    return make


def exact_similarity(one, other):
    """Return the squared correlation of two rows of ratings over common films, 0 if not positive."""
    pairs = [(int(x), int(y)) for x, y in zip(one, other, strict=True) if x > 0 and y > 0]
    n, sum_x, sum_y = len(pairs), sum(x for x, _ in pairs), sum(y for _, y in pairs)
    covariance = n * sum(x * y for x, y in pairs) - sum_x * sum_y
    variances = (n * sum(x * x for x, _ in pairs) - sum_x**2) * (n * sum(y * y for _, y in pairs) - sum_y**2)
    return Fraction(covariance**2, variances) if covariance > 0 and variances > 0 else Fraction(0)


def exact_similarities(ratings):
    """Return the squared similarities of all users in rational arithmetic, 0 of a user with itself."""
    users = range(len(ratings))
    return [
        [exact_similarity(ratings[u], ratings[v]) if u != v else Fraction(0) for v in users] for u in users
    ]


def predicted(ratings, squared, u, film, centred):
    """Return one prediction: neighbours are as similar as the tenth or more, in rational arithmetic."""
    mean = [sum(map(int, row)) / max(np.count_nonzero(row), 1) for row in ratings]
    raters = [v for v in np.flatnonzero(ratings[:, film]) if squared[u][v] > 0]
    tenth = sorted((squared[u][v] for v in raters), reverse=True)[NEIGHBOURS - 1 : NEIGHBOURS]
    friends = [v for v in raters if not tenth or squared[u][v] >= tenth[0]]
    weight = [math.sqrt(squared[u][v]) for v in friends]
    base = mean if centred else [0.0] * len(mean)
    votes = (w * (ratings[v, film] - base[v]) for w, v in zip(weight, friends, strict=True))
    value = base[u] + math.fsum(votes) / math.fsum(weight) if friends else mean[u]
    known = ratings[ratings > 0]
    return np.clip(value, known.min(), known.max())


TABLES = st.tuples(st.integers(11, 16), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0]))
)
"""Ratings by more than ten users of a few films, so that many similarities are equal."""


def test_similarity_is_the_correlation_over_common_films(ratings):
    squared = squared_similarity(ratings)
    np.testing.assert_array_equal(squared, squared.T)
    for u, v in [(0, 2), (3, 17), (25, 39)]:
        both = (ratings[u] > 0) & (ratings[v] > 0)
        expected = max(np.corrcoef(ratings[u, both], ratings[v, both])[0, 1], 0.0)
        assert math.sqrt(squared[u, v]) == pytest.approx(expected, abs=1e-12)


def test_similarity_is_zero_where_it_is_undefined():
    nothing_common = [[3, 0, 5], [0, 4, 0]]
    constant = [[3, 3, 3], [1, 2, 5]]
    for matrix in (nothing_common, constant):
        np.testing.assert_array_equal(squared_similarity(np.array(matrix, dtype=float)), np.zeros((2, 2)))


@given(TABLES)
def test_similarities_are_the_exact_ones_rounded_once(table):
    expected = [[float(value) for value in row] for row in exact_similarities(table)]
    np.testing.assert_array_equal(squared_similarity(table), expected)


@given(TABLES.filter(np.any), st.booleans())
def test_neighbours_of_a_prediction_are_those_of_rational_arithmetic(table, centred):
    squared, filled = exact_similarities(table), complete(table, centred=centred)
    np.testing.assert_array_equal(filled[table > 0], table[table > 0])
    for u, film in np.argwhere(table == 0):
        expected = predicted(table, squared, u, film, centred)
        assert filled[u, film] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_completion_agrees_with_a_prediction_at_a_time(ratings, centred):
    squared, filled = exact_similarities(ratings), complete(ratings, centred=centred)
    for u, film in np.argwhere(ratings == 0):
        expected = predicted(ratings, squared, u, film, centred)
        assert filled[u, film] == pytest.approx(expected, abs=1e-12)


@given(TABLES.filter(np.any), st.randoms(use_true_random=False))
def test_the_order_of_users_and_films_does_not_matter(table, random):
    users, films = (random.sample(range(n), n) for n in table.shape)
    mixed = table[np.ix_(users, films)]
    np.testing.assert_array_equal(squared_similarity(mixed), squared_similarity(table)[np.ix_(users, users)])
    np.testing.assert_allclose(complete(mixed), complete(table)[np.ix_(users, films)], rtol=0, atol=1e-12)


def test_the_order_of_lines_does_not_matter(file, tmp_path):
    other = tmp_path / "sorted.data"
    other.write_text("\n".join(sorted(file.read_text().splitlines())) + "\n")
    pairs = zip(
        *(factors(path, 2, other_ratings=True, cache=tmp_path) for path in (file, other)), strict=True
    )
    for one, two in pairs:
        np.testing.assert_array_equal(one, two)


def test_ratings_beyond_exact_arithmetic_are_refused():
    long = np.tile([1.0, 5.0], (2, 2435))
    assert squared_similarity(long)[0, 1] == 1.0
    with pytest.raises(ValueError, match=r"up to 4872 films in common. Use at most 4,870 films"):
        squared_similarity(np.tile([1.0, 5.0], (2, 2436)))


def test_the_environment_has_the_papers_structure(environment, file, tmp_path):
    env = environment(seed=3)
    assert env.features.shape == (12, 5, 2)
    assert not env.shared
    assert np.all(env.features == env.features[:, :1])
    assert env.features.min() >= 0
    assert env.parameters.min() >= 0
    users, films = factors(file, 2, other_ratings=True, cache=tmp_path)
    assert all((x == users).all(axis=1).any() for x in env.features[:, 0])
    assert len(np.unique(env.features[:, 0], axis=0)) == 12
    # Every film lies nearest to some centre, and a centre is the mean of its films.
    nearest = np.linalg.norm(films[:, None] - env.parameters, axis=2).argmin(axis=1)
    for a in range(5):
        np.testing.assert_allclose(films[nearest == a].mean(axis=0), env.parameters[a], atol=1e-12)


def test_the_seed_decides_and_the_same_seed_repeats(environment):
    one, again, other = environment(seed=1), environment(seed=1), environment(seed=2)
    np.testing.assert_array_equal(one.features, again.features)
    np.testing.assert_array_equal(one.parameters, again.parameters)
    assert not np.array_equal(one.features, other.features)


def test_threads_do_not_matter(environment, tmp_path):
    with threadpool_limits(1):
        one = environment(seed=1, cache=tmp_path / "one")
    two = environment(seed=1)
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.parameters, two.parameters)


def test_the_two_readings_are_kept_apart(environment, tmp_path):
    centred, plain = environment(), environment(centred=False)
    assert not np.array_equal(centred.features, plain.features)
    assert len(list((tmp_path / "cache").iterdir())) == 2
    np.testing.assert_array_equal(environment(centred=False).features, plain.features)


def test_factors_reproduce_the_completed_ratings(ratings, file, tmp_path):
    users, films = factors(file, 2, other_ratings=True, cache=tmp_path)
    full = complete(ratings) / 5
    left = np.linalg.norm(full - users @ films.T) / np.linalg.norm(full)
    values = np.linalg.svd(full, compute_uv=False)
    best = np.sqrt(np.sum(values[2:] ** 2) / np.sum(values**2))
    assert best - 1e-9 <= left <= 1.05 * best


def test_factors_are_kept_and_a_broken_cache_is_replaced(environment, tmp_path, monkeypatch):
    before = environment()
    (kept,) = (tmp_path / "cache").iterdir()
    whole = kept.read_bytes()
    for broken in (b"", whole[: len(whole) // 2], b"not an archive"):
        kept.write_bytes(broken)
        np.testing.assert_array_equal(environment().features, before.features)
        assert kept.read_bytes() == whole
    monkeypatch.setattr("bandits.environments.ratings.complete", None)
    np.testing.assert_array_equal(environment().features, before.features)
    with pytest.raises(TypeError):
        environment(dim=3)


def test_factors_of_other_code_are_computed_again(file, tmp_path, monkeypatch):
    """The name of a cached file has a hash of the source and of the versions of libraries."""
    before, _ = factors(file, 2, other_ratings=True, cache=tmp_path)
    monkeypatch.setattr(movielens, "NEIGHBOURS", 2)
    monkeypatch.setattr(movielens, "RECIPE", movielens.recipe(b"NEIGHBOURS = 2"))
    after, _ = factors(file, 2, other_ratings=True, cache=tmp_path)
    assert not np.array_equal(before, after)
    assert len(list(tmp_path.iterdir())) == 2
    source = Path(movielens.__file__).read_bytes()
    now = movielens.recipe(source)
    assert now != movielens.recipe(source.replace(b"NEIGHBOURS = 10", b"NEIGHBOURS = 20"))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0")
    assert now != movielens.recipe(source)


def test_the_default_cache_is_the_users(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    factors(file, 2, other_ratings=True)
    assert len(list((tmp_path / "optdesign").iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_no_obstacle(file, tmp_path):
    blocked = tmp_path / "cache"
    blocked.write_text("a file")
    users, _ = factors(file, 2, other_ratings=True, cache=blocked)
    assert users.shape == (40, 2)
    assert blocked.read_text() == "a file"


def test_writers_at_the_same_time_leave_one_whole_file(file, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        all_users = list(
            pool.map(lambda _: factors(file, 2, other_ratings=True, cache=tmp_path)[0], range(4))
        )
    assert all(np.array_equal(users, all_users[0]) for users in all_users)
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(factors(file, 2, other_ratings=True, cache=tmp_path)[0], all_users[0])


def test_another_file_is_refused_unless_it_is_meant(file):
    with pytest.raises(ValueError, match=r"SHA-256 06416e59.*GroupLens.*other_ratings=True"):
        bandits.environments.movielens(file)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("1\t2\t3\n", "lines of user, film, rating"),
        ("1\t2\t9\t0\n", "line 1 has the rating 9"),
        ("a b c d", "a b|'a'"),
        ("7\t2\t3\t0\n4\t5\t1\t0\n7\t2\t4\t9\n", "user 7 rates film 2 more than once"),
    ],
)
def test_ratings_that_are_none_are_named(content, word, tmp_path):
    (tmp_path / "u.data").write_text(content)
    with pytest.raises(ValueError, match=word):
        factors(tmp_path / "u.data", 1, other_ratings=True, cache=tmp_path)


def test_sizes_beyond_the_data_are_refused(environment):
    for options, word in [
        ({"clients": 41}, "clients must lie in 1 .. 40"),
        ({"arms": 31}, "arms must lie in 1 .. 30"),
        ({"dim": 31}, "dim must lie in 1 .. 30"),
    ]:
        with pytest.raises(ValueError, match=word):
            environment(**options)


def test_missing_scikit_learn_names_the_extra(environment, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(ImportError, match=r"from a clone: python -m pip install .\.\[movielens\]"):
        environment()


def test_facts_are_those_of_the_arms_that_are_not_best():
    env = bandits.LinearEnvironment([[[0.6, 0.0]] * 3, [[0.0, 0.8]] * 3], [[1, 0], [0.5, 1], [0, 1]])
    assert facts(env) == pytest.approx((0.36, 0.64, 0.3, 0.8))


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="MovieLens-100K is not at ../shared/data/ml-100k")
def test_movielens_is_nearly_as_the_paper_describes_it(tmp_path):
    env = bandits.environments.movielens(DATA, cache=tmp_path)
    assert env.features.shape == (100, 30, 3)
    users, films = factors(DATA, 3, cache=tmp_path)
    assert (users.shape, films.shape) == ((943, 3), (1682, 3))
    found = facts(env)
    # The paper: 0.4 <= ||x||^2 <= 0.8 and gaps in [0.01, 0.8]. Some users fall outside, whichever are drawn.
    assert np.mean((np.sum(users**2, axis=1) >= 0.4) & (np.sum(users**2, axis=1) <= 0.8)) > 0.75
    assert 0.2 < found.smallest_norm2 < 0.4 < 0.8 < found.largest_norm2 < 1.5
    assert 0.0 < found.smallest_gap < 0.01
    assert 0.5 < found.largest_gap < 0.8


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="MovieLens-100K is not at ../shared/data/ml-100k")
def test_predictions_of_movielens_are_those_of_rational_arithmetic():
    """Pairs of users are ranked by exact similarity; every prediction has the neighbours of these ranks."""
    user, film, rating, _ = np.loadtxt(DATA, dtype=np.int64).T
    table = np.zeros((user.max(), film.max()), dtype=np.int64)
    table[user - 1, film - 1] = rating
    rated = (table > 0).astype(np.int64)
    n, total, products, squares = rated @ rated.T, table @ rated.T, table @ table.T, table**2 @ rated.T
    covariance, variance = n * products - total * total.T, n * squares - total**2
    u, v = np.nonzero(np.triu((covariance > 0) & (variance * variance.T > 0), k=1))
    pairs = zip(covariance[u, v].tolist(), variance[u, v].tolist(), variance[v, u].tolist(), strict=True)
    exact = [Fraction(c**2, one * other) for c, one, other in pairs]
    place = {value: i + 1 for i, value in enumerate(sorted(set(exact)))}
    rank, weight = np.zeros(n.shape, dtype=np.int64), np.zeros(n.shape)
    rank[u, v] = rank[v, u] = [place[value] for value in exact]
    weight[u, v] = weight[v, u] = [math.sqrt(value) for value in exact]
    mean = table.sum(axis=1) / rated.sum(axis=1)
    plain, centred = (complete(table.astype(float), centred=centred) for centred in (False, True))
    for i in range(table.shape[1]):
        raters = np.flatnonzero(rated[:, i])
        tenth = np.sort(rank[:, raters], axis=1)[:, -NEIGHBOURS:][:, :1]
        share = np.where(rank[:, raters] >= tenth, weight[:, raters], 0.0)
        for filled, base in ((plain, np.zeros(len(mean))), (centred, mean)):
            votes, whole = (share * (table[raters, i] - base[raters])).sum(axis=1), share.sum(axis=1)
            expected = np.where(whole > 0, base + votes / np.where(whole > 0, whole, 1.0), mean)
            expected = np.where(rated[:, i] > 0, table[:, i], np.clip(expected, 1, 5))
            np.testing.assert_allclose(filled[:, i], expected, rtol=0, atol=1e-12)
