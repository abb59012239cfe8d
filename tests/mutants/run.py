"""The tests tested: small changes to the source, one at a time, and whether a test notices.

    python tests/mutants/run.py --minutes 30

Cosmic Ray makes the mutants: it replaces operators, comparisons and numbers, drops loops, negates conditions.
Every one is tried in a process of its own, which reads the module changed and everything else as it is; no
file is touched. Kernels run as plain Python, so that nothing has to be compiled. What no test of the module
notices is printed, with the reason why no test could, if ``argued.toml`` has one: then it is equivalent.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import NamedTuple

os.environ["NUMBA_DISABLE_JIT"] = "1"

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))  # the packages, not the folders of tests that are called like them

MODULES = {
    "bandits/trials/regret.py": ("bandits/trials/test_regret.py",),
    "bandits/theory/confidence.py": ("bandits/theory/test_confidence.py",),
    "bandits/theory/schedules.py": ("bandits/theory/test_schedules.py",),
    "optdesign/verification/verify.py": (
        "optdesign/verification/test_verify.py",
        "optdesign/verification/test_audit.py",
    ),
    "optdesign/design/feasible.py": (
        "optdesign/design/test_certificate_weights.py",
        "optdesign/design/test_certificate.py",
    ),
    "optdesign/design/roundoff_allowance.py": ("optdesign/design/test_certificate_bounds.py",),
    "optdesign/design/certificate.py": (
        "optdesign/design/test_certificate_bounds.py",
        "optdesign/design/test_certificate_weights.py",
        "optdesign/design/test_certificate.py",
    ),
}
"""What is mutated, and the tests that are to notice; the quick ones come first and leave time to the rest."""

BINARY = "Add_Sub Sub_Add Mul_Div Div_Mul Div_FloorDiv Pow_Mul Mod_Add BitAnd_BitOr"
COMPARED = "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is"
OPERATORS = (
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY.split()),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARED.split()),
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not",
    "AddNot",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ZeroIterationForLoop",
    "NumberReplacer",
    "ExceptionReplacer",
)
"""Changes that Cosmic Ray knows and that can go wrong quietly: 1 + "a" would be noticed by the language."""

PYTEST = (
    "-x", "--hypothesis-profile=mutants", "-p", "no:cacheprovider", "-p", "no:unraisableexception",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
"""Until the first failure, which property tests do not make small; libraries are loaded already."""

LIBRARIES = ("cvxpy", "hypothesis.extra.numpy", "joblib", "numba", "scipy.sparse.csgraph", "scipy.stats")
"""What our modules and tests import, and takes longest."""

PATIENCE = 4.0, 20.0
"""A mutant that takes so many times as long as the module itself, and so many seconds, is noticed by it."""


class Mutant(NamedTuple):
    """A module with one change."""

    module: str
    code: str
    number: int
    """Of the first line that differs."""
    before: str
    after: str


class Argument(NamedTuple):
    """Why nobody could notice the mutants of a module that read like this."""

    module: str
    line: str
    why: str


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of a module, each once."""
    source = (ROOT / module).read_text(encoding="utf-8")
    lines, seen = source.splitlines(), {source}
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        occurrence = 0
        while (code := mutate_code(source, operator, occurrence)) is not None:
            occurrence += 1
            if code in seen or _signature(code, source):
                continue
            seen.add(code)
            changed = code.splitlines()
            at = next(k for k, (a, b) in enumerate(zip(lines, changed, strict=False)) if a != b)
            yield Mutant(module, code, at + 1, lines[at].strip(), " ".join(changed[at].split()))


def _signature(code: str, source: str) -> bool:
    """Whether the change is to the star of keyword-only parameters, which Cosmic Ray takes for a product."""
    return code.replace("/,", "*,") == source.replace("/,", "*,")


class _Changed(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module from changed source."""

    def __init__(self, name: str, path: Path, code: str) -> None:
        super().__init__(name, str(path))
        self.changed = code

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """The module itself, and nobody else's."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, _: str) -> CodeType:
        """The changed source, compiled."""
        return compile(self.changed, self.path, "exec")


def noticed(module: str, code: str, seconds: float) -> bool:
    """Whether the tests of a module fail on this code, or do not end in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            name = module.removesuffix(".py").replace("/", ".")
            sys.meta_path.insert(0, _Changed(name, ROOT / module, code))
            tests = [str(ROOT / "tests" / path) for path in MODULES[module]]
            status = int(pytest.main([*PYTEST, *tests]))
        finally:
            os._exit(status)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, outcome = os.waitpid(child, os.WNOHANG)
        if done:
            return outcome != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def arguments() -> list[Argument]:
    """What is said in defence of mutants that nobody notices."""
    with open(HERE / "argued.toml", "rb") as file:
        return [Argument(**entry) for entry in tomllib.load(file).get("mutant", [])]


def hunt(module: str, minutes: float, argued: list[Argument]) -> Counter[str]:
    """Try the mutants of a module, in an order of their own, until time is over. Prints what survives."""
    began = time.monotonic()
    source = (ROOT / module).read_text(encoding="utf-8")
    if noticed(module, source, 600.0):
        sys.exit(f"the tests of {module} fail as it is, with kernels as plain Python: {MODULES[module]}")
    patience = PATIENCE[0] * (time.monotonic() - began) + PATIENCE[1]
    everything = list(mutants(module))
    random.Random(0).shuffle(everything)
    counts = Counter[str](mutants=len(everything))
    reasons = {a.line: a.why for a in argued if a.module == module}
    print(f"{module}: {len(everything)} mutants")
    for mutant in everything:
        if time.monotonic() - began > 60 * minutes:
            break
        counts["tried"] += 1
        if noticed(module, mutant.code, patience):
            counts["noticed"] += 1
            continue
        why = reasons.get(mutant.after)
        counts["equivalent"] += why is not None
        print(f"  line {mutant.number}: {mutant.before}")
        print(f"    as: {mutant.after}")
        print(f"    {'NOT NOTICED' if why is None else f'equivalent: {why}'}", flush=True)
    for line in sorted(reasons.keys() - {mutant.after for mutant in everything}):
        print(f"  argued.toml speaks of a mutant that there is not: {line}")
    print(
        f"  {counts['tried']} tried, {counts['noticed']} noticed, {counts['equivalent']} equivalent\n",
        flush=True,
    )
    return counts


def main() -> int:
    """Try all modules, or those that are named; the status says whether all mutants are accounted for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=list(MODULES), metavar="MODULE")
    parser.add_argument("--minutes", type=float, default=30.0, help="for all modules together")
    options = parser.parse_args()
    os.chdir(ROOT)
    # Libraries are loaded once, and not collected in every process that tries a mutant.
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    until, total, argued = time.monotonic() + 60 * options.minutes, Counter[str](), arguments()
    for n, module in enumerate(options.modules):
        left = (until - time.monotonic()) / 60
        total += hunt(module, left / (len(options.modules) - n), argued)
    accounted = total["noticed"] + total["equivalent"]
    print(
        f"{total['mutants']} mutants, {total['tried']} tried: {total['noticed']} noticed, "
        f"{total['equivalent']} equivalent, {total['tried'] - accounted} not noticed. "
        f"Score {total['noticed'] / max(1, total['tried'] - total['equivalent']):.1%} of those that a test "
        "could notice."
    )
    return 0 if accounted == total["tried"] else 1


if __name__ == "__main__":
    sys.exit(main())
