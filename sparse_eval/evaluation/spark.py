"""Spark: tables evaluated by its workers, each with different users.

One shuffle brings the rows of both tables together by user, and Python workers read them in batches
of Arrow. Or the workers read files, and each takes the row groups of some users. A worker returns a
part of some kilobytes; the driver merges the parts. Only DataFrames are used, so Spark Connect
works too.
"""

from __future__ import annotations

import pickle
import re
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.versions import installed_version
from ..errors import InvalidDataError, MissingExtraError, SparseEvalError
from ..inputs.column_values import is_number
from ..inputs.tables import table_of
from ..results.partial_results import merge_parts
from .runners import check_version
from .table_blocks import RowsLoader, TableSource, check_ids, whole_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from ..inputs.item_data import KeyedPropensity
    from ..inputs.tables import RankingsScan, RelevanceScan
    from ..metrics.request import Request
    from ..results.partial_results import Part
    from .runners import Work
    from .sources import Block

#: Rows of complete users that a worker evaluates at once. Each takes some 140 bytes at the peak.
ROWS_AT_ONCE = 500_000

#: The columns that are sent to the workers: the rank, the score or the gain is the value.
_USER, _ITEM, _VALUE, _IS_REC = "user", "item", "value", "is_rec"

#: The result of a worker: a pickled part, or the pickled error that it raised.
_ANSWER = "answer binary"

_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class SparkTasks(NamedTuple):
    """The rows of both tables in a DataFrame, whose partitions hold different users."""

    rows: DataFrame


class SparkSource(TableSource):
    """Tables of Spark, or Parquet that its session reads.

    Parameters
    ----------
    request : Request
    rankings : RankingsScan
    relevance : RelevanceScan
    propensity : KeyedPropensity or None
    session : SparkSession, optional
        The session that reads paths; by default the session of the other table.
    """

    unit = " tables"
    total = 1

    def __init__(
        self,
        request: Request,
        rankings: RankingsScan,
        relevance: RelevanceScan,
        propensity: KeyedPropensity | None,
        session: SparkSession | None,
    ) -> None:
        tables = _open(rankings.table, relevance.table, session=session)
        schemas = [_schema(table) for table in tables]
        super().__init__(rankings, relevance, *map(table_of, schemas))
        are_text = check_ids(schemas[0], schemas[1], self.columns)
        sides = self.columns.recs, self.columns.truth
        for schema, names in zip(schemas, sides, strict=True):
            for name in names[2:]:
                if not is_number(dtype := schema.field(name).type):
                    raise InvalidDataError(f"column {name!r} holds {dtype}; expected numbers")
        self.sides = [
            _select(table, names, are_text) for table, names in zip(tables, sides, strict=True)
        ]
        self.client = self.sides[0].sparkSession
        self.load = BatchLoader(self.rows_loader(request, propensity))

    @property
    def repeatable(self) -> bool:
        """Whether all items are known, and the session is still open."""
        if not self.knows_items:
            return False
        if "connect" in type(self.client).__module__:
            return not self.client.is_stopped
        return hasattr(self.client.sparkContext, "startTime")  # which a stopped context lacks

    def tasks(self) -> Iterator[tuple[SparkTasks, int]]:
        """Yield the rows of both tables, all rows of a user in one partition and in succession."""
        from pyspark.sql import functions

        recs, truth = (
            side.withColumn(_IS_REC, functions.lit(is_rec))
            for side, is_rec in zip(self.sides, (True, False), strict=True)
        )
        # Without a number of partitions Spark makes as many as the rows need. A single key
        # is sorted by radix; the kernels sort the rows of a user.
        rows = recs.union(truth).repartition(_USER).sortWithinPartitions(_USER)
        yield SparkTasks(rows), 1

    def item_columns(self) -> Iterator[tuple[Any, str]]:
        """Yield the distinct items."""
        items = [side.select(_ITEM) for side in self.sides]
        table = items[0].union(items[1]).distinct().toArrow()
        yield table.rename_columns([self.columns.recs[1]]), self.columns.recs[1]

    def largest_gain(self) -> float:
        """Return the largest gain in a row."""
        from pyspark.sql import functions

        largest = self.sides[1].agg(functions.max(_VALUE)).collect()[0][0]
        return 0.0 if largest is None else float(largest)


@dataclass(frozen=True)
class BatchLoader:
    """Turn a table with the rows of complete users into a block."""

    rows: RowsLoader

    def __call__(self, table: pa.Table) -> Block:
        """Return the block of a table."""
        import pyarrow.compute as pc

        is_rec = table.column(_IS_REC)
        columns = self.rows.columns

        def side(mask: Any, names: tuple[str, ...]) -> pa.Table:
            selected = table.select([_USER, _ITEM, _VALUE][: len(names)]).filter(mask)
            return selected.rename_columns(list(names))

        return self.rows((side(is_rec, columns.recs), side(pc.invert(is_rec), columns.truth)))


def _open(*tables: Any, session: SparkSession | None) -> list[DataFrame]:
    """Return both tables as DataFrames."""
    frames = (table for table in tables if not isinstance(table, str | Path))
    session = session or next(frame.sparkSession for frame in frames)
    return [
        session.read.parquet(str(table)) if isinstance(table, str | Path) else table
        for table in tables
    ]


def _schema(table: DataFrame) -> pa.Schema:
    """Return the columns of a table with their types in Arrow, null if there is no such type."""
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type  # public calls run a job for the types
    from pyspark.sql.types import TimestampType

    fields = []
    for field in table.schema:
        dtype = pa.timestamp("us") if isinstance(field.dataType, TimestampType) else pa.null()
        with suppress(PySparkException, AssertionError):  # the second by times without a zone
            dtype = to_arrow_type(field.dataType)
        fields.append((field.name, dtype))
    return pa.schema(fields)


