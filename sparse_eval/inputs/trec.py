"""Runs and judgements in the files of TREC, which trec_eval and its kin read."""

from __future__ import annotations

import gzip
import io
import math
import re
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import numpy as np
import pandas as pd
from scipy import sparse

from ..core.files import replacing
from ..datasets.labels import sort_labels, vocabulary
from ..datasets.lines import MalformedLineError, numbered_lines, read_text, shorten
from ..errors import InvalidDataError, InvalidFileError
from .rankings import Rankings, Ties, check_ties
from .relevance import Relevance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["read_qrels", "read_run", "write_qrels", "write_run"]

_RUN = ("user", "Q0", "item", "rank", "score", "tag")
_QRELS = ("user", "iteration", "item", "gain")

#: What a field cannot hold: white space ends it, a NUL character is no text, a byte order mark is
#: lost at the start of a file, and half of a surrogate pair is not in UTF-8.
_UNFIT = re.compile("[\\s\0\ufeff\ud800-\udfff]")


def read_run(path: str | Path, ties: Ties = "item") -> Rankings:
    r"""Read lists from a run: lines ``user Q0 item rank score tag``, separated by white space.

    As trec_eval does, lists are ordered by score and the column of ranks is passed over. Scores
    are compared in 64 bits; older releases of trec_eval, and the Python package pytrec_eval, keep
    32 bits, in which scores that first differ in their eighth digit may be equal.

    Parameters
    ----------
    path : str or Path
        The file: UTF-8 text, ``.gz`` is unpacked. The lines of a user may stand anywhere.
    ties : {"item", "item_descending", "average"}
        Equal scores, as in `Rankings.from_scores`. Ids are text and compared by code points, also
        where they look like numbers: ``"item_descending"`` is the order of trec_eval.

    Returns
    -------
    Rankings
        Labelled with the ids, which are text.

    Raises
    ------
    InvalidFileError
        If the file cannot be read or is empty; a line does not have six fields or starts with
        ``#``, which may be a comment; a score is no finite number; or a user has an item on two
        lines.
    InvalidDataError
        If `ties` is something else.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sparse_eval import trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "als.run"
    ...     _ = path.write_text("u1 Q0 milk 1 0.5 als\nu1 Q0 eggs 2 0.9 als\n")
    ...     rankings = trec.read_run(path)
    >>> rankings.items_index[rankings.items].tolist()
    ['eggs', 'milk']
    """
    ties = check_ties(ties)
    table = _read(Path(path), _RUN, "score")
    rankings = Rankings.from_scores(table.matrix, ties=ties)
    return replace(rankings, users=table.users, items_index=table.items)


def read_qrels(path: str | Path, threshold: float | None = None) -> Relevance:
    r"""Read judgements: lines ``user iteration item gain``, separated by white space.

    A gain of 0 is an item that was judged and is not relevant. A gain below 0, which stands for
    junk, spam or a judgement left open, is read as 0: so trec_eval counts it too.

    Parameters
    ----------
    path : str or Path
        The file: UTF-8 text, ``.gz`` is unpacked. The lines of a user may stand anywhere.
    threshold : float, optional
        Gains below it are not relevant, as in `Relevance.from_csr`. By default any above 0 is.

    Returns
    -------
    Relevance
        Labelled with the ids, which are text; zeros are stored.

    Raises
    ------
    InvalidFileError
        If the file cannot be read or is empty; a line does not have four fields or starts with
        ``#``, which may be a comment; a gain is no finite number; or a user has an item on two
        lines.
    InvalidDataError
        If `threshold` is not a positive number or above every gain.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sparse_eval import trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "test.qrels"
    ...     _ = path.write_text("u1 0 milk 2\nu1 0 eggs 0\nu2 0 milk 1\n")
    ...     trec.read_qrels(path)
    <Relevance: 2 relevant items of 2 users, 2 users × 2 items>
    """
    path = Path(path)
    table = _read(path, _QRELS, "gain")
    gains = table.matrix
    gains.data = np.maximum(gains.data, 0.0)
    try:
        return Relevance.from_csr(gains, threshold, table.users, table.items)
    except InvalidDataError as error:
        raise InvalidDataError(f"{path}: {error}") from None


