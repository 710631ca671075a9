"""Options by which a command leaves what it found for other nights, and for other programs."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

from ..core.files import make_folder_of, replacing
from ..errors import InvalidDataError
from .options import Output, Rare, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from ..core.types import JSONValue
    from ..jobs.history import History, Night
    from ..results import Evaluation

    #: A sample: its labels, and its value.
    Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
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


class Recording(NamedTuple):
    """Where a command leaves what it found, and when it began."""

    history: History | None
    night: str | None
    prometheus: Path | None
    began: float

    @classmethod
    def begin(cls, records: Records) -> Recording:
        """Read the history, and see that both files can be written, before hours of scoring."""
        from ..jobs.history import History, checked_night

        if records.night is not None:
            checked_night(records.night)
            if records.history is None:
                raise InvalidDataError("--night names a line of --history; give both")
        opened = None if records.history is None else History(records.history)
        if opened is not None:
            opened.begin()
        if records.prometheus is not None:
            make_folder_of(records.prometheus)
        return cls(opened, records.night, records.prometheus, time.monotonic())

    @property
    def wanted(self) -> bool:
        """Whether anything is to be left."""
        return self.history is not None or self.prometheus is not None

    def leave(
        self,
        evaluations: dict[str, Evaluation],
        best: str | None,
        n_failed: int,
        about: dict[str, JSONValue],
    ) -> None:
        """Write the results of models with different names, and the name of the best one."""
        from ..jobs.history import night_of

        if self.prometheus is not None:
            nights = {name: night_of(ev, name) for name, ev in evaluations.items()}
            seconds = time.monotonic() - self.began
            write_prometheus(self.prometheus, nights, best, n_failed, seconds)
        if self.history is not None and best is not None:
            self.history.append(evaluations[best], best, night=self.night, about=about)

    def leave_sweep(self, table: pd.DataFrame, files: Sequence[Path], folder: Path) -> None:
        """Write the results of a sweep over some files, whose evaluations are in a folder."""
        from ..jobs.ledger import Ledger
        from ..jobs.sweep_table import JOB, path_of, text_of

        ledger = Ledger(folder / f"{JOB}.jsonl", JOB)
        best_files = set(table.loc[table["best"], "file"])
        evaluations, best, about, n_failed = {}, None, {}, 0
        for file in files:
            row = ledger.rows[path_of(file)]
            if row["status"] == "failed":
                n_failed += 1
                continue
            name, is_best = row["saved"]["folder"], text_of(file) in best_files
            if self.prometheus is not None or is_best:
                evaluations[name] = ledger.evaluation(row["slot"])
            if is_best:
                best, about = name, {"file": text_of(file), "sha256": row["sha256"]}
        self.leave(evaluations, best, n_failed, about)


@contextmanager
def folder_for_evaluations(out: Path | None, recording: Recording) -> Iterator[Path | None]:
    """Yield a folder for the evaluations of a sweep, if there is any use for them."""
    if out is not None or not recording.wanted:
        yield out
    else:
        with TemporaryDirectory(prefix="sparse_eval_") as folder:
            yield Path(folder)


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
    with replacing(path) as temporary:
        families = _families(models, best, n_failed, seconds)
        text = "".join(_family(*family) for family in families)
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _families(
    models: Mapping[str, Night], best: str | None, n_failed: int, seconds: float
) -> Iterator[tuple[str, str, list[Sample]]]:
    """Yield the name, the meaning and the samples of each gauge."""
    numbers = [
        ({"metric": night.shown(metric), "model": model}, one)
        for model, night in models.items()
        for metric, one in night.metrics.items()
    ]
    yield "metric", "Mean of a metric.", [(labels, one.mean) for labels, one in numbers]
    for name, end in (("ci_low", "Lower"), ("ci_high", "Upper")):
        samples = [(labels, getattr(one, name)) for labels, one in numbers]
        yield f"metric_{name}", f"{end} end of its 95 % confidence interval.", samples
    users = [({"model": model}, float(night.n_users)) for model, night in models.items()]
    yield "users", "Evaluated users.", users
    marks = [({"model": model}, float(model == best)) for model in models]
    yield "best", "1 for the best model, 0 for the others.", marks
    yield "failed", "Models that could not be scored.", [({}, float(n_failed))]
    yield "duration_seconds", "How long the last run took.", [({}, round(seconds, 3))]
    yield "last_run_timestamp_seconds", "When the last run ended.", [({}, round(time.time(), 3))]


def _family(name: str, meaning: str, samples: list[Sample]) -> str:
    lines = [f"# HELP sparse_eval_{name} {meaning}", f"# TYPE sparse_eval_{name} gauge"]
    for labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        text = "NaN" if math.isnan(value) else repr(value)
        lines.append(f"sparse_eval_{name}{f'{{{pairs}}}' if pairs else ''} {text}")
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
