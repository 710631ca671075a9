"""`Views`: what the lists of an evaluation show of groups, of ranks and of single users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError
from .breakdown import break_down, deviation_between
from .curves import precision_recall
from .explain import explain, row_of_user
from .item_names import with_names
from .scores import Scores

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import pandas as pd

    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..metrics.aligned import Aligned
    from .block import BlockResult
    from .curves import PrecisionRecall
    from .item_names import ItemNames


class Views(Scores):
    """The numbers of an evaluation, and what its lists show where they were kept."""

    #: Makes the list of a user again, where it was not kept.
    _relist: Callable[[Hashable], Aligned] | None = None

    @property
    def rankings(self) -> Rankings:
        """The lists, aligned with the relevance."""
        return self._lists("rankings").aligned.rankings

    @property
    def relevance(self) -> Relevance:
        """The relevance, aligned with the lists."""
        return self._lists("relevance").aligned.relevance

    def _lists(self, what: str) -> BlockResult:
        """Return the block of all users, or raise if its lists were not kept."""
        if self._block is None:
            raise InvalidDataError(
                f"{what} needs the lists, which were not kept; evaluate in memory: matrices or "
                "frames, without memory=, client= and keep='totals'; of a saved evaluation, "
                "compare(by=) and plots.by_group know groups of users"
            )
        return self._block

    def by(self, groups: Any, *, bands: int = 4) -> pd.DataFrame:
        """Break every metric down by groups of users, or by how popular the items are.

        Parameters
        ----------
        groups : {"activity", "popularity"}, or sequence, mapping, Series, table or Path of labels
            A label for each user, in order or keyed by user; a table with a column of users, as
            `by` of `sparse_eval.compare` takes. "activity" groups users by their
            number of training items, those without any being "cold". "popularity" divides not
            the users but the relevant items, by their number of training users, and shows the
            metrics that can be computed for a part of the relevant items: recall, hit_rate.
        bands : int
            How many bands "activity" (about as many users each) and "popularity" (about as many
            training interactions each) make at most.

        Returns
        -------
        pandas.DataFrame
            One row for each group and metric (index ``group``, ``metric``): ``mean``, ``std``,
            ``n_users``; for "popularity" also ``n_items`` of the band and ``n_relevant``, its
            relevant items of the evaluated users.

        Raises
        ------
        InvalidDataError
            If an evaluated user has no group, groups do not fit the users, or the lists were not
            kept.
        InvalidMetricError
            If "activity" or "popularity" is given without `train`, or "popularity" without a
            metric that it can divide.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[0, 1], [1, 0], [2, 0]])
        >>> ev = se.evaluate(lists, csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]]), "mrr@2")
        >>> ev.by(["new", "old", "old"])[["mean", "n_users"]]
                      mean  n_users
        group metric
        new   mrr@2   1.00        1
        old   mrr@2   0.25        2
        """
        return break_down(self._lists("by()"), groups, bands)

    def deviation(self, groups: Any, *, bands: int = 4) -> pd.DataFrame:
        """Return how far groups of users are apart in every metric, on average over their pairs.

        Parameters
        ----------
        groups : "activity", or sequence, mapping or Series of labels
            As in `by`.
        bands : int
            As in `by`.

        Returns
        -------
        pandas.DataFrame
            One row for each metric: ``deviation``, the mean absolute difference between the means
            of two groups; ``chance``, what that would be on average if users of all groups had the
            same mean, and only their values spread as they do (NaN for metrics without values for
            each user, and with a group of a single user); ``n_groups`` and ``n_users`` for whom
            the metric is defined. NaN with fewer than two groups.

        Raises
        ------
        InvalidDataError, InvalidMetricError
            As from `by`, or if `groups` is "popularity".

        See Also
        --------
        by : The means of the groups.

        Notes
        -----
        The mean absolute deviation (MAD) of Zhu et al. [1]_ and Deldjoo et al. [2]_, with ndcg the
        UserMADranking of Elliot. Groups that do not differ have one above 0, because means of some
        users are not those of all: of as many users each, it is `chance` whatever their number.

        References
        ----------
        .. [1] Z. Zhu, X. Hu and J. Caverlee, "Fairness-Aware Tensor-Based Recommendation", CIKM
           2018. doi:10.1145/3269206.3271795
        .. [2] Y. Deldjoo, V. W. Anelli, H. Zamani, A. Bellogín and T. Di Noia, "A Flexible
           Framework for Evaluating User and Item Fairness in Recommender Systems", User Modeling
           and User-Adapted Interaction 31, 2021. doi:10.1007/s11257-020-09285-1

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[0, 1], [1, 0], [2, 0]])
        >>> ev = se.evaluate(lists, csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]]), "mrr@2")
        >>> ev.deviation(["new", "old", "old"])[["deviation", "n_groups", "n_users"]]
                deviation  n_groups  n_users
        metric
        mrr@2        0.75         2        3
        """
        return deviation_between(self._lists("deviation()"), groups, bands)

    def precision_recall(self, k: int | None = None) -> PrecisionRecall:
        """Return precision and recall at every rank, averaged over the evaluated users.

        Parameters
        ----------
        k : int, optional
            The last rank, at least 1; by default that of the longest list.

        Returns
        -------
        PrecisionRecall

        Raises
        ------
        InvalidDataError
            If `k` is not a whole number of at least 1, positions are uncertain
            (``ties="average"``), or the lists were not kept.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> ev = se.evaluate(se.Rankings.from_topk([[2, 0, 1]]), csr_matrix([[1, 1, 0]]), "map")
        >>> ev.precision_recall().to_frame()
              precision  recall
        rank
        1      0.000000     0.0
        2      0.500000     0.5
        3      0.666667     1.0
        """
        return precision_recall(self._lists("precision_recall()"), k)

    def explain(self, user: Hashable, *, item_names: ItemNames | None = None) -> pd.DataFrame:
        """Show where one user's dcg comes from.

        Parameters
        ----------
        user : hashable
            The user's label, or the row number where there are no labels.
        item_names : mapping, Series, table or path, optional
            What to show beside each item, by its label or column number: a name each, or every
            column of a table that is indexed by item or has a column ``item``. The labels of a CSV
            file are text.

        Returns
        -------
        pandas.DataFrame
            The list in its order, one row for each item: ``rank``, ``item`` (label or column
            number), its names if there are `item_names`, ``gain``, ``discount`` (the convention's,
            1 / log2(rank + 1) by default; for tied items its expectation), ``contribution``
            (gain · discount) and ``cumulative``. Then the relevant items that are not in the list,
            the largest gain first, with no rank and no contribution.

        Raises
        ------
        InvalidDataError
            If there is no such user, `item_names` is something else or has none of the items, or
            the lists were neither kept nor can be made again: of matrices in memory, the user's
            list is, also with ``keep="totals"``.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[4, 2]])
        >>> ev = se.evaluate(lists, csr_matrix([[0, 0, 3, 1, 0]]), "ndcg@2")
        >>> titles = {2: "Alien", 3: "Brazil", 4: "Clue"}
        >>> ev.explain(0, item_names=titles)[["rank", "item", "name", "gain", "contribution"]]
           rank  item    name  gain  contribution
        0     1     4    Clue   0.0      0.000000
        1     2     2   Alien   3.0      1.892789
        2  <NA>     3  Brazil   1.0      0.000000
        """
        if self._block is None and self._relist is not None:
            explained = explain(self._relist(user), 0)
        else:
            block = self._lists("explain()")
            row = row_of_user(user, block.labels, len(block.n_relevant))
            explained = explain(block.aligned, row)
        return explained if item_names is None else with_names(explained, item_names)
