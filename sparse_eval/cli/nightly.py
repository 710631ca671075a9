"""Options of nightly jobs: whether a result is good enough, and where it is recorded.

A nightly job decides by the status whether to release a model. 0: good. 1: good, but some inputs
could not be scored or read; or none could. 2: bad input. 3: not good enough. A broken checkpoint
never hides a model that is not good enough: 3 takes precedence over 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ..core.files import make_folder_of, replacing
from ..core.formatting import number
from ..errors import InvalidDataError, InvalidMetricError
from ..metrics import convention_named, parse_metrics
from .options import Output, Rare, option
from .terminal import echo

if TYPE_CHECKING:
    from ..core.types import JSONValue
    from ..jobs.history import Night
    from ..metrics import Metric
    from ..results import Evaluation
    from ..results.comparison import Comparison

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


@dataclass(frozen=True)
class GateOfSeveral(Gate):
    """Whether the best of several results is good enough.

    Parameters
    ----------
    max_failed
        Several models: how many may fail to be scored. The exit status is 1 if more of them, or
        all, fail.
    """

    max_failed: Annotated[int, option(min=0)] = 0


@dataclass(frozen=True)
class GateOfComparison:
    """Whether the last model is good enough.

    Parameters
    ----------
    fail_if_worse
        End with exit status 3 if the last model named is worse than another one, by the corrected
        test of any metric compared.
    tolerance
        With --fail-if-worse: a loss that does not matter, as ndcg@10=0.002; repeatable.
    """

    fail_if_worse: bool = False
    tolerance: Annotated[list[str] | None, option(metavar="METRIC=NUMBER")] = None


#: The metrics to judge, and the worst value that each may have.
Bounds: TypeAlias = "list[tuple[Metric, float]]"


def parse_bounds(
    words: Sequence[str] | None,
    metrics: Sequence[str | Metric],
    convention: str | None,
    option: str = "--fail-under",
) -> Bounds:
    """Parse ``METRIC=NUMBER``, or raise unless each is about one of the metrics to compute."""
    if not words:  # saved metrics may not be registered here
        return []
    defaults = convention_named(convention).options
    computed = parse_metrics(list(metrics), defaults)
    bounds = []
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            worst = float(text)
        except ValueError:
            worst = math.nan
        if not name or not math.isfinite(worst):
            raise InvalidMetricError(
                f"{option} is {word!r}; expected a metric and a number, as ndcg@10=0.15"
            )
        for metric in parse_metrics(name, defaults):
            if metric not in computed:
                raise InvalidMetricError(
                    f"{option} is about {metric}, which is not computed; ask for it: -m '{metric}'"
                )
            bounds.append((metric, worst))
    return bounds


def fail_if_under(bounds: Bounds, value_of: Callable[[str], float], what: str) -> None:
    """End the command if a value, which is asked for by the metric's name, is worse than a bound.

    `what` has the values: a checkpoint, or a file of lists.
    """
    faults = []
    for metric, worst in bounds:
        value, higher = value_of(str(metric)), metric.definition.higher_is_better
        if not (value >= worst if higher else value <= worst):
            found = "not defined" if math.isnan(value) else number(value)
            least = "least" if higher else "most"
            faults.append(f"{metric} is {found}, and has to be at {least} {worst:g}")
    if faults:
        echo(f"{what} is not good enough: {'; '.join(faults)}", err=True)
        raise typer.Exit(NOT_GOOD_ENOUGH)


def fail_if_worse(compared: Comparison, tolerances: Mapping[str, float]) -> None:
    """End the command if the last model is worse than another one, by more than is tolerated."""
    faults = losses(compared, tolerances)
    if faults:
        echo(f"{compared.names[-1]} is worse {'; '.join(faults)}", err=True)
        raise typer.Exit(NOT_GOOD_ENOUGH)


def losses(compared: Comparison, tolerances: Mapping[str, float] | None = None) -> list[str]:
    """Return what the last model is worse than, by the corrected test; empty for none.

    Differences of no more than the tolerance of a metric are left out.
    """
    last, tolerated = compared.names[-1], tolerances or {}
    return [
        f"than {row['better']} by {row['metric']}"
        + (f" in {row['by']} {row['segment']}" if compared.by else "")
        + f" ({number(abs(row['difference']))}, p = {row['p_corrected']:.2g})"
        for row in compared.table.to_dict("records")
        if last in (row["a"], row["b"])
        and row["better"] not in ("", last)
        and abs(row["difference"]) > tolerated.get(row["metric"], 0.0)
    ]


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
        Write the result as gauges for the textfile collector of Prometheus (.prom).
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
            if self.history is None:
                raise InvalidDataError("--night names a line of --history; give both")
        self._began, self._left = time.monotonic(), False
        self._opened = None if self.history is None else History(self.history)
        if self._opened is not None:
            self._opened.begin()
        if self.prometheus is not None:
            make_folder_of(self.prometheus)
        try:
            yield
        finally:
            if self.prometheus is not None and not self._left:
                write_prometheus(self.prometheus, {}, None, 0, time.monotonic() - self._began)

    @property
    def wanted(self) -> bool:
        """Whether anything is to be recorded."""
        return self.history is not None or self.prometheus is not None

    @contextmanager
    def folder(self, out: Path | None) -> Iterator[Path | None]:
        """Yield the folder for the evaluations of a sweep, if there is any use for them."""
        if out is not None or not self.wanted:
            yield out
        else:
            with TemporaryDirectory(prefix="sparse_eval_") as folder:
                yield Path(folder)

    def leave(
        self,
        evaluations: dict[str, Evaluation],
        best: str | None,
        about: dict[str, JSONValue],
        n_failed: int = 0,
    ) -> None:
        """Write the results of models with different names, and the name of the best one."""
        from ..jobs.history import night_of

        self._left = True
        if self.prometheus is not None:
            nights = {name: night_of(ev, name) for name, ev in evaluations.items()}
            seconds = time.monotonic() - self._began
            write_prometheus(self.prometheus, nights, best, n_failed, seconds)
        if self._opened is not None and best is not None:
            self._opened.append(evaluations[best], best, night=self.night, about=about)

    def leave_sweep(self, folder: Path, files: list[Path], best: str | None) -> None:
        """Write the results of a sweep over some files, whose evaluations are in a folder."""
        from ..jobs.ledger import Ledger
        from ..jobs.sweep import JOB, path_of, text_of

        ledger = Ledger(folder / f"{JOB}.jsonl", JOB)
        evaluations, name, about = {}, None, {}
        for file in files:
            row = ledger.rows[path_of(file)]
            is_best = text_of(file) == best
            if row["status"] == "ok" and (is_best or self.prometheus is not None):
                evaluations[row["saved"]["folder"]] = ledger.evaluation(row["slot"])
            if is_best:
                name, about = row["saved"]["folder"], {"file": best, "sha256": row["sha256"]}
        failed = [file for file in files if ledger.rows[path_of(file)]["status"] == "failed"]
        self.leave(evaluations, name, about, len(failed))


def write_prometheus(
    path: Path, models: Mapping[str, Night], best: str | None, n_failed: int, seconds: float
) -> None:
    """Write gauges, moved to their place as a whole.

    Parameters
    ----------
    path : Path
        The textfile collector reads files whose names end in ``.prom``.
    models : mapping of str to Night
        The result of each model, by its unique name; none after a command that failed.
    best : str or None
        The name of the best one, None if there is none.
    n_failed : int
        How many could not be scored.
    seconds : float
        How long the run took.
    """
    lines: list[str] = []

    def gauge(name: str, meaning: str, samples: Iterable[tuple[dict[str, str], float]]) -> None:
        full = f"sparse_eval_{name}"
        lines.extend((f"# HELP {full} {meaning}", f"# TYPE {full} gauge"))
        for labels, value in samples:
            pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            text = "NaN" if math.isnan(value) else repr(float(value))
            lines.append(f"{full}{f'{{{pairs}}}' if pairs else ''} {text}")

    metrics = [
        ({"metric": night.shown(metric), "model": model}, one)
        for model, night in models.items()
        for metric, one in night.metrics.items()
    ]
    gauge("metric", "Mean of a metric.", [(labels, one.mean) for labels, one in metrics])
    for name, end in (("ci_low", "Lower"), ("ci_high", "Upper")):
        samples = [(labels, getattr(one, name)) for labels, one in metrics]
        gauge(f"metric_{name}", f"{end} end of its 95 % confidence interval.", samples)
    users = [({"model": model}, night.n_users) for model, night in models.items()]
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
