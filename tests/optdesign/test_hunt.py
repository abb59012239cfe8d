"""A part of the hunt for false claims; ``make hunt`` runs the whole."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hunt import TARGETS
from hunt.pool import Pool, Task

import optdesign as od

CASES = {
    "solve": 60, "exact": 10, "round": 10, "sparsify": 10, "main_effects": 10, "ellipsoid": 20,
    "efficiency": 20, "where": 20, "rank": 20, "verify": 4,
}  # fmt: skip
"""Cases of every family."""

CLAIMS = {
    "exact": {"BOUND", "TRIES"}, "round": {"ROUNDED", "EXCHANGED"}, "sparsify": {"cheapest", "CONVERGED"},
    "main_effects": {"BOUND", "TRIES"}, "where": {"kept"}, "efficiency": {"certified"},
    "verify": {"agrees", "differs"},
}  # fmt: skip
"""Outcomes that claim something; of other targets it is CONVERGED."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, 60.0, tuple(f"hunt.{name}" for name in TARGETS)) as processes:
        yield processes


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_no_false_claim(target: str, pool: Pool) -> None:
    families = list(import_module(f"hunt.{target}").FAMILIES)
    cases = list(pool.run([Task(f"hunt.{target}", name, 1_000_000, CASES[target]) for name in families]))
    assert [(c.family, c.seed, c.found.wrong) for c in cases if c.found.wrong] == []
    # A hunt in which little is claimed or decided would prove nothing.
    assert len(cases) == CASES[target] * len(families)
    assert sum(c.found.status in CLAIMS.get(target, {"CONVERGED"}) for c in cases) >= len(cases) // 3
    assert sum(c.found.undecided for c in cases) <= len(cases) // 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [197, 1382, 1665, 1675])
def test_target_of_the_gap_is_not_below_zero(seed: int, pool: Pool) -> None:
    """Round-off leaves no room for a smaller gap here, so the solver must not ask for one."""
    (case,) = pool.run([Task("hunt.solve", "plane_with_small_rows", seed, 1)])
    assert case.found.status in ("CONVERGED", "PRECISION", "STALLED")
    assert not case.found.wrong


@pytest.mark.slow
def test_column_scales_change_nothing() -> None:
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(6, 40)), int(rng.integers(2, 6))
        x = rng.normal(size=(n, d))
        groups = np.unique(rng.integers(0, 3, size=n), return_inverse=True)[1]
        labels = [(), (groups,), (groups, rng.integers(0, 2, size=n))][seed % 3]
        units = 10.0 ** rng.uniform(-50, 50, size=d)
        plain, scaled = od.DesignProblem(x, *labels), od.DesignProblem(x * units, *labels)
        assert plain.ranks.tolist() == scaled.ranks.tolist()
        a, b = od.solve(plain, tol=1e-12), od.solve(scaled, tol=1e-12)
        np.testing.assert_allclose(a.weights, b.weights, rtol=0, atol=1e-6)


TARGET = """
import time
from hunt.claims import Found
from numba.core import event
WARM_UP, FAMILIES = "fast", ["fast", "endless", "exit", "error", "compiles"]

def case(family, seed):
    for _ in range(4 * (family == "compiles")):
        time.sleep(0.4)
        with event.trigger_event("numba:compile"):
            pass
    while family == "endless" and seed == 1:
        time.sleep(1)
    if family == "exit" and seed == 1:
        raise SystemExit
    if family == "error":
        raise ZeroDivisionError("of the function under test")
    return Found("done")
"""


def test_no_answer_is_a_false_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls without an end, the end of a process and exceptions are false claims; compilation is not."""
    (tmp_path / "stuck.py").write_text(TARGET)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Pool(2, 1.0, ("stuck",)) as pool:
        tasks = [Task("stuck", family, 0, 3) for family in ("fast", "endless", "exit", "error")]
        tasks.append(Task("stuck", "compiles", 0, 1))
        cases = {(c.family, c.seed): c.found for c in pool.run(tasks)}
    assert len(cases) == 13
    assert cases["endless", 1].wrong == "no answer within 1 s"
    assert cases["exit", 1].wrong == "the process ended"
    assert "ZeroDivisionError: of the function under test" in cases["error", 2].wrong
    assert [key for key, found in cases.items() if not found.wrong] == [
        key for key in cases if key[0] != "error" and key not in (("endless", 1), ("exit", 1))
    ]


@pytest.mark.parametrize(
    ("target", "seed"), [("sparsify", 900028), pytest.param("round", 900060, marks=pytest.mark.slow)]
)
def test_nearly_singular_weights_are_certified_beyond_the_accuracy_of_exchanges(
    target: str, seed: int, pool: Pool
) -> None:
    """Their certificate uses coordinates of its own, which exchanges and sparse designs must not assume."""
    (case,) = pool.run([Task(f"hunt.{target}", "plane_with_small_rows", seed, 1)])
    assert not case.found.wrong
