"""`Evaluation`: what `evaluate` returns."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .errors import InvalidDataError, InvalidMetricError, MissingExtraError
from .files import replacing
from .metrics import Metric, parse

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from .matrices import Rankings, Relevance

__all__ = ["Evaluation"]

#: Version of what `Evaluation.to_json` writes.
SCHEMA = 1


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Every metric for every user.

    Attributes
    ----------
    metrics : tuple of Metric
        What was asked for, in that order.
    columns : ndarray of float64, shape (n_metrics, n_users)
        NaN for a user that is left out.
    rankings, relevance : Rankings, Relevance
        What was evaluated, the users and items of both sides aligned.
    n_relevant : ndarray of int64, shape (n_users,)
        Relevant items of each user.
    no_relevant : {"exclude", "zero"}
        What was done with users without relevant items.
    """

    metrics: tuple[Metric, ...]
    columns: NDArray[np.float64]
    rankings: Rankings
    relevance: Relevance
    n_relevant: NDArray[np.int64]
    no_relevant: Literal["exclude", "zero"]

    @property
    def names(self) -> list[str]:
        """The metrics' canonical names, in the order they were asked for."""
        return [str(metric) for metric in self.metrics]

    @property
    def n_users(self) -> int:
        """Number of users that count in every mean."""
        return len(self.n_relevant) - self.n_skipped

    @property
    def n_skipped(self) -> int:
        """Number of users left out because they have no relevant item."""
        if self.no_relevant == "zero":
            return 0
        return int(np.count_nonzero(self.n_relevant == 0))

    @property
    def n_without_list(self) -> int:
        """Number of users with relevant items and no list: each counts 0 in every mean."""
        return int(np.count_nonzero((self.n_relevant > 0) & (self.rankings.lengths == 0)))

    def values(self, name: str | Metric) -> NDArray[np.float64]:
        """Return one metric of every user.

        Parameters
        ----------
        name : str or Metric
            In any spelling of the grammar that means a metric which was asked for.

        Returns
        -------
        ndarray of float64, shape (n_users,)
            NaN for a user that is left out. Read-only.

        Raises
        ------
        InvalidMetricError
            If the metric is unknown or was not asked for.
        """
        found = parse(str(name))
        if len(found) != 1 or found[0] not in self.metrics:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; there are {', '.join(self.names)}"
            )
        column: NDArray[np.float64] = self.columns[self.metrics.index(found[0])]
        column.flags.writeable = False
        return column

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users."""
        return _mean(self._evaluated(name))

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric over the evaluated users.

        Returns
        -------
        dict of str to float
            By canonical name, in the order asked for. Each sum is rounded once (`math.fsum`), so
            that it does not depend on the order of the users.
        """
        return {name: self[name] for name in self.names}

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``: label or row number), one column for each metric.

        NaN for a user that is left out.
        """
        import pandas as pd  # not needed to evaluate, and slower to import than evaluating is

        users = self.relevance.users
        index = pd.RangeIndex(len(self.n_relevant)) if users is None else users
        return pd.DataFrame(self.columns.T, index=index.rename("user"), columns=self.names)

    def summary(self) -> pd.DataFrame:
        """Return the table to print.

        Returns
        -------
        pandas.DataFrame
            One row for each metric: ``mean``, ``std`` (of the users, with n − 1; NaN for a single
            user), ``n_users`` evaluated and ``n_skipped`` left out.
        """
        import pandas as pd

        rows = []
        for name in self.names:
            values = self._evaluated(name)
            with np.errstate(over="ignore", invalid="ignore"):  # gains whose squares overflow
                std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
            rows.append((_mean(values), std, self.n_users, self.n_skipped))
        columns = ["mean", "std", "n_users", "n_skipped"]
        return pd.DataFrame(rows, index=pd.Index(self.names, name="metric"), columns=columns)

    def explain(self, user: Hashable) -> pd.DataFrame:
        """Show where one user's dcg comes from.

        Parameters
        ----------
        user : hashable
            The user's label, or the row number where there are no labels.

        Returns
        -------
        pandas.DataFrame
            The list in its order, one row for each item: ``rank``, ``item`` (label or column
            number), ``gain``, ``discount`` (1 / log2(rank + 1), or its expectation for tied
            items), ``contribution`` (gain · discount) and ``cumulative``. Then the relevant items
            that are not in the list, the largest gain first, with no rank and no contribution.

        Raises
        ------
        InvalidDataError
            If there is no such user.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[4, 2]])
        >>> ev = se.evaluate(lists, csr_matrix([[0, 0, 3, 1, 0]]), "ndcg@2")
        >>> ev.explain(0)[["rank", "item", "gain", "contribution"]]
           rank  item  gain  contribution
        0     1     4   0.0      0.000000
        1     2     2   3.0      1.892789
        2  <NA>     3   1.0      0.000000
        """
        import pandas as pd

        row = self._row(user)
        mine = slice(self.rankings.indptr[row], self.rankings.indptr[row + 1])
        items = self.rankings.items[mine]
        first = self.rankings.positions[mine]
        last = first if self.rankings.last_positions is None else self.rankings.last_positions[mine]
        theirs = slice(self.relevance.indptr[row], self.relevance.indptr[row + 1])
        gain_of = dict(
            zip(
                self.relevance.items[theirs].tolist(),
                self.relevance.gains[theirs].tolist(),
                strict=True,
            )
        )
        gains = [gain_of.get(item, 0.0) for item in items.tolist()]
        length = int(self.rankings.lengths[row])
        discounts = [
            math.fsum(1.0 / math.log2(rank + 1) for rank in range(a, min(b, length) + 1))
            / (b - a + 1)
            for a, b in zip(first.tolist(), last.tolist(), strict=True)
        ]
        listed = set(items.tolist())
        missed = sorted(
            (item for item, gain in gain_of.items() if gain > 0 and item not in listed),
            key=lambda item: -gain_of[item],
        )
        contributions = np.array(gains) * np.array(discounts)
        absent = np.full(len(missed), np.nan)
        nothing = np.zeros(len(missed))
        total = contributions.sum() if len(contributions) else 0.0
        return pd.DataFrame(
            {
                "rank": pd.array([*first.tolist(), *[pd.NA] * len(missed)], dtype="Int64"),
                "item": [self._item_label(item) for item in [*items.tolist(), *missed]],
                "gain": [*gains, *(gain_of[item] for item in missed)],
                "discount": np.concatenate((discounts, absent)),
                "contribution": np.concatenate((contributions, nothing)),
                "cumulative": np.concatenate((np.cumsum(contributions), nothing + total)),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the per-user values, ready for JSON. The keys are stable."""
        summary = self.summary()
        return {
            "schema": SCHEMA,
            "sparse_eval": version("sparse_eval"),
            "n_users": self.n_users,
            "n_skipped": self.n_skipped,
            "n_without_list": self.n_without_list,
            "no_relevant": self.no_relevant,
            "metrics": {
                name: {
                    "mean": float(row["mean"]),
                    "std": float(row["std"]) if math.isfinite(row["std"]) else None,
                }
                for name, row in summary.iterrows()
            },
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return `to_dict` as JSON, and write it to `path` if there is one.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"
        if path is not None:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return text

    def to_csv(self, path: str | Path) -> None:
        """Write `per_user` as CSV, every value in full.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        with replacing(path) as temporary:
            self.per_user.to_csv(temporary)

    def to_parquet(self, path: str | Path) -> None:
        """Write `per_user` as Parquet.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidDataError
            If the users' labels are of types that Parquet has no common one for.
        OutputError
            If the file cannot be written.
        """
        try:
            from pyarrow import ArrowException
        except ImportError:
            raise MissingExtraError(
                'Parquet needs pyarrow: pip install "sparse_eval[parquet]", or use to_csv'
            ) from None
        with replacing(path) as temporary:
            try:
                self.per_user.to_parquet(temporary)
            except ArrowException as error:
                raise InvalidDataError(
                    f"the labels of the users do not fit into one Parquet column ({error}); use "
                    "to_csv"
                ) from error

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self[name]:.4f}" for name in self.names[:4])
        more = f", and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<Evaluation: {self.n_users} users, {self.n_skipped} left out; {shown}{more}>"

    def _evaluated(self, name: str | Metric) -> NDArray[np.float64]:
        values = self.values(name)
        return values if self.no_relevant == "zero" else values[self.n_relevant > 0]

    def _row(self, user: Hashable) -> int:
        labels = self.relevance.users
        n_users = len(self.n_relevant)
        if labels is not None:
            import pandas as pd

            if not isinstance(user, Hashable) or user not in labels:
                raise InvalidDataError(f"there is no user {user!r} among the {n_users} labels")
            return int(labels.get_indexer(pd.Index([user], tupleize_cols=False))[0])
        if not isinstance(user, int | np.integer) or not 0 <= user < n_users:
            raise InvalidDataError(
                f"there is no user {user!r}; expected a row number from 0 to {n_users - 1}"
            )
        return int(user)

    def _item_label(self, item: int) -> Any:
        # The side with more columns has the labels of both.
        sides = (self.relevance, self.rankings)
        for labels in (side.items_index for side in sides):
            if labels is not None and item < len(labels):
                return labels[item]
        return item


def _mean(values: NDArray[np.float64]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # of numbers near the largest float
        return math.fsum(values / len(values))
