"""`Evaluation`: the result of `evaluate`."""

from __future__ import annotations

import math
from collections import UserDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, Self

from ..core.arguments import check_fraction, check_number, show_spelling
from ..core.arrays import describe
from ..core.atomic_files import as_input, as_path
from ..core.formatting import escaped
from ..core.messages import no_attribute, warn
from ..errors import InvalidDataError
from .decisions import Margin, users_needed
from .distribution import count_losers, describe_distribution, paired
from .explain import explain, row_of_user, with_names
from .intervals import LEVEL
from .measured_block import Measured
from .partial_results import distinct_parts, merge_parts
from .precision_recall import precision_recall
from .record import make_record, to_dict
from .saving import load, savable_of, save, summaries_in
from .segments import break_down, deviation_between
from .summary import COLUMNS, few_users, show, summarize

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, MutableMapping

    import pandas as pd

    from ..core.types import Floats, PathLike
    from ..inputs.rankings import Rankings
    from ..metrics import Metric
    from ..metrics.aligned import Aligned
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .counts import Retrieval
    from .decisions import Size
    from .partial_results import Part
    from .precision_recall import PrecisionRecall
    from .saving import Savable
    from .segments import ItemNames, UserSegments
    from .user_values import UserValues

_IN_PER_USER = "per_user.parquet in the folder of ev.save(folder), column"
_IN_SUMMARY = "summary.json in the folder of ev.save(folder), where traits of each metric have"

#: What replaces former attributes.
_INSTEAD = {
    "compare": 'se.compare({"a": ev, "b": other})',
    "convention": "ev.request.convention.name",
    "columns": "ev.per_user",
    "counted": f"{_IN_PER_USER} 'evaluated'",
    "higher_is_better": f"{_IN_SUMMARY} 'higher_is_better'",
    "is_per_user": f"{_IN_SUMMARY} 'per_user'",
    "metrics": "ev.request.metrics",
    "names": "list(ev)",
    "n_skipped": 'ev.to_dict()["n_skipped"]',
    "n_users_of": 'ev.summary()["n_users"]',
    "no_relevant": "ev.request.no_relevant",
    "random": 'ev.summary()[["random", "random_se"]]',
    "record": "ev.save(folder), which writes it to summary.json",
    "relevance": "the validation data",
    "replicates": "the interval in ev.summary()",
    "seen": 'ev.to_dict(), with "n_cold", "n_relevant_seen" and "n_listed_seen"',
    "ci": 'ev.summary()[["ci_low", "ci_high"]]',
    "plot": "ev.to_frame()['mean'].plot(), or se.plots",
    "to_csv": "ev.per_user.to_csv(path)",
    "to_json": "json.dumps(ev.to_dict())",
    "to_pandas": "ev.to_frame() or ev.per_user",
    "to_polars": "polars.from_pandas(ev.to_frame().reset_index())",
    "to_parquet": "ev.per_user.to_parquet(path)",
    "users": "ev.per_user.index",
    **{
        name: f'ev.to_dict()["{name}"]'
        for name in (
            "candidates",
            "n_without_list",
            "n_cold",
            "n_relevant_seen",
            "n_listed_seen",
            "propensities",
        )
    },
    "fingerprints": f"{_IN_PER_USER} 'fingerprint'",
    "n_relevant": f"{_IN_PER_USER} 'relevant'",
    "n_seen": f"{_IN_PER_USER} 'seen'",
    **dict.fromkeys(("all_users", "evaluated_users"), "ev.per_user.index"),
    **dict.fromkeys(("has_lists", "has_values"), "ev.rankings or ev.per_user, and handle errors"),
}


class Again(Protocol):
    """The inputs of an evaluation, to compute numbers again that it did not keep."""

    def random_totals(self) -> RandomTotals | None:
        """Return the random baseline, None if the inputs cannot be read again."""

    def one_user(self, user: Hashable) -> Aligned | None:
        """Return the list and the relevant items of a user, None if these cannot be found."""


