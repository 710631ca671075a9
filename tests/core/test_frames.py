"""Frames of any library become the same frame of pandas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from raising import raises

from sparse_eval.core.frames import as_pandas
from sparse_eval.errors import InvalidDataError

FRAME = pd.DataFrame(
    {
        "user": ["ann", "bob", "ü"],
        "item": np.array([2**62, -1, 7]),
        "value": [0.1, 0.0, 1e300],
        "at": pd.to_datetime(
            ["2024-01-01", "2024-01-02 03:04:05.000006", "1969-12-31"], format="ISO8601"
        ),
    }
)


def _table(frame: pd.DataFrame) -> Any:
    return pa.Table.from_pandas(frame)


def _reader(frame: pd.DataFrame) -> Any:
    return _table(frame).to_reader(max_chunksize=1)


def _stream(frame: pd.DataFrame) -> Any:
    """A table of a library that nobody has heard of."""

    class Unknown:
        schema = None

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return _table(frame).__arrow_c_stream__(requested_schema)

    return Unknown()


@pytest.mark.parametrize("make", [_table, _reader, _stream])
def test_every_library_gives_the_same(make: Callable[[pd.DataFrame], Any]) -> None:
    found = as_pandas(make(FRAME))
    assert list(found) == list(FRAME)
    for name in FRAME:
        assert found[name].tolist() == FRAME[name].tolist()
    assert found["item"].dtype == np.int64
    assert found["value"].dtype == np.float64


def test_a_reader_can_be_taken_once() -> None:
    reader = _reader(FRAME)
    assert len(as_pandas(reader)) == 3
    with raises(InvalidDataError):
        as_pandas(reader)
    assert as_pandas(_table(FRAME.iloc[:0])).empty


def test_rows_may_be_dicts() -> None:
    assert as_pandas([{"user": 1, "item": "x"}, {"user": 2, "item": "y"}]).to_dict("list") == {
        "user": [1, 2],
        "item": ["x", "y"],
    }
    assert as_pandas([]).empty


@pytest.mark.parametrize("table", [None, 3, "a", {"user": [1]}, [1], [[1, 2]], np.eye(2)])
def test_refuses_what_is_no_frame(table: Any) -> None:
    with raises(InvalidDataError):
        as_pandas(table)


def test_errors_of_a_library_become_ours() -> None:
    class Broken:
        schema = None

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return 3

    with raises(InvalidDataError):
        as_pandas(Broken())
