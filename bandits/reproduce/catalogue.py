"""Every figure and table of the paper's experiments, by name, with the paper's numbers; and some beyond it.

Synthetic experiments are shown on two instances, since the paper's text and the authors' code differ: the
features and parameters of the one, and of the other. Figures 2, 3 and 4 read the same simulations.
"""

from __future__ import annotations

import numpy as np

from bandits import theory
from bandits.policies.collaborative import CollaborativeFedPE
from bandits.policies.delb import DELB
from bandits.policies.dislinucb import DisLinUCB
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.feducb import FedUCB
from bandits.policies.lints import LinTS
from bandits.policies.linucb import LinUCB
from bandits.policies.local_ucb import LocalUCB
from bandits.policies.longest import LongestFeature
from bandits.reproduce.description import (
    AUTHORS,
    IDENTICAL,
    ITERATIONS,
    LETTERS,
    LOWER_FIRST,
    LOWER_SECOND,
    RATED,
    REGRET,
    SHARED,
    SPARSITY,
    TEXT,
    Case,
    Experiment,
    Figure,
    Instance,
    Row,
    Scaling,
    Table,
    comparison,
    sweep,
)
from bandits.theory import schedules
from bandits.trials.trial import Policy

LONG, MIDDLE, SHORT = 2**17, 2**16, 2**15
"""Horizons of Section 5, of the appendix, and of Table 1."""

SYNTHETIC = (AUTHORS, TEXT)
DISJOINT_KINDS = (*SYNTHETIC, *RATED)
"""Kinds of instances with a parameter vector per arm, for which the paper has a lower bound."""

FEDPE, ENHANCED, LOCAL = "Fed-PE", "Enhanced Fed-PE", "Local UCB"
COLLABORATIVE, COLLABORATIVE_ENHANCED = "Collaborative, Fed-PE intervals", "Collaborative, Enhanced intervals"
BENCHMARKS = (COLLABORATIVE, COLLABORATIVE_ENHANCED)
"""Two readings of the paper's benchmark: "a modified Fed-PE" in the text, and the authors' published code."""
PAPER = (FEDPE, ENHANCED, *BENCHMARKS, LOCAL)
LONGEST = "Longest feature, no learning"
"""Control of the tables: each client plays the arm whose feature vector is longest."""
UNIFORM, EXPONENTIAL, GREEDY = "uniform, f = 100", "exponential, f = 2^p", "greedy"
PHASE_LENGTHS = (UNIFORM, EXPONENTIAL, GREEDY)
BOLD, CAUTIOUS = "Enhanced Fed-PE, delta = 0.5", "Enhanced Fed-PE, delta = 0.01"
FEDPE_SHARED, ENHANCED_SHARED = "Fed-PE, shared", "Enhanced Fed-PE, shared"
FEDUCB_SHARED, LINUCB_SHARED, LINTS_SHARED = "FedUCB, shared", "LinUCB, shared", "Thompson sampling, shared"
FEDPE_SCALARS, FEDPE_SHARED_SCALARS = "Fed-PE, scalars", "Fed-PE, shared, scalars"

POLICIES: dict[str, Policy] = {
    FEDPE: FedPE(),
    ENHANCED: EnhancedFedPE(),
    COLLABORATIVE: CollaborativeFedPE(intervals="fedpe"),
    COLLABORATIVE_ENHANCED: CollaborativeFedPE(intervals="enhanced"),
    LONGEST: LongestFeature(),
    LOCAL: LocalUCB(),
    UNIFORM: EnhancedFedPE(schedule=schedules.Uniform(100)),
    EXPONENTIAL: EnhancedFedPE(),
    GREEDY: EnhancedFedPE(schedule=schedules.Greedy()),
    BOLD: EnhancedFedPE(delta=0.5),
    CAUTIOUS: EnhancedFedPE(delta=0.01),
    FEDPE_SHARED: FedPE(parameters="shared"),
    ENHANCED_SHARED: EnhancedFedPE(parameters="shared"),
    FEDPE_SCALARS: FedPE(protocol="scalars"),
    FEDPE_SHARED_SCALARS: FedPE(parameters="shared", protocol="scalars"),
}
"""Policies by the label that figures, tables and claims use; those of Table 1 are added below."""

