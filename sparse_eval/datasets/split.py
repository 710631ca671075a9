"""Dividing interactions into a training and a validation part.

What is divided are the distinct (user, item) pairs with their summed values: a repeated
interaction is never on both sides. Where times matter, a pair has the time of its first event, so
nothing that a user met before the cut is held out. The parts add up to the whole, explicit zeros
keep their side, and the order of the rows has no influence.

A user keeps at least one pair in training: users with too few pairs keep all of them there, and
stay rows of both matrices. The one exception is `temporal`, whose cut alone decides: training must
know nothing of what comes after it.

A random division ranks the pairs of each user by a hash of seed, user code and item code. So what
is held out for one user does not depend on what others did.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from ..core.arguments import check_whole
from ..core.csr import coordinates, sort_pairs, summed_csr
from ..core.files import make_folder, replacing
from ..errors import InvalidDataError, InvalidFileError
from .interactions import Interactions
from .npz import read_sparse, reading_npz

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Holdout", "k_fold", "last_n", "leave_k_out", "random", "temporal"]

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Holdout:
    """A training and a validation matrix of the same users and items.

    Parameters
    ----------
    train, validation : csr_matrix of float64, shape (n_users, n_items)
        The two parts.
    users, items : pandas.Index or None
        Labels of the rows and columns, where they are known.

    Raises
    ------
    InvalidDataError
        When the shapes differ, or there are not as many labels as rows and columns.

    Examples
    --------
    >>> from sparse_eval.datasets import synthetic
    >>> random(synthetic(n_users=100, n_items=200, n_interactions=1500), fraction=0.2)
    Holdout(100 users × 200 items, 1,199 train + 301 validation pairs)
    """

    train: sparse.csr_matrix[np.float64]
    validation: sparse.csr_matrix[np.float64]
    users: pd.Index[Any] | None = None
    items: pd.Index[Any] | None = None

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        if self.train.shape != self.validation.shape:
            raise InvalidDataError(
                f"train has shape {self.train.shape}, validation {self.validation.shape}; "
                "expected the same"
            )
        labels = (("users", self.users), ("items", self.items))
        for (name, index), size in zip(labels, self.train.shape, strict=True):
            if index is not None and len(index) != size:
                raise InvalidDataError(f"{name}: expected {size} labels, found {len(index)}")

    def __repr__(self) -> str:
        """Return the sizes."""
        n_users, n_items = self.train.shape
        return (
            f"Holdout({n_users:,} users × {n_items:,} items, "
            f"{self.train.nnz:,} train + {self.validation.nnz:,} validation pairs)"
        )

    def save(self, folder: str | Path) -> None:
        """Write ``train.npz``, ``validation.npz`` and ``labels.npz`` into a folder.

        Each file is written beside its place and then moved there: a reader never meets half of
        one.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there; files of these names are replaced.

        Raises
        ------
        InvalidDataError
            When labels are neither integers nor text, which are what is read without pickle.
        OutputError
            When the folder or a file cannot be written.

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
    def load(cls, folder: str | Path) -> Holdout:
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
            When a file is missing or damaged, or the files do not belong together.
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
                "train.npz, validation.npz and labels.npz are not of one split; split again",
                folder,
            )
        return holdout

    def _checksums(self) -> list[int]:
        """Tell this split from another one in the same folder: one number for each matrix."""
        return [
            zlib.crc32(part.indptr.astype("<i8"), zlib.crc32(part.indices.astype("<i4")))
            for part in (self.train, self.validation)
        ]


def random(
    interactions: Any,
    *,
    fraction: float = 0.2,
    seed: int = 0,
    min_interactions: int = 2,
) -> Holdout:
    """Hold out a random part of each user's pairs.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        What is divided; it is not changed.
    fraction : float
        Between 0 and 1: of n pairs ``round(fraction * n)`` are held out (halves to even), but
        never all.
    seed : int
        At least 0. The same seed gives the same bits.
    min_interactions : int
        Users with fewer pairs keep all of them in training.

    Returns
    -------
    Holdout

    Raises
    ------
    InvalidDataError
        When an option is out of its range, or the matrix cannot be used.

    Examples
    --------
    >>> random(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), fraction=0.5)
    Holdout(2 users × 4 items, 3 train + 2 validation pairs)
    """
    _check_fraction(fraction)
    check_whole("min_interactions", min_interactions, 1)
    pairs = _Pairs.of(interactions)
    sizes = pairs.sizes
    held = np.minimum(np.rint(fraction * sizes).astype(np.int64), sizes - 1)
    held[sizes < min_interactions] = 0
    return pairs.divide(pairs.shuffled(seed) < held[pairs.rows])


