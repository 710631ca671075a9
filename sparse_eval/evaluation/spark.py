"""Tables in Spark, evaluated by its workers, each about users of its own.

The rows of both tables are brought together by user, in one shuffle, and read by Python workers in
batches of Arrow; or the workers read files of which each takes the row groups of some users. What
leaves a worker is a part, some kilobytes; the driver adds them up. Only DataFrames are used, so
that it is all the same with Spark Connect.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from ..errors import InvalidDataError, InvalidFileError, MissingExtraError, SparseEvalError
from ..results import MergedEvaluation
from ..results.once import Question, terms_of
from ..results.parts import add_parts
from ..results.serialize import pack, unpack
from .arrow import Columns, Known, evaluate_rows, whole_column
from .files import cut_files
from .parquet import Group, Piece, evaluate_piece, items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from ..metrics import Metric
    from ..results.parts import Part
    from .files import Files

__all__ = ["answer", "answer_of_files", "evaluate_table"]

#: Rows of complete users that a worker evaluates at once. Each takes some 140 bytes at the peak.
ROWS = 500_000

#: The columns that are sent to the workers: the rank, the score or the gain is the value.
_USER, _ITEM, _VALUE, _IS_REC = "user", "item", "value", "is_rec"

#: What a worker returns: a part, or what it raised.
_ANSWER = "error string, message string, part binary"

_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

_SIDES = ("the recommendations", "what is relevant")


def evaluate_table(
    recs: DataFrame | str | Path,
    truth: DataFrame | str | Path,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    user: str = "user",
    item: str = "item",
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    convention: str | None = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    per_user: bool = False,
    session: SparkSession | None = None,
) -> MergedEvaluation:
    """Evaluate recommendations in a Spark table against what turned out to be relevant.

    Parameters
    ----------
    recs : DataFrame of pyspark.sql, str or Path
        One row for each recommended item, in any order: user and item, whole numbers of up to 64
        bits or text, and a rank or a score. Of Spark Connect or not. A path, of a Parquet file or a
        folder of them, is read by the session; but where both tables are such paths, on disks that
        the driver and the workers share, and in the order of the users, then by the workers
        themselves, each some of the users, and no row is shuffled.
    truth : DataFrame of pyspark.sql, str or Path
        One row for each relevant item: user and item, of the same type as in `recs`, and
        optionally a gain.
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "coverage@10"]``. A metric of your own has to be registered
        in the workers too. Those that need `train`, groups or vectors cannot be computed.
    user, item : str
        Columns of both tables.
    rank, score : str, optional
        The column of `recs` to order by: ranks count from 1, the largest score comes first, of
        equal ones the smaller item. By default the one of "rank" and "score" that there is.
    gain : str, optional
        The column of `truth` with gains, at least 0. By default "gain" if there is one; otherwise
        every row counts 1.
    convention, no_relevant
        As in `evaluate`.
    per_user : bool
        Whether to collect the values of each user. Without them what the driver collects does not
        grow with the number of users.
    session : SparkSession, optional
        What reads paths; by default that of the other table, or the active one.

    Returns
    -------
    MergedEvaluation
        Its numbers have the same bits as those of `evaluate` of the same rows, however Spark
        divides them.

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, or one needs what cannot be given here.
    InvalidDataError
        If a column is missing or holds what cannot be used, ids of one table cannot be equal to
        those of the other, a row has no value (null), a rank or an item is there twice for a
        user, nobody has a relevant item, there is no session to read a path with, or workers have
        another version of sparse_eval.
    InvalidFileError
        If Spark cannot read a path.
    MissingExtraError
        If pyspark is not installed, or something is not that workers need.

    Notes
    -----
    A worker uses one thread for each task. Where a metric depends on the whole catalogue, such as
    coverage and AUC, the items of both tables are collected first and sent to every worker.

    While the job runs, the session's ``spark.sql.execution.arrow.maxBytesPerBatch`` is switched
    off, because Spark would measure its batches after each row; it is restored afterwards.

    What Spark itself raises, for instance because a table's own computation fails, is left as it
    is.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> from sparse_eval.evaluation.spark import evaluate_table
    >>> session = SparkSession.builder.getOrCreate()  # doctest: +SKIP
    >>> recs = session.read.parquet("s3a://models/als64/recs")  # doctest: +SKIP
    >>> truth = session.table("clicks.held_out")  # doctest: +SKIP
    >>> ev = evaluate_table(recs, truth, ["ndcg@{5,10}", "recall@20"])  # doctest: +SKIP
    >>> ev.summary()  # doctest: +SKIP
    """
    _need_pyspark()
    question = Question.of(metrics, convention, no_relevant)
    terms = terms_of(question)
    tables = _opened(recs, truth, session)
    columns = Columns(user, item, rank, score, gain).settled(*(table.columns for table in tables))
    kinds = _check_schemas(tables, columns)
    sides = [
        _selected(table, names, kinds)
        for table, names in zip(tables, (columns.of_recs, columns.of_truth), strict=True)
    ]
    asked, named = tuple(question), tuple(columns)
    files = _cut(question, recs, truth, columns)
    if files is not None and files.pieces is not None:
        known, n = files.known, len(files.pieces)
        rows = tables[0].sparkSession.range(0, n, 1, n)
        plan = (
            [schema.serialize().to_pybytes() for schema in files.schemas],
            [_plain(piece) for piece in files.pieces],
        )
        task = _task("answer_of_files", asked, named, known, per_user, plan)
    else:
        rows = _together(sides)
        known = _look_around(question, sides, columns, kinds)
        task = _task("answer", asked, named, known, per_user, None)
    answers = _collected(rows.mapInArrow(task, _ANSWER))
    for error, message, _ in answers:
        if error is not None:
            raise getattr(errors, error, SparseEvalError)(message)
    part = add_parts(unpack(bytes(data)) for _, _, data in answers)
    return MergedEvaluation([part], terms.plans, terms.rules)


def _cut(question: Question, recs: Any, truth: Any, columns: Columns) -> Files | None:
    """Cut files that are in the order of the users, where they can be read from here."""
    for side in (recs, truth):
        if not isinstance(side, str | Path) or not Path(side).exists():
            return None
    return cut_files(question, recs, truth, columns)


def _plain(piece: Piece) -> tuple[Any, ...]:
    """Return a piece in what Python knows itself."""
    recs, truth = (
        [(str(group.path), *group[1:]) for group in groups] for groups in (piece.recs, piece.truth)
    )
    return recs, truth, piece.least, piece.below


def _need_pyspark() -> None:
    try:
        import pyspark.sql  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            'evaluating tables of Spark takes pyspark: pip install "sparse_eval[spark]"'
        ) from None


def _opened(
    recs: DataFrame | str | Path, truth: DataFrame | str | Path, session: SparkSession | None
) -> list[DataFrame]:
    """Return both tables as DataFrames."""
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

    opened = []
    for table, where in zip((recs, truth), _SIDES, strict=True):
        if isinstance(table, DataFrame):
            opened.append(table)
            continue
        if not isinstance(table, str | Path):
            raise InvalidDataError(
                f"{where} are a {type(table).__name__}; expected a DataFrame of Spark or the path "
                "of Parquet files"
            )
        frames = (side for side in (recs, truth) if isinstance(side, DataFrame))
        reader = session or next((frame.sparkSession for frame in frames), None)
        reader = reader or SparkSession.getActiveSession()
        if reader is None:
            raise InvalidDataError(
                f"there is no Spark session to read {table} with; give session=, or start one "
                "with SparkSession.builder.getOrCreate()"
            )
        try:
            frame = reader.read.parquet(str(table))
            frame.schema  # noqa: B018 - with Spark Connect, nothing is read before
        except PySparkException as error:
            told = str(error).strip().partition("\n")[0]
            raise InvalidFileError(f"Spark cannot read it as Parquet ({told})", table) from None
        opened.append(frame)
    return opened


def _check_schemas(tables: list[DataFrame], columns: Columns) -> dict[str, str]:
    """Return what users and items are, "integer" or "text", or raise before any job runs."""
    from pyspark.sql.types import BooleanType, NumericType

    kinds = {}
    for name in (columns.user, columns.item):
        types = [table.schema[name].dataType for table in tables]
        found = [_kind_of(one, name, where) for one, where in zip(types, _SIDES, strict=True)]
        if found[0] != found[1]:
            raise InvalidDataError(
                f"column {name!r} holds {types[0].simpleString()} in the recommendations and "
                f"{types[1].simpleString()} in what is relevant, so that none would be found in "
                "the other; cast one of them"
            )
        kinds[name] = found[0]
    for table, names in zip(tables, (columns.of_recs, columns.of_truth), strict=True):
        for name in names[2:]:
            dtype = table.schema[name].dataType
            if not isinstance(dtype, NumericType | BooleanType):
                raise InvalidDataError(
                    f"column {name!r} holds {dtype.simpleString()}; expected numbers"
                )
    return kinds


def _kind_of(dtype: DataType, name: str, where: str) -> str:
    from pyspark.sql.types import IntegralType, StringType

    if isinstance(dtype, IntegralType):
        return "integer"
    if isinstance(dtype, StringType):
        return "text"
    raise InvalidDataError(
        f"{where}: column {name!r} holds {dtype.simpleString()}; expected ids that are whole "
        "numbers or text, so cast it"
    )


def _selected(table: DataFrame, names: list[str], kinds: dict[str, str]) -> DataFrame:
    """Return the columns that are read, of the same names and types for both tables."""
    from pyspark.sql import functions

    def column(name: str) -> Column:
        return functions.col("`" + name.replace("`", "``") + "`")

    ids = [
        # Text is cast too: one that is compared without regard to case is not hashed as it is read.
        column(name).cast("long" if kinds[name] == "integer" else "string").alias(known_as)
        for name, known_as in zip(names[:2], (_USER, _ITEM), strict=True)
    ]
    value = column(names[2]) if len(names) > 2 else functions.lit(1.0)
    return table.select(*ids, value.cast("double").alias(_VALUE))


def _look_around(
    question: Question, sides: list[DataFrame], columns: Columns, kinds: dict[str, str]
) -> Known:
    """Find what has to be known of all users before the first is evaluated; mostly nothing."""
    from pyspark.sql import functions

    wants_catalogue, wants_largest = Known.needed(question)
    catalogue = largest = None
    if wants_catalogue:
        items = [side.select(functions.col(_ITEM).alias("item")) for side in sides]
        found = items[0].union(items[1]).distinct().toArrow()
        catalogue = items_of(
            [found.rename_columns([columns.item])], columns.item, kinds[columns.item]
        )
    if wants_largest:
        largest = 1.0
        if columns.gain is not None:
            found = sides[1].agg(functions.max(_VALUE)).collect()[0][0]
            largest = 0.0 if found is None else float(found)
    return Known(catalogue, largest)


def _together(sides: list[DataFrame]) -> DataFrame:
    """Return the rows of both tables, all rows of a user in one partition and in succession."""
    from pyspark.sql import functions

    recs, truth = (
        side.withColumn(_IS_REC, functions.lit(is_rec))
        for side, is_rec in zip(sides, (True, False), strict=True)
    )
    # Without a number of partitions Spark makes as many as the rows need. One key alone is sorted
    # by radix; the order of a user's rows is left to the kernels.
    return recs.union(truth).repartition(_USER).sortWithinPartitions(_USER)


def _collected(answers: DataFrame) -> list[Any]:
    """Run the job, and tell in a sentence what the workers lack."""
    from pyspark.errors import PySparkException

    try:
        with _unmeasured(answers.sparkSession):
            return list(answers.collect())
    except PySparkException as error:
        missing = re.search(r"No module named '(numpy|pandas|pyarrow)\b", str(error))
        if missing is None:
            raise
        raise MissingExtraError(
            f"the Python workers of Spark have no {missing[1]}; install "
            f'"sparse_eval[spark]=={version("sparse_eval")}" in the Python that they run, on every '
            "machine, or say in PYSPARK_PYTHON which that is"
        ) from None


@contextmanager
def _unmeasured(session: SparkSession) -> Iterator[None]:
    """Let Spark fill batches without measuring the bytes in them.

    It would after each row, which takes several times as long as the rest of the way to Python. A
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


