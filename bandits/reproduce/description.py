"""What an experiment of the paper consists of, as data: instances, cases, figures, tables.

A *case* is one policy on one kind of instance for one horizon; it is what is simulated, and cases that
figures have in common are simulated once. A figure says which cases it shows and what it reads from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bandits import environments
from bandits.environments import LinearEnvironment

AUTHORS, TEXT, SHARED, IDENTICAL, MOVIELENS = (
    "authors' instance",
    "instance of the text",
    "shared parameters",
    "identical clients",
    "MovieLens-100K",
)
"""Kinds of instances; the first two are readings of the same experiment of the paper."""

REGRET, SPARSITY, ITERATIONS = "regret", "sparsity", "iterations"
"""What a figure reads: regret over time, or a column of the phases over their index."""


@dataclass(frozen=True)
class Instance:
    """A kind of environment and its sizes; every trial draws one of its own."""

    kind: str
    clients: int = 100
    arms: int = 10
    dim: int = 3

    def environment(self, seed: int, ratings: Path | None = None) -> LinearEnvironment:
        """The instance of a trial; ``ratings`` is u.data of MovieLens-100K, which no other kind needs."""
        sizes = (self.clients, self.arms, self.dim, seed)
        if self.kind == MOVIELENS:
            if ratings is None:
                raise ValueError("ratings must be the path of u.data of MovieLens-100K; got none.")
            return environments.movielens(ratings, *sizes)
        if self.kind == SHARED:
            return environments.synthetic(*sizes, shared=True)
        make = {
            AUTHORS: environments.authors,
            TEXT: environments.synthetic,
            IDENTICAL: environments.identical,
        }
        return make[self.kind](*sizes)

    @property
    def sizes(self) -> str:
        """For captions."""
        return f"M = {self.clients}, K = {self.arms}, d = {self.dim}"


@dataclass(frozen=True)
class Case:
    """One policy, by its label in the catalogue, on one kind of instance."""

    instance: Instance
    policy: str
    horizon: int

    @property
    def slug(self) -> str:
        """A file name that tells cases apart."""
        i = self.instance
        words = f"{i.kind} M{i.clients} K{i.arms} d{i.dim} T{self.horizon} {self.policy}"
        return re.sub(r"[^A-Za-z0-9]+", "-", words.replace("'", "")).strip("-").lower()

    def within(self, longest: int | None) -> Case:
        """This case with a horizon of at most ``longest``."""
        return self if longest is None else replace(self, horizon=min(self.horizon, longest))


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
    """Whether to add a panel with the theorems' bounds, for the first panel's cases that have one."""

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


Experiment = Figure | Table


def comparison(instance: Instance, policies: tuple[str, ...], horizon: int) -> Panel:
    """Several policies on one kind of instance."""
    return Panel(
        f"{instance.kind}, {instance.sizes}", {label: Case(instance, label, horizon) for label in policies}
    )


def sweep(base: Instance, over: str, values: tuple[int, ...], policy: str, horizon: int) -> Panel:
    """One policy on instances that differ in one size: ``over`` is "clients", "arms" or "dim"."""
    letter = {"clients": "M", "arms": "K", "dim": "d"}[over]
    instances = [Instance(**(asdict(base) | {over: value})) for value in values]
    fixed = ", ".join(part for part in base.sizes.split(", ") if not part.startswith(letter))
    return Panel(
        f"{base.kind}, {fixed}",
        {
            f"{letter} = {value}": Case(instance, policy, horizon)
            for value, instance in zip(values, instances, strict=True)
        },
    )
