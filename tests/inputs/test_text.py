"""Arrow reads delimited text as it is read line by line, or leaves it to that."""

import bz2
import csv
import gzip
import re
import subprocess
import sys
import warnings

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.errors import InvalidFileError, SparseEvalError
from sparse_eval.inputs import text
from sparse_eval.inputs.tables import TextTable
from sparse_eval.inputs.text import Field

IDS = ["a", "b", "7", "007", "NA", "é", " a", "", " ", "\u00a0", "0x1F", "\ufeffb", "a,b", 'c"d']
NUMBERS = ["1", "0.1", "1e3", "-0", "0.30000000000000004", "1e400", "1e-400", "nan", "-1", "", " 2"]
NUMBERS += ["+3", "1_0", ".5", "5.", "inf", "0x10", "NULL", "٣", "1d0", "2 "]
TIMES = ["5", "-7", "007", "1e3", "1.0", "+5", " 5", "9223372036854775808", "0x1F", "-0x1f", "NA"]
DATES = ["2024-01-01", "2024-01-01T10", "2024-01-01 10:05", "2024-01-01T10:05:01.5", "2500-01-01"]
DATES += ["2024-01-01T10:05:01.123456789", "2024-01-01T10:05Z", "2024-01-01T10:05:01+01:00"]
DATES += ["2024-01-01T10:05:01.1234567891", " 2024-01-01", "20240101", "2024-W01-1", "1600-01-01"]
DATES += ["1677-09-21", "1677-09-22", "2262-04-11", "2262-04-12", "2024-02-30", "2024-01-01T24:00"]
DATES += ["01/02/2024"]
KINDS = ("id", "id", "gain", "time", "text", "number")
CELLS = [IDS, IDS, NUMBERS, TIMES + DATES, IDS, NUMBERS]
PLAIN = [IDS[:4], IDS[:4], NUMBERS[:3], TIMES[:3], IDS[:4], NUMBERS[:3]]
SOUP = [*'a1"\t\x1f\ufeff ,,\n\n', '"a"', '""', '"a,b"', "::"]


