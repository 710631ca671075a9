"""`History`: a file with a line for each night, and changes from night to night.

It is a ledger, see `sparse_eval.jobs.ledger`. A line has

- ``night``, by default the date, and ``name`` of the evaluated model; a later line of both replaces
  an earlier one;
- ``time`` in UTC, as ``2026-11-23T03:00:00+00:00``; ``about``, the caller's own details;
- ``metrics``: for each its ``mean``, ``standard_error``, degrees of ``freedom``, 95 % interval
  ``ci_low``, ``ci_high`` and its kind ``interval``, ``n_users`` and ``higher_is_better``; null
  stands for NaN;
- ``n_users``, the evaluated users; ``users``, a digest of their labels, null if they have none;
  ``relevance``, a digest of their relevant items. Both are null if the values of the users were not
  kept;
- ``settings``, which must be equal for numbers to be comparable: ``convention``, ``no_relevant``,
  ``without_list``, ``seen`` and the kind of ``candidates``, null for all items; ``candidates``, a
  digest of them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core.arguments import check_choice, check_fraction
from ..core.atomic_files import as_input
from ..core.formatting import escaped, plain
from ..core.hashing import hash_labels, splitmix64
from ..errors import InvalidDataError
from ..inputs.candidates import name_among
from ..results.differences import CORRECTIONS, correct, significance
from ..results.intervals import LEVEL, interval_around, two_sided
from ..results.matching import are_row_numbers
from ..results.record import check_about
from .ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from ..core.types import PathLike
    from ..results.evaluation import Evaluation
    from .ledger import Row


class History:
    """A file with a line for each night, and the nights in it.

    Parameters
    ----------
    path : str or Path
        A file of JSON lines, described in `sparse_eval.jobs.history`. It need not exist.

    Attributes
    ----------
    path : Path
    nights : list of Night
        In order; several lines of one night are in the order of their times.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, or a line is damaged, which is named.

    See Also
    --------
    write_report : A page that shows the nights.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = se.History(Path(folder) / "nights.jsonl")
    ...     for night, lists in (("2026-11-22", [[1], [0], [0]]), ("2026-11-23", [[0], [0], [0]])):
    ...         ev = se.evaluate(se.Rankings.from_topk(lists, shape=(3, 3)), held_out, "mrr@1")
    ...         history.append(ev, "als", time=f"{night}T03:00+00:00")
    >>> history.to_frame()[["time", "name", "metric", "mean", "n_users"]]
                           time name metric      mean  n_users
    0 2026-11-22 03:00:00+00:00  als  mrr@1  0.333333        3
    1 2026-11-23 03:00:00+00:00  als  mrr@1  0.666667        3
    """

    def __init__(self, path: PathLike) -> None:
        self.path = as_input(path)
        self._ledger = Ledger(self.path, "history")

    @property
    def nights(self) -> list[Night]:
        """The nights in order; several lines of one night are in the order of their times."""
        nights = map(Night.of, self._ledger.rows.values())
        return sorted(nights, key=lambda night: (clock(night.night), night.time))

    def __len__(self) -> int:
        """Return the number of nights."""
        return len(self._ledger.rows)

    def __repr__(self) -> str:
        n = len(self)
        return f"<History {self.path}: {n:,} night{'' if n == 1 else 's'}>"

    def begin(self) -> None:
        """Make the file if it is missing, so that a night does not end with an error.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        self._ledger.begin()

    def append(
        self,
        evaluation: Evaluation,
        name: str,
        *,
        time: datetime | str | None = None,
        night: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a night to the file, as one whole line.

        A line of the same night and name is replaced. Several processes may add to one file at
        once, and one that is killed leaves no part of a line.

        Parameters
        ----------
        evaluation : Evaluation
        name : str
            The name of the evaluated model, such as the name of a checkpoint.
        time : datetime or str, optional
            With its time zone, as text in ISO 8601; by default now.
        night : str, optional
            The date of the night in ISO 8601; by default the date of `time` in UTC. For a run after
            midnight pass the day before. For several runs a day add the hour, such as
            ``"2026-11-23T06"``.
        about : mapping, optional
            As in `Evaluation.save`.

        Raises
        ------
        InvalidDataError
            If an argument is something else.
        OutputError
            If the file cannot be written; it is left as it was.
        """
        row = _row(evaluation, name, time, night, about)
        self._ledger.append(f"{row['night']} {row['name']}", **row)

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each night and metric.

        Returns
        -------
        pandas.DataFrame
            ``night``, ``time`` (UTC), ``name``, ``metric``, ``mean``, ``standard_error``,
            ``ci_low``, ``ci_high``, ``interval`` (see `Evaluation.summary`), ``n_users``,
            ``users`` and ``relevance`` (digests that tell whether nights are of the same users, and
            of the same relevant items), ``convention``, ``candidates`` and ``sparse_eval``.
        """
        import pandas as pd

        columns = (
            "night", "time", "name", "metric", "mean", "standard_error", "ci_low", "ci_high",
            "interval", "n_users", "users", "relevance", "convention", "candidates", "sparse_eval",
        )  # fmt: skip
        rows = [
            night._asdict() | night.settings | one._asdict() | {"metric": night.shown(metric)}
            for night in self.nights
            for metric, one in night.metrics.items()
        ]
        frame = pd.DataFrame(rows, columns=columns)
        frame["time"] = pd.to_datetime(frame["time"], utc=True)
        return frame

    def changes(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
        level: float = LEVEL,
    ) -> pd.DataFrame:
        """Compare each night with the one before.

        Parameters
        ----------
        metrics : str or iterable of str, optional
            By their names in the evaluations; by default all.
        correction : {"holm", "bonferroni", "bh", "none"}
            As in `compare`, over all rows of the table.
        level : float
            Confidence level of the intervals; 1 − `level` is the level of significance.

        Returns
        -------
        pandas.DataFrame
            One row for each night but the first one, and each metric that it shares with the night
            before. Columns: ``metric``; ``time`` and ``name``, ``before`` and ``name_before``;
            ``mean`` and ``mean_before``; ``difference``, with its interval ``ci_low``, ``ci_high``;
            ``p`` of Welch's t-test [1]_, ``p_corrected``. ``change`` is "better", "worse", or empty
            if the difference is not significant. ``same_users`` is missing if unknown. Nights with
            different conventions or candidates are not compared: numbers are NaN.

        Raises
        ------
        InvalidDataError
            If an option is unknown, or no night has one of `metrics`.

        Notes
        -----
        The test assumes that the users of two nights are independent. For the same users, means are
        correlated, and the test has less power than possible: `compare` the saved evaluations,
        which pairs users.

        References
        ----------
        .. [1] B. L. Welch, "The generalization of 'Student's' problem when several different
           population variances are involved", Biometrika 34, 1947, pp. 28-35.
           doi:10.1093/biomet/34.1-2.28
        """
        import pandas as pd

        check_choice("correction", correction, list(CORRECTIONS))
        level = check_fraction("level", level)
        nights = self.nights
        known = {metric: None for night in nights for metric in night.metrics}
        wanted = (
            [metrics] if isinstance(metrics, str) else [*(known if metrics is None else metrics)]
        )
        missing = [metric for metric in wanted if metric not in known]
        if missing:
            raise InvalidDataError(
                f"no night has {', '.join(map(str, missing))}; the metrics are "
                f"{', '.join(sorted(known)) or 'none, because the history is empty'}"
            )
        rows = []
        for before, night in _pairs(nights):
            alike = before.settings == night.settings
            for metric, b in night.metrics.items():
                a = before.metrics.get(metric)
                if a is None or metric not in wanted:
                    continue
                difference = b.mean - a.mean if alike else math.nan
                error, freedom = _welch(a, b)
                interval = interval_around(difference, error, freedom, level, "t")
                rows.append((
                    night.shown(metric), night.time, night.name, before.time, before.name, b.mean,
                    a.mean, difference, interval.low, interval.high,
                    two_sided(difference, error, freedom), night.same_users(before),
                    b.higher_is_better,
                ))  # fmt: skip
        columns = (
            "metric", "time", "name", "before", "name_before", "mean", "mean_before", "difference",
            "ci_low", "ci_high", "p", "same_users", "higher_is_better",
        )  # fmt: skip
        table = pd.DataFrame(rows, columns=columns)
        p = correct(table["p"].to_numpy(np.float64), correction)
        table.insert(11, "p_corrected", p)
        higher = table.pop("higher_is_better").to_numpy(bool)
        change = np.where((table["difference"] > 0).to_numpy() == higher, "better", "worse")
        table.insert(12, "change", np.where(p < significance(level), change, ""))
        table["same_users"] = table["same_users"].astype("boolean")
        return table

    def notes(self) -> list[str]:
        """Return notes on the changes, such as nights with different users."""
        pairs = _pairs(self.nights)
        same = [night.same_users(before) for before, night in pairs]
        said = []
        if others := same.count(False):
            said.append(
                f"nights with different users from the night before: {others:,} of {len(pairs):,}"
            )
        if unknown := same.count(None):
            said.append(
                f"nights with possibly different users from the night before: {unknown:,} of "
                f"{len(pairs):,}, because users have no labels or their values were not kept"
            )
        if True in same:
            said.append(
                "nights with the same users are compared as independent samples, because a history "
                "has only means. To detect smaller changes, compare the saved evaluations"
            )
        return said + [
            f"{night.time:%Y-%m-%d %H:%M} is not compared with the night before, because {option} "
            f"is {value or 'none'}, and was {before.settings[option] or 'none'}"
            for before, night in pairs
            for option, value in night.settings.items()
            if before.settings[option] != value
        ]


def checked_night(night: str) -> str:
    """Return the date of a night, or raise `InvalidDataError` if it is none."""
    try:
        clock(night)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"night is {night!r}; expected a date, as 2026-11-23, or one with an hour, as "
            "2026-11-23T06",
            argument="night",
        ) from None
    return night


