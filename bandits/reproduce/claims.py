"""What the paper's experiments say, sentence by sentence, each with the rule that decides it.

Statements are paraphrased. ``check`` is run on every kind of instance in ``kinds`` once all experiments in
``needs`` are there; a statement that fails is a result like one that holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bandits.reproduce import checks, guarantees
from bandits.reproduce.catalogue import (
    BOLD,
    CAUTIOUS,
    COLLABORATIVE,
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
    SEEDS,
    SYNTHETIC,
    UNIFORM,
    main_case,
    many_clients,
    more_clients,
    swept,
)
from bandits.reproduce.checks import (
    MUCH,
    SLIGHTLY,
    Check,
    Reading,
    phase_length_case,
    seeds_case,
    table1_case,
)
from bandits.reproduce.description import LOWER_SECOND, RATED, SHARED, Case
from bandits.reproduce.running import Results


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that can be true or false."""

    claim: str
    source: str
    needs: tuple[str, ...]
    kinds: tuple[str, ...]
    rule: str
    check: Check
    extra: tuple[str, ...] = ()
    """Policies to play on the main instance that no figure shows."""

    def cases(self) -> list[Case]:
        """What must have been played."""
        shown = [case for name in self.needs for case in EXPERIMENTS[name].cases]
        return shown + [main_case(kind, label) for kind in self.kinds for label in self.extra]


@dataclass(frozen=True)
class Verdict:
    """A claim on one kind of instance, decided."""

    claim: str
    source: str
    rule: str
    measured: str
    holds: bool


def relevant(names: Iterable[str]) -> list[Claim]:
    """The claims that can be decided once these experiments have been played."""
    have = set(names)
    return [claim for claim in CLAIMS if have.issuperset(claim.needs)]


def decide(claims: Iterable[Claim], results: Results) -> list[Verdict]:
    """Check every claim on its kinds of instances."""
    out = []
    for claim in claims:
        for kind in claim.kinds:
            measured, holds = claim.check(results, kind)
            out.append(Verdict(claim.claim, f"{claim.source}; {kind}", claim.rule, measured, holds))
    return out


BETTER = "lower regret at the horizon with 95 % confidence, trial by trial"
OVERTAKES = "lower mean regret from some time up to the horizon"
PROPORTIONAL = "slope between {} and {} on logarithmic axes, mean over trials"


def _setup() -> list[Claim]:
    """Statements about the instances themselves."""
    section = "Section 5"
    return [
        Claim("With f = 2^p the horizon 2^17 takes 16 phases", section, ("fig1a",), SYNTHETIC[:1],
              "count", checks.phases(FEDPE, LONG, 10, 16)),
        Claim("Synthetic parameters are the canonical basis", section, ("fig1a",), SYNTHETIC,
              "each basis vector belongs to some arm, and no other vector", checks.canonical_parameters),
        Claim("Synthetic gaps lie in [0.2, 0.4]", section, ("fig1a",), SYNTHETIC,
              "all of them", checks.range_of(checks.gaps, 0.2, 0.4)),
        Claim("Norms of synthetic features lie in [0.5, 1]", section, ("fig1a",), SYNTHETIC,
              "all of them", checks.range_of(checks.norms, 0.5, 1.0)),
        Claim("The MovieLens ratings are a matrix of 943 by 1682", section, ("fig1c",), RATED,
              "count", checks.rating_matrix),
        Claim("Squared norms of MovieLens features lie in [0.4, 0.8]", section, ("fig1c",), RATED,
              "all of them", checks.range_of(checks.squared_norms, 0.4, 0.8)),
        Claim("MovieLens gaps lie in [0.01, 0.8]", section, ("fig1c",), RATED,
              "all of them", checks.range_of(checks.gaps, 0.01, 0.8)),
    ]  # fmt: skip


