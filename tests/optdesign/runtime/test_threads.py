"""Threads: the same result for any number, and never more of them than there is room for."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import optdesign as od
from optdesign.runtime import clock, threads
from optdesign.runtime.stopping import Stopped


def test_every_piece_is_done_once() -> None:
    for count in (1, 2, 3):
        done = np.zeros(103, np.int64)
        names = set()

        def work(first: int, last: int, done: np.ndarray = done, names: set[str] = names) -> None:
            done[first:last] += 1
            names.add(threading.current_thread().name)

        with threads.using(count):
            threads.results(work, 103, 10)
        assert np.all(done == 1)
        own = {name for name in names if not name.startswith("optdesign")}
        assert own <= {threading.current_thread().name}
        assert count > 1 or names == own


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("n", "piece"), [(0, 1), (1, 1), (2, 1), (10, 10), (11, 10), (103, 10), (40, 7)])
def test_pieces_are_equal_and_the_same_for_any_number_of_threads(n: int, piece: int, count: int) -> None:
    with threads.using(count):
        pieces = threads.results(lambda first, last: (first, last), n, piece)
        assert list(threads.in_order(lambda first, last: (first, last), n, piece)) == pieces
    assert [k for first, last in pieces for k in range(first, last)] == list(range(n))
    sizes = [last - first for first, last in pieces]
    assert max(sizes) <= piece
    assert set(sizes[:-1]) <= {max(sizes)}


def interrupted_inside() -> None:
    time.sleep(0.1)
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("what", "own", "others"),
    [
        (Stopped, Stopped, lambda: None),
        (KeyboardInterrupt, KeyboardInterrupt, lambda: None),
        (KeyboardInterrupt, None, interrupted_inside),
    ],
    ids=["stopped", "interrupted", "interrupted while waiting"],
)
def test_the_work_of_another_thread_is_waited_for(
    what: type[BaseException], own: type[BaseException] | None, others: Callable[[], None]
) -> None:
    """Whatever ends the work of the calling thread, also while that one waits."""
    begun, ended = threading.Event(), threading.Event()

    def work(*_: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(60)
            if own is not None:
                raise own
        else:
            begun.set()
            others()
            time.sleep(0.2)
            ended.set()

    with threads.using(2), pytest.raises(what):
        threads.results(work, 2, 1)
    assert ended.is_set()


def test_one_pool_whatever_the_number_of_pieces() -> None:
    with threads.using(5):
        threads._pool.cache_clear()
        for pieces in (2, 3, 4, 9):
            threads.results(lambda *_: None, pieces, 1)
    assert threads._pool.cache_info().currsize == 1


def test_an_error_of_the_work_is_no_sign_that_all_is_done() -> None:
    def work(first: int, last: int) -> None:
        raise IndexError(first, last)

    with threads.using(2), pytest.raises(IndexError):
        threads.results(work, 100, 10)


def test_what_fails_in_a_thread_is_raised() -> None:
    def work(first: int, last: int) -> None:
        raise ZeroDivisionError(first, last)

    with threads.using(2), pytest.raises(ZeroDivisionError):
        threads.results(work, 100, 10)


@pytest.mark.parametrize(("blocks", "dim"), [(1, 3), (1, 12), (4, 3)])
def test_results_do_not_depend_on_threads(blocks: int, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit: only our own kernels sum here."""
    monkeypatch.setattr(threads, "PIECE", 500 * dim)
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(5000, dim)), np.arange(5000) % 3
    problem = od.DesignProblem(x, labels, rng.integers(0, blocks, size=5000))
    one, two, default = (od.solve(problem, tol=1e-9, threads=n) for n in (1, 2, None))
    np.testing.assert_array_equal(two.weights, one.weights)
    np.testing.assert_array_equal(two.variances, one.variances)
    assert two.gap == one.gap
    np.testing.assert_array_equal(default.weights, one.weights)


