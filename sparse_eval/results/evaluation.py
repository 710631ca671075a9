"""`Evaluation`: what `evaluate` returns."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.arguments import check_whole
from ..core.files import replacing, write_parquet
from ..core.formatting import as_html, number, plain, records
from ..core.hashing import digest, fingerprints
from ..core.versions import installed_version
from ..errors import InvalidDataError, InvalidMetricError
from ..metrics import Metric, Training, parse
from ..metrics.measure import (
    Plan,
    Setting,
    Sums,
    collect_hits,
    counts_apart,
    measure,
    value_of_lists,
    values_of_lists,
)
from .comparison import Comparison, Scored, compare
from .curves import PrecisionRecall
from .details import (
    describe_concentration,
    describe_curve,
    describe_example,
    pick_examples,
    versions,
)
from .explain import explain
from .intervals import Interval, check_level, interval_around, interval_of_mean, replicate
from .saved import SCHEMA, SavedEvaluation, check_about
from .segments import by_activity, by_label, by_popularity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..metrics import Convention
    from ..metrics.random_baseline import Expectation
    from .merged import MergedEvaluation
    from .parts import Retrieval

__all__ = ["Evaluation"]

#: A precision–recall curve has no more ranks.
MOST_RANKS = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Every metric for every user.

    Attributes
    ----------
    plans : tuple of Plan
        What was asked for, in that order, and how it is computed.
    sums : Sums
        The values for each user, NaN for one that is left out.
    overall : dict of Metric to float
        The metrics that have one number for all users.
    setting : Setting
        What was evaluated, the users and items of both sides aligned.
    n_relevant : ndarray of int64, shape (n_users,)
        Relevant items of each user.
    no_relevant : {"exclude", "zero", "judged"}
        What was done with users without relevant items.
    baselines : dict of str to Evaluation
        Evaluations of simple rankings beside this one, by name.
    retrieval : Retrieval or None
        How a model's rankings came about.
    """

    plans: tuple[Plan, ...]
    sums: Sums
    overall: dict[Metric, float]
    setting: Setting
    n_relevant: NDArray[np.int64]
    no_relevant: Literal["exclude", "zero", "judged"]
    baselines: dict[str, Evaluation] = field(default_factory=dict)
    retrieval: Retrieval | None = None

    @classmethod
    def of(
        cls,
        setting: Setting,
        plans: tuple[Plan, ...],
        sums: Sums,
        n_relevant: NDArray[np.int64],
        no_relevant: Literal["exclude", "zero", "judged"],
        *,
        alone: bool = True,
    ) -> Evaluation:
        """Leave out who does not count, and compute what is about all the others together.

        Unless they are not `alone`, but a block of users.
        """
        evaluation = cls(plans, sums, {}, setting, n_relevant, no_relevant)
        alike: dict[tuple[bool, bool], list[int]] = {}
        for row, plan in enumerate(plans):
            alike.setdefault(counts_apart(setting.convention, plan), []).append(row)
        for rows in alike.values():
            counted = evaluation._counted(plans[rows[0]])
            users, left_out = np.flatnonzero(counted), np.flatnonzero(~counted)
            not_yet = left_out[n_relevant[left_out] > 0]  # the others are NaN already
            for row in rows:
                swept = plans[row].definition.over == "statistics" and no_relevant == "exclude"
                sums.columns[row, not_yet if swept else left_out] = np.nan
                if alone and not plans[row].definition.per_user:
                    value = value_of_lists(setting, plans[row], users)
                    evaluation.overall[plans[row].metric] = value
        return evaluation

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What was asked for, in that order."""
        return tuple(plan.metric for plan in self.plans)

    @property
    def columns(self) -> NDArray[np.float64]:
        """The metrics that have a value for each user, shape (n_metrics, n_users)."""
        rows = [row for row, plan in enumerate(self.plans) if plan.per_user]
        return self.sums.columns if len(rows) == len(self.plans) else self.sums.columns[rows]

    @property
    def rankings(self) -> Rankings:
        """The lists, aligned with the relevance."""
        return self.setting.rankings

    @property
    def relevance(self) -> Relevance:
        """The relevance, aligned with the lists."""
        return self.setting.relevance

    @property
    def rules(self) -> Convention:
        """The convention."""
        return self.setting.convention

    @property
    def convention(self) -> str:
        """The name of the convention, "standard" where none was given."""
        return self.rules.name

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
        """Number of users left out: without a relevant item, or as the convention says."""
        return int(np.count_nonzero(~self._counted()))

    @property
    def n_users_of(self) -> dict[str, int]:
        """Number of users in the mean of each metric: fewer where it is not defined for some."""
        return {name: self._count(row) for row, name in enumerate(self.names)}

    @property
    def n_without_list(self) -> int:
        """Number of users with relevant items and no list.

        Each counts 0 in every mean, unless the convention leaves them out.
        """
        return int(np.count_nonzero((self.n_relevant > 0) & (self.rankings.lengths == 0)))

    @property
    def users(self) -> pd.Index[Any] | None:
        """The users' labels, None where they are row numbers."""
        return self.relevance.users

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Say of each user whether it is evaluated."""
        return self._counted()

    @cached_property
    def fingerprints(self) -> NDArray[np.uint64]:
        """A number for each user that stands for its relevant items and their gains."""
        relevance = self.relevance
        return fingerprints(
            relevance.indptr, relevance.items, relevance.gains, relevance.items_index
        )

    def is_per_user(self, name: str | Metric) -> bool:
        """Say whether a metric has a value for each user."""
        return self.plans[self._row_of(name)].per_user

    def higher_is_better(self, name: str | Metric) -> bool:
        """Say which way a metric is better."""
        return self.plans[self._row_of(name)].definition.higher_is_better

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
            If the metric is unknown, was not asked for, or has no values for single users.
        """
        row = self._row_of(name)
        if not self.plans[row].per_user:
            raise InvalidMetricError(
                f"{self.plans[row].metric} is one number for all users together; read it as "
                f"ev[{str(self.plans[row].metric)!r}]"
            )
        column: NDArray[np.float64] = self.sums.columns[row]
        column.flags.writeable = False
        return column

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        return self._value(self._row_of(name))

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric over the evaluated users, or its one number.

        Returns
        -------
        dict of str to float
            By canonical name, in the order asked for. Each sum is rounded once, so
            that it does not depend on the order of the users. NaN for a metric that is defined
            for none of them.
        """
        return {name: self._value(row) for row, name in enumerate(self.names)}

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``: label or row number).

        One column for each metric that has a value for each user; NaN for a user that is left
        out.
        """
        import pandas as pd  # not needed to evaluate, and slower to import than evaluating is

        users = self.users
        index = pd.RangeIndex(len(self.n_relevant)) if users is None else users
        names = [str(plan.metric) for plan in self.plans if plan.per_user]
        return pd.DataFrame(self.columns.T, index=index.rename("user"), columns=names)

    def replicates(self, name: str | Metric) -> NDArray[np.float64]:
        """Return a number about all users together for 100 samples of them.

        Parameters
        ----------
        name : str or Metric
            One without values for single users, such as coverage or a micro average.

        Returns
        -------
        ndarray of float64, shape (100,)
            Each sample is of as many users, drawn with replacement, always the same for as many
            users: what two evaluations of the same users return is paired. Of what was merged,
            shape (20,): one for each group of users, as far from each other as the standard error
            says; empty if there are too few users for as many groups.

        Raises
        ------
        InvalidMetricError
            If the metric is unknown, was not asked for, or has values for single users.
        """
        row = self._row_of(name)
        if self.plans[row].per_user:
            raise InvalidMetricError(
                f"{self.plans[row].metric} has a value for each user; see ev.values"
            )
        return self._replicates_of(row)

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Return the table to print.

        Parameters
        ----------
        level : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric: ``mean``; ``std`` of the users, with n − 1, NaN for a single
            user and for metrics without values for each user; the confidence interval of the mean
            over users like these, ``ci_low`` and ``ci_high``, and ``interval``, its kind: "t",
            Student's, for 200 users and more; "bca", a bias-corrected and accelerated bootstrap,
            for fewer (which holds the mean less often than it says with fewer than 30 users whose
            values are skewed: with 10 in 80 of 100 cases); "bootstrap", the standard error of
            bootstrap samples of the users, for metrics without values for each user; "none" for a
            single user; ``random``, the expectation under a random ranking of each user's
            candidates (the catalogue less what `train` says is seen), and ``random_se``, its
            standard error: 0 where the expectation is exact, otherwise that of ten seeded draws
            (0 too, should all ten agree); ``lift``, mean / random; the mean of each of
            `baselines`; ``n_users`` that count and ``n_skipped`` that are left out.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1.
        """
        import pandas as pd

        level = check_level(level)
        rows = []
        for row, expectation in enumerate(self._at_random):
            users = self._users(row)
            mean, std = self._value(row), _std(self.sums, self.plans[row], row, users)
            interval = self._interval(row, mean, level)
            lift = mean / expectation.mean if expectation.mean else math.nan
            others = [baseline._value(row) for baseline in self.baselines.values()]
            counts = (len(users), len(self.n_relevant) - len(users))
            rows.append((mean, std, *interval, *expectation, lift, *others, *counts))
        columns = ["mean", "std", "ci_low", "ci_high", "interval", "random", "random_se", "lift"]
        return pd.DataFrame(
            rows,
            index=pd.Index(self.names, name="metric"),
            columns=[*columns, *self.baselines, "n_users", "n_skipped"],
        )

    def _replicates_of(self, row: int) -> NDArray[np.float64]:
        if row not in self._replicates:
            self._replicate_like(row)
        return self._replicates[row]

    def _replicate_like(self, row: int) -> None:
        """Compute the replicates of a number about all users, and of all that can share samples."""
        users = self._users(row)
        if row in self.sums.denominators:
            parts = (self.sums.columns[row], self.sums.denominators[row])
            above, below = (values[users] for values in parts)
            self._replicates[row] = replicate(
                lambda times: (times * above).sum() / ((times * below).sum() or 1.0), len(users)
            )
            return
        alike = counts_apart(self.rules, self.plans[row])
        rows = [
            other
            for other, plan in enumerate(self.plans)
            if not plan.definition.per_user and counts_apart(self.rules, plan) == alike
        ]
        plans = [self.plans[other] for other in rows]
        found = replicate(
            # In the order of the users: their lists are read in order, five times as fast.
            lambda times: values_of_lists(self.setting, plans, np.repeat(users, times)),
            len(users),
        )
        self._replicates.update(zip(rows, found.T, strict=True))

    def _interval(self, row: int, mean: float, level: float) -> Interval:
        users = self._users(row)
        if self.plans[row].per_user:
            return interval_of_mean(self.sums.columns[row, users], level)
        replicates = self.replicates(self.plans[row].metric) if len(users) > 1 else np.zeros(0)
        return interval_around(mean, replicates, level)

    def compare(
        self,
        other: Scored,
        metrics: str | Iterable[str] | None = None,
        *,
        names: tuple[str, str] = ("this", "other"),
        test: Literal["t", "wilcoxon", "permutation"] = "t",
        correction: Literal["holm", "bh", "none"] = "holm",
        how: Literal["same", "intersection"] = "same",
        level: float = 0.95,
    ) -> Comparison:
        """Compare with another evaluation of the same users.

        Parameters
        ----------
        other : Evaluation
        names : pair of str
            What to call them.
        metrics, test, correction, how, level
            As of `sparse_eval.compare`, which compares more than two.

        Returns
        -------
        Comparison

        Raises
        ------
        InvalidDataError
            As from `sparse_eval.compare`.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> als = se.evaluate(se.Rankings.from_topk([[0, 1], [0, 1], [0, 1]]), held_out, "mrr@2")
        >>> bpr = se.evaluate(se.Rankings.from_topk([[0, 2], [1, 0], [2, 0]]), held_out, "mrr@2")
        >>> found = als.compare(bpr, names=("als", "bpr"))
        >>> found.table[["a", "b", "difference", "wins", "ties", "losses"]]
             a    b  difference  wins  ties  losses
        0  als  bpr    0.333333     2     1       0
        """
        return compare(
            dict(zip(names, (self, other), strict=True)),
            metrics,
            test=test,
            correction=correction,
            how=how,
            level=level,
        )

    def merge(self, *others: Evaluation) -> MergedEvaluation:
        """Return the evaluation of the users of several evaluations.

        Parameters
        ----------
        *others : Evaluation
            Of other users, for the same metrics. In any order, and merged or not: what is merged
            in another order, or from users who were cut into other blocks, has the same bits. A
            block that is there twice counts once.

        Returns
        -------
        MergedEvaluation
            Without the lists; with the values of each user if all have them.

        Raises
        ------
        InvalidDataError
            If metrics, conventions or versions differ, a user is in two blocks, or may be where
            its values were not kept and the blocks do not follow each other in the order of the
            labels (of text: by code points), or users of one have text as labels and those of
            another numbers.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> lists = [[0, 1], [1, 0], [0, 1]]
        >>> blocks = [
        ...     se.evaluate(
        ...         se.Rankings.from_topk(lists[a:b], shape=(b - a, 3)),
        ...         se.Relevance.from_csr(held_out[a:b], users=range(a, b)),
        ...         "mrr@2",
        ...     )
        ...     for a, b in ((0, 1), (1, 3))
        ... ]
        >>> blocks[1].merge(blocks[0])
        <MergedEvaluation: 3 users, 0 left out; mrr@2 0.6667>
        """
        from .merged import merge

        return merge((self, *others))

    def by(self, groups: Any, bands: int = 4) -> pd.DataFrame:
        """Break every metric down by groups of users, or by how popular the items are.

        Parameters
        ----------
        groups : {"activity", "popularity"}, or sequence, mapping or Series of labels
            A label for each user, in order or keyed by user. "activity" groups users by their
            number of training items, those without any being "cold". "popularity" divides not
            the users but the relevant items, by their number of training users, and shows the
            metrics that can be asked for a part of the relevant items: recall, hit_rate.
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
            If an evaluated user has no group, or groups do not fit the users.
        InvalidMetricError
            If "activity" or "popularity" is asked for without `train`, or "popularity" without a
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
        check_whole("bands", bands, 1, 1000)
        if isinstance(groups, str) and groups == "popularity":
            return self._by_popularity(bands)
        counted = self._counted()
        if isinstance(groups, str) and groups == "activity":
            counts = self._training(groups).user_counts[: len(self.n_relevant)]
            segments = by_activity(counts, counted, bands)
        elif isinstance(groups, str):
            raise InvalidDataError(
                f"groups is {groups!r}; expected 'activity', 'popularity' or a label for each user"
            )
        else:
            segments = by_label(groups, len(self.n_relevant), self.relevance.users, counted)
        rows = {}
        for code, name in enumerate(segments.names):
            mine = segments.codes == code
            for row, metric in enumerate(self.names):
                users = self._users(row)
                users = users[mine[users]]
                if len(users):
                    std = _std(self.sums, self.plans[row], row, users)
                    rows[name, metric] = (self._value_over(row, users), std, len(users))
        return _by_group(rows, ["mean", "std", "n_users"])

    def _by_popularity(self, bands: int) -> pd.DataFrame:
        plans = [plan for plan in self.plans if plan.definition.by_item]
        if not plans:
            raise InvalidMetricError(
                "none of the metrics can be divided by items; ask for recall or hit_rate"
            )
        segments = by_popularity(self._training("popularity").item_counts, bands)
        relevance = self.relevance
        rows = {}
        for code, name in enumerate(segments.names):
            kept = (segments.codes[relevance.items] == code) & (relevance.gains > 0)
            before = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
            part = replace(
                relevance,
                indptr=before[relevance.indptr],
                items=relevance.items[kept],
                gains=relevance.gains[kept],
            )
            setting = replace(self.setting, relevance=part)
            sums, n_relevant = measure(setting, plans)
            n_items = int(np.count_nonzero(segments.codes == code))
            for row, plan in enumerate(plans):
                users = np.flatnonzero(self._counted(plan) & (n_relevant > 0))
                if len(users):
                    numbers = (sums.mean(row, users), _std(sums, plan, row, users))
                    counts = (len(users), n_items, int(n_relevant[users].sum()))
                    rows[name, str(plan.metric)] = (*numbers, *counts)
        return _by_group(rows, ["mean", "std", "n_users", "n_items", "n_relevant"])

    def _training(self, what: str) -> Training:
        training = self.setting.context.training
        if training is None:
            raise InvalidMetricError(f"by({what!r}) needs train: give train= to the evaluation")
        return training

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
            If `k` is no whole number of at least 1, or positions are uncertain
            (``ties="average"``).

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
        if k is not None:
            check_whole("k", k, 1, MOST_RANKS)
        if self.rankings.last_positions is not None:
            raise InvalidDataError(
                'lists with ties="average" have no certain positions; use ties="item"'
            )
        longest = self._longest()
        if k is None and longest > MOST_RANKS:
            raise InvalidDataError(
                f"a list reaches position {longest}; give k, of at most {MOST_RANKS}"
            )
        depth = longest if k is None else k
        hits = collect_hits(self.setting, depth)
        return PrecisionRecall.of(depth, hits, self.n_relevant, np.flatnonzero(self._counted()))

    def _longest(self) -> int:
        return max(int(self.rankings.lengths.max(initial=0)), 1)

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
            number), ``gain``, ``discount`` (the convention's, 1 / log2(rank + 1) by default; for
            tied items its expectation), ``contribution`` (gain · discount) and ``cumulative``.
            Then the relevant items that are not in the list, the largest gain first, with no rank
            and no contribution.

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
        return explain(self.setting, self._row(user))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the per-user values, ready for JSON. The keys are stable."""
        summary = self.summary()
        return {
            "schema": SCHEMA,
            "sparse_eval": installed_version(),
            "n_users": self.n_users,
            "n_skipped": self.n_skipped,
            "n_without_list": self.n_without_list,
            "no_relevant": self.no_relevant,
            "convention": self.convention,
            "retrieval": self.retrieval and self.retrieval._asdict(),
            "metrics": {
                name: {key: plain(value) for key, value in row.items()}
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

    def snapshot(self, about: Mapping[str, Any] | None = None) -> SavedEvaluation:
        """Return the evaluation without its lists: what is compared, reported and saved.

        Parameters
        ----------
        about : mapping, optional
            What is to be remembered, such as hyperparameters, seeds and the commit: text, numbers,
            lists and dicts.

        Returns
        -------
        SavedEvaluation
            With what a report shows beside the numbers: breakdowns by activity and popularity
            (with `train`), precision and recall at every rank, how concentrated the
            recommendations are, a few users in depth, versions, and digests of the inputs.

        Raises
        ------
        InvalidDataError
            If `about` holds what JSON cannot.
        """
        taken = self._snapshot
        return replace(taken, content=taken.content | {"about": check_about(about)})

    @cached_property
    def _snapshot(self) -> SavedEvaluation:
        training = self.setting.context.training
        seen = {}
        if training is not None:
            seen["seen"] = training.user_counts[: len(self.n_relevant)]
        content = {
            "by": self._breakdowns(),
            "precision_recall": self._curve(),
            "concentration": describe_concentration(
                self.rankings,
                np.flatnonzero(self.counted),
                max((metric.cutoff or 0 for metric in self.metrics), default=0) or MOST_RANKS,
                self.setting.context.n_items,
            ),
            "examples": self._examples(),
            "inputs": self._inputs(),
        }
        return self._saved(seen, content)

    def _saved(self, known: dict[str, NDArray[Any]], lists: dict[str, Any]) -> SavedEvaluation:
        """Return what is saved, with what else is known of users, and of their lists."""
        of_all = [name for name in self.names if not self.is_per_user(name)]
        table = self.per_user
        columns = {
            "evaluated": self.counted,
            "relevant": self.n_relevant,
            "fingerprint": self.fingerprints,
            **known,
        }
        taken = {"user", "seen", *columns}.intersection(self.names)
        if taken:
            raise InvalidDataError(
                f"a metric is called {min(taken)!r}, as a column of what is saved; register it "
                "under another name"
            )
        for place, (name, column) in enumerate(columns.items()):
            table.insert(place, name, column)
        content = {
            "per_user": [name for name in self.names if name not in of_all],
            "replicates": {name: list(map(plain, self.replicates(name))) for name in of_all},
            "higher_is_better": {name: self.higher_is_better(name) for name in self.names},
            "versions": versions(),
            "about": {},
        }
        return SavedEvaluation(self.to_dict() | content | lists, table, self.users is not None)

    def save(
        self,
        folder: str | Path,
        users: Literal["csv", "parquet"] = "csv",
        about: Mapping[str, Any] | None = None,
    ) -> Path:
        """Save everything but the lists, for `load_evaluation`.

        Parameters
        ----------
        folder : str or Path
            Made if missing. ``summary.json`` and ``per_user.csv`` or ``per_user.parquet`` are
            written there; `sparse_eval.results.saved` describes them.
        users : {"csv", "parquet"}
            The kind of the table of the users. Parquet is smaller and quicker, and needs pyarrow.
        about : mapping, optional
            As of `snapshot`.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InvalidDataError
            If `users` is of another kind, the labels of the users are neither all text nor all
            whole numbers, or `about` holds what JSON cannot.
        MissingExtraError
            If pyarrow is not installed, for "parquet".
        OutputError
            If a file cannot be written.
        """
        return self.snapshot(about).save(folder, users)

    def _breakdowns(self) -> dict[str, list[dict[str, Any]]]:
        """Return means by activity and by popularity, as far as that is possible."""
        if self.setting.context.training is None:
            return {}
        ways = {"activity": True, "popularity": any(p.definition.by_item for p in self.plans)}
        return {
            way: records(self.by(way).reset_index()) for way, possible in ways.items() if possible
        }

    def _curve(self) -> dict[str, Any] | None:
        if self.rankings.last_positions is not None:
            return None
        return describe_curve(self.precision_recall(min(self._longest(), MOST_RANKS)))

    def _examples(self) -> list[dict[str, Any]]:
        """Show a few users in depth: some that all models share, and the best of this one."""
        rows = dict.fromkeys(pick_examples(self.n_relevant, self.counted, self.fingerprints), "")
        for row, plan in enumerate(self.plans):
            values = self.sums.columns[row]
            if plan.per_user and np.isfinite(values).any():
                sign = 1 if plan.definition.higher_is_better else -1
                rows.setdefault(int(np.nanargmax(sign * values)), f"best by {plan.metric}")
                break
        labels, lists = self.relevance.users, self.rankings
        whole = np.diff(lists.indptr) == lists.lengths
        return [
            describe_example(
                row if labels is None else labels[row],
                explain(self.setting, row),
                bool(whole[row]),
                why,
            )
            for row, why in rows.items()
        ]

    def _inputs(self) -> dict[str, Any]:
        """Return the size of each input and a digest of it, aligned as it was evaluated."""
        lists, truth, training = self.rankings, self.relevance, self.setting.context.training
        parts: dict[str, tuple[Any, ...]] = {
            "rankings": (lists.shape, lists.indptr, lists.items, lists.positions),
            "relevance": (truth.shape, truth.indptr, truth.items, truth.gains),
        }
        if training is not None:
            shape = (len(training.indptr) - 1, training.n_items)
            parts["train"] = (shape, training.indptr, training.items)
        return {
            name: {"shape": list(part[0]), "entries": len(part[2]), "sha256": digest(*part)}
            for name, part in parts.items()
        }

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
        with replacing(path) as temporary:
            write_parquet(self.per_user, temporary, index=True)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self[name]:.4f}" for name in self.names[:4])
        more = f", and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<Evaluation: {self.n_users} users, {self.n_skipped} left out; {shown}{more}>"

    def _repr_html_(self) -> str:
        import pandas as pd

        # Without what `summary` has of random lists, which may take longer than the evaluation.
        rows = []
        for row in range(len(self.plans)):
            mean = self._value(row)
            interval = self._interval(row, mean, 0.95)
            counted = f"{self._count(row):,}"
            rows.append((*map(number, (mean, interval.low, interval.high)), counted))
        columns = ["mean", "ci_low", "ci_high", "n_users"]
        table = pd.DataFrame(rows, index=pd.Index(self.names, name="metric"), columns=columns)
        heading = f"Evaluation: {self.n_users:,} users, {self.n_skipped:,} left out"
        return as_html(heading, table, index=True, where=".summary()")

    @cached_property
    def _at_random(self) -> list[Expectation]:
        from ..metrics.random_baseline import (
            expect_at_random,  # of no use to those who only read the means
        )

        users = [self._users(row) for row in range(len(self.plans))]
        return expect_at_random(self.setting, list(self.plans), users)

    def _counted(self, plan: Plan | None = None) -> NDArray[np.bool_]:
        """Say of each user whether it counts for a plan, or in general."""
        rules = self.rules
        every_list, every_user = (False, False) if plan is None else counts_apart(rules, plan)
        has_list = self.rankings.lengths > 0
        if every_list:
            return has_list
        if self.no_relevant == "zero":
            counted = np.ones(len(has_list), bool)
        elif self.no_relevant == "judged":
            counted = np.diff(self.relevance.indptr) > 0
        else:
            counted = self.n_relevant > 0
        if rules.without_list == "exclude" and not every_user:
            counted &= has_list
        return counted

    def _count(self, row: int) -> int:
        return len(self._users(row))

    def _users(self, row: int) -> NDArray[np.int64]:
        """Return the users that count for a plan, its value being defined for them."""
        counted = self._counted(self.plans[row])
        if self.plans[row].per_user:
            counted &= ~np.isnan(self.sums.columns[row])
        return np.flatnonzero(counted)

    def _value(self, row: int) -> float:
        plan = self.plans[row]
        if not plan.definition.per_user:
            return self.overall[plan.metric]
        return self.sums.mean(row, self._users(row))

    def _value_over(self, row: int, users: NDArray[np.int64]) -> float:
        plan = self.plans[row]
        if not plan.definition.per_user:
            return value_of_lists(self.setting, plan, users)
        return self.sums.mean(row, users)

    def _row_of(self, name: str | Metric) -> int:
        spelling = str(name)
        if spelling in self._rows:  # mostly it is spelt as it is printed
            return self._rows[spelling]
        found = parse(spelling, self.rules.options)
        if len(found) != 1 or str(found[0]) not in self._rows:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; there are {', '.join(self.names)}"
            )
        return self._rows[str(found[0])]

    @cached_property
    def _replicates(self) -> dict[int, NDArray[np.float64]]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

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


def _std(sums: Sums, plan: Plan, row: int, users: NDArray[np.int64]) -> float:
    """Return the standard deviation of a plan's values, with n − 1; NaN where there is none."""
    return sums.moments(row, users, squares=True).std if plan.per_user else math.nan


def _by_group(rows: dict[tuple[Any, str], tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    index = pd.MultiIndex.from_tuples(list(rows), names=["group", "metric"])
    return pd.DataFrame(list(rows.values()), index=index, columns=columns)
