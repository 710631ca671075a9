"""The tables of the suite `loading`."""

from typing import Any

from harness.format import conditions, label, markdown, size, timed

SIZES = {"5m": "five million events", "50m": "fifty million events"}
FILES = {"csv": "CSV", "gz": "CSV.gz", "quoted": "quoted CSV", "parquet": "Parquet"}
SCORED = {
    "frames-polars": "frames of polars",
    "frames-object": "frames of pandas, object",
    "frames-str": "frames of pandas, str",
    "frames-category": "frames of pandas, category",
    "model-holdout": "`evaluate_model` on a holdout",
}


def loading(report: dict[str, Any]) -> str:
    loaded, divided, scored = [], [], []
    for case, found in report["cases"].items():
        what, _, events = case.partition("-")
        for key, entry in found["contestants"].items():
            title = label(report, key) if key in report["rivals"] else key
            if what in FILES:
                head = f"{SIZES[events]}, {FILES[what]}: {title}"
                peak = size(entry["peak_bytes"]) if "peak_bytes" in entry else ""
                loaded.append((head, *timed(entry), peak))
            elif case in SCORED:
                scored.append((f"{SCORED[case]}: {title}", *timed(entry)))
            else:
                divided.append((f"{what}: {title}", *timed(entry)))
    tables = [
        markdown(("loaded", "median", "× ours", "peak of memory"), loaded),
        markdown((f"{SIZES['5m']}, divided", "median", "× ours"), divided),
        markdown(("scored", "median", "× ours"), scored),
    ]
    return "\n\n".join([*tables, conditions(report)])


TABLES = {"loading": loading}
