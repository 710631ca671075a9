"""Draw the speed of the libraries into data/speed.svg and data/speed-dark.svg, from results/.

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

CASE = "ndcg@10, objects in hand"
#: The colours of text, of our bar and of the other bars, by file name.
COLORS = {
    "speed.svg": ("#1c2430", "#1f6fb5", "#b4bcc7"),
    "speed-dark.svg": ("#e8ebf0", "#6cb1f0", "#596373"),
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
    report, code = read("lists"), 0
    for name, colors in COLORS.items():
        path, drawn = REPOSITORY / "data" / name, chart(report, *colors)
        if not arguments.check:
            path.write_text(drawn, encoding="utf-8")
        elif TEXT.findall(path.read_text(encoding="utf-8")) != TEXT.findall(drawn):
            print(f"error: {name} does not match the results", file=sys.stderr)
            code = 1
    return code


def chart(report: dict[str, Any], ink: str, ours: str, others: str) -> str:
    """Return an SVG with one bar for each library, the fastest on top."""
    entries = report["cases"][CASE]["contestants"]
    times = {
        label(report, name): entry["median_seconds"]
        for name, entry in entries.items()
        if "failed" not in entry
    }
    names = sorted(times, key=lambda name: times[name])
    n_lists = report["inputs"]["full"]["n_lists"]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8.6, 0.4 + 0.3 * len(names)))
        axes = figure.add_subplot()
        colors = [ours if name.startswith("sparse_eval") else others for name in names]
        bars = axes.barh(names, [times[name] for name in names], color=colors, height=0.68)
        axes.bar_label(bars, [duration(times[name]) for name in names], color=ink, padding=5)
        axes.set_title(f"ndcg@10 of {n_lists:,} lists: shorter is faster", color=ink, fontsize=12)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelbottom=False, colors=ink)
        axes.get_yticklabels()[names.index("sparse_eval")].set_weight("bold")
        text = io.StringIO()
        metadata = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata=metadata)
    # matplotlib ends some lines with a space.
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


if __name__ == "__main__":
    sys.exit(main())
