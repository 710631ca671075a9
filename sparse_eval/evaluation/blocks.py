"""Users in blocks: matrices that are cut by rows, iterables of blocks, and their sum."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.arguments import check_whole
from ..core.csr import canonical_csr, check_parts
from ..core.progress import is_shown
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError
from ..inputs.alignment import align
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import Context
from ..metrics.measure import needs_catalogue, needs_largest_gain
from ..results import MergedEvaluation, part_of
from ..results.once import Terms, evaluate_once
from ..results.parts import add_in_order, add_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..metrics.measure import Plan
    from ..results.parts import Part

__all__ = [
    "LEAST_MEMORY",
    "Block",
    "blocks_of_matrices",
    "check_kept",
    "check_memory",
    "csr_on_disk",
    "evaluate_block",
    "evaluate_blocks",
    "is_blocks",
    "is_matrix_folder",
    "largest_gain_of",
    "load_array",
    "open_matrix",
    "paired",
    "release",
    "rows_of",
    "rows_within",
]

#: Bytes that evaluating a block holds at its peak for each entry of its matrices and for each of
#: its users: measured, see benchmarks/SCALE.md.
PER_ENTRY, PER_USER = 64, 400

#: Bytes that a value of a user takes for good, and what is kept of a user beside them.
PER_VALUE, PER_KEPT = 8, 41

#: Users of a block, where nothing says how much memory there is.
ROWS = 1 << 18

#: A budget below this has no room for a block worth evaluating.
LEAST_MEMORY = 1 << 24


class Block(NamedTuple):
    """Some users: the row number of the first of them, their lists, and what is relevant."""

    first: int
    rankings: Rankings
    relevance: Relevance


def is_blocks(value: Any) -> bool:
    """Say whether it is an iterable of blocks, rather than a matrix of some kind."""
    return isinstance(value, Iterable) and not (
        isinstance(value, str | bytes | Path | np.ndarray | Rankings | Relevance)
        or sparse.issparse(value)
        or hasattr(value, "columns")  # a frame
    )


def check_memory(memory: int | None) -> int | None:
    """Return a budget in bytes, or raise `InvalidDataError` where it is none."""
    return None if memory is None else check_whole("memory", memory, LEAST_MEMORY)


def open_matrix(path: str | Path) -> Any:
    """Return a CSR matrix whose parts stay on disk: a folder of ``data.npy``, ``indices.npy``,
    ``indptr.npy`` and ``shape.npy``.
    """  # noqa: D205
    path = Path(path)
    shape = load_array(path / "shape.npy")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise InvalidFileError(
            f"holds {shape.tolist()!r}; expected two whole numbers, of users and of items",
            path / "shape.npy",
        )
    matrix = sparse.csr_matrix(tuple(shape.tolist()))
    for name in ("data", "indices", "indptr"):  # given to SciPy, it would copy some
        setattr(matrix, name, load_array(path / f"{name}.npy"))
    try:
        check_parts(matrix, "the matrix")
        _check_end(matrix, "the matrix")
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from None
    return matrix


def _check_end(matrix: Any, name: str) -> None:
    """Refuse a CSR whose rows go on behind its entries."""
    if not 0 <= matrix.indptr[-1] <= len(matrix.data):
        raise InvalidDataError(
            f"{name} is not a CSR: its rows have {matrix.indptr[-1]} entries, and there are "
            f"{len(matrix.data)}; make it anew with scipy.sparse.csr_matrix"
        )


def is_matrix_folder(path: str | Path) -> bool:
    """Say whether a path is a folder of the parts of a CSR matrix."""
    return (Path(path) / "indptr.npy").exists()


def csr_on_disk(matrix: Any, name: str) -> Any:
    """Return a CSR whose rows can be cut, without reading it; other formats are converted."""
    if not sparse.issparse(matrix):
        raise InvalidDataError(
            f"{name} is a {type(matrix).__name__}; expected a scipy sparse matrix, such as "
            "scipy.sparse.csr_matrix(x) of a dense array"
        )
    if matrix.format != "csr":
        return canonical_csr(matrix, name, sum_duplicates=True)
    check_parts(matrix, name)
    _check_end(matrix, name)
    return matrix


def load_array(path: Path) -> np.ndarray[Any, Any]:
    """Return an array of a ``.npy`` file that stays on disk, or raise `InvalidFileError`."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InvalidFileError(
            "does not exist; expected an array that numpy.save wrote", path
        ) from None
    except (OSError, ValueError, EOFError) as error:
        raise InvalidFileError(f"is no array that numpy.save wrote: {error}", path) from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise InvalidFileError("holds several arrays; expected one, from numpy.save", path)
    return array


