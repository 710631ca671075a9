"""Tables in Parquet that need not fit into memory, read one range of users after the other.

Row groups record the least and the largest user in them. If tables are (nearly) sorted by user, the
users are cut into ranges, and each range reads only the row groups with some of its users. Tables
in any other order are first distributed to temporary files, in one pass over the rows. Users that
are whole numbers are distributed by their remainder, text by its hash.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.csr import group_rows
from ..core.hashing import hash_labels
from ..core.progress import progress_bar
from ..core.threads import read_ahead, thread_count
from ..errors import InvalidDataError, InvalidFileError, OutputError, shown
from ..inputs.axes import encode
from ..inputs.column_values import is_text, numbers_of, plain_type
from ..inputs.formats import check_columns, open_parquet, read_parquet_rows
from ..inputs.input_files import is_uri, naming
from ..inputs.tables import open_table
from .table_blocks import (
    RowsLoader,
    TableSource,
    check_ids,
    signed,
    whole_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    import pyarrow as pa

    from ..core.types import PathLike
    from ..inputs.input_files import File
    from ..inputs.item_data import KeyedPropensity
    from ..inputs.tables import RankingsScan, RelevanceScan
    from ..metrics.request import Request
    from .execution import Execution
    from .sources import Block

#: Bytes that a row takes at the peak of the evaluation of its block: measured, see
#: benchmarks/SCALE.md.
PER_ROW = 110

#: Rows of all blocks at once without a memory limit, of a task for workers, and of one read.
ROWS_AT_ONCE = 6_000_000
ROWS_PER_TASK = 2_000_000
BATCH = 1 << 20

#: The fewest and the most files that rows are dealt out to; all are open at once.
FEWEST_FILES, MAX_FILES = 11, 500

#: Row groups are read at most this many times for each of their rows; beyond, rows are dealt out.
MAX_READS = 4.0


class RowGroup(NamedTuple):
    """A row group: where it is, how many rows it has, and the least and largest user in them.

    The users are None if they are not known.
    """

    file: File
    number: int
    n_rows: int
    least: Any
    largest: Any


class UserRange(NamedTuple):
    """Some users, and the row groups that may have rows of theirs.

    Attributes
    ----------
    recs, truth : tuple of RowGroup
    first : int, str or None
        The first of the users, None without a bound.
    end : int, str or None
        The first user behind the range.
    """

    recs: tuple[RowGroup, ...]
    truth: tuple[RowGroup, ...]
    first: Any = None
    end: Any = None

    @property
    def n_rows(self) -> int:
        """Rows of its row groups."""
        return sum(group.n_rows for group in self.recs + self.truth)


class ParquetFiles:
    """A Parquet file, or the files of a folder or pattern."""

    def __init__(self, path: PathLike) -> None:
        # Workers may have another current folder.
        self.path = path if is_uri(path) else Path(path).absolute()
        self.table = open_table(self.path)
        parts: Any = self.table.parts
        self.files = {one.file: one for one in parts}
        self.n_rows = sum(one.metadata.num_rows for one in parts)

    def choose(self, names: Iterable[str]) -> None:
        """Choose the columns to read, ids first, without dictionaries, text of one type."""
        import pyarrow as pa

        def dtype(name: str, is_id: bool) -> Any:
            kinds = [plain_type(part.type_of(name)) for part in self.table.parts]
            if is_id and any(map(is_text, kinds)):
                return pa.large_string()
            schemas = [pa.schema([(name, kind)]) for kind in kinds]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type

        self.schema = pa.schema((name, dtype(name, n < 2)) for n, name in enumerate(names))

    def row_groups(self) -> list[RowGroup]:
        """Return all row groups that have rows."""
        groups = []
        for file, table in self.files.items():
            meta = table.metadata
            paths = [meta.schema.column(number).path for number in range(meta.num_columns)]
            user = paths.index(self.schema.names[0])
            for number in range(meta.num_row_groups):
                group = meta.row_group(number)
                if group.num_rows:
                    bounds = _bounds(group.column(user).statistics)
                    groups.append(RowGroup(file, number, group.num_rows, *bounds))
        return groups

    def batches(self, columns: slice, n_rows: int = BATCH) -> Generator[pa.Table, None, None]:
        """Yield `n_rows` rows at a time of some columns."""
        import pyarrow as pa

        schema = pa.schema(list(self.schema)[columns])
        for file in self.files:
            with naming(file.where):
                for batch in read_parquet_rows(file, schema.names, n_rows):
                    yield _uncoded(pa.Table.from_batches([batch]), schema)


def _bounds(statistics: Any) -> tuple[Any, Any]:
    """Return the least and largest value of a row group, None if they are not known."""
    try:
        if statistics is not None and statistics.has_min_max:
            return statistics.min, statistics.max
    except UnicodeDecodeError:  # some writers cut long text off within a character
        pass
    return None, None


def _uncoded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the types of a schema, so with text where codes were read."""
    return rows.select(schema.names).cast(schema)  # in the order of the file


