"""MovieLens-100K beside what the paper says of its instance: norms, gaps, and what the open choices change.

    python benchmarks/movielens.py [u.data]        about two minutes

First the two readings that bandits.environments.movielens offers, all users at once. Then twelve
combinations: the two readings, three starts of the factorisation, ratings divided by 5 or not.
bandits.environments.ratings has one start and divides; the script goes on from its ``complete`` as
``factors`` and ``instance`` do, and checks that the two combinations in common agree. Users appear without
their numbers.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import itertools
import warnings
from pathlib import Path

import numpy as np
from harness import show
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

import bandits
from bandits.environments.ratings import ITERATIONS, TOP_RATING, complete, facts

DATA = Path(__file__).resolve().parents[1] / "../shared/data/ml-100k/u.data"
NORM2, GAP = (0.4, 0.8), (0.01, 0.8)
"""Ranges that the paper reports."""

READINGS = {"centred": True, "plain": False}
STARTS = ("nndsvda", "nndsvd", "random")
"""The first is the one of bandits.environments.ratings."""

CLIENTS, ARMS, DIM = 100, 30, 3
HORIZON, SEEDS, DRAWS = 2**17, 3, 10


def ratings_of(path: Path) -> np.ndarray:
    """The (users, films) matrix, zero where there is no rating."""
    user, film, rating, _ = np.loadtxt(path, dtype=np.int64).T
    out = np.zeros((user.max(), film.max()))
    out[user - 1, film - 1] = rating
    return out


def inside(values: np.ndarray, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f"{100 * np.mean((values >= low) & (values <= high)):.1f} %"


def norm2_of(env: bandits.LinearEnvironment) -> np.ndarray:
    """Squared norm of every user, whose features are the same for all arms."""
    return np.sum(env.features[:, 0] ** 2, axis=1)


def readings(path: Path, ratings: np.ndarray) -> dict[str, bandits.LinearEnvironment]:
    """Print the facts of both readings, and who the extremes are; the environments of all users."""
    count = np.sum(ratings > 0, axis=1)
    mean = ratings.sum(axis=1) / count
    envs, columns, people = {}, [], []
    for reading, centred in READINGS.items():
        env = bandits.environments.movielens(path, len(ratings), ARMS, DIM, centred=centred)
        draws = [
            bandits.environments.movielens(path, CLIENTS, ARMS, DIM, seed, centred=centred)
            for seed in range(DRAWS)
        ]
        norm2, gaps, found = norm2_of(env), env.gaps[~env.optimal], facts(env)
        drawn = [facts(draw) for draw in draws]
        second = np.sort(env.gaps, axis=1)[:, 1]
        envs[reading] = env
        columns.append({
            "squared norm, smallest": f"{found.smallest_norm2:.2f}",
            "squared norm, median": f"{np.median(norm2):.2f}",
            "squared norm, largest": f"{found.largest_norm2:.2f}",
            f"squared norms in {list(NORM2)}": inside(norm2, NORM2),
            "largest norm over smallest": f"{env.L / env.ell:.1f}",
            "correlation of squared norm and mean rating": f"{np.corrcoef(norm2, mean)[0, 1]:.2f}",
            "gap, smallest": f"{found.smallest_gap:.5f}",
            "gap, largest": f"{found.largest_gap:.2f}",
            f"gaps in {list(GAP)}": inside(gaps, GAP),
            f"users whose second-best arm is within {GAP[0]}": f"{100 * np.mean(second < GAP[0]):.1f} %",
            f"{DRAWS} draws of {CLIENTS} users: with a gap below {GAP[0]}":
                f"{sum(f.smallest_gap < GAP[0] for f in drawn)}",
            f"{DRAWS} draws of {CLIENTS} users: largest gap":
                f"{min(f.largest_gap for f in drawn):.2f} to {max(f.largest_gap for f in drawn):.2f}",
            f"{DRAWS} draws of {CLIENTS} users: largest norm over smallest":
                f"{min(d.L / d.ell for d in draws):.1f} to {max(d.L / d.ell for d in draws):.1f}",
        })  # fmt: skip
        order = np.argsort(norm2)
        chosen = [("smallest norms", i) for i in order[:3]] + [("largest norms", i) for i in order[:-4:-1]]
        smallest = np.where(env.optimal, np.inf, env.gaps).min(axis=1)
        largest = env.gaps.max(axis=1)
        chosen += [("smallest gap", smallest.argmin()), ("largest gap", largest.argmax())]
        people.append(
            [f"{reading}, median of all", f"{np.median(count):.0f}", f"{np.median(mean):.2f}",
             f"{np.median(norm2):.2f}", f"{np.median(smallest):.5f}", f"{np.median(largest):.2f}"]
        )  # fmt: skip
        for why, i in chosen:
            people.append(
                [f"{reading}, {why}", count[i], f"{mean[i]:.2f}", f"{norm2[i]:.2f}",
                 f"{smallest[i]:.5f}", f"{largest[i]:.2f}"]
            )  # fmt: skip
    paper = {name: "" for name in columns[0]} | {
        "squared norm, smallest": f"{NORM2[0]}",
        "squared norm, largest": f"{NORM2[1]}",
        f"squared norms in {list(NORM2)}": "all",
        "largest norm over smallest": f"{np.sqrt(NORM2[1] / NORM2[0]):.1f}",
        "gap, smallest": f"{GAP[0]}",
        "gap, largest": f"{GAP[1]}",
        f"gaps in {list(GAP)}": "all",
    }
    show(
        f"{len(ratings)} users, K={ARMS} d={DIM}, k-means from seed 0; draws have the seeds 0 to {DRAWS - 1}",
        ["", *READINGS, "the paper"],
        [[name, *(column[name] for column in columns), paper[name]] for name in paper],
    )
    show(
        "Who the extremes are",
        ["user with", "ratings", "mean rating", "squared norm", "smallest gap", "largest gap"],
        people,
    )
    return envs


def environment(users: np.ndarray, films: np.ndarray, clients: int, seed: int) -> bandits.LinearEnvironment:
    """As bandits.environments.movielens goes on from the factors."""
    chosen = np.sort(np.random.default_rng(seed).choice(len(users), clients, replace=False))
    centres = KMeans(ARMS, n_init=10, random_state=seed).fit(films).cluster_centers_
    return bandits.LinearEnvironment(np.repeat(users[chosen][:, None, :], ARMS, axis=1), centres)


def combinations(ratings: np.ndarray, offered: dict[str, bandits.LinearEnvironment], horizon: int) -> None:
    rows: list[list[object]] = []
    whole = {reading: complete(ratings, centred=centred) for reading, centred in READINGS.items()}
    for reading, divisor, start in itertools.product(READINGS, (TOP_RATING, 1.0), STARTS):
        model = NMF(DIM, init=start, random_state=0, max_iter=ITERATIONS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table has the iterations
            users = model.fit_transform(whole[reading] / divisor)
        films = np.ascontiguousarray(model.components_.T)
        env = environment(users, films, len(users), 0)
        if (start, divisor) == (STARTS[0], TOP_RATING):
            np.testing.assert_allclose(env.means, offered[reading].means, rtol=1e-6)
        regret = np.array([regrets(environment(users, films, CLIENTS, n), horizon, n) for n in range(SEEDS)])
        rows.append([
            f"{reading}, {'divided' if divisor > 1 else 'as given'}, {start}", model.n_iter_,
            inside(norm2_of(env), NORM2), inside(env.gaps[~env.optimal], GAP),
            f"{facts(env).largest_gap:.2f}", f"{env.L / env.ell:.1f}",
            *np.rint(regret.mean(axis=0)).astype(int), f"{np.sum(regret[:, 0] < regret[:, 1])} of {SEEDS}",
        ])  # fmt: skip
    show(
        f"Twelve combinations: all users, then mean regret of {SEEDS} draws of {CLIENTS} users, T={horizon} "
        f"(a start that reaches {ITERATIONS} iterations has not converged)",
        ["ratings and start", "iterations", "norms in range", "gaps in range", "largest gap", "L / ell",
         "Enhanced", "Local UCB", "Enhanced less"],
        rows,
    )  # fmt: skip


def regrets(env: bandits.LinearEnvironment, horizon: int, seed: int) -> list[float]:
    """Of Enhanced Fed-PE and of local UCB, with the rewards of that trial of Figure 1(c)."""
    return [
        float(bandits.simulate(policy, env, horizon, trials=1, seed=seed, times=[horizon]).regret[0, -1])
        for policy in (bandits.EnhancedFedPE(), bandits.LocalUCB())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratings", nargs="?", type=Path, default=DATA, help="u.data of MovieLens-100K")
    parser.add_argument("--horizon", type=int, default=HORIZON)
    args = parser.parse_args()
    ratings = ratings_of(args.ratings)
    combinations(ratings, readings(args.ratings, ratings), args.horizon)


if __name__ == "__main__":
    main()
