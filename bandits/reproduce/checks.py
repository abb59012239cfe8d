"""Rules that decide whether a statement about measured numbers holds, each with the numbers in words.

A check takes results and a kind of instance, and returns what was measured and whether the rule is met.
Words that need a number have one here: a policy is *better* if its regret is lower with 95 % confidence,
taking differences trial by trial; *slightly* is up to a quarter more, *much* is twice as much or more,
*proportional* is a slope between 0.75 and 1.25 on logarithmic axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bandits.environments import LinearEnvironment
from bandits.movielens import factors
from bandits.policies.phased import Phased
from bandits.reproduce.catalogue import (
    COLLABORATIVE,
    ENHANCED,
    EXPONENTIAL,
    GREEDY,
    LOCAL,
    MIDDLE,
    PAPER,
    PHASE_LENGTHS,
    POLICIES,
    SEEDS,
    SHORT,
    SIZES,
    UNIFORM,
    main_case,
    swept,
)
from bandits.reproduce.description import MOVIELENS, Case, Instance
from bandits.reproduce.running import Results
from bandits.reproduce.summary import phase_values, scalars

SLIGHTLY = 1.25
MUCH = 2.0
SLOPES = (0.75, 1.25)
CONFIDENCE = 0.95
ROUNDING = 1e-9
"""How far rounding may take a value out of its range."""


class Finding(NamedTuple):
    """What was measured, in words, and whether it meets the rule."""

    measured: str
    holds: bool


Check = Callable[[Results, str], Finding]
Reading = Callable[[Results, Case], np.ndarray]
"""From a case to a number per trial."""


def phase_length_case(kind: str, policy: str) -> Case:
    """A curve of Figure 5."""
    return Case(Instance(kind), policy, MIDDLE)


def table1_case(kind: str, policy: str) -> Case:
    """A line of Table 1."""
    return Case(Instance(kind), policy, SHORT)


def seeds_case(kind: str, policy: str) -> Case:
    """A case of Figure 1(a) or 1(c) with many seeds."""
    return main_case(kind, policy, SEEDS)


def regret(results: Results, case: Case) -> np.ndarray:
    """Regret per client at the horizon."""
    return results[case].regret[:, -1]


def sparsity(results: Results, case: Case) -> np.ndarray:
    """Positive design weights per client, mean over the phases."""
    return phase_values(results[case], "sparsity")[1].mean(axis=1)


def iterations(results: Results, case: Case) -> np.ndarray:
    """Iterations of the design, mean over the phases."""
    return phase_values(results[case], "iterations")[1].mean(axis=1)


def communication(results: Results, case: Case) -> np.ndarray:
    """Scalars sent per client."""
    return scalars(results[case], case)


def better(winner: str, loser: str, case: Callable[[str, str], Case] = main_case) -> Check:
    """Lower regret at the horizon, with confidence."""

    def check(results: Results, kind: str) -> Finding:
        ours, theirs = (regret(results, case(kind, label)) for label in (winner, loser))
        low = _limits(theirs - ours)[0]
        words = f"{ours.mean():.0f} against {theirs.mean():.0f}; less by {(theirs - ours).mean():.0f}, "
        return Finding(words + f"with {CONFIDENCE:.0%} confidence by at least {low:.0f}", bool(low > 0.0))

    return check


def ratio(
    above: str, below: str, least: float, most: float, case: Callable[[str, str], Case] = main_case
) -> Check:
    """The quotient of two mean regrets lies in a range."""

    def check(results: Results, kind: str) -> Finding:
        value = regret(results, case(kind, above)).mean() / regret(results, case(kind, below)).mean()
        return Finding(f"{value:.2f} times", bool(least <= value <= most))

    return check


def cost_of_privacy(results: Results, kind: str) -> Finding:
    """What is lost by privacy, as a part of what is won by communication."""
    private, everything, alone = (
        regret(results, main_case(kind, label)).mean() for label in (ENHANCED, COLLABORATIVE, LOCAL)
    )
    lost, won = private - everything, alone - everything
    return Finding(f"{lost:.0f} lost of {won:.0f} won", bool(lost <= 0.25 * won))


def overtakes(policy: str, other: str) -> Check:
    """From some time to the horizon the mean regret is lower."""

    def check(results: Results, kind: str) -> Finding:
        ours, theirs = (results[main_case(kind, label)] for label in (policy, other))
        behind = np.flatnonzero(ours.mean >= theirs.mean)
        end = f"at the horizon {ours.mean[-1]:.0f} against {theirs.mean[-1]:.0f}"
        if len(behind) and behind[-1] == len(ours.times) - 1:
            return Finding(f"not within {ours.horizon} pulls; {end}", False)
        since = ours.times[behind[-1] + 1] if len(behind) else ours.times[0]
        return Finding(f"from {since} pulls on; {end}", True)

    return check


def same_ranking(other: str) -> Check:
    """The four algorithms come in the same order on another kind of instance."""

    def check(results: Results, kind: str) -> Finding:
        orders = []
        for where in (other, kind):
            mean = {label: regret(results, main_case(where, label)).mean() for label in PAPER}
            orders.append(sorted(PAPER, key=mean.__getitem__))
        words = " < ".join(orders[0]) + "; here " + " < ".join(orders[1])
        return Finding(words, orders[0] == orders[1])

    return check


def other_delta(labels: tuple[str, ...]) -> Check:
    """Some other confidence level gives a lower regret, with confidence."""

    def check(results: Results, kind: str) -> Finding:
        found = [better(label, ENHANCED)(results, kind) for label in labels]
        words = "; ".join(f"{label}: {one.measured}" for label, one in zip(labels, found, strict=True))
        return Finding(words, any(one.holds for one in found))

    return check


def monotone(cases: Callable[[str], dict[int, Case]], reading: Reading, sign: int) -> Check:
    """Means grow (sign 1) or fall (sign -1) from each size to the next."""

    def check(results: Results, kind: str) -> Finding:
        means = np.array([reading(results, case).mean() for case in cases(kind).values()])
        words = ", ".join(f"{m:.4g}" for m in means) + " at " + ", ".join(map(str, cases(kind)))
        return Finding(words, bool(np.all(sign * np.diff(means) > 0.0)))

    return check


def proportional(panel: str, reading: Reading, sign: int) -> Check:
    """The slope on logarithmic axes is near 1, or near -1 for inverse proportion."""

    def check(results: Results, kind: str) -> Finding:
        cases = swept(kind, panel)
        values = np.array([reading(results, case) for case in cases.values()])
        if values.min() <= 0.0:
            return Finding("no slope: some values are 0", False)
        slopes = np.polyfit(np.log(list(cases)), np.log(values), 1)[0]
        low, high = _limits(slopes)
        words = f"slope {slopes.mean():.2f} (90 % interval {low:.2f} to {high:.2f})"
        return Finding(words, bool(SLOPES[0] <= sign * slopes.mean() <= SLOPES[1]))

    return check


def range_of(read: Callable[[Results, str], np.ndarray], least: float, most: float) -> Check:
    """All values of an environment, over all trials, lie in a range."""

    def check(results: Results, kind: str) -> Finding:
        values = read(results, kind)
        inside = np.mean((values >= least - ROUNDING) & (values <= most + ROUNDING))
        return Finding(f"{values.min():.4f} to {values.max():.4f}, {inside:.1%} inside", bool(inside == 1.0))

    return check


def gaps(results: Results, kind: str) -> np.ndarray:
    """Gaps of the arms that are not best, of all trials' instances."""
    return np.concatenate([env.gaps[~env.optimal] for env in _environments(results, kind)])


