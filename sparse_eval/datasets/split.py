"""Splitting interactions into training and validation data.

A split divides the distinct (user, item) pairs with their summed values, so that a repeated
interaction is never on both sides. Where times matter, the time of a pair is that of its first
event; so nothing that a user met before the cut is held out. The two parts add up to the whole,
explicit zeros included, and the order of the rows has no influence.

At least one pair of each user stays in training: users with too few pairs keep all of them there,
and remain rows of both matrices. The exception is `temporal`, which holds out everything after
the cut.

A random split orders the pairs of each user by a hash of seed, user code and item code. So what is
held out for one user does not depend on the other users.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from ..core.arguments import check_whole
from ..core.csr import coordinates, sort_pairs, summed_csr
from ..core.files import make_folder, replacing
from ..core.hashing import splitmix64
from ..core.labelled import LabelledMatrix, labels_of
from ..errors import InvalidDataError, InvalidFileError
from .interactions import Interactions
from .npz import read_sparse, reading_npz

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.types import (
        AnyArray,
        Booleans,
        CSRMatrix,
        Hashes,
        Integers,
        Labels,
        PathLike,
        SparseInput,
    )

_MAX_COUNT = 2**31 - 1


class _HasMatrix(Protocol):
    """`Interactions`, or anything else with a matrix of users × items."""

    def matrix(self) -> SparseInput:
        """Return the matrix."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Holdout:
    """Training and validation matrices of the same users and items.

    Parameters
    ----------
    train, validation : csr_matrix of float64, shape (n_users, n_items)
        The two parts. As attributes they are labelled (`LabelledMatrix`), so that what is trained
        on one of them, or evaluated against it, knows its users and items.
    users, items : pandas.Index or None
        Labels of the rows and columns, if there are any; by default those of `train`.

    Raises
    ------
    InvalidDataError
        If the shapes differ, or the number of labels is not that of rows or columns.

    See Also
    --------
    sparse_eval.split : The functions that return a holdout.

    Examples
    --------
    >>> from sparse_eval.datasets import synthetic
    >>> random(synthetic(n_users=100, n_items=200, n_interactions=1500), fraction=0.2)
    Holdout(100 users × 200 items, 1,199 train + 301 validation pairs)
    """

    train: CSRMatrix
    validation: CSRMatrix
    users: Labels | None = None
    items: Labels | None = None

    def __post_init__(self) -> None:
        if self.train.shape != self.validation.shape:
            raise InvalidDataError(
                f"train has shape {self.train.shape}, validation {self.validation.shape}; "
                "expected the same"
            )
        for axis, index in zip(("users", "items"), labels_of(self.train), strict=True):
            if getattr(self, axis) is None:
                object.__setattr__(self, axis, index)
        labels = (("users", self.users), ("items", self.items))
        for (name, index), size in zip(labels, self.train.shape, strict=True):
            if index is not None and len(index) != size:
                raise InvalidDataError(f"{name}: expected {size} labels, found {len(index)}")
        for part in ("train", "validation"):
            matrix = LabelledMatrix.of(getattr(self, part), self.users, self.items, part)
            object.__setattr__(self, part, matrix)

    def __repr__(self) -> str:
        n_users, n_items = self.train.shape
        return (
            f"Holdout({n_users:,} users × {n_items:,} items, "
            f"{self.train.nnz:,} train + {self.validation.nnz:,} validation pairs)"
        )

    def save(self, folder: PathLike) -> None:
        """Write ``train.npz``, ``validation.npz`` and ``labels.npz`` into a folder.

        Each file is written under a temporary name and then renamed, so that no reader ever sees
        an incomplete one.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist; files of these names are replaced.

        Raises
        ------
        InvalidDataError
            If labels are neither integers nor text, which can be read without pickle.
        OutputError
            If the folder or a file cannot be written.

        See Also
        --------
        Holdout.load : Read the files.

        Examples
        --------
        >>> import tempfile
        >>> holdout = leave_k_out(sparse.csr_matrix([[1, 1, 0], [0, 1, 2]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     holdout.save(folder)
        ...     Holdout.load(folder)
        Holdout(2 users × 3 items, 2 train + 2 validation pairs)
        """
        labels = {
            name: _label_array(name, index)
            for name, index in (("users", self.users), ("items", self.items))
            if index is not None
        }
        folder = make_folder(folder)
        for name, matrix in (("train", self.train), ("validation", self.validation)):
            with replacing(folder / f"{name}.npz") as temporary:
                sparse.save_npz(temporary, matrix)
        with replacing(folder / "labels.npz") as temporary:
            np.savez_compressed(
                temporary, allow_pickle=False, checksums=self._checksums(), **labels
            )

    @classmethod
    def load(cls, folder: PathLike) -> Holdout:
        """Read what `save` wrote. Nothing is unpickled.

        Parameters
        ----------
        folder : str or Path
            The folder.

        Returns
        -------
        Holdout

        Raises
        ------
        InvalidFileError
            If a file is missing or damaged, or the files are of different splits.
        """
        folder = Path(folder)
        parts = []
        for name in ("train", "validation"):
            try:
                parts.append(summed_csr(*coordinates(read_sparse(folder / f"{name}.npz"))))
            except InvalidDataError as error:
                raise InvalidFileError(str(error), folder / f"{name}.npz") from error
        path = folder / "labels.npz"
        with (
            reading_npz(path, "labels saved by Holdout.save"),
            path.open("rb") as file,
            np.load(file, allow_pickle=False) as arrays,
        ):
            labels = {name: pd.Index(arrays[name].tolist()) for name in arrays.files}
        checksums = labels.pop("checksums", None)
        try:
            holdout = cls(parts[0], parts[1], users=labels.get("users"), items=labels.get("items"))
        except InvalidDataError as error:
            raise InvalidFileError(str(error), folder) from error
        if checksums is None or checksums.tolist() != holdout._checksums():
            raise InvalidFileError(
                "train.npz, validation.npz and labels.npz are of different splits; split again",
                folder,
            )
        return holdout

    def _checksums(self) -> list[int]:
        """Return a number for each matrix, to detect files of different splits in one folder."""
        return [
            zlib.crc32(part.indptr.astype("<i8").data, zlib.crc32(part.indices.astype("<i4").data))
            for part in (self.train, self.validation)
        ]


