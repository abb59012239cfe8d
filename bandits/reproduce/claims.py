"""Statements of the paper about its experiments, sentence by sentence, each with the rule that decides it.

Statements are paraphrased. ``check`` is run on every kind of instance in ``kinds`` once all experiments in
``needs`` are there. Each is of one sort: an empirical comparison or an order of growth, which are tested, or
a statement that construction decides. No comparison is part of two statements about the same instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bandits.reproduce import checks, growth, properties
from bandits.reproduce.catalogue import (
    BENCHMARKS,
    BOLD,
    CAUTIOUS,
    ENHANCED,
    EXPERIMENTS,
    EXPONENTIAL,
    FEDPE,
    FEDPE_SHARED,
    FEDUCB_SHARED,
    GREEDY,
    LOCAL,
    LONG,
    MIDDLE,
    SYNTHETIC,
    UNIFORM,
    by_arms,
    by_dim,
    by_horizon,
    main_case,
    many_clients,
    more_clients,
)
from bandits.reproduce.checks import ASSOCIATED, CONSTANT, MUCH, ONE, PRIVACY, SLIGHTLY, Check, Reading
from bandits.reproduce.decisions import LEVEL, UNTESTED, Decision, Evidence, Finding, holm
from bandits.reproduce.description import LOWER_SECOND, RATED, SHARED, Case
from bandits.reproduce.formatting import span
from bandits.reproduce.growth import AT_LEAST, AT_MOST, NEAR
from bandits.reproduce.running import Results

COMPARISON, ORDER, CONSTRUCTION = "empirical comparison", "order of growth", "true or false by construction"
SORTS = (COMPARISON, ORDER, CONSTRUCTION)
"""Sorts of statements. The first two are tested; the third is verified and confirms no experiment."""


def _none(_kind: str) -> list[Case]:
    return []


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that can be true or false."""

    claim: str
    source: str
    needs: tuple[str, ...]
    kinds: tuple[str, ...]
    rule: str
    check: Check
    sort: str = COMPARISON
    instead: tuple[str, ...] = ()
    """Experiments that have the same cases with more trials, and can replace ``needs``."""
    extra: Callable[[str], list[Case]] = _none
    """Cases on a kind of instance that no experiment shows."""
    any_horizon: bool = False
    """True if the statement is about every horizon, so that a shorter one than described decides it too."""

    def cases(self) -> list[Case]:
        """Return the cases that must have been played."""
        shown = [case for name in self.needs for case in EXPERIMENTS[name].cases]
        return shown + [case for kind in self.kinds for case in self.extra(kind)]

    def is_ready(self, names: set[str]) -> bool:
        """Return True if the experiments played are enough."""
        return names.issuperset(self.needs) or (bool(self.instead) and names.issuperset(self.instead))


@dataclass(frozen=True)
class Verdict:
    """A claim on one kind of instance: it holds, it does not, or it is not decided (None)."""

    claim: str
    source: str
    sort: str
    rule: str
    measured: str
    holds: bool | None
    p: float | None = None
    """Adjusted p-value, if the statement was tested."""


def relevant(names: Iterable[str]) -> list[Claim]:
    """Return the claims that these experiments are about."""
    have = set(names)
    return [claim for claim in CLAIMS if claim.is_ready(have)]


def decide(claims: Iterable[Claim], results: Results) -> list[Verdict]:
    """Check every claim on its kinds of instances; the tests are corrected for their number together.

    A claim about the horizon of the paper is not tested on a shorter one.
    """
    pairs = [(claim, kind) for claim in claims for kind in claim.kinds]
    found: dict[int, Finding] = {}
    for n, (claim, kind) in enumerate(pairs):
        if claim.any_horizon or not any(map(results.is_cut, claim.cases())):
            found[n] = claim.check(results, kind)
    tests = {n: evidence for n, (_, evidence) in found.items() if isinstance(evidence, Evidence)}
    decisions = dict(zip(tests, holm(list(tests.values())), strict=True))
    out = []
    for n, (claim, kind) in enumerate(pairs):
        decision = decisions.get(n, UNTESTED)
        if n in decisions:
            measured = f"{found[n][0]}; {_adjusted(decision)}"
        elif n in found:
            measured, holds = found[n]
            assert not isinstance(holds, Evidence)
            decision = Decision(holds, None)
        else:
            measured = _too_short(claim, results)
        source = f"{claim.source}; {kind}"
        out.append(Verdict(claim.claim, source, claim.sort, claim.rule, measured, *decision))
    return out