def leave_k_out(
    interactions: Any,
    *,
    k: int = 1,
    seed: int = 0,
) -> Holdout:
    """Hold out k random pairs of each user who has more than k.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        What is divided; it is not changed.
    k : int
        At least 1.
    seed : int
        At least 0. The same seed gives the same bits.

    Returns
    -------
    Holdout

    Raises
    ------
    InvalidDataError
        When an option is out of its range, or the matrix cannot be used.

    Examples
    --------
    >>> leave_k_out(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), k=1)
    Holdout(2 users × 4 items, 4 train + 1 validation pairs)
    """
    check_whole("k", k, 1, _MOST)
    pairs = _Pairs.of(interactions)
    return pairs.divide((pairs.shuffled(seed) < k) & (pairs.sizes[pairs.rows] > k))


def last_n(
    interactions: Any,
    *,
    n: int = 1,
) -> Holdout:
    """Hold out the n latest pairs of each user who has more than n.

    Parameters
    ----------
    interactions : Interactions
        With timestamps; of pairs at the same time the one with the higher item code counts as
        later.
    n : int
        At least 1.

    Returns
    -------
    Holdout

    Raises
    ------
    InvalidDataError
        When there are no timestamps, or `n` is out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 1], "item": [5, 6, 7], "at": [30, 10, 20]})
    >>> holdout = last_n(Interactions.from_frame(frame, timestamp="at"), n=1)
    >>> holdout.validation.toarray()
    array([[1., 0., 0.]])
    """
    check_whole("n", n, 1, _MOST)
    pairs, times = _Pairs.dated(interactions, "last_n")
    sizes = pairs.sizes[pairs.rows]
    return pairs.divide((pairs.places(times) >= sizes - n) & (sizes > n))