LINEAR, CONTEXTUAL, DISJOINT = "linear", "linear contextual, shared", "linear contextual, disjoint"
MODELS = {LINEAR: Instance(IDENTICAL), CONTEXTUAL: Instance(SHARED), DISJOINT: Instance(TEXT)}
"""The models of Table 1, and an instance of each."""

ONE_THETA = ("√(dMT log(KMT))", "M(d² + dK) log T")
MANY_THETAS = ("√(dKMT log(KMT))", "Md²K log T")
CENTRAL = ("√(dKMT log³(KMT))", "Md²KT")
CENTRAL_SHARED = ("d√(MT) log(MT)", "MT")
ALONE = ("M√(KT log T)", "0")
UNSTATED = ("not stated", "not stated")
CONTROL = ("MT", "0")
"""Without learning, regret is linear in T unless the arm played is the best one."""

ALGORITHMS: tuple[tuple[str, str, Policy, tuple[str, str]], ...] = (
    (LINEAR, "Fed-PE, identical clients", FedPE(parameters="shared"), ONE_THETA),
    (LINEAR, "DELB", DELB(), ("d√(MT log T)", "(Md + d log log d) log T")),
    (LINEAR, "Local UCB, identical clients", LocalUCB(), ALONE),
    (LINEAR, f"{LONGEST}, identical clients", LongestFeature(), CONTROL),
    (CONTEXTUAL, FEDPE_SHARED, POLICIES[FEDPE_SHARED], ONE_THETA),
    (CONTEXTUAL, ENHANCED_SHARED, POLICIES[ENHANCED_SHARED], ONE_THETA),
    (CONTEXTUAL, FEDUCB_SHARED, FedUCB(parameters="shared"), ("√(dMT) log T", "Md² log T")),
    (CONTEXTUAL, "DisLinUCB, shared", DisLinUCB(parameters="shared"), ("d√(MT) log² T", "M^1.5 d³")),
    (CONTEXTUAL, LINUCB_SHARED, LinUCB(parameters="shared"), CENTRAL_SHARED),
    (CONTEXTUAL, LINTS_SHARED, LinTS(parameters="shared"), CENTRAL_SHARED),
    (CONTEXTUAL, "Local UCB, shared", LocalUCB(), ALONE),
    (CONTEXTUAL, f"{LONGEST}, shared", LongestFeature(), CONTROL),
    (DISJOINT, FEDPE, POLICIES[FEDPE], MANY_THETAS),
    (DISJOINT, ENHANCED, POLICIES[ENHANCED], MANY_THETAS),
    *((DISJOINT, label, POLICIES[label], UNSTATED) for label in BENCHMARKS),
    (DISJOINT, "LinUCB", LinUCB(), CENTRAL),
    (DISJOINT, "Thompson sampling", LinTS(), CENTRAL),
    (DISJOINT, "DisLinUCB", DisLinUCB(), UNSTATED),
    (DISJOINT, "FedUCB", FedUCB(), UNSTATED),
    (DISJOINT, LOCAL, POLICIES[LOCAL], ALONE),
    (DISJOINT, LONGEST, POLICIES[LONGEST], CONTROL),
)
"""Table 1, a line per algorithm: model, label, policy, and the orders of total regret and communication."""

POLICIES |= {label: policy for _, label, policy, _ in ALGORITHMS}

SIZES = {"a": ("clients", (50, 100, 200)), "b": ("arms", (5, 10, 20)), "c": ("dim", (3, 4, 5))}
"""Sizes that vary in the panels of Figures 2, 3 and 4; M = 100, K = 10 and d = 3 otherwise."""

QUANTITIES = {
    "fig2": ("regret of Enhanced Fed-PE", REGRET),
    "fig3": ("sparsity level of Enhanced Fed-PE", SPARSITY),
    "fig4": ("iterations of the design of Enhanced Fed-PE", ITERATIONS),
}

