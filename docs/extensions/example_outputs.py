"""Run the Python examples of a page, and show below each one its output and its charts.

The examples of a page follow one another: they share their names and a temporary folder.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
#: The pages whose examples run. Pages of metrics and conventions show values in another way.
PAGES = re.compile(r"(guide|coming_from)/.*")
#: The folder of the charts, below the folder of the pages.
CHARTS = "_build/charts"

#: The colours of text, grid and background in the light and in the dark theme.
THEMES = {
    "light": ("#000000", "#b0b0b0", "#ffffff"),
    "dark": ("#e8ebf0", "#4a5362", "#14181f"),
}
#: Placeholders of these colours.
DRAWN = ("#010203", "#040506", "#070809")

#: Reads a list of examples in JSON, runs them, and prints the list of their outputs. It draws each
#: chart under the prefix in its argument, with the numbers of example and chart in the file name,
#: in the colours that are its other arguments.
RUN = """
import contextlib, io, json, sys, warnings
import matplotlib
import matplotlib.pyplot as plt

matplotlib.use("svg")
charts, ink, grid, paper = sys.argv[1:]
inks = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
papers = ("axes.facecolor", "figure.facecolor")
matplotlib.rcParams |= dict.fromkeys(inks, ink) | dict.fromkeys(papers, paper)
matplotlib.rcParams |= {"grid.color": grid, "legend.edgecolor": grid}
warnings.simplefilter("ignore")
names, printed = {"__name__": "__main__"}, []
for number, code in enumerate(json.load(sys.stdin)):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "example", "exec"), names)
    printed.append(out.getvalue())
    for chart, figure in enumerate(plt.get_fignums()):
        plt.figure(figure).savefig(f"{charts}-{number}-{chart}.svg", bbox_inches="tight")
        plt.close(figure)
json.dump(printed, sys.stdout)
"""


def outputs(examples: list[str], charts: Path) -> list[str]:
    """Return the text that each example prints, run in order in one new process."""
    charts.parent.mkdir(parents=True, exist_ok=True)
    for old in charts.parent.glob(f"{charts.name}-*.svg"):
        old.unlink()
    with TemporaryDirectory() as folder:
        run = subprocess.run(  # noqa: S603 - our own pages
            [sys.executable, "-c", RUN, str(charts), *DRAWN],
            input=json.dumps(examples),
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return list(json.loads(run.stdout))


def in_themes(chart: Path) -> str:
    """Write a chart in the colours of each theme, and return the Markdown that shows them."""
    drawn, shown = chart.read_text(encoding="utf-8"), ""
    for theme, colors in THEMES.items():
        text = drawn
        for placeholder, color in zip(DRAWN, colors, strict=True):
            text = text.replace(placeholder, color)
        file = chart.with_stem(f"{chart.stem}-{theme}")
        file.write_text(text, encoding="utf-8")
        shown += f"""

```{{image}} /{CHARTS}/{file.name}
:alt: The chart of the example above
:class: only-{theme}
```"""
    chart.unlink()
    return shown


def add_outputs(app: Any, page: str, source: list[str]) -> None:
    """Insert the output and the charts of each example below its code."""
    examples = EXAMPLE.findall(source[0])
    if not examples or not PAGES.fullmatch(page):
        return
    charts = Path(app.srcdir, CHARTS, page.replace("/", "-"))
    shown = []
    for number, text in enumerate(outputs(examples, charts)):
        block = f"\n\n```text\n{text.rstrip()}\n```" if text.strip() else ""
        files = sorted(charts.parent.glob(f"{charts.name}-{number}-*.svg"))
        shown.append(block + "".join(map(in_themes, files)))
    blocks = iter(shown)
    source[0] = EXAMPLE.sub(lambda example: example[0] + next(blocks), source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_outputs)
    return {"parallel_read_safe": True}
