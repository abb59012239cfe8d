"""Empirical comparisons: checks that compare measured numbers with each other or with a stated number.

A check takes results and a kind of instance, and returns the numbers in words with the evidence for and
against the statement. Differences are taken trial by trial, over all trials that were played. Words that need
a number have one here: *slightly* is up to a quarter more, *much* is twice as much or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bandits.reproduce.catalogue import (
    ENHANCED,
    EXPONENTIAL,
    GREEDY,
    LOCAL,
    MIDDLE,
    PHASE_LENGTHS,
    SIZES,
    UNIFORM,
    main_case,
    swept,
)
from bandits.reproduce.decisions import (
    NO_EVIDENCE,
    Evidence,
    Finding,
    all_of,
    any_of,
    below,
    exceeds,
    limits,
    quotient_limits,
    within,
)
from bandits.reproduce.description import Case, Instance
from bandits.reproduce.formatting import interval, plain, rounded
from bandits.reproduce.running import Results
from bandits.reproduce.summary import moments, phase_values, scalars

SLIGHTLY = 1.25
MUCH = 2.0
PRIVACY = 0.25
"""Part of the gain from communication that privacy may cost without a significant impact."""
ASSOCIATED = 0.7
"""Rank correlation from which on two quantities go together."""
ONE = 1.01
"""Sparsity level up to which almost every client has one positive weight."""
CONSTANT = 0.01
"""Relative growth of regret in the second half of the time up to which regret is constant."""

Check = Callable[[Results, str], Finding]
Reading = Callable[[Results, Case], np.ndarray]
"""From a case to a number per trial."""


def phase_length_case(kind: str, policy: str) -> Case:
    """Return the case of a curve of Figure 5."""
    return Case(Instance(kind), policy, MIDDLE)


def regret(results: Results, case: Case) -> np.ndarray:
    """Return the regret per client at the horizon."""
    return results.all_trials(case).regret[:, -1]


def sparsity(results: Results, case: Case) -> np.ndarray:
    """Return the positive design weights per client, mean over the phases."""
    return phase_values(results.all_trials(case), "sparsity")[1].mean(axis=1)


def iterations(results: Results, case: Case) -> np.ndarray:
    """Return the iterations of the design, mean over the phases."""
    return phase_values(results.all_trials(case), "iterations")[1].mean(axis=1)


def upload(results: Results, case: Case) -> np.ndarray:
    """Return the scalars uploaded per client."""
    return results.all_trials(case).uploaded / case.instance.clients


def communication(results: Results, case: Case) -> np.ndarray:
    """Return the scalars sent per client."""
    return scalars(results.all_trials(case), case)


def paired(results: Results, reading: Reading, cases: Sequence[Case]) -> np.ndarray:
    """Return the readings of several cases for the trials that all of them have, (cases, trials)."""
    values = [reading(results, case) for case in cases]
    trials = min(map(len, values))
    return np.array([row[:trials] for row in values])


def better(winner: str, loser: str, case: Callable[[str, str], Case] = main_case) -> Check:
    """Compare the regret of two policies at the horizon: the first is lower."""

    def check(results: Results, kind: str) -> Finding:
        ours, theirs = paired(results, regret, [case(kind, label) for label in (winner, loser)])
        more = ours - theirs
        words = f"{_mean(ours)} against {_mean(theirs)} in {_trials(ours)}"
        return Finding(f"{words}; difference {interval(more.mean(), *limits(more))}", below(more))

    return check


def overtakes(policy: str, other: str) -> Check:
    """Compare regret at the horizon, and find the time from which on the mean is lower."""

    def check(results: Results, kind: str) -> Finding:
        found = better(policy, other)(results, kind)
        ours, theirs = (results.all_trials(main_case(kind, label)) for label in (policy, other))
        behind = np.flatnonzero(ours.mean >= theirs.mean)
        if len(behind) and behind[-1] == len(ours.times) - 1:
            since = "mean not lower at the horizon"
        else:
            first = ours.times[behind[-1] + 1] if len(behind) else ours.times[0]
            since = f"mean lower from {int(first):,} pulls on"
        return Finding(f"{since}; {found.measured}", found.evidence)

    return check


def ratio(worse: str, reference: str, least: float, most: float) -> Check:
    """Compare two regrets of Figure 1: the quotient lies between two limits."""

    def check(results: Results, kind: str) -> Finding:
        ours, theirs = paired(results, regret, [main_case(kind, label) for label in (worse, reference)])
        evidence = all_of([exceeds(ours - least * theirs), below(ours - most * theirs)])
        return Finding(_times(ours, theirs), evidence)

    return check


def cost_of_privacy(benchmark: str) -> Check:
    """Compare the regret that privacy costs with the regret that communication saves, which is positive."""

    def check(results: Results, kind: str) -> Finding:
        cases = [main_case(kind, label) for label in (ENHANCED, benchmark, LOCAL)]
        private, everything, alone = paired(results, regret, cases)
        lost, won = private - everything, alone - everything
        evidence = all_of([exceeds(won), below(lost - PRIVACY * won)])
        return Finding(f"{_mean(lost)} lost of {_mean(won)} won in {_trials(lost)}", evidence)

    return check


def other_delta(labels: tuple[str, ...]) -> Check:
    """Compare Enhanced Fed-PE at other confidence levels: at least one has a lower regret."""

    def check(results: Results, kind: str) -> Finding:
        found = [better(label, ENHANCED)(results, kind) for label in labels]
        words = "; ".join(f"{label}: {one.measured}" for label, one in zip(labels, found, strict=True))
        return Finding(words, any_of([_tested(one) for one in found]))

    return check


def falls(cases: Callable[[str], dict[int, Case]], reading: Reading) -> Check:
    """Compare the readings at neighbouring sizes: each is lower than the one before."""

    def check(results: Results, kind: str) -> Finding:
        values = paired(results, reading, list(cases(kind).values()))
        words = ", ".join(map(_mean, values)) + " at " + ", ".join(f"{size:,}" for size in cases(kind))
        return Finding(words, all_of([exceeds(step) for step in values[:-1] - values[1:]]))

    return check


def lowest(results: Results, kind: str) -> Finding:
    """Compare uniform phases with the other selections: their regret is the lowest."""
    uniform, *others = _selections(results, kind)
    words = f"{_mean(uniform)} against " + " and ".join(map(_mean, others)) + f" in {_trials(uniform)}"
    return Finding(words, all_of([exceeds(other - uniform) for other in others]))


def slightly_worse(results: Results, kind: str) -> Finding:
    """Compare exponential with uniform phases: at most slightly more regret."""
    uniform, exponential, _ = _selections(results, kind)
    return Finding(_times(exponential, uniform), below(exponential - SLIGHTLY * uniform))


def much_worse(results: Results, kind: str) -> Finding:
    """Compare greedy phases with both other selections: much more regret."""
    *others, greedy = _selections(results, kind)
    words = "; ".join(
        f"{label}: {_times(greedy, other)}" for other, label in zip(others, PHASE_LENGTHS, strict=False)
    )
    return Finding(words, all_of([exceeds(greedy - MUCH * other) for other in others]))


def best_tradeoff(results: Results, kind: str) -> Finding:
    """Compare the products of regret and scalars sent: exponential phases have the smallest."""

    def product(results: Results, case: Case) -> np.ndarray:
        return regret(results, case) * communication(results, case)

    values = dict(zip(PHASE_LENGTHS, _selections(results, kind, product), strict=True))
    words = "; ".join(f"{label}: {row.mean():.3g}" for label, row in values.items())
    own = values.pop(EXPONENTIAL)
    return Finding(words, all_of([exceeds(other - own) for other in values.values()]))


def communication_falls(results: Results, kind: str) -> Finding:
    """Compare the scalars sent: most with uniform phases, fewest with greedy ones."""
    order = [phase_length_case(kind, label) for label in (UNIFORM, EXPONENTIAL, GREEDY)]
    values = paired(results, communication, order)
    words = ", ".join(map(_mean, values)) + " scalars per client"
    return Finding(words, all_of([exceeds(step) for step in values[:-1] - values[1:]]))


def sparsity_between(least: float, most: float) -> Check:
    """Compare the sparsity level, mean over phases and all sizes, with two limits."""

    def check(results: Results, kind: str) -> Finding:
        levels = paired(results, sparsity, all_swept(kind))
        mean, by_size = levels.mean(axis=0), levels.mean(axis=1)
        words = f"{_mean(mean)} on average, from {by_size.min():.2f} to {by_size.max():.2f} by sizes"
        return Finding(words, within(mean, least, most))

    return check


def ends_at_one(results: Results, kind: str) -> Finding:
    """Compare the sparsity level of the last phase with 1, at every size."""

    def last(results: Results, case: Case) -> np.ndarray:
        return phase_values(results.all_trials(case), "sparsity")[1][:, -1]

    return _all_below(results, kind, last, ONE, "in the last phase, by sizes")


def ends_constant(results: Results, kind: str) -> Finding:
    """Compare the growth of regret in the second half of the time with 1 %, at every size."""

    def growth(results: Results, case: Case) -> np.ndarray:
        run = results.all_trials(case)
        half = int(np.searchsorted(run.times, run.horizon // 2))
        return run.regret[:, -1] / run.regret[:, half] - 1.0

    words = "relative growth in the second half, by sizes"
    return _all_below(results, kind, growth, CONSTANT, words)


def few_positive_weights(results: Results, kind: str) -> Finding:
    """Compare the positive weights of the first design beyond one per client with K d(d + 1)/2."""
    case = swept(kind, "a")[100]
    i = case.instance
    first = phase_values(results.all_trials(case), "sparsity")[1][:, 0]
    beyond = (first - 1.0) * i.clients
    limit = i.arms * i.dim * (i.dim + 1) // 2
    return Finding(f"{_mean(beyond)} beyond one per client, limit {limit}", below(beyond, limit))


def sparsity_goes_with_communication(results: Results, kind: str) -> Finding:
    """Compare the rank correlation over the sizes, taken in each trial, with its limit."""
    from scipy.stats import spearmanr

    cases = all_swept(kind)
    level, cost = (paired(results, reading, cases) for reading in (sparsity, communication))
    if np.any(np.ptp(level, axis=0) == 0.0) or np.any(np.ptp(cost, axis=0) == 0.0):
        return Finding(f"no rank correlation: equal values at all {len(cases)} sizes", NO_EVIDENCE)
    ranks = np.array([spearmanr(a, b).statistic for a, b in zip(level.T, cost.T, strict=True)])
    words = f"rank correlation {interval(ranks.mean(), *limits(ranks))} over {len(cases)} sizes"
    return Finding(words, exceeds(ranks, ASSOCIATED))


def not_slower(results: Results, kind: str) -> Finding:
    """Compare the iterations with the most clients with those with the fewest: at most slightly more."""
    cases = swept(kind, "a")
    few, many = paired(results, iterations, [cases[min(cases)], cases[max(cases)]])
    words = f"{_mean(few)} with M = {min(cases)}, {_mean(many)} with M = {max(cases)}"
    return Finding(words, below(many - SLIGHTLY * few))


def all_swept(kind: str) -> list[Case]:
    """Return the cases of Figures 2 to 4, each once."""
    return list(dict.fromkeys(case for panel in SIZES for case in swept(kind, panel).values()))


def _selections(results: Results, kind: str, reading: Reading = regret) -> np.ndarray:
    """Return the readings of the three selections of phase lengths, (3, trials)."""
    return paired(results, reading, [phase_length_case(kind, label) for label in PHASE_LENGTHS])


def _all_below(results: Results, kind: str, reading: Reading, limit: float, words: str) -> Finding:
    """Compare the readings at all sizes of Figures 2 to 4 with one limit."""
    values = paired(results, reading, all_swept(kind))
    means = values.mean(axis=1)
    evidence = all_of([below(row, limit) for row in values])
    return Finding(f"{plain(means.min())} to {plain(means.max())} {words}", evidence)


def _tested(finding: Finding) -> Evidence:
    assert isinstance(finding.evidence, Evidence)
    return finding.evidence


def _mean(values: np.ndarray) -> str:
    """Return a mean with the digits that the standard deviation over trials supports."""
    mean, std = moments(values)
    return rounded(float(mean), float(std))


def _times(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return the quotient of two mean regrets in words."""
    quotient = interval(ours.mean() / theirs.mean(), *quotient_limits(ours, theirs))
    return f"{quotient} times the regret in {_trials(ours)}"


def _trials(values: np.ndarray) -> str:
    return f"{len(values)} trial" + "s" * (len(values) != 1)
