"""Reading and writing ranked lists and relevance judgements in TREC's file formats.

Lines are read as trec_eval reads them. A run has six fields; further words belong to the tag, which
is not read. Judgements have exactly four fields. A line that starts with ``#`` is a comment since
trec_eval 10. Before, it was the line of a user whose name starts with ``#``, or malformed. It is
therefore skipped if it cannot be a user's line, and raises an error if it could be.
"""

from __future__ import annotations

import gzip
import io
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.arrays import describe
from ..core.atomic_files import as_path, replacing
from ..core.csr import sort_distinct
from ..errors import InvalidDataError, InvalidFileError
from .axes import label_of
from .encoded_rows import EncodedRows, encode_texts
from .input_files import check_lines, naming, read_lines
from .rankings import Rankings, Ties, check_ties
from .relevance import Relevance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..core.types import AnyArray, PathLike
    from .axes import Axis

__all__ = ["read_qrels", "read_run", "write_qrels", "write_run"]

_RUN = ("user", "Q0", "item", "rank", "score", "tag")
_QRELS = ("user", "iteration", "item", "gain")

#: Characters that a field cannot contain. White space ends it, and a NUL character is not text. A
#: byte order mark is lost at the start of a file, and an unpaired surrogate has no UTF-8 encoding.
_UNFIT = re.compile("[\\s\0\ufeff\ud800-\udfff]")


def read_run(path: PathLike, *, ties: Ties = "item") -> Rankings:
    r"""Read ranked lists from a run: lines ``user Q0 item rank score tag``.

    As in trec_eval, lists are ordered by score and the ranks are ignored. Scores are compared in 64
    bits. Older releases of trec_eval, and the Python package pytrec_eval, keep 32 bits: scores that
    first differ in their eighth digit may be equal there. The tag may be several words. Blank lines
    are skipped, and so are comments: lines that start with ``#``.

    Parameters
    ----------
    path : str or Path
        The file: UTF-8 text, fields separated by white space; ``.gz`` is decompressed. The lines
        of a user may be in any order and need not be adjacent.
    ties : {"item", "item_descending", "average", "pessimistic"}
        The order of equal scores, as in `Rankings.from_scores`. Ids are compared as text, by code
        points, even if they look like numbers; ``"item_descending"`` is the order of trec_eval.

    Returns
    -------
    Rankings
        Labelled with the ids, which are text.

    Raises
    ------
    InvalidFileError
        If the file cannot be read or is empty, or a line has fewer than six fields. If a comment
        could be the line of a user, as in trec_eval before release 10. If a score is not a finite
        number, or a user has the same item on two lines.
    InvalidDataError
        If `ties` is none of these.

    See Also
    --------
    write_run : Write such a file.
    read_qrels : Read the judgements to evaluate the run against.
    sparse_eval.Rankings.from_frame : Encode lists in a pandas frame.

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
    path = as_path(path)
    rows = _read(path, _RUN, "score")
    with naming(path):
        return Rankings.of_rows(rows, ranked=False, ties=ties)


def read_qrels(path: PathLike, *, threshold: float | None = None) -> Relevance:
    r"""Read relevance judgements: lines ``user iteration item gain``.

    A gain of 0 means that the item was judged and is not relevant. A negative gain marks junk, spam
    or a missing judgement; as in trec_eval, the item does not count as judged. Its line is dropped;
    if its user has no other line, it counts as a judgement of 0. Comments are as in `read_run`.

    Parameters
    ----------
    path : str or Path
        The file, as in `read_run`.
    threshold : float, optional
        Gains below it are not relevant, as in `Relevance.from_csr`; by default, any gain above 0
        is relevant.

    Returns
    -------
    Relevance
        Labelled with the ids, which are text; zeros are stored.

    Raises
    ------
    InvalidFileError
        If a line does not have four fields, a gain is not a finite number, or for the other
        reasons of `read_run`.
    InvalidDataError
        If `threshold` is not a positive number or exceeds every gain.

    See Also
    --------
    write_qrels : Write such a file.
    sparse_eval.Relevance.from_frame : Encode gains in a pandas frame.

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
    path = as_path(path)
    rows = _read(path, _QRELS, "gain")
    codes, axes = (rows.user_codes, rows.item_codes), (rows.users, rows.items)
    gains: Any = rows.numbers
    with naming(path):
        sort_distinct(*codes, *axes)
    is_judged = gains >= 0
    n_judged = np.bincount(codes[0][is_judged], minlength=len(axes[0]))
    # The negative gains of a user who has no other become zeros.
    kept = is_judged | (n_judged[codes[0]] == 0)
    parts = (np.maximum(gains[kept], 0.0), (codes[0][kept], codes[1][kept]))
    matrix = sparse.csr_matrix(parts, shape=tuple(map(len, axes)))
    return Relevance.from_csr(matrix, threshold=threshold, users=axes[0], items=axes[1])