ORDERS = {
    UNIFORM: ("√(T log T)", "T/K"),
    EXPONENTIAL: ("√(T log T)", "log T"),
    GREEDY: ("√(T log T) log log T", "log log T"),
    LONGEST: ("T", "0"),
}


SEEDS = 50
"""Trials behind the statements about which algorithm is better."""

CLIENTS = (100, 1_000, 10_000, 100_000)
DIMS = (3, 6, 12, 24)
ARMS = (5, 10, 20, 40)
"""Sizes over which orders of growth in d and K are fitted, doubled from the smallest of the paper."""
HORIZONS = tuple(2**n for n in range(10, 18))
PROTOCOLS = (
    (DISJOINT, FEDPE, MANY_THETAS),
    (DISJOINT, FEDPE_SCALARS, (MANY_THETAS[0], "MK log T")),
    (CONTEXTUAL, FEDPE_SHARED, ONE_THETA),
    (CONTEXTUAL, FEDPE_SHARED_SCALARS, (ONE_THETA[0], "MK log T")),
)
"""The paper's messages and the scalars of its remark, with the orders that the paper states."""


def main_case(kind: str, policy: str, trials: int = 10) -> Case:
    """Return a curve of Figure 1(a), or of 1(c) for MovieLens."""
    return Case(Instance(kind, arms=30 if kind in RATED else 10), policy, LONG, trials)


def more_clients(kind: str) -> dict[int, Case]:
    """Return the cases of Figure 1(b) on one kind of instance, by M."""
    return _by_size(Instance(kind, dim=4), *SIZES["a"], LONG)


def many_clients(kind: str) -> dict[int, Case]:
    """Return the cases of Enhanced Fed-PE with up to 100,000 clients, by M."""
    return {m: Case(Instance(kind, clients=m), ENHANCED, MIDDLE) for m in CLIENTS}


def lower_bound_pair(policy: str) -> dict[str, dict[int, Case]]:
    """Return a policy on the two instances of the lower bound, by horizon."""
    return {
        kind: {t: Case(Instance(kind, clients=30), policy, t) for t in HORIZONS}
        for kind in (LOWER_FIRST, LOWER_SECOND)
    }


def by_dim(kind: str, policy: str) -> dict[int, Case]:
    """Return the cases that compare the two protocols, by d."""
    return {d: Case(Instance(kind, dim=d), policy, MIDDLE) for d in DIMS}


def by_arms(policy: str) -> dict[int, Case]:
    """Return the cases of a policy on shared parameters, by K."""
    return {k: Case(Instance(SHARED, arms=k), policy, MIDDLE) for k in ARMS}


def by_horizon(policy: str) -> dict[int, Case]:
    """Return the cases of a policy on shared parameters, by T."""
    return {t: Case(Instance(SHARED), policy, t) for t in (2**11, 2**13, SHORT, LONG)}


def swept(kind: str, panel: str) -> dict[int, Case]:
    """Return the cases of a panel of Figures 2 to 4 on one kind of instance, by the size that varies."""
    return _by_size(Instance(kind), *SIZES[panel], MIDDLE)


def _by_size(base: Instance, over: str, values: tuple[int, ...], horizon: int) -> dict[int, Case]:
    curves = sweep(base, over, values, ENHANCED, horizon).curves
    return dict(zip(values, curves.values(), strict=True))


