"""The tables of the suite `lists`."""

from typing import Any

from harness.format import Row, conditions, exponent, label, markdown, summed, timed

#: The cases on the front page.
SHOWN = {
    "ndcg@10, objects in hand": "ndcg@10",
    "several metrics": "several metrics",
    "diversity@10": "diversity@10",
}


def lists(report: dict[str, Any]) -> str:
    tables = []
    for name, case in report["cases"].items():
        inputs = report["inputs"][case["inputs"]]
        head = f"{name}: {inputs['n_lists']:,} lists of {inputs['list_length']}"
        if case["rounds"] != report["rounds"]:
            head += f" ({case['rounds']} rounds)"
        rows = [
            (
                label(report, key),
                *timed(entry),
                exponent(entry.get("max_difference")),
                str(len(entry.get("metrics_compared", ()))),
            )
            for key, entry in case["contestants"].items()
        ]
        columns = (head, "median", "× ours", "largest difference", "metrics")
        tables.append(markdown(columns, rows))
    return "\n\n".join([*tables, conditions(report)])


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the rows of the front page."""
    rows = []
    for name, what in SHOWN.items():
        case = report["cases"][name]
        inputs = report["inputs"][case["inputs"]]
        title = f"{what} of {inputs['n_lists']:,} lists of {inputs['list_length']}"
        rows.append(summed(report, title, case))
    return rows


TABLES = {"lists": lists}
SUMMARY = (1, summary)
