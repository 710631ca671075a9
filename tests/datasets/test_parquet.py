"""Loading Parquet files."""

from __future__ import annotations

import builtins

import pandas as pd
import pytest
from events import rows

from sparse_eval.datasets import guess_format, load, load_parquet
from sparse_eval.errors import InvalidFileError, MissingExtraError


def test_reads_columns_by_name(tmp_path):
    frame = pd.DataFrame(
        {
            "who": ["b", "a"],
            "what": [7, 5],
            "n": [2.0, 0.0],
            "at": pd.to_datetime(["1970-01-02", "1970-01-01"]),
            "other": [None, "x"],
        }
    )
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    columns = {"user": "who", "item": "what", "value": "n", "timestamp": "at"}
    expected = [("b", 7, 2.0, 86400 * 10**9), ("a", 5, 0.0, 0)]
    assert rows(load_parquet(path, **columns)) == expected
    assert rows(load(path, **columns)) == expected
    assert guess_format(path) == "parquet"
    assert load_parquet(path, user="what", item="what").shape == (2, 2)


def test_refuses_unusable_files_and_a_missing_extra(tmp_path, write, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": ["a", None], "item": [1, 2], "n": [1.0, -1.0]}).to_parquet(path)
    with pytest.raises(InvalidFileError, match="no column 'users'.*did you mean 'user'"):
        load_parquet(path, user="users")
    with pytest.raises(InvalidFileError, match=r"a.parquet: row 1, column 'user': .*missing"):
        load_parquet(path)
    with pytest.raises(InvalidFileError, match=r"a.parquet: row 1, column 'n'"):
        load_parquet(path, user="item", item="item", value="n")
    with pytest.raises(InvalidFileError, match="there is no such file"):
        load_parquet(tmp_path / "b.parquet")
    for content in (b"", b"user,item\n", path.read_bytes()[:-50], path.read_bytes()[:200]):
        with pytest.raises(InvalidFileError, match="not a readable Parquet file"):
            load_parquet(write("broken.parquet", content))
    real = builtins.__import__

    def without_pyarrow(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(MissingExtraError, match=r'pip install "sparse_eval\[parquet\]"'):
        load_parquet(path)