def release(*sides: Any) -> None:
    """Give back the memory in which pages of files were read, of arrays and matrices on disk.

    What is mapped counts as the process's own until somebody else needs the memory: without this,
    a budget would look exceeded by all that was read.
    """
    for side in sides:
        parts = (side.data, side.indices, side.indptr) if sparse.issparse(side) else (side,)
        for part in parts:
            mapped = getattr(part, "base", None)
            if isinstance(mapped, mmap.mmap) and getattr(part, "mode", "") == "r":
                mapped.madvise(mmap.MADV_DONTNEED)  # it is read again where it is needed again


def rows_of(matrix: Any, first: int, last: int) -> Any:
    """Return rows of a CSR, of a Rankings or of a Relevance; empty ones beyond its end."""
    indptr = matrix.indptr[min(first, matrix.shape[0]) : last + 1]
    if (indptr[1:] < indptr[:-1]).any():
        row = first + int((indptr[1:] < indptr[:-1]).argmax())
        raise InvalidDataError(
            f"the matrix is not a CSR: the bounds of row {row} are out of order; make it anew with "
            "scipy.sparse.csr_matrix"
        )
    bounds = slice(int(indptr[0]), int(indptr[-1]))
    indptr = np.concatenate(
        (
            (indptr - indptr[0]).astype(np.int64, copy=False),
            np.full(last - first + 1 - len(indptr), bounds.stop - bounds.start, np.int64),
        )
    )
    shape = (last - first, matrix.shape[1])
    if sparse.issparse(matrix):
        return sparse.csr_matrix((matrix.data[bounds], matrix.indices[bounds], indptr), shape=shape)
    users = None if matrix.users is None else matrix.users[first:last]
    common = {"shape": shape, "indptr": indptr, "items": matrix.items[bounds], "users": users}
    if isinstance(matrix, Relevance):
        return replace(matrix, gains=matrix.gains[bounds], **common)
    lengths = matrix.lengths[first:last]
    lengths = np.concatenate((lengths, np.zeros(last - first - len(lengths), np.int64)))
    positions = {
        name: None if known is None else known[bounds]
        for name in ("gapped_positions", "last_positions")
        for known in [getattr(matrix, name)]
    }
    return replace(matrix, lengths=lengths, **positions, **common)


def blocks_of_matrices(rankings: Any, relevance: Any, n_users: int, n_rows: int) -> Iterator[Block]:
    """Cut two matrices, checked as far as their shapes, into blocks of `n_rows` users."""
    for first in range(0, n_users, n_rows):
        last = min(first + n_rows, n_users)
        yield _block(first, rows_of(rankings, first, last), rows_of(relevance, first, last))
        release(rankings, relevance)


def largest_gain_of(plans: Iterable[Plan], relevance: Any, n_rows: int = ROWS) -> float | None:
    """Return the largest gain of a matrix, read `n_rows` at a time; None if none depends on it."""
    if not needs_largest_gain(plans):
        return None
    if isinstance(relevance, Relevance):
        return float(relevance.gains.max(initial=0.0))
    n_users = int(relevance.shape[0])
    blocks = (
        _checked(Relevance.from_csr, rows_of(relevance, first, min(first + n_rows, n_users)), first)
        for first in range(0, n_users, n_rows)
    )
    return max((float(block.gains.max(initial=0.0)) for block in blocks), default=0.0)


