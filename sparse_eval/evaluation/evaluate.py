"""`evaluate`: open lists and relevance of any kind, and choose the source of their users.

Inputs in memory are `Data`, in the source `Arrays`. Tables that need not fit into memory have their
own sources, in `parquet` and `spark`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from scipy.sparse import issparse, sparray, spmatrix

from ..core.arguments import check_choice, show_spelling
from ..errors import InvalidDataError
from ..inputs.candidates import as_candidates
from ..inputs.column_values import is_list
from ..inputs.data import Data
from ..inputs.input_files import naming
from ..inputs.item_data import KeyedPropensity, item_inputs
from ..inputs.labelled import LabelledMatrix, UserRows, check_part, labels_of
from ..inputs.paths import PathKind, kind_of, open_lists, open_side, open_truth, read_truth
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.requests import Requests
from ..inputs.tables import FrameLike, RankingsScan, RelevanceScan, engine_of, open_table
from ..metrics.request import Request
from ..results.weighted import evaluation_of_users
from .array_source import Arrays
from .execution import Execution, evaluate_source, is_spark
from .mistakes import warn_of_mistakes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import PathLike, SparseInput
    from ..inputs.item_data import ItemData
    from ..metrics.request import MetricsLike
    from ..results import Evaluation
    from .execution import Keep
    from .runners import ClientLike
    from .table_blocks import TableSource

#: Recommendations that `evaluate` accepts.
RankingsLike: TypeAlias = "Rankings | RankingsScan | SparseInput | FrameLike | PathLike"
#: Relevant items that `evaluate` accepts.
RelevanceLike: TypeAlias = "Relevance | RelevanceScan | SparseInput | FrameLike | PathLike"

#: Types that need no reading: `Rankings`, `Relevance` and matrices of SciPy.
_OPENED = (UserRows, sparray, spmatrix)


@show_spelling
def evaluate(
    predictions: RankingsLike,
    validation: RelevanceLike,
    metrics: MetricsLike,
    *,
    train: Relevance | SparseInput | PathLike | None = None,
    candidates: Any = None,
    item_data: ItemData | None = None,
    average: Literal["request", "user"] = "request",
    weights: Any = None,
    convention: str | None = None,
    keep: Keep = "values",
    memory: int | str | None = None,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Evaluate ranked lists against the items that turned out to be relevant.

    Parameters
    ----------
    predictions : Rankings, sparse matrix, frame or path
        A matrix of shape (n_users, n_items) holds 1-based positions (`Rankings.from_positions`). A
        table has a row for each recommended item (`Rankings.scan`), by default in columns ``user``,
        ``item`` and ``rank`` or ``score``. Frames of pandas, polars, Arrow and Spark are accepted;
        for paths see Notes.
    validation : Relevance, Requests, sparse matrix, Interactions, Holdout, frame or path
        A matrix of shape (n_users, n_items) holds gains, at least 0 (`Relevance.from_csr`); a table
        (`Relevance.scan`) has columns ``user``, ``item`` and, optionally, ``gain``. `Requests` have
        several lists of a user, such as of sessions, matched by the id of the request. If both
        sides have ids (tables, `Interactions`, the parts of a `Holdout`, ``users=`` and
        ``items=``), they are matched by id. Otherwise row and column numbers are compared, and the
        smaller matrix is padded: an item outside of the other is not relevant but keeps its
        position. Ids of a table cannot be matched with a matrix without ids, which raises an error.
    metrics : str, Metric, iterable of them, or Protocol
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``. A `Protocol` has metrics and
        their rules for counting users and items.
    train : sparse matrix of shape (n_users, n_items), Relevance, Holdout or path, optional
        The items that users had seen: every stored entry, also an explicit zero, is excluded from
        the candidates. Entries other than zero count for popularity, co-occurrence and history.
        Numbered as `validation`, or with ids like it (frames, `Interactions`). Some metrics need
        it. The catalogue is as large as the largest of all inputs.
    candidates : Candidates, sparse matrix, Interactions, frame, path, mapping or array, optional
        The items that each user could be recommended; items in `train` are excluded. Pass a row or
        entry for each user and candidate, matched like `train`, or a mapping of user ids to items.
        Or one array or list of items, or a pandas.Index of ids, for all users. Random lists, lift,
        auc, mean and percentile rank use them instead of the whole catalogue. Relevant items that
        are not candidates are missed, and listed items that are not candidates stay; both are
        counted.
    item_data : ItemData, optional
        Groups, vectors and propensities of items, for metrics that need them.
    average : {"request", "user"}
        With `Requests` as `validation`: whether every request counts the same, or every user with
        the mean of their requests.
    weights : mapping, Series, table or array, optional
        The weight of each user, above 0, by user; an array is by row number, if users have no ids.
        Means are weighted, and their errors are robust.
    convention : str, optional
        Count as another library does: "trec_eval", "implicit", "ranx", …; see `Protocol`. Equal
        scores in paths, tables and mappings are ordered as by this library. `Rankings` are used
        unchanged: make them with the ``ties=`` of the library.
    keep : {"values", "lists", "totals"}
        "values" keeps the values of each user, and the lists if all users are evaluated at once in
        this process. "lists" keeps the same, and raises an error if it cannot keep the lists.
        "totals" keeps only totals, whose size does not grow with the number of users.
    memory : int or str, optional
        Bytes that the evaluation may take, without its inputs and the interpreter, such as
        ``"1GB"``; at least 16 MiB.
        Users are then evaluated in blocks of as many as fit. If you have blocks yourself, evaluate
        each and merge them (`Evaluation.merge`).
    client : distributed.Client, str or concurrent.futures.Executor, optional
        Where to evaluate blocks of users: on the workers of a Dask cluster, given by its client or
        the address of its scheduler, or of an executor. Each task uses one thread. By default this
        process. Frames of Spark are evaluated by Spark.
    num_threads : int, optional
        Threads of this process to use. By default, or with -1, one for each core that this process
        may use: the smallest of its affinity, the CPU quota of its cgroups (of a container),
        ``OMP_NUM_THREADS`` and ``NUMBA_NUM_THREADS``. The result does not depend on the number of
        threads.
    progress : bool, optional
        Show a progress bar if there are blocks; by default on a terminal only.

    Returns
    -------
    Evaluation
        With the lists and the values of each user, as far as `keep` keeps them. Its numbers are
        bit-identical for any blocks and workers. If no user counts, it has no numbers and reading
        them raises an error, but it merges with evaluations of other users.

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, none is given, one needs an input that is
        missing, or one is not defined for lists with ``ties="average"``.
    InvalidDataError
        If a matrix is not valid for `Rankings.from_positions` or `Relevance.from_csr`, a row of a
        table cannot be used, or groups or vectors do not cover the items. If the sum of gains is
        not finite. If a list has unknown items and a metric counts recommended or judged items. If
        `validation` stores a zero or a fraction that the convention's library counts as another
        gain. If the values of the users do not fit into `memory`.
    InvalidFileError
        If a file cannot be read.
    WorkerError
        If the workers cannot be reached, or do not survive a task.
    MissingExtraError
        If an optional dependency is not installed in this environment or on the workers.

    Warns
    -----
    UserWarning
        If no list contains a relevant item, or no list has a rank 1. If auc or another metric of
        all candidates is requested of lists of shown items only. With `train`, if lists contain
        seen items, relevant items were seen, or evaluated users have no training data. With
        `candidates`, if relevant or listed items are not candidates, or candidates are a sample of
        the catalogue.

    See Also
    --------
    Protocol : Metrics with their rules for counting users and items.
    evaluate_model : Rank the items of a model and evaluate the rankings.
    Rankings.scan, Relevance.scan : Name the columns of tables.

    Notes
    -----
    The name of a path decides how it is read. Files of Parquet, CSV, TSV, JSON lines and Arrow IPC,
    folders of them, patterns such as ``"recs/*.csv"`` and URIs such as ``"s3://bucket/recs"`` are
    tables. A folder with ``data.npy``, ``indices.npy``, ``indptr.npy`` and ``shape.npy`` is a CSR
    matrix that stays on disk; ``.npz`` is a matrix of `scipy.sparse.save_npz`. ``.run`` is a TREC
    run, and ``.qrels`` are qrels; `trec.read_run` and `trec.read_qrels` read them under any name.

    Tables in Parquet on both sides are read one range of users after the other, for any order of
    rows, and need not fit into memory.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 3, 2], [1, 0, 2]])
    >>> relevant = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0]])
    >>> ev = se.evaluate(rankings, relevant, ["ndcg@3", "recall@1"])
    >>> round(ev["ndcg@3"], 6)
    0.919721
    >>> ev
    <Evaluation: 1 users, 1 left out; ndcg@3 0.9197, recall@1 0.5000>
    >>> se.evaluate(rankings, relevant, "ndcg@3", convention="rectools")["ndcg@3"]
    0.7039180890341347
    """
    check_choice("average", average, ["request", "user"])
    if isinstance(validation, Requests) or weights is not None:
        options: dict[str, Any] = {
            "candidates": candidates, "item_data": item_data, "convention": convention,
            "keep": keep, "memory": memory, "client": client, "num_threads": num_threads,
            "progress": progress,
        }  # fmt: skip
        return _weighted(predictions, validation, metrics, train, average, weights, options)
    if hasattr(type(validation), "validation"):  # a Holdout; frames of Spark have any attribute
        validation = getattr(validation, "validation")  # noqa: B009 - imported by nobody here
    if hasattr(type(train), "validation"):
        train = getattr(train, "seen")  # noqa: B009 - likewise
    inputs = {} if item_data is None else item_inputs(item_data)
    if train is not None:
        inputs["train"] = train
    if candidates is not None:
        inputs["candidates"] = candidates
    request = Request.parse(metrics, inputs, convention)
    execution = Execution(keep, memory, client, num_threads, progress)
    if train is not None:
        inputs["train"] = read_truth(train)
        check_part(inputs["train"])
    if candidates is not None:
        inputs["candidates"] = as_candidates(candidates)
    rankings: Any = predictions
    relevance: Any = validation
    evaluation = None
    if not (isinstance(rankings, _OPENED) and isinstance(relevance, _OPENED)):
        ties = request.convention.ties
        rankings, relevance = open_lists(rankings, ties), open_truth(relevance)
        if isinstance(rankings, RankingsScan) and isinstance(relevance, RelevanceScan):
            evaluation = _of_tables(request, execution, rankings, relevance, inputs)
        if evaluation is None:
            relevance = _made(open_side(relevance), validation, Relevance.from_csr)
            known = relevance if isinstance(relevance, Relevance) else None
            rankings = open_side(rankings, ties, known)
            rankings = _made(rankings, predictions, Rankings.from_positions)
    if evaluation is None:
        data = Data.of_lists(rankings, relevance, inputs, whole=execution.whole)
        evaluation = evaluate_source(request, execution, Arrays(request, execution, data))
    warn_of_mistakes(evaluation._part)
    return evaluation


