"""Dask: tasks for the workers of a cluster, and dataframes whose partitions they evaluate."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from os import getpid
from pathlib import Path
from socket import create_connection, gethostname
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.versions import installed_version
from ..errors import InvalidDataError, MissingExtraError, WorkerError
from ..inputs.tables import open_table
from .arrow import RowsLoader, TableSource, check_ids
from .runners import TASKS_PER_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from ..inputs.item_data import KeyedPropensity
    from ..inputs.tables import RankingsScan, RelevanceScan
    from ..metrics.request import Request
    from .runners import ClientLike, Work
    from .sources import Block

#: Seconds to wait for a scheduler and for its workers.
PATIENCE = 5


class Partitions(NamedTuple):
    """A task that Dask has to compute first: a partition of each side."""

    recs: Any
    truth: Any


class DaskRunner:
    """Gives tasks to the workers of a Dask cluster."""

    num_threads = 1

    def __init__(self, client: Any) -> None:
        self.client = client
        if client.status != "running":
            raise InvalidDataError(f"the client is {client.status}; pass a connected client")
        try:  # workers may be starting
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise WorkerError(
                "the scheduler has no workers; start some: dask worker ADDRESS"
            ) from None

    def run(
        self, work: Work, shared: Any, tasks: Iterable[tuple[Any, Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Do tasks on the workers, no more than a few waiting there.

        Shared data go to each worker once. They and the tasks are passed through the scheduler,
        which sends them again when a worker is lost. Data scattered to workers would be lost with
        them. When a worker died while it received them, the client waited forever.
        """
        import dask
        from dask.delayed import delayed
        from dask.distributed import as_completed

        waiting = iter(tasks)
        running: dict[Any, Any] = {}
        done = as_completed(loop=self.client.loop)

        def submit(function: Callable[..., Any], *arguments: Any) -> Any:
            # Large tasks are intended: only a few are under way at once.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                return self.client.submit(function, *arguments, pure=False)

        def give_out() -> None:
            # Workers may come and go.
            n_at_once = TASKS_PER_THREAD * max(int(sum(self.client.nthreads().values())), 1)
            for task, tag in islice(waiting, max(n_at_once - len(running), 0)):
                if isinstance(task, Partitions):  # all at once: they may come from one shuffle
                    pairs = [(task, tag), *waiting]
                    common = delayed(shared, traverse=False)
                    do = delayed(_do_partitions)
                    graph = [do(installed_version(), work, common, *pair) for pair, _ in pairs]
                    for future, (_, of_pair) in zip(self.client.compute(graph), pairs, strict=True):
                        running[future] = of_pair
                        done.add(future)
                    return
                future = submit(_do, installed_version(), work, sent, task)
                running[future] = tag
                done.add(future)

        try:
            sent = submit(_keep, shared)
            give_out()
            for future in done:
                tag = running.pop(future)
                result = result_of(future)
                future.release()
                give_out()
                yield tag, result
        finally:
            if self.client.status == "running":
                self.client.cancel(list(running))


def _keep(shared: Any) -> Any:
    return shared


def _do(version: str, work: Work, shared: Any, task: Any) -> Any:
    """Do a task in a worker, if it has the caller's version."""
    check_version(version)
    return work(shared, task)


def _do_partitions(version: str, work: Work, shared: Any, recs: Any, truth: Any) -> Any:
    return _do(version, work, shared, Partitions(recs, truth))


def check_version(version: str) -> None:
    """Raise `WorkerError` unless this process has that version of the package."""
    installed = installed_version()
    if installed != version:
        raise WorkerError(
            f"worker {gethostname()} (process {getpid()}) has sparse_eval {installed}, but the "
            f"client has {version}",
            hint="install the same version on both",
            may_pass=False,
        )


