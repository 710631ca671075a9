"""Compare evaluations of the same users: the table of differences and its intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.formatting import MOST_ROWS, as_html, number, numbers, records, text_table
from ..core.progress import display
from ..errors import InvalidDataError
from ..metrics import parse_metrics
from .intervals import check_level, interval_of_mean, interval_of_replicates
from .paired_tests import CORRECTIONS, TESTS, correct, p_value, significance, two_sided

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Floats, Integers, Labels
    from ..metrics import Metric
    from .scores import Scores

    Test = Literal["t", "wilcoxon", "permutation"]
    Correction = Literal["holm", "bh", "none"]

#: Power of the test for which the detectable difference is given.
POWER = 0.8

#: Columns of numbers in the table for display.
_NUMBERS = ("difference", "p, corrected", "detectable")

_HOWS = ("same", "intersection")

#: Users that an error message names.
_MAX_NAMED_USERS = 3


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
    correction : {"holm", "bh", "none"}
        The correction for multiple comparisons that gave `p_corrected`, over all rows of the
        table: of the family-wise error rate (Holm) or of the false discovery rate (Benjamini and
        Hochberg).
    level : float
        Confidence level of the intervals; a difference is significant if
        ``p_corrected < 1 - level``.

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

    def how_found(self) -> str:
        """Return in a line how many users were compared, and how."""
        title = CORRECTIONS[self.correction]
        corrected = f", {title} correction" if title else ""
        return (
            f"{self.n_users:,} users, {TESTS[self.test].title}{corrected} over {len(self.table):,} "
            f"difference{'' if len(self.table) == 1 else 's'}, {self.level * 100:g} % intervals "
            "(not corrected)"
        )

    def shown(self) -> pd.DataFrame:
        """Return the table for display: fewer columns, numbers as text."""
        import pandas as pd

        rows = []
        for row in self.table.to_dict("records"):
            ends = map(_signed, numbers(row["ci_low"], row["ci_high"]))
            counts = (row["wins"], row["ties"], row["losses"])
            rows.append(
                {
                    "metric": row["metric"],
                    "a": row["a"],
                    "b": row["b"],
                    "difference": _signed(number(row["difference"])),
                    "interval": "none" if row["interval"] == "none" else " to ".join(ends),
                    "p, corrected": _format_p(row["p_corrected"]),
                    "better": row["better"] or "not significant",
                    "wins/ties/losses": "" if pd.isna(row["wins"]) else "/".join(map(str, counts)),
                    "detectable": number(row["detectable"]),
                }
            )
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON. The keys are stable."""
        return {
            "names": list(self.names),
            "n_users": self.n_users,
            "test": self.test,
            "correction": self.correction,
            "level": self.level,
            "differences": records(self.table),
        }

    def __repr__(self) -> str:
        shown = self.shown()
        more = len(shown) - MOST_ROWS
        rest = f"\n… and {more:,} more rows: .table" if more > 0 else ""
        rows = shown.head(MOST_ROWS).to_numpy().tolist()
        aligned = ["decimal" if name in _NUMBERS else "left" for name in shown]
        table = text_table(rows, list(map(str, shown)), aligned, "simple")
        return f"<Comparison of {', '.join(self.names)}: {self.how_found()}>\n{table}{rest}"

    def _repr_html_(self) -> str:
        heading = f"Comparison of {', '.join(self.names)}: {self.how_found()}"
        return as_html(heading, self.shown(), where=".table")


