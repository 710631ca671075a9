"""Reading text block by block gives what reading it as a whole gives, or leaves it to that."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises, warns

from sparse_eval.datasets import SkippedLinesWarning, blocks, delimited, load_csv, text_blocks
from sparse_eval.datasets.blocks import UnusualError
from sparse_eval.errors import SparseEvalError

HEADER = "user,item,rating,timestamp,event"
IDS = ["a", "b", "7", "-3", "007", "NA", "null", "nan", "é", " a", "a ", "", " ", "True", "0x1F"]
IDS += ["\ufeffb"]
NUMBERS = ["1", "0.1", "5e-1", "1e3", "0", "-0", "0.30000000000000004", "1e400", "1e-400", "nan"]
NUMBERS += ["-1", "", " 2", "2 ", "+3", "1_0", ".5", "5.", "inf", "0x10", "NULL", "٣", "1d0"]
TIMES = ["5", "-7", "007", "1e3", "1.0", "+5", " 5", "9223372036854775808", "0x1F", "-0x1f", "NA"]
DATES = ["2024-01-01", "2024-01-01T10", "2024-01-01 10:05", "2024-01-01T10:05:01.5", "2500-01-01"]
DATES += ["2024-01-01T10:05:01.123456789", "2024-01-01T10:05Z", "2024-01-01T10:05:01+01:00"]
DATES += ["2024-01-01T10:05:01.1234567891", " 2024-01-01", "20240101", "2024-W01-1", "1600-01-01"]
DATES += ["1677-09-21", "1677-09-22", "2262-04-11", "2262-04-12", "2024-02-30", "2024-01-01T24:00"]
LINE = st.tuples(
    st.sampled_from(IDS[:5]),
    st.sampled_from(IDS[:7]),
    st.sampled_from(NUMBERS[:6]),
    st.sampled_from(TIMES[:3]),
    st.sampled_from(["view", "buy", ""]),
)
DATED = st.tuples(
    *[st.sampled_from(plain) for plain in (IDS[:5], IDS[:7], NUMBERS[:6], DATES, ["buy"])]
)
ODD = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(IDS),
    st.sampled_from(NUMBERS),
    st.sampled_from(TIMES + DATES),
    st.sampled_from(["view", "buy", ""]),
).map(list)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Draw a table: mostly plain, with odd fields, quotes, separators and line ends."""
    kind = draw(st.sampled_from([LINE, LINE, DATED, ODD]))
    lines = draw(st.lists(kind, min_size=1, max_size=6))
    if draw(st.booleans()):
        lines += draw(st.lists(ODD, max_size=1))
    sep = draw(st.sampled_from([",", ",", "\t", "::", ";", " "]))
    quoted = draw(st.sets(st.integers(0, 4)))
    rows = [
        sep.join(f'"{field}"' if place in quoted else field for place, field in enumerate(line))
        for line in lines
    ]
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(rows)))
        rows.insert(place, draw(st.sampled_from(["", "  ", "a,b", '"', '""', 'a"b', '"a,b",1'])))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    text = end.join([HEADER.replace(",", sep), *rows]) + draw(st.sampled_from(["", end, end + end]))
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + text.encode()


def outcome(path: Path, **options: object) -> tuple[object, ...]:
    """Return all that a call gives: events, dtypes, warnings, or its error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read = load_csv(path, **options)
        except SparseEvalError as error:
            return type(error), str(error), [str(each.message) for each in told]
    arrays = (read.user_codes, read.item_codes, read.values, read.timestamps)
    return (
        [None if array is None else (array.dtype, array.tobytes()) for array in arrays],
        [(index.dtype, type(index), index.tolist()) for index in (read.users, read.items)],
        (read.n_skipped, read.time_unit, read.recognized, read.dropped),
        [str(each.message) for each in told],
    )


OPTIONS = [
    {},
    {"on_bad_lines": "skip"},
    {"value": None, "timestamp": None},
    {"event": "event", "keep": ["buy"]},
    {"event": "event", "keep": ["buy"], "users": ["a", "b", "7", "-3"], "timestamp": None},
    {"users": [7, -3], "items": ["b", "a", "7"], "on_bad_lines": "skip"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("size", [40, 1])
@given(text=tables(), options=st.sampled_from(OPTIONS))
def test_blocks_give_what_the_whole_gives(folder, size, text, options):
    path = folder / "events.csv"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_blocks, "_BLOCK", size)
        patch.setattr(blocks, "_FEW", size)
        found = outcome(path, **options)
        patch.setattr(delimited.TextTable, "_from_blocks", refuse)
        assert found == outcome(path, **options)


def refuse(*_: object) -> None:
    raise UnusualError


def test_a_fault_in_a_late_block_is_told_with_its_line(write, monkeypatch):
    path = write("a.csv", "user,item\n" + "a,b\n" * 100 + "c\n")
    monkeypatch.setattr(text_blocks, "_BLOCK", 50)
    with raises(SparseEvalError, line=102):
        load_csv(path)
    with warns(SkippedLinesWarning):
        assert len(load_csv(path, on_bad_lines="skip")) == 100
