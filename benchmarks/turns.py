"""Measure several things in turn, so that what the machine does meanwhile hits all alike."""

from collections.abc import Callable
from statistics import median
from typing import Any

from environment import REFERENCE
from progress import say


def take_turns(
    title: str,
    measures: dict[str, Callable[[], float]],
    rounds: int,
    unit: str = "seconds",
    reference: str = REFERENCE,
) -> dict[str, dict[str, Any]]:
    """Call every measure once to warm up, then once per round; return what they gave.

    Each entry has the raw values, their median, and its ratio to the reference's (None without).
    A measure that raises `RuntimeError` takes no further part; its entry says why.
    """
    values: dict[str, list[float]] = {label: [] for label in measures}
    failed: dict[str, str] = {}
    for done in range(rounds + 1):
        say(f"{title}: " + (f"round {done} of {rounds}" if done else "warming up"))
        for label, measure in measures.items():
            if label in failed:
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
