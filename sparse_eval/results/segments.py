"""Tables by user or item, such as groups and titles, and metrics by group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import check_whole
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import Axis
from ..inputs.columns import role_of
from ..inputs.tables import exports_rows, to_pandas
from ..metrics.measure import measure

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Booleans, Floats, Integers, PathLike
    from ..inputs.tables import ArrowStream
    from ..inputs.training import Training
    from .measured_block import Measured


#: Data about users or items, by their labels; a table adds all of its columns.
LabelTable: TypeAlias = "Mapping[Any, Any] | pd.Series[Any] | pd.DataFrame | ArrowStream | PathLike"

#: Names by item; every column of a table is a name.
ItemNames: TypeAlias = LabelTable

#: Segments by user; every column of a table divides the users.
UserSegments: TypeAlias = LabelTable

#: Segments of a column; more are no segments but values such as ages or dates of birth.
MOST_SEGMENTS = 30


class Segments(NamedTuple):
    """One way to divide users or items: the names of the groups, and each one's group.

    `codes` has the index of the group's name, -1 for none.
    """

    names: list[Any]
    codes: Integers
    title: str = ""

    def note(self) -> str:
        """Return a note with the number of users in no segment; "" if all are in one."""
        without = int((self.codes < 0).sum())
        of_all = f"{without:,} of {len(self.codes):,}"
        return f"{self.title}: {of_all} users have none and are in no segment" if without else ""


def by_label(groups: Any, n_users: int, users: Axis | None, counted: Booleans) -> Segments:
    """Group users by a label for each, given in order, keyed by user, or in a table by user."""
    import pandas as pd

    named = Axis.numbers(n_users) if users is None else users
    is_table = exports_rows(groups) or isinstance(groups, pd.DataFrame | Path)
    if is_table or isinstance(groups, Mapping | pd.Series):
        # As in comparisons, users of a table match if they are the same as text.
        table = label_table(groups, "user", argument="groups", column="group", as_text=is_table)
        if len(table.columns) > 1:
            raise InvalidDataError(
                f"groups have the columns {', '.join(map(repr, table.columns))}; pass one of them",
                argument="groups",
            )
        known = pd.Index(list(map(str, named))) if is_table else named.index
        values = table.iloc[:, 0].reindex(known)
    else:
        entries = list(groups) if hasattr(groups, "__len__") else []
        if len(entries) != n_users or isinstance(groups, np.ma.MaskedArray):
            raise InvalidDataError(
                f"groups have {len(entries)} plain entries for {n_users} users; pass one for each, "
                "or key them by user",
                argument="groups",
            )
        values = pd.Series(entries, dtype=object)
    codes, names = pd.factorize(values, sort=True)
    missing = np.flatnonzero((codes < 0) & counted)
    if len(missing):
        row = int(missing[0])
        user = row if users is None else users[row]
        raise InvalidDataError(
            f"user {user!r} has no group (evaluated users without one: {len(missing)}); give each "
            "a group, such as 'unknown'",
            user=user,
        )
    return Segments(list(names), codes)


def bands_of(counts: Integers, weights: Floats, n_bands: int, unit: str) -> Segments:
    """Divide counts above 0 into bands of about equal weight; equal counts stay together."""
    codes = np.zeros(len(counts), np.int64)
    warm = np.flatnonzero((counts > 0) & (weights > 0))
    order = warm[np.argsort(counts[warm], kind="stable")]
    names = ["cold"]
    if len(order):
        cumulative = np.cumsum(weights[order])
        shares = (cumulative - weights[order] / 2) / cumulative[-1]
        bands = np.minimum((shares * n_bands).astype(np.int64), n_bands - 1)
        levels, first = np.unique(counts[order], return_index=True)
        used, band_of_level = np.unique(bands[first], return_inverse=True)
        for band in range(len(used)):
            inside = levels[band_of_level == band]
            low, high = int(inside.min()), int(inside.max())
            names.append(f"{low} {unit}" if low == high else f"{low}–{high} {unit}")
        level = np.clip(np.searchsorted(levels, counts), 0, len(levels) - 1)
        codes = np.where(counts > 0, band_of_level[level] + 1, 0)
    return Segments(names, codes)


def segmentations(by: UserSegments, users: Axis) -> list[Segments]:
    """Return the segments of users, by each column of a table.

    Parameters
    ----------
    by : mapping, Series, DataFrame, other table or path
        By user: in a table, the column ``user`` if there is one, otherwise its index. Missing
        values and empty text are no segment. Users match if they are the same as text.
    users : Axis
        Of the users to divide; others in the table are not looked at.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column or none of the users, names a user twice, or has
        more than 30 segments in a column.
    InvalidFileError
        If a file cannot be read.
    """
    if isinstance(by, str) and by == "activity":
        raise InvalidDataError(
            "by='activity' is only for a single evaluation: call ev.by('activity'). Here, pass a "
            "mapping or Series with the segment of each user"
        )
    table = segments_table(by)
    labels = table.index
    rows = Axis.unchecked(labels).locate(list(map(str, users)))
    if (rows < 0).all():
        known = f"{labels.tolist()[0]!r}, …" if len(labels) else "nothing"
        raise InvalidDataError(
            f"by has none of the users compared ({users.tolist()[0]!r}, …), but {known}. Pass "
            "segments by the users' labels, or by row number without labels"
        )
    return [_segmentation(str(title), column, rows) for title, column in table.items()]


def segments_table(by: UserSegments) -> pd.DataFrame:
    """Return segments by user as a table that is indexed by user, or raise as `segmentations`."""
    return label_table(by, "user", argument="by", column="segment", as_text=True)


def _segmentation(title: str, column: pd.Series[Any], rows: Integers) -> Segments:
    """Divide users, whose rows in the column are given, -1 for those who are not in it."""
    import pandas as pd

    codes, values = pd.factorize(column.iloc[rows].where(rows >= 0), sort=True)
    names = [_name(value) for value in values]
    order = list(dict.fromkeys(name for name in names if name.strip()))
    if len(order) > MOST_SEGMENTS:
        raise InvalidDataError(
            f"column {title!r} of by has {len(order):,} segments, such as {order[0]!r}; at most "
            f"{MOST_SEGMENTS} are compared: put values into bands with pandas.cut, or remove the "
            "column"
        )
    places = [order.index(name) if name in order else -1 for name in names]
    return Segments(order, np.array([*places, -1], np.int64)[codes], title)


def _name(value: Any) -> str:
    """Return a segment's name; whole numbers are floats in a column that lacks some."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def break_down(block: Measured, groups: Any, bands: int = 4) -> pd.DataFrame:
    """Return the table that `Evaluation.by` describes."""
    check_whole("bands", bands, 1, 1000)
    if isinstance(groups, str) and groups == "popularity":
        return _by_popularity(block, bands)
    n_users, counted = len(block.n_relevant), block.counted
    if isinstance(groups, str) and groups == "activity":
        counts = _training(block, groups).user_counts[:n_users]
        segments = bands_of(counts, counted.astype(np.float64), bands, "items")
    elif isinstance(groups, str):
        raise InvalidDataError(
            f"groups is {groups!r}; expected 'activity', 'popularity' or a label for each user"
        )
    else:
        segments = by_label(groups, n_users, block.labels, counted)
    users_of = [block.users_of(row) for row in range(len(block.request.plans))]
    rows = {}
    for code, group in enumerate(segments.names):
        members = segments.codes == code
        for row, plan in enumerate(block.request.plans):
            users = users_of[row][members[users_of[row]]]
            if len(users):
                std = math.nan
                if plan.per_user:
                    std = block.numbers.moments(row, users, squares=True).std
                rows[group, str(plan.metric)] = (block.value_over(row, users), std, len(users))
    return _table(rows, ["mean", "std", "n_users"])


