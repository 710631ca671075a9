"""Options by which a command leaves its result for later runs, and for other programs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from ..core.files import make_folder_of, replacing
from ..errors import InvalidDataError
from .options import Output, Rare, option

if TYPE_CHECKING:
    from ..core.types import JSONValue
    from ..jobs.history import Night
    from ..results import Evaluation


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

    def begin(self) -> None:
        """Read the history, and see that both files can be written, before hours of scoring."""
        from ..jobs.history import History, checked_night

        self._began = time.monotonic()
        self._opened = None if self.history is None else History(self.history)
        if self._opened is not None:
            self._opened.begin()
        if self.night is not None:
            checked_night(self.night)
            if self.history is None:
                raise InvalidDataError("--night names a line of --history; give both")
        if self.prometheus is not None:
            make_folder_of(self.prometheus)

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

        if self.prometheus is not None:
            nights = {name: night_of(ev, name) for name, ev in evaluations.items()}
            seconds = time.monotonic() - self._began
            write_prometheus(self.prometheus, nights, best, n_failed, seconds)
        if self._opened is not None and best is not None:
            self._opened.append(evaluations[best], best, night=self.night, about=about)

    def leave_sweep(self, folder: Path, files: list[Path], best: str | None) -> None:
        """Write the results of a sweep over some files, whose evaluations are in a folder."""
        from ..jobs.ledger import Ledger
        from ..jobs.sweep_table import JOB, path_of, text_of

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
        The result of each model, by its unique name.
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
    now = round(time.time(), 3)
    gauge("last_run_timestamp_seconds", "When the last run ended.", [({}, now)])
    with replacing(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