def write_run(rankings: Rankings, path: PathLike, *, tag: str = "sparse_eval") -> None:
    """Write ranked lists as a run: lines ``user Q0 item rank score tag``.

    The score of an item is its rank from the end of the list, so trec_eval, which sorts by score,
    restores the order. Integers are exact in its 32 bits too. A user without a list has no line.

    Parameters
    ----------
    rankings : Rankings
        The lists. Labels are written as text; without labels, row and column numbers are.
    path : str or Path
        The file to write. An existing file is replaced when the new one is complete. The file is
        compressed if the name ends in ``.gz``.
    tag : str
        The name of the run, one word.

    Raises
    ------
    InvalidDataError
        If there is no list, or a list has gaps or tied positions (``ties="average"``), which the
        format does not support. If a label or `tag` is empty or contains white space, or the label
        of a user starts with ``#``.
    OutputError
        If the file cannot be written.

    See Also
    --------
    read_run : Read such a file.

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
    _check_field("tag", tag, tag)
    if not isinstance(rankings, Rankings):
        raise InvalidDataError(f"rankings is {describe(rankings)}; expected Rankings")
    rankings._check_certain()
    gapped = np.diff(rankings.indptr) != rankings.lengths
    if gapped.any():
        label = label_of(rankings.users, int(gapped.argmax()))
        raise InvalidDataError(
            f"the list of user {label!r} has positions without an item. A run cannot contain gaps, "
            "because its readers move up later items; pass complete lists",
            user=label,
        )
    _write(
        path,
        rankings,
        lambda user, items, _: (
            f"{user} Q0 {item} {rank} {len(items) + 1 - rank} {tag}\n"
            for rank, item in enumerate(items, start=1)
        ),
    )


def write_qrels(relevance: Relevance, path: PathLike) -> None:
    """Write gains as relevance judgements: lines ``user iteration item gain``.

    The iteration, which no program reads, is 0. A stored gain of 0 is written too; a user without
    stored gains has no line. trec_eval itself reads integers only: it truncates fractions.

    Parameters
    ----------
    relevance : Relevance
        The gains, labelled or not, as in `write_run`.
    path : str or Path
        The file to write, as in `write_run`.

    Raises
    ------
    InvalidDataError
        If there are no gains at all, or a label cannot be written, as in `write_run`.
    OutputError
        If the file cannot be written.

    See Also
    --------
    read_qrels : Read such a file.

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
    if not isinstance(relevance, Relevance):
        raise InvalidDataError(f"relevance is {describe(relevance)}; expected a Relevance")
    _write(
        path,
        relevance,
        lambda user, items, gains: (
            f"{user} 0 {item} {repr(gain).removesuffix('.0')}\n"
            for item, gain in zip(items, gains.tolist(), strict=True)
        ),
    )