def result_of(future: Any) -> Any:
    """Return the result of a Dask worker, or raise an error that explains its failure."""
    from dask.distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise WorkerError(
            f"a task killed several workers, one after the other ({error}), perhaps because they "
            "ran out of memory; give workers more memory, or fewer threads"
        ) from error
    except CancelledError as error:
        raise WorkerError(
            f"a task was cancelled ({error}), because the scheduler stopped or the client was "
            "closed. Run the evaluation again"
        ) from error
    except (ImportError, RuntimeError) as error:  # the second is raised from the first
        causes = f"{error} {error.__cause__}"
        if "No module named" not in causes:
            raise
        raise WorkerError(
            f"a package is missing on a worker ({causes})",
            hint=f"install sparse_eval {installed_version()} there, as on this machine",
            may_pass=False,
        ) from error


@contextmanager
def connect(client: ClientLike | None) -> Iterator[DaskRunner]:
    """Yield the runner of a client, of the scheduler at an address, or of the current client.

    Raises
    ------
    WorkerError
        If the scheduler cannot be reached, or has no workers.
    MissingExtraError
        If distributed is not installed.
    InvalidDataError
        If `client` is something else, or None without a current one.
    """
    try:
        from dask.distributed import Client, get_client
    except ImportError:
        raise MissingExtraError(
            'a Dask cluster needs distributed: pip install "sparse_eval[dask]"'
        ) from None
    expected = (
        "a distributed.Client, the address of a scheduler, or an executor of concurrent.futures"
    )
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise InvalidDataError(
                f"there is no current Dask client; pass client=, {expected}"
            ) from None
    if isinstance(client, Client):
        yield DaskRunner(client)
        return
    if not isinstance(client, str):
        raise InvalidDataError(f"client is a {type(client).__name__}; expected {expected}")
    scheme, _, place = client.rpartition("://")
    host, _, port = place.rpartition(":")
    try:
        if scheme in ("", "tcp", "tls"):
            # A client that cannot reach its scheduler would go on trying at exit.
            create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
        connected = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, OverflowError, TypeError, ValueError) as error:
        raise WorkerError(
            f"no scheduler answers at {client!r} ({error}); expected the address of one, such as "
            "tcp://10.0.0.1:8786",
            may_pass=isinstance(error, OSError),
        ) from error
    with connected:
        yield DaskRunner(connected)


@dataclass(frozen=True)
class PartitionLoader:
    """Turn a partition of each side into a block."""

    rows: RowsLoader
    schemas: tuple[Any, Any]

    def __call__(self, task: Partitions) -> Block:
        """Return the block of a task."""
        return self.rows((_table(task.recs, self.schemas[0]), _table(task.truth, self.schemas[1])))


