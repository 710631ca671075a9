"""The role of each column of a table, by its name: one rule for all inputs."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.messages import warn
from ..errors import InvalidDataError
from .column_values import is_list, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class GuessWarning(UserWarning):
    """An ambiguous input was read in the most likely way; please check it."""


#: The default for the name of a column: a usual name of its role.
Usual: TypeAlias = EllipsisType
USUAL: Usual = ...

#: Usual names of values for which 0 can only mean that an item is not relevant.
_PLAIN_ZEROS = (
    "value gain relevance relevant label target y liked isliked clicked isclick purchased"
)

#: Usual names of each role, in lower case, with only letters and digits. "id" may follow the names
#: of users and items.
_USUAL_NAMES = {
    "user": "user users uid visitor customer client reviewer",
    "item": """
        item items recs recommendations iid movie product article news track song artist album book
        isbn asin parentasin video game anime recipe business poi sku stockcode
    """,
    "value": f"""
        {_PLAIN_ZEROS} rating ratings bookrating stars count counts n freq frequency plays playcount
        click clicks views purchases weight weights confidence quantity amount hours
    """,
    "rank": "rank ranks position positions pos ranking",
    "score": "score scores prediction predictions predicted pred est estimate",
    "timestamp": """
        timestamp timestamps ts time times date datetime unixtime unixtimestamp unixreviewtime
        eventtime eventtimestamp eventdate playedat createdat invoicedate orderdate tdat
    """,
}
_NEEDED = ("user", "item", "rank", "score")
_ROLE_OF = {name: role for role, names in _USUAL_NAMES.items() for name in names.split()}

#: Columns of numbers that are no values: row numbers, ids, and parts or ends of times.
_NO_VALUE = re.compile(
    r"|unnamed.*|(__)?index(_level_\d+)?(__)?|level_\d+|id|ids"
    r"|year|month|week|day|weekday|dayofweek|day_of_week|hour|minute|second"
    r"|.*[\W_](id|ids|at|ts|date|datetime|timestamp)"
)


#: Columns that may have the ids of requests, which are never guessed.
_REQUEST = re.compile("(session|impression|imp|query|order|basket|visit|request)(id)?")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The column of each role.

    Attributes
    ----------
    names : dict of str to hashable
        The columns by role, without roles that have no column.
    recognized : dict of str to hashable
        The columns that were recognized by a usual name other than their role.
    ignored : tuple of hashable
        The columns that are not used.
    given : mapping of str to hashable
        The arguments: a name, None for no column, or `USUAL`.
    is_ranked : bool
        Whether items are lists, best first, in whose order they are ranked.
    """

    names: dict[str, Hashable]
    recognized: dict[str, Hashable] = field(default_factory=dict)
    ignored: tuple[Hashable, ...] = ()
    given: Mapping[str, Hashable] = field(default_factory=dict)
    is_ranked: bool = False

    def remedy(self, role: str) -> str:
        """Return the remedy if a column that nobody named is not what its name promised."""
        if self.given.get(role) is not USUAL or role not in self.names:
            return ""
        none = "" if role in _NEEDED else f", or none with {role}=None"
        return (
            f". Column {self.names[role]!r} was recognized as the {role} by its name; choose "
            f"another one with {role}={none}"
        )

    def warn_of_zeros(self, role: str, n_zeros: int, n: int, where: str = "") -> None:
        """Warn about zeros, unless they can only mean that an item was shown and not chosen.

        A zero among ratings often means an event without a rating, as in Book-Crossing.
        """
        column = str(self.names[role])
        named = self.given.get(role) is not USUAL
        is_rating = re.search(r"ratings?$", column, re.IGNORECASE)
        if n_zeros and not (_plain(column) in _PLAIN_ZEROS.split() or (named and not is_rating)):
            warn(
                f"{where}{n_zeros:,} of {n:,} values in column {column!r} are 0, which means shown "
                "and not chosen. If 0 means chosen without a rating, drop these rows "
                "(Interactions.filter with a min_value above 0), or count every row as 1 "
                f"({role}=None)",
                GuessWarning,
            )


