"""Every figure and table of the paper's experiments, by name, with the paper's numbers.

Synthetic experiments are shown on two instances, since the paper's text and the authors' code differ: the
features and parameters of the one, and of the other. Fig. 2, 3 and 4 read the same simulations.
"""

from __future__ import annotations

from bandits import schedules
from bandits.policies.collaborative import CollaborativeFedPE
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.local_ucb import LocalUCB
from bandits.reproduce.description import (
    AUTHORS,
    IDENTICAL,
    ITERATIONS,
    MOVIELENS,
    REGRET,
    SHARED,
    SPARSITY,
    TEXT,
    Case,
    Experiment,
    Figure,
    Instance,
    Row,
    Table,
    comparison,
    sweep,
)
from bandits.trial import Policy

LONG, MIDDLE, SHORT = 2**17, 2**16, 2**15
"""Horizons of Section 5, of the appendix, and of Table 1."""

SYNTHETIC = (AUTHORS, TEXT)

FEDPE, ENHANCED, COLLABORATIVE, LOCAL = "Fed-PE", "Enhanced Fed-PE", "Collaborative", "Local UCB"
PAPER = (FEDPE, ENHANCED, COLLABORATIVE, LOCAL)
UNIFORM, EXPONENTIAL, GREEDY = "uniform, f = 100", "exponential, f = 2^p", "greedy"
PHASE_LENGTHS = (UNIFORM, EXPONENTIAL, GREEDY)
BOLD, CAUTIOUS = "Enhanced Fed-PE, delta = 0.5", "Enhanced Fed-PE, delta = 0.01"

POLICIES: dict[str, Policy] = {
    FEDPE: FedPE(),
    ENHANCED: EnhancedFedPE(),
    COLLABORATIVE: CollaborativeFedPE(),
    LOCAL: LocalUCB(),
    UNIFORM: EnhancedFedPE(schedule=schedules.Uniform(100)),
    EXPONENTIAL: EnhancedFedPE(),
    GREEDY: EnhancedFedPE(schedule=schedules.Greedy()),
    BOLD: EnhancedFedPE(delta=0.5),
    CAUTIOUS: EnhancedFedPE(delta=0.01),
}
"""Policies by the label that figures, tables and claims use; those of Table 1 are added below."""

LINEAR, CONTEXTUAL, DISJOINT = "linear", "linear contextual, shared", "linear contextual, disjoint"
MODELS = {LINEAR: Instance(IDENTICAL), CONTEXTUAL: Instance(SHARED), DISJOINT: Instance(TEXT)}
"""The models of Table 1, and an instance of each."""

ONE_THETA = ("√(dMT log(KMT))", "M(d² + dK) log T")
MANY_THETAS = ("√(dKMT log(KMT))", "Md²K log T")
ALONE = ("M√(KT log T)", "0")

ALGORITHMS: tuple[tuple[str, str, Policy, tuple[str, str]], ...] = (
    (LINEAR, "Fed-PE, identical clients", FedPE(parameters="shared"), ONE_THETA),
    (LINEAR, "Local UCB, identical clients", LocalUCB(), ALONE),
    (CONTEXTUAL, "Fed-PE, shared", FedPE(parameters="shared"), ONE_THETA),
    (CONTEXTUAL, "Enhanced Fed-PE, shared", EnhancedFedPE(parameters="shared"), ONE_THETA),
    (CONTEXTUAL, "Local UCB, shared", LocalUCB(), ALONE),
    (DISJOINT, FEDPE, POLICIES[FEDPE], MANY_THETAS),
    (DISJOINT, ENHANCED, POLICIES[ENHANCED], MANY_THETAS),
    (DISJOINT, COLLABORATIVE, POLICIES[COLLABORATIVE], ("not stated", "not stated")),
    (DISJOINT, LOCAL, POLICIES[LOCAL], ALONE),
)
"""Table 1, a line per algorithm: model, label, policy, and the orders of total regret and communication."""

POLICIES |= {label: policy for _, label, policy, _ in ALGORITHMS}

SIZES = {"a": ("clients", (50, 100, 200)), "b": ("arms", (5, 10, 20)), "c": ("dim", (3, 4, 5))}
"""What Figures 2, 3 and 4 vary in their panels; M = 100, K = 10 and d = 3 otherwise."""

QUANTITIES = {
    "fig2": ("regret of Enhanced Fed-PE", REGRET),
    "fig3": ("sparsity level of Enhanced Fed-PE", SPARSITY),
    "fig4": ("iterations of the design of Enhanced Fed-PE", ITERATIONS),
}

ORDERS = {
    UNIFORM: ("√(T log T)", "T/K"),
    EXPONENTIAL: ("√(T log T)", "log T"),
    GREEDY: ("√(T log T) log log T", "log log T"),
}


def more_clients(kind: str) -> dict[int, Case]:
    """The cases of Figure 1(b) on one kind of instance, by M."""
    return _by_size(Instance(kind, dim=4), *SIZES["a"], LONG)


def swept(kind: str, panel: str) -> dict[int, Case]:
    """The cases of a panel of Figures 2 to 4 on one kind of instance, by the size that varies."""
    return _by_size(Instance(kind), *SIZES[panel], MIDDLE)


def _by_size(base: Instance, over: str, values: tuple[int, ...], horizon: int) -> dict[int, Case]:
    curves = sweep(base, over, values, ENHANCED, horizon).curves
    return dict(zip(values, curves.values(), strict=True))


def experiments() -> dict[str, Experiment]:
    """All of them, in the paper's order."""
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
            (comparison(Instance(MOVIELENS, arms=30), PAPER, LONG),),
            bounds=True,
        ),
    }
    for name, (title, quantity) in QUANTITIES.items():
        for letter, (over, values) in SIZES.items():
            out[name + letter] = Figure(
                f"Figure {name[3:]}({letter}): {title}",
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
        "Table 2: regret and communication with three selections of the phase lengths",
        tuple(
            Row(kind, label, Case(Instance(kind), label, MIDDLE), *ORDERS[label])
            for kind in SYNTHETIC
            for label in PHASE_LENGTHS
        ),
    )
    return out


EXPERIMENTS = experiments()
"""Figures and tables by name."""
