"""`Arrays`: inputs in memory or in files of arrays as a source, all users at once or in blocks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from ..core.atomic_files import as_input
from ..core.hashing import digest
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.data import as_training
from ..inputs.npy import release, slice_rows
from ..inputs.paths import open_truth
from ..inputs.relevance import Relevance
from .execution import USERS_PER_BLOCK, users_per_block
from .sources import Block, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self

    from ..core.types import CSRMatrix, PathLike
    from ..inputs.data import Data, SideData
    from ..inputs.rankings import Rankings
    from ..metrics.request import Request
    from ..results.counts import Retrieval
    from .execution import Execution

#: How many samples of a file are hashed to recognize it, and the bytes in each.
_SAMPLES, _SAMPLE_SIZE = 64, 1 << 16


class Ranking(Protocol):
    """Makes the lists of users; it can be pickled."""

    @property
    def reference(self) -> FileReference | None:
        """The file that workers read it from, if any."""

    @property
    def memory(self) -> int:
        """The bytes that it takes for any number of users."""

    @property
    def entries_per_user(self) -> int:
        """The memory that it takes for each user, in entries of the user's rows."""

    @property
    def step(self) -> int:
        """Blocks begin at multiples of this number of users, so that they change no bit."""

    def rank(self, block: Data, side_data: SideData) -> tuple[Rankings, Retrieval | None]:
        """Return the lists of some users, and how they were made."""


@dataclass(frozen=True)
class ArrayLoader:
    """Turn some users' rows into a block: check them, and rank items if there are no lists."""

    side_data: SideData
    ranking: Ranking | None = None

    def __call__(self, task: Data) -> Block:
        """Return the block of a task."""
        with in_block(task.first):
            rows: dict[str, Any] = {
                name: side.read() for name, side in task.rows.items() if isinstance(side, FileRows)
            }
            return self.rank(replace(task, **rows).checked())

    def rank(self, data: Data) -> Block:
        """Return the block of users whose rows are checked."""
        first = data.first
        side_data = self.side_data.of_users(first, first + data.n_users)
        if data.candidates is not None:
            side_data = replace(side_data, candidates=data.candidates)
        if self.ranking is None:
            return Block(first, data.rankings, data.relevance, side_data)
        if side_data.training is None:  # the users' own rows are enough
            training = as_training(data.train, *data.train.shape).of_own_users()
            side_data = replace(side_data, training=training)
        lists, retrieval = self.ranking.rank(data, side_data)
        return Block(first, lists, data.relevance, side_data, retrieval, knows_judged=True)


