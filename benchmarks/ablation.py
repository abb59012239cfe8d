"""What every constant and every branch of the solvers earns, on seeds that were not used to choose it.

python benchmarks/ablation.py [names ...] [--seconds 0.1] [--seeds 2]

A variant changes one constant, or takes a branch away. It runs in turn with the default in the same process,
on the same problems; the fastest of several runs counts, in seconds of the processor, since other work may
go on beside. A family's ratio is the geometric mean of variant over default; a variant that comes to the same
weights by the same iterations has a ratio of one, unless that is what it is about. Kernels that have a
constant compiled into them are compiled again. What does not cost some family 10 % when it is taken away has
no reason to be there, unless it protects from failure or keeps designs readable.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import math
import sys
import time
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from classical import quadratic
from harness import show
from instances import FAMILIES, features

import optdesign as od
from optdesign.algebra import whitening
from optdesign.runtime.jit import uncached
from optdesign.solvers import auto, bca, costs, group_step, newton, start, tidy, working_set
from optdesign.solvers.systems import by_information, by_iteration

FIRST_SEED = 400
TOLERANCES = (1e-6, 1e-9)
EARNS = 1.10
"""Slower by so much on some family: then it earns its place."""

Patch = list[tuple[types.ModuleType, str, Any]]


class Instance(NamedTuple):
    """A problem, and the method that solves it."""

    family: str
    name: str
    problem: od.DesignProblem
    method: str = "auto"


class Variant(NamedTuple):
    """A name with another value, in one file and in those that import it."""

    module: types.ModuleType
    name: str
    value: Any
    says: str
    """What the name does, or what is taken away."""
    importers: tuple[types.ModuleType, ...] = ()
    shown: str = ""
    """The field of a group of parameters that is changed, and its value."""
    same_way: bool = False
    """Whether it comes to the same weights by the same iterations, in another time."""

    @property
    def label(self) -> str:
        """How the table calls it."""
        file = self.module.__name__.rpartition(".")[2]
        if self.shown:
            return f"{file}.{self.name}.{self.shown}"
        return f"{file}.{self.name} = {getattr(self.value, '__name__', self.value)}"


def never(*_: Any) -> bool:
    """In place of a condition."""
    return False


def endless(*_: Any) -> float:
    """In place of an estimate."""
    return math.inf


def no_steps(*_: Any) -> Iterator[Any]:
    """In place of a method."""
    return iter(())


def always(*_: Any) -> bool:
    """In place of a condition."""
    return True


def _variants() -> Iterator[Variant]:
    inf = math.inf
    for module, name, values, says, *importers in (
        (working_set, "PATIENCE", (2, 20), "rounds without a smaller gap"),
        (newton, "PATIENCE", (2, 20), "steps that have not halved the gap"),
        (costs, "SWEEPS", (5, 20), "sweeps between two estimates of the rate", auto, working_set, bca),
    ):
        for value in values:
            yield Variant(module, name, value, says, tuple(importers))
    for module, name, field, values, says, *importers in (
        (costs, "UNITS", "flop", (0.01, 0.16), "unit", by_information),
        (costs, "UNITS", "loop", (0.2, 2.8), "unit", by_information),
        (costs, "UNITS", "row", (0.0, 80.0), "unit", by_information),
        (costs, "UNITS", "call", (0.0, 20e3), "unit"),
        (costs, "ASSUMED", "steps", (2, 18), "Newton steps of a round"),
        (costs, "ASSUMED", "products", (20, 60, inf), "products, for the choice of iteration"),
        (costs, "ASSUMED", "planned_products", (30, inf), "products, for plans"),
        (by_iteration, "PARAMETERS", "residual", (0.1, 1e-3), "accuracy of a step by iteration"),
        (by_iteration, "PARAMETERS", "max_products", (50, 10**9), "largest number of products"),
        (group_step, "EXCHANGE", "threshold", (0.0, 1.0), "candidates in exchanges", bca),
        (group_step, "EXCHANGE", "per_candidate", (1, 100), "exchanges per candidate", bca),
        (group_step, "EXCHANGE", "reduction", (0.0, 0.3), "end of the exchanges of a group", bca),
        (bca, "PARAMETERS", "lag", (1.0, 25.0), "when a gap is recomputed"),
        (bca, "PARAMETERS", "parts", (1,), "parts of a parallel sweep"),
        (bca, "PARAMETERS", "groups_per_parameter", (50,), "groups for a parallel sweep"),
        (newton, "PARAMETERS", "to_boundary", ((0.9, 0.9999), (0.99, 0.99), (0.99, 0.999999)), "damping"),
        (newton, "PARAMETERS", "uniform_share", (1e-6, 1e-1), "share of the uniform design"),
        (newton, "PARAMETERS", "negligible", (0.0,), "shares that are dropped"),
        (newton, "PARAMETERS", "overshoot", (1.0,), "steps beyond the target"),
        (working_set, "PARAMETERS", "accuracy", (0.001, 0.1), "accuracy of a round"),
        (tidy, "THRESHOLDS", "negligible", (0.0,), "weights that are dropped"),
        (tidy, "THRESHOLDS", "redundant", (0.0,), "weights that are dropped above the support bound"),
        (start, "START", "many", (3, 24), "many candidates"),
        (start, "START", "basis_only", (0, 10**9), "start from a basis"),
        (start, "START", "even", (0.0,), "uniform starts if leverages are even"),
    ):
        for value in values:
            changed = getattr(module, name)._replace(**{field: value})
            yield Variant(module, name, changed, says, tuple(importers), shown=f"{field} = {value}")
    yield Variant(start, "pass_time", endless, "size of a start by the time of a pass")
    yield Variant(start, "large_groups", never, "no sweeps over large groups", (auto,))
    yield Variant(auto, "_initial_sweeps", no_steps, "sweeps first")
    yield Variant(auto, "newton_time", endless, "Newton steps if they are estimated to be faster")
    yield Variant(working_set, "sweeps_time", endless, "sweeps in rounds")
    yield Variant(auto, "mostly_positive", always, "rounds on a working set")
    yield Variant(auto, "mostly_positive", never, "steps on all candidates if most have weight")
    yield Variant(costs, "one_call", endless, "small steps in one call")
    yield Variant(costs, "by_group", endless, "systems by group")
    yield Variant(costs, "by_iteration", endless, "systems by iteration")
    yield Variant(
        whitening,
        "fits_one_call",
        never,
        "small starts, prices, proofs in one call",
        (working_set,),
        same_way=True,
    )


def instances(seeds: int) -> Iterator[Instance]:
    """Problems of every family."""
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for structure in ("disjoint", "shared"):
            build = getattr(od.DesignProblem, structure)
            for family in FAMILIES:
                for m, d in ((30, 3), (30, 10), (100, 3), (100, 10), (1000, 3), (40, 30)):
                    name = f"{family} {structure}"
                    yield Instance(name, f"M={m} d={d}", build(features(family, m, 10, d, seed)))
            for family in ("gauss", "same", "clust"):
                for method in ("newton", "bca"):
                    problem = build(features(family, 40, 10, 4, seed))
                    if method == "newton" or family == "gauss":
                        yield Instance(f"by {method}", f"{family} {structure}", problem, method)
        rng = np.random.default_rng(seed)
        for n, d in ((100, 3), (300, 15), (1_000, 5), (10_000, 10), (100_000, 10)):
            yield Instance("classical", f"{n} x {d}", od.DesignProblem(rng.normal(size=(n, d))))
        for n, d, m in ((400, 4, 4), (5_000, 5, 50), (20_000, 8, 4), (30_000, 21, 4)):
            problem = od.DesignProblem(rng.normal(size=(n, d)), np.arange(n) % m)
            yield Instance("groups in one block", f"{n} x {d} in {m}", problem)
        copies = np.repeat(rng.normal(size=(60, 4)), 20, axis=0)
        levels = rng.choice([-1.0, 1.0], size=(4000, 6))
        one_hot = np.eye(6)[rng.integers(0, 6, size=3000)]
        in_four = od.DesignProblem(rng.normal(size=(5_000, 5)), np.arange(5_000) % 4)
        yield Instance("by bca", "5000 x 5 in 4", in_four, "bca")
        yield Instance("by newton", "100 x 3", od.DesignProblem(copies[::12, :3]), "newton")
        yield Instance("ugly", "copies", od.DesignProblem(copies, np.arange(1200) % 20))
        yield Instance("ugly", "two levels", od.DesignProblem(levels, np.arange(4000) % 8))
        yield Instance("ugly", "one-hot", od.DesignProblem(one_hot, np.arange(3000) % 30))
        yield Instance("ugly", "both", od.DesignProblem(np.column_stack([one_hot, levels[:3000]])))
    for family in ("gauss", "same", "clust"):
        for structure, d in (("disjoint", 5), ("shared", 5), ("shared", 12)):
            x = features(family, 20_000 if d == 5 else 2_000, 10, d, FIRST_SEED)
            problem = getattr(od.DesignProblem, structure)(x)
            yield Instance(f"many groups, {structure}", f"{family} M={len(x)} d={d}", problem)
    rng = np.random.default_rng(FIRST_SEED)
    yield Instance("wide", "10000 x 50", od.DesignProblem(rng.normal(size=(10_000, 50))))
    close = rng.normal(size=(500, 40))[rng.integers(0, 500, size=8_000)]
    close += 1e-3 * rng.normal(size=close.shape)
    yield Instance("near copies", "8000 x 40", od.DesignProblem(close))
    yield Instance("near copies", "8000 x 40 in 80", od.DesignProblem(close, np.arange(8_000) % 80))
    yield Instance("near copies", "8000 x 12 in 80", od.DesignProblem(close[:, :12], np.arange(8_000) % 80))
    yield Instance(
        "wide", "cond M=100 d=30", od.DesignProblem.shared(features("cond", 100, 10, 30, FIRST_SEED))
    )
    even = rng.normal(size=(6_000, 48))
    even /= np.linalg.norm(even, axis=1)[:, None]
    yield Instance("wide", "unit vectors 6000 x 48", od.DesignProblem(even))
    high = od.DesignProblem.shared(features("clust", 200, 20, 60, FIRST_SEED))
    yield Instance("wide", "clust M=200 K=20 d=60", high)
    yield Instance("grid", "2001 x 6", od.DesignProblem(np.vander(np.linspace(-1, 1, 2001), 6)))
    fine = np.vander(np.linspace(-1, 1, 4001), 3)
    yield Instance("grid", "4001 x 3 in 5", od.DesignProblem(fine, np.arange(4001) % 5))
    yield Instance("grid", "4001 x 3 by newton", od.DesignProblem(fine), "newton")
    yield Instance("grid", "729 x 28", od.DesignProblem(quadratic()))
    yield Instance("grid", "243 x 21", od.DesignProblem(quadratic(5)))
    some = np.sort(rng.choice(729, size=500, replace=False))
    yield Instance("grid", "500 of 729 x 28", od.DesignProblem(quadratic()[some]))


def patch_of(variant: Variant) -> Patch:
    """All the names that the variant changes."""
    out: Patch = []
    changes = {variant.name: variant.value}
    for module in (variant.module, *variant.importers):
        own = {name: value for name, value in changes.items() if name in vars(module)}
        own |= compiled_again(module, own)
        out += [(module, *pair) for pair in own.items()]
        changes |= own
    return out


def compiled_again(module: types.ModuleType, changes: dict[str, Any]) -> dict[str, Any]:
    """The kernels of a file with constants, or kernels of other files, changed; none if they have none."""
    own = {
        key: thing.py_func
        for key, thing in vars(module).items()
        if hasattr(thing, "py_func") and thing.py_func.__module__ == module.__name__
    }
    used = {name for function in own.values() for name in function.__code__.co_names}
    if not used & changes.keys():
        return {}
    scope = {**vars(module), **changes}
    for key, function in own.items():
        scope[key] = uncached(types.FunctionType(function.__code__, scope, key, function.__defaults__))
    return {key: scope[key] for key in own}


def run(instance: Instance, tol: float, patch: Patch) -> tuple[float, od.DesignResult]:
    """Seconds of the processor, and the result, with names changed."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patch]
    for module, name, value in patch:
        setattr(module, name, value)
    try:
        began = time.process_time()
        result = od.solve(instance.problem, tol=tol, method=instance.method, threads=1, time_limit=20)
        return time.process_time() - began, result
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def ratio(
    instance: Instance,
    tol: float,
    default: od.DesignResult,
    patch: Patch,
    seconds: float,
    measure: bool,
) -> tuple[float, bool]:
    """Time of the variant over that of the default, and whether only the variant fails."""
    _, variant = run(instance, tol, patch)
    failed = default.converged and not variant.converged
    if not measure and np.array_equal(default.weights, variant.weights) and same_way(default, variant):
        return 1.0, failed
    best, spent = [math.inf, math.inf], 0.0
    rounds = 0
    while rounds < 3 or (rounds < 50 and spent < seconds):
        for i, one in enumerate(([], patch)):
            took, _ = run(instance, tol, one)
            best[i] = min(best[i], took)
            spent += took
        rounds += 1
    return best[1] / best[0], failed


