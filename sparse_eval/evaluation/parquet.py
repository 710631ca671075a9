"""Tables in Parquet that need not fit into memory: evaluated one range of users after the other.

Row groups say the least and the largest user in them. Where tables are in the order of the users,
or nearly so, the users are cut into ranges, and of each only the row groups are read that have some
of them. Tables in any other order are first dealt out, in one pass over the rows, to files of their
own, by a number made of the user.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_left
from collections import deque
from contextlib import ExitStack
from functools import cached_property, partial
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from ..core.progress import is_shown
from ..errors import InvalidDataError, InvalidFileError, MissingExtraError, OutputError
from ..results import MergedEvaluation
from ..results.once import Question, terms_of
from ..results.parts import add_in_order, add_parts, marks
from .arrow import (
    Columns,
    Known,
    check_types,
    evaluate_rows,
    integers_of,
    kind_of,
    texts_of,
    whole_column,
)
from .blocks import check_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from ..results.parts import Part

__all__ = [
    "Group",
    "Piece",
    "Table",
    "deal_out",
    "evaluate_heap",
    "evaluate_parquet",
    "evaluate_piece",
    "items_of",
    "look_around",
    "plan_pieces",
    "settle",
    "temporary_folder",
]

#: Bytes that a row takes at the peak of the evaluation of its block: measured, see
#: benchmarks/SCALE.md.
PER_ROW = 140

#: Rows of a block where nothing says how much memory there is, and of what is read at once.
ROWS = 4_000_000
BATCH = 1 << 20

#: Files that rows are dealt out to, at most: all are open at once.
MOST_HEAPS = 500

#: Row groups are read so many times for each of their rows at most; beyond, rows are dealt out.
MOST_READ = 4.0


class Group(NamedTuple):
    """A row group: where it is, how many rows it has, and the least and largest user in them."""

    path: Path
    number: int
    n_rows: int
    least: Any
    most: Any


class Piece(NamedTuple):
    """Some users: the row groups that have rows of theirs, and from which to which they are.

    Attributes
    ----------
    recs, truth : tuple of Group
    least : int, str or None
        The first of the users, None without a bound.
    below : int, str or None
        Behind the last of them.
    """

    recs: tuple[Group, ...]
    truth: tuple[Group, ...]
    least: Any = None
    below: Any = None


class Table:
    """A Parquet file, or all those in a folder and below."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InvalidFileError("does not exist; expected a Parquet file or a folder", self.path)
        self.files = [self.path]
        if self.path.is_dir():
            self.files = sorted(
                file
                for file in self.path.rglob("*.parquet")
                if file.is_file()
                and not any(part[0] in "._" for part in file.relative_to(self.path).parts)
            )
        if not self.files:
            raise InvalidFileError("has no .parquet file in it", self.path)

    @cached_property
    def schema(self) -> Any:
        """The columns, which are those of each file."""
        return _open(self.files[0]).schema_arrow

    def check(self, wanted: list[str]) -> None:
        """Raise `InvalidFileError` where a file lacks a column, or has it of another type."""
        for file in self.files[1:]:
            schema = _open(file).schema_arrow
            for name in wanted:
                if schema.names.count(name) > 1:
                    raise InvalidFileError(f"there are several columns {name!r}", file)
                found = schema.field(name).type if name in schema.names else None
                if found != self.schema.field(name).type:
                    raise InvalidFileError(
                        f"column {name!r} is {found or 'not there'}, and in {self.files[0].name} "
                        f"{self.schema.field(name).type}; write all files alike",
                        file,
                    )

    def groups(self, user: str) -> list[Group]:
        """Return all row groups that have rows; None for users who are not known."""
        found = []
        for file in self.files:
            meta = _open(file).metadata
            place = next(
                at for at in range(meta.num_columns) if meta.schema.column(at).path == user
            )
            for number in range(meta.num_row_groups):
                group = meta.row_group(number)
                if group.num_rows:
                    ends = _ends(group.column(place).statistics)
                    found.append(Group(file, number, group.num_rows, *ends))
        return found

    def batches(self, names: list[str], n_rows: int = BATCH) -> Iterator[Any]:
        """Read columns, in this order, so many rows at once."""
        for file in self.files:
            batches = _open(file).iter_batches(n_rows, columns=names)
            while (batch := _readable(partial(next, batches, None), file)) is not None:
                yield batch.select(names)