class Arrays(Source):
    """Users whose rows are in memory or on disk.

    Parameters
    ----------
    request : Request
    execution : Execution
    data : Data
    ranking : Ranking, optional
        Makes the lists if `data` have none.
    references : mapping of str to FileReference
        Rows that workers read from files, by the names of `Data.rows`.
    """

    unit = " users"
    load: ArrayLoader

    def __init__(
        self,
        request: Request,
        execution: Execution,
        data: Data,
        ranking: Ranking | None = None,
        references: Mapping[str, FileReference] | None = None,
    ) -> None:
        self.request, self.execution = request, execution
        self.data, self.ranking, self.references = data, ranking, references or {}
        self.total, self.is_whole = data.n_users, execution.whole
        side_data: Any = data.side_data
        if not self.is_whole:
            own = side_data.candidates
            if own is not None and not own.for_all:  # a worker gets those of its users only
                self.data = replace(data, candidates=own)
                side_data = replace(side_data, candidates=None)
            self.n_rows = self._n_rows()
            if request.needs_largest_gain and side_data.largest_gain is None:
                largest = largest_gain(data.relevance, self.n_rows)
                side_data = replace(side_data, largest_gain=largest)
        self.load = ArrayLoader(side_data, ranking)

    def _n_rows(self) -> int:
        """Return the number of users per block that stays within the memory limit."""
        execution, ranking, memory = self.execution, self.ranking, self.execution.memory
        side_data: Any = self.data.side_data
        rows = self.data.rows
        n_entries = sum(int(rows[name].indptr[-1]) for name in rows.keys() - {"known"})
        fixed, step = 0, 1
        if ranking is not None:
            fixed, step = ranking.memory, ranking.step
            n_entries += max(self.total, 1) * ranking.entries_per_user
        if memory is not None and memory < 2 * fixed:
            raise InvalidDataError(
                f"memory is {memory:,} bytes, but ranking {side_data.n_items:,} items "
                f"takes {fixed:,} bytes for any number of users. Use memory={2 * fixed} or more",
                argument="memory",
            )
        n_metrics = len(self.request.metrics)
        n_rows = users_per_block(execution, n_entries, max(self.total, 1), n_metrics, fixed)
        return max(n_rows // step, 1) * step

    @property
    def repeatable(self) -> bool:
        """Whether the workers' files still exist."""
        of_model = None if self.ranking is None else self.ranking.reference
        files = [*self.references.values(), *([of_model] if of_model else [])]
        return all(file.path.exists() for file in files)

    def everybody(self) -> Block:
        """Return all users as one block."""
        data = self.data
        return self.load.rank(data if self.ranking is None else data.part(0, self.total))

    def tasks(self) -> Iterator[tuple[Data, int]]:
        """Yield the rows of some users, or where workers read them."""
        shared: dict[str, Any] = dict.fromkeys(("side_data", *self.references))
        data = replace(self.data, **shared)
        for first in range(0, self.total, self.n_rows):
            last = min(first + self.n_rows, self.total)
            rows: dict[str, Any] = {
                name: FileRows(file, first, last) for name, file in self.references.items()
            }
            yield replace(data.part(first, last), **rows), last - first
            release(*data.rows.values())


def largest_gain(relevance: Relevance | CSRMatrix, n_rows: int = USERS_PER_BLOCK) -> float:
    """Return the largest gain, read `n_rows` users at a time."""
    if isinstance(relevance, Relevance):
        return float(relevance.gains.max(initial=0.0))
    largest = 0.0
    for first in range(0, int(relevance.shape[0]), n_rows):
        rows = slice_rows(relevance, first, min(first + n_rows, int(relevance.shape[0])))
        with in_block(first):
            largest = max(largest, float(Relevance.from_csr(rows).gains.max(initial=0.0)))
    return largest


@contextmanager
def in_block(first: int) -> Iterator[None]:
    """Name the block whose rows an `InvalidDataError` counts."""
    try:
        yield
    except InvalidDataError as error:
        if first == 0:
            raise
        raise InvalidDataError(
            f"{error} (rows are counted from row {first}, where this block of users starts)"
        ) from None


@dataclass(frozen=True)
class FileReference:
    """A matrix on disk that each worker opens, instead of receiving a copy.

    Attributes
    ----------
    path : Path
    digest : str
        A digest of file sizes and samples; a worker compares it with its own files.
    """

    path: Path
    digest: str

    @classmethod
    def of(cls, path: PathLike) -> Self:
        """Make a reference to files that this process can read."""
        absolute = as_input(path).absolute()
        return cls(absolute, _digest(absolute))

    def open(self) -> Any:
        """Return the content, or raise `InvalidFileError` if the files changed."""
        return _open_reference(self)

    def read(self) -> Any:
        """Return the content of the files."""
        return open_truth(self.path)

    def rows(self, first: int, last: int) -> Any:
        """Return a copy of the rows of some users."""
        side = self.open()
        rows: Any = slice_rows(side, first, last)
        rows = rows.copy()
        release(side)
        return rows


@dataclass(frozen=True)
class FileRows:
    """The rows of some users in a file."""

    reference: FileReference
    first: int
    last: int

    def read(self) -> Any:
        """Return the rows."""
        return self.reference.rows(self.first, self.last)


@lru_cache(maxsize=4)
def _open_reference(reference: FileReference) -> Any:
    path = reference.path
    if not path.exists():
        raise InvalidFileError(
            "does not exist on this worker. Give all workers access to the same files", path
        )
    if _digest(path) != reference.digest:
        raise InvalidFileError(
            "differs on this worker. Give all workers access to the same files", path
        )
    return reference.read()


def _digest(path: Path) -> str:
    """Hash the sizes and samples of files; reading all of a large file would take too long."""
    parts: list[str | bytes] = []
    for file in sorted(path.glob("*.npy")) if path.is_dir() else [path]:
        size = file.stat().st_size
        parts.append(f"{file.name} {size}")
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * size // _SAMPLES)
                parts.append(stream.read(_SAMPLE_SIZE))
    return digest(*parts)