def cut_users(
    recs: list[RowGroup], truth: list[RowGroup], n_rows: int, most: int
) -> list[UserRange] | None:
    """Cut the users into ranges of about `n_rows` rows where possible, and of at most `most`.

    Returns
    -------
    list of UserRange or None
        None if rows are in no such order that this is possible without reading them more than
        a few times.
    """
    groups = recs + truth
    if any(group.least is None for group in groups):
        return None
    begun, ended = _rows_below(groups, "least"), _rows_below(groups, "largest")

    def size(first: Any, end: Any) -> int:
        """Rows of the groups that may have users from `first` on, below `end`."""
        return begun(end) - ended(first)

    def within(side: list[RowGroup], first: Any, end: Any) -> tuple[RowGroup, ...]:
        found = (group for group in side if group.largest >= first)
        return tuple(group for group in found if end is None or group.least < end)

    starts = sorted({group.least for group in groups})
    bounds = starts[:1]
    for reached, end in pairwise([*starts, None]):
        if reached != bounds[-1] and size(bounds[-1], end) > n_rows:
            bounds.append(reached)
        if size(bounds[-1], end) > most:
            return None
    ranges = [
        UserRange(within(recs, *ends), within(truth, *ends), *ends)
        for ends in pairwise([*bounds, None])
    ]
    n_read = sum(users.n_rows for users in ranges)
    return None if len(ranges) > 1 and n_read > MAX_READS * begun(None) else ranges


def _rows_below(groups: list[RowGroup], bound: str) -> Callable[[Any], int]:
    """Return a function that counts rows of groups whose `bound` is below a user."""
    ordered = sorted(groups, key=attrgetter(bound))
    users = [getattr(group, bound) for group in ordered]
    sums = [0, *accumulate(group.n_rows for group in ordered)]
    return lambda user: sums[-1 if user is None else bisect_left(users, user)]


@contextmanager
def _naming(*paths: PathLike) -> Iterator[None]:
    """Put paths before the message of an error about rows."""
    try:
        yield
    except InvalidFileError:
        raise
    except InvalidDataError as error:
        message = f"{', '.join(map(shown, paths))}: {error}"
        raise InvalidDataError(message, argument=error.argument) from None


