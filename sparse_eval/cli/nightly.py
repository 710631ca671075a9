"""Options of nightly jobs: the gate for a result, its history, and gauges for Prometheus.

A nightly job decides by the status whether to release a model. 0: good. 1: good, but some inputs
could not be scored or read; or none could. 2: bad input. 3: not good enough. A broken checkpoint
never hides a model that is not good enough: 3 takes precedence over 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ..core.atomic_files import make_folder_of, replacing
from ..errors import InvalidDataError, InvalidMetricError
from ..metrics import convention_named, parse_metrics
from ..results.record import plain_rows
from .options import Output, Rare, Row, option, typed
from .terminal import tell

if TYPE_CHECKING:
    from ..core.types import JSONValue
    from ..metrics import Metric
    from ..results import Evaluation

#: The exit status of a command whose result is not good enough.
NOT_GOOD_ENOUGH = 3


@dataclass(frozen=True)
class Gate:
    """Whether a result is good enough.

    Parameters
    ----------
    fail_under
        End with exit status 3 if a metric is worse than a number, as ndcg@10=0.15: below it, or
        above it where less is better; repeatable.
    """

    fail_under: Annotated[list[str] | None, option(metavar="METRIC=NUMBER")] = None


#: The metrics to judge, and the worst value that each may have.
Bounds: TypeAlias = "list[tuple[Metric, float]]"


def parse_by_metric(
    words: Sequence[str] | None,
    metrics: Sequence[str | Metric],
    convention: str | None,
    option: str,
    example: str,
) -> list[tuple[Metric, str]]:
    """Split ``METRIC=TEXT``, or raise if a metric is not among those to compute."""
    if not words:  # saved metrics may not be registered here
        return []
    defaults = convention_named(convention).options
    computed = parse_metrics(list(metrics), defaults)
    found = []
    for word in words:
        name, _, text = word.rpartition("=")
        if not name:
            raise InvalidMetricError(
                f"{option} is {word!r}; expected a metric and a number, such as ndcg@10={example}"
            )
        for metric in parse_metrics(name, defaults):
            if metric not in computed:
                raise InvalidMetricError(
                    f"{option} is about {metric}, which is not computed; ask for it: -m '{metric}'"
                )
            found.append((metric, text))
    return found


def parse_bounds(
    words: Sequence[str] | None, metrics: Sequence[str | Metric], convention: str | None
) -> Bounds:
    """Parse the bounds of ``--fail-under``."""
    bounds = []
    for metric, text in parse_by_metric(words, metrics, convention, "--fail-under", "0.15"):
        try:
            worst = float(text)
        except ValueError:
            worst = math.nan
        if not math.isfinite(worst):
            raise InvalidMetricError(
                f"--fail-under is '{metric}={text}'; expected a metric and a number, such as "
                "ndcg@10=0.15"
            )
        bounds.append((metric, worst))
    return bounds


def fail_if_under(bounds: Bounds, means: Mapping[str, float | None], what: str) -> None:
    """End the command if a mean of `what`, a checkpoint or file of lists, is worse than a bound."""
    faults = []
    for metric, worst in bounds:
        mean, higher = means[str(metric)], metric.definition.higher_is_better
        value = math.nan if mean is None else mean
        if not (value >= worst if higher else value <= worst):
            found = "not defined" if math.isnan(value) else f"{value:.5g}"
            least = "least" if higher else "most"
            faults.append(f"{metric} is {found}, and has to be at {least} {worst:g}")
    if faults:
        tell(f"{what} is not good enough: {'; '.join(faults)}", "error", model=what)
        raise typer.Exit(NOT_GOOD_ENOUGH)


@dataclass
class Records:
    """Where a command records its result.

    Parameters
    ----------
    history
        Add a line about the result, or the best of several, to a file of JSON lines; `report
        --history` shows the trend.
    night
        With --history: the date of the run; a rerun replaces its line. [today in UTC]
    prometheus
        Write the result as gauges for the textfile collector of Prometheus, to a file .prom in a
        folder that exists. The label `job` is the file's name.
    """

    history: Output[Annotated[Path | None, option(metavar="FILE")]] = None
    night: Rare[Annotated[str | None, option(metavar="DATE")]] = None
    prometheus: Output[Annotated[Path | None, option(metavar="FILE")]] = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Check both files before hours of scoring, and record a failure of the command."""
        from ..jobs.history import History, checked_night

        if self.night is not None:
            checked_night(self.night)
        if typed("night") and self.history is None:
            raise InvalidDataError("--night names a line of --history; give both")
        self._began, self._left = time.monotonic(), False
        self._opened = None if self.history is None else History(self.history)
        if self._opened is not None:
            self._opened.begin()
        #: The name of the data.
        self.split = ""
        if self.prometheus is not None:
            if self.prometheus.suffix != ".prom" or not self.prometheus.parent.is_dir():
                raise InvalidDataError(
                    f"--prometheus is {str(self.prometheus)!r}; expected a file name that ends in "
                    ".prom, in a folder that exists: the one that the textfile collector reads"
                )
            make_folder_of(self.prometheus)
        try:
            yield
        finally:
            if not self._left:
                self.leave({}, None, {})

    @contextmanager
    def folder(self, out: Path | None) -> Iterator[Path | None]:
        """Yield the folder for the evaluations of a sweep, if they are needed."""
        if out is not None or (self.history is None and self.prometheus is None):
            yield out
        else:
            with TemporaryDirectory(prefix="sparse_eval_") as folder:
                yield Path(folder)

    def leave_sweep(self, rows: list[Row], saved: Mapping[str, Path]) -> None:
        """Record the results of a sweep; `saved` has a folder for each file that was scored."""
        from ..results import Evaluation

        used = self.prometheus is not None
        evaluations = {
            saved[row["file"]].name: Evaluation.load(saved[row["file"]])
            for row in rows
            if row["file"] in saved and (used or (self.history is not None and row["best"]))
        }
        best = next((row for row in rows if row["best"]), {})
        about = {key: best.get(key) for key in ("file", "sha256")}
        name = saved[best["file"]].name if evaluations and best else None
        self.leave(evaluations, name, about, sum(row["status"] == "failed" for row in rows))

    def leave(
        self,
        evaluations: Mapping[str, Evaluation],
        best: str | None,
        about: dict[str, JSONValue],
        n_failed: int = 0,
    ) -> None:
        """Write the results of models with different names, and the name of the best one."""
        # The history first: if its line cannot be written, the gauges must not report success.
        if self._opened is not None and best is not None:
            self._opened.append(evaluations[best], best, night=self.night, about=about)
        self._left = True
        if self.prometheus is not None:
            seconds = time.monotonic() - self._began
            write_prometheus(self.prometheus, self.split, evaluations, best, n_failed, seconds)