def of_the_paper() -> dict[str, Experiment]:
    """Return the experiments of the paper, in its order."""
    out: dict[str, Experiment] = {
        "fig1a": Figure(
            "Figure 1(a): regret, synthetic data",
            REGRET,
            tuple(comparison(Instance(kind), PAPER, LONG) for kind in SYNTHETIC),
            bounds=True,
        ),
        "fig1b": Figure(
            "Figure 1(b): regret of Enhanced Fed-PE with varying M",
            REGRET,
            tuple(sweep(Instance(kind, dim=4), *SIZES["a"], ENHANCED, LONG) for kind in SYNTHETIC),
        ),
        "fig1c": Figure(
            "Figure 1(c): regret, MovieLens",
            REGRET,
            tuple(comparison(Instance(kind, arms=30), PAPER, LONG) for kind in RATED),
            bounds=True,
        ),
    }
    for name, (title, quantity) in QUANTITIES.items():
        for letter, (over, values) in SIZES.items():
            out[name + letter] = Figure(
                f"Figure {name[3:]}({letter}): {title} with varying {LETTERS[over]}",
                quantity,
                tuple(sweep(Instance(kind), over, values, ENHANCED, MIDDLE) for kind in SYNTHETIC),
            )
    out["fig5"] = Figure(
        "Figure 5: regret of Enhanced Fed-PE with three selections of the phase lengths",
        REGRET,
        tuple(comparison(Instance(kind), PHASE_LENGTHS, MIDDLE) for kind in SYNTHETIC),
    )
    out["table1"] = Table(
        "Table 1: regret and communication of all algorithms",
        tuple(
            Row(model, label, Case(MODELS[model], label, SHORT), *orders)
            for model, label, _, orders in ALGORITHMS
        ),
    )
    out["table2"] = Table(
        "Table 2: three selections of the phase lengths, and a control",
        tuple(
            Row(kind, label, Case(Instance(kind), label, MIDDLE), *ORDERS[label])
            for kind in SYNTHETIC
            for label in (*PHASE_LENGTHS, LONGEST)
        ),
    )
    return out


def beyond_the_paper() -> dict[str, Experiment]:
    """Return further experiments: shared parameters, protocols, orders, many clients, the lower bound."""
    shared = (FEDPE, FEDPE_SHARED, ENHANCED_SHARED, FEDUCB_SHARED, LINUCB_SHARED, LINTS_SHARED, LOCAL)
    return {
        "shared": Figure(
            "Shared parameters: algorithms that use this structure, and algorithms that do not",
            REGRET,
            (comparison(Instance(SHARED), shared, MIDDLE),),
            logarithmic=True,
        ),
        "protocols": Table(
            "Fed-PE with the paper's messages, and with scalars",
            tuple(
                Row(model, label, Case(MODELS[model], label, MIDDLE), *orders)
                for model, label, orders in PROTOCOLS
            ),
        ),
        "ordering": ordering("synthetic data", SYNTHETIC),
        "ordering-movielens": ordering("MovieLens", RATED),
        "clients": Scaling(
            "Enhanced Fed-PE with up to 100,000 clients, K = 10, d = 3",
            "clients",
            lambda case: case.instance.clients,
            {kind: tuple(many_clients(kind).values()) for kind in SYNTHETIC},
            "order in theory, 1/√M",
            lambda case: 1.0 / np.sqrt(case.instance.clients),
            anchored=True,
        ),
        "lowerbound": Scaling(
            "The two instances behind the lower bound, M = 30, K = 10, d = 3",
            "horizon",
            lambda case: case.horizon,
            {
                f"{label}, {kind.split(', ')[1]}": tuple(cases.values())
                for label in (ENHANCED, LOCAL)
                for kind, cases in lower_bound_pair(label).items()
            },
            "lower bound for the larger of the two",
            minimax,
        ),
    }


def minimax(case: Case) -> float:
    """Return the lower bound on the regret per client."""
    i = case.instance
    return theory.lower_bound(i.clients, i.arms, i.dim, case.horizon) / i.clients


def ordering(data: str, kinds: tuple[str, ...]) -> Table:
    """Return the paper's algorithms and the control with many seeds."""
    orders = dict.fromkeys((FEDPE, ENHANCED), MANY_THETAS) | dict.fromkeys(BENCHMARKS, UNSTATED)
    orders |= {LOCAL: ALONE, LONGEST: CONTROL}
    return Table(
        f"Regret and communication of the paper's algorithms and of a control, {data}",
        tuple(
            Row(kind, label, main_case(kind, label, SEEDS), *orders[label])
            for kind in kinds
            for label in orders
        ),
    )


EXPERIMENTS = of_the_paper() | beyond_the_paper()
"""Figures and tables by name."""
