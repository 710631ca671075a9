"""Measure several calls in turn, so that other load of the machine affects all of them equally."""

import time
from collections.abc import Callable, Container
from statistics import median
from typing import Any

from .client import Client
from .environment import REFERENCE
from .progress import say


def take_turns(
    title: str,
    measures: dict[str, Callable[[], float]],
    rounds: int,
    unit: str = "seconds",
    reference: str = REFERENCE,
    *,
    once: Container[str] = (),
    warm_up: bool = True,
) -> dict[str, dict[str, Any]]:
    """Call every measure once to warm up, then once per round; return the results.

    Each entry has the raw values, their median, and its ratio to the median of the reference (None
    without a reference). Measures in `once`, which take long, are called in the first round only,
    without a warm-up. A measure that raises `RuntimeError` is not called again; its entry has the
    reason.
    """
    values: dict[str, list[float]] = {label: [] for label in measures}
    failed: dict[str, str] = {}
    for done in range(0 if warm_up else 1, rounds + 1):
        say(f"{title}: " + (f"round {done} of {rounds}" if done else "warming up"))
        for label, measure in measures.items():
            if label in failed or (label in once and done != 1):
                continue
            try:
                value = measure()
            except RuntimeError as error:
                say(f"{title}: {label} failed: {error}")
                failed[label] = str(error)
                continue
            if done:
                values[label].append(value)

    medians = {label: median(values[label]) for label in measures if label not in failed}
    ours = medians.get(reference)
    return {
        label: {"failed": failed[label]}
        if label in failed
        else {
            f"median_{unit}": medians[label],
            "ratio": medians[label] / ours if ours else None,
            unit: values[label],
        }
        for label in measures
    }


def turn_seconds(
    client: Client, task: str, lasts: float, *, warm: bool = False, pause: float = 0.0
) -> float:
    """Return the median of the calls that fit into a turn, at least one.

    With `warm`, the first call is not timed, because the caches hold the data of the previous turn.
    The threads of a parallel loop keep spinning for a while; a pause waits for their end.
    """
    time.sleep(pause)
    if warm:
        client.time(task)
    seconds = [client.time(task)]
    while sum(seconds) < lasts:
        seconds.append(client.time(task))
    return median(seconds)
