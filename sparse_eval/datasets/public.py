"""Loading public data sets in their own formats: adjacency lists, MIND, MovieLens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from scipy.sparse import csr_matrix

from ..core.arguments import check_choice
from ..core.atomic_files import as_input
from ..errors import InvalidFileError
from ..inputs.column_values import UNDATED, bad_row
from ..inputs.encoded_rows import encode_texts
from ..inputs.formats import CsvOptions
from ..inputs.input_files import check_lines, naming, read_lines, shorten
from ..inputs.tables import open_table, read_whole
from .interactions import Interactions, read_interactions

if TYPE_CHECKING:
    from ..core.types import Integers, PathLike
    from ..inputs.requests import Requests


def load_adjacency(
    path: PathLike,
    *,
    counts: bool | None = None,
    encoding: str | None = None,
) -> Interactions:
    r"""Read a file whose lines are ``user item item …``, separated by white space.

    A line may begin with the number of its items instead of a user, as in CiteULike's files. Then
    the first line is user 0, the second user 1, and so on.

    If all ids are integers (without leading zeros), labels are int64, otherwise text. A user
    without items stays in the encoding. An item that is repeated on a line counts twice.

    Parameters
    ----------
    path : str or Path
        The file.
    counts : bool, optional
        Whether lines begin with the number of their items. By default they begin with a user, and
        it is an error if the first number of nearly every line counts the others.
    encoding : str, optional
        As in `load`.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidFileError
        If the file cannot be read, or has no interactions. If a line is a single id that contains
        ``,``, ``;``, ``|`` or ``::``: the file has a different separator. If a line does not have
        the number of items that it begins with, or nearly every line could have it and `counts` is
        not given.

    See Also
    --------
    sparse_eval.Holdout.from_frames : Read a training and a test set with one encoding.

    References
    ----------
    .. [1] X. Wang et al., "Neural graph collaborative filtering", SIGIR 2019.
       doi:10.1145/3331184.3331267
    .. [2] X. He et al., "LightGCN: Simplifying and powering graph convolution network for
       recommendation", SIGIR 2020. doi:10.1145/3397271.3401063

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("0 10 20\n1 20\n")
    ...     load_adjacency(path)
    Interactions(2 users × 2 items, 3 events)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    path = as_input(path)
    lines = pc.utf8_trim_whitespace(read_lines(path, encoding or "utf-8-sig"))
    numbers = np.flatnonzero(pc.not_equal(lines, "").to_numpy(zero_copy_only=False))
    lines = lines.take(pa.array(numbers))
    fields = pc.utf8_split_whitespace(lines)
    sizes = pc.list_value_length(fields).to_numpy() - 1
    first = pc.list_element(fields, 0)
    other = pc.and_(pc.equal(sizes, 0), pc.match_substring_regex(first, "[,;|]|::"))
    message = "expected ids separated by spaces, found none; correct"
    check_lines(other, message, path, lines, numbers)
    is_count = pc.equal(first, pa.array(sizes).cast(pa.large_string()))
    if counts is None and 10 * pc.sum(is_count).as_py() > 9 * len(lines):
        raise InvalidFileError(
            "the first number of nearly every line could be a user or the number of its items. "
            "Pass counts= to choose",
            path,
            argument="counts",
        )
    if counts:
        message = "expected the number of the items at the start; correct"
        check_lines(pc.invert(is_count), message, path, lines, numbers)
        first = pa.array(numbers).cast(pa.large_string())
    is_item = np.ones(len(sizes) + int(sizes.sum()), bool)
    is_item[np.cumsum(np.append(0, sizes[:-1] + 1))] = False
    items = pc.list_flatten(fields).filter(pa.array(is_item))
    if not len(items):
        raise InvalidFileError("there are no interactions: no user has an item", path)
    user_codes, users = encode_texts(first, numbers=True)
    item_codes, item_labels = encode_texts(items, numbers=True)
    return Interactions(
        user_codes=np.repeat(user_codes, sizes),
        item_codes=item_codes,
        values=np.ones(len(items)),
        timestamps=None,
        users=users,
        items=item_labels,
        recognized={"user": "line number"} if counts else {},
    )