def _comparisons() -> list[Claim]:
    """Figures 1(a) and 1(c), which are said to look alike."""
    out = []
    for name, kinds in (("fig1a", SYNTHETIC), ("fig1c", RATED)):
        source, needs = f"Section 5, Figure 1({name[-1]})", (name,)
        out += [
            Claim("Enhanced Fed-PE outperforms Fed-PE", source, needs, kinds,
                  BETTER, checks.better(ENHANCED, FEDPE)),
            Claim("Enhanced Fed-PE is worse than Collaborative", source, needs, kinds,
                  BETTER.replace("lower", "higher"), checks.better(COLLABORATIVE, ENHANCED)),
            Claim("Enhanced Fed-PE is only slightly worse than Collaborative", source, needs, kinds,
                  f"at most {SLIGHTLY} times the mean regret at the horizon",
                  checks.ratio(ENHANCED, COLLABORATIVE, 0.0, SLIGHTLY)),
            Claim("Keeping features private has no significant impact", source, needs, kinds,
                  "Enhanced Fed-PE loses at most a quarter of what Collaborative wins over local UCB",
                  checks.cost_of_privacy),
            *(Claim(f"{label} outperforms local UCB when T is large enough", source, needs, kinds,
                    OVERTAKES, checks.overtakes(label, LOCAL)) for label in (FEDPE, ENHANCED, COLLABORATIVE)),
        ]  # fmt: skip
    out += [
        Claim("Another delta than 0.1 may lower the regret further", "Section 5", ("fig1a",), SYNTHETIC,
              f"Enhanced Fed-PE with delta 0.5 or 0.01: {BETTER}",
              checks.other_delta((BOLD, CAUTIOUS)), extra=(BOLD, CAUTIOUS)),
        *(Claim(f"Figure 1(c) resembles Figure 1(a) on the {kind}", "Section 5, Figure 1(c)",
                ("fig1a", "fig1c"), RATED, "the four algorithms have the same order by regret at the horizon",
                checks.same_ranking(kind)) for kind in SYNTHETIC),
    ]  # fmt: skip
    return out


def _sizes() -> list[Claim]:
    """Figures 1(b), 2, 3 and 4: how regret, sparsity, communication and iterations depend on M, K and d."""
    out = [
        Claim("Regret per client falls as M grows", "Section 5, Figure 1(b)", ("fig1b",), SYNTHETIC,
              "mean regret at the horizon falls from each M to the next",
              checks.monotone(more_clients, checks.regret, -1)),
    ]  # fmt: skip
    readings: dict[str, tuple[str, Reading]] = {
        "Regret per client": ("fig2", checks.regret),
        "Sparsity level": ("fig3", checks.sparsity),
        "Communication per client": ("fig3", checks.communication),
        "Number of iterations": ("fig4", checks.iterations),
    }
    for what, (name, reading) in readings.items():
        for panel, letter, sign in (("a", "M", -1), ("b", "K", 1), ("c", "d", 1)):
            source = f"Appendix, Figure {name[3:]}({panel})"
            verb, inverse = ("grows with", "") if sign > 0 else ("falls with", "inversely ")
            low, high = checks.SLOPES if sign > 0 else (-checks.SLOPES[1], -checks.SLOPES[0])

            def cases(kind: str, panel: str = panel) -> dict[int, Case]:
                return swept(kind, panel)

            out += [
                Claim(f"{what} {verb} {letter}", source, (name + panel,), SYNTHETIC,
                      "means in this order at the three sizes", checks.monotone(cases, reading, sign)),
                Claim(f"{what} is {inverse}proportional to {letter}", source, (name + panel,), SYNTHETIC,
                      PROPORTIONAL.format(low, high), checks.proportional(panel, reading, sign)),
            ]  # fmt: skip
    return out


def _designs() -> list[Claim]:
    """What is said about sparsity and iterations beyond their dependence on the sizes."""
    source, needs = "Appendix, Figure 3", ("fig3a", "fig3b", "fig3c")
    return [
        Claim("The sparsity level is at least 1", source, needs, SYNTHETIC,
              "in every phase of every trial", checks.never_below_one),
        Claim("Clients explore approximately 2 arms on average", source, needs, SYNTHETIC,
              "between 1.5 and 2.5, mean over phases, trials and sizes", checks.sparsity_between(1.5, 2.5)),
        Claim("In the end there are only M positive weights", source, needs, SYNTHETIC,
              "sparsity level of the last phase at most 1.01 at all sizes", checks.ends_at_one),
        Claim("In the end regret is constant", source, needs, SYNTHETIC,
              "at most 1 % more regret in the second half of the time, at all sizes", checks.ends_constant),
        Claim("A smaller sparsity level goes with less communication", source, needs, SYNTHETIC,
              "rank correlation at least 0.7 over the sizes", checks.sparsity_goes_with_communication),
        Claim("Designs with a support as small as the classical d(d + 1)/2 are found", "Section 6",
              ("fig3a",), SYNTHETIC, "first design: at most K d(d + 1)/2 beyond one per client",
              checks.few_positive_weights),
        Claim("More clients do not make the design less efficient", "Appendix, Figure 4", ("fig4a",),
              SYNTHETIC, f"at most {SLIGHTLY} times the iterations at the largest M", checks.not_slower),
    ]  # fmt: skip


