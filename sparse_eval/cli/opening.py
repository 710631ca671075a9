"""Open the files of the command evaluate: lists, relevant items, and data of items."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError, InvalidFileError, shown
from ..inputs.columns import USUAL, Columns, Usual, describe_columns, role_of
from ..inputs.paths import Kind, kind_of
from ..inputs.scores import Ties
from ..inputs.tables import open_table, to_pandas
from ..inputs.text import naming
from .loading import is_split
from .options import Rare
from .terminal import note

if TYPE_CHECKING:
    from ..inputs.item_data import ItemData
    from ..inputs.tables import RankingsScan, RelevanceScan


@dataclass(frozen=True)
class Tables:
    """How lists and relevant items are read.

    Parameters
    ----------
    user
        Tables: column of users. [recognized]
    item
        Tables: column of items. [recognized]
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
        Gains below it are not relevant. [any gain above 0 is]
    """

    user: str | None = None
    item: str | None = None
    rank: Rare[str | None] = None
    score: Rare[str | None] = None
    gain: Rare[str | None] = None
    ties: Rare[Ties | None] = None
    threshold: Rare[float | None] = None

    @property
    def ids(self) -> dict[str, str]:
        """The columns of users and of items."""
        return {"user": self.user or "user", "item": self.item or "item"}

    def lists(self, path: Path, usual_ties: Ties) -> Any:
        """Return the predictions of `evaluate`; the convention has `usual_ties`."""
        from ..inputs.paths import open_side
        from ..inputs.rankings import Rankings
        from ..inputs.trec import read_run

        kind = kind_of(path)
        order = self.ties or usual_ties
        if kind is Kind.RUN:
            return read_run(path, ties=order)
        given: dict[str, Any] = {**self.ids, "rank": self.rank, "score": self.score}
        scan = Rankings.scan(path, **given) if kind.is_table else None
        chosen = None if scan is None else _chosen(scan, path)
        if order == "item" and scan is not None:
            return scan  # which need not fit into memory
        if self.ties is not None and (chosen is None or "rank" in chosen.names):
            raise InvalidDataError(
                f"--ties orders equal scores, and {path} holds ranks; leave it out"
            )
        return path if scan is None else open_side(scan, order)

    def gains(self, path: Path) -> Any:
        """Return the validation data of `evaluate`."""
        from ..datasets.split import Holdout
        from ..inputs.relevance import Relevance
        from ..models.inputs import open_relevance

        truth: Any = path
        if is_split(path):
            truth = Holdout.load(path).validation
        elif kind_of(path).is_table:
            gain = USUAL if self.gain is None else self.gain or None
            truth = Relevance.scan(path, **self.ids, gain=gain)
            _chosen(truth, path)
        if self.threshold is None:
            return truth
        with naming(path):
            return Relevance.from_csr(open_relevance(truth).to_csr(), threshold=self.threshold)

    def train(self, path: Path | None, *, values: bool = True) -> Any:
        """Return the training data of `evaluate`, or without `values` the candidates."""
        from ..datasets.split import Holdout
        from ..inputs.paths import open_side
        from ..inputs.relevance import Relevance

        if path is not None and is_split(path):
            return Holdout.load(path).seen
        if path is None or not kind_of(path).is_table:
            return path
        gain: str | Usual | None = USUAL
        if not values or self.gain == "":
            gain = None
        elif self.gain in open_table(path).names:  # otherwise only the validation data have it
            gain = self.gain
        return open_side(Relevance.scan(path, **self.ids, gain=gain))


def _chosen(scan: RankingsScan | RelevanceScan, path: Path) -> Columns:
    """Return the columns of a table, and show those that were recognized and ignored."""
    chosen = scan.choose(open_table(path))
    if notes := describe_columns(chosen.recognized, chosen.ignored):
        note(f"{shown(path)}: {', '.join(notes)}")
    return chosen


@dataclass(frozen=True)
class Items:
    """Groups, vectors and propensities of items.

    Parameters
    ----------
    item_groups
        The group of each item: a table with a row for each item and one other column, or columns of
        weights; .npy, or .npz of items × groups.
    item_vectors
        A vector for each item: a table with columns of numbers, or .npy.
    propensity
        The chance that each item was observed where it is relevant, for weights=ips and snips: a
        table with one other column, or .npy.
    """

    item_groups: Rare[Path | None] = None
    item_vectors: Rare[Path | None] = None
    propensity: Rare[Path | None] = None

    def open(self, tables: Tables, lists: Path) -> ItemData:
        """Read them, with ids of the same kind as the ids of the lists."""
        from ..inputs.item_data import ItemData
        from ..inputs.npy import open_array, read_sparse

        def read(path: Path | None, *, wide: bool = False) -> Any:
            """Return an array, a matrix, or a frame by item; a Series of one column unless wide."""
            if path is None or path.suffix == ".npy":
                return path and open_array(path)
            if path == self.item_groups and kind_of(path) is Kind.MATRIX:
                return read_sparse(path)
            frame = _by_item(path, tables.item)
            if kind_of(lists) is Kind.RUN:  # whose ids are text
                frame.index = frame.index.astype(str)
            return frame if wide or len(frame.columns) > 1 else frame.iloc[:, 0]

        groups, vectors = read(self.item_groups), read(self.item_vectors, wide=True)
        return ItemData(groups=groups, vectors=vectors, propensity=read(self.propensity))


def _by_item(path: Path, named: str | None) -> Any:
    """Return a table of items as a frame by item."""
    kind = kind_of(path)
    if not kind.is_table:
        raise InvalidFileError(f"holds {kind.value}; expected a table of items, or .npy", path)
    frame = to_pandas(path)
    item = named or "item"
    usual = [name for name in frame if role_of(name) == "item"]
    if named is None and item not in frame and len(usual) == 1:
        item = str(usual[0])
    if item not in frame or len(frame.columns) < 2:
        has = ", ".join(map(str, frame.columns))
        raise InvalidFileError(
            f"has the columns {has}; expected {item!r} (or name it with --item) and others", path
        )
    return frame.set_index(item)
