"""The table of the suite `memory`."""

from typing import Any

from harness.format import Row, amount, conditions, label, markdown, size


def memory(report: dict[str, Any]) -> str:
    inputs = report["inputs"]
    head = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    rows = [
        (f"{label(report, key)}, `{case}`", amount(entry))
        for case, found in report["cases"].items()
        for key, entry in found["contestants"].items()
    ]
    rows.append(
        ("all scores as a dense matrix (arithmetic)", size(report["dense_scores"]["bytes"]))
    )
    table = markdown((head, "peak above the inputs"), rows)
    return f"{table}\n\n{conditions(report)}"


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the row of the front page."""
    dense = size(report["dense_scores"]["bytes"])
    peak = next(iter(next(iter(report["cases"].values()))["contestants"].values()))
    inputs = report["inputs"]
    what = f"memory for {inputs['n_users']:,} users × {inputs['n_items']:,} items"
    return [(what, amount(peak), f"a dense matrix of scores: {dense}")]


TABLES = {"memory": memory}
SUMMARY = (4, summary)
