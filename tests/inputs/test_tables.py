"""Files, folders, patterns and frames become one table, which Arrow reads."""

import bz2
import gzip
import json
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises, warns

import sparse_eval as se
from sparse_eval.datasets import SkippedLinesWarning, load
from sparse_eval.errors import InvalidDataError, InvalidFileError, SparseEvalError
from sparse_eval.inputs import formats, tables
from sparse_eval.inputs.formats import Field
from sparse_eval.inputs.tables import open_table

FRAME = pd.DataFrame(
    {"user": ["b", "b", "c"], "item": ["x", "y", "x"], "value": [1.0, 3.0, 0.0], "at": [3, 1, 2]}
)
OPTIONS = {"value": "value", "timestamp": "at"}


def save(frame, path):
    """Write a frame as its suffix says."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "jsonl", "arrow"])
def test_every_format_holds_the_same_rows(tmp_path, suffix):
    expected = load(FRAME, **OPTIONS).to_frame()
    whole = save(FRAME, tmp_path / f"whole.{suffix}")
    (tmp_path / "parts").mkdir()
    for number in range(3):
        save(FRAME.iloc[number : number + 1], tmp_path / "parts" / f"{number}.{suffix}")
    uri = whole.as_uri()
    for source in (whole, str(whole), uri, tmp_path / "parts", f"{tmp_path}/parts/*.{suffix}"):
        found = load(source, **OPTIONS).to_frame()
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    parts = (tmp_path / "parts").as_uri()
    pd.testing.assert_frame_equal(load(parts, **OPTIONS).to_frame(), expected, check_dtype=False)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
@pytest.mark.parametrize("first", [True, False])
def test_a_column_that_a_file_lacks_is_an_error(tmp_path, suffix, first):
    """The rows of the other files would have gains of 1, also those that are not relevant."""
    save(FRAME, tmp_path / f"2.{suffix}")
    lacking = save(FRAME[["user", "item", "at"]], tmp_path / f"{1 if first else 3}.{suffix}")
    with raises(InvalidFileError, path=lacking, column="value"):
        load(tmp_path)
    lists = pd.DataFrame({"user": ["b"], "item": ["x"], "rank": [1]})
    with raises(InvalidFileError, path=lacking, column="value"):
        se.evaluate(lists, tmp_path, "mrr")
    assert len(load(tmp_path, value=None)) == 6


@pytest.mark.parametrize(
    ("role", "values"),
    [("item", [1, 2, 3]), ("at", FRAME["at"].astype(str)), ("value", ["1", "2", "x"])],
)
def test_types_that_differ_between_files_are_an_error(tmp_path, role, values):
    save(FRAME, tmp_path / "1.parquet")
    other = save(FRAME.assign(**{role: values}), tmp_path / "2.parquet")
    with raises(InvalidFileError, path=other, column=role):
        load(tmp_path, **OPTIONS)


def test_whole_numbers_may_widen_between_files(tmp_path):
    narrow = FRAME.assign(user=[1, 2, 3], value=[1, 2, 3]).astype({"user": "int8", "at": "int32"})
    save(narrow, tmp_path / "1.parquet")
    save(FRAME.assign(user=[1, 2**40, 3]), tmp_path / "2.parquet")
    clicks = load(tmp_path, **OPTIONS)
    assert clicks.users.tolist() == [1, 2, 3, 2**40]


def test_a_key_that_appears_late_counts(tmp_path):
    rows = [{"user": f"u{n}", "item": "i"} for n in range(300_000)]
    path = tmp_path / "late.jsonl"
    lines = "".join(json.dumps(row) + "\n" for row in [*rows, {**rows[0], "rating": 5}])
    path.write_text(lines)
    with raises(InvalidFileError, path=path, column="rating"):
        load(path)
    assert len(load(path, value=None)) == len(rows) + 1


def test_text_that_looks_like_a_time_is_an_id(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"user": "2024-01-01", "item": "2024-01-01T00:00:00Z"}\n')
    assert load(path).users.tolist() == ["2024-01-01"]
    assert load(path).items.tolist() == ["2024-01-01T00:00:00Z"]


IDS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=3), min_size=1, max_size=6),
)


@given(IDS)
def test_ids_of_frames_are_read_as_they_are(ids):
    ids = [one for one in ids if not isinstance(one, str) or one.strip()] or ["x"]
    frame = pd.DataFrame(
        {"user": pd.Series(ids, dtype=None if isinstance(ids[0], int) else object)}
    )
    clicks = load(frame.assign(item=1))
    assert sorted(set(clicks.users.tolist())) == sorted(set(ids))


@pytest.mark.parametrize(
    "ids",
    [
        [10, "11"],
        [0.5, 1.0],
        [2.0**60, 1.0],
        [True, False],
        [b"a", b"b"],
        [(1, 2), (3, 4)],
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        pd.array([2**63, 1], "uint64"),
    ],
    ids=str,
)
def test_other_ids_are_an_error_that_shows_the_conversion(ids):
    frame = pd.DataFrame({"user": [1, 2], "item": ids})
    with raises(InvalidDataError, column="item"):
        load(frame)
    if not isinstance(ids[0], tuple):
        assert len(load(frame.assign(item=frame["item"].astype(str))).items) == 2


def test_whole_numbers_of_any_type_are_ids():
    from decimal import Decimal

    for ids in ([1.0, 2.0], [Decimal("1"), Decimal("2")], pd.array([1, 2], "uint8")):
        clicks = load(pd.DataFrame({"user": ids, "item": ids}))
        assert clicks.users.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("times", "row"),
    [
        (["2024-01-01", "2024-01-01T00:00:00Z"], 1),
        (["2024-01-01T00:00:00+01:00", "2024-01-01"], 1),
        (["2024-01-01", "01/02/2024"], 1),
        ([1_500_000_000, 1_500_000_000_000], 1),
        ([1_500_000_000.5, 1.0], 0),
        ([1_500_000_000, None], 1),
    ],
)
def test_times_of_two_kinds_are_an_error(tmp_path, times, row):
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "timestamp": times})
    with raises(InvalidDataError, row=row, column="timestamp"):
        load(frame)
    for number in range(2):
        save(frame.iloc[number : number + 1], tmp_path / f"{number}.csv")
    with raises(SparseEvalError):
        load(tmp_path)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_loses_no_line(tmp_path, monkeypatch, suffix, compress):
    """Of several blocks and streams; a damaged stream or line is an error."""
    monkeypatch.setattr(formats, "_BLOCK", 2_000)
    lines = [f"u{number},{'i' * (number % 200)}x" for number in range(1000)]
    data = "\r\n".join(["user,item", *lines]).encode()
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(compress(data[:90_000]) + compress(data[90_000:]))
    fields = [Field("user", "user", "id"), Field("item", "item", "id")]
    batches = open_table(path).parts[0].batches(fields)
    found = [",".join(row.values()) for batch in batches for row in pa.table(batch).to_pylist()]
    assert found == lines
    for damaged in (compress(data)[:-9], compress(data + b"\r\nu")):
        path.write_bytes(damaged)
        with raises(InvalidFileError, path=path):
            load(path)


def test_skipped_lines_are_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item\na,x\nb\nc,y,z\nd,w\n")
    with warns(SkippedLinesWarning):
        clicks = load(path, on_bad_lines="skip")
    assert (len(clicks), clicks.n_skipped) == (2, 2)
    with raises(InvalidFileError, path=path):
        load(path)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_lists_in_a_column_stand_for_rows(make):
    columns = {"user": ["a", "b"], "item": [["x", "y"], ["z"]]}
    truth = make(columns)
    for lists in (make(columns), make({**columns, "score": [[0.9, 0.5], [0.1]]})):
        for relevant in (truth, {"a": ["x", "y"], "b": ["z"]}):
            assert se.evaluate(lists, relevant, "map")["map"] == 1.0
    with raises(InvalidDataError):
        se.evaluate(make({**columns, "score": [[0.9], [0.1]]}), truth, "map")


def test_an_index_with_ids_gets_a_hint():
    frame = pd.DataFrame({"user": ["a"], "item": ["x"], "score": [1.0]})
    for index in ("user", ["user", "item"]):
        with pytest.raises(InvalidDataError, match=r"pass frame.reset_index\(\)"):
            se.evaluate(frame.set_index(index), {"a": ["x"]}, "mrr")


SCRIPT = """
import os, resource, signal, sys, threading
from sparse_eval.datasets import load
def read():
    return len(load(sys.argv[1], timestamp="at"))