MIND_FILE = "behaviors.tsv"
_MIND_FIELDS = ("impression id", "user", "time", "history", "impressions")


@overload
def load_mind(
    path: PathLike,
    *,
    history: bool = ...,
    by: Literal["user"] = ...,
    on_bad_lines: str = ...,
) -> Interactions: ...


@overload
def load_mind(path: PathLike, *, by: Literal["request"], on_bad_lines: str = ...) -> Requests: ...


def load_mind(
    path: PathLike,
    *,
    history: bool = True,
    by: Literal["user", "request"] = "user",
    on_bad_lines: str = "error",
) -> Interactions | Requests:
    r"""Read MIND's ``behaviors.tsv``.

    A line is an impression: its id, the user, the time, the news that the user read before (the
    history, maybe empty), and the news shown. Shown news end in ``-1`` if clicked and ``-0`` if
    not.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that holds it.
    history : bool
        Whether to include the histories. A history is repeated on each line of its user; each news
        item in it counts once per user, with value 1. It is undated (`datasets.UNDATED`): the file
        only implies that it was read before the first impression. Every split by time trains on it.
    by : {"user", "request"}
        "request" returns `Requests`: the impressions, each with the news shown and clicked, without
        histories, to be ranked or evaluated one by one.
    on_bad_lines : {"error", "skip"}
        As in `load`.

    Returns
    -------
    Interactions or Requests
        Value 1 for a click, an explicit 0 for shown and not clicked, 1 for a history item. The
        impressions come first, in the order of the file, then the histories. Timestamps are unix
        seconds (``time_unit="s"``); the file's times are assumed to be UTC.

    Raises
    ------
    InvalidFileError
        If the file cannot be read or a line is malformed. All lines of MIND's test set are
        malformed, because its impressions have no ``-1`` and ``-0``.
    InvalidDataError
        If an option is unknown, or an impression is there twice in `Requests`.

    See Also
    --------
    load : Read a file or folder of any format.
    sparse_eval.split.temporal : Split by time.

    References
    ----------
    .. [1] F. Wu et al., "MIND: A large-scale dataset for news recommendation", ACL 2020.
       doi:10.18653/v1/2020.acl-main.331

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> line = "1\tU1\t11/11/2019 9:05:58 AM\tN30\tN20-1 N10-0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "behaviors.tsv").write_text(line)
    ...     interactions = load_mind(folder)
    >>> interactions
    Interactions(1 users × 3 items, 3 events, timestamps, 1 undated)
    >>> interactions.to_frame()
      user item  value            timestamp
    0   U1  N20    1.0           1573463158
    1   U1  N10    0.0           1573463158
    2   U1  N30    1.0 -9223372036854775808
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "behaviors.tsv").write_text(line)
    ...     load_mind(folder, by="request")
    <Requests: 1 requests of 1 users, 2 items, with the items shown>
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    check_choice("by", by, ["user", "request"])
    path = as_input(path)
    path = path / MIND_FILE if path.is_dir() else path
    options = CsvOptions(header=False, quoted=False, on_bad_lines=on_bad_lines)
    table = open_table(path, "tsv", options)
    if len(table.names) != len(_MIND_FIELDS):
        raise InvalidFileError(f"expected {len(_MIND_FIELDS)} fields in a line", path)
    rows = read_whole(table, dict(zip(_MIND_FIELDS, table.names, strict=True)))
    if rows is None:
        raise InvalidFileError("there are no interactions: all lines are malformed", path)
    with naming(path):
        user, written, past, shown = (
            rows[name].cast(pa.large_string()).combine_chunks() for name in _MIND_FIELDS[1:]
        )
        blank = pc.or_(pc.equal(pc.utf8_trim_whitespace(user), ""), pc.equal(shown, ""))
        if (row := blank.index(True).as_py()) >= 0:
            expected = "expected a user id and impressions like 'N123-1 N456-0'"
            raise bad_row(row, "user", f"{expected}, found {user[row].as_py()!r}")
        times = _unix_seconds(written)
        tokens, token_rows = _words(shown)
        codes = tokens.dictionary_encode()
        is_token = pc.match_substring_regex(codes.dictionary, "^.+-[01]$")
        if not pc.all(is_token).as_py():
            bad = is_token.take(codes.indices).index(False).as_py()
            raise bad_row(
                int(token_rows[bad]),
                "impressions",
                "expected impressions like 'N123-1 N456-0' (1: clicked, 0: not), found "
                f"{shorten(tokens[bad].as_py())}",
            )
    clicked = np.asarray(pc.ends_with(codes.dictionary, "1"))[codes.indices.to_numpy()]
    news = pc.utf8_slice_codeunits(codes.dictionary, 0, -2).take(codes.indices)
    if by == "request":
        from ..inputs.requests import Requests  # its imports take longer than reading a table

        shown_items = news.dictionary_encode()
        numbers, labels = encode_texts(shown_items.dictionary)
        bounds = np.searchsorted(token_rows, np.arange(len(user) + 1))
        items = numbers[shown_items.indices.to_numpy()]
        shape = (len(user), len(labels))
        matrix = csr_matrix((clicked.astype(np.float64), items, bounds), shape=shape)
        ids = rows[_MIND_FIELDS[0]].cast(pa.large_string())
        with naming(path):
            return Requests.from_csr(
                matrix, user.to_pylist(), requests=ids.to_pylist(), items=labels
            )
    # Every line of a user repeats the same history; splitting it once is enough.
    users = user.dictionary_encode()
    pairs = pa.table({"user": users.indices, "past": past, "row": np.arange(len(past))})
    firsts = pairs.group_by(["user", "past"], use_threads=False).aggregate([("row", "min")])
    firsts_of = np.sort(firsts["row_min"].to_numpy()) if history else np.zeros(0, np.int64)
    read, read_rows = _words(past.take(pa.array(firsts_of)))
    # Items have numbers in the order in which they first occur in the lines.
    places = np.concatenate([2 * token_rows, 2 * firsts_of[read_rows] + 1])
    order = np.argsort(places, kind="stable")
    every = pa.concat_arrays([news, read]).take(pa.array(order)).dictionary_encode()
    numbers = np.empty(len(order), np.int64)
    numbers[order] = every.indices.to_numpy()
    user_of = users.indices.to_numpy().astype(np.int64)
    # However often a history is repeated, and however it grows, a pair counts once.
    known = np.unique(user_of[firsts_of][read_rows] << 32 | numbers[len(news) :])
    user_codes, user_labels = encode_texts(users.dictionary)
    item_codes, item_labels = encode_texts(every.dictionary)
    return Interactions(
        user_codes=user_codes[np.concatenate([user_of[token_rows], known >> 32])],
        item_codes=item_codes[np.concatenate([numbers[: len(news)], known & (2**32 - 1)])],
        values=np.concatenate([clicked, np.ones(len(known))]),
        timestamps=np.concatenate([times[token_rows], np.full(len(known), UNDATED)]),
        users=user_labels,
        items=item_labels,
        n_skipped=table.parts[0].n_skipped,
        time_unit="s",
    )._without_unused_labels()


def _words(texts: Any) -> tuple[Any, Integers]:
    """Return the words of all texts, and the text that each is from."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pc.utf8_split_whitespace(texts)
    words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()
    kept = np.asarray(pc.not_equal(words, ""))
    return words.filter(pa.array(kept)), rows[kept].astype(np.int64)


