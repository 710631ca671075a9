"""Format figures and tables for the pages."""

from collections.abc import Collection, Iterable
from typing import Any

Row = tuple[str, ...]


def markdown(columns: Row, rows: Iterable[Row], text: Collection[int] = (0,)) -> str:
    """Return a table; the columns of these numbers are text, and the others are numbers."""
    aligned = ["---" if number in text else "--:" for number in range(len(columns))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, aligned, *rows))


def label(report: dict[str, Any], contestant: str) -> str:
    """Return the rival's title and version, and how it was called if there are several ways."""
    name, comma, way = contestant.partition(",")
    if name not in report["rivals"]:
        return contestant
    rival = report["rivals"][name]
    version = rival["requirements"][0].partition("==")[2]
    return f"{rival['title']} {version}".strip() + comma + way


def timed(entry: dict[str, Any]) -> Row:
    if "failed" in entry:
        return "failed", ""
    return duration(entry["median_seconds"]), times(entry["ratio"])


def medians(report: dict[str, Any], contestants: dict[str, Any]) -> list[Row]:
    """Return a row for each contestant: its title, its median, and its ratio to ours."""
    return [(label(report, name), *timed(entry)) for name, entry in contestants.items()]


def conditions(report: dict[str, Any]) -> str:
    return (
        f"Medians of {report['rounds']} rounds taken in turn, after a warm-up; {measured(report)}"
    )


def measured(report: dict[str, Any]) -> str:
    """Return the machine and the date of a measurement."""
    machine = report["machine"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"{report['date'][:10]}."
    )


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def times(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def size(amount: float) -> str:
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def exponent(difference: float | None) -> str:
    return "" if difference is None else f"{difference:.0e}" if difference else "0"


def summed(report: dict[str, Any], title: str, case: dict[str, Any]) -> Row:
    """Return our median in a case, and the medians of the others as multiples of it."""
    entries = list(case["contestants"].items())
    columns = [name for name, _ in entries]
    others = sorted(
        (entry["ratio"], heading(report, name, columns))
        for name, entry in entries[1:]
        if entry.get("ratio") and not name.startswith("sparse_eval")
    )
    told = ", ".join(f"{name} {times(ratio)}×" for ratio, name in others)
    return (title, duration(entries[0][1]["median_seconds"]), told)


def heading(report: dict[str, Any], contestant: str, columns: list[str]) -> str:
    """Return the library and version, and the name of its call if there are two."""
    name, _, way = contestant.partition(", ")
    title = label(report, name)
    several = sum(column.startswith(f"{name},") for column in columns) > 1
    return f"{title}, `{way}`" if several else title