def _phase_lengths() -> list[Claim]:
    """Figure 5."""
    source, needs, where = "Appendix, Figure 5", ("fig5",), phase_length_case
    counts = ((GREEDY, 3), (EXPONENTIAL, 15), (UNIFORM, 655))
    return [
        *(Claim(f"The selection {label} has {count} phases", source, needs, SYNTHETIC[:1],
                "count", checks.phases(label, MIDDLE, 10, count)) for label, count in counts),
        *(Claim(f"Uniform phases have lower regret than {label}", source, needs, SYNTHETIC,
                BETTER, checks.better(UNIFORM, label, where)) for label in (EXPONENTIAL, GREEDY)),
        Claim("Exponential phases are only slightly worse than uniform ones", source, needs, SYNTHETIC,
              f"at most {SLIGHTLY} times the mean regret",
              checks.ratio(EXPONENTIAL, UNIFORM, 0.0, SLIGHTLY, where)),
        *(Claim(f"Greedy phases are much worse than {label}", source, needs, SYNTHETIC,
                f"at least {MUCH} times the mean regret",
                checks.ratio(GREEDY, label, MUCH, float("inf"), where)) for label in (UNIFORM, EXPONENTIAL)),
        Claim("Exponential phases trade regret for communication best", source, needs, SYNTHETIC,
              "smallest product of regret and scalars sent", checks.best_tradeoff),
        Claim("Communication falls from uniform to exponential to greedy phases", "Appendix, Table 2", needs,
              SYNTHETIC, "scalars sent per client in this order", checks.communication_falls),
    ]  # fmt: skip


def _theory() -> list[Claim]:
    """What theorems and remarks say that can be measured: bounds, protocols, shared parameters, orders."""
    remark = "Appendix, remark on the messages"
    shared = "Remark on shared parameters"
    bounds = [
        Claim(f"The regret of {label} stays below its bound", f"Theorem on {label}", (name,), kinds,
              "in every trial, at every recorded time", guarantees.below_the_bound(label))
        for name, kinds in (("fig1a", SYNTHETIC), ("fig1c", RATED))
        for label in (FEDPE, ENHANCED)
    ]  # fmt: skip
    orders = [
        Claim(f"{winner} outperforms {loser}", f"Section 5, with {SEEDS} seeds", (name,), kinds,
              BETTER, checks.better(winner, loser, seeds_case))
        for name, kinds in (("ordering", SYNTHETIC), ("ordering-movielens", RATED))
        for winner, loser in (
            (COLLABORATIVE, ENHANCED), (ENHANCED, FEDPE), (ENHANCED, LOCAL), (FEDPE, LOCAL)
        )
    ]  # fmt: skip
    messages = [
        Claim("Scalars instead of vectors lead to the same decisions", remark, ("protocols",),
              guarantees.MODELLED, "equal regret at all times in all trials", guarantees.same_decisions),
        Claim("Scalars cut the upload by a factor d", remark, ("protocols",), guarantees.MODELLED,
              "factor between 0.75 d and 1.25 d, lists of active arms included",
              guarantees.cheaper("uploaded", 1)),
        Claim("Scalars cut the download by a factor d^2", remark, ("protocols",), guarantees.MODELLED[:1],
              "factor between 0.75 d^2 and 1.25 d^2, numbers of pulls included",
              guarantees.cheaper("downloaded", 2)),
        Claim("Knowing that parameters are shared divides regret by the root of K", shared, ("shared",),
              (SHARED,), "factor between 0.75 and 1.25 times the root of K", guarantees.shared_regret),
        Claim("Knowing that parameters are shared leaves the upload as it is", shared, ("shared",), (SHARED,),
              "factor between 0.75 and 1.25", guarantees.shared_cost("uploaded", 0)),
        Claim("Knowing that parameters are shared divides the broadcast by K", shared, ("shared",), (SHARED,),
              "factor between 0.75 K and 1.25 K", guarantees.shared_cost("downloaded", 1)),
        Claim("FedUCB has a higher regret than Fed-PE where parameters are shared", "Related works, Table 1",
              ("table1",), (SHARED,), BETTER, checks.better(FEDPE_SHARED, FEDUCB_SHARED, table1_case)),
        Claim("On one of two instances regret is at least the lower bound", "Theorem on the lower bound",
              ("lowerbound",), (LOWER_SECOND,), "larger of the two mean regrets, at every horizon",
              guarantees.above_the_lower_bound),
        Claim("Regret per client falls with M up to 100,000 clients", "Theorem on Enhanced Fed-PE",
              ("clients",), SYNTHETIC, "mean regret at the horizon falls from each M to the next",
              checks.monotone(many_clients, checks.regret, -1)),
    ]  # fmt: skip
    return [*bounds, *messages, *orders]


CLAIMS = (*_setup(), *_comparisons(), *_sizes(), *_designs(), *_phase_lengths(), *_theory())
"""All claims: those about the experiments in the paper's order, then what goes beyond them."""
