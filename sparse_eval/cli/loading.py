"""Options for reading interactions, lists and item data, and for splitting interactions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np

from ..core.hashing import digest_file
from ..errors import InvalidDataError, InvalidFileError, shown
from ..inputs.columns import USUAL, TableColumns, Usual, describe_columns, request_column
from ..inputs.input_files import find_files, is_uri, naming
from ..inputs.paths import PathKind, kind_of
from ..inputs.rankings import Ties
from ..inputs.tables import open_table, to_pandas
from .options import ItemColumn, Rare, UserColumn, check_applies, option, step, typed
from .terminal import note, tell

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, SparseInput
    from ..datasets import Interactions
    from ..datasets.split import Holdout
    from ..inputs.item_data import ItemData
    from ..inputs.tables import RankingsScan, RelevanceScan

#: How interactions are split.
Method: TypeAlias = Literal["random", "leave-k-out", "last-n", "temporal", "users"]

#: Which interactions are kept.
CONDITIONS = ("before", "min_value", "min_user_interactions", "min_item_interactions")


@dataclass(frozen=True)
class Loading:
    r"""How interactions are read.

    Parameters
    ----------
    format
        adjacency, arrow, csv, json, mind, movielens, npz, parquet or tsv. [by the file name]
    value
        Column of values; "" for none: every event counts 1. [recognized]
    timestamp
        Column of times; "" for none. [recognized]
    event
        Column of types of events; needs --events.
    events
        An event type to keep, or a type with the value of its rows, such as buy=5;
        repeatable.
    duplicates
        Whether events with the same user, item, time and value as an earlier one count.
    sep
        CSV: what separates fields; "\t" is a tab. [comma]
    encoding
        CSV and adjacency: encoding of the text. [utf-8]
    counts
        Adjacency: whether lines begin with the number of their items, not with a user.
    header
        CSV: whether the first line names the columns.
    on_bad_lines
        Skip malformed lines, and report how many.
    """

    format: Rare[Annotated[str | None, option("--input-format")]] = None
    user: UserColumn = None
    item: ItemColumn = None
    value: Rare[str | None] = None
    timestamp: str | None = None
    event: Rare[str | None] = None
    events: Rare[list[str] | None] = None
    duplicates: Rare[Literal["keep", "drop", "error"]] = "keep"
    sep: Rare[str | None] = None
    encoding: Rare[str | None] = None
    counts: Rare[bool | None] = None
    header: Rare[Annotated[bool, option("--header/--no-header")]] = True
    on_bad_lines: Rare[Annotated[bool, option("--skip-bad-lines")]] = False

    def read(self, path: Path, **conditions: Any) -> Interactions:
        """Read interactions, keep those that are wanted, and tell of doubtful days."""
        from ..datasets.times import doubtful_days

        with step(f"read {shown(path)}") as note:
            interactions = self._load(path)
            if conditions:
                interactions = interactions.filter(**conditions)
            note(repr(interactions))
        times = interactions.timestamps
        if times is not None:
            is_whole = "before" in conditions
            for doubt in doubtful_days(times, interactions.time_unit, is_whole=is_whole):
                tell(f"warning: {shown(path)}: {doubt}", "warning")
        return interactions

    def matrix(self, path: Path | None) -> CSRMatrix | None:
        """Read a matrix of interactions if there is one."""
        return None if path is None else self.read(path).matrix()

    def saved(self, folder: Path, candidates: Path | None = None) -> Holdout:
        """Read a split that `split` wrote; options of loading may be for the candidates."""
        from ..datasets.split import Holdout

        names = CONDITIONS if candidates else [one.name for one in fields(Filtering)]
        if given := typed(*names):
            raise InvalidDataError(
                f"{', '.join(given)}: {shown(folder)} is a split already; leave the options out, "
                "or give them to sparse-eval split"
            )
        return Holdout.load(folder)

    def parts(self, train: Path, held_out: Path) -> tuple[Interactions, Holdout]:
        """Read the training part of a ready-made split, and the whole split."""
        from ..datasets.interactions import with_common_labels
        from ..datasets.split import Holdout

        for flag in typed(*CONDITIONS):
            raise InvalidDataError(
                f"{flag} applies before interactions are split, but the input is a split already; "
                "split again with it"
            )
        with step(f"read {shown(train)} and {shown(held_out)}") as note:
            a, b = with_common_labels(self._load(train), self._load(held_out))
            note(f"{len(a):,} to train on, {len(b):,} held out")
            for remark in dict.fromkeys([*a.notes, *b.notes]):
                note(remark)
            return a, Holdout.from_frames(a, b)

    def _load(self, path: Path) -> Interactions:
        """Read interactions, and show their events a day if they have dates."""
        from ..datasets import load
        from ..datasets.times import events_a_day

        columns: dict[str, Any] = {}
        for name in ("user", "item", "value", "timestamp", "event"):
            column = getattr(self, name)
            if column == "":
                columns[name] = None
            elif column is not None:
                is_number = not self.header and column.isdecimal()  # columns have numbers
                columns[name] = int(column) if is_number else column
        interactions = load(
            path,
            format=self.format,
            events=_types_of(self.events),
            duplicates=self.duplicates,
            sep=None if self.sep is None else self.sep.replace(r"\t", "\t"),
            encoding=self.encoding,
            header=self.header,
            on_bad_lines="skip" if self.on_bad_lines else "error",
            counts=self.counts,
            **columns,
        )
        times = interactions.timestamps
        if times is not None and (days := events_a_day(times, interactions.time_unit)):
            note(f"{shown(path)}: {days}")
        for a, b in _copies(path):
            tell(
                f"warning: {shown(a)} and {shown(b)} have the same content; remove a copy",
                "warning",
            )
        return interactions


def _copies(path: Path) -> Iterator[tuple[Any, Any]]:
    """Yield files of a folder or pattern with the same content, which count twice."""
    by_size: dict[int, list[Path]] = {}
    with suppress(InvalidFileError):  # an edition of a public dataset, which is no folder of tables
        for file in [] if is_uri(path) else find_files(path)[0]:
            by_size.setdefault(Path(file.path).stat().st_size, []).append(Path(file.path))
    for files in by_size.values():
        known: dict[str, Path] = {}
        for one in files if len(files) > 1 else ():
            first = known.setdefault(digest_file(one), one)
            if first != one:
                yield first, one


def check_is_fresh(interactions: Interactions, limit: str, end: str | None = None) -> None:
    """Raise if the last event is longer ago than a duration such as ``36h``.

    That is counted from now, or from the beginning of the day `end` if it is in the past.
    """
    from ..datasets.times import Clock, unit_of_values

    most = Clock("ns").duration("fail_if_stale", limit, 1)
    times, unit = interactions.timestamps, interactions.time_unit
    if times is not None and unit is None:
        unit = unit_of_values(times)
    if times is None or unit is None:
        raise InvalidDataError(
            "fail_if_stale needs events with dates; name their column with --timestamp",
            argument="fail_if_stale",
        )
    last = np.datetime64(int(times.max()), unit)
    now = np.datetime64(time.time_ns(), "ns")
    age = (now if end is None else min(now, np.datetime64(end, "ns"))) - last
    if age > np.timedelta64(most, "ns"):
        raise InvalidDataError(
            f"the last event is of {last} (UTC), {age / np.timedelta64(1, 'h'):,.1f} hours before "
            f"{'now' if end is None else 'the end of the night'}, and fail_if_stale is {limit}. "
            "Is a day of the log missing?",
            argument="fail_if_stale",
        )


def _types_of(words: list[str] | None) -> list[str] | dict[str, float] | None:
    """Return types of events, or the weight of each type: "buy=5"."""
    weights = {}
    for word in words or ():
        name, _, number = word.rpartition("=")
        if name:
            with suppress(ValueError):
                weights[name] = float(number)
    if words and weights and len(weights) < len(words):
        raise InvalidDataError("--events: give a weight for each type, as buy=5, or for none")
    return weights or words


@dataclass(frozen=True)
class Filtering(Loading):
    """Which interactions are kept.

    Parameters
    ----------
    before
        Leave out events at this date or later.
    min_value
        Leave out events of a smaller value.
    min_user_interactions
        Leave out users with fewer distinct items; repeated with the next option until all that are
        left have enough (a k-core).
    min_item_interactions
        Leave out items with fewer distinct users.
    """

    before: Rare[str | None] = None
    min_value: Rare[float | None] = None
    min_user_interactions: Rare[int | None] = None
    min_item_interactions: Rare[int | None] = None

    def read_wanted(self, path: Path) -> Interactions:
        """Read interactions, and keep those that meet the conditions."""
        given = {name: getattr(self, name) for name in CONDITIONS}
        given["before"] = _number_or_text(self.before)
        return self.read(path, **{name: x for name, x in given.items() if x is not None})


#: The options of `Splitting` that only some methods have.
_OF_METHODS = ("fraction", "n", "at", "gap", "test", "fold_in", "order", "repeats")


@dataclass(frozen=True)
class Splitting(Filtering):
    """How interactions are split.

    Parameters
    ----------
    method
        How to split. [random; temporal with --at]
    fraction
        random, temporal, users, last-n: share, 0 to 1. [0.2; last-n: 1 pair]
    fold_in
        users: share of a held-out user's items that the model is given. [0.8]
    order
        users: whether it is given random items or the earliest. [random]
    n
        leave-k-out, last-n: number per user. [1]
    at
        temporal: where validation begins: a date (2019-11-14, 2019-11-14T09:30+01:00; UTC without
        a time zone), or a whole number in the unit of the timestamps.
    gap
        temporal: leave out events so long before a cut: 1D, 12h, or, if the timestamps are numbers,
        a whole number in their unit.
    test
        temporal: where a test part begins, after --at; likewise.
    repeats
        temporal, last-n: hold out what repeats an interaction of the training part too, for models
        that may recommend again (--allow-seen).
    only_known
        Hold out only users and items that the training part has.
    """

    method: Method | None = None
    fraction: float | None = None
    fold_in: Rare[float | None] = None
    order: Rare[Literal["random", "time"] | None] = None
    n: Annotated[int | None, option(min=1)] = None
    at: str | None = None
    gap: Rare[str | None] = None
    test: Rare[Annotated[str | None, option("--test-at")]] = None
    repeats: Rare[Annotated[bool, option("--keep-repeats")]] = False
    only_known: Rare[bool] = False

    @property
    def how(self) -> Method:
        """The method: the given one, or else temporal if a date is given."""
        return self.method or ("random" if self.at is None else "temporal")

    @property
    def is_given(self) -> bool:
        """Whether any option is typed that only a split of one file has."""
        return bool(typed(*{*Splitting.__annotations__} - {"only_known"}))

    def described(self) -> str:
        """Return the method and its given options in a line."""
        options = ((name, getattr(self, name)) for name in _OF_METHODS)
        return ", ".join([self.how, *(f"{name} {value}" for name, value in options if value)])

    def known(self, holdout: Holdout) -> Holdout:
        """Hold out only users and items with training data, if requested."""
        if self.only_known:
            holdout = holdout.known()
            _check_held_out(holdout, "every pair has a user or item without training data")
        return holdout

    def split(
        self,
        interactions: Interactions | SparseInput,
        seed: int,
        purpose: str = "split",
        *,
        three_way: bool = False,
    ) -> Holdout:
        """Split interactions; raise if an option does not apply to the method.

        With `three_way` or --test-at there is a test part. Without --test-at, it is as large a
        share, or as many pairs, as the validation part is of the rest.
        """
        three_way = three_way or self.test is not None
        if self.test is not None and self.at is None:
            raise InvalidDataError("--test-at needs --at, where the validation part begins")
        if three_way and self.at is not None and self.test is None:
            raise InvalidDataError("--at needs --test-at here, where the test part begins")
        with step(f"{purpose} ({self.how})") as note:
            holdout = self._cut(interactions, seed, three_way)
            if three_way and self.how in ("random", "leave-k-out"):
                holdout = with_test(self._cut(holdout.train, seed, three_way), holdout)
            _check_held_out(
                holdout, "users have too few distinct items for this method and options"
            )
            holdout = self.known(holdout)
            note(", ".join([describe(holdout), *holdout.remarks()]))
        return holdout

    def _cut(self, interactions: Any, seed: int, three_way: bool) -> Holdout:
        """Call the function of the method, or raise if it lacks an option that is given."""
        from ..datasets import split

        function = getattr(split, self.how.replace("-", "_"))
        known = ["n" if name == "k" else name for name in signature(function).parameters]
        check_applies(_OF_METHODS, known, f"--method {self.how}")
        given = {name: getattr(self, name) for name in _OF_METHODS if name in known}
        options: dict[str, Any] = {
            name: _number_or_text(value) if name in ("at", "gap", "test") else value
            for name, value in given.items()
            if value is not getattr(Splitting, name)
        }
        if options.get("repeats"):
            options["repeats"] = "keep"
        if "seed" in known:
            options["seed"] = seed
        if three_way and self.how == "last-n":
            options["test"] = self.n or 1
        elif self.at is None and self.how in ("temporal", "users"):
            # The test part is a share of all events, and validation of the rest.
            share = 0.2 if self.fraction is None else self.fraction
            options["fraction"] = share
            if three_way:
                options |= {"fraction": share * (1 - share), "test": share}
        cut: Holdout = function(interactions, **options)
        return cut


@dataclass(frozen=True)
class Tables:
    """How lists and relevant items are read.

    Parameters
    ----------
    rank
        Tables of lists: column of ranks. [recognized]
    score
        Or the column of scores. [recognized]
    gain
        Tables of relevant items: column of gains; "" counts 1 for each row. [recognized]
    ties
        Order of equal scores: the lower item first, the higher item first, the expectation over
        random orders, or relevant items last. [as the convention does]
    threshold
        Gains below it are not relevant, and are not added to other gains of the same user and item.
        [every gain above 0 is relevant]
    trec
        Read both files in the formats of TREC: a run and qrels, whatever their names.
    """

    user: UserColumn = None
    item: ItemColumn = None
    rank: Rare[str | None] = None
    score: Rare[str | None] = None
    gain: Rare[str | None] = None
    ties: Rare[Ties | None] = None
    threshold: Rare[float | None] = None
    trec: Rare[bool] = False

    @property
    def ids(self) -> dict[str, str]:
        """The columns of users and of items."""
        return {"user": self.user or "user", "item": self.item or "item"}

    @property
    def _gain_column(self) -> str | Usual | None:
        """The column of gains of the validation data."""
        return USUAL if self.gain is None else self.gain or None

    def lists(self, path: Path, usual_ties: Ties) -> tuple[Any, bool]:
        """Return the predictions of `evaluate`, and whether equal scores are averaged.

        The convention, and therefore `evaluate`, has `usual_ties`.
        """
        from ..inputs.paths import open_side
        from ..inputs.rankings import Rankings
        from ..inputs.trec import read_run

        kind, order = PathKind.RUN if self.trec else kind_of(path), self.ties or usual_ties
        scan: RankingsScan | None = None
        has_ranks = kind is not PathKind.RUN
        if kind.is_table:
            given: dict[str, Any] = {**self.ids, "rank": self.rank, "score": self.score}
            scan = Rankings.scan(path, **given)
            has_ranks = "score" not in _chosen(scan, path).names
        if self.ties is not None and has_ranks:
            raise InvalidDataError(
                f"--ties orders equal scores, and {path} holds ranks; leave it out"
            )
        averaged = order == "average" and not has_ranks
        if scan is None:
            return read_run(path, ties=order) if kind is PathKind.RUN else path, averaged
        # A scan need not fit in memory.
        return scan if has_ranks or order == usual_ties else open_side(scan, order), averaged

    def gains(self, path: Path) -> Any:
        """Return the validation data of `evaluate`."""
        from ..inputs.npy import read_sparse
        from ..inputs.paths import open_side, read_truth
        from ..inputs.relevance import Relevance
        from ..inputs.trec import read_qrels

        truth: Any = path
        if is_split(path):
            from ..datasets.split.holdout import Holdout

            truth = Holdout.load(path).validation
        elif self.trec:
            truth = read_qrels(path)
        elif kind_of(path).is_table:
            truth = Relevance.scan(path, **self.ids, gain=self._gain_column)
            _chosen(truth, path)
        if self.threshold is None:
            return truth
        with naming(path):
            if truth is path:  # entries of a pair are compared before they are summed
                is_matrix = kind_of(path) is PathKind.MATRIX
                truth = read_sparse(path) if is_matrix else read_truth(path)
            truth = open_side(truth, threshold=self.threshold)
            matrix = truth.to_csr() if isinstance(truth, Relevance) else truth
            return Relevance.from_csr(matrix, threshold=self.threshold)

    def requests(self, path: Path, request: str, weight: str | None) -> Any:
        """Return the validation data of `evaluate` by request."""
        from ..inputs.requests import Requests

        if not kind_of(path).is_table or self.threshold is not None:
            raise InvalidDataError(
                "--request needs a table of relevant items, without --threshold", argument="request"
            )
        with naming(path):
            return Requests.from_frame(
                path, request=request, **self.ids, gain=self._gain_column, weight=weight
            )

    def train(self, path: Path | None, *, values: bool = True) -> Any:
        """Return the training data of `evaluate`, or without `values` the candidates."""
        from ..inputs.paths import open_side
        from ..inputs.relevance import Relevance

        if path is not None and is_split(path):
            from ..datasets.split.holdout import Holdout

            return Holdout.load(path).seen
        if path is None or not kind_of(path).is_table:
            return path
        gain: str | Usual | None = USUAL
        if not values or self.gain == "":
            gain = None
        elif self.gain in open_table(path).names:  # otherwise only the validation data have it
            gain = self.gain
        return open_side(Relevance.scan(path, **self.ids, gain=gain))


def _chosen(scan: RankingsScan | RelevanceScan, path: Path) -> TableColumns:
    """Return the columns of a table, and show those that were recognized and ignored."""
    chosen = scan.choose(open_table(path))
    if notes := describe_columns(chosen.recognized, chosen.ignored):
        note(f"{shown(path)}: {', '.join(notes)}")
    if (column := request_column(chosen.ignored)) is not None:
        note(f"{shown(path)}: --request {shown(str(column))} evaluates each {column} by itself")
    return chosen


@dataclass(frozen=True)
class Items:
    """Groups, vectors and propensities of items.

    Parameters
    ----------
    groups
        The group of each item: a table with a row for each item and one other column, or columns of
        weights; .npy, or .npz of items × groups.
    vectors
        A vector for each item: a table with columns of numbers, or .npy.
    propensity
        The chance that each item was observed where it is relevant, for weights=ips and snips: a
        table with one other column, or .npy.
    """

    groups: Rare[Annotated[Path | None, option("--item-groups")]] = None
    vectors: Rare[Annotated[Path | None, option("--item-vectors")]] = None
    propensity: Rare[Path | None] = None

    def open(self, tables: Tables, lists: Path) -> ItemData:
        """Read them, with ids of the same kind as the ids of the lists."""
        from ..inputs.item_data import ItemData
        from ..inputs.npy import open_array, read_sparse

        def read(path: Path | None, *, wide: bool = False) -> Any:
            """Return an array, a matrix, or a frame by item; a Series of one column unless wide."""
            if path is None or path.suffix == ".npy":
                return path and open_array(path)
            if path == self.groups and kind_of(path) is PathKind.MATRIX:
                return read_sparse(path)
            frame = _by_item(path, tables.item)
            if tables.trec or kind_of(lists) is PathKind.RUN:  # whose ids are text
                frame.index = frame.index.astype(str)
            return frame if wide or len(frame.columns) > 1 else frame.iloc[:, 0]

        groups, vectors = read(self.groups), read(self.vectors, wide=True)
        return ItemData(groups=groups, vectors=vectors, propensity=read(self.propensity))


def _by_item(path: Path, named: str | None) -> Any:
    """Return a table of items as a frame by item."""
    kind = kind_of(path)
    if not kind.is_table:
        raise InvalidFileError(f"holds {kind.value}; expected a table of items, or .npy", path)
    item: Any = open_table(path).choose({"item": named or USUAL}).names["item"]
    frame = to_pandas(path)
    if item not in frame:  # it is the index that pandas stored
        frame = frame.reset_index()
    frame = frame.set_index(item)
    if frame.columns.empty:
        raise InvalidFileError(f"has only the column {item!r}; expected others too", path)
    return frame


def with_test(part: Holdout, whole: Holdout) -> Holdout:
    """Return a split of training data, with the part that was held out before as its test part."""
    from ..datasets.split import Holdout

    return Holdout(part.train, part.validation, whole.users, whole.items, test=whole.validation)


def describe(holdout: Holdout) -> str:
    """Return the number of distinct pairs in each part."""
    train, validation, test = holdout.train, holdout.validation, holdout.test
    parts = f"{train.nnz:,} pairs to train on, {validation.nnz:,} pairs held out"
    return parts if test is None else f"{parts}, {test.nnz:,} pairs for the test"


def _check_held_out(holdout: Holdout, reason: str) -> None:
    for name, matrix in (("validation", holdout.validation), ("the test", holdout.test)):
        if matrix is not None and matrix.nnz == 0:
            raise InvalidDataError(f"nothing is held out for {name}: {reason}")


def _number_or_text(text: str | None) -> int | str | None:
    """Return a whole number, which is in the unit of the timestamps, or a date or duration.

    Python makes no number of more than 4,300 digits.
    """
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,4000}", text) else text


def is_split(path: Path) -> bool:
    """Return whether a path is a folder that `split` wrote."""
    return Path(path).is_dir() and Path(path, "train.npz").exists()


def check_inputs_are_kept(inputs: Iterable[Path | None], outputs: Iterable[Path]) -> None:
    """Raise `InvalidDataError` if a command would write over what it reads.

    A folder that is read stands for the parts of a split in it.
    """
    given = [Path(path) for path in inputs if path is not None and Path(path).exists()]
    files = [file for path in given for file in (files_of_split(path) if path.is_dir() else [path])]
    for output in outputs:
        if output.exists() and any(file.exists() and output.samefile(file) for file in files):
            raise InvalidDataError(
                f"{output} is read, and would be replaced; name another place with --out"
            )


def files_of_split(folder: Path) -> list[Path]:
    """Return the files that a split may be saved in."""
    from ..datasets.split.holdout import PARTS

    return [folder / f"{name}.npz" for name in (*PARTS, "labels")]
