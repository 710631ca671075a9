"""Draw a chart of each suite of `CHARTS` into data/, from results/.

    python benchmarks/charts.py            draws
    python benchmarks/charts.py --check    exit code 1 if a chart has other labels

The check compares labels only, because each version of matplotlib draws other paths.
"""

import argparse
import io
import re
import sys
from typing import Any

import matplotlib as mpl
from harness.environment import REPOSITORY
from harness.format import duration, label
from harness.report import read
from matplotlib.figure import Figure

#: The colours of text, of our bars and of other bars.
LIGHT = ("#1c2430", "#1f6fb5", "#b4bcc7")
DARK = ("#e8ebf0", "#6cb1f0", "#596373")
BOTH = ("#76808f", "#3f8fd2", "#8d97a5")  # readable on white and on black
#: The suite, the case, the title and the colours of each chart.
LISTS = ("lists", "ndcg@10, objects in hand", "ndcg@10 of {n_lists:,} lists: shorter is faster")
CHARTS = {
    "speed.svg": (*LISTS, LIGHT),
    "speed-dark.svg": (*LISTS, DARK),
    "lists.svg": (*LISTS, BOTH),
    "checkpoint.svg": (
        "checkpoint",
        "gowalla-als64-k20",
        "the best 20 unseen items of Gowalla's test users, 64 factors",
        BOTH,
    ),
    "loading.svg": ("loading", "csv-5m", "five million events from CSV", BOTH),
    "startup.svg": ("startup", "import", "import", BOTH),
}
#: Text stays text. Without a date and with a fixed salt, the same chart has the same bytes.
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sparse_eval",
    "font.family": "sans-serif",
    "font.size": 11,
}
TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only compare")
    arguments = parser.parse_args()
    code = 0
    for name, (suite, case, title, colors) in CHARTS.items():
        path, drawn = REPOSITORY / "data" / name, chart(read(suite), case, title, *colors)
        if not arguments.check:
            path.write_text(drawn, encoding="utf-8")
        elif TEXT.findall(path.read_text(encoding="utf-8")) != TEXT.findall(drawn):
            print(f"error: {name} does not match the results", file=sys.stderr)
            code = 1
    return code


def chart(report: dict[str, Any], case: str, title: str, *colors: str) -> str:
    """Return an SVG with one bar for each contestant of a case, the fastest on top."""
    ink, ours, others = colors
    entries = report["cases"][case]["contestants"]
    times = {
        label(report, name): entry["median_seconds"]
        for name, entry in entries.items()
        if "failed" not in entry
    }
    names = sorted(times, key=lambda name: times[name])
    title = title.format(**report["inputs"].get("full", {}))
    with mpl.rc_context(SETTINGS):
        # Narrow, with each name above its bar, so that a phone shows readable text.
        figure = Figure(figsize=(4.8, 0.5 + 0.42 * len(names)))
        axes = figure.add_axes((0, 0, 1, 1))
        of_us = [name.startswith("sparse_eval") for name in names]
        fills = [ours if own else others for own in of_us]
        bars = axes.barh(names, [times[name] for name in names], color=fills, height=0.4)
        axes.bar_label(bars, [duration(times[name]) for name in names], color=ink, padding=5)
        for row, (name, own) in enumerate(zip(names, of_us, strict=True)):
            weight = "bold" if own else "normal"
            axes.text(0, row - 0.26, name, color=ink, weight=weight, va="bottom")
        axes.set_title(title, color=ink, fontsize=12, loc="left", pad=8)
        axes.set_ylim(len(names) - 0.75, -0.75)
        axes.set_xmargin(0.16)
        axes.axis("off")
        drawn = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(
            drawn, format="svg", transparent=True, bbox_inches="tight", metadata=metadata
        )
    # matplotlib ends some lines with a space.
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"


if __name__ == "__main__":
    sys.exit(main())