def compare(
    evaluations: Mapping[str, Scores],
    metrics: str | Iterable[str] | None = None,
    *,
    test: Test = "t",
    correction: Correction = "holm",
    how: Literal["same", "intersection"] = "same",
    level: float = 0.95,
    progress: bool | None = None,
) -> Comparison:
    """Compare evaluations of the same users and validation data, pair by pair.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more evaluations by name, saved ones included.
    metrics : str or iterable of str, optional
        Metrics to compare, by their names in the evaluations; all by default. The fewer are
        chosen, before looking at the results, the smaller the correction.
    test : {"t", "wilcoxon", "permutation"}
        The paired test, as in `scipy.stats`: Student's t-test of the mean difference, Wilcoxon's
        signed-rank test, or a permutation test of the mean difference under random signs (all
        signs for few users, otherwise 9,999 draws with a fixed seed).
    correction : {"holm", "bh", "none"}
        The correction for multiple comparisons, over all rows of the table: Holm's, which
        controls the probability of any error [1]_, or Benjamini and Hochberg's, which controls
        the share of errors among significant differences [2]_.
    how : {"same", "intersection"}
        What to do if the evaluations are of different users: raise an error, or compare the users
        that all have.
    level : float
        Confidence level of the intervals, between 0 and 1; 1 − `level` is the level of
        significance.
    progress : bool, optional
        Show a progress bar if the comparison takes more than two seconds, as permutation tests of
        many users and metrics do; by default on a terminal and in a notebook only.

    Returns
    -------
    Comparison
        Its ``table`` has one row for each metric and pair (columns ``metric``, ``a``, ``b``):

        - ``mean_a``, ``mean_b``: means over the users compared;
        - ``difference``: a less b, with its interval ``ci_low``, ``ci_high`` (``interval`` is its
          kind, see `Evaluation.summary`);
        - ``p``, ``p_corrected``: the p-value, and the same after correction;
        - ``better``: the name of the better evaluation; empty if the difference is not
          significant, or if Wilcoxon's ranks and the means favour different ones;
        - ``wins``, ``ties``, ``losses``: numbers of users for whom a is better, equal or worse;
        - ``effect_size``: the mean difference in standard deviations of the difference (Cohen's
          d);
        - ``detectable``: the smallest difference that an uncorrected t-test with this number of
          users would detect in 80 of 100 cases;
        - ``n_users``: the number of users for whom both have a value.

        Metrics of all users together are compared by paired jackknife replicates, and have no
        wins. They are NaN if ``how="intersection"`` leaves users out.

    Raises
    ------
    InvalidDataError
        If there are fewer than two evaluations or two users; if the evaluations have different
        users (with ``how="same"``), metrics, conventions or relevant items; or if an option is
        unknown.

    See Also
    --------
    write_report : A page with the comparison and its charts.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
       of Statistics 6(2), 1979, pp. 65-70.
    .. [2] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and
       powerful approach to multiple testing", Journal of the Royal Statistical Society B 57(1),
       1995, pp. 289-300. doi:10.1111/j.2517-6161.1995.tb02031.x

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
    """
    import pandas as pd
    from tqdm.auto import tqdm

    _check_options(test, correction, how)
    level = check_level(level)
    if not isinstance(evaluations, Mapping) or len(evaluations) < 2:
        raise InvalidDataError('give two or more evaluations by name: {"als": ev, "bpr": other}')
    names = tuple(str(name) for name in evaluations)
    if len(set(names)) < len(names):
        raise InvalidDataError(f"two evaluations have the same name: {', '.join(names)}")
    scored = list(evaluations.values())
    chosen = common_metrics(evaluations, metrics)
    _check_conventions(names, scored)
    rows = _common_users(names, scored, how)
    all_users = all(len(rows[0]) == ev.counted.sum() for ev in scored)
    results = []
    pairs = list(combinations(range(len(scored)), 2))
    bar = tqdm(total=len(chosen) * len(pairs), desc="compare", **({"delay": 2} | display(progress)))
    with bar:
        for metric, (i, j) in product(chosen, pairs):
            bar.update()
            pair = (scored[i], scored[j])
            if scored[i].is_per_user(metric):
                a, b = (scored[m].values(metric)[rows[m]] for m in (i, j))
                numbers = _compare_values(a, b, test, level)
            else:
                numbers = _compare_replicates(pair, metric, level, len(rows[0]), all_users)
            results.append({"metric": metric, "a": names[i], "b": names[j], **numbers})
    table = pd.DataFrame(results)
    agree = table.pop("favours").to_numpy() == np.sign(table["difference"].to_numpy())
    table.insert(10, "p_corrected", correct(table["p"].to_numpy(), correction))
    significant = agree & (table["p_corrected"] < significance(level)).to_numpy()
    higher = np.array([scored[0].higher_is_better(name) for name in table["metric"]])
    a_better = (table["difference"] > 0).to_numpy() == higher
    better = np.where(a_better, table["a"], table["b"])
    table.insert(11, "better", np.where(significant, better, ""))
    lower = ~higher
    swapped = table.loc[lower, ["losses", "wins"]].to_numpy().copy()
    table.loc[lower, ["wins", "losses"]] = swapped
    counts = ["wins", "ties", "losses"]
    table[counts] = table[counts].astype("Int64")  # missing where users have no values
    return Comparison(names, table, len(rows[0]), test, correction, level)


