"""The table of the suite `loading`."""

from collections.abc import Callable
from typing import Any

from harness.format import conditions, label, markdown, size, timed


def loading(report: dict[str, Any]) -> str:
    rows = []
    for case, found in report["cases"].items():
        result = found.get("result_bytes")
        for key, entry in found["contestants"].items():
            title = label(report, key) if key in report["rivals"] else key
            peak = entry.get("peak_bytes")
            rows.append(
                (
                    f"{case}: {title}",
                    *timed(entry),
                    "" if peak is None else size(peak),
                    "" if result is None else size(result),
                )
            )
    columns = ("", "median", "× ours", "peak of memory", "codes, values and times")
    return f"{markdown(columns, rows)}\n\n{conditions(report)}"


#: `loading` belongs here as soon as there are results, and a place for it in RESULTS.md.
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {}
