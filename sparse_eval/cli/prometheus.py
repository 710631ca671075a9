"""Gauges for the textfile collector of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from ..core.atomic_files import make_folder_of, replacing
from ..errors import InvalidDataError
from ..results.gate_rules import Verdict
from ..results.record import plain_rows
from .options import Output, option

if TYPE_CHECKING:
    from ..results import Evaluation

#: The verdicts of a gate.
VERDICTS = get_args(Verdict)


@dataclass
class Gauges:
    """The file to which a command writes gauges for Prometheus.

    Parameters
    ----------
    prometheus
        Write the result as gauges for the textfile collector of Prometheus, to a file .prom in a
        folder that exists. The label `job` is the file's name.
    """

    prometheus: Output[Annotated[Path | None, option(metavar="FILE")]] = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Check the file before scoring starts, and record a failure of the command."""
        self._began, self._left = time.monotonic(), False
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
                self.leave({}, None)

    def leave(
        self,
        evaluations: Mapping[str, Evaluation],
        best: str | None,
        n_failed: int = 0,
        verdict: str | None = None,
    ) -> None:
        """Write the results of models with different names, and the name of the best one."""
        self._left = True
        if self.prometheus is not None:
            seconds = time.monotonic() - self._began
            write_prometheus(
                self.prometheus, self.split, evaluations, best, n_failed, seconds, verdict
            )


def write_prometheus(
    path: Path,
    split: str,
    models: Mapping[str, Evaluation],
    best: str | None,
    n_failed: int,
    seconds: float,
    verdict: str | None = None,
) -> None:
    """Write gauges, and replace the file atomically.

    Parameters
    ----------
    path : Path
        The textfile collector reads files whose names end in ``.prom``.
    split : str
        The name of the data.
    models : mapping of str to Evaluation
        By unique names; empty after a command that failed.
    best : str or None
        The name of the best model, if there is one.
    n_failed : int
        The number of models that could not be scored.
    seconds : float
        The duration of the run.
    verdict : str, optional
        The verdict of a gate.
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
        for name, one in plain_rows(ev._summarize()).items()  # does not warn
    ]
    gauge("metric", "Mean of a metric.", [(labels, one["mean"]) for labels, one in metrics])
    for name, end in (("ci_low", "Lower"), ("ci_high", "Upper")):
        samples = [(labels, one[name]) for labels, one in metrics]
        gauge(f"metric_{name}", f"{end} end of its 95 % confidence interval.", samples)
    users = [({"model": model}, ev.n_users) for model, ev in models.items()]
    gauge("users", "Evaluated users.", users)
    marks = [({"model": model}, model == best) for model in models]
    gauge("best", "1 for the best model or the candidate of a night, 0 for others.", marks)
    if verdict is not None:
        each = [({"verdict": name}, name == verdict) for name in VERDICTS]
        gauge("gate", "1 for the verdict about the candidate, 0 for the others.", each)
    gauge("failed", "Models that could not be scored.", [({}, n_failed)])
    gauge("duration_seconds", "How long the last run took.", [({}, round(seconds, 3))])
    gauge("last_run_success", "1 if a model was scored, 0 otherwise.", [({}, bool(models))])
    now = round(time.time(), 3)
    gauge("last_run_timestamp_seconds", "When the last run ended.", [({}, now)])
    with replacing(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
