"""Write what a run found for Prometheus, as the textfile collector of its node exporter reads it.

The text exposition format: https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from ..core.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ..jobs.nights import Night

    #: A sample: its labels, and its value.
    Sample = tuple[dict[str, str], float]


def write_prometheus(
    path: Path, models: Mapping[str, Night], best: str | None, n_failed: int, seconds: float
) -> None:
    """Write gauges, moved to their place as a whole.

    Parameters
    ----------
    path : Path
        The textfile collector reads files whose names end in ``.prom``.
    models : mapping of str to Night
        What was found of each model, by a name of its own.
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
