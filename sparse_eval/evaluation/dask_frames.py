"""Dask dataframes, shuffled unless their partitions hold different users already."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.versions import installed_version
from ..errors import InvalidDataError, MissingExtraError
from .arrow import Columns, Known, check_types, evaluate_rows
from .parquet import items_of
from .workers import DaskWorkers, check_version, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..results.once import Question
    from ..results.parts import Part
    from .workers import ExecutorWorkers

__all__ = ["partitions"]


def partitions(
    question: Question,
    recs: Any,
    truth: Any,
    columns: Columns,
    workers: DaskWorkers | ExecutorWorkers,
    per_user: bool,
) -> tuple[Iterator[Part], int]:
    """Return the parts of all partitions, as they are evaluated, and how many there will be."""
    try:
        from dask import dataframe
        from dask.delayed import delayed
    except ImportError:
        raise MissingExtraError(
            'Dask dataframes need dask: pip install "sparse_eval[dask]"'
        ) from None
    if not isinstance(workers, DaskWorkers):
        raise InvalidDataError(
            "dataframes are evaluated by the workers of a Dask cluster; give its client, or its "
            "address, and no executor"
        )
    sides = [
        dataframe.read_parquet(str(Path(side).absolute())) if isinstance(side, str | Path) else side
        for side in (recs, truth)
    ]
    for side, name in zip(sides, ("recs", "truth"), strict=True):
        if not isinstance(side, dataframe.DataFrame):
            raise InvalidDataError(
                f"{name} is a {type(side).__name__}; expected a Dask dataframe, or the path of "
                "Parquet files"
            )
    columns = columns.settled(*(list(side.columns) for side in sides))
    names = columns.of_recs, columns.of_truth
    schemas = [_schema(side[wanted]._meta) for side, wanted in zip(sides, names, strict=True)]
    check_types(schemas[0], schemas[1], columns)
    client = workers.client
    sides = [_alike(side[wanted]) for side, wanted in zip(sides, names, strict=True)]
    with client.as_current():  # a shuffle asks for the current client
        known = _look_around(question, sides, columns, schemas, client)
        if not _are_apart(sides, schemas[0].field(columns.user), client):
            n = max(side.npartitions for side in sides)
            sides = [side.shuffle(on=columns.user, npartitions=n) for side in sides]
        shared = delayed((installed_version(), question, columns, schemas, known, per_user))
        pairs = list(zip(*(side.to_delayed() for side in sides), strict=True))
        futures = client.compute([delayed(_evaluate)(shared, *pair) for pair in pairs])
    return _results(futures, client), len(futures)


def _alike(frame: Any) -> Any:
    """Cast ids so that the same have the same hash on both sides."""
    import pandas as pd

    wanted: dict[str, Any] = {}
    for name in frame.columns[:2]:
        dtype = frame._meta[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            wanted[name] = dtype = dtype.categories.dtype
        if pd.api.types.is_integer_dtype(dtype) and dtype.itemsize < 8:
            wanted[name] = "Int64" if pd.api.types.is_extension_array_dtype(dtype) else "int64"
    return frame.astype(wanted)


def _schema(meta: Any) -> Any:
    """Return what the columns of a frame are in Arrow: ids of one type each, else floats."""
    import pandas as pd
    import pyarrow as pa

    fields = []
    for place, name in enumerate(meta.columns):
        dtype = meta[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = dtype.categories.dtype
        if place > 1:
            found = pa.float64()
        elif pd.api.types.is_unsigned_integer_dtype(dtype) and dtype.itemsize == 8:
            found = pa.uint64()
        elif pd.api.types.is_integer_dtype(dtype):
            found = pa.int64()
        elif pd.api.types.is_string_dtype(dtype):
            found = pa.string()
        else:
            raise InvalidDataError(
                f"column {name!r} holds {dtype}; expected ids that are whole numbers or text, none "
                "of them missing"
            )
        fields.append((name, found))
    return pa.schema(fields)


def _table(frame: Any, schema: Any) -> Any:
    """Return a partition as a table of Arrow, or raise `InvalidDataError`."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    except pa.ArrowException as error:
        raise InvalidDataError(
            f"a partition does not hold what its columns promise ({error}); cast them to "
            f"{', '.join(f'{field.name}: {field.type}' for field in schema)}"
        ) from None


def _evaluate(shared: Any, recs: Any, truth: Any) -> Part:
    wanted, question, columns, schemas, known, per_user = shared
    check_version(wanted)
    tables = _table(recs, schemas[0]), _table(truth, schemas[1])
    return evaluate_rows(question, columns, *tables, known, per_user, num_threads=1)


def _look_around(
    question: Question, sides: list[Any], columns: Columns, schemas: Any, client: Any
) -> Known:
    """Find what has to be known of all users; mostly nothing."""
    import pyarrow as pa

    wants_catalogue, wants_largest = Known.needed(question)
    catalogue = largest = None
    if wants_catalogue:
        kind = check_types(schemas[0], schemas[1], columns)[columns.item]
        found = _gathered(client, [side[columns.item].unique() for side in sides])
        field = pa.schema([schemas[0].field(columns.item)])
        tables = [_table(items.to_frame(columns.item), field) for items in found]
        catalogue = items_of(tables, columns.item, kind)
    if wants_largest:
        largest = 1.0
        if columns.gain is not None:
            largest = float(_gathered(client, [sides[1][columns.gain].max()])[0])
    return Known(catalogue, largest)


def _are_apart(sides: list[Any], user: Any, client: Any) -> bool:
    """Say whether partitions have users of their own, those of the same number the same."""
    import pyarrow as pa
    from dask.delayed import delayed

    if sides[0].npartitions != sides[1].npartitions:
        return False
    schema = pa.schema([user])
    ends = _gathered(
        client,
        [delayed(_ends)(part, schema) for side in sides for part in side[[user.name]].to_delayed()],
    )
    n = sides[0].npartitions
    spans = []
    for pair in zip(ends[:n], ends[n:], strict=True):
        known = [span for span in pair if span is not None]
        if known:
            spans.append((min(span[0] for span in known), max(span[1] for span in known)))
    spans.sort()
    return all(before[1] < after[0] for before, after in pairwise(spans))


def _ends(users: Any, schema: Any) -> tuple[Any, Any] | None:
    """Return the least and largest user of a partition, None of an empty one."""
    import pyarrow.compute as pc

    found = pc.min_max(_table(users, schema).column(0)).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _gathered(client: Any, wanted: list[Any]) -> list[Any]:
    return [result_of(future) for future in client.compute(wanted)]


def _results(futures: list[Any], client: Any) -> Iterator[Part]:
    from dask.distributed import as_completed

    for future in as_completed(futures, loop=client.loop):
        yield result_of(future)
        future.release()