class DaskSource(TableSource):
    """Dask dataframes, shuffled by user unless their partitions hold different users already.

    Parameters
    ----------
    request : Request
    rankings : RankingsScan
    relevance : RelevanceScan
        A dataframe, or Parquet, which is then read as one.
    propensity : KeyedPropensity or None
    client : distributed.Client
    """

    unit = " partitions"

    def __init__(
        self,
        request: Request,
        rankings: RankingsScan,
        relevance: RelevanceScan,
        propensity: KeyedPropensity | None,
        client: Any,
    ) -> None:
        import pandas as pd
        from dask import dataframe

        self.client = client
        frames: list[Any] = [
            dataframe.read_parquet(str(Path(scan.table).absolute()))
            if isinstance(scan.table, str | Path)
            else scan.table
            for scan in (rankings, relevance)
        ]
        empty = (pd.DataFrame(columns=one.columns).astype(one.dtypes) for one in frames)
        super().__init__(rankings, relevance, *map(open_table, empty))
        names = list(self.columns.recs), list(self.columns.truth)
        self.frames = [
            _with_equal_hashes(side[own]) for side, own in zip(frames, names, strict=True)
        ]
        self.schemas = _schema(self.frames[0]), _schema(self.frames[1])
        check_ids(*self.schemas, self.columns)
        with self.client.as_current():  # a shuffle asks for the current client
            self.load = PartitionLoader(self.rows_loader(request, propensity), self.schemas)
            if not self._are_disjoint():
                n = max(frame.npartitions for frame in self.frames)
                self.frames = [
                    frame.shuffle(on=own[0], npartitions=n)
                    for frame, own in zip(self.frames, names, strict=True)
                ]
        self.total = self.frames[0].npartitions

    @property
    def repeatable(self) -> bool:
        """Whether all items are known, and the cluster is still available."""
        return self.knows_items and self.client.status == "running"

    def tasks(self) -> Iterator[tuple[Partitions, int]]:
        """Yield pairs of partitions."""
        with self.client.as_current():
            sides = [frame.to_delayed() for frame in self.frames]
        for pair in zip(*sides, strict=True):
            yield Partitions(*pair), 1

    def item_columns(self) -> Iterator[tuple[Any, str]]:
        """Yield the distinct items of each side."""
        import pyarrow as pa

        names = self.columns.recs[1], self.columns.truth[1]
        items = self._gather(
            [frame[name].unique() for frame, name in zip(self.frames, names, strict=True)]
        )
        for series, name, schema in zip(items, names, self.schemas, strict=True):
            yield _table(series.to_frame(name), pa.schema([schema.field(name)])), name

    def largest_gain(self) -> float:
        """Return the largest gain in a row."""
        return float(self._gather([self.frames[1][self.columns.truth[2]].max()])[0])

    def _are_disjoint(self) -> bool:
        """Return whether each user is in one partition number only, on both sides."""
        import pyarrow as pa
        from dask.delayed import delayed

        n = self.frames[0].npartitions
        if n != self.frames[1].npartitions:
            return False
        names = self.columns.recs[0], self.columns.truth[0]
        bounds = self._gather(
            [
                delayed(_bounds)(partition, pa.schema([schema.field(name)]))
                for frame, name, schema in zip(self.frames, names, self.schemas, strict=True)
                for partition in frame[[name]].to_delayed()
            ]
        )
        spans = []
        for pair in zip(bounds[:n], bounds[n:], strict=True):
            known = [span for span in pair if span is not None]
            if known:
                spans.append((min(span[0] for span in known), max(span[1] for span in known)))
        spans.sort()
        return all(before[1] < after[0] for before, after in pairwise(spans))

    def _gather(self, collections: list[Any]) -> list[Any]:
        return [result_of(future) for future in self.client.compute(collections)]


def _with_equal_hashes(frame: Any) -> Any:
    """Cast ids so that equal ones have equal hashes on both sides."""
    import pandas as pd

    dtypes: dict[str, Any] = {}
    for name, dtype in frame.dtypes.iloc[:2].items():
        if isinstance(dtype, pd.CategoricalDtype):
            dtypes[name] = dtype = dtype.categories.dtype
        if pd.api.types.is_integer_dtype(dtype) and dtype.itemsize < 8:
            dtypes[name] = "Int64" if pd.api.types.is_extension_array_dtype(dtype) else "int64"
    return frame.astype(dtypes)


def _schema(frame: Any) -> pa.Schema:
    """Return the Arrow types of a frame's columns: ids of one type each, else floats."""
    import pandas as pd
    import pyarrow as pa

    fields = []
    for number, (name, dtype) in enumerate(frame.dtypes.items()):
        if number > 1:
            arrow = pa.float64()
        elif pd.api.types.is_unsigned_integer_dtype(dtype) and dtype.itemsize == 8:
            arrow = pa.uint64()
        elif pd.api.types.is_integer_dtype(dtype):
            arrow = pa.int64()
        elif pd.api.types.is_string_dtype(dtype):
            arrow = pa.string()
        else:
            raise InvalidDataError(
                f"column {name!r} has type {dtype}; expected ids that are whole numbers or text, "
                "none of them missing"
            )
        fields.append((name, arrow))
    return pa.schema(fields)


def _table(frame: Any, schema: pa.Schema) -> pa.Table:
    """Return a partition as a table of Arrow, or raise `InvalidDataError`."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    except pa.ArrowException as error:
        raise InvalidDataError(
            f"a partition does not match the types of its columns ({error}); cast them to "
            f"{', '.join(f'{field.name}: {field.type}' for field in schema)}"
        ) from None


def _bounds(users: Any, schema: pa.Schema) -> tuple[Any, Any] | None:
    """Return the least and largest user of a partition, None of an empty one."""
    import pyarrow.compute as pc

    bounds = pc.min_max(_table(users, schema).column(0)).as_py()
    return None if bounds["min"] is None else (bounds["min"], bounds["max"])
