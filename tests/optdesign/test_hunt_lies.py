"""The hunt catches false claims: each test changes an honest answer into a false one."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hunt import efficiency, ellipsoid, exact, main_effects, rank, solve, sparsify, verify, where
from hunt import round as rounding
from hunt.claims import Judgement
from hunt.truth import Truth, instance

import optdesign as od

Answer = Callable[..., Any]


def line(runs: float = 4) -> exact.Instance:
    """Candidates (1, t), t = -1, 0, 1, 2 in one group."""
    return instance(np.column_stack([np.ones(4), [-1, 0, 1, 2]]), budgets=runs)


@pytest.fixture
def lie(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace parts of what a function of the package returns."""

    def install(name: str, change: Callable[[Any], Any] | None = None, **parts: Any) -> None:
        honest: Answer = getattr(od, name)

        def answer(*args: Any, **options: Any) -> Any:
            out = honest(*args, **options)
            return change(out) if change else dataclasses.replace(out, **parts)

        monkeypatch.setattr(od, name, answer)

    return install


@pytest.mark.parametrize(
    ("false", "caught"),
    [
        ({"gap": 1e-12, "relative_gap": 5e-13, "g_value": 2 + 1e-12}, "claimed, truly"),
        ({"efficiency": 0.9999999}, "is more than D / G"),
    ],
)
def test_solve(false: dict[str, float], caught: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The design is off the optimum by 1e-4, and its certificate denies that."""
    problem = od.DesignProblem(np.eye(2))
    w = np.array([0.501, 0.499])
    honest = dataclasses.replace(od.solve(problem), weights=w, certificate=od.certify(problem, w))
    result = honest
    monkeypatch.setattr(od, "solve", lambda *_, **__: result)
    assert "converged at a gap of" in solve.examine(solve.Prey(problem), 1e-6, "auto").wrong
    result = dataclasses.replace(honest, status=od.Status.STALLED)
    assert solve.examine(solve.Prey(problem), 1e-6, "auto").wrong == ""
    result = dataclasses.replace(result, certificate=dataclasses.replace(honest.certificate, **false))
    assert caught in solve.examine(solve.Prey(problem), 1e-6, "auto").wrong


def test_solve_wrong_rank_without_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]])
    assert solve.examine(solve.Prey(problem), 1e-6, "auto").wrong == ""
    monkeypatch.setattr(od.DesignProblem, "rank_note", "")
    assert "and no note" in solve.examine(solve.Prey(problem), 1e-6, "auto").wrong


PLAIN = exact.Options(seed=0, tries=1, time_limit=None)


@pytest.mark.parametrize(
    ("false", "caught"),
    [
        ({"counts": np.array([2, 0, 1, 2])}, "budgets [4.0]"),
        ({"counts": np.array([0, 0, 0, 4])}, "lose rank"),
        ({"rank": 3}, "rank 3, exactly 2"),
        ({"log_det": 3.0}, "log det 3.0, truly"),
        ({"counts": np.array([1, 1, 1, 1]), "log_det": math.log(20)}, "efficiency"),
        (
            {"counts": np.array([1, 1, 0, 2]), "log_det": math.log(27), "efficiency": 0.5,
             "status": od.RunStatus.BOUND},
            "nothing left to gain claimed",
        ),
    ],
)  # fmt: skip
def test_exact(false: dict[str, Any], caught: str, lie: Callable[..., None]) -> None:
    assert exact.examine(line(), PLAIN).wrong == ""
    lie("exact", **false)
    assert caught in exact.examine(line(), PLAIN).wrong


def test_exact_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exact.examine(line(1), PLAIN) == exact.Found("refused")

    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("budgets must be enough runs to keep the rank")

    monkeypatch.setattr(od, "exact", refuse)
    assert "refused though rank 2 of 2 is possible" in exact.examine(line(), PLAIN).wrong


def test_exact_best_counts_by_enumeration(lie: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """An uneven split of 5 runs is worse than the even one, which enumeration finds."""
    lie(
        "exact",
        counts=np.array([1, 0, 0, 4]),
        log_det=math.log(36),
        efficiency=0.1,
        status=od.RunStatus.BOUND,
    )
    monkeypatch.setattr(exact, "judge_efficiency", lambda *_: Judgement("", False, 0.0))
    assert "other counts gain" in exact.examine(line(5), PLAIN).wrong


def test_exact_late(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = od.exact

    def slow(*args: Any, **options: Any) -> od.Runs:
        began = exact.Stopwatch()
        total = 0.0
        while total < 0.2:
            with began:
                sum(range(10**5))
            total += began.seconds
        return honest(*args, **options)

    monkeypatch.setattr(od, "exact", slow)
    assert exact.examine(line(), PLAIN._replace(time_limit=0.05)).overrun > 0.1


def rounded(method: str = "efficient", exchange: bool = False) -> str:
    options = rounding.Options(method, exchange, 1e-9)
    return rounding.examine(line(7), options, np.random.default_rng(0)).wrong


@pytest.mark.parametrize(
    ("method", "counts", "caught"),
    [
        ("efficient", [1, 0, 0, 6], "better ones exist"),
        ("efficient", [3, 0, 0, 3], "budgets [7.0]"),
        ("ceiling", [3, 0, 0, 4], "rounded up to 3"),
        ("ceiling", [5, 0, 0, 4], "rounded up to 5"),
    ],
)
def test_round(method: str, counts: list[int], caught: str, lie: Callable[..., None]) -> None:
    assert rounded(method) == ""
    lie("round", counts=np.array(counts))
    assert caught in rounded(method)


def test_round_exchanged(lie: Callable[..., None]) -> None:
    """Runs at t = 0 are claimed to be at a local optimum."""
    assert rounded(exchange=True) == ""
    counts = np.array([3, 1, 0, 3])
    problem = line(7)
    log_det = float(Truth(problem).measure(counts).log_det.mid())
    lie("round", counts=counts, log_det=log_det, efficiency=0.5)
    assert "another exchange gains" in rounded(exchange=True)


def thinned(cost: np.ndarray | None = None) -> str:
    angle = 2 * np.pi * np.arange(12) / 12
    circle = instance(np.column_stack([np.cos(angle), np.sin(angle)]))
    options = sparsify.Options(None, cost)
    return sparsify.examine(circle, options, np.random.default_rng(1)).wrong


def test_sparsify(monkeypatch: pytest.MonkeyPatch, lie: Callable[..., None]) -> None:
    assert thinned() == ""
    honest = od.sparsify
    with monkeypatch.context() as patch:
        patch.setattr(od, "sparsify", lambda result, **_: result)
        assert "and no note" in thinned()
        patch.setattr(od, "sparsify", lambda result, cost: honest(result, cost=-cost))
        assert "the given design costs" in thinned(np.arange(12.0) ** 2)
    lie(
        "sparsify",
        lambda s: dataclasses.replace(s, weights=np.where(np.arange(12) == s.support[0], 1.0, 0.0)),
    )
    assert "lose rank" in thinned()


def test_sparsify_cheaper_witness() -> None:
    """The dearest design with the same information is claimed to be the cheapest, of itself."""
    angle = 2 * np.pi * np.arange(12) / 12
    problem = instance(np.column_stack([np.cos(angle), np.sin(angle)]))
    cost = np.arange(12.0) ** 2
    dear = od.sparsify(od.solve(od.DesignProblem(*problem)), cost=-cost).weights
    assert "witness 0 costs" in sparsify.examine_cost(Truth(problem), dear, dear, cost).wrong


def test_sparsify_information(lie: Callable[..., None]) -> None:
    def moved(s: od.DesignResult) -> od.DesignResult:
        w = s.weights.copy()
        a, b = s.support[:2]
        w[a], w[b] = w[a] + 1e-6, w[b] - 1e-6
        return dataclasses.replace(s, weights=w)

    lie("sparsify", moved)
    assert "the information changes by" in thinned()


def test_sparsify_budgets(lie: Callable[..., None]) -> None:
    lie("sparsify", lambda s: dataclasses.replace(s, weights=s.weights * 1.001))
    assert "budgets" in thinned()


def test_sparsify_certificate(lie: Callable[..., None]) -> None:
    def boast(s: od.DesignResult) -> od.DesignResult:
        return dataclasses.replace(s, certificate=dataclasses.replace(s.certificate, efficiency=1.0))

    lie("sparsify", boast)
    assert "more than D / G" in thinned()


MODEL = main_effects.Model(
    {"a": [-1, 0, 1], "b": ["x", "y", "z"]}, 7, 2, {"seed": 0, "tries": 1, "time_limit": None}
)


@pytest.mark.parametrize(
    ("false", "caught"),
    [
        ({"efficiency": 1.0}, "efficiency 1.0, truly at most"),
        ({"status": od.RunStatus.BOUND}, "nothing left to gain claimed"),
        ({"log_det": -1.0}, "log det -1.0"),
        ({"log_det": -math.inf}, "log det -inf"),
        ({"rank": 4}, "rank 4, exactly 5"),
    ],
)
def test_main_effects(false: dict[str, Any], caught: str, lie: Callable[..., None]) -> None:
    assert main_effects.examine(MODEL).wrong == ""
    lie("exact", **false)
    assert caught in main_effects.examine(MODEL).wrong


def test_main_effects_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("Matrix is not positive definite")

    monkeypatch.setattr(od, "exact", refuse)
    assert "refused" in main_effects.examine(MODEL).wrong


POINTS = ellipsoid.Points(np.random.default_rng(0).normal(size=(12, 3)), False, 1e-9)


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        (lambda e: dataclasses.replace(e, factor=e.factor * (1 + 1e-9)), "outside by"),
        (lambda e: dataclasses.replace(e, factor=e.factor * 0.9, volume_ratio=1.3), "volume ratio 1.3"),
    ],
)
def test_ellipsoid(change: Callable[[Any], Any], caught: str, lie: Callable[..., None]) -> None:
    assert ellipsoid.examine(POINTS).wrong == ""
    lie("min_volume_ellipsoid", change)
    assert caught in ellipsoid.examine(POINTS).wrong


def test_ellipsoid_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(od.Ellipsoid, "volume", 1.0)
        assert "volume 1.0, truly" in ellipsoid.examine(POINTS).wrong
    monkeypatch.setattr(od.Ellipsoid, "log_volume", 0.0)
    assert "log volume 0.0, truly" in ellipsoid.examine(POINTS).wrong


def test_ellipsoid_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("points must span all 3 dimensions")

    monkeypatch.setattr(od, "min_volume_ellipsoid", refuse)
    assert "refused points of width" in ellipsoid.examine(POINTS).wrong
    flat = POINTS.x @ np.diag([1.0, 1.0, 0.0])
    assert ellipsoid.examine(POINTS._replace(x=flat)).wrong == ""


def bounded(weights: list[float]) -> str:
    return efficiency.examine(line(), np.array(weights), {"tol": 1e-9}).wrong


def test_efficiency(lie: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounded([1.0, 1.0, 1.0, 1.0]) == bounded([0.0, 0.0, 4.0, 0.0]) == ""
    with monkeypatch.context() as patch:
        patch.setattr(od, "efficiency", lambda *_, **__: 0.9)
        assert "efficiency 0.9, truly at most" in bounded([1.0, 1.0, 1.0, 1.0])
        assert "lose rank" in bounded([0.0, 0.0, 4.0, 0.0])
    lie("efficiency", lambda e: e + 1e-6)
    assert "truly at most" in bounded([1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("part", ["gap", "relative_gap", "g_value", "log_det", "variances"])
def test_certificate(part: str, lie: Callable[..., None]) -> None:
    lie("certify", lambda c: dataclasses.replace(c, **{part: getattr(c, part) * (1 - 1e-5)}))
    assert part.replace("_value", "").replace("_", " ").strip("s") in bounded([1.0, 1.0, 1.0, 1.0]).lower()


def test_where(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = where.drawn("decimals", np.random.default_rng(3))
    assert where.examine(condition).wrong == ""
    kept = condition.kept
    assert "keeps the row" in where.examine(condition._replace(kept=kept[1:])).wrong
    assert "drops the row" in where.examine(condition._replace(kept=list(range(where.ROWS)))).wrong

    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("where must leave some settings; it leaves none of 12. Relax the condition.")

    monkeypatch.setattr(od, "candidates", refuse)
    assert "leaves none" in where.examine(condition).wrong


def test_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    design = rank.mixture(np.random.default_rng(0))
    assert rank.examine(design).wrong == ""
    monkeypatch.setattr(od.DesignProblem, "rank", 1)
    assert "rank 1, and" in rank.examine(design).wrong


def test_verify(lie: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    problem = line()
    result = od.solve(od.DesignProblem(*problem))
    false = verify.log_det(result, np.random.default_rng(0))
    truth = Truth(problem)
    assert verify.examine(truth, result).wrong == verify.examine(truth, false, "log_det").wrong == ""
    with monkeypatch.context() as patch:
        patch.setattr(od, "verify", lambda *_, **__: od.Verification("agrees", ""))
        assert "agrees with a false claim: log_det" in verify.examine(truth, false, "log_det").wrong
    lie("verify", verdict="differs")
    assert "differs though every claim is true" in verify.examine(truth, result).wrong
