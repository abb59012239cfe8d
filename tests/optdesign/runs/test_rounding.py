"""Whole runs that follow weights: sums, ranks, the bound of efficient rounding, and what is refused."""

import itertools
import re

import numpy as np
import pytest
from hunt import pool
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import plain, problems, quadratic, rank_of

import optdesign as od
from optdesign.runs import exchange as exchanges
from optdesign.runs.rank_basis import basis
from optdesign.runs.rounding import apportioned


def with_runs(problem, runs):
    return od.DesignProblem(problem.candidates, problem.groups, problem.parameter_blocks, runs)


def drawn_runs(problem, data, least):
    """Return the problem with a number of runs for every group, from ``least`` to 9, and these numbers."""
    size = problem.n_groups
    runs = np.array(data.draw(st.lists(st.integers(least, 9), min_size=size, max_size=size)))
    return with_runs(problem, runs), runs


def feasible_by_hall(problem, runs):
    """The condition of the docstring of optdesign.bases, for every set of groups."""
    everything = range(problem.n_groups)
    return all(
        problem.rank - rank_of(problem, ~np.isin(problem.groups, some)) <= runs[list(some)].sum()
        for size in everything
        for some in itertools.combinations(everything, size + 1)
    )


def compositions(total, parts):
    for cuts in itertools.combinations(range(total + parts - 1), parts - 1):
        yield np.diff([-1, *cuts, total + parts - 1]) - 1


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(6))
def test_efficient_rounding_maximises_the_smallest_ratio(seed):
    rng = np.random.default_rng(seed)
    parts, total = int(rng.integers(2, 5)), int(rng.integers(5, 9))
    weights = rng.dirichlet(np.ones(parts)) * total
    problem = od.DesignProblem(np.eye(parts), budgets=total)
    counts = apportioned(problem, weights, np.array([total]))
    best = max(np.min(np.array(c) / weights) for c in compositions(total, parts))
    assert counts.sum() == total
    assert np.min(counts / weights) >= best * (1 - 1e-12)
    assert best >= 1 - (parts - 1) / total


@settings(max_examples=60, deadline=None)
@given(problems(), st.data())
def test_runs_have_the_budgets_the_rank_and_the_bound(problem, data):
    problem, runs = drawn_runs(problem, data, 1)
    result = od.solve(problem)
    if not feasible_by_hall(problem, runs):
        with pytest.raises(ValueError, match="enough runs to keep the rank"):
            od.round(result)
        return
    for exchange in (False, True):
        rounded = od.round(result, exchange=exchange)
        assert np.array_equal(np.bincount(problem.groups, rounded.counts), runs)
        assert rank_of(problem, rounded.counts) == problem.rank == rounded.rank
        assert rounded.log_det == pytest.approx(plain(problem, rounded.counts).log_det, abs=1e-8)
        assert 0 < rounded.efficiency <= 1
        support = np.bincount(problem.groups[result.weights > 0], minlength=problem.n_groups)
        if np.all(runs >= support):
            bound = np.min(1 - (support - 1) / runs)
            assert rounded.efficiency >= bound * result.efficiency * (1 - 1e-9)


@settings(max_examples=80, deadline=None)
@given(problems(max_candidates=9, max_groups=4, max_blocks=2), st.data())
def test_a_basis_is_found_exactly_where_there_is_one(problem, data):
    runs = np.array(
        data.draw(st.lists(st.integers(1, 2), min_size=problem.n_groups, max_size=problem.n_groups))
    )
    problem = with_runs(problem, runs)
    if feasible_by_hall(problem, runs):
        chosen = basis(problem, runs, problem.uniform())
        counts = np.bincount(chosen, minlength=problem.n_candidates)
        assert len(chosen) == problem.rank == rank_of(problem, counts)
        assert np.all(np.bincount(problem.groups[chosen], minlength=problem.n_groups) <= runs)
    else:
        with pytest.raises(ValueError, match="enough runs to keep the rank"):
            basis(problem, runs, problem.uniform())


