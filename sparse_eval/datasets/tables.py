"""Loading tables whose columns have types: frames and Parquet files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.files import as_input
from ..core.frames import USUAL, Usual
from ..core.parquet import open_parquet, read_table
from ..errors import InvalidDataError, InvalidFileError
from .blocks import UnusualError
from .columns import choose_columns, missing_column, recognized, warn_of_zeros
from .interactions import Interactions, check_events
from .parquet_blocks import column_of, read_batches

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..core.types import PathLike
    from ..inputs.axes import Axis


#: The loader of frames, beside those of files.
load_frame = Interactions.from_frame


def load_parquet(
    path: PathLike,
    *,
    user: str | Usual = USUAL,
    item: str | Usual = USUAL,
    value: str | Usual | None = USUAL,
    timestamp: str | Usual | None = USUAL,
    event: str | None = None,
    keep: Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
) -> Interactions:
    """Read the needed columns of a Parquet file.

    Parameters
    ----------
    path : str or Path
        The file.
    user, item, value, timestamp, event : str or None, optional
        Names of the columns, as in `Interactions.from_frame`, which recognizes those that are not
        named.
    keep, users, items : optional
        As in `Interactions.from_frame`.

    Returns
    -------
    Interactions
        In the order of the rows.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a column does not exist or cannot be told, or a row is invalid.
    InvalidDataError
        If an option is invalid.

    Warns
    -----
    GuessWarning
        If ratings are 0, as in `Interactions.from_frame`.

    See Also
    --------
    load : Read a file or folder of any format.
    sparse_eval.Interactions.from_frame : The same for a frame.

    Examples
    --------
    >>> load_parquet("clicks.parquet", value="clicks")  # doctest: +SKIP
    Interactions(50,000 users × 51,277 items, 1,500,000 events)
    """
    from pyarrow import ArrowException

    path = as_input(path)
    given = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    check_events(event, keep)
    try:
        names = open_parquet(path).schema_arrow.names
        columns = choose_columns(names, given)
        needed = columns if event is None else {**columns, "event": event}
        for name in needed.values():
            if name not in names:
                raise InvalidDataError(missing_column(name, names))
        # What is at fault, and in which row, is told by the whole table.
        # IndexError: damaged rows may be of texts behind the last one.
        with suppress(ArrowException, InvalidDataError, OSError, UnusualError, IndexError):
            interactions, values = read_batches(path, needed).interactions(
                lambda role, ids: column_of(needed[role], ids), users, items, keep
            )
            if "value" in columns:
                warn_of_zeros(values, columns["value"], named=value is not USUAL)
            return replace(interactions, recognized=recognized(columns, given))
        return Interactions.from_frame(
            read_table(path, dict.fromkeys(needed.values())),
            user=user,
            item=item,
            value=value,
            timestamp=timestamp,
            event=event,
            keep=keep,
            users=users,
            items=items,
        )
    except InvalidFileError:
        raise
    except InvalidDataError as error:
        raise InvalidFileError(str(error), path) from error
    except (OSError, ArrowException, KeyError, TypeError, ValueError) as error:
        # What pyarrow and pandas raise on damaged files.
        raise InvalidFileError(f"not a readable Parquet file ({error})", path) from error