def random(
    interactions: _HasMatrix | SparseInput,
    *,
    fraction: float = 0.2,
    seed: int = 0,
    min_interactions: int = 2,
) -> Holdout:
    """Hold out a random fraction of each user's pairs.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        Of shape (n_users, n_items), with finite values >= 0.
    fraction : float
        Between 0 and 1, both excluded: of n pairs ``round(fraction * n)`` are held out (halves
        are rounded to even), but never all.
    seed : int
        At least 0. The same seed gives the same split to the last bit.
    min_interactions : int
        At least 1. Users with fewer pairs keep all of them in training.

    Returns
    -------
    Holdout
        Labelled if `interactions` is.

    Raises
    ------
    InvalidDataError
        If an option is out of its range, or a value is negative or not finite.

    See Also
    --------
    leave_k_out : Hold out the same number of pairs of every user.
    temporal : Hold out what came after a point in time, as in production, with a comparison of
        strategies among its references.

    Examples
    --------
    >>> random(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), fraction=0.5)
    Holdout(2 users × 4 items, 3 train + 2 validation pairs)
    """
    _check_fraction(fraction)
    check_whole("min_interactions", min_interactions, 1)
    pairs = _Pairs.of(interactions)
    sizes = pairs.sizes
    counts = np.minimum(np.rint(fraction * sizes).astype(np.int64), sizes - 1)
    counts[sizes < min_interactions] = 0
    return pairs.hold_out_first(counts, pairs.random_order(seed))


def leave_k_out(interactions: _HasMatrix | SparseInput, *, k: int = 1, seed: int = 0) -> Holdout:
    """Hold out k random pairs of each user who has more than k.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        As in `random`.
    k : int
        At least 1.
    seed : int
        At least 0, as in `random`.

    Returns
    -------
    Holdout
        With 0 or k validation pairs of each user.

    Raises
    ------
    InvalidDataError
        As in `random`.

    See Also
    --------
    last_n : Hold out the latest pairs instead.

    References
    ----------
    .. [1] S. Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback",
       UAI 2009. arXiv:1205.2618

    Examples
    --------
    >>> leave_k_out(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), k=1)
    Holdout(2 users × 4 items, 4 train + 1 validation pairs)
    """
    check_whole("k", k, 1, _MAX_COUNT)
    pairs = _Pairs.of(interactions)
    return pairs.hold_out_first(np.where(pairs.sizes > k, k, 0), pairs.random_order(seed))