def paired(rankings: Iterable[Any], relevance: Any) -> Iterator[Block]:
    """Pair blocks of lists with what is relevant: blocks of it, or the rows of a whole matrix."""
    first = 0
    others = iter(relevance) if is_blocks(relevance) else None
    for number, lists in enumerate(rankings):
        if not (isinstance(lists, Rankings) or sparse.issparse(lists)):
            raise InvalidDataError(
                f"block {number} of the predictions is a {type(lists).__name__}; expected a "
                "Rankings or a sparse matrix of positions"
            )
        n_users = int(lists.shape[0])
        if others is None:
            if first + n_users > relevance.shape[0]:
                raise InvalidDataError(
                    f"the predictions have a row {first + n_users - 1} (in block {number}), but "
                    f"validation has {relevance.shape[0]} rows; give both the same users"
                )
            held: Any = rows_of(relevance, first, first + n_users)
            _check_labels(lists, held, number)
        else:
            held = next(others, None)
            if not (held is None or isinstance(held, Relevance) or sparse.issparse(held)):
                raise InvalidDataError(
                    f"block {number} of validation is a {type(held).__name__}; expected a "
                    "Relevance or a sparse matrix of gains"
                )
            if held is None or held.shape[0] != n_users:
                found = "there is none" if held is None else f"it has {held.shape[0]}"
                raise InvalidDataError(
                    f"block {number} of the predictions has {n_users} users, and of validation "
                    f"{found}; give both in blocks of the same users"
                )
        yield _block(first, lists, held)
        first += n_users
    if others is not None and next(others, None) is not None:
        raise InvalidDataError(
            "validation has more blocks than the predictions; give both in blocks of the same users"
        )
    if others is None and first < relevance.shape[0]:
        raise InvalidDataError(
            f"the predictions end after {first} users, validation has {relevance.shape[0]}; give "
            "the others too, an empty row for a user without a list"
        )


def _check_labels(lists: Any, held: Relevance, number: int) -> None:
    """Refuse a block whose users are not those of the rows of a whole matrix that it stands for."""
    labels = getattr(lists, "users", None)
    if labels is not None and held.users is not None and set(labels) != set(held.users):
        raise InvalidDataError(
            f"block {number} of the predictions is not about the users of these rows of "
            f"validation, {held.users.tolist()[0]!r}, …; give blocks in the order of the users of "
            "validation, or give both in blocks"
        )


def _block(first: int, rankings: Any, relevance: Any) -> Block:
    """Check both sides of a block."""
    if not isinstance(rankings, Rankings):
        rankings = _checked(Rankings.from_positions, rankings, first)
    if not isinstance(relevance, Relevance):
        relevance = _checked(Relevance.from_csr, relevance, first)
    return Block(first, rankings, relevance)


def _checked(make: Callable[[Any], Any], matrix: Any, first: int) -> Any:
    """Check rows of a matrix; errors count them from the first of the block."""
    try:
        return make(matrix)
    except InvalidDataError as error:
        if first == 0:
            raise
        raise InvalidDataError(
            f"in the block that begins at row {first}, which is its row 0: {error}"
        ) from None


