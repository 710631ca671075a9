"""Tables on both sides: which of the sources reads them, and which runner evaluates them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError
from ..inputs.item_data import KeyedPropensity
from ..inputs.kinds import Kind, kind_of
from ..inputs.scan import engine_of
from .parquet import PER_ROW, ROWS_PER_BLOCK, ROWS_PER_TASK, ParquetSource
from .run import evaluate_source, is_dask, is_spark

if TYPE_CHECKING:
    from ..inputs.scan import RankingsScan, RelevanceScan
    from ..metrics.request import Request
    from ..results import Evaluation
    from .arrow import TableSource
    from .run import Execution


def evaluate_tables(
    request: Request,
    execution: Execution,
    rankings: RankingsScan,
    relevance: RelevanceScan,
    inputs: dict[str, Any],
) -> Evaluation | None:
    """Evaluate two tables that need not fit into memory; return None if they are in memory.

    `inputs` are those of `evaluate` beside lists and relevance.
    """
    engines = {_engine(rankings.table), _engine(relevance.table)}
    if not engines & {"parquet", "dask", "pyspark"}:
        return None
    if not engines <= {"parquet", "dask"} and not engines <= {"parquet", "pyspark"}:
        if "parquet" in engines and len(engines) == 2:
            return None  # a frame in memory beside a table that is read into memory
        names = ", ".join(sorted(map(str, engines)))
        raise InvalidDataError(
            f"the tables are of {names}; give both sides as frames of one library, or as Parquet"
        )
    others = sorted(request.inputs - {"propensity"})
    if others:
        raise InvalidDataError(
            f"{', '.join(others)} cannot be given beside tables, whose users and "
            "items have other numbers; evaluate matrices"
        )
    propensity = KeyedPropensity.of(inputs["propensity"]) if inputs else None
    client, memory = execution.client, execution.memory
    given = request, rankings, relevance, propensity
    parquet = None
    if engines == {"parquet"}:
        n_rows = ROWS_PER_BLOCK if client is None else ROWS_PER_TASK
        if memory is not None:
            n_rows = max(memory // (2 if execution.per_user else 1) // PER_ROW, 1)
        parquet = ParquetSource(*given, n_rows, execution.progress)
    with ExitStack() as stack:
        # Both engines sort rows out among their workers; for all others this process does it.
        is_engine = is_dask(client) or is_spark(client)
        source: TableSource
        if parquet is not None and (parquet.ranges is not None or not is_engine):
            source = parquet
        elif "pyspark" in engines or is_spark(client):
            from .spark import SparkSource

            source = SparkSource(*given, client)
        else:
            from .dask import DaskSource, connect

            source = DaskSource(*given, stack.enter_context(connect(client)).client)
        return evaluate_source(request, execution, source)


def _engine(table: Any) -> str | None:
    if isinstance(table, str | Path):
        return "parquet" if kind_of(table) is Kind.PARQUET else "csv"
    return engine_of(table)
