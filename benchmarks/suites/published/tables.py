"""The tables of the suite `published`: published figures, our results, and differences."""

from statistics import mean
from typing import Any

from harness.format import Row, markdown, measured


def published(report: dict[str, Any]) -> str:
    """Return a part for each published table, and the conditions."""
    parts = [part(table, report["tolerance"]) for table in report["tables"].values()]
    return "\n\n".join([*parts, measured(report)])


def part(table: dict[str, Any], tolerance: float) -> str:
    """Return a heading, the sources of the figures and the data, the figures, and the notes."""
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
    """Return a row's published figures, the mean and range of our runs, and the difference."""
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
    difference_row = ("", "difference", *differences)
    if n_runs == 1:
        return [printed, ("", "here", *here), difference_row]
    of = "seeds" if row.get("stochastic") else "numberings"
    mean_row = ("", f"here, mean of {n_runs} {of}", *here)
    return [printed, mean_row, ("", "range", *ranges), difference_row]


def note(row: dict[str, Any], tolerance: float) -> str:
    """Return the difference of a row and its reason, if the difference is too large."""
    furthest = max(map(abs, row.get("differences", {}).values()), default=0.0)
    if furthest <= tolerance or "note" not in row:
        return ""
    return f"{row['title']}: {furthest:.4f} at most. {row['note']}"


TABLES = {"published": published}