@dataclass(frozen=True)
class ParquetLoader:
    """Read the rows of some users, from ranges of row groups or from temporary files.

    Attributes
    ----------
    rows : RowsLoader
    schemas : tuple of pyarrow.Schema
        The columns that are read, without codes.
    paths : tuple of Path or str
        Where both tables are.
    """

    rows: RowsLoader
    schemas: tuple[Any, Any]
    paths: tuple[PathLike, PathLike]
    # The last row group of each table that has users of several ranges.
    _kept: dict[int, tuple[RowGroup, Any]] = field(default_factory=dict, compare=False)

    def __call__(self, task: UserRange | tuple[Path, Path]) -> Block:
        """Return the block of a task."""
        with _naming(*self.paths):
            if not isinstance(task, UserRange):
                return self.rows((_read_dealt(task[0]), _read_dealt(task[1])))
            return self.rows((self._read(task, 0), self._read(task, 1)))

    def forget(self) -> None:
        """Free the row groups that are kept, as the evaluation keeps its source."""
        self._kept.clear()

    def _read(self, users: UserRange, side: int) -> pa.Table:
        """Read the rows of the users of a range in one of the tables."""
        import pyarrow as pa
        import pyarrow.compute as pc

        schema, tables = self.schemas[side], []
        user = schema.field(0)
        for group in users[side]:
            begins = group.least < users.first
            ends = users.end is not None and group.largest >= users.end
            kept = self._kept.get(side)
            table = kept[1] if kept and kept[0] == group else _read_group(group, schema)
            if begins or ends:
                self._kept[side] = group, table
            if begins:
                within = pc.greater_equal(table[user.name], pa.scalar(users.first, user.type))
                table = table.filter(within)
            if ends:
                table = table.filter(pc.less(table[user.name], pa.scalar(users.end, user.type)))
            tables.append(table)
        return pa.concat_tables(tables) if tables else schema.empty_table()


def _read_group(group: RowGroup, schema: pa.Schema) -> pa.Table:
    with naming(group.file.where):
        table = open_parquet(group.file, schema.names).read_row_group(
            group.number, schema.names, use_threads=False
        )
        check_columns(table)
        table = _uncoded(table, schema)
    whole_column(table, schema.names[0])  # raises for a missing user, whom a filter would drop
    return table


