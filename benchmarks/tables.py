"""Rewrite the README's benchmark tables from results/SUITE.json, between their markers.

    python benchmarks/tables.py            rewrites
    python benchmarks/tables.py --check    exit code 1 when the README says something else

The markers of a table are `<!-- benchmark:NAME -->` and `<!-- /benchmark:NAME -->`.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent

Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    parser.add_argument("--readme", type=Path, default=BENCHMARKS.parent / "README.md")
    arguments = parser.parse_args()

    current = arguments.readme.read_text(encoding="utf-8")
    wanted = current
    for name, (suite, render) in RENDERERS.items():
        result = BENCHMARKS / "results" / f"{suite}.json"
        try:
            report = json.loads(result.read_text(encoding="utf-8"))
            wanted = replace(wanted, name, render(report))
        except FileNotFoundError:
            print(
                f"error: no {result.name}; run benchmarks/run.py --suite {suite}", file=sys.stderr
            )
            return 1
        except ValueError as error:
            print(f"error: {arguments.readme.name}: {error}", file=sys.stderr)
            return 1

    if wanted == current:
        return 0
    if arguments.check:
        print(f"error: {arguments.readme.name} is not what the results say", file=sys.stderr)
        return 1
    arguments.readme.write_text(wanted, encoding="utf-8")
    return 0


def replace(text: str, name: str, table: str) -> str:
    """Put a table between the markers of that name."""
    opening, closing = f"<!-- benchmark:{name} -->", f"<!-- /benchmark:{name} -->"
    before, found, rest = text.partition(opening)
    _, ended, after = rest.partition(closing)
    if not found or not ended:
        raise ValueError(f"no {opening} ... {closing}")
    return f"{before}{opening}\n{table}\n{closing}{after}"


def lists(report: dict[str, Any]) -> str:
    tables = []
    for name, case in report["cases"].items():
        inputs = report["inputs"][case["inputs"]]
        head = f"{name}: {inputs['n_lists']:,} lists of {inputs['list_length']}"
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


def demo(report: dict[str, Any]) -> str:
    return f"```text\n{report['demo']}\n```"


def metrics(report: dict[str, Any]) -> str:
    printed: str = report["metrics"]
    return printed


#: Name of the markers: the suite whose results are read, and what is made of them.
RENDERERS = {
    "lists": ("lists", lists),
    "startup": ("startup", startup),
    "memory": ("memory", memory),
    "demo": ("demo", demo),
    "metrics": ("demo", metrics),
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


def exponent(difference: float | None) -> str:
    return "" if difference is None else f"{difference:.0e}" if difference else "0"


if __name__ == "__main__":
    sys.exit(main())