def request_column(columns: Sequence[Hashable]) -> Hashable:
    """Return the first column that may have the ids of requests, None if there is none."""
    return next((name for name in columns if _REQUEST.fullmatch(_plain(str(name)))), None)


def describe_columns(
    recognized: Mapping[str, Hashable], ignored: Sequence[Hashable], most: int = 5
) -> list[str]:
    """Return the recognized and the ignored columns as text for a `repr`."""
    notes = [f"{column!r} as {role}" for role, column in recognized.items()]
    if ignored:
        others = f" and {len(ignored) - most:,} others" if len(ignored) > most else ""
        notes.append(f"ignored {', '.join(map(repr, ignored[:most]))}{others}")
    return notes


def choose_columns(
    names: Sequence[Hashable],
    given: Mapping[str, Hashable],
    type_of: Callable[[Hashable], Any],
    event: Hashable = None,
) -> TableColumns:
    """Return the column of each role.

    Raises `InvalidDataError` if a column is missing or its name is not unique. If several columns
    have a usual name of one role, or two roles have the same column. If a column could be the value
    but has no usual name.

    Parameters
    ----------
    names : sequence of hashable
        The columns of the table.
    given : mapping of str to hashable
        By role: a name, None for no column, or `USUAL`. `USUAL` chooses the only column with a
        usual name of the role. Case, ``_``, ``-`` and spaces do not matter (``userId``,
        ``User-ID``, and ``user_id:token`` as RecBole writes it). With both "rank" and "score", one
        of them.
    type_of : callable
        Returns the Arrow type of a column, None if it has no single one. If the value is not
        recognized, no column of numbers may be left over, except row numbers, ids, times and
        ranks. If items are lists, neither a rank nor a score is needed.
    event : hashable, optional
        A column with types of events, which replace values.
    """
    names = list(names)
    for role, name in {**given, "event": event}.items():
        if not isinstance(name, Hashable) or (name is None and role in ("user", "item")):
            raise InvalidDataError(
                f"{role}: expected the name of a column, found {name!r}", argument=role
            )
    wanted = dict(_with_one_order(given, names))
    if event is not None:
        wanted["event"] = event
    columns = {
        role: _find(role, name, names) for role, name in wanted.items() if name not in (None, USUAL)
    }
    free = [column for column in names if column not in columns.values()]
    for role, name in wanted.items():
        if name is USUAL and (found := _recognized(role, free)) is not None:
            columns[role] = _find(role, found, names)
    columns = {role: columns[role] for role in wanted if role in columns}
    for role, column in columns.items():
        first = next(other for other in columns if columns[other] == column)
        if first != role:
            raise InvalidDataError(
                f"{first} and {role} are both the column {column!r}; name a column for each",
                argument=role,
                column=column,
            )
    is_ranked = "rank" in given and not {"rank", "score"} & columns.keys()
    if is_ranked and not is_list(type_of(columns["item"])):
        raise InvalidDataError(
            "no column for the rank or score was recognized. The columns are "
            f"{_listed(names)}; choose one with rank= or score=, or add one: frames without ranks "
            "need a list of items for each user",
            argument="rank",
        )
    refused = {_ROLE_OF.get(role, "value") for role, name in given.items() if name is None}
    ignored = [
        column
        for column in dict.fromkeys(names)
        if column not in columns.values() and role_of(column) not in refused
    ]
    value = next((role for role in ("value", "gain") if given.get(role) is USUAL), None)
    if value is not None and value not in columns and event is None:
        _check_left_over(value, ignored, type_of)
    recognized = {
        role: column
        for role, column in columns.items()
        if wanted[role] is USUAL and column != role and {role, column} != {"gain", "value"}
    }
    return TableColumns(columns, recognized, tuple(ignored), given, is_ranked)


