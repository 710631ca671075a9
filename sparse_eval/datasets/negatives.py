"""Sampled negatives, drawn or as published: candidates added to each user's held-out items."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..core import elementary
from ..core.arguments import check_choice, check_whole, show_spelling
from ..core.atomic_files import as_input
from ..core.csr import are_in, as_int32
from ..core.hashing import hash_labels, uniforms
from ..core.messages import warn
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.alignment import match_split
from ..inputs.axes import Axis, label_of
from ..inputs.candidates import Candidates
from ..inputs.eligible import eligible_items
from ..inputs.labelled import labels_of
from ..inputs.relevance import Relevance
from ..inputs.training import count_users
from .split.holdout import Holdout
from .split.parts import name_of, open_held_out, open_train

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.types import CSRMatrix, Floats, Hashes, Integers, PathLike
    from .split.parts import TrainLike

#: Users whose negatives are drawn at once.
_USERS_AT_ONCE = 1 << 13

#: The number of rounds after which the missing negatives of a user who has seen all popular items
#: are drawn from the other items only.
_ROUNDS = 32

#: The number of seeds.
_MOST_SEEDS = 1 << 32


class Negatives(NamedTuple):
    """Held-out items and negatives, as `read_negatives` returns them.

    Attributes
    ----------
    validation : Relevance
        The held-out item of each user.
    candidates : Candidates
        It and the negatives.
    """

    validation: Relevance
    candidates: Candidates


@show_spelling
def sample_negatives(
    train: Holdout | TrainLike,
    validation: TrainLike | None = None,
    n: int = 99,
    *,
    by: Literal["uniform", "popularity"] = "uniform",
    seed: int = 0,
) -> Candidates:
    """Sample items that each user has neither seen nor held out, as further candidates.

    NCF and many others evaluate this way: each held-out item is ranked among 99 sampled ones.

    Parameters
    ----------
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        What users have seen, as in `evaluate_model`; a `Holdout` stands for both parts.
    validation : as `train`, optional
        The held-out items. The catalogue contains the items of both parts.
    n : int
        Negatives of each user who has a held-out item, at least 1, without repetition. A user with
        fewer items left gets all of them, with a warning.
    by : {"uniform", "popularity"}
        Every item is equally likely, or items are drawn in proportion to their numbers of training
        users, one after the other. An item without training users is then never drawn.
    seed : int
        At least 0. A user's sample depends on the seed, the user's id and items, and the catalogue.
        It does not depend on other users or on the order of rows and columns; without ids their
        numbers serve as ids.

    Returns
    -------
    Candidates
        For ``candidates=``: the held-out items and the negatives of each user. Called "1+99" if
        no user has several held-out items, otherwise "n+99".

    Raises
    ------
    InvalidDataError
        If an option is out of its range, or the parts do not fit together.

    Warns
    -----
    UserWarning
        If users have fewer items left than `n`.

    See Also
    --------
    read_negatives : Read negatives as published.

    Notes
    -----
    Metrics among sampled candidates can rank models in a different order from metrics among all
    items [1]_. `evaluate_model` among all items is the better protocol.

    References
    ----------
    .. [1] W. Krichene and S. Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020.
       doi:10.1145/3394486.3403226

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=1_000, seed=0)
    >>> holdout = se.split.leave_k_out(clicks, seed=0)
    >>> se.sample_negatives(holdout, n=99, seed=0)
    <Candidates: 1+99, 20000 of 200 users × 1000 items>
    """
    n = check_whole("n", n, 1)
    seed = check_whole("seed", seed, 0, _MOST_SEEDS - 1)
    check_choice("by", by, ("uniform", "popularity"))
    names = name_of("train", train), name_of("validation", validation)
    if isinstance(train, Holdout):
        if validation is not None:
            raise InvalidDataError(
                "a Holdout has its own validation part. Pass only the Holdout, and n= by name"
            )
        validation, train = train.validation, train.seen
    if validation is None:
        raise InvalidDataError("validation is missing; pass the held-out items, or a Holdout")
    seen, truth = open_train(train), open_held_out(validation)
    sides = match_split(None, seen, truth, names)
    relevance = sides.relevance
    n_users = max(sides.train.shape[0], relevance.shape[0])
    n_items = max(sides.train.shape[1], relevance.shape[1])
    held_out = relevance.to_csr().csr > 0
    users = np.flatnonzero(relevance.n_relevant)
    # The order of the items depends only on their ids.
    order = np.argsort(_hashes(sides.items, n_items), kind="stable")
    weights = np.ones(n_items)
    if by == "popularity":
        weights = count_users(sides.train, n_items).astype(np.float64)
    draw = _Draw(_hashes(sides.users, n_users), weights[order], n, seed)
    rows, items, n_left = [], [], []
    for first in range(0, len(users), _USERS_AT_ONCE):
        some = users[first : first + _USERS_AT_ONCE]
        excluded = _union(sides.train, held_out, some, order)
        left = draw.count_left(excluded)
        if by == "uniform":
            rows_of = excluded.indptr.astype(np.int64), as_int32(excluded.indices)
            drawn: Any = eligible_items(n_items, rows_of, None, some).draw(draw.numbers(some, n, 1))
        else:
            drawn = draw.by_weight(some, excluded, np.minimum(left, n))
        listed = drawn >= 0
        rows.append(np.repeat(some, listed.sum(axis=1)))
        items.append(order[drawn[listed]])
        n_left.append(left)
    draw.warn_of_few(users, np.concatenate(n_left), sides.users)
    owners = np.repeat(np.arange(held_out.shape[0]), np.diff(held_out.indptr))
    pairs = (np.concatenate([owners, *rows]), np.concatenate([held_out.indices, *items]))
    matrix = sparse.csr_matrix((np.ones(len(pairs[0]), np.int8), pairs), (n_users, n_items))
    kind = f"{'1' if relevance.n_relevant.max() == 1 else 'n'}+{n}"
    if by == "popularity":
        kind = f"{kind} by popularity"
    return Candidates.of_csr(matrix, kind, sides.users, sides.items)


class _Draw(NamedTuple):
    """How negatives are drawn: `keys` are of users, `weights` of items."""

    keys: Hashes
    weights: Floats
    n: int
    seed: int

    def count_left(self, excluded: CSRMatrix) -> Integers:
        """Return the number of items that can be drawn for each row of `excluded`."""
        can_be_drawn = self.weights > 0
        before = np.concatenate(([0], np.cumsum(can_be_drawn[excluded.indices])))
        return np.count_nonzero(can_be_drawn) - np.diff(before[excluded.indptr])

    def warn_of_few(self, users: Integers, n_left: Integers, labels: Axis | None) -> None:
        """Warn about users who have fewer items left than should be drawn."""
        few = n_left < self.n
        if not few.any():
            return
        at = int(n_left.argmin())
        user = label_of(labels, int(users[at]))
        warn(
            f"{np.count_nonzero(few)} of {len(users)} users have fewer than {self.n} items that "
            f"are neither seen nor held out, such as {user!r} with {n_left[at]}; they get all of "
            "these as negatives, so their held-out items are easier to find"
        )

    def numbers(self, users: Integers, n: int, part: int) -> Floats:
        """Return `n` uniform numbers of each user, different ones for each part."""
        seed = self.seed + part * _MOST_SEEDS  # different numbers from the random baselines
        return uniforms(self.keys[users], np.full(len(users), n), seed).reshape(len(users), n)

    def by_weight(self, users: Integers, excluded: CSRMatrix, wanted: Integers) -> Integers:
        """Draw items one after the other by their weights, without those drawn before.

        Row i of `excluded` and entry i of `wanted`, the number of items, are of user i. An item
        that cannot be taken is drawn again, which gives the others the same chances as without it.
        """
        weights = self.weights
        n_items = len(weights)
        bounds = np.cumsum(weights)
        n_users, n = len(users), self.n
        owners = np.repeat(np.arange(n_users), np.diff(excluded.indptr))
        taken = owners * n_items + excluded.indices.astype(np.int64)  # ascending
        drawn = np.full((n_users, n), -1, np.int64)
        sizes = np.zeros(n_users, np.int64)
        for number in range(1, _ROUNDS + 1):
            left = np.flatnonzero(sizes < wanted)
            if not len(left):
                return drawn
            numbers = self.numbers(users[left], n, number).ravel()
            items = np.searchsorted(bounds, numbers * bounds[-1], side="right")
            pairs = np.repeat(left, n) * n_items + items
            _, first = np.unique(pairs, return_index=True)
            first.sort()
            pairs = pairs[first][~are_in(pairs[first], taken)]
            rows = pairs // n_items
            places = sizes[rows] + np.arange(len(rows)) - np.searchsorted(rows, rows)
            kept = places < wanted[rows]
            pairs, rows, places = pairs[kept], rows[kept], places[kept]
            drawn[rows, places] = pairs % n_items
            sizes += np.bincount(rows, minlength=n_users)
            taken = np.sort(np.concatenate((taken, pairs)))
        for row in np.flatnonzero(sizes < wanted).tolist():
            bounds_of_row = np.searchsorted(taken, [row * n_items, (row + 1) * n_items])
            free = weights > 0
            free[taken[slice(*bounds_of_row)] - row * n_items] = False
            numbers = self.numbers(users[row : row + 1], n_items, _ROUNDS + 1)[0]
            # Each item gets an exponential waiting time with its weight as rate. The items with the
            # shortest times are a draw of one after the other (Efraimidis and Spirakis, 2006).
            waits = -elementary.log1p(-numbers) / np.maximum(weights, 1e-300)
            waits[~free] = np.inf
            found = np.argsort(waits, kind="stable")[: wanted[row] - sizes[row]]
            drawn[row, sizes[row] : wanted[row]] = found
        return drawn


def read_negatives(path: PathLike, train: TrainLike) -> Negatives:
    r"""Read held-out items with their negatives, as NCF's data are published.

    Parameters
    ----------
    path : str or Path
        With a line for each held-out item, ``(user,item)`` and the negatives, tabs between, as in
        ``ml-1m.test.negative``.
    train : sparse matrix, Interactions, frame, Relevance or path
        The training data, whose ids are meant; without ids its rows and columns.

    Returns
    -------
    Negatives
        ``validation`` and ``candidates``, for `evaluate_model`. An item that is among its own
        negatives counts once.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a line is something else, or a user or item has a number that
        `train` does not have.

    See Also
    --------
    sample_negatives : Draw negatives.

    References
    ----------
    X. He et al., "Neural Collaborative Filtering", WWW 2017. doi:10.1145/3038912.3052569

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> train = csr_matrix([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "test.negative"
    ...     _ = path.write_text("(0,1)\t3\t4\n(1,2)\t0\t4\n")
    ...     validation, candidates = se.read_negatives(path, train)
    >>> candidates
    <Candidates: 1+2, 6 of 2 users × 5 items>
    """
    opened = open_train(train)
    path = as_input(path)
    users, items, negatives = _read_lines(path)
    labels = labels_of(opened)
    n_negatives = np.array(list(map(len, negatives)))
    owners = np.concatenate((np.arange(len(users)), np.repeat(np.arange(len(users)), n_negatives)))
    user_words = np.array(users, object)[owners]
    item_words = np.array([*items, *(item for row in negatives for item in row)], object)
    n_users, n_items = opened.shape
    rows, user_ids = _numbered(user_words, labels[0], n_users, path, "user")
    columns, item_ids = _numbered(item_words, labels[1], n_items, path, "item")
    shape = (
        n_users if user_ids is None else len(user_ids),
        n_items if item_ids is None else len(item_ids),
    )
    first = slice(0, len(users))
    held = sparse.csr_matrix((np.ones(len(users)), (rows[first], columns[first])), shape)
    held.data[:] = 1.0
    whole = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
    several = np.diff(held.indptr).max(initial=0) > 1
    usual = int(np.bincount(n_negatives).argmax()) if len(n_negatives) else 0
    kind = f"{'n' if several else '1'}+{usual}"
    return Negatives(
        Relevance.from_csr(held, users=user_ids, items=item_ids),
        Candidates.of_csr(whole, kind, user_ids, item_ids),
    )


_LINE = re.compile(r"\(([^,()\t]+),([^,()\t]+)\)((?:\t[^\t]+)*)")


def _read_lines(path: Path) -> tuple[list[str], list[str], list[list[str]]]:
    """Return the user and the held-out item of each line, and its negatives."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise InvalidFileError("is not text in UTF-8; convert the file", path) from None
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    users, items, negatives = [], [], []
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is not None:
            users.append(found[1].strip())
            items.append(found[2].strip())
            negatives.append(found[3].split("\t")[1:])
        elif line:
            raise InvalidFileError(
                f"line {number} is {line[:40]!r}…; expected (user,item) and its negatives, tabs "
                "between",
                path,
            )
    if not users:
        raise InvalidFileError("holds no line", path)
    return users, items, negatives


def _numbered(
    words: Any, labels: Axis | None, n: int, path: Path, kind: str
) -> tuple[Integers, Axis | None]:
    """Return the row or column of each word, and the labels of all; unknown ones come last."""
    if labels is None or labels.is_integer:
        try:
            numbers = words.astype(np.int64)
        except (ValueError, OverflowError):
            raise InvalidFileError(
                f"has {kind}s that are not numbers, but train has no text ids", path
            ) from None
        if labels is None:
            outside = (numbers < 0) | (numbers >= n)
            if outside.any():
                raise InvalidFileError(
                    f"names {kind} {numbers[outside][0]}, and train has {n} {kind}s (0 to {n - 1})",
                    path,
                )
            return numbers, None
        words = numbers
    import pandas as pd

    codes, unique = pd.factorize(words)
    places, union = labels.union(Axis.unchecked(unique))
    if (places >= len(labels)).all():
        raise InvalidFileError(f"has no {kind} of train, such as {labels[0]!r}", path)
    return places[codes], union.marked(True)


def _union(
    train: sparse.csr_matrix, held_out: sparse.csr_matrix, users: Integers, order: Integers
) -> Any:
    """Return the items that each user has seen or held out, by their places in `order`."""
    shape = (len(users), len(order))
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    chosen = [side[users] for side in (train, held_out)]
    seen, held = (
        sparse.csr_matrix((np.ones(rows.nnz, np.int8), place_of[rows.indices], rows.indptr), shape)
        for rows in chosen
    )
    union: Any = seen + held
    union.sort_indices()
    return union


def _hashes(labels: Axis | None, n: int) -> Hashes:
    """Return a hash of each label, or of each number if there are none."""
    if labels is None or labels.is_integer:
        return hash_labels(np.arange(n) if labels is None else labels.to_numpy())
    return hash_labels(np.array(list(map(str, labels)), object))
