"""Rewrite the tables of README.md and RESULTS.md from results/SUITE.json, between their markers.

    python benchmarks/tables.py            rewrites
    python benchmarks/tables.py --check    exit code 1 when a page says something else

The markers of a table are `<!-- benchmark:NAME -->` and `<!-- /benchmark:NAME -->`.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results"

Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    arguments = parser.parse_args()

    status = 0
    for page, renderers in RENDERERS.items():
        current = page.read_text(encoding="utf-8")
        wanted = current
        for name, (suites, render) in renderers.items():
            try:
                wanted = replace(wanted, name, render(*map(read, suites)))
            except FileNotFoundError as error:
                suite = Path(error.filename).stem
                print(
                    f"error: no {suite}.json; run benchmarks/run.py --suite {suite}",
                    file=sys.stderr,
                )
                return 1
            except ValueError as error:
                print(f"error: {page.name}: {error}", file=sys.stderr)
                return 1
        if wanted != current and arguments.check:
            print(f"error: {page.name} is not what the results say", file=sys.stderr)
            status = 1
        elif wanted != current:
            page.write_text(wanted, encoding="utf-8")
    return status


def read(suite: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{suite}.json").read_text(encoding="utf-8"))
    return found


def replace(text: str, name: str, table: str) -> str:
    """Put a table between the markers of that name."""
    opening, closing = f"<!-- benchmark:{name} -->", f"<!-- /benchmark:{name} -->"
    before, found, rest = text.partition(opening)
    _, ended, after = rest.partition(closing)
    if not found or not ended:
        raise ValueError(f"no {opening} ... {closing}")
    return f"{before}{opening}\n{table}\n{closing}{after}"


def summary(
    of_lists: dict[str, Any],
    of_checkpoints: dict[str, Any],
    of_starts: dict[str, Any],
    of_memory: dict[str, Any],
) -> str:
    """Return a row for each kind of work: our time, and how many times that others take."""
    rows = []
    for name, what in SHOWN.items():
        case = of_lists["cases"][name]
        inputs = of_lists["inputs"][case["inputs"]]
        title = f"{what} of {inputs['n_lists']:,} lists of {inputs['list_length']}"
        rows.append(summed(of_lists, title, case))
    for name in CHECKPOINTS:
        case = of_checkpoints["cases"][name]
        title = f"everybody's best {case['k']} items: {case['title']}"
        rows.append(summed(of_checkpoints, title, case))
    rows.append(summed(of_starts, "import", of_starts["cases"]["import"]))
    dense = size(of_memory["dense_scores"]["bytes"])
    peak = next(iter(next(iter(of_memory["cases"].values()))["contestants"].values()))
    inputs = of_memory["inputs"]
    what = f"memory for {inputs['n_users']:,} users × {inputs['n_items']:,} items"
    rows.append((what, amount(peak), f"a dense matrix of scores: {dense}"))
    table = markdown(("", "sparse_eval", "times that others take"), rows)
    return f"{table}\n\n{conditions(of_lists)}"


#: What the front page shows of the lists, and of the checkpoints.
SHOWN = {
    "ndcg@10, objects in hand": "ndcg@10",
    "several metrics": "several metrics",
    "diversity@10": "diversity@10",
}
CHECKPOINTS = ("gowalla-als64-k20", "gowalla-bpr64-k20", "synthetic-als64-k10")


def summed(report: dict[str, Any], title: str, case: dict[str, Any]) -> Row:
    """Return our median in a case, and everybody else's as a multiple of it."""
    entries = list(case["contestants"].items())
    columns = [name for name, _ in entries]
    others = sorted(
        (entry["ratio"], heading(report, name, columns))
        for name, entry in entries[1:]
        if entry.get("ratio") and not name.startswith("sparse_eval")
    )
    told = ", ".join(f"{name} {times(ratio)}×" for ratio, name in others)
    return (title, duration(entries[0][1]["median_seconds"]), told)


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


def startup(report: dict[str, Any]) -> str:
    heads = {
        "import": "import",
        "first call": f"first ndcg@10 after it, {report['inputs']['n_lists']:,} lists",
    }
    tables = [
        markdown(
            (head, "median", "× ours"),
            [
                (label(report, key), *timed(entry))
                for key, entry in report["cases"][case]["contestants"].items()
            ],
        )
        for case, head in heads.items()
    ]
    heavy = ", ".join(report["heavy_modules_imported"]) or "none"
    note = f"Of implicit, pandas and typer, `import sparse_eval` imports: {heavy}."
    return "\n\n".join([*tables, f"{note} {conditions(report)}"])