def _read(path: Path, names: tuple[str, ...], number_name: str) -> EncodedRows:
    """Return the numbers of a file by user and item, whose labels are sorted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.ascii_trim_whitespace(read_lines(path))
    fields = pc.ascii_split_whitespace(lines)  # as isspace of C
    sizes = pc.list_value_length(fields).to_numpy()
    starts_comment = np.asarray(pc.starts_with(lines, "#"))
    is_blank = np.asarray(pc.equal(pc.list_element(fields, 0), ""))
    is_row = (sizes == len(names)) | ((sizes > len(names)) & (names[-1] == "tag"))
    rows = np.flatnonzero(is_row & ~is_blank)
    cells = fields.take(pa.array(rows))
    user, item, number = (
        pc.list_element(cells, names.index(name)) for name in ("user", "item", number_name)
    )
    try:
        values = number.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        values = np.array([_number(text) for text in number.to_pylist()])
    is_row[rows] = np.isfinite(values)
    expected = (
        f"expected {len(names)} fields separated by white space ({' '.join(names)}), with a finite "
        f"number as {number_name}; correct"
    )
    check_lines(~(is_row | is_blank | starts_comment), expected, path, lines)
    doubtful = (
        "a line that starts with # is a comment in trec_eval 10, but a user of that name in older "
        "releases. Remove the line or rename the user; found"
    )
    check_lines(is_row & starts_comment & ~is_blank, doubtful, path, lines)
    kept = ~starts_comment[rows]
    if not kept.any():
        raise InvalidFileError("contains only comments", path)
    chosen = pa.array(kept)
    (user_codes, user_labels), (item_codes, item_labels) = (
        encode_texts(column.filter(chosen)) for column in (user, item)
    )
    labels = user_labels.marked(True), item_labels.marked(True)
    return EncodedRows(*labels, user_codes, item_codes, values[kept])


def _number(text: str) -> float:
    """Return a text as a number as Arrow reads it, NaN if it is none."""
    import pyarrow as pa

    try:
        return float(pa.scalar(text).cast(pa.float64()).as_py())
    except pa.ArrowInvalid:
        return math.nan


def _write(
    path: PathLike, given: Rankings | Relevance, lines_of: Callable[..., Iterable[str]]
) -> None:
    """Write the lines of each user, made of the user, the items, and the gains if there are any.

    They are compressed if the name ends in ``.gz``.
    """
    if not len(given.items):
        raise InvalidDataError("there is nothing to write: no user has an item")
    users = _label_texts(given.users, np.flatnonzero(np.diff(given.indptr)), "user")
    items = _label_texts(given.items_index, np.unique(given.items), "item")
    with replacing(path) as temporary, temporary.open("wb") as file:
        # Without a name and a time in the header, equal content gives equal files.
        is_packed = temporary.suffix.lower() == ".gz"
        packed: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed else file
        with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            for row, user in users.items():
                entries = slice(given.indptr[row], given.indptr[row + 1])
                listed = [items[item] for item in given.items[entries].tolist()]
                gains = None if isinstance(given, Rankings) else given.gains[entries]
                text.writelines(lines_of(user, listed, gains))


def _label_texts(labels: Axis | None, codes: AnyArray, role: str) -> dict[int, str]:
    """Return the text of each code's label, or of the code itself if there are no labels."""
    if labels is None:
        return {code: str(code) for code in codes.tolist()}
    texts = list(map(str, labels[codes].tolist()))
    for text, label in zip(texts, labels[codes].tolist(), strict=True):
        _check_field(f"a label of the {role}s", text, label)
    return dict(zip(codes.tolist(), texts, strict=True))


def _check_field(what: str, text: str, given: object) -> None:
    """Raise if a text cannot be a field."""
    is_comment = what.endswith("users") and text.startswith("#")  # to trec_eval 10
    if not text or is_comment or _UNFIT.search(text):
        raise InvalidDataError(
            f"{what} is {given!r}, which is not valid in a TREC file. Expected at least one "
            "character and no white space, NUL, byte order mark or unpaired surrogate, and no # "
            "in front of a user"
        )