def role_of(column: Hashable) -> str | None:
    """Return the role that a column's name usually has, or None."""
    if not isinstance(column, str):
        return None
    name = _plain(column)
    role = _ROLE_OF.get(name.removesuffix("id"))
    return role if role in ("user", "item") else _ROLE_OF.get(name)


def _plain(column: str) -> str:
    return re.sub(r"[\W_]+", "", column.partition(":")[0].lower())


def _find(role: str, name: Hashable, names: Sequence[Hashable]) -> Hashable:
    """Return the one column of a name; a column called 0 may be named by the text "0"."""
    found = [column for column in names if column == name]
    found = found or [column for column in names if str(column) == name]
    if len(found) == 1:
        return found[0]
    if found:
        message = f"there are {len(found)} columns named {name!r}; rename one"
    else:
        texts = [column for column in names if isinstance(column, str)]
        near = get_close_matches(str(name), texts, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"there is no column {name!r}; the columns are {_listed(names)}{hint}"
    raise InvalidDataError(f"{role}: {message}", argument=role, column=name)


def _with_one_order(
    given: Mapping[str, Hashable], names: Sequence[Hashable]
) -> Mapping[str, Hashable]:
    """Leave only one of rank and score: the named one, or else the rank if there is one."""
    orders = [role for role in ("rank", "score") if role in given]
    if len(orders) < 2:
        return given
    named = [role for role in orders if given[role] not in (None, USUAL)]
    if len(named) == 2:
        raise InvalidDataError(
            "pass only one of rank= and score=, the column to order by", argument="rank"
        )
    found = {role: _usual(role, names) for role in orders if given[role] is USUAL}
    named += [role for role, columns in found.items() if columns]
    if not named:
        return {role: name for role, name in given.items() if role not in orders}
    if all(found.get(role) for role in orders) and "rank" not in names and "score" in names:
        raise InvalidDataError(
            f"{_listed([*found['rank'], *found['score']])} could be the rank or the score; choose "
            "one with rank= or score=",
            argument="rank",
        )
    return {role: name for role, name in given.items() if role not in orders or role == named[0]}


def _usual(role: str, names: Sequence[Hashable]) -> list[Hashable]:
    """Return the columns with a usual name of a role."""
    kind = "value" if role == "gain" else role
    return [name for name in dict.fromkeys(names) if role_of(name) == kind]


def _recognized(role: str, names: Sequence[Hashable]) -> Hashable:
    """Return the column with a usual name of a role, None if an optional role has none."""
    usual = _usual(role, names)
    required = role in ("user", "item")
    if len(usual) > 1:
        none = "" if role in _NEEDED else f", or ignore them with {role}=None"
        raise InvalidDataError(
            f"several columns could be the {role}: {_listed(usual)}. Choose one with {role}={none}",
            argument=role,
        )
    if not usual and required:
        raise InvalidDataError(
            f"no column for the {role} was recognized. The columns are {_listed(names)}; choose "
            f"one with {role}=",
            argument=role,
        )
    return usual[0] if usual else None


def _check_left_over(
    role: str, ignored: Sequence[Hashable], type_of: Callable[[Hashable], Any]
) -> None:
    """Raise if a column of numbers may hold the values that nobody named."""
    doubtful = [
        column
        for column in ignored
        if role_of(column) in (None, "score")
        and not (isinstance(column, str) and _names_no_value(column))
        and is_number(type_of(column))
    ]
    if doubtful:
        subject = "column {} contains" if len(doubtful) == 1 else "columns {} contain"
        raise InvalidDataError(
            f"no column for the {role} was recognized, but {subject.format(_listed(doubtful))} "
            f"numbers. Choose one with {role}={doubtful[0]!r}, or count every row as 1 with "
            f"{role}=None",
            argument=role,
            column=doubtful[0],
        )


def _names_no_value(column: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.partition(":")[0])  # of userId
    return _NO_VALUE.fullmatch(words.lower()) is not None


def _listed(names: Sequence[Hashable]) -> str:
    return ", ".join(map(repr, names))