def deviation_between(block: Measured, groups: Any, bands: int = 4) -> pd.DataFrame:
    """Return the table that `Evaluation.deviation` describes."""
    import pandas as pd

    if isinstance(groups, str) and groups == "popularity":
        raise InvalidDataError(
            "groups is 'popularity', which divides the relevant items; expected 'activity' or a "
            "label for each user"
        )
    table = break_down(block, groups, bands).dropna(subset="mean")
    rows = []
    for metric in block.request.names:
        of_groups = table[table.index.get_level_values("metric") == metric]
        means, counts = (of_groups[name].to_numpy() for name in ("mean", "n_users"))
        variances = of_groups["std"].to_numpy() ** 2 / counts
        one, other = np.triu_indices(len(means), 1)
        deviation = chance = math.nan
        if len(one):
            deviation = float(np.abs(means[one] - means[other]).mean())
            chance = float(np.sqrt(2 / math.pi * (variances[one] + variances[other])).mean())
        rows.append((deviation, chance, len(means), int(counts.sum())))
    index = pd.Index(block.request.names, name="metric")
    return pd.DataFrame(rows, index, ["deviation", "chance", "n_groups", "n_users"])


def _by_popularity(block: Measured, bands: int) -> pd.DataFrame:
    plans = [plan for plan in block.request.plans if plan.definition.formula.by_item]
    if not plans:
        raise InvalidMetricError(
            "none of the metrics can be divided by items; evaluate recall or hit_rate too"
        )
    counts = _training(block, "popularity").item_counts
    segments = bands_of(counts, counts.astype(np.float64), bands, "users")
    relevance = block.aligned.relevance
    rows = {}
    for code, group in enumerate(segments.names):
        kept = (segments.codes[relevance.items] == code) & (relevance.gains > 0)
        part = block.aligned.with_relevant(kept)
        columns, *_ = measure(part, plans)
        n_items = int(np.count_nonzero(segments.codes == code))
        for row, plan in enumerate(plans):
            n_relevant = part.of_items(plan.items).relevance.n_relevant
            counted = block.counts(*plan.exceptions(block.request.convention))
            users = np.flatnonzero(counted & (n_relevant > 0))
            if len(users):
                std = columns.moments(row, users, squares=True).std if plan.per_user else math.nan
                n_held = int(n_relevant[users].sum())
                mean = columns.mean(row, users)
                rows[group, str(plan.metric)] = (mean, std, len(users), n_items, n_held)
    return _table(rows, ["mean", "std", "n_users", "n_items", "n_relevant"])