def last_n(interactions: Interactions, *, n: int = 1) -> Holdout:
    """Hold out the n latest pairs of each user who has more than n.

    With ``n=1`` this is the usual leave-one-out protocol [1]_.

    Parameters
    ----------
    interactions : Interactions
        With timestamps; among pairs at the same time, that with the higher item code is later.
    n : int
        At least 1.

    Returns
    -------
    Holdout
        With 0 or n validation pairs of each user.

    Raises
    ------
    InvalidDataError
        If there are no timestamps, or `n` is out of its range.

    See Also
    --------
    leave_k_out : Hold out random pairs, which needs no timestamps.
    temporal : Hold out what came after one point in time; here, training data of some users may
        be later than validation data of others.

    References
    ----------
    .. [1] X. He et al., "Neural collaborative filtering", WWW 2017.
       doi:10.1145/3038912.3052569

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 1], "item": [5, 6, 7], "at": [30, 10, 20]})
    >>> holdout = last_n(Interactions.from_frame(frame, timestamp="at"), n=1)
    >>> holdout.validation.toarray()
    array([[1., 0., 0.]])
    """
    check_whole("n", n, 1, _MAX_COUNT)
    pairs, times = _Pairs.with_times(interactions, "last_n")
    latest_first = pairs.sizes[pairs.rows] - 1 - pairs.order_by(times)
    return pairs.hold_out_first(np.where(pairs.sizes > n, n, 0), latest_first)


def temporal(
    interactions: Interactions, *, at: int | None = None, fraction: float | None = None
) -> Holdout:
    """Hold out what users met for the first time at or after one point in time.

    A user who first appears after the cut has an empty row in training.

    Parameters
    ----------
    interactions : Interactions
        With timestamps.
    at : int, optional
        The cut, in the unit of the timestamps.
    fraction : float, optional
        Between 0 and 1, both excluded: the cut is where this fraction of the pairs is held out
        (more, if several have the time of the cut). If neither option is given, 0.2.

    Returns
    -------
    Holdout
        With at least one training and one validation pair, of whichever users.

    Raises
    ------
    InvalidDataError
        If there are no timestamps, both options are given, one is out of its range, or the cut
        leaves one side empty.

    See Also
    --------
    last_n : Hold out the latest pairs of every user.

    References
    ----------
    .. [1] Z. Meng et al., "Exploring data splitting strategies for the evaluation of
       recommendation models", RecSys 2020. doi:10.1145/3383313.3418479

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5], "at": [10, 20, 30]})
    >>> temporal(Interactions.from_frame(frame, timestamp="at"), at=20)
    Holdout(2 users × 2 items, 1 train + 2 validation pairs)
    """
    if at is not None and fraction is not None:
        raise InvalidDataError("at and fraction: expected one of them, found both")
    if at is not None:
        check_whole("at", at)
    fraction = 0.2 if fraction is None else fraction
    _check_fraction(fraction)
    pairs, times = _Pairs.with_times(interactions, "temporal")
    if at is None:
        count = max(1, round(fraction * len(times)))
        at = int(np.partition(times, len(times) - count)[len(times) - count])
    later = times >= at
    if later.all() or not later.any():
        raise InvalidDataError(
            f"at: the cut {at} leaves one side empty; the pairs are first met from "
            f"{times.min()} to {times.max()}"
        )
    return pairs.hold_out(later)


