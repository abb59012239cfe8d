"""Experiment files: one environment and several policies in TOML.

``EXAMPLE`` is a complete, commented file; ``bandits example`` prints it.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits import environments
from bandits.cli.options import Makers, build, check_keys, checked, declared, named, suggestion
from bandits.environments.linear import LinearEnvironment
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
from bandits.theory import schedules
from bandits.trials.trial import Policy

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

# The kind of an environment or a policy may also be a class of your own, "module:Class", beside this file.

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

# Further kinds: LinUCB, LinTS, DisLinUCB, FedUCB (epsilon = 1.0 for privacy), DELB where all clients have
# the same features, and LongestFeature, a control that does not learn. Policies that estimate parameters
# take parameters = "shared" if all arms have equal parameters.
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
    "LinUCB": LinUCB,
    "LinTS": LinTS,
    "DELB": DELB,
    "DisLinUCB": DisLinUCB,
    "FedUCB": FedUCB,
    "LongestFeature": LongestFeature,
}
SCHEDULES: dict[str, Callable[..., schedules.Schedule]] = {
    "exponential": schedules.Exponential,
    "uniform": schedules.Uniform,
    "greedy": schedules.Greedy,
    "lengths": schedules.Lengths,
}
TOP = {"title": str, "horizon": int, "trials": int, "seed": int, "environment": Any, "policy": list[Any]}
"""Keys of a file, and their types."""

TOLD = ("noise", "scale", "ell", "L", "s")
"""Keys of every environment: the noise, and the bounds that policies may use."""


@dataclass(frozen=True)
class Experiment:
    """The experiment of a configuration file."""

    env: LinearEnvironment
    policies: dict[str, Policy]
    """By label, in the order of the file."""
    horizon: int
    trials: int
    seed: int
    title: str = ""
    """Title of the plot."""


def read(path: str | Path, *, horizon: int | None = None, trials: int | None = None) -> Experiment:
    """Read a configuration file; paths and modules in it are relative to it.

    Another horizon or number of trials takes the place of that in the file, also for environments that depend
    on the horizon.
    """
    file = Path(path)
    other = {key: value for key, value in (("horizon", horizon), ("trials", trials)) if value is not None}
    try:
        return parse(tomllib.loads(file.read_text(encoding="utf-8")) | other, file.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} must be TOML; {error}. See: bandits example") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def parse(data: Mapping[str, Any], folder: Path = Path()) -> Experiment:
    """Build the experiment that a parsed file describes."""
    check_keys(data, list(TOP), "the file")
    for key in ("horizon", "environment", "policy"):
        if key not in data:
            raise ValueError(f"the file must have {key}; it has {', '.join(data) or 'nothing'}.")
    top = {key: checked(key, data[key], kind, "the file") for key, kind in TOP.items() if key in data}
    env = _environment(_table(top.pop("environment"), "environment"), folder, top["horizon"])
    policies: dict[str, Policy] = {}
    if not data["policy"]:
        raise ValueError("policy must have at least one entry; got none. See: bandits example")
    for entry in top.pop("policy"):
        options = _table(entry, "policy")
        label = options.pop("label", None)
        policy = _policy(options, folder)
        label = policy.name if label is None else checked("label", label, str, "policy")
        if label in policies:
            raise ValueError(f"policy labels must differ; {label!r} occurs twice. Give one a label.")
        policies[label] = policy
    return Experiment(env, policies, **({"trials": 10, "seed": 0} | top))


def _environment(options: dict[str, Any], folder: Path, horizon: int) -> LinearEnvironment:
    kind, make = _kind(options, GENERATORS | {"file": _from_file}, "environment", folder)
    where = f"environment {kind}"
    allowed = inspect.signature(make).parameters
    if "horizon" in allowed:
        options.setdefault("horizon", horizon)
    if ":" in kind:
        env = build(make, options, where, makers(folder))
        if not isinstance(env, LinearEnvironment):
            raise ValueError(f"{where} must make a LinearEnvironment; it made a {type(env).__name__}.")
        return env
    told = {key: options[key] for key in TOLD if key in options}
    rest = {key: value for key, value in options.items() if key not in TOLD or key in allowed}
    check_keys(rest, [*allowed, *TOLD], where)
    known = inspect.signature(LinearEnvironment).parameters
    told = {
        key: checked(key, value, declared(known[key].annotation, LinearEnvironment), where)
        for key, value in told.items()
    }
    env = build(partial(make, folder) if kind == "file" else make, rest, where, makers(folder))
    # A scale alone rescales the Gaussian noise that the generators have.
    law = "gaussian" if "scale" in told else env.noise
    keep: dict[str, Any] = {"noise": law, "ell": env.ell, "L": env.L, "s": env.s}
    try:
        return LinearEnvironment(env.features, env.parameters, **(keep | told))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _from_file(folder: Path, path: str) -> LinearEnvironment:
    """Return the environment with the features and parameters of a .npz file."""
    file = folder / path
    with file.open("rb") as handle:
        # Files that are not archives raise errors of zipfile, zlib, tokenize and NumPy.
        try:
            with np.load(handle) as data:
                features, parameters = data["features"], data["parameters"]
        except Exception:
            raise ValueError(
                f"path must be an .npz file with the arrays of numbers features and parameters; {file} is "
                "not. Write it with numpy.savez."
            ) from None
    return LinearEnvironment(features, parameters)


def _policy(options: dict[str, Any], folder: Path) -> Policy:
    kind, make = _kind(options, POLICIES, "policy", folder)
    policy = build(make, options, f"policy {kind}", makers(folder))
    if not (hasattr(policy, "play") and hasattr(policy, "name")):
        raise ValueError(
            f"policy {kind} must have a name and a method play; {type(policy).__name__} has not."
        )
    return policy


def _schedule(value: dict[str, Any], where: str) -> schedules.Schedule:
    options = dict(value)
    kind, make = _kind(options, SCHEDULES, where, None)
    return build(make, options, f"{where} ({kind})", {})


def makers(folder: Path) -> Makers:
    """Return makers of options that are tables, and of functions, whose modules may be in the folder."""
    return {schedules.Schedule: _schedule, Callable: partial(named, folder=folder)}


def _kind(
    options: dict[str, Any], known: Mapping[str, Callable[..., Any]], where: str, folder: Path | None
) -> tuple[str, Callable[..., Any]]:
    """Remove the kind from the options; return it and its maker, known or a user's "module:Class"."""
    kind = options.pop("kind", None)
    if folder is not None and isinstance(kind, str) and ":" in kind:
        return kind, named(kind, f"kind of {where}", folder)
    if not isinstance(kind, str) or kind not in known:
        own = "" if folder is None else ', or "module:Class"'
        meant = suggestion(str(kind), known)
        raise ValueError(f"kind of {where} must be one of {', '.join(known)}{own}; got {kind!r}{meant}.")
    return kind, known[kind]


def _table(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} must be a table with a kind; got {value!r}. See: bandits example")
    return dict(value)
