"""The tables of the suite `inference`."""

from collections.abc import Iterable, Iterator
from typing import Any

from harness.format import Row, markdown, percent


def inference(report: dict[str, Any]) -> str:
    """Return tables of intervals and tests, with notes."""
    coverage, positives = report["coverage"], report["false_positives"]
    metrics = tuple(coverage["population"]["mean"])
    intervals = shares_table(
        (f"{percent(coverage['level'], 0)} intervals that hold the truth", *metrics, "samples"),
        of_sizes("", coverage["sizes"]),
    )
    significance = percent(positives["significance"], 0)
    tests = shares_table(
        (f"differences shown at {significance} where there are none", *metrics, "pairs"),
        [(f"{found['n_users']:,} users, {found['test']}", found) for found in positives["tests"]],
        "shown",
    )
    note = f"Samples are of {coverage['population']['n_users']:,} users."
    parts = [intervals, *of_few_users(report), tests, note]
    return "\n\n".join(parts)


def of_sizes(title: str, sizes: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of a simulation with several numbers of users."""
    return [
        (f"{title}{int(n_users):,} users, {found['interval']}", found)
        for n_users, found in sizes.items()
    ]


def shares_table(
    headings: Row, found: Iterable[tuple[str, dict[str, Any]]], what: str = "held"
) -> str:
    """Return a table with a row for each simulation, and a column for each metric."""
    rows = []
    for title, one in found:
        shares = (percent(one[what][name]) if name in one[what] else "" for name in headings[1:-1])
        noise = percent(one["standard_error"])
        rows.append((title, *shares, f"{one['repetitions']:,} (± {noise})"))
    return markdown(headings, rows)


def of_few_users(report: dict[str, Any]) -> list[str]:
    """Return tables of intervals of means and of differences, and a note on the lists."""
    kinds = report["means"]["lists"]
    metrics = tuple(kinds["sparse"]["mean"])
    level = percent(report["means"]["level"], 0)
    of_means = [
        row for kind, found in kinds.items() for row in of_sizes(f"{kind} lists, ", found["sizes"])
    ]
    differences = list(simulated_differences(report))
    of_differences = [(f"{title}, {n_users:,} users", size) for title, n_users, size in differences]
    hits = " and ".join(
        f"{percent(found['found']['ndcg@10'], 0)} of the users ({kind}, mean ndcg@10 "
        f"{found['mean']['ndcg@10']:.3f})"
        for kind, found in kinds.items()
    )
    tables = (
        shares_table(
            (f"{level} intervals of {what} that hold the truth", *metrics, "samples"), rows
        )
        for what, rows in (("means", of_means), ("differences", of_differences))
    )
    note = (
        f"Lists have a relevant item in the first ten for {hits}. The second model is equal, or "
        "finds relevant items 1.3 times as often. Intervals of differences are Student's."
    )
    return [*tables, note]


def simulated_differences(report: dict[str, Any]) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the title, the number of users and the shares of each simulated difference."""
    for kind, seconds in report["differences"]["lists"].items():
        for second, found in seconds.items():
            for n_users, size in found["sizes"].items():
                yield f"{kind} lists, {second}", int(n_users), size


def overall(report: dict[str, Any]) -> str:
    """Return the coverage and width of intervals of numbers about all users together."""
    found = report["overall"]
    rows = []
    for catalogue, sizes in found["catalogues"].items():
        for n_users, one in sizes.items():
            held, width, metrics = one["held"], one["width_by_best"], tuple(one["held"])
            cells = (f"{percent(held[metric])}, {width[metric]:.2f}×" for metric in metrics)
            rows.append((f"{catalogue}, {n_users}", *cells, f"{one['samples']:,}"))
    level = percent(found["level"], 0)
    return markdown((f"{level} intervals that hold the truth", *metrics, "samples"), rows)


def population(report: dict[str, Any]) -> str:
    """Return a description of the users that are drawn."""
    found = report["coverage"]["population"]
    return (
        f"{percent(found['one_relevant'], 0)} of the users have one relevant item and "
        f"{percent(found['zero']['ndcg@10'], 0)} an ndcg@10 of 0, its mean is "
        f"{found['mean']['ndcg@10']:.3f} and its skewness {found['skewness']['ndcg@10']:.1f}."
    )


def decisions(report: dict[str, Any]) -> str:
    """Return the coverage of intervals for decisions, and the share of wrong verdicts."""
    found = report["decisions"]
    sizes = found["sizes"]
    first, *_ = sizes.values()
    rows = [
        (title.format(name), *(percent(size[what][name]) for size in sizes.values()))
        for what, title in (("held", "{}"), ("wrong", "*wrong verdicts, margin is {}*"))
        for name in first[what]
    ]
    noise = [
        f"{size['repetitions']:,} (± {percent(size['standard_error'])})" for size in sizes.values()
    ]
    heading = f"{percent(found['level'], 0)} intervals that hold the truth, {found['metric']}"
    columns = (heading, *(f"{int(n_users):,} users" for n_users in sizes))
    return markdown(columns, [*rows, ("samples", *noise)])


def few_users(report: dict[str, Any]) -> str:
    """Return the share of intervals that contain the means, for few users and two metrics."""
    kinds = report["means"]["lists"]
    chosen = ("ndcg@10", "map@10")
    sizes = kinds["sparse"]["sizes"]
    headings = (f"{kind} lists, {metric}" for kind in kinds for metric in chosen)
    rows = []
    for n_users in sizes:
        held = [found["sizes"][n_users]["held"] for found in kinds.values()]
        shares = (percent(one[metric], 0) for one in held for metric in chosen)
        rows.append((f"{int(n_users):,}", *shares))
    shares = {kind: percent(found["found"]["ndcg@10"], 0) for kind, found in kinds.items()}
    hits = " and ".join(f"{share} with {kind} lists" for kind, share in shares.items())
    note = f"Users with a hit in the first ten: {hits}."
    return f"{markdown(('users', *headings), rows)}\n\n{note}"


TABLES = {
    "decisions": decisions,
    "few_users": few_users,
    "inference": inference,
    "overall": overall,
    "population": population,
}
