"""Tables in Parquet: the same bits as of frames in memory, whatever the order of the rows."""

from __future__ import annotations

import errno
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_cases import every_metric, same_numbers
from raising import raises

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidFileError,
    OutputError,
    SparseEvalError,
)
from sparse_eval.evaluation import arrow, parquet, run

METRICS = ["ndcg@3", "recall@2", "map", "mrr@4", "recall(average=micro)@3", "coverage@2"]

RECS: dict[str, list[Any]] = {"user": [0, 0, 1, 1], "item": [1, 2, 1, 3], "rank": [1, 2, 1, 2]}
TRUTH: dict[str, list[Any]] = {"user": [0, 1, 2], "item": [2, 1, 1]}


@contextmanager
def temporary(n_rows: int | None = None) -> Iterator[Path]:
    """Give a folder, and another one for temporary files that has to be empty in the end."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        rows = parquet.ROWS_AT_ONCE if n_rows is None else 2 * n_rows
        with (
            mock.patch.object(tempfile, "tempdir", str(scratch)),
            mock.patch.object(parquet, "ROWS_AT_ONCE", rows),
            mock.patch.object(parquet, "thread_count", return_value=2),
        ):
            yield Path(folder)
        assert list(scratch.iterdir()) == []


def written(
    folder: Path, name: str, table: Any, n_files: int = 1, group: int | None = None, **options: Any
) -> Path:
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


def pair(folder: Path, recs: Any = None, truth: Any = None, **options: Any) -> tuple[Path, Path]:
    tables = [
        side if isinstance(side, pa.Table) else pa.table(side)
        for side in (RECS if recs is None else recs, TRUTH if truth is None else truth)
    ]
    return written(folder, "recs", tables[0], **options), written(
        folder, "truth", tables[1], **options
    )


def of_frames(recs: pd.DataFrame, truth: pd.DataFrame, metrics: list[str]) -> se.Evaluation:
    order = {name: name for name in ("rank", "score") if name in recs}
    gain = "gain" if "gain" in truth else None
    return se.evaluate(
        se.Rankings.from_frame(recs, **order), se.Relevance.from_frame(truth, gain=gain), metrics
    )


def same_bits(found: se.Evaluation, expected: se.Evaluation) -> None:
    pd.testing.assert_frame_equal(
        found.per_user,
        expected.per_user.sort_index(),
        check_exact=True,
        check_index_type=False,
        check_names=False,
    )
    assert repr(found.mean()) == repr(expected.mean())
    same_numbers(found, expected)


def writes_views() -> bool:
    """Return whether Arrow writes views of text to Parquet, as newer versions do."""
    try:
        views = pa.table({"id": pa.array(["a"]).cast(pa.string_view())})
        pq.write_table(views, io.BytesIO())
    except (AttributeError, pa.ArrowNotImplementedError):
        return False
    return True


IDS = {
    "int64": (lambda n: n - 5, "int64"),
    "int32": (lambda n: n, "int32"),
    "uint32": (lambda n: 2**32 - 40 + n, "uint32"),
    "huge": (lambda n: (n - 3) * 2**58, "int64"),
    "far": (lambda n: 2**31 - 5 + n, "uint64"),
    "text": (lambda n: f"ü{n % 7}\U0001f600{n}", "string"),
    "large": (lambda n: f"{n}\n", "large_string"),
    "view": (lambda n: f"{n}é", "string_view" if writes_views() else "string"),
    "dictionary": (lambda n: f"{n}", "dictionary"),
}


def arrow_type(name: str) -> Any:
    return pa.dictionary(pa.int32(), pa.string()) if name == "dictionary" else getattr(pa, name)()


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw both tables, as frames and as tables of Arrow."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_users, n_items = draw(st.integers(1, 25)), draw(st.integers(1, 15))
    users, items = (
        draw(st.sampled_from(list(IDS.values()))),
        draw(st.sampled_from(list(IDS.values()))),
    )
    by_score, graded, gaps = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    rows: list[tuple[Any, ...]] = []
    for user in range(n_users):
        if rng.random() < 0.8:
            listed = rng.permutation(n_items)[: rng.integers(1, 8)]
            ranks = np.sort(rng.permutation(30)[: len(listed)]) if gaps else np.arange(len(listed))
            values = rng.integers(-2, 2, len(listed)) / 3 if by_score else ranks + 1
            pairs = zip(listed, values, strict=True)
            rows += [(users[0](user), items[0](int(item)), value) for item, value in pairs]
    order = "score" if by_score else "rank"
    held: list[tuple[Any, ...]] = [(users[0](0), items[0](0), 1.0)]
    for user in range(n_users + 3):
        for item in rng.integers(0, n_items + 2, rng.integers(0, 5)):
            gain = rng.choice([0.0, 0.1, 0.2, 0.7, 3.0]) if graded else 1.0
            held.append((users[0](user), items[0](int(item)), gain))
    recs = pd.DataFrame(rows or [(users[0](0), items[0](0), 1)], columns=["user", "item", order])
    truth = pd.DataFrame(held, columns=["user", "item", "gain"])
    if not graded:
        truth = truth.drop(columns="gain")
    way = draw(st.sampled_from(["sorted", "shuffled", "nearly"]))
    frames = []
    for frame in (recs, truth):
        frame = frame.sample(frac=1, random_state=int(rng.integers(1000)))
        if way == "sorted":
            frame = frame.sort_values("user", kind="stable")
        elif way == "nearly":
            place = frame["user"].rank(method="dense") + rng.integers(0, 3, len(frame))
            frame = frame.iloc[np.argsort(place.to_numpy(), kind="stable")]
        frames.append(frame.reset_index(drop=True))
    tables = []
    for frame in frames:
        names = draw(st.permutations(list(frame.columns)))
        arrays = {name: pa.array(frame[name].tolist()) for name in names}
        arrays["user"] = arrays["user"].cast(arrow_type(users[1]))
        arrays["item"] = arrays["item"].cast(arrow_type(items[1]))
        tables.append(pa.table({**arrays, "other": pa.nulls(len(frame))}))
    return {"frames": frames, "tables": tables}


@pytest.mark.long
@settings(max_examples=70)
@given(
    problems(),
    st.integers(1, 3),
    st.integers(1, 40),
    st.integers(1, 200),
    st.booleans(),
    st.booleans(),
)
def test_any_tables_give_the_same_bits_as_frames(
    problem: dict[str, Any], n_files: int, group: int, n_rows: int, ends: bool, more: bool
) -> None:
    metrics = METRICS
    if more:  # which take another pass over the tables
        metrics = [name for name in every_metric() if name not in ("rbp(gain=linear)@3", "err@3")]
    expected = None
    try:
        expected = of_frames(*problem["frames"], metrics)
    except SparseEvalError as error:
        refusal = type(error)
    with temporary(n_rows) as folder:
        paths = pair(
            folder,
            *problem["tables"],
            n_files=n_files,
            group=group,
            write_statistics=ends,
        )
        if expected is None:
            with pytest.raises(refusal):
                se.evaluate(*paths, metrics)
            return
        found = se.evaluate(*paths, metrics)
        same_bits(found, expected)
        without = se.evaluate(*paths, metrics, keep="totals")
        assert repr(without.mean()) == repr(found.mean())
        pd.testing.assert_frame_equal(without.summary(), found.summary(), check_exact=True)


@pytest.mark.parametrize("metric", ["rbp(gain=linear)@3", "err@3"])
def test_the_largest_gain_is_that_of_all_users(metric: str) -> None:
    truth = {**TRUTH, "gain": [1.0, 4.0, 0.5]}
    with temporary(2) as folder:
        found = se.evaluate(*pair(folder, truth=truth, group=1), metric)
        same_bits(found, of_frames(pd.DataFrame(RECS), pd.DataFrame(truth), [metric]))
        twice = {"user": [0, 1, 1], "item": [2, 1, 1], "gain": [1.0, 4.0, 0.5]}
        with raises(InvalidDataError):
            se.evaluate(*pair(folder, truth=twice, group=1), metric)
        del twice["gain"]
        with raises(InvalidDataError):
            se.evaluate(*pair(folder, truth=twice, group=1), metric)


def test_one_user_with_many_items() -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    users = np.concatenate((np.zeros(n, np.int64), [1, 2, 3] * 5))
    items = np.concatenate((rng.permutation(n), np.repeat(np.arange(5), 3)))
    recs = pd.DataFrame({"user": users, "item": items, "score": rng.random(len(users))})
    truth = pd.DataFrame({"user": [0, 0, 1, 3], "item": [5, n - 1, 4, 2]})
    with temporary(3 * n // 400) as folder:
        tables = [pa.Table.from_pandas(side, preserve_index=False) for side in (recs, truth)]
        found = se.evaluate(*pair(folder, *tables, group=10_000), ["mrr", "ndcg@10"])
        same_bits(found, of_frames(recs, truth, ["mrr", "ndcg@10"]))


def test_values_beyond_the_budget_are_refused() -> None:
    n = 100_000
    table = {"user": np.arange(n), "item": np.zeros(n, np.int64), "rank": np.ones(n, np.int64)}
    with temporary() as folder:
        paths = pair(folder, table, {k: table[k] for k in ("user", "item")}, group=10_000)
        with raises(InvalidDataError):
            se.evaluate(*paths, METRICS, memory=1 << 24)
        assert se.evaluate(*paths, "mrr", memory=1 << 24, keep="totals")["mrr"] == 1
        with raises(InvalidDataError, argument="memory"):
            se.evaluate(*paths, "mrr", memory=1000)


def test_refuses_too_many_files_to_deal_out_to() -> None:
    n = 1000
    users = np.tile(np.arange(10), n // 10)
    table = {"user": users, "item": np.arange(n), "rank": np.repeat(np.arange(1, n // 10 + 1), 10)}
    with temporary(1) as folder:
        paths = pair(folder, table)
        with raises(InvalidDataError):
            se.evaluate(*paths, "mrr")


def shuffled(folder: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"user": np.repeat(np.arange(50), 4), "item": np.tile(np.arange(4), 50)})
    rows["rank"] = rows["item"] + 1
    rows = rows.sample(frac=1, random_state=rng.integers(100))
    return pair(folder, pa.Table.from_pandas(rows, preserve_index=False), group=20)


def of_users(folder: Path, users: Any) -> tuple[Path, Path]:
    """Write four rows of each user in no order, and one relevant item."""
    rng = np.random.default_rng(0)
    rows = pa.table({"user": users.repeat(4), "item": np.tile(np.arange(4), len(users))})
    rows = rows.append_column("rank", [rows["item"].to_numpy() + 1]).take(
        rng.permutation(len(rows))
    )
    truth = pa.table({"user": rng.permutation(users), "item": np.full(len(users), 2)})
    return pair(folder, rows, truth, group=20)


def test_small_whole_numbers_are_dealt_out_to_many_files() -> None:
    with temporary(3) as folder:
        paths = of_users(folder, np.arange(-50, 50, dtype=np.int8))
        with mock.patch.object(parquet, "_deal", wraps=parquet._deal) as deal:
            assert se.evaluate(*paths, "mrr")["mrr"] == pytest.approx(1 / 3)
        assert len(deal.call_args[0][1]) > 127


@pytest.mark.parametrize(("n_rows", "n_threads"), [(150, 2), (120, 1)])
def test_whole_numbers_with_a_common_divisor_are_dealt_out_to_several_files(
    n_rows: int, n_threads: int
) -> None:
    count = mock.patch.object(parquet, "thread_count", return_value=n_threads)
    with temporary(n_rows) as folder, count:
        paths = of_users(folder, 30 * np.arange(100))
        with mock.patch.object(parquet, "_deal", wraps=parquet._deal) as deal:
            assert se.evaluate(*paths, "mrr")["mrr"] == pytest.approx(1 / 3)
        n_files = len(deal.call_args[0][1])
        assert np.bincount(30 * np.arange(100) % n_files).max() < 20


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


@pytest.mark.parametrize("fails", ["deal", "evaluate", "interrupt"])
def test_nothing_is_left_behind_after_an_error(fails: str) -> None:
    with temporary(40) as folder:
        paths = shuffled(folder)
        before = open_files()
        if fails == "deal":
            broken = mock.patch.object(
                pa.ipc.RecordBatchStreamWriter,
                "write_table",
                side_effect=OSError(errno.ENOSPC, "No space left on device"),
            )
            error: type[BaseException] = OutputError
        else:
            error = KeyboardInterrupt if fails == "interrupt" else InvalidDataError
            broken = mock.patch.object(run, "evaluate_block", side_effect=error("so"))
        with broken, pytest.raises(error):
            se.evaluate(*paths, "mrr")
        assert open_files() <= before + 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_rows_that_cannot_be_dealt_out(number: int) -> None:
    broken = mock.patch.object(pa.ipc, "new_stream", side_effect=OSError(number, "full"))
    with temporary(40) as folder:
        paths = shuffled(folder)
        with broken, raises(OutputError):
            se.evaluate(*paths, "mrr")


@pytest.mark.parametrize("group", [4, 5, 7])
def test_users_with_rows_in_two_row_groups_are_in_one_range(group: int) -> None:
    rows = {"user": np.repeat(np.arange(30), 3), "item": np.arange(90) % 7}
    recs, truth = {**rows, "rank": np.tile([1, 2, 3], 30)}, {**rows, "item": np.arange(90) % 4}
    with temporary(20) as folder, mock.patch.object(parquet.ParquetSource, "_deal_out") as dealt:
        found = se.evaluate(*pair(folder, recs, truth, group=group), METRICS)
        dealt.assert_not_called()
    same_bits(found, of_frames(pd.DataFrame(recs), pd.DataFrame(truth), METRICS))


REFUSED: dict[str, tuple[Any, Any, type[SparseEvalError], str]] = {
    "no user": ({"item": [1], "rank": [1]}, None, InvalidDataError),
    "no order": ({"user": [1], "item": [1]}, None, InvalidDataError),
    "types": ({**RECS, "user": list("aabb")}, None, InvalidDataError),
    "float ids": ({**RECS, "item": [1.0, 2, 1, 3]}, None, InvalidDataError),
    "nested": ({**RECS, "user": [{"x": 1}] * 4}, None, InvalidDataError),
    "null user": ({**RECS, "user": [0, None, 1, 1]}, None, InvalidDataError),
    "null rank": ({**RECS, "rank": [1, None, 1, 2]}, None, InvalidDataError),
    "null gain": (None, {**TRUTH, "gain": [1, None, 1]}, InvalidDataError),
    "rank 0": ({**RECS, "rank": [1, 0, 1, 2]}, None, InvalidDataError),
    "rank 2^40": ({**RECS, "rank": [1, 2, 1, 2**40]}, None, InvalidDataError),
    "pair twice": ({**RECS, "item": [1, 1, 1, 3]}, None, InvalidDataError),
    "score inf": ({"user": [7], "item": [1], "score": [np.inf]}, None, InvalidDataError),
    "score 2^53": (
        {"user": [0, 0], "item": [1, 2], "score": [2**53, 2**53 + 1]},
        None,
        InvalidDataError,
    ),
    "negative gain": (None, {**TRUTH, "gain": [1, 2, -1]}, InvalidDataError),
    "hidden negative": (
        None,
        {"user": [0, 0], "item": [1, 1], "gain": [5.0, -1.0]},
        InvalidDataError,
    ),
    "sum that is not finite": (
        None,
        {"user": [0, 0], "item": [1, 1], "gain": [1e308] * 2},
        InvalidDataError,
    ),
    "blank": ({**RECS, "item": list("ab c")}, {"user": [0], "item": ["a"]}, InvalidDataError),
    "beyond 64 bits": (
        {**RECS, "user": pa.array([0, 0, 1, 2**63], pa.uint64())},
        None,
        InvalidDataError,
    ),
    "several columns": (
        pa.Table.from_arrays([pa.array([1])] * 4, ["user", "item", "item", "rank"]),
        None,
        InvalidDataError,
    ),
    "empty truth": (None, pa.table(TRUTH).slice(0, 0), InvalidFileError),
    "nothing relevant": (None, {**TRUTH, "gain": [0.0] * 3}, InvalidDataError),
}


@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_rows(name: str, n_rows: int) -> None:
    recs, truth, error = REFUSED[name]
    with temporary(n_rows) as folder:
        paths = pair(folder, recs, truth, group=2)
        with raises(error) as caught:
            se.evaluate(*paths, ["mrr", "coverage@1"])
        assert name == "nothing relevant" or any(
            str(caught.value).startswith(str(path)) for path in paths
        )


def test_a_missing_user_is_not_lost_between_ranges() -> None:
    users = pa.array([0, 1, 2, None, 3, 4], pa.int64())
    recs = {"user": users, "item": [1] * 6, "rank": [1] * 6}
    with temporary(2) as folder:
        paths = pair(folder, recs, {"user": [0, 1, 2, 3, 4], "item": [1] * 5}, group=3)
        with raises(InvalidDataError):
            se.evaluate(*paths, "mrr")


def test_refuses_items_that_the_catalogue_did_not_hold_when_it_was_read() -> None:
    columns = arrow.Columns(("user", "item", "rank"), True, ("user", "item"))
    load = arrow.RowsLoader(columns, np.array([1, 2]))
    with raises(InvalidDataError, column="item"):
        load((pa.table(RECS), pa.table(TRUTH)))


def test_refuses_other_files() -> None:
    with temporary() as folder:
        recs, truth = pair(folder)
        text = folder / "text.parquet"
        text.write_bytes(b"no table\n")
        short = folder / "short.parquet"
        short.write_bytes(recs.read_bytes()[:-4])
        empty = folder / "empty"
        empty.mkdir()
        (empty / "notes.txt").write_text("no table")
        for path in (text, short, folder / "missing", empty):
            for given_ in ((path, truth), (recs, path)):
                with raises(InvalidFileError):
                    se.evaluate(*given_, "mrr")


@pytest.mark.parametrize(("bound", "wrong"), [(2000, 2002), (2003, 2001)])
def test_refuses_statistics_that_are_wrong(bound: int, wrong: int) -> None:
    with temporary(n_rows=4) as folder:
        users = [1000, 1001, 1002, 1003, 2000, 2001, 2002, 2003]
        items, ranks = list(range(8)), [1] * 8
        sides = pair(
            folder,
            {"user": users, "item": items, "rank": ranks},
            {"user": users, "item": items},
            group=4,
        )
        assert se.evaluate(*sides, "mrr@1").mean()["mrr@1"] == 1
        content = sides[0].read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        changed = content[footer:].replace(bound.to_bytes(8, "little"), wrong.to_bytes(8, "little"))
        sides[0].write_bytes(content[:footer] + changed)
        with raises(InvalidFileError):
            se.evaluate(*sides, "mrr@1")


@pytest.mark.parametrize("n_rows", [1, 1000])
def test_refuses_pages_that_are_not_as_their_checksums_say(n_rows: int) -> None:
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    with temporary(n_rows) as folder:
        recs, truth = pair(folder, {**RECS, "item": [1, 2, 1, 77_777]}, **options)
        changed = recs.read_bytes().replace((77_777).to_bytes(8, "little"), b"\3" + b"\0" * 7)
        recs.write_bytes(changed)
        with raises(InvalidFileError):
            se.evaluate(recs, truth, "mrr")


def test_a_folder_with_other_files() -> None:
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


@pytest.mark.parametrize("side", [0, 1])
def test_files_with_other_columns(side: int) -> None:
    truth = {**TRUTH, "gain": [1.0, 2.0, 0.5]}
    whole, value = (RECS, "rank") if side == 0 else (truth, "gain")
    for other in (
        {**whole, "user": list("abcd")[: len(whole["user"])]},
        {"user": [5], "item": [1]},
        pa.Table.from_arrays([pa.array([1])] * 4, ["user", "user", "item", value]),
    ):  # fmt: skip
        with temporary() as folder:
            sides = list(pair(folder, RECS, truth))
            sides[side] = folder / "side"
            sides[side].mkdir()
            pq.write_table(pa.table(whole), sides[side] / "a.parquet")
            table = other if isinstance(other, pa.Table) else pa.table(other)
            pq.write_table(table, sides[side] / "b.parquet")
            with raises(InvalidFileError):
                se.evaluate(*sides, "mrr")


@pytest.mark.parametrize("n_rows", [2, 1000])
def test_files_whose_columns_are_in_another_order_or_required(n_rows: int) -> None:
    with temporary(n_rows) as folder:
        truth = pair(folder)[1]
        recs = folder / "recs"
        recs.mkdir()
        whole = pa.table(RECS)
        required = pa.schema([pa.field(f.name, f.type, nullable=False) for f in whole.schema])
        pq.write_table(whole.slice(0, 2).select(["rank", "item", "user"]), recs / "a.parquet")
        pq.write_table(whole.slice(2).cast(required), recs / "b.parquet")
        expected = of_frames(pd.DataFrame(RECS), pd.DataFrame(TRUTH), METRICS)
        same_bits(se.evaluate(recs, truth, METRICS), expected)


@pytest.mark.parametrize("name", IDS)
def test_evaluations_of_other_recommendations_can_be_compared(name: str) -> None:
    of, dtype = IDS[name]
    rng = np.random.default_rng(0)
    truth = {"user": np.repeat(np.arange(20), 2), "item": np.tile([3, 4], 20)}
    found, frames = [], []
    for n_items in (6, 30):  # so that columns are other items
        items = np.array([rng.permutation(n_items)[:4] for _ in range(20)]).ravel()
        recs = {"user": np.repeat(np.arange(20), 4), "item": items, "rank": [1, 2, 3, 4] * 20}
        ids = [pa.array(map(of, side["item"].tolist())) for side in (recs, truth)]
        sides = [
            pa.table({**side, "item": one.cast(arrow_type(dtype))})
            for side, one in zip((recs, truth), ids, strict=True)
        ]
        with temporary(30) as folder:
            found.append(se.evaluate(*pair(folder, *sides, group=10), METRICS[:4]))
        frames.append(of_frames(*(side.to_pandas() for side in sides), METRICS[:4]))
    expected = frames[0].compare(frames[1]).table
    pd.testing.assert_frame_equal(found[0].compare(found[1]).table, expected)
    if arrow_type(dtype) in (pa.string(), pa.large_string()):
        found[0].compare(frames[1])


@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("name", ["user", "item"])
def test_text_that_is_not_utf_8(name: str, ends: bool, n_rows: int) -> None:
    wrong = pa.array([b"a", b"a\xff", b"b", b"c"]).view(pa.string())
    with temporary(n_rows) as folder:
        truth = {**TRUTH, name: list("abc")}
        paths = pair(folder, {**RECS, name: wrong}, truth, group=2, write_statistics=ends)
        with raises(InvalidFileError, column=name):
            se.evaluate(*paths, ["mrr", "coverage@1"])
