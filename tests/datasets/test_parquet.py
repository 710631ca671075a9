"""Loading Parquet files."""

import numpy as np
import pandas as pd
import pytest
from events import rows
from raising import raises

import sparse_eval as se
from sparse_eval.datasets import load
from sparse_eval.errors import InvalidFileError
from sparse_eval.inputs.tables import open_table, to_pandas
from sparse_eval.results.segments import item_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_refuses_unusable_files(tmp_path, write):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"user": ["a", None], "item": [1, 2], "n": [1.0, -1.0], "m": 1})
    frame.to_parquet(path)
    for options in ({}, {"user": "item", "item": "m", "value": "n"}):
        with raises(InvalidFileError):
            load(path, **options)
    for content in (b"", b"user,item\n", path.read_bytes()[:-50]):
        with raises(InvalidFileError):
            load(write("broken.parquet", content))


@pytest.mark.parametrize("ids", [pa.string(), pa.large_string(), pa.int8(), pa.uint64()])
@pytest.mark.parametrize("times", [pa.int32(), pa.timestamp("s"), pa.timestamp("ns", "CET")])
@pytest.mark.parametrize("values", [pa.float32(), pa.uint8()])
def test_batches_give_what_the_frame_gives(tmp_path, ids, times, values):
    rng = np.random.default_rng(0)
    numbers = {"user": 9, "item": 7, "value": 5, "timestamp": 10**6}
    kinds = {"user": ids, "item": ids, "value": values, "timestamp": times}
    columns = {name: pa.array(rng.integers(0, most, 100)) for name, most in numbers.items()}
    table = pa.table({name: column.cast(kinds[name]) for name, column in columns.items()})
    table = table.append_column("event", pa.array(["buy", "view", "view", "buy"] * 25))
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    options = {"event": "event", "events": ["buy"]}
    found = load(tmp_path / "a.parquet", **options)
    expected = se.Interactions.from_frame(table, **options)
    assert rows(found) == rows(expected)
    assert repr(found) == repr(expected)
    for name in ("users", "items", "time_unit"):
        assert str(getattr(found, name)) == str(getattr(expected, name))


def test_refuses_pages_that_were_damaged(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"user": range(100), "item": range(100), "score": [0.5] * 100})
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    frame.to_parquet(path, index=False, **options)
    content, number = path.read_bytes(), (77).to_bytes(8, "little")
    assert content.count(number) == 2  # of a user, and of an item
    path.write_bytes(content.replace(number, (78).to_bytes(8, "little"), 1))
    for read in (
        lambda path: load(path, value=None),
        lambda path: se.evaluate(path, frame[["user", "item"]], "mrr@5"),
        item_table,
    ):
        with raises(InvalidFileError):
            read(path)


def test_refuses_numbers_of_rows_that_are_not_there(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": [0] * 1000, "item": range(1000)}).to_parquet(path, index=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(thrift(1000), thrift(1001)))  # in the footer, as Thrift
    with raises(InvalidFileError):
        load(path)
    footer = int.from_bytes(content[-8:-4], "little")
    huge = content[-8 - footer : -8].replace(thrift(1000), thrift(2**60))
    path.write_bytes(content[: -8 - footer] + huge + len(huge).to_bytes(4, "little") + b"PAR1")
    for read in (load, lambda path: se.Relevance.from_frame(open_table(path)), item_table):
        with raises(InvalidFileError):
            read(path)


def thrift(number):
    """Return a field of 64 bits, as Thrift's compact protocol writes it."""
    number, groups = 2 * number, []
    while number:
        number, low = divmod(number, 128)
        groups.append(low | 128 * (number > 0))
    return bytes([0x16, *groups])


def test_metadata_of_pandas_that_are_damaged(tmp_path):
    path = tmp_path / "plans.parquet"
    table = pa.Table.from_pandas(pd.DataFrame({"user": ["a", "b"], "plan": ["free", "paid"]}))
    metadata = {b"pandas": table.schema.metadata[b"pandas"].replace(b"numpy_type", b"numpygtype")}
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    with raises(InvalidFileError):
        to_pandas(path)
