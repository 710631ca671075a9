"""`Holdout`: the parts of a split, as labelled matrices."""

from __future__ import annotations

import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from scipy import sparse

from ...core.atomic_files import as_path, make_folder, replacing_together
from ...core.csr import added, coordinates, summed_csr
from ...core.saved_arrays import read_arrays
from ...errors import InvalidDataError, InvalidFileError
from ...inputs.axes import label_of
from ...inputs.columns import USUAL
from ...inputs.input_files import naming
from ...inputs.labelled import LabelledMatrix, SplitPart, matrix_labels
from ...inputs.npy import read_sparse, reading_npz
from ..interactions import Interactions, label_array, with_common_labels
from ..load import load
from ..times import time_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

    from ...core.types import Booleans, CSRMatrix, PathLike
    from ...inputs.axes import Axis

#: The parts of a split; the first three in the order of time.
PARTS: tuple[SplitPart, ...] = get_args(SplitPart)


class LeftOut(NamedTuple):
    """Counts of the data that are in no part of a split.

    Attributes
    ----------
    repeated : int
        Events after a cut whose pair also occurs before it. They are not held out, because seen
        items are not recommended again, and they are too late to be trained on.
    outside : int
        Events outside of the periods of a split by time: in its gap, before its training window,
        or after its validation window.
    unknown : int
        Held-out pairs that `Holdout.known` has left out.
    """

    repeated: int = 0
    outside: int = 0
    unknown: int = 0


class Unknown(NamedTuple):
    """Counts of held-out data that are unknown to the training data.

    Attributes
    ----------
    users, items : int
        Held-out users and items without a value above 0 in training.
    pairs : int
        Held-out pairs of such a user, such an item, or both.
    """

    users: int
    items: int
    pairs: int


