"""The tables of the suite `published`: published figures, our results, and differences."""

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
    """Return a row's published figures, ours, and the differences."""
    printed = (row["title"], "printed", *row["printed"])
    if "values" not in row:
        return [printed]
    digits = max(len(figure.partition(".")[2]) for figure in row["printed"]) + 1
    here = [f"{value:.{digits}f}" for value in row["values"].values()]
    found = (row["differences"].get(metric) for metric in row["values"])
    differences = ["" if one is None else f"{one:+.{digits}f}" for one in found]
    return [printed, ("", "here", *here), ("", "difference", *differences)]


def note(row: dict[str, Any], tolerance: float) -> str:
    """Return the difference of a row and its reason, if the difference is too large."""
    furthest = max(map(abs, row.get("differences", {}).values()), default=0.0)
    if furthest <= tolerance or "note" not in row:
        return ""
    return f"{row['title']}: {furthest:.4f} at most. {row['note']}"


TABLES = {"published": published}