def test_an_augmenting_path_is_needed_and_found():
    """Greedy gives the only run of group 0 to a direction that group 1 could have had."""
    x = [[9.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    problem = od.DesignProblem(x, groups=[0, 0, 1], budgets=[1, 1])
    assert sorted(basis(problem, np.array([1, 1]), np.array([0.9, 0.1, 1.0]))) == [1, 2]


def test_too_few_runs_are_refused_with_the_number_needed():
    with pytest.raises(ValueError, match=re.escape("need at least 3 runs; 2 were given")):
        od.round(od.solve(od.DesignProblem(np.vander(np.linspace(-1, 1, 5), 3), budgets=2)))
    x = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    problem = od.DesignProblem(x, groups=[0, 0, 0, 1], budgets=[1, 7])
    with pytest.raises(
        ValueError, match=re.escape("reach 1 of 3, so group 0 must have at least 2 runs; 1 were")
    ):
        od.round(od.solve(problem))


@pytest.mark.parametrize("exchange", [False, True])
def test_rounding_up_says_how_many_runs_it_takes(exchange):
    rng = np.random.default_rng(1)
    problem = od.DesignProblem(rng.normal(size=(40, 3)), np.repeat([0, 1], 20), budgets=[4, 2.5])
    result = od.solve(problem)
    runs = od.round(result, "ceiling", exchange=exchange)
    assert np.all(runs.totals >= problem.budgets)
    assert runs.totals.sum() <= np.ceil(problem.budgets.sum() + len(result.support))
    assert np.array_equal(runs.problem.budgets, runs.totals)
    assert f"{runs.totals.sum()} runs where 6.5 were asked for" in runs.message
    best = od.solve(with_runs(problem, runs.totals), tol=1e-9)
    truth = np.exp((runs.log_det - best.log_det) / problem.rank)
    assert runs.efficiency <= truth
    assert runs.efficiency == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("budget", [3, 30 * 0.1, 3 * (1 + 1e-13)])
def test_whole_weights_are_not_rounded_up(budget):
    problem = od.DesignProblem(np.eye(3), budgets=budget)
    assert od.round(od.solve(problem), "ceiling").counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize("budget", [1e9, 1e12, 1e13 + 5, 2.0**51 + 0.5, 2.0**53 - 1])
def test_large_weights_are_rounded_up_by_less_than_a_run(budget):
    result = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(12, 3)), budgets=budget))
    counts = od.round(result, "ceiling").counts
    assert np.all(counts - result.weights < 1)
    assert np.all(counts >= result.weights * (1 - 1e-12))
    assert budget <= sum(counts.tolist()) < budget + len(result.support)


@pytest.mark.parametrize("budget", [2.0**53 + 2, 2.0**60, 2.0**63, 1e30])
def test_more_runs_than_doubles_count_are_refused(budget):
    result = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(12, 3)), budgets=budget))
    with pytest.raises(ValueError, match=r"budgets must be at most 2\^53 runs, rounded up; budgets\[0\] = "):
        od.round(result, "ceiling")


@pytest.mark.kernels
@pytest.mark.parametrize("budget", [1e15, 2.0**52 + 1, 2.0**53 - 1, 2.0**53])
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_efficient_rounding_of_huge_budgets_has_their_sum(budget, parts):
    """Neighbouring multipliers differ by several runs of a candidate."""
    problem = od.DesignProblem(np.eye(parts), budgets=budget)
    weights = np.random.default_rng(parts).dirichlet(np.ones(parts)) * budget
    counts = apportioned(problem, weights, np.array([int(budget)]))
    assert sum(counts.tolist()) == budget
    assert np.all(np.abs(counts - weights) <= parts + 4)


@pytest.mark.parametrize(
    ("levels", "runs", "least"),
    [
        (np.arange(-3.0, 4.0), 40, 12.566),  # the rounding of AlgDesign
        (np.linspace(-1, 1, 9), 30, 0.99 * 0.4745),  # 0.99 of the optimal weights
    ],
)
def test_optimal_weights_that_round_badly_are_mended(levels, runs, least):
    """D = det(X'X / n)^(1 / 10). Plain efficient rounding gives 12.530 and 0.957 of the optimum."""
    problem = od.DesignProblem(quadratic(levels, 3), budgets=runs)
    assert np.exp(od.round(od.solve(problem)).log_det / 10) / runs >= least