def _check_options(test: str, correction: str, how: str) -> None:
    for name, value, allowed in (
        ("test", test, TESTS),
        ("correction", correction, CORRECTIONS),
        ("how", how, _HOWS),
    ):
        if not isinstance(value, str) or value not in allowed:
            raise InvalidDataError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


def _check_conventions(names: tuple[str, ...], scored: list[Scores]) -> None:
    """Raise `InvalidDataError` if evaluations follow different conventions."""
    first = scored[0]
    for name, ev in zip(names[1:], scored[1:], strict=True):
        for option, a, b in (
            ("convention", first.convention, ev.convention),
            ("no_relevant", first.no_relevant, ev.no_relevant),
            ("seen", first.request.seen, ev.request.seen),
        ):
            if a != b:
                raise InvalidDataError(
                    f"{names[0]} was evaluated with {option} {a!r}, {name} with {b!r}; evaluate "
                    "both alike"
                )


def common_metrics(
    evaluations: Mapping[str, Scores], metrics: str | Iterable[str] | None
) -> list[str]:
    """Return the metrics to compare, or raise `InvalidDataError` if an evaluation lacks one."""
    if metrics is None:
        chosen = list(dict.fromkeys(metric for ev in evaluations.values() for metric in ev.names))
    else:
        chosen = list(dict.fromkeys(map(str, _spelt_as_evaluated(evaluations, metrics))))
    if not chosen:
        raise InvalidDataError("there are no metrics to compare; leave metrics out to compare all")
    for name, ev in evaluations.items():
        missing = [metric for metric in chosen if metric not in ev.names]
        if missing:
            raise InvalidDataError(
                f"{name} has no {', '.join(map(str, missing))}, but {', '.join(ev.names)}; "
                "evaluate the same metrics for all, or choose those to compare"
            )
    return chosen


def _spelt_as_evaluated(
    evaluations: Mapping[str, Scores], metrics: str | Iterable[str]
) -> Iterator[str | Metric]:
    """Yield the names as the evaluations print them, where they have them."""
    evaluated = {name for ev in evaluations.values() for name in ev.names}
    defaults = next(iter(evaluations.values())).request.convention.options
    try:
        given: list[Any] = [metrics] if isinstance(metrics, str) else list(metrics)
    except TypeError:  # which parse_metrics refuses
        given = [metrics]
    for metric in given:
        if isinstance(metric, str) and metric in evaluated:  # it may not be registered here
            yield metric
        else:
            yield from parse_metrics(metric, defaults)


def _common_users(names: tuple[str, ...], scored: list[Scores], how: str) -> list[Integers]:
    """Return for each evaluation the rows of the users that all have, in the same order."""
    import pandas as pd

    unlabelled = [name for name, ev in zip(names, scored, strict=True) if ev.users is None]
    if unlabelled and any(not _are_row_numbers(ev.users) for ev in scored):
        raise InvalidDataError(
            f"{unlabelled[0]} has no labels for its users and others have; label all of them, as "
            "Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items) does"
        )
    labels = []
    for ev in scored:
        users = pd.RangeIndex(len(ev.counted)) if ev.users is None else ev.users
        labels.append(users[ev.counted])
    common = labels[0]
    for name, users in zip(names[1:], labels[1:], strict=True):
        if users.equals(labels[0]):
            continue
        if how == "same":
            _check_same_users(names[0], labels[0], name, users)
        common = common[common.isin(users)]
    if len(common) < 2:
        raise InvalidDataError(
            f"there {'is 1 user' if len(common) else 'are 0 users'} to compare; a comparison "
            "needs two or more"
        )
    rows = []
    for ev, users in zip(scored, labels, strict=True):
        order = np.arange(len(users)) if users.equals(common) else users.get_indexer(common)
        rows.append(np.flatnonzero(ev.counted)[order])
    fingerprints = [ev.fingerprints[row] for ev, row in zip(scored, rows, strict=True)]
    for name, others in zip(names[1:], fingerprints[1:], strict=True):
        different = np.flatnonzero(fingerprints[0] != others)
        if len(different):
            raise InvalidDataError(
                f"{names[0]} and {name} were evaluated on different validation data: "
                f"{len(different)} of {len(common)} users have other relevant items (such as "
                f"{_name_users(common[different])}); evaluate both on the same"
            )
    return rows


