"""Blocks shared between threads: each row once, and errors in the calling thread."""

import math
import os
import subprocess
import sys
from itertools import product
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from raising import raises
from systems import need_posix
from threadpoolctl import threadpool_info

from sparse_eval.core.threads import (
    BLOCK,
    available_cores,
    cgroup_cores,
    for_blocks,
    for_each,
    limited_threads,
    one_blas_thread,
    thread_count,
)
from sparse_eval.errors import InvalidDataError


@pytest.mark.parametrize("num_threads", [None, 1, 3])
@pytest.mark.parametrize("block", [None, 1, 7, 10**6])
@pytest.mark.parametrize("total", [0, 1, 50, 2048])
def test_every_row_is_in_one_block(total, block, num_threads):
    counts = np.zeros(total, np.int64)

    def work(first, last):
        assert 0 < last - first <= (block or BLOCK)
        counts[first:last] += 1

    for_blocks(work, total, num_threads, block)
    assert (counts == 1).all()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_other_blocks(error):
    done = []

    def work(first, last):
        if first == 3:
            raise error("row 3")
        done.append(first)

    with pytest.raises(error, match="row 3"):
        for_blocks(work, 1000, 1, 1)
    assert done == [0, 1, 2]


@pytest.mark.parametrize("last", [ValueError, KeyboardInterrupt])
def test_of_several_errors_the_first_block_decides(last):
    barrier, has_failed = Barrier(2), Event()

    def work(first, _):
        barrier.wait(10)
        if first == 1:
            has_failed.set()
            raise last("row 1")
        has_failed.wait(10)
        raise ValueError("row 0")

    expected = "row 0" if last is ValueError else "row 1"  # Ctrl-C comes first
    with pytest.raises((ValueError, KeyboardInterrupt), match=expected):
        for_blocks(work, 2, 2, 1)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_limits_of_blas_do_not_overlap():
    """Two threads limit BLAS; the first one to begin would have been the first one to end."""
    entered, left = Event(), Event()

    def other():
        entered.wait(10)
        with one_blas_thread():
            left.wait(0.2)
            found.append((left.is_set(), set(blas_threads())))

    found, before = [], blas_threads()
    thread = Thread(target=other)
    thread.start()
    with one_blas_thread():
        entered.set()
        thread.join(0.1)
        left.set()
    thread.join()
    assert found == [(True, {1})]
    assert blas_threads() == before


IN_A_FORK = """
import os
from sparse_eval.core.threads import openmp_threads

assert openmp_threads(3) == 3
child = os.fork()
if not child:
    os._exit(openmp_threads(3))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
"""


def test_a_forked_process_has_one_thread_of_openmp():
    need_posix()
    subprocess.run([sys.executable, "-c", IN_A_FORK], check=True)


def test_results_come_in_the_order_of_the_values():
    assert for_each(lambda value: value * 2, ["a", "b", "c"]) == ["aa", "bb", "cc"]
    assert for_each(len, []) == []
    with pytest.raises(ZeroDivisionError):
        for_each(lambda value: 1 / value, [1, 0])


def make_root(folder, files):
    """Make a root of a file system with Linux's files about the cgroup of a container."""
    for name, text in files.items():
        (folder / "sys/fs/cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sys/fs/cgroup" / name).write_text(text)
    return folder


def version_1(quota, period=100_000):
    files = {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period}
    return {f"cpu/{name}": f"{number}\n" for name, number in files.items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, math.inf),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "200001 100000\n"}, 3),
        ({"a/cpu.max": "200000 100000\n"}, math.inf),
        *[
            ({"cpu.max": text}, math.inf)
            for text in ("", "max", "max 100000", "100000", "0 100000", "100000 0", "a b", "\0")
        ],
        (version_1(-1), math.inf),
        (version_1(250_000), 3),
        (version_1(150_000, 50_000), 3),
    ],
)
def test_the_quota_of_a_container(tmp_path, files, expected):
    assert cgroup_cores(make_root(tmp_path, files)) == expected


#: Values of a variable, and the numbers of threads that they set.
NUMBERS = {"3": 3, " 2 ": 2, "04": 4, "1,5": 1, "5,1": 5, "9" * 9: 10**9 - 1}
NUMBERS |= dict.fromkeys(
    (None, "", "00", "-1", "1.5", "two", ",2", "2;3", "٣", "9" * 5000), math.inf
)


@pytest.mark.parametrize("quota", [None, 1, 2, 7])
def test_the_least_limit_holds(tmp_path, monkeypatch, quota):
    text = "max 100000" if quota is None else f"{quota * 100_000} 100000"
    root = make_root(tmp_path, {"cpu.max": text})
    for n_bound in (1, 4, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=n_bound: range(n), raising=False)
        for (openmp, first), (numba, second) in product(NUMBERS.items(), NUMBERS.items()):
            given = {"OMP_NUM_THREADS": openmp, "NUMBA_NUM_THREADS": numba}
            environment = {name: value for name, value in given.items() if value is not None}
            expected = min(n_bound, quota or math.inf, first, second)
            assert available_cores(environment, root) == expected, (n_bound, environment)


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_a_number_that_is_given_overrides_the_environment(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert thread_count(None) == 1
    assert thread_count(3) == 3
    with raises(InvalidDataError, argument="num_threads"):
        thread_count(0)


def test_the_default_has_a_limit(monkeypatch):
    monkeypatch.setattr("sparse_eval.core.threads.available_cores", lambda *_: 4)
    with limited_threads(2):
        assert (thread_count(None), thread_count(-1), thread_count(3)) == (2, 2, 3)
        with limited_threads(9):
            assert thread_count(None) == 4
        assert thread_count(None) == 2
    assert thread_count(None) == 4
