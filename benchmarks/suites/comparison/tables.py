"""The tables of the suite `comparison`."""

from typing import Any

from harness.format import conditions, duration, label, markdown, timed


def comparison(report: dict[str, Any]) -> str:
    """Return our times with all metrics, and the ratio to ranx with the metrics that it has."""
    inputs = report["inputs"]
    models = f"{inputs['n_models']} models, {inputs['n_users']:,} users"
    table = markdown(
        (f"{models}, {report['n_metrics']} metrics", "median"),
        [(what, duration(time)) for what, time in report["seconds"].items()],
    )
    theirs = markdown(
        (f"{models}, {report['n_several']} metrics evaluated, Student's test", "median", "× ours"),
        [(label(report, name), *timed(entry)) for name, entry in report["several"].items()],
    )
    note = (
        f"{report['n_differences']:,} differences with intervals and corrected p-values; the page "
        f"has {report['page_bytes'] / 1e6:.2f} MB."
    )
    return "\n\n".join([table, theirs, f"{note} {conditions(report)}"])


TABLES = {"comparison": comparison}
