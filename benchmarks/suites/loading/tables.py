"""The tables of the suite `loading`."""

from typing import Any

from harness.format import conditions, label, markdown, size, timed

SIZES = {"5m": "five million events", "50m": "fifty million events"}
FORMATS = {"csv": "CSV", "parquet": "Parquet"}


def loading(report: dict[str, Any]) -> str:
    files, divided = [], []
    for case, found in report["cases"].items():
        what, _, events = case.partition("-")
        for key, entry in found["contestants"].items():
            title = label(report, key) if key in report["rivals"] else key
            if what in FORMATS:
                head = f"{SIZES[events]}, {FORMATS[what]}: {title}"
                peak = "" if "peak_bytes" not in entry else size(entry["peak_bytes"])
                files.append((head, *timed(entry), peak, size(found["result_bytes"])))
            else:
                divided.append((f"{what}: {title}", *timed(entry)))
    tables = [
        markdown(("loaded", "median", "× ours", "peak of memory", "codes, values, times"), files),
        markdown((f"{SIZES['5m']}, divided", "median", "× ours"), divided),
    ]
    return "\n\n".join([*tables, conditions(report)])


TABLES = {"loading": loading}
