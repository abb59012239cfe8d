"""The authors' synthetic instance, peers side by side; scaling, start-up and memory.

python benchmarks/design.py            (a few minutes; single-threaded BLAS for everyone)
python benchmarks/design.py --quick    (scaling up to 1,000,000 candidates only)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from harness import bar, duration, measure, measure_once, show
from peers import literal_bca

import optdesign as od
from optdesign.examples import authors_features

GAP = 0.1


def peers_table() -> None:
    features = authors_features(100, 10, 3)
    features /= np.linalg.norm(features, axis=2, keepdims=True)  # the paper's e = x / |x|
    problem = od.DesignProblem.disjoint(features)
    tol = GAP / problem.rank
    ours = measure(
        problem,
        lambda: od.solve(od.DesignProblem.disjoint(features), tol=tol, method="bca").weights,
        repeats=100,
    )
    literal = measure_once(problem, lambda: literal_bca(features, GAP))
    helped = measure_once(problem, lambda: literal_bca(features, GAP, derivatives=True))
    rows: list[list[object]] = [["optdesign, bca, gap 0.1 (problem built anew)", ours, "1"]]
    for label, m in [("literal", literal), ("literal, with derivatives", helped)]:
        rows.append([f"the paper's algorithm, {label}, gap 0.1", m, f"{m.seconds / ours.seconds:.0f}"])
    for label, options in [
        ("optdesign, auto, relative gap 1e-6", {"tol": 1e-6}),
        ("optdesign, auto, relative gap 1e-9", {"tol": 1e-9}),
    ]:
        m = measure(problem, lambda options=options: od.solve(problem, **options).weights, repeats=10)
        rows.append([label, m, f"{m.seconds / ours.seconds:.1f}"])
    for solver in ("CLARABEL", "SCS"):
        m = measure(problem, lambda solver=solver: od.reference.solve(problem, solver).weights)
        rows.append([f"cvxpy + {solver}", m, f"{m.seconds / ours.seconds:.0f}"])
    show(
        "Authors' synthetic instance, M=100 K=10 d=3: time (certified relative gap)",
        ["solver", "time (gap)", "times ours"],
        rows,
    )
    bar("times faster than the literal algorithm", literal.seconds / ours.seconds, 1000, at_least=True)


def scaling_table(largest: int) -> None:
    """Time per sweep of block coordinate ascent; each size in a process of its own, for its memory."""
    rows, per_candidate = [], []
    size = 1000
    while size <= largest:
        out = subprocess.run(
            [sys.executable, __file__, "--size", str(size)], check=True, capture_output=True, text=True
        ).stdout
        sweep, peak, data = map(float, out.split())
        per_candidate.append(sweep / size)
        rows.append(
            [f"{size:,} x 5", duration(sweep), f"{sweep / size * 1e9:.0f} ns",
             f"{peak / 1e6:.0f} MB", f"{data / 1e6:.0f} MB", f"{peak / data:.2f}"]
        )  # fmt: skip
        size *= 10
    show(
        "Sweeps of block coordinate ascent, K=10 d=5 disjoint",
        ["candidates", "time a sweep", "a candidate", "peak memory", "input", "peak / input"],
        rows,
    )
    bar("slowest over fastest time per candidate", max(per_candidate) / min(per_candidate), 3, at_least=False)
    if largest >= 10_000_000:
        bar("peak memory over input at 10,000,000 x 5", peak / data, 3, at_least=False)


def one_size(size: int) -> None:
    """Print seconds a sweep, peak bytes and input bytes of one size."""
    rng = np.random.default_rng(0)
    x = rng.random((size, 5))
    groups, blocks = np.divmod(np.arange(size), 10)
    data = x.nbytes + groups.nbytes + blocks.nbytes
    od.solve(od.DesignProblem(x[:1000], groups[:1000], blocks[:1000]), method="bca", max_iter=1)
    problem = od.DesignProblem(x, groups, blocks)
    sweeps = 2 if size > 1_000_000 else 5
    r = od.solve(problem, method="bca", tol=1e-15, max_iter=sweeps)
    seconds = np.diff(r.history.seconds).min() if sweeps > 1 else r.seconds
    if size <= 100_000:  # several sweeps run between two looks at the clock
        r = od.solve(problem, method="bca", tol=1e-15, max_iter=200)
        seconds = r.history.seconds[-1] / r.iterations
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, data)


def start_up() -> None:
    """Import and first solve in new processes, with a warm cache of compiled kernels."""
    code = (
        "import time; a = time.perf_counter(); import optdesign as od; b = time.perf_counter();"
        "import numpy as np; x = np.random.default_rng(0).normal(size=(100, 10, 3));"
        "c = time.perf_counter(); od.solve(od.DesignProblem.disjoint(x)); d = time.perf_counter();"
        "print(b - a, d - c)"
    )
    times = []
    for _ in range(4):
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        times.append(list(map(float, out.split())))
    load, first = np.median(np.array(times[1:]), axis=0)
    bar("seconds to import optdesign", load, 1, at_least=False)
    bar("seconds of the first solve in a new process", first, 2, at_least=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--size", type=int)
    args = parser.parse_args()
    if args.size:
        one_size(args.size)
        return
    began = time.perf_counter()
    peers_table()
    scaling_table(1_000_000 if args.quick else 10_000_000)
    start_up()
    print(f"({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