def memory(report: dict[str, Any]) -> str:
    inputs = report["inputs"]
    head = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    rows = [
        (f"{label(report, key)}, `{case}`", amount(entry))
        for case, found in report["cases"].items()
        for key, entry in found["contestants"].items()
    ]
    rows.append(
        ("all scores as a dense matrix (arithmetic)", size(report["dense_scores"]["bytes"]))
    )
    table = markdown((head, "peak above the inputs"), rows)
    return f"{table}\n\n{conditions(report)}"


def checkpoint(report: dict[str, Any]) -> str:
    """Return a row for each case and a column for each contestant; the ratio is to our top_k."""
    cases = report["cases"].values()
    columns = list(dict.fromkeys(name for case in cases for name in case["contestants"]))
    ours = [name for name in columns if name.startswith("sparse_eval,")]
    heads = [
        f"`{name.partition(', ')[2]}`" if name in ours else heading(report, name, columns)
        for name in columns
    ]
    rows = []
    for case in cases:
        cells = []
        for name in columns:
            seconds, ratio = timed(case["contestants"].get(name, {"failed": ""}))
            cells.append(f"{seconds} ({ratio}×)" if ratio and name not in ours else seconds)
        found = [case["contestants"].get(name, {}).get("share_of_scores") for name in ours]
        shares = " / ".join(f"{100 * share:.0f} %" for share in found if share is not None)
        rows.append((f"{case['title']}, K = {case['k']}", *cells, shares))
    peaks = [
        max(case["contestants"].get(name, {}).get("peak_bytes", 0) for case in cases)
        for name in columns
    ]
    rows.append(("peak of memory above the inputs, at most", *map(size, peaks), ""))
    table = markdown(("", *heads, "share of scores we compute"), rows)

    counted = [
        entry
        for case in cases
        for name, entry in case["contestants"].items()
        if "lists" in entry and name not in ours
    ]
    total, differing = (
        sum(entry[key] for entry in counted) for key in ("lists", "lists_that_differ")
    )
    sizes = ", ".join(
        f"{name.capitalize()} has {entry['n_lists']:,} test users and {entry['n_items']:,} items"
        for name, entry in {found["data"]: found for found in report["inputs"].values()}.items()
    )
    note = (
        f"{sizes}. Of {total:,} lists of others, {differing:,} are not ours item for item: there, "
        "and only there, scores are closer together than single precision can tell, or equal."
    )
    skipped = report["skipped"]
    left_out = [
        f"Left out are {', '.join(name for name in skipped if skipped[name] == why)}: {why}."
        for why in dict.fromkeys(skipped.values())
    ]
    return "\n\n".join([table, " ".join([note, *left_out, conditions(report)])])


def heading(report: dict[str, Any], contestant: str, columns: list[str]) -> str:
    """Return the library and version, and what it was asked for where that are two things."""
    name, _, way = contestant.partition(", ")
    title = label(report, name)
    several = sum(column.startswith(f"{name},") for column in columns) > 1
    return f"{title}, `{way}`" if several else title


def agreement(report: dict[str, Any]) -> str:
    """Return a table of the metrics of hits, one of the metrics of lists, and their footnotes."""
    rows = {name: Agreement(found) for name, found in report["libraries"].items()}
    counts = Counter(metric for row in rows.values() for metric in row.families())
    footnotes: dict[str, int] = {}
    tables = []
    for over_lists in (False, True):
        columns = [name for name, _ in counts.most_common() if (name in OVER_LISTS) == over_lists]
        body = []
        for name, row in rows.items():
            cells = [row.cell(metric, footnotes) for metric in columns]
            if any(cells):
                title = label(report, name) + marks(row.notes("*"), footnotes)
                body.append((title, row.convention, str(row.n_cases), *cells))
        tables.append(markdown(("", "convention", "cases", *columns), body))
    notes = "\n".join(f"{number}. {note}" for note, number in footnotes.items())
    return "\n\n".join([*tables, notes])


#: These are about what is recommended, relevant or not.
OVER_LISTS = {
    "calibration",
    "coverage",
    "diversity",
    "entropy",
    "gini",
    "novelty",
    "personalization",
    "popularity",
    "serendipity",
    "user_coverage",
}