def _are_row_numbers(users: Labels | None) -> bool:
    """Return whether users are known by the numbers from 0 on, in any order."""
    if users is None:
        return True
    return users.dtype.kind in "iu" and np.array_equal(np.sort(users), np.arange(len(users)))


def _check_same_users(a: str, users_a: Labels, b: str, users_b: Labels) -> None:
    only = {a: users_a.difference(users_b, sort=False), b: users_b.difference(users_a, sort=False)}
    parts = [
        f"{len(users)} only in {name} (such as {_name_users(users)})"
        for name, users in only.items()
        if len(users)
    ]
    if parts:
        raise InvalidDataError(
            f"{a} and {b} are about different users: {', '.join(parts)}; evaluate the same users, "
            'or compare those that both have with how="intersection"'
        )


def _name_users(users: Labels) -> str:
    return ", ".join(map(repr, users[:_MAX_NAMED_USERS].tolist()))


@lru_cache(maxsize=64)
def _detectable_standard_errors(level: float, freedom: int) -> float:
    """Return the smallest difference that a t-test detects with `POWER`, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, [0.5 + level / 2, POWER]).sum())


def _compare_values(a: Floats, b: Floats, test: str, level: float) -> dict[str, float | str]:
    """Compare the values of users for whom both are defined."""
    defined = ~(np.isnan(a) | np.isnan(b))
    a, b = a[defined], b[defined]
    n = len(a)
    difference = a - b
    mean = float(difference.mean()) if n else math.nan
    std = float(difference.std(ddof=1)) if n > 1 else math.nan
    interval = interval_of_mean(difference, level)
    p, favours = p_value(a, b, test, level)
    detectable = math.nan
    if n > 1:
        detectable = _detectable_standard_errors(level, n - 1) * std / math.sqrt(n)
    return {
        "mean_a": float(a.mean()) if n else math.nan,
        "mean_b": float(b.mean()) if n else math.nan,
        "difference": mean,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "interval": interval.method,
        "p": p,
        "favours": favours,
        "wins": int((difference > 0).sum()),
        "ties": int((difference == 0).sum()),
        "losses": int((difference < 0).sum()),
        # The standard deviation of equal differences is rounding error.
        "effect_size": mean / std if std > 1e-12 * abs(mean) else (0.0 if mean == 0 else math.nan),
        "detectable": detectable,
        "n_users": n,
    }


def _compare_replicates(
    pair: tuple[Scores, Scores], metric: str, level: float, n_users: int, all_users: bool
) -> dict[str, float | str]:
    """Compare a metric of all users together, unless users were left out."""
    a, b = (ev[metric] if all_users else math.nan for ev in pair)
    differences = np.zeros(0)
    if all_users:
        differences = pair[0].replicates(metric) - pair[1].replicates(metric)
    interval = interval_of_replicates(a - b, differences, level)
    p = math.nan
    if interval.method != "none":
        error = float(differences.std(ddof=1))
        freedom = len(differences) - 1
        p = two_sided((a - b) / error, freedom) if error else float(a == b)
    return {
        "mean_a": a,
        "mean_b": b,
        "difference": a - b,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "interval": interval.method,
        "p": p,
        "favours": int(np.sign(a - b)) if a == a and b == b else 0,
        **dict.fromkeys(("wins", "ties", "losses", "effect_size", "detectable"), math.nan),
        "n_users": n_users,
    }


def _signed(text: str) -> str:
    """Return a number with its sign, also if it is a plus."""
    return text if text.startswith("-") or not text else f"+{text}"


def _format_p(p: float) -> str:
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
