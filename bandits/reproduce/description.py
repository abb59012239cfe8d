"""Experiments of the paper as data: instances, cases, figures, tables.

A *case* is one policy on one kind of instance for one horizon; it is what is simulated, and cases that
figures have in common are simulated once. A figure lists its cases and the quantity that it reads from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bandits import environments
from bandits.environments.linear import LinearEnvironment

AUTHORS, TEXT, SHARED, IDENTICAL, MOVIELENS, MOVIELENS_PLAIN, LOWER_FIRST, LOWER_SECOND = (
    "authors' instance",
    "instance of the text",
    "shared parameters",
    "identical clients",
    "MovieLens-100K, centred",
    "MovieLens-100K, plain",
    "lower bound, first instance",
    "lower bound, second instance",
)
"""Kinds of instances. The first two are readings of the same experiment of the paper; the last two are the
pair in the proof of the lower bound, of which a collinearly-dependent policy cannot do well on both."""

RATED = (MOVIELENS, MOVIELENS_PLAIN)
"""Kinds that need ratings: two readings of how the paper predicts the missing ones."""

LETTERS = {"clients": "M", "arms": "K", "dim": "d"}
"""The paper's letters for the sizes of an instance."""

REGRET, SPARSITY, ITERATIONS = "regret", "sparsity", "iterations"
"""Quantities of figures: regret over time, or a column of the phases over their index."""


@dataclass(frozen=True)
class Instance:
    """A kind of environment and its sizes; every trial draws one of its own, if there is anything to draw."""

    kind: str
    clients: int = 100
    arms: int = 10
    dim: int = 3

    def environment(self, seed: int, horizon: int, ratings: Path | None = None) -> LinearEnvironment:
        """Return the instance of a trial; ``ratings`` is u.data of MovieLens-100K, for that kind only."""
        sizes = (self.clients, self.arms, self.dim, seed)
        if self.kind in (LOWER_FIRST, LOWER_SECOND):
            best = np.random.default_rng(seed).integers(1, self.arms, self.dim)
            return environments.lower_bound(*sizes[:3], horizon, best if self.kind == LOWER_SECOND else None)
        if self.kind in RATED:
            if ratings is None:
                raise ValueError("ratings must be the path of u.data of MovieLens-100K; got none.")
            return environments.movielens(ratings, *sizes, centred=self.kind == MOVIELENS)
        if self.kind == SHARED:
            return environments.synthetic(*sizes, shared=True)
        make = {
            AUTHORS: environments.authors,
            TEXT: environments.synthetic,
            IDENTICAL: environments.identical,
        }
        return make[self.kind](*sizes)

    @property
    def drawn(self) -> bool:
        """Return True if trials have different instances."""
        return self.kind != LOWER_FIRST

    @property
    def sizes(self) -> str:
        """Return M, K and d for captions."""
        return f"M = {self.clients}, K = {self.arms}, d = {self.dim}"


@dataclass(frozen=True)
class Case:
    """One policy, by its label in the catalogue, on one kind of instance."""

    instance: Instance
    policy: str
    horizon: int
    trials: int = 10

    @property
    def slug(self) -> str:
        """File name that identifies a case; trials of the same case have it in common."""
        i = self.instance
        words = f"{i.kind} M{i.clients} K{i.arms} d{i.dim} T{self.horizon} {self.policy}"
        return re.sub(r"[^A-Za-z0-9]+", "-", words.replace("'", "")).strip("-").lower()


@dataclass(frozen=True)
class Panel:
    """One pair of axes: labelled cases."""

    title: str
    curves: Mapping[str, Case]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    title: str
    quantity: str
    panels: tuple[Panel, ...]
    bounds: bool = False
    """True for another panel with the theorems' bounds, for the cases of the first panel that have one."""
    logarithmic: bool = False
    """True if both axes are, for curves of very different heights."""

    @property
    def cases(self) -> list[Case]:
        """All cases shown."""
        return [case for panel in self.panels for case in panel.curves.values()]


@dataclass(frozen=True)
class Row:
    """A line of a table: a case, beside the orders that the paper states."""

    model: str
    label: str
    case: Case
    regret: str
    communication: str


@dataclass(frozen=True)
class Table:
    """A table of the paper, measured."""

    title: str
    rows: tuple[Row, ...]

    @property
    def cases(self) -> list[Case]:
        """All cases in it."""
        return [row.case for row in self.rows]


@dataclass(frozen=True)
class Scaling:
    """Regret at the horizon over a number that differs between cases."""

    title: str
    number: str
    """Name of the column and of the axis."""
    at: Callable[[Case], int]
    """The number of a case as it was played."""
    curves: Mapping[str, Sequence[Case]]
    reference: str
    """Label of the line for theory."""
    theory: Callable[[Case], float]
    """Regret per client in theory."""
    anchored: bool = False
    """True if theory gives the order only: its line then starts at the first point of the first curve."""

    @property
    def cases(self) -> list[Case]:
        """All cases shown."""
        return [case for curve in self.curves.values() for case in curve]


Experiment = Figure | Table | Scaling


def comparison(instance: Instance, policies: tuple[str, ...], horizon: int) -> Panel:
    """Return a panel of several policies on one kind of instance."""
    return Panel(
        f"{instance.kind}, {instance.sizes}", {label: Case(instance, label, horizon) for label in policies}
    )


def sweep(base: Instance, over: str, values: tuple[int, ...], policy: str, horizon: int) -> Panel:
    """Return a panel of one policy on instances of several sizes; ``over`` is "clients", "arms" or "dim"."""
    letter = LETTERS[over]
    instances = [Instance(**(asdict(base) | {over: value})) for value in values]
    fixed = ", ".join(part for part in base.sizes.split(", ") if not part.startswith(letter))
    return Panel(
        f"{base.kind}, {fixed}",
        {
            f"{letter} = {value}": Case(instance, policy, horizon)
            for value, instance in zip(values, instances, strict=True)
        },
    )