class Agreement:
    """What the comparison with one library found."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        self.convention = found["convention"] or "none"
        self.n_cases = found["n_cases"]

    def families(self) -> list[str]:
        """Return the metrics that it has, each once whatever its options."""
        names = (*self.found["metrics"], *self.found["not_compared"])
        return list(dict.fromkeys(map(family, names)))

    def cell(self, metric: str, footnotes: dict[str, int]) -> str:
        compared = [name for name in self.found["metrics"] if family(name) == metric]
        others = [name for name in self.found["not_compared"] if family(name) == metric]
        notes = [note for name in (*compared, *others) for note in self.notes(name)]
        return ("equal" if compared else "") + marks(notes, footnotes)

    def notes(self, metric: str) -> list[str]:
        notes = [f"where {why[0].lower()}{why[1:]}" for why in self.found["needs"].get(metric, ())]
        if metric in self.found["not_compared"]:
            notes.append(f"`{metric}` is not compared: {self.found['not_compared'][metric]}")
        if metric == "*" and self.found["imprecise"]:
            notes.append(f"to {self.found['tolerance']:g}: {self.found['imprecise']}")
        return notes


def family(metric: str) -> str:
    return re.split("[(@]", metric)[0]


def marks(notes: Iterable[str], footnotes: dict[str, int]) -> str:
    """Return the superscripts of some footnotes; the same words have the same number."""
    numbers = sorted({footnotes.setdefault(note, len(footnotes) + 1) for note in notes})
    return f"<sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


def inference(report: dict[str, Any]) -> str:
    """Return a table of the intervals and one of the tests, and say what else was found."""
    coverage, positives = report["coverage"], report["false_positives"]
    metrics = tuple(coverage["population"]["mean"])
    level, significance = percent(coverage["level"], 0), percent(positives["significance"], 0)
    intervals = markdown(
        (f"{level} intervals that hold the truth", *metrics, "samples"),
        [
            (f"{int(n_users):,} users, {found['interval']}", *shares(found, "held", metrics))
            for n_users, found in coverage["sizes"].items()
        ],
    )
    tests = markdown(
        (f"differences shown at {significance} where there are none", *metrics, "pairs"),
        [
            (f"{found['n_users']:,} users, {found['test']}", *shares(found, "shown", metrics))
            for found in positives["tests"]
        ],
    )
    notes = (
        f"Samples are of {coverage['population']['n_users']:,} users.",
        of_families(report["families"]),
        of_p_values(report["p_values"]),
    )
    return "\n\n".join([intervals, tests, " ".join(notes)])


def shares(found: dict[str, Any], what: str, metrics: Row) -> Row:
    cells = (percent(found[what][name]) if name in found[what] else "" for name in metrics)
    return (*cells, f"{found['repetitions']:,} (± {percent(found['standard_error'])})")


def of_families(found: dict[str, Any]) -> str:
    holm, bh = (
        " and ".join(
            f"{percent(wrong[name]['share'])} ({title})"
            for title, wrong in found["families"].items()
        )
        for name in ("holm, any error", "bh, share of errors")
    )
    return (
        f"When five models are compared by all of these metrics, {found['n_users']:,} users, "
        f"{found['repetitions']:,} times, Holm's correction lets anything wrong be shown in {holm} "
        f"of the comparisons; with Benjamini and Hochberg's, {bh} of what is shown is wrong."
    )


def of_p_values(found: dict[str, Any]) -> str:
    said = (
        f"The p-values of {len(found['cases'])} pairs are those of `scipy.stats`, called directly, "
        "to the last bit"
    )
    drawn = ["`permutation_test`"]
    ranx = found["notes"]["ranx"]
    if not isinstance(ranx, str):
        said += f"; ranx's `student` is {ranx['student']}"
        drawn.append("ranx's `fisher`")
    return (
        f"{said}. Where signs are drawn at random, by each side its own, they are within "
        f"Monte-Carlo error: {' and '.join(drawn)}."
    )


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


KINDS = {
    "tables": "10 recommendations and 1 relevant item each, from Parquet",
    "users": "64 factors and 51,000 items, ranked and evaluated",
}


def costs(report: dict[str, Any]) -> str:
    """Return what users cost: the numbers that the model is fitted on, and the one it is not."""
    rows = []
    for kind, title in KINDS.items():
        found = report["kinds"][kind]
        for case in sorted(found["cases"], key=lambda case: case["n_users"]):
            checked = case["n_users"] == found["checked"]["n_users"]
            predicted = found["fixed_seconds"] + (
                found["seconds_per_million"] * case["n_users"] / 1e6
            )
            rows.append(
                (
                    f"{case['n_users']:,} users: {title}",
                    size(case["input_bytes"]),
                    duration(case["seconds"]),
                    duration(predicted) + ("" if checked else " (fitted)"),
                    percent(predicted / case["seconds"] - 1, 0),
                    size(case["peak_bytes"]),
                )
            )
    heads = ("", "on disk", "measured", "predicted", "off by", "peak of the process")
    note = f"Every run had `memory={report['budget']:,}`."
    return "\n\n".join((markdown(heads, rows), note, conditions(report)))


def plan(report: dict[str, Any]) -> str:
    """Return the cost model, and what it says about a billion users."""
    used = min(report["workers"]["ranks"]["ratio"] / 2, 1.0)  # of two workers' time
    rows = []
    for kind, title in KINDS.items():
        found = report["kinds"][kind]
        hours = found["seconds_per_million"] * 1000 / 3600 * threads(report, kind)
        rows.append(
            (
                title,
                duration(found["seconds_per_million"] * threads(report, kind)),
                f"{found['bytes_per_user']:.0f}",
                size(found["peak_bytes"]),
                f"{hours:,.1f}",
                size(found["bytes_per_user"] * 1e9),
                f"{60 * hours / used / 100:,.1f} min",
            )
        )
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
    """Return how many cores a run had: tables are evaluated with all of them."""
    return 1 if kind == "users" else int(report["machine"]["cores"])


def workers(report: dict[str, Any]) -> str:
    """Return what was measured with workers."""
    bits, killed = (report[name] for name in ("bits", "killed"))
    same = {True: "the same bits", False: "OTHER BITS"}
    rows = []
    for what, found in report["workers"].items():
        times_of = {n: sorted(seconds) for n, seconds in found["seconds"].items()}
        one, two = (duration(times_of[n][len(times_of[n]) // 2]) for n in ("1", "2"))
        title = f"{what} found by two Dask workers, and by one; each has one thread"
        rows.append((title, f"{two} and {one}", f"{found['ratio']:.2f}× as fast"))
    rows += [
        (
            f"{bits['n_metrics']} metrics of {bits['n_users']:,} users, two workers and none",
            " and ".join(map(duration, reversed(bits["seconds"]))),
            same[bits["same_values"] and bits["same_summary"]],
        ),
        (
            "without and with a worker that is killed with SIGKILL",
            " and ".join(map(duration, killed["seconds"])),
            same[killed["same"]],
        ),
    ]
    spark = report.get("spark", {"failed": "it was not asked for"})
    if "failed" in spark:
        rows.append(("Spark", f"not measured: {spark['failed']}", ""))
    else:
        for name, seconds in spark["medians"].items():
            title = {"mllib": "`pyspark.mllib`, `RankingMetrics`"}.get(name, name)
            if name != "mllib":
                title = "Spark, " + ("DataFrames" if "," in name else "files in order")
            ratio = spark["ratios"][name]
            rows.append((title, duration(seconds), "" if name == "mllib" else f"{times(ratio)}×"))
    return "\n\n".join((markdown(("", "seconds", ""), rows), conditions(report)))


def demo(report: dict[str, Any]) -> str:
    return f"```text\n{report['demo']}\n```"


def metrics(report: dict[str, Any]) -> str:
    printed: str = report["metrics"]
    return printed


#: The pages; for each name of markers the suites whose results are read, and what is made of them.
RENDERERS: dict[Path, dict[str, tuple[tuple[str, ...], Callable[..., str]]]] = {
    BENCHMARKS.parent / "README.md": {
        "demo": (("demo",), demo),
        "summary": (("lists", "checkpoint", "startup", "memory"), summary),
        "metrics": (("demo",), metrics),
    },
    BENCHMARKS / "RESULTS.md": {
        "lists": (("lists",), lists),
        "checkpoint": (("checkpoint",), checkpoint),
        "startup": (("startup",), startup),
        "memory": (("memory",), memory),
        "comparison": (("comparison",), comparison),
        "inference": (("inference",), inference),
        "agreement": (("agreement",), agreement),
    },
    BENCHMARKS / "SCALE.md": {
        "costs": (("scale",), costs),
        "plan": (("scale",), plan),
        "workers": (("scale",), workers),
    },
}


def markdown(columns: Row, rows: Iterable[Row]) -> str:
    aligned = ("---", *("--:" for _ in columns[1:]))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, aligned, *rows))


def label(report: dict[str, Any], contestant: str) -> str:
    """Return the rival's title and version, then the way it was called if there are several."""
    name, comma, way = contestant.partition(",")
    rival = report["rivals"][name]
    version = rival["requirements"][0].partition("==")[2]
    return f"{rival['title']} {version}".strip() + comma + way


def timed(entry: dict[str, Any]) -> Row:
    if "failed" in entry:
        return "failed", ""
    return duration(entry["median_seconds"]), times(entry["ratio"])


def amount(entry: dict[str, Any]) -> str:
    return "failed" if "failed" in entry else size(entry["median_bytes"])


def conditions(report: dict[str, Any]) -> str:
    machine = report["machine"]
    return (
        f"Medians of {report['rounds']} rounds taken in turn, after a warm-up; {machine['cpu']}, "
        f"{machine['cores']} cores, Python {machine['python']}, {report['date'][:10]}."
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


if __name__ == "__main__":
    sys.exit(main())