def k_fold(
    interactions: _HasMatrix | SparseInput, *, k: int = 5, seed: int = 0
) -> Iterator[Holdout]:
    """Divide the pairs of each user into k folds, and hold out one fold after the other.

    Each pair is held out in exactly one fold, except the only pair of a user, which stays in
    training. The folds of a user differ by at most one pair.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        Of shape (n_users, n_items), as in `random`.
    k : int
        At least 2.
    seed : int
        At least 0. The same seed gives the same folds.

    Returns
    -------
    iterator of Holdout
        k of them, created one at a time.

    Raises
    ------
    InvalidDataError
        As in `random`; at the call, not in the iteration.

    See Also
    --------
    random : Hold out one fraction only.

    Examples
    --------
    >>> folds = k_fold(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 1]]), k=2)
    >>> [fold.validation.nnz for fold in folds]
    [3, 3]
    """
    check_whole("k", k, 2, _MAX_COUNT)
    pairs = _Pairs.of(interactions)
    order = pairs.random_order(seed)
    # Each user starts at another fold; otherwise the first folds would get all odd pairs.
    starts = _hashes(seed, np.arange(pairs.matrix.shape[0])) % np.uint64(k)
    folds = (order + starts.astype(np.int64)[pairs.rows]) % k
    folds[pairs.sizes[pairs.rows] < 2] = -1
    return (pairs.hold_out(folds == fold) for fold in range(k))


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The distinct pairs of interactions, in the order of a canonical CSR matrix."""

    matrix: CSRMatrix
    rows: Integers
    users: Labels | None
    items: Labels | None

    @classmethod
    def of(cls, interactions: _HasMatrix | SparseInput) -> _Pairs:
        users = items = None
        matrix: CSRMatrix
        if isinstance(interactions, Interactions):
            matrix, users, items = interactions.matrix(), interactions.users, interactions.items
        else:
            given = interactions.matrix() if hasattr(interactions, "matrix") else interactions
            if not sparse.issparse(given):
                raise InvalidDataError(
                    f"expected Interactions or a scipy sparse matrix, found {type(given).__name__}"
                )
            users, items = labels_of(given)
            matrix = summed_csr(*coordinates(given))
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return cls(matrix, rows, users, items)

    @classmethod
    def with_times(cls, interactions: Interactions, function: str) -> tuple[_Pairs, Integers]:
        """Return the pairs and the time of the first event of each."""
        times = getattr(interactions, "timestamps", None)
        if times is None:
            raise InvalidDataError(
                f"{function} needs Interactions with timestamps, found "
                f"{type(interactions).__name__} without; load them with timestamp=, or use "
                "split.random"
            )
        order, starts = sort_pairs(
            interactions.user_codes, interactions.item_codes, interactions.n_items
        )
        first = np.minimum.reduceat(times[order], starts) if len(starts) else times
        return cls.of(interactions), first

    @property
    def sizes(self) -> Integers:
        """Number of pairs of each user."""
        return np.asarray(np.diff(self.matrix.indptr), np.int64)

    def order_by(self, keys: AnyArray) -> Integers:
        """Return the position of each pair among those of its user, sorted by `keys`."""
        # The sort is stable: pairs with equal keys stay in the order of their items.
        order = np.lexsort((keys, self.rows))
        positions = np.empty(len(order), dtype=np.int64)
        positions[order] = np.arange(len(order)) - self.matrix.indptr[self.rows]
        return positions

    def random_order(self, seed: int) -> Integers:
        """Return the position of each pair among those of its user, in a random order."""
        return self.order_by(_hashes(seed, self.rows, self.matrix.indices))

    def hold_out_first(self, counts: Integers, positions: Integers) -> Holdout:
        """Hold out a number of pairs of each user, the first by their positions."""
        return self.hold_out(positions < counts[self.rows])

    def hold_out(self, mask: Booleans) -> Holdout:
        """Hold out the pairs that a mask selects."""
        return Holdout(self._select(~mask), self._select(mask), self.users, self.items)

    def _select(self, mask: Booleans) -> CSRMatrix:
        matrix = self.matrix
        n_before = np.concatenate([[0], np.cumsum(mask)])
        parts = (matrix.data[mask], matrix.indices[mask], n_before[matrix.indptr])
        selected: CSRMatrix = sparse.csr_matrix(parts, shape=matrix.shape)
        return selected


def _hashes(seed: int, *columns: AnyArray) -> Hashes:
    """Hash the rows of columns of codes.

    Drawing from a generator would make each pair depend on all pairs before it. Each step is one
    to one, so that two items of a user never get the same hash.
    """
    check_whole("seed", seed, 0)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    for column in columns:
        state = splitmix64(state ^ column.astype(np.uint64))
    return state


def _check_fraction(fraction: object) -> None:
    if (
        not isinstance(fraction, int | float | np.number)
        or isinstance(fraction, bool)
        or not math.isfinite(fraction)
        or not 0 < fraction < 1
    ):
        raise InvalidDataError(
            f"fraction: expected a number between 0 and 1, both excluded, found {fraction!r}"
        )


def _label_array(name: str, labels: Labels) -> AnyArray:
    """Return labels as an array that NumPy stores without pickle."""
    if pd.api.types.is_integer_dtype(labels.dtype) and labels.dtype != np.uint64:
        return labels.to_numpy(dtype=np.int64)
    texts = labels.tolist()
    if all(isinstance(text, str) for text in texts):
        array = np.array(texts, dtype=np.str_)
        if array.tolist() == texts:  # NumPy drops trailing NUL characters
            return array
    raise InvalidDataError(
        f"{name}: only labels that are all text or all int64 can be saved; rename them first, "
        f"for example dataclasses.replace(holdout, {name}=holdout.{name}.map(str))"
    )