@st.composite
def tables(draw):
    """Draw a table, mostly of plain lines, and its separator."""
    sep = draw(st.sampled_from([",", ",", ",", "\t", "::", "§", " "]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    plain = [[*PLAIN[:3], draw(st.sampled_from([TIMES[:3], DATES[:4]])), *PLAIN[4:]]]
    rows = []
    for cells in draw(st.lists(st.sampled_from([*plain * 9, CELLS]), min_size=1, max_size=9)):
        quoted = draw(st.sampled_from([set(), {0, 3}, set(range(6))]))
        row = [draw(st.sampled_from(column)) for column in cells]
        rows.append(sep.join(f'"{c}"' if at in quoted else c for at, c in enumerate(row)))
    if draw(st.integers(0, 3)) == 0:
        soup = "".join(draw(st.lists(st.sampled_from(SOUP), max_size=9)))
        rows.insert(draw(st.integers(0, len(rows))), soup)
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return mark + end.join(rows) + draw(st.sampled_from(["", end, end + end])), sep


def outcome(path, fields, **options):
    """Return all rows, types and warnings, or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            table = TextTable(path, header=False, **options)
            known = [field for field in fields if field.column < len(table.names)]
            batches = list(table.batches(known or [Field("c0", 0, KINDS[0])]))
        except SparseEvalError as error:
            return type(error), str(error), [str(each.message) for each in told]
    rows = (
        pa.concat_tables(map(pa.table, batches)).unify_dictionaries() if batches else pa.table({})
    )
    plain = [rows[name].cast(pa.string()).to_pylist() for name in rows.column_names]
    return rows.schema, plain, table.n_skipped, [str(each.message) for each in told]


def refuse(*_):
    raise text._UnlikeError


@given(
    tables(),
    st.sets(st.integers(0, 5), min_size=1).map(sorted),
    st.sampled_from(["error", "skip"]),
    st.sampled_from([20, 2**20]),
    st.sampled_from([1, 2]),
)
@example(("a,b,1,2024-01-01T10Z,t,2\n", ","), [0, 3], "error", 2**20, 1)
@example(("a,b,1,2024-01-01T10Z,t,2\na,b,1,2024-01-01,t,2\n", ","), [0, 3], "error", 2**20, 1)
@example(('"a"\n"b"\n', ","), [0], "error", 2**20, 1)
def test_arrow_reads_what_lines_hold(tmp_path_factory, drawn, columns, bad, size, n_threads):
    content, sep = drawn
    path = tmp_path_factory.getbasetemp() / "drawn.csv"
    path.write_bytes(content.encode())
    fields = [Field(f"c{column}", column, KINDS[column]) for column in columns]
    options = {"sep": sep, "on_bad_lines": bad}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "thread_count", lambda _: n_threads)
        patch.setattr(text, "_PIECE", 1)
        patch.setattr(text, "_CHUNK", size)
        found = outcome(path, fields, **options)
        patch.setattr(text.Reader, "_parse", refuse)
        assert found == outcome(path, fields, **options)


FIELD = r'(?:[^",\n]*|"(?:[^"\n]|"")*")'


@given(st.text('",a\n', max_size=20))
@example('"a""b"')
@example('"a,a"')
@example('"a\na"')
def test_only_quotes_that_nothing_needs_are_taken_away(content):
    lines = content + "\n"
    if not re.fullmatch(rf"(?:{FIELD}(?:,{FIELD})*\n)*", lines):
        with pytest.raises(text._UnlikeError):
            text._without_quotes(lines.encode(), ord(","))
        return
    are_needed = any(
        set(',"') & set(field) for row in csv.reader(lines.splitlines()) for field in row
    )
    expected = lines if are_needed else lines.replace('"', "")
    assert text._without_quotes(lines.encode(), ord(",")).decode() == expected


def test_quoted_fields_of_any_length():
    limit = csv.field_size_limit()
    field = "i" * (limit + 1)
    assert text.split_fields(f'u,"{field}"', ",") == ["u", field]
    with pytest.raises(text.OpenQuoteError):
        text.split_fields(f'u,"{field}', ",")
    assert csv.field_size_limit() == limit


@pytest.mark.long
@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_loses_no_line(tmp_path, monkeypatch, suffix, compress):
    """Of lines longer than a block, in several streams; a damaged stream or line is an error."""
    monkeypatch.setattr(text, "_CHUNK", 50)
    lines = [f"u{number},{'i' * (number % 200)}x" for number in range(1000)]
    fields = [Field("user", 0, "id"), Field("item", 1, "id")]
    data = "\r".join(lines).encode()
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(compress(data[:900]) + compress(data[900:]))
    batches = TextTable(path, header=False).batches(fields)
    assert [
        ",".join(row.values()) for batch in batches for row in pa.table(batch).to_pylist()
    ] == lines
    for damaged, line in ((compress(data)[:-9], None), (compress(data + b"\ru"), 1001)):
        path.write_bytes(damaged)
        with raises(InvalidFileError, path=path, line=line):
            list(TextTable(path, header=False).batches(fields))


SCRIPT = """
import os, resource, signal, sys, threading
from sparse_eval.inputs.tables import TextTable
from sparse_eval.inputs.text import Field
def read():
    fields = [Field("user", "user", "id"), Field("at", "at", "time")]
    return sum(len(batch["user"]) for batch in list(TextTable(sys.argv[1]).batches(fields)))
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
    assert read() == n_rows
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**20, -1))
kept = []
try:
    while True:
        kept.append(bytearray(2**22))
except MemoryError:
    kept.pop()
try:
    read()
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print("read", read())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.long
def test_survives_a_fork_an_interruption_and_a_lack_of_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,at\n" + "".join(f"u{at % 9973},{at}\n" for at in range(900_000)))
    command = [sys.executable, "-c", SCRIPT, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "read 900000\n", done.stderr