def test_large_factors_agree_to_rounding() -> None:
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(3000, 60)))
    one, two = (od.solve(problem, tol=1e-9, threads=n) for n in (1, 2))
    assert one.converged
    assert two.converged
    assert abs(one.log_det - two.log_det) <= max(one.gap, two.gap) + 1e-9


def threads_of_blas() -> list[int]:
    return [library.num_threads for library in threads._blas()]


def test_blas_keeps_to_one_thread_and_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices cost a hundred times as much where its threads wait for each other on a busy machine."""
    before = threads_of_blas()
    try:
        threads._set([2] * len(before))
        one, two = [1] * len(before), threads_of_blas()  # a library may be built for one thread
        assert max(two) == 2
        rng = np.random.default_rng(0)
        seen = []
        monkeypatch.setattr(threads, "PARAMETERS", threads.PARAMETERS._replace(order=10))
        with threads.using(2):
            seen.append(threads_of_blas())
            with threads.blas(9):
                seen.append(threads_of_blas())
            with threads.blas(10):
                seen.append(threads_of_blas())
            seen.append(threads_of_blas())
        assert seen == [one, one, two, one]
        # Several at a time enter and leave in any order.
        od.solve_many([od.DesignProblem(rng.normal(size=(60, 3))) for _ in range(40)], n_jobs=2)
        assert threads_of_blas() == two
    finally:
        threads._set(before)


@pytest.mark.slow
def test_a_forked_child_has_threads_of_its_own() -> None:
    """It inherits a pool whose threads are the parent's."""
    script = (
        "import os, numpy as np, optdesign as od\n"
        "p = od.DesignProblem(np.random.default_rng(0).normal(size=(40000, 3)))\n"
        "od.solve(p, threads=2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if od.solve(p, threads=2).converged else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0\n"


def test_cores_are_those_that_others_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert threads.available() == 6
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads.available() == 4
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert threads.available() == 2
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "many")
    assert threads.available() == 4


def test_one_core_in_a_thread_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under joblib with threads: the others are at work as well."""
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(threads.available()))
    thread.start()
    thread.join()
    assert seen == [1]


def test_several_problems_get_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """solve_many: so many jobs, and no more threads than that."""
    counts = []
    monkeypatch.setattr(threads, "using", lambda count: counts.append(count) or pytest.MonkeyPatch.context())
    rng = np.random.default_rng(0)
    od.solve_many([od.DesignProblem(rng.normal(size=(60, 3))) for _ in range(3)], n_jobs=2)
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("value", [0, -1, 1.5, "two"])
def test_numbers_of_threads_are_whole_and_positive(value: object) -> None:
    with pytest.raises(ValueError, match=r"threads must be an integer, at least 1; got .* Leave it out"):
        od.solve(od.DesignProblem(np.eye(2)), threads=value)


def test_what_a_thread_compiles_is_not_on_the_clock_of_the_one_that_waits() -> None:
    def work(first: int, _: int) -> int:
        with clock.first_use():
            time.sleep(0.05)
        return first

    with threads.using(2):
        began, began_here = clock.now(), time.perf_counter()
        assert threads.results(work, 40, 10) == [0, 10, 20, 30]
        waited, counted = time.perf_counter() - began_here, clock.now() - began
    assert waited >= 0.1
    assert counted <= waited - 0.05


@pytest.mark.slow
def test_a_child_of_a_thread_beside_a_solve_has_blas_as_it_was() -> None:
    """The solve of another thread is not under way in the child."""
    script = (
        "import os, threading\n"
        "from optdesign.runtime import threads\n"
        "threads._set([2] * len(threads._blas()))\n"
        "inside, leave = threading.Event(), threading.Event()\n"
        "def other():\n"
        "    with threads.using(1):\n"
        "        inside.set()\n"
        "        leave.wait()\n"
        "thread = threading.Thread(target=other)\n"
        "thread.start()\n"
        "inside.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    counts = {library.num_threads for library in threads._blas()}\n"
        "    os._exit(0 if threads._inside == 0 and counts == {2} else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "leave.set()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0\n", done.stderr
