"""`compare`: which of two or more models is better, how sure that is, and for how many users."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ..core.formatting import MOST_ROWS, as_html, records
from ..core.progress import is_shown
from ..errors import InvalidDataError
from .intervals import check_level, interval_of_mean, interval_of_replicates

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Test = Literal["t", "wilcoxon", "permutation"]
    Correction = Literal["holm", "bh", "none"]

__all__ = ["Comparison", "Scored", "common_metrics", "compare"]

#: Sign flips of a permutation test, beyond which it does not go through all of them.
PERMUTATIONS = 9999

#: Signs drawn at once: few enough for a cache.
_AT_ONCE = 1 << 18

#: Power at which the smallest difference is given that could have been shown.
POWER = 0.8

_TOLD = {
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "permutation": "sign-flip permutation test",
    "holm": "Holm's",
    "bh": "Benjamini and Hochberg's",
}

_TESTS = ("t", "wilcoxon", "permutation")
_CORRECTIONS = ("holm", "bh", "none")
_HOWS = ("same", "intersection")

#: Users that a message names.
_NAMED = 3


class Scored(Protocol):
    """What is compared: an `Evaluation`, or a saved one."""

    @property
    def names(self) -> list[str]:
        """The metrics."""

    @property
    def users(self) -> pd.Index[Any] | None:
        """The users' labels."""

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which users are evaluated, one entry for each."""

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """A number that stands for the relevant items of each user."""

    @property
    def convention(self) -> str:
        """The name of the convention."""

    @property
    def no_relevant(self) -> str:
        """What was done with users without relevant items."""

    def __getitem__(self, name: str) -> float:
        """Return the mean of a metric, or its one number."""

    def is_per_user(self, name: str) -> bool:
        """Say whether a metric has a value for each user."""

    def higher_is_better(self, name: str) -> bool:
        """Say which way a metric is better."""

    def values(self, name: str) -> Values:
        """Return a metric of each user, NaN for one that is left out."""

    def replicates(self, name: str) -> Values:
        """Return bootstrap replicates of a metric about all users together."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every two of some evaluations, on the same users.

    Attributes
    ----------
    names : tuple of str
        The evaluations, in the order given.
    table : pandas.DataFrame
        One row for each metric and pair, see `compare`.
    n_users : int
        Users that both of a pair are about.
    test : {"t", "wilcoxon", "permutation"}
        The paired test that gave `p`.
    correction : {"holm", "bh", "none"}
        What `p_corrected` allows for: the family-wise error rate, or the false discovery rate,
        over all rows of the table.
    level : float
        Of the intervals; a row names a better one if ``p_corrected < 1 - level``.
    """

    names: tuple[str, ...]
    table: pd.DataFrame
    n_users: int
    test: str
    correction: str
    level: float

    def how_found(self) -> str:
        """Say in a line what was compared, and how."""
        corrected = "" if self.correction == "none" else f", {_TOLD[self.correction]} correction"
        return (
            f"{self.n_users:,} users, {_TOLD[self.test]}{corrected} over {len(self.table):,} "
            f"difference{'' if len(self.table) == 1 else 's'}, {self.level * 100:g} % intervals "
            "(not corrected)"
        )

    def shown(self) -> pd.DataFrame:
        """Return the table as people read it: fewer columns, numbers as text."""
        import pandas as pd

        rows = [
            {
                "metric": row["metric"],
                "a": row["a"],
                "b": row["b"],
                "difference": "" if math.isnan(row["difference"]) else f"{row['difference']:+.4f}",
                "interval": "none"
                if row["interval"] == "none"
                else f"{row['ci_low']:+.4f} to {row['ci_high']:+.4f}",
                "p, corrected": _p_text(row["p_corrected"]),
                "better": row["better"] or "not shown",
                "wins/ties/losses": ""
                if pd.isna(row["wins"])
                else f"{row['wins']}/{row['ties']}/{row['losses']}",
                "detectable": "" if math.isnan(row["detectable"]) else f"{row['detectable']:.4f}",
            }
            for row in self.table.to_dict("records")
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON. The keys are stable."""
        return {
            "names": list(self.names),
            "n_users": self.n_users,
            "test": self.test,
            "correction": self.correction,
            "level": self.level,
            "differences": records(self.table),
        }

    def __repr__(self) -> str:
        more = len(self.table) - MOST_ROWS
        left = f"\n… and {more:,} more rows: .table" if more > 0 else ""
        table = self.shown().head(MOST_ROWS).to_string(index=False)
        return f"<Comparison of {', '.join(self.names)}: {self.how_found()}>\n{table}{left}"

    def _repr_html_(self) -> str:
        heading = f"Comparison of {', '.join(self.names)}: {self.how_found()}"
        return as_html(heading, self.shown(), index=False, where=".table")