def same_way(a: od.DesignResult, b: od.DesignResult) -> bool:
    """Whether two results were come to by the same iterations."""
    return a.method == b.method and np.array_equal(a.history.gaps, b.history.gaps)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    problems = list(instances(args.seeds))
    cases = [(instance, tol, run(instance, tol, [])[1]) for instance in problems for tol in TOLERANCES]
    rows: list[list[object]] = []
    for variant in _variants():
        if args.names and not any(name in variant.label for name in args.names):
            continue
        patch = patch_of(variant)
        logs: dict[str, list[float]] = {}
        failures = []
        for instance, tol, default in cases:
            value, failed = ratio(instance, tol, default, patch, args.seconds, variant.same_way)
            logs.setdefault(instance.family, []).append(math.log(value))
            failures += [f"{instance.family} {instance.name} {tol:g}"] * failed
        means = {family: math.exp(sum(v) / len(v)) for family, v in logs.items()}
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        verdict = "fails" if failures else "earns" if means[high] >= EARNS else "nothing"
        if low != high and means[low] <= 1 / EARNS:
            verdict += ", costs"
        row = [variant.label, variant.says, f"{means[high]:.2f} {high}", f"{means[low]:.2f} {low}", verdict]
        rows.append(row)
        print(*row, *failures[:3], sep=" | ", file=sys.stderr, flush=True)
    show(
        "Time with the variant over that of the default",
        ["variant", "what it is", "slowest family", "fastest family", "the default"],
        rows,
    )
    print(f"({len(problems)} problems, tolerances 1e-6 and 1e-9, {time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