def _task(
    name: str,
    asked: tuple[Any, ...],
    named: tuple[Any, ...],
    known: Known,
    per_user: bool,
    plan: Any,
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what each worker does: the function of that name in this module.

    Spark sends a function that is defined here by value, and with it nothing but what Python and
    NumPy know themselves. So a worker can say what is wrong with its own installation.
    """
    catalogue, largest = known.catalogue, known.largest_gain
    wanted = version("sparse_eval")

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow as pa

        error, fault = None, ""
        try:
            found = version("sparse_eval")
            if found != wanted:
                error, fault = "InvalidDataError", f"sparse_eval {found}, and the driver {wanted}"
        except PackageNotFoundError:
            error, fault = "MissingExtraError", f"no sparse_eval, and the driver {wanted}"
        if error is None:
            from ..evaluation import spark

            yield from getattr(spark, name)(
                asked, named, catalogue, largest, per_user, plan, batches
            )
            return
        for _ in batches:  # to their end, as Spark expects
            pass
        message = (
            f"the Python workers of Spark have {fault}; install "
            f'"sparse_eval[spark]=={wanted}" in the Python that they run, on every machine, or say '
            "in PYSPARK_PYTHON which that is"
        )
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([error], pa.string()),
                pa.array([message], pa.string()),
                pa.array([None], pa.binary()),
            ],
            names=["error", "message", "part"],
        )

    return evaluate


def answer(
    asked: tuple[Any, ...],
    named: tuple[Any, ...],
    catalogue: Any,
    largest: float | None,
    per_user: bool,
    plan: None,
    batches: Iterator[Any],
) -> Iterator[Any]:
    """Evaluate the rows of a partition, in a worker.

    An error about the input is returned rather than raised: Spark would try the same again, and
    would tell it as a page of Java.

    Parameters
    ----------
    asked, named : tuple
        A `Question` and `Columns`, as plain tuples.
    catalogue, largest, per_user
        As in `Known` and `evaluate_table`.
    plan : None
        Not needed: the rows are here.
    batches : iterator of pyarrow.RecordBatch
        Rows of both tables, in the order of the users.

    Yields
    ------
    pyarrow.RecordBatch
        One row: the class and message of an error, or a part.
    """
    columns = Columns(*named)
    parts = _parts(Question(*asked), columns, Known(catalogue, largest), per_user, batches)
    yield from _answered(parts, per_user, batches)


def answer_of_files(
    asked: tuple[Any, ...],
    named: tuple[Any, ...],
    catalogue: Any,
    largest: float | None,
    per_user: bool,
    plan: tuple[list[bytes], list[Any]],
    batches: Iterator[Any],
) -> Iterator[Any]:
    """Read pieces of files and evaluate them, in a worker.

    Parameters
    ----------
    asked, named, catalogue, largest, per_user
        As of `answer`.
    plan : tuple
        The schemas of both tables as bytes, and all pieces as plain tuples.
    batches : iterator of pyarrow.RecordBatch
        The numbers of the pieces that are this worker's.

    Yields
    ------
    pyarrow.RecordBatch
        As of `answer`.
    """
    import pyarrow as pa

    question, columns, known = Question(*asked), Columns(*named), Known(catalogue, largest)
    schemas = [pa.ipc.read_schema(pa.py_buffer(schema)) for schema in plan[0]]

    def parts() -> Iterator[Part]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                *sides, least, below = plan[1][number]
                recs, truth = (
                    tuple(Group(Path(path), *facts) for path, *facts in groups) for groups in sides
                )
                piece = Piece(recs, truth, least, below)
                yield evaluate_piece(
                    question, columns, (schemas[0], schemas[1]), piece, known, per_user, 1
                )

    yield from _answered(parts(), per_user, batches)


def _answered(parts: Iterator[Part], per_user: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """Return the parts of a partition, together where that is smaller, or what went wrong."""
    try:
        if per_user:
            for part in parts:
                yield _row(part=pack(part))
            return
        first = next(parts, None)
        if first is not None:
            yield _row(part=pack(add_parts(_chained(first, parts))))
    except SparseEvalError as error:
        for _ in batches:  # to their end, or Spark would have to start another worker
            pass
        yield _row(error=type(error).__name__, message=str(error))


def _chained(first: Part, others: Iterator[Part]) -> Iterator[Part]:
    yield first
    yield from others


def _row(error: str | None = None, message: str | None = None, part: bytes | None = None) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [
            pa.array([error], pa.string()),
            pa.array([message], pa.string()),
            pa.array([part], pa.binary()),
        ],
        names=["error", "message", "part"],
    )


def _parts(
    question: Question, columns: Columns, known: Known, per_user: bool, batches: Iterator[Any]
) -> Iterator[Part]:
    import pyarrow.compute as pc

    def side(table: Any, mask: Any, names: list[str]) -> Any:
        read = [_USER, _ITEM, _VALUE][: len(names)]
        return table.select(read).filter(mask).rename_columns(names)

    for table in _whole_users(batches, columns.user):
        is_rec = table.column(_IS_REC)
        recs = side(table, is_rec, columns.of_recs)
        truth = side(table, pc.invert(is_rec), columns.of_truth)
        yield evaluate_rows(question, columns, recs, truth, known, per_user, num_threads=1)


def _whole_users(batches: Iterator[Any], name: str) -> Iterator[Any]:
    """Join batches to tables of some `ROWS` rows, none of which ends within a user."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_rows, wanted = 0, ROWS
    for batch in batches:
        table = pa.Table.from_batches([batch])
        whole_column(table.select([_USER]).rename_columns([name]), name)  # raises where one is null
        waiting.append(table)
        n_rows += len(table)
        if n_rows < wanted:
            continue
        joined = pa.concat_tables(waiting)
        end = _start_of_last(joined.column(_USER))
        if end == 0:  # all of one user, whose rows are still coming
            waiting, wanted = [joined], 2 * n_rows
            continue
        yield joined.slice(0, end)
        waiting, n_rows, wanted = [joined.slice(end)], n_rows - end, ROWS
    if n_rows:
        yield pa.concat_tables(waiting)


def _start_of_last(users: Any) -> int:
    """Return where the rows of the last user begin."""
    import pyarrow.compute as pc

    is_last = pc.equal(users, users[-1]).to_numpy()
    return int(np.argmax(is_last))
