"""Experiments written down: one environment, several policies, in a TOML file.

``EXAMPLE`` is a complete, commented file; ``bandits example`` prints it.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from bandits import environments, schedules
from bandits.environments import LinearEnvironment
from bandits.policies.collaborative import CollaborativeFedPE
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.local_ucb import LocalUCB
from bandits.trial import Policy

EXAMPLE = """\
# An experiment: one environment, several policies. Run it with:  bandits run FILE --out DIR

# title = "Fifty clients"   # written above the plot
horizon = 131072    # pulls of each client: 2^17, as in the paper; all of this takes seconds
trials = 10         # independent repetitions
seed = 0            # trial n draws from the n-th stream of this seed

[environment]
kind = "authors"    # synthetic (the paper's text), authors (their instance), random, clusters, lower_bound,
clients = 50        # or file, with path = "data.npz" holding features (M, K, d) and parameters (K, d) or (d,)
arms = 10
dim = 3
seed = 0
# noise = "gaussian"   # or bernoulli, bounded, two-point
# scale = 1.0

[[policy]]
kind = "FedPE"      # every option of bandits.FedPE can be given; the defaults are the paper's
delta = 0.1
design_gap = 0.1
schedule = { kind = "exponential", c = 1, n = 2 }   # or uniform (length), greedy, lengths (values)

[[policy]]
kind = "EnhancedFedPE"
protocol = "scalars"

[[policy]]
kind = "CollaborativeFedPE"

[[policy]]
kind = "LocalUCB"
label = "UCB, no communication"
"""

GENERATORS: dict[str, Callable[..., LinearEnvironment]] = {
    "synthetic": environments.synthetic,
    "authors": environments.authors,
    "identical": environments.identical,
    "random": environments.random,
    "clusters": environments.clusters,
    "lower_bound": environments.lower_bound,
}
POLICIES: dict[str, Callable[..., Policy]] = {
    "FedPE": FedPE,
    "EnhancedFedPE": EnhancedFedPE,
    "CollaborativeFedPE": CollaborativeFedPE,
    "LocalUCB": LocalUCB,
}
SCHEDULES: dict[str, Callable[..., schedules.Schedule]] = {
    "exponential": schedules.Exponential,
    "uniform": schedules.Uniform,
    "greedy": schedules.Greedy,
    "lengths": schedules.Lengths,
}
TOP = ("title", "horizon", "trials", "seed", "environment", "policy")


@dataclass(frozen=True)
class Experiment:
    """What a configuration file says."""

    env: LinearEnvironment
    policies: dict[str, Policy]
    """By label, in the order of the file."""
    horizon: int
    trials: int
    seed: int
    title: str = ""
    """What to write above the plot."""


def read(path: str | Path) -> Experiment:
    """Read a configuration file; paths in it are relative to it."""
    file = Path(path)
    try:
        return parse(tomllib.loads(file.read_text(encoding="utf-8")), file.parent)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} must be TOML; {error}. See: bandits example") from None


def parse(data: Mapping[str, Any], folder: Path = Path()) -> Experiment:
    """Build the experiment that a parsed file describes."""
    _check_keys(data, TOP, "the file")
    for key in ("horizon", "environment", "policy"):
        if key not in data:
            raise ValueError(f"the file must have {key}; it has {', '.join(data) or 'nothing'}.")
    env = _environment(dict(data["environment"]), folder, int(data["horizon"]))
    policies: dict[str, Policy] = {}
    for entry in data["policy"]:
        options = dict(entry)
        label = options.pop("label", None)
        policy = _policy(options)
        label = policy.name if label is None else str(label)
        if label in policies:
            raise ValueError(f"policy labels must differ; {label!r} occurs twice. Give one a label.")
        policies[label] = policy
    trials, seed = int(data.get("trials", 10)), int(data.get("seed", 0))
    return Experiment(env, policies, int(data["horizon"]), trials, seed, str(data.get("title", "")))


def _environment(options: dict[str, Any], folder: Path, horizon: int) -> LinearEnvironment:
    kind = _kind(options, [*GENERATORS, "file"], "environment")
    told = ("noise", "scale", "ell", "L", "s")
    noise: dict[str, Any] = {key: options.pop(key) for key in told if key in options}
    if kind == "file":
        _check_keys(options, ["path"], "environment")
        with np.load(folder / options.get("path", "")) as data:
            return LinearEnvironment(data["features"], data["parameters"], **noise)
    make = GENERATORS[kind]
    allowed = inspect.signature(make).parameters
    if "horizon" in allowed:
        options.setdefault("horizon", horizon)
    if "noise" in allowed and "noise" in noise:
        options["noise"] = noise["noise"]
    _check_keys(options, list(allowed), "environment")
    env = make(**options)
    # A scale alone rescales the Gaussian noise that the generators have.
    law = "gaussian" if "scale" in noise else env.noise
    known: dict[str, Any] = {"noise": law, "ell": env.ell, "L": env.L, "s": env.s}
    return LinearEnvironment(env.features, env.parameters, **(known | noise))


def _policy(options: dict[str, Any]) -> Policy:
    kind = _kind(options, list(POLICIES), "policy")
    make = POLICIES[kind]
    allowed = [name for name in inspect.signature(make).parameters if name != "rounding"]
    _check_keys(options, allowed, f"policy {kind}")
    if "schedule" in options:
        schedule = dict(options["schedule"])
        shape = _kind(schedule, list(SCHEDULES), "schedule")
        _check_keys(schedule, list(inspect.signature(SCHEDULES[shape]).parameters), "schedule")
        options["schedule"] = SCHEDULES[shape](**schedule)
    return make(**options)


def _kind(options: dict[str, Any], known: list[str], where: str) -> str:
    kind = options.pop("kind", None)
    if kind not in known:
        hint = meant(str(kind), known)
        raise ValueError(f"kind of {where} must be one of {', '.join(known)}; got {kind!r}{hint}.")
    return str(kind)


def _check_keys(options: Mapping[str, Any], allowed: list[str] | tuple[str, ...], where: str) -> None:
    wrong = [key for key in options if key not in allowed]
    if wrong:
        raise ValueError(
            f"{where} may have {', '.join(allowed)}; got {wrong[0]!r}{meant(wrong[0], allowed)}. "
            "See: bandits example"
        )


def meant(word: str, known: Iterable[str]) -> str:
    """A question with the known word that is closest to a mistaken one, or nothing if none is close."""
    spelling = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), spelling, n=1)
    return f" (did you mean {spelling[close[0]]!r}?)" if close else ""