@settings(max_examples=40, deadline=None)
@given(problems(), st.data())
def test_exchanges_within_the_support_never_lower_log_det(problem, data):
    problem, runs = drawn_runs(problem, data, 3)
    result = od.solve(problem)
    if feasible_by_hall(problem, runs):
        rounded = apportioned(problem, result.weights, runs)
        found = od.round(result)
        assert found.log_det >= od.certify(problem, rounded).log_det - 1e-9
        if np.all(runs >= np.bincount(problem.groups[result.support], minlength=problem.n_groups)):
            assert not np.any(found.counts[result.weights == 0])


@pytest.mark.kernels
def test_fewer_runs_than_weights_go_to_a_basis_and_the_heaviest():
    problem = od.DesignProblem([[1.0, 0], [0, 1], [1, 1], [1, 1], [1, 1]], budgets=3)
    weights = np.array([0.1, 0.1, 0.9, 0.9, 1.0])
    counts = apportioned(problem, weights, np.array([3]))
    assert counts.sum() == 3
    assert rank_of(problem, counts) == 2
    counts = apportioned(problem, np.array([0.0, 1e-9, 3.0, 0, 0]), np.array([1000]))
    assert counts.tolist() == [0, 1, 999, 0, 0]


def test_runs_that_nearly_agree_are_not_refused():
    """In exact arithmetic they are independent, which the runs of group 0 and 1 must be."""
    x = np.array([[1.0, 0, 0], [1, 0, 0], [1, 1e-10, 0], [0, 3, 0], [0, 0, 1]])
    problem = od.DesignProblem(x @ [[2, 1, 0], [1, 1, 1], [0, 1, 3]], [0, 1, 1, 2, 2], budgets=[1, 1, 1])
    assert sorted(basis(problem, np.array([1, 1, 1]), problem.uniform())) == [0, 2, 4]
    x[2, 1] = 0.0
    problem = od.DesignProblem(x, [0, 1, 1, 2, 2], budgets=[1, 1, 1])
    with pytest.raises(ValueError, match="reach 1 of 3, so group 2 must have at least 2 runs; 1 were given"):
        basis(problem, np.array([1, 1, 1]), problem.uniform())


def test_a_basis_among_very_many_candidates_is_one_of_the_heaviest(monkeypatch):
    monkeypatch.setattr("optdesign.runs.rank_basis.GREEDY_WORK", 100.0)
    rng = np.random.default_rng(0)
    problem = od.DesignProblem(rng.normal(size=(500, 4)), budgets=9)
    weights = rng.dirichlet(np.full(500, 0.1)) * 9
    chosen = basis(problem, np.array([9]), weights)
    assert len(chosen) == 4 == np.linalg.matrix_rank(problem.candidates[chosen])
    assert set(chosen) <= {*np.argsort(-weights)[:6], *problem.basis}


def test_a_rank_that_only_round_off_gives_is_refused():
    """A problem that is told a rank above that of its numbers, as rounding in a span could."""
    problem = od.DesignProblem(np.eye(3), budgets=3)
    problem.source.whole().flags.writeable = True
    problem.source.whole()[2] = 0.0
    with pytest.raises(ValueError, match="candidates must have rank 3, that of the problem, in exact"):
        basis(problem, np.array([3]), problem.uniform())


def test_weights_that_lose_rank_are_not_rounded_up_but_efficiently():
    """Such as weights of another origin, or those of a solver that had to give up."""
    problem = od.DesignProblem(np.eye(3), budgets=4)
    lost = od.DesignResult.given(problem, [2.0, 2.0, 0.0])
    with pytest.raises(ValueError, match="result must have weights of full rank to be rounded up; they lose"):
        od.round(lost, "ceiling")
    runs = od.round(lost)
    assert np.all(runs.counts > 0)
    assert runs.counts.sum() == 4