def totals(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a line per sort of statement: how many hold, do not hold, and are not decided."""
    counts = Counter((verdict.sort, verdict.holds) for verdict in verdicts)
    return [
        f"{sort}: {counts[sort, True]} hold, {counts[sort, False]} do not, {counts[sort, None]} not decided"
        for sort in SORTS
        if any(counts[sort, holds] for holds in (True, False, None))
    ]


def method(verdicts: Iterable[Verdict]) -> str:
    """Return how the statements were decided, with the number of tests."""
    found = list(verdicts)
    tested = sum(verdict.p is not None for verdict in found)
    empirical = sum(verdict.sort != CONSTRUCTION for verdict in found)
    return (
        "A statement is counted once for every instance that it is checked on. "
        f"{tested} of {empirical} comparisons and orders of growth were played to the horizon that they are "
        "about. These are tested by Student's t on one number per trial, for the statement and for its "
        "opposite, and Holm's method corrects for all of these tests: the probability of any false verdict "
        f"is at most {LEVEL:.0%} for normally distributed numbers. A statement is not decided if neither "
        "test rejects or if the horizon is too short. Statements that construction decides (properties of "
        "instances and schedules, identities, theorems) are verified; they confirm no experiment."
    )


def _adjusted(decision: Decision) -> str:
    assert decision.p is not None
    return "adjusted p below 0.0001" if decision.p < 1e-4 else f"adjusted p {decision.p:.2g}"


def _too_short(claim: Claim, results: Results) -> str:
    cut = [case for case in claim.cases() if results.is_cut(case)]
    played = span(results.effort.applied(case).horizon for case in cut)
    return f"played to T = {played}; the statement is about T = {span(case.horizon for case in cut)}"


BETTER = "lower regret at the horizon"


def _setup() -> list[Claim]:
    """List the statements about the instances themselves."""

    def fact(claim: str, name: str, kinds: tuple[str, ...], rule: str, check: Check) -> Claim:
        return Claim(claim, "Section 5", (name,), kinds, rule, check, CONSTRUCTION, any_horizon=True)

    p = properties
    return [
        fact("With f = 2^p the horizon 2^17 takes 16 phases", "fig1a", SYNTHETIC[:1],
             "count", p.phases(FEDPE, LONG, 10, 16)),
        fact("Synthetic parameters are the canonical basis", "fig1a", SYNTHETIC,
             "each basis vector belongs to some arm, and no other vector", p.canonical_parameters),
        fact("Synthetic gaps lie in [0.2, 0.4]", "fig1a", SYNTHETIC,
             "all of them", p.range_of(p.gaps, 0.2, 0.4)),
        fact("Norms of synthetic features lie in [0.5, 1]", "fig1a", SYNTHETIC,
             "all of them", p.range_of(p.norms, 0.5, 1.0)),
        fact("The MovieLens ratings are a matrix of 943 by 1682", "fig1c", RATED[:1],
             "count", p.rating_matrix),
        fact("Squared norms of MovieLens features lie in [0.4, 0.8]", "fig1c", RATED,
             "all of them", p.range_of(p.squared_norms, 0.4, 0.8)),
        fact("MovieLens gaps lie in [0.01, 0.8]", "fig1c", RATED,
             "all of them", p.range_of(p.gaps, 0.01, 0.8)),
    ]  # fmt: skip


def _comparisons() -> list[Claim]:
    """List the statements about Figure 1(a), which Figure 1(c) is said to resemble."""
    out = []
    for name, more, kinds in (
        ("fig1a", "ordering", SYNTHETIC), ("fig1c", "ordering-movielens", RATED)
    ):  # fmt: skip
        source, needs, instead = f"Section 5, Figure 1({name[-1]})", (name,), (more,)
        out += [
            Claim("Enhanced Fed-PE outperforms Fed-PE", source, needs, kinds,
                  BETTER, checks.better(ENHANCED, FEDPE), instead=instead),
            *(Claim(f"Enhanced Fed-PE is slightly worse than {label}", source, needs, kinds,
                    f"more than 1 and at most {SLIGHTLY} times the regret at the horizon",
                    checks.ratio(ENHANCED, label, 1.0, SLIGHTLY), instead=instead) for label in BENCHMARKS),
            *(Claim(f"Keeping features private has no significant impact, compared with {label}", source,
                    needs, kinds,
                    f"{label} has a lower regret than local UCB, and Enhanced Fed-PE loses at most "
                    f"{PRIVACY} of that difference",
                    checks.cost_of_privacy(label), instead=instead) for label in BENCHMARKS),
            *(Claim(f"{label} outperforms local UCB when T is large enough", source, needs, kinds,
                    BETTER, checks.overtakes(label, LOCAL), instead=instead)
              for label in (FEDPE, ENHANCED, *BENCHMARKS)),
        ]  # fmt: skip
    out.append(
        Claim("Another delta than 0.1 may lower the regret further", "Section 5", ("fig1a",), SYNTHETIC,
              f"Enhanced Fed-PE with delta 0.5 or 0.01: {BETTER}",
              checks.other_delta((BOLD, CAUTIOUS)),
              extra=lambda kind: [main_case(kind, label) for label in (BOLD, CAUTIOUS)])
    )  # fmt: skip
    return out


def _sizes() -> list[Claim]:
    """List the statements of Figures 1(b), 2, 3 and 4 about dependence on M, K and d."""
    out = [
        Claim("Regret per client falls as M grows", "Section 5, Figure 1(b)", ("fig1b",), SYNTHETIC,
              "lower regret at the horizon at each M than at the one before",
              checks.falls(more_clients, checks.regret)),
    ]  # fmt: skip
    readings: dict[str, tuple[str, Reading]] = {
        "Regret per client": ("fig2", checks.regret),
        "Sparsity level": ("fig3", checks.sparsity),
        "Communication per client (upload)": ("fig3", checks.upload),
        "Number of iterations": ("fig4", checks.iterations),
    }
    for quantity, (name, reading) in readings.items():
        for panel, letter, sign in (("a", "M", -1), ("b", "K", 1), ("c", "d", 1)):
            inverse = "" if sign > 0 else "inversely "
            out.append(
                Claim(f"{quantity} is {inverse}proportional to {letter}",
                      f"Appendix, Figure {name[3:]}({panel})", (name + panel,), SYNTHETIC,
                      growth.rule(sign, NEAR, letter),
                      growth.order(growth.over_sizes(panel, reading), sign), ORDER)
            )  # fmt: skip
    return out


def _designs() -> list[Claim]:
    """List the statements about sparsity and iterations beyond their dependence on the sizes."""
    source, needs = "Appendix, Figure 3", ("fig3a", "fig3b", "fig3c")
    return [
        Claim("The sparsity level is at least 1", source, needs, SYNTHETIC,
              "in every phase of every trial", properties.never_below_one, CONSTRUCTION, any_horizon=True),
        Claim("Clients explore approximately 2 arms on average", source, needs, SYNTHETIC,
              "between 1.5 and 2.5, mean over phases and sizes", checks.sparsity_between(1.5, 2.5)),
        Claim("In the end there are only M positive weights", source, needs, SYNTHETIC,
              f"sparsity level of the last phase below {ONE} at all sizes", checks.ends_at_one),
        Claim("In the end regret is constant", source, needs, SYNTHETIC,
              f"less than {CONSTANT:.0%} more regret in the second half of the time, at all sizes",
              checks.ends_constant),
        Claim("A smaller sparsity level goes with less communication", source, needs, SYNTHETIC,
              f"rank correlation over the sizes above {ASSOCIATED}", checks.sparsity_goes_with_communication),
        Claim("Designs with a support as small as the classical d(d + 1)/2 are found", "Section 6",
              ("fig3a",), SYNTHETIC, "first design: fewer than K d(d + 1)/2 weights beyond one per client",
              checks.few_positive_weights),
        Claim("More clients do not make the design less efficient", "Appendix, Figure 4", ("fig4a",),
              SYNTHETIC, f"at most {SLIGHTLY} times the iterations at the largest M", checks.not_slower),
    ]  # fmt: skip


def _phase_lengths() -> list[Claim]:
    """List the statements about Figure 5 and Table 2."""
    source, needs = "Appendix, Figure 5", ("fig5",)
    counts = ((GREEDY, 3), (EXPONENTIAL, 15), (UNIFORM, 655))
    return [
        *(Claim(f"The selection {label} has {count} phases", source, needs, SYNTHETIC[:1], "count",
                properties.phases(label, MIDDLE, 10, count), CONSTRUCTION, any_horizon=True)
          for label, count in counts),
        Claim("Uniform phases have the lowest regret", source, needs, SYNTHETIC,
              "lower regret at the horizon than both other selections", checks.lowest),
        Claim("Exponential phases are only slightly worse than uniform ones", source, needs, SYNTHETIC,
              f"at most {SLIGHTLY} times the regret at the horizon", checks.slightly_worse),
        Claim("Greedy phases are much worse than the others", source, needs, SYNTHETIC,
              f"at least {MUCH:g} times the regret of each at the horizon", checks.much_worse),
        Claim("Exponential phases trade regret for communication best", source, needs, SYNTHETIC,
              "smallest product of regret and scalars sent", checks.best_tradeoff),
        Claim("Communication falls from uniform to exponential to greedy phases", "Appendix, Table 2", needs,
              SYNTHETIC, "scalars sent per client in this order", checks.communication_falls),
    ]  # fmt: skip


def _theory() -> list[Claim]:
    """List the statements of theorems and remarks that can be measured."""
    remark, shared = "Appendix, remark on the messages", "Remark on shared parameters"

    def messages(kind: str) -> list[Case]:
        return [case for label in growth.protocols(kind) for case in by_dim(kind, label).values()]

    def arms(_kind: str) -> list[Case]:
        return [case for label in (FEDPE, FEDPE_SHARED) for case in by_arms(label).values()]

    def horizons(_kind: str) -> list[Case]:
        return [case for label in (FEDUCB_SHARED, FEDPE_SHARED) for case in by_horizon(label).values()]

    def saving(claim: str, letter: str, exponent: float, reading: Reading, side: str = NEAR) -> Claim:
        return Claim(claim, shared, ("shared",), (SHARED,), growth.rule(exponent, side, letter),
                     growth.order(growth.sharing_saves(reading), exponent, side), ORDER,
                     extra=arms)  # fmt: skip

    return [
        *(Claim(f"The regret of {label} stays below its bound", f"Theorem on {label}", (name,), kinds,
                "in every trial, at every recorded time", properties.below_the_bound(label),
                CONSTRUCTION, any_horizon=True)
          for name, kinds in (("fig1a", SYNTHETIC), ("fig1c", RATED)) for label in (FEDPE, ENHANCED)),
        Claim("Scalars instead of vectors lead to the same decisions", remark, ("protocols",),
              properties.MODELLED, "equal regret at all times in all trials", properties.same_decisions,
              CONSTRUCTION, any_horizon=True),
        *(Claim(f"Scalars cut the {way} by a factor {factor}", remark, ("protocols",), kinds,
                f"number sent after the first phase, lists of arms and pulls included, over the same with "
                f"scalars: {growth.rule(power, NEAR, 'd')}",
                growth.order(growth.scalars_save(way + "ed"), power), ORDER, extra=messages)
          for way, factor, power, kinds in (
              ("upload", "d", 1, properties.MODELLED), ("download", "d^2", 2, properties.MODELLED[:1]))),
        saving("Knowing that parameters are shared divides regret by the root of K or more", "K", 0.5,
               checks.regret, AT_LEAST),
        saving("Knowing that parameters are shared leaves the upload as it is", "K", 0.0,
               checks.upload),
        Claim("Knowing that parameters are shared divides the broadcast by K", shared, ("shared",), (SHARED,),
              f"broadcast estimates without numbers of pulls: mean factor within {growth.TOLERANCE:.0%} of K",
              properties.broadcast_falls, CONSTRUCTION, extra=arms),
        Claim("The regret of FedUCB over that of Fed-PE with shared parameters grows as the root of log T "
              "or faster", "Related works, Table 1", ("table1",), (SHARED,),
              growth.rule(0.5, AT_LEAST, "log T"),
              growth.order(growth.feducb_over_fedpe, 0.5, AT_LEAST), ORDER, extra=horizons),
        Claim("On one of two instances regret is at least the lower bound", "Theorem on the lower bound",
              ("lowerbound",), (LOWER_SECOND,), "larger of the two mean regrets, at every horizon played",
              properties.above_the_lower_bound, CONSTRUCTION, any_horizon=True),
        Claim("Regret per client falls as 1/√M or faster up to 100,000 clients", "Theorem on Enhanced Fed-PE",
              ("clients",), SYNTHETIC, growth.rule(-0.5, AT_MOST, "M"),
              growth.order(growth.by_size(many_clients, checks.regret), -0.5, AT_MOST), ORDER),
    ]  # fmt: skip


CLAIMS = (*_setup(), *_comparisons(), *_sizes(), *_designs(), *_phase_lengths(), *_theory())
"""All claims: those about the experiments in the paper's order, then theorems and remarks."""