class Evaluation:
    """Every metric of some users, each user's values and the lists, as far as these were kept.

    Printed, and in a notebook, it is a table of the means with their intervals, next to the
    baselines. These are `baselines`, and ``random`` if it has a closed form or `summary` has
    computed it. `summary` has every number in full.

    An evaluation in memory keeps both. The lists are not kept with ``keep="totals"`` or
    ``memory=``, for blocks, for tables in Parquet and from the workers of a cluster. With
    ``keep="totals"`` the values of the users are not kept either. Means, standard deviations and
    intervals are the same to the last bit. Methods that need more raise `InvalidDataError` and name
    the option that keeps it.

    Attributes
    ----------
    request : Request
        The metrics and their rules.
    n_users : int
        Number of users that count in the means.
    retrieval : Retrieval or None
        How the rankings were made, None if they were given.
    baselines : dict of str to Evaluation
        Evaluations of simple rankings of the same users, by name: printable text that is not a
        column of `summary`. Any other name raises `InvalidDataError`.

    See Also
    --------
    evaluate, evaluate_model : Make one.
    compare : Compare several, user by user.
    write_report : Show one, or several, as a page.
    """

    def __init__(
        self, *parts: Part, again: Again | None = None, record: dict[str, Any] | None = None
    ) -> None:
        block = parts[0] if len(parts) == 1 else None
        if isinstance(block, Measured):
            self._part: Part = block
            block.known_overall  # noqa: B018 - raise eagerly, not on first read
        else:
            parts = tuple(distinct_parts(parts))
            self._part = merge_parts(parts)
        self._parts = parts
        self._again, self._saved_record = again, record
        self._baselines = Baselines()
        self._drawn: RandomTotals | None = None

    @property
    def request(self) -> Request:
        """The metrics and their rules."""
        return self._part.request

    @property
    def n_users(self) -> int:
        """The number of users that count in the means."""
        return self._part.n_counted

    @property
    def retrieval(self) -> Retrieval | None:
        """How the rankings were made, None if they were given."""
        return self._part.retrieval

    def keys(self) -> list[str]:
        """Return the names of the metrics, so that ``dict(ev)`` has the means."""
        return list(self.request.names)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the metrics, as for a mapping of names to means."""
        return iter(self.request.names)

    def __contains__(self, name: str | Metric) -> bool:
        """Return whether a metric was evaluated."""
        return self._part.has(name)

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("'Evaluation' object", name, _INSTEAD)

    def _check_counted(self) -> None:
        """Raise if no user counts: only together with other users has this block numbers."""
        if not self.n_users:
            listed = "both a list and " if self.request.without_list == "exclude" else ""
            raise InvalidDataError(
                f"none of the {self._part.n_users} users has {listed}a relevant item (a stored "
                "value above 0). Check the ids and gains of validation. If these users are one "
                "block of several, merge the blocks with Evaluation.merge"
            )

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        self._check_counted()
        return self._part.value(self._part.row_of(name))

    @property
    def _values(self) -> UserValues:
        return self._part.per_user

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``: label or row number).

        One column for each metric that has a value for each user; NaN for a user that is left
        out.
        """
        import pandas as pd  # not needed to evaluate, and slower to import than evaluating is

        traits = zip(self.keys(), self.request.traits, strict=True)
        names = [name for name, one in traits if one.per_user]
        index = self._values.users.index.rename("user")
        # A copy, which pandas takes by itself from version 3 on.
        return pd.DataFrame(self._values.columns.T, index=index, columns=names, copy=True)

    @property
    def per_request(self) -> pd.DataFrame:
        """One row for each request (index ``user``, ``request``), if users have several.

        One column for each metric that has a value for each request; NaN for a request that is left
        out. ``weight`` comes last.
        """
        import pandas as pd

        found = self._part.requests
        if found is None:
            raise InvalidDataError(
                "each user has one list; pass Requests as validation to evaluate several of a user"
            )
        index = pd.MultiIndex.from_arrays([found.users, found.requests], names=["user", "request"])
        traits = zip(self.keys(), self.request.traits, strict=True)
        names = [name for name, one in traits if one.per_user]
        frame = pd.DataFrame(found.columns.T, index=index, columns=names, copy=True)
        return frame.assign(weight=found.weights)

    def values(self, name: str | Metric) -> Floats:
        """Return one metric of every user.

        Parameters
        ----------
        name : str or Metric
            In any spelling that means a metric which was evaluated.

        Returns
        -------
        ndarray of float64, shape (n_users,)
            NaN for a user that is left out. Read-only.

        Raises
        ------
        InvalidMetricError
            If the metric is unknown, was not evaluated, or has no values for single users.
        InvalidDataError
            If the values of the users were not kept.
        """
        return self._part.values_of(name)

    def distribution(
        self,
        metric: str | Metric,
        *,
        minus: Evaluation | None = None,
        quantiles: Iterable[float] = (0.1, 0.25, 0.5, 0.75, 0.9),
        worst: Iterable[float] = (0.1, 0.25),
        level: float = LEVEL,
    ) -> pd.DataFrame:
        """Return quantiles of the users' values, and the mean of the worst share of the users.

        Parameters
        ----------
        metric : str or Metric
            One with a value for each user.
        minus : Evaluation, optional
            Describe not the values but the differences: each user's value less the value in this
            evaluation of the same users. The worst users are then those who lose most.
        quantiles : iterable of float
            Shares of the users, between 0 and 1, who have at most the value.
        worst : iterable of float
            Shares of the users, between 0 and 1: those with the lowest values, or with the highest
            if lower is better.
        level : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each number (index ``statistic``, "quantile" or "worst", and ``share``):
            ``value``, and its confidence interval over users like these, ``ci_low`` and
            ``ci_high``.

        Raises
        ------
        InvalidMetricError
            If the metric was not evaluated, or has no values for single users.
        InvalidDataError
            If a share is not between 0 and 1, the values of the users were not kept, or `minus` is
            as `compare` refuses it.

        See Also
        --------
        losers : The share of users who lose more than a margin.
        sparse_eval.plots.distribution : A chart of all values.

        Notes
        -----
        The interval of a quantile is that of its order statistics, interpolated [1]_. It makes no
        assumption about the values. If many users have the same value, such as 0, it covers more
        often than its level. An end is NaN if there are too few users for it.

        The mean of the worst share is known as expected shortfall or CVaR [2]_. Its interval is
        Student's, by each user's contribution, and with one degree of freedom less than there are
        worst users.

        Both intervals come from formulas. A bootstrap over users would need a seed and thousands of
        resamples, and its intervals of a quantile end at nearly the same order statistics.

        References
        ----------
        .. [1] A. D. Hutson, "Calculating Nonparametric Confidence Intervals for Quantiles Using
           Fractional Order Statistics", Journal of Applied Statistics 26(3), 1999, pp. 343-353.
           doi:10.1080/02664769922458
        .. [2] R. T. Rockafellar and S. Uryasev, "Optimization of Conditional Value-at-Risk",
           Journal of Risk 2(3), 2000, pp. 21-41. doi:10.21314/JOR.2000.038

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> ev = se.evaluate(se.Rankings.from_topk([[0, 1], [0, 1], [0, 1]]), held_out, "mrr@2")
        >>> ev.distribution("mrr@2", quantiles=[0.5], worst=[0.5])["value"].round(3)
        statistic  share
        quantile   0.5      1.000
        worst      0.5      0.667
        Name: value, dtype: float64
        """
        part = self._part
        if minus is None:
            values = part.values_of(metric)
        else:
            values = paired(part, self._other_part(minus), metric)[0]
        higher = part.traits_of(metric).higher_is_better
        low, high = self.request.range_of(part.row_of(metric))
        ends = (low, high) if minus is None else (low - high, high - low)
        return describe_distribution(values, higher, quantiles, worst, level, ends)

    def losers(
        self,
        other: Evaluation,
        metric: str | Metric,
        margin: float = 0.0,
        *,
        by: UserSegments | Literal["activity"] | None = None,
        level: float = LEVEL,
    ) -> pd.DataFrame:
        """Count the users for whom this model is worse than another by more than a margin.

        Parameters
        ----------
        other : Evaluation
            Of the model that is used now, for the same users.
        metric : str or Metric
            One with a value for each user.
        margin : float
            In units of the metric, at least 0. By default every loss counts.
        by : mapping, Series, table or path, or "activity", optional
            Segments of the users, as in `sparse_eval.compare`, or bands by their number of
            training items.
        level : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row, or with `by` one for each segment (columns ``by``, ``segment``): ``n_users``
            with a value in both evaluations, ``losers``, their ``share``, and its confidence
            interval over users like these [1]_, ``ci_low`` and ``ci_high``, which is not corrected
            for the number of segments.

        Raises
        ------
        InvalidMetricError
            If an evaluation does not have the metric, or has no values of it for single users. Also
            if `by` is "activity" and the evaluation has no training data.
        InvalidDataError
            If `margin` is below 0, or `other` or `by` is as `sparse_eval.compare` refuses it.

        See Also
        --------
        distribution : How much the worst users lose, with ``minus=``.
        sparse_eval.plots.losers : A chart of the differences.

        References
        ----------
        .. [1] E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical
           Inference", Journal of the American Statistical Association 22(158), 1927, pp. 209-212.
           doi:10.1080/01621459.1927.10502953

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> old = se.evaluate(se.Rankings.from_topk([[0, 1], [0, 1], [0, 1]]), held_out, "mrr@2")
        >>> new = se.evaluate(se.Rankings.from_topk([[0, 2], [1, 0], [2, 0]]), held_out, "mrr@2")
        >>> new.losers(old, "mrr@2", by={0: "paid", 1: "free", 2: "free"})[["segment", "losers"]]
          segment  losers
        0    free       2
        1    paid       0
        """
        part = self._part
        return count_losers(part, self._other_part(other), metric, margin, by, level)

    def _other_part(self, other: Evaluation) -> Part:
        """Return the part of another evaluation, or raise if it is something else."""
        return named_evaluations({"this": self, "other": other})["other"]._part

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric over the evaluated users, or its one number.

        Returns
        -------
        dict of str to float
            By canonical name, in the order requested. Each sum is rounded once, so that it does not
            depend on the order of the users. NaN for a metric that is defined for none of them.

        Raises
        ------
        InvalidDataError
            If no user counts. Such an evaluation has no numbers, but it can be merged.
        """
        self._check_counted()
        return {name: self._part.value(row) for row, name in enumerate(self.keys())}

    def users_needed(
        self,
        metric: str | Metric,
        margin: Size,
        *,
        power: float = 0.8,
        correlation: float = 0.5,
        level: float = LEVEL,
    ) -> int:
        """Return how many users a paired t-test needs, before the other model exists.

        Parameters
        ----------
        metric : str or Metric
        margin : float or str
            The difference to detect: a number, or a percentage of the mean such as "1%".
        power : float
            The probability with which a difference of this size is detected.
        correlation : float
            The assumed correlation of the users' values of both models, from -1 to 1. Compare two
            earlier models to know it: similar models have a higher one, and need fewer users.
        level : float
            1 − `level` is the two-sided level of significance.

        Returns
        -------
        int
            The number of users with a value. Both models are assumed to have the variance v of
            this one, so that differences have the variance 2 (1 − `correlation`) v.

        Raises
        ------
        InvalidDataError
            If an argument is out of range, or the metric has no values of users that vary.

        See Also
        --------
        Comparison.users_needed : From the differences of two models.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=500, n_items=200, seed=0)
        >>> holdout = se.split.random(clicks, seed=0)
        >>> ev = se.evaluate_model(se.baselines.ease(holdout), holdout, "ndcg@10")
        >>> ev.users_needed("ndcg@10", "2%")
        16592
        """
        part, row = self._part, self._part.row_of(metric)
        level, power = check_fraction("level", level), check_fraction("power", power)
        factor = 2 - 2 * check_number("correlation", correlation, -1)
        size = Margin.parse(margin).number(part.value(row))
        std = part.std(row) if self.request.traits[row].per_user else math.nan
        needed = users_needed(size, std * math.sqrt(max(factor, 0)), level, power)
        if needed is None:
            raise InvalidDataError(
                f"the number of users is unknown: it needs a margin above 0, a correlation below 1 "
                f"and values of {self.keys()[row]} that differ between users",
                metric=metric,
            )
        return needed

    @property
    def baselines(self) -> MutableMapping[str, Evaluation]:
        """Evaluations of simple rankings of the same users, by name."""
        return self._baselines

    @baselines.setter
    def baselines(self, baselines: Mapping[str, Evaluation]) -> None:
        self._baselines = Baselines(baselines)

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling without the source of the blocks, which may be an open file."""
        return self.__dict__ | {"_again": None}

    @property
    def _block(self) -> Measured | None:
        """The users with their lists, None if these were not kept."""
        return self._part if isinstance(self._part, Measured) else None

    @property
    def _baseline_parts(self) -> dict[str, Part]:
        return {name: baseline._part for name, baseline in self.baselines.items()}

    def summary(self, level: float = LEVEL) -> pd.DataFrame:
        """Return every number in full; ``print(ev)`` shows fewer.

        Parameters
        ----------
        level : float
            Confidence level of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric, with the columns

            - ``mean``; ``std`` of the users, with n − 1, NaN for a single user and for metrics
              without values for each user;
            - ``ci_low``, ``ci_high``: the confidence interval of the mean over users like these,
              within the range of the metric;
            - ``interval``, its kind: "t", Student's, for 200 users and more; "bca", a
              bias-corrected and accelerated bootstrap [1]_, for fewer; "jackknife", Student's with
              the standard error of a delete-a-group jackknife [2]_, for metrics without values for
              each user; "none" for too few users;
            - ``random``: the expectation under a random ranking of each user's candidates (the
              catalogue, or the given candidates, without the seen items);
            - ``random_se``: its standard error, 0 if the expectation is exact, otherwise from ten
              seeded draws (0 too, should all ten agree);
            - ``lift``, how many times as good as random: mean / random or, if less is better,
              random / mean. NaN if the divisor is 0 and for metrics that can be negative;
            - the mean of each of `baselines`;
            - ``n_users`` that count and ``n_skipped`` that are left out;
            - ``candidates``, their kind, with ``candidates=``.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1, or no user counts.

        Warns
        -----
        UserWarning
            If too few users make up a mean, so that its interval covers it less often than its
            level; see the notes.

        Notes
        -----
        The interval of a mean covers it less often than its level if fewer than 10 users make up
        the mean. This effective number of users is (Σ x)² / Σ x² over the users' values x [3]_. It
        is the number of users with a hit if values are 0 or 1. The guide (Compare models, Few
        users) shows the coverage in simulations.

        If the lists were not kept, the random baseline takes a second pass over the input. It is
        NaN for metrics of all lists together, such as coverage, and for evaluations that were
        merged, or pickled before. For tables that are read in blocks (Parquet, Spark) it is NaN
        unless a metric counts all items. To get it, evaluate frames in memory, or add such a
        metric, as ``coverage@10``.

        References
        ----------
        .. [1] B. Efron, "Better Bootstrap Confidence Intervals", Journal of the American
           Statistical Association 82(397), 1987, pp. 171-185. doi:10.1080/01621459.1987.10478410
        .. [2] F. M. T. A. Busing, E. Meijer and R. van der Leeden, "Delete-m Jackknife for Unequal
           m", Statistics and Computing 9, 1999, pp. 3-8. doi:10.1023/A:1008800423698
        .. [3] L. Kish, "Survey Sampling", Wiley, 1965, section 11.7.
        """
        level = check_fraction("level", level)
        self._check_counted()
        if few := few_users(self._part):
            warn(few)
        return self._summarize(level)

    def _summarize(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the summary without a warning of few users, if nobody reads its intervals."""
        return summarize(self._part, self._random, self._baseline_parts, level)

    @property
    def _random(self) -> RandomTotals | None:
        """The random baseline, computed when it is first needed; None if it cannot be."""
        if self._drawn is None and self._block is not None:
            self._drawn = self._block.random_totals(all_users=True)
        elif self._drawn is None:
            self._drawn = self._part.random
            if self._drawn is None and self._again is not None:
                self._drawn = self._again.random_totals()
        return self._drawn

    @property
    def _random_at_hand(self) -> RandomTotals | None:
        """The random baseline as far as nothing has to be drawn, or read again, to know it."""
        if self._drawn is None and self._block is not None:
            return self._block.random_totals(all_users=True, drawn=False)
        return self._drawn or self._part.random

    def merge(self, *others: Evaluation) -> Evaluation:
        """Return the evaluation of the users of several evaluations.

        Parameters
        ----------
        *others : Evaluation
            Evaluations of different users with the same metrics, in any order, merged before or
            not. The numbers are bit-identical for any blocks of users. A block that is given twice
            counts once.

        Returns
        -------
        Evaluation
            Without the lists; with the values of each user if all have them.

        Raises
        ------
        InvalidDataError
            If metrics, conventions or versions differ, or a user is in two blocks. Without the
            values of users this is checked by the order of blocks, which must follow the order of
            the labels (text by code points). If some blocks label users with text and others with
            numbers.

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
        <Evaluation: 3 users, 0 left out; mrr@2 0.6667>
        """
        for other in others:
            if not isinstance(other, Evaluation):
                raise InvalidDataError(
                    f"others has {describe(other)}; expected evaluations: ev.merge(*others)",
                    argument="others",
                )
        parts = [part for evaluation in (self, *others) for part in evaluation._parts]
        return Evaluation(*(part.computed() for part in parts))

    @cached_property
    def _record(self) -> dict[str, Any]:
        """The details that the page shows with the numbers, see `sparse_eval.results.record`."""
        if self._saved_record is not None:
            return self._saved_record
        return make_record(self._block if self.n_users else None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the values of the users, ready for JSON. The keys are stable."""
        return to_dict(self._part, self.summary())

    @show_spelling
    def save(self, folder: PathLike, *, about: Mapping[str, Any] | None = None) -> Path:
        """Save everything but the lists, for `Evaluation.load` and other tools.

        Parameters
        ----------
        folder : str or Path
            Created if missing. ``summary.json``, ``metrics.parquet`` and, as needed,
            ``per_user.parquet`` (the values of the users, if they were kept) and ``lists.parquet``
            are written there; `sparse_eval.results.saving` describes them.
        about : mapping, optional
            Details to save with it, such as hyperparameters, seeds and the commit: text, numbers,
            lists and dicts.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InvalidDataError
            If `about` has values that JSON does not support.
        OutputError
            If a file cannot be written.
        """
        path = as_path(folder)
        save(path, self._savable(), about)
        return path

    def _savable(self) -> Savable:
        """Return the content of the files of `save`, which can be sent between processes."""
        every = {"": self, **self.baselines}
        parts = {name: ev._part for name, ev in every.items()}
        randoms = {name: ev._random for name, ev in every.items()}
        return savable_of(parts, randoms, self._summarize(), self._record)

    @classmethod
    def load(cls, path: PathLike) -> Evaluation:
        """Read a saved evaluation.

        Parameters
        ----------
        path : str or Path
            The folder, or the JSON in it.

        Returns
        -------
        Evaluation
            With all numbers, to the last bit, and the values of each user if they were saved;
            without the lists.

        Raises
        ------
        InvalidFileError
            If a file cannot be read, is something else, was written by another version, was
            changed, or does not belong to the others.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[0, 1], [1, 0]])
        >>> ev = se.evaluate(lists, csr_matrix([[1, 0], [1, 0]]), "mrr@2")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = se.Evaluation.load(ev.save(Path(folder) / "als", about={"seed": 1}))
        >>> saved.mean(), saved.about
        ({'mrr@2': 0.75}, {'seed': 1})
        """
        parts, record = load(as_input(path))
        evaluation = cls(parts.pop(""), record=record)
        evaluation.baselines = {name: cls(part) for name, part in parts.items()}
        return evaluation

    @property
    def about(self) -> dict[str, Any]:
        """The details that were passed when it was saved; empty before."""
        return {} if self._saved_record is None else dict(self._saved_record["about"])

    @property
    def rankings(self) -> Rankings:
        """The lists, aligned with the relevance."""
        aligned = self._lists("rankings").aligned
        return aligned.as_given(aligned.rankings)

    def _lists(self, what: str) -> Measured:
        """Return the block of all users, or raise if its lists were not kept."""
        if self._part.is_weighted:
            raise InvalidDataError(
                f"{what} needs the lists, which evaluations of requests or with weights do not "
                "keep. For segments of users, use compare(by=)"
            )
        if self._block is None:
            raise InvalidDataError(
                f"{what} needs the lists, but this evaluation did not keep them. Evaluate matrices "
                "or frames without memory=, client= and keep='totals'. For groups of users of a "
                "saved evaluation, use compare(by=)"
            )
        return self._block

    def by(self, groups: Any, *, bands: int = 4) -> pd.DataFrame:
        """Break every metric down by groups of users, or by how popular the items are.

        Parameters
        ----------
        groups : {"activity", "popularity"}, or sequence, mapping, Series, table or Path of labels
            A label for each user, in order or keyed by user; a table with a column of users, as
            `by` of `sparse_eval.compare` takes. "activity" groups users by their number of training
            items; users without any are "cold". "popularity" divides not the users but the relevant
            items, by their number of training users. It shows the metrics that can be computed for
            a part of the relevant items: recall, hit_rate.
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
        """Return the mean difference between groups of users in every metric, over their pairs.

        Parameters
        ----------
        groups : "activity", or sequence, mapping or Series of labels
            As in `by`.
        bands : int
            As in `by`.

        Returns
        -------
        pandas.DataFrame
            One row for each metric. ``deviation`` is the mean absolute difference between the means
            of two groups, NaN with fewer than two groups. ``chance`` is its expectation if all
            groups had the same mean and the observed spread of values. It is NaN for metrics
            without values for each user, and with a group of a single user. ``n_groups`` and
            ``n_users`` count groups and users with a defined metric.

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
        UserMADranking of Elliot. Groups that do not differ have a deviation above 0, because the
        means of samples vary. For groups of equal size its expectation is `chance`, for any number
        of groups.

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
            The last rank, at least 1; by default the length of the longest list.

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
            The user's label, or the row number without labels.
        item_names : mapping, Series, table or path, optional
            Names to show next to each item, by its label or column number. A table that is indexed
            by item, or has a column ``item``, adds all of its columns. The labels of a CSV file are
            text.

        Returns
        -------
        pandas.DataFrame
            The list in its order, one row for each item: ``rank``, ``item`` (label or column
            number), its names if there are `item_names`, ``gain``, ``discount``, ``contribution``
            (gain · discount) and ``cumulative``. The discount is the convention's, 1 / log2(rank +
            1) by default; for tied items its expectation. Then the relevant items that are not in
            the list, the largest gain first, with no rank and no contribution.

        Raises
        ------
        InvalidDataError
            If there is no such user, or `item_names` has an unsupported type or none of the items.
            If the lists were not kept and cannot be made again. For matrices in memory the user's
            list is made again, also with ``keep="totals"``.

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
        again = self._again.one_user(user) if self._again is not None else None
        if again is not None:
            explained = explain(again, 0)
        else:
            block = self._lists("explain()")
            row = row_of_user(user, block.labels, len(block.n_relevant))
            explained = explain(block.aligned, row)
        return explained if item_names is None else with_names(explained, item_names)

    def to_frame(self) -> pd.DataFrame:
        """Return the means with their intervals as numbers, the columns that ``print(ev)`` shows.

        Returns
        -------
        pandas.DataFrame
            The columns ``mean``, ``ci_low``, ``ci_high``, ``random`` and `baselines` of `summary`.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=500, n_items=200, seed=0)
        >>> holdout = se.split.random(clicks, seed=0)
        >>> ev = se.evaluate_model(se.baselines.popularity(holdout), holdout, "ndcg@10")
        >>> ev.to_frame().columns.tolist()
        ['mean', 'ci_low', 'ci_high', 'random']
        """
        return self.summary()[["mean", "ci_low", "ci_high", "random", *self.baselines]]

    def to_latex(self) -> str:
        r"""Return the table that ``print(ev)`` shows for LaTeX, of the package ``booktabs``.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=500, n_items=200, seed=0)
        >>> holdout = se.split.random(clicks, seed=0)
        >>> ev = se.evaluate_model(se.baselines.popularity(holdout), holdout, "ndcg@10")
        >>> print(ev.to_latex())  # doctest: +ELLIPSIS
        \begin{tabular}{lrlr}
        \toprule
         metric   &   mean & 95 \% interval ...
        """
        return self._show("latex_raw")

    def to_markdown(self) -> str:
        """Return the table that ``print(ev)`` shows as Markdown.

        Examples
        --------
        >>> import sparse_eval as se
        >>> from scipy.sparse import csr_matrix
        >>> lists = se.Rankings.from_topk([[0, 1], [1, 0], [2, 0]])
        >>> ev = se.evaluate(lists, csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]]), "mrr@2")
        >>> print(ev.to_markdown())
        | metric   |   mean | 95 % interval   |   random |
        |:---------|-------:|:----------------|---------:|
        | mrr@2    |    0.5 | 0.0 to 1.0      |    0.500 |
        <BLANKLINE>
        means over 3 users, 0 left out
        note: too few users for the intervals of mrr@2: fewer than 10 users make up most
        of the mean, so coverage is below the nominal level. Evaluate more users
        """
        return self._show("pipe")

    def __repr__(self) -> str:
        skipped = self._part.n_users - self.n_users
        if not self.n_users:
            return f"<Evaluation: 0 users, {skipped} left out>"
        shown = ", ".join(f"{self._part.shown(name)} {self[name]:.4f}" for name in self.keys()[:4])
        more = f", and {len(self.keys()) - 4} more" if len(self.keys()) > 4 else ""
        return f"<Evaluation: {self.n_users} users, {skipped} left out; {shown}{more}>"

    def __str__(self) -> str:
        return self._show("simple")

    def _repr_html_(self) -> str:
        return self._show("html")

    def _show(self, style: str) -> str:
        return show(self._part, self._random_at_hand, self._baseline_parts, style)


