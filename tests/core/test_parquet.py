"""Parquet files: what is read of them, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.core.files import replacing, write_parquet
from sparse_eval.errors import InvalidFileError, OutputError
from sparse_eval.inputs.tables import to_pandas


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A name that UTF-8 cannot hold."""
    path = tmp_path / os.fsdecode(b"\xff.parquet")
    try:
        path.touch()
    except OSError:
        pytest.skip("the file system has no names but UTF-8")
    return path


def test_a_frame_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "year=2024.parquet"
    frame = pd.DataFrame({"user": ["b", "a"], "kind": ["x", "y"]}, [7, 5])
    write_parquet(frame, path, index=True)
    pd.testing.assert_frame_equal(to_pandas(path), frame)


def test_metadata_of_pandas_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "plans.parquet"
    table = pa.Table.from_pandas(pd.DataFrame({"user": ["a", "b"], "plan": ["free", "paid"]}))
    metadata = {b"pandas": table.schema.metadata[b"pandas"].replace(b"numpy_type", b"numpygtype")}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with raises(InvalidFileError):
        to_pandas(path)


def test_names_beyond_utf8(odd: Path) -> None:
    with raises(InvalidFileError):
        se.datasets.load_parquet(odd)
    events = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rank": [1, 1]})
    try:
        with replacing(odd) as temporary:
            write_parquet(events, temporary, index=False)
    except OutputError:
        pytest.skip("the file system has no names but UTF-8")
    assert to_pandas(odd)["user"].tolist() == ["ann", "bob"]
    assert list(se.datasets.load(odd).users) == ["ann", "bob"]
    assert se.evaluate(odd, odd, "mrr@1").mean()["mrr@1"] == 1.0
