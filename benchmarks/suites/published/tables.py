"""The tables of the suite `published`: the print, what comes out here, and the difference."""

from statistics import mean
from typing import Any

from harness.format import Row, markdown


def published(report: dict[str, Any]) -> str:
    """Return a part for each table that was printed, and the conditions."""
    parts = [part(table, report["tolerance"]) for table in report["tables"].values()]
    machine = report["machine"]
    conditions = (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"{report['date'][:10]}."
    )
    return "\n\n".join([*parts, conditions])


def part(table: dict[str, Any], tolerance: float) -> str:
    """Return a heading, where the figures and the data are from, the figures, and the notes."""
    texts = [
        f"## {table['title']}",
        f"{table['protocol']} Printed: {table['source']} Data: {table['data']}.",
    ]
    rows = [line for row in table["rows"] for line in lines(row)]
    if rows:
        texts.append(markdown(("", "", *table["heads"]), rows))
    if told := [found for row in table["rows"] if (found := note(row, tolerance))]:
        texts.append("\n".join(f"- {line}" for line in told))
    left_out = table["left_out"]
    for why in dict.fromkeys(left_out.values()):
        names = "; ".join(name for name in left_out if left_out[name] == why)
        texts.append(f"Left out: {names}: {why}.")
    return "\n\n".join(texts)


def lines(row: dict[str, Any]) -> list[Row]:
    """Return the print of a row, the mean of its runs, their range and the difference."""
    printed = (row["title"], "printed", *row["printed"])
    if "values" not in row:
        return [printed]
    digits = max(len(figure.partition(".")[2]) for figure in row["printed"]) + 1
    here, ranges, differences = [], [], []
    for metric, values in row["values"].items():
        here.append(f"{mean(values):.{digits}f}")
        ranges.append(f"{min(values):.{digits}f} to {max(values):.{digits}f}")
        difference = row["differences"].get(metric)
        differences.append("" if difference is None else f"{difference:+.{digits}f}")
    n_runs = len(next(iter(row["values"].values())))
    if n_runs == 1:
        return [printed, ("", "here", *here), ("", "difference", *differences)]
    of = "seeds" if row.get("stochastic") else "numberings"
    return [
        printed,
        ("", f"here, mean of {n_runs} {of}", *here),
        ("", "range", *ranges),
        ("", "difference", *differences),
    ]


def note(row: dict[str, Any], tolerance: float) -> str:
    """Return how far a row is from the print and why, where that is further than it should be."""
    furthest = max(map(abs, row.get("differences", {}).values()), default=0.0)
    if furthest <= tolerance or "note" not in row:
        return ""
    return f"{row['title']}: {furthest:.4f} at most. {row['note']}"


TABLES = {"published": published}
