"""Measure several sides in turn, so that other load of the machine affects all of them equally."""

import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from . import environment
from .client import Client
from .job import Job, MismatchError
from .progress import say
from .values import difference


def take_turns(
    job: Job,
    title: str,
    measures: Mapping[str, Callable[[], float]],
    *,
    rounds: int | None = None,
    reference: str = environment.REFERENCE,
    warm_up: bool = True,
) -> dict[str, dict[str, Any]]:
    """Call every measure once to warm up, then once per round; return the results.

    Each entry has the raw values, their median, and its ratio to the median of the reference (None
    without a reference). A measure that raises `RuntimeError` is not called again; its entry has
    the reason. An error of the reference is raised.
    """
    rounds = min(job.rounds, rounds or job.rounds)
    values: dict[str, list[float]] = {label: [] for label in measures}
    failed: dict[str, str] = {}
    for done in range(0 if warm_up and not job.smoke else 1, rounds + 1):
        say(f"{title}: " + (f"round {done} of {rounds}" if done else "warming up"))
        for label, measure in measures.items():
            if label in failed:
                continue
            try:
                value = measure()
            except RuntimeError as error:
                if label == reference:
                    raise
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
            "median_seconds": medians[label],
            "ratio": medians[label] / ours if ours else None,
            "seconds": values[label],
        }
        for label in measures
    }


def compare_processes(
    job: Job,
    title: str,
    calls: Mapping[str, tuple[Any, ...]],
    *,
    tolerance: float = 0.0,
    **options: Any,
) -> tuple[dict[str, dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Start a new process for each side in turn; return the entries, and the results by side.

    Each call has a contestant, a function and its arguments. Its result has `seconds`, and perhaps
    `bytes`, the peak of memory, and `values`, which are compared with the values of the first side.
    The options are those of `take_turns`.

    Raises `MismatchError` if values differ by more than the tolerance.
    """
    found: dict[str, list[dict[str, Any]]] = {label: [] for label in calls}

    def measure(label: str) -> float:
        found[label].append(environment.call(*calls[label]))
        return float(found[label][-1]["seconds"])

    measures = {label: partial(measure, label) for label in calls}
    entries = take_turns(job, title, measures, **options)
    values = {
        label: [one.get("values") for one in results] for label, results in found.items() if results
    }
    first = next(iter(values.values()), [None])[0]
    for label, results in found.items():
        furthest = max((difference(first, one) for one in values.get(label, ())), default=0.0)
        if not furthest <= tolerance:
            raise MismatchError(f"{title}: the values of {label} differ by {furthest:.3g}")
        if results:
            found[label] = results[-len(entries[label].get("seconds", results)) :]
            if "bytes" in results[0]:
                entries[label]["peak_bytes"] = median(one["bytes"] for one in found[label])
            if "values" in results[0]:
                entries[label]["max_difference"] = furthest
    return entries, found


def compare_workers(
    job: Job,
    title: str,
    contestants: dict[str, tuple[Client, str]],
    check: Callable[[dict[str, Path]], dict[str, dict[str, Any]]],
    *,
    warm: bool = False,
    pause: float = 0.0,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """Call each contestant once, check all answers, and then time the contestants in turn.

    `check` gets the files of the answers, and returns what it finds about each of them. The other
    options are those of `turn_seconds` and `take_turns`.
    """
    answers: dict[str, Path] = {}
    entries: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (label, (client, task)) in enumerate(contestants.items()):
            say(f"{title}: {label}: its first call")
            answer = Path(folder, f"{number}.npz")
            try:
                entries[label] = {"peak_bytes": client.save(task, answer)}
            except RuntimeError as error:
                say(f"{title}: {label} failed: {error}")
                entries[label] = {"failed": str(error)}
                continue
            answers[label] = answer
        say(f"{title}: comparing")
        for label, found in check(answers).items():
            entries[label] |= found
    measures = {
        label: partial(turn_seconds, *contestants[label], job.turn_seconds, warm=warm, pause=pause)
        for label in answers
    }
    for label, timed in take_turns(job, title, measures, **options).items():
        entries[label] |= timed
    return entries


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