def write_prometheus(
    path: Path,
    split: str,
    models: Mapping[str, Evaluation],
    best: str | None,
    n_failed: int,
    seconds: float,
) -> None:
    """Write gauges, moved to their place as a whole.

    Parameters
    ----------
    path : Path
        The textfile collector reads files whose names end in ``.prom``.
    split : str
        The name of the data.
    models : mapping of str to Evaluation
        By unique names; none after a command that failed.
    best : str or None
        The name of the best one, None if there is none.
    n_failed : int
        How many could not be scored.
    seconds : float
        How long the run took.
    """
    lines: list[str] = []

    def gauge(
        name: str, meaning: str, samples: Iterable[tuple[dict[str, str], float | None]]
    ) -> None:
        full = f"sparse_eval_{name}"
        lines.extend((f"# HELP {full} {meaning}", f"# TYPE {full} gauge"))
        for labels, value in samples:
            named = {"job": path.stem, "split": split, **labels}
            pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in named.items())
            lines.append(f"{full}{{{pairs}}} {'NaN' if value is None else repr(float(value))}")

    metrics: list[tuple[dict[str, str], dict[str, Any]]] = [
        ({"model": model, "metric": ev._part.shown(name)}, one)
        for model, ev in models.items()
        for name, one in plain_rows(ev._summarize()).items()  # nobody reads a warning here
    ]
    gauge("metric", "Mean of a metric.", [(labels, one["mean"]) for labels, one in metrics])
    for name, end in (("ci_low", "Lower"), ("ci_high", "Upper")):
        samples = [(labels, one[name]) for labels, one in metrics]
        gauge(f"metric_{name}", f"{end} end of its 95 % confidence interval.", samples)
    users = [({"model": model}, ev.n_users) for model, ev in models.items()]
    gauge("users", "Evaluated users.", users)
    marks = [({"model": model}, model == best) for model in models]
    gauge("best", "1 for the best model, 0 for the others.", marks)
    gauge("failed", "Models that could not be scored.", [({}, n_failed)])
    gauge("duration_seconds", "How long the last run took.", [({}, round(seconds, 3))])
    gauge("last_run_success", "1 if a model was scored, 0 otherwise.", [({}, bool(models))])
    now = round(time.time(), 3)
    gauge("last_run_timestamp_seconds", "When the last run ended.", [({}, now)])
    with replacing(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