def write_run(rankings: Rankings, path: str | Path, tag: str = "sparse_eval") -> None:
    """Write lists as a run: lines ``user Q0 item rank score tag``.

    As score each item has its rank from the end of the list, so that trec_eval, which goes by
    scores, finds the order of the list: whole numbers are exact in its 32 bits too. A user
    without a list has no line.

    Parameters
    ----------
    rankings : Rankings
        The lists. Labels are written as text; without labels, row and column numbers are.
    path : str or Path
        The file to write; one that is there is replaced when the new one is complete. It is
        packed where the name ends in ``.gz``.
    tag : str
        The name of the run, one word.

    Raises
    ------
    InvalidDataError
        If a list has gaps, or uncertain positions (``ties="average"``), which such a file cannot
        hold; there is no list at all; a label or `tag` is empty or has white space in it, or a
        user's starts with ``#``; or two labels are the same as text.
    OutputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sparse_eval import Rankings, trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "als.run"
    ...     trec.write_run(Rankings.from_topk([[7, 2]]), path, tag="als")
    ...     print(path.read_text(), end="")
    0 Q0 7 1 2 als
    0 Q0 2 2 1 als
    """
    if not isinstance(tag, str):
        raise InvalidDataError(f"tag is {tag!r}; expected one word, such as 'als'")
    _check_field("tag", tag, tag)
    if rankings.last_positions is not None:
        raise InvalidDataError(
            'lists with ties="average" have no certain positions to write; make them with another '
            "ties="
        )
    _check_gaps(rankings)
    users, items = _texts(rankings.users, rankings.items_index, rankings.indptr, rankings.items)
    with _writing(path) as file:
        for user, entries in _rows(rankings.indptr):
            listed = rankings.items[entries].tolist()
            file.writelines(
                f"{users[user]} Q0 {items[item]} {rank} {len(listed) + 1 - rank} {tag}\n"
                for rank, item in enumerate(listed, start=1)
            )


def write_qrels(relevance: Relevance, path: str | Path) -> None:
    """Write gains as judgements: lines ``user iteration item gain``.

    The iteration, which nobody reads, is 0. An item that is known to be not relevant is written
    with gain 0; a user of whom nothing is known has no line. trec_eval itself reads whole numbers
    only: it cuts off what comes after the point.

    Parameters
    ----------
    relevance : Relevance
        The gains. Labels are written as text; without labels, row and column numbers are.
    path : str or Path
        The file to write; one that is there is replaced when the new one is complete. It is
        packed where the name ends in ``.gz``.

    Raises
    ------
    InvalidDataError
        If there are no gains at all; a label is empty or has white space in it, or a user's
        starts with ``#``; or two labels are the same as text.
    OutputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy.sparse import csr_matrix
    >>> from sparse_eval import Relevance, trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "test.qrels"
    ...     trec.write_qrels(Relevance.from_csr(csr_matrix([[0, 3], [0.5, 0]])), path)
    ...     print(path.read_text(), end="")
    0 0 1 3
    1 0 0 0.5
    """
    users, items = _texts(relevance.users, relevance.items_index, relevance.indptr, relevance.items)
    gains = {
        gain: str(int(gain)) if gain.is_integer() else repr(gain)
        for gain in np.unique(relevance.gains).tolist()
    }
    with _writing(path) as file:
        for user, entries in _rows(relevance.indptr):
            judged = zip(
                relevance.items[entries].tolist(), relevance.gains[entries].tolist(), strict=True
            )
            file.writelines(
                f"{users[user]} 0 {items[item]} {gains[gain]}\n" for item, gain in judged
            )


@dataclass(frozen=True)
class _Table:
    """The numbers of a file, (users, items), and the sorted ids."""

    matrix: Any
    users: pd.Index[Any]
    items: pd.Index[Any]


def _read(path: Path, fields: tuple[str, ...], number_field: str) -> _Table:
    """Read a file whose lines have a user, an item and a number."""
    user_at, item_at, number_at = map(fields.index, ("user", "item", number_field))
    users, items = vocabulary(), vocabulary()
    rows, columns, lines, values = array("q"), array("q"), array("q"), array("d")
    for number, line in numbered_lines(read_text(path)):
        try:
            found, value = _parse(line, fields, number_at)
        except MalformedLineError as error:
            raise InvalidFileError(f"{error}; found {shorten(line)}", path, number) from None
        rows.append(users[found[user_at]])
        columns.append(items[found[item_at]])
        lines.append(number)
        values.append(value)
    user_index, user_places = sort_labels(pd.Index(list(users)))
    item_index, item_places = sort_labels(pd.Index(list(items)))
    sorted_rows, sorted_columns = user_places[np.array(rows)], item_places[np.array(columns)]
    # Stable, so that of a pair that is there twice the lines ascend.
    order = np.lexsort((sorted_columns, sorted_rows))
    sorted_rows, sorted_columns = sorted_rows[order], sorted_columns[order]
    twice = (np.diff(sorted_rows) == 0) & (np.diff(sorted_columns) == 0)
    if twice.any():
        on_line = np.array(lines)[order]
        again = np.flatnonzero(twice) + 1
        at = int(again[on_line[again].argmin()])
        raise InvalidFileError(
            f"user {user_index[sorted_rows[at]]!r} has item {item_index[sorted_columns[at]]!r} "
            f"already, on line {on_line[at - 1]}; remove one of the two lines",
            path,
            int(on_line[at]),
        )
    indptr = np.concatenate(([0], np.cumsum(np.bincount(sorted_rows))))
    matrix = sparse.csr_matrix(
        (np.array(values)[order], sorted_columns, indptr), shape=(len(users), len(items))
    )
    return _Table(matrix, user_index, item_index)