def _training(block: Measured, groups: str) -> Training:
    training = block.aligned.side_data.training
    if training is None:
        raise InvalidMetricError(f"by({groups!r}) needs train: give train= to the evaluation")
    return training


def _table(rows: dict[tuple[Any, str], tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    index = pd.MultiIndex.from_tuples(list(rows), names=["group", "metric"])
    return pd.DataFrame(list(rows.values()), index=index, columns=columns)


def label_table(
    known: LabelTable,
    key: Literal["user", "item"],
    *,
    argument: str,
    column: str,
    as_text: bool = False,
) -> pd.DataFrame:
    """Return data about users or items as a table that is indexed by their labels.

    Parameters
    ----------
    known : mapping, Series, DataFrame, other table or path
        The labels are the column with a usual name of `key` if there is one, otherwise the index.
    key : {"user", "item"}
        Whose labels they are.
    argument : str
        The name of `known` in errors.
    column : str
        The name of the values of a mapping, or of a Series without a name.
    as_text : bool
        Return the labels as text.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column, two of the same name, or a label twice.
    InvalidFileError
        If a file cannot be read.
    """
    import pandas as pd

    is_file = isinstance(known, str | Path)
    if is_file or (exports_rows(known) and not isinstance(known, pd.DataFrame)):
        known = to_pandas(known, text=is_file)  # text: an item "007" is not 7, and "NA" is a name
    if isinstance(known, pd.DataFrame):
        labels = [key] if key in known else [name for name in known if role_of(name) == key]
        if len(labels) > 1 or (is_file and not labels):
            raise InvalidDataError(
                f"{argument} has the columns {', '.join(map(repr, known))}; rename the one with "
                f"the {key}s to {key!r}"
            )
        table = known.set_index(labels[0]) if labels else known
    elif isinstance(known, pd.Series):
        table = known.to_frame(column if known.name is None else known.name)
    elif isinstance(known, Mapping):
        # As objects, because whole numbers with a missing value would become floats.
        table = pd.DataFrame({column: pd.Series(list(known.values()), dtype=object)})
        table.index = pd.Index(list(known), tupleize_cols=False)
    else:
        raise InvalidDataError(
            f"{argument} is a {type(known).__name__}; expected {column}s by {key}: a mapping, a "
            f"Series, a table indexed by {key} or with a column {key!r}, or the path of one"
        )
    titles = [str(title) for title in table]
    if not titles:
        raise InvalidDataError(
            f"{argument} has only the column of the {key}; add one with the {column}s"
        )
    if len(set(titles)) < len(titles):
        raise InvalidDataError(f"{argument} has two columns of the same name: {', '.join(titles)}")
    if as_text:
        table = table.set_axis(table.index.map(str))
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"{key} {twice!r} is in {argument} twice; give each {key} one row")
    return table


def item_table(item_names: ItemNames) -> pd.DataFrame:
    """Return names of items as a table that is indexed by item.

    Parameters
    ----------
    item_names : mapping, Series, DataFrame, other table or path
        By item: in a table, the column ``item`` if there is one, otherwise its index.

    Raises
    ------
    InvalidDataError
        If it is something else, has no column, or names an item twice.
    InvalidFileError
        If a file cannot be read.
    """
    table = label_table(item_names, "item", argument="item_names", column="name")
    # As objects, because whole numbers with missing names would become floats.
    return table.rename(columns=str).astype(object)