def temporal(
    interactions: Any,
    *,
    at: int | None = None,
    fraction: float | None = None,
) -> Holdout:
    """Hold out what users met for the first time at or after one cut in time.

    A user who first appears after the cut has an empty row in training.

    Parameters
    ----------
    interactions : Interactions
        With timestamps.
    at : int, optional
        The cut, in the unit of the timestamps.
    fraction : float, optional
        Between 0 and 1: cut where this part of the pairs is held out (more, if several have the
        time of the cut); default, without `at`: 0.2.

    Returns
    -------
    Holdout

    Raises
    ------
    InvalidDataError
        When there are no timestamps, both options are given, one is out of its range, or the cut
        leaves one side empty.

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
    pairs, times = _Pairs.dated(interactions, "temporal")
    if at is None:
        held = max(1, round(fraction * len(times)))
        at = int(np.partition(times, len(times) - held)[len(times) - held])
    later = times >= at
    if later.all() or not later.any():
        raise InvalidDataError(
            f"at: the cut {at} leaves one side empty; the pairs are first met from "
            f"{times.min()} to {times.max()}"
        )
    return pairs.divide(later)


def k_fold(
    interactions: Any,
    *,
    k: int = 5,
    seed: int = 0,
) -> Iterator[Holdout]:
    """Divide the pairs of each user into k folds and hold out one after the other.

    Each pair is held out in exactly one fold, except the only pair of a user, which stays in
    training. The folds of a user differ by at most one pair.

    Parameters
    ----------
    interactions : Interactions or scipy sparse matrix or array
        What is divided; it is not changed.
    k : int
        At least 2.
    seed : int
        At least 0. The same seed gives the same bits.

    Returns
    -------
    iterator of Holdout
        k of them, made one at a time.

    Raises
    ------
    InvalidDataError
        When an option is out of its range, or the matrix cannot be used.

    Examples
    --------
    >>> folds = k_fold(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 1]]), k=2)
    >>> [fold.validation.nnz for fold in folds]
    [3, 3]
    """
    check_whole("k", k, 2, _MOST)
    pairs = _Pairs.of(interactions)
    places = pairs.shuffled(seed)
    # Each user begins at another fold, or the first folds would get all the odd pairs.
    begin = _hashes(seed, np.arange(pairs.matrix.shape[0])) % np.uint64(k)
    folds = (places + begin.astype(np.int64)[pairs.rows]) % k
    folds[pairs.sizes[pairs.rows] < 2] = -1
    return (pairs.divide(folds == fold) for fold in range(k))


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The distinct pairs of interactions, in the order of a canonical CSR matrix."""

    matrix: sparse.csr_matrix[np.float64]
    rows: NDArray[np.int64]
    users: pd.Index[Any] | None
    items: pd.Index[Any] | None

    @classmethod
    def of(cls, interactions: Any) -> _Pairs:
        users = items = None
        if isinstance(interactions, Interactions):
            matrix, users, items = interactions.matrix(), interactions.users, interactions.items
        else:
            if hasattr(interactions, "matrix"):
                interactions = interactions.matrix()
            if not sparse.issparse(interactions):
                raise InvalidDataError(
                    "expected Interactions or a scipy sparse matrix, found "
                    f"{type(interactions).__name__}"
                )
            matrix = summed_csr(*coordinates(interactions))
        return cls(
            matrix, np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), users, items
        )

    @classmethod
    def dated(cls, interactions: Any, function: str) -> tuple[_Pairs, NDArray[np.int64]]:
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
    def sizes(self) -> NDArray[np.int64]:
        """Number of pairs of each user."""
        sizes: NDArray[np.int64] = np.diff(self.matrix.indptr).astype(np.int64)
        return sizes

    def places(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place of each pair among its user's when these are sorted by `keys`."""
        # The sort is stable: pairs with equal keys stay in the order of their items.
        order = np.lexsort((keys, self.rows))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - self.matrix.indptr[self.rows]
        return places

    def shuffled(self, seed: int) -> NDArray[np.int64]:
        """Return the place of each pair among its user's in a random order."""
        return self.places(_hashes(seed, self.rows, self.matrix.indices))

    def divide(self, held: NDArray[np.bool_]) -> Holdout:
        """Return the holdout whose validation part are the pairs marked."""
        return Holdout(self._part(~held), self._part(held), self.users, self.items)

    def _part(self, mask: NDArray[np.bool_]) -> sparse.csr_matrix[np.float64]:
        matrix = self.matrix
        before = np.concatenate([[0], np.cumsum(mask)])
        return sparse.csr_matrix(
            (matrix.data[mask], matrix.indices[mask], before[matrix.indptr]), shape=matrix.shape
        )


def _hashes(seed: int, *columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash the rows of columns of codes with SplitMix64 (Steele, Lea & Flood 2014).

    One draw per pair from a generator would depend on all pairs before it. Each step is one to
    one, so that two items of a user never get the same hash.
    """
    check_whole("seed", seed, 0)
    state: NDArray[np.uint64] = (
        np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    )
    for column in columns:
        state = state ^ column.astype(np.uint64)
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state


def _check_fraction(fraction: Any) -> None:
    number = isinstance(fraction, (int, float, np.number)) and not isinstance(fraction, bool)
    if not number or not (math.isfinite(fraction) and 0 < fraction < 1):
        raise InvalidDataError(
            f"fraction: expected a number between 0 and 1, both excluded, found {fraction!r}"
        )


def _label_array(name: str, labels: pd.Index[Any]) -> NDArray[Any]:
    """Return labels as an array that NumPy stores without pickle."""
    if pd.api.types.is_integer_dtype(labels.dtype) and labels.dtype != np.uint64:
        return labels.to_numpy(dtype=np.int64)
    texts = labels.tolist()
    if all(isinstance(text, str) for text in texts):
        array = np.array(texts, dtype=np.str_)
        if array.tolist() == texts:  # NumPy drops NUL characters at the end
            return array
    raise InvalidDataError(
        f"{name}: only labels that are all text or all int64 can be saved; rename them first, "
        f"for example dataclasses.replace(holdout, {name}=holdout.{name}.map(str))"
    )