class Baselines(UserDict[str, "Evaluation"]):
    """Evaluations by name, with names that fit into tables, files and terminals.

    Raises
    ------
    InvalidDataError
        From ``baselines[name] = evaluation``, if the name is empty, holds characters that cannot be
        printed, or is a column of `Evaluation.summary`.
    """

    def __setitem__(self, name: str, evaluation: Evaluation) -> None:
        is_text = isinstance(name, str) and name.strip() and name.isprintable()
        if not is_text or name in COLUMNS:
            raise InvalidDataError(
                f"a baseline has the name {name!r}; expected a name of printable characters that "
                "is not a column of summary(), such as 'popularity'"
            )
        super().__setitem__(name, evaluation)

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc, override]
        self.update(other)  # which checks the names
        return self


def named_evaluations(evaluations: Any, least: int = 1) -> dict[str, Evaluation]:
    """Return evaluations with their names as text, saved ones read from their folders.

    Raises `InvalidDataError` if they are too few, two have the same name, or one is something else.
    """
    if isinstance(evaluations, list | tuple) and all(
        isinstance(x, str | Path) for x in evaluations
    ):
        paths = [Path(path).absolute() for path in evaluations]
        evaluations = {path.name: path for path in paths}
        if len(evaluations) < len(paths):
            raise InvalidDataError(
                f"two folders have the same name: {', '.join(path.name for path in paths)}; "
                "give them by name: {'a': folder, 'b': other}"
            )
    if isinstance(evaluations, str | Path):
        folders = [place.parent for place in summaries_in(Path(evaluations))]
        if len(folders) < least:
            raise InvalidDataError(
                f"{evaluations} has {len(folders)} folders of saved evaluations, and {least} or "
                "more are needed; ev.save(folder) and se.sweep(..., save=True) write them"
            )
        evaluations = {folder.name: folder for folder in folders}
    if not isinstance(evaluations, Mapping) or len(evaluations) < least:
        several = "two or more evaluations" if least > 1 else "one or more evaluations"
        raise InvalidDataError(
            f'give {several} by name: {{"als": ev, "bpr": other}}. A CrossValidation compares its '
            "own models: cv.compare()"
        )
    named = {
        escaped(name): Evaluation.load(ev) if isinstance(ev, str | Path) else ev
        for name, ev in evaluations.items()
    }
    if len(named) < len(evaluations):
        raise InvalidDataError(f"two evaluations have the same name: {', '.join(named)}")
    for name, ev in named.items():
        if not isinstance(ev, Evaluation):
            raise InvalidDataError(f"{name} is {describe(ev)}; expected what evaluate returns")
    return named
