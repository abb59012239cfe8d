"""Fed-PE with sparse designs and with efficient rounding, against the paper's rounding up.

python benchmarks/rounding.py [--out docs/figures/rounding.png]

Three instances of 100 clients or fewer, ten arms or more, three dimensions; ten trials with the same seed for
all four ways. Regret per client and the scalars that are sent, by the paper's cost model. Nothing here
depends on the machine: a seed decides everything.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
from pathlib import Path

import numpy as np
from harness import show

import bandits

VARIANTS = {
    "ceiling (the paper)": {},
    "ceiling, sparse": {"sparse": True},
    "efficient": {"rounding": bandits.efficient},
    "efficient, sparse": {"rounding": bandits.efficient, "sparse": True},
}


def instances() -> dict[str, tuple[bandits.LinearEnvironment, str]]:
    authors = bandits.environments.authors(clients=100, arms=10, dim=3, seed=0)
    same = bandits.environments.identical(clients=100, arms=10, dim=3, seed=0)
    many = bandits.environments.random(20, 40, 3, seed=0)
    return {
        "the authors' instance, M = 100, K = 10": (authors, "disjoint"),
        "the same arms for all, M = 100, K = 10": (same, "shared"),
        "random, M = 20, K = 40": (many, "disjoint"),
    }


def draw(curves: dict[str, dict[str, bandits.Run]], out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(5.2 * len(curves), 3.8), layout="constrained")
    for axis, (title, runs) in zip(np.atleast_1d(axes), curves.items(), strict=True):
        for (name, run), style in zip(runs.items(), ("-", "--", "-.", ":"), strict=True):
            axis.plot(run.times, run.regret.mean(axis=0), style, label=name)
        axis.set(title=title, xlabel="pulls per client", ylabel="regret per client", xscale="log")
    np.atleast_1d(axes)[0].legend(frameon=False)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--horizon", type=int, default=2**17)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/figures/rounding.png")
    args = parser.parse_args()
    curves: dict[str, dict[str, bandits.Run]] = {}
    for title, (env, parameters) in instances().items():
        rows: list[list[object]] = []
        curves[title] = {}
        for name, options in VARIANTS.items():
            policy = bandits.FedPE(parameters=parameters, **options)
            run = bandits.simulate(policy, env, horizon=args.horizon, trials=args.trials, seed=0)
            curves[title][name] = run
            final = run.regret[:, -1]
            support = run.phases["sparsity"].mean()
            rows.append(
                [
                    name,
                    f"{final.mean():.1f} ± {final.std(ddof=1) / np.sqrt(args.trials):.1f}",
                    f"{support:.2f}",
                    f"{run.uploaded.mean():,.0f}",
                    f"{run.downloaded.mean():,.0f}",
                ]
            )
        show(
            f"Fed-PE on {title}, d = 3, T = {args.horizon:,}, {args.trials} trials",
            ["rounding", "regret per client", "arms with weight a client", "uploaded", "downloaded"],
            rows,
        )
    draw(curves, args.out)


if __name__ == "__main__":
    main()