def _ends(statistics: Any) -> tuple[Any, Any]:
    """Return the least and the largest value of a row group, None where they are not known."""
    try:
        if statistics is not None and statistics.has_min_max:
            return statistics.min, statistics.max
    except UnicodeDecodeError:  # some writers cut long text off within a character
        pass
    return None, None


def _readable(read: Callable[[], Any], path: Path) -> Any:
    """Return what `read` reads from a file, or raise `InvalidFileError`."""
    from pyarrow import ArrowException

    try:
        return read()
    except (OSError, ArrowException) as error:
        raise InvalidFileError(f"not a readable Parquet file ({error})", path) from None


def _open(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(
            'reading Parquet takes pyarrow: pip install "sparse_eval[parquet]"'
        ) from None
    return _readable(lambda: parquet.ParquetFile(path), path)


def plan_pieces(recs: list[Group], truth: list[Group], n_rows: int) -> list[Piece] | None:
    """Cut the users into ranges of at most about `n_rows` rows.

    Returns
    -------
    list of Piece or None
        None where the rows are in no such order that this is possible without reading them more
        than a few times.
    """
    groups = recs + truth
    if any(group.least is None for group in groups):
        return None
    n_all = sum(group.n_rows for group in groups)
    begun, ended = _Below(groups, "least"), _Below(groups, "most")
    ranges: list[tuple[Any, Any]] = []
    read = 0

    def size(least: Any, below: Any) -> int:
        """Rows of the groups that may have users from `least` on, below `below`."""
        return (n_all if below is None else begun.n_rows(below)) - ended.n_rows(least)

    least, *others = sorted({group.least for group in groups})
    reached = None
    for below in [*others, None]:
        if reached is not None and size(least, below) > n_rows:
            ranges.append((least, reached))
            read += size(least, reached)
            least = reached
        reached = below
        if size(least, reached) > 2 * n_rows:
            return None
    ranges.append((least, None))
    read += size(least, None)
    if len(ranges) > 1 and read > MOST_READ * n_all:
        return None
    sides = zip(_within(recs, ranges), _within(truth, ranges), strict=True)
    return [Piece(*groups, *ends) for groups, ends in zip(sides, ranges, strict=True)]


class _Below:
    """Rows of the groups whose least, or largest, user is below another."""

    def __init__(self, groups: list[Group], end: Literal["least", "most"]) -> None:
        ordered = sorted(groups, key=attrgetter(end))
        self.ends = [getattr(group, end) for group in ordered]
        self.sums = [0, *accumulate(group.n_rows for group in ordered)]

    def n_rows(self, user: Any) -> int:
        return self.sums[bisect_left(self.ends, user)]


def _within(groups: list[Group], ranges: list[tuple[Any, Any]]) -> Iterator[tuple[Group, ...]]:
    """Yield the groups that may have users of each range; ranges ascend."""
    waiting = deque(sorted(groups, key=attrgetter("least")))
    begun: list[Group] = []
    for least, below in ranges:
        while waiting and (below is None or waiting[0].least < below):
            begun.append(waiting.popleft())
        begun = [group for group in begun if group.most >= least]
        yield tuple(begun)


def evaluate_piece(
    question: Question,
    columns: Columns,
    schemas: tuple[Any, Any],
    piece: Piece,
    known: Known,
    per_user: bool,
    num_threads: int | None = None,
) -> Part:
    """Read the rows of some users and evaluate them; `schemas` are those of both tables."""
    recs = _read(piece.recs, columns.of_recs, piece, schemas[0])
    truth = _read(piece.truth, columns.of_truth, piece, schemas[1])
    return evaluate_rows(question, columns, recs, truth, known, per_user, num_threads)


def _read(groups: tuple[Group, ...], names: list[str], piece: Piece, schema: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = _plain(schema, names)
    dtype = plain.field(0).type
    tables = [plain.empty_table()]
    for group in groups:
        file = _open(group.path)
        table = _readable(partial(file.read_row_group, group.number, names), group.path)
        table = table.select(names).cast(plain)
        whole_column(table, names[0])  # raises where a user is missing, whom a filter would lose
        for user, beyond, keep in (
            (piece.least, group.least < piece.least, pc.greater_equal),
            (piece.below, piece.below is not None and group.most >= piece.below, pc.less),
        ):
            if beyond:
                table = table.filter(keep(table.column(names[0]), pa.scalar(user, dtype)))
        tables.append(table)
    return pa.concat_tables(tables)


def _plain(schema: Any, names: list[str]) -> Any:
    """Return columns as a schema without dictionaries, which differ from file to file.

    The first two are ids. Text is of one type, with which everything can be done.
    """
    import pyarrow as pa

    types = []
    for place, name in enumerate(names):
        dtype = schema.field(name).type
        if pa.types.is_dictionary(dtype):
            dtype = dtype.value_type
        is_text = place < 2 and kind_of(dtype, name, "the table") == "text"
        types.append(pa.large_string() if is_text else dtype)
    return pa.schema(zip(names, types, strict=True))


def evaluate_parquet(
    question: Question,
    recs: str | Path,
    truth: str | Path,
    columns: Columns,
    *,
    memory: int | None = None,
    per_user: bool = False,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> MergedEvaluation:
    """Evaluate recommendations in Parquet, a range of users after the other.

    Parameters
    ----------
    question : Question
    recs, truth : str or Path
        A file, or a folder of files.
    columns : Columns
    memory, per_user, num_threads, progress
        As in `evaluate`.
    """
    terms = terms_of(question)
    tables = Table(recs), Table(truth)
    columns = settle(columns, tables)
    n_rows = ROWS
    if memory is not None:
        n_rows = max((memory // 2 if per_user else memory) // PER_ROW, 1)
    groups = [table.groups(columns.user) for table in tables]
    n_all = sum(group.n_rows for group in groups[0] + groups[1])
    if not groups[1]:
        raise InvalidFileError("has no row; there is nothing to evaluate", truth)
    known = look_around(question, tables, columns)
    schemas = tables[0].schema, tables[1].schema

    def checked(parts: Iterable[Part]) -> Iterator[Part]:
        n_users = 0
        for part in parts:
            n_users += part.span.n
            if memory is not None and per_user:
                check_kept(memory, n_users, len(terms.plans))
            yield part

    with tqdm(
        total=n_all, desc="evaluate", unit=" rows", unit_scale=True, disable=not is_shown(progress)
    ) as bar:
        pieces = plan_pieces(groups[0], groups[1], n_rows)
        if pieces is not None:

            def in_ranges() -> Iterator[Part]:
                for piece in pieces:
                    yield evaluate_piece(
                        question, columns, schemas, piece, known, per_user, num_threads
                    )
                    bar.update(sum(g.n_rows for g in piece.recs + piece.truth))

            parts = add_in_order(checked(in_ranges()))
        else:
            with temporary_folder() as folder:
                heaps = deal_out(tables, columns, n_rows, Path(folder), bar)

                def in_heaps() -> Iterator[Part]:
                    for heap in heaps:
                        yield evaluate_heap(question, columns, heap, known, per_user, num_threads)

                parts = [add_parts(checked(in_heaps()))]
    return MergedEvaluation(parts, terms.plans, terms.rules)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed in the end, or raise `OutputError`."""
    try:
        return tempfile.TemporaryDirectory(prefix="sparse_eval-")
    except OSError as error:
        raise OutputError(
            f"there is no folder for temporary files ({error}), which rows in no order of the "
            "users are dealt out to; name one in TMPDIR, or sort the tables by user"
        ) from None


def settle(columns: Columns, tables: tuple[Table, Table]) -> Columns:
    """Choose columns by what the tables have, and check their types."""
    try:
        found = columns.settled(*(table.schema.names for table in tables))
        check_types(tables[0].schema, tables[1].schema, found)
    except InvalidDataError as error:
        raise InvalidDataError(f"{tables[0].path}, {tables[1].path}: {error}") from None
    tables[0].check(found.of_recs)
    tables[1].check(found.of_truth)
    return found


def look_around(question: Question, tables: tuple[Table, Table], columns: Columns) -> Known:
    """Read what has to be known of all users before the first is evaluated; mostly nothing."""
    wants_catalogue, wants_largest = Known.needed(question)
    catalogue = largest = None
    if wants_catalogue:
        kind = check_types(tables[0].schema, tables[1].schema, columns)[columns.item]
        catalogue = items_of(
            (batch for table in tables for batch in table.batches([columns.item])),
            columns.item,
            kind,
        )
    if wants_largest:
        largest = 1.0
        if columns.gain is not None:
            ends = [
                batch.column(0).to_numpy(zero_copy_only=False).max()
                for batch in tables[1].batches([columns.gain])
                if len(batch)
            ]
            largest = float(max(ends, default=0.0))
    return Known(catalogue, largest)


def items_of(batches: Iterable[Any], name: str, kind: str) -> NDArray[Any]:
    """Return every item in a column of some batches or tables, sorted."""
    import pyarrow.compute as pc

    if kind == "text":
        texts: set[str] = set()
        for batch in batches:
            texts.update(texts_of(pc.unique(whole_column(batch, name)), name))
        return np.array(sorted(texts), object)
    found = np.empty(0, np.int64)
    for batch in batches:
        found = np.union1d(found, integers_of(pc.unique(whole_column(batch, name)), name))
    return found


def deal_out(
    tables: tuple[Table, Table],
    columns: Columns,
    n_rows: int,
    folder: Path,
    bar: Any = None,
) -> list[tuple[Path, Path]]:
    """Write the rows of both tables to pairs of files of about `n_rows`, a user's into one pair."""
    n_all = sum(_open(file).metadata.num_rows for table in tables for file in table.files)
    n_heaps = -(-n_all * 5 // (4 * n_rows)) + 1  # a quarter more, because they are not equal
    if n_heaps > MOST_HEAPS:
        raise InvalidDataError(
            f"{n_all:,} rows in no order of the users would be dealt out to {n_heaps:,} files, for "
            f"which memory is too little; expected at most {MOST_HEAPS}: sort the tables by "
            f"{columns.user!r}, or give more memory"
        )
    needed = sum(file.stat().st_size for table in tables for file in table.files)
    free = shutil.disk_usage(folder).free
    if free < 4 * needed:
        raise OutputError(
            f"{folder.parent}: {free:,} bytes are free, and dealing out rows that are in no order "
            f"of the users may take {4 * needed:,}; sort the tables by {columns.user!r}, or name "
            "another folder for temporary files in TMPDIR"
        )
    found = []
    for number, (table, names) in enumerate(
        zip(tables, (columns.of_recs, columns.of_truth), strict=True)
    ):
        paths = [folder / f"{number}-{heap}.arrow" for heap in range(n_heaps)]
        _deal(table, names, paths, min(BATCH, n_rows), bar)
        found.append(paths)
    return list(zip(*found, strict=True))


def _deal(table: Table, names: list[str], paths: list[Path], n_rows: int, bar: Any) -> None:
    import pyarrow as pa

    schema = _plain(table.schema, names)
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
            heaps = [stack.enter_context(pa.ipc.new_stream(file, schema)) for file in files]
            for batch in table.batches(names, n_rows):
                part = pa.Table.from_batches([batch]).cast(schema)
                _deal_batch(part, names[0], heaps)
                if bar is not None:
                    bar.update(len(part))
    except OSError as error:
        raise OutputError(
            f"{paths[0].parent}: rows cannot be dealt out to temporary files there ({error}); name "
            "another folder for them in TMPDIR"
        ) from None


def _deal_batch(part: Any, user: str, heaps: list[Any]) -> None:
    """Write each row to the heap of its user."""
    import pyarrow as pa

    users = whole_column(part, user)
    if pa.types.is_integer(users.type):
        numbers = marks(integers_of(users, user))
    else:
        encoded = users.dictionary_encode()
        numbers = marks(texts_of(encoded.dictionary, user))[encoded.indices.to_numpy()]
    heap_of = (numbers >> np.uint64(32)) % np.uint64(len(heaps))
    order = np.argsort(heap_of, kind="stable")
    ends = np.searchsorted(heap_of[order], np.arange(len(heaps) + 1))
    dealt = part.take(pa.array(order))
    for heap, (start, end) in zip(heaps, pairwise(ends.tolist()), strict=True):
        if end > start:
            heap.write_table(dealt.slice(start, end - start))


def evaluate_heap(
    question: Question,
    columns: Columns,
    heap: tuple[Path, Path],
    known: Known,
    per_user: bool,
    num_threads: int | None = None,
) -> Part:
    """Evaluate the users whose rows were dealt out to two files."""
    recs, truth = (_read_heap(path) for path in heap)
    return evaluate_rows(question, columns, recs, truth, known, per_user, num_threads)


def _read_heap(path: Path) -> Any:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()
