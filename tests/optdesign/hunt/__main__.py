"""Run the hunt and print a table for every function under test. The exit code is 1 if a claim is false."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from importlib import import_module
from statistics import median

from hunt import TARGETS
from hunt.pool import Case, Pool, Task

CASES = {"solve": 20_000, "other": 4000}
PART = 50
"""Cases of a task."""

LATE = 1.0
"""Seconds beyond its time limit that a call may take."""

SHOWN = 5
"""False claims of a family that are printed."""


def main() -> None:
    """Read the options, run the hunt, print its tables."""
    parser = argparse.ArgumentParser(prog="hunt", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--cases", type=int, help=f"least number of cases of every target; default: {CASES}")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds within which a case must end")
    args = parser.parse_args()
    if unknown := [name for name in args.targets if name not in TARGETS]:
        parser.error(f"target must be one of {', '.join(TARGETS)}; got {unknown[0]!r}.")
    chosen = tuple(args.targets) or TARGETS
    false = cases = undecided = noted = 0
    with Pool(args.jobs, args.limit, tuple(f"hunt.{name}" for name in chosen)) as pool:
        for target in chosen:
            began = time.monotonic()
            families = list(import_module(f"hunt.{target}").FAMILIES)
            each = -(-(args.cases or CASES.get(target, CASES["other"])) // len(families))
            tasks = [
                Task(f"hunt.{target}", family, args.first + k, min(PART, each - k))
                for family in families
                for k in range(0, each, PART)
            ]
            found = list(pool.run(tasks))
            false += print_table(target, families, found, time.monotonic() - began)
            cases += len(found)
            undecided += sum(case.found.undecided for case in found)
            noted += sum(case.found.noted for case in found)
    print(f"{false} false claims in {cases} cases; {undecided} undecided, {noted} with a note")
    sys.exit(false > 0)


def print_table(target: str, families: list[str], cases: list[Case], seconds: float) -> int:
    """Print a line for every family and its false claims. Return the number of false claims."""
    print(f"{target:<22}{'cases':>7}{'notes':>7}{'open':>6}{'false':>7}{'slack':>9}{'late':>7}  outcomes")
    total = 0
    for family in families:
        own = sorted((c for c in cases if c.family == family), key=lambda c: c.seed)
        wrong = [c for c in own if is_false(c)]
        total += len(wrong)
        slack = [c.found.slack for c in own if not math.isnan(c.found.slack)]
        late = [c.found.overrun for c in own if not math.isnan(c.found.overrun)]
        print(
            f"{family:<22}{len(own):>7}{sum(c.found.noted for c in own):>7}"
            f"{sum(c.found.undecided for c in own):>6}{len(wrong):>7}"
            f"{f'{median(slack):.1e}' if slack else '':>9}"
            f"{f'{max(0.0, max(late)):.2f}' if late else '':>7}  {outcomes(own)}",
            flush=True,
        )
        for c in wrong[:SHOWN]:
            print(
                f"    seed {c.seed}: {c.found.status}, {c.found.wrong or f'late by {c.found.overrun:.2f} s'}"
            )
    print(f"all: {outcomes(cases)}")
    print(f"{total} false claims in {len(cases)} cases, {seconds:.0f} s\n", flush=True)
    return total


def outcomes(cases: list[Case]) -> str:
    """Return how often each outcome occurs, as text."""
    count = Counter(case.found.status for case in cases)
    return ", ".join(f"{name.lower().replace('_', ' ')} {n}" for name, n in count.most_common())


def is_false(case: Case) -> bool:
    """Return True if a claim is false or the time limit was exceeded by more than LATE seconds."""
    return bool(case.found.wrong) or case.found.overrun > LATE


if __name__ == "__main__":
    main()