def clock(night: str) -> datetime:
    """Return the moment at which a night begins, without a time zone."""
    return datetime.fromisoformat(night).replace(tzinfo=None)


def _row(
    ev: Evaluation,
    name: str,
    time: datetime | str | None = None,
    night: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Row:
    """Return the content of a line; its time is in UTC, by default now."""
    parsed = datetime.now(UTC) if time is None else time
    if isinstance(parsed, str):
        with suppress(ValueError):
            parsed = datetime.fromisoformat(parsed)
    # pandas has no nanoseconds before 1678 and after 2261.
    if not isinstance(parsed, datetime) or parsed.tzinfo is None or not 1678 <= parsed.year < 2262:
        raise InvalidDataError(
            f"time is {time!r}; expected one of 1678 to 2261 with its time zone, as "
            "2026-11-23T03:00+00:00"
        )
    parsed = parsed.astimezone(UTC)
    request, candidates = ev.request, ev._part.candidates
    users, relevance = _digests(ev)
    return {
        "night": f"{parsed:%Y-%m-%d}" if night is None else checked_night(night),
        "time": parsed.isoformat(timespec="seconds"),
        "name": escaped(name),
        "metrics": {
            metric: {key: plain(value) for key, value in _numbers(ev, row)._asdict().items()}
            for row, metric in enumerate(ev.keys())
        },
        "n_users": ev.n_users,
        "users": users,
        "relevance": relevance,
        "settings": {
            "convention": ev.request.convention.name,
            "no_relevant": ev.request.no_relevant,
            "without_list": request.without_list,
            "seen": request.seen,
            "candidates": None if candidates is None else candidates.kind,
        },
        "candidates": None if candidates is None else candidates.digest,
        "about": check_about(about),
    }


def _numbers(ev: Evaluation, row: int) -> NightlyMetric:
    """Return the mean of a metric, and its uncertainty."""
    part, traits = ev._part, ev.request.traits[row]
    mean, n_users, interval = part.value(row), part.count(row), part.interval(row, LEVEL)
    error, freedom = math.nan, n_users - 1
    if not traits.per_user:
        replicates = part.replicates(row)
        freedom = len(replicates) - 1
        error = float(replicates.std(ddof=1)) if freedom > 0 else math.nan
    elif n_users:
        error = part.std(row) / math.sqrt(n_users)
    better = traits.higher_is_better
    return NightlyMetric(mean, error, max(freedom, 0), *interval, n_users, better)


def _digests(ev: Evaluation) -> tuple[str | None, str | None]:
    """Return 16 hexadecimal digits of the evaluated users, and of their relevant items."""
    values = ev._part.values
    if values is None:
        return None, None
    counted, users = values.counted, values.labels
    labels = np.arange(len(counted)) if users is None else users.to_numpy()
    if labels.dtype.kind not in "iu":
        labels = np.array([str(label) for label in labels.tolist()], object)
    hashes = hash_labels(labels[counted])
    both = splitmix64(hashes ^ splitmix64(values.fingerprints[counted]))
    of_users, of_both = (f"{int(each.sum(dtype=np.uint64)):016x}" for each in (hashes, both))
    return None if are_row_numbers(users) else of_users, of_both


class NightlyMetric(NamedTuple):
    """The mean of a metric on a night, NaN if it is not defined, and its uncertainty.

    `freedom` are the degrees of freedom of the standard error.
    """

    mean: float
    standard_error: float
    freedom: int
    ci_low: float
    ci_high: float
    interval: str
    n_users: int
    higher_is_better: bool


def _welch(a: NightlyMetric, b: NightlyMetric) -> tuple[float, float]:
    """Return the standard error of the difference of two means, and Welch's degrees of freedom."""
    if min(a.freedom, b.freedom) < 1:
        return math.nan, math.nan
    parts = a.standard_error**2, b.standard_error**2
    below = parts[0] ** 2 / a.freedom + parts[1] ** 2 / b.freedom
    return math.sqrt(sum(parts)), sum(parts) ** 2 / below if below else a.freedom


class Night(NamedTuple):
    """A line of a history.

    Attributes
    ----------
    night : str
        The night, by default the date.
    time : datetime
        In UTC.
    name : str
        The name of the evaluated model.
    metrics : dict of str to NightlyMetric
    n_users : int
        Evaluated users.
    users, relevance : str or None
        Digests of the users, and of their relevant items; None if they are not known.
    settings : dict of str to (str or None)
        Convention, candidates and other settings that must be equal for numbers to be comparable.
    sparse_eval : str
        The version.
    about : dict
    """

    night: str
    time: datetime
    name: str
    metrics: dict[str, NightlyMetric]
    n_users: int
    users: str | None
    relevance: str | None
    settings: dict[str, str | None]
    sparse_eval: str
    about: dict[str, Any]

    @classmethod
    def of(cls, row: Row) -> Night:
        """Return the night of a line."""
        values: Row = {name: row.get(name) for name in cls._fields}
        values["time"] = datetime.fromisoformat(row["time"])
        values["metrics"] = metrics = {}
        for metric, one in row["metrics"].items():
            numbers: Row = {key: math.nan if x is None else x for key, x in one.items()}
            metrics[metric] = NightlyMetric(**numbers)
        return cls(**values)

    def shown(self, metric: str) -> str:
        """Return a metric's display name, such as ``hit_rate@10 (1+99)`` among candidates."""
        return name_among(metric, self.settings["candidates"])

    def same_users(self, other: Night) -> bool | None:
        """Return whether another night is of the same users; None if that is not known."""
        if self.relevance is not None and self.relevance == other.relevance:
            return True
        if self.users is None or other.users is None:
            return None
        return self.users == other.users


def _pairs(nights: Sequence[Night]) -> list[tuple[Night, Night]]:
    """Return each line with the last one of an earlier night, which it is compared with."""
    pairs: list[tuple[Night, Night]] = []
    before = None
    for last, night in pairwise(nights):
        before = last if last.night != night.night else before
        if before is not None:
            pairs.append((before, night))
    return pairs
