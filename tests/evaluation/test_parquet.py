"""Tables in Parquet: the same bits as of frames in memory, whatever the order of the rows."""

import errno
import io
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from raising import raises
from ways_cases import same

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, OutputError
from sparse_eval.evaluation import execution, parquet, table_blocks

METRICS = ["ndcg@3", "recall@2", "map", "mrr@4", "recall(average=micro)@3", "coverage@2"]

RECS = {"user": [0, 0, 1, 1], "item": [1, 2, 1, 3], "rank": [1, 2, 1, 2]}
TRUTH = {"user": [0, 1, 2], "item": [2, 1, 1]}


@contextmanager
def temporary(n_rows=parquet.ROWS_AT_ONCE // 2):
    """Give a folder, and another one for temporary files that has to be empty in the end."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        with (
            mock.patch.object(tempfile, "tempdir", str(scratch)),
            mock.patch.object(parquet, "ROWS_AT_ONCE", 2 * n_rows),
            mock.patch.object(parquet, "thread_count", return_value=2),
        ):
            yield Path(folder)
        assert list(scratch.iterdir()) == []


def written(folder, name, table, n_files=1, group=None, **options):
    """Write a file, or a folder of some."""
    if n_files == 1:
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=group, **options)
        return path
    path = folder / name
    (path / "below").mkdir(parents=True)
    ends = np.linspace(0, len(table), n_files + 1).astype(int).tolist()
    for number, (start, end) in enumerate(pairwise(ends)):
        part = path / ("below" if number % 2 else ".") / f"part-{number}.parquet"
        pq.write_table(table.slice(start, end - start), part, row_group_size=group, **options)
    return path


def pair(folder, recs=RECS, truth=TRUTH, **options):
    sides = {"recs": pa.table(recs), "truth": pa.table(truth)}
    return tuple(written(folder, name, table, **options) for name, table in sides.items())


VIEW = pa.string()
with suppress(pa.ArrowNotImplementedError):  # by older versions
    pq.write_table(pa.table({"id": pa.array(["a"]).cast(pa.string_view())}), io.BytesIO())
    VIEW = pa.string_view()

IDS = {
    "int64": (lambda n: n - 5, pa.int64()),
    "int32": (lambda n: n, pa.int32()),
    "uint32": (lambda n: 2**32 - 40 + n, pa.uint32()),
    "huge": (lambda n: (n - 3) * 2**58, pa.int64()),
    "far": (lambda n: 2**31 - 5 + n, pa.uint64()),
    "text": (lambda n: f"ü{n % 7}\U0001f600{n}", pa.string()),
    "large": (lambda n: f"{n}\n", pa.large_string()),
    "view": (lambda n: f"{n}é", VIEW),
    "dictionary": (lambda n: f"{n}", pa.dictionary(pa.int32(), pa.string())),
}


@pytest.mark.parametrize("metric", ["rbp(gain=linear)@3", "err@3"])
def test_the_largest_gain_is_that_of_all_users(metric):
    truth = {**TRUTH, "gain": [1.0, 4.0, 0.5]}
    with temporary(2) as folder:
        found = se.evaluate(*pair(folder, truth=truth, group=1), metric)
        same(found, se.evaluate(pd.DataFrame(RECS), pd.DataFrame(truth), metric))
        with raises(InvalidDataError):
            se.evaluate(*pair(folder, truth={**truth, "user": [0, 1, 1]}, group=1), metric)


def test_values_beyond_the_budget_are_refused():
    n = 100_000
    table = {"user": np.arange(n), "item": np.zeros(n, np.int64), "rank": np.ones(n, np.int64)}
    with temporary() as folder:
        paths = pair(folder, table, {"user": table["user"], "item": table["item"]}, group=10_000)
        with raises(InvalidDataError):
            se.evaluate(*paths, METRICS, memory=1 << 24)
        assert se.evaluate(*paths, "mrr", memory=1 << 24, keep="totals")["mrr"] == 1


def test_refuses_too_many_files_to_deal_out_to():
    users, ranks = np.tile(np.arange(10), 100), np.repeat(np.arange(1, 101), 10)
    with temporary(1) as folder, raises(InvalidDataError):
        se.evaluate(*pair(folder, {"user": users, "item": ranks, "rank": ranks}), "mrr")


def of_users(folder, users):
    """Write four rows of each user in no order, and one relevant item."""
    rows = pd.DataFrame({"user": users.repeat(4), "item": np.tile(np.arange(4), len(users))})
    lists = rows.assign(rank=rows["item"] + 1).sample(frac=1, random_state=0, ignore_index=True)
    truth = rows[rows["item"] == 2].sample(frac=1, random_state=0, ignore_index=True)
    return pair(folder, lists, truth, group=20)


@pytest.mark.parametrize("step", [1, 30])  # small whole numbers, and those of a common divisor
def test_whole_numbers_are_dealt_out_to_many_files(step):
    users = step * np.arange(-50, 50, dtype=np.int8 if step == 1 else np.int64)
    with temporary(3 if step == 1 else 150) as folder:
        paths = of_users(folder, users)
        with mock.patch.object(parquet, "_deal", wraps=parquet._deal) as deal:
            assert se.evaluate(*paths, "mrr")["mrr"] == pytest.approx(1 / 3)
        n_files = len(deal.call_args[0][1])
    assert n_files > 127 or np.bincount(users % n_files).max() < 20


@pytest.mark.parametrize(
    ("place", "name", "failure", "error"),
    [
        (pa.ipc, "new_stream", OSError(errno.EMFILE, "full"), OutputError),
        (pa.ipc.RecordBatchStreamWriter, "write_table", OSError(errno.ENOSPC, "full"), OutputError),
        (execution, "evaluate_block", InvalidDataError("so"), InvalidDataError),
        (execution, "evaluate_block", KeyboardInterrupt, KeyboardInterrupt),
    ],
)
def test_nothing_is_left_behind_after_an_error(place, name, failure, error):
    with temporary(40) as folder:
        paths = of_users(folder, np.arange(50))
        before = [*Path("/dev/fd").glob("*")]
        with mock.patch.object(place, name, side_effect=failure), pytest.raises(error):
            se.evaluate(*paths, "mrr")
        assert len([*Path("/dev/fd").glob("*")]) <= len(before) + 1


@pytest.mark.parametrize("group", [4, 5, 7])
def test_users_with_rows_in_two_row_groups_are_in_one_range(group):
    rows = {"user": np.repeat(np.arange(30), 3), "item": np.arange(90) % 7}
    recs, truth = {**rows, "rank": np.tile([1, 2, 3], 30)}, {**rows, "item": np.arange(90) % 4}
    with temporary(20) as folder, mock.patch.object(parquet.ParquetSource, "_deal_out") as dealt:
        found = se.evaluate(*pair(folder, recs, truth, group=group), METRICS)
        dealt.assert_not_called()
    same(found, se.evaluate(pd.DataFrame(recs), pd.DataFrame(truth), METRICS))


#: Both sides, one of which is wrong.
REFUSED = {
    "types": ({**RECS, "user": list("aabb")}, TRUTH),
    "float ids": ({**RECS, "item": [1.0, 2, 1, 3]}, TRUTH),
    "null user between ranges": (
        {"user": [0, 1, 2, None, 3, 4], "item": [1] * 6, "rank": [1] * 6},
        TRUTH,
    ),
    "null rank": ({**RECS, "rank": [1, None, 1, 2]}, TRUTH),
    "rank 0": ({**RECS, "rank": [1, 0, 1, 2]}, TRUTH),
    "pair twice": ({**RECS, "item": [1, 1, 1, 3]}, TRUTH),
    "hidden negative": (RECS, {"user": [0, 0], "item": [1, 1], "gain": [5.0, -1.0]}),
    "blank": ({**RECS, "item": list("ab c")}, {"user": [0], "item": ["a"]}),
    "beyond 64 bits": ({**RECS, "user": pa.array([0, 0, 1, 2**63], pa.uint64())}, TRUTH),
    "empty truth": (RECS, pa.table(TRUTH).slice(0, 0)),
}


@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_rows(name, n_rows):
    with temporary(n_rows) as folder:
        paths = pair(folder, *REFUSED[name], group=2)
        with raises((InvalidDataError, InvalidFileError)) as caught:
            se.evaluate(*paths, ["mrr", "coverage@1"])
        assert str(caught.value).startswith(tuple(map(str, paths)))


def test_refuses_items_that_the_catalogue_did_not_hold_when_it_was_read():
    columns = table_blocks.Columns(("user", "item", "rank"), True, ("user", "item"))
    load = table_blocks.RowsLoader(columns, np.array([1, 2]))
    with raises(InvalidDataError, column="item"):
        load((pa.table(RECS), pa.table(TRUTH)))


def test_a_folder_with_other_files():
    with temporary() as folder:
        recs, truth = written(folder, "many", pa.table(RECS), n_files=3), pair(folder)[1]
        expected = se.evaluate(pair(folder)[0], truth, METRICS).mean()
        (recs / "_SUCCESS").touch()
        (recs / "notes.txt").write_text("no table")
        (recs / "_metadata.parquet").write_bytes(b"none")
        (recs / ".hidden").mkdir()
        (recs / ".hidden" / "x.parquet").write_bytes(b"none")
        (recs / "folder.parquet").mkdir()  # as Spark calls the folders that it writes
        for path in (recs, recs / "**/part-*.parquet"):
            assert se.evaluate(str(path), str(truth), METRICS).mean() == expected


@pytest.mark.parametrize(
    "other",
    [
        pa.table({**RECS, "user": list("abcd")}),
        pa.table(TRUTH),
        pa.Table.from_arrays([pa.array([1])] * 4, ["user", "user", "item", "rank"]),
    ],
)
def test_files_with_other_columns(other, tmp_path):
    recs, truth = pair(tmp_path)
    (tmp_path / "side").mkdir()
    recs.rename(tmp_path / "side" / "a.parquet")
    pq.write_table(other, tmp_path / "side" / "b.parquet")
    with raises(InvalidFileError):
        se.evaluate(tmp_path / "side", truth, "mrr")


@pytest.mark.parametrize("n_rows", [2, 1000])
def test_files_whose_columns_are_in_another_order_or_required(n_rows):
    with temporary(n_rows) as folder:
        truth = pair(folder)[1]
        recs = folder / "recs"
        recs.mkdir()
        whole = pa.table(RECS)
        required = pa.schema([pa.field(f.name, f.type, nullable=False) for f in whole.schema])
        pq.write_table(whole.slice(0, 2).select(["rank", "item", "user"]), recs / "a.parquet")
        pq.write_table(whole.slice(2).cast(required), recs / "b.parquet")
        expected = se.evaluate(pd.DataFrame(RECS), pd.DataFrame(TRUTH), METRICS)
        same(se.evaluate(recs, truth, METRICS), expected)


@pytest.mark.long
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("name", IDS)
def test_any_ids_give_the_bits_of_frames(name, ends):
    of, dtype = IDS[name]
    rng = np.random.default_rng(0)
    truth = {"user": np.repeat(np.arange(20), 2), "item": np.tile([3, 4], 20)}
    p = pd.Series(rng.permutation(np.linspace(0.05, 1, 32)), [of(n) for n in range(32)])
    metrics = [*METRICS, "psp(propensity=given)@3", "ndcg(weights=snips)@3"]
    found, frames = [], []
    for n_items in (6, 30):  # so that columns are other items
        items = np.array([rng.permutation(n_items)[:4] for _ in range(20)]).ravel()
        recs = {"user": np.repeat(np.arange(20), 4), "item": items, "rank": [1, 2, 3, 4] * 20}
        sides = []
        for side in (recs, truth):
            rows = pd.DataFrame(side)
            rows = rows.sample(frac=1, random_state=0) if ends else rows
            ids = {axis: pa.array(map(of, rows[axis])).cast(dtype) for axis in ("item", "user")}
            sides.append(pa.table({"other": pa.nulls(len(rows)), **rows, **ids}))
        of_frames = (side.drop_columns("other").to_pandas() for side in sides)
        frames.append(se.evaluate(*of_frames, metrics, item_data=se.ItemData(propensity=p)))
        with temporary(30) as folder, ThreadPoolExecutor(2) as pool:
            paths = pair(folder, *sides, group=10, write_statistics=ends, n_files=1 + ends)
            data = se.ItemData(propensity=p[::-1])
            found.append(se.evaluate(*paths, metrics, item_data=data))
            data = se.ItemData(propensity=p.to_dict())
            totals = se.evaluate(*paths, metrics, item_data=data, client=pool, keep="totals")
            for one in (found[-1], totals):
                same(one, frames[-1])
                assert one._part.key["propensities"] == frames[-1]._part.key["propensities"]
    expected = se.compare({"a": frames[0], "b": frames[1]}, METRICS[:4]).table
    pd.testing.assert_frame_equal(
        se.compare({"a": found[0], "b": found[1]}, METRICS[:4]).table, expected
    )
    if dtype in (pa.string(), pa.large_string()):
        se.compare({"a": found[0], "b": frames[1]}, METRICS[:4])


@pytest.mark.parametrize(
    "change", [lambda p: p.to_numpy(), lambda p: p.drop(1), lambda p: p.replace(0.2, 0.0)]
)
def test_refuses_propensities_that_do_not_fit(change):
    data = se.ItemData(propensity=change(pd.Series([0.5, 0.2, 0.9], [3, 1, 2])))
    with temporary() as folder, raises(InvalidDataError):
        se.evaluate(*pair(folder), "psp(propensity=given)@3", item_data=data)


@pytest.mark.parametrize(("n_rows", "ends"), [(1, True), (1000, True), (1000, False)])
@pytest.mark.parametrize("name", ["user", "item"])
def test_text_that_is_not_utf_8(name, ends, n_rows):
    wrong = pa.array([b"a", b"a\xff", b"b", b"c"]).view(pa.string())
    with temporary(n_rows) as folder:
        truth = {**TRUTH, name: list("abc")}
        paths = pair(folder, {**RECS, name: wrong}, truth, group=2, write_statistics=ends)
        with raises(InvalidFileError, column=name):
            se.evaluate(*paths, ["mrr", "coverage@1"])


def test_text_that_is_not_utf_8_in_ranges_of_users():
    items = pa.array([b"a", b"b"] * 7 + [b"a", b"\xff"]).view(pa.string())
    recs = {"user": np.repeat(np.arange(8), 2), "item": items, "rank": [1, 2] * 8}
    truth = {"user": np.arange(8), "item": ["a"] * 8}
    with temporary(4) as folder, raises(InvalidFileError, column="item"):
        se.evaluate(*pair(folder, recs, truth, group=4), "mrr")


def test_workers_that_do_not_see_the_files_of_the_client_are_told(tmp_path):
    with raises(InvalidFileError):
        parquet._read_dealt(tmp_path / "0-0.arrow")
