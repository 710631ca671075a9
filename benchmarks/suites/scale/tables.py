"""The tables of the suite `scale`."""

from typing import Any

from harness.format import conditions, duration, markdown, percent, size, times

KINDS = {
    "tables": "10 recommendations and 1 relevant item each, from Parquet",
    "users": "64 factors and 51,000 items, ranked and evaluated",
}


SPARK = {
    "mllib": "`pyspark.mllib`, `RankingMetrics`",
    "sparse_eval": "Spark, files in order",
    "sparse_eval, DataFrames": "Spark, DataFrames",
}


def costs(report: dict[str, Any]) -> str:
    """Return the costs of users: the cases that the model is fitted to, and the checked case."""
    rows = []
    for kind, title in KINDS.items():
        found = report["kinds"][kind]
        for case in sorted(found["cases"], key=lambda case: case["n_users"]):
            checked = case["n_users"] == found["checked"]["n_users"]
            predicted = found["fixed_seconds"]
            predicted += found["seconds_per_million"] * case["n_users"] / 1e6
            cells = (
                size(case["input_bytes"]),
                duration(case["seconds"]),
                duration(predicted) + ("" if checked else " (fitted)"),
                percent(predicted / case["seconds"] - 1, 0),
                size(case["peak_bytes"]),
            )
            rows.append((f"{case['n_users']:,} users: {title}", *cells))
    heads = ("", "on disk", "measured", "predicted", "off by", "peak of the process")
    note = f"Every run had `memory={report['budget']:,}`."
    return "\n\n".join((markdown(heads, rows), note, conditions(report)))


def plan(report: dict[str, Any]) -> str:
    """Return the cost model, and its prediction for a billion users."""
    used = min(report["workers"]["ratio"] / 2, 1.0)  # of two workers' time
    rows = []
    for kind, title in KINDS.items():
        found = report["kinds"][kind]
        seconds = found["seconds_per_million"] * threads(report, kind)
        hours = seconds * 1000 / 3600
        cells = (
            duration(seconds),
            f"{found['bytes_per_user']:.0f}",
            size(found["peak_bytes"]),
            f"{hours:,.1f}",
            size(found["bytes_per_user"] * 1e9),
            f"{60 * hours / used / 100:,.1f} min",
        )
        rows.append((title, *cells))
    heads = (
        "",
        "core seconds for a million users",
        "bytes read for each user",
        "memory of a worker",
        "core hours for a billion",
        "read for a billion",
        f"on 100 cores, each used {percent(used, 0)} of the time",
    )
    return markdown(heads, rows)


def threads(report: dict[str, Any], kind: str) -> int:
    """Return the number of cores of a run; tables are evaluated with all cores."""
    return 1 if kind == "users" else int(report["machine"]["cores"])


def workers(report: dict[str, Any]) -> str:
    """Return the measurements with workers."""
    found = report["workers"]
    one, two = (duration(sorted(runs)[len(runs) // 2]) for runs in found["seconds"].values())
    title = "ranks found by two Dask workers, and by one; each has one thread"
    rows = [(title, f"{two} and {one}", f"{found['ratio']:.2f}× as fast")]
    spark = report.get("spark", {"failed": "it was not asked for"})
    if "failed" in spark:
        rows.append(("Spark", f"not measured: {spark['failed']}", ""))
    else:
        for name, seconds in spark["medians"].items():
            ratio = "" if name == "mllib" else f"{times(spark['ratios'][name])}×"
            rows.append((SPARK[name], duration(seconds), ratio))
    return "\n\n".join((markdown(("", "seconds", ""), rows), conditions(report)))


TABLES = {"costs": costs, "plan": plan, "workers": workers}