def _weighted(
    predictions: Any,
    validation: Any,
    metrics: MetricsLike,
    train: Any,
    average: str,
    weights: Any,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate each request, or user, and average them with their weights, by user."""
    check_keep(options["keep"])
    requests = validation if isinstance(validation, Requests) else None
    if requests is not None:
        if train is not None:
            raise InvalidDataError(
                "train has what users have seen, and validation has requests; metrics that need "
                "train are evaluated by user",
                argument="train",
            )
        if options["candidates"] is None:
            options["candidates"] = requests.candidates
        validation, predictions = requests.relevance, requests.lists(predictions)
    rows = evaluate(predictions, validation, metrics, train=train, **options)
    return evaluation_of_users(rows, requests, weights, by_user=average == "user")


def check_keep(keep: str) -> None:
    """Raise if an evaluation of requests or with weights cannot keep what is asked for."""
    if keep != "values":
        raise InvalidDataError(
            f"keep is {keep!r}; requests and weights need the values of all rows, and keep no "
            "lists: keep='values'",
            argument="keep",
        )


def _made(side: Any, given: Any, make: Callable[[Any], Any]) -> Any:
    """Apply `make` to a matrix that has labels, or was read whole from a file.

    Slices of the result keep the labels, and errors name the file. Other values are unchanged.
    """
    is_labelled = isinstance(side, LabelledMatrix) and labels_of(side) != (None, None)
    is_read = issparse(side) and isinstance(given, str | Path) and not Path(given).is_dir()
    if not (is_labelled or is_read):
        return side
    with naming(Path(given) if is_read else None):
        return make(side)


def _of_tables(
    request: Request,
    execution: Execution,
    rankings: RankingsScan,
    relevance: RelevanceScan,
    inputs: dict[str, Any],
) -> Evaluation | None:
    """Evaluate two tables that need not fit into memory; return None if they are in memory.

    `inputs` are the other inputs of `evaluate`.
    """
    engines = {_engine(rankings), _engine(relevance)}
    if "pyspark" not in engines and engines != {"parquet"}:
        return None
    if not engines <= {"parquet", "pyspark"}:
        names = ", ".join(sorted(map(str, engines)))
        raise InvalidDataError(
            f"the tables are of {names}; pass both sides as frames of Spark, or as Parquet"
        )
    others = sorted(request.inputs - {"propensity"})
    if others:
        raise InvalidDataError(
            f"{', '.join(others)} cannot be combined with tables, because users "
            "and items are numbered differently; evaluate matrices",
            argument=others[0].removeprefix("item_"),
        )
    propensity = KeyedPropensity.of(inputs["propensity"]) if inputs else None
    given = request, rankings, relevance, propensity
    client = execution.client
    session = client if is_spark(client) else None
    source: TableSource | None = None
    if engines == {"parquet"}:
        from .parquet import ParquetSource

        parquet = ParquetSource(*given, execution)
        # Spark distributes rows by user itself; for other clients this process does it.
        if parquet.ranges is not None or session is None:
            source = parquet
    if source is None:
        from .spark import SparkSource

        source = SparkSource(*given, session)
    return evaluate_source(request, execution, source)


def _engine(scan: RankingsScan | RelevanceScan) -> str | None:
    """Return the library of a frame, and "parquet" for paths that need not fit into memory."""
    table: Any = scan.table
    if not isinstance(table, str | Path):
        return engine_of(table) or "memory"  # of a list of paths
    if kind_of(table) is not PathKind.PARQUET:
        return "memory"
    opened = open_table(table)
    columns = scan.choose(opened).names
    # Names of folders have columns that only the reader of whole tables adds.
    in_folders = any(name not in part.names for part in opened.parts for name in columns.values())
    return "memory" if in_folders or is_list(opened.type_of(columns["item"])) else "parquet"
