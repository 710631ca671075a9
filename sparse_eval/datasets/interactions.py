"""`Interactions`: events between users and items with encoded ids; `matrix` sums repeated pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ..core.arguments import check_choice, check_number, check_whole
from ..core.csr import coordinates, sort_pairs, summed_csr
from ..errors import InvalidDataError, shown
from ..inputs.axes import Axis, union_of
from ..inputs.column_values import UNDATED
from ..inputs.columns import USUAL, describe_columns
from ..inputs.encoded_rows import read_rows
from ..inputs.input_files import naming
from ..inputs.labelled import LabelledMatrix, labels_of
from ..inputs.tables import open_table
from .times import Clock

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from ..core.types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items
    from ..inputs.column_values import TimeUnit
    from ..inputs.tables import Frame, InputTable
    from .times import Time


#: What to do with events that have the same user, item, time and value as an earlier event.
Duplicates = Literal["keep", "drop", "error"]

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interactions:
    """Encoded interactions of users with items, one row per event.

    Code i stands for label i. The loaders sort the labels: numbers by value, text
    lexicographically, mixed types by type name and text. So codes do not depend on the order of the
    rows. A pair of user and item may occur more than once; `matrix` sums such events.

    Parameters
    ----------
    user_codes, item_codes : ndarray of int32, shape (n,)
        Positions in `users` and `items`.
    values : ndarray of float64, shape (n,)
        Strength of each interaction, finite and >= 0. Explicit zeros are kept; they mean that
        the item was shown and not chosen.
    timestamps : ndarray of int64, shape (n,), or None
        Time of each event, in the unit of the source (seconds in MovieLens and MIND); dates are
        nanoseconds since 1970 (UTC). `datasets.UNDATED`, the smallest int64, marks an event without
        a date, which precedes all dated events, as MIND's history.
    users, items : Axis
        The labels, from any sequence of labels; the numbers from 0 on if the source has none.
    n_skipped : int
        Number of malformed lines that the loader skipped.
    time_unit : {"s", "ms", "us", "ns"} or None
        The unit of `timestamps`, counted from 1970 (UTC), so splits understand dates; None if
        unknown.
    recognized : mapping of str to hashable
        Columns that were recognized for a role by a usual name, such as ``{"user": "userId",
        "value": "rating"}``, or the ``"line number"`` as user. Columns that were named in the call,
        or are called like their role, are not included.
    ignored : tuple of hashable
        The columns of the table that are not used.
    assumes_utc : bool
        Whether the times have no time zone, and were read as UTC.
    dropped : mapping of str to int
        The number of events that `filter`, or ``events=`` of a loader, dropped, by option.

    Raises
    ------
    InvalidDataError
        If the arrays differ in length, or a code has no label.

    See Also
    --------
    sparse_eval.datasets.load : Read interactions from a file.
    Interactions.from_frame : Encode a pandas frame.
    sparse_eval.split.random, sparse_eval.split.temporal : Divide them to train and to evaluate.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["u2", "u1", "u2"], "item": [30, 10, 30]})
    >>> interactions = Interactions.from_frame(frame)
    >>> interactions
    Interactions(2 users × 2 items, 3 events)
    >>> interactions.matrix().csr.toarray()
    array([[1., 0.],
           [0., 2.]])
    """

    user_codes: NDArray[np.int32]
    item_codes: NDArray[np.int32]
    values: Floats
    timestamps: Integers | None
    users: Axis
    items: Axis
    n_skipped: int = 0
    time_unit: TimeUnit | None = None
    recognized: Mapping[str, Hashable] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    ignored: Sequence[Hashable] = ()
    assumes_utc: bool = False

    def __post_init__(self) -> None:
        for role in ("users", "items"):
            object.__setattr__(self, role, Axis.of(getattr(self, role), role))
        arrays = {"user_codes": self.user_codes, "item_codes": self.item_codes}
        for name, array in [*arrays.items(), ("timestamps", self.timestamps)]:
            if array is not None and array.shape != (len(self.values),):
                raise InvalidDataError(
                    f"{name}: expected shape ({len(self.values)},) as values, found {array.shape}"
                )
        for (name, codes), size in zip(arrays.items(), self.shape, strict=True):
            if len(codes) and not (codes.min() >= 0 and codes.max() < size):
                raise InvalidDataError(
                    f"{name}: expected codes in 0..{size - 1}, found {codes.min()}..{codes.max()}"
                )

    @property
    def n_users(self) -> int:
        """Number of users, including those without events."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items, including those without events."""
        return len(self.items)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.n_users, self.n_items

    @property
    def n_undated(self) -> int:
        """Number of events without a date among those with timestamps."""
        return 0 if self.timestamps is None else int(np.sum(self.timestamps == UNDATED))

    @property
    def n_duplicates(self) -> int:
        """Number of events with the same user, item, time and value as an earlier event.

        If a log was delivered twice, each of its events is counted once here. Without times, no
        event is known to be a duplicate.
        """
        return int(np.count_nonzero(self._repeats()))

    def _repeats(self, types: Items | None = None) -> Booleans:
        """Return which events, also of the same type, equal an earlier one."""
        repeats = np.zeros(len(self), bool)
        if self.timestamps is None:
            return repeats
        keys: list[Any] = [self.user_codes, self.item_codes, self.timestamps, self.values + 0.0]
        keys += [] if types is None else [types]
        hashes = np.zeros(len(self), np.uint64)
        for key in keys:
            hashes += key.view(np.uint64) if key.itemsize == 8 else key.astype(np.uint64)
            hashes *= _HASH_FACTOR
        ordered = np.sort(hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(repeated):  # only events of equal hashes are compared
            rows = np.flatnonzero(np.isin(hashes, repeated))
            rows = rows[np.lexsort([key[rows] for key in keys])]
            same = [key[rows[1:]] == key[rows[:-1]] for key in keys]
            repeats[rows[1:][np.logical_and.reduce(same)]] = True
        return repeats

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        parts = [f"{self.n_users:,} users × {self.n_items:,} items", f"{len(self):,} events"]
        if self.timestamps is not None:
            parts.append(f"timestamps{' without a zone, read as UTC' * self.assumes_utc}")
        if self.n_undated:
            parts.append(f"{self.n_undated:,} undated")
        return f"Interactions({', '.join(parts + self.notes)})"

    @property
    def notes(self) -> list[str]:
        """Remarks on dropped and duplicated events, and recognized and ignored columns."""
        notes = [f"{self.n_skipped:,} lines skipped"] if self.n_skipped else []
        if n := self.n_duplicates:
            notes.append(f"{n:,} duplicated events (same user, item, time and value)")
        notes += [f"{n:,} events dropped by {option}" for option, n in self.dropped.items()]
        return notes + describe_columns(self.recognized, self.ignored)

    def matrix(self) -> LabelledMatrix:
        """Return the values as a matrix of users × items.

        Returns
        -------
        LabelledMatrix of float64, shape (n_users, n_items)
            With `users` and `items`; `.csr` is a plain csr_matrix. Canonical: indices are sorted
            and the events of a pair are summed (the sum does not depend on the order of the rows).
            Explicit zeros are kept.

        Raises
        ------
        InvalidDataError
            If a sum overflows float64.
        """
        matrix = summed_csr(self.user_codes, self.item_codes, self.values, self.shape)
        end: Any = None  # which all events precede
        if self.timestamps is not None and self.n_undated < len(self):
            end = int(self.timestamps.max()) + 1
            end = end if self.time_unit is None else np.datetime64(end, self.time_unit)
        return LabelledMatrix.of(matrix, self.users, self.items, before=end)

    @classmethod
    def _of_matrix(cls, matrix: Any) -> Interactions:
        """Return an event for each stored value of a matrix."""
        rows, columns, values, shape = coordinates(matrix)
        users, items = labels_of(matrix)
        users, items = users or Axis.numbers(shape[0]), items or Axis.numbers(shape[1])
        return cls(rows, columns, values, None, users, items)

    def without(self, held: CSRMatrix) -> Interactions:
        """Return the interactions whose pair is not stored in a matrix.

        Parameters
        ----------
        held : csr_matrix, shape (n_users, n_items)
            For example the validation matrix of a `Holdout`; its values do not matter. After a
            split by time, remaining events may be later than its cut: split in three with ``test=``
            instead.

        Returns
        -------
        Interactions
            With the same users and items.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
        >>> test = se.split.random(clicks, seed=0).validation
        >>> len(clicks.without(test)) + test.nnz == len(clicks)
        True
        """
        return self._take(~self._are_in(held))

    def _are_in(self, matrix: CSRMatrix) -> Booleans:
        """Return for each event whether a matrix of the same shape stores its pair."""
        pairs = self.user_codes.astype(np.int64) * self.n_items + self.item_codes
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return np.isin(pairs, rows * self.n_items + matrix.indices)

    def filter(
        self,
        *,
        users: Axis | Sequence[Hashable] | None = None,
        items: Axis | Sequence[Hashable] | None = None,
        before: Time | None = None,
        min_value: float | None = None,
        min_user_interactions: int | None = None,
        min_item_interactions: int | None = None,
    ) -> Interactions:
        """Return the events that meet all conditions, and the users and items that have one.

        The conditions apply in the order of the parameters. The last two are repeated together
        until every remaining user and item meets them (a k-core), because dropping a user also
        drops interactions of items.

        Parameters
        ----------
        users, items : pandas.Index or sequence, optional
            Labels to keep, such as the ``users`` of other interactions. Labels without events make
            no difference.
        before : str, date, numpy.datetime64 or int, optional
            Events at this point in time or later are dropped, as in `split.temporal`.
        min_value : float, optional
            At least 0: events of a smaller value are dropped, before values are summed.
        min_user_interactions, min_item_interactions : int, optional
            At least 1: users who chose fewer distinct items, and items that fewer distinct users
            chose, are dropped. Events with value 0 (shown, not chosen) do not count.

        Returns
        -------
        Interactions
            In the order of the events. `dropped` counts the events that each option dropped, in
            addition to earlier calls.

        Raises
        ------
        InvalidDataError
            If an option is out of its range, labels are missing or repeated, or no event is left.
            If `before` is given and there are no timestamps, or is a date and their unit is not
            known.

        See Also
        --------
        from_frame : Its ``event=`` and ``events=`` keep events of some types.

        Examples
        --------
        >>> rows = [{"user": u, "item": i} for u, i in ("ax", "ay", "bx", "by", "cy", "cz")]
        >>> Interactions.from_frame(rows).filter(min_user_interactions=2, min_item_interactions=2)
        Interactions(2 users × 2 items, 4 events, 1 events dropped by min_user_interactions,
        1 events dropped by min_item_interactions)
        """
        kept = np.ones(len(self), bool)
        dropped: dict[str, int] = {}

        def keep(option: str, condition: Booleans) -> None:
            n_before = np.count_nonzero(kept)
            np.logical_and(kept, condition, out=kept)
            n_kept = np.count_nonzero(kept)
            dropped[option] = dropped.get(option, 0) + int(n_before - n_kept)
            if not n_kept:
                counts = ", ".join(f"{n:,} by {name}" for name, n in dropped.items())
                raise InvalidDataError(
                    f"no interactions are left: {counts} were dropped; relax the conditions"
                )

        if users is not None:
            keep("users", self.users.isin(Axis.of(users, "users"))[self.user_codes])
        if items is not None:
            keep("items", self.items.isin(Axis.of(items, "items"))[self.item_codes])
        if before is not None:
            times = self.timestamps
            if times is None:
                raise InvalidDataError(
                    "before: there are no timestamps; load them with timestamp=", argument="before"
                )
            end = Clock.of(times, self.time_unit, [("before", before)]).time("before", before)
            keep("before", (times < end) | (times == UNDATED))
        if min_value is not None:
            keep("min_value", self.values >= check_number("min_value", min_value, 0))
        least_of = [
            (option, codes, check_whole(option, least, 1))
            for option, codes, least in (
                ("min_user_interactions", self.user_codes, min_user_interactions),
                ("min_item_interactions", self.item_codes, min_item_interactions),
            )
            if least is not None
        ]
        # One kept event of each distinct (user, item) that has a value above 0.
        rows = np.flatnonzero(kept & (self.values > 0) & bool(least_of))
        order, _, starts = sort_pairs(self.user_codes[rows], self.item_codes[rows])
        chosen = np.zeros(len(self), bool)
        chosen[rows[order[starts]]] = True
        n_before = -1
        while least_of and n_before != np.count_nonzero(kept):
            n_before = int(np.count_nonzero(kept))
            for option, codes, least in least_of:
                sizes = np.bincount(codes[chosen & kept], minlength=max(self.shape))
                keep(option, (sizes >= least)[codes])
        return self._take(kept, dropped)._without_unused_labels()

    def _take(self, kept: Booleans, dropped: Mapping[str, int] | None = None) -> Interactions:
        """Return the marked events, with the same users and items."""
        times = self.timestamps
        counts = Counter(self.dropped)
        counts.update(dropped or {})
        return replace(
            self,
            user_codes=self.user_codes[kept],
            item_codes=self.item_codes[kept],
            values=self.values[kept],
            timestamps=None if times is None else times[kept],
            dropped=dict(counts),
        )

    def _without_unused_labels(self, *, users: bool = True, items: bool = True) -> Interactions:
        """Return the same events, and of the users and items (if so) only those that have one."""
        result: dict[str, Any] = {}
        if users:
            result["user_codes"], result["users"] = _used(self.user_codes, self.users)
        if items:
            result["item_codes"], result["items"] = _used(self.item_codes, self.items)
        return replace(self, **result)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with the columns user, item, value and, if there are any, timestamp.

        Timestamps are whole numbers, and `UNDATED` stays what it is.
        """
        import pandas as pd

        frame = pd.DataFrame(
            {
                "user": self.users.index.take(self.user_codes),
                "item": self.items.index.take(self.item_codes),
                "value": self.values.copy(),
            }
        )
        if self.timestamps is not None:
            frame["timestamp"] = self.timestamps.copy()
        return frame

    @classmethod
    def from_frame(
        cls,
        df: Frame,
        *,
        user: Hashable = USUAL,
        item: Hashable = USUAL,
        value: Hashable = USUAL,
        timestamp: Hashable = USUAL,
        event: Hashable = None,
        events: Mapping[Any, float] | Sequence[object] | None = None,
        users: Axis | Sequence[Hashable] | None = None,
        items: Axis | Sequence[Hashable] | None = None,
        duplicates: Duplicates = "keep",
    ) -> Interactions:
        """Encode a frame with one row per event.

        Columns that are not named are recognized by a usual name of their role, such as ``user``,
        ``userId``, ``movie_id``, ``Rating`` or ``date``. Two such columns for a role are an error.
        `recognized` of the result, and its `repr`, show the columns that are not called like their
        role. ``from_frame(interactions.to_frame())`` therefore loses only
        users and items without events, which `users` and `items` keep.

        Parameters
        ----------
        df : pandas.DataFrame, frame of another library, or list of dict
            The events. A frame is anything with ``__arrow_c_stream__``, as in polars, pyarrow and
            DuckDB; in a list each dict is a row.
        user, item : hashable, optional
            Names of the columns with the ids: text, numbers, anything hashable.
        value : hashable or None, optional
            Name of the column with the values, finite and >= 0. None, or no column with a usual
            name: every event counts 1.
        timestamp : hashable or None, optional
            Name of the column with the times: integers in any unit, or dates, also ISO 8601 text.
            Dates become nanoseconds since 1970; UTC is assumed for dates without a time zone. None,
            or no column with a usual name: no times.
        event : hashable, optional
            Name of a column with types of events, which are compared as text; needs `events`.
        events : sequence or mapping, optional
            The types of events to keep: ``event="type", events=["buy"]``. A mapping of types to
            weights, such as ``events={"view": 1, "buy": 5}``, makes the weight of its type the
            value of each row.
        users, items : pandas.Index or sequence, optional
            The labels to encode with, in this order; default: the sorted distinct ids.
        duplicates : {"keep", "drop", "error"}
            Whether events with the same user, item, time and value (and type, with `events`) as an
            earlier event count, are dropped, or are an error. `n_duplicates` and the `repr` of the
            result report those that are kept.

        Returns
        -------
        Interactions
            In the order of the rows.

        Raises
        ------
        InvalidDataError
            If the frame is empty, a column does not exist, or several columns could have a role
            that was not named. If a row has a missing id, an id that is not in `users` or `items`,
            or an invalid value or time. The message counts rows from 0, as ``df.iloc`` does. If
            there is no event of a type in `events`, or only one of `event` and `events` is given.
            If events are duplicated and `duplicates` is "error"; or there are no times by which
            `duplicates` could recognize them.

        Warns
        -----
        GuessWarning
            If ratings, or values recognized by the name of their column, are 0. For ratings, 0
            often means an event without a rating, but it is read as shown and not chosen.

        See Also
        --------
        sparse_eval.datasets.load : Read files, or several frames as one.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"who": ["b", "a"], "what": [7, 5], "stars": [4, 0]})
        >>> Interactions.from_frame(frame, user="who", item="what", value="stars").to_frame()
          user  item  value
        0    b     7    4.0
        1    a     5    0.0
        >>> frame = pd.DataFrame({"userId": [1, 1], "movieId": [7, 5], "rating": [4.5, 3]})
        >>> Interactions.from_frame(frame)
        Interactions(1 users × 2 items, 2 events, 'userId' as user, 'movieId' as item,
        'rating' as value)
        """
        return read_interactions(
            open_table(df),
            {"user": user, "item": item, "value": value, "timestamp": timestamp},
            event=event,
            events=events,
            users=users,
            items=items,
            duplicates=duplicates,
        )


def read_interactions(
    table: InputTable,
    given: Mapping[str, Hashable],
    *,
    event: Hashable = None,
    events: Mapping[Any, float] | Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
    duplicates: Duplicates = "keep",
) -> Interactions:
    """Read a table with one row per event; `given` has the column of each role."""
    types, weights = _types_of(events)
    if (event is None) != (types is None):
        raise InvalidDataError(
            "pass event= (a column) and events= (the types of events to keep) together, or neither",
            argument="events",
        )
    if weights is not None:
        if given["value"] not in (USUAL, None):
            raise InvalidDataError(
                "events has a weight for each type, which is the value of its rows; leave out "
                "value=, or pass a list of types",
                argument="value",
            )
        given = {role: column for role, column in given.items() if role != "value"}
    columns = table.choose(given, event)
    users = None if users is None else Axis.of(users, "users")
    items = None if items is None else Axis.of(items, "items")
    rows = read_rows(table, columns, users=users, items=items, keep=types)
    n_rows = len(rows.user_codes)
    if rows.numbers is not None:
        where = "" if table.where is None else f"{shown(table.where)}: "
        n_zeros = n_rows - int(np.count_nonzero(rows.numbers))
        columns.warn_of_zeros("value", n_zeros, n_rows, where)
    values = np.ones(n_rows) if rows.numbers is None else rows.numbers
    if rows.types is not None and weights is not None:
        values = np.array([*weights, 0.0])[rows.types]  # rows of other types are dropped below
    result = Interactions(
        user_codes=rows.user_codes,
        item_codes=rows.item_codes,
        values=values,
        timestamps=rows.times,
        users=rows.users,
        items=rows.items,
        n_skipped=sum(part.n_skipped for part in table.parts),
        time_unit="ns" if rows.time_kind.startswith("times") else None,
        recognized=columns.recognized,
        ignored=columns.ignored,
        assumes_utc=rows.time_kind == "times without a time zone",
    )
    found = rows.types
    if found is not None:
        kept = found >= 0
        dropped = {"events": n_rows - int(np.count_nonzero(kept))}
        result = result._take(kept, dropped)
        result = result._without_unused_labels(users=users is None, items=items is None)
        found = found[kept]
    with naming(table.where):
        return check_duplicates(result, duplicates, found)


def check_duplicates(
    events: Interactions, duplicates: Duplicates, types: Items | None = None
) -> Interactions:
    """Return events without duplicates, or raise, if this is wanted; `types` are their types."""
    check_choice("duplicates", duplicates, get_args(Duplicates))
    if duplicates == "keep":
        return events
    if events.timestamps is None:
        raise InvalidDataError(
            "duplicates: there are no times by which to recognize duplicated events; name their "
            "column with timestamp=, or leave this option out",
            argument="duplicates",
        )
    repeats = events._repeats(types)
    n = int(np.count_nonzero(repeats))
    if not n:
        return events
    if duplicates == "error":
        row = int(np.argmax(repeats))
        user, item = events.users[events.user_codes[row]], events.items[events.item_codes[row]]
        raise InvalidDataError(
            f"duplicates: {n:,} of {len(events):,} events have the same user, item, time and value "
            f"as an earlier one, such as user {user!r} with item {item!r} at "
            f"{Clock(events.time_unit).text(int(events.timestamps[row]))}. Drop them with "
            "duplicates='drop', or leave this option out to count them",
            argument="duplicates",
            user=user,
        )
    return events._take(~repeats, {"duplicates": n})


def _types_of(events: Any) -> tuple[list[str] | None, list[float] | None]:
    """Return the types of events to keep as text, and their weights if there are any."""
    if events is None:
        return None, None
    if isinstance(events, str | bytes) or not isinstance(events, Collection) or not len(events):
        raise InvalidDataError(
            f"events: expected a list of types, or a mapping of types to weights, found {events!r}",
            argument="events",
        )
    types = list(map(str, events))
    if not isinstance(events, Mapping):
        return types, None
    return types, [check_number(f"events[{name!r}]", events[name], 0) for name in events]


def with_common_labels(*parts: Interactions) -> list[Interactions]:
    """Return interactions, such as training and validation data, with the same users and items.

    Whole numbers from text files become text if another part has text. Parts without labels are
    matched by row and column, and smaller ones are padded.

    Raises `InvalidDataError` if ids are text in one part and numbers in another.
    """
    if len({part.recognized.get("user") == "line number" for part in parts}) > 1:
        raise InvalidDataError(
            "lines start with the number of items in one file and with a user in another. Load "
            "each file with counts=True or counts=False",
            argument="counts",
        )
    unions = []
    for role in ("users", "items"):
        axes: list[Axis] = [getattr(part, role) for part in parts]
        if any(axis.is_text for axis in axes):
            axes = [axis.as_text() for axis in axes]
        if len({axis.is_text for axis in axes}) > 1:
            raise InvalidDataError(
                f"{role} have text as ids in one part and numbers in another; use ids of one type "
                "for all parts"
            )
        unions.append(union_of(axes))
    (user_codes, users), (item_codes, items) = unions
    return [
        replace(
            part,
            user_codes=rows[part.user_codes],
            item_codes=columns[part.item_codes],
            users=users,
            items=items,
        )
        for part, rows, columns in zip(parts, user_codes, item_codes, strict=True)
    ]


def _used(codes: NDArray[np.int32], labels: Axis) -> tuple[NDArray[np.int32], Axis]:
    """Return codes of the labels that occur, and these labels."""
    used = np.bincount(codes, minlength=len(labels)) > 0
    return (np.cumsum(used) - 1)[codes].astype(np.int32), labels[used]


def label_array(name: str, labels: Axis) -> AnyArray:
    """Return labels as an array that NumPy stores without pickle.

    Raises `InvalidDataError` if a text ends with a null character, which NumPy drops.
    """
    if labels.is_integer:
        return labels.to_numpy()
    texts = labels.tolist()
    array = np.array(texts, dtype=np.str_)
    if array.tolist() != texts:
        raise InvalidDataError(
            f"{name}: labels must be all text or all int64, and text must not end with a null "
            f"character. Convert them first, for example with {name}.map(str)"
        )
    return array