def _select(table: DataFrame, names: tuple[str, ...], are_text: tuple[bool, bool]) -> DataFrame:
    """Return the columns that are read, with the same names and types for both tables."""
    from pyspark.sql import functions

    def column(name: str) -> Column:
        return functions.col("`" + name.replace("`", "``") + "`")

    ids = [
        # Text is cast too: text with a case-insensitive collation has other hashes.
        column(name).cast("string" if is_text else "long").alias(alias)
        for name, is_text, alias in zip(names[:2], are_text, (_USER, _ITEM), strict=True)
    ]
    value = column(names[2]) if len(names) > 2 else functions.lit(1.0)
    return table.select(*ids, value.cast("double").alias(_VALUE))


class SparkRunner:
    """Gives tasks to the Python workers of Spark.

    Parameters
    ----------
    session : SparkSession
        Whose workers do tasks that are not rows of a DataFrame.
    """

    num_threads = 1

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Run a job, and yield the parts that its workers return."""
        from pyspark.errors import PySparkException

        given = list(tasks)
        amount = sum(tag for _, tag in given)
        if given and isinstance(given[0][0], SparkTasks):
            rows, sent = given[0][0].rows, None
        else:
            rows = self.session.range(0, len(given), 1, max(len(given), 1))
            sent = [task for task, _ in given]
        version = installed_version()

        def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
            return run_in_worker(version, work, shared, sent, batches)

        job = rows.mapInArrow(evaluate, _ANSWER)
        try:
            with _unmeasured(job.sparkSession):
                answers = list(job.collect())
        except PySparkException as problem:
            missing = re.search(
                r"No module named '(sparse_eval|numpy|pandas|pyarrow)\b", str(problem)
            )
            if missing is None:
                raise
            raise MissingExtraError(
                f"the Python workers of Spark have no {missing[1]}; install "
                f'"sparse_eval[spark]=={version}" in the Python that they run, on every machine, '
                "or name that Python in PYSPARK_PYTHON"
            ) from None
        for number, (data,) in enumerate(answers):
            answer = pickle.loads(zlib.decompress(data))  # noqa: S301 - of our own workers
            if isinstance(answer, SparseEvalError):
                raise answer
            yield amount if number == 0 else 0, answer


@contextmanager
def _unmeasured(session: SparkSession) -> Iterator[None]:
    """Let Spark fill batches without measuring the bytes in them.

    It would do so after each row, which takes several times as long as the rest of the transfer. A
    batch has at most spark.sql.execution.arrow.maxRecordsPerBatch rows, and ours are short.
    """
    from pyspark.errors import PySparkException

    try:
        before = session.conf.get(_MAX_BYTES, None)
        session.conf.set(_MAX_BYTES, str(2**31 - 1))
    except PySparkException:  # a session whose settings are not ours to change: slower, no worse
        yield
        return
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_MAX_BYTES)
        else:
            session.conf.set(_MAX_BYTES, before)


def run_in_worker(
    version: str, work: Work, shared: Any, tasks: list[Any] | None, batches: Iterator[Any]
) -> Iterator[Any]:
    """Evaluate the rows of a partition, in a worker.

    An error about the input is returned rather than raised: Spark would try the same again, and
    would report it in a page of Java.

    Parameters
    ----------
    version : str
        The version of this package in the driver.
    work, shared
        As of `Runner.run`.
    tasks : list or None
        None if the tasks are in the rows.
    batches : iterator of pyarrow.RecordBatch
        Rows of both tables, in the order of the users; or the numbers of tasks.

    Yields
    ------
    pyarrow.RecordBatch
        One row: a part or an error.
    """
    try:
        check_version(version)
        if tasks is None:
            given = _complete_users(batches, shared.load.rows.columns.recs[0])
        else:
            given = (tasks[number] for batch in batches for number in batch.column(0).to_pylist())
        parts = (work(shared, task) for task in given)
        if shared.per_user:
            yield from map(_answer, parts)
            return
        for first in islice(parts, 1):  # there may be no users
            yield _answer(merge_parts(chain([first], parts)))
    except SparseEvalError as error:
        for _ in batches:  # to their end, or Spark would have to start another worker
            pass
        yield _answer(error)


def _answer(answer: Part | SparseEvalError) -> pa.RecordBatch:
    import pyarrow as pa

    # Compressed, because counts of items are large numbers of small integers.
    data = zlib.compress(pickle.dumps(answer), level=1)
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["answer"])


def _complete_users(batches: Iterator[Any], name: str) -> Iterator[pa.Table]:
    """Join batches to tables of some `ROWS_AT_ONCE` rows that contain complete users."""
    import pyarrow as pa
    import pyarrow.compute as pc

    waiting: list[Any] = []
    n_rows, needed = 0, ROWS_AT_ONCE
    for batch in batches:
        table = pa.Table.from_batches([batch])
        whole_column(table.select([_USER]).rename_columns([name]), name)  # raises where one is null
        waiting.append(table)
        n_rows += len(table)
        if n_rows < needed:
            continue
        joined = pa.concat_tables(waiting)
        users = joined.column(_USER)
        end = int(np.argmax(pc.equal(users, users[-1]).to_numpy()))  # where the last user begins
        if end == 0:  # all of one user, whose rows are still coming
            waiting, needed = [joined], 2 * n_rows
            continue
        yield joined.slice(0, end)
        waiting, n_rows, needed = [joined.slice(end)], n_rows - end, ROWS_AT_ONCE
    if n_rows:
        yield pa.concat_tables(waiting)
