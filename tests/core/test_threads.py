"""Blocks shared between threads: each row once, and errors in the calling thread."""

from __future__ import annotations

import numpy as np
import pytest

from sparse_eval.core.threads import BLOCK, for_blocks, for_each, thread_count
from sparse_eval.errors import InvalidDataError


@pytest.mark.parametrize("num_threads", [None, 1, 3])
@pytest.mark.parametrize("block", [None, 1, 7, 10**6])
@pytest.mark.parametrize("total", [0, 1, 50, 2048])
def test_every_row_is_in_one_block(total: int, block: int | None, num_threads: int | None) -> None:
    counts = np.zeros(total, np.int64)

    def work(first: int, last: int) -> None:
        assert 0 < last - first <= (block or BLOCK)
        counts[first:last] += 1

    for_blocks(work, total, num_threads, block)
    assert (counts == 1).all()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_other_blocks(error: type[BaseException]) -> None:
    done = []

    def work(first: int, last: int) -> None:
        if first == 3:
            raise error("row 3")
        done.append(first)

    with pytest.raises(error, match="row 3"):
        for_blocks(work, 1000, 1, 1)
    assert done == [0, 1, 2]


def test_refuses_fewer_than_one_thread() -> None:
    assert thread_count(3) == 3
    assert thread_count(None) >= 1
    with pytest.raises(InvalidDataError, match="num_threads: expected a whole number of at least"):
        thread_count(0)


def test_results_come_in_the_order_of_the_values() -> None:
    assert for_each(lambda value: value * 2, ["a", "b", "c"]) == ["aa", "bb", "cc"]
    assert for_each(len, []) == []
    with pytest.raises(ZeroDivisionError):
        for_each(lambda value: 1 / value, [1, 0])