def norms(results: Results, kind: str) -> np.ndarray:
    """Norms of the features, of all trials' instances."""
    return np.concatenate(
        [np.linalg.norm(env.features, axis=2).ravel() for env in _environments(results, kind)]
    )


def squared_norms(results: Results, kind: str) -> np.ndarray:
    """Squared norms of the features, of all trials' instances."""
    return norms(results, kind) ** 2


def canonical_parameters(results: Results, kind: str) -> Finding:
    """The parameter vectors of the arms are the basis vectors, each of them for some arm."""
    env = _environments(results, kind)[0]
    found = np.unique(env.parameters, axis=0)
    words = f"{len(found)} different parameter vectors in dimension {env.dim}"
    return Finding(words, np.array_equal(found, np.eye(env.dim)[::-1]))


def rating_matrix(results: Results, _kind: str) -> Finding:
    """Users and films of the ratings."""
    assert results.ratings is not None
    users, films = factors(results.ratings, main_case(MOVIELENS, ENHANCED).instance.dim)
    return Finding(f"{len(users)} by {len(films)}", (len(users), len(films)) == (943, 1682))


def phases(policy: str, horizon: int, arms: int, expected: int) -> Check:
    """A schedule has as many phases as stated."""

    def check(_results: Results, _kind: str) -> Finding:
        phased = POLICIES[policy]
        assert isinstance(phased, Phased)
        count = len(phased.lengths(horizon, arms))
        return Finding(f"{count} phases for T = {horizon}", count == expected)

    return check