def compare(
    evaluations: Mapping[str, Scored],
    metrics: str | Iterable[str] | None = None,
    *,
    test: Test = "t",
    correction: Correction = "holm",
    how: Literal["same", "intersection"] = "same",
    level: float = 0.95,
    progress: bool | None = None,
) -> Comparison:
    """Compare evaluations of the same users and validation data, every two of them.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more by name; saved ones too.
    metrics : str or iterable of str, optional
        Those to compare, as they are named in the evaluations; all by default. The fewer are
        chosen, before looking at the results, the less has to be corrected for.
    test : {"t", "wilcoxon", "permutation"}
        Student's paired test of the mean difference, Wilcoxon's signed-rank test, or the mean
        difference under random signs (all of them for few users, otherwise 9,999 seeded draws);
        of `scipy.stats`.
    correction : {"holm", "bh", "none"}
        For looking at many differences at once, all rows of the table: Holm's for the chance of
        any error, or Benjamini and Hochberg's for the share of errors among what is shown.
    how : {"same", "intersection"}
        What to do if not all have evaluated the same users: raise an error, or compare those
        that all have.
    level : float
        Of the intervals, and 1 − the level of significance.
    progress : bool, optional
        Show a progress bar where it takes more than two seconds, as a permutation test of many
        users and metrics does; by default on a terminal and in a notebook only.

    Returns
    -------
    Comparison
        Its ``table`` has one row for each metric and pair (columns ``metric``, ``a``, ``b``):
        ``mean_a``, ``mean_b`` over the users compared; ``difference``, a less b, and its interval
        ``ci_low``, ``ci_high`` (``interval`` says of which kind, see `Evaluation.summary`);
        ``p`` and ``p_corrected``; ``better``, the name of the better one, empty where no
        difference is shown (or where Wilcoxon's ranks and the means speak for different ones);
        ``wins``, ``ties`` and ``losses``, users for whom a is better,
        equal, worse; ``effect_size``, the mean difference in standard deviations of the
        difference (Cohen's d); ``detectable``, the smallest difference that a t-test of so many
        users shows in 80 of 100 cases, without correction; ``n_users``. What has no value for
        each user is compared by paired bootstrap replicates, and has no wins; with
        ``how="intersection"`` it is not known for the users that all have (NaN), and with users
        in another order it has no interval.

    Raises
    ------
    InvalidDataError
        If there are fewer than two evaluations or two users; if they are of other users (with
        ``how="same"``), metrics, conventions or relevant items; or an option is unknown.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    _check_options(test, correction, how)
    level = check_level(level)
    if not isinstance(evaluations, Mapping) or len(evaluations) < 2:
        raise InvalidDataError('give two or more evaluations by name: {"als": ev, "bpr": other}')
    names = tuple(str(name) for name in evaluations)
    if len(set(names)) < len(names):
        raise InvalidDataError(f"two evaluations are called the same: {', '.join(names)}")
    scored = list(evaluations.values())
    chosen = common_metrics(evaluations, metrics)
    _check_alike(names, scored)
    rows = _common_users(names, scored, how)
    whole = all(len(rows[0]) == one.counted.sum() for one in scored)
    paired = all((row == np.sort(row)).all() for row in rows)  # samples are drawn by row
    found = []
    pairs = list(combinations(range(len(scored)), 2))
    bar = tqdm(
        total=len(chosen) * len(pairs), desc="compare", delay=2, disable=not is_shown(progress)
    )
    with bar:
        for metric, (i, j) in product(chosen, pairs):
            bar.update()
            pair = (scored[i], scored[j])
            if scored[i].is_per_user(metric):
                a, b = (scored[m].values(metric)[rows[m]] for m in (i, j))
                numbers = _compare_values(a, b, test, level)
            else:
                numbers = _compare_replicates(pair, metric, level, len(rows[0]), whole, paired)
            found.append({"metric": metric, "a": names[i], "b": names[j], **numbers})
    table = pd.DataFrame(found)
    agree = table.pop("favours").to_numpy() == np.sign(table["difference"].to_numpy())
    table.insert(10, "p_corrected", _corrected(table["p"].to_numpy(), correction))
    shown = agree & (table["p_corrected"] < significance(level)).to_numpy()
    higher = np.array([scored[0].higher_is_better(name) for name in table["metric"]])
    a_better = (table["difference"] > 0).to_numpy() == higher
    better = np.where(a_better, table["a"], table["b"])
    table.insert(11, "better", np.where(shown, better, ""))
    lower = ~higher
    swapped = table.loc[lower, ["losses", "wins"]].to_numpy().copy()
    table.loc[lower, ["wins", "losses"]] = swapped
    counts = ["wins", "ties", "losses"]
    table[counts] = table[counts].astype("Int64")  # there are none where no users have values
    return Comparison(names, table, len(rows[0]), test, correction, level)


def significance(level: float) -> float:
    """Return 1 − level as it is meant: 0.05, not 0.05 and a rounding error."""
    return round(1 - level, 12)


def _check_options(test: str, correction: str, how: str) -> None:
    for name, value, allowed in (
        ("test", test, _TESTS),
        ("correction", correction, _CORRECTIONS),
        ("how", how, _HOWS),
    ):
        if value not in allowed:
            raise InvalidDataError(f"{name} is {value!r}; expected one of {', '.join(allowed)}")


def _check_alike(names: tuple[str, ...], scored: list[Scored]) -> None:
    """Raise `InvalidDataError` if evaluations differ in what was computed, or how."""
    first = scored[0]
    for name, other in zip(names[1:], scored[1:], strict=True):
        for what in ("convention", "no_relevant"):
            mine, theirs = getattr(first, what), getattr(other, what)
            if mine != theirs:
                raise InvalidDataError(
                    f"{names[0]} was evaluated with {what} {mine!r}, {name} with {theirs!r}; "
                    "evaluate both alike"
                )


def common_metrics(
    evaluations: Mapping[str, Scored], metrics: str | Iterable[str] | None
) -> list[str]:
    """Return the metrics to compare, or raise `InvalidDataError` if one of them is not in all."""
    if metrics is None:
        asked = list(dict.fromkeys(metric for one in evaluations.values() for metric in one.names))
    else:
        asked = [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    if not asked:
        raise InvalidDataError("no metrics are asked for; leave metrics out to take all")
    for name, one in evaluations.items():
        lacking = [metric for metric in asked if metric not in one.names]
        if lacking:
            raise InvalidDataError(
                f"{name} has no {', '.join(map(str, lacking))}, but {', '.join(one.names)}; "
                "evaluate the same metrics for all, or choose those to compare"
            )
    return asked


def _common_users(
    names: tuple[str, ...], scored: list[Scored], how: str
) -> list[NDArray[np.int64]]:
    """Return the rows of the users that all have evaluated, in one order."""
    import pandas as pd

    labelled = {one.users is not None for one in scored}
    if len(labelled) > 1:
        without = names[[one.users is None for one in scored].index(True)]
        raise InvalidDataError(
            f"{without} has no labels for its users and others have; label all of them, as "
            "Relevance.from_csr(holdout.validation, users=holdout.users, items=holdout.items) does"
        )
    labels = []
    for one in scored:
        users = pd.RangeIndex(len(one.counted)) if one.users is None else one.users
        labels.append(users[one.counted])
    common = labels[0]
    for name, mine in zip(names[1:], labels[1:], strict=True):
        if mine.equals(labels[0]):
            continue
        if how == "same":
            only = [labels[0].difference(mine, sort=False), mine.difference(labels[0], sort=False)]
            if any(map(len, only)):
                told = (
                    f"{len(users)} only in {of} (such as {_some(users)})"
                    for users, of in zip(only, (names[0], name), strict=True)
                    if len(users)
                )
                raise InvalidDataError(
                    f"{names[0]} and {name} are about different users: {', '.join(told)}; evaluate "
                    'the same users, or compare those that both have with how="intersection"'
                )
        common = common[common.isin(mine)]
    if len(common) < 2:
        raise InvalidDataError(
            f"there are {len(common)} users to compare; a comparison needs two or more"
        )
    rows = []
    for one, mine in zip(scored, labels, strict=True):
        places = np.arange(len(mine)) if mine.equals(common) else mine.get_indexer(common)
        rows.append(np.flatnonzero(one.counted)[places])
    prints = [one.fingerprints[mine] for one, mine in zip(scored, rows, strict=True)]
    for name, theirs in zip(names[1:], prints[1:], strict=True):
        different = np.flatnonzero(prints[0] != theirs)
        if len(different):
            raise InvalidDataError(
                f"{names[0]} and {name} were evaluated on different validation data: "
                f"{len(different)} of {len(common)} users have other relevant items (such as "
                f"{_some(common[different])}); evaluate both on the same"
            )
    return rows


def _some(users: pd.Index[Any]) -> str:
    return ", ".join(map(repr, users[:_NAMED].tolist()))


@lru_cache(maxsize=64)
def _standard_errors(level: float, freedom: int) -> float:
    """Return how many standard errors a difference has that is shown with the wanted power."""
    from scipy import stats

    return float(stats.t.ppf([0.5 + level / 2, POWER], freedom).sum())


def _compare_values(a: Values, b: Values, test: str, level: float) -> dict[str, Any]:
    """Compare the values of the same users, those for whom both are defined."""
    defined = ~(np.isnan(a) | np.isnan(b))
    a, b = a[defined], b[defined]
    n = len(a)
    difference = a - b
    mean = float(difference.mean()) if n else math.nan
    std = float(difference.std(ddof=1)) if n > 1 else math.nan
    interval = interval_of_mean(difference, level)
    p, favours = _p_value(a, b, test, level)
    detectable = math.nan
    if n > 1:
        detectable = _standard_errors(level, n - 1) * std / math.sqrt(n)
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
        # Differences that are equal but for rounding have no standard deviation.
        "effect_size": mean / std if std > 1e-12 * abs(mean) else (0.0 if mean == 0 else math.nan),
        "detectable": detectable,
        "n_users": n,
    }


def _p_value(a: Values, b: Values, test: str, level: float) -> tuple[float, int]:
    """Return the p-value, and whether the test speaks for a (1), for b (-1) or for neither."""
    from scipy import stats

    if len(a) < 2:
        return math.nan, 0
    if (a == b).all():
        return 1.0, 0
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # Differences that are all nearly equal, and a normal approximation for few users.
        warnings.simplefilter("ignore")
        favours = int(np.sign((a - b).mean()))
        if test == "t":
            # As ttest_rel, to the last bit, in half the time.
            return float(stats.ttest_1samp(a - b, 0.0).pvalue), favours
        if test == "wilcoxon":
            p = float(stats.wilcoxon(a, b).pvalue)
            if p < significance(level):  # otherwise nobody asks, and it takes as long again
                differences = (a - b)[a != b]
                ranks = stats.rankdata(np.abs(differences))
                favours = int(np.sign((np.sign(differences) * ranks).sum()))
            return p, favours
        return _permuted(a - b), favours


def _permuted(differences: Values) -> float:
    """Return the p-value of a mean difference under random signs: all of them, or many drawn."""
    from scipy import stats

    if 2 ** len(differences) <= PERMUTATIONS + 1:
        return float(
            stats.permutation_test(
                (differences,),
                np.mean,
                permutation_type="samples",
                n_resamples=PERMUTATIONS,
                vectorized=True,
            ).pvalue
        )
    return float(
        stats.monte_carlo_test(
            differences,
            _Flipped(differences),
            np.mean,
            n_resamples=PERMUTATIONS,
            batch=max(_AT_ONCE // len(differences), 1),
            vectorized=True,
        ).pvalue
    )


class _Flipped:
    """Draw differences under the null hypothesis: each with a random sign.

    As `scipy.stats.permutation_test` does, whose random numbers take 30 times as long.
    """

    def __init__(self, differences: Values) -> None:
        self.differences = differences
        self.rng = np.random.default_rng(0)

    def __call__(self, size: tuple[int, int]) -> Values:
        n = size[0] * size[1]
        bits = np.unpackbits(self.rng.integers(0, 256, (n + 7) // 8, np.uint8), count=n)
        return np.asarray((1.0 - 2.0 * bits.reshape(size)) * self.differences)


def _compare_replicates(
    pair: tuple[Scored, Scored], metric: str, level: float, n_users: int, whole: bool, paired: bool
) -> dict[str, Any]:
    """Compare a number about all users together, if all users are compared.

    Without an interval if their order differs, since samples of them are then not the same.
    """
    from scipy import stats

    a, b = (one[metric] if whole else math.nan for one in pair)
    differences = np.zeros(0)
    if whole and paired:
        ours, theirs = (one.replicates(metric) for one in pair)
        if len(ours) == len(theirs):  # what was merged from blocks has others
            differences = ours - theirs
    interval = interval_of_replicates(a - b, differences, level)
    p = math.nan
    if interval.method != "none":
        error = float(differences.std(ddof=1))
        freedom = len(differences) - 1
        p = float(2 * stats.t.sf(abs(a - b) / error, freedom)) if error else float(a == b)
    return {
        "mean_a": a,
        "mean_b": b,
        "difference": a - b,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "interval": interval.method,
        "p": p,
        "favours": int(np.sign(a - b)) if a == a and b == b else 0,
        "wins": math.nan,
        "ties": math.nan,
        "losses": math.nan,
        "effect_size": math.nan,
        "detectable": math.nan,
        "n_users": n_users,
    }


def _p_text(p: float) -> str:
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _corrected(p: Values, correction: str) -> Values:
    """Correct the p-values that there are for their number."""
    from scipy import stats

    corrected = p.astype(float).copy()
    known = np.flatnonzero(~np.isnan(corrected))
    values = corrected[known]
    if correction == "bh" and len(known):
        corrected[known] = stats.false_discovery_control(values, method="bh")
    elif correction == "holm":  # scipy has no Holm: steps down from the smallest
        order = np.argsort(values, kind="stable")
        steps = np.maximum.accumulate(values[order] * np.arange(len(order), 0, -1))
        corrected[known[order]] = np.minimum(steps, 1.0)
    return corrected
