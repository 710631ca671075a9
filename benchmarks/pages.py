"""Write the tables of docs/ and the pages here, from results/ and the registry.

    python benchmarks/pages.py            rewrites
    python benchmarks/pages.py --check    exit code 1 if a page differs

In any page, a table is between the markers `<!-- benchmark:NAME -->` and
`<!-- /benchmark:NAME -->`. It is made by the suite whose `suite.py` has its name in TABLES.
`summary` has the rows of every suite that has SUMMARY, in the order of its first element.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.environment import BENCHMARKS, REPOSITORY, SUITES
from harness.format import conditions, markdown
from harness.report import read

PAGES = (
    REPOSITORY / "docs" / "metrics" / "index.md",
    REPOSITORY / "docs" / "guide" / "compare.md",
    REPOSITORY / "docs" / "guide" / "conventions.md",
    REPOSITORY / "docs" / "guide" / "install.md",
    *sorted(BENCHMARKS.glob("*.md")),
)
BLOCK = re.compile(r"(<!-- benchmark:(\w+) -->\n).*?(\n<!-- /benchmark:\2 -->)", re.DOTALL)
MARKER = re.compile(r"<!-- (?:benchmark:(\w+)|/benchmark:\w+) -->")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    arguments = parser.parse_args()
    try:
        changed = rewritten(makers())
    except FileNotFoundError as error:
        suite = Path(error.filename).stem
        print(f"error: no {suite}.json; run benchmarks/run.py --suite {suite}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for page, text in changed.items():
        if arguments.check:
            print(f"error: {page.name} is not what the results say", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8")
    return int(arguments.check and bool(changed))


def makers() -> dict[str, Callable[[], str]]:
    """Return the function that makes each table, by the name of its markers."""
    found: dict[str, Callable[[], str]] = {}
    summaries = []
    for path in sorted(SUITES.glob("*/suite.py")):
        suite = path.parent.name
        tables = importlib.import_module(f"suites.{suite}.suite")
        for name, table in tables.TABLES.items():
            if name in found:
                raise ValueError(f"two suites have a table {name}")
            found[name] = partial(lambda table, suite: table(read(suite)), table, suite)
        if hasattr(tables, "SUMMARY"):
            place, rows = tables.SUMMARY
            summaries.append((place, suite, rows))
    return found | {"summary": lambda: summary(sorted(summaries, key=lambda one: one[0]))}


def summary(suites: list[tuple[int, str, Callable[..., list[tuple[str, ...]]]]]) -> str:
    """Return a row for each kind of work: our time, and the times of others as multiples of it."""
    body = [row for _, suite, rows in suites for row in rows(read(suite))]
    table = markdown(("", "sparse_eval", "times that others take"), body, text=(0, 2))
    return f"{table}\n\n{conditions(read(suites[0][1]))}"


def rewritten(tables: dict[str, Callable[[], str]]) -> dict[Path, str]:
    """Return the outdated pages with their new texts."""
    changed, placed = {}, set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        names = [match[2] for match in BLOCK.finditer(text)]
        if 2 * len(names) != len(MARKER.findall(text)):
            raise ValueError(f"{page.name}: a marker without its other one")
        if unknown := set(names) - set(tables):
            raise ValueError(f"{page.name}: no suite has a table {', '.join(sorted(unknown))}")
        placed |= set(names)
        wanted = BLOCK.sub(lambda match: match[1] + tables[match[2]]() + match[3], text)
        if wanted != text:
            changed[page] = wanted
    if missing := set(tables) - placed:
        raise ValueError(f"no page has the markers of {', '.join(sorted(missing))}")
    return changed


if __name__ == "__main__":
    sys.exit(main())