def sparsity_between(least: float, most: float) -> Check:
    """The sparsity level, mean over phases, trials and all sizes, lies in a range."""

    def check(results: Results, kind: str) -> Finding:
        levels = [sparsity(results, case).mean() for case in all_swept(kind)]
        mean = float(np.mean(levels))
        return Finding(
            f"{mean:.2f} on average, from {min(levels):.2f} to {max(levels):.2f} by sizes",
            least <= mean <= most,
        )

    return check


def never_below_one(results: Results, kind: str) -> Finding:
    """Every client has a positive weight in every phase."""
    least = min(results[case].phases["sparsity"].min() for case in all_swept(kind))
    return Finding(f"smallest level {least:.2f}", bool(least >= 1.0))


def ends_at_one(results: Results, kind: str) -> Finding:
    """In the last phase almost every client has one positive weight."""
    last = [phase_values(results[case], "sparsity")[1][:, -1].mean() for case in all_swept(kind)]
    return Finding(f"{min(last):.3f} to {max(last):.3f} in the last phase, by sizes", max(last) <= 1.01)


def ends_constant(results: Results, kind: str) -> Finding:
    """Regret hardly grows in the second half of the time."""
    growth = []
    for case in all_swept(kind):
        run = results[case]
        half = int(np.searchsorted(run.times, run.horizon // 2))
        growth.append(float(run.mean[-1] / run.mean[half] - 1.0))
    return Finding(f"{min(growth):.2%} to {max(growth):.2%} more in the second half", max(growth) <= 0.01)


def few_positive_weights(results: Results, kind: str) -> Finding:
    """Positive weights of the first design, beyond one per client, against K d(d + 1)/2."""
    case = swept(kind, "a")[100]
    i = case.instance
    beyond = phase_values(results[case], "sparsity")[1][:, 0].mean() * i.clients - i.clients
    limit = i.arms * i.dim * (i.dim + 1) // 2
    return Finding(f"{beyond:.0f} beyond one per client, limit {limit}", bool(beyond <= limit))


def sparsity_goes_with_communication(results: Results, kind: str) -> Finding:
    """Rank correlation over the sizes."""
    from scipy.stats import spearmanr

    cases = all_swept(kind)
    level, cost = ([read(results, c).mean() for c in cases] for read in (sparsity, communication))
    rank = float(spearmanr(level, cost).statistic)
    return Finding(f"rank correlation {rank:.2f} over {len(cases)} sizes", rank >= 0.7)


def not_slower(results: Results, kind: str) -> Finding:
    """Iterations with the most clients against those with the fewest."""
    cases = swept(kind, "a")
    few, many = (iterations(results, cases[m]).mean() for m in (min(cases), max(cases)))
    return Finding(
        f"{few:.1f} with M = {min(cases)}, {many:.1f} with M = {max(cases)}", bool(many <= SLIGHTLY * few)
    )


def best_tradeoff(results: Results, kind: str) -> Finding:
    """Exponential phases have the smallest product of regret and scalars."""
    product = {}
    for label in PHASE_LENGTHS:
        case = phase_length_case(kind, label)
        product[label] = regret(results, case).mean() * communication(results, case).mean()
    words = "; ".join(f"{label}: {value:.3g}" for label, value in product.items())
    return Finding(words, min(product, key=product.__getitem__) == EXPONENTIAL)


def communication_falls(results: Results, kind: str) -> Finding:
    """Uniform phases cost more scalars than exponential ones, and those more than greedy ones."""
    costs = [
        communication(results, phase_length_case(kind, label)).mean()
        for label in (UNIFORM, EXPONENTIAL, GREEDY)
    ]
    return Finding(", ".join(f"{c:.0f}" for c in costs) + " scalars per client", costs == sorted(costs)[::-1])


def all_swept(kind: str) -> list[Case]:
    """The cases of Figures 2 to 4, each once."""
    return list(dict.fromkeys(case for panel in SIZES for case in swept(kind, panel).values()))


def _environments(results: Results, kind: str) -> list[LinearEnvironment]:
    case = main_case(kind, ENHANCED)
    return [results.environment(case, n) for n in range(results.trials(case))]


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Limits that each hold with 95 % confidence, by Student's t; infinite for a single trial."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return -np.inf, np.inf
    half = float(t.ppf(CONFIDENCE, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return float(values.mean()) - half, float(values.mean()) + half
