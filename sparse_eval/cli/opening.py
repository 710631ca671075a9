"""Open the files of the command evaluate: lists, relevant items, and what is known of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError, InvalidFileError, shown
from ..inputs.columns import USUAL, Columns, Usual, describe_columns, role_of
from ..inputs.frames import to_pandas
from ..inputs.kinds import Kind, kind_of
from ..inputs.tables import Table, naming, open_table
from .echo import echo

if TYPE_CHECKING:
    from pathlib import Path

    from ..inputs.scan import RankingsScan, RelevanceScan
    from ..inputs.scores import Ties
    from .table_options import TableColumns


def open_lists(path: Path, columns: TableColumns, ties: Ties | None, usual_ties: Ties) -> Any:
    """Return what `evaluate` takes as predictions; `usual_ties` are those of the convention."""
    from ..inputs.paths import open_rankings
    from ..inputs.rankings import Rankings
    from ..inputs.scan import RankingsScan

    kind = kind_of(path)
    order = usual_ties if ties is None else ties
    if kind is Kind.RUN:
        return open_rankings(path, ties=order)
    if not kind.is_table:
        if ties is not None:
            raise _without_scores(path)
        return path
    scan = RankingsScan(path, *columns.ids, columns.rank, columns.score)
    table, chosen = _chosen(scan, path)
    if order == "item":
        return scan  # which need not fit into memory
    if ties is not None and "rank" in chosen.names:
        raise _without_scores(path)
    return Rankings.of_table(table, chosen, order)


def open_gains(path: Path, columns: TableColumns, threshold: float | None = None) -> Any:
    """Return what `evaluate` takes as validation."""
    from ..inputs.paths import open_relevance
    from ..inputs.relevance import Relevance
    from ..inputs.scan import RelevanceScan
    from ..inputs.trec import read_qrels

    kind = kind_of(path)
    if kind.is_table:
        gain = USUAL if columns.gain is None else columns.gain or None
        scan = RelevanceScan(path, *columns.ids, gain)
        table, chosen = _chosen(scan, path)
        return scan if threshold is None else Relevance.of_table(table, chosen, threshold)
    if threshold is None:
        return path
    if kind is Kind.QRELS:
        return read_qrels(path, threshold=threshold)
    with naming(path):
        return Relevance.from_csr(open_relevance(path), threshold=threshold)


def open_train(path: Path, columns: TableColumns, *, values: bool = True) -> Any:
    """Return what `evaluate` takes as train, or without `values` as candidates."""
    from ..evaluation.evaluate import open_side
    from ..inputs.scan import RelevanceScan

    if not kind_of(path).is_table:
        return path
    gain: str | Usual | None = USUAL
    if not values or columns.gain == "":
        gain = None
    elif columns.gain in open_table(path).names:  # otherwise only the validation data have it
        gain = columns.gain
    return open_side(RelevanceScan(path, *columns.ids, gain))


def _chosen(scan: RankingsScan | RelevanceScan, path: Path) -> tuple[Table, Columns]:
    """Return a table and its columns, and show those that were recognized and ignored."""
    table = open_table(path)
    chosen = scan.choose(table)
    if notes := describe_columns(chosen.recognized, chosen.ignored):
        echo(f"{shown(path)}: {', '.join(notes)}", err=True)
    return table, chosen


def open_groups(path: Path, columns: TableColumns, of_lists: Kind) -> Any:
    """Return what `ItemData` takes as groups: a Series, a frame of weights, or a matrix."""
    from ..inputs.npy import read_sparse

    if path.suffix != ".npy" and kind_of(path) is Kind.MATRIX:
        return read_sparse(path)
    return open_propensity(path, columns, of_lists)


def open_propensity(path: Path, columns: TableColumns, of_lists: Kind) -> Any:
    """Return what `ItemData` takes as propensity: a Series of the one column, or an array."""
    table = open_vectors(path, columns, of_lists)
    if not hasattr(table, "columns") or len(table.columns) > 1:
        return table
    return table[table.columns[0]]


def open_vectors(path: Path, columns: TableColumns, of_lists: Kind) -> Any:
    """Return what `ItemData` takes as vectors: a frame by item, or an array."""
    from ..inputs.npy import open_array

    if path.suffix == ".npy":
        return open_array(path)
    kind = kind_of(path)
    if not kind.is_table:
        raise InvalidFileError(f"holds {kind.value}; expected a table of items, or .npy", path)
    frame = to_pandas(path)
    item = columns.ids[1]
    usual = [name for name in frame if role_of(name) == "item"]
    if columns.item is None and item not in frame and len(usual) == 1:
        item = str(usual[0])
    if item not in frame or len(frame.columns) < 2:
        has = ", ".join(map(str, frame.columns))
        raise InvalidFileError(
            f"has the columns {has}; expected {item!r} (or name it with --item) and others", path
        )
    if of_lists is Kind.RUN:  # whose ids are text
        frame[item] = frame[item].astype(str)
    return frame.set_index(item)


def _without_scores(path: Path) -> InvalidDataError:
    return InvalidDataError(f"--ties orders equal scores, and {path} holds ranks; leave it out")
