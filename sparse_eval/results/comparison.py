"""`compare`: pair evaluations on the users that they share, and build and show the table."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ..core.arguments import check_choice, check_fraction, check_whole, show_spelling
from ..core.formatting import MOST_ROWS, as_html, latex, number, numbers, records, text_table
from ..core.messages import printable
from ..core.progress import progress_bar
from ..errors import InvalidDataError
from .clusters import check_same_requests, linear_pair, values_in
from .decisions import add_verdicts, decide, parse_margins, users_needed
from .differences import (
    ALIASES,
    CORRECTIONS,
    TESTS,
    compare_replicates,
    compare_values,
    correct,
    detectable_standard_errors,
    replicates_distance,
    significance,
    values_distance,
)
from .evaluation import named_evaluations
from .intervals import LEVEL
from .matching import check_alike, shared_metrics, shared_users
from .segments import segmentations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from ..core.types import PathLike
    from .decisions import Margin, Size
    from .differences import Distance
    from .evaluation import Evaluation
    from .partial_results import Part
    from .segments import UserSegments


#: Columns of numbers in the table for display.
_NUMBERS = ("a − b", "p, corrected", "margin", "detectable")

#: Columns that the displayed table lacks if it has a row for each of many models.
_OF_FEW = ["metric", "a", "wins/ties/losses", "detectable"]

#: With more users than this, a note warns of Wilcoxon's test.
_MANY_FOR_RANKS = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Pairwise comparisons of evaluations, on the same users.

    Attributes
    ----------
    names : tuple of str
        Names of the evaluations, in the order given.
    table : pandas.DataFrame
        One row for each metric and pair of evaluations, see `compare`.
    n_users : int
        Number of users compared.
    test : {"t", "wilcoxon", "permutation"}
        The paired test that gave `p`.
    correction : {"holm", "bonferroni", "bh", "none"}
        The correction for multiple comparisons that gave `p_corrected`, over all rows of the
        table: of the family-wise error rate (Holm) or of the false discovery rate (Benjamini and
        Hochberg).
    level : float
        Confidence level of the intervals; a difference is significant if
        ``p_corrected < 1 - level``.
    left_out : dict of str to int
        Number of evaluated users of each evaluation that are not compared, because others lack
        them.
    notes : tuple of str
        Notes on the comparison, printed below it: users and metrics that not all evaluations have.
    candidates : str or None
        The kind of candidates of all evaluations, see `CandidateCounts`; None for all items.
    higher_is_better : dict of str to bool
        For each metric, whether larger values are better.
    by : tuple of str
        The columns that divide the users into segments; empty without segments.

    See Also
    --------
    compare : Make a comparison.
    """

    names: tuple[str, ...]
    table: pd.DataFrame
    n_users: int
    test: str
    correction: str
    level: float
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    candidates: str | None = None
    higher_is_better: dict[str, bool] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    def how_found(self) -> str:
        """Return in a line how many users were compared, and how."""
        return (
            f"{self.n_users:,} users, {self._tested()}, {self.level * 100:g} % intervals (not "
            "corrected)"
        )

    def _tested(self) -> str:
        title = CORRECTIONS[self.correction]
        corrected = f", {title} correction" if title else ""
        n = len(self.table)
        differences = f"{n:,} difference{'' if n == 1 else 's'}"
        return f"{TESTS[self.test].title}{corrected} over {differences}"

    def _best(self) -> tuple[str, str]:
        """Return the evaluation that is best by the first metric, and this metric."""
        metric = str(self.table["metric"].iloc[0])
        means: dict[str, float] = {}
        for row in self.table[self.table["metric"] == metric].to_dict("records"):
            means |= {row["a"]: row["mean_a"], row["b"]: row["mean_b"]}
        known = {name: mean for name, mean in means.items() if mean == mean}
        choose = max if self.higher_is_better.get(metric, True) else min
        return choose(known, key=known.__getitem__) if known else self.names[0], metric

    def _rows_shown(self) -> tuple[list[dict[str, Any]], str]:
        """Return the rows to display, and a note if some are left out.

        If there are too many, only pairs with the best evaluation are displayed: by all metrics if
        they are few enough, otherwise by the first metric.
        """
        rows: Any = self.table.to_dict("records")
        if len(rows) <= MOST_ROWS or len(self.names) == 2 or self.by or "verdict" in self.table:
            return rows, ""
        best, metric = self._best()
        chosen = [
            row if row["a"] == best else _turned(row)
            for row in rows
            if best in (row["a"], row["b"])
        ]
        if len(chosen) > MOST_ROWS:
            chosen = [row for row in chosen if row["metric"] == metric]
        what = f"by {metric} only" if chosen[-1]["metric"] == metric else "by all metrics"
        return chosen, f"a is {best}, the best by {metric}, against each other model {what}"

    def shown(self) -> pd.DataFrame:
        """Return the table for display: fewer columns, numbers as text.

        With many evaluations, it has only the pairs with the best one.
        """
        import pandas as pd

        among = f" ({self.candidates})" if self.candidates else ""
        rows = []
        chosen, note = self._rows_shown()
        for row in chosen:
            difference, *ends = map(
                _signed, numbers(row["difference"], row["ci_low"], row["ci_high"])
            )
            p, counts = row["p_corrected"], (row["wins"], row["ties"], row["losses"])
            where = {"by": row["by"], "segment": row["segment"]} if self.by else {}
            verdict = {}
            if "verdict" in row:
                verdict = {"margin": number(row["margin"]), "verdict": row["verdict"]}
            rows.append(
                where
                | {
                    "metric": row["metric"] + among,
                    "a": row["a"],
                    "b": row["b"],
                    "a − b": difference,
                    "interval": "none" if row["interval"] == "none" else " to ".join(ends),
                    "p, corrected": "" if pd.isna(p) else f"{p:.3f}" if p >= 0.001 else "< 0.001",
                    "better": row["better"] or "not significant",
                    **verdict,
                    "wins/ties/losses": "" if pd.isna(row["wins"]) else "/".join(map(str, counts)),
                    "detectable": number(row["detectable"]),
                }
                | ({"users": f"{row['n_users']:,}"} if self.by else {})
            )
        table = pd.DataFrame(rows)
        is_one = note and len(set(table["metric"])) == 1
        return table.drop(columns=_OF_FEW) if is_one else table

    def remarks(self, where: str = ".table") -> list[str]:
        """Return the lines below the table; `where` shows how to get the missing rows."""
        note = self._rows_shown()[1]
        left = f"{note}; all {len(self.table):,} rows: {where}"
        return [*([left] if note else []), *(f"note: {one}" for one in self.notes)]

    def users_needed(self, margin: Size | Mapping[str, Size], power: float = 0.8) -> pd.DataFrame:
        """Return how many users a paired t-test needs to detect a difference.

        Parameters
        ----------
        margin : float, str or mapping
            The difference to detect: a number, or a percentage of the mean of b such as "1%"; or
            a mapping of metrics to either.
        power : float
            The probability with which a difference of this size is detected.

        Returns
        -------
        pandas.DataFrame
            One row for each row of the table (``metric``, ``a``, ``b``, and ``by``, ``segment``):
            ``margin`` as a number; ``std``, the standard deviation of the users' differences;
            ``n_users`` now, and ``users_needed``, both with a value of the metric. The last is the
            smallest number of users with this power, by the noncentral t distribution, in a
            two-sided test at 1 − `level` without correction. It is missing where the differences
            do not vary, and for metrics of all users together.

        Raises
        ------
        InvalidDataError
            If `margin` or `power` is out of range.

        See Also
        --------
        Evaluation.users_needed : The same before the new model exists.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=500, n_items=200, seed=0)
        >>> holdout = se.split.random(clicks, seed=0)
        >>> models = {"ease": se.baselines.ease, "knn": se.baselines.item_knn}
        >>> evs = {
        ...     name: se.evaluate_model(make(holdout), holdout, "ndcg@10")
        ...     for name, make in models.items()
        ... }
        >>> se.compare(evs).users_needed("2%")[["n_users", "users_needed"]]
           n_users  users_needed
        0      495         15253
        """
        import pandas as pd

        power = check_fraction("power", power)
        margins = parse_margins(margin, list(self.higher_is_better))
        where = ["metric", "a", "b", *(["by", "segment"] if self.by else [])]
        rows = []
        for row in self.table.to_dict("records"):
            metric, n = row["metric"], row["n_users"]
            if metric not in margins:
                continue
            size, std = margins[metric].number(row["mean_b"]), math.nan
            if row["interval"] == "t":
                std = row["detectable"] / detectable_standard_errors(self.level, n - 1) * n**0.5
            needed = users_needed(size, std, self.level, power)
            rows.append((*(row[name] for name in where), size, std, n, needed))
        columns = [*where, "margin", "std", "n_users", "users_needed"]
        return pd.DataFrame(rows, columns=columns).astype({"users_needed": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON. The keys are stable."""
        facts = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if name not in ("table", "higher_is_better")
        }
        return facts | {"differences": records(self.table)}

    def to_latex(
        self, *, digits: int = 4, caption: str | None = None, label: str | None = None
    ) -> str:
        r"""Return a table for a paper, of the package ``booktabs``.

        The table has a row for each model and a column for each metric. Cells are means over the
        users compared. The best mean is in bold, whether or not it is significantly better: `table`
        has the tests and verdicts. ↓ marks metrics that are better if lower. Names are text:
        special characters of LaTeX are escaped. A comparison by segments has a column for each
        metric in each segment.

        Parameters
        ----------
        digits : int
            Decimals of the means, at least 1.
        caption, label : str, optional
            In LaTeX, as they are; by default the table has none.

        Returns
        -------
        str

        Raises
        ------
        InvalidDataError
            If a metric is defined for different users of each model, so that a model has several
            means. Also if `digits` is out of range.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=500, n_items=200, seed=0)
        >>> holdout = se.split.random(clicks, seed=0)
        >>> models = {"popularity": se.baselines.popularity, "ease": se.baselines.ease}
        >>> evs = {
        ...     name: se.evaluate_model(make(holdout), holdout, "ndcg@10")
        ...     for name, make in models.items()
        ... }
        >>> print(se.compare(evs).to_latex(digits=3))  # doctest: +ELLIPSIS
        \begin{table}
        ...
         model      &        ndcg@10 \\
        \midrule
         popularity &          0.198 \\
         ease       & \textbf{0.284} \\
        \bottomrule
        ...
        """
        head = [r"\begin{table}", r"\centering"]
        for name, text in (("caption", caption), ("label", label)):
            head += [] if text is None else [rf"\{name}{{{text}}}"]
        # tabulate's "latex_booktabs" escapes its cells, which would show the command for bold.
        table = self._paper_table(digits, "latex_raw")
        # Below the table rather than in it, so that they fit into a column of the paper.
        notes = "\\\\\n".join(map(latex, self._paper_notes()))
        tail = ["", r"\smallskip", r"\footnotesize", notes, r"\end{table}", ""]
        return "\n".join([*head, table, *tail])

    def to_markdown(self, *, digits: int = 4) -> str:
        """Return the table of `to_latex` in Markdown.

        Parameters
        ----------
        digits : int
            Decimals of the means, at least 1.

        Returns
        -------
        str

        Raises
        ------
        InvalidDataError
            As from `to_latex`.
        """
        notes = map(_markdown, self._paper_notes())
        return "\n\n".join([self._paper_table(digits, "pipe"), *notes]) + "\n"

    def _paper_notes(self) -> list[str]:
        lower = " (of ↓ the lowest)" if not all(self.higher_is_better.values()) else ""
        return [f"Means over {self.n_users:,} users; the best in bold{lower}.", *self.notes]

    def _paper_table(self, digits: int, style: Literal["latex_raw", "pipe"]) -> str:
        """Return the means of each model as LaTeX or Markdown, the best ones in bold."""
        import pandas as pd

        check_whole("digits", digits, 1, 16)
        is_latex = style == "latex_raw"
        escape, bold = (latex, r"\textbf{{{}}}") if is_latex else (_markdown, "**{}**")
        among = f" ({self.candidates})" if self.candidates else ""
        names = self.table["metric"]
        if self.by:  # a column for each metric in each segment
            segments = self.table["segment"]
            segments = self.table["by"] + " " + segments if len(self.by) > 1 else segments
            names = names + ", " + segments
        headings, columns = ["model"], [list(map(escape, self.names))]
        for name, rows in self.table.groupby(names, sort=False):
            higher = self.higher_is_better[rows["metric"].iloc[0]]
            headings.append(escape(f"{name}{among}{'' if higher else ' ↓'}"))
            sides = [
                rows[[side, f"mean_{side}"]].set_axis(["model", "mean"], axis=1) for side in "ab"
            ]
            found = pd.concat(sides).drop_duplicates().set_index("model")["mean"]
            if not found.index.is_unique:
                model = found.index[found.index.duplicated()][0]
                raise InvalidDataError(
                    f"the mean of {name} for {model} depends on the models compared, because "
                    f"{name} is undefined for different users. Compare two models, or omit the "
                    "metric"
                )
            means = found[list(self.names)]
            best = means.max() if higher else means.min()
            column = []
            for mean in means:
                text = "–" if math.isnan(mean) else f"{mean:.{digits}f}"
                if is_latex:
                    text = text.replace("-", "$-$").replace("–", "--")
                column.append(bold.format(text) if mean == best else text)
            columns.append(column)
        aligned = ["left", *["right"] * (len(columns) - 1)]
        return text_table(list(zip(*columns, strict=True)), headings, aligned, style)

    def _title(self) -> str:
        rest = f" and {len(self.names) - 6:,} others" if len(self.names) > 6 else ""
        return ", ".join(self.names[:6]) + rest

    def __repr__(self) -> str:
        shown = self.shown()
        more = len(shown) - MOST_ROWS
        rest = f"\n… and {more:,} more rows: .table" if more > 0 else ""
        rows = shown.head(MOST_ROWS).to_numpy().tolist()
        aligned = ["decimal" if name in _NUMBERS else "left" for name in shown]
        table = text_table(rows, list(map(str, shown)), aligned, "simple")
        notes = "".join(f"\n{line}" for line in self.remarks())
        heading = printable(f"Comparison of {self._title()}: {self.how_found()}")
        return f"<{heading}>\n{table}{rest}{printable(notes)}"

    def _repr_html_(self) -> str:
        heading = f"Comparison of {self._title()}: {self.how_found()}"
        notes = "".join(f"<p>{html.escape(printable(line))}</p>" for line in self.remarks())
        return as_html(heading, self.shown(), where=".table") + notes


@show_spelling
def compare(
    evaluations: Mapping[str, Evaluation | PathLike] | Sequence[PathLike] | PathLike,
    metrics: str | Iterable[str] | None = None,
    *,
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
    by: UserSegments | None = None,
    level: float = LEVEL,
    margin: Size | Mapping[str, Size] | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare evaluations on the users and metrics that all of them have, pair by pair.

    Users are matched by label, or by row number if no evaluation has labels. A note and
    `Comparison.left_out` count the users that not all evaluations have.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation or path, sequence of paths, or path
        Two or more evaluations by name, or the folders of saved ones, or a folder that contains
        these. Without names, each is called like its folder.
    metrics : str or iterable of str, optional
        Metrics to compare, by their names in the evaluations; by default the metrics that all have.
        Fewer metrics, chosen before looking at the results, need a smaller correction.
    test : {"t", "wilcoxon", "permutation"}
        The paired test, as in `scipy.stats`: Student's t-test of the mean difference, Wilcoxon's
        signed-rank test, or a permutation test of the mean difference under random signs. The last
        uses all signs for few users, otherwise 9,999 draws with a fixed seed.
    correction : {"holm", "bonferroni", "bh", "none"}
        The correction for multiple comparisons, over all rows of the table. Holm's controls the
        probability of any error [1]_; Bonferroni's does so with less power. Benjamini and
        Hochberg's controls the share of errors among significant differences [2]_.
    by : mapping, Series, table or path, optional
        Segments by user, such as countries, plans or cohorts: compare within each of them, and
        correct for all of these comparisons. Every column of a table divides the users anew. A
        table is indexed by user, or has a column ``user``; its path ends in .csv, .tsv or .parquet.
        Users match if they are the same as text. A note counts users without a segment.
    level : float
        Confidence level of the intervals, between 0 and 1; 1 − `level` is the level of
        significance.
    margin : float, str or mapping, optional
        The largest difference that does not matter: a number, or a percentage of the mean of b
        such as "1%"; or a mapping of metrics to either. With it the table has verdicts.
    progress : bool, optional
        Show a progress bar if the comparison takes more than two seconds, such as permutation tests
        of many users and metrics. By default on a terminal and in a notebook only.

    Returns
    -------
    Comparison
        Its ``table`` has one row for each metric and pair (columns ``metric``, ``a``, ``b``):

        - ``mean_a``, ``mean_b``: means over the users compared;
        - ``difference``: a minus b, with its interval ``ci_low``, ``ci_high``. ``interval`` is its
          kind: "t" is Student's, for any number of users, and excludes 0 exactly if the t-test is
          significant before correction; "jackknife" or "none" as in `Evaluation.summary`;
        - ``p``, ``p_corrected``: the p-value, and the same after correction;
        - ``better``: the name of the better evaluation; empty if the difference is not
          significant, or if Wilcoxon's ranks and the means favour different ones;
        - ``wins``, ``ties``, ``losses``: numbers of users for whom a is better, equal or worse;
        - ``effect_size``: the mean difference in standard deviations of the difference (Cohen's
          d), with its interval ``effect_low``, ``effect_high`` by the noncentral t distribution;
        - ``detectable``: the smallest difference that an uncorrected t-test with this number of
          users would detect in 80 of 100 cases;
        - ``n_users``: the number of users for whom both have a value;
        - ``left_out_a``, ``left_out_b``: the number of evaluated users of each that are not among
          them.

        With `margin` it has four more columns about a against b, by one-sided t-tests whatever
        `test` is:

        - ``verdict``: "better" or "worse" if the difference is shown to exceed the margin,
          "equivalent" if it is shown to be smaller, otherwise "not shown". It accounts for metrics
          that are better if lower, and is empty for metrics without a margin;
        - ``margin`` as a number;
        - ``p_better``, ``p_equivalent``, ``p_worse``: the p-values of these verdicts. That of
          equivalence is of two one-sided tests [3]_;
        - ``p_verdict``: the smallest of them, doubled and corrected, which is below 1 − `level` if
          there is a verdict. Without correction, a verdict on an absolute margin agrees with the
          interval: both ends are beyond the margin, or within it. A percentage m is tested on
          the users' values of a − (1 ± m) b, as the mean of b is uncertain too.

        With `by` it has a row for each column and segment too (columns ``by``, ``segment``), and
        without ``left_out_a`` and ``left_out_b``.

        Metrics of all users together are compared by paired jackknife replicates, and have no
        wins. They are NaN if users are left out, because their values are then about different
        users. They are dropped if users are divided by segment.

    Raises
    ------
    InvalidDataError
        If there are fewer than two evaluations, or they share fewer than two users or no metric. If
        an evaluation lacks one of `metrics`. If the evaluations have different conventions,
        relevant items of the same users, or propensities that weight hits.
        If `by` has an unsupported type, none of the users or more than 30 segments in a column. If
        a margin or an option is unknown.

    See Also
    --------
    write_report : A page with the comparison and its charts.
    CrossValidation.compare : Compare models over several splits and seeds.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
       of Statistics 6(2), 1979, pp. 65-70.
    .. [2] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57(1),
       1995, pp. 289-300. doi:10.1111/j.2517-6161.1995.tb02031.x
    .. [3] D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power
       approach for assessing the equivalence of average bioavailability", Journal of
       Pharmacokinetics and Biopharmaceutics 15(6), 1987, pp. 657-680. doi:10.1007/BF01068419

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> als = se.evaluate(se.Rankings.from_topk([[0, 1], [0, 1], [0, 1]]), held_out, "mrr@2")
    >>> bpr = se.evaluate(se.Rankings.from_topk([[0, 2], [1, 0], [2, 0]]), held_out, "mrr@2")
    >>> se.compare({"als": als, "bpr": bpr}).table[["a", "b", "difference", "wins", "ties"]]
         a    b  difference  wins  ties
    0  als  bpr    0.333333     2     1

    By segments of the users:

    >>> plans = {0: "free", 1: "free", 2: "paid"}
    >>> se.compare({"als": als, "bpr": bpr}, by=plans).table[["segment", "difference", "n_users"]]
      segment  difference  n_users
    0    free        0.25        2
    1    paid        0.50        1

    With a margin:

    >>> se.compare({"als": als, "bpr": bpr}, margin="1%").table[["margin", "verdict"]]
       margin    verdict
    0   0.005  not shown
    """
    test = cast("Any", ALIASES.get(test, test) if isinstance(test, str) else test)
    check_choice("test", test, list(TESTS))
    check_choice("correction", correction, list(CORRECTIONS))
    level = check_fraction("level", level)
    named = named_evaluations(evaluations, least=2)
    by_name = {name: ev._part for name, ev in named.items()}
    names, parts = tuple(by_name), list(by_name.values())
    chosen, notes = shared_metrics({name: ev.request for name, ev in named.items()}, metrics)
    check_alike(by_name, chosen)
    margins = parse_margins(margin, chosen)
    if test == "wilcoxon" and any(part.is_weighted for part in parts):
        raise InvalidDataError(
            "Wilcoxon's test ranks users, and these have requests or weights; use test='t' or "
            "'permutation'",
            argument="test",
        )
    for metric in chosen:
        if parts[0].traits_of(metric).per_user:
            check_same_requests(metric, by_name)
    shared = shared_users(by_name)
    rows, left_out = shared.rows, shared.left_out
    n_users, are_all = len(shared.users), not any(left_out.values())
    notes += shared.notes()
    overall = [metric for metric in chosen if not parts[0].traits_of(metric).per_user]
    if overall and not are_all and by is None:
        notes.append(
            f"{', '.join(overall)}: not compared, because they are about all users together, and "
            "users are left out"
        )
    if margins and test != "t":
        notes.append("verdicts are by t-tests, as only these have a margin")
    elif test == "wilcoxon" and n_users > _MANY_FOR_RANKS:
        notes.append(
            f"with more than {_MANY_FOR_RANKS:,} users, Wilcoxon's test detects differences "
            "without practical size, and errs more often than its level (arXiv 2305.02461); use "
            "the t-test with a margin"
        )
    columns = [] if by is None else segmentations(by, shared.users)
    notes += [note for column in columns if (note := column.note())]
    if columns and overall:
        notes.append(
            f"{', '.join(overall)}: not compared by segment, because they are about all users "
            "together"
        )
        chosen = [metric for metric in chosen if metric not in overall]
        if not chosen:
            raise InvalidDataError(
                f"{notes[-1]}; add metrics with a value for each user, such as ndcg, or omit by"
            )
    # If users are divided, the rows of the members of each segment; otherwise all rows.
    divided = [
        (column.title, name, [row[column.codes == code] for row in rows])
        for column in columns
        for code, name in enumerate(column.names)
    ] or [("", "", rows)]
    results = []
    pairs = list(product(divided, chosen, combinations(range(len(parts)), 2)))
    with progress_bar(progress, total=len(pairs), desc="compare") as bar:
        for (title, segment, members), metric, (i, j) in pairs:
            bar.update()
            pair = (parts[i], parts[j])
            if parts[i].traits_of(metric).per_user:
                one, other = ((parts[m], members[m]) for m in (i, j))
                a, b = linear_pair(metric, one, other)
                gains = values_in(metric, *one) - values_in(metric, *other)
                numbers = compare_values(a, b, test, level, gains)
                distance: Callable[[float], Distance] = partial(values_distance, a, b)
            else:
                numbers = compare_replicates(pair, metric, level, n_users, are_all)
                distance = partial(replicates_distance, pair, metric, are_all)
            if metric in margins:
                higher = parts[i].traits_of(metric).higher_is_better
                size = margins[metric].number(float(numbers["mean_b"]))
                numbers |= decide(margins[metric], size, distance, higher)
            where = {"by": title, "segment": segment} if columns else {}
            if not columns:
                for side, part in zip("ab", pair, strict=True):
                    numbers[f"left_out_{side}"] = part.n_counted - int(numbers["n_users"])
            results.append(where | {"metric": metric, "a": names[i], "b": names[j]} | numbers)
    return _comparison(
        parts[0], results, margins, names=names, n_users=n_users, test=test, correction=correction,
        level=level, left_out=left_out, notes=tuple(notes),
        by=tuple(column.title for column in columns),
    )  # fmt: skip


def _comparison(
    first: Part, results: list[dict[str, Any]], margins: Mapping[str, Margin], **facts: Any
) -> Comparison:
    """Return a comparison with these facts, corrected p-values, the better ones and verdicts."""
    import pandas as pd

    table = pd.DataFrame(results)
    agree = table.pop("favours").to_numpy() == np.sign(table["difference"].to_numpy())
    corrected = correct(table["p"].to_numpy(), facts["correction"])
    table.insert(list(table).index("p") + 1, "p_corrected", corrected)
    significant = agree & (table["p_corrected"] < significance(facts["level"])).to_numpy()
    higher_is_better = {name: first.traits_of(name).higher_is_better for name in table["metric"]}
    higher = table["metric"].map(higher_is_better).to_numpy()
    a_better = (table["difference"] > 0).to_numpy() == higher
    better = np.where(significant, np.where(a_better, table["a"], table["b"]), "")
    table.insert(list(table).index("p_corrected") + 1, "better", better)
    swapped = table.loc[~higher, ["losses", "wins"]].to_numpy().copy()
    table.loc[~higher, ["wins", "losses"]] = swapped
    counts = ["wins", "ties", "losses"]
    table[counts] = table[counts].astype("Int64")  # missing where users have no values
    if margins:
        add_verdicts(table, margins, facts["correction"], facts["level"])
        undefined = dict.fromkeys(
            f"{row['metric']} of {row['b']}"
            + (f" in {row['by']} {row['segment']}" if facts["by"] else "")
            for row in results
            if math.isnan(row.get("margin", 0.0)) and row["mean_b"] <= 0
        )
        if undefined:
            places = ", ".join([*undefined][:3]) + (", …" if len(undefined) > 3 else "")
            why = "no verdict, because the margin is a percentage of a mean of 0 or less"
            facts["notes"] = (*facts["notes"], f"{why}: {places}")
    among = None if first.candidates is None else first.candidates.kind
    return Comparison(table=table, candidates=among, higher_is_better=higher_is_better, **facts)


def _signed(text: str) -> str:
    """Return a number with its sign, also if it is a plus."""
    return text if text.startswith("-") or not text else f"+{text}"


#: Characters with a meaning in Markdown's tables, and how they are written.
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_|<>[]"})


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with a and b exchanged in the displayed columns."""
    of_other = {"a": row["b"], "b": row["a"], "wins": row["losses"], "losses": row["wins"]}
    signs = {"difference": "difference", "ci_low": "ci_high", "ci_high": "ci_low"}
    return {**row, **of_other, **{name: -row[other] for name, other in signs.items()}}


def _markdown(text: str) -> str:
    """Write text in Markdown, in one line."""
    return " ".join(text.split()).translate(_MARKDOWN)
