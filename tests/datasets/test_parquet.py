"""Loading Parquet files."""

from __future__ import annotations

import builtins
import warnings

import pandas as pd
import pytest
from events import rows
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

import sparse_eval as se
from sparse_eval.datasets import blocks, guess_format, load, load_parquet, parquet_blocks, tables
from sparse_eval.datasets.blocks import UnusualError
from sparse_eval.errors import InvalidFileError, MissingExtraError, SparseEvalError
from sparse_eval.results.label_table import read_label_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


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
    with raises(InvalidFileError):
        load_parquet(path, user="what", item="what")


def test_refuses_unusable_files_and_a_missing_extra(tmp_path, write, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": ["a", None], "item": [1, 2], "n": [1.0, -1.0]}).to_parquet(path)
    with raises(InvalidFileError):
        load_parquet(path, user="users")
    with raises(InvalidFileError):
        load_parquet(path)
    with raises(InvalidFileError):
        load_parquet(path, user="item", item="n", value="n")
    with raises(InvalidFileError):
        load_parquet(tmp_path / "b.parquet")
    for content in (b"", b"user,item\n", path.read_bytes()[:-50], path.read_bytes()[:200]):
        with raises(InvalidFileError):
            load_parquet(write("broken.parquet", content))
    real = builtins.__import__

    def without_pyarrow(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with raises(MissingExtraError):
        load_parquet(path)


def outcome(path, **options):
    """Return all that a call gives: events, dtypes, warnings, or its error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read = load_parquet(path, **options)
        except SparseEvalError as error:
            return type(error), str(error), [str(each.message) for each in told]
    arrays = (read.user_codes, read.item_codes, read.values, read.timestamps)
    return (
        [None if array is None else (array.dtype, array.tobytes()) for array in arrays],
        [(index.dtype, type(index), index.tolist()) for index in (read.users, read.items)],
        (read.time_unit, read.recognized, read.dropped),
        [str(each.message) for each in told],
    )


def maybe_none(values):
    """Return columns of some values, in a few of which one is missing."""
    column = st.lists(values, min_size=5, max_size=5)
    return st.one_of(column, column, column.map(lambda cells: [*cells[:4], None]))


TYPED = {
    "user": st.one_of(
        st.tuples(maybe_none(st.sampled_from(["a", "b", "c", "é", " "])), st.just(pa.string())),
        st.tuples(maybe_none(st.sampled_from(["a", "b", "7"])), st.just(pa.large_string())),
        st.tuples(
            maybe_none(st.sampled_from(["a", "b"])), st.just(pa.dictionary(pa.int8(), pa.string()))
        ),
        st.tuples(
            maybe_none(st.integers(0, 9)),
            st.sampled_from([pa.int64(), pa.int8(), pa.uint32(), pa.uint64(), pa.float64()]),
        ),
    ),
    "rating": st.tuples(
        maybe_none(st.integers(-1, 5) | st.sampled_from([0, 3])),
        st.sampled_from([pa.int64(), pa.float64(), pa.float32(), pa.uint8(), pa.string()]),
    ),
    "timestamp": st.tuples(
        maybe_none(st.integers(0, 10**6)),
        st.sampled_from(
            [pa.int64(), pa.int32(), pa.timestamp("s"), pa.timestamp("ns", "CET"), pa.date32()]
        ),
    ),
    "event": st.tuples(maybe_none(st.sampled_from(["buy", "view", ""])), st.just(pa.string())),
}
TYPED["item"] = TYPED["user"]


@given(
    columns=st.fixed_dictionaries(TYPED),
    rows=st.integers(1, 3),
    options=st.sampled_from(
        [
            {},
            {"value": None, "timestamp": None},
            {"event": "event", "keep": ["buy"], "value": None},
            {"users": ["a", "b", "c"], "timestamp": None},
            {"user": "item"},
        ]
    ),
)
def test_batches_give_what_the_whole_gives(tmp_path_factory, columns, rows, options):
    path = tmp_path_factory.getbasetemp() / "batches.parquet"
    arrays = {}
    for name, (cells, kind) in columns.items():
        if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
            cells = [None if cell is None else str(cell) for cell in cells]
        if pa.types.is_unsigned_integer(kind):
            cells = [None if cell is None else abs(cell) for cell in cells]
        plain = pa.array(cells, pa.int32()) if pa.types.is_date(kind) else pa.array(cells)
        arrays[name] = plain.cast(kind)
    parquet.write_table(pa.table(arrays), path, row_group_size=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_blocks, "_ROWS", rows)
        patch.setattr(blocks, "_FEW", 0)
        found = outcome(path, **options)
        patch.setattr(tables, "read_batches", refuse)
        assert found == outcome(path, **options)


def refuse(*_):
    raise UnusualError


def test_plain_files_are_read_in_batches(tmp_path, monkeypatch):
    table = pa.table(
        {
            "user": pa.array(["a", "b"] * 50).dictionary_encode().cast(pa.string()),
            "item": pa.array(range(100)),
            "rating": pa.array([1.5] * 100),
            "timestamp": pa.array(range(100), pa.timestamp("s")),
            "event": pa.array(["buy", "view", "view", "buy"] * 25),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    monkeypatch.setattr(parquet_blocks, "_ROWS", 7)
    monkeypatch.setattr(tables.Interactions, "from_frame", None)
    read = load_parquet(tmp_path / "a.parquet", event="event", keep=["buy"])
    assert len(read) == 50
    assert read.time_unit == "ns"
    assert read.timestamps[:2].tolist() == [0, 3 * 10**9]
    assert read.items.tolist()[:3] == [0, 3, 4]
    assert read.recognized == {"value": "rating"}


def test_refuses_pages_that_were_damaged(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"user": range(100), "item": range(100), "score": [0.5] * 100})
    frame.to_parquet(
        path, compression="none", use_dictionary=False, write_page_checksum=True, index=False
    )
    content = path.read_bytes()
    number = (77).to_bytes(8, "little")
    assert content.count(number) == 2  # of a user, and of an item
    path.write_bytes(content.replace(number, (78).to_bytes(8, "little"), 1))
    for read in (
        load_parquet,
        lambda path: se.evaluate(path, frame, "mrr@5"),
        lambda path: se.Rankings.scan(path).to_pandas(),
        lambda path: read_label_table(path, "user"),
    ):
        with raises(InvalidFileError):
            read(path)
    monkeypatch.setattr(tables, "read_batches", refuse)
    with raises(InvalidFileError):
        load_parquet(path)


def test_refuses_numbers_of_rows_that_are_not_there(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": [0] * 1000, "item": range(1000)}).to_parquet(path, index=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(thrift(1000), thrift(1001)))  # in the footer, as Thrift
    with raises(InvalidFileError):
        load_parquet(path)
    footer = int.from_bytes(content[-8:-4], "little")
    huge = content[-8 - footer : -8].replace(thrift(1000), thrift(2**60))
    size = len(huge).to_bytes(4, "little")
    path.write_bytes(content[: -8 - footer] + huge + size + b"PAR1")
    for read in (
        load_parquet,
        lambda path: se.Rankings.scan(path).to_pandas(),
        lambda path: read_label_table(path, "user"),
    ):
        with raises(InvalidFileError):
            read(path)


def thrift(number: int) -> bytes:
    """Return a field of 64 bits, as Thrift's compact protocol writes it."""
    number, groups = 2 * number, []
    while number:
        number, low = divmod(number, 128)
        groups.append(low | 128 * (number > 0))
    return bytes([0x16, *groups])