def _parse(line: str, fields: tuple[str, ...], number_at: int) -> tuple[list[str], float]:
    """Return the fields of a line, and the one that is a number."""
    found = line.split()
    if found[0].startswith("#"):
        raise MalformedLineError(
            "a line that starts with # is a comment to recent releases of trec_eval and a user to "
            "older ones; remove the line or rename the user"
        )
    if len(found) != len(fields):
        raise MalformedLineError(
            f"expected {len(fields)} fields separated by white space ({' '.join(fields)}), not "
            f"{len(found)}; correct the line"
        )
    value = _number(found[number_at])
    if not math.isfinite(value):
        raise MalformedLineError(
            f"expected a finite number as {fields[number_at]}, not {shorten(found[number_at])}; "
            "correct the line"
        )
    return found, value


def _number(text: str) -> float:
    """Return a number, NaN where it is none; Python alone would read 1_000."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _check_gaps(rankings: Rankings) -> None:
    gapped = np.diff(rankings.indptr) != rankings.lengths
    if not gapped.any():
        return
    user = int(gapped.argmax())
    mine = slice(rankings.indptr[user], rankings.indptr[user + 1])
    held = set(rankings.positions[mine].tolist())
    missing = next(rank for rank in range(1, int(rankings.lengths[user]) + 1) if rank not in held)
    label = user if rankings.users is None else rankings.users[user]
    raise InvalidDataError(
        f"the list of user {label!r} has no item at position {missing}; a run cannot hold gaps, "
        "because whoever reads it moves up what comes after them; give complete lists"
    )


def _rows(indptr: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """Yield the rows that have entries, and where they are."""
    for row in np.flatnonzero(np.diff(indptr)).tolist():
        yield row, slice(indptr[row], indptr[row + 1])


def _texts(
    users: pd.Index[Any] | None,
    items: pd.Index[Any] | None,
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
) -> tuple[dict[int, str], dict[int, str]]:
    """Return what is written for each row that has entries, and for each of their columns."""
    if not len(columns):
        raise InvalidDataError("there is nothing to write: no user has an item")
    return (
        _fields(users, np.flatnonzero(np.diff(indptr)), "user"),
        _fields(items, np.unique(columns), "item"),
    )


def _fields(labels: pd.Index[Any] | None, codes: NDArray[Any], role: str) -> dict[int, str]:
    given = codes.tolist() if labels is None else labels.take(codes).tolist()
    texts = [str(label) for label in given]
    if labels is not None:
        for label, text in zip(given, texts, strict=True):
            _check_field(f"a label of the {role}s", text, label)
            if role == "user" and text.startswith("#"):
                raise InvalidDataError(
                    f"a label of the users is {label!r}, and a line that starts with # is a "
                    "comment to recent releases of trec_eval; expected labels that do not"
                )
        first: dict[str, Any] = {}
        for label, text in zip(given, texts, strict=True):
            if text in first:
                raise InvalidDataError(
                    f"the {role}s {first[text]!r} and {label!r} are both {text} as text; give "
                    "them labels that differ there"
                )
            first[text] = label
    return dict(zip(codes.tolist(), texts, strict=True))


def _check_field(what: str, text: str, given: object) -> None:
    if not text or _UNFIT.search(text):
        raise InvalidDataError(
            f"{what} is {given!r}, which a field of a TREC file cannot hold; expected at least one "
            "character and no white space, NUL, byte order mark or half of a surrogate pair"
        )


@contextmanager
def _writing(path: str | Path) -> Iterator[TextIO]:
    """Open a text file that comes to its place when it is complete, packed if it is a ``.gz``."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        binary: Any = file
        if temporary.suffix.lower() == ".gz":
            # Without a name and a time in its header, the same content is the same file.
            binary = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        with io.TextIOWrapper(cast(BinaryIO, binary), encoding="utf-8", newline="\n") as text:
            yield text
