"""Dask collections: the same designs as in memory, without a client and on a cluster of processes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from chunked_problems import assert_same_optimum

import optdesign as od
from optdesign.problem.large import LargeProblem

pytest.importorskip("dask")


def test_arrays_and_frames_give_the_design_of_memory() -> None:
    import dask.array
    import dask.dataframe
    import pandas

    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 4))
    large = od.DesignProblem(dask.array.from_array(x, chunks=(100, 2)))
    assert isinstance(large, LargeProblem)
    assert_same_optimum(od.solve(large), od.solve(od.DesignProblem(x)))
    frame = pandas.DataFrame(x, columns=list("abcd"))
    frame["site"] = np.array(["Turin", "Lyon"])[np.arange(900) % 2]
    given = {"groups": "site", "budgets": {"Turin": 2, "Lyon": 1}}
    large = od.DesignProblem(dask.dataframe.from_pandas(frame, npartitions=7), **given)
    small = od.DesignProblem(frame, **given)
    assert (large.names, large.group_names) == (small.names, small.group_names)
    assert_same_optimum(od.solve(large), od.solve(small))
    with pytest.raises(od.InputError, match="name of a column of a Dask frame"):
        od.DesignProblem(dask.array.from_array(x), groups=np.zeros(900, int))


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_numbers_that_double_precision_does_not_hold_are_refused(kind: Any) -> None:
    import dask.array

    x = np.ones((40, 2), kind)
    x[33, 1] = kind(2**53) + kind(1)
    with pytest.raises(od.InputError, match="must fit double precision"):
        od.DesignProblem(x)
    with pytest.raises(od.InputError, match="must fit double precision; row 4 of partition 4 is"):
        od.DesignProblem(dask.array.from_array(x, chunks=(10, 2)))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["index", "level_0", "Row_Names"])
def test_a_column_that_counts_the_rows_is_no_feature(name: str, first: int) -> None:
    import dask.dataframe
    import pandas

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({name: np.arange(30) + first, "a": rng.normal(size=30), "b": np.ones(30)})
    with pytest.warns(UserWarning, match=f"columns '{name}' name the rows"):
        assert od.DesignProblem(frame).names == ("a", "b")
    with pytest.raises(od.InputError, match=rf"column '{name}' counts the rows\. Drop it, .*or rename it"):
        od.DesignProblem(dask.dataframe.from_pandas(frame, npartitions=3))
    assert od.DesignProblem(dask.dataframe.from_pandas(frame, npartitions=3), groups=name).n_groups == 30
    frame.loc[29, name] = 7  # which counts no longer, in the last partition
    for table in (frame, dask.dataframe.from_pandas(frame, npartitions=3)):
        assert od.DesignProblem(table).names == (name, "a", "b")
    frame = frame.rename(columns={name: "Unnamed: 0"})
    with pytest.raises(od.InputError, match="column 'Unnamed: 0' names the rows"):
        od.DesignProblem(dask.dataframe.from_pandas(frame, npartitions=3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of distributed, about ports, workers that are killed and sockets
def test_a_killed_worker_does_not_change_the_design(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import signal

    import dask.array
    import distributed

    from optdesign.sources.partitions import Partitions

    x = dask.array.random.default_rng(0).normal(size=(40_000, 5), chunks=(4000, 5))
    alone = od.solve(od.DesignProblem(x))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        together = od.solve(od.DesignProblem(x))
        assert together.support.tobytes() == alone.support.tobytes()
        assert together.support_weights.tobytes() == alone.support_weights.tobytes()
        problem = od.DesignProblem(x)
        victim = next(iter(client.run(os.getpid).values()))
        wait, passes = Partitions._wait, []

        def killing(partitions: Partitions, *args: Any) -> None:
            passes.append(len(args))
            if len(passes) == 2:
                os.kill(victim, signal.SIGKILL)
            wait(partitions, *args)

        monkeypatch.setattr(Partitions, "_wait", killing)
        survived = od.solve(problem)
        assert len(passes) >= 2
        assert survived.support_weights.tobytes() == alone.support_weights.tobytes()


def test_columns_with_numbers_for_names_are_refused():
    import dask.dataframe

    frame = pd.DataFrame(np.eye(9))
    with pytest.raises(od.InputError, match=r"must have columns whose names are text; got .0, 1, 2"):
        od.DesignProblem(dask.dataframe.from_pandas(frame, npartitions=3))