@pytest.mark.parametrize("exponent", [-8, 8])
def test_column_scales_do_not_matter(exponent):
    x = np.vander(np.linspace(-1, 1, 9), 3)
    scaled = x * 10.0 ** np.array([exponent, 0, -exponent])
    ours, theirs = (od.round(od.solve(od.DesignProblem(v, budgets=8)), exchange=True) for v in (x, scaled))
    assert ours.efficiency == pytest.approx(theirs.efficiency, rel=1e-6)


def test_a_million_runs_are_as_good_as_weights():
    problem = od.DesignProblem(np.vander(np.linspace(-1, 1, 30), 4), budgets=1_000_000)
    runs = od.round(od.solve(problem), exchange=True)
    assert runs.counts.sum() == 1_000_000
    assert runs.efficiency > 0.999995


def test_budgets_that_are_no_numbers_of_runs_are_refused():
    result = od.solve(od.DesignProblem(np.eye(2), budgets=2.5))
    with pytest.raises(
        ValueError, match=re.escape("budgets must be whole numbers of runs, at most 2^53; budgets[0] = 2.5")
    ):
        od.round(result)
    with pytest.raises(ValueError, match="method must be one of efficient, ceiling; got 'floor'"):
        od.round(result, "floor")
    with pytest.raises(TypeError, match="result must be a DesignResult; got DesignProblem"):
        od.round(result.problem)


class TestTable:
    """The run list."""

    problem = od.DesignProblem(
        np.random.default_rng(0).normal(size=(20, 2)), np.repeat([0, 1], 10), np.tile([0, 1], 10), [5, 3]
    )
    runs = od.round(od.solve(problem))

    def test_has_a_line_for_every_run(self):
        table = self.runs.table()
        assert list(table.columns) == ["run", "candidate", "group", "parameter_block", "x0", "x1"]
        assert np.array_equal(np.bincount(table["candidate"], minlength=20), self.runs.counts)
        assert np.array_equal(table["group"], self.problem.groups[table["candidate"]])
        assert np.array_equal(table["x1"], self.problem.candidates[table["candidate"], 1])
        assert len(table) == len(str(table).splitlines()) - 1 == 8

    def test_random_order_depends_on_the_seed_alone(self):
        one, same, other = (self.runs.table(randomise=s)["candidate"] for s in (1, 1, 2))
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)
        assert np.array_equal(np.sort(one), np.sort(self.runs.table()["candidate"]))

    def test_goes_to_a_file_and_a_frame(self, tmp_path):
        self.runs.table().write(tmp_path / "runs.csv")
        assert (tmp_path / "runs.csv").read_text().splitlines()[
            0
        ] == "run,candidate,group,parameter_block,x0,x1"
        assert len(self.runs.table().to_frame()) == 8
        for name in ("runs.xlsx", "runs.txt", "runs.tsv", "runs"):
            with pytest.raises(ValueError, match=r"path must end in \.csv or \.parquet; got"):
                self.runs.table().write(tmp_path / name)
        assert [p.name for p in tmp_path.iterdir()] == ["runs.csv"]

    def test_has_the_settings_and_the_names_of_groups(self):
        settings = {"run": ["hot", "cold", "hot"]}
        problem = od.DesignProblem(
            np.eye(3), groups=["Lyon", "Lyon", "Turin"], budgets={"Lyon": 2, "Turin": 3}, settings=settings
        )
        table = od.round(od.solve(problem)).table()
        assert list(table.columns) == ["run", "candidate", "run_", "group"]
        assert table["run_"].tolist() == ["hot", "cold", "hot", "hot", "hot"]
        assert table["group"].tolist() == ["Lyon"] * 2 + ["Turin"] * 3
        short = od.DesignProblem(np.eye(3), groups=["Lyon", "Lyon", "Turin"], budgets={"Lyon": 1, "Turin": 9})
        with pytest.raises(ValueError, match="so group Lyon must have at least 2 runs; 1 were given"):
            od.round(od.solve(short))

    def test_is_cut_when_printed_long(self):
        runs = od.round(od.solve(od.DesignProblem(np.eye(2), budgets=110)))
        assert str(runs.table()).endswith("... and 10 runs more")

    def test_counts_by_client_and_arm(self):
        problem = od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(4, 2, 1)), budgets=3)
        runs = od.round(od.solve(problem))
        assert runs.counts_matrix().sum(axis=1).tolist() == [3] * 4


