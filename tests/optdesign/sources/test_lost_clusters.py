"""Dask on a LocalCluster: memory limits, limits of time, interrupts, lost clusters, and many problems."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import optdesign as od
from optdesign.problem.large import LargeProblem
from optdesign.sources.engine import LostEngineError
from optdesign.sources.partitions import Partitions

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def normal(rows: int, chunk: int = 100_000) -> Any:
    import dask.array

    return dask.array.random.default_rng(0).normal(size=(rows, 5), chunks=(chunk, 5))


@pytest.fixture
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="600MB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def memory_of(text: str) -> int:
    """Return a peak of this process in bytes: VmHWM."""
    from pathlib import Path

    return int(Path("/proc/self/status").read_text().split(f"{text}:")[1].split()[0]) * 1024


def test_a_collection_larger_than_the_memory_of_the_workers(client: Any) -> None:
    rows = 40_000_000
    collection = normal(rows, 500_000)
    assert collection.nbytes > sum(w["memory_limit"] for w in client.scheduler_info()["workers"].values())
    pids = client.run(os.getpid)
    before = memory_of("VmHWM")
    result = od.solve(od.DesignProblem(collection))
    assert result.converged
    assert memory_of("VmHWM") - before < collection.nbytes / 8
    assert client.run(os.getpid) == pids  # no worker was restarted for its memory


def test_shards_are_few_and_what_moves_is_counted(client: Any) -> None:
    problem = od.DesignProblem(normal(40_000, 100))
    assert isinstance(problem, LargeProblem)
    engine: Any = problem.engine
    assert len(engine.partitions.parts) == 400
    submitted: list[Any] = []
    submit = client.submit
    client.submit = lambda *args, **options: submitted.append(args) or submit(*args, **options)
    result = od.solve(problem)
    client.submit = submit
    assert len(submitted) == result.iterations * (2 * Partitions.shards + 2)
    k = 16 * problem.support_bound
    for moved in engine.moved[-result.iterations :]:
        assert moved.workers == 2
        assert moved.arguments + moved.results <= 2 * (16 + k * (8 * 5 + 24)) + 20_000


@pytest.mark.usefixtures("client")
def test_persisted_collections_and_shared_tasks() -> None:
    x = normal(20_000, 2000)
    alone = od.solve(od.DesignProblem(x))
    shuffled = x[np.argsort(np.sin(np.arange(20_000)))]
    for collection in (x.persist(), shuffled):
        together = od.solve(od.DesignProblem(collection))
        np.testing.assert_allclose(together.log_det, alone.log_det, atol=together.gap + alone.gap + 1e-9)
    assert od.solve(od.DesignProblem(x.persist())).support_weights.tolist() == alone.support_weights.tolist()


def slow(part: np.ndarray) -> np.ndarray:
    time.sleep(0.5)
    return part


@pytest.mark.usefixtures("client")
def test_limits_and_interrupts_are_answered_in_a_pass() -> None:
    problem = od.DesignProblem(normal(40_000, 2000).map_blocks(slow))  # a pass takes 5 s
    began = time.monotonic()
    result = od.solve(problem, time_limit=6.0, tol=1e-12)
    assert result.status is od.Status.TIME_LIMIT
    assert time.monotonic() - began < 14.0
    timer = threading.Timer(8.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    result = od.solve(problem, tol=1e-12)
    assert result.status is od.Status.INTERRUPTED
    assert time.monotonic() - began < 10.0
    assert np.isfinite(result.gap)


@pytest.mark.parametrize("what", ["workers", "scheduler"])
def test_a_lost_cluster_gives_the_certified_weights_so_far(
    client: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Partitions, "patience", 3.0)
    problem = od.DesignProblem(normal(40_000, 2000))
    wait, passes = Partitions._wait, [0]

    def losing(partitions: Any, *args: Any) -> None:
        passes[0] += 1
        if passes[0] == 2:
            client.cluster.scale(0) if what == "workers" else client.cluster.close(timeout=5)
        wait(partitions, *args)

    monkeypatch.setattr(Partitions, "_wait", losing)
    with pytest.raises(LostEngineError, match="the cluster of Dask") as caught:
        od.solve(problem, tol=1e-12)
    result = caught.value.result
    x = normal(40_000, 2000).compute(scheduler="synchronous")
    in_memory = od.certify(od.DesignProblem(x), result.weights)
    np.testing.assert_allclose(result.gap, in_memory.gap, rtol=1e-6)


@pytest.mark.usefixtures("client")
def test_many_problems_on_a_cluster() -> None:
    import joblib

    rng = np.random.default_rng(0)
    problems = [od.DesignProblem(rng.normal(size=(200, 3)), np.arange(200) % 2) for _ in range(6)]
    alone = od.solve_many(problems)
    with joblib.parallel_config(backend="dask"):
        together = od.solve_many(problems, n_jobs=-1)
    for one, other in zip(alone, together, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        assert (one.gap, one.status) == (other.gap, other.status)


@pytest.mark.usefixtures("client")
def test_trials_on_a_cluster() -> None:
    import joblib

    import bandits

    environment = bandits.environments.synthetic(clients=5, arms=3, dim=2, seed=0)
    alone = bandits.simulate(bandits.FedPE(), environment, horizon=64, trials=4, seed=0)
    with joblib.parallel_config(backend="dask"):
        together = bandits.simulate(bandits.FedPE(), environment, horizon=64, trials=4, seed=0, n_jobs=-1)
    assert alone.regret.tobytes() == together.regret.tobytes()
    assert alone.uploaded.tobytes() == together.uploaded.tobytes()
