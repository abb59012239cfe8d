"""A part of the hunt for false certificates; ``make hunt`` does the whole. And proof that it can catch."""

import dataclasses

import hunt
import numpy as np
import pytest

import optdesign as od


@pytest.mark.parametrize("name", hunt.FAMILIES)
def test_no_false_claim(name: str) -> None:
    found = hunt.hunt(name, first=1_000_000, count=60)
    assert [(seed, f.wrong) for seed, f in found if f.wrong] == []
    # A hunt in which nothing is claimed would prove nothing.
    assert sum(f.status == "CONVERGED" for _, f in found) >= 20


@pytest.mark.parametrize("seed", [197, 1382, 1665, 1675])
def test_what_rounding_leaves_no_room_for_is_said(seed: int) -> None:
    """A smaller gap would be needed, and another, until there is none: no target is below zero."""
    ((_, found),) = hunt.hunt("plane_with_small_rows", seed, 1)
    assert found.status in ("CONVERGED", "PRECISION", "STALLED")
    assert not found.wrong


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


@pytest.mark.parametrize(
    ("lie", "caught"),
    [
        ({"gap": 1e-12, "relative_gap": 5e-13, "g_value": 2 + 1e-12}, "claimed, truly"),
        ({"efficiency": 0.9999999}, "is more than D / G"),
    ],
)
def test_a_false_claim_is_caught(lie: dict[str, float], caught: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A design off the optimum by 1e-4, with a certificate that says otherwise."""
    problem = od.DesignProblem(np.eye(2))
    w = np.array([0.501, 0.499])
    honest = dataclasses.replace(od.solve(problem), weights=w, certificate=od.certify(problem, w))
    result = honest

    def solve(*_: object, **__: object) -> od.DesignResult:
        return result

    monkeypatch.setattr(od, "solve", solve)
    claimed_converged = hunt.examine(hunt.Prey(problem), 1e-6, "auto")
    assert "converged at a gap of" in claimed_converged.wrong
    result = dataclasses.replace(honest, status=od.Status.STALLED)
    assert hunt.examine(hunt.Prey(problem), 1e-6, "auto").wrong == ""
    result = dataclasses.replace(result, certificate=dataclasses.replace(honest.certificate, **lie))
    assert caught in hunt.examine(hunt.Prey(problem), 1e-6, "auto").wrong


def test_a_wrong_rank_without_a_note_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]])
    assert hunt.examine(hunt.Prey(problem), 1e-6, "auto").wrong == ""
    monkeypatch.setattr(od.DesignProblem, "rank_note", "")
    assert "and no note" in hunt.examine(hunt.Prey(problem), 1e-6, "auto").wrong