def _unix_seconds(written: Any) -> Integers:
    """Return MIND's times, such as "11/11/2019 9:05:58 AM", as seconds since 1970."""
    import pandas as pd

    codes = written.dictionary_encode()
    texts = codes.dictionary.to_pandas()
    times = pd.to_datetime(texts, format="%m/%d/%Y %I:%M:%S %p", errors="coerce")
    if times.isna().any():
        bad = int(times.isna().to_numpy()[codes.indices.to_numpy()].argmax())
        found = shorten(written[bad].as_py())
        raise bad_row(bad, "time", f"expected a time like '11/11/2019 9:05:58 AM', found {found}")
    seconds = times.to_numpy().astype("datetime64[s]").astype(np.int64)
    return np.asarray(seconds[codes.indices.to_numpy()])


MOVIELENS_FILES = ("u.data", "ratings.dat", "ratings.csv")
_MOVIELENS_HEADER = ["userId", "movieId", "rating", "timestamp"]
_MOVIELENS_ROLES = ("user", "item", "value", "timestamp")


def load_movielens(path: PathLike, *, on_bad_lines: str = "error") -> Interactions:
    r"""Read MovieLens ratings.

    The first line decides the layout of user, item, rating and time. They are separated by tabs
    (``u.data`` of 100K), by ``::`` (``ratings.dat`` of 1M and 10M), or by commas below the header
    ``userId,movieId,rating,timestamp`` (``ratings.csv`` of the later editions).

    Parameters
    ----------
    path : str or Path
        The file, or a folder that holds one of ``u.data``, ``ratings.dat``, ``ratings.csv``.
    on_bad_lines : {"error", "skip"}
        As in `load`.

    Returns
    -------
    Interactions
        Values are the ratings, timestamps are unix seconds (``time_unit="s"``), labels are int64.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, has another layout, or a line is malformed.
    InvalidDataError
        If `on_bad_lines` is neither.

    See Also
    --------
    load : Read a file or folder of any format.

    References
    ----------
    .. [1] F. M. Harper and J. A. Konstan, "The MovieLens datasets: History and context",
       ACM Transactions on Interactive Intelligent Systems 5(4), 2015. doi:10.1145/2827872

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "ratings.dat").write_text("1::1193::5::978300760\n")
    ...     load_movielens(folder).to_frame()
       user  item  value  timestamp
    0     1  1193    5.0  978300760
    """
    path = as_input(path)
    if path.is_dir():
        files = [path / name for name in MOVIELENS_FILES if (path / name).is_file()]
        if len(files) != 1:
            listed = ", ".join(file.name for file in files) or "none of them"
            raise InvalidFileError(
                f"expected one of {', '.join(MOVIELENS_FILES)} in this folder, found {listed}", path
            )
        path = files[0]
    has_header = path.name == "ratings.csv" or path.suffix == ".csv"
    if has_header:
        table = open_table(path, options=CsvOptions(on_bad_lines=on_bad_lines))
        if list(table.names) != _MOVIELENS_HEADER:
            listed = ",".join(map(str, table.names))
            raise InvalidFileError(
                f"expected the header {','.join(_MOVIELENS_HEADER)}, found {shorten(listed)}", path
            )
        given = dict(zip(_MOVIELENS_ROLES, _MOVIELENS_HEADER, strict=True))
        return replace(read_interactions(table, given), time_unit="s")
    sep = "::" if path.suffix == ".dat" else "\t"
    options = CsvOptions(sep, header=False, quoted=False, on_bad_lines=on_bad_lines)
    table = open_table(path, "csv", options)
    if len(table.names) != len(_MOVIELENS_ROLES):
        raise InvalidFileError(
            f"expected {len(_MOVIELENS_ROLES)} fields in a line, separated by {sep!r}", path
        )
    columns = dict(zip(_MOVIELENS_ROLES, table.names, strict=True))
    interactions = read_interactions(table, columns)
    if interactions.users.is_text or interactions.items.is_text:
        raise InvalidFileError("expected whole numbers as ids of users and items", path)
    return replace(interactions, time_unit="s")
