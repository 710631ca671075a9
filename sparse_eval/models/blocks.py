"""A model's users in blocks: the factors, history and held-out items of some of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidDataError, InvalidFileError, UnsupportedModelError
from ..evaluation.blocks import (
    Block,
    csr_on_disk,
    evaluate_block,
    is_blocks,
    is_matrix_folder,
    largest_gain_of,
    load_array,
    open_matrix,
    release,
    rows_of,
    rows_within,
)
from ..inputs.relevance import Relevance
from ..inputs.side_data import Context
from ..metrics.measure import needs_largest_gain
from ..results.once import Question, terms_of
from .checkpoints import Factors
from .inputs import train_part
from .ranking import choose_way, rank
from .recommend import as_model, catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ..results.parts import Part
    from .ranking import Via

__all__ = [
    "Saved",
    "Task",
    "UserBlock",
    "Users",
    "check_shape",
    "evaluate_users",
    "make_task",
    "open_model",
    "rows_for",
    "told_of_seen",
    "user_blocks",
    "users_of",
]

#: Places of a file that are looked at, to know it again, and bytes of each.
_LOOKS, _LOOKED_AT = 64, 1 << 16

#: Bytes that retrieval holds for each number of an item's factors, beside these, and for all else.
PER_ITEM_FACTOR, PER_SEARCH = 4, 80_000_000

_NEED_FACTORS = (
    "users in blocks need a model with factors, whose rankings are exact: recommend() rounds "
    "scores by whom it is asked for together; evaluate this one in one process, without memory="
)


@dataclass(frozen=True)
class Saved:
    """A model or a matrix on disk, which whoever evaluates a block opens where it is.

    Attributes
    ----------
    path : Path
        A checkpoint; a folder of two arrays of factors; or a folder with the parts of a CSR.
    digest : str
        By which the same is known elsewhere.
    """

    path: Path
    digest: str

    @classmethod
    def of(cls, path: str | Path) -> Saved:
        """Look at the files, to know them again."""
        path = Path(path).absolute()
        return cls(path, _digest(path))


@dataclass(frozen=True)
class Task:
    """What is the same for all blocks of users.

    Attributes
    ----------
    question : Question
    via : {"held_out_ranks", "top_k"}
    k : int
        List length.
    item_factors : ndarray or Saved
    shared : Context
        What is known of all users; `training` only if metrics need that of all users.
    per_user : bool
    """

    question: Question
    via: Via
    k: int
    item_factors: NDArray[Any] | Saved
    shared: Context
    per_user: bool


class UserBlock(NamedTuple):
    """Some users: the row numbers of the first, and behind the last.

    Attributes
    ----------
    first, last : int
    factors, train, validation
        Their rows; or what is `Saved`, of all users.
    """

    first: int
    last: int
    factors: Any
    train: Any
    validation: Any


def evaluate_users(task: Task, block: UserBlock, num_threads: int | None = 1) -> Part:
    """Rank the unseen items of some users, evaluate the rankings, and keep their sums.

    Raises
    ------
    InvalidDataError
        As `evaluate_model` does.
    InvalidFileError
        If what is saved is not there, or is something else.
    """
    try:
        return _evaluate(task, block, num_threads)
    except InvalidDataError as error:
        if block.first == 0:
            raise
        raise InvalidDataError(f"in the block that begins at user {block.first}: {error}") from None


def _evaluate(task: Task, block: UserBlock, num_threads: int | None) -> Part:
    first, last = block.first, block.last
    items = task.item_factors
    if isinstance(items, Saved):
        items = _loaded(items).item_factors
    users = block.factors
    if isinstance(users, Saved):
        whole = _loaded(users).user_factors
        users = np.array(whole[first:last])
        release(whole)
    train, held = (
        _rows_of_saved(side, first, last) if isinstance(side, Saved) else side
        for side in (block.train, block.validation)
    )
    train = train_part(train)
    relevance = held if isinstance(held, Relevance) else Relevance.from_csr(held)
    for name, side in (("train", train), ("validation", relevance)):
        if side.shape[1] > len(items) or (name == "train" and side.shape[1] != len(items)):
            raise InvalidDataError(
                f"{name} has {side.shape[1]} items, the model {len(items)}; give the matrices that "
                "the model was trained on"
            )
    shared = task.shared.of_users(first, last)
    if shared.training is None:  # the users' own rows are enough
        mine = Context.of(train.shape, None, None, train=train)
        shared = replace(shared, training=mine.training)
    factors = Factors(users, items)
    rankings, retrieval = rank(
        factors, train, relevance, task.k, task.via, num_threads, progress=False
    )
    lists = Block(first, rankings, relevance)
    part = evaluate_block(terms_of(task.question), lists, shared, task.per_user, num_threads)
    return replace(part, retrieval=retrieval)


def _rows_of_saved(saved: Saved, first: int, last: int) -> Any:
    matrix = _loaded(saved)
    rows = rows_of(matrix, first, last).copy()
    release(matrix)
    return rows


def open_model(model: Any) -> Any:
    """Return a model, or the factors of one that stay on disk.

    A pair of arrays or of ``.npy`` files, or a folder with ``user_factors.npy`` and
    ``item_factors.npy``, stands for a model that has these factors.
    """
    if isinstance(model, str | Path) and Path(model).is_dir():
        folder = Path(model)
        model = folder / "user_factors.npy", folder / "item_factors.npy"
    if isinstance(model, tuple) and len(model) == 2:
        users, items = (
            load_array(Path(side)) if isinstance(side, str | Path) else side for side in model
        )
        return Factors(users, items)
    return model


@lru_cache(maxsize=4)
def _loaded(saved: Saved) -> Any:
    if not saved.path.exists():
        raise InvalidFileError("does not exist where this worker runs", saved.path)
    if _digest(saved.path) != saved.digest:
        raise InvalidFileError(
            "is something else where this worker runs; give all workers the same", saved.path
        )
    if is_matrix_folder(saved.path):
        return open_matrix(saved.path)
    opened = open_model(saved.path)
    return opened if isinstance(opened, Factors) else as_model(opened)


def _digest(path: Path) -> str:
    """Tell files by their sizes and some of their bytes: they may be larger than a disk is fast."""
    found = hashlib.sha256()
    try:
        for file in sorted(path.glob("*.npy")) if path.is_dir() else [path]:
            size = file.stat().st_size
            found.update(f"{file.name} {size}".encode())
            with file.open("rb") as stream:
                for place in range(_LOOKS):
                    stream.seek(place * size // _LOOKS)
                    found.update(stream.read(_LOOKED_AT))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror}", path) from None
    return found.hexdigest()


class Users(NamedTuple):
    """The users' side of an evaluation.

    Attributes
    ----------
    factors, train, validation
        Whole matrices, iterables of blocks of them, or what is `Saved`.
    n_users : int or None
        How many there are, where that is known before the last block.
    """

    factors: Any
    train: Any
    validation: Any
    n_users: int | None


def user_blocks(users: Users, n_rows: int) -> Iterator[UserBlock]:
    """Cut the users into blocks of `n_rows`, or as the iterables among them are cut."""
    sides = users._asdict()
    n_users = sides.pop("n_users")
    iterators = {name: iter(side) for name, side in sides.items() if is_blocks(side)}
    first = 0
    while True:
        blocks = {name: next(iterator, None) for name, iterator in iterators.items()}
        last = first + n_rows if n_users is None else min(first + n_rows, n_users)
        if iterators:
            sizes = {name: 0 if one is None else one.shape[0] for name, one in blocks.items()}
            size = next(iter(sizes.values()))
            last = first + size
            if len(set(sizes.values())) > 1 or (n_users is not None and last > n_users):
                told = ", ".join(f"{name} {size}" for name, size in sizes.items())
                raise InvalidDataError(
                    f"the blocks behind user {first} are not of the same users (users: {told}; in "
                    f"all: {n_users or 'not known'}); cut every side alike"
                )
            if not size and n_users is not None and first < n_users:
                raise InvalidDataError(
                    f"the blocks of {' and '.join(blocks)} end after {first} of {n_users} users; "
                    "give blocks of all of them"
                )
        if first >= last:
            return
        cut = {
            name: blocks[name] if name in blocks else _cut(side, first, last)
            for name, side in sides.items()
        }
        yield UserBlock(first, last, **cut)
        first = last


def _cut(side: Any, first: int, last: int) -> Any:
    if isinstance(side, Saved):
        return side
    return side[first:last] if isinstance(side, np.ndarray) else rows_of(side, first, last)


def make_task(
    question: Question,
    model: Any,
    users: Users,
    inputs: dict[str, Any],
    via: Via | None,
    per_user: bool,
    saved: Saved | None = None,
) -> Task:
    """Settle what is the same for all blocks, or raise as `evaluate_model` does.

    Parameters
    ----------
    question : Question
    model : fitted model of implicit, or Factors
    users : Users
    inputs : dict
        `item_groups` and `item_vectors`.
    via, per_user
        As in `evaluate_model`.
    saved : Saved, optional
        The model on disk, if it is to be read there.
    """
    plans = terms_of(question).plans
    way = choose_way(model, plans, via)
    if way == "recommend":
        raise UnsupportedModelError(_NEED_FACTORS)
    n_items = len(model.item_factors)
    train = None
    if any("train" in plan.needs for plan in plans):
        if is_blocks(users.train):
            raise InvalidDataError(
                "train is an iterable of blocks, and metrics of what all users have seen need the "
                "whole of it; give it as a matrix, which may be memory-mapped"
            )
        train = train_part(users.train)
    labels = getattr(users.validation, "users", None)
    items = getattr(users.validation, "items_index", None)
    n_users = users.n_users or 0
    shared = Context.of((n_users, n_items), labels, items, train=train, **inputs)
    if needs_largest_gain(plans):
        if is_blocks(users.validation):
            raise InvalidDataError(
                "validation is an iterable of blocks, and some of the metrics depend on the "
                "largest gain of all; give it as a matrix, which may be memory-mapped"
            )
        shared = replace(shared, largest_gain=largest_gain_of(plans, users.validation))
    k = min(max(plan.metric.cutoff or 0 for plan in plans), n_items)
    return Task(question, way, k, saved or model.item_factors, shared, per_user)


def rows_for(users: Users, task: Task, width: int, memory: int) -> int:
    """Return how many users a block may have, for the evaluation to stay within a budget."""
    n_items = task.shared.n_items
    fixed = PER_SEARCH + PER_ITEM_FACTOR * n_items * width
    if memory < 2 * fixed:
        raise InvalidDataError(
            f"memory is {memory:,} bytes, and ranking {n_items:,} items takes {fixed:,} whatever "
            f"the number of users; give {2 * fixed:,} at least"
        )
    n_users = users.n_users or 1
    sides = [side for side in (users.train, users.validation) if not is_blocks(side)]
    entries = sum(int(side.indptr[-1]) for side in sides)
    listed = task.k if task.via == "top_k" else 0
    n_entries = entries + n_users * (listed + width // 4)
    n_values = len(task.question.metrics)
    return rows_within(memory - fixed, n_entries, n_users, n_values, task.per_user)


def users_of(model: Any, train: Any, validation: Any) -> Users:
    """Return the users' side of an evaluation, its shapes checked."""
    if not hasattr(model, "user_factors"):
        raise UnsupportedModelError(_NEED_FACTORS)
    train, validation = (
        side if is_blocks(side) or isinstance(side, Relevance) else csr_on_disk(side, name)
        for side, name in ((train, "the train matrix"), (validation, "the validation matrix"))
    )
    factors = model.user_factors
    if not is_blocks(train) and not is_blocks(factors):
        check_shape(model, train.shape)
    wholes = [side.shape[0] for side in (factors, train) if not is_blocks(side)]
    n_users = wholes[0] if wholes else None
    if not is_blocks(validation) and n_users is not None:
        shape = (n_users, len(model.item_factors))
        if any(of > than for of, than in zip(validation.shape, shape, strict=True)):
            raise InvalidDataError(
                f"validation has shape {validation.shape}, the model {shape}; give both the users "
                "and items of the same split"
            )
    return Users(factors, train, validation, n_users)


def told_of_seen(n_seen: int, n_relevant: int | None = None) -> str:
    """Say that held-out items had been seen."""
    of = "" if n_relevant is None else f" of {n_relevant}"
    return (
        f"{n_seen}{of} held-out items were seen by their users; they can be in no list and count "
        "as missed"
    )


def check_shape(model: Any, shape: tuple[int, int]) -> None:
    """Raise `InvalidDataError` unless a model was trained on a matrix of that shape."""
    n_users, n_items = catalogue(model)
    if n_users is not None and shape[0] != n_users:
        raise InvalidDataError(
            f"train has {shape[0]} users, the model {n_users}; give the matrix that the model was "
            "trained on"
        )
    if shape[1] != n_items:
        raise InvalidDataError(
            f"train has {shape[1]} items, the model {n_items}; give the matrix that the model was "
            "trained on"
        )
