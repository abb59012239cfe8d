"""Instances of every structure: which candidates share groups and blocks, and what makes them hard."""

import importlib.util
from pathlib import Path

import numpy as np

import optdesign as od

_path = Path(__file__).parents[2] / "benchmarks" / "instances.py"
_spec = importlib.util.spec_from_file_location("instances", _path)
instances = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(instances)


def mixed(seed: int = 0) -> od.DesignProblem:
    """Every group has several candidates in one block and one or two in another."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(6), 5)
    blocks = np.tile([0, 0, 0, 1, 2], 6)
    blocks[groups % 2 == 1] = np.tile([1, 1, 2, 2, 2], 3)
    return od.DesignProblem(rng.normal(size=(30, 3)), groups, blocks, rng.uniform(0.3, 3, size=6))


def _structures() -> dict[str, od.DesignProblem]:
    rng = np.random.default_rng(1)
    grid = rng.normal(size=(8, 4, 3))
    flat = grid.reshape(32, 3)
    make = od.DesignProblem
    unequal = 10.0 ** np.linspace(-3, 3, 8)
    tiny = np.ones(8)
    tiny[::2] = 1e-6
    twice = np.concatenate([grid, grid, grid[:, :1]], axis=1)
    zeros = grid.copy()
    zeros[0] = zeros[1, :3] = zeros[:, 3] = 0.0
    angle = np.pi * np.arange(12) / 12
    frame = np.column_stack([np.cos(angle), np.sin(angle)])
    wide = flat * np.logspace(0, -6, 3)
    rotated = wide @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    near = np.abs(rng.normal(size=(20, 1, 3)))
    out = {
        "classical": make(flat),
        "disjoint": make.disjoint(grid),
        "shared": make.shared(grid),
        "mixed": mixed(),
        "disjoint, unequal budgets": make.disjoint(grid, budgets=unequal),
        "shared, unequal budgets": make.shared(grid, budgets=unequal),
        "disjoint, tiny budgets": make.disjoint(grid, budgets=tiny),
        "shared, tiny budgets": make.shared(grid, budgets=tiny),
        "classical, tiny budget": make(flat, budgets=1e-6),
        "disjoint, duplicates": make(
            twice.reshape(-1, 3), np.repeat(np.arange(8), 9), np.tile([0, 1, 2, 3, 0, 1, 2, 3, 0], 8)
        ),
        "shared, duplicates": make.shared(twice),
        "classical, duplicates": make(np.concatenate([flat, flat, flat[:5]])),
        "tight frame": make(frame),
        "tight frame, perturbed": make(frame + 1e-3 * rng.normal(size=frame.shape)),
        "tight frames of clients": make.shared(np.tile(frame, (5, 1, 1)), budgets=[1, 2, 3, 4, 5]),
        "same vector for all arms": make.disjoint(np.repeat(near, 4, axis=1)),
        "same vector for all arms, shared": make.shared(np.repeat(near, 4, axis=1)),
        "same vector, perturbed": make.disjoint(near + 1e-3 * rng.normal(size=(20, 4, 3))),
        "same vector, perturbed, shared": make.shared(near + 1e-3 * rng.normal(size=(20, 4, 3))),
        "condition 1e6": make(wide),
        "condition 1e6, rotated": make(rotated),
        "condition 1e6, disjoint": make.disjoint(rotated.reshape(8, 4, 3)),
        "condition 1e6, shared": make.shared(rotated.reshape(8, 4, 3)),
        "one candidate a group": make(flat, groups=np.arange(32), parameter_blocks=np.arange(32) % 2),
        "some groups of one candidate": make(
            flat, groups=np.minimum(np.arange(32), 20), parameter_blocks=np.arange(32) % 3
        ),
        "zero vectors, disjoint": make.disjoint(zeros),
        "zero vectors, shared": make.shared(zeros),
        "rank deficient, disjoint": make.disjoint(grid[..., :2] @ rng.normal(size=(2, 4))),
        "one dimension": make.disjoint(grid[..., :1]),
        "fewer candidates than dimensions": make(rng.normal(size=(3, 6))),
    }  # fmt: skip
    for family in instances.FAMILIES:
        for kind in ("disjoint", "shared"):
            x = instances.features(family, 30, 10, 3)
            out[f"{family}, {kind}"] = getattr(make, kind)(x)
    return out


STRUCTURES = _structures()
