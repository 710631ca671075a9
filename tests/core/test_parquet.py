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
from sparse_eval.core import parquet
from sparse_eval.core.files import replacing
from sparse_eval.errors import InvalidFileError, OutputError

TABLE = pa.table(
    {
        "text": ["a", "b", "a"],
        "large": pa.array(["x", None, "ü"], pa.large_string()),
        "missing": pa.array([None] * 3, pa.string()),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "a.b": ["1", "2", "3"],
        "bytes": pa.array([b"\xff", b"", None]),
        "number": [1, 2, 3],
        "lists": [["q"], [], ["r", "s"]],
    }
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A name that UTF-8 cannot hold."""
    path = tmp_path / os.fsdecode(b"\xff.parquet")
    try:
        path.touch()
    except OSError:
        pytest.skip("the file system has no names but UTF-8")
    return path


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "year=2024.parquet"
    pq.write_table(TABLE, path, row_group_size=2)
    expected = pq.ParquetFile(path).read()
    found = parquet.read_table(path)
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)
    frame = pd.DataFrame({"user": ["b", "a"], "kind": pd.Categorical(["x", "y"])}, [7, 5])
    frame.to_parquet(tmp_path / "frame")
    pd.testing.assert_frame_equal(parquet.read_parquet(tmp_path / "frame"), frame)
    with path.open("rb") as file:
        pd.testing.assert_frame_equal(parquet.read_parquet(file), pd.read_parquet(path))


def bomb(path: Path, name: str) -> None:
    """Write a file of half a megabyte with a text of one in each of ten thousand rows."""
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), ["x" * 500_000])
    other = "item" if name == "user" else "user"
    table = pa.table({name: long, other: range(10_000), "rank": [1] * 10_000})
    pq.write_table(table, path, compression="none", store_schema=False)


@pytest.mark.parametrize("name", ["user", "item"])
def test_a_long_text_in_each_of_many_rows(name: str, tmp_path: Path) -> None:
    path, small = tmp_path / "bomb.parquet", tmp_path / "small.parquet"
    bomb(path, name)
    pq.write_table(pa.table({"user": ["a"], "item": ["b"], "rank": [1]}), small)
    pq.write_table(pa.table({name: ["a"], "user" if name == "item" else "item": [1]}), small)
    for metric in ("ndcg@5", "coverage@5"):  # which takes a first look at the items
        with raises(InvalidFileError, column=name):
            se.evaluate(path, small, metric)
    assert len(se.datasets.load(path).values) == 10_000  # which keeps each text once


def test_metadata_of_pandas_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "plans.parquet"
    table = pa.Table.from_pandas(pd.DataFrame({"user": ["a", "b"], "plan": ["free", "paid"]}))
    metadata = {b"pandas": table.schema.metadata[b"pandas"].replace(b"numpy_type", b"numpygtype")}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with raises(ValueError):
        parquet.read_parquet(path)


def test_names_beyond_utf8(odd: Path) -> None:
    with raises(InvalidFileError):
        se.datasets.load_parquet(odd)
    events = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rank": [1, 1]})
    try:
        with replacing(odd) as temporary:
            parquet.write_parquet(events, temporary, index=False)
    except OutputError:
        pytest.skip("the file system has no names but UTF-8")
    assert parquet.read_parquet(odd)["user"].tolist() == ["ann", "bob"]
    assert list(se.datasets.load(odd).users) == ["ann", "bob"]
    assert se.evaluate(odd, odd, "mrr@1").mean()["mrr@1"] == 1.0