@pytest.mark.slow
def test_exchanges_of_very_many_runs_end_in_part() -> None:
    """Uniform weights are far from optimal, and 1e8 runs would move one by one."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(12, 3)), budgets=1e8)
    uniform = od.DesignResult.given(problem, problem.uniform())
    part, plain = od.round(uniform, exchange=True), od.round(uniform)
    assert part.status is od.RunStatus.IN_PART
    assert part.efficiency >= plain.efficiency
    assert part.totals.tolist() == [10**8]
    assert od.round(od.solve(problem), exchange=True).status is od.RunStatus.EXCHANGED


@pytest.mark.parametrize("seed", [166, 227])
def test_exchanges_on_ill_conditioned_information_are_not_called_complete(seed: int) -> None:
    """Another exchange gains up to 0.0018 here, and round-off of the information hides it."""
    found = pool.one("hunt.round", "plane_with_small_rows", seed)
    assert found.status == "ROUNDED"
    assert not found.wrong


@pytest.mark.parametrize("method", ["efficient", "ceiling"])
def test_weights_of_roundoff_cost_no_run(method: str) -> None:
    """Water-filling leaves 1e-16 instead of 0. A small weight that carries a direction is none of these."""
    problem = od.DesignProblem([[1.0, -1.0], [1.0, 1.0], [1.0, 0.0]], budgets=6)
    result = od.DesignResult.given(problem, np.array([3.0, 3.0, 1e-16]))
    assert od.round(result, method).counts.tolist() == [3, 3, 0]
    problem = od.DesignProblem([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], budgets=1e8)
    result = od.DesignResult.given(problem, np.array([1e8 - 1.0, 0.0, 1e-8]))
    assert od.round(result, method).counts[2] >= 1
    # Several of them add up to runs: the budget is kept.
    x = np.column_stack([np.ones(43), np.append([-1.0, 1.0, -1.0], np.zeros(40))])
    result = od.DesignResult.given(
        od.DesignProblem(x, budgets=2e14), np.append([1e14, 1e14 - 40, 0], np.ones(40))
    )
    assert od.round(result, method).counts.sum() == 200_000_000_000_000


def test_rounding_up_does_not_miss_the_largest_budgets():
    """The weights sum to one run less in exact arithmetic."""
    problem = od.DesignProblem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], budgets=2**53 - 1)
    with pytest.raises(ValueError, match=r"budgets must be at most 2\^53 runs, rounded up"):
        od.round(od.solve(problem), method="ceiling", exchange=False)


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_among_many_candidates_are_complete_only_if_proved(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status states that no exchange gains; with little room, not all candidates are compared."""
    monkeypatch.setattr(exchanges, "LARGEST_BOARD", 200)
    x = np.random.default_rng(seed).normal(size=(400, 3))
    if seed < 3:
        x /= np.linalg.norm(x, axis=1)[:, None]
    else:
        x[60:] *= 1e-3
    problem = od.DesignProblem(x, budgets=7)
    runs = od.round(od.solve(problem))
    inverse = np.linalg.inv((x.T * runs.counts) @ x)
    g, used = np.einsum("ni,ij,nj->n", x, inverse, x), runs.support
    gains = np.outer(1 - g[used], 1 + g) + (x[used] @ inverse @ x.T) ** 2
    assert runs.status is (od.RunStatus.IN_PART if seed < 3 else od.RunStatus.EXCHANGED)
    assert np.log(gains.max()) <= 1e-8 or runs.status is od.RunStatus.IN_PART