n_rows = read()
child = os.fork()
if child == 0:
    os._exit(read() != n_rows)
assert os.waitpid(child, 0)[1] == 0
try:
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    while True:
        read()
except KeyboardInterrupt:
    print("read", read())
"""


@pytest.mark.long
def test_survives_a_fork_and_an_interruption(tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(f"u{at % 9973},1,{at}\n" for at in range(900_000))
    path.write_text("user,item,at\n" + rows)
    command = [sys.executable, "-c", SCRIPT, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "read 900000\n", done.stderr


# ---------------------------------------------------------------- rows that were lost or misread


def place(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_folder_has_the_files_behind_links(tmp_path):
    place(tmp_path / "logs/day=1/a.csv", "user,item\n1,2\n")
    place(tmp_path / "other/b.csv", "user,item\n3,4\n")
    (tmp_path / "logs" / "day=2").symlink_to(tmp_path / "other")
    (tmp_path / "logs" / "day=1" / "loop").symlink_to(tmp_path / "logs")
    assert len(load(tmp_path / "logs")) == 2


def test_hidden_files_are_left_out_of_folders_and_patterns(tmp_path):
    for name in ("a.csv", "_temporary/b.csv", ".c.csv", "_d.csv"):
        place(tmp_path / name, "user,item\n1,2\n")
    assert len(load(tmp_path)) == len(load(tmp_path / "**" / "*.csv")) == 1


def test_parquet_files_of_other_widths_are_read_without_loss(tmp_path):
    tables = [
        {"user": ["a"], "item": pa.array([5], pa.int8()), "score": pa.array([0.5], pa.float32())},
        {"user": ["b", "b"], "item": [1000, 6], "score": [1.0, 1.0 + 1e-9]},
    ]
    (tmp_path / "lists").mkdir()
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), tmp_path / "lists" / f"{number}.parquet")
    truth = pa.table({"user": ["b"], "item": [6]})
    pq.write_table(truth, tmp_path / "truth.parquet")
    for held_out in (truth, tmp_path / "truth.parquet"):
        assert se.evaluate(tmp_path / "lists", held_out, "mrr")["mrr"] == 1


@pytest.mark.parametrize("user", ["a", "1"])
def test_names_of_folders_are_ids_next_to_parquet(tmp_path, user):
    (tmp_path / f"user={user}").mkdir()
    table = pa.table({"item": ["x"], "rank": [1]})
    pq.write_table(table, tmp_path / f"user={user}" / "a.parquet")
    ids = [user] if user == "a" else [1]
    truth = pa.table({"user": ids, "item": ["x"]})
    pq.write_table(truth, tmp_path.with_suffix(".parquet"))
    assert se.evaluate(tmp_path, tmp_path.with_suffix(".parquet"), "mrr")["mrr"] == 1


def test_other_columns_may_have_one_name(tmp_path):
    columns = [pa.array([number]) for number in range(4)]
    table = pa.Table.from_arrays(columns, ["user", "item", "z", "z"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert len(load(tmp_path / "a.parquet")) == len(load(table)) == 1


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_a_whole_frame_needs_a_name_for_each_column(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    table = pa.table([["a"], ["b"], ["c"]], ["user", "plan", "plan"])
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "csv":
        pa.csv.write_csv(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(InvalidFileError, match="2 columns named 'plan'"):
        tables.to_pandas(path)


@pytest.mark.parametrize(
    "source",
    [
        lambda reader: [reader, reader],
        lambda _: pa.table(
            {"user": [1], "item": [1], "time": pa.array([10**12], pa.timestamp("s"))}
        ),
        lambda _: pd.DataFrame({"user": [1], "item": [{1, 2}]}),
        lambda _: "a\0b.csv",
    ],
)
def test_refuses_sources_that_cannot_be_read_whole(source):
    reader = pa.table({"user": [1], "item": [1]}).to_reader()
    with raises(InvalidDataError):
        load(source(reader))


@pytest.mark.parametrize(
    ("lists", "truth"),
    [
        ({"a": ["x"]}, pd.Series([["z"], ["x"]], index=["a", "a"])),
        ({"a": {"w": 2**60, "x": 2**60 + 1}}, {"a": ["x"]}),
        *(({"a": {"x": value}}, {"a": ["x"]}) for value in ("high", 10**400, pd.NA, [1], 1j)),
        ({"\ud800": ["x"]}, {"a": ["x"]}),
    ],
)
def test_refuses_mappings_whose_numbers_or_ids_are_lost(lists, truth):
    with raises(InvalidDataError):
        se.evaluate(lists, truth, "mrr")


def test_json_has_text_that_is_utf_8_and_lists_of_it(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"user":"zoë","item":"a"}\n'.encode("latin-1"))
    with raises(InvalidFileError, path=path):
        load(path)
    path.write_text('{"user":"a","item":["2020-01-01"]}\n')
    assert se.evaluate(path, {"a": ["2020-01-01"]}, "mrr")["mrr"] == 1