@dataclass(init=False, frozen=True, slots=True, eq=False, repr=False)
class Holdout:
    """Training and validation matrices of the same users and items, and maybe a test matrix.

    Parameters
    ----------
    train, validation : csr_matrix of float64, shape (n_users, n_items)
        The two parts. As attributes they are labelled (`LabelledMatrix`): models trained on them
        and evaluations against them have the ids of users and items. ``holdout.train.csr`` is the
        plain csr_matrix, to slice, to compute with, and for other libraries.
    users, items : sequence of hashable, or None
        The labels of the rows and columns, if there are any; by default the labels of `train`.
    test : csr_matrix of float64, shape (n_users, n_items), or None
        The third part of a three-way split, which `for_test` holds out.
    fold_in : csr_matrix of float64, shape (n_users, n_items), or None
        For a split by users: the pairs that the model gets of users it was not trained on, see
        `split.users`. These users have nothing in `train`.
    cut : numpy.datetime64, int or None
        Where the validation period of a split by time begins: a date (UTC), or a whole number if
        the unit of the timestamps is not known.
    left_out : LeftOut
        Counts of the data in no part.

    Attributes
    ----------
    folder : Path or None
        Where the parts were loaded from, for the record of evaluations.

    Raises
    ------
    InvalidDataError
        If the shapes differ, the number of labels differs from the rows or columns, or a user is in
        `train` and in `fold_in`.

    See Also
    --------
    sparse_eval.split.random, sparse_eval.split.temporal : Functions that return one.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=100, n_items=200, n_interactions=1500)
    >>> holdout = se.split.temporal(clicks, at="2019-11-30")
    >>> holdout
    Holdout(100 users × 200 items, 1,137 train + 363 validation pairs; cut at 2019-11-30;
    validation not in train: 0 users, 1 items, 1 pairs)
    >>> holdout.unknown
    Unknown(users=0, items=1, pairs=1)
    >>> holdout.known()
    Holdout(100 users × 200 items, 1,137 train + 362 validation pairs; cut at 2019-11-30;
    left out: 1 unknown pairs)
    """

    train: LabelledMatrix
    validation: LabelledMatrix
    users: Axis | None
    items: Axis | None
    test: LabelledMatrix | None
    fold_in: LabelledMatrix | None
    cut: np.datetime64 | int | None
    left_out: LeftOut
    folder: Path | None = field(init=False)

    def __init__(
        self,
        train: CSRMatrix,
        validation: CSRMatrix,
        users: Any = None,
        items: Any = None,
        *,
        test: CSRMatrix | None = None,
        fold_in: CSRMatrix | None = None,
        cut: np.datetime64 | int | None = None,
        left_out: LeftOut = LeftOut(),  # noqa: B008 - immutable
    ) -> None:
        given = dict(zip(PARTS, (train, validation, test, fold_in), strict=True))
        for part, matrix in given.items():
            if matrix is not None and matrix.shape != train.shape:
                raise InvalidDataError(
                    f"train has shape {train.shape}, {part} {matrix.shape}; expected the same"
                )
        users, items = matrix_labels(train, train.shape, users, items)
        values: dict[str, Any] = {"users": users, "items": items, "cut": cut}
        values |= {"left_out": left_out, "folder": None}
        for part, matrix in given.items():
            before = next_cut = None
            if cut is not None:  # otherwise the events of a part do not end at one time
                before, next_cut = (getattr(matrix, name, None) for name in ("before", "cut"))
            if part == "train":
                before, next_cut = cut if before is None else before, cut
            values[part] = (
                None
                if matrix is None
                else LabelledMatrix.of(matrix, users, items, part, before, next_cut)
            )
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.fold_in is not None:
            is_trained_on = np.diff(self.train.indptr) > 0
            both = np.flatnonzero(is_trained_on & (np.diff(self.fold_in.indptr) > 0))
            if len(both):
                user = label_of(self.users, int(both[0]))
                raise InvalidDataError(
                    f"user {user!r} is in train and in fold_in ({len(both)} users are). Fold in "
                    "only users that the model is not trained on"
                )

    def __repr__(self) -> str:
        n_users, n_items = self.train.shape
        parts = {name: matrix for name, matrix in self._parts() if name != "fold_in"}
        sizes = " + ".join(f"{matrix.nnz:,} {name}" for name, matrix in parts.items())
        described = [f"{n_users:,} users × {n_items:,} items, {sizes} pairs", *self.remarks()]
        return f"Holdout({'; '.join(described)})"

    def remarks(self) -> list[str]:
        """Describe the cut, users and items unknown to training, and left-out data.

        Returns
        -------
        list of str
            Maybe empty. `repr` shows them too.
        """
        remarks = [] if self.cut is None else [f"cut at {time_text(self.cut)}"]
        if self.fold_in is not None:
            n_new = int(np.count_nonzero(np.diff(self.fold_in.indptr)))
            remarks.append(f"{n_new:,} users not in train, {self.fold_in.nnz:,} pairs to fold in")
        unknown = {"validation not in train": self.unknown}
        if self.test is not None:
            unknown["test not in train and validation"] = self.for_test().unknown
        for what, (users, items, pairs) in unknown.items():
            if pairs:
                remarks.append(f"{what}: {users:,} users, {items:,} items, {pairs:,} pairs")
        kinds = ("repeated events", "events outside", "unknown pairs")
        counts = zip(self.left_out, kinds, strict=True)
        left_out = [f"{count:,} {kind}" for count, kind in counts if count]
        return remarks + ([f"left out: {', '.join(left_out)}"] if left_out else [])

    @property
    def seen(self) -> LabelledMatrix:
        """The items that users have seen: `train` and, for a split by users, `fold_in`.

        Lists contain no seen items, unless a model may recommend again. Metrics that need
        popularity count all of them. The matrix is labelled, as `train` is.
        """
        if self.fold_in is None:
            return self.train
        seen = added(self.train, self.fold_in)
        return LabelledMatrix.of(seen, self.users, self.items, "seen")

    @property
    def unknown(self) -> Unknown:
        """The numbers of validation users, items and pairs that are unknown to training.

        A user who is folded in is known.

        Examples
        --------
        >>> train = sparse.csr_matrix([[1, 0], [0, 0]])
        >>> Holdout(train, sparse.csr_matrix([[0, 1], [1, 0]])).unknown
        Unknown(users=1, items=1, pairs=2)
        """
        known_users, known_items = self._known()
        pairs = self.validation.tocoo()
        new_users, new_items = ~known_users[pairs.row], ~known_items[pairs.col]
        return Unknown(
            users=len(np.unique(pairs.row[new_users])),
            items=len(np.unique(pairs.col[new_items])),
            pairs=int(np.count_nonzero(new_users | new_items)),
        )

    def known(self) -> Holdout:
        """Return the same split, holding out only users and items with training data.

        A model cannot learn users and items without a value above 0 in training. This applies to
        the test part as well; the validation part adds no users and no items to it.

        Returns
        -------
        Holdout
            With the same shape; ``left_out.unknown`` is the number of pairs left out.

        Examples
        --------
        >>> train = sparse.csr_matrix([[1, 0], [0, 0]])
        >>> Holdout(train, sparse.csr_matrix([[0, 1], [1, 0]])).known()
        Holdout(2 users × 2 items, 1 train + 0 validation pairs; left out: 2 unknown pairs)
        """
        held_out = {part: m for part, m in self._parts() if part in ("validation", "test")}
        users, items = self._known()
        known: Any = {
            part: replace(matrix, csr=_select(matrix, users, items))
            for part, matrix in held_out.items()
        }
        n_unknown = sum(held_out[part].nnz - known[part].nnz for part in held_out)
        left_out = self.left_out._replace(unknown=self.left_out.unknown + n_unknown)
        return replace(self, **known, left_out=left_out)

    def for_test(self) -> Holdout:
        """Return the split for the last step: train and validation together, and the test part.

        Returns
        -------
        Holdout
            Its `train` is for training the chosen model once more, and its `validation` is the test
            part, which begins at its `cut` if the split is by time. For a split by users, all pairs
            of the validation users are in `train`, and the test users are folded in.

        Raises
        ------
        InvalidDataError
            If there is no test part.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=100, n_items=200, n_interactions=1500)
        >>> holdout = se.split.temporal(clicks, fraction=0.1, test=0.1)
        >>> holdout
        Holdout(100 users × 200 items, 1,200 train + 150 validation + 150 test pairs;
        cut at 2019-11-30 23:20:23; validation not in train: 0 users, 1 items, 1 pairs)
        >>> holdout.for_test()
        Holdout(100 users × 200 items, 1,350 train + 150 validation pairs;
        cut at 2019-12-03 15:54:55)
        """
        if self.test is None:
            raise InvalidDataError(
                "there is no test part; split in three, for example with split.temporal(..., test=)"
            )
        train = added(self.train, self.validation)
        fold_in = None
        if self.fold_in is not None:
            is_tested = np.diff(self.test.indptr) > 0
            every_item = np.ones(train.shape[1], bool)
            train = added(train, _select(self.fold_in, ~is_tested, every_item))
            fold_in = _select(self.fold_in, is_tested, every_item)
        together = LabelledMatrix(
            train, before=self.validation.before, parts=(self.train, self.validation)
        )
        sides = together, self.test, self.users, self.items
        return Holdout(*sides, fold_in=fold_in, cut=self.validation.cut)

    def save(self, folder: PathLike) -> None:
        """Write the parts, such as ``train.npz`` and ``validation.npz``, and ``labels.npz``.

        Each file is written under a temporary name, and all are then renamed. Readers never see an
        incomplete file, and an existing split stays complete if the disk is full.

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
        >>> import sparse_eval as se
        >>> holdout = se.split.leave_k_out(sparse.csr_matrix([[1, 1, 0], [0, 1, 2]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     holdout.save(folder)
        ...     again = Holdout.load(folder)
        >>> (again.train.csr != holdout.train.csr).nnz
        0
        """
        with self.saving(folder):
            pass

    @contextmanager
    def saving(self, folder: PathLike) -> Iterator[None]:
        """Do what `save` does, and move the files to their places once the block succeeds."""
        arrays = {
            name: label_array(name, index)
            for name, index in (("users", self.users), ("items", self.items))
            if index is not None
        }
        times = {"cut": self.cut, "before": self.train.before}
        times |= {f"validation_{name}": getattr(self.validation, name) for name in times}
        arrays |= {name: np.asarray(time) for name, time in times.items() if time is not None}
        folder = make_folder(folder)
        checksums, values = self._checksums()
        with replacing_together(folder, last="labels.npz") as temporary_for:
            for name, matrix in self._parts():
                sparse.save_npz(temporary_for(f"{name}.npz"), matrix.csr)
            np.savez_compressed(
                temporary_for("labels.npz"),
                allow_pickle=False,
                parts=np.array([name for name, _ in self._parts()]),
                checksums=checksums,
                values=values,
                left_out=np.array(self.left_out, np.int64),
                **arrays,
            )
            yield
        for name in PARTS:
            if getattr(self, name) is None:
                with suppress(OSError):  # left by another split; `load` ignores it
                    (folder / f"{name}.npz").unlink(missing_ok=True)

    @classmethod
    def from_frames(
        cls,
        train: Any,
        validation: Any,
        *,
        test: Any = None,
        user: Hashable = USUAL,
        item: Hashable = USUAL,
        value: Hashable = USUAL,
    ) -> Holdout:
        """Make a holdout of parts that are divided already.

        Parameters
        ----------
        train, validation : path, frame, list of paths and frames, or Interactions
            Read as in `sparse_eval.datasets.load`, whose other options can be used before:
            ``from_frames(load(train, sep=";"), load(validation, sep=";"))``.
        test : as `train`, optional
            The third part.
        user, item, value : hashable, optional
            The columns of tables, as in `Interactions.from_frame`.

        Returns
        -------
        Holdout
            With one numbering of users and items. Whole numbers from text files become text if
            another part has text as ids. Parts without labels (``.npz``) are matched by row and
            column, and smaller ones are padded.

        Raises
        ------
        InvalidDataError, InvalidFileError
            If a part cannot be read, or ids are text in one part and numbers in another.

        Examples
        --------
        >>> import pandas as pd
        >>> train = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"]})
        >>> validation = pd.DataFrame({"user": ["ann"], "item": ["y"]})
        >>> Holdout.from_frames(train, validation)
        Holdout(2 users × 2 items, 2 train + 1 validation pairs)
        """
        parts = [
            part
            if isinstance(part, Interactions)
            else load(part, user=user, item=item, value=value)
            for part in (train, validation, test)
            if part is not None
        ]
        train, validation, *tests = (part.matrix() for part in with_common_labels(*parts))
        return cls(train, validation, test=tests[0] if tests else None)

    @classmethod
    def load(cls, folder: PathLike) -> Holdout:
        """Read a saved split. Nothing is unpickled.

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
        folder = as_path(folder)
        path = folder / "labels.npz"
        with reading_npz(path, "labels saved by Holdout.save"), path.open("rb") as file:
            arrays = read_arrays(file)
            checksums = arrays["checksums"].tolist(), arrays["values"].tolist()
            left_out = LeftOut(*map(int, arrays["left_out"]))
            names = {"train", "validation", *arrays["parts"].tolist()}
            labels: Any = {name: arrays[name] for name in ("users", "items") if name in arrays}
            times: dict[str, Any] = {
                name: arrays[name][()] if arrays[name].dtype.kind == "M" else int(arrays[name])
                for name in ("cut", "before", "validation_cut", "validation_before")
                if name in arrays
            }
        parts: Any = {}
        for name in (name for name in PARTS if name in names):
            with naming(folder / f"{name}.npz"):
                parts[name] = summed_csr(*coordinates(read_sparse(folder / f"{name}.npz")))
        for part, start in (("train", ""), ("validation", "validation_")):
            known = times.get(f"{start}before"), times.get(f"{start}cut")
            parts[part] = LabelledMatrix.of(parts[part], None, None, None, *known)
        with naming(folder):
            holdout = cls(**parts, **labels, cut=times.get("cut"), left_out=left_out)
        if checksums != holdout._checksums():
            listed = ", ".join(f"{part}.npz" for part, _ in holdout._parts())
            raise InvalidFileError(
                f"{listed} and labels.npz belong to different splits; split again", folder
            )
        object.__setattr__(holdout, "folder", folder)
        return holdout

    def _parts(self) -> list[tuple[SplitPart, LabelledMatrix]]:
        """Return the names and matrices of the parts."""
        parts = ((name, getattr(self, name)) for name in PARTS)
        return [(name, matrix) for name, matrix in parts if matrix is not None]

    def _known(self) -> tuple[Booleans, Booleans]:
        """Return masks of the users and items with a value above 0 in training data."""
        users, items = _with_values(self.train)
        if self.fold_in is not None:
            users |= _with_values(self.fold_in)[0]
        return users, items

    def _checksums(self) -> tuple[list[int], list[int]]:
        """Return a number for the pairs of each matrix, and one for its values.

        They detect files of different splits in one folder.
        """
        pairs, values = [], []
        for _, part in self._parts():
            indices = zlib.crc32(part.indices.astype("<i4").data)
            pairs.append(zlib.crc32(part.indptr.astype("<i8").data, indices))
            values.append(zlib.crc32(part.data.astype("<f8").data))
        return pairs, values


def _with_values(matrix: CSRMatrix) -> tuple[Booleans, Booleans]:
    """Return masks of the users and items with a value above 0."""
    pairs = matrix.tocoo()
    users, items = np.zeros(matrix.shape[0], bool), np.zeros(matrix.shape[1], bool)
    users[pairs.row[pairs.data > 0]] = True
    items[pairs.col[pairs.data > 0]] = True
    return users, items


def _select(matrix: CSRMatrix, users: Booleans, items: Booleans) -> CSRMatrix:
    """Return the pairs of some users and items."""
    rows, columns, values, shape = coordinates(matrix)
    kept = users[rows] & items[columns]
    return summed_csr(rows[kept], columns[kept], values[kept], shape)