class ParquetSource(TableSource):
    """Recommendations and relevant items in Parquet.

    Parameters
    ----------
    request : Request
    rankings : RankingsScan
    relevance : RelevanceScan
    propensity : KeyedPropensity or None
    execution : Execution

    Attributes
    ----------
    ranges : list of UserRange or None
        None if rows are in no order of the users.
    """

    unit = " rows"
    load: ParquetLoader

    def __init__(
        self,
        request: Request,
        rankings: RankingsScan,
        relevance: RelevanceScan,
        propensity: KeyedPropensity | None,
        execution: Execution,
    ) -> None:
        self.recs, self.truth = ParquetFiles(rankings.table), ParquetFiles(relevance.table)  # type: ignore[arg-type]
        self.tables = self.recs, self.truth
        self.paths = self.recs.path, self.truth.path
        with _naming(*self.paths):
            super().__init__(rankings, relevance, *(table.table for table in self.tables))
            self.recs.choose(self.columns.recs)
            self.truth.choose(self.columns.truth)
            check_ids(self.recs.schema, self.truth.schema, self.columns)
        groups = self.recs.row_groups(), self.truth.row_groups()
        if not groups[1]:
            raise InvalidFileError("has no rows; there is nothing to evaluate", self.truth.path)
        self.progress = execution.progress
        self.total = sum(table.n_rows for table in self.tables)
        most = ROWS_AT_ONCE if execution.client is None else ROWS_PER_TASK
        if execution.memory is not None:
            most = max(execution.memory // (2 if execution.per_user else 1) // PER_ROW, 1)
        self.n_threads = 1 if execution.client else thread_count(execution.num_threads)
        fewest = 5 * self.total // (4 * (MAX_FILES - 2))  # so that there are not too many files
        self.n_rows = min(max(most // self.n_threads, fewest, 1), most)
        self.ranges = cut_users(*groups, self.n_rows, 2 * most)
        each = self.n_rows if self.ranges is None else self.total // len(self.ranges)
        self.n_at_once = min(max(most // max(each, 1), 1), self.n_threads)
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        with _naming(*self.paths):
            rows = self.rows_loader(request, propensity)
        schemas = self.recs.schema, self.truth.schema
        self.load = ParquetLoader(rows, schemas, self.paths)

    @property
    def repeatable(self) -> bool:
        """Whether all items are known, and the files still exist."""
        return self.knows_items and all(
            file.exists() for side in self.tables for file in side.files
        )

    def tasks(self) -> Iterator[tuple[Any, int]]:
        """Yield ranges of users, or files that their rows were dealt out to."""
        if self.ranges is not None:
            yield from ((users, users.n_rows) for users in self.ranges)
        else:
            self.folder = tempfile.TemporaryDirectory(prefix="sparse_eval-")
            yield from self._deal_out(Path(self.folder.name))

    def close(self) -> None:
        """Remove the files that rows were dealt out to, and the rows that are kept."""
        self.load.forget()
        if self.folder is not None:
            self.folder.cleanup()

    def item_columns(self) -> Iterator[tuple[Any, str]]:
        """Yield the items of both tables."""
        for table in self.tables:
            for batch in table.batches(slice(1, 2)):
                yield batch, table.schema.names[1]

    def largest_gain(self) -> float:
        """Return the largest gain in a row."""
        name = self.columns.truth[2]
        return max(
            float(numbers_of(whole_column(batch, name), name, "numbers").max(initial=0.0))
            for batch in self.truth.batches(slice(2, 3))
        )

    def _deal_out(self, folder: Path) -> list[tuple[tuple[Path, Path], int]]:
        """Write the rows of both tables to pairs of files, all rows of a user into one pair."""
        n_files = -(-self.total * 5 // (4 * self.n_rows)) + 1  # a quarter more: sizes differ
        if n_files > MAX_FILES:
            raise InvalidDataError(
                f"the {self.total:,} rows are not sorted by user and would need {n_files:,} "
                f"temporary files with this memory=; at most {MAX_FILES} are allowed. Sort the "
                f"tables by {self.columns.recs[0]!r}, or increase memory=",
                argument="memory",
            )
        # A prime number, because whole numbers are dealt out by their remainders, and may all
        # have the same small divisor.
        n_files = max(n_files, FEWEST_FILES)
        while any(n_files % factor == 0 for factor in range(2, n_files)):
            n_files += 1
        counts = np.zeros(n_files, np.int64)
        paths = []
        with progress_bar(
            self.progress, total=self.total, desc="sort by user", unit=" rows", unit_scale=True
        ) as bar:
            for number, table in enumerate(self.tables):
                paths.append([folder / f"{number}-{file}.arrow" for file in range(n_files)])
                counts += _deal(table, paths[-1], min(BATCH, self.n_rows), self.n_threads, bar)
        return list(zip(zip(*paths, strict=True), counts.tolist(), strict=True))


def _deal(
    table: ParquetFiles, paths: list[Path], n_rows: int, n_threads: int, bar: Any
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Write each row of a table to the file of its user; return the number of rows in each."""
    import pyarrow as pa

    counts, user = np.zeros(len(paths), np.int64), table.schema.names[0]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
            writers = [stack.enter_context(pa.ipc.new_stream(file, table.schema)) for file in files]
            batches = table.batches(slice(None), n_rows)
            if n_threads > 1:
                batches = stack.enter_context(closing(read_ahead(batches)))
            for part in batches:
                with _naming(table.path):
                    users = whole_column(part, user)
                    if pa.types.is_integer(users.type):
                        keys: Any = signed(users, user).to_numpy().astype(np.int64, copy=False)
                    else:
                        (codes,), axis = encode([users])
                        keys = hash_labels(axis.to_numpy())[codes]
                places = keys % keys.dtype.type(len(paths))
                bounds, order = group_rows(places.astype(np.int32), len(paths))
                dealt = part.take(pa.array(order))
                counts += np.diff(bounds)
                for writer, (start, end) in zip(writers, pairwise(bounds.tolist()), strict=True):
                    if end > start:
                        writer.write_table(dealt.slice(start, end - start))
                bar.update(len(part))
    except OSError as error:
        raise OutputError(
            f"{paths[0].parent}: cannot distribute rows to {len(paths):,} temporary files "
            f"({error}). Sort the tables by {user!r}, choose another folder with TMPDIR, or allow "
            "more open files (ulimit -n)"
        ) from None
    return counts


def _read_dealt(path: Path) -> pa.Table:
    import pyarrow as pa

    if not path.exists():
        raise InvalidFileError(
            "this worker cannot find the file, to which the calling process wrote rows. Sort both "
            "tables by user, or set TMPDIR to a folder that all machines share",
            path,
        )
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()