def evaluate_blocks(
    terms: Terms,
    blocks: Iterable[Block],
    inputs: dict[str, Any],
    shared: Context | None = None,
    *,
    n_users: int | None = None,
    per_user: bool,
    num_threads: int | None,
    progress: bool | None,
) -> MergedEvaluation:
    """Evaluate blocks of users one after the other, and add them up.

    Parameters
    ----------
    terms : Terms
    blocks : iterable of Block
        Whose row numbers go up.
    inputs : dict
        `train`, `item_groups` and `item_vectors` of all users.
    shared : Context, optional
        What is known of all of them. Otherwise it is made of `inputs` and the first block.
    n_users : int, optional
        Of all blocks, for the progress bar.
    per_user, num_threads, progress
        As in `evaluate`.
    """
    from tqdm.auto import tqdm  # it loads asyncio, which importing the package need not wait for

    def evaluated() -> Iterator[Part]:
        context = shared
        with tqdm(
            total=n_users, desc="evaluate", unit=" users", disable=not is_shown(progress)
        ) as bar:
            for block in blocks:
                if shared is None:
                    _check_alone(terms, block, inputs)
                if context is None:
                    context = Context.between(block.rankings, block.relevance, **inputs)
                    if needs_largest_gain(terms.plans):
                        context = replace(context, largest_gain=1.0)
                last = block.first + block.relevance.shape[0]
                mine = context.of_users(block.first, last)
                part = evaluate_block(terms, block, mine, per_user, num_threads)
                bar.update(part.span.n)
                yield part

    # The rows of whole matrices are other users each, whatever their labels.
    parts = add_in_order(evaluated()) if shared is None else [add_parts(evaluated())]
    return MergedEvaluation(parts, terms.plans, terms.rules)


def _check_alone(terms: Terms, block: Block, inputs: dict[str, Any]) -> None:
    """Refuse what cannot be known of one block after the other."""
    largest = float(block.relevance.gains.max(initial=0.0))
    if needs_largest_gain(terms.plans) and largest not in (0.0, 1.0):
        metric = next(plan.metric for plan in terms.plans if needs_largest_gain([plan]))
        raise InvalidMetricError(
            f"{metric} needs the largest of all gains, which is not known before the last "
            "block; give validation as a whole matrix"
        )
    labelled = block.rankings.users is not None or block.relevance.users is not None
    if labelled and inputs.get("train") is not None:
        raise InvalidDataError(
            "train has a row for each user by number, and the blocks' users have labels; give "
            "blocks without labels, in the order of the rows of train"
        )


def evaluate_block(
    terms: Terms, block: Block, context: Context, per_user: bool, num_threads: int | None
) -> Part:
    """Evaluate one block of users, `context` being what is known of them, and of all items."""
    rankings, relevance = align(block.rankings, block.relevance)
    n_items = max(rankings.shape[1], relevance.shape[1])
    if n_items > context.n_items and needs_catalogue(terms.plans):
        raise InvalidDataError(
            f"the block that begins at user {block.first} has {n_items} items, and the catalogue "
            f"{context.n_items}, on which some of the metrics depend; give every block as many "
            "columns as there are items"
        )
    found = evaluate_once(terms, rankings, relevance, context, num_threads, alone=False)
    return part_of(found, first_row=block.first, per_user=per_user)


def check_kept(memory: int, n_users: int, n_values: int) -> int:
    """Return the bytes that the values of so many users take, if a budget allows for them."""
    kept = n_users * (PER_VALUE * n_values + PER_KEPT) * 2  # they are joined, and so there twice
    if kept > memory // 2:
        raise InvalidDataError(
            f"the values of {n_users:,} users take {kept:,} bytes, more than half of memory="
            f"{memory:,} bytes; keep none of them with per_user=False, or give more memory"
        )
    return kept


def rows_within(memory: int, n_entries: int, n_users: int, n_values: int, per_user: bool) -> int:
    """Return how many users a block may have, for the evaluation to stay within a budget.

    Raises
    ------
    InvalidDataError
        If the values of all users, which are kept if `per_user`, do not fit into it.
    """
    kept = check_kept(memory, n_users, n_values) if per_user else 0
    each = PER_ENTRY * n_entries / max(n_users, 1) + PER_USER + 3 * PER_VALUE * n_values
    return max(int((memory - kept) / each), 1)
