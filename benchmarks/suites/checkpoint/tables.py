"""The table of the suite `checkpoint`."""

from typing import Any

from harness.format import Row, conditions, heading, markdown, size, summed, timed

#: The cases on the front page.
SHOWN = ("gowalla-als64-k20", "gowalla-bpr64-k20", "synthetic-als64-k10")


def checkpoint(report: dict[str, Any]) -> str:
    """Return a row for each case and a column for each contestant; the ratio is to our top_k."""
    cases = report["cases"].values()
    columns = list(dict.fromkeys(name for case in cases for name in case["contestants"]))
    ours = [name for name in columns if name.startswith("sparse_eval,")]
    heads = [
        f"`{name.partition(', ')[2]}`" if name in ours else heading(report, name, columns)
        for name in columns
    ]
    rows = []
    for case in cases:
        cells = []
        for name in columns:
            seconds, ratio = timed(case["contestants"].get(name, {"failed": ""}))
            cells.append(f"{seconds} ({ratio}×)" if ratio and name not in ours else seconds)
        rows.append((f"{case['title']}, K = {case['k']}", *cells))
    peak = "peak of memory above the inputs, at most"
    entries = [[case["contestants"].get(name, {}) for case in cases] for name in columns]
    peaks = (max(entry.get("peak_bytes", 0) for entry in found) for found in entries)
    rows.append((peak, *map(size, peaks)))
    table = markdown(("", *heads), rows)

    others = [
        entry
        for case in cases
        for name, entry in case["contestants"].items()
        if "lists" in entry and name not in ours
    ]
    total, differing = (sum(one[key] for one in others) for key in ("lists", "lists_that_differ"))
    data = {found["data"]: found for found in report["inputs"].values()}
    sizes = ", ".join(
        f"{name.capitalize()} has {found['n_lists']:,} test users and {found['n_items']:,} items"
        for name, found in data.items()
    )
    note = (
        f"{sizes}. Of {total:,} lists of others, {differing:,} are not ours item for item: there, "
        "and only there, scores are closer together than single precision can tell, or equal."
    )
    skipped = report["skipped"]
    left_out = [
        f"Left out are {', '.join(name for name in skipped if skipped[name] == why)}: {why}."
        for why in dict.fromkeys(skipped.values())
    ]
    return "\n\n".join([table, " ".join([note, *left_out, conditions(report)])])


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the rows of the front page: times, and the memory of the last case."""
    cases = [report["cases"][name] for name in SHOWN]
    rows = [
        summed(report, f"everybody's best {case['k']} items: {case['title']}", case)
        for case in cases
    ]
    entries = cases[-1]["contestants"]
    others = (
        f"{heading(report, name, list(entries))} {size(entry['peak_bytes'])}"
        for name, entry in entries.items()
        if "peak_bytes" in entry and not name.startswith("sparse_eval")
    )
    peak = size(next(iter(entries.values()))["peak_bytes"])
    return [*rows, ("the peak of memory for these", peak, ", ".join(others))]


TABLES = {"checkpoint": checkpoint}
SUMMARY = (2, summary)
